//! Teams for Python.

use std::sync::Mutex;

use crosswarp::Team;
use pyo3::prelude::*;

use crate::error::Failure;
use crate::run::guarded;
use crate::world::Handle;
use crate::world::collective::Collective;
use crate::world::verb::verb;

/// A team, which lives as long as the handle that it holds.
#[pyclass(frozen, module = "crosswarp._native")]
pub(super) struct Part {
    /// None once it is destroyed.
    team: Mutex<Option<Team<'static>>>,
    handle: Py<Handle>,
}

impl Part {
    pub(super) fn new(handle: &Bound<'_, Handle>, team: Team<'_>) -> Part {
        // SAFETY: what a team leads to is the PE's, which lives as long as the handle (rule 1), which is held here.
        let team = unsafe { std::mem::transmute::<Team<'_>, Team<'static>>(team) };
        Part {
            team: Mutex::new(Some(team)),
            handle: handle.clone().unbind(),
        }
    }

    /// Does `work` with the team; the PE must be one.
    ///
    /// A team's collectives take one thread at a time, which is what the lock says, too: another thread is told.
    fn with<R>(&self, work: impl FnOnce(&Handle, &Team<'static>) -> PyResult<R>) -> PyResult<R> {
        let handle = self.handle.get();
        handle.pe()?;
        let busy = || Failure::World("another thread of this PE uses the team".into());
        let team = self.team.try_lock().map_err(|_| busy())?;
        let gone = || Failure::Input("the team has been destroyed".into());
        work(handle, team.as_ref().ok_or_else(gone)?)
    }
}

#[pymethods]
impl Part {
    #[getter]
    fn my_pe(&self) -> PyResult<usize> {
        guarded(move || self.with(|_, team| Ok(team.my_pe())))
    }

    #[getter]
    fn n_pes(&self) -> PyResult<usize> {
        guarded(move || self.with(|_, team| Ok(team.n_pes())))
    }

    /// The number in the world of the team's PE `pe`.
    fn world_pe(&self, pe: usize) -> PyResult<usize> {
        guarded(move || {
            self.with(|_, team| {
                if pe >= team.n_pes() {
                    let text = format!("there is no PE {pe} in a team of {}", team.n_pes());
                    return Err(Failure::Input(text).into());
                }
                Ok(team.world_pe(pe))
            })
        })
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || self.with(|handle, team| verb(py, handle.pe()?, || Ok(team.sync()?))))
    }

    fn broadcast(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        root: usize,
    ) -> PyResult<()> {
        guarded(move || {
            self.with(|handle, team| handle.on(py, team, Collective::Broadcast(root), dest, source))
        })
    }

    fn fcollect(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || {
            self.with(|handle, team| handle.on(py, team, Collective::Fcollect, dest, source))
        })
    }

    fn alltoall(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || {
            self.with(|handle, team| handle.on(py, team, Collective::Alltoall, dest, source))
        })
    }

    fn reduce(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        what: &str,
    ) -> PyResult<()> {
        guarded(move || {
            self.with(|handle, team| handle.on(py, team, Collective::Reduce(what), dest, source))
        })
    }

    fn split_strided(
        &self,
        py: Python<'_>,
        start: usize,
        stride: isize,
        size: usize,
    ) -> PyResult<Option<Part>> {
        guarded(move || {
            self.with(|handle, team| {
                let part = verb(py, handle.pe()?, || {
                    Ok(team.split_strided(start, stride, size)?)
                })?;
                Ok(part.map(|part| Part::new(self.handle.bind(py), part)))
            })
        })
    }

    fn split_2d(&self, py: Python<'_>, row: usize) -> PyResult<(Part, Part)> {
        guarded(move || {
            self.with(|handle, team| {
                let (rows, columns) = verb(py, handle.pe()?, || Ok(team.split_2d(row)?))?;
                let part = |team| Part::new(self.handle.bind(py), team);
                Ok((part(rows), part(columns)))
            })
        })
    }

    /// Collective.
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            self.with(|_, _| Ok(()))?;
            let team = self.team.lock().ok().and_then(|mut team| team.take());
            let Some(team) = team else { return Ok(()) };
            verb(py, self.handle.get().pe()?, || Ok(team.destroy()?))
        })
    }
}

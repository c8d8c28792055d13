//! Levels that are made once: threads that hold them wait for work until the object is gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crosswarp::prim::{Scalar, Value};
use crosswarp::solve::{Boundary, Problem2d, Real, SolveError, Solver2d};
use crosswarp::{Pe, spmd};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::error::Failure;
use crate::gpu::solve::OnDevice;
use crate::run::guarded;
use crate::solve::{How, Kept, Plane, Report, options, report, rows};

/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(20);
/// How long work may take to end after a signal, before it is left to itself.
const GRACE: Duration = Duration::from_millis(100);

/// What is to be done.
enum Work {
    Solve {
        source: Option<Array>,
        initial: Option<Array>,
        how: How,
        output: Array,
    },
    /// With arrays on a GPU.
    SolveOnDevice {
        arrays: OnDevice,
        how: How,
    },
    /// A vector of all points, and what is to be made of it.
    Apply([Array; 2]),
    Precondition([Array; 2]),
}

/// What came of it; of a solve a report, or nothing if it is not possible this way.
type Done = Result<Option<Report>, Failure>;

struct Job {
    work: Work,
    stop: Arc<AtomicBool>,
    /// Taken by PE 0.
    reply: Mutex<Option<Sender<Done>>>,
    _kept: Kept,
}

/// A world of threads that hold the levels of one problem.
#[pyclass]
struct Levels {
    /// One to each PE; a lock keeps jobs in the same order for all.
    jobs: Mutex<Vec<Sender<Arc<Job>>>>,
    /// Whose threads they are; a fork has none of them.
    process: u32,
}

impl Drop for Levels {
    fn drop(&mut self) {
        // In a forked child nobody is there, and a channel's lock may be one that a thread had: nothing is let go of.
        if self.process != std::process::id() {
            let jobs = self.jobs.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(jobs));
        }
    }
}

#[pymethods]
impl Levels {
    /// Makes the levels of a problem of `nx` × `ny` points in `kind`, float32 or else float64.
    #[new]
    fn new(
        py: Python<'_>,
        nx: usize,
        ny: usize,
        problem: Plane<'_>,
        how: How,
        single: bool,
    ) -> PyResult<Levels> {
        guarded(move || {
            let kept = problem.kept();
            match single {
                true => Self::of::<f32>(py, problem.problem(nx, ny)?, how, kept),
                false => Self::of::<f64>(py, problem.problem(nx, ny)?, how, kept),
            }
        })
    }

    /// Solves into `output`.
    fn solve<'py>(
        &self,
        py: Python<'py>,
        source: Option<Bound<'py, PyAny>>,
        initial: Option<Bound<'py, PyAny>>,
        how: How,
        output: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        guarded(move || {
            let prepared = |array: &Option<Bound<'py, PyAny>>| {
                let array = array.as_ref().map(Array::prepared);
                array.transpose()
            };
            let arrays = [Some(output), source.as_ref(), initial.as_ref()];
            let kept = arrays.into_iter().flatten();
            let kept = kept.map(|array| array.clone().unbind()).collect();
            let work = Work::Solve {
                source: prepared(&source)?,
                initial: prepared(&initial)?,
                how,
                output: Array::output(output)?,
            };
            let report = self.done(py, work, kept)?;
            let report =
                report.ok_or_else(|| Failure::Internal("a solve without a report".into()))?;
            report.into_python(py)
        })
    }

    /// Solves with arrays on a GPU; nothing if the host has to.
    fn solve_on_device<'py>(
        &self,
        py: Python<'py>,
        arrays: OnDevice,
        how: How,
        kept: Kept,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        guarded(move || {
            let report = self.done(py, Work::SolveOnDevice { arrays, how }, kept)?;
            report.map(|report| report.into_python(py)).transpose()
        })
    }

    /// The operator times a vector of float64, into `output`.
    fn apply(
        &self,
        py: Python<'_>,
        vector: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || {
            let arrays = [Array::prepared(vector)?, Array::output(output)?];
            let kept = vec![vector.clone().unbind(), output.clone().unbind()];
            self.done(py, Work::Apply(arrays), kept).map(|_| ())
        })
    }

    /// A cycle from zero for a vector of float64, into `output`.
    fn precondition(
        &self,
        py: Python<'_>,
        vector: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || {
            let arrays = [Array::prepared(vector)?, Array::output(output)?];
            let kept = vec![vector.clone().unbind(), output.clone().unbind()];
            self.done(py, Work::Precondition(arrays), kept).map(|_| ())
        })
    }
}

impl Levels {
    fn of<F: Real + Scalar>(
        py: Python<'_>,
        problem: Problem2d<F>,
        how: How,
        kept: Kept,
    ) -> PyResult<Levels> {
        let n_pes = how.pes()?;
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..n_pes).map(|_| channel()).unzip();
        let (made, is_made) = channel();
        let waiting = Mutex::new(receivers.into_iter().map(Some).collect::<Vec<_>>());
        let worker = thread::Builder::new().spawn(move || {
            let ready = Mutex::new(Some(made));
            let done = guarded(|| {
                let each = spmd(n_pes, |pe| {
                    let jobs = waiting
                        .lock()
                        .ok()
                        .and_then(|mut all| all[pe.my_pe()].take());
                    let jobs = jobs.ok_or_else(|| Failure::Internal("no jobs".into()))?;
                    let made = (pe.my_pe() == 0)
                        .then(|| ready.lock().ok()?.take())
                        .flatten();
                    serve(pe, &problem, &how, &jobs, made)
                });
                let each = each.map_err(|error| Failure::World(error.to_string()))?;
                each.into_iter().collect::<Result<(), Failure>>()
            });
            // PE 0 has said it, unless there was no world.
            if let (Err(error), Some(made)) =
                (done, ready.lock().ok().and_then(|mut made| made.take()))
            {
                let _ = made.send(Err(error));
            }
            drop(kept);
        });
        worker
            .map_err(|error| Failure::Internal(format!("no thread could be started: {error}")))?;
        wait(py, is_made, &AtomicBool::new(false))?;
        Ok(Levels {
            jobs: Mutex::new(senders),
            process: std::process::id(),
        })
    }

    fn done(&self, py: Python<'_>, work: Work, kept: Kept) -> PyResult<Option<Report>> {
        if self.process != std::process::id() {
            let text = "this process was forked from the one that made these levels, whose threads have them: make a Hierarchy here";
            return Err(Failure::World(text.into()).into());
        }
        let (reply, replied) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let job = Arc::new(Job {
            work,
            stop: Arc::clone(&stop),
            reply: Mutex::new(Some(reply)),
            _kept: kept,
        });
        let gone = || Failure::Internal("the threads of a hierarchy are gone".into());
        {
            let jobs = self.jobs.lock().map_err(|_| gone())?;
            for sender in jobs.iter() {
                sender.send(Arc::clone(&job)).map_err(|_| gone())?;
            }
        }
        drop(job);
        wait(py, replied, &stop)
    }
}

/// Waits without the interpreter's lock; a signal raises `stop`.
fn wait<R: Send>(
    py: Python<'_>,
    mut result: Receiver<Result<R, Failure>>,
    stop: &AtomicBool,
) -> PyResult<R> {
    loop {
        let receiver = &mut result;
        match py.detach(move || receiver.recv_timeout(LOOK)) {
            Ok(result) => return Ok(result?),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Internal("a thread died".into()).into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            stop.store(true, Ordering::Relaxed);
            let receiver = &mut result;
            let _ = py.detach(move || receiver.recv_timeout(GRACE));
            return Err(signal);
        }
    }
}

/// What a PE does until nobody can give it work any more.
fn serve<F: Real + Scalar>(
    pe: &Pe,
    problem: &Problem2d<F>,
    how: &How,
    jobs: &Receiver<Arc<Job>>,
    made: Option<Sender<Result<(), Failure>>>,
) -> Result<(), Failure> {
    let solver = Solver2d::new(pe, problem, &how.cycles()).map_err(Failure::from);
    let mut solver = match solver {
        Ok(solver) => solver,
        Err(error) => {
            if let Some(made) = made {
                let _ = made.send(Err(error));
            }
            return Ok(());
        }
    };
    if let Some(made) = made {
        let _ = made.send(Ok(()));
    }
    while let Ok(job) = jobs.recv() {
        let done = match &job.work {
            Work::Solve {
                source,
                initial,
                how,
                output,
            } => {
                let (source, initial) = (source.map(rows), initial.map(rows));
                let solution = solver.solve(source, initial, &options(how, &job.stop), |_| {});
                let said = solution.map_err(Failure::from);
                said.and_then(|solution| report(pe, solution, *output))
                    .map(Some)
            }
            Work::SolveOnDevice { arrays, how } => {
                let points = problem.nx * problem.ny;
                arrays.solve(&mut solver, points, how, &job.stop, |_| {})
            }
            Work::Apply(arrays) => {
                made_of(pe, &mut solver, problem, arrays, Solver2d::apply).map(|()| None)
            }
            Work::Precondition(arrays) => {
                made_of(pe, &mut solver, problem, arrays, Solver2d::precondition).map(|()| None)
            }
        };
        // Nobody may read what others have not written yet.
        let together = pe.barrier();
        let broken =
            together.is_err() || matches!(done, Err(Failure::World(_) | Failure::Internal(_)));
        if let (0, Ok(mut reply)) = (pe.my_pe(), job.reply.lock())
            && let Some(reply) = reply.take()
        {
            let _ = reply.send(done);
        }
        if broken {
            return Ok(());
        }
    }
    solver.free().map_err(Failure::from)
}

/// Makes the second of two vectors of the first, each of all points.
fn made_of<'p, F: Real>(
    pe: &Pe,
    solver: &mut Solver2d<'p, F>,
    problem: &Problem2d<F>,
    [from, to]: &[Array; 2],
    step: impl FnOnce(&mut Solver2d<'p, F>, &[f64], &mut [f64]) -> Result<(), SolveError>,
) -> Result<(), Failure> {
    let (own, columns, nx) = (solver.rows(), solver.columns(), problem.nx);
    let all = from.slice::<f64>();
    let held: Vec<f64> = own
        .clone()
        .flat_map(|y| &all[y * nx..][columns.clone()])
        .copied()
        .collect();
    let mut made = vec![0.0; held.len()];
    step(solver, &held, &mut made)?;
    // Where every PE holds all, one of them writes: bands of others begin further down.
    if pe.my_pe() == 0 || own.start > 1 {
        for (y, row) in own.clone().zip(made.chunks_exact(columns.len().max(1))) {
            for (x, &value) in columns.clone().zip(row) {
                to.write(y * nx + x, Value::F64(value));
            }
        }
    }
    if pe.my_pe() == 0 {
        // Ghosts are what they were.
        let ghost = |k: &usize| {
            let (x, y) = (k % nx, k / nx);
            let first_y = usize::from(matches!(problem.top, Boundary::Periodic));
            !columns.contains(&x) || y < first_y || y >= problem.ny - first_y
        };
        for k in (0..all.len()).filter(ghost) {
            to.write(k, Value::F64(all[k]));
        }
    }
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Levels>()
}

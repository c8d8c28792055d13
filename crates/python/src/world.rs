//! Worlds: a PE's handle, symmetric memory as NumPy arrays, and the verbs over it.
//!
//! Rules of the handle, whose `pe` is a plain pointer:
//! 1. What it leads to lives as long as the handle: the handle owns it, or, in a world of threads, the thread that
//!    has it does not end before the handle is dropped.
//! 2. Arrays of symmetric memory hold the handle (`Block`), so the memory is mapped while there is one.
//! 3. Other PEs may change symmetric memory at any time. Arrays of it are for NumPy as memory that another thread
//!    writes: what a race leaves is unspecified, and Rust code here never makes a slice of it.
#![allow(unsafe_code)] // Reason: memory that Python holds on to, and the verbs by address.

use std::cell::RefCell;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosswarp::prim::DType;
use crosswarp::shmem::internal::address_of_host;
use crosswarp::shmem::{
    AllocError, AtomicInt, CollectiveError, TeamError, WaitError, interruptible,
};
use crosswarp::{Cmp, Pe, SignalOp, Team, ThreadWorld, op};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::error::Failure;
use crate::run::guarded;

/// Bytes from which copying is worth giving the interpreter's lock away.
const LARGE: usize = 32 << 10;
/// How often a world of threads is asked for signals.
const LOOK: Duration = Duration::from_millis(20);

/// What keeps a PE alive.
enum Keeper {
    /// A process's PE.
    Own(#[allow(dead_code)] Box<Pe>),
    /// The end of a channel at whose other end the PE's thread waits.
    Thread(#[allow(dead_code)] Sender<()>),
}

/// A PE of a world.
#[pyclass(frozen, module = "crosswarp._native")]
struct Handle {
    pe: *const Pe,
    /// The process that joined; a fork of it is no PE.
    pid: u32,
    _keeper: Keeper,
}

// SAFETY: a `Pe` may be used from any thread, and the keepers may be dropped on any.
unsafe impl Send for Handle {}
// SAFETY: the same.
unsafe impl Sync for Handle {}

/// Symmetric memory, for NumPy, which keeps it as the base of arrays.
#[pyclass(frozen, module = "crosswarp._native")]
struct Block {
    address: usize,
    bytes: usize,
    _handle: Py<Handle>,
}

#[pymethods]
impl Block {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(move || {
            let interface = PyDict::new(py);
            interface.set_item("data", (self.address, false))?;
            interface.set_item("shape", (self.bytes,))?;
            interface.set_item("typestr", "|u1")?;
            interface.set_item("version", 3)?;
            Ok(interface)
        })
    }
}

impl From<WaitError> for Failure {
    fn from(error: WaitError) -> Failure {
        let text = error.to_string();
        match error {
            WaitError::TimedOut { .. } => Failure::Timeout(text),
            WaitError::Interrupted { .. } => Failure::Stopped,
            _ => Failure::World(text),
        }
    }
}

impl From<CollectiveError> for Failure {
    fn from(error: CollectiveError) -> Failure {
        let text = error.to_string();
        match error {
            CollectiveError::Wait(WaitError::Interrupted { .. }) => Failure::Left,
            CollectiveError::Wait(error) => error.into(),
            CollectiveError::Length { .. } => Failure::Input(text),
            _ => Failure::World(text),
        }
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Failure {
        let text = error.to_string();
        match error {
            AllocError::Collective(error) => error.into(),
            AllocError::OutOfHeap { .. } | AllocError::TooManyBlocks { .. } => {
                Failure::Memory(text)
            }
            _ => Failure::Input(text),
        }
    }
}

impl From<TeamError> for Failure {
    fn from(error: TeamError) -> Failure {
        let text = error.to_string();
        match error {
            TeamError::Collective(error) => error.into(),
            TeamError::Shape { .. } | TeamError::Predefined => Failure::Input(text),
            _ => Failure::World(text),
        }
    }
}

thread_local! {
    /// What a signal has raised while this thread waited.
    static SIGNAL: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Whether the interpreter has a signal's exception to raise; it is kept in `SIGNAL`.
fn is_signalled() -> bool {
    let Some(error) = Python::attach(|py| py.check_signals().err()) else {
        return false;
    };
    SIGNAL.set(Some(error));
    true
}

/// A verb that may wait or copy much: without the interpreter's lock, and ended by a signal.
fn verb<R: Send>(
    py: Python<'_>,
    me: &Pe,
    work: impl FnOnce() -> Result<R, Failure> + Send,
) -> PyResult<R> {
    let result = py.detach(|| guarded(|| interruptible(is_signalled, work)));
    if let Err(Failure::Left) = result {
        // The others shall not wait for this PE.
        py.detach(|| me.leave());
    }
    match SIGNAL.take() {
        Some(signal) => Err(signal),
        None => Ok(result?),
    }
}

/// Elements in memory: an array's, symmetric or not.
#[derive(Clone, Copy)]
struct Place {
    address: usize,
    dtype: DType,
    len: usize,
}

impl Place {
    fn bytes(self) -> usize {
        self.len * self.dtype.size()
    }

    fn at<T>(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

macro_rules! of_integer {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
            other => Err(Failure::Type(format!(
                "atomics and waits are of int32, int64, uint32 and uint64, not of {other}"
            ))),
        }
    };
}

impl Handle {
    fn pe(&self) -> Result<&Pe, Failure> {
        if std::process::id() != self.pid {
            return Err(Failure::World(
                "this process was forked from a PE and is none itself".into(),
            ));
        }
        // SAFETY: rule 1.
        Ok(unsafe { &*self.pe })
    }

    fn other(&self, pe: usize) -> Result<&Pe, Failure> {
        let me = self.pe()?;
        if pe < me.n_pes() {
            return Ok(me);
        }
        Err(Failure::Input(format!(
            "there is no PE {pe} in a world of {}",
            me.n_pes()
        )))
    }

    /// An array in this PE's symmetric memory.
    fn symmetric(&self, array: &Bound<'_, PyAny>) -> Result<Place, Failure> {
        let place = any(array)?;
        if place.len == 0 || self.pe()?.raw().contains(place.at::<u8>(), place.bytes()) {
            return Ok(place);
        }
        Err(Failure::Input(
            "the array is not in symmetric memory: arrays from empty and zeros of a PE are, and their slices".into(),
        ))
    }

    /// One number in this PE's symmetric memory.
    fn word(&self, array: &Bound<'_, PyAny>) -> Result<Place, Failure> {
        let place = self.symmetric(array)?;
        if place.len == 1 {
            return Ok(place);
        }
        Err(Failure::Input(format!(
            "one element is needed, not {}: a[3:4] is one",
            place.len
        )))
    }
}

/// An array, wherever it is.
fn any(array: &Bound<'_, PyAny>) -> Result<Place, Failure> {
    let array = Array::prepared(array)?;
    Ok(Place {
        address: array.address(),
        dtype: array.kind.dtype,
        len: array.len,
    })
}

fn integer<T: TryFrom<i128>>(value: i128, dtype: DType) -> Result<T, Failure> {
    value
        .try_into()
        .map_err(|_| Failure::Input(format!("{value} is no {dtype}")))
}

fn comparison(name: &str) -> Result<Cmp, Failure> {
    Ok(match name {
        "==" => Cmp::Eq,
        "!=" => Cmp::Ne,
        ">" => Cmp::Gt,
        ">=" => Cmp::Ge,
        "<" => Cmp::Lt,
        "<=" => Cmp::Le,
        _ => {
            let known = "there are '==', '!=', '>', '>=', '<', '<='";
            return Err(Failure::Input(format!(
                "there is no comparison {name:?}; {known}"
            )));
        }
    })
}

fn signal_op(name: &str) -> Result<SignalOp, Failure> {
    match name {
        "set" => Ok(SignalOp::Set),
        "add" => Ok(SignalOp::Add),
        _ => Err(Failure::Input(format!(
            "a signal is 'set' or 'add', not {name:?}"
        ))),
    }
}

fn equal(left: usize, right: usize, what: &str) -> Result<(), Failure> {
    if left == right {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{what} has {left} bytes where {right} are needed"
    )))
}

#[pymethods]
impl Handle {
    #[getter]
    fn my_pe(&self) -> PyResult<usize> {
        guarded(move || Ok(self.pe()?.my_pe()))
    }

    #[getter]
    fn n_pes(&self) -> PyResult<usize> {
        guarded(move || Ok(self.pe()?.n_pes()))
    }

    /// Symmetric memory of zeros. Collective.
    fn allocate(slf: &Bound<'_, Self>, bytes: usize) -> PyResult<Block> {
        guarded(move || {
            let pe = slf.get().pe()?;
            let address = verb(slf.py(), pe, || {
                let start = pe.raw().calloc(bytes, 1)?;
                Ok(start.expose_provenance())
            })?;
            Ok(Block {
                address,
                bytes,
                _handle: slf.clone().unbind(),
            })
        })
    }

    /// Collective.
    fn free(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(move || {
            let (pe, place) = (self.pe()?, self.symmetric(array)?);
            verb(py, pe, || Ok(pe.raw().free(place.at())?))
        })
    }

    fn put(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        pe: usize,
    ) -> PyResult<()> {
        guarded(move || {
            let (me, dest, source) = (self.other(pe)?, self.symmetric(dest)?, any(source)?);
            equal(source.bytes(), dest.bytes(), "the source")?;
            let put = || {
                // SAFETY: `dest` is symmetric; `source` is an array's memory, which the call keeps alive.
                unsafe { me.raw().put(dest.at(), source.at(), source.bytes(), pe) };
                Ok(())
            };
            if source.bytes() < LARGE {
                return Ok(guarded(put)?);
            }
            verb(py, me, put)
        })
    }

    fn get(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        pe: usize,
    ) -> PyResult<()> {
        guarded(move || {
            let (me, dest, source) = (self.other(pe)?, any(dest)?, self.symmetric(source)?);
            equal(dest.bytes(), source.bytes(), "the destination")?;
            let get = || {
                // SAFETY: as for `put`.
                unsafe { me.raw().get(dest.at(), source.at(), source.bytes(), pe) };
                Ok(())
            };
            if source.bytes() < LARGE {
                return Ok(guarded(get)?);
            }
            verb(py, me, get)
        })
    }

    #[allow(clippy::too_many_arguments)] // those of the operation
    fn put_signal(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        signal: &Bound<'_, PyAny>,
        value: u64,
        op: &str,
        pe: usize,
    ) -> PyResult<()> {
        guarded(move || {
            let (me, dest, source) = (self.other(pe)?, self.symmetric(dest)?, any(source)?);
            equal(source.bytes(), dest.bytes(), "the source")?;
            let (signal, op) = (self.word(signal)?, signal_op(op)?);
            if signal.dtype != DType::U64 {
                return Err(
                    Failure::Type(format!("a signal is a uint64, not {}", signal.dtype)).into(),
                );
            }
            let bytes = source.bytes();
            verb(py, me, || {
                // SAFETY: as for `put`; the signal is a symmetric, aligned word.
                unsafe {
                    me.raw()
                        .put_signal(dest.at(), source.at(), bytes, signal.at(), value, op, pe);
                }
                Ok(())
            })
        })
    }

    fn wait_until(
        &self,
        py: Python<'_>,
        word: &Bound<'_, PyAny>,
        cmp: &str,
        value: i128,
    ) -> PyResult<i128> {
        guarded(move || {
            let (me, word, cmp) = (self.pe()?, self.word(word)?, comparison(cmp)?);
            verb(py, me, || {
                of_integer!(word.dtype, T => {
                    let value = integer::<T>(value, word.dtype)?;
                    // SAFETY: a symmetric, aligned word.
                    let seen = unsafe { me.raw().wait_until(word.at::<T>(), cmp, value) };
                    Ok(seen?.into())
                })
            })
        })
    }

    fn test(&self, word: &Bound<'_, PyAny>, cmp: &str, value: i128) -> PyResult<bool> {
        guarded(move || {
            let (me, word, cmp) = (self.pe()?, self.word(word)?, comparison(cmp)?);
            let test = || {
                of_integer!(word.dtype, T => {
                    let value = integer::<T>(value, word.dtype)?;
                    // SAFETY: a symmetric, aligned word.
                    Ok(unsafe { me.raw().test(word.at::<T>(), cmp, value) })
                })
            };
            Ok(guarded(test)?)
        })
    }

    /// An atomic on another PE's word; the value before.
    fn atomic(
        &self,
        py: Python<'_>,
        what: &str,
        word: &Bound<'_, PyAny>,
        value: i128,
        expected: i128,
        pe: usize,
    ) -> PyResult<i128> {
        guarded(move || {
            let (me, word) = (self.other(pe)?, self.word(word)?);
            verb(py, me, || {
                of_integer!(word.dtype, T => {
                    let (value, expected) = (integer::<T>(value, word.dtype)?, integer::<T>(expected, word.dtype)?);
                    atomic(me, what, word.at::<T>(), value, expected, pe).map(i128::from)
                })
            })
        })
    }

    fn fence(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || {
                me.fence()
                    .map_err(|error| Failure::World(error.to_string()))
            })
        })
    }

    fn quiet(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || {
                me.quiet()
                    .map_err(|error| Failure::World(error.to_string()))
            })
        })
    }

    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || Ok(me.barrier()?))
        })
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || Ok(me.sync()?))
        })
    }

    fn broadcast(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        root: usize,
    ) -> PyResult<()> {
        guarded(move || {
            self.on(
                py,
                &self.pe()?.world(),
                Collective::Broadcast(root),
                dest,
                source,
            )
        })
    }

    fn fcollect(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || self.on(py, &self.pe()?.world(), Collective::Fcollect, dest, source))
    }

    fn alltoall(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || self.on(py, &self.pe()?.world(), Collective::Alltoall, dest, source))
    }

    fn reduce(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        what: &str,
    ) -> PyResult<()> {
        guarded(move || {
            self.on(
                py,
                &self.pe()?.world(),
                Collective::Reduce(what),
                dest,
                source,
            )
        })
    }

    fn split_strided(
        slf: &Bound<'_, Self>,
        start: usize,
        stride: isize,
        size: usize,
    ) -> PyResult<Option<Part>> {
        guarded(move || {
            let me = slf.get().pe()?;
            let team = verb(slf.py(), me, || {
                Ok(me.world().split_strided(start, stride, size)?)
            })?;
            Ok(team.map(|team| Part::new(slf, team)))
        })
    }

    fn split_2d(slf: &Bound<'_, Self>, row: usize) -> PyResult<(Part, Part)> {
        guarded(move || {
            let me = slf.get().pe()?;
            let (rows, columns) = verb(slf.py(), me, || Ok(me.world().split_2d(row)?))?;
            Ok((Part::new(slf, rows), Part::new(slf, columns)))
        })
    }
}

/// A team, which lives as long as the handle that it holds.
#[pyclass(frozen, module = "crosswarp._native")]
struct Part {
    /// None once it is destroyed.
    team: Mutex<Option<Team<'static>>>,
    handle: Py<Handle>,
}

impl Part {
    fn new(handle: &Bound<'_, Handle>, team: Team<'_>) -> Part {
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

/// A collective from a source to a destination.
#[derive(Clone, Copy)]
enum Collective<'a> {
    Broadcast(usize),
    Fcollect,
    Alltoall,
    Reduce(&'a str),
}

impl Handle {
    /// Does a collective on a team of this PE's.
    fn on(
        &self,
        py: Python<'_>,
        team: &Team<'_>,
        collective: Collective<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (me, dest, source) = (self.pe()?, self.symmetric(dest)?, self.symmetric(source)?);
        let (n, bytes) = (team.n_pes(), source.bytes());
        let expected = match collective {
            Collective::Fcollect => bytes * n,
            _ => bytes,
        };
        equal(dest.bytes(), expected, "the destination")?;
        match collective {
            Collective::Broadcast(root) if root >= n => {
                let text = format!("there is no PE {root} in a team of {n}");
                return Err(Failure::Input(text).into());
            }
            Collective::Alltoall if !source.len.is_multiple_of(n) => {
                let text = format!(
                    "{} elements cannot be cut into {n} equal blocks",
                    source.len
                );
                return Err(Failure::Input(text).into());
            }
            Collective::Reduce(_) if dest.dtype != source.dtype => {
                let text = format!("a reduction of {} into {}", source.dtype, dest.dtype);
                return Err(Failure::Type(text).into());
            }
            _ => {}
        }
        verb(py, me, || {
            // SAFETY: both are symmetric, of the lengths that were just looked at.
            unsafe {
                match collective {
                    Collective::Broadcast(root) => {
                        team.broadcast_raw(dest.at(), source.at(), bytes, root, true)?;
                    }
                    Collective::Fcollect => team.fcollect_raw(dest.at(), source.at(), bytes)?,
                    Collective::Alltoall => team.alltoall_raw(dest.at(), source.at(), bytes / n)?,
                    Collective::Reduce(what) => reduce(team, what, dest, source)?,
                }
            }
            Ok(())
        })
    }
}

/// The value before. `word` is symmetric and aligned.
fn atomic<T: AtomicInt>(
    me: &Pe,
    what: &str,
    word: *mut T,
    value: T,
    expected: T,
    pe: usize,
) -> Result<T, Failure> {
    let raw = me.raw();
    // SAFETY: by the caller.
    unsafe {
        Ok(match what {
            "fetch" => raw.atomic_fetch(word, pe),
            "set" => {
                raw.atomic_set(word, value, pe);
                value
            }
            "swap" => raw.atomic_swap(word, value, pe),
            "compare_swap" => raw.atomic_compare_swap(word, expected, value, pe),
            "add" => raw.atomic_fetch_add(word, value, pe),
            "and" => raw.atomic_fetch_and(word, value, pe),
            "or" => raw.atomic_fetch_or(word, value, pe),
            "xor" => raw.atomic_fetch_xor(word, value, pe),
            _ => return Err(Failure::Internal(format!("no atomic {what}"))),
        })
    }
}

/// Both places are symmetric, of one type and length.
fn reduce(team: &Team<'_>, what: &str, dest: Place, source: Place) -> Result<(), Failure> {
    macro_rules! with {
        ($op:expr) => {
            match dest.dtype {
                DType::F32 => with!(f32, $op),
                DType::F64 => with!(f64, $op),
                _ => integers!($op),
            }
        };
        ($T:ident, $op:expr) => {
            // SAFETY: by the caller.
            unsafe { team.reduce_op_raw::<$T, _>(dest.at(), source.at(), source.len, $op) }
        };
    }
    macro_rules! integers {
        ($op:expr) => {
            match dest.dtype {
                DType::I8 => with!(i8, $op),
                DType::I16 => with!(i16, $op),
                DType::I32 => with!(i32, $op),
                DType::I64 => with!(i64, $op),
                DType::U8 => with!(u8, $op),
                DType::U16 => with!(u16, $op),
                DType::U32 => with!(u32, $op),
                DType::U64 => with!(u64, $op),
                other => {
                    return Err(Failure::Type(format!(
                        "there is no {what} of {other} over PEs"
                    )))
                }
            }
        };
    }
    match what {
        "sum" => with!(op::Sum),
        "prod" => with!(op::Prod),
        "min" => with!(op::Min),
        "max" => with!(op::Max),
        "and" => integers!(op::And),
        "or" => integers!(op::Or),
        "xor" => integers!(op::Xor),
        _ => {
            let known = "there are 'sum', 'prod', 'min', 'max', 'and', 'or', 'xor'";
            return Err(Failure::Input(format!(
                "there is no reduction {what:?} over PEs; {known}"
            )));
        }
    }?;
    Ok(())
}

/// Joins the world that a launcher made, or makes one of one PE.
#[pyfunction]
fn init(py: Python<'_>) -> PyResult<Handle> {
    guarded(move || {
        let join = || crosswarp::init().map_err(|error| Failure::World(error.to_string()));
        let pe = py.detach(|| guarded(join))?;
        let pe = Box::new(pe);
        Ok(Handle {
            pe: &raw const *pe,
            pid: std::process::id(),
            _keeper: Keeper::Own(pe),
        })
    })
}

/// The address of this host that other hosts reach.
#[pyfunction]
fn address_of_this_host() -> Result<String, Failure> {
    guarded(|| {
        let address = address_of_host().map_err(|error| Failure::World(error.to_string()))?;
        Ok(address.to_string())
    })
}

/// The PEs of a world of threads, by address; each takes itself out before it ends.
type Members = Arc<Mutex<Vec<usize>>>;

/// Calls `function` on each of `n` PEs, which are threads; what they returned, by PE.
///
/// The world is made on a thread of its own, and lasts until no handle of it is left: an array of its memory that
/// outlives the call stays what it was.
#[pyfunction]
fn spmd(
    py: Python<'_>,
    n: usize,
    function: Py<PyAny>,
    heap: Option<usize>,
) -> PyResult<Vec<Py<PyAny>>> {
    guarded(move || {
        let (say, mut said) = channel();
        let members = Members::default();
        let all = members.clone();
        let world = std::thread::Builder::new().spawn(move || {
            let world = ThreadWorld::new(n);
            let world = heap.map_or(world.clone(), |bytes| world.heap_bytes(bytes));
            let told = Mutex::new(say.clone());
            let outcome = world.spmd(|pe| member(pe, &function, &all, &told));
            if let Err(error) = outcome {
                let _ = say.send((0, Err(Failure::World(error.to_string()).into())));
            }
            // `function` is let go where somebody next is in Python: a thread that comes there while the interpreter ends would
            // crash it.
            drop(function);
        });
        world.map_err(|error| Failure::World(format!("no thread could be started: {error}")))?;
        let mut results: Vec<Option<Py<PyAny>>> = (0..n.max(1)).map(|_| None).collect();
        let mut first = None;
        for _ in 0..results.len() {
            loop {
                let receiver = &mut said;
                match py.detach(move || receiver.recv_timeout(LOOK)) {
                    Ok((pe, Ok(result))) => results[pe] = Some(result),
                    // Who fails first says why; the others mostly hear of it.
                    Ok((_, Err(error))) => {
                        first.get_or_insert(error);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(signal) = py.check_signals() {
                            leave_all(&members);
                            return Err(signal);
                        }
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => {}
                }
                break;
            }
        }
        if let Some(error) = first {
            return Err(error);
        }
        let results: Option<Vec<_>> = results.into_iter().collect();
        results.ok_or_else(|| Failure::World("a PE ended without a result".into()).into())
    })
}

type Told = Mutex<Sender<(usize, PyResult<Py<PyAny>>)>>;

/// One PE's part.
fn member(pe: &Pe, function: &Py<PyAny>, members: &Members, told: &Told) {
    let address = std::ptr::from_ref(pe);
    if let Ok(mut members) = members.lock() {
        members.push(address.expose_provenance());
    }
    let (keep, kept) = channel();
    let result = Python::attach(|py| {
        let handle = Handle {
            pe: address,
            pid: std::process::id(),
            _keeper: Keeper::Thread(keep),
        };
        function.call1(py, (Py::new(py, handle)?,))
    });
    if let Ok(told) = told.lock() {
        let _ = told.send((pe.my_pe(), result));
    }
    // Whoever waits for this PE is to know that it comes no more.
    pe.leave();
    // Rule 1: until the handle is dropped.
    let _ = kept.recv();
    if let Ok(mut members) = members.lock() {
        members.retain(|&member| member != address.addr());
    }
}

/// Ends the waits of all PEs that wait for one another.
fn leave_all(members: &Members) {
    if let Ok(members) = members.lock() {
        for &member in members.iter() {
            // SAFETY: a PE takes itself out, under this lock, before it ends.
            unsafe { (*std::ptr::with_exposed_provenance::<Pe>(member)).leave() };
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Handle>()?;
    module.add_class::<Part>()?;
    module.add_class::<Block>()?;
    module.add_function(wrap_pyfunction!(init, module)?)?;
    module.add_function(wrap_pyfunction!(address_of_this_host, module)?)?;
    module.add_function(wrap_pyfunction!(spmd, module)?)
}

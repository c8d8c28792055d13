//! Worlds of threads.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosswarp::{Pe, ThreadWorld};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::run::guarded;
use crate::world::{Handle, Keeper};

/// How often a world of threads is asked for signals.
const LOOK: Duration = Duration::from_millis(20);

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

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(spmd, module)?)
}

//! Working without the interpreter: its lock is released, signals are looked at, panics become exceptions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crosswarp::prim::internal as pool;
use pyo3::prelude::*;

use crate::error::Failure;

/// Bytes below which giving the interpreter's lock away costs more than others gain: a few microseconds of work.
const BRIEF: usize = 64 << 10;
/// Bytes from which work may last long enough for somebody to press Ctrl-C: some 10 ms.
const LONG: usize = 128 << 20;
/// How often a long work looks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// How long a work may take to end after a signal, before it is left to itself.
const GRACE: Duration = Duration::from_millis(100);

/// Threads to work with: what the caller says, or, for 0, the processors this process may use.
pub fn threads(asked: usize) -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    match asked {
        0 => *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from)),
        asked => asked,
    }
}

/// What stops a work, if it is long enough for that.
pub type Stop<'a> = Option<&'a AtomicBool>;

/// Whether to stop.
pub fn is_stopped(stop: Stop<'_>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Does `work`, which takes as long as reading `bytes` from memory. A long one is given a flag that becomes true when
/// the interpreter has a signal's exception to raise, most often `KeyboardInterrupt`; it should then end soon.
///
/// `work` runs without the interpreter's lock unless it is brief, and a long one on a thread of its own.
pub fn work<R: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce(Stop<'_>) -> Result<R, Failure> + Send,
) -> PyResult<R> {
    if bytes < BRIEF {
        return Ok(guarded(|| work(None))?);
    }
    if bytes < LONG {
        return Ok(py.detach(|| guarded(|| work(None)))?);
    }
    long(py, |stop| work(Some(stop)))
}

/// As [`work`], of what may always be long.
pub fn long<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<R, Failure> + Send,
) -> PyResult<R> {
    let stop = AtomicBool::new(false);
    let mut signal = None;
    let result = py.detach(|| {
        thread::scope(|scope| {
            let (done, is_done) = channel();
            let stop = &stop;
            let worker = thread::Builder::new().spawn_scoped(scope, move || {
                let result = guarded(|| work(stop));
                // Whoever waits sees the end of the channel, too.
                let _ = done.send(());
                result
            });
            let worker = worker.map_err(|error| {
                Failure::Internal(format!("no thread could be started: {error}"))
            })?;
            while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(LOOK) {
                if signal.is_none() {
                    signal = Python::attach(|py| py.check_signals()).err();
                    stop.store(signal.is_some(), Ordering::Relaxed);
                }
            }
            worker
                .join()
                .unwrap_or_else(|_| Err(Failure::Internal("a thread died".into())))
        })
    });
    match signal {
        Some(signal) => Err(signal),
        None => Ok(result?),
    }
}

/// Does `work` on a thread of its own, without the interpreter's lock. When the interpreter has a signal's exception to
/// raise, the flag becomes true; a work that does not end soon is left to itself, with what it works on: it ends later,
/// and nobody takes its result. `kept` is alive until then.
pub fn on_its_own<R: Send + 'static>(
    py: Python<'_>,
    kept: Vec<Py<PyAny>>,
    work: impl FnOnce(&AtomicBool) -> Result<R, Failure> + Send + 'static,
) -> PyResult<R> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, mut is_done) = channel();
    let its_stop = stop.clone();
    let worker = thread::Builder::new().spawn(move || {
        let result = guarded(|| work(&its_stop));
        let _ = done.send((result, kept));
    });
    let worker = worker
        .map_err(|error| Failure::Internal(format!("no thread could be started: {error}")))?;
    loop {
        let receiver = &mut is_done;
        match py.detach(move || receiver.recv_timeout(LOOK)) {
            Ok((result, kept)) => {
                // It has nothing left to do. A fork that follows is not one beside other threads.
                let _ = py.detach(|| worker.join());
                drop(kept);
                return Ok(result?);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Internal("a thread died".into()).into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            stop.store(true, Ordering::Relaxed);
            let receiver = &mut is_done;
            let _ = py.detach(move || receiver.recv_timeout(GRACE));
            return Err(signal);
        }
    }
}

/// Does `work` for each of `0..count`, on up to `threads` threads, each with a state of its own.
pub fn share<S>(
    threads: usize,
    count: usize,
    stop: Stop<'_>,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(Ok(()));
    let some = || {
        let mut mine = None;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            if is_stopped(stop) {
                return Err(Failure::Stopped);
            }
            // Who comes late finds nothing to do, and needs none.
            work(mine.get_or_insert_with(&state), number)?;
        }
    };
    let threads = threads.min(count);
    pool::share(threads, threads, &|_| {
        if let Err(error) = some() {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A panic is an error of ours: it must not cross the border as it is.
///
/// Every function and method that Python calls does its work in here: PyO3 would make a panic an exception that is no
/// `Exception`, which ends programs that catch errors.
pub fn guarded<R, E: From<Failure>>(work: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Failure::Internal(text.unwrap_or("a panic").into()).into())
    })
}

//! Waiting and copying for a PE: without the interpreter's lock, and ended by a signal.

use std::cell::RefCell;

use crosswarp::Pe;
use crosswarp::shmem::{AllocError, CollectiveError, TeamError, WaitError, interruptible};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::run::guarded;

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
            AllocError::OutOfHeap { .. } => Failure::Memory(text),
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
pub(super) fn verb<R: Send>(
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

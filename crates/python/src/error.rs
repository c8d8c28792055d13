//! Errors on their way to Python: the classes are those of `crosswarp._errors`.

use crosswarp::prim::ReduceError;
use crosswarp::solve::SolveError;
use pyo3::prelude::*;

/// An exception of the package. Each is also what Python people expect: `InputError` a `ValueError`, and so on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// A value that makes no sense.
    #[error("{0}")]
    Input(String),
    /// An element type that is not there.
    #[error("{0}")]
    Type(String),
    /// A world of PEs that cannot be made or cannot go on.
    #[error("{0}")]
    World(String),
    /// A wait of a world that lasted longer than it may.
    #[error("{0}")]
    Timeout(String),
    /// No GPU, no driver or compiler for it, or one that failed.
    #[error("{0}")]
    Gpu(String),
    /// No memory.
    #[error("{0}")]
    Memory(String),
    /// A bug.
    #[error("internal error: {0}; please report it")]
    Internal(String),
    /// A work that was stopped because a signal came; the signal's exception is raised in its place.
    #[error("stopped")]
    Stopped,
    /// A collective that was stopped so: the PE can't go on in its world.
    #[error("stopped in a collective")]
    Left,
}

impl Failure {
    fn class(&self) -> &'static str {
        match self {
            Self::Input(_) => "InputError",
            Self::Type(_) => "DtypeError",
            Self::World(_) => "WorldError",
            Self::Timeout(_) => "TimeoutError",
            Self::Gpu(_) => "GpuError",
            Self::Memory(_) => "OutOfMemory",
            Self::Internal(_) | Self::Stopped | Self::Left => "InternalError",
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| {
            let class = py
                .import("crosswarp._errors")
                .and_then(|errors| errors.getattr(failure.class()))
                .and_then(|class| class.call1((failure.to_string(),)));
            match class {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            }
        })
    }
}

impl From<ReduceError> for Failure {
    fn from(error: ReduceError) -> Failure {
        match error {
            ReduceError::Stopped { .. } => Failure::Stopped,
            ReduceError::Empty { .. } | ReduceError::Length { .. } => {
                Failure::Input(error.to_string())
            }
            ReduceError::Cuda(error) => error.into(),
            error => Failure::Internal(error.to_string()),
        }
    }
}

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Failure {
        let text = error.to_string();
        match error {
            SolveError::Memory(_) => Failure::Memory(text),
            SolveError::Pe(_) => Failure::World(text),
            SolveError::Gpu(_) => Failure::Gpu(text),
            _ => Failure::Input(text),
        }
    }
}

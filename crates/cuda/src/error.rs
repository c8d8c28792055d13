//! One enum over the errors of this crate's parts, for programs that only pass errors on.

use crate::compile::module::ModuleError;
use crate::compile::program::CompileError;
use crate::driver::error::{CudaError, DriverError};
use crate::launch::LaunchError;

/// Any error of this crate, for programs that only pass errors on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No usable driver or GPU.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A failed driver call.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// From compiling.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// From loading a module or looking something up in it.
    #[error(transparent)]
    Module(ModuleError),
    /// From a launch.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl From<ModuleError> for Error {
    fn from(error: ModuleError) -> Self {
        match error {
            ModuleError::Compile(error) => Self::Compile(error),
            error => Self::Module(error),
        }
    }
}

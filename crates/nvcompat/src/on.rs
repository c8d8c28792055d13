//! Where a function of the host runs: in a stream of the program's, or at once.

use crate::gpu::Gpu;
use crate::say::say;
use crate::state::{World, world_for};
use crate::types::Status;
use crosswarp_cuda::Stream;
use std::ffi::c_void;

/// See the [module](self); with the function's name.
#[derive(Clone, Copy)]
pub(crate) enum On {
    /// At once: on the library's own stream, and done when the function returns.
    Host(&'static str),
    /// In stream order.
    Stream(&'static str, *mut c_void),
}

impl On {
    fn name(self) -> &'static str {
        match self {
            Self::Host(name) | Self::Stream(name, _) => name,
        }
    }

    fn handle(self) -> Option<*mut c_void> {
        match self {
            Self::Host(_) => None,
            Self::Stream(_, handle) => Some(handle),
        }
    }

    /// Gives work to the stream. What fails is said, with the function's name.
    pub(crate) fn give(
        self,
        work: impl FnOnce(&Gpu, &Stream) -> Result<(), String>,
    ) -> Result<(), Status> {
        self.give_in(|_, gpu, stream| work(gpu, stream))
    }

    /// The same, of what asks the world for something.
    pub(crate) fn give_in(
        self,
        work: impl FnOnce(&World, &Gpu, &Stream) -> Result<(), String>,
    ) -> Result<(), Status> {
        let world = world_for(self.name())?;
        let gpu = world.gpu()?;
        let done = gpu.on(self.handle(), |stream| work(&world, &gpu, stream));
        self.said(done)
    }

    /// As [`give`](Self::give), which the library's own stream need not have done when the function returns.
    pub(crate) fn give_nbi(
        self,
        work: impl FnOnce(&Gpu, &Stream) -> Result<(), String>,
    ) -> Result<(), Status> {
        let gpu = world_for(self.name())?.gpu()?;
        let handle = match self {
            Self::Host(_) => gpu.stream.handle().cast(),
            Self::Stream(_, handle) => handle,
        };
        let done = gpu.on(Some(handle), |stream| work(&gpu, stream));
        if matches!(self, Self::Host(_)) {
            gpu.under_way.has_given();
        }
        self.said(done)
    }

    /// Says why something failed.
    pub(crate) fn said<T>(self, outcome: Result<T, String>) -> Result<T, Status> {
        outcome.map_err(|error| {
            say(format_args!("{}: {error}", self.name()));
            Status::Internal
        })
    }
}

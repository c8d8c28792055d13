//! Caches without anything of what is measured.
#![allow(unsafe_code)] // Launches a kernel.

use crosswarp_cuda::{
    Buffer, CudaError, Error, Function, Launch, LaunchError, Module, Source, Stream,
};

use super::inputs::cold_bytes;

/// The kernel that only reads.
pub(crate) const READ: Source<'static> =
    Source::new("read.cu", include_str!("../../kernels/read.cu"));

/// Memory that is read between samples, several times as much as the level-2 cache holds, so that the
/// cache holds nothing of their inputs. Reading leaves nothing that has to be written back while the
/// next sample runs.
pub struct CacheFlush {
    kernel: Function,
    blocks: u32,
    memory: Buffer<u64>,
    /// Where the kernel would store its result, which it practically never does.
    out: Buffer<u64>,
}

impl CacheFlush {
    /// Takes [`cold_bytes`] of the GPU's memory.
    pub fn new(stream: &Stream) -> Result<Self, Error> {
        let device = stream.device();
        let flush = Self {
            kernel: Module::compile(device, &READ)?.function("read")?,
            blocks: 4 * device.properties().multiprocessors,
            memory: Buffer::zeroed(stream, cold_bytes(device) / 8)?,
            out: Buffer::zeroed(stream, 1)?,
        };
        flush.run(stream)?;
        stream.synchronize()?;
        Ok(flush)
    }

    /// Gives the read to `stream`, on which this must be done with before it is dropped.
    pub(super) fn run(&self, stream: &Stream) -> Result<(), CudaError> {
        let launch = Launch::new(&self.kernel).grid(self.blocks).block(512);
        let quads = (self.memory.len() / 2) as u64;
        // SAFETY: the kernel reads `quads` times 16 bytes of `memory`, and writes at most 8 of `out`. Both
        // live as long as `self`, and each caller waits for the stream before it returns.
        let launched = unsafe { launch.launch(stream, (&self.memory, quads, &self.out)) };
        launched.map_err(|error| match error {
            LaunchError::Failed { source, .. } => source,
            // Shape and arguments are always the same.
            other => unreachable!("{other}"),
        })
    }
}

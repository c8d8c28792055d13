//! Transpositions by the textbook's tile, for measuring beside the others.
#![allow(unsafe_code)] // Reason: launches kernels.

use crosswarp_cuda::{BufferRef, ByValue, Device, Error, Function, Launch, Module, Source, Stream};

use super::device_transposer::{ARGUMENTS_HEADER, DeviceTransposeError, grid, matrices, shape};
use crate::Layout;

const THREADS: u32 = 256;

/// The kernels.
pub(crate) const TEXTBOOK: Source<'static> = Source::new(
    "transpose/textbook.cu",
    include_str!("../../../kernels/transpose/textbook.cu"),
)
.with_headers(&[ARGUMENTS_HEADER])
.with_shapes(&[
    shape("transpose_padded", THREADS, 0),
    shape("transpose_unpadded", THREADS, 0),
]);

/// A tile of 32 × 32 words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextbookTile {
    /// Rows of 33 words in shared memory: no bank conflicts.
    Padded,
    /// Rows of 32 words: 32 lanes meet in one bank.
    Unpadded,
}

/// Transpositions of elements of 4 bytes by such a tile.
#[derive(Debug)]
pub struct TextbookTransposer {
    device: Device,
    kernel: Function,
}

impl TextbookTransposer {
    /// Compiles (once per machine) and loads the kernel.
    ///
    /// # Errors
    /// Those of [`Module::compile`].
    pub fn new(device: &Device, tile: TextbookTile) -> Result<Self, Error> {
        let name = match tile {
            TextbookTile::Padded => "transpose_padded",
            TextbookTile::Unpadded => "transpose_unpadded",
        };
        Ok(Self {
            device: *device,
            kernel: Module::compile(device, &TEXTBOOK)?.function(name)?,
        })
    }

    /// As [`DeviceTransposer::transpose`](crate::DeviceTransposer::transpose).
    ///
    /// # Errors
    /// As there.
    pub fn transpose<'a, 'b>(
        &self,
        stream: &Stream,
        input: impl Into<BufferRef<'a, u32>>,
        from: &Layout,
        output: impl Into<BufferRef<'b, u32>>,
        to: &Layout,
    ) -> Result<(), DeviceTransposeError> {
        let Some(matrices) = matrices(input.into(), from, output.into(), to)? else {
            return Ok(());
        };
        let tiles = from.rows.div_ceil(32) * from.columns.div_ceil(32);
        let blocks = grid(tiles.checked_mul(from.batch))?;
        let launch = Launch::new(&self.kernel).grid(blocks).block(THREADS);
        // SAFETY: the parameter is a `matrices`, checked against both buffers, which outlive the kernel: freeing
        // them waits for it.
        Ok(unsafe { launch.launch(stream, (ByValue(matrices),)) }?)
    }
}

impl Drop for TextbookTransposer {
    fn drop(&mut self) {
        // Its module goes with it, and kernels may still be running.
        let _ = self.device.synchronize();
    }
}

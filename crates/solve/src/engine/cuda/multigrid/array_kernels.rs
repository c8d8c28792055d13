//! The kernels between arrays of the caller's and the finest level.
#![allow(unsafe_code)] // A launch of a kernel.

use crosswarp_cuda::{Buffer, Function, KernelArgs, Launch, Stream};

use crate::element::Real;
use crate::engine::cuda::kernels;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::LEVEL_THREADS;

/// Most blocks, about: so many keep a large GPU busy.
pub(super) const MOST_BLOCKS: usize = 2048;

/// Those of a plane or a box, for arrays of one type.
pub(super) struct ArrayKernels {
    /// Makes field and right side of arrays,
    pub load: Function,
    /// an array of the field,
    pub save: Function,
    /// sums of field or right side,
    pub weigh: Function,
    /// and takes a mean from the right side.
    pub shift: Function,
    words: Buffer<u64>,
}

impl ArrayKernels {
    /// `names`: load, save, weigh and shift, the first two without the type `F`.
    pub fn new<F: Real>(stream: &Stream, names: [&str; 4]) -> Result<ArrayKernels, GpuError> {
        let device = stream.device();
        let [load, save, weigh, shift] = names;
        let [load, save] = [load, save].map(kernels::of_type::<F>);
        kernels::compile_together(device, [&load, &save, weigh, shift]);
        Ok(ArrayKernels {
            load: kernels::find_plain(device, &load)?,
            save: kernels::find_plain(device, &save)?,
            weigh: kernels::find_plain(device, weigh)?,
            shift: kernels::find_plain(device, shift)?,
            words: Buffer::new(device, 2)?,
        })
    }

    /// Where kernels say what they have seen.
    pub fn words(&self) -> u64 {
        self.words.address()
    }

    /// Launches a kernel whose threads have columns, and its blocks `rows` by turns, after the words have been made 0.
    ///
    /// # Safety
    /// As of a launch; the kernel takes `arguments`, and any number of rows of blocks do its work.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        kernel: &Function,
        size: [usize; 2],
        arguments: impl KernelArgs,
    ) -> Result<(), GpuError> {
        stream.zero(&self.words)?;
        // SAFETY: the caller's.
        unsafe { launch_by_columns(stream, kernel, size, arguments) }
    }

    /// What the kernel before has said. Waits for it.
    pub fn read(&self, stream: &Stream) -> Result<[u64; 2], GpuError> {
        let mut words = [0; 2];
        stream.read(&mut words, &self.words)?;
        Ok(words)
    }
}

/// Launches a kernel whose threads have columns, and its blocks rows by turns.
///
/// # Safety
/// As of a launch; the kernel takes `arguments`, and any number of rows of blocks do its work.
pub(super) unsafe fn launch_by_columns(
    stream: &Stream,
    kernel: &Function,
    [columns, rows]: [usize; 2],
    arguments: impl KernelArgs,
) -> Result<(), GpuError> {
    let across = columns.div_ceil(LEVEL_THREADS);
    let rows = (MOST_BLOCKS / across).clamp(1, rows);
    let launch = Launch::new(kernel)
        .grid((across as u32, rows as u32))
        .block(LEVEL_THREADS as u32);
    // SAFETY: the caller's.
    Ok(unsafe { launch.launch(stream, arguments) }?)
}

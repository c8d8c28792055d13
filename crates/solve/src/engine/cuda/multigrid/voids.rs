//! The first guess of an array with voids in the memory of the GPU: see `problem/fill.rs`.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{BufferRef, ByValue, Launch, Stream};

use super::array_kernels::{MOST_BLOCKS, launch_by_columns};
use super::storage::{DeviceRows, Stored, pitch_of};
use crate::element::Real;
use crate::engine::cuda::arena::Arena;
use crate::engine::cuda::kernels;
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{ArrayWithVoids, LEVEL_THREADS};

/// An array with voids in the memory of a GPU, in the C order of (rows, columns).
///
/// Whoever has made it sees to it that it is complete when a solve begins: that does not wait for other streams.
#[derive(Clone, Copy, Debug)]
pub struct DeviceVoids<'a, F: Real> {
    /// The values; those of cells that are not known are never looked at, but for whether they are NaN or `nodata`.
    pub values: BufferRef<'a, F>,
    /// The known cells: byte ≠ 0; `None`: all whose value is not NaN.
    pub known: Option<BufferRef<'a, u8>>,
    /// Cells of this value are not known in any case.
    pub nodata: Option<F>,
    /// Gets the solution: another array than `values`. Where there is no solution it may hold anything.
    pub field: BufferRef<'a, F>,
}

/// What is known of an array.
pub(crate) struct Known {
    /// By cells: byte not 0.
    pub mask: DeviceRows<u8>,
    pub cells: u64,
    stream: Stream,
}

/// Writes the first guess of [`Problem2d::fill_natural`](crate::Problem2d::fill_natural) to the field of `voids`, an array of so many
/// columns and rows: known cells have their values. Nothing if no cell is known, or the value of a known one is not finite. Waits for the end.
pub(crate) fn guess<F: Real>(
    gpu: &Gpu,
    [nx, ny]: [usize; 2],
    voids: &DeviceVoids<'_, F>,
) -> Result<Option<Known>, GpuError> {
    let longest = nx.max(ny);
    if longest > i32::MAX as usize - 4096 {
        return Err(GpuError::TooLong { longest });
    }
    let device = &gpu.device;
    let names = ["voids_rows", "voids_between"].map(kernels::of_type::<F>);
    let rows_kernel = kernels::find_plain(device, &names[0])?;
    let stream = Stream::new(device)?;
    let arena = Arena::new(&stream);
    let mask = DeviceRows::new(&arena, nx, &Stored::all(ny))?;
    let rows = arena.buffer::<u8>(ny)?;
    let words = arena.zeroed::<u64>(2)?;
    let mut arguments = ArrayWithVoids {
        values: voids.values.address(),
        known: voids.known.map_or(0, |known| known.address()),
        guess: voids.field.address(),
        kept: mask.address(),
        rows: rows.address(),
        nearest: 0,
        words: words.address(),
        nodata: voids.nodata.map_or(f64::NAN, Real::to_f64),
        pitch: pitch_of(nx) as i64,
        nx: nx as i32,
        ny: ny as i32,
    };
    let launch = Launch::new(&rows_kernel)
        .grid(ny.min(MOST_BLOCKS) as u32)
        .block(LEVEL_THREADS as u32);
    // SAFETY: the parameter is an `array_with_voids` of the kernel's type, whose arrays have its size and live until the stream has
    // been waited for; any number of blocks do the kernel's work. The guess is no array that is read.
    unsafe { launch.launch(&stream, (ByValue(arguments),)) }?;
    let (mut said, mut row_is_known) = ([0; 2], vec![0; ny]);
    stream.read(&mut said, words.range(..))?;
    let [cells, not_finite] = said;
    if not_finite != 0 || cells == 0 {
        return Ok(None);
    }
    stream.read(&mut row_is_known, rows.range(..))?;
    if row_is_known.contains(&0) {
        let nearest = arena.copied(&nearest_rows(&row_is_known))?;
        arguments.nearest = nearest.address();
        let between = kernels::find_plain(device, &names[1])?;
        // SAFETY: as above; blocks cover the columns. Rows that are written are read by nobody.
        unsafe { launch_by_columns(&stream, &between, [nx, ny], (ByValue(arguments),)) }?;
        stream.synchronize()?;
    }
    Ok(Some(Known {
        mask,
        cells,
        stream,
    }))
}

impl Known {
    /// The mask, row by row.
    pub fn on_host(&self, [nx, ny]: [usize; 2]) -> Result<Vec<u8>, GpuError> {
        let mut bytes = Vec::with_capacity(nx * ny);
        let take = |_, row: &[u8]| bytes.extend_from_slice(row);
        self.mask.read(&self.stream, 0..ny as isize, take)?;
        Ok(bytes)
    }
}

/// For each row the nearest ones before and behind it that have a known cell, or −1.
fn nearest_rows(row_is_known: &[u8]) -> Vec<i32> {
    let mut nearest = vec![-1; 2 * row_is_known.len()];
    let known = |y: usize| row_is_known[y] != 0;
    let mut last = -1;
    for y in 0..row_is_known.len() {
        nearest[2 * y] = last;
        if known(y) {
            last = y as i32;
        }
    }
    last = -1;
    for y in (0..row_is_known.len()).rev() {
        nearest[2 * y + 1] = last;
        if known(y) {
            last = y as i32;
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_known_cell_find_those_that_have_one() {
        let found = nearest_rows(&[0, 1, 0, 0, 1, 0]);
        assert_eq!(found, [-1, 1, -1, 4, 1, 4, 1, 4, 1, -1, 4, -1]);
    }
}

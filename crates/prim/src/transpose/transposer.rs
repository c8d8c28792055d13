//! Transpositions on the CPU, as called by users.
#![allow(unsafe_code)] // Reason: hands disjoint parts of one array to several threads.

use std::ops::Range;

use bytemuck::Pod;

use super::cpu::{self, Part, drain_streams};
use super::layout::{self, Layout, TransposeError};
use crate::Simd;
use crate::pool::share;

/// Columns at which the work is cut for threads: their output rows then begin on cache lines of
/// their own whatever the element.
const CUT: usize = 128;
/// Least bytes for a thread of its own.
const BYTES_PER_THREAD: usize = 4 << 20;
/// Outputs from this size on go past the caches.
const STREAM_BYTES: usize = 8 << 20;

/// Transpositions of matrices whose elements have 1, 2, 4, 8 or 16 bytes, on the CPU.
///
/// Elements are moved as they are: a transposition changes no bit of them.
///
/// ```
/// use crosswarp_prim::{Layout, Transposer};
///
/// // Two matrices of 2 x 3, the rows of which are 4 elements apart.
/// let input = [1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 10, 11, 12, 0u32];
/// let from = Layout::new(2, 3).with_leading_dimension(4).with_batch(2);
/// let mut output = [0; 12];
/// Transposer::new().transpose(&input, &from, &mut output, &from.transposed())?;
/// assert_eq!(output, [1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12]);
///
/// let mut square = ['a', 'b', 'c', 'd'].map(u32::from);
/// Transposer::new().transpose_in_place(&mut square, &Layout::new(2, 2))?;
/// assert_eq!(square, ['a', 'c', 'b', 'd'].map(u32::from));
/// # Ok::<(), crosswarp_prim::TransposeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Transposer {
    simd: Simd,
    threads: usize,
}

impl Default for Transposer {
    fn default() -> Self {
        Self::new()
    }
}

impl Transposer {
    /// One thread, the machine's widest vectors.
    #[must_use]
    pub fn new() -> Self {
        Self {
            simd: Simd::detect(),
            threads: 1,
        }
    }

    /// Uses up to `threads` threads; 0 counts as 1. Small matrices use fewer.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self {
            threads: threads.max(1),
            ..self
        }
    }

    /// Uses this instruction set.
    #[must_use]
    pub fn simd(self, simd: Simd) -> Self {
        Self { simd, ..self }
    }

    /// Transposes every matrix of `input` into `output`. Elements of `output` in the gaps of its
    /// layout are left alone.
    ///
    /// # Errors
    /// [`TransposeError`], before anything is written.
    pub fn transpose<T: Pod>(
        &self,
        input: &[T],
        from: &Layout,
        output: &mut [T],
        to: &Layout,
    ) -> Result<(), TransposeError> {
        let element = size_of::<T>();
        layout::check(element, (input.len(), from), (output.len(), to))?;
        let bytes = from.elements().ok_or(TransposeError::TooLarge)? * element;
        if bytes == 0 {
            return Ok(());
        }
        let bands = from.columns.div_ceil(CUT);
        let (input, output) = (input.as_ptr() as usize, output.as_mut_ptr() as usize);
        self.split(bytes, from.batch * bands, |range| {
            let mut at = range.start;
            while at < range.end {
                // All consecutive bands of one matrix together.
                let (matrix, band) = (at / bands, at % bands);
                let last = bands.min(band + range.end - at);
                at += last - band;
                let columns = band * CUT..(last * CUT).min(from.columns);
                let part = Part {
                    input: (input + matrix * from.batch_stride * element) as *const u8,
                    input_stride: from.row_bytes(element),
                    output: (output + matrix * to.batch_stride * element) as *mut u8,
                    output_stride: to.row_bytes(element),
                    rows: from.rows,
                    columns: from.columns,
                    element,
                    stream: bytes >= STREAM_BYTES,
                };
                // SAFETY: the layouts were checked against the slices; ranges are disjoint, and so
                // are the output rows of different columns and matrices.
                unsafe { part.columns(columns).run(self.simd) };
            }
            drain_streams();
        });
        Ok(())
    }

    /// Transposes every matrix of `array`, all of them square, into its own place.
    ///
    /// # Errors
    /// [`TransposeError`], before anything is written; [`TransposeError::NotSquare`] if `layout` has
    /// other matrices.
    pub fn transpose_in_place<T: Pod>(
        &self,
        array: &mut [T],
        layout: &Layout,
    ) -> Result<(), TransposeError> {
        let element = size_of::<T>();
        layout::check_in_place(element, array.len(), layout)?;
        let bytes = layout.elements().ok_or(TransposeError::TooLarge)? * element;
        if bytes == 0 {
            return Ok(());
        }
        let pairs = cpu::block_pairs(layout.rows, element);
        let array = array.as_mut_ptr() as usize;
        self.split(bytes, layout.batch * pairs, |range| {
            for at in range {
                let start = array + at / pairs * layout.batch_stride * element;
                let stride = layout.row_bytes(element);
                // SAFETY: the layout was checked against the slice; each pair of blocks is worked on
                // once.
                unsafe {
                    let matrix = start as *mut u8;
                    cpu::swap_blocks(self.simd, matrix, stride, layout.rows, element, at % pairs);
                }
            }
        });
        Ok(())
    }

    pub(super) fn instruction_set(&self) -> Simd {
        self.simd
    }

    /// Splits `0..units` into one range per thread and works on all of them.
    fn split(&self, bytes: usize, units: usize, work: impl Fn(Range<usize>) + Sync) {
        let parts = self
            .threads
            .min(bytes / BYTES_PER_THREAD)
            .clamp(1, units.max(1));
        let cut = |part: usize| (units as u128 * part as u128 / parts as u128) as usize;
        share(parts, parts, &|part| work(cut(part)..cut(part + 1)));
    }
}

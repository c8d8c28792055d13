//! The CPU body: bands of columns for threads, strips of rows for the caches, tiles for registers.
#![allow(unsafe_code)] // Reason: pointers into two matrices of different strides, shared by threads.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::tile::{side, transpose_tile};
use crate::Simd;
use crate::simd::lanes::{Lanes, Plain};
use crate::simd::{Isa, Work, prefetch};

/// Bytes of an output row that are written in one go. On 2 cores of Zen 5, 8192² of 4 bytes, rows
/// without and with padding: 256 reach 27 and 9 GB/s with AVX2, 512 33 and 17, 1024 33 and 33; a copy
/// reaches 41.
const RUN: usize = 1024;
/// Bytes of an input row in a strip: a cache line.
const LINE: usize = 64;
/// How many strips ahead input is asked for. One strip reaches 16.4 GB/s on one thread, two 17.8, four
/// no more.
const AHEAD: usize = 2;
/// Bytes of an input row that are finished before the next band, so that the output rows of a band
/// keep their address translations.
const BAND: usize = 4096;
/// Room between the rows of a strip, so that they do not fall into the same cache sets.
const PITCH: usize = RUN + LINE;
/// Most columns of a strip: those of one byte.
const MOST_COLUMNS: usize = LINE;

/// A part of a transposition: input rows and columns of which start where.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub input: *const u8,
    /// Bytes from row to row.
    pub input_stride: usize,
    pub output: *mut u8,
    pub output_stride: usize,
    pub rows: usize,
    pub columns: usize,
    /// Bytes of an element.
    pub element: usize,
    /// Whether the output is too large for the caches, and goes past them.
    pub stream: bool,
}

// SAFETY: a description; who uses its pointers has the duty.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl Part {
    /// The columns `range` alone.
    pub(crate) fn columns(self, range: Range<usize>) -> Self {
        Self {
            input: self.input.wrapping_add(range.start * self.element),
            output: self.output.wrapping_add(range.start * self.output_stride),
            columns: range.len(),
            ..self
        }
    }

    /// Transposes it.
    ///
    /// # Safety
    /// All rows of input and output are valid, for reads and for writes by this thread alone, and
    /// do not overlap.
    pub(crate) unsafe fn run(self, simd: Simd) {
        simd.run(self);
    }
}

impl Work for Part {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        // SAFETY: the caller has the instruction set; the rest is promised to `Part::run`.
        unsafe {
            match self.element {
                // One lane at a time: its 16 rows fill the registers.
                1 => strips::<Plain, 1>(self),
                2 => strips::<I::Lanes, 2>(self),
                4 => strips::<I::Lanes, 4>(self),
                8 => strips::<I::Lanes, 8>(self),
                _ => strips::<I::Lanes, 16>(self),
            }
        }
    }
}

/// # Safety
/// As for [`Part::run`]; the machine has `L`'s instruction set.
#[inline(always)]
unsafe fn strips<L: Lanes, const E: usize>(part: Part) {
    // While a strip is turned into one buffer, the one before leaves the other: so loads that wait for
    // memory and stores past the caches overlap.
    let mut buffers = [const { Strip([MaybeUninit::uninit(); MOST_COLUMNS * PITCH]) }; 2];
    let mut turn = 0;
    let mut leaving = Leaving::NOTHING;
    for start in (0..part.columns).step_by(BAND / E) {
        let band = part.columns(start..part.columns.min(start + BAND / E));
        for row in (0..part.rows).step_by(RUN / E) {
            let rows = (RUN / E).min(part.rows - row);
            for column in (0..band.columns).step_by(LINE / E) {
                let columns = (LINE / E).min(band.columns - column);
                let buffer = buffers[turn].0.as_mut_ptr().cast();
                // SAFETY: the strip lies within the part; the buffers are two, so what leaves is not the
                // one that is written.
                unsafe {
                    one_strip::<L, E>(&band, row, rows, column, columns, buffer, &mut leaving);
                    leaving = Leaving {
                        from: buffer,
                        to: band.output.add(column * band.output_stride + row * E),
                        stride: band.output_stride,
                        bytes: rows * E,
                        stream: band.stream,
                        columns,
                    };
                }
                if overlap::<L, E>() {
                    turn = 1 - turn;
                } else {
                    // SAFETY: as above.
                    unsafe { leaving.put::<L>(leaving.columns) };
                }
            }
        }
    }
    // SAFETY: as above.
    unsafe { leaving.put::<L>(leaving.columns) };
}

/// Whether it pays to let a strip leave while the next one is turned: not where turning is what limits.
const fn overlap<L: Lanes, const E: usize>() -> bool {
    L::LANES > 1 && E >= 4
}

/// Rows of a buffer that are yet to be copied to their places.
struct Leaving {
    from: *const u8,
    to: *mut u8,
    stride: usize,
    bytes: usize,
    stream: bool,
    columns: usize,
}

impl Leaving {
    const NOTHING: Self = Self {
        from: std::ptr::null(),
        to: std::ptr::null_mut(),
        stride: 0,
        bytes: 0,
        stream: false,
        columns: 0,
    };

    /// Copies the next `columns` of them.
    ///
    /// # Safety
    /// There are as many, both sides valid; the machine has `L`'s instruction set.
    #[inline(always)]
    unsafe fn put<L: Lanes>(&mut self, columns: usize) {
        for _ in 0..columns {
            // SAFETY: by the contract.
            unsafe {
                put_run::<L>(self.from, self.to, self.bytes, self.stream);
                self.from = self.from.add(PITCH);
            }
            self.to = self.to.wrapping_add(self.stride);
        }
        self.columns -= columns;
    }
}

/// Transposes `rows` × `columns` elements into the buffer, while what is `leaving` leaves.
///
/// # Safety
/// As for [`strips`]; `rows` and `columns` are at most those of a strip, and within the part.
#[inline(always)]
unsafe fn one_strip<L: Lanes, const E: usize>(
    part: &Part,
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
    buffer: *mut u8,
    leaving: &mut Leaving,
) {
    let side = side::<L, E>();
    let stride = part.input_stride;
    // SAFETY: a strip has at most MOST_COLUMNS columns and RUN bytes of each, so it fits the buffer.
    unsafe {
        let from = part.input.add(row * stride + column * E);
        let ahead = from.wrapping_add(AHEAD * LINE);
        let whole = if columns == LINE / E {
            rows / side * side
        } else {
            0
        };
        for r in (0..whole).step_by(side) {
            for k in 0..side {
                prefetch(ahead.wrapping_add((r + k) * stride));
            }
            for c in (0..LINE / E).step_by(side) {
                let tile = from.add(r * stride + c * E);
                transpose_tile::<L, E, false>(tile, stride, buffer.add(c * PITCH + r * E), PITCH);
            }
            leaving.put::<L>(
                (leaving.columns * side)
                    .div_ceil(whole - r)
                    .min(leaving.columns),
            );
        }
        for r in whole..rows {
            for c in 0..columns {
                let element = from.add(r * stride + c * E);
                buffer
                    .add(c * PITCH + r * E)
                    .copy_from_nonoverlapping(element, E);
            }
        }
        leaving.put::<L>(leaving.columns);
    }
}

/// Not filled with zeros, which takes 2 µs: what leaves has been written.
#[repr(align(64))]
struct Strip([MaybeUninit<u8>; MOST_COLUMNS * PITCH]);

/// Copies a run to its place, past the caches if `stream`.
///
/// # Safety
/// Both sides are valid for `bytes` and do not overlap; the machine has `L`'s instruction set.
#[inline(always)]
unsafe fn put_run<L: Lanes>(from: *const u8, to: *mut u8, bytes: usize, stream: bool) {
    // SAFETY: within the given ranges; streamed stores begin at the first aligned place.
    unsafe {
        if !stream || bytes < 2 * LINE {
            to.copy_from_nonoverlapping(from, bytes);
            return;
        }
        // Whole lines only: a line of which a part goes past the caches is slow to write.
        let head = to.align_offset(LINE);
        to.copy_from_nonoverlapping(from, head);
        let mut at = head;
        while at + LINE <= bytes {
            for vector in (at..at + LINE).step_by(16 * L::LANES) {
                L::load(from.add(vector)).stream(to.add(vector));
            }
            at += LINE;
        }
        to.add(at)
            .copy_from_nonoverlapping(from.add(at), bytes - at);
    }
}

/// Orders streamed stores before what this thread does next: they are weakly ordered, and whoever
/// learns from this thread (a join, a barrier) that the output is there must find it.
pub(crate) fn drain_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of the baseline.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// Bytes of a row of the square blocks that change places in a transposition in place.
const BLOCK_ROW: usize = 256;

/// Blocks along a side of an `n` × `n` matrix.
fn blocks(n: usize, element: usize) -> usize {
    n.div_ceil(BLOCK_ROW / element)
}

/// How many pairs of blocks of an `n` × `n` matrix change places, those on the diagonal included.
pub(crate) fn block_pairs(n: usize, element: usize) -> usize {
    let blocks = blocks(n, element);
    blocks * (blocks + 1) / 2
}

/// Transposes the pair of blocks of number `pair` in place: the pairs are counted along the rows of
/// the upper triangle.
///
/// # Safety
/// `matrix` has `n` valid rows, `stride` bytes apart, and no other thread uses this pair of blocks.
pub(crate) unsafe fn swap_blocks(
    simd: Simd,
    matrix: *mut u8,
    stride: usize,
    n: usize,
    element: usize,
    pair: usize,
) {
    let side = BLOCK_ROW / element;
    let (mut row, mut first, mut length) = (0, 0, blocks(n, element));
    while pair - first >= length {
        first += length;
        length -= 1;
        row += 1;
    }
    let column = row + pair - first;
    let mut buffer = [0u8; BLOCK_ROW * BLOCK_ROW];
    let size = |block: usize| side.min(n - block * side);
    let upper = matrix.wrapping_add(row * side * stride + column * BLOCK_ROW);
    let lower = matrix.wrapping_add(column * side * stride + row * BLOCK_ROW);
    let part = Part {
        input: upper,
        input_stride: stride,
        output: buffer.as_mut_ptr(),
        output_stride: BLOCK_ROW,
        rows: size(row),
        columns: size(column),
        element,
        stream: false,
    };
    // SAFETY: blocks lie within the matrix and are this thread's; a transposed block has at most `side`
    // rows of BLOCK_ROW bytes, as many as the buffer. On the diagonal both blocks are the same, and the
    // buffer alone is copied back.
    unsafe {
        part.run(simd);
        if row != column {
            let back = Part {
                input: lower,
                output: upper,
                output_stride: stride,
                rows: part.columns,
                columns: part.rows,
                ..part
            };
            back.run(simd);
        }
        for r in 0..part.columns {
            let to = lower.add(r * stride);
            to.copy_from_nonoverlapping(buffer.as_ptr().add(r * BLOCK_ROW), part.rows * element);
        }
    }
}

//! One tile in registers.
#![allow(unsafe_code)] // Reason: pointers into two matrices of different strides.

use crate::simd::lanes::{Lanes, MOST_LANES};

/// Most elements of 16 bytes.
const MOST_IN_LANE: usize = 16;

/// Elements along a side of the square tile that vectors of type `L` transpose: a vector's worth.
pub(crate) const fn side<L: Lanes, const E: usize>() -> usize {
    16 * L::LANES / E
}

/// Transposes a tile of [`side`] × [`side`] elements of `E` bytes. Strides are in bytes.
///
/// A row of the tile is one vector. The lanes of `16 / E` rows hold as many square blocks of
/// elements, side by side; interleaving each row with the one half a block below, as often as there
/// are bits in `16 / E`, transposes all of them: each round moves one bit of an element's place from
/// the number of the row into the place in the row. What is left is to gather each output row's
/// lanes from the registers.
///
/// # Safety
/// The machine has `L`'s instruction set; all rows of both tiles are valid, and do not overlap. With
/// `STREAM` the output's rows are aligned to a vector.
#[inline(always)]
pub(crate) unsafe fn transpose_tile<L: Lanes, const E: usize, const STREAM: bool>(
    input: *const u8,
    input_stride: usize,
    output: *mut u8,
    output_stride: usize,
) {
    let block = 16 / E;
    // SAFETY: all accesses are within the tiles, which are valid by the contract.
    unsafe {
        // Zeroes are overwritten; the compiler sees that.
        let zero = L::load([0u8; 64].as_ptr());
        let mut lanes = [[zero; MOST_LANES]; MOST_IN_LANE];
        for group in 0..L::LANES {
            let mut rows = [zero; MOST_IN_LANE];
            for (k, row) in rows[..block].iter_mut().enumerate() {
                *row = L::load(input.add((group * block + k) * input_stride));
            }
            let mut rounds = block;
            while rounds > 1 {
                let before = rows;
                for k in 0..block / 2 {
                    (rows[2 * k], rows[2 * k + 1]) =
                        L::interleave::<E>(before[k], before[k + block / 2]);
                }
                rounds /= 2;
            }
            for (lane, row) in lanes[..block].iter_mut().zip(rows) {
                lane[group] = row;
            }
        }
        for (k, lane) in lanes[..block].iter().enumerate() {
            let rows = L::exchange(*lane);
            for (j, row) in rows[..L::LANES].iter().enumerate() {
                let to = output.add((j * block + k) * output_stride);
                if STREAM {
                    row.stream(to);
                } else {
                    row.store(to);
                }
            }
        }
    }
}

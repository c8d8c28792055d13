//! The innermost loops of a 2-D pass: a few rows of one level across one tile.
#![allow(unsafe_code)] // Raw row pointers: rows of one buffer are read and written at the same time.

use std::ops::Range;

use crosswarp_prim::leaf::LANES as LEAF_COLUMNS;
use crosswarp_prim::{Float as _, Superaccumulator};

use crate::element::simd::Simd;
use crate::field::storage::PAD;

/// Columns of a tile, 2 KiB of them: the eleven rows that a step of a level touches then fit the first-level cache.
///
/// A multiple of [`LEAF_COLUMNS`], so that no leaf is cut. Measured at 8192² on a Zen 5 with 48 KiB: 512 columns of f64
/// are 12 % slower than 256.
pub const fn tile_columns<F>() -> usize {
    2048 / size_of::<F>()
}

/// Rows that a level advances per step. Each row of the level below is then loaded once for up to four uses.
pub const STEP: usize = 4;
/// Rows of a step between the two kept from the step before and the two kept for the next.
pub const MIDDLE: usize = STEP - 2;
/// Elements between working rows: an odd number of 16-element groups, so that rows spread over the cache sets.
pub const fn pitch<F>() -> usize {
    tile_columns::<F>() + 2 * PAD + 16
}

const _: () = assert!(
    tile_columns::<f32>().is_multiple_of(LEAF_COLUMNS)
        && tile_columns::<f64>().is_multiple_of(LEAF_COLUMNS)
);

/// Columns x0 … x1 − 1, multiples of 16 (the last may reach into the padding).
#[derive(Clone, Copy)]
pub struct ColumnTile {
    /// The first column.
    pub x0: isize,
    /// One past the last.
    pub x1: isize,
}

impl ColumnTile {
    /// The tile's columns with a margin of `depth`, rounded up to 16, on both sides, cut at the grid's fixed columns.
    ///
    /// The outermost vectors hold a few wrong columns that no right one depends on.
    #[inline(always)]
    pub fn columns(self, depth: usize, wrap_x: bool, nx: usize) -> Range<isize> {
        let margin = depth.next_multiple_of(16) as isize;
        let (start, end) = (self.x0 - margin, self.x1 + margin);
        if wrap_x {
            start..end
        } else {
            start.max(0)..end.min(nx.next_multiple_of(16) as isize)
        }
    }
}

/// Rows of the level below and rows y … y + STEP − 1 of this level in one step, as addresses of column 0 (often outside
/// the buffer).
///
/// Rows of one group are [`pitch`] apart, so that few addresses have to be held in registers.
pub struct Group<F> {
    /// Rows y − 1 and y of the level below, kept from the step before.
    pub older: *const F,
    /// Rows y + 1 … y + STEP − 2 of the level below.
    pub middle: *const F,
    /// The last two rows, y + STEP − 1 and y + STEP, of the level below.
    pub newer: *const F,
    /// Rows y … y + STEP − 3 of this level.
    pub out: *mut F,
    /// The last two rows, y + STEP − 2 and y + STEP − 1, of this level.
    pub out_newer: *mut F,
    /// The running sum of squares of each column.
    pub sums: *mut F,
    /// Where the sums of a leaf that ends inside the step go.
    pub ended: *mut F,
}

impl<F> Group<F> {
    /// Row y − 1 + `j` of the level below, `j` ≤ STEP + 1.
    #[inline(always)]
    pub fn below(&self, j: usize) -> *const F {
        let (group, row) = match j {
            0..2 => (self.older, j),
            2..STEP => (self.middle, j - 2),
            _ => (self.newer, j - STEP),
        };
        group.wrapping_add(row * pitch::<F>())
    }

    /// Row y + `j` of this level, `j` < STEP.
    #[inline(always)]
    pub fn out(&self, j: usize) -> *mut F {
        let (group, row) = if j < STEP - 2 {
            (self.out, j)
        } else {
            (self.out_newer, j + 2 - STEP)
        };
        group.wrapping_add(row * pitch::<F>())
    }
}

/// What is given for the cells besides their values; null where the problem has none.
pub struct Givens<F> {
    /// Column 0 of the mask's row y, and the distance to the next row.
    pub fixed: *const u8,
    pub fixed_pitch: isize,
    /// Column 0 of the source's row y, and the distance to the next row.
    pub source: *const F,
    pub source_pitch: isize,
}

/// Advances the rows y … y + STEP − 1 by one sweep.
///
/// `SPLIT`: the row that begins a new leaf (0: the sums start afresh; `STEP`: none does).
///
/// # Safety
/// The processor must have `V`'s vector unit; every row must cover `columns` (multiples of 16 of them), the rows below
/// a vector more on both sides; no `out` row may overlap a row that is read.
#[inline(always)]
pub unsafe fn advance<V: Simd, const SPLIT: usize, const FIXED: bool, const SOURCE: bool>(
    rows: &Group<V::Elem>,
    givens: &Givens<V::Elem>,
    columns: &Range<isize>,
) {
    let mut x = columns.start;
    // SAFETY: the contract above; x runs over `columns` in whole vectors since LANES divides 16.
    unsafe {
        let quarter = V::splat(V::Elem::from_f64(0.25));
        let nothing = V::splat(V::Elem::NEG_ZERO);
        let mut before = [nothing; STEP];
        let mut here = [nothing; STEP];
        if V::SHIFTS {
            for j in 0..STEP {
                before[j] = V::load(rows.below(j + 1).wrapping_offset(x - V::LANES as isize));
                here[j] = V::load(rows.below(j + 1).wrapping_offset(x));
            }
        }
        while x < columns.end {
            let mut up = V::load(rows.below(0).wrapping_offset(x));
            let mut centre = V::load(rows.below(1).wrapping_offset(x));
            let mut sum = if SPLIT == 0 {
                nothing
            } else {
                V::load(rows.sums.wrapping_offset(x))
            };
            for j in 0..STEP {
                if j == SPLIT && j > 0 {
                    sum.store(rows.ended.wrapping_offset(x));
                    sum = nothing;
                }
                let row = rows.below(j + 1);
                let (left, right, down);
                if V::SHIFTS {
                    let next = V::load(row.wrapping_offset(x + V::LANES as isize));
                    left = V::shift_in_left(before[j], here[j]);
                    right = V::shift_in_right(here[j], next);
                    down = if j + 1 < STEP {
                        here[j + 1]
                    } else {
                        V::load(rows.below(j + 2).wrapping_offset(x))
                    };
                    before[j] = here[j];
                    here[j] = next;
                } else {
                    left = V::load(row.wrapping_offset(x - 1));
                    right = V::load(row.wrapping_offset(x + 1));
                    down = V::load(rows.below(j + 2).wrapping_offset(x));
                }
                let mut total = right.add(left).add(down).add(up);
                if SOURCE {
                    total = total.sub(V::load(
                        givens
                            .source
                            .wrapping_offset(x + j as isize * givens.source_pitch),
                    ));
                }
                let mut new = quarter.mul(total);
                if FIXED {
                    new = V::hold(
                        givens
                            .fixed
                            .wrapping_offset(x + j as isize * givens.fixed_pitch),
                        centre,
                        new,
                    );
                }
                new.store(rows.out(j).wrapping_offset(x));
                let difference = new.sub(centre);
                sum = sum.add(difference.mul(difference));
                up = centre;
                centre = down;
            }
            sum.store(rows.sums.wrapping_offset(x));
            x += V::LANES as isize;
        }
    }
}

/// Advances row y + `j` alone; `givens`: that row's; `begins_leaf`: the sums start afresh with it.
///
/// # Safety
/// As [`advance`].
#[inline(always)]
pub unsafe fn advance_one<V: Simd, const FIXED: bool, const SOURCE: bool>(
    rows: &Group<V::Elem>,
    j: usize,
    givens: &Givens<V::Elem>,
    begins_leaf: bool,
    columns: &Range<isize>,
) {
    let (above, row, under, out) = (
        rows.below(j),
        rows.below(j + 1),
        rows.below(j + 2),
        rows.out(j),
    );
    let mut x = columns.start;
    // SAFETY: as in `advance`.
    unsafe {
        let quarter = V::splat(V::Elem::from_f64(0.25));
        let nothing = V::splat(V::Elem::NEG_ZERO);
        while x < columns.end {
            let centre = V::load(row.wrapping_offset(x));
            let right = V::load(row.wrapping_offset(x + 1));
            let left = V::load(row.wrapping_offset(x - 1));
            let down = V::load(under.wrapping_offset(x));
            let up = V::load(above.wrapping_offset(x));
            let mut total = right.add(left).add(down).add(up);
            if SOURCE {
                total = total.sub(V::load(givens.source.wrapping_offset(x)));
            }
            let mut new = quarter.mul(total);
            if FIXED {
                new = V::hold(givens.fixed.wrapping_offset(x), centre, new);
            }
            new.store(out.wrapping_offset(x));
            let difference = new.sub(centre);
            let sum = if begins_leaf {
                nothing
            } else {
                V::load(rows.sums.wrapping_offset(x))
            };
            sum.add(difference.mul(difference))
                .store(rows.sums.wrapping_offset(x));
            x += V::LANES as isize;
        }
    }
}

/// Adds the leaves of the tile whose column sums are `sums` to `norm`; fixed and ghost columns add nothing.
///
/// # Safety
/// The processor must have `V`'s vector unit; `sums` must cover the tile's columns rounded up to whole leaves.
#[inline(always)]
pub unsafe fn add_leaves<V: Simd>(
    sums: *mut V::Elem,
    tile: ColumnTile,
    nx: isize,
    norm: &mut Superaccumulator<V::Elem>,
) {
    let mut x = tile.x0;
    while x < tile.x1 {
        let leaf = sums.wrapping_offset(x);
        // SAFETY: the contract above.
        unsafe {
            if x == 0 {
                *leaf = V::Elem::ZERO;
            }
            for outside in (nx - 1).max(x)..x + LEAF_COLUMNS as isize {
                *sums.wrapping_offset(outside) = V::Elem::ZERO;
            }
            let mut half = LEAF_COLUMNS / 2;
            while half >= 16 {
                for lane in (0..half).step_by(V::LANES) {
                    V::load(leaf.add(lane))
                        .add(V::load(leaf.add(lane + half)))
                        .store(leaf.add(lane));
                }
                half /= 2;
            }
            let mut lanes = leaf.cast::<[V::Elem; 16]>().read_unaligned();
            while half >= 1 {
                for lane in 0..half {
                    lanes[lane] = lanes[lane] + lanes[lane + half];
                }
                half /= 2;
            }
            norm.add(lanes[0]);
        }
        x += LEAF_COLUMNS as isize;
    }
}

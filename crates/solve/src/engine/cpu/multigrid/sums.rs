//! Sums over the cells of the finest level with bits that do not depend on who computes which rows.

use std::ops::Range;

use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES, ROWS, combine_lanes, empty_lanes};

use super::blocks::{BLOCK, RowBlocks, in_blocks};

/// A block is part of one leaf.
const _: () = assert!(LANES.is_multiple_of(BLOCK));

/// The sum of terms given row by row: leaves of 16 rows × 128 columns of the level, each in a fixed order, are added
/// exactly.
pub(crate) struct LeafSums {
    rows: Range<isize>,
    /// Row 0's number in the leaves: that of the problem.
    first: isize,
    lanes: Vec<[f64; LANES]>,
    total: Superaccumulator<f64>,
}

impl LeafSums {
    /// For the rows `rows` of a level whose row 0 is row `first` of the problem.
    pub fn new(rows: Range<isize>, nx: usize, first: isize) -> LeafSums {
        LeafSums {
            rows,
            first,
            lanes: vec![empty_lanes(); nx.div_ceil(LANES)],
            total: Superaccumulator::new(),
        }
    }

    /// Adds term(x) for all columns of row `y`; rows come in order, others than those of [`new`](Self::new) are left
    /// out.
    #[inline(always)]
    pub fn add_row(&mut self, y: isize, nx: usize, term: impl Fn(usize) -> f64) {
        if !self.rows.contains(&y) {
            return;
        }
        for (leaf, lanes) in self.lanes.iter_mut().enumerate() {
            let start = leaf * LANES;
            let count = LANES.min(nx - start);
            for (lane, at) in lanes[..count].iter_mut().zip(start..) {
                *lane += term(at);
            }
        }
        self.end_row(y);
    }

    /// As [`add_row`](Self::add_row), where terms of other columns than those of `blocks` are 0.
    #[inline(always)]
    pub fn add_blocks(&mut self, y: isize, blocks: RowBlocks<'_>, term: impl Fn(usize) -> f64) {
        if !self.rows.contains(&y) {
            return;
        }
        in_blocks!(blocks, |start, n| {
            let (leaf, lane) = (start / LANES, start % LANES);
            let lanes = &mut self.lanes[leaf][lane..lane + n];
            for (lane, at) in lanes.iter_mut().zip(start..) {
                *lane += term(at);
            }
        });
        self.end_row(y);
    }

    #[inline(always)]
    fn end_row(&mut self, y: isize) {
        if self.ends_leaves(y) {
            for lanes in &mut self.lanes {
                self.total.add(combine_lanes(lanes));
                *lanes = empty_lanes();
            }
        }
    }

    fn ends_leaves(&self, y: isize) -> bool {
        (y + self.first + 1) % ROWS as isize == 0 || y + 1 == self.rows.end
    }

    /// Whether terms of row `y` belong to the sum.
    #[inline(always)]
    pub fn has(&self, y: isize) -> bool {
        self.rows.contains(&y)
    }

    /// As [`add_row`](Self::add_row), of the even columns of one leaf, or with `half` 1 of the odd ones: those of the others are
    /// 0. Rows of a leaf all come so or none. [`end_row_of_halves`](Self::end_row_of_halves) follows after those of all leaves.
    #[inline(always)]
    pub fn add_half(&mut self, leaf: usize, half: usize, terms: &[f64; LANES / 2]) {
        let lanes = &mut self.lanes[leaf].as_chunks_mut::<{ LANES / 2 }>().0[half];
        for (lane, term) in lanes.iter_mut().zip(terms) {
            *lane += term;
        }
    }

    /// As [`add_half`](Self::add_half), of the squares of half a row.
    #[inline(always)]
    pub fn add_squares_of_half(&mut self, y: isize, half: usize, values: &[f64]) {
        if !self.has(y) {
            return;
        }
        for (lanes, values) in self.lanes.iter_mut().zip(values.chunks(LANES / 2)) {
            let lanes = &mut lanes.as_chunks_mut::<{ LANES / 2 }>().0[half];
            for (lane, value) in lanes.iter_mut().zip(values) {
                *lane += value * value;
            }
        }
    }

    /// See [`add_half`](Self::add_half).
    #[inline(always)]
    pub fn end_row_of_halves(&mut self, y: isize) {
        if self.ends_leaves(y) {
            for lanes in &mut self.lanes {
                let mut in_order = empty_lanes();
                let (even, odd) = lanes.split_at(LANES / 2);
                for (pair, (&even, &odd)) in in_order.chunks_exact_mut(2).zip(even.iter().zip(odd))
                {
                    (pair[0], pair[1]) = (even, odd);
                }
                // Of rows that have no terms all lanes are −0 still, and terms of 0 would have made 0 of them.
                self.total.add(combine_lanes(&in_order) + 0.0);
                *lanes = empty_lanes();
            }
        }
    }

    /// The sum.
    pub fn total(self) -> Superaccumulator<f64> {
        self.total
    }
}

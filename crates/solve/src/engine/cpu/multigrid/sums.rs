//! Sums over the cells of the finest level with bits that do not depend on who computes which rows.

use std::ops::Range;

use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES, ROWS, combine_lanes, empty_lanes};

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
        if (y + self.first + 1) % ROWS as isize == 0 || y + 1 == self.rows.end {
            for lanes in &mut self.lanes {
                self.total.add(combine_lanes(lanes));
                *lanes = empty_lanes();
            }
        }
    }

    /// The sum.
    pub fn total(self) -> Superaccumulator<f64> {
        self.total
    }
}

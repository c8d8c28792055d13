//! An operator row by row, on its way to the next level.

use super::shape::Shape;
use super::written::{LANES, Written};
use crate::element::Real;

/// A row of a coarse operator in `f64`, as it is made.
#[derive(Clone, Default)]
pub(crate) struct OperatorRow {
    /// Couplings to the point to the right, below, below to the right, below to the left; the excess.
    pub parts: [Vec<f64>; PARTS],
    /// The columns that are not zero.
    pub written: Written,
}

/// The parts of an operator.
pub(crate) const PARTS: usize = 5;
pub(crate) const EAST: usize = 0;
pub(crate) const SOUTH: usize = 1;
pub(crate) const SOUTH_EAST: usize = 2;
pub(crate) const SOUTH_WEST: usize = 3;
pub(crate) const EXCESS: usize = 4;

impl OperatorRow {
    /// All zero, for `nx` columns.
    pub fn reset(&mut self, nx: usize) {
        for part in &mut self.parts {
            self.written.zero(part, nx, 0);
        }
        self.written.clear(nx);
    }
}

/// An operator by rows.
pub(crate) trait OperatorRows {
    /// Whether points are coupled across corners.
    const CORNERS: bool;
    /// Its level.
    fn shape(&self) -> &Shape;
    /// Row `y`, which the grid has, own or near, without columns beyond its ends: `out` comes with zeros.
    fn row(&self, y: isize, out: &mut SplitRow);
    /// Rows with the same number are the same.
    fn identity(&self, y: isize) -> u64;
}

/// Columns beyond both ends of a split row.
pub(super) const GHOSTS: isize = 4;
/// Coarse points whose surroundings are looked up at once, and how far these reach in a half row or a row of weights.
pub(super) const BLOCK: usize = 2 * LANES;
pub(super) const SPAN: usize = BLOCK + 4;

/// A row of an operator with even and odd columns apart, so that neighbouring coarse points find theirs side by side.
#[derive(Clone, Default)]
pub(crate) struct SplitRow {
    parts: [[Vec<f64>; 2]; PARTS],
    /// For pairs of an even column and the odd one after it: not 0 where any part of either is not 0.
    any: Vec<u64>,
    /// The columns that are not zero, but for those beyond the ends.
    written: Written,
}

impl SplitRow {
    /// Elements of half a row of `nx` columns.
    fn half(nx: usize) -> usize {
        nx / 2 + GHOSTS as usize + 1 + BLOCK
    }

    /// Sets the columns from `start`, which is even, on of the given parts, all of as many columns. The others are zero.
    pub(super) fn put<T: Real>(&mut self, start: usize, parts: &[(usize, &[T])]) {
        let at = GHOSTS as usize / 2 + start / 2;
        let mut len = 0;
        for &(part, values) in parts {
            len = values.len();
            let [even, odd] = &mut self.parts[part];
            let (pairs, last) = values.as_chunks();
            let columns = at..at + pairs.len();
            let halves = even[columns.clone()]
                .iter_mut()
                .zip(&mut odd[columns.clone()])
                .zip(&mut self.any[columns.clone()]);
            for (((even, odd), any), &[first, second]) in halves.zip(pairs) {
                (*even, *odd) = (first.to_f64(), second.to_f64());
                *any |= even.to_bits() | odd.to_bits();
            }
            if let &[value] = last {
                even[columns.end] = value.to_f64();
                self.any[columns.end] |= even[columns.end].to_bits();
            }
        }
        self.written.add(start..start + len);
    }

    /// Sets the columns beyond both ends of a row that wraps around.
    fn wrap(&mut self, nx: usize) {
        let nx = nx as isize;
        for x in (-GHOSTS..0).chain(nx..nx + GHOSTS) {
            let (half, at) = ((x & 1) as usize, ((x + GHOSTS) >> 1) as usize);
            for part in 0..PARTS {
                let [value] = self.at(part, x.rem_euclid(nx));
                self.parts[part][half][at] = value;
                self.any[at] |= value.to_bits();
            }
        }
    }

    /// All zero, for `nx` columns.
    pub(super) fn clear(&mut self, nx: usize) {
        let (len, first) = (SplitRow::half(nx), GHOSTS as usize / 2);
        if self.any.len() != len {
            self.any.resize(len, 0);
            for half in self.parts.as_flattened_mut() {
                half.resize(len, 0.0);
            }
        }
        let beyond = [0..first, first + nx / 2..len];
        let written = self.written.runs();
        let written = written.map(|of| first + of.start / 2..first + of.end / 2);
        for columns in written.chain(beyond) {
            self.any[columns.clone()].fill(0);
            for half in self.parts.as_flattened_mut() {
                half[columns.clone()].fill(0.0);
            }
        }
        self.written.clear(nx);
    }

    /// For the pairs of columns from −[`GHOSTS`] on: not 0 where any part is not 0.
    pub(super) fn any(&self) -> &[u64] {
        &self.any
    }

    /// Both halves of the parts around the coarse points from `first` on: from column 2 · `first` − [`GHOSTS`] on.
    #[inline(always)]
    pub(super) fn spans<'a>(&'a self, first: usize, out: &mut [[&'a [f64; SPAN]; 2]; PARTS]) {
        for (out, halves) in out.iter_mut().zip(&self.parts) {
            for (out, half) in out.iter_mut().zip(halves) {
                *out = span(half, first);
            }
        }
    }

    /// Columns x, x + 2, … of a part.
    #[inline(always)]
    pub(super) fn at<const W: usize>(&self, part: usize, x: isize) -> [f64; W] {
        let half = &self.parts[part][(x & 1) as usize];
        load(half, ((x + GHOSTS) >> 1) as usize)
    }
}

/// Whether all is 0 in the columns that [`LANES`] coarse points from `i` on, and what is around them, depend on. `any`: for
/// all rows in question together, as [`SplitRow::any`] is for one.
#[inline(always)]
pub(super) fn are_zero(any: &[u64], i: usize) -> bool {
    // Columns 2i − 4 to 2i + 2 · LANES + 3: two more on both sides than a product takes.
    const PAIRS: usize = LANES + 4;
    any[i..i + PAIRS].iter().fold(0, |all, any| all | any) == 0
}

#[inline(always)]
pub(super) fn load<const W: usize>(from: &[f64], at: usize) -> [f64; W] {
    let mut lanes = [0.0; W];
    lanes.copy_from_slice(&from[at..at + W]);
    lanes
}

/// The elements from `first` on.
#[inline(always)]
pub(super) fn span(of: &[f64], first: usize) -> &[f64; SPAN] {
    of[first..].first_chunk().expect("rows are longer")
}

/// The last few rows.
pub(super) struct Window<'a, O> {
    of: &'a O,
    rows: Vec<(isize, SplitRow)>,
}

const WINDOW: isize = 8;

impl<'a, O: OperatorRows> Window<'a, O> {
    pub(super) fn new(of: &'a O) -> Self {
        let none = (isize::MIN, SplitRow::default());
        Window {
            of,
            rows: vec![none; WINDOW as usize],
        }
    }

    /// Sees to it that row `y` is there.
    pub(super) fn need(&mut self, y: isize) {
        let shape = self.of.shape();
        let (at, row) = &mut self.rows[y.rem_euclid(WINDOW) as usize];
        if *at != y {
            *at = y;
            row.clear(shape.x.len);
            if shape.y.has(y) {
                self.of.row(y, row);
                if shape.x.wraps {
                    row.wrap(shape.x.len);
                }
            }
        }
    }

    pub(super) fn row(&self, y: isize) -> &SplitRow {
        let (at, row) = &self.rows[y.rem_euclid(WINDOW) as usize];
        debug_assert_eq!(*at, y);
        row
    }
}

//! Interpolation that follows the operator: see `galerkin.rs`.

use super::operator_rows::{
    EAST, EXCESS, OperatorRows, SOUTH, SOUTH_EAST, SOUTH_WEST, SPAN, SplitRow, Window, are_zero,
    load, span,
};
use super::row_table::RowTable;
use super::shape::Axis;
use super::written::{LANES, Written};
use crate::element::Real;
use crate::element::simd::{Isa, Work, on_unit};

/// How a point between coarse points takes values: the parts of a row of a `Transfer`.
///
/// The point to the right of (I, J): from (I, J) and (I + 1, J).
pub(super) const RIGHT: [usize; 2] = [0, 1];
/// The point below (I, J): from (I, J) and (I, J + 1).
pub(super) const BELOW: [usize; 2] = [2, 3];
/// The point to the right of that: from (I, J), (I + 1, J), (I, J + 1), (I + 1, J + 1).
pub(super) const AMID: [usize; 4] = [4, 5, 6, 7];
pub(crate) const WEIGHTS: usize = 8;

/// The weights of the points of coarse row J and of the row after it; column I is at I + 1, from −1 to the number of
/// coarse columns.
#[derive(Clone, Default)]
pub(super) struct WeightRow {
    pub weights: [Vec<f64>; WEIGHTS],
    /// What the interpolants of 1 are: to the right, below, amid.
    pub one: [Vec<f64>; 3],
    /// The columns that are not zero, but for those on both sides.
    written: Written,
}

impl WeightRow {
    /// All zero, for `columns` columns.
    fn reset(&mut self, columns: usize) {
        let len = columns + SPAN;
        for part in self.weights.iter_mut().chain(&mut self.one) {
            self.written.zero(part, len, 1);
            (part[0], part[columns + 1]) = (0.0, 0.0);
        }
        self.written.clear(columns);
    }

    /// A part, or from [`WEIGHTS`] on what interpolants of 1 are.
    #[inline(always)]
    pub fn part(&self, part: usize) -> &[f64] {
        match part.checked_sub(WEIGHTS) {
            None => &self.weights[part],
            Some(part) => &self.one[part],
        }
    }

    /// All of these, from column `first` − 1 on.
    #[inline(always)]
    pub fn spans<'a>(&'a self, first: usize, out: &mut [&'a [f64; SPAN]; WEIGHTS + 3]) {
        let parts = self.weights.iter().chain(&self.one);
        for (out, part) in out.iter_mut().zip(parts) {
            *out = span(part, first);
        }
    }

    /// Adds as many columns as are computed at once, from column `i` on.
    #[inline(always)]
    fn add(&mut self, i: usize, columns: usize) {
        self.written.add(i..columns.min(i + LANES));
    }
}

/// Part of a sum of parts and an excess; parts below zero, which coarse operators have here and there, count as none, so
/// that shares are at least 0 and come to 1 at most.
#[inline(always)]
fn share(part: f64, all: f64) -> f64 {
    choose(part > 0.0, part / all, 0.0)
}

/// By bits, of which the compiler makes vectors: it would jump around a division.
#[inline(always)]
fn choose(first: bool, one: f64, other: f64) -> f64 {
    let mask = 0u64.wrapping_sub(u64::from(first));
    f64::from_bits((one.to_bits() & mask) | (other.to_bits() & !mask))
}

#[inline(always)]
fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.0 }
}

#[inline(always)]
fn store(to: &mut [f64], at: usize, lanes: [f64; LANES]) {
    to[at..at + LANES].copy_from_slice(&lanes);
}

/// The couplings of points x, x + 2, … summed towards each side, corners included, and their excess.
struct Sums<const W: usize> {
    west: [f64; W],
    east: [f64; W],
    north: [f64; W],
    south: [f64; W],
    excess: [f64; W],
}

impl Sums<0> {
    #[inline(always)]
    fn of<const W: usize>(above: &SplitRow, here: &SplitRow, x: isize) -> Sums<W> {
        let sum = |side: [f64; W], corners: [[f64; W]; 2]| {
            std::array::from_fn(|k| side[k] + (corners[0][k] + corners[1][k]))
        };
        let [nw, ne] = [above.at(SOUTH_EAST, x - 1), above.at(SOUTH_WEST, x + 1)];
        let [sw, se] = [here.at(SOUTH_WEST, x), here.at(SOUTH_EAST, x)];
        Sums {
            west: sum(here.at(EAST, x - 1), [nw, sw]),
            east: sum(here.at(EAST, x), [ne, se]),
            north: sum(above.at(SOUTH, x), [nw, ne]),
            south: sum(here.at(SOUTH, x), [sw, se]),
            excess: here.at(EXCESS, x),
        }
    }
}

impl<const W: usize> Sums<W> {
    /// Both couplings across, and what they are shares of.
    #[inline(always)]
    fn across(&self, k: usize) -> [f64; 3] {
        let (along, beside) = ([self.west[k], self.east[k]], [self.north[k], self.south[k]]);
        shares(along, beside, self.excess[k])
    }

    /// The same down.
    #[inline(always)]
    fn down(&self, k: usize) -> [f64; 3] {
        let (along, beside) = ([self.north[k], self.south[k]], [self.west[k], self.east[k]]);
        shares(along, beside, self.excess[k])
    }
}

/// The couplings along a line, and what they are shares of: their sum and the part of the excess that belongs to the
/// line.
///
/// Excess is what ties a point to zero: to a fixed neighbour mostly. One of two opposite neighbours being fixed, the
/// couplings to the two differ, and the field is as good as linear there, so that this excess belongs to their line and
/// does not pull the point away from its neighbours on the other. If no couplings differ it belongs to both lines.
#[inline(always)]
fn shares(along: [f64; 2], beside: [f64; 2], excess: f64) -> [f64; 3] {
    let along = along.map(positive);
    let beside = beside.map(positive);
    let sum = (along[0] + along[1]) + (beside[0] + beside[1]);
    let difference = |pair: [f64; 2]| {
        let difference = (pair[0] - pair[1]).abs();
        // Less is rounding.
        if difference > 1e-6 * sum {
            difference
        } else {
            0.0
        }
    };
    let (own, other) = (difference(along), difference(beside));
    let part = choose(own + other > 0.0, own / (own + other), 1.0);
    let all = (along[0] + along[1]) + part * positive(excess);
    [along[0], along[1], all]
}

/// Makes `any` what [`are_zero`] takes for `rows`.
#[inline(always)]
pub(super) fn any_of(any: &mut Vec<u64>, rows: &[&SplitRow]) {
    any.clear();
    any.extend_from_slice(rows[0].any());
    for row in &rows[1..] {
        for (any, more) in any.iter_mut().zip(row.any()) {
            *any |= more;
        }
    }
}

/// Weights and products row by row.
pub(super) struct Maker<'a, O> {
    pub isa: Isa,
    pub window: Window<'a, O>,
    pub x: Axis,
    pub y: Axis,
    pub columns: usize,
    /// Of four coarse rows, and how much of them is there.
    weights: Vec<(isize, Made, WeightRow)>,
    /// See [`are_zero`], for the rows that something depends on.
    pub any: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Made {
    Nothing,
    Right,
    All,
}

impl<'a, O: OperatorRows> Maker<'a, O> {
    pub fn new(isa: Isa, fine: &'a O, columns: usize) -> Self {
        let shape = fine.shape();
        let none = (isize::MIN, Made::Nothing, WeightRow::default());
        Maker {
            isa,
            x: shape.x,
            y: shape.y,
            window: Window::new(fine),
            columns,
            weights: vec![none; 4],
            any: Vec::new(),
        }
    }

    pub fn at(&self, j: isize) -> &WeightRow {
        let (at, _, row) = &self.weights[j.rem_euclid(4) as usize];
        debug_assert_eq!(*at, j);
        row
    }

    /// Takes the row of weights `j` out, all zero if it was another.
    fn take(&mut self, j: isize) -> (Made, WeightRow) {
        let (at, made, row) = &mut self.weights[j.rem_euclid(4) as usize];
        let (mut made, mut row) = (*made, std::mem::take(row));
        if *at != j {
            made = Made::Nothing;
            row.reset(self.columns);
        }
        (made, row)
    }

    fn put(&mut self, j: isize, made: Made, row: WeightRow) {
        self.weights[j.rem_euclid(4) as usize] = (j, made, row);
    }

    /// Gives the weights of row `j` to `transfer`.
    pub fn store<T: Real>(&self, j: isize, transfer: &mut RowTable<T>) {
        let (row, n) = (self.at(j), self.columns);
        transfer.set_written(j, &row.written, |part| {
            let part = &row.weights[part];
            (&part[1..=n], [part[0], part[n + 1]])
        });
    }

    /// Sets the columns on both sides, and what has no point.
    fn finish(&self, part: &mut [f64], between: bool) {
        let n = self.columns;
        part[n + 2..].fill(0.0);
        if between && !self.x.has_between(n as isize - 1) {
            part[n] = 0.0;
        }
        (part[0], part[n + 1]) = if self.x.wraps {
            (part[n], part[1])
        } else {
            (0.0, 0.0)
        };
    }

    /// The weights of points in coarse row `j` itself.
    pub fn right_weights(&mut self, j: isize) {
        on_unit(self.isa, RightWeights(self, j));
    }

    /// All weights of row `j`.
    pub fn weights(&mut self, j: isize) {
        self.right_weights(j);
        self.right_weights(j + 1);
        on_unit(self.isa, LowerWeights(self, j));
    }
}

/// The weights of points in a coarse row.
struct RightWeights<'m, 'a, O>(&'m mut Maker<'a, O>, isize);

impl<O: OperatorRows> Work for RightWeights<'_, '_, O> {
    #[inline(always)]
    fn run(self) {
        self.0.make_right_weights(self.1);
    }
}

/// Those of points below it, of which the ones in it and in the next row are there.
struct LowerWeights<'m, 'a, O>(&'m mut Maker<'a, O>, isize);

impl<O: OperatorRows> Work for LowerWeights<'_, '_, O> {
    #[inline(always)]
    fn run(self) {
        self.0.make_lower_weights(self.1);
    }
}

impl<O: OperatorRows> Maker<'_, O> {
    #[inline(always)]
    fn make_right_weights(&mut self, j: isize) {
        let (made, mut row) = self.take(j);
        if made < Made::Right && self.y.coarser().has(j) {
            let y = self.y.fine_of(j);
            self.window.need(y - 1);
            self.window.need(y);
            let (above, here) = (self.window.row(y - 1), self.window.row(y));
            any_of(&mut self.any, &[above, here]);
            for i in (0..self.columns).step_by(LANES) {
                // Where nothing is coupled, no share is more than 0.
                if are_zero(&self.any, i) {
                    continue;
                }
                row.add(i, self.columns);
                let sums = Sums::of::<LANES>(above, here, 2 * i as isize + 1);
                let mut lanes = [[0.0; LANES]; 3];
                #[allow(clippy::needless_range_loop)] // Lanes of three arrays.
                for k in 0..LANES {
                    let [west, east, all] = sums.across(k);
                    let shares = [share(west, all), share(east, all)];
                    (lanes[0][k], lanes[1][k]) = (shares[0], shares[1]);
                    lanes[2][k] = shares[0] + shares[1];
                }
                let [west, east] = RIGHT;
                store(&mut row.weights[west], i + 1, lanes[0]);
                store(&mut row.weights[east], i + 1, lanes[1]);
                store(&mut row.one[0], i + 1, lanes[2]);
            }
            for part in RIGHT {
                self.finish(&mut row.weights[part], true);
            }
            self.finish(&mut row.one[0], true);
        }
        self.put(j, made.max(Made::Right), row);
    }

    #[inline(always)]
    fn make_lower_weights(&mut self, j: isize) {
        let (made, mut row) = self.take(j);
        if made < Made::All && self.y.has_between(j) {
            let y = self.y.fine_of(j) + 1;
            self.window.need(y - 1);
            self.window.need(y);
            let (above, here) = (self.window.row(y - 1), self.window.row(y));
            any_of(&mut self.any, &[above, here]);
            for i in (0..self.columns).step_by(LANES) {
                if are_zero(&self.any, i) {
                    continue;
                }
                row.add(i, self.columns);
                let sums = Sums::of::<LANES>(above, here, 2 * i as isize);
                let mut lanes = [[0.0; LANES]; 3];
                #[allow(clippy::needless_range_loop)] // Lanes of three arrays.
                for k in 0..LANES {
                    let [north, south, all] = sums.down(k);
                    let shares = [share(north, all), share(south, all)];
                    (lanes[0][k], lanes[1][k]) = (shares[0], shares[1]);
                    lanes[2][k] = shares[0] + shares[1];
                }
                let [north, south] = BELOW;
                store(&mut row.weights[north], i + 1, lanes[0]);
                store(&mut row.weights[south], i + 1, lanes[1]);
                store(&mut row.one[1], i + 1, lanes[2]);
            }
            for part in BELOW {
                self.finish(&mut row.weights[part], false);
            }
            self.finish(&mut row.one[1], false);
            let lower = self.at(j + 1);
            for i in (0..self.columns).step_by(LANES) {
                if are_zero(&self.any, i) {
                    continue;
                }
                let x = 2 * i as isize + 1;
                let sides = [here.at::<LANES>(EAST, x - 1), here.at(EAST, x)];
                let across = [above.at::<LANES>(SOUTH, x), here.at(SOUTH, x)];
                let corners = [
                    above.at::<LANES>(SOUTH_EAST, x - 1),
                    above.at(SOUTH_WEST, x + 1),
                    here.at(SOUTH_WEST, x),
                    here.at(SOUTH_EAST, x),
                ];
                let excess = here.at::<LANES>(EXCESS, x);
                // From the points to the left and to the right of each, above and below.
                let along = [
                    RIGHT.map(|part| load::<LANES>(&row.weights[part], i + 1)),
                    RIGHT.map(|part| load(&lower.weights[part], i + 1)),
                ];
                let beside = BELOW.map(|part| {
                    [0, 1].map(|right| load::<LANES>(&row.weights[part], i + 1 + right))
                });
                let mut lanes = [[0.0; LANES]; 5];
                for k in 0..LANES {
                    let sides = sides.map(|side| positive(side[k]));
                    let across = across.map(|across| positive(across[k]));
                    let corners = corners.map(|corner| positive(corner[k]));
                    let all = ((sides[0] + sides[1]) + (across[0] + across[1]))
                        + ((corners[0] + corners[1]) + (corners[2] + corners[3]))
                        + positive(excess[k]);
                    let mut one = 0.0;
                    for corner in 0..4 {
                        let (right, down) = (corner % 2, corner / 2);
                        let part = corners[corner]
                            + (across[down] * along[down][right][k]
                                + sides[right] * beside[down][right][k]);
                        let weight = share(part, all);
                        lanes[corner][k] = weight;
                        one += weight;
                    }
                    lanes[4][k] = one;
                }
                for (corner, part) in AMID.into_iter().enumerate() {
                    store(&mut row.weights[part], i + 1, lanes[corner]);
                }
                store(&mut row.one[2], i + 1, lanes[4]);
            }
            for part in AMID {
                self.finish(&mut row.weights[part], true);
            }
            self.finish(&mut row.one[2], true);
        }
        self.put(j, made.max(Made::All), row);
    }
}

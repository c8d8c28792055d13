//! The finest level: 4u − (the four neighbours) = b in `f64`, or with couplings of any size, with fixed cells and sides
//! of any kind.
//!
//! A side that is not fixed and does not wrap around is a mirror: cells on it have the cell inside twice. For the
//! hierarchy such a cell's equation counts half (in a corner a quarter), which makes the operator symmetric.

use std::io;
use std::ops::Range;

use super::blocks::{BLOCK, Blocks, RowBlocks, in_blocks};
use super::coefficients::Coefficients;
use super::rows::{
    Ahead, Around, Relaxed, Residual, Wanted, ask_for, five_point, five_varying_points, hold,
};
use super::shape::{HALO, Shape};
use super::sums::LeafSums;
use super::wavefront::Relaxation;
use crate::element::Real;
use crate::element::simd::{Isa, Work, on_unit};
use crate::field::storage::Field;
use crate::problem::scale::largest_magnitude;

/// What holds at the first and the last cell of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// They keep their value.
    Fixed,
    /// The field is the same on both sides of them.
    Mirror,
    /// They are neighbours.
    Wrap,
}

/// What tells points apart.
pub(crate) enum Held<T> {
    Here(T),
    /// In the memory of the GPU that makes the levels and the cycles. Nobody asks for it here.
    OnGpu,
}

impl<T> Held<T> {
    /// Panics if a GPU has it.
    #[inline(always)]
    pub fn here(&self) -> &T {
        match self {
            Held::Here(it) => it,
            Held::OnGpu => unreachable!("a GPU has this, and the host may not ask for it"),
        }
    }
}

/// The equation, without the field.
pub(crate) struct Finest {
    pub shape: Shape,
    /// Left and right, top and bottom.
    pub ends: [[End; 2]; 2],
    /// Cells that keep their value, on the stored rows: byte ≠ 0.
    pub fixed: Option<Held<Field<u8>>>,
    /// The couplings, where they are not all 1. Equations are symmetric then as they are.
    pub coefficients: Option<Held<Coefficients>>,
    /// Where there are cells that do not keep their value.
    pub(super) blocks: Blocks,
}

impl Finest {
    /// With couplings of 1.
    pub fn new(shape: Shape, ends: [[End; 2]; 2], fixed: Option<Held<Field<u8>>>) -> Finest {
        let mut finest = Finest {
            blocks: Blocks::all(shape.x.len),
            shape,
            ends,
            fixed,
            coefficients: None,
        };
        if let Some(Held::Here(_)) = finest.fixed {
            finest.blocks = finest.free_blocks();
        }
        finest
    }

    /// Whether nothing but the sides tells points apart.
    pub fn is_plain(&self) -> bool {
        self.fixed.is_none() && self.coefficients.is_none()
    }

    /// Whether rows are of few kinds, so that levels are made in no time.
    pub fn has_few_rows(&self) -> bool {
        /// Sides, and spacings that differ, make fewer.
        const FEW: usize = 16;
        match &self.coefficients {
            _ if self.fixed.is_some() => false,
            None => true,
            Some(Held::OnGpu) => false,
            Some(Held::Here(of)) => of.tables().iter().all(|of| of.distinct().len() <= FEW),
        }
    }

    fn free_blocks(&self) -> Blocks {
        let free = self.columns();
        Blocks::around(self.shape.rows(HALO), self.shape.x, |y, columns| {
            let columns = columns.start.max(free.start)..columns.end.min(free.end);
            let free = |mask: &[u8]| !columns.is_empty() && mask[columns].contains(&0);
            !self.row_is_fixed(y) && self.mask(y).is_none_or(free)
        })
    }

    /// The columns that are not on a fixed side.
    pub(super) fn columns(&self) -> Range<usize> {
        let [left, right] = self.ends[0];
        let n = self.shape.x.len;
        usize::from(left == End::Fixed)..n - usize::from(right == End::Fixed)
    }

    /// Whether row `y` is a fixed side.
    pub fn row_is_fixed(&self, y: isize) -> bool {
        let last = self.shape.y.len as isize - 1;
        (y == 0 && self.ends[1][0] == End::Fixed) || (y == last && self.ends[1][1] == End::Fixed)
    }

    /// Whether a cell keeps its value; `fixed` is its row of the mask.
    fn is_fixed(&self, fixed: Option<&[u8]>, x: usize) -> bool {
        !self.columns().contains(&x) || fixed.is_some_and(|row| row[x] != 0)
    }

    /// The part of a cell's square that lies in the grid across `axis`: a half on mirrors.
    pub fn part(&self, axis: usize, at: isize) -> f64 {
        let len = [self.shape.x.len, self.shape.y.len][axis] as isize;
        let [first, last] = self.ends[axis];
        if (at == 0 && first == End::Mirror) || (at == len - 1 && last == End::Mirror) {
            0.5
        } else {
            1.0
        }
    }

    /// Makes of row `y` of b − Au (columns −1 to nx) that of the symmetric operator.
    #[inline(always)]
    pub fn symmetric(&self, y: isize, row: &mut [f64]) {
        if self.coefficients.is_some() {
            return;
        }
        let n = self.shape.x.len;
        for x in [0, n - 1] {
            row[x + 1] *= self.part(0, x as isize);
        }
        let part = self.part(1, y);
        if part != 1.0 {
            row.iter_mut().for_each(|value| *value *= part);
        }
    }

    /// Adds `correction` times `scale` to row `y` (columns −1 to nx) where there is an equation: elsewhere a coarse point
    /// may stand for its neighbours alone.
    #[inline(always)]
    pub fn add<T: Real>(&self, y: isize, correction: &[T], scale: f64, row: &mut [f64]) {
        if !self.row_is_fixed(y) {
            let n = self.shape.x.len;
            let ends = [row[1], row[n]];
            let (correction, out) = (&correction[..n], &mut row[1..=n]);
            in_blocks!(self.blocks.of(y), |start, n| {
                self.add_part(y, correction, scale, out, start, n);
            });
            self.keep_sides(ends, row);
        }
        self.beyond(row);
    }

    /// `n` columns from `start` on.
    #[inline(always)]
    fn add_part<T: Real>(
        &self,
        y: isize,
        correction: &[T],
        scale: f64,
        out: &mut [f64],
        start: usize,
        n: usize,
    ) {
        let (correction, out) = (&correction[start..start + n], &mut out[start..start + n]);
        match self.mask(y) {
            None => {
                for (value, &correction) in out.iter_mut().zip(correction) {
                    *value += correction.to_f64() * scale;
                }
            }
            Some(fixed) => {
                let fixed = &fixed[start..start + n];
                for ((value, &correction), &fixed) in out.iter_mut().zip(correction).zip(fixed) {
                    let new = *value + correction.to_f64() * scale;
                    *value = hold(fixed, *value, new);
                }
            }
        }
    }

    /// Gives fixed sides the values `ends`: rows are computed whole, from the column on where vectors begin.
    #[inline(always)]
    fn keep_sides(&self, ends: [f64; 2], row: &mut [f64]) {
        let [left, right] = self.ends[0];
        let n = self.shape.x.len;
        if left == End::Fixed {
            row[1] = ends[0];
        }
        if right == End::Fixed {
            row[n] = ends[1];
        }
    }

    /// The columns beyond both ends of a row.
    #[inline(always)]
    pub fn beyond(&self, row: &mut [f64]) {
        let n = self.shape.x.len;
        let [left, right] = self.ends[0];
        let before = match left {
            End::Fixed => 0.0,
            End::Mirror => row[2.min(n)],
            End::Wrap => row[n],
        };
        let after = match right {
            End::Fixed => 0.0,
            End::Mirror => row[(n - 1).max(1)],
            End::Wrap => row[1],
        };
        for (out, value) in [(0, before), (n + 1, after)] {
            // A write would make the page of a row of zeros.
            if row[out].to_bits() != value.to_bits() {
                row[out] = value;
            }
        }
    }

    /// 1 / the diagonal, the cell's own copies beyond an axis of one cell that wraps around left out.
    pub fn inverse(&self) -> f64 {
        let itself = [self.shape.x, self.shape.y].map(|axis| axis.wraps && axis.len == 1);
        match itself {
            [false, false] => 0.25,
            [true, true] => 0.0,
            _ => 0.5,
        }
    }

    /// Whether the cell at column `x`, row `y` has an equation.
    pub fn has_equation(&self, y: isize, x: usize) -> bool {
        !self.row_is_fixed(y) && !self.is_fixed(self.mask(y), x)
    }

    /// The largest magnitude of those `values` of row `y` whose cells have an equation; see [`largest_magnitude`].
    pub fn largest_where_equations(&self, isa: Isa, y: isize, values: &[f64]) -> f64 {
        let columns = match self.row_is_fixed(y) {
            true => 0..0,
            false => self.columns(),
        };
        let mut largest = 0.0;
        let work = Largest {
            fixed: self.mask(y).map(|row| &row[columns.clone()]),
            values: &values[columns],
            out: &mut largest,
        };
        on_unit(isa, work);
        largest
    }

    /// How much of the length of a cell along `axis` (0: x) lies in the grid.
    pub fn edge(&self, axis: usize, x: usize, y: isize) -> f64 {
        self.part(axis, [x as isize, y][axis])
    }

    /// What equations are multiplied by to be those of the symmetric operator.
    pub fn weight(&self, x: usize, y: isize) -> f64 {
        match self.coefficients {
            Some(_) => 1.0,
            None => self.part_of(x, y),
        }
    }

    /// The part of the square of a cell that lies in the grid.
    pub fn part_of(&self, x: usize, y: isize) -> f64 {
        self.part(0, x as isize) * self.part(1, y)
    }

    pub(super) fn mask(&self, y: isize) -> Option<&[u8]> {
        self.fixed.as_ref().map(|fixed| fixed.here().row(y))
    }

    /// Adds the squares of row `y` of a field, each value times a quarter of its diagonal where that is not the same
    /// everywhere: what rounding leaves of a residual is of that size.
    #[inline(always)]
    pub fn add_field(&self, sum: &mut LeafSums, y: isize, row: &[f64]) {
        let nx = row.len();
        match &self.coefficients {
            None => sum.add_row(y, nx, |x| row[x] * row[x]),
            Some(coefficients) => {
                let inverse = &coefficients.here().row(y).inverse[1..=nx];
                sum.add_row(y, nx, |x| {
                    let value = match inverse[x] {
                        0.0 => 0.0,
                        inverse => row[x] / (4.0 * inverse),
                    };
                    value * value
                });
            }
        }
    }

    /// Own cells that have an equation.
    pub fn free(&self, rows: Range<isize>) -> u64 {
        rows.filter(|&y| !self.row_is_fixed(y))
            .map(|y| match self.mask(y) {
                None => self.columns().len() as u64,
                Some(mask) => {
                    let free = mask[self.columns()].iter().filter(|&&fixed| fixed == 0);
                    free.count() as u64
                }
            })
            .sum()
    }

    /// How small couplings and excess are and how large the diagonal is, where this PE's cells have equations, relative to
    /// the part of a cell that lies in the grid.
    pub fn extremes(&self) -> Extremes {
        let Some(coefficients) = &self.coefficients else {
            return Extremes {
                across: 1.0,
                down: 1.0,
                excess: 0.0,
                diagonal: 1.0 / self.inverse(),
            };
        };
        let mut extremes = Extremes {
            across: f64::INFINITY,
            down: f64::INFINITY,
            excess: f64::INFINITY,
            diagonal: 0.0,
        };
        let Shape {
            x: columns,
            y: rows,
            ..
        } = self.shape;
        for y in self.shape.own() {
            let of = coefficients.here().row(y);
            for x in (0..columns.len).filter(|&x| self.has_equation(y, x)) {
                let (at, part) = (x as isize, self.part_of(x, y));
                for (there, coupling) in [
                    (columns.has(at + 1), of.east[x + 1]),
                    (columns.has(at - 1), of.east[x]),
                ] {
                    if there {
                        extremes.across = extremes.across.min(coupling / self.edge(1, x, y));
                    }
                }
                for (there, coupling) in [
                    (rows.has(y + 1), of.south[x + 1]),
                    (rows.has(y - 1), of.north[x + 1]),
                ] {
                    if there {
                        extremes.down = extremes.down.min(coupling / self.edge(0, x, y));
                    }
                }
                extremes.excess = extremes.excess.min(of.excess[x + 1] / part);
                extremes.diagonal = extremes.diagonal.max(1.0 / (of.inverse[x + 1] * part));
            }
        }
        extremes
    }

    /// With the right side b, on the stored rows; none: zero.
    pub fn with<'a>(&'a self, right_side: Option<&'a Field<f64>>) -> WithRightSide<'a> {
        WithRightSide {
            finest: self,
            right_side,
        }
    }

    /// A field for the stored rows.
    pub fn field(&self) -> io::Result<Field<f64>> {
        Field::lazy(self.shape.stored(), self.shape.x.len)
    }
}

/// The largest magnitude of a row's values, but for those of fixed cells.
struct Largest<'a> {
    fixed: Option<&'a [u8]>,
    values: &'a [f64],
    out: &'a mut f64,
}

impl Work for Largest<'_> {
    #[inline(always)]
    fn run(self) {
        let values = self.values.iter();
        *self.out = match self.fixed {
            None => largest_magnitude(values.copied()),
            Some(fixed) => {
                let free = |(&value, &fixed)| hold(fixed, 0.0, value);
                largest_magnitude(values.zip(fixed).map(free))
            }
        };
    }
}

/// See [`Finest::extremes`].
pub(crate) struct Extremes {
    pub across: f64,
    pub down: f64,
    pub excess: f64,
    pub diagonal: f64,
}

/// The equation with its right side.
pub(crate) struct WithRightSide<'a> {
    finest: &'a Finest,
    right_side: Option<&'a Field<f64>>,
}

impl WithRightSide<'_> {
    /// Computes the blocks of row `y`, which is not a fixed side.
    #[inline(always)]
    fn apply(&self, y: isize, around: Around<'_, f64>, omega: f64, wanted: impl Wanted) {
        let finest = self.finest;
        let (right_side, mask) = (self.right_side.map(|field| field.row(y)), finest.mask(y));
        let blocks = finest.blocks.of(y);
        match &finest.coefficients {
            None => {
                let step = finest.inverse() * omega;
                five_point(around, right_side, mask, step, wanted, blocks);
            }
            Some(of) => {
                five_varying_points(
                    of.here().row(y),
                    around,
                    right_side,
                    mask,
                    omega,
                    wanted,
                    blocks,
                );
            }
        }
    }

    /// Completes the relaxed row `y`.
    #[inline(always)]
    fn complete(&self, y: isize, here: &[f64], out: &mut [f64]) {
        let n = self.finest.shape.x.len;
        // What is in no block is not known here.
        let has = self.finest.blocks.of(y).has_ends();
        let ends = [(has[0], 1), (has[1], n)].map(|(has, x)| if has { here[x] } else { out[x] });
        self.finest.keep_sides(ends, out);
        self.finest.beyond(out);
    }

    /// Completes a row of the residual.
    #[inline(always)]
    fn complete_residual(&self, out: &mut [f64]) {
        self.finest.keep_sides([0.0; 2], out);
        self.finest.beyond(out);
    }
}

/// A row without the columns beyond its ends.
#[inline(always)]
fn inner(row: &mut [f64]) -> &mut [f64] {
    let n = row.len() - 2;
    &mut row[1..=n]
}

impl Relaxation<f64> for WithRightSide<'_> {
    #[inline(always)]
    fn relax(&self, y: isize, around: Around<'_, f64>, omega: f64, out: &mut [f64]) {
        let here = around.here;
        if self.finest.row_is_fixed(y) {
            self.copy(y, here, out);
            return;
        }
        self.apply(y, around, omega, Relaxed(inner(out)));
        self.complete(y, here, out);
    }

    #[inline(always)]
    fn relax_from_zero(&self, y: isize, omega: f64, out: &mut [f64]) {
        let finest = self.finest;
        out.fill(0.0);
        let (Some(right_side), false) = (self.right_side, finest.row_is_fixed(y)) else {
            return;
        };
        let (mask, right_side) = (finest.mask(y), right_side.row(y));
        for x in finest.columns() {
            if mask.is_none_or(|row| row[x] == 0) {
                let inverse = match &finest.coefficients {
                    None => finest.inverse(),
                    Some(of) => of.here().row(y).inverse[x + 1],
                };
                out[x + 1] = (inverse * omega) * right_side[x];
            }
        }
        finest.beyond(out);
    }

    #[inline(always)]
    fn residual(&self, y: isize, around: Around<'_, f64>, out: &mut [f64]) {
        let fixed = self.finest.row_is_fixed(y);
        if fixed || !self.finest.blocks.of(y).are_all() {
            out.fill(0.0);
        }
        if fixed {
            return;
        }
        self.apply(y, around, 0.0, Residual(inner(out)));
        self.complete_residual(out);
    }

    #[inline(always)]
    fn copy(&self, y: isize, from: &[f64], out: &mut [f64]) {
        self.finest.blocks.copy(y, from, out);
    }

    fn ahead(&self, y: isize, u: Option<&[f64]>) -> Ahead {
        let right_side = self.right_side.map(|right_side| right_side.row(y));
        if let Some(blocks) = self.finest.blocks.ahead(y) {
            for row in [u, right_side].into_iter().flatten() {
                ask_for(row, blocks, 1);
            }
            if let Some(mask) = self.finest.mask(y) {
                ask_for(mask, blocks, 1);
            }
        }
        if !self.finest.blocks.of(y).are_all() {
            return Ahead::default();
        }
        Ahead::of([u, right_side], self.finest.mask(y))
    }
}

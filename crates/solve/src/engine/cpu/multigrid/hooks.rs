//! What passes do besides relaxing: corrections come in, residuals go out.

use std::ops::Range;

use super::blocks::{BLOCK, Blocks, RowBlocks, in_blocks};
use super::coarse::Operator;
use super::finest::Finest;
use super::galerkin::Transfer;
use super::interpolation::{AMID, BELOW, RIGHT, WEIGHTS};
use super::rows::{Ahead, Around, ask_for};
use super::shape::Shape;
use super::sums::LeafSums;
use super::transfer_rows::{Weights, prolong_between, prolong_on, restrict, restrict_halves};
use super::wavefront::Hooks;
use crate::element::Real;
use crate::field::storage::Field;

#[inline(always)]
fn weights<T: Real>(transfer: &Transfer<T>, j: isize) -> Weights<'_, T> {
    let of = transfer.all::<WEIGHTS>(j);
    let [nw, ne, sw, se] = AMID;
    Weights {
        right: [of[RIGHT[0]], of[RIGHT[1]]],
        below: [of[BELOW[0]], of[BELOW[1]]],
        amid: [of[nw], of[ne], of[sw], of[se]],
    }
}

/// Asks for row `j`, if there is one, in `blocks` of a row that has `per` columns for each of it.
fn ask_for_weights<T: Real>(transfer: &Transfer<T>, j: isize, blocks: RowBlocks<'_>, per: usize) {
    if transfer.rows().contains(&j) {
        for part in 0..transfer.parts() {
            ask_for(&transfer.part(j, part)[1..], blocks, per);
        }
    }
}

/// Restricts residuals as they come.
pub(super) struct Restriction<'a, T> {
    pub fine: &'a Shape,
    pub transfer: &'a Transfer<T>,
    /// The coarse rows that are wanted,
    pub computed: Range<isize>,
    /// and their columns.
    pub blocks: &'a Blocks,
    pub residuals: &'a mut Field<T>,
    pub right_side: &'a mut Field<T>,
}

impl<T: Real> Restriction<'_, T> {
    /// Where row `y` of the residual goes.
    #[inline(always)]
    pub fn row(&mut self, y: isize) -> &mut [T] {
        &mut self.residuals.with_padding_mut(y.rem_euclid(4), 1)[..self.fine.x.len + 2]
    }

    /// Makes the coarse row that row `y` completes.
    #[inline(always)]
    pub fn took(&mut self, y: isize) {
        if let Some(j) = self.completed_by(y) {
            let (above, here) = (weights(self.transfer, j - 1), weights(self.transfer, j));
            let around = around(self.fine, self.residuals, j);
            let out = self.right_side.row_mut(j);
            if let Some(blocks) = self.blocks.ahead(j) {
                ask_for_weights(self.transfer, j + 1, blocks, 1);
            }
            restrict(&above, &here, around, out, self.blocks.of(j));
        }
    }

    /// As [`took`](Self::took), of rows with every second column, where the others are 0.
    #[inline(always)]
    pub fn took_halves(&mut self, y: isize, coarse_columns: bool) {
        if let Some(j) = self.completed_by(y) {
            let (above, here) = (weights(self.transfer, j - 1), weights(self.transfer, j));
            let around = around(self.fine, self.residuals, j);
            let out = self.right_side.row_mut(j);
            if coarse_columns {
                restrict_halves::<T, true>(&above, &here, around, out);
            } else {
                restrict_halves::<T, false>(&above, &here, around, out);
            }
        }
    }

    /// The coarse row that is computed when row `y` is there.
    #[inline(always)]
    fn completed_by(&self, y: isize) -> Option<isize> {
        let (j, between) = self.fine.y.coarse_of(y);
        let waits = !between && self.fine.y.has_between(j);
        (!waits && self.computed.contains(&j)).then_some(j)
    }
}

/// The rows that coarse row `j` takes.
#[inline(always)]
fn around<'a, T: Real>(fine: &Shape, residuals: &'a Field<T>, j: isize) -> Around<'a, T> {
    let centre = fine.y.fine_of(j);
    let len = fine.x.len + 2;
    // Where there is no row between, its weights are zero.
    let [above, below] = [fine.y.has_between(j - 1), fine.y.has_between(j)];
    let (up, down) = (centre - isize::from(above), centre + isize::from(below));
    let [up, here, down] =
        [up, centre, down].map(|y| &residuals.with_padding(y.rem_euclid(4), 1)[..len]);
    Around {
        ahead: Ahead::default(),
        up,
        here,
        down,
    }
}

/// Interpolates corrections.
pub(super) struct Prolongation<'a, T> {
    pub fine: &'a Shape,
    pub transfer: &'a Transfer<T>,
    /// The columns that are wanted, of the fine rows.
    pub blocks: &'a Blocks,
    pub coarse: &'a Field<T>,
    pub correction: &'a mut Field<T>,
}

impl<T: Real> Prolongation<'_, T> {
    /// The correction of fine row `y`, in its blocks.
    #[inline(always)]
    pub fn row(&mut self, y: isize) -> &[T] {
        let out = &mut self.correction.row_mut(0)[..self.fine.x.len];
        let (j, between) = self.fine.y.coarse_of(y);
        let weights = weights(self.transfer, j);
        let here = self.coarse.with_padding(j, 1);
        let blocks = self.blocks.of(y);
        if !between && let Some(blocks) = self.blocks.ahead(y) {
            ask_for_weights(self.transfer, j + 1, blocks, 2);
        }
        if between {
            let rows = [here, self.coarse.with_padding(j + 1, 1)];
            prolong_between(&weights, rows, out, blocks);
        } else {
            prolong_on(&weights, here, out, blocks);
        }
        out
    }
}

/// What a pass over the finest level does besides relaxing.
pub(super) struct OnFinest<'a, T, const RESTRICT: bool> {
    pub finest: &'a Finest,
    /// None where nothing is corrected; else with what corrections are multiplied.
    pub prolongation: Option<(Prolongation<'a, T>, f64)>,
    /// Where residuals go, and with what they are multiplied.
    pub restriction: Restriction<'a, T>,
    pub scale: f64,
    /// Gets the squares of the residual.
    pub sum: Option<&'a mut LeafSums>,
}

impl<T: Real, const RESTRICT: bool> Hooks<f64> for OnFinest<'_, T, RESTRICT> {
    const RESIDUAL: bool = RESTRICT;
    #[inline(always)]
    fn correct(&mut self, y: isize, row: &mut [f64]) {
        if let Some((prolongation, scale)) = &mut self.prolongation {
            self.finest.add(y, prolongation.row(y), *scale, row);
        }
    }
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], _: &[f64]) {
        let blocks = self.finest.blocks.of(y);
        if let Some(sum) = &mut self.sum {
            let nx = residual.len() - 2;
            let residual = &residual[1..=nx];
            let square = |x: usize| residual[x] * residual[x];
            match blocks.are_all() {
                true => sum.add_row(y, nx, square),
                false => sum.add_blocks(y, blocks, square),
            }
        }
        self.finest.symmetric(y, residual);
        let out = self.restriction.row(y);
        if !blocks.are_all() {
            out.fill(T::ZERO);
        }
        in_blocks!(blocks, |start, n| {
            scale_to(out, residual, self.scale, start + 1, n);
        });
        for end in [0, residual.len() - 1] {
            scale_to(out, residual, self.scale, end, 1);
        }
        self.restriction.took(y);
    }
}

/// `out` = `values` · `scale` in `n` columns from `start` on.
#[inline(always)]
fn scale_to<T: Real>(out: &mut [T], values: &[f64], scale: f64, start: usize, n: usize) {
    let (out, values) = (&mut out[start..start + n], &values[start..start + n]);
    for (out, &value) in out.iter_mut().zip(values) {
        *out = T::from_f64(value * scale);
    }
}

/// Restricts residuals of a coarse level.
pub(super) struct DownCoarse<'a, T>(pub Restriction<'a, T>);

impl<T: Real> Hooks<T> for DownCoarse<'_, T> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [T]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [T], _: &[T]) {
        self.0.row(y).copy_from_slice(residual);
        self.0.took(y);
    }
}

/// Corrects a coarse level.
pub(super) struct UpCoarse<'a, T> {
    pub operator: &'a Operator<T>,
    pub prolongation: Prolongation<'a, T>,
}

impl<T: Real> Hooks<T> for UpCoarse<'_, T> {
    const RESIDUAL: bool = false;
    #[inline(always)]
    fn correct(&mut self, y: isize, row: &mut [T]) {
        self.operator.add(y, self.prolongation.row(y), row);
    }
    fn residual(&mut self, _: isize, _: &mut [T], _: &[T]) {}
}

/// Starts a coarse level from the interpolated solution of the next, and restricts residuals.
pub(super) struct FromCoarser<'a, T> {
    pub up: UpCoarse<'a, T>,
    pub down: DownCoarse<'a, T>,
}

impl<T: Real> Hooks<T> for FromCoarser<'_, T> {
    const RESIDUAL: bool = true;
    #[inline(always)]
    fn correct(&mut self, y: isize, row: &mut [T]) {
        in_blocks!(self.up.operator.blocks.of(y), |start, n| {
            row[start + 1..start + 1 + n].fill(T::ZERO);
        });
        self.up.correct(y, row);
    }
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [T], u: &[T]) {
        self.down.residual(y, residual, u);
    }
}

/// Sums the squares of the residual and those of [`Finest::add_field`].
pub(super) struct Measure<'a> {
    pub finest: &'a Finest,
    pub sums: &'a mut [LeafSums; 2],
}

impl Hooks<f64> for Measure<'_> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [f64]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], u: &[f64]) {
        let [of_residual, of_field] = &mut *self.sums;
        let nx = self.finest.shape.x.len;
        let (residual, u) = (&residual[1..=nx], &u[1..=nx]);
        of_residual.add_row(y, nx, |x| residual[x] * residual[x]);
        self.finest.add_field(of_field, y, u);
    }
}

/// Keeps the residual.
pub(super) struct Keep<'a>(pub &'a mut Field<f64>);

impl Hooks<f64> for Keep<'_> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [f64]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], _: &[f64]) {
        let out = self.0.row_mut(y);
        let n = out.len();
        out.copy_from_slice(&residual[1..=n]);
    }
}

/// Keeps the residual, and sums its products with the field, in the inner product in which the operator is symmetric.
pub(super) struct KeepProduct<'a> {
    pub finest: &'a Finest,
    pub out: &'a mut Field<f64>,
    pub sum: &'a mut LeafSums,
}

impl Hooks<f64> for KeepProduct<'_> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [f64]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], u: &[f64]) {
        let out = self.out.row_mut(y);
        let n = out.len();
        out.copy_from_slice(&residual[1..=n]);
        self.finest.symmetric(y, residual);
        let (residual, u) = (&residual[1..=n], &u[1..=n]);
        self.sum.add_row(y, n, |x| residual[x] * u[x]);
    }
}

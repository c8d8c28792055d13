//! Planes from one level to the next.

use std::ops::Range;

use super::line::Weights;
use super::operator::Operator;
use super::points_transfer::PointWeights;
use crate::engine::cpu::multigrid::shape::Axis;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cpu::multigrid::wavefront::Hooks;
use crate::field::storage::Field;

/// Planes of the residual that are kept.
pub(super) const RING: isize = 4;

/// The fine points around coarse point `j` of an axis, and with what they count: before, at, after. A point that is not
/// there counts nothing, and stands for the one at `j`.
#[inline(always)]
fn around(axis: Axis, weights: &Weights, j: usize) -> [(usize, f64); 3] {
    let (len, at) = (axis.len, 2 * j);
    let mut before = (at, 0.0);
    if axis.has_between(j as isize - 1) {
        let last = weights.right.len() - 1;
        before = (
            (at + len - 1) % len,
            weights.right[j.checked_sub(1).unwrap_or(last)],
        );
    }
    let mut after = (at, 0.0);
    if axis.has_between(j as isize) {
        after = (at + 1, weights.left[j]);
    }
    [before, (at, 1.0), after]
}

/// The coarse points that fine point `i` of an axis takes values of, and their weights.
#[inline(always)]
fn parents(axis: Axis, weights: &Weights, i: usize) -> [(usize, f64); 2] {
    let (j, between) = axis.coarse_of(i as isize);
    let j = j as usize;
    if between {
        let next = (j + 1) % axis.coarser().len;
        [(j, weights.left[j]), (next, weights.right[j])]
    } else {
        [(j, 1.0), (j, 0.0)]
    }
}

/// Between a level and the next.
pub(crate) enum Transfer {
    /// Along each axis.
    Lines([Weights; 3]),
    Points(PointWeights),
}

/// Restricts residuals as they come.
pub(super) struct Restriction<'a> {
    pub fine: &'a Operator,
    pub weights: &'a Transfer,
    /// The coarse planes that are wanted.
    pub computed: Range<isize>,
    /// The last planes of the residual.
    pub ring: &'a mut Field<f64>,
    /// A fine row.
    pub row: &'a mut Vec<f64>,
    pub right_side: &'a mut Field<f64>,
}

impl Restriction<'_> {
    /// Takes plane `z` of the residual, and makes the coarse plane that it completes.
    #[inline(always)]
    pub fn take(&mut self, z: isize, residual: &[f64]) {
        self.ring.row_mut(z.rem_euclid(RING))[..residual.len()].copy_from_slice(residual);
        let [x, y, axis] = [0, 1, 2].map(|axis: usize| self.fine.lines[axis].axis);
        let (k, between) = axis.coarse_of(z);
        if (!between && axis.has_between(k)) || !self.computed.contains(&k) {
            return;
        }
        let centre = axis.fine_of(k);
        let out = self.right_side.row_mut(k);
        let weights = match self.weights {
            Transfer::Points(weights) => {
                let plane = |z: isize| self.ring.row(z.rem_euclid(RING));
                let planes = [plane(centre - 1), plane(centre), plane(centre + 1)];
                return weights.restrict(k, planes, out);
            }
            Transfer::Lines(weights) => weights,
        };
        let inside = k.rem_euclid(axis.coarser().len as isize) as usize;
        let [(_, above), _, (_, below)] = around(axis, &weights[2], inside);
        let planes = [(centre - 1, above), (centre, 1.0), (centre + 1, below)];
        let (stride, coarse_stride) = (x.len + 2, x.coarser().len + 2);
        for j in 0..y.coarser().len {
            self.row.fill(0.0);
            for (row, across) in around(y, &weights[1], j) {
                for (plane, down) in planes {
                    let weight = across * down;
                    if weight == 0.0 {
                        continue;
                    }
                    let from = &self.ring.row(plane.rem_euclid(RING))[row * stride..][..stride];
                    for (sum, &value) in self.row.iter_mut().zip(from) {
                        *sum += weight * value;
                    }
                }
            }
            let out = &mut out[j * coarse_stride + 1..][..x.coarser().len];
            let weights = &weights[0];
            let n = out.len();
            let (left, right) = (&weights.left[..n], &weights.right[..n]);
            // Column 2i is element 2i + 1. What is not there has weight 0.
            let row = &self.row[..2 * n + 1];
            out[0] = row[1] + (right[n - 1] * row[0] + left[0] * row[2]);
            for i in 1..n {
                out[i] = row[2 * i + 1] + (right[i - 1] * row[2 * i] + left[i] * row[2 * i + 2]);
            }
        }
    }
}

/// Interpolates corrections.
pub(super) struct Prolongation<'a> {
    pub fine: &'a Operator,
    pub weights: &'a Transfer,
    pub coarse: &'a Field<f64>,
    /// A coarse row.
    pub row: &'a mut Vec<f64>,
}

impl Prolongation<'_> {
    /// Adds the correction of plane `z` to `plane`.
    #[inline(always)]
    fn add(&mut self, z: isize, plane: &mut [f64]) {
        let weights = match self.weights {
            Transfer::Points(weights) => {
                let points = self
                    .fine
                    .points
                    .as_ref()
                    .expect("its weights are of points");
                weights.prolong(self.coarse, z, points.inverse.row(z), plane);
                return self.fine.beyond(plane);
            }
            Transfer::Lines(weights) => weights,
        };
        let [x, y, axis] = [0, 1, 2].map(|axis: usize| self.fine.lines[axis].axis);
        let (k, between) = axis.coarse_of(z);
        let inside = k.rem_euclid(axis.coarser().len as isize) as usize;
        let down = if between {
            [
                (k, weights[2].left[inside]),
                (k + 1, weights[2].right[inside]),
            ]
        } else {
            [(k, 1.0), (k, 0.0)]
        };
        let (stride, coarse_stride) = (x.len + 2, x.coarser().len + 2);
        for j in 0..y.len {
            let Some(free) = self.fine.free(z, j) else {
                continue;
            };
            let row = &mut self.row[..coarse_stride];
            row.fill(0.0);
            for (from, across) in parents(y, &weights[1], j) {
                for (plane, down) in down {
                    let weight = across * down;
                    if weight == 0.0 {
                        continue;
                    }
                    let from = &self.coarse.row(plane)[from * coarse_stride..][..coarse_stride];
                    for (sum, &value) in row.iter_mut().zip(from) {
                        *sum += weight * value;
                    }
                }
            }
            let out = &mut plane[j * stride + 1..][..x.len];
            let weights = &weights[0];
            let n = coarse_stride - 2;
            let (here, next) = (&row[1..n + 1], &row[2..n + 2]);
            let (left, right) = (&weights.left[..n], &weights.right[..n]);
            let pairs = out.chunks_exact_mut(2).zip(free.chunks_exact(2));
            for (i, (pair, free)) in pairs.enumerate() {
                pair[0] += free[0] * here[i];
                pair[1] += free[1] * (left[i] * here[i] + right[i] * next[i]);
            }
            if x.len % 2 == 1 {
                out[x.len - 1] += free[x.len - 1] * here[n - 1];
            }
        }
        self.fine.beyond(plane);
    }
}

/// What a pass does besides relaxing.
pub(super) struct Transfers<'a, const MEASURE: bool, const RESTRICT: bool> {
    pub operator: &'a Operator,
    /// None where nothing is corrected.
    pub prolongation: Option<Prolongation<'a>>,
    /// Whether the field begins with the correction alone.
    pub fresh: bool,
    pub restriction: Option<Restriction<'a>>,
    /// Gets the squares of the residual that is measured, in the own planes.
    pub sum: Option<&'a mut LeafSums>,
}

impl<const MEASURE: bool, const RESTRICT: bool> Hooks<f64> for Transfers<'_, MEASURE, RESTRICT> {
    const RESIDUAL: bool = RESTRICT;
    const MEASURES: bool = MEASURE;

    #[inline(always)]
    fn correct(&mut self, z: isize, plane: &mut [f64]) {
        if self.fresh {
            plane.fill(0.0);
        }
        let end = plane.len() - 1;
        if let Some(prolongation) = &mut self.prolongation {
            prolongation.add(z, &mut plane[1..end]);
        }
    }

    #[inline(always)]
    fn measure(&mut self, z: isize, residual: &[f64]) {
        let own = self.operator.shape.own();
        if let (Some(sum), true) = (&mut self.sum, own.contains(&z)) {
            add_squares(sum, self.operator, &residual[1..]);
        }
    }

    #[inline(always)]
    fn residual(&mut self, z: isize, residual: &mut [f64], _: &[f64]) {
        let end = residual.len() - 1;
        if let Some(restriction) = &mut self.restriction {
            restriction.take(z, &residual[1..end]);
        }
    }
}

/// Adds the squares of a plane to `sum`, which is of planes: leaves of 16 rows × 128 columns.
#[inline(always)]
pub(super) fn add_squares(sum: &mut LeafSums, operator: &Operator, plane: &[f64]) {
    let (nx, stride) = (operator.lines[0].axis.len, operator.stride());
    for y in 0..operator.lines[1].axis.len {
        let row = &plane[y * stride + 1..][..nx];
        sum.add_row(y as isize, nx, |x| row[x] * row[x]);
    }
}

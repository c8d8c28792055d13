//! Planes from one level to the next.

use std::ops::Range;

use super::line::Weights;
use super::operator::Operator;
use super::points_transfer::PointWeights;
use crate::engine::cpu::multigrid::shape::Axis;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::field::storage::Field;

/// The fine points around coarse point `j` of an axis, and with what they count: before, at, after. A point that is not
/// there counts nothing, and stands for the one at `j`.
#[inline(always)]
pub(super) fn around(axis: Axis, weights: &Weights, j: usize) -> [(usize, f64); 3] {
    let (len, at) = (axis.len, 2 * j);
    let mut before = (at, 0.0);
    if axis.has_between(j as isize - 1) {
        let last = weights.right.len() - 1;
        before = (
            at.checked_sub(1).unwrap_or(len - 1),
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
    let j = i / 2;
    if i % 2 == 1 {
        let next = if j + 1 < axis.coarser().len { j + 1 } else { 0 };
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

/// Sums of rows times weights, added one after the other from 0 on.
#[inline(always)]
fn sum_rows(out: &mut [f64], parts: &[(&[f64], f64)]) {
    let (mut groups, rest) = parts.as_chunks::<3>();
    match (groups, rest) {
        ([first, others @ ..], _) => {
            add_rows::<3, true>(out, first);
            groups = others;
        }
        ([], [one, other]) => return add_rows::<2, true>(out, &[*one, *other]),
        ([], [one]) => return add_rows::<1, true>(out, &[*one]),
        _ => return out.fill(0.0),
    }
    for group in groups {
        add_rows::<3, false>(out, group);
    }
    match rest {
        [one, other] => add_rows::<2, false>(out, &[*one, *other]),
        [one] => add_rows::<1, false>(out, &[*one]),
        _ => {}
    }
}

/// Adds `N` rows times weights, to 0 if `FRESH`.
#[inline(always)]
pub(super) fn add_rows<const N: usize, const FRESH: bool>(
    out: &mut [f64],
    parts: &[(&[f64], f64); N],
) {
    let len = out.len();
    let rows = parts.map(|(row, _)| &row[..len]);
    let weights = parts.map(|(_, weight)| weight);
    for i in 0..len {
        let mut sum = if FRESH { 0.0 } else { out[i] };
        for part in 0..N {
            sum += weights[part] * rows[part][i];
        }
        out[i] = sum;
    }
}

/// Restricts residuals as they come.
pub(super) struct Restriction<'a> {
    pub fine: &'a Operator,
    pub weights: &'a Transfer,
    /// The coarse planes that are wanted.
    pub computed: Range<isize>,
    /// A fine row.
    pub row: &'a mut Vec<f64>,
    pub right_side: &'a mut Field<f64>,
}

impl Restriction<'_> {
    /// After plane `z` of the residual: makes `rows` of the coarse plane that it completes. `plane` has the last planes, which
    /// begin with row `first`.
    #[inline(always)]
    pub fn take<'r>(
        &mut self,
        z: isize,
        rows: Range<usize>,
        first: usize,
        plane: impl Fn(isize) -> &'r [f64],
    ) {
        let [x, y, axis] = [0, 1, 2].map(|axis: usize| self.fine.lines[axis].axis);
        let (k, between) = axis.coarse_of(z);
        if (!between && axis.has_between(k)) || !self.computed.contains(&k) {
            return;
        }
        let centre = axis.fine_of(k);
        let out = self.right_side.row_mut(k);
        let weights = match self.weights {
            Transfer::Points(weights) => {
                // A plane that is not there is not looked at.
                let planes = [centre - 1, centre, centre + 1]
                    .map(|at| plane(if axis.has(at) { at } else { centre }));
                return weights.restrict(k, rows, first, planes, out);
            }
            Transfer::Lines(weights) => weights,
        };
        let inside = k.rem_euclid(axis.coarser().len as isize) as usize;
        let [(_, above), _, (_, below)] = around(axis, &weights[2], inside);
        let planes = [(centre - 1, above), (centre, 1.0), (centre + 1, below)];
        let (stride, coarse_stride) = (x.len + 2, x.coarser().len + 2);
        for j in rows {
            let mut parts = [(&[][..], 0.0); 9];
            let mut count = 0;
            for (at, down) in planes {
                for (row, across) in around(y, &weights[1], j) {
                    let weight = across * down;
                    if weight == 0.0 {
                        continue;
                    }
                    parts[count] = (&plane(at)[(row - first) * stride..][..stride], weight);
                    count += 1;
                }
            }
            sum_rows(self.row, &parts[..count]);
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
    /// Adds the correction of rows `rows` of plane `z` to `plane`.
    #[inline(always)]
    pub fn add(&mut self, z: isize, rows: Range<usize>, plane: &mut [f64]) {
        let stride = self.fine.stride();
        let lines = match self.weights {
            Transfer::Points(weights) => {
                let points = self
                    .fine
                    .points
                    .as_ref()
                    .expect("its weights are of points");
                let inverse = points.inverse.row(z);
                weights.prolong(self.coarse, z, rows.clone(), inverse, plane);
                return self
                    .fine
                    .beyond(&mut plane[rows.start * stride..rows.end * stride]);
            }
            Transfer::Lines(lines) => lines,
        };
        let x = self.fine.lines[0].axis;
        let coarse = CoarsePlanes::of(self.fine, lines, self.coarse, z);
        for j in rows.clone() {
            self.fine.prefetch_after(plane, j, rows.end);
            let line = &mut plane[j * stride..][..stride];
            let Some(free) = self.fine.free(z, j) else {
                self.fine.beyond(line);
                continue;
            };
            let row = coarse.row(j, self.row);
            let out = &mut line[1..x.len + 1];
            let weights = &lines[0];
            let n = row.len() - 2;
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
            self.fine.beyond(line);
        }
    }
}

/// The coarse planes that a fine plane takes values of, and their weights.
pub(super) struct CoarsePlanes<'a> {
    rows: Axis,
    weights: &'a Weights,
    stride: usize,
    planes: [(&'a [f64], f64); 2],
}

impl<'a> CoarsePlanes<'a> {
    /// Those of plane `z`.
    #[inline(always)]
    pub fn of(
        fine: &Operator,
        lines: &'a [Weights; 3],
        coarse: &'a Field<f64>,
        z: isize,
    ) -> CoarsePlanes<'a> {
        let [x, rows, axis] = [0, 1, 2].map(|axis: usize| fine.lines[axis].axis);
        let (k, between) = axis.coarse_of(z);
        let inside = k.rem_euclid(axis.coarser().len as isize) as usize;
        let planes = if between {
            [(k, lines[2].left[inside]), (k + 1, lines[2].right[inside])]
        } else {
            [(k, 1.0), (k, 0.0)]
        };
        CoarsePlanes {
            rows,
            weights: &lines[1],
            stride: x.coarser().len + 2,
            planes: planes.map(|(k, weight)| {
                (
                    if weight == 0.0 {
                        &[][..]
                    } else {
                        coarse.row(k)
                    },
                    weight,
                )
            }),
        }
    }

    /// The coarse points for fine row `y`, with the points beyond both ends, to `row`.
    #[inline(always)]
    pub fn row<'r>(&self, y: usize, row: &'r mut [f64]) -> &'r [f64] {
        let mut parts = [(&[][..], 0.0); 4];
        let mut count = 0;
        for (from, across) in parents(self.rows, self.weights, y) {
            for (plane, down) in self.planes {
                let weight = across * down;
                if weight == 0.0 {
                    continue;
                }
                parts[count] = (&plane[from * self.stride..][..self.stride], weight);
                count += 1;
            }
        }
        let row = &mut row[..self.stride];
        sum_rows(row, &parts[..count]);
        row
    }
}

/// Adds the squares of a plane to `sum`, which is of planes: leaves of 16 rows × 128 columns.
#[inline(always)]
pub(super) fn add_squares(sum: &mut LeafSums, operator: &Operator, plane: &[f64]) {
    let (nx, stride) = (operator.lines[0].axis.len, operator.stride());
    for y in 0..operator.lines[1].axis.len {
        add_square_row(sum, y, &plane[y * stride..][..nx + 2]);
    }
}

/// The same of row `y`, which has a point more on both sides.
#[inline(always)]
pub(super) fn add_square_row(sum: &mut LeafSums, y: usize, row: &[f64]) {
    let row = &row[1..row.len() - 1];
    sum.add_row(y as isize, row.len(), |x| row[x] * row[x]);
}

//! Between levels, of rows with even and odd columns apart: as `transfer.rs` has it of whole ones.

use std::ops::Range;

use super::half_rows::{BEFORE, HalfColumns, Places, row_number};
use super::line::Weights;
use super::operator::Operator;
use super::transfer::{add_rows, around};
use crate::engine::cpu::multigrid::smoothing::Colour;
use crate::field::storage::Field;

/// Adds a correction, of which a row of coarse points is `row`, to halves of a row that has an equation.
#[inline(always)]
pub(super) fn add_correction(
    row: &[f64],
    weights: &Weights,
    columns: &[HalfColumns; 2],
    [even, odd]: [&mut [f64]; 2],
) {
    // Sides alone are held: at most two columns. What is added to these is 0 times the correction.
    let held = |half: &[f64], columns: &HalfColumns| -> [f64; 2] {
        let at = |k: usize| columns.held.get(k).map_or(0.0, |i| half[BEFORE + i]);
        [at(0), at(1)]
    };
    let kept = [held(even, &columns[0]), held(odd, &columns[1])];
    let n = row.len() - 2;
    let (here, next) = (&row[1..n + 1], &row[2..n + 2]);
    let out = &mut even[BEFORE..][..n];
    for i in 0..n {
        out[i] += here[i];
    }
    for (&i, kept) in columns[0].held.iter().zip(kept[0]) {
        out[i] = kept + 0.0 * here[i];
    }
    let n = columns[1].n;
    let (left, right) = (&weights.left[..n], &weights.right[..n]);
    let (here, next) = (&here[..n], &next[..n]);
    let out = &mut odd[BEFORE..][..n];
    for i in 0..n {
        out[i] += left[i] * here[i] + right[i] * next[i];
    }
    for (&i, kept) in columns[1].held.iter().zip(kept[1]) {
        out[i] = kept + 0.0 * (left[i] * here[i] + right[i] * next[i]);
    }
}

/// A plane of the residual: that of one colour, which alone is not 0.
#[derive(Clone, Copy)]
pub(super) struct Residual<'a> {
    pub colour: Colour,
    pub halves: &'a [f64],
    pub places: &'a Places,
    /// Where it begins.
    pub plane: usize,
}

/// Restricts residuals as they come: sums of weights times rows, to which each fine plane adds its terms.
pub(super) struct HalfRestriction<'a> {
    pub fine: &'a Operator,
    pub weights: &'a [Weights; 3],
    /// The coarse planes that are wanted.
    pub computed: Range<isize>,
    pub right_side: &'a mut Field<f64>,
}

impl HalfRestriction<'_> {
    /// Takes plane `z` of the residual for coarse rows `rows`, of which `sums` has the even columns, then the odd ones.
    #[inline(always)]
    pub fn take(
        &mut self,
        z: isize,
        rows: Range<usize>,
        residual: Residual<'_>,
        columns: &[HalfColumns; 2],
        sums: &mut Field<f64>,
    ) {
        let axis = self.fine.lines[2].axis;
        let (k, between) = axis.coarse_of(z);
        let around_plane = |k: isize| {
            let inside = k.rem_euclid(axis.coarser().len as isize) as usize;
            around(axis, &self.weights[2], inside).map(|(_, weight)| weight)
        };
        // What the plane counts for the next coarse plane, as the first of it.
        let next = match between && self.computed.contains(&(k + 1)) {
            true => Some(around_plane(k + 1)[0]),
            false => None,
        };
        if self.computed.contains(&k) {
            let [above, at, below] = around_plane(k);
            let (weight, ends) = match between {
                false => (at, !axis.has_between(k)),
                true => (below, true),
            };
            // The plane above was the first one, if it counts.
            let fresh = !between && above == 0.0;
            for (at, j) in rows.clone().enumerate() {
                self.add(z, j, (weight, fresh), residual, columns, sum_of(sums, at));
                if ends {
                    self.end(k, j, columns, sum_of(sums, at));
                }
            }
        }
        if let Some(above) = next {
            for (at, j) in rows.enumerate() {
                self.add(z, j, (above, true), residual, columns, sum_of(sums, at));
            }
        }
    }

    /// Adds `down` times the rows of plane `z` around coarse row `j`; to 0 if `fresh`.
    #[inline(always)]
    fn add(
        &self,
        z: isize,
        j: usize,
        (down, fresh): (f64, bool),
        residual: Residual<'_>,
        columns: &[HalfColumns; 2],
        sums: [&mut [f64]; 2],
    ) {
        // Of even columns, and of odd ones. What is 0 changes no sum.
        let mut parts = [[(&[][..], 0.0); 2]; 2];
        let mut counts = [0; 2];
        for (y, across) in around(self.fine.lines[1].axis, &self.weights[1], j) {
            let weight = across * down;
            if weight == 0.0 {
                continue;
            }
            let odd = usize::from(residual.colour.has_odd_columns(row_number(z, y)));
            let at = residual.plane + residual.places.row(y) + columns[odd].first();
            parts[odd][counts[odd]] = (&residual.halves[at..], weight);
            counts[odd] += 1;
        }
        for (odd, sum) in sums.into_iter().enumerate() {
            let columns = &columns[odd];
            let sum = &mut sum[columns.first()..BEFORE + columns.n];
            match (&parts[odd][..counts[odd]], fresh) {
                (&[a, b], true) => add_rows::<2, true>(sum, &[a, b]),
                (&[a, b], false) => add_rows::<2, false>(sum, &[a, b]),
                (&[a], true) => add_rows::<1, true>(sum, &[a]),
                (&[a], false) => add_rows::<1, false>(sum, &[a]),
                (_, true) => sum.fill(0.0),
                (_, false) => {}
            }
        }
    }

    /// Makes row `j` of coarse plane `k` of its sums.
    #[inline(always)]
    fn end(
        &mut self,
        k: isize,
        j: usize,
        columns: &[HalfColumns; 2],
        [even, odd]: [&mut [f64]; 2],
    ) {
        let n = columns[0].n;
        let out = &mut self.right_side.row_mut(k)[j * (n + 2) + 1..][..n];
        let weights = &self.weights[0];
        let (left, right) = (&weights.left[..n], &weights.right[..n]);
        let even = &even[BEFORE..][..n];
        // Element i of these is the column before that of `even`. What is not there has weight 0.
        let odd = &odd[BEFORE - 1..][..n + 1];
        out[0] = even[0] + (right[n - 1] * odd[0] + left[0] * odd[1]);
        for i in 1..n {
            out[i] = even[i] + (right[i - 1] * odd[i] + left[i] * odd[i + 1]);
        }
    }
}

/// The halves of sum `at`.
#[inline(always)]
fn sum_of(sums: &mut Field<f64>, at: usize) -> [&mut [f64]; 2] {
    let row = sums.row_mut(at as isize);
    let (even, odd) = row.split_at_mut(row.len() / 2);
    [even, odd]
}

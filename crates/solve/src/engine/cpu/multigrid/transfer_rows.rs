//! The innermost loops between a level and the next coarser one: one row at a time, as in `rows.rs`.

use super::blocks::{BLOCK, RowBlocks, in_blocks};
use super::rows::{Around, triple};
use crate::element::Real;

/// The weights of a coarse row and of the points below it; columns from −1 on.
pub(super) struct Weights<'a, T> {
    pub right: [&'a [T]; 2],
    pub below: [&'a [T]; 2],
    pub amid: [&'a [T]; 4],
}

impl<'a, T> Weights<'a, T> {
    /// Of these columns alone.
    #[inline(always)]
    fn columns(&self, start: usize, n: usize) -> Self {
        let columns = |row: &'a [T]| &row[start..start + n + 2];
        Self {
            right: self.right.map(columns),
            below: self.below.map(columns),
            amid: self.amid.map(columns),
        }
    }
}

/// Pᵀ: `out`, a coarse row, in `blocks`, from the three fine rows around it. `above` are the weights of the coarse row
/// before.
#[inline(always)]
pub(super) fn restrict<T: Real>(
    above: &Weights<'_, T>,
    here: &Weights<'_, T>,
    fine: Around<'_, T>,
    out: &mut [T],
    blocks: RowBlocks<'_>,
) {
    in_blocks!(blocks, |start, n| {
        restrict_part(above, here, fine, out, start, n);
    });
}

/// `n` columns from `start` on.
#[inline(always)]
fn restrict_part<T: Real>(
    above: &Weights<'_, T>,
    here: &Weights<'_, T>,
    fine: Around<'_, T>,
    out: &mut [T],
    start: usize,
    n: usize,
) {
    let (above, here) = (above.columns(start, n), here.columns(start, n));
    let out = &mut out[start..start + n];
    // Columns 2I − 1 and 2I, then 2I + 1: pairs from the first on, and the first of the next pair.
    let pairs = 2 * start..2 * (start + n) + 1;
    let [up, mid, down] = [fine.up, fine.here, fine.down].map(|row| &row[pairs.clone()]);
    let [w0, _, _] = triple(here.right[1]);
    let [_, w1, _] = triple(here.right[0]);
    let [_, north, _] = triple(above.below[1]);
    let [_, south, _] = triple(here.below[0]);
    let [nw, _, _] = triple(above.amid[3]);
    let [_, ne, _] = triple(above.amid[2]);
    let [sw, _, _] = triple(here.amid[1]);
    let [_, se, _] = triple(here.amid[0]);
    for row in [w0, w1, north, south, nw, ne, sw, se] {
        assert_eq!(row.len(), n);
    }
    for i in 0..n {
        let middle = mid[2 * i + 1] + (w0[i] * mid[2 * i] + w1[i] * mid[2 * i + 2]);
        let over = north[i] * up[2 * i + 1] + (nw[i] * up[2 * i] + ne[i] * up[2 * i + 2]);
        let under = south[i] * down[2 * i + 1] + (sw[i] * down[2 * i] + se[i] * down[2 * i + 2]);
        out[i] = middle + (over + under);
    }
}

/// [`restrict`], where every second point is 0 and the others lie side by side, columns from −1 or −2 on. `COARSE_COLUMNS`:
/// those of the row in the middle are coarse points, and those of the rows beside it are between two; else the other way
/// round.
///
/// Products with 0 are left out: they are 0, and sums that are 0 do not tell its sign.
#[inline(always)]
pub(super) fn restrict_halves<T: Real, const COARSE_COLUMNS: bool>(
    above: &Weights<'_, T>,
    here: &Weights<'_, T>,
    fine: Around<'_, T>,
    out: &mut [T],
) {
    let n = out.len();
    let (up, mid, down) = (&fine.up[..n + 1], &fine.here[..n + 1], &fine.down[..n + 1]);
    if COARSE_COLUMNS {
        let (up_west, up_east) = (&up[..n], &up[1..]);
        let (mid, down_west, down_east) = (&mid[1..], &down[..n], &down[1..]);
        let [nw, _, _] = triple(above.amid[3]);
        let [_, ne, _] = triple(above.amid[2]);
        let [sw, _, _] = triple(here.amid[1]);
        let [_, se, _] = triple(here.amid[0]);
        for row in [nw, ne, sw, se] {
            assert_eq!(row.len(), n);
        }
        for i in 0..n {
            let over = nw[i] * up_west[i] + ne[i] * up_east[i];
            let under = sw[i] * down_west[i] + se[i] * down_east[i];
            out[i] = (mid[i] + T::ZERO) + (over + under);
        }
    } else {
        let (up, mid_west, mid_east, down) = (&up[1..], &mid[..n], &mid[1..], &down[1..]);
        let [w0, _, _] = triple(here.right[1]);
        let [_, w1, _] = triple(here.right[0]);
        let [_, north, _] = triple(above.below[1]);
        let [_, south, _] = triple(here.below[0]);
        for row in [w0, w1, north, south] {
            assert_eq!(row.len(), n);
        }
        for i in 0..n {
            let middle = w0[i] * mid_west[i] + w1[i] * mid_east[i];
            out[i] = (middle + T::ZERO) + (north[i] * up[i] + south[i] * down[i]);
        }
    }
}

/// P at a fine row that is a coarse one, in `blocks`: `coarse` has columns from −1 on; `out` all fine columns.
#[inline(always)]
pub(super) fn prolong_on<T: Real>(
    weights: &Weights<'_, T>,
    coarse: &[T],
    out: &mut [T],
    blocks: RowBlocks<'_>,
) {
    in_blocks!(blocks, |start, n| {
        on_part(weights, coarse, out, start, n);
    });
}

/// `n` columns from `start` on, which is even.
#[inline(always)]
fn on_part<T: Real>(weights: &Weights<'_, T>, coarse: &[T], out: &mut [T], start: usize, n: usize) {
    let out = &mut out[start..start + n];
    let (start, n) = (start / 2, n.div_ceil(2));
    let (weights, coarse) = (weights.columns(start, n), &coarse[start..start + n + 2]);
    let [_, here, next] = triple(coarse);
    let [_, left, _] = triple(weights.right[0]);
    let [_, right, _] = triple(weights.right[1]);
    let n = here.len();
    assert!([next.len(), left.len(), right.len()] == [n; 3]);
    let whole = out.len() / 2;
    for (i, pair) in out.chunks_exact_mut(2).enumerate() {
        pair[0] = here[i];
        pair[1] = left[i] * here[i] + right[i] * next[i];
    }
    if out.len() > 2 * whole {
        out[2 * whole] = here[whole];
    }
}

/// [`prolong_on`] at the fine row between two coarse ones.
#[inline(always)]
pub(super) fn prolong_between<T: Real>(
    weights: &Weights<'_, T>,
    beside: [&[T]; 2],
    out: &mut [T],
    blocks: RowBlocks<'_>,
) {
    in_blocks!(blocks, |start, n| {
        between_part(weights, beside, out, start, n);
    });
}

/// `n` columns from `start` on, which is even.
#[inline(always)]
fn between_part<T: Real>(
    weights: &Weights<'_, T>,
    beside: [&[T]; 2],
    out: &mut [T],
    start: usize,
    n: usize,
) {
    let out = &mut out[start..start + n];
    let (start, n) = (start / 2, n.div_ceil(2));
    let weights = weights.columns(start, n);
    let [upper, lower] = beside.map(|row| &row[start..start + n + 2]);
    let [_, u0, u1] = triple(upper);
    let [_, l0, l1] = triple(lower);
    let [_, above, _] = triple(weights.below[0]);
    let [_, below, _] = triple(weights.below[1]);
    let amid = weights.amid.map(|row| triple(row)[1]);
    let n = u0.len();
    for row in [u1, l0, l1, above, below, amid[0], amid[1], amid[2], amid[3]] {
        assert_eq!(row.len(), n);
    }
    let whole = out.len() / 2;
    for (i, pair) in out.chunks_exact_mut(2).enumerate() {
        pair[0] = above[i] * u0[i] + below[i] * l0[i];
        pair[1] =
            (amid[0][i] * u0[i] + amid[1][i] * u1[i]) + (amid[2][i] * l0[i] + amid[3][i] * l1[i]);
    }
    if out.len() > 2 * whole {
        out[2 * whole] = above[whole] * u0[whole] + below[whole] * l0[whole];
    }
}

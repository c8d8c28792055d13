//! The innermost loops of relaxations and residuals: one row at a time, written so that the compiler makes vectors of them.
//!
//! Rows come with one column more on both sides, so column x is element x + 1. No operation is fused or reassociated,
//! so all vector units give the same bits.

use std::ops::Range;

use super::blocks::{BLOCK, RowBlocks, in_blocks};
use crate::element::Real;
use crate::element::simd::{LINE, prefetch_to_second_level};

/// Rows of an operator of nine points around row y; columns from −1 to nx.
pub(super) struct NinePoint<'a, T> {
    pub east: &'a [T],
    pub south: &'a [T],
    pub south_east: &'a [T],
    pub south_west: &'a [T],
    pub excess: &'a [T],
    /// 1 / (all couplings + excess); 0 where that is 0.
    pub inverse: &'a [T],
    /// South, south-east and south-west of the row above.
    pub above: [&'a [T]; 3],
}

impl<'a, T> NinePoint<'a, T> {
    /// Of these columns alone.
    #[inline(always)]
    fn columns(&self, start: usize, n: usize) -> Self {
        let columns = |row: &'a [T]| &row[start..start + n + 2];
        Self {
            east: columns(self.east),
            south: columns(self.south),
            south_east: columns(self.south_east),
            south_west: columns(self.south_west),
            excess: columns(self.excess),
            inverse: columns(self.inverse),
            above: self.above.map(columns),
        }
    }
}

/// The three rows around row y; columns from −1 to nx.
#[derive(Clone, Copy)]
pub(super) struct Around<'a, T> {
    pub up: &'a [T],
    pub here: &'a [T],
    pub down: &'a [T],
    /// What is brought into the cache meanwhile.
    pub ahead: Ahead,
}

impl<'a, T> Around<'a, T> {
    /// Of these columns alone.
    #[inline(always)]
    fn columns(self, start: usize, n: usize) -> Self {
        let columns = |row: &'a [T]| &row[start..start + n + 2];
        Self {
            up: columns(self.up),
            here: columns(self.here),
            down: columns(self.down),
            ahead: self.ahead,
        }
    }
}

/// Rows that are needed soon. They are asked for by parts, each when some columns have been computed: a processor has some
/// ten lines under way, and who asks for a row at once waits for it.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead([Lines; 3]);

/// Lines of the cache: the address of the first, and how many.
#[derive(Clone, Copy, Default)]
struct Lines {
    from: usize,
    count: usize,
}

impl Lines {
    fn part(self, k: usize, of: usize) -> Self {
        let cut = |k: usize| self.count * k / of;
        Self {
            from: self.from + LINE * cut(k),
            count: cut(k + 1) - cut(k),
        }
    }
}

/// Columns between two parts: to compute them takes about as long as memory takes for some lines. The compiler knows how
/// many there are, and makes vectors of all.
const CHUNK: usize = 128;

/// How many parts a row of `n` columns has: a remainder belongs to the last one. Rows often are a column longer than a
/// power of two.
#[inline(always)]
fn chunks(n: usize) -> usize {
    (n / CHUNK).max(1)
}

impl Ahead {
    /// As these rows, and a mask.
    pub fn of<T>(rows: [Option<&[T]>; 2], mask: Option<&[u8]>) -> Self {
        fn lines<T>(row: Option<&[T]>) -> Lines {
            row.map_or(Lines::default(), |row| Lines {
                from: row.as_ptr().addr(),
                count: size_of_val(row).div_ceil(LINE),
            })
        }
        let [first, second] = rows.map(lines);
        Self([first, second, lines(mask)])
    }

    /// Part `k` of `of`.
    pub fn part(self, k: usize, of: usize) -> Self {
        Self(self.0.map(|lines| lines.part(k, of)))
    }

    /// How many lines of each are asked for in each of `chunks`.
    #[inline(always)]
    pub fn at_a_time(self, chunks: usize) -> [usize; 3] {
        self.0.map(|lines| lines.count.div_ceil(chunks))
    }

    /// Asks for those of chunk `k`.
    #[inline(always)]
    pub fn ask(self, k: usize, at_a_time: [usize; 3]) {
        for (Lines { from, count }, each) in self.0.into_iter().zip(at_a_time) {
            for line in (k * each).min(count)..((k + 1) * each).min(count) {
                prefetch_to_second_level(from + LINE * line);
            }
        }
    }
}

/// Asks for `blocks` of a row, or of one that has a column where that has `per`. Out of line: it is in every pass several times.
#[inline(never)]
pub(super) fn ask_for<T>(row: &[T], blocks: RowBlocks<'_>, per: usize) {
    let from = row.as_ptr().addr();
    let ask = |start: usize, n: usize| {
        let (start, n) = (
            start / per * size_of::<T>(),
            n.div_ceil(per) * size_of::<T>(),
        );
        for line in (0..n).step_by(LINE) {
            prefetch_to_second_level(from + start + line);
        }
        prefetch_to_second_level(from + start + n - 1);
    };
    in_blocks!(blocks, |start, n| ask(start, n));
}

/// Three neighbouring columns of a row, each as long as the row without its outermost columns.
#[inline(always)]
pub(super) fn triple<T>(row: &[T]) -> [&[T]; 3] {
    let n = row.len() - 2;
    [&row[..n], &row[1..n + 1], &row[2..n + 2]]
}

/// Makes `$part` of the columns `$columns`, `$len` of them from `$start` on at a time, and asks for what is brought into the cache
/// meanwhile. The compiler knows how long a whole part is. Not a function of a closure: the compiler calls closures, and makes no
/// vectors of them.
macro_rules! by_parts {
    ($ahead:expr, $columns:expr, |$start:ident, $len:ident| $part:expr) => {
        let (columns, ahead): (Range<usize>, Ahead) = ($columns, $ahead);
        let chunks = chunks(columns.len());
        let at_a_time = ahead.at_a_time(chunks);
        let parts = if columns.is_empty() { 0 } else { chunks };
        for k in 0..parts {
            ahead.ask(k, at_a_time);
            let $start = columns.start + k * CHUNK;
            let left = match k + 1 < chunks {
                true => CHUNK,
                false => columns.end - $start,
            };
            if left == CHUNK {
                let $len = CHUNK;
                $part
            } else {
                let $len = left;
                $part
            }
        }
    };
}

/// `out` = what b − Au is, or with `RELAX` u + ω D⁻¹ (b − Au), in `blocks`.
#[inline(always)]
pub(super) fn nine_point<T: Real, const RELAX: bool>(
    operator: &NinePoint<'_, T>,
    around: Around<'_, T>,
    right_side: &[T],
    omega: T,
    out: &mut [T],
    blocks: RowBlocks<'_>,
) {
    for &start in blocks.whole {
        let (start, n) = (start as usize, BLOCK);
        nine_point_part::<T, RELAX>(operator, around, right_side, omega, out, start, n);
    }
    by_parts!(around.ahead, blocks.rest..blocks.nx, |start, n| {
        nine_point_part::<T, RELAX>(operator, around, right_side, omega, out, start, n);
    });
}

/// `n` columns from `start` on.
#[inline(always)]
pub(super) fn nine_point_part<T: Real, const RELAX: bool>(
    operator: &NinePoint<'_, T>,
    around: Around<'_, T>,
    right_side: &[T],
    omega: T,
    out: &mut [T],
    start: usize,
    n: usize,
) {
    let (operator, around) = (operator.columns(start, n), around.columns(start, n));
    let (right_side, out) = (&right_side[start..start + n], &mut out[start..start + n]);
    let [uw, uc, ue] = triple(around.up);
    let [hw, hc, he] = triple(around.here);
    let [dw, dc, de] = triple(around.down);
    let [to_west, to_east, _] = triple(operator.east);
    let [_, to_south, _] = triple(operator.south);
    let [_, to_south_east, _] = triple(operator.south_east);
    let [_, to_south_west, _] = triple(operator.south_west);
    let [_, excess, _] = triple(operator.excess);
    let [_, inverse, _] = triple(operator.inverse);
    let [_, to_north, _] = triple(operator.above[0]);
    let [to_north_west, _, _] = triple(operator.above[1]);
    let [_, _, to_north_east] = triple(operator.above[2]);
    for row in [
        uw,
        uc,
        ue,
        hw,
        hc,
        he,
        dw,
        dc,
        de,
        to_west,
        to_east,
        to_south,
        to_south_east,
        to_south_west,
        excess,
        inverse,
        to_north,
        to_north_west,
        to_north_east,
        right_side,
        out,
    ] {
        assert_eq!(row.len(), n);
    }
    for x in 0..n {
        let centre = hc[x];
        let sides = (to_east[x] * (he[x] - centre) + to_west[x] * (hw[x] - centre))
            + (to_south[x] * (dc[x] - centre) + to_north[x] * (uc[x] - centre));
        let corners = (to_south_east[x] * (de[x] - centre) + to_north_west[x] * (uw[x] - centre))
            + (to_south_west[x] * (dw[x] - centre) + to_north_east[x] * (ue[x] - centre));
        let residual = right_side[x] + ((sides + corners) - excess[x] * centre);
        out[x] = if RELAX {
            centre + (omega * inverse[x]) * residual
        } else {
            residual
        };
    }
}

/// The couplings of an operator of nine points where they are the same everywhere, and have no excess.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SameCouplings<T> {
    /// To the points on both sides,
    pub across: T,
    /// to the corners,
    pub corner: T,
    /// and to the points above and below, with those to two corners each.
    pub along: T,
    pub inverse: T,
}

/// As [`nine_point`], with couplings that are the same everywhere.
///
/// What lies across is a second difference of each row, and the corners are the two of the rows above and below: a third less to
/// be added and multiplied. Only differences between neighbours are added, as there.
#[inline(always)]
pub(super) fn same_nine_point<T: Real, const RELAX: bool>(
    couplings: SameCouplings<T>,
    around: Around<'_, T>,
    right_side: &[T],
    omega: T,
    out: &mut [T],
) {
    by_parts!(around.ahead, 0..out.len(), |start, n| {
        same_part::<T, RELAX>(couplings, around, right_side, omega, out, start, n);
    });
}

/// `n` columns from `start` on.
#[inline(always)]
fn same_part<T: Real, const RELAX: bool>(
    couplings: SameCouplings<T>,
    around: Around<'_, T>,
    right_side: &[T],
    omega: T,
    out: &mut [T],
    start: usize,
    n: usize,
) {
    let around = around.columns(start, n);
    let (right_side, out) = (&right_side[start..start + n], &mut out[start..start + n]);
    let [uw, uc, ue] = triple(around.up);
    let [hw, hc, he] = triple(around.here);
    let [dw, dc, de] = triple(around.down);
    for row in [uw, uc, ue, hw, hc, he, dw, dc, de, right_side, out] {
        assert_eq!(row.len(), n);
    }
    let SameCouplings {
        across,
        corner,
        along,
        inverse,
    } = couplings;
    let step = omega * inverse;
    for x in 0..n {
        let centre = hc[x];
        let here = (hw[x] - centre) + (he[x] - centre);
        let up = (uw[x] - uc[x]) + (ue[x] - uc[x]);
        let down = (dw[x] - dc[x]) + (de[x] - dc[x]);
        let vertical = (uc[x] - centre) + (dc[x] - centre);
        let sum = (across * here + corner * (up + down)) + along * vertical;
        let residual = right_side[x] + sum;
        out[x] = if RELAX {
            centre + step * residual
        } else {
            residual
        };
    }
}

/// `out` = ω D⁻¹ b: `n` columns from `start` on of the first step from zero. `inverse` has columns from −1 on.
#[inline(always)]
pub(super) fn from_zero_part<T: Real>(
    inverse: &[T],
    right_side: &[T],
    omega: T,
    out: &mut [T],
    start: usize,
    n: usize,
) {
    let inverse = &inverse[start + 1..start + 1 + n];
    let (right_side, out) = (&right_side[start..start + n], &mut out[start..start + n]);
    for ((out, &inverse), &value) in out.iter_mut().zip(inverse).zip(right_side) {
        *out = (omega * inverse) * value;
    }
}

/// Rows of an operator of five points around row y; columns from −1 to nx.
#[derive(Clone, Copy)]
pub(super) struct FivePoint<'a> {
    pub east: &'a [f64],
    pub south: &'a [f64],
    pub excess: &'a [f64],
    /// 1 / (all couplings + excess); 0 where that is 0.
    pub inverse: &'a [f64],
    /// South of the row above.
    pub north: &'a [f64],
}

/// b − Au, and how far a relaxation goes along it.
trait Equation: Copy {
    /// Of these columns alone.
    fn columns(self, start: usize, n: usize) -> Self;
    /// Whether rows have `n` columns.
    fn fits(&self, n: usize) -> bool;
    /// At column `x`, where u is `here` and its neighbours to the east, west, south and north are `beside`.
    fn residual(&self, x: usize, here: f64, beside: [f64; 4], right_side: f64) -> f64;
    /// What a relaxation makes of it.
    fn relaxed(&self, x: usize, here: f64, beside: [f64; 4], right_side: f64) -> f64;
}

/// 4u − (the four neighbours) = b.
#[derive(Clone, Copy)]
struct Same {
    step: f64,
}

impl Equation for Same {
    #[inline(always)]
    fn columns(self, _: usize, _: usize) -> Self {
        self
    }
    #[inline(always)]
    fn fits(&self, _: usize) -> bool {
        true
    }
    #[inline(always)]
    fn residual(&self, _: usize, here: f64, beside: [f64; 4], right_side: f64) -> f64 {
        let [east, west, south, north] = beside;
        let sum = (east + west) + (south + north);
        (sum - 4.0 * here) + right_side
    }
    #[inline(always)]
    fn relaxed(&self, x: usize, here: f64, beside: [f64; 4], right_side: f64) -> f64 {
        here + self.step * self.residual(x, here, beside, right_side)
    }
}

/// Couplings that differ from place to place.
#[derive(Clone, Copy)]
struct Varying<'a> {
    rows: FivePoint<'a>,
    omega: f64,
}

impl<'a> Equation for Varying<'a> {
    #[inline(always)]
    fn columns(self, start: usize, n: usize) -> Self {
        let columns = |row: &'a [f64]| &row[start..start + n + 2];
        let rows = FivePoint {
            east: columns(self.rows.east),
            south: columns(self.rows.south),
            excess: columns(self.rows.excess),
            inverse: columns(self.rows.inverse),
            north: columns(self.rows.north),
        };
        Self { rows, ..self }
    }
    #[inline(always)]
    fn fits(&self, n: usize) -> bool {
        let FivePoint {
            east,
            south,
            excess,
            inverse,
            north,
        } = self.rows;
        [east, south, excess, inverse, north]
            .iter()
            .all(|row| row.len() == n + 2)
    }
    #[inline(always)]
    fn residual(&self, x: usize, here: f64, beside: [f64; 4], right_side: f64) -> f64 {
        let rows = &self.rows;
        let [east, west, south, north] = beside;
        let across = rows.east[x + 1] * (east - here) + rows.east[x] * (west - here);
        let down = rows.south[x + 1] * (south - here) + rows.north[x + 1] * (north - here);
        right_side + ((across + down) - rows.excess[x + 1] * here)
    }
    #[inline(always)]
    fn relaxed(&self, x: usize, here: f64, beside: [f64; 4], right_side: f64) -> f64 {
        let step = self.omega * self.rows.inverse[x + 1];
        here + step * self.residual(x, here, beside, right_side)
    }
}

/// As [`nine_point`], for 4u − (the four neighbours) = b, without the cells whose byte in `fixed` is not 0: they keep
/// their value, and their residual is 0. `step` is ω over the diagonal.
#[inline(always)]
pub(super) fn five_point(
    around: Around<'_, f64>,
    right_side: Option<&[f64]>,
    fixed: Option<&[u8]>,
    step: f64,
    wanted: impl Wanted,
    blocks: RowBlocks<'_>,
) {
    five_point_of(Same { step }, around, right_side, fixed, wanted, blocks);
}

/// As [`five_point`], with couplings that differ from place to place.
#[inline(always)]
pub(super) fn five_varying_points(
    rows: FivePoint<'_>,
    around: Around<'_, f64>,
    right_side: Option<&[f64]>,
    fixed: Option<&[u8]>,
    omega: f64,
    wanted: impl Wanted,
    blocks: RowBlocks<'_>,
) {
    let equation = Varying { rows, omega };
    five_point_of(equation, around, right_side, fixed, wanted, blocks);
}

#[inline(always)]
fn five_point_of(
    equation: impl Equation,
    around: Around<'_, f64>,
    right_side: Option<&[f64]>,
    fixed: Option<&[u8]>,
    mut wanted: impl Wanted,
    blocks: RowBlocks<'_>,
) {
    // Only a mask leaves columns out.
    if let Some(fixed) = fixed {
        for &start in blocks.whole {
            let (start, n, fixed) = (start as usize, BLOCK, Some(fixed));
            five_point_part(equation, around, right_side, fixed, &mut wanted, start, n);
        }
    }
    by_parts!(around.ahead, blocks.rest..blocks.nx, |start, n| {
        five_point_part(equation, around, right_side, fixed, &mut wanted, start, n);
    });
}

/// `n` columns from `start` on.
#[inline(always)]
fn five_point_part(
    equation: impl Equation,
    around: Around<'_, f64>,
    right_side: Option<&[f64]>,
    fixed: Option<&[u8]>,
    wanted: &mut impl Wanted,
    start: usize,
    n: usize,
) {
    let (equation, around) = (equation.columns(start, n), around.columns(start, n));
    let wanted = wanted.columns(start, n);
    let right_side = right_side.map(|row| &row[start..start + n]);
    let fixed = fixed.map(|row| &row[start..start + n]);
    match (right_side, fixed) {
        (None, None) => five_point_with(equation, around, |_| 0.0, |_| 0, wanted, n),
        (Some(b), None) => {
            let b = &b[..n];
            five_point_with(equation, around, |x| b[x], |_| 0, wanted, n);
        }
        (None, Some(fixed)) => {
            let fixed = &fixed[..n];
            five_point_with(equation, around, |_| 0.0, |x| fixed[x], wanted, n);
        }
        (Some(b), Some(fixed)) => {
            let (b, fixed) = (&b[..n], &fixed[..n]);
            five_point_with(equation, around, |x| b[x], |x| fixed[x], wanted, n);
        }
    }
}

/// What a row is computed for.
pub(super) trait Wanted {
    type Part<'p>: Wanted
    where
        Self: 'p;
    /// Of these columns alone.
    fn columns(&mut self, start: usize, n: usize) -> Self::Part<'_>;
    /// Whether rows have `n` columns.
    fn fits(&self, n: usize) -> bool;
    /// Takes what comes of column `x`: the residual, and the value before and after a step. `keep`: all bits where the value
    /// stays, else none.
    fn take(&mut self, x: usize, residual: f64, before: f64, after: f64, keep: u64);
}

/// The relaxed row.
pub(super) struct Relaxed<'a>(pub &'a mut [f64]);
/// The residual.
pub(super) struct Residual<'a>(pub &'a mut [f64]);

impl Wanted for Relaxed<'_> {
    type Part<'p>
        = Relaxed<'p>
    where
        Self: 'p;
    #[inline(always)]
    fn columns(&mut self, start: usize, n: usize) -> Relaxed<'_> {
        Relaxed(&mut self.0[start..start + n])
    }
    #[inline(always)]
    fn fits(&self, n: usize) -> bool {
        self.0.len() == n
    }
    #[inline(always)]
    fn take(&mut self, x: usize, _: f64, before: f64, after: f64, keep: u64) {
        self.0[x] = choose(keep, before, after);
    }
}

impl Wanted for Residual<'_> {
    type Part<'p>
        = Residual<'p>
    where
        Self: 'p;
    #[inline(always)]
    fn columns(&mut self, start: usize, n: usize) -> Residual<'_> {
        Residual(&mut self.0[start..start + n])
    }
    #[inline(always)]
    fn fits(&self, n: usize) -> bool {
        self.0.len() == n
    }
    #[inline(always)]
    fn take(&mut self, x: usize, residual: f64, _: f64, _: f64, keep: u64) {
        self.0[x] = choose(keep, 0.0, residual);
    }
}

/// `old` if `fixed` is not 0, else `new`: by bits, of which the compiler makes vectors.
#[inline(always)]
pub(super) fn hold(fixed: u8, old: f64, new: f64) -> f64 {
    choose(bits_of(fixed), old, new)
}

/// All bits if `fixed` is not 0, else none.
#[inline(always)]
fn bits_of(fixed: u8) -> u64 {
    u64::from(fixed != 0).wrapping_neg()
}

/// The bits `keep` of `old`, and the others of `new`.
#[inline(always)]
fn choose(keep: u64, old: f64, new: f64) -> f64 {
    f64::from_bits((old.to_bits() & keep) | (new.to_bits() & !keep))
}

#[inline(always)]
fn five_point_with(
    equation: impl Equation,
    around: Around<'_, f64>,
    right_side: impl Fn(usize) -> f64,
    fixed: impl Fn(usize) -> u8,
    mut wanted: impl Wanted,
    n: usize,
) {
    let [west, here, east] = triple(around.here);
    let [_, up, _] = triple(around.up);
    let [_, down, _] = triple(around.down);
    for row in [up, west, here, east, down] {
        assert_eq!(row.len(), n);
    }
    assert!(wanted.fits(n) && equation.fits(n));
    for x in 0..n {
        let centre = here[x];
        let beside = [east[x], west[x], down[x], up[x]];
        let residual = equation.residual(x, centre, beside, right_side(x));
        let after = equation.relaxed(x, centre, beside, right_side(x));
        wanted.take(x, residual, centre, after, bits_of(fixed(x)));
    }
}

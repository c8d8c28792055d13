//! Minima and maxima along an axis, and where they are: of rows, and of columns, of any type. The rule is that of
//! [`Reducer`](crosswarp::prim::Reducer): by rank, and of equals the first.

use crosswarp::prim::internal::first_extremum;
use crosswarp::prim::{Element, Loop, Simd};

/// Bytes of a row that are worked on at a time where rows are long: a page.
pub const WIDE_BYTES: usize = 4096;
/// Rows of a matrix of few columns that lie side by side in what is kept, at most,
const FOLDED: usize = 64;
/// and elements of these rows: so that rows that are read in turn are in pages of their own. (Maxima of 1.5 10^5 rows of 100
/// `f64` took 9 ms instead of 16 on a Zen 3, one thread.)
const SIDE: usize = 4096;
/// Rows that are looked at before what is kept is written back.
const ROWS: usize = 16;
/// Shortest rows whose extrema are found by the function of whole arrays: in a loop over rows the compiler makes poor vectors
/// of it, and a call costs what a few dozen elements do.
const LONG: usize = 256;

/// Where the extrema of rows of `len` elements are, one for each element of `out`; there is at least one element.
pub fn places<T: Element, const MAX: bool>(values: &[T], len: usize, out: &mut [u32]) {
    let simd = Simd::detect();
    if len < LONG {
        simd.compile(ShortRows::<T, MAX> { values, len, out });
        return;
    }
    for (place, row) in out.iter_mut().zip(values.chunks_exact(len)) {
        *place = first_extremum::<T, MAX>(simd, row).map_or(0, |place| place as u32);
    }
}

/// [`places`] of short rows.
struct ShortRows<'a, T, const MAX: bool> {
    values: &'a [T],
    len: usize,
    out: &'a mut [u32],
}

impl<T: Element, const MAX: bool> Loop for ShortRows<'_, T, MAX> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (row, out) in self.out.iter_mut().enumerate() {
            let values = &self.values[row * self.len..(row + 1) * self.len];
            *out = first_of::<T, MAX>(values);
        }
    }
}

/// The index of the first extremum.
#[inline(always)]
fn first_of<T: Element, const MAX: bool>(values: &[T]) -> u32 {
    if values.len() < 16 {
        // Too few for vectors.
        let mut best = (values[0].rank::<MAX>(), 0);
        for (k, value) in values.iter().enumerate().skip(1) {
            let rank = value.rank::<MAX>();
            best = if rank < best.0 {
                (rank, k as u32)
            } else {
                best
            };
        }
        return best.1;
    }
    let Some(best) = T::best_order::<MAX>(values) else {
        let nan = values.iter().map(|value| value.rank::<MAX>()).min();
        let before = values
            .iter()
            .take_while(|value| Some(value.rank::<MAX>()) != nan);
        return before.count() as u32;
    };
    T::place_of(values, best) as u32
}

/// What a thread needs to work on columns.
pub struct Scratch<T: Element> {
    /// The extrema.
    pub values: Vec<T>,
    /// In which rows they first are, if that was asked.
    pub rows: Vec<u32>,
    ranks: Vec<T::Rank>,
}

impl<T: Element> Scratch<T> {
    pub fn new() -> Scratch<T> {
        Scratch {
            values: Vec::new(),
            rows: Vec::new(),
            ranks: Vec::new(),
        }
    }
}

/// Takes in the extrema of other rows of the same columns, and where they are, if that is known.
pub fn merge<T: Element, const MAX: bool>(
    (values, rows): (&mut [T], &mut [u32]),
    (others, places): (&[T], &[u32]),
) {
    let row_of = |rows: &[u32], column| rows.get(column).copied().unwrap_or(0);
    for (column, (value, &its)) in values.iter_mut().zip(others).enumerate() {
        // Of equals the first.
        let one = (value.rank::<MAX>(), row_of(rows, column));
        if (its.rank::<MAX>(), row_of(places, column)) < one {
            *value = its;
            if let Some(row) = rows.get_mut(column) {
                *row = row_of(places, column);
            }
        }
    }
}

/// The extrema of `width` columns, and with `PLACES` the rows in which they first are, of a matrix that begins `values`
/// and whose rows, at least one, are `stride` elements apart.
///
/// Runs best in [`Simd::compile`](crosswarp::prim::Simd::compile).
pub struct Columns<'a, T: Element, const MAX: bool, const PLACES: bool> {
    pub values: &'a [T],
    pub rows: usize,
    pub stride: usize,
    pub width: usize,
    /// What comes out.
    pub scratch: &'a mut Scratch<T>,
}

impl<T: Element, const MAX: bool, const PLACES: bool> Loop for Columns<'_, T, MAX, PLACES> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (width, values) = (self.width, self.values);
        let folds = (SIDE / width.max(1)).min(FOLDED);
        let narrow = width == self.stride && folds > 1 && self.rows >= folds;
        // Some rows are one long row, until the last few.
        let (folded, long) = match narrow {
            true => (self.rows / folds, folds * width),
            false => (self.rows, width),
        };
        let stride = if narrow { long } else { self.stride };
        let Scratch {
            values: best,
            rows,
            ranks,
        } = self.scratch;
        best.clear();
        best.extend(&values[..long]);
        rows.clear();
        rows.resize(if PLACES { long } else { 0 }, 0);
        let sure = best_of::<Quick<T, MAX>, T, PLACES>(best, rows, values, stride, folded);
        if !sure {
            ranks.clear();
            ranks.extend(values[..long].iter().map(|value| value.rank::<MAX>()));
            rows.fill(0);
            best_of::<ByRank<T, MAX>, T, PLACES>(ranks, rows, values, stride, folded);
            best.clear();
            best.extend(ranks.iter().map(|&rank| T::of_rank::<MAX>(rank)));
        }
        if !narrow {
            return;
        }
        for column in 0..width {
            let row_of = |at: usize| match PLACES {
                true => rows[at] * folds as u32 + (at / width) as u32,
                false => 0,
            };
            let kept = (column..long).step_by(width);
            let found = kept.map(|at| (best[at].rank::<MAX>(), row_of(at)));
            let rest = (folded * folds..self.rows)
                .map(|row| (values[row * width + column].rank::<MAX>(), row as u32));
            // The first of equals is the one in the first row.
            if let Some((rank, row)) = found.chain(rest).min() {
                best[column] = T::of_rank::<MAX>(rank);
                if PLACES {
                    rows[column] = row;
                }
            }
        }
        best.truncate(width);
        rows.truncate(width);
    }
}

/// A way to compare.
trait Way<T> {
    type Key: Copy;
    fn key(value: T) -> Self::Key;
    /// Whether the first comes before the second.
    fn beats(first: Self::Key, second: Self::Key) -> bool;
    /// Whether the way does not say all if a value is among the others,
    fn is_nan(value: T) -> bool;
    /// and if it comes before the others.
    fn is_doubtful(key: Self::Key) -> bool;
}

struct Quick<T, const MAX: bool>(std::marker::PhantomData<T>);

impl<T: Element, const MAX: bool> Way<T> for Quick<T, MAX> {
    type Key = T;
    #[inline(always)]
    fn key(value: T) -> T {
        value
    }
    #[inline(always)]
    fn beats(first: T, second: T) -> bool {
        first.beats::<MAX>(second)
    }
    #[inline(always)]
    fn is_nan(value: T) -> bool {
        value.is_a_nan()
    }
    #[inline(always)]
    fn is_doubtful(key: T) -> bool {
        key.is_a_zero()
    }
}

struct ByRank<T, const MAX: bool>(std::marker::PhantomData<T>);

impl<T: Element, const MAX: bool> Way<T> for ByRank<T, MAX> {
    type Key = T::Rank;
    #[inline(always)]
    fn key(value: T) -> T::Rank {
        value.rank::<MAX>()
    }
    #[inline(always)]
    fn beats(first: T::Rank, second: T::Rank) -> bool {
        first < second
    }
    #[inline(always)]
    fn is_nan(_: T) -> bool {
        false
    }
    #[inline(always)]
    fn is_doubtful(_: T::Rank) -> bool {
        false
    }
}

/// Takes what is better of `rows` rows into `best`, and its row's number into `places`; whether that is sure.
#[inline(always)]
fn best_of<W: Way<T>, T: Element, const PLACES: bool>(
    best: &mut [W::Key],
    places: &mut [u32],
    values: &[T],
    stride: usize,
    rows: usize,
) -> bool {
    let mut nan = false;
    for first in (0..rows).step_by(ROWS) {
        let last = rows.min(first + ROWS);
        let (done, any) = best_by::<W, T, PLACES, 32>(0, best, places, values, stride, first..last);
        // Columns that are looked at twice stay what they are.
        let (done, again) = match best.len().checked_sub(32) {
            Some(at) if done < best.len() => {
                best_by::<W, T, PLACES, 32>(at, best, places, values, stride, first..last)
            }
            _ => (done, false),
        };
        let (_, more) = best_by::<W, T, PLACES, 1>(done, best, places, values, stride, first..last);
        nan |= any | again | more;
    }
    !best.iter().fold(nan, |any, &key| any | W::is_doubtful(key))
}

/// [`best_of`] from `at` on, `C` at a time, as long as there are so many: up to where, and whether there is a NaN.
#[inline(always)]
fn best_by<W: Way<T>, T: Element, const PLACES: bool, const C: usize>(
    mut at: usize,
    best: &mut [W::Key],
    places: &mut [u32],
    values: &[T],
    stride: usize,
    rows: std::ops::Range<usize>,
) -> (usize, bool) {
    let mut nan = false;
    while at + C <= best.len() {
        let mut keys = [best[at]; C];
        keys.copy_from_slice(&best[at..at + C]);
        let mut place = [0; C];
        if PLACES {
            place.copy_from_slice(&places[at..at + C]);
        }
        for row in rows.clone() {
            let values = &values[row * stride + at..row * stride + at + C];
            for j in 0..C {
                let key = W::key(values[j]);
                let better = W::beats(key, keys[j]);
                keys[j] = if better { key } else { keys[j] };
                if PLACES {
                    place[j] = if better { row as u32 } else { place[j] };
                }
            }
            nan |= values
                .iter()
                .fold(false, |any, &value| any | W::is_nan(value));
        }
        best[at..at + C].copy_from_slice(&keys);
        if PLACES {
            places[at..at + C].copy_from_slice(&place);
        }
        at += C;
    }
    (at, nan)
}

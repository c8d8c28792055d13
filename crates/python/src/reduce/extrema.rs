//! Minima and maxima along an axis, and where they are: of rows, and of columns, of any type. The rule is that of
//! [`Reducer`](crosswarp::prim::Reducer): by rank, and of equals the first.

use crosswarp::prim::{Element, Loop};

/// Bytes of a row that are worked on at a time where rows are long: a page.
pub const WIDE_BYTES: usize = 4096;
/// Rows of a matrix of few columns that lie side by side in what is kept.
const FOLDED: usize = 64;
/// Columns that are few.
const NARROW: usize = 64;
/// Rows that are looked at before what is kept is written back.
const ROWS: usize = 16;

/// Where the extrema of rows of `len` elements are, one for each element of `out`; there is at least one element.
///
/// Runs best in [`Simd::compile`](crosswarp::prim::Simd::compile).
pub struct Rows<'a, T, const MAX: bool> {
    pub values: &'a [T],
    pub len: usize,
    pub out: &'a mut [u32],
}

impl<T: Element, const MAX: bool> Loop for Rows<'_, T, MAX> {
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
    let (mut least, mut greatest) = (values[0].order(), values[0].order());
    for value in values {
        let order = value.order();
        least = if order < least { order } else { least };
        greatest = if order > greatest { order } else { greatest };
    }
    if T::has_nan(least, greatest) {
        let nan = values.iter().map(|value| value.rank::<MAX>()).min();
        let before = values
            .iter()
            .take_while(|value| Some(value.rank::<MAX>()) != nan);
        return before.count() as u32;
    }
    let best = if MAX { greatest } else { least };
    let mut at = 0;
    // Some at a time, so that the search is made of vectors, too.
    for some in values.chunks(64) {
        let is_here = some
            .iter()
            .fold(false, |found, value| found | (value.order() == best));
        if is_here {
            break;
        }
        at += some.len();
    }
    let before = values[at..]
        .iter()
        .take_while(|value| value.order() != best);
    (at + before.count()) as u32
}

/// What a thread needs to work on columns.
pub struct Scratch<T: Element> {
    pub ranks: Vec<T::Rank>,
    pub rows: Vec<u32>,
}

impl<T: Element> Scratch<T> {
    pub fn new() -> Scratch<T> {
        Scratch {
            ranks: Vec::new(),
            rows: Vec::new(),
        }
    }
}

/// The ranks of the extrema of columns, one for each element of `ranks`, or the rows in which they first are, of a
/// matrix that begins `values` and whose rows, at least one, are `stride` elements apart.
///
/// Runs best in [`Simd::compile`](crosswarp::prim::Simd::compile).
pub struct Columns<'a, T: Element, const MAX: bool, const PLACES: bool> {
    pub values: &'a [T],
    pub rows: usize,
    pub stride: usize,
    pub width: usize,
    /// What comes out: ranks, and with `PLACES` rows.
    pub scratch: &'a mut Scratch<T>,
}

impl<T: Element, const MAX: bool, const PLACES: bool> Loop for Columns<'_, T, MAX, PLACES> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (width, values) = (self.width, self.values);
        let Scratch { ranks, rows } = self.scratch;
        ranks.clear();
        rows.clear();
        if width != self.stride || width > NARROW || self.rows < FOLDED {
            ranks.extend(values[..width].iter().map(|value| value.rank::<MAX>()));
            rows.resize(if PLACES { width } else { 0 }, 0);
            best_of::<T, MAX, PLACES>(ranks, rows, values, self.stride, self.rows);
            return;
        }
        // Some rows are one long row, until the last few.
        let (folded, long) = (self.rows / FOLDED, FOLDED * width);
        ranks.extend(values[..long].iter().map(|value| value.rank::<MAX>()));
        rows.resize(if PLACES { long } else { 0 }, 0);
        best_of::<T, MAX, PLACES>(ranks, rows, values, long, folded);
        for column in 0..width {
            let row_of = |at: usize| match PLACES {
                true => rows[at] * FOLDED as u32 + (at / width) as u32,
                false => 0,
            };
            let kept = (column..long).step_by(width);
            let found = kept.map(|at| (ranks[at], row_of(at)));
            let rest = (folded * FOLDED..self.rows)
                .map(|row| (values[row * width + column].rank::<MAX>(), row as u32));
            // The first of equals is the one in the first row.
            if let Some((rank, row)) = found.chain(rest).min() {
                ranks[column] = rank;
                if PLACES {
                    rows[column] = row;
                }
            }
        }
        ranks.truncate(width);
        rows.truncate(width);
    }
}

/// Takes what is better of `rows` rows into `ranks`, and its row's number into `places`.
#[inline(always)]
fn best_of<T: Element, const MAX: bool, const PLACES: bool>(
    ranks: &mut [T::Rank],
    places: &mut [u32],
    values: &[T],
    stride: usize,
    rows: usize,
) {
    for first in (0..rows).step_by(ROWS) {
        let last = rows.min(first + ROWS);
        let done = best_by::<T, MAX, PLACES, 32>(0, ranks, places, values, stride, first..last);
        best_by::<T, MAX, PLACES, 1>(done, ranks, places, values, stride, first..last);
    }
}

#[inline(always)]
fn best_by<T: Element, const MAX: bool, const PLACES: bool, const C: usize>(
    mut at: usize,
    ranks: &mut [T::Rank],
    places: &mut [u32],
    values: &[T],
    stride: usize,
    rows: std::ops::Range<usize>,
) -> usize {
    while at + C <= ranks.len() {
        let mut best = [ranks[at]; C];
        best.copy_from_slice(&ranks[at..at + C]);
        let mut place = [0; C];
        if PLACES {
            place.copy_from_slice(&places[at..at + C]);
        }
        for row in rows.clone() {
            let values = &values[row * stride + at..row * stride + at + C];
            for j in 0..C {
                let rank = values[j].rank::<MAX>();
                let better = rank < best[j];
                best[j] = if better { rank } else { best[j] };
                if PLACES {
                    place[j] = if better { row as u32 } else { place[j] };
                }
            }
        }
        ranks[at..at + C].copy_from_slice(&best);
        if PLACES {
            places[at..at + C].copy_from_slice(&place);
        }
        at += C;
    }
    at
}

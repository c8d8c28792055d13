//! The coarse operator PᵀAP of a plane, row by row: see `galerkin.rs`.
//!
//! The formula is written once, over [`Places`]: for several coarse points at once, all of whose places are there, and for the few
//! at a seam, where an axis of odd length wraps around. A loop over places takes three to six times as long as code in which the
//! compiler knows each.
#![allow(unsafe_code)] // Vectors.

use std::marker::PhantomData;
use std::ops::{Add, Mul, Range, Sub};

use super::interpolation::{AMID, BELOW, RIGHT, WEIGHTS, WeightRow};
use super::neighbours::Neighbours;
use super::operator_rows::{
    BLOCK, EAST, EXCESS, GHOSTS, OperatorRow, PARTS, SOUTH, SOUTH_EAST, SOUTH_WEST, SPAN, SplitRow,
    are_zero, load,
};
use super::shape::Axis;
use super::written::LANES;
use crate::element::Real;
use crate::element::simd::{Array, Isa, Simd, Unit};

/// What a coarse row is made of.
pub(super) struct Nearby<'a> {
    /// The rows at places −2 … 2 along the columns.
    pub rows: [&'a SplitRow; 5],
    /// Of coarse rows −1, 0, 1.
    pub weights: [&'a WeightRow; 3],
    /// The fine axes, and the coarse row.
    pub x: Axis,
    pub y: Axis,
    pub j: isize,
    /// Whether points are coupled across corners.
    pub corners: bool,
    /// Of the rows; see [`are_zero`].
    pub any: &'a [u64],
}

impl Nearby<'_> {
    /// Sets the coarse row `out`, which has zeros.
    pub fn product(&self, isa: Isa, out: &mut OperatorRow) {
        let columns = self.x.coarser().len;
        // At the ends of an axis that wraps around at an odd length, coarse points are neighbours.
        let along = Neighbours::of(self.y, self.j);
        let inner = if self.y.wraps && !(along.before && along.after) {
            0..0
        } else if self.x.wraps && !self.x.has_between(-1) {
            1..columns.saturating_sub(1).max(1)
        } else {
            0..columns
        };
        match isa.unit() {
            // As fast as with vectors of 512 bits: sums wait for each other.
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` is only made of a unit that this processor has; who has AVX-512F has AVX2.
            Unit::Avx512 | Unit::Avx2 => unsafe { avx2(self, inner.clone(), out) },
            // SAFETY: arrays need no vector unit.
            Unit::Plain => unsafe { inside::<<f64 as Real>::Plain>(self, inner.clone(), out) },
        }
        for i in (0..inner.start).chain(inner.end..columns) {
            // Where nothing is coupled, nor are the coarse points.
            if are_zero(self.any, i) {
                continue;
            }
            let seam = Seam {
                nearby: self,
                i: i as isize,
                across: Neighbours::of(self.x, i as isize),
                along,
            };
            let mut parts = [[0.0; LANES]; PARTS];
            seam.product(self.corners, &mut parts, 0);
            out.written.add(i..i + 1);
            for (out, values) in out.parts.iter_mut().zip(parts) {
                out[i] = values[0];
            }
        }
    }
}

/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(nearby: &Nearby<'_>, inner: Range<usize>, out: &mut OperatorRow) {
    // SAFETY: passed on.
    unsafe { inside::<<f64 as Real>::Avx2>(nearby, inner, out) }
}

/// The columns `inner`, whose places are all there.
///
/// # Safety
/// The processor must have the vector unit of `V`.
#[inline(always)]
unsafe fn inside<V: Simd<Elem = f64>>(
    nearby: &Nearby<'_>,
    inner: Range<usize>,
    out: &mut OperatorRow,
) {
    for first in inner.clone().step_by(BLOCK) {
        let is_wanted = |i: usize| inner.contains(&i) && !are_zero(nearby.any, i);
        let wanted: [bool; BLOCK / LANES] =
            std::array::from_fn(|group| is_wanted(first + group * LANES));
        if !wanted.contains(&true) {
            continue;
        }
        let block = Block::of(nearby, first);
        for (group, _) in wanted.into_iter().enumerate().filter(|(_, wanted)| *wanted) {
            let mut parts = [[0.0; LANES]; PARTS];
            for lane in (0..LANES).step_by(V::LANES) {
                // SAFETY: the caller vouches for the unit.
                let inside = unsafe { Inside::<V>::new(&block, group * LANES + lane) };
                inside.product(nearby.corners, &mut parts, lane);
            }
            let i = first + group * LANES;
            let count = LANES.min(inner.end - i);
            out.written.add(i..i + count);
            for (out, values) in out.parts.iter_mut().zip(&parts) {
                out[i..i + count].copy_from_slice(&values[..count]);
            }
        }
    }
}

/// Values of several points. There are some only where the processor has the vector unit of `V`.
#[derive(Clone, Copy)]
struct Values<V>(V);

macro_rules! lane_by_lane {
    ($($operator:ident $name:ident),*) => {$(
        impl<V: Simd> $operator for Values<V> {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                // SAFETY: there are values, so there is the unit.
                Values(unsafe { self.0.$name(other.0) })
            }
        }
    )*};
}
lane_by_lane!(Add add, Sub sub, Mul mul);

/// A column and a row: see [`Neighbours`].
type Place = [isize; 2];

/// What is around coarse points.
trait Places {
    /// Of as many points.
    type V: Simd<Elem = f64>;

    /// For all of them.
    fn same(&self, value: f64) -> Values<Self::V>;
    /// Whether there are points at a place.
    fn has(&self, place: Place) -> bool;
    /// The place of the neighbour of `place` in direction `step`.
    fn next(&self, place: Place, step: Place) -> Place;
    /// Part `part` of the row of a place, `shift` columns from it.
    fn value(&self, part: usize, place: Place, shift: isize) -> Values<Self::V>;
    /// Part `part` of the weights of coarse point (i, j), counted from here.
    fn stored(&self, part: usize, i: isize, j: isize) -> Values<Self::V>;

    /// The weights with which the points at `place` take the values of the coarse points `of`.
    #[inline(always)]
    fn weight(&self, [x, y]: Place, of: Place) -> Values<Self::V> {
        // The coarse point before the place, and where the parent is from there.
        let (i, j) = (x.div_euclid(2), y.div_euclid(2));
        let [right, below] = [(of[0] - i) as usize, (of[1] - j) as usize];
        let part = match (x.rem_euclid(2), y.rem_euclid(2)) {
            (0, 0) => return self.same(1.0),
            (1, 0) => RIGHT[right],
            (0, 1) => BELOW[below],
            _ => AMID[2 * below + right],
        };
        self.stored(part, i, j)
    }

    /// The interpolants of 1 at a place.
    #[inline(always)]
    fn of_one(&self, [x, y]: Place) -> Values<Self::V> {
        let part = match (x.rem_euclid(2), y.rem_euclid(2)) {
            (0, 0) => return self.same(1.0),
            (1, 0) => 0,
            (0, 1) => 1,
            _ => 2,
        };
        self.stored(WEIGHTS + part, x.div_euclid(2), y.div_euclid(2))
    }

    /// The couplings of the points at a place to their neighbours in direction `step`.
    #[inline(always)]
    fn coupling(&self, place: Place, step: Place) -> Values<Self::V> {
        let above = [place[0], self.next(place, [0, -1])[1].max(-2)];
        match step {
            [1, 0] => self.value(EAST, place, 0),
            [-1, 0] => self.value(EAST, place, -1),
            [0, 1] => self.value(SOUTH, place, 0),
            [1, 1] => self.value(SOUTH_EAST, place, 0),
            [-1, 1] => self.value(SOUTH_WEST, place, 0),
            [0, -1] => self.value(SOUTH, above, 0),
            [-1, -1] => self.value(SOUTH_EAST, above, -1),
            _ => self.value(SOUTH_WEST, above, 1),
        }
    }

    /// The parts of the coarse points, in lanes from `lane` on.
    #[inline(always)]
    fn product(&self, corners: bool, out: &mut [[f64; LANES]; PARTS], lane: usize) {
        let zero = self.same(0.0);
        let mut sums = Sums {
            parts: [zero; PARTS],
            size: zero,
        };
        // Not a loop: see above.
        self.add([-1, -1], corners, &mut sums);
        self.add([0, -1], corners, &mut sums);
        self.add([1, -1], corners, &mut sums);
        self.add([-1, 0], corners, &mut sums);
        self.add([0, 0], corners, &mut sums);
        self.add([1, 0], corners, &mut sums);
        self.add([-1, 1], corners, &mut sums);
        self.add([0, 1], corners, &mut sums);
        self.add([1, 1], corners, &mut sums);
        let lanes = |values: Values<Self::V>| {
            let mut lanes = [0.0; LANES];
            const { assert!(Self::V::LANES <= LANES) };
            // SAFETY: there are values, so there is the unit; there are enough lanes.
            unsafe { values.0.store(lanes.as_mut_ptr()) };
            lanes
        };
        let size = lanes(sums.size);
        for (out, part) in out.iter_mut().zip(sums.parts) {
            let part = lanes(part);
            for k in 0..Self::V::LANES {
                // What is left where all should cancel is rounding; a coupling made of it would tie what is not tied.
                let cancels = part[k].abs() <= 1e-14 * size[k];
                out[lane + k] = if cancels { 0.0 } else { part[k] };
            }
        }
    }

    /// Adds what the points at `place` contribute.
    #[inline(always)]
    fn add(&self, place: Place, corners: bool, sums: &mut Sums<Self::V>) {
        if !self.has(place) {
            return;
        }
        let excess = self.value(EXCESS, place, 0);
        let one = self.of_one(place);
        let mut point = Point {
            place,
            own: self.weight(place, [0, 0]),
            one,
            diagonal: excess,
            of_one: excess * one,
        };
        self.add_towards([1, 0], &mut point, sums);
        self.add_towards([-1, 0], &mut point, sums);
        self.add_towards([0, 1], &mut point, sums);
        self.add_towards([0, -1], &mut point, sums);
        if corners {
            self.add_towards([1, 1], &mut point, sums);
            self.add_towards([-1, -1], &mut point, sums);
            self.add_towards([-1, 1], &mut point, sums);
            self.add_towards([1, -1], &mut point, sums);
        }
        let Point {
            own,
            diagonal,
            of_one,
            ..
        } = point;
        let diagonal = own * diagonal;
        for (part, of) in OFFSETS.into_iter().enumerate() {
            if has_parent(place, of) {
                sums.parts[part] = sums.parts[part] - diagonal * self.weight(place, of);
            }
        }
        sums.parts[EXCESS] = sums.parts[EXCESS] + own * of_one;
        sums.size = sums.size + diagonal;
    }

    /// Adds what the couplings in direction `step` contribute.
    #[inline(always)]
    fn add_towards(&self, step: Place, point: &mut Point<Self::V>, sums: &mut Sums<Self::V>) {
        let coupling = self.coupling(point.place, step);
        let there = self.next(point.place, step);
        point.diagonal = point.diagonal + coupling;
        point.of_one = point.of_one + coupling * (point.one - self.of_one(there));
        let coupling = point.own * coupling;
        for (part, of) in OFFSETS.into_iter().enumerate() {
            if has_parent(there, of) {
                sums.parts[part] = sums.parts[part] + coupling * self.weight(there, of);
            }
        }
    }
}

/// East, south, south-east, south-west, in the order of the parts.
const OFFSETS: [Place; 4] = [[1, 0], [0, 1], [1, 1], [-1, 1]];

/// Whether points at `place` take values of the coarse points `of`.
#[inline(always)]
fn has_parent(place: Place, of: Place) -> bool {
    let has = |place: isize, of: isize| {
        let first = place.div_euclid(2);
        of == first || of == first + place.rem_euclid(2)
    };
    has(place[0], of[0]) && has(place[1], of[1])
}

/// Parts of the coarse points, as far as they have been added.
struct Sums<V> {
    parts: [Values<V>; PARTS],
    /// What all couplings of the coarse point come to, as far as rounding is concerned.
    size: Values<V>,
}

/// Points at a place.
struct Point<V> {
    place: Place,
    /// Their weights.
    own: Values<V>,
    /// The interpolants of 1,
    one: Values<V>,
    /// the diagonal,
    diagonal: Values<V>,
    /// and the operator times the interpolants of 1.
    of_one: Values<V>,
}

/// Columns around a block of coarse points.
struct Block<'a> {
    rows: [[[&'a [f64; SPAN]; 2]; PARTS]; 5],
    weights: [[&'a [f64; SPAN]; WEIGHTS + 3]; 3],
}

impl<'a> Block<'a> {
    /// Of the [`BLOCK`] points from `first` on.
    #[inline(always)]
    fn of(nearby: &Nearby<'a>, first: usize) -> Block<'a> {
        let mut block = Block {
            rows: [[[&[0.0; SPAN]; 2]; PARTS]; 5],
            weights: [[&[0.0; SPAN]; WEIGHTS + 3]; 3],
        };
        for (out, row) in block.rows.iter_mut().zip(nearby.rows) {
            row.spans(first, out);
        }
        for (out, row) in block.weights.iter_mut().zip(nearby.weights) {
            row.spans(first, out);
        }
        block
    }
}

/// Coarse points that have points at all places around them.
struct Inside<'b, V> {
    block: &'b Block<'b>,
    k: usize,
    unit: PhantomData<V>,
}

impl<'b, V: Simd<Elem = f64>> Inside<'b, V> {
    /// Those of `block` from `k` on.
    ///
    /// # Safety
    /// The processor must have the vector unit of `V`.
    #[inline(always)]
    unsafe fn new(block: &'b Block<'b>, k: usize) -> Self {
        assert!(k + V::LANES <= BLOCK);
        Inside {
            block,
            k,
            unit: PhantomData,
        }
    }

    #[inline(always)]
    fn load(&self, from: &[f64; SPAN], offset: isize) -> Values<V> {
        // The compiler knows it.
        assert!((0..=(SPAN - BLOCK) as isize).contains(&offset));
        // SAFETY: `new` has the word of the caller for the unit, and found all points within a block, which a span is longer than by
        // the largest offset.
        Values(unsafe { V::load(from.as_ptr().add(self.k + offset as usize)) })
    }
}

impl<V: Simd<Elem = f64>> Places for Inside<'_, V> {
    type V = V;

    #[inline(always)]
    fn same(&self, value: f64) -> Values<V> {
        // SAFETY: as in `load`.
        Values(unsafe { V::splat(value) })
    }

    #[inline(always)]
    fn has(&self, _: Place) -> bool {
        true
    }

    #[inline(always)]
    fn next(&self, place: Place, step: Place) -> Place {
        [place[0] + step[0], place[1] + step[1]]
    }

    #[inline(always)]
    fn value(&self, part: usize, [x, y]: Place, shift: isize) -> Values<V> {
        let x = x + shift;
        let halves = &self.block.rows[(y + 2) as usize][part];
        self.load(halves[(x & 1) as usize], (x + GHOSTS) >> 1)
    }

    #[inline(always)]
    fn stored(&self, part: usize, i: isize, j: isize) -> Values<V> {
        self.load(self.block.weights[(j + 1) as usize][part], i + 1)
    }
}

/// A coarse point that has none at some places.
struct Seam<'a> {
    nearby: &'a Nearby<'a>,
    i: isize,
    across: Neighbours,
    along: Neighbours,
}

impl Seam<'_> {
    #[inline(always)]
    fn load([value]: [f64; 1]) -> Values<Array<f64, 1>> {
        // SAFETY: arrays need no vector unit.
        Values(unsafe { Array::splat(value) })
    }
}

impl Places for Seam<'_> {
    type V = Array<f64, 1>;

    #[inline(always)]
    fn same(&self, value: f64) -> Values<Self::V> {
        Seam::load([value])
    }

    #[inline(always)]
    fn has(&self, [x, y]: Place) -> bool {
        let has = |of: Neighbours, place| match place {
            -1 => of.before,
            1 => of.after,
            _ => true,
        };
        has(self.across, x) && has(self.along, y)
    }

    #[inline(always)]
    fn next(&self, [x, y]: Place, step: Place) -> Place {
        [self.across.next(x, step[0]), self.along.next(y, step[1])]
    }

    #[inline(always)]
    fn value(&self, part: usize, [x, y]: Place, shift: isize) -> Values<Self::V> {
        let x = 2 * self.i + self.across.step(x) + shift;
        Seam::load(self.nearby.rows[(y + 2) as usize].at(part, x))
    }

    #[inline(always)]
    fn stored(&self, part: usize, i: isize, j: isize) -> Values<Self::V> {
        let weights = self.nearby.weights[(j + 1) as usize];
        Seam::load(load(weights.part(part), (self.i + 1 + i) as usize))
    }
}

//! One pass over a part of the 1-D grid: several sweeps of one leaf at a time while it is in the first-level cache.
//!
//! A leaf is advanced together with as many points left and right of it as the pass has sweeps; every sweep is right
//! for one point less on each side. Those margins are computed by the neighbouring leaf again.
#![allow(unsafe_code)] // Raw pointers into the padded line and the working buffers.

use std::ops::Range;

use crosswarp_prim::leaf::{LANES, LEAF, ROWS, combine_lanes, empty_lanes};
use crosswarp_prim::{Float as _, Superaccumulator};

use crate::element::Real;
use crate::element::simd::{Isa, Simd, Unit};
use crate::engine::cpu::MAX_DEPTH;
use crate::field::storage::{Field, PAD};

const _: () = assert!(PAD >= MAX_DEPTH + 16);

/// What a pass works on.
pub struct Segment<'a, F> {
    /// Points of the whole grid; the first and the last are fixed.
    pub points: usize,
    /// The points to advance: whole leaves, or to the grid's end.
    pub own: Range<usize>,
    /// One row whose column 0 is point `own.start`, with the halos in its padding.
    pub before: &'a Field<F>,
}

/// Buffers of a pass, kept between passes.
pub struct Workspace<F> {
    levels: Field<F>,
}

impl<F: Real> Workspace<F> {
    /// Buffers for passes of up to [`MAX_DEPTH`] sweeps.
    ///
    /// Errors: the system's, when the memory can not be mapped.
    pub fn new() -> std::io::Result<Workspace<F>> {
        Ok(Workspace {
            levels: Field::new(0..2, LEAF)?,
        })
    }
}

/// Advances `segment` by `norms.len()` sweeps into `after` (one row, as `before`) and adds each sweep's squared
/// differences to `norms`.
///
/// Panics if a row is not stored or too short, or `norms` is empty or longer than [`MAX_DEPTH`].
pub fn pass<F: Real>(
    isa: Isa,
    segment: &Segment<'_, F>,
    after: &mut Field<F>,
    work: &mut Workspace<F>,
    norms: &mut [Superaccumulator<F>],
) {
    assert!(
        (1..=MAX_DEPTH).contains(&norms.len()),
        "a pass of {} sweeps",
        norms.len()
    );
    assert!(
        segment.before.row(0).len() >= segment.own.len() && after.row(0).len() >= segment.own.len()
    );
    // SAFETY: the vector unit was found on this processor by `Isa::available`; lengths were checked above.
    unsafe {
        match isa.unit() {
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512 => leaves_avx512(segment, after, work, norms),
            #[cfg(target_arch = "x86_64")]
            Unit::Avx2 => leaves_avx2(segment, after, work, norms),
            Unit::Plain => leaves::<F::Plain>(segment, after, work, norms),
        }
    }
}

/// # Safety
/// As [`leaves`]; the processor must have AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn leaves_avx512<F: Real>(
    segment: &Segment<'_, F>,
    after: &mut Field<F>,
    work: &mut Workspace<F>,
    norms: &mut [Superaccumulator<F>],
) {
    // SAFETY: passed on.
    unsafe { leaves::<F::Avx512>(segment, after, work, norms) }
}

/// # Safety
/// As [`leaves`]; the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn leaves_avx2<F: Real>(
    segment: &Segment<'_, F>,
    after: &mut Field<F>,
    work: &mut Workspace<F>,
    norms: &mut [Superaccumulator<F>],
) {
    // SAFETY: passed on.
    unsafe { leaves::<F::Avx2>(segment, after, work, norms) }
}

/// # Safety
/// The processor must have `V`'s vector unit; `before` and `after` must have a row of the segment's length.
#[inline(always)]
unsafe fn leaves<V: Simd>(
    segment: &Segment<'_, V::Elem>,
    after: &mut Field<V::Elem>,
    work: &mut Workspace<V::Elem>,
    norms: &mut [Superaccumulator<V::Elem>],
) {
    let depth = norms.len();
    let points = segment.points as isize;
    let own_start = segment.own.start as isize;
    for start in segment.own.clone().step_by(LEAF) {
        let leaf = start as isize..(start + LEAF).min(segment.own.end) as isize;
        // Addresses of point 0 of the grid, outside the buffers for most leaves; hence wrapping arithmetic.
        let before = segment.before.row_ptr(0).wrapping_offset(-own_start);
        let finished = after.row_ptr_mut(0).wrapping_offset(-own_start);
        let levels = [0, 1].map(|row| work.levels.row_ptr_mut(row).wrapping_offset(-leaf.start));
        for (level, norm) in norms.iter_mut().enumerate() {
            let from = if level == 0 {
                before
            } else {
                levels[(level - 1) % 2].cast_const()
            };
            let to = if level + 1 == depth {
                finished
            } else {
                levels[level % 2]
            };
            let margin = (depth - 1 - level) as isize;
            let inner =
                leaf.start > 0 && leaf.len() == LEAF && leaf.end + PAD as isize + 1 < points;
            let sum = if inner {
                let margin = (margin as usize).next_multiple_of(16) as isize;
                // Ask for the next leaf, a part at each level.
                let line = 64 / size_of::<V::Elem>();
                let lines = LEAF / line;
                for part in lines * level / depth..lines * (level + 1) / depth {
                    V::prefetch(before.wrapping_offset(leaf.end + (part * line) as isize));
                }
                // SAFETY: the leaf is inside the grid, and both buffers hold it and a margin of PAD points.
                unsafe { inner_leaf::<V>(from, to, leaf.clone(), margin) }
            } else {
                // SAFETY: as above, cut at the grid's ends.
                unsafe { end_leaf(from, to, leaf.clone(), margin, points) }
            };
            norm.add(sum);
        }
    }
}

/// Advances a leaf away from the grid's ends and `margin` points on both sides; returns the leaf's sum of squares.
///
/// # Safety
/// The processor must have `V`'s vector unit; the leaf must have [`LEAF`] points, `margin` be a multiple of 16 and
/// `from` cover one point more than `to` on both sides; the two must not overlap.
#[inline(always)]
unsafe fn inner_leaf<V: Simd>(
    from: *const V::Elem,
    to: *mut V::Elem,
    leaf: Range<isize>,
    margin: isize,
) -> V::Elem {
    // SAFETY: the contract above.
    unsafe {
        let half = V::splat(V::Elem::from_f64(0.5));
        let advance = |x: isize| {
            let left = V::load(from.wrapping_offset(x - 1));
            let new = half.mul(left.add(V::load(from.wrapping_offset(x + 1))));
            new.store(to.wrapping_offset(x));
            new
        };
        for side in [leaf.start - margin..leaf.start, leaf.end..leaf.end + margin] {
            for x in side.step_by(V::LANES) {
                advance(x);
            }
        }
        let mut lanes = empty_lanes::<V::Elem>();
        for lane in (0..LANES).step_by(V::LANES) {
            let mut sum = V::load(lanes.as_ptr().add(lane));
            for row in 0..ROWS {
                let x = leaf.start + (row * LANES + lane) as isize;
                let difference = advance(x).sub(V::load(from.wrapping_offset(x)));
                sum = sum.add(difference.mul(difference));
            }
            sum.store(lanes.as_mut_ptr().add(lane));
        }
        combine_lanes(&lanes)
    }
}

/// As [`inner_leaf`] for a leaf with an end of the grid in reach of its margin, or a short one: at most three of them.
///
/// # Safety
/// `from` must cover one point more than `to` on both sides, cut at the grid's ends; the two must not overlap.
unsafe fn end_leaf<F: Real>(
    from: *const F,
    to: *mut F,
    leaf: Range<isize>,
    margin: isize,
    points: isize,
) -> F {
    let half = F::from_f64(0.5);
    let mut lanes = empty_lanes::<F>();
    for x in (leaf.start - margin).max(0)..(leaf.end + margin).min(points) {
        // SAFETY: the contract above.
        unsafe {
            let old = *from.wrapping_offset(x);
            let mut new = old;
            if x > 0 && x < points - 1 {
                new = half * (*from.wrapping_offset(x - 1) + *from.wrapping_offset(x + 1));
            }
            *to.wrapping_offset(x) = new;
            if leaf.contains(&x) {
                let difference = new - old;
                let lane = &mut lanes[x as usize % LANES];
                *lane = *lane + difference * difference;
            }
        }
    }
    combine_lanes(&lanes)
}

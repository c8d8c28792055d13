//! Several relaxations and a residual in one pass through memory.
//!
//! A wavefront runs down the rows: when step 1 has reached row y, step 2 is one row behind, and so on. Only the last
//! rows of each step are kept, so the field is read and written once a pass. What comes out does not depend on that:
//! each step makes a new row of three rows of the step before.

use super::rows::Around;
use super::shape::Shape;
use crate::element::Real;
use crate::element::simd::{Work, prefetch};
use crate::field::storage::Field;

/// An operator that can relax and give residuals, with its right side.
pub(super) trait Relaxation<T> {
    /// Row `y` of u + ω D⁻¹ (b − Au), columns −1 to nx.
    fn relax(&self, y: isize, around: Around<'_, T>, omega: T, out: &mut [T]);
    /// The same from u = 0.
    fn relax_from_zero(&self, y: isize, omega: T, out: &mut [T]);
    /// As `relax`, with row `y` of b − Au of before, too.
    fn relax_and_residual(
        &self,
        y: isize,
        around: Around<'_, T>,
        omega: T,
        out: &mut [T],
        residual: &mut [T],
    );
    /// Row `y` of b − Au, columns −1 to nx.
    fn residual(&self, y: isize, around: Around<'_, T>, out: &mut [T]);
    /// Asks for row `y` of the right side to be brought into the cache.
    fn prefetch(&self, y: isize);
}

/// Where a pass begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With u = 0, whatever the field holds.
    Zero,
    /// With the field.
    Field,
    /// With the field after [`Hooks::correct`].
    Corrected,
}

/// What a pass does besides relaxing.
pub(super) trait Hooks<T> {
    /// Whether it wants the residual after the last step.
    const RESIDUAL: bool;
    /// Whether it wants the residual before step [`Pass::measured`].
    const MEASURES: bool = false;
    /// Adds what there is to add to row `y` (columns −1 to nx) before the first step.
    fn correct(&mut self, y: isize, row: &mut [T]);
    /// Takes row `y` of the residual before step [`Pass::measured`]; rows come in order.
    fn measure(&mut self, _y: isize, _residual: &[T]) {}
    /// Takes row `y` of the residual and of the field after the last step; rows come in order.
    fn residual(&mut self, y: isize, residual: &mut [T], u: &[T]);
}

const KEPT: isize = 4;
/// Rows are asked for so many rows before they are needed: caches do not guess them across rows.
const AHEAD: isize = 2;

/// The rows of the steps that are kept.
pub(super) struct Kept<T> {
    steps: Vec<[Vec<T>; KEPT as usize]>,
    residual: Vec<T>,
}

impl<T: Real> Kept<T> {
    /// For rows of `nx` columns and up to `steps` steps.
    pub fn new(nx: usize, steps: usize) -> Kept<T> {
        let row = || vec![T::ZERO; nx + 2];
        Kept {
            steps: (0..steps).map(|_| std::array::from_fn(|_| row())).collect(),
            residual: row(),
        }
    }
}

#[inline(always)]
fn kept<T>(step: &[Vec<T>; KEPT as usize], y: isize) -> &[T] {
    &step[y.rem_euclid(KEPT) as usize]
}

/// Several relaxations in one pass.
///
/// It relaxes `u` with each of `omegas` in turn. Afterwards `u` is right in the own rows and `margin` more, if it (unless
/// it starts from zero) and the right side were `omegas.len()` more than that. The residual is given for `margin` − 1
/// rows more than the own ones.
///
/// The columns −1 and nx of `u` hold what [`Relaxation`] needs there.
pub(super) struct Pass<'a, T, R, H> {
    pub shape: &'a Shape,
    pub operator: &'a R,
    pub u: &'a mut Field<T>,
    pub start: Start,
    pub omegas: &'a [T],
    /// The step, counted from 0, before which hooks measure; as many as there are steps: after the last.
    pub measured: usize,
    pub margin: usize,
    pub kept: &'a mut Kept<T>,
    pub hooks: &'a mut H,
}

impl<T: Real, R: Relaxation<T>, H: Hooks<T>> Work for Pass<'_, T, R, H> {
    #[inline(always)]
    fn run(self) {
        pass(self);
    }
}

#[inline(always)]
fn pass<T: Real, R: Relaxation<T>, H: Hooks<T>>(pass: Pass<'_, T, R, H>) {
    let Pass {
        shape,
        operator,
        u,
        start,
        omegas,
        measured,
        margin,
        kept: work,
        hooks,
    } = pass;
    let count = omegas.len();
    let steps = count as isize;
    let rows_after = |step: usize| shape.rows(margin + count - step);
    let (first, last) = (rows_after(0), rows_after(count));
    let wanted = if H::RESIDUAL {
        shape.rows(margin - 1)
    } else {
        0..0
    };
    // The rows before and after one; at an end of the grid the one on the other side, which is what a mirror shows, and
    // what couplings of zero make nothing of.
    let neighbours = |y: isize| match (shape.y.has(y - 1), shape.y.has(y + 1)) {
        (true, true) => (y - 1, y + 1),
        (true, false) => (y - 1, y - 1),
        (false, true) => (y + 1, y + 1),
        (false, false) => (y, y),
    };
    for now in first.start..last.end + steps + 2 {
        let ahead = now + AHEAD;
        if first.contains(&ahead) {
            if start != Start::Zero {
                prefetch(u.row(ahead));
            }
            operator.prefetch(ahead);
        }
        if start == Start::Corrected && first.contains(&now) {
            hooks.correct(now, u.with_padding_mut(now, 1));
        }
        for (step, &omega) in omegas.iter().enumerate() {
            let y = now - step as isize - 1;
            if !rows_after(step + 1).contains(&y) {
                continue;
            }
            let (before, rest) = work.steps.split_at_mut(step);
            let mut relax = |around: Around<'_, T>, out: &mut [T]| {
                if H::MEASURES && step == measured {
                    operator.relax_and_residual(y, around, omega, out, &mut work.residual);
                    hooks.measure(y, &work.residual);
                } else {
                    operator.relax(y, around, omega, out);
                }
            };
            match before.last() {
                None => {
                    let out = &mut rest[0][y.rem_euclid(KEPT) as usize];
                    if start == Start::Zero {
                        operator.relax_from_zero(y, omega, out);
                    } else {
                        relax(around(neighbours(y), y, u), out);
                    }
                }
                Some(before) => {
                    // The last step writes to the field itself: nothing needs what is there any more.
                    let out = if step + 1 == count {
                        u.with_padding_mut(y, 1)
                    } else {
                        &mut rest[0][y.rem_euclid(KEPT) as usize]
                    };
                    relax(around_kept(neighbours(y), y, before), out);
                }
            }
        }
        let y = now - steps - 1;
        if count == 1 && last.contains(&y) {
            // A row later than it was made: the row after it needed the old one.
            u.with_padding_mut(y, 1).copy_from_slice(kept(&work.steps[0], y));
        }
        if wanted.contains(&y) {
            let around = if count == 1 {
                around_kept(neighbours(y), y, &work.steps[0])
            } else {
                around(neighbours(y), y, u)
            };
            operator.residual(y, around, &mut work.residual);
            if H::MEASURES && measured == count {
                hooks.measure(y, &work.residual);
            }
            hooks.residual(y, &mut work.residual, around.here);
        }
    }
}

/// Row `y` and its neighbours of the field.
#[inline(always)]
fn around<T: Real>((up, down): (isize, isize), y: isize, u: &Field<T>) -> Around<'_, T> {
    Around {
        up: u.with_padding(up, 1),
        here: u.with_padding(y, 1),
        down: u.with_padding(down, 1),
    }
}

/// Row `y` and its neighbours after a step.
#[inline(always)]
fn around_kept<T: Real>(
    (up, down): (isize, isize),
    y: isize,
    step: &[Vec<T>; KEPT as usize],
) -> Around<'_, T> {
    Around {
        up: kept(step, up),
        here: kept(step, y),
        down: kept(step, down),
    }
}

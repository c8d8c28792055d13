//! Several relaxations and a residual in one pass through memory.
//!
//! A wavefront runs down the rows: when step 1 has reached row y, step 2 is one row behind, and so on. Only the last
//! rows of each step are kept, so the field is read and written once a pass. What comes out does not depend on that:
//! each step makes a new row of three rows of the step before.

use std::io;

use super::rows::{Ahead, Around};
use super::shape::Shape;
use crate::element::Real;
use crate::element::simd::Work;
use crate::field::storage::Field;

/// An operator that can relax and give residuals, with its right side.
pub(super) trait Relaxation<T> {
    /// Row `y` of u + ω D⁻¹ (b − Au), columns −1 to nx.
    fn relax(&self, y: isize, around: Around<'_, T>, omega: T, out: &mut [T]);
    /// The same from u = 0.
    fn relax_from_zero(&self, y: isize, omega: T, out: &mut [T]);
    /// Row `y` of b − Au, columns −1 to nx.
    fn residual(&self, y: isize, around: Around<'_, T>, out: &mut [T]);
    /// Makes row `y` of a field, columns −1 to nx, what it is in another.
    fn copy(&self, y: isize, from: &[T], out: &mut [T]);
    /// What of row `y` is to be brought into the cache: of the right side, of `u`, and what else there is. Of a row of which
    /// columns are left out it is asked for here.
    fn ahead(&self, y: isize, u: Option<&[T]>) -> Ahead;
}

/// Where a pass begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Adds what there is to add to row `y` (columns −1 to nx) before the first step.
    fn correct(&mut self, y: isize, row: &mut [T]);
    /// Takes row `y` of the residual and of the field after the last step; rows come in order.
    fn residual(&mut self, y: isize, residual: &mut [T], u: &[T]);
}

const KEPT: isize = 4;
/// Rows are asked for so many rows before they are needed: caches do not guess them across rows.
pub(super) const AHEAD: isize = 2;

/// The rows of the steps that are kept. Like fields, with columns 0 where vectors begin.
pub(super) struct Kept<T> {
    steps: Vec<Field<T>>,
    residual: Field<T>,
}

impl<T: Real> Kept<T> {
    /// For rows of `nx` columns and up to `steps` steps.
    pub fn new(nx: usize, steps: usize) -> io::Result<Kept<T>> {
        let kept = Kept {
            steps: (0..steps)
                .map(|_| Field::new(0..KEPT, nx))
                .collect::<Result<_, _>>()?,
            residual: Field::new(0..1, nx)?,
        };
        #[cfg(test)]
        let kept = super::blocks::tests::left_by_a_failed_solve(kept);
        Ok(kept)
    }

    #[cfg(test)]
    pub fn steps(&mut self) -> &mut [Field<T>] {
        &mut self.steps
    }

    /// Zeros, as if nothing had been kept: where columns are left out, those beside them are read, times couplings of 0, and what a
    /// solve before has left there may not be finite.
    pub fn forget(&mut self) {
        for step in &mut self.steps {
            for y in 0..KEPT {
                kept_mut(step, y).fill(T::ZERO);
            }
        }
    }

    /// A row, with a column more on both sides.
    pub fn residual(&mut self) -> &mut [T] {
        self.residual.with_padding_mut(0, 1)
    }
}

#[inline(always)]
fn kept<T: Real>(step: &Field<T>, y: isize) -> &[T] {
    step.with_padding(y.rem_euclid(KEPT), 1)
}

#[inline(always)]
fn kept_mut<T: Real>(step: &mut Field<T>, y: isize) -> &mut [T] {
    step.with_padding_mut(y.rem_euclid(KEPT), 1)
}

/// Several relaxations in one pass.
///
/// It relaxes `u` by `steps` in turn. Afterwards `u` is right in the own rows and `margin` more, if it (unless
/// it starts from zero) and the right side were `steps.len()` more than that. The residual is given for `margin` − 1
/// rows more than the own ones.
///
/// The columns −1 and nx of `u` hold what [`Relaxation`] needs there.
pub(super) struct Pass<'a, T, R, H> {
    pub shape: &'a Shape,
    pub operator: &'a R,
    pub u: &'a mut Field<T>,
    pub start: Start,
    /// Their ω.
    pub steps: &'a [T],
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
        steps: relaxations,
        margin,
        kept: work,
        hooks,
    } = pass;
    let count = relaxations.len();
    let steps = count as isize;
    let rows_after = |step: usize| shape.rows(margin + count - step);
    let (first, last) = (rows_after(0), rows_after(count));
    let wanted = if H::RESIDUAL {
        shape.rows(margin - 1)
    } else {
        0..0
    };
    let neighbours = |y: isize| shape.y.neighbours(y);
    for now in first.start..last.end + steps + 2 {
        let mut wanted_soon = Ahead::default();
        if first.contains(&(now + AHEAD)) {
            let u = (start != Start::Zero).then(|| u.row(now + AHEAD));
            wanted_soon = operator.ahead(now + AHEAD, u);
        }
        // Each step that reads three rows asks for a part. Steps that are beyond their rows ask for none.
        let from_zero = usize::from(start == Start::Zero);
        let part = |step: usize| match count.saturating_sub(from_zero) {
            0 => wanted_soon,
            of => wanted_soon.part(step - from_zero, of),
        };
        if start == Start::Corrected && first.contains(&now) {
            hooks.correct(now, u.with_padding_mut(now, 1));
        }
        for (step, &omega) in relaxations.iter().enumerate() {
            let y = now - step as isize - 1;
            if !rows_after(step + 1).contains(&y) {
                continue;
            }
            let (before, rest) = work.steps.split_at_mut(step);
            match before.last() {
                None => {
                    let out = kept_mut(&mut rest[0], y);
                    if start == Start::Zero {
                        operator.relax_from_zero(y, omega, out);
                    } else {
                        let around = around(neighbours(y), y, u, part(step));
                        operator.relax(y, around, omega, out);
                    }
                }
                Some(before) => {
                    // The last step writes to the field itself: nothing needs what is there any more.
                    let out = if step + 1 == count {
                        u.with_padding_mut(y, 1)
                    } else {
                        kept_mut(&mut rest[0], y)
                    };
                    let around = around_kept(neighbours(y), y, before, part(step));
                    operator.relax(y, around, omega, out);
                }
            }
        }
        let y = now - steps - 1;
        if count == 1 && last.contains(&y) {
            // A row later than it was made: the row after it needed the old one.
            operator.copy(y, kept(&work.steps[0], y), u.with_padding_mut(y, 1));
        }
        if wanted.contains(&y) {
            let ahead = if count == from_zero {
                wanted_soon
            } else {
                Ahead::default()
            };
            let around = if count == 1 {
                around_kept(neighbours(y), y, &work.steps[0], ahead)
            } else {
                around(neighbours(y), y, u, ahead)
            };
            let residual = work.residual.with_padding_mut(0, 1);
            operator.residual(y, around, residual);
            hooks.residual(y, residual, around.here);
        }
    }
}

/// Row `y` and its neighbours of the field.
#[inline(always)]
fn around<T: Real>(
    (up, down): (isize, isize),
    y: isize,
    u: &Field<T>,
    ahead: Ahead,
) -> Around<'_, T> {
    Around {
        ahead,
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
    step: &Field<T>,
    ahead: Ahead,
) -> Around<'_, T> {
    Around {
        ahead,
        up: kept(step, up),
        here: kept(step, y),
        down: kept(step, down),
    }
}

//! Several relaxations and a residual in one pass through memory.
//!
//! A wavefront runs down the rows: when step 1 has reached row y, step 2 is one row behind, and so on. Only the last
//! rows of each step are kept, so the field is read and written once a pass. What comes out does not depend on that:
//! each step makes a new row of three rows of the step before.

use super::rows::Around;
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
    /// Adds what there is to add to row `y` (columns −1 to nx) before the first step.
    fn correct(&mut self, y: isize, row: &mut [T]);
    /// Takes row `y` of the residual and of the field after the last step; rows come in order.
    fn residual(&mut self, y: isize, residual: &mut [T], u: &[T]);
}

const KEPT: isize = 4;

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
        margin,
        kept: work,
        hooks,
    } = pass;
    let steps = omegas.len() as isize;
    let first = shape.rows(margin + omegas.len());
    let last = shape.rows(margin);
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
        if start == Start::Corrected && first.contains(&now) {
            hooks.correct(now, u.with_padding_mut(now, 1));
        }
        for (step, &omega) in omegas.iter().enumerate() {
            let y = now - step as isize - 1;
            if !shape.rows(margin + omegas.len() - 1 - step).contains(&y) {
                continue;
            }
            let (before, rest) = work.steps.split_at_mut(step);
            let out = &mut rest[0][y.rem_euclid(KEPT) as usize];
            if step == 0 && start == Start::Zero {
                operator.relax_from_zero(y, omega, out);
            } else {
                let around = around(neighbours(y), y, before.last(), u);
                operator.relax(y, around, omega, out);
            }
        }
        // A row later than it could be with several steps: after a single one, the next row still needs the old one.
        let y = now - steps - 1;
        let after = work.steps[..omegas.len()].last();
        if let (Some(step), true) = (after, last.contains(&y)) {
            u.with_padding_mut(y, 1).copy_from_slice(kept(step, y));
        }
        if wanted.contains(&y) {
            let around = around(neighbours(y), y, after, u);
            operator.residual(y, around, &mut work.residual);
            hooks.residual(y, &mut work.residual, around.here);
        }
    }
}

/// Row `y` and its neighbours after a step, or of the field.
#[inline(always)]
fn around<'a, T: Real>(
    (up, down): (isize, isize),
    y: isize,
    step: Option<&'a [Vec<T>; KEPT as usize]>,
    u: &'a Field<T>,
) -> Around<'a, T> {
    match step {
        Some(step) => Around {
            up: kept(step, up),
            here: kept(step, y),
            down: kept(step, down),
        },
        None => Around {
            up: u.with_padding(up, 1),
            here: u.with_padding(y, 1),
            down: u.with_padding(down, 1),
        },
    }
}

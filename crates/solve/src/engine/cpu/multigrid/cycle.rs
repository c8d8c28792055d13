//! Cycles through the levels.
//!
//! Between two corrections by the coarser level, the finest one is passed through once: corrected, relaxed, relaxed again for
//! the next cycle, measured, and its residual restricted. So a cycle reads and writes the field once, and is measured by the
//! field that it leaves.

use super::coarse::Coarse;
use super::galerkin::{WEIGHT_MARGIN, computed_rows};
use super::hierarchy::Hierarchy;
use super::hooks::{DownCoarse, FromCoarser, OnFinest, Prolongation, Restriction, UpCoarse};
use super::red_black::RedBlackPass;
use super::smoothing::{Colour, Smoothing, Step};
use super::sums::LeafSums;
use super::wavefront::{Pass, Start};
use crate::element::Real;
use crate::element::simd::{Work, on_unit};
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// Rows of a correction that the finer level needs beyond its own.
const OF_CORRECTION: usize = WEIGHT_MARGIN;
/// Rows of the residual beyond the own ones that a restriction needs, and one more: see [`Pass`].
const TO_RESTRICT: usize = 2;

impl<T: Real> Hierarchy<T> {
    /// Measures b − Au, and begins the first cycle: `full`, where it solves all levels from the coarsest one up, each from
    /// the solution of the coarser one. `exponent`: residuals times 2^−`exponent` are in the middle of the range of `T`.
    /// `sum` gets the squares of the residual. Collective.
    pub fn begin(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        full: bool,
        exponent: i32,
        sum: &mut LeafSums,
    ) -> Result<(), PeError> {
        self.forget();
        let plan = Plan {
            start: Start::Field,
            steps: &[],
            solved: None,
            margin: TO_RESTRICT,
            exponent,
        };
        self.on_finest::<true>(rows, u, right_side, &plan, Some(sum))?;
        if full {
            self.solve_coarse(rows)?;
        }
        let (start, steps) = match full {
            true => (Start::Corrected, self.smoothing.begun()),
            false => (Start::Field, self.smoothing.pre.clone()),
        };
        let plan = Plan {
            start,
            steps: &steps,
            ..plan
        };
        self.on_finest::<true>(rows, u, right_side, &plan, None)
    }

    /// Does over what the last call has restricted, of a field that it has left: [`go_on`](Self::go_on) goes on from there.
    /// `left_by_cycles`: whether they have, and not another method. Collective.
    pub fn resume(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        exponent: i32,
        left_by_cycles: bool,
    ) -> Result<(), PeError> {
        self.forget();
        let plan = Plan {
            start: Start::Field,
            steps: &[],
            solved: self.smoothing.solved_before().filter(|_| left_by_cycles),
            margin: TO_RESTRICT,
            exponent,
        };
        self.on_finest::<true>(rows, u, right_side, &plan, None)
    }

    /// Ends a cycle and begins the next one. Else as [`begin`](Self::begin). Collective.
    pub fn go_on(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        exponent: i32,
        sum: &mut LeafSums,
    ) -> Result<(), PeError> {
        self.cycle_below(rows, 0, Start::Zero)?;
        let Smoothing { pre, post } = self.smoothing.clone();
        let plan = Plan {
            start: Start::Corrected,
            steps: &[&post[..], &pre[..]].concat(),
            solved: None,
            margin: TO_RESTRICT,
            exponent,
        };
        self.on_finest::<true>(rows, u, right_side, &plan, Some(sum))
    }

    /// Makes `u` what one cycle from zero gives, the same linear, symmetric and definite function of b each time but for
    /// rounding. Collective.
    pub fn precondition(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: &Field<f64>,
        exponent: i32,
    ) -> Result<(), PeError> {
        self.forget();
        let Smoothing { pre, post } = self.symmetric_smoothing.clone();
        let down = Plan {
            start: Start::Zero,
            steps: &pre,
            solved: None,
            margin: TO_RESTRICT.max(post.len()),
            exponent,
        };
        self.on_finest::<true>(rows, u, Some(right_side), &down, None)?;
        self.cycle_below(rows, 0, Start::Zero)?;
        let up = Plan {
            start: Start::Corrected,
            steps: &post,
            margin: 0,
            ..down
        };
        self.on_finest::<false>(rows, u, Some(right_side), &up, None)
    }

    /// Makes what passes have kept of a solve before harmless: see [`Kept::forget`](super::wavefront::Kept::forget).
    fn forget(&mut self) {
        if self.top.equations.fixed.is_some() {
            for level in &mut self.levels {
                level.kept.forget();
            }
        }
    }

    /// A pass over the finest level.
    fn on_finest<const RESTRICT: bool>(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        plan: &Plan<'_>,
        sum: Option<&mut LeafSums>,
    ) -> Result<(), PeError> {
        let top = &mut self.top;
        let finest = &top.equations;
        let shape = &finest.shape;
        let solved = plan.steps.last().map_or(plan.solved, |last| last.colour);
        // Who only ends a cycle has left enough rows when he began it.
        if plan.start != Start::Zero && RESTRICT {
            let depth = plan.margin + plan.steps.len();
            rows.halo(shape, u, depth)?;
            if solved.is_none() {
                for y in shape.rows(depth) {
                    finest.beyond(u.with_padding_mut(y, 1));
                }
            }
        }
        let scale = power_of_two(self.exponent);
        self.exponent = plan.exponent;
        let (level, transfer) = (&mut self.levels[0], &self.transfer);
        let prolongation = (plan.start == Start::Corrected).then_some((
            Prolongation {
                fine: shape,
                transfer,
                blocks: &finest.blocks,
                coarse: &level.u,
                correction: &mut self.spare.correction,
            },
            scale,
        ));
        let restriction = Restriction {
            fine: shape,
            transfer,
            computed: computed_rows(shape, &level.operator.shape),
            blocks: &level.operator.blocks,
            residuals: &mut self.spare.residuals,
            right_side: &mut level.right_side,
        };
        let scale = power_of_two(-plan.exponent);
        if let Some(solved) = solved {
            debug_assert!(RESTRICT && plan.start != Start::Zero);
            debug_assert!(finest.fixed.is_none() && finest.coefficients.is_none());
            let work = RedBlackPass {
                finest,
                right_side,
                u,
                prolongation,
                steps: plan.steps,
                solved,
                sum,
                margin: plan.margin,
                restriction,
                scale,
                ring: top.halves.shared(right_side.is_some()),
            };
            on_unit(top.isa, work);
            return Ok(());
        }
        let mut hooks = OnFinest::<T, RESTRICT> {
            finest,
            prolongation,
            restriction,
            scale,
            sum,
        };
        let operator = finest.with(right_side);
        on_unit(
            top.isa,
            Pass {
                shape,
                operator: &operator,
                u,
                start: plan.start,
                steps: &Smoothing::omegas(plan.steps),
                margin: plan.margin,
                kept: &mut top.kept,
                hooks: &mut hooks,
            },
        );
        Ok(())
    }

    /// Solves for the corrections of the first coarse level from the coarsest one on: its right side is set.
    fn solve_coarse(&mut self, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        let count = self.levels.len();
        for at in 0..count {
            self.complete_right_side(rows, at)?;
            let (level, next) = split(&mut self.levels, at);
            let (Some(next), Some(transfer)) = (next, &level.transfer) else {
                break;
            };
            let shape = &level.operator.shape;
            on_unit(
                self.top.isa,
                RestrictAll {
                    from: &level.right_side,
                    by: Restriction {
                        fine: shape,
                        transfer,
                        computed: computed_rows(shape, &next.operator.shape),
                        blocks: &next.operator.blocks,
                        residuals: &mut self.spare.residuals,
                        right_side: &mut next.right_side,
                    },
                },
            );
        }
        self.solve_coarsest(rows)?;
        for at in (0..count - 1).rev() {
            self.cycle_below(rows, at, Start::Corrected)?;
        }
        Ok(())
    }

    /// Makes the right side of level `at` complete as far as a cycle needs it. Collective.
    fn complete_right_side(&mut self, rows: &mut LevelRows<'_>, at: usize) -> Result<(), PeError> {
        let spread = match at.checked_sub(1) {
            None => self.top.equations.shape.spread,
            Some(finer) => self.levels[finer].operator.shape.spread,
        };
        let level = &mut self.levels[at];
        let shape = &level.operator.shape;
        if spread && !shape.spread {
            rows.gather(shape, &mut level.right_side)?;
        }
        let depth = self.coarse_smoothing.margin_down() + self.coarse_smoothing.pre.len();
        rows.halo(shape, &mut level.right_side, depth)
    }

    /// One cycle for level `first` of the coarse ones, from zero or, where its right side is complete already, from the
    /// solution of the next.
    fn cycle_below(
        &mut self,
        rows: &mut LevelRows<'_>,
        first: usize,
        start: Start,
    ) -> Result<(), PeError> {
        let smoothing = &self.coarse_smoothing;
        let margin = smoothing.margin_down();
        let (pre, post) = (
            Smoothing::omegas::<T>(&smoothing.pre),
            Smoothing::omegas::<T>(&smoothing.post),
        );
        let count = self.levels.len();
        for at in first..count {
            let start = if at == first { start } else { Start::Zero };
            if start == Start::Zero {
                self.complete_right_side(rows, at)?;
            }
            let (level, next) = split(&mut self.levels, at);
            let (Some(next), Some(transfer)) = (next, &level.transfer) else {
                break;
            };
            let shape = &level.operator.shape;
            let mut down = DownCoarse(Restriction {
                fine: shape,
                transfer,
                computed: computed_rows(shape, &next.operator.shape),
                blocks: &next.operator.blocks,
                residuals: &mut self.spare.residuals,
                right_side: &mut next.right_side,
            });
            let (operator, u) = (&level.operator.with(&level.right_side), &mut level.u);
            let (steps, kept) = (&pre[..], &mut level.kept);
            if start == Start::Zero {
                let hooks = &mut down;
                on_unit(
                    self.top.isa,
                    Pass {
                        shape,
                        operator,
                        u,
                        start,
                        steps,
                        margin,
                        kept,
                        hooks,
                    },
                );
                continue;
            }
            let up = UpCoarse {
                operator: &level.operator,
                prolongation: Prolongation {
                    fine: shape,
                    transfer,
                    blocks: &level.operator.blocks,
                    coarse: &next.u,
                    correction: &mut self.spare.correction,
                },
            };
            let hooks = &mut FromCoarser { up, down };
            on_unit(
                self.top.isa,
                Pass {
                    shape,
                    operator,
                    u,
                    start,
                    steps,
                    margin,
                    kept,
                    hooks,
                },
            );
        }
        self.solve_coarsest(rows)?;
        for at in (first..count - 1).rev() {
            let (level, next) = split(&mut self.levels, at);
            let (Some(next), Some(transfer)) = (next, &level.transfer) else {
                continue;
            };
            let shape = &level.operator.shape;
            let mut up = UpCoarse {
                operator: &level.operator,
                prolongation: Prolongation {
                    fine: shape,
                    transfer,
                    blocks: &level.operator.blocks,
                    coarse: &next.u,
                    correction: &mut self.spare.correction,
                },
            };
            on_unit(
                self.top.isa,
                Pass {
                    shape,
                    operator: &level.operator.with(&level.right_side),
                    u: &mut level.u,
                    start: Start::Corrected,
                    steps: &post,
                    margin: 0,
                    kept: &mut level.kept,
                    hooks: &mut up,
                },
            );
            rows.halo(shape, &mut level.u, OF_CORRECTION)?;
        }
        Ok(())
    }

    /// Solves the coarsest level directly. Collective.
    fn solve_coarsest(&mut self, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        let last = self.levels.last_mut().expect("there is a coarse level");
        let columns = self.dense.columns();
        let mut values = Vec::with_capacity(self.dense.points());
        for y in 0..self.dense.points() / columns {
            let row = last.right_side.row(y as isize);
            values.extend(row.iter().map(|value| value.to_f64()));
        }
        self.dense.solve(&mut values);
        for (y, row) in (0..).zip(values.chunks_exact(columns)) {
            for (out, &value) in last.u.row_mut(y).iter_mut().zip(row) {
                *out = T::from_f64(value);
            }
        }
        rows.halo(&last.operator.shape, &mut last.u, OF_CORRECTION)
    }
}

/// A pass over the finest level.
struct Plan<'a> {
    start: Start,
    steps: &'a [Step],
    solved: Option<Colour>,
    margin: usize,
    /// See [`Hierarchy::begin`].
    exponent: i32,
}

/// Restricts a right side.
struct RestrictAll<'a, T> {
    from: &'a Field<T>,
    by: Restriction<'a, T>,
}

impl<T: Real> Work for RestrictAll<'_, T> {
    #[inline(always)]
    fn run(self) {
        let RestrictAll { from, mut by } = self;
        for y in by.fine.rows(1) {
            by.row(y).copy_from_slice(from.with_padding(y, 1));
            by.took(y);
        }
    }
}

/// Level `at` and the one after it.
fn split<T>(levels: &mut [Coarse<T>], at: usize) -> (&mut Coarse<T>, Option<&mut Coarse<T>>) {
    let (before, after) = levels.split_at_mut(at + 1);
    (&mut before[at], after.first_mut())
}

/// 2^`exponent`, for exponents of normal numbers.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

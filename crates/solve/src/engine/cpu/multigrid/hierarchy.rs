//! All levels, and a cycle through them.

use std::io;
use std::ops::Range;

use super::coarse::{Coarse, Operator};
use super::dense::Dense;
use super::finest::Finest;
use super::galerkin::{CoarseRow, Transfer, WEIGHT_MARGIN, coarsen, computed_rows};
use super::interpolation::{AMID, BELOW, RIGHT};
use super::rows::{Around, Weights, prolong_between, prolong_on, restrict};
use super::shape::Shape;
use super::sums::LeafSums;
use super::wavefront::{Hooks, Kept, Pass, Start};
use crate::element::Real;
use crate::element::simd::{Isa, on_unit};
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// Points of the coarsest level, at most, along each axis.
const COARSEST: usize = 8;

/// How often and how strongly a cycle relaxes.
///
/// The steps are u + ω D⁻¹ (b − Au) with the ω of a Chebyshev polynomial: the smallest largest damping of the
/// eigenvalues of D⁻¹A in an interval that is the same for all problems, so that nothing has to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Smoothing {
    pre: Vec<f64>,
    post: Vec<f64>,
}

impl Smoothing {
    /// `pre` steps before the coarse correction and `post` after it: 1 to 3 each.
    pub fn new(pre: usize, post: usize, interval: [f64; 2]) -> Smoothing {
        let of = |steps: usize| {
            let (centre, half) = (
                0.5 * (interval[0] + interval[1]),
                0.5 * (interval[1] - interval[0]),
            );
            (0..steps)
                .map(|step| {
                    // cos((2k + 1)π / 2n) for the few n there are.
                    let node = match (steps, step) {
                        (1, _) | (3, 1) => 0.0,
                        (2, 0) => std::f64::consts::FRAC_1_SQRT_2,
                        (2, _) => -std::f64::consts::FRAC_1_SQRT_2,
                        (_, 0) => 0.866_025_403_784_438_6,
                        _ => -0.866_025_403_784_438_6,
                    };
                    1.0 / (centre + half * node)
                })
                .collect()
        };
        Smoothing {
            pre: of(pre),
            post: of(post),
        }
    }

    /// Rows that the relaxed field before the coarse correction has to reach beyond the own ones: `residual`, if its
    /// residual is wanted after the correction, too.
    fn margin_down(&self, residual: bool) -> usize {
        (self.post.len() + usize::from(residual)).max(2)
    }

    fn in_type<T: Real>(omegas: &[f64]) -> Vec<T> {
        omegas.iter().map(|&omega| T::from_f64(omega)).collect()
    }
}

/// The levels below the finest one, and how they are reached. `T` is the type of corrections.
pub(crate) struct Hierarchy<T> {
    pub finest: Finest,
    isa: Isa,
    smoothing: Smoothing,
    coarse_smoothing: Smoothing,
    transfer: Transfer<T>,
    levels: Vec<Coarse<T>>,
    dense: Dense,
    kept: Kept<f64>,
    spare: Spare<T>,
}

/// Rows of the finest level in the type of corrections.
struct Spare<T> {
    residuals: Vec<Vec<T>>,
    correction: Vec<T>,
}

/// The levels below `finest`.
pub(crate) fn coarser_shapes(finest: &Shape) -> Vec<Shape> {
    let mut shapes = vec![finest.coarser()];
    while let Some(last) = shapes.last()
        && (last.x.len > COARSEST || last.y.len > COARSEST)
    {
        shapes.push(last.coarser());
    }
    shapes
}

impl<T: Real> Hierarchy<T> {
    /// Makes the levels. Collective.
    ///
    /// `singular`: constants are in the kernel of the operator.
    pub fn new(
        finest: Finest,
        shapes: &[Shape],
        singular: bool,
        [smoothing, coarse_smoothing]: [Smoothing; 2],
        rows: &mut LevelRows<'_>,
    ) -> Result<Hierarchy<T>, SetUpError> {
        let steps = smoothing.pre.len().max(smoothing.post.len());
        let mut levels: Vec<Coarse<T>> = Vec::new();
        let mut transfer = None;
        let isa = Isa::widest();
        for shape in shapes {
            let mut level = Coarse::new(shape, steps)?;
            let from = levels.last_mut();
            let spread = from
                .as_ref()
                .map_or(finest.shape.spread, |from| from.operator.shape.spread);
            let operator = &mut level.operator;
            let take = |y: isize, row: CoarseRow<'_>| operator.set_row(y, row);
            match from {
                None => transfer = Some(coarsen(isa, &finest, shape, take)),
                Some(from) => from.transfer = Some(coarsen(isa, &from.operator, shape, take)),
            }
            level.operator.complete(rows, spread && !shape.spread)?;
            levels.push(level);
        }
        let last = levels.last().expect("there is a coarse level");
        let dense = Dense::new(&last.operator, singular);
        let nx = finest.shape.x.len;
        Ok(Hierarchy {
            isa,
            kept: Kept::new(nx, steps),
            spare: Spare {
                residuals: vec![vec![T::ZERO; nx + 2]; 4],
                correction: vec![T::ZERO; nx],
            },
            transfer: transfer.expect("there is a coarse level"),
            finest,
            smoothing,
            coarse_smoothing,
            levels,
            dense,
        })
    }

    /// Levels, the finest one included.
    pub fn levels(&self) -> usize {
        1 + self.levels.len()
    }

    /// Makes one V-cycle for `u` with the right side b. Collective.
    ///
    /// `exponent`: residuals times 2^−`exponent` are in the middle of the range of `T`. `from_zero`: u is zero, whatever
    /// it holds. `sums` gets the squares of the residual after the cycle and of the field.
    pub fn cycle(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        from_zero: bool,
        exponent: i32,
        sums: &mut [LeafSums; 2],
    ) -> Result<(), PeError> {
        let Hierarchy {
            finest,
            isa,
            smoothing,
            transfer,
            levels,
            kept,
            spare,
            ..
        } = self;
        let isa = *isa;
        let shape = finest.shape.clone();
        let margin = smoothing.margin_down(true);
        if !from_zero {
            rows.halo(&shape, u, margin + smoothing.pre.len())?;
            for y in shape.rows(margin + smoothing.pre.len()) {
                finest.beyond(u.with_padding_mut(y, 1));
            }
        }
        let scale = power_of_two(-exponent);
        {
            let level = &mut levels[0];
            let mut down = DownFinest {
                finest,
                scale,
                restriction: Restriction {
                    fine: &shape,
                    transfer,
                    computed: computed_rows(&shape, &level.operator.shape),
                    residuals: &mut spare.residuals,
                    right_side: &mut level.right_side,
                },
            };
            let start = if from_zero { Start::Zero } else { Start::Field };
            let operator = finest.with(right_side);
            on_unit(
                isa,
                Pass {
                    shape: &shape,
                    operator: &operator,
                    u,
                    start,
                    omegas: &smoothing.pre,
                    margin,
                    kept,
                    hooks: &mut down,
                },
            );
        }
        self.correct_coarse(rows)?;
        let Hierarchy {
            finest,
            smoothing,
            transfer,
            levels,
            kept,
            spare,
            ..
        } = self;
        let mut up = UpFinest {
            finest,
            scale: power_of_two(exponent),
            prolongation: Prolongation {
                fine: &shape,
                transfer,
                coarse: &levels[0].u,
                correction: &mut spare.correction,
            },
            measure: Measure {
                nx: shape.x.len,
                sums,
            },
        };
        let operator = finest.with(right_side);
        on_unit(
            isa,
            Pass {
                shape: &shape,
                operator: &operator,
                u,
                start: Start::Corrected,
                omegas: &smoothing.post,
                margin: 1,
                kept,
                hooks: &mut up,
            },
        );
        Ok(())
    }

    /// Adds the squares of the residual and of the field to `sums`. Collective.
    pub fn measure(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        sums: &mut [LeafSums; 2],
    ) -> Result<(), PeError> {
        let shape = self.finest.shape.clone();
        rows.halo(&shape, u, 1)?;
        for y in shape.rows(1) {
            self.finest.beyond(u.with_padding_mut(y, 1));
        }
        let mut measure = Measure {
            nx: shape.x.len,
            sums,
        };
        let operator = self.finest.with(right_side);
        on_unit(
            self.isa,
            Pass {
                shape: &shape,
                operator: &operator,
                u,
                start: Start::Field,
                omegas: &[],
                margin: 1,
                kept: &mut self.kept,
                hooks: &mut measure,
            },
        );
        Ok(())
    }

    /// b − Au in the own rows of `out`. Collective.
    pub fn residual(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        out: &mut Field<f64>,
    ) -> Result<(), PeError> {
        let shape = self.finest.shape.clone();
        rows.halo(&shape, u, 1)?;
        for y in shape.rows(1) {
            self.finest.beyond(u.with_padding_mut(y, 1));
        }
        let operator = self.finest.with(right_side);
        on_unit(
            self.isa,
            Pass {
                shape: &shape,
                operator: &operator,
                u,
                start: Start::Field,
                omegas: &[],
                margin: 1,
                kept: &mut self.kept,
                hooks: &mut Keep(out),
            },
        );
        Ok(())
    }

    /// Solves for the corrections of the first coarse level, whose right side is set.
    fn correct_coarse(&mut self, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        let smoothing = &self.coarse_smoothing;
        let (pre, post) = (
            Smoothing::in_type::<T>(&smoothing.pre),
            Smoothing::in_type::<T>(&smoothing.post),
        );
        let margin = smoothing.margin_down(false);
        // Rows of the coarser correction that the finer level needs beyond its own.
        let of_correction = WEIGHT_MARGIN;
        let count = self.levels.len();
        let mut fine_spread = self.finest.shape.spread;
        for at in 0..count {
            let (level, next) = split(&mut self.levels, at);
            let shape = level.operator.shape.clone();
            if fine_spread && !shape.spread {
                rows.gather(&shape, &mut level.right_side)?;
            }
            rows.halo(&shape, &mut level.right_side, margin + pre.len())?;
            fine_spread = shape.spread;
            let (Some(next), Some(transfer)) = (next, &level.transfer) else {
                break;
            };
            let mut down = DownCoarse(Restriction {
                fine: &shape,
                transfer,
                computed: computed_rows(&shape, &next.operator.shape),
                residuals: &mut self.spare.residuals,
                right_side: &mut next.right_side,
            });
            let (operator, u) = (level.operator.with(&level.right_side), &mut level.u);
            let kept = &mut level.kept;
            on_unit(
                self.isa,
                Pass {
                    shape: &shape,
                    operator: &operator,
                    u,
                    start: Start::Zero,
                    omegas: &pre,
                    margin,
                    kept,
                    hooks: &mut down,
                },
            );
        }

        let last = &mut self.levels[count - 1];
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
        rows.halo(&last.operator.shape.clone(), &mut last.u, of_correction)?;

        for at in (0..count - 1).rev() {
            let (level, next) = split(&mut self.levels, at);
            let (Some(next), Some(transfer)) = (next, &level.transfer) else {
                continue;
            };
            let shape = level.operator.shape.clone();
            let mut up = UpCoarse {
                operator: &level.operator,
                prolongation: Prolongation {
                    fine: &shape,
                    transfer,
                    coarse: &next.u,
                    correction: &mut self.spare.correction,
                },
            };
            let (operator, u) = (level.operator.with(&level.right_side), &mut level.u);
            let kept = &mut level.kept;
            on_unit(
                self.isa,
                Pass {
                    shape: &shape,
                    operator: &operator,
                    u,
                    start: Start::Corrected,
                    omegas: &post,
                    margin: 0,
                    kept,
                    hooks: &mut up,
                },
            );
            rows.halo(&shape, u, of_correction)?;
        }
        Ok(())
    }
}

/// Level `at` and the one after it.
fn split<T>(levels: &mut [Coarse<T>], at: usize) -> (&mut Coarse<T>, Option<&mut Coarse<T>>) {
    let (before, after) = levels.split_at_mut(at + 1);
    (&mut before[at], after.first_mut())
}

/// 2^`exponent`, for exponents of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// What can go wrong while the levels are made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetUpError {
    /// No memory.
    #[error(transparent)]
    Memory(#[from] io::Error),
    /// The PEs can not go on together.
    #[error(transparent)]
    Pe(#[from] PeError),
}

#[inline(always)]
fn weights<T: Real>(transfer: &Transfer<T>, j: isize) -> Weights<'_, T> {
    Weights {
        right: RIGHT.map(|part| transfer.part(j, part)),
        below: BELOW.map(|part| transfer.part(j, part)),
        amid: AMID.map(|part| transfer.part(j, part)),
    }
}

/// Restricts residuals as they come.
struct Restriction<'a, T> {
    fine: &'a Shape,
    transfer: &'a Transfer<T>,
    /// The coarse rows that are wanted.
    computed: Range<isize>,
    residuals: &'a mut [Vec<T>],
    right_side: &'a mut Field<T>,
}

impl<T: Real> Restriction<'_, T> {
    /// Where row `y` of the residual goes.
    #[inline(always)]
    fn row(&mut self, y: isize) -> &mut [T] {
        &mut self.residuals[y.rem_euclid(4) as usize][..self.fine.x.len + 2]
    }

    /// Makes the coarse row that row `y` completes.
    #[inline(always)]
    fn took(&mut self, y: isize) {
        let (j, between) = self.fine.y.coarse_of(y);
        if (!between && self.fine.y.has_between(j)) || !self.computed.contains(&j) {
            return;
        }
        let centre = self.fine.y.fine_of(j);
        let len = self.fine.x.len + 2;
        // Where there is no row between, its weights are zero.
        let row = |there: bool, y: isize| {
            let y = if there { y } else { centre };
            &self.residuals[y.rem_euclid(4) as usize][..len]
        };
        let around = Around {
            up: row(self.fine.y.has_between(j - 1), centre - 1),
            here: row(true, centre),
            down: row(between, centre + 1),
        };
        let (above, here) = (weights(self.transfer, j - 1), weights(self.transfer, j));
        restrict(&above, &here, around, self.right_side.row_mut(j));
    }
}

/// Restricts residuals of the finest level.
struct DownFinest<'a, T> {
    finest: &'a Finest,
    scale: f64,
    restriction: Restriction<'a, T>,
}

impl<T: Real> Hooks<f64> for DownFinest<'_, T> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [f64]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], _: &[f64]) {
        self.finest.symmetric(y, residual);
        for (out, &value) in self.restriction.row(y).iter_mut().zip(&*residual) {
            *out = T::from_f64(value * self.scale);
        }
        self.restriction.took(y);
    }
}

/// Restricts residuals of a coarse level.
struct DownCoarse<'a, T>(Restriction<'a, T>);

impl<T: Real> Hooks<T> for DownCoarse<'_, T> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [T]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [T], _: &[T]) {
        self.0.row(y).copy_from_slice(residual);
        self.0.took(y);
    }
}

/// Interpolates corrections.
struct Prolongation<'a, T> {
    fine: &'a Shape,
    transfer: &'a Transfer<T>,
    coarse: &'a Field<T>,
    correction: &'a mut [T],
}

impl<T: Real> Prolongation<'_, T> {
    /// The correction of fine row `y`.
    #[inline(always)]
    fn row(&mut self, y: isize) -> &[T] {
        let out = &mut self.correction[..self.fine.x.len];
        let (j, between) = self.fine.y.coarse_of(y);
        let weights = weights(self.transfer, j);
        let here = self.coarse.with_padding(j, 1);
        if between {
            prolong_between(&weights, here, self.coarse.with_padding(j + 1, 1), out);
        } else {
            prolong_on(&weights, here, out);
        }
        out
    }
}

/// Corrects the finest level, and measures what comes of it.
struct UpFinest<'a, T> {
    finest: &'a Finest,
    scale: f64,
    prolongation: Prolongation<'a, T>,
    measure: Measure<'a>,
}

impl<T: Real> Hooks<f64> for UpFinest<'_, T> {
    const RESIDUAL: bool = true;
    #[inline(always)]
    fn correct(&mut self, y: isize, row: &mut [f64]) {
        self.finest
            .add(y, self.prolongation.row(y), self.scale, row);
    }
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], u: &[f64]) {
        self.measure.residual(y, residual, u);
    }
}

/// Corrects a coarse level.
struct UpCoarse<'a, T> {
    operator: &'a Operator<T>,
    prolongation: Prolongation<'a, T>,
}

impl<T: Real> Hooks<T> for UpCoarse<'_, T> {
    const RESIDUAL: bool = false;
    #[inline(always)]
    fn correct(&mut self, y: isize, row: &mut [T]) {
        self.operator.add(y, self.prolongation.row(y), row);
    }
    fn residual(&mut self, _: isize, _: &mut [T], _: &[T]) {}
}

/// Sums the squares of the residual and of the field.
struct Measure<'a> {
    nx: usize,
    sums: &'a mut [LeafSums; 2],
}

impl Hooks<f64> for Measure<'_> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [f64]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], u: &[f64]) {
        let [of_residual, of_field] = &mut *self.sums;
        let (residual, u) = (&residual[1..=self.nx], &u[1..=self.nx]);
        of_residual.add_row(y, self.nx, |x| residual[x] * residual[x]);
        of_field.add_row(y, self.nx, |x| u[x] * u[x]);
    }
}

/// Keeps the residual.
struct Keep<'a>(&'a mut Field<f64>);

impl Hooks<f64> for Keep<'_> {
    const RESIDUAL: bool = true;
    fn correct(&mut self, _: isize, _: &mut [f64]) {}
    #[inline(always)]
    fn residual(&mut self, y: isize, residual: &mut [f64], _: &[f64]) {
        let out = self.0.row_mut(y);
        let n = out.len();
        out.copy_from_slice(&residual[1..=n]);
    }
}

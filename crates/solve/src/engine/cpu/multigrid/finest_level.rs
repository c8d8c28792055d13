//! What can be done on the finest level without any other: residuals, their norms, and steps of Chebyshev's iteration.

use std::io;
use std::ops::Range;

use super::finest::{Finest, WithRightSide};
use super::half_rows::HalfRows;
use super::hooks::{Keep, KeepProduct, Measure};
use super::rows::{Ahead, Around};
use super::sums::LeafSums;
use super::wavefront::{Hooks, Kept, Pass, Relaxation, Start};
use crate::element::simd::{Isa, Work, on_unit};
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;
use crate::problem::scale::{Scale, are_finite};

/// The equations, and the buffers of passes over them.
pub(crate) struct FinestLevel {
    pub equations: Finest,
    pub(super) isa: Isa,
    pub(super) kept: Kept<f64>,
    pub(super) halves: HalfRows,
}

impl FinestLevel {
    /// For passes of up to `steps` relaxations.
    pub fn new(equations: Finest, steps: usize) -> io::Result<FinestLevel> {
        Ok(FinestLevel {
            isa: Isa::widest(),
            kept: Kept::new(equations.shape.x.len, steps)?,
            halves: HalfRows::new(equations.shape.x.len, steps)?,
            equations,
        })
    }

    /// Adds the squares of the residual and those of [`Finest::add_field`] to `sums`. Collective.
    pub fn measure(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        sums: &mut [LeafSums; 2],
    ) -> Result<(), PeError> {
        self.without_relaxing(rows, u, right_side, |finest| Measure { finest, sums })
    }

    /// b − Au in the own rows of `out`. Collective.
    pub fn residual(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        out: &mut Field<f64>,
    ) -> Result<(), PeError> {
        self.without_relaxing(rows, u, right_side, |_| Keep(out))
    }

    /// −Au in the own rows of `out`, and −⟨u, Au⟩, in the inner product in which A is symmetric, to `sum`. Collective.
    pub fn negative_product(
        &mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        out: &mut Field<f64>,
        sum: &mut LeafSums,
    ) -> Result<(), PeError> {
        self.without_relaxing(rows, u, None, |finest| KeepProduct { finest, out, sum })
    }

    fn without_relaxing<'a, H: Hooks<f64>>(
        &'a mut self,
        rows: &mut LevelRows<'_>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        hooks: impl FnOnce(&'a Finest) -> H,
    ) -> Result<(), PeError> {
        let equations = &self.equations;
        update(equations, rows, u)?;
        on_unit(
            self.isa,
            Pass {
                shape: &equations.shape,
                operator: &equations.with(right_side),
                u,
                start: Start::Field,
                steps: &[],
                margin: 1,
                kept: &mut self.kept,
                hooks: &mut hooks(equations),
            },
        );
        Ok(())
    }

    /// Makes the rows and columns around the own ones of `u` what they are where they are computed. Collective.
    pub fn update(&self, rows: &mut LevelRows<'_>, u: &mut Field<f64>) -> Result<(), PeError> {
        update(&self.equations, rows, u)
    }

    /// A step of Chebyshev's iteration: u += d, r = b − Au, d = `keep` d + `gain` D⁻¹ r, in one pass through memory.
    ///
    /// `u` has been [updated](Self::update) before the first step. `sums` get the squares of r and those of
    /// [`Finest::add_field`]. Collective.
    pub fn chebyshev_step(
        &mut self,
        rows: &mut LevelRows<'_>,
        [u, d]: [&mut Field<f64>; 2],
        right_side: Option<&Field<f64>>,
        [keep, gain]: [f64; 2],
        sums: &mut [LeafSums; 2],
    ) -> Result<(), PeError> {
        rows.halo(&self.equations.shape, d, 1)?;
        on_unit(
            self.isa,
            ChebyshevStep {
                equations: &self.equations,
                operator: &self.equations.with(right_side),
                residual: self.kept.residual(),
                u,
                d,
                keep,
                gain,
                sums,
            },
        );
        Ok(())
    }
}

impl FinestLevel {
    /// A step of conjugate gradients: u += `alpha` p, r += `alpha` q. `sums` get the squares of r, its product with itself
    /// in the inner product in which A is symmetric, and the squares of [`Finest::add_field`].
    pub fn descend(
        &mut self,
        u: &mut Field<f64>,
        r: &mut Field<f64>,
        p: &Field<f64>,
        q: &Field<f64>,
        alpha: f64,
        sums: &mut [LeafSums; 3],
    ) {
        let work = Descent {
            equations: &self.equations,
            weighted: self.kept.residual(),
            u,
            r,
            p,
            q,
            alpha,
            sums,
        };
        on_unit(self.isa, work);
    }
}

impl FinestLevel {
    /// Adds the squares of [`Finest::add_field`] to `sum`, then makes the rows `given` of `u` what they stand for: without
    /// `surplus`, as `scale` says. Whether all of these have room in the type.
    pub fn give_back(
        &self,
        u: &mut Field<f64>,
        sum: &mut LeafSums,
        given: Range<isize>,
        surplus: f64,
        scale: Scale,
    ) -> bool {
        let mut fits = true;
        let work = GivingBack {
            equations: &self.equations,
            u,
            sum,
            given,
            surplus,
            scale,
            fits: &mut fits,
        };
        on_unit(self.isa, work);
        fits
    }
}

fn update(equations: &Finest, rows: &mut LevelRows<'_>, u: &mut Field<f64>) -> Result<(), PeError> {
    let shape = &equations.shape;
    rows.halo(shape, u, 1)?;
    for y in shape.rows(1) {
        equations.beyond(u.with_padding_mut(y, 1));
    }
    Ok(())
}

struct GivingBack<'a> {
    equations: &'a Finest,
    u: &'a mut Field<f64>,
    sum: &'a mut LeafSums,
    given: Range<isize>,
    surplus: f64,
    scale: Scale,
    fits: &'a mut bool,
}

impl Work for GivingBack<'_> {
    #[inline(always)]
    fn run(self) {
        let same = self.surplus == 0.0 && self.scale == Scale::NONE;
        for y in self.equations.shape.own() {
            let row = self.u.row_mut(y);
            self.equations.add_field(self.sum, y, row);
            // Where every PE computes all rows, each gives back some.
            if !self.given.contains(&y) {
                continue;
            }
            if !same {
                for value in &mut *row {
                    *value = self.scale.up(*value - self.surplus);
                }
            }
            *self.fits &= are_finite(row);
        }
    }
}

struct ChebyshevStep<'a> {
    equations: &'a Finest,
    operator: &'a WithRightSide<'a>,
    /// A row, with a column more on both sides.
    residual: &'a mut [f64],
    u: &'a mut Field<f64>,
    d: &'a mut Field<f64>,
    keep: f64,
    gain: f64,
    sums: &'a mut [LeafSums; 2],
}

impl ChebyshevStep<'_> {
    /// u += d in row `y`.
    #[inline(always)]
    fn go(&mut self, y: isize) {
        let (u, d) = (self.u.with_padding_mut(y, 1), self.d.row(y));
        let n = d.len();
        for (u, &d) in u[1..=n].iter_mut().zip(d) {
            *u += d;
        }
        self.equations.beyond(u);
    }
}

impl Work for ChebyshevStep<'_> {
    #[inline(always)]
    fn run(mut self) {
        let shape = &self.equations.shape;
        let (own, near) = (shape.own(), shape.rows(1));
        let nx = shape.x.len;
        for y in near.start..(own.start + 1).min(near.end) {
            self.go(y);
        }
        for y in own {
            if near.contains(&(y + 1)) {
                self.go(y + 1);
            }
            let (up, down) = shape.y.neighbours(y);
            let around = Around {
                ahead: Ahead::default(),
                up: self.u.with_padding(up, 1),
                here: self.u.with_padding(y, 1),
                down: self.u.with_padding(down, 1),
            };
            self.operator.residual(y, around, self.residual);
            let (here, residual) = (&around.here[1..=nx], &self.residual[1..=nx]);
            let [of_residual, of_field] = &mut *self.sums;
            of_residual.add_row(y, nx, |x| residual[x] * residual[x]);
            self.equations.add_field(of_field, y, here);
            let d = self.d.row_mut(y);
            match &self.equations.coefficients {
                None => {
                    let gain = self.gain * self.equations.inverse();
                    for (d, &residual) in d.iter_mut().zip(residual) {
                        *d = self.keep * *d + gain * residual;
                    }
                }
                Some(coefficients) => {
                    let inverse = &coefficients.here().row(y).inverse[1..=nx];
                    for ((d, &residual), &inverse) in d.iter_mut().zip(residual).zip(inverse) {
                        *d = self.keep * *d + (self.gain * inverse) * residual;
                    }
                }
            }
        }
    }
}

struct Descent<'a> {
    equations: &'a Finest,
    /// A row, with a column more on both sides.
    weighted: &'a mut [f64],
    u: &'a mut Field<f64>,
    r: &'a mut Field<f64>,
    p: &'a Field<f64>,
    q: &'a Field<f64>,
    alpha: f64,
    sums: &'a mut [LeafSums; 3],
}

impl Work for Descent<'_> {
    #[inline(always)]
    fn run(self) {
        let shape = &self.equations.shape;
        let nx = shape.x.len;
        let [of_residual, inner, of_field] = self.sums;
        for y in shape.own() {
            let (u, r) = (self.u.row_mut(y), self.r.row_mut(y));
            for (u, &p) in u.iter_mut().zip(self.p.row(y)) {
                *u += self.alpha * p;
            }
            for (r, &q) in r.iter_mut().zip(self.q.row(y)) {
                *r += self.alpha * q;
            }
            self.weighted[1..=nx].copy_from_slice(r);
            self.equations.symmetric(y, self.weighted);
            let weighted = &self.weighted[1..=nx];
            of_residual.add_row(y, nx, |x| r[x] * r[x]);
            inner.add_row(y, nx, |x| r[x] * weighted[x]);
            self.equations.add_field(of_field, y, u);
        }
    }
}

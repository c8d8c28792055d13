//! Conjugate gradients with a cycle in each step.

use std::io;

use super::steps::{Ended, raised};
use super::{Holding, Solver};
use crate::engine::cpu::multigrid::finest::Finest;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::shape::HALO;
use crate::field::storage::Field;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;

/// The fields of conjugate gradients.
pub(super) struct Gradients {
    r: Field<f64>,
    z: Field<f64>,
    p: Field<f64>,
    /// −α A p of the step before.
    q: Field<f64>,
}

impl Gradients {
    pub fn new(finest: &Finest) -> io::Result<Gradients> {
        Ok(Gradients {
            r: finest.field()?,
            z: finest.field()?,
            p: finest.field()?,
            q: finest.field()?,
        })
    }

    /// Those that the next step needs.
    pub fn kept_mut(&mut self) -> [&mut Field<f64>; 3] {
        [&mut self.r, &mut self.p, &mut self.q]
    }
}

impl Solver<'_, Hierarchy<f32>> {
    /// Conjugate gradients with a V-cycle from zero as the preconditioner, in the inner product in which the operator is
    /// symmetric. β is that of the flexible method, for a cycle in `f32` is not quite the same operator each time.
    /// `resumed`: the fields to go on with.
    pub(super) fn conjugate_gradients(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        resumed: Option<Gradients>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let mut begun = resumed.is_some();
        let mut gradients = match resumed {
            Some(gradients) => gradients,
            None => Gradients::new(self.equations()).map_err(SolveError::Memory)?,
        };
        loop {
            let Gradients { r, z, p, q } = &mut gradients;
            if !begun {
                self.residual(u, right_side, r)?;
            }
            let exponent = self.exponent(ended.last());
            self.rows.halo(&self.layout.shape, r, HALO)?;
            self.levels.precondition(&mut self.rows, z, r, exponent)?;
            // β = −α ⟨z, q⟩ / ⟨z, r⟩ of the step before; kept in `q` times α.
            let rows = self.layout.shape.own();
            if begun {
                let beta = -self.product(z, q)? / ended.inner;
                for y in rows.clone() {
                    for (p, &z) in p.row_mut(y).iter_mut().zip(z.row(y)) {
                        *p = z + beta * *p;
                    }
                }
            } else {
                for y in rows.clone() {
                    p.row_mut(y).copy_from_slice(z.row(y));
                }
            }
            ended.inner = self.product(z, r)?;
            self.residual(p, None, q)?;
            // The residual of nothing on the right is −Ap.
            let curvature = -self.product(p, q)?;
            let alpha = if curvature > 0.0 {
                self.product(p, r)? / curvature
            } else {
                0.0
            };
            let [mut of_residual, mut of_field] = self.sums();
            let nx = self.layout.shape.x.len;
            for y in rows {
                for (q, value) in q.row_mut(y).iter_mut().zip(r.row_mut(y)) {
                    *q *= alpha;
                    *value += *q;
                    *q = -*q;
                }
                for (u, &p) in u.row_mut(y).iter_mut().zip(p.row(y)) {
                    *u += alpha * p;
                }
                let (r, u) = (r.row(y), u.row(y));
                of_residual.add_row(y, nx, |x| r[x] * r[x]);
                of_field.add_row(y, nx, |x| u[x] * u[x]);
            }
            let (totals, interrupted) = self.total([of_residual, of_field], raised(options))?;
            let [mut norm, field] = totals.map(f64::sqrt);
            ended.stop(norm, field, options, interrupted);
            // Begun again when the residual that was kept up to date turns out to be off.
            begun = !(ended.converged || ended.floor_reached || alpha == 0.0);
            if !begun {
                [norm, _] = self.measure(u, right_side)?;
                ended.stop(norm, field, options, interrupted);
                // Without a direction to go there is nothing better to be had.
                ended.floor_reached |= alpha == 0.0 && !ended.converged;
            }
            let mut holder = Holding {
                solver: self,
                u,
                kept: match begun {
                    true => gradients.kept_mut().into(),
                    false => Vec::new(),
                },
            };
            if ended.took(norm, &mut holder, options, observer)? {
                return Ok(());
            }
        }
    }
}

//! Conjugate gradients without a preconditioner (M. R. Hestenes, E. Stiefel, *J. Res. Natl. Bur. Stand.* 49, 1952,
//! 409-436), in the inner product in which the operator is symmetric.

use super::alone::Alone;
use super::{Ended, Holding, Solver, raised};
use crate::field::checkpoint::CheckpointKind;
use crate::field::storage::Field;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;

impl Solver<'_, Alone> {
    /// Steps until the residual is small. The residual is kept up to date, and computed anew where it says that it is.
    pub(super) fn plain_gradients(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let new = || self.equations().field().map_err(SolveError::Memory);
        let [mut r, mut p, mut q] = [new()?, new()?, new()?];
        let (mut begun, mut resumed) = (false, false);
        if let Some(path) = &options.resume {
            let (kind, others) = (CheckpointKind::Gradients, [&mut r, &mut p]);
            if !self.resume(u, path, kind, |_| Ok(others.into()), ended, options)? {
                return Ok(());
            }
            resumed = true;
            // 0: the direction is to be made anew.
            begun = ended.inner != 0.0;
        }
        ended.setup_seconds = self.so_far();
        if !resumed {
            let [norm, _] = self.measure(u, right_side)?;
            ended.norms.push(norm);
            ended.converged = norm == 0.0;
            if ended.converged {
                return Ok(());
            }
        }
        loop {
            if !begun {
                self.residual(u, right_side, &mut r)?;
                for y in self.layout.shape.own() {
                    p.row_mut(y).copy_from_slice(r.row(y));
                }
                ended.inner = self.product(&r, &r)?;
            }
            let [mut sum] = self.sums();
            let (top, rows) = (&mut self.levels.top, &mut self.rows);
            top.negative_product(rows, &mut p, &mut q, &mut sum)?;
            let ([sum], _) = self.total([sum], false)?;
            let curvature = -sum;
            let alpha = if curvature > 0.0 {
                ended.inner / curvature
            } else {
                0.0
            };
            let mut sums = self.sums();
            self.levels.top.descend(u, &mut r, &p, &q, alpha, &mut sums);
            let ([squares, inner, of_field], interrupted) = self.total(sums, raised(options))?;
            let (mut norm, field) = (squares.sqrt(), of_field.sqrt());
            ended.stop(norm, field, options, interrupted);
            begun = !(ended.converged || ended.floor_reached || alpha == 0.0);
            if begun {
                let beta = inner / ended.inner;
                for y in self.layout.shape.own() {
                    for (p, &r) in p.row_mut(y).iter_mut().zip(r.row(y)) {
                        *p = r + beta * *p;
                    }
                }
            } else {
                // Begun again if the residual that was kept up to date turns out to be off.
                [norm, _] = self.measure(u, right_side)?;
                ended.stop(norm, field, options, interrupted);
                // Without a direction to go there is nothing better to be had.
                ended.floor_reached |= alpha == 0.0 && !ended.converged;
            }
            ended.inner = if begun { inner } else { 0.0 };
            let mut holder = Holding {
                solver: self,
                u,
                kept: vec![&mut r, &mut p],
            };
            if ended.took(norm, &mut holder, options, observer)? {
                return Ok(());
            }
        }
    }
}

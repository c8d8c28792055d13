//! Chebyshev's iteration: of all methods that take the residuals of their steps by fixed weights, the one whose error is
//! smallest at worst, eigenvalues being anywhere in an interval (G. H. Golub, R. S. Varga, *Numer. Math.* 3, 1961,
//! 147-156). The interval is known beforehand: no eigenvalue of D⁻¹A is above 2, by Gershgorin, nor below the bound of
//! `least_eigenvalue.rs`.

use super::alone::Alone;
use super::{Ended, Holding, Solver, raised};
use crate::field::checkpoint::CheckpointKind;
use crate::field::storage::Field;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;

/// The largest eigenvalue that there can be.
const LARGEST: f64 = 2.0;

/// How much of the last step, and how much of the residual, each step takes.
struct Weights {
    centre: f64,
    half: f64,
    /// The ratio of the polynomials of the last two steps.
    ratio: Option<f64>,
}

impl Weights {
    fn new(least: f64) -> Weights {
        Weights {
            centre: 0.5 * (LARGEST + least),
            half: 0.5 * (LARGEST - least),
            ratio: None,
        }
    }

    fn next(&mut self) -> [f64; 2] {
        let sigma = self.centre / self.half;
        match self.ratio {
            None => {
                self.ratio = Some(1.0 / sigma);
                [0.0, 1.0 / self.centre]
            }
            Some(before) => {
                let ratio = 1.0 / (2.0 * sigma - before);
                self.ratio = Some(ratio);
                [ratio * before, 2.0 * ratio / self.half]
            }
        }
    }
}

impl Solver<'_, Alone> {
    /// Steps until the residual is small. A pass makes the step that the last one has left in `d`, measures, and works the
    /// next step out: what a step is measured by is the field that it leaves.
    pub(super) fn chebyshev(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let mut d = self.equations().field().map_err(SolveError::Memory)?;
        let mut weights = Weights::new(self.levels.least);
        if let Some(path) = &options.resume {
            let kind = CheckpointKind::Chebyshev;
            let more = self.resume(u, path, kind, |_| Ok(vec![&mut d]), ended, options)?;
            (0..=ended.steps()).for_each(|_| {
                weights.next();
            });
            if !more {
                return Ok(());
            }
        }
        ended.setup_seconds = self.so_far();
        // Steps carry what was rounded in earlier ones along: by its square root as much as the weights of waves in phase,
        // whose number is the square root of the ratio of the eigenvalues.
        let carried = (LARGEST / self.levels.least).sqrt().sqrt();
        self.levels.top.update(&mut self.rows, u)?;
        loop {
            let mut sums = self.sums();
            let (top, rows) = (&mut self.levels.top, &mut self.rows);
            top.chebyshev_step(rows, [u, &mut d], right_side, weights.next(), &mut sums)?;
            let (totals, interrupted) = self.total(sums, raised(options))?;
            let [norm, field] = totals.map(f64::sqrt);
            if ended.norms.is_empty() {
                ended.norms.push(norm);
                ended.converged = norm == 0.0;
                if ended.converged {
                    return Ok(());
                }
                continue;
            }
            ended.stop(norm, carried * field, options, interrupted);
            let mut holder = Holding {
                solver: self,
                u,
                kept: vec![&mut d],
            };
            if ended.took(norm, &mut holder, options, observer)? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_make_chebyshevs_polynomial() {
        for least in [1e-6, 1e-3, 0.3, 1.0] {
            for value in [least, 0.5 * (least + 2.0), 1.999, 2.0] {
                // u' = −value u from 1: the error after k steps is T_k((centre − value) / half) / T_k(centre / half).
                let mut weights = Weights::new(least);
                let (centre, half) = (weights.centre, weights.half);
                let (mut u, mut d) = (1.0, 0.0);
                // T_k by its recurrence, of both.
                let [x, y] = [(centre - value) / half, centre / half];
                let (mut before, mut now) = ([1.0, 1.0], [x, y]);
                for k in 1..20 {
                    let [keep, gain] = weights.next();
                    d = keep * d - gain * value * u;
                    u += d;
                    let exact = now[0] / now[1];
                    let next = [2.0 * x * now[0] - before[0], 2.0 * y * now[1] - before[1]];
                    (before, now) = (now, next);
                    assert!((u - exact).abs() < 1e-9, "{least} {value} {k}: {u} {exact}");
                }
            }
        }
    }
}

//! Chebyshev's iteration: of all methods that take the residuals of their steps by fixed weights, the one whose error is
//! smallest at worst, eigenvalues being anywhere in an interval (G. H. Golub, R. S. Varga, *Numer. Math.* 3, 1961,
//! 147-156). The interval is known beforehand: no eigenvalue of D⁻¹A is above 2, by Gershgorin, nor below the bound of
//! `least_eigenvalue.rs`.

use super::alone::Alone;
use super::held::HeldRows;
use super::steps::{Ended, Holder, fetch, raised};
use super::{LeafSums, Solver};
use crate::engine::cuda::multigrid::steps::{Part, PlaneSteps};
use crate::field::band::Band;
use crate::field::checkpoint::{CheckpointKind, Identity};
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;
use crate::pes::agree::all_ready_by;
use crate::pes::reduction::Reduction;

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

/// By how much more rounding leaves than that of one step ([`Ended::carried`]). Steps carry what was rounded in earlier ones
/// along: by its square root as much as the weights of waves in phase, whose number is the square root of the ratio of the
/// eigenvalues.
pub(super) fn carried(least: f64) -> f64 {
    (LARGEST / least).sqrt().sqrt()
}

/// Who has the fields u and d, and makes steps of them.
pub(super) trait ChebyshevSteps: Holder {
    /// u += d, r = b − Au, d = `keep` d + `gain` D⁻¹r. The norms of r and, as [`Ended::stop`] takes it, of u, and whether
    /// any PE is interrupted. Collective.
    fn step(&mut self, weights: [f64; 2], interrupted: bool) -> Result<([f64; 2], bool), GpuError>;
}

/// Steps until the residual is small. Each makes the one that the last has left in d, measures, and works the next one
/// out: what a step is measured by is the field that it leaves. `least`: no eigenvalue is less.
pub(super) fn iterate(
    steps: &mut impl ChebyshevSteps,
    least: f64,
    ended: &mut Ended,
    options: &Options<'_>,
    observer: &mut impl FnMut(&Progress<'_>),
) -> Result<(), SolveError> {
    let mut weights = Weights::new(least);
    // Those of a checkpoint, and the one that is left in d.
    if !ended.norms.is_empty() {
        (0..=ended.steps()).for_each(|_| {
            weights.next();
        });
    }
    loop {
        let ([norm, field], interrupted) = steps.step(weights.next(), raised(options))?;
        if ended.norms.is_empty() {
            if ended.begin(norm, steps, options)? {
                return Ok(());
            }
            continue;
        }
        ended.stop(norm, field, options, interrupted);
        if ended.took(norm, steps, options, observer)? {
            return Ok(());
        }
    }
}

impl Solver<'_, Alone> {
    /// Steps on a plane.
    pub(super) fn chebyshev(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let least = self.levels.least;
        ended.carried = Some(carried(least));
        let made = self.equations().field().map_err(SolveError::Memory);
        let mut d = all_ready_by(&self.reduction, made)?;
        if let Some(path) = &options.resume {
            let kind = CheckpointKind::Chebyshev;
            if !self.resume(u, path, kind, |_| Ok(vec![&mut d]), ended, options)? {
                return Ok(());
            }
        }
        let gpu = self.give_to_gpu(options, u, right_side, [(Part::P, &d)])?;
        ended.on_gpu = gpu.is_some();
        ended.setup_seconds = self.so_far();
        if gpu.is_none() {
            self.levels.top.update(&mut self.rows, u)?;
        }
        let mut steps = OnPlane {
            solver: self,
            u,
            right_side,
            d,
            gpu,
        };
        let done = iterate(&mut steps, least, ended, options, observer);
        steps.solver.rows.gpus.leave_after(&done);
        done?;
        Ok(fetch(&steps.gpu, steps.u)?)
    }
}

/// A plane.
struct OnPlane<'s, 'a> {
    solver: &'s mut Solver<'a, Alone>,
    u: &'s mut Field<f64>,
    right_side: Option<&'s Field<f64>>,
    d: Field<f64>,
    gpu: Option<PlaneSteps>,
}

impl Holder for OnPlane<'_, '_> {
    fn state(&mut self) -> Result<(HeldRows<'_>, &Reduction<'_>, &Identity), GpuError> {
        fetch(&self.gpu, self.u)?;
        if let Some(gpu) = &self.gpu {
            gpu.save(Part::P, &mut self.d)?;
        }
        let solver = &*self.solver;
        let rows = solver.held(vec![&mut *self.u, &mut self.d], false);
        Ok((rows, &solver.reduction, &solver.given.identity))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        fetch(&self.gpu, self.u)?;
        Ok(self.solver.band(self.u)?.0)
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }
}

impl ChebyshevSteps for OnPlane<'_, '_> {
    fn step(&mut self, weights: [f64; 2], interrupted: bool) -> Result<([f64; 2], bool), GpuError> {
        let solver = &mut *self.solver;
        if let Some(gpu) = &mut self.gpu {
            let sums = gpu.chebyshev(&mut solver.rows, weights)?;
            let (totals, interrupted) = solver.total_of(sums, interrupted)?;
            return Ok((totals.map(f64::sqrt), interrupted));
        }
        let mut sums: [LeafSums; 2] = solver.sums();
        let (top, rows) = (&mut solver.levels.top, &mut solver.rows);
        let fields = [&mut *self.u, &mut self.d];
        top.chebyshev_step(rows, fields, self.right_side, weights, &mut sums)?;
        let (totals, interrupted) = solver.total(sums, interrupted)?;
        Ok((totals.map(f64::sqrt), interrupted))
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

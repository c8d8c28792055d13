//! What becomes of a step: it is told, kept in a checkpoint and shown, and decides whether there is another one.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::held::HeldRows;
use crate::engine::cuda::multigrid::steps::{FinestPass, GpuSteps, Part};
use crate::field::band::Band;
use crate::field::checkpoint::{self, CheckpointError, Identity, StepsState};
use crate::field::storage::Field;
use crate::field::view::{FieldView, Scaled};
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;
use crate::pes::reduction::Reduction;
use crate::problem::scale::Scale;

/// A cycle that leaves more than this part of the residual is looked at.
const SLOW: f64 = 0.4;

/// How a solve by cycles goes, and has ended.
#[derive(Default)]
pub(crate) struct Ended {
    pub converged: bool,
    pub floor_reached: bool,
    pub interrupted: bool,
    /// The norms of the residual: before the first cycle, and after each.
    pub norms: Vec<f64>,
    /// Of them, those of an earlier run.
    pub resumed_at: usize,
    /// ⟨z, r⟩ of conjugate gradients.
    pub inner: f64,
    /// The number of cycles after which conjugate gradients were taken.
    pub gradients_from: Option<usize>,
    /// Whether cycles are all that can be made here,
    pub only_cycles: bool,
    /// and whether they were slow, so that conjugate gradients are to be taken.
    pub left_to_gradients: bool,
    /// Whether a GPU was given what the method has of the grid, to make its steps.
    pub on_gpu: bool,
    /// By how much more rounding leaves than that of one step, where steps carry it along.
    pub carried: Option<f64>,
    /// What was taken away from an incompatible source: its sum, relative to the sum of its sizes.
    pub projected: Option<f64>,
    pub checkpoint_failure: Option<CheckpointError>,
    pub seconds: f64,
    pub setup_seconds: f64,
}

/// Who has the fields of a solve.
pub(super) trait Holder {
    /// The fields that the next step needs, those of conjugate gradients included, and what a checkpoint takes else.
    fn state(&mut self) -> Result<(HeldRows<'_>, &Reduction<'_>, &Identity), GpuError>;
    /// The field as it would be returned. Collective.
    fn field(&mut self) -> Result<Band<f64>, SolveError>;
    /// The first PE whose rows made the last norm that is not finite, where that is not all PEs.
    fn not_finite_on(&self) -> Option<usize>;
}

impl Ended {
    /// What a residual of norm `norm` means. `field`: the norm of the field times a quarter of the diagonal, or 0 where
    /// rounding is not to be looked for.
    pub fn stop(&mut self, norm: f64, field: f64, options: &Options<'_>, interrupted: bool) {
        self.converged = norm <= options.tolerance * self.norms[0];
        self.floor_reached = !self.converged && norm <= 2.0 * self.floor(field);
        self.interrupted = interrupted;
    }

    /// What rounding of 4u, or of a diagonal times u, alone leaves of the residual, `field` being the norm of u times a
    /// quarter of the diagonal. A limit of twice that can be kept; a smaller one perhaps.
    fn floor(&self, field: f64) -> f64 {
        2.0 * f64::EPSILON * self.carried.unwrap_or(1.0) * field
    }

    /// The same, relative to the first residual.
    pub fn relative_floor(&self, field: f64) -> Option<f64> {
        let first = self.norms.first().filter(|&&norm| norm > 0.0)?;
        Some(self.floor(field) / first)
    }

    /// Takes the norm before the first step, and says whether there is nothing to solve.
    pub(super) fn begin(
        &mut self,
        norm: f64,
        holder: &impl Holder,
        options: &Options<'_>,
    ) -> Result<bool, SolveError> {
        if !norm.is_finite() {
            return Err(SolveError::NotFinite {
                steps: options.method.step(),
                step: 0,
                norm,
                pe: holder.not_finite_on(),
            });
        }
        self.norms.push(norm);
        self.converged = norm == 0.0;
        Ok(self.converged)
    }

    /// The norm after the last step, which is the one before the next.
    pub fn last(&self) -> f64 {
        self.norms.last().copied().unwrap_or(f64::NAN)
    }

    /// Whether a step from `before` to `norm` leaves much, and more than is wanted.
    pub fn is_slow(&self, before: f64, norm: f64, options: &Options<'_>) -> bool {
        norm > SLOW * before && norm > options.tolerance * self.norms[0]
    }

    /// Whether the last step was slow.
    pub fn was_slow(&self, options: &Options<'_>) -> bool {
        let last = self.norms.windows(2).last();
        last.is_some_and(|pair| self.is_slow(pair[0], pair[1], options))
    }

    /// Steps made.
    pub fn steps(&self) -> usize {
        self.norms.len().saturating_sub(1)
    }

    /// The norm after each step, relative to that before the first.
    pub fn history(&self) -> Vec<f64> {
        let after = self.norms.iter().skip(1);
        after.map(|norm| norm / self.norms[0]).collect()
    }

    /// Takes the norm that a step has left, and says whether to end. Collective.
    pub(super) fn took(
        &mut self,
        norm: f64,
        holder: &mut impl Holder,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<bool, SolveError> {
        self.norms.push(norm);
        let steps = self.steps();
        let over = steps >= options.max_sweeps;
        let relative = norm / self.norms[0];
        let good = self.converged || self.floor_reached;
        if relative.is_finite() && !good {
            self.save_if_due(over, holder, options)?;
        }
        let field = match options.field_every {
            Some(every) if steps.is_multiple_of(every.get()) => Some(holder.field()?),
            _ => None,
        };
        let view = field.as_ref().map(|band| Scaled::new(band, Scale::NONE));
        observer(&Progress {
            sweeps: steps,
            norms: &[relative],
            checkpoint_failure: self.checkpoint_failure.as_ref(),
            field: view.as_ref().map(FieldView::of),
        });
        if !relative.is_finite() {
            return Err(SolveError::NotFinite {
                steps: options.method.step(),
                step: steps,
                norm: relative,
                pe: holder.not_finite_on(),
            });
        }
        self.interrupted &= !good;
        Ok(over || good || self.interrupted)
    }

    fn save_if_due(
        &mut self,
        over: bool,
        holder: &mut impl Holder,
        options: &Options<'_>,
    ) -> Result<(), SolveError> {
        let Some(checkpoint) = &options.checkpoint else {
            return Ok(());
        };
        let due = self.steps().is_multiple_of(checkpoint.every) || self.interrupted || over;
        if due {
            self.checkpoint_failure = self.save(holder, &checkpoint.path)?;
        }
        Ok(())
    }

    fn save(
        &self,
        holder: &mut impl Holder,
        path: &Path,
    ) -> Result<Option<CheckpointError>, SolveError> {
        let (rows, reduction, identity) = holder.state()?;
        let state = StepsState {
            fields: rows.fields.len() as u64,
            gradients_from: self.gradients_from.map(|from| from as u64),
            inner: self.inner,
        };
        let norms = &self.norms;
        let written = checkpoint::save(reduction, &rows, path, identity, norms, Some(state))?;
        Ok(written.err())
    }
}

/// Brings u from the GPU, if it is there.
pub(super) fn fetch<A: FinestPass, K>(
    gpu: &Option<GpuSteps<A, K>>,
    u: &mut Field<f64>,
) -> Result<(), GpuError> {
    match gpu {
        Some(gpu) => gpu.save(Part::U, u),
        None => Ok(()),
    }
}

/// Whether this PE is interrupted.
pub(super) fn raised(options: &Options<'_>) -> bool {
    options
        .interrupt
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}

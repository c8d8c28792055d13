//! What comes of a solve.

use std::ops::Range;

use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cpu::line::CpuLine;
use crate::engine::cpu::plane::CpuPlane;
use crate::field::band::Band;
use crate::field::checkpoint::CheckpointError;
use crate::field::gather;
use crate::field::rows::LocalRows;
use crate::gpu::choice::Choice;
use crate::method::error::SolveError;
use crate::method::jacobi::Outcome;
use crate::method::multigrid;

/// Who holds it.
pub(crate) enum Field<F> {
    Line(CpuLine<F>),
    Band(Band<F>),
    Plane(CpuPlane<F>),
    /// An array of the caller's.
    OnDevice,
}

/// The end of a solve: what every PE knows, and this PE's part of the field.
pub struct Solution<F> {
    /// Sweeps done, those before a resumed checkpoint included.
    pub sweeps: usize,
    /// Whether the last norm is at most the tolerance.
    pub converged: bool,
    /// Whether an interrupt ended the solve.
    pub interrupted: bool,
    /// Norm of the last sweep.
    pub norm: f64,
    /// Norm of every sweep, from sweep 0 on.
    pub history: Vec<f64>,
    /// Wall-clock time of the sweeps of this run, set-up and output excluded, checkpoints included; of cycles, with the
    /// making of their levels.
    pub seconds: f64,
    /// Of [`seconds`](Self::seconds), those before the first cycle: levels are made, and copied to a GPU. 0 of sweeps.
    pub setup_seconds: f64,
    /// Updates of inner cells by the sweeps of this run; what was computed twice is not counted twice.
    pub cell_updates: u64,
    /// Sweeps per pass that were used.
    pub sweeps_per_pass: usize,
    /// Why the last checkpoint could not be written, if so.
    pub checkpoint_failure: Option<CheckpointError>,
    /// Multigrid's levels, if there were any.
    pub levels: Option<usize>,
    /// The number of multigrid's cycles after which conjugate gradients were taken, if they were.
    pub gradients_from: Option<usize>,
    /// Whether cycles ended because rounding allows no smaller residual.
    pub floor_reached: bool,
    /// Of methods that look at the residual: what rounding of the field alone leaves of it, relative to the first. A limit
    /// of twice that can be kept, a smaller one perhaps: a cycle below that which hardly shrinks the residual is the last.
    pub floor: Option<f64>,
    /// What was taken away from the source ([`project_source`](crate::Options::project_source)): sources and derivatives as
    /// they were left, relative to the sum of their sizes.
    pub projected: Option<f64>,
    /// How GPUs were used, if they were.
    pub choice: Option<Choice>,
    field: Field<F>,
}

impl<F: Real> Solution<F> {
    pub(crate) fn new(
        outcome: Outcome,
        choice: Option<Choice>,
        inner: u64,
        field: Field<F>,
    ) -> Solution<F> {
        let sweeps = outcome.history.len();
        Solution {
            sweeps,
            converged: outcome.converged,
            interrupted: outcome.interrupted,
            norm: outcome.history.last().copied().unwrap_or(f64::NAN),
            cell_updates: inner * (sweeps - outcome.resumed_at) as u64,
            history: outcome.history,
            seconds: outcome.seconds,
            setup_seconds: 0.0,
            sweeps_per_pass: outcome.sweeps_per_pass,
            checkpoint_failure: outcome.checkpoint_failure,
            choice,
            levels: None,
            gradients_from: None,
            floor_reached: false,
            floor: None,
            projected: None,
            field,
        }
    }

    pub(crate) fn of_cycles(outcome: multigrid::Outcome<F>) -> Solution<F> {
        let cycles = outcome.history.len();
        Solution {
            sweeps: cycles,
            converged: outcome.converged,
            interrupted: outcome.interrupted,
            norm: outcome.history.last().copied().unwrap_or(0.0),
            cell_updates: outcome.free * (cycles - outcome.resumed_at) as u64,
            history: outcome.history,
            seconds: outcome.seconds,
            setup_seconds: outcome.setup_seconds,
            sweeps_per_pass: 1,
            checkpoint_failure: outcome.checkpoint_failure,
            choice: outcome.choice,
            levels: (outcome.levels > 0).then_some(outcome.levels),
            gradients_from: outcome.gradients_from,
            floor_reached: outcome.floor_reached,
            floor: outcome.floor,
            projected: outcome.projected,
            field: outcome.field.map_or(Field::OnDevice, Field::Band),
        }
    }

    /// The rows of the grid (1-D: the points) that this PE owns; empty if there are more PEs than leaves, and where the field is
    /// in an array of the caller's ([`DeviceArrays`](crate::DeviceArrays)).
    pub fn rows(&self) -> Range<usize> {
        match &self.field {
            Field::Line(slab) => slab.own(),
            Field::Plane(slab) => slab.own(),
            Field::Band(band) => band.own(),
            Field::OnDevice => 0..0,
        }
    }

    /// Row `y` of a 2-D field; of a 1-D field, the one value of point `y`.
    ///
    /// Panics if this PE does not own it.
    pub fn row(&self, y: usize) -> &[F] {
        match &self.field {
            Field::Line(slab) => {
                let at = y.checked_sub(slab.own().start).unwrap_or(usize::MAX);
                std::slice::from_ref(&slab.values()[at])
            }
            Field::Plane(slab) => slab.row(y),
            Field::Band(band) => band.row(y),
            Field::OnDevice => panic!("row {y} is in an array of the caller's"),
        }
    }

    /// Hands the whole field, row-major, to `take` on PE 0, in pieces of whole rows, in order; nothing of a field in an array of
    /// the caller's.
    ///
    /// Collective; PE 0 never holds more than a few pieces. When `take` fails it is not called again.
    ///
    /// Errors: outer, the world's; inner (on PE 0 only), what `take` returned.
    pub fn gather<E>(
        &self,
        pe: &Pe,
        take: impl FnMut(&[F]) -> Result<(), E>,
    ) -> Result<Result<(), E>, SolveError> {
        match &self.field {
            Field::Line(slab) => Ok(gather::stream(pe, slab, take)?),
            Field::Plane(slab) => Ok(gather::stream(pe, slab, take)?),
            Field::Band(band) => Ok(gather::stream(pe, band, take)?),
            Field::OnDevice => Ok(Ok(())),
        }
    }

    /// The whole field, row-major, on PE 0; empty on the others. Collective.
    ///
    /// Errors: the world's.
    pub fn gather_all(&self, pe: &Pe) -> Result<Vec<F>, SolveError> {
        let mut all = Vec::new();
        let taken = self.gather(pe, |values| {
            all.extend_from_slice(values);
            Ok::<(), std::convert::Infallible>(())
        })?;
        match taken {
            Ok(()) => Ok(all),
            Err(impossible) => match impossible {},
        }
    }
}

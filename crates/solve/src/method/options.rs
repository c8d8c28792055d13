//! How to solve.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::gpu::Gpu;

/// How to solve; the same on every PE but for `interrupt` and the GPU's number.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Stop after the first sweep whose norm is at most this. A norm that is NaN or infinite ends the solve with
    /// [`SolveError::NotFinite`](crate::SolveError::NotFinite).
    pub tolerance: f64,
    /// Stop after so many sweeps in any case; at least 1. Counted from the start, also when resumed.
    pub max_sweeps: usize,
    /// Sweeps per pass through memory and exchange of halos; `None`: chosen. What the grid or the halos do not allow is
    /// lowered silently ([`Solution::sweeps_per_pass`](crate::Solution::sweeps_per_pass) tells). The results do not
    /// depend on it.
    pub sweeps_per_pass: Option<usize>,
    /// Show the observer the field every so many sweeps or cycles ([`Progress::field`](crate::Progress::field)). Sweeps on
    /// GPUs stop for it, so it costs time.
    pub field_every: Option<NonZeroUsize>,
    /// Where and how often to save the state.
    pub checkpoint: Option<Checkpointing>,
    /// A checkpoint to go on from.
    pub resume: Option<PathBuf>,
    /// The GPU of this PE; `None`: the sweeps are made on the CPU. All PEs must choose the same. The results do not
    /// depend on it.
    pub gpu: Option<Gpu>,
    /// What makes the field better step by step.
    pub method: Method,
    /// Where nothing ties the field to a value and sources and derivatives do not cancel, so that no field solves the
    /// problem: take what is left of them away from the source, the same from each point
    /// ([`Solution::projected`](crate::Solution::projected)), instead of
    /// [`ProblemError::Incompatible`](crate::ProblemError::Incompatible). Of methods that look at the residual.
    pub project_source: bool,
    /// When any PE's flag becomes true, all stop after the same pass (a checkpoint is written first, if configured).
    pub interrupt: Option<&'a AtomicBool>,
}

impl Options<'_> {
    /// Whether nothing is to be kept or shown of the field on the way.
    pub(crate) fn only_solves(&self) -> bool {
        self.checkpoint.is_none() && self.resume.is_none() && self.field_every.is_none()
    }

    /// Stop at `tolerance` or after `max_sweeps`; nothing else.
    pub fn new(tolerance: f64, max_sweeps: usize) -> Options<'static> {
        Options {
            tolerance,
            max_sweeps,
            sweeps_per_pass: None,
            field_every: None,
            checkpoint: None,
            resume: None,
            gpu: None,
            method: Method::Jacobi,
            project_source: false,
            interrupt: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            return Err(OptionsError::Tolerance {
                tolerance: self.tolerance,
            });
        }
        if self.max_sweeps == 0 {
            return Err(OptionsError::NoSweeps);
        }
        if self.sweeps_per_pass == Some(0) {
            return Err(OptionsError::EmptyPass);
        }
        if self
            .checkpoint
            .as_ref()
            .is_some_and(|checkpoint| checkpoint.every == 0)
        {
            return Err(OptionsError::NeverCheckpoint);
        }
        if let Some(cycles) = self.method.cycles() {
            cycles.check()?;
        }
        Ok(())
    }
}

impl Cycles {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        for steps in [self.pre, self.post] {
            if !(1..=3).contains(&steps) {
                return Err(OptionsError::Relaxations { steps });
            }
        }
        Ok(())
    }
}

/// What makes the field better step by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Sweeps of Jacobi's method; the tolerance is for the norm of a sweep's change.
    #[default]
    Jacobi,
    /// Multigrid cycles until one leaves more than 0.4 of the residual, from there on conjugate gradients; as
    /// `Multigrid` else.
    Automatic(Cycles),
    /// Multigrid cycles; the tolerance is for the norm of the residual relative to that before the first cycle, and
    /// `max_sweeps` is for cycles.
    Multigrid(Cycles),
    /// Conjugate gradients, each step with a multigrid cycle as its preconditioner; as `Multigrid` else. Fewer steps where
    /// cycles alone are slow, each at about twice the cost.
    ConjugateGradients(Cycles),
    /// Chebyshev's iteration: relaxations whose weights follow from bounds of the eigenvalues that are known beforehand. Its
    /// steps grow with the number of points along an axis, and each costs about what a Jacobi sweep does. The tolerance is
    /// for the residual as of `Multigrid`, and `max_sweeps` is for steps. In two and three dimensions, where a
    /// side is fixed, fixed cells are in every line along an axis, or nothing is fixed at all.
    Chebyshev,
    /// Conjugate gradients without any preconditioner: about as many steps as `Chebyshev`, for any problem, each with two
    /// sums over all PEs. Else as that.
    PlainGradients,
}

impl Method {
    /// The cycles of a method that makes some.
    pub fn cycles(&self) -> Option<&Cycles> {
        match self {
            Method::Jacobi | Method::Chebyshev | Method::PlainGradients => None,
            Method::Automatic(cycles)
            | Method::Multigrid(cycles)
            | Method::ConjugateGradients(cycles) => Some(cycles),
        }
    }

    /// What a step is called.
    pub(crate) fn step(&self) -> &'static str {
        match self.cycles() {
            Some(_) => "cycle",
            None => "sweep",
        }
    }
}

/// How multigrid cycles are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// What the first cycle is.
    pub first: First,
    /// Relaxations before the correction by the coarser level, 1 to 3.
    pub pre: usize,
    /// Relaxations after it, 1 to 3.
    pub post: usize,
}

impl Default for Cycles {
    /// A full one first; two relaxations and two.
    fn default() -> Cycles {
        Cycles {
            first: First::Full,
            pre: 2,
            post: 2,
        }
    }
}

/// The first cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum First {
    /// As the others.
    V,
    /// Full multigrid: levels are solved from the coarsest one up, each from the interpolated solution of the coarser
    /// one, with a V-cycle each. Costs a third more than a V-cycle and leaves about as much as three would.
    /// [`Method::ConjugateGradients`] starts without.
    #[default]
    Full,
}

/// Periodic saving of a solve's state.
#[derive(Clone, Debug)]
pub struct Checkpointing {
    /// The file; written beside itself first and then renamed.
    pub path: PathBuf,
    /// Sweeps, or cycles, between two checkpoints; at least 1.
    pub every: usize,
}

/// Options that make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionsError {
    /// A negative tolerance, or NaN.
    #[error("a tolerance of {tolerance}: it must be zero or positive")]
    Tolerance {
        /// The tolerance.
        tolerance: f64,
    },
    /// No sweep allowed.
    #[error("at most 0 sweeps: at least one must be allowed")]
    NoSweeps,
    /// Passes of no sweeps.
    #[error("0 sweeps per pass: a pass has at least one")]
    EmptyPass,
    /// Relaxations that a cycle can't make.
    #[error("{steps} relaxations on one side of a cycle: 1 to 3 are possible")]
    Relaxations {
        /// As asked for.
        steps: usize,
    },
    /// A method without levels from what has some.
    #[error(
        "a Solver2d makes cycles or conjugate gradients with them: other methods are those of solve_2d"
    )]
    NotOfLevels,
    /// Sweeps in three dimensions.
    #[error(
        "Jacobi sweeps are for lines and planes only: other methods are for three dimensions, too"
    )]
    NotInSpace,
    /// A checkpoint interval of zero.
    #[error("a checkpoint every 0 sweeps: the interval must be at least 1")]
    NeverCheckpoint,
}

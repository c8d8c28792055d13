//! The loop of a solve: exchange, advance, agree, decide.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytemuck::Zeroable;
use crosswarp_cuda::{CudaError, DeviceWorldError, HeapError, LaunchError, SyncError};
use crosswarp_prim::{Float, Superaccumulator};
use crosswarp_shmem::{AllocError, CollectiveError, Pe, WaitError};

use crate::element::Real;
use crate::engine::slab::{March, Slab};
use crate::exchange::put_signal::{Halo, Rows};
use crate::field::checkpoint::{self, CheckpointError, Identity};
use crate::gpu::Gpu;
use crate::pes::reduction::Meeting;
use crate::problem::scale::Scale;
use crate::problem::{Norm, ProblemError};
use crate::stop::threshold::Threshold;

/// How to solve; the same on every PE but for `interrupt` and the GPU's number.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Stop after the first sweep whose norm is at most this. A norm that is NaN or infinite ends the solve with
    /// [`SolveError::NotFinite`].
    pub tolerance: f64,
    /// Stop after so many sweeps in any case; at least 1. Counted from the start, also when resumed.
    pub max_sweeps: usize,
    /// Sweeps per pass through memory and exchange of halos; `None`: chosen. What the grid or the halos do not allow is
    /// lowered silently ([`Solution::block`](crate::Solution::block) tells). The results do not depend on it.
    pub block: Option<usize>,
    /// Where and how often to save the state.
    pub checkpoint: Option<Checkpointing>,
    /// A checkpoint to go on from.
    pub resume: Option<PathBuf>,
    /// The GPU of this PE; `None`: the sweeps are made on the CPU. All PEs must choose the same. The results do not
    /// depend on it.
    pub gpu: Option<Gpu>,
    /// When any PE's flag becomes true, all stop after the same pass (a checkpoint is written first, if configured).
    pub interrupt: Option<&'a AtomicBool>,
}

impl Options<'_> {
    /// Stop at `tolerance` or after `max_sweeps`; nothing else.
    pub fn new(tolerance: f64, max_sweeps: usize) -> Options<'static> {
        Options {
            tolerance,
            max_sweeps,
            block: None,
            checkpoint: None,
            resume: None,
            gpu: None,
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
        if self.block == Some(0) {
            return Err(OptionsError::NoBlock);
        }
        if self
            .checkpoint
            .as_ref()
            .is_some_and(|checkpoint| checkpoint.every == 0)
        {
            return Err(OptionsError::NeverCheckpoint);
        }
        Ok(())
    }
}

/// Periodic saving of a solve's state.
#[derive(Clone, Debug)]
pub struct Checkpointing {
    /// The file; written beside itself first and then renamed.
    pub path: PathBuf,
    /// Sweeps between two checkpoints; at least 1.
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
    #[error("blocks of 0 sweeps: a block has at least one")]
    NoBlock,
    /// A checkpoint interval of zero.
    #[error("a checkpoint every 0 sweeps: the interval must be at least 1")]
    NeverCheckpoint,
}

/// Why a solve ended without a solution.
#[derive(Debug, thiserror::Error)]
pub enum SolveError {
    /// The problem makes no sense.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The options make no sense.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The checkpoint to resume from is no use.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The field does not fit this PE's memory.
    #[error("no memory for this PE's rows: {0}")]
    Memory(#[source] io::Error),
    /// The grid has more columns or rows than the kernels can number.
    #[error("a side of {longest} cells: on a GPU a side has fewer than 2^31")]
    TooLongForGpu {
        /// Cells of the longer side.
        longest: usize,
    },
    /// [`Strategy::Persistent`](crate::Strategy::Persistent) has no room for the field.
    #[error(
        "`persistent` keeps a PE's part on the chip: at most {most} cells of this problem, not {cells}"
    )]
    TooLargeForChip {
        /// Cells of the largest part.
        cells: usize,
        /// Cells that there is room for.
        most: usize,
    },
    /// A norm that is NaN or infinite, from which a solve does not come back.
    #[error("{}", not_finite(*.sweep, *.norm))]
    NotFinite {
        /// The sweep, the first being 1.
        sweep: usize,
        /// Its norm.
        norm: f64,
    },
    /// The solution of a problem with large values has larger ones still.
    #[error(
        "the solution leaves the range of {dtype}: smaller values or another type would be right"
    )]
    OutOfRange {
        /// The element type.
        dtype: &'static str,
    },
    /// Another PE could not set up its GPU.
    #[error("PE {pe} could not set up its GPU, so no PE solves")]
    PeerFailed {
        /// The first such PE.
        pe: usize,
    },
    /// The GPU, its driver or the compiler of kernels.
    #[error(transparent)]
    Cuda(#[from] crosswarp_cuda::Error),
    /// The GPUs can not work together.
    #[error(transparent)]
    DeviceWorld(#[from] DeviceWorldError),
    /// A kernel waited in vain for a neighbour, or the GPU failed.
    #[error(transparent)]
    Kernel(#[from] SyncError),
    /// No room for halos in the device heap.
    #[error(transparent)]
    DeviceHeap(#[from] HeapError),
    /// The symmetric heap has no room, or the PEs disagree.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The PEs no longer act together.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// A neighbour did not answer.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

fn not_finite(sweep: usize, norm: f64) -> String {
    let why = if norm.is_nan() {
        "the field holds values that are NaN or infinite"
    } else {
        "values have grown so large that the squares of their differences overflow"
    };
    format!("after sweep {sweep} the norm is {norm}, and would stay so: {why}")
}

impl From<CudaError> for SolveError {
    fn from(error: CudaError) -> SolveError {
        SolveError::Cuda(error.into())
    }
}

impl From<LaunchError> for SolveError {
    fn from(error: LaunchError) -> SolveError {
        SolveError::Cuda(error.into())
    }
}

/// What the observer of a solve sees after each pass, on every PE.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Sweeps done, those of earlier runs included.
    pub sweeps: usize,
    /// Norms of the sweeps of this pass, the last ones done; sweeps count from 0.
    pub norms: &'a [f64],
    /// Why the last checkpoint could not be written, if so. The solve goes on.
    pub checkpoint_failure: Option<&'a CheckpointError>,
}

/// How a solve ended.
pub(crate) struct Outcome {
    pub converged: bool,
    pub interrupted: bool,
    pub history: Vec<f64>,
    pub seconds: f64,
    pub resumed_at: usize,
    pub block: usize,
    pub checkpoint_failure: Option<CheckpointError>,
}

/// What the loop needs besides the slab.
pub(crate) struct Settings<'a> {
    pub norm: Norm,
    /// Points of the grid.
    pub points: usize,
    pub identity: Identity,
    /// How the slab holds its values; norms are of what it holds, too.
    pub scale: Scale,
    pub options: &'a Options<'a>,
}

/// How many sweeps are likely to go on until the tolerance is met, at least 1, if the norms fall by the same power of
/// the number of sweeps as in the last half of them. A pass need not be longer; if it is too short, another follows.
fn likely_left(history: &[f64], tolerance: f64) -> usize {
    let done = history.len();
    if done < 4 {
        return usize::MAX;
    }
    let (half, last) = (history[done / 2 - 1], history[done - 1]);
    let power = (half / last).ln() / (done as f64 / (done / 2) as f64).ln();
    let total = done as f64 * (last / tolerance).powf(1.0 / power);
    // Not a number, or without end, if the norms do not fall or nothing is tolerated.
    if power > 0.0 && total.is_finite() {
        ((total - done as f64).ceil() as usize).max(1)
    } else {
        usize::MAX
    }
}

/// The norms of what is held as `scale` says.
fn unscaled(scale: Scale, norms: &[f64]) -> Vec<f64> {
    norms.iter().map(|&norm| scale.up(norm)).collect()
}

/// Most sweeps that a slab makes by itself between two looks at interrupts and the observer.
pub(crate) const MOST_MARCHED: usize = 1024;

/// Most sweeps of a pass on any backend.
pub(crate) const MOST_SWEEPS: usize = 64;

/// Words that meet after every pass: an accumulator per sweep and the interrupts.
pub(crate) fn meeting_words<F: Real>() -> usize {
    MOST_SWEEPS * Superaccumulator::<F>::WORDS + 1
}

/// Runs the sweeps and gives `meeting` back. Collective.
pub(crate) fn run<F: Real, S: Slab<F>>(
    pe: &Pe,
    meeting: Meeting<'_>,
    slab: &mut S,
    settings: &Settings<'_>,
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome, SolveError> {
    let options = settings.options;
    assert!(slab.depth_limit() <= MOST_SWEEPS);
    let depth_limit = slab
        .depth_limit()
        .min(slab.partition().max_depth(slab.wraps()));
    let block = options
        .block
        .unwrap_or(slab.default_depth())
        .min(depth_limit);
    let mut history = Vec::new();
    if let Some(path) = &options.resume {
        match checkpoint::resume(&meeting, slab, path, &settings.identity)? {
            Ok(norms) => history = norms,
            Err(error) => {
                meeting.free()?;
                return Err(error.into());
            }
        }
    }
    let resumed_at = history.len();
    let tolerance = settings.scale.down(options.tolerance);
    let meets = |history: &[f64]| history.last().is_some_and(|&norm| norm <= tolerance);
    let mut converged = meets(&history);
    let mut interrupted = false;
    let mut checkpoint_failure = None;

    let mut halo = Halo::new(pe, slab.row_len(), block)?;
    let mut sums: Vec<Superaccumulator<F>> = Vec::new();
    let mut words = Vec::new();
    let threshold = Threshold::new(tolerance, settings.norm, settings.points);
    pe.barrier()?;
    let start = Instant::now();
    while !converged && !interrupted && history.len() < options.max_sweeps {
        let done = history.len();
        let singly = done == 0 && slab.starts_singly();
        let most = options
            .checkpoint
            .as_ref()
            .map_or(usize::MAX, |checkpoint| {
                checkpoint.every - done % checkpoint.every
            })
            .min(options.max_sweeps - done);
        let marches = slab.marches() && !singly;
        sums.clear();
        words.clear();
        if marches {
            let march = March {
                done,
                most: most.min(MOST_MARCHED),
                next: most.saturating_sub(MOST_MARCHED).min(MOST_MARCHED),
                depth: block,
                threshold: &threshold,
            };
            slab.march(&march, &mut sums)?;
        } else {
            let depth = if singly {
                1
            } else {
                block.min(most).min(likely_left(&history, tolerance))
            };
            let rows = if singly {
                Rows::FIRST
            } else {
                Rows::halo(depth)
            };
            slab.exchange(pe, &mut halo, rows)?;
            // What the next pass is if this one neither stops the solve nor ends at a checkpoint.
            let left = options.max_sweeps - done - depth;
            let saves = options.checkpoint.is_some();
            slab.expect((left >= block && !singly && !saves).then_some(block));
            sums.resize(depth, Superaccumulator::new());
            slab.pass(&mut sums)?;
            for sum in &sums {
                words.extend_from_slice(sum.to_words().as_ref());
            }
        }
        words.push(
            options
                .interrupt
                .is_some_and(|flag| flag.load(Ordering::Relaxed))
                .into(),
        );
        meeting.sum(&mut words)?;
        interrupted = words.pop() != Some(0);
        for (sum, met) in sums
            .iter_mut()
            .zip(words.chunks_exact(Superaccumulator::<F>::WORDS))
        {
            let mut words = <F as Float>::Words::zeroed();
            words.as_mut().copy_from_slice(met);
            *sum = Superaccumulator::from_words(words);
        }
        for sum in &sums {
            history.push(settings.norm.of(sum.round_f64(), settings.points));
            converged = meets(&history);
            if converged {
                break;
            }
            let (norm, sweep) = (history[history.len() - 1], history.len());
            if !norm.is_finite() {
                // The same on every PE.
                halo.free(pe)?;
                meeting.free()?;
                return Err(SolveError::NotFinite { sweep, norm });
            }
        }
        if !marches {
            // The stop lies inside the pass: the field before it is still there, and so are its halos.
            let needed = history.len() - done;
            if needed < sums.len() {
                sums.truncate(needed);
                sums.fill(Superaccumulator::new());
                slab.pass(&mut sums)?;
            }
            slab.accept();
            if singly {
                slab.exchange(pe, &mut halo, Rows::GHOSTS)?;
            }
        }

        if let Some(checkpoint) = &options.checkpoint {
            let due = history.len() % checkpoint.every == 0
                || interrupted
                || history.len() == options.max_sweeps;
            if due && !converged {
                let written = checkpoint::save(
                    pe,
                    &meeting,
                    slab,
                    &checkpoint.path,
                    &settings.identity,
                    &history,
                )?;
                checkpoint_failure = written.err();
            }
        }
        observer(&Progress {
            sweeps: history.len(),
            norms: &unscaled(settings.scale, &history[done..]),
            checkpoint_failure: checkpoint_failure.as_ref(),
        });
    }
    let seconds = start.elapsed().as_secs_f64();
    halo.free(pe)?;
    meeting.free()?;
    Ok(Outcome {
        converged,
        interrupted: interrupted && !converged,
        history: unscaled(settings.scale, &history),
        seconds,
        resumed_at,
        block,
        checkpoint_failure,
    })
}

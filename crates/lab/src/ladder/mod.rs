//! The ladder of textbook variants: each a small kernel, checked for its result each time it runs,
//! measured, and set beside the roof.
//!
//! [`on_gpu`] runs the rungs of one [`Subject`] on a GPU, [`on_cpu`] those that the processor has. What
//! a rung is charged with is the work the *problem* needs ([`Work`](crate::models::roofline::Work)), so that
//! rates compare between rungs; a call is everything from input to result, with the zeroing of counters
//! that some variants need.

#[macro_use]
mod vectorised;

mod ceilings;
mod counters;
mod cpu;
mod gpu;
mod inputs;
mod kernels;
mod peers;
mod rung;
mod solver;

use crosswarp_cuda::{CudaError, Device, LaunchError, ModuleError, Source};

use crate::measure::Plan;

pub use ceilings::{GpuCeilings, HostCeilings};
pub use counters::{COUNTER_SECTIONS, DURATION};
pub use kernels::SOURCES;
pub use rung::{Ladder, Occupied, Rate, Rung, RungKind, Verdict};

/// What a ladder is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Sum of an array.
    Reduce,
    /// Counts of samples by bin.
    Histogram,
    /// Transpose of a matrix.
    Transpose,
    /// Jacobi sweeps in one dimension.
    Jacobi1d,
    /// Product of two square matrices.
    Sgemm,
}

impl Subject {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::Histogram => "histogram",
            Self::Transpose => "transpose",
            Self::Jacobi1d => "jacobi1d",
            Self::Sgemm => "sgemm",
        }
    }

    /// The kernels of its rungs on a GPU.
    pub const fn kernels(self) -> &'static [Source<'static>] {
        match self {
            Self::Reduce => &[kernels::REDUCE, kernels::REDUCE_F16],
            Self::Histogram => &[kernels::HISTOGRAM],
            Self::Transpose => &[kernels::TRANSPOSE],
            Self::Jacobi1d => &[kernels::JACOBI1D],
            Self::Sgemm => &[kernels::SGEMM],
        }
    }

    /// What its size counts.
    pub const fn size_is(self) -> &'static str {
        match self {
            Self::Reduce => "elements",
            Self::Histogram => "samples",
            Self::Transpose | Self::Sgemm => "rows and columns",
            Self::Jacobi1d => "points",
        }
    }

    /// The size used if none is given, on a GPU or on the processor.
    pub const fn default_size(self, gpu: bool) -> usize {
        match (self, gpu) {
            (Self::Reduce, true) => 1 << 24,
            (Self::Reduce | Self::Histogram, _) => 1 << 26,
            (Self::Transpose, true) => 8192,
            (Self::Transpose, false) => 4096,
            (Self::Jacobi1d, _) => 1 << 22,
            (Self::Sgemm, true) => 4096,
            (Self::Sgemm, false) => 512,
        }
    }

    /// `size` if the rungs can take it.
    pub fn check(self, size: usize) -> Result<usize, LadderError> {
        let (unit, least, most) = match self {
            Self::Reduce | Self::Histogram => (1024, 1024, 1 << 30),
            Self::Transpose => (32, 32, 1 << 16),
            Self::Jacobi1d => (1024, 4096, 1 << 28),
            Self::Sgemm => (128, 128, 1 << 14),
        };
        if size.is_multiple_of(unit) && (least..=most).contains(&size) {
            Ok(size)
        } else {
            Err(LadderError::Size {
                subject: self.name(),
                size,
                unit,
                least,
                most,
            })
        }
    }
}

/// How a ladder is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Elements, samples, points, or rows and columns.
    pub size: usize,
    /// How long each rung is measured.
    pub plan: Plan,
}

/// Why a ladder ended early.
#[derive(Debug, thiserror::Error)]
pub enum LadderError {
    /// A size that the rungs can not take.
    #[error("{subject} of size {size}: wanted is a multiple of {unit} from {least} to {most}")]
    Size {
        /// The subject.
        subject: &'static str,
        /// What was asked for.
        size: usize,
        /// What it must be a multiple of.
        unit: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// The GPU, the compiler, or a launch.
    #[error(transparent)]
    Cuda(#[from] crosswarp_cuda::Error),
    /// A rung of Crosswarp's own, or a peer.
    #[error("{rung}: {reason}")]
    Rung {
        /// The rung.
        rung: &'static str,
        /// What it said.
        reason: String,
    },
}

impl From<CudaError> for LadderError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error.into())
    }
}

impl From<LaunchError> for LadderError {
    fn from(error: LaunchError) -> Self {
        Self::Cuda(error.into())
    }
}

impl From<ModuleError> for LadderError {
    fn from(error: ModuleError) -> Self {
        Self::Cuda(error.into())
    }
}

/// Runs `subject`'s rungs on `device`; `each` is shown every rung as it is done.
pub fn on_gpu(
    subject: Subject,
    device: &Device,
    options: &Options,
    each: &mut dyn FnMut(&Rung),
) -> Result<Ladder, LadderError> {
    subject.check(options.size)?;
    gpu::run(subject, device, options, each)
}

/// Runs `subject`'s rungs on `device` once each, for a profiler, whose list of launches
/// [`Ladder::add_counters`] takes. Nothing is measured or checked.
pub fn run_marked(subject: Subject, device: &Device, size: usize) -> Result<(), LadderError> {
    subject.check(size)?;
    let options = Options {
        size,
        plan: Plan {
            samples: 1,
            ..Plan::quick()
        },
    };
    gpu::run_marked(subject, device, &options)
}

/// Runs `subject`'s rungs on this machine's processor, with up to `threads` threads.
pub fn on_cpu(
    subject: Subject,
    threads: usize,
    options: &Options,
    each: &mut dyn FnMut(&Rung),
) -> Result<Ladder, LadderError> {
    subject.check(options.size)?;
    cpu::run(subject, threads.max(1), options, each)
}

/// Pseudo-random 32-bit numbers of which each depends on its index alone, so that GPU and processor,
/// and any number of threads, make the same (a finaliser of the murmur3 kind).
pub(crate) fn hash(index: usize) -> u32 {
    let mut x = index as u64;
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (x >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_rung_could_take_are_refused() {
        assert!(Subject::Reduce.check(1 << 24).is_ok());
        for (subject, size) in [
            (Subject::Reduce, 0),
            (Subject::Reduce, 1 << 31),
            (Subject::Sgemm, 100),
            (Subject::Transpose, 33),
        ] {
            let error = subject.check(size).unwrap_err().to_string();
            assert!(error.contains("a multiple of"), "{error}");
        }
        for subject in [
            Subject::Reduce,
            Subject::Histogram,
            Subject::Transpose,
            Subject::Jacobi1d,
            Subject::Sgemm,
        ] {
            for gpu in [false, true] {
                assert!(subject.check(subject.default_size(gpu)).is_ok());
            }
        }
    }

    #[test]
    fn every_rung_of_the_processor_is_right_and_says_why() {
        let plan = Plan {
            warm_up: std::time::Duration::ZERO,
            samples: 1,
            least: std::time::Duration::ZERO,
            ..Plan::quick()
        };
        for (subject, size) in [
            (Subject::Reduce, 1 << 16),
            (Subject::Histogram, 1 << 16),
            (Subject::Transpose, 96),
            (Subject::Jacobi1d, 8192),
            (Subject::Sgemm, 128),
        ] {
            let mut seen = 0;
            let options = Options { size, plan };
            let ladder = on_cpu(subject, 3, &options, &mut |_| seen += 1).unwrap();
            assert_eq!(ladder.rungs.len(), seen);
            assert!(seen >= 4, "{subject:?}: {seen} rungs");
            for rung in &ladder.rungs {
                assert!(rung.verdict.is_right(), "{subject:?} {rung:?}");
                assert!(rung.why.ends_with('.'), "{}", rung.why);
                assert!(rung.time.median > 0.0);
            }
        }
    }
}

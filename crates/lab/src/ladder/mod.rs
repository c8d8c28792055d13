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
mod error;
mod gpu;
mod inputs;
mod kernels;
mod options;
mod peers;
mod rung;
mod solver;
mod subject;

use crosswarp_cuda::Device;

use crate::measure::Plan;

pub use ceilings::{GpuCeilings, HostCeilings};
pub use counters::{COUNTER_SECTIONS, DURATION};
pub use error::LadderError;
pub use kernels::SOURCES;
pub use options::Options;
pub use rung::{Check, KernelOccupancy, Ladder, Rate, Rung, RungKind};
pub use subject::Subject;

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
pub fn run_marked(
    subject: Subject,
    device: &Device,
    size: usize,
    bins: Option<u32>,
) -> Result<(), LadderError> {
    subject.check(size)?;
    let options = Options {
        size,
        bins,
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

#[cfg(test)]
mod tests {
    use super::*;

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
            let options = Options {
                size,
                bins: None,
                plan,
            };
            let ladder = on_cpu(subject, 3, &options, &mut |_| seen += 1).unwrap();
            assert_eq!(ladder.rungs.len(), seen);
            assert!(seen >= 4, "{subject:?}: {seen} rungs");
            for rung in &ladder.rungs {
                assert!(rung.check.is_right(), "{subject:?} {rung:?}");
                assert!(rung.why.ends_with('.'), "{}", rung.why);
                assert!(rung.time.median > 0.0);
            }
        }
    }
}

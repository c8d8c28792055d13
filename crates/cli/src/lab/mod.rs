//! The commands of the lab: models of where GPU time goes, and measurements beside them.

pub mod args;
mod axes;
mod banks;
mod chart;
mod chart_png;
mod compare;
mod device;
mod divergence;
mod kernel;
mod ladder;
mod occupancy;
mod page;
mod palette;
mod pictures;
mod profile;
mod roofline;

pub use banks::banks;
pub use compare::compare;
pub use divergence::divergence;
pub use kernel::KernelError;
pub use ladder::ladder;
pub use occupancy::occupancy;
pub use profile::{ProfilingError, profile};
pub use roofline::roofline;

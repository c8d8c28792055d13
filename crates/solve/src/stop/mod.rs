//! When a solve stops: norms of sweeps over all PEs, what they are compared with, and when that is likely to be met.

pub(crate) mod decision;
pub(crate) mod forecast;
pub(crate) mod norms;
pub(crate) mod threshold;

//! When a solve stops.

pub(crate) mod threshold;

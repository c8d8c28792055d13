//! The commands of the lab: models of where GPU time goes, and measurements beside them.

pub mod banks;
pub mod divergence;
pub mod gpu;
pub mod ladder;
pub mod occupancy;
pub mod profile;
pub mod roofline;

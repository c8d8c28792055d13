//! The commands of the lab: models of where GPU time goes, and measurements beside them.

pub mod banks;
pub mod device;
pub mod divergence;
pub mod ladder;
pub mod ladder_page;
pub mod occupancy;
pub mod profile;
pub mod roofline;

//! Programs of others that commands start.

pub mod child;
pub mod nsight_compute;

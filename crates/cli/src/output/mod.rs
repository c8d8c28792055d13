//! The files that commands write.

pub mod csv;
pub mod npy;
pub mod staged;
pub mod vti;

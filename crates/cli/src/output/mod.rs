//! The files that commands write.

pub mod csv;
pub mod json;
pub mod npy;
pub mod paths;
pub mod staged;
pub mod tiff;
pub mod vti;

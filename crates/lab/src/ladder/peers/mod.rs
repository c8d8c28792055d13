//! Other libraries, where they are found at run time.

pub mod cub;
pub mod cublas;

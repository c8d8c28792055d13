//! crosswarp-solve
pub mod field;
pub mod kernel2d;
pub mod real;
pub mod simd;

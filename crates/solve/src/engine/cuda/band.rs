//! A parameter that all kernels of planes share.

use bytemuck::{Pod, Zeroable};

/// A PE's band of a plane, as kernels see it: `crosswarp::band` (`kernels/jacobi/plane.cuh`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Band {
    pub before: u64,
    pub after: u64,
    pub fixed: u64,
    pub source: u64,
    pub words: u64,
    pub pitch: i64,
    pub nx: i32,
    pub ny: i32,
    pub first: i32,
    pub own_start: i32,
    pub own_end: i32,
    pub wrap_x: i32,
    pub wrap_y: i32,
    pub padding: u32,
}

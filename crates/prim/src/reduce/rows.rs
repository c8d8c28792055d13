//! Rows that are reduced one by one, many at a time.

use crate::{Op, Simd};

/// Rows to reduce, one behind the other in each input.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    /// Vectors to work with.
    pub simd: Simd,
    /// What becomes of each row.
    pub op: Op,
    /// One array, two for [`Op::Dot`], of whole rows.
    pub inputs: &'a [&'a [T]],
    /// Elements of a row.
    pub len: usize,
    /// Bytes of these rows and of others that are worked on together with them.
    pub bytes: usize,
}

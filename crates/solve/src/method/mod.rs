//! Iterative methods.

pub(crate) mod jacobi;

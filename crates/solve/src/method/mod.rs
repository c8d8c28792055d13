//! Iterative methods: which sweeps follow one another until the tolerance is met.

pub(crate) mod error;
pub(crate) mod jacobi;
pub(crate) mod multigrid;
pub(crate) mod options;

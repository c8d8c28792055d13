//! From CUDA C++ to a kernel on a GPU, and what kernels need of one.

pub(crate) mod bundle;
pub(crate) mod cache;
pub(crate) mod cubin;
pub(crate) mod kernel_table;
pub(crate) mod key;
pub(crate) mod module;
pub(crate) mod nvrtc;
pub(crate) mod occupancy;
pub(crate) mod program;
pub(crate) mod source;

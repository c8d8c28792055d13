//! Reductions on a GPU, with the bits of the CPU's.
//!
//! [`DeviceReducer`] reduces arrays in device memory, in one launch, and arrays in host memory of any
//! size, which it streams through the GPU. Over a team each PE brings its part and its GPU.

mod arguments;
mod columns;
mod device_inputs;
mod device_reducer;
mod launcher;
mod program;
mod segments;
mod workspace;

pub use device_reducer::DeviceReducer;
pub(crate) use program::{KERNELS, units};
pub use segments::Segments;
pub use workspace::ReduceWorkspace;

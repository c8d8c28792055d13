//! The primitives on GPUs, by their public names.

pub use crate::histogram::cuda::{DeviceHistogram, HistogramWorkspace};
pub use crate::reduce::cuda::{DeviceReducer, ReduceWorkspace, Segments};
pub use crate::staged_upload::{PIECE_BYTES, in_pieces};
pub use crate::transpose::cuda::{DeviceTransposeError, DeviceTransposer, WorldTransposer};

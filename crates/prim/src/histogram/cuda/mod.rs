//! Histograms on a GPU.

mod arguments;
mod device_histogram;
mod kernels;

pub use device_histogram::{DeviceHistogram, HistogramWorkspace};
pub(crate) use kernels::SOURCES;

//! Histograms on a GPU.

mod device_histogram;
mod kernels;

pub use device_histogram::{DeviceHistogram, HistogramWorkspace};
pub(crate) use kernels::SOURCES;

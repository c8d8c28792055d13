//! NPY files: `numpy.save`'s format, versions 1.0 to 3.0.
//!
//! Reading maps the file and lends its data as a typed slice, or copies pieces into buffers;
//! writing streams rows. Only C order and little-endian numbers are taken: both are
//! what `numpy.save` writes for an ordinary array.

mod dtype;
mod error;
mod header;
mod map;

pub use dtype::{Dtype, Shape};
pub use error::NpyError;
pub use header::Header;
pub use map::{Elements, NpyMap};

#[cfg(target_endian = "big")]
compile_error!("files are mapped and written as they lie in memory, which is little-endian");

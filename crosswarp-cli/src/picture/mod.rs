//! Pictures of fields: a colour map with a colour bar for a plane, a curve for a line.
//!
//! Elements stream in, in row-major order; only the picture's own pixels are held.

mod canvas;
mod colours;
mod curve;
mod map;
mod raster;

pub use colours::Colours;
pub use curve::CurvePicture;
pub use map::MapPicture;

/// Bytes of one mask row: 1 where the value was given.
pub type MaskRows = std::sync::Arc<dyn Fn(usize, &mut [u8]) + Send + Sync>;

//! Pictures of fields: a colour map with a colour bar for a plane, a curve for a line.
//!
//! Elements stream in, in row-major order; only the picture's own pixels are held.

mod canvas;
mod colours;
mod curve;
mod map;
mod raster;

pub use canvas::{Anchor, Canvas, Font, LINE, PAPER};
pub use colours::{Colours, Rgb, mix};
pub use curve::CurvePicture;
pub use map::MapPicture;

/// The mask of given cells, row by row: not 0 where the value was given.
pub type MaskRows = crosswarp::solve::RowSource<u8>;

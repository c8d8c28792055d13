//! Every picture: of fields, norms, histograms and models, as SVG and PNG.
//!
//! Elements of fields stream in, in row-major order; only the picture's own pixels are held.

pub mod axes;
pub mod canvas;
pub mod chart;
mod chart_png;
pub mod colours;
pub mod files;
pub mod histogram;
pub mod line_field;
pub mod norms;
pub mod plane_field;
mod raster;
pub mod theme;
pub mod ticks;

pub use canvas::{Anchor, Canvas, Font, LINE, PAPER};
pub use colours::{Colours, Rgb, mix};
pub use line_field::CurvePicture;
pub use plane_field::MapPicture;

/// The mask of given cells, row by row: not 0 where the value was given.
pub type MaskRows = crosswarp::solve::RowSource<u8>;

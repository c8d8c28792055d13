//! Every picture: of fields, norms, histograms and models, as SVG and PNG.
//!
//! Pictures of shapes are a [`chart`], which [`svg`] and [`png`] draw with the classes of [`theme`]; pictures of
//! fields are drawn on a [`canvas`] of pixels. Fields stream in, in row-major order; only the picture's own pixels are
//! held.

pub mod axes;
pub mod box_slice;
mod canvas;
pub mod chart;
pub mod colour_map;
pub mod files;
pub mod histogram;
pub mod line_field;
pub mod look;
pub mod norms;
pub mod plane_field;
mod png;
mod raster;
mod rgb;
pub mod svg;
pub mod theme;
mod ticks;

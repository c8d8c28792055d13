//! A problem as it was asked for, before any file of values is opened; then from a file, then loaded.

pub mod field;
pub mod file;
pub mod load;
pub mod method;
pub mod template;

use std::path::PathBuf;

use crate::defaults;
use crate::input::boundary::{Boundary, Values};
use crate::input::spacing::Spacing;
use crate::input::stopping::Rim;

/// What to solve.
#[derive(Debug)]
pub enum Problem {
    /// Points between two fixed ends.
    Line(Line),
    /// A plane with boundaries.
    Plane(Box<Plane>),
    /// A box with a boundary on each of its six sides.
    Space(Box<Space>),
    /// The Jacobi problem of NVIDIA's multi-gpu-programming-models.
    Nvidia {
        /// Columns.
        nx: usize,
        /// Rows.
        ny: usize,
    },
    /// Unknown cells from known ones.
    Fill {
        /// The field.
        values: PathBuf,
        /// Which cells are known; without it those that are not NaN.
        known: Option<PathBuf>,
        /// The value of void cells.
        nodata: Option<f64>,
        /// The rim, where it was said.
        rim: Option<Rim>,
    },
}

/// Points between two fixed ends.
#[derive(Debug)]
pub struct Line {
    /// Number of points.
    pub points: usize,
    /// Value of the first.
    pub left: f64,
    /// Value of the last.
    pub right: f64,
}

/// A plane with boundaries.
#[derive(Debug)]
pub struct Plane {
    /// Columns.
    pub nx: usize,
    /// Rows.
    pub ny: usize,
    /// Distances of neighbouring points; without them the longer side is 1.
    pub spacing: Option<Spacing>,
    /// Column 0.
    pub left: Boundary,
    /// The last column.
    pub right: Boundary,
    /// Row 0.
    pub top: Boundary,
    /// The last row.
    pub bottom: Boundary,
    /// The field before the first sweep; without it 0.
    pub initial: Option<Values>,
    /// f of ∇·(κ∇u) − cu = f; without it 0.
    pub source: Option<Values>,
    /// κ; without it 1.
    pub coefficient: Option<Values>,
    /// c; without it 0.
    pub reaction: Option<Values>,
    /// Cells that keep their value.
    pub fixed: Option<Fixed>,
}

/// A box with a boundary on each side.
#[derive(Debug)]
pub struct Space {
    /// Columns, rows and planes.
    pub size: [usize; 3],
    /// Distances of neighbouring points; without them the longest side is 1.
    pub spacing: Option<Spacing>,
    /// Left and right, top and bottom, front and back.
    pub sides: [[Boundary; 2]; 3],
    /// The field before the first cycle; without it 0.
    pub initial: Option<Values>,
    /// f of ∇·(κ∇u) − cu = f; without it 0.
    pub source: Option<Values>,
    /// κ; without it 1.
    pub coefficient: Option<Values>,
    /// c; without it 0.
    pub reaction: Option<Values>,
    /// Points that keep their value.
    pub fixed: Option<Fixed>,
}

/// Cells that keep their value.
#[derive(Debug)]
pub struct Fixed {
    /// Which cells: NPY (not 0) or PNG (not black).
    pub mask: PathBuf,
    /// Their values.
    pub values: Values,
}

impl Problem {
    /// The name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Line(_) => "laplace1d",
            Self::Plane(_) | Self::Nvidia { .. } => "laplace2d",
            Self::Space(_) => "laplace3d",
            Self::Fill { .. } => "fill",
        }
    }

    /// The norm, tolerance and most sweeps of Jacobi that hold where none were given.
    pub fn defaults(&self) -> &'static defaults::Stopping {
        match self {
            Self::Line(_) => &defaults::LINE,
            // A box has no sweeps.
            Self::Plane(_) | Self::Space(_) => &defaults::PLANE,
            Self::Nvidia { .. } => &defaults::PRESET,
            Self::Fill { .. } => &defaults::FILL,
        }
    }
}

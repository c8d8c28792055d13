//! Why a problem cannot be loaded.

use std::path::PathBuf;

use crosswarp::solve::ProblemError as GridError;

use crate::input::formula::FormulaError;
use crate::input::npy::NpyError;
use crate::problem::field::FieldError;

/// A problem that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The problem makes no sense.
    #[error(transparent)]
    Problem(#[from] GridError),
    /// A formula without a finite value somewhere.
    #[error(transparent)]
    Formula(#[from] FormulaError),
    /// More cells than this machine can hold.
    #[error("{cells} cells need {needed:.1} GiB for {what}, this machine has {present:.1} GiB")]
    Memory {
        /// Number of cells.
        cells: u128,
        /// Memory they need.
        needed: f64,
        /// For what.
        what: &'static str,
        /// Memory and swap of the machine.
        present: f64,
    },
    /// A number that only the wider type holds.
    #[error(
        "{value:e} is more than f32 can hold ({:e} at most); use --dtype f64",
        f32::MAX
    )]
    BeyondSingle {
        /// The number.
        value: f64,
    },
    /// An NPY file.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// The file of a field or mask.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A plane where a line is needed.
    #[error("{}: a TIFF is a plane; a side takes a number, a formula or an NPY file of one value a point", .0.display())]
    PlaneForSide(PathBuf),
    /// A side that a box cannot have.
    #[error("the {side} side of laplace3d: {problem}")]
    BoxSide {
        /// Which.
        side: &'static str,
        /// Why not.
        problem: &'static str,
    },
}

impl LoadError {
    /// Whether what was asked for is wrong, and not a file or the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Problem(_) | Self::Formula(_) | Self::BeyondSingle { .. } | Self::BoxSide { .. }
        )
    }
}

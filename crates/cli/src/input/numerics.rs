//! Number types and norms by name, on the command line and in problem files.

use clap::ValueEnum;
use serde::Deserialize;

/// Number types of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// IEEE single precision
    F32,
    /// IEEE double precision
    F64,
}

/// Norms of a sweep's change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// Square root of the sum of squares
    L2,
    /// The same divided by the square root of the number of cells
    Rms,
}

impl NormKind {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::Rms => "rms",
        }
    }
}

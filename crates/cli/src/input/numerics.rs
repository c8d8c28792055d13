//! Number types and norms by name, on the command line and in problem files.

use clap::ValueEnum;
use crosswarp::solve::Norm;
use serde::{Deserialize, Deserializer};

use super::choice::{self, Choice};

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
pub const NORMS: &[Choice<Norm>] = &[
    Choice::new(Norm::L2, "l2", "Square root of the sum of squares"),
    Choice::new(
        Norm::Rms,
        "rms",
        "The same divided by the square root of the number of cells",
    ),
];

/// A problem file's norm.
pub fn norm<'de, D: Deserializer<'de>>(file: D) -> Result<Option<Norm>, D::Error> {
    choice::optional(NORMS, file)
}

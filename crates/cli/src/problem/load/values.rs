//! Numbers and formulas as the solve's type holds them.

use crosswarp::solve::Real;

use super::error::LoadError;
use crate::input::formula::{Formula, Point};
use crate::input::spacing::Spacing;

/// A number in the solve's type.
pub fn narrowed<F: Real>(value: f64) -> Result<F, LoadError> {
    let narrow = F::from_f64(value);
    match value.is_finite() && !narrow.to_f64().is_finite() {
        true => Err(LoadError::BeyondSingle { value }),
        false => Ok(narrow),
    }
}

/// A row of a formula; values that are not finite are NaN.
pub fn formula_row<F: Real>(
    formula: &Formula,
    (row, plane): (usize, usize),
    spacing: Spacing,
    cells: &mut [F],
) {
    let mut values = [0.0; 256];
    for (piece, cells) in cells.chunks_mut(256).enumerate() {
        let first = Point {
            column: piece * 256,
            row,
            plane,
            spacing,
        };
        let values = &mut values[..cells.len()];
        formula.along_row(first, values);
        for (cell, value) in cells.iter_mut().zip(values) {
            let value = if value.is_finite() { *value } else { f64::NAN };
            *cell = F::from_f64(value);
        }
    }
}

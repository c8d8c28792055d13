//! Distances of grid points, as a user writes them.

use std::str::FromStr;

use serde::Deserialize;

/// Distances of two columns and of two rows.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(from = "OneOrTwo")]
pub struct Spacing {
    /// Of columns.
    pub x: f64,
    /// Of rows.
    pub y: f64,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a distance, or two: of columns and of rows"
)]
enum OneOrTwo {
    One(f64),
    Two([f64; 2]),
}

impl From<OneOrTwo> for Spacing {
    fn from(given: OneOrTwo) -> Self {
        match given {
            OneOrTwo::One(both) => Self::same(both),
            OneOrTwo::Two([x, y]) => Self { x, y },
        }
    }
}

/// Not one or two numbers.
#[derive(Debug, thiserror::Error)]
#[error("H or HX,HY is needed, for example 0.1 or 0.1,0.2")]
pub struct SpacingError;

impl Spacing {
    /// The same in both directions.
    pub fn same(both: f64) -> Self {
        Self { x: both, y: both }
    }

    /// Whether the two differ.
    pub fn differ(self) -> bool {
        self.x != self.y
    }
}

impl FromStr for Spacing {
    type Err = SpacingError;

    fn from_str(text: &str) -> Result<Self, SpacingError> {
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| SpacingError);
        match text.split_once(',') {
            None => number(text).map(Self::same),
            Some((x, y)) => Ok(Self {
                x: number(x)?,
                y: number(y)?,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_distance_or_two() {
        let parse = |text: &str| text.parse::<Spacing>();
        assert_eq!(parse("0.5").unwrap(), Spacing { x: 0.5, y: 0.5 });
        assert_eq!(parse("1, 2e-1").unwrap(), Spacing { x: 1.0, y: 0.2 });
        for text in ["", "a", "1,", "1,2,3"] {
            let error = parse(text).unwrap_err().to_string();
            assert_eq!(error, "H or HX,HY is needed, for example 0.1 or 0.1,0.2");
        }
    }
}

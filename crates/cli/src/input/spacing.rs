//! Distances of grid points, as a user writes them.

use std::str::FromStr;

use serde::Deserialize;

/// Distances of neighbouring points along each axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spacing {
    /// Of columns.
    pub x: f64,
    /// Of rows.
    pub y: f64,
    /// Of planes; of a plane, as x.
    pub z: f64,
}

/// What a user gives: one distance, or one of each axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distances {
    /// Along all axes.
    One(f64),
    /// Of columns and of rows.
    Two([f64; 2]),
    /// Of columns, of rows and of planes.
    Three([f64; 3]),
}

/// Distances in a problem file of a plane.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(from = "OneOrTwo")]
pub struct OfPlane(pub Spacing);

/// Distances in a problem file of a box.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(from = "OneOrThree")]
pub struct OfBox(pub Spacing);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a distance, or two: of columns and of rows"
)]
enum OneOrTwo {
    One(f64),
    Two([f64; 2]),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a distance, or three: of columns, of rows and of planes"
)]
enum OneOrThree {
    One(f64),
    Three([f64; 3]),
}

impl From<OneOrTwo> for OfPlane {
    fn from(given: OneOrTwo) -> Self {
        Self(match given {
            OneOrTwo::One(all) => Spacing::same(all),
            OneOrTwo::Two([x, y]) => Spacing { x, y, z: x },
        })
    }
}

impl From<OneOrThree> for OfBox {
    fn from(given: OneOrThree) -> Self {
        Self(match given {
            OneOrThree::One(all) => Spacing::same(all),
            OneOrThree::Three([x, y, z]) => Spacing { x, y, z },
        })
    }
}

/// Not one, two or three numbers.
#[derive(Debug, thiserror::Error)]
#[error("H, HX,HY or HX,HY,HZ is needed, for example 0.1 or 0.1,0.2")]
pub struct SpacingError;

impl Spacing {
    /// The same in all directions.
    pub fn same(all: f64) -> Self {
        Self {
            x: all,
            y: all,
            z: all,
        }
    }

    /// Whether those of columns and rows differ.
    pub fn differ(self) -> bool {
        self.x != self.y
    }
}

impl Distances {
    /// Those of a plane; a box has three.
    pub fn of_plane(self) -> Option<Spacing> {
        match self {
            Self::One(all) => Some(Spacing::same(all)),
            Self::Two([x, y]) => Some(Spacing { x, y, z: x }),
            Self::Three(_) => None,
        }
    }

    /// Those of a box; a plane has two.
    pub fn of_box(self) -> Option<Spacing> {
        match self {
            Self::One(all) => Some(Spacing::same(all)),
            Self::Two(_) => None,
            Self::Three([x, y, z]) => Some(Spacing { x, y, z }),
        }
    }
}

impl FromStr for Distances {
    type Err = SpacingError;

    fn from_str(text: &str) -> Result<Self, SpacingError> {
        let numbers = text.split(',').map(|text| text.trim().parse::<f64>());
        let numbers: Vec<f64> = numbers
            .collect::<Result<_, _>>()
            .map_err(|_| SpacingError)?;
        match numbers[..] {
            [all] => Ok(Self::One(all)),
            [x, y] => Ok(Self::Two([x, y])),
            [x, y, z] => Ok(Self::Three([x, y, z])),
            _ => Err(SpacingError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_distance_or_one_of_each_axis() {
        let parse = |text: &str| text.parse::<Distances>();
        assert_eq!(parse("0.5").unwrap(), Distances::One(0.5));
        assert_eq!(parse("1, 2e-1").unwrap(), Distances::Two([1.0, 0.2]));
        assert_eq!(parse("1,2,3").unwrap(), Distances::Three([1.0, 2.0, 3.0]));
        for text in ["", "a", "1,", "1,2,3,4"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with("H, HX,HY or HX,HY,HZ is needed"),
                "{error}"
            );
        }
        let plane = Distances::Two([1.0, 0.2]).of_plane();
        assert_eq!(
            plane,
            Some(Spacing {
                x: 1.0,
                y: 0.2,
                z: 1.0
            })
        );
        assert_eq!(Distances::Two([1.0, 0.2]).of_box(), None);
        assert_eq!(Distances::Three([1.0; 3]).of_plane(), None);
    }
}

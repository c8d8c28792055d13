//! Values on the sides and inside of a grid, as a user writes them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use crate::input::formula::{Formula, FormulaError};

/// Where values come from.
#[derive(Clone, Debug)]
pub enum Values {
    /// The same everywhere.
    Constant(f64),
    /// A formula of the place.
    Formula(Formula),
    /// An NPY file; of a plane also a TIFF.
    File(PathBuf),
}

/// What holds on one side.
#[derive(Clone, Debug)]
pub enum Boundary {
    /// Fixed values.
    Fixed(Values),
    /// A derivative across the side, outwards.
    Neumann(Values),
    /// a, b and g of a·u + b·∂u/∂n = g.
    Robin(Box<[Values; 3]>),
    /// The opposite side's neighbour.
    Periodic,
}

/// A side of the grid; row 0 is at the top, plane 0 in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Column 0.
    Left,
    /// The last column.
    Right,
    /// Row 0.
    Top,
    /// The last row.
    Bottom,
    /// Plane 0 of a box.
    Front,
    /// The last plane of a box.
    Back,
}

impl Side {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Top => "top",
            Self::Bottom => "bottom",
            Self::Front => "front",
            Self::Back => "back",
        }
    }
}

/// `SIDE=KIND` of the command line.
#[derive(Clone, Debug)]
pub struct SideBoundary {
    /// The side.
    pub side: Side,
    /// What holds there.
    pub boundary: Boundary,
}

/// Why `SIDE=KIND` is not understood.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryError {
    /// No equals sign.
    #[error("SIDE=KIND is needed, for example top='sin(pi*x)'")]
    NoKind,
    /// An unknown side.
    #[error("'{0}' is not a side; left, right, top, bottom and of laplace3d front and back are")]
    NoSide(String),
    /// A number that is not finite.
    #[error("{0} is not a finite number")]
    NotFinite(f64),
    /// Not three values.
    #[error("robin:A,B,G is needed, of A u + B du/dn = G")]
    NotThree,
    /// A formula that is not understood.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}

impl FromStr for Values {
    type Err = BoundaryError;

    /// A number, the path of a file (it ends in `.npy`, `.tif` or `.tiff`), or a formula.
    fn from_str(text: &str) -> Result<Self, BoundaryError> {
        let text = text.trim();
        if let Ok(value) = text.parse::<f64>() {
            return Self::constant(value);
        }
        let extension = Path::new(text).extension();
        if extension.is_some_and(|e| ["npy", "tif", "tiff"].iter().any(|known| e == *known)) {
            return Ok(Self::File(text.into()));
        }
        Ok(Self::Formula(Formula::parse(text)?))
    }
}

impl Values {
    fn constant(value: f64) -> Result<Self, BoundaryError> {
        if value.is_finite() {
            Ok(Self::Constant(value))
        } else {
            Err(BoundaryError::NotFinite(value))
        }
    }

    /// The file they come from, if they do.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            _ => None,
        }
    }

    /// The same values, with a relative path taken from `folder`.
    #[must_use]
    pub fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(folder.join(path)),
            other => other,
        }
    }
}

impl Boundary {
    /// The same, with a relative path taken from `folder`.
    #[must_use]
    pub fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Fixed(values) => Self::Fixed(values.relative_to(folder)),
            Self::Neumann(values) => Self::Neumann(values.relative_to(folder)),
            Self::Robin(mixed) => {
                Self::Robin(Box::new(mixed.map(|values| values.relative_to(folder))))
            }
            Self::Periodic => Self::Periodic,
        }
    }
}

impl FromStr for Boundary {
    type Err = BoundaryError;

    fn from_str(text: &str) -> Result<Self, BoundaryError> {
        let text = text.trim();
        if text == "periodic" {
            Ok(Self::Periodic)
        } else if let Some(derivative) = text.strip_prefix("neumann:") {
            Ok(Self::Neumann(derivative.parse()?))
        } else if let Some(mixed) = text.strip_prefix("robin:") {
            let parts: [&str; 3] = outer_parts(mixed)
                .try_into()
                .map_err(|_| BoundaryError::NotThree)?;
            let [value, derivative, right] = parts.map(str::parse);
            Ok(Self::Robin(Box::new([value?, derivative?, right?])))
        } else {
            Ok(Self::Fixed(text.parse()?))
        }
    }
}

/// The parts of `text` between commas, those inside brackets left alone.
fn outer_parts(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

impl FromStr for SideBoundary {
    type Err = BoundaryError;

    fn from_str(text: &str) -> Result<Self, BoundaryError> {
        let (side, kind) = text.split_once('=').ok_or(BoundaryError::NoKind)?;
        let side = match side.trim() {
            "left" => Side::Left,
            "right" => Side::Right,
            "top" => Side::Top,
            "bottom" => Side::Bottom,
            "front" => Side::Front,
            "back" => Side::Back,
            other => return Err(BoundaryError::NoSide(other.to_owned())),
        };
        Ok(Self {
            side,
            boundary: kind.parse()?,
        })
    }
}

/// A number or a text, as TOML has them.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, a formula, or the name of an NPY or TIFF file"
)]
enum NumberOrText {
    Integer(i64),
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Integer(value) => Self::constant(value as f64),
            NumberOrText::Number(value) => Self::constant(value),
            NumberOrText::Text(text) => text.parse(),
        };
        values.map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Boundary {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let boundary = match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Integer(value) => Values::constant(value as f64).map(Self::Fixed),
            NumberOrText::Number(value) => Values::constant(value).map(Self::Fixed),
            NumberOrText::Text(text) => text.parse(),
        };
        boundary.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let parse = |text: &str| text.parse::<SideBoundary>();
        let constant = parse("left=-1.5e3").unwrap();
        assert!(
            constant.side == Side::Left
                && matches!(constant.boundary, Boundary::Fixed(Values::Constant(v)) if v == -1500.0)
        );
        assert!(matches!(
            parse("top = periodic").unwrap().boundary,
            Boundary::Periodic
        ));
        assert!(
            matches!(parse("right=a=b/p.npy").unwrap().boundary, Boundary::Fixed(Values::File(p)) if p == Path::new("a=b/p.npy"))
        );
        assert!(matches!(
            parse("top=neumann:-2").unwrap().boundary,
            Boundary::Neumann(Values::Constant(v)) if v == -2.0
        ));
        assert!(matches!(
            parse("top=neumann: g.npy").unwrap().boundary,
            Boundary::Neumann(Values::File(p)) if p == Path::new("g.npy")
        ));
        let Boundary::Robin(mixed) = parse("top=robin:1, max(x,1),g.npy").unwrap().boundary else {
            panic!("a mixed condition")
        };
        assert!(matches!(&mixed[1], Values::Formula(f) if f.text() == "max(x,1)"));
        assert!(matches!(&mixed[2], Values::File(p) if p == Path::new("g.npy")));
        let formula = parse("bottom=sin(pi*x)").unwrap().boundary;
        assert!(matches!(formula, Boundary::Fixed(Values::Formula(f)) if f.text() == "sin(pi*x)"));
        for (text, expected) in [
            ("left", "SIDE=KIND is needed, for example top='sin(pi*x)'"),
            (
                "north=1",
                "'north' is not a side; left, right, top, bottom and of laplace3d front and back are",
            ),
            ("left=inf", "inf is not a finite number"),
            ("left=NaN", "NaN is not a finite number"),
            ("left=", "formula '': it is empty"),
            (
                "left=robin:1,2",
                "robin:A,B,G is needed, of A u + B du/dn = G",
            ),
            (
                "left=robin:1,2,3,4",
                "robin:A,B,G is needed, of A u + B du/dn = G",
            ),
            ("left=robin:1,,3", "formula '': it is empty"),
            ("left=neumann:", "formula '': it is empty"),
            ("left=neumann:inf", "inf is not a finite number"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
    }
}

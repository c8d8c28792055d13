//! How to solve and when to stop, as a user writes it.

use std::str::FromStr;

use clap::ValueEnum;
use serde::Deserialize;

/// Methods by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MethodName {
    /// Multigrid, unless the problem is laplace1d or a preset, or an option of Jacobi sweeps is given
    Auto,
    /// Jacobi sweeps, until a sweep changes little
    Jacobi,
    /// Multigrid cycles, until the residual is small
    Mg,
    /// Conjugate gradients with such a cycle in each step: fewer steps where cycles alone are slow
    Mgcg,
    /// Conjugate gradients without cycles
    Cg,
    /// Chebyshev's iteration, where enough cells are fixed that eigenvalues have a bound
    Chebyshev,
}

/// The rim of a fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rim {
    /// Unknown cells of the rim are solved as all others, with no flow across the rim
    Natural,
    /// Unknown cells of the rim are set linearly between known ones beforehand
    Interpolated,
}

impl Rim {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::Interpolated => "interpolated",
        }
    }
}

/// `KIND=VALUE` of `--stop`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StopRule {
    /// The residual, relative to the first.
    Residual(f64),
    /// The norm of a sweep's change.
    Change(f64),
    /// The number of sweeps.
    Sweeps(u64),
}

/// Why `KIND=VALUE` or `PRE,POST` is not understood.
#[derive(Debug, thiserror::Error)]
pub enum StoppingError {
    /// No equals sign.
    #[error("KIND=VALUE is needed, for example residual=1e-8")]
    MissingValue,
    /// An unknown kind.
    #[error("'{0}' is no reason to stop; residual, change and sweeps are")]
    UnknownKind(String),
    /// Not a number.
    #[error("'{0}' is not a number")]
    NotANumber(String),
    /// Not a whole number.
    #[error("'{0}' is not a whole number")]
    NotACount(String),
    /// Not two numbers.
    #[error("PRE,POST is needed, for example 2,2")]
    NotAPair,
}

impl FromStr for StopRule {
    type Err = StoppingError;

    fn from_str(text: &str) -> Result<Self, StoppingError> {
        let (kind, value) = text.split_once('=').ok_or(StoppingError::MissingValue)?;
        let value = value.trim();
        let number = || {
            let number = value.parse::<f64>();
            number.map_err(|_| StoppingError::NotANumber(value.to_owned()))
        };
        match kind.trim() {
            "residual" => Ok(Self::Residual(number()?)),
            "change" => Ok(Self::Change(number()?)),
            "sweeps" => match value.parse() {
                Ok(count) => Ok(Self::Sweeps(count)),
                Err(_) => Err(StoppingError::NotACount(value.to_owned())),
            },
            other => Err(StoppingError::UnknownKind(other.to_owned())),
        }
    }
}

/// What multigrid's first cycle is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CycleName {
    /// A V-cycle as the others.
    V,
    /// Full multigrid: from the coarsest level up, with a V-cycle on each.
    #[default]
    F,
}

/// Relaxations before and after the correction by a coarser level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "[u8; 2]")]
pub struct Smoothing {
    /// Before it.
    pub pre: u8,
    /// After it.
    pub post: u8,
}

impl From<[u8; 2]> for Smoothing {
    fn from([pre, post]: [u8; 2]) -> Self {
        Self { pre, post }
    }
}

impl FromStr for Smoothing {
    type Err = StoppingError;

    fn from_str(text: &str) -> Result<Self, StoppingError> {
        let (pre, post) = text.split_once(',').ok_or(StoppingError::NotAPair)?;
        let steps = |text: &str| text.trim().parse().map_err(|_| StoppingError::NotAPair);
        Ok(Self {
            pre: steps(pre)?,
            post: steps(post)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_apart() {
        let parse = |text: &str| text.parse::<StopRule>();
        assert_eq!(parse("residual=1e-8").unwrap(), StopRule::Residual(1e-8));
        assert_eq!(parse("change = 0.5").unwrap(), StopRule::Change(0.5));
        assert_eq!(parse("sweeps=12").unwrap(), StopRule::Sweeps(12));
        for (text, expected) in [
            ("1e-8", "KIND=VALUE is needed, for example residual=1e-8"),
            (
                "error=1",
                "'error' is no reason to stop; residual, change and sweeps are",
            ),
            ("residual=small", "'small' is not a number"),
            ("sweeps=1e3", "'1e3' is not a whole number"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn smoothing_is_two_numbers() {
        let parse = |text: &str| text.parse::<Smoothing>();
        assert_eq!(parse("2, 1").unwrap(), Smoothing { pre: 2, post: 1 });
        for text in ["2", "2,1,1", "a,b", "-1,2", ""] {
            let error = parse(text).unwrap_err().to_string();
            assert_eq!(error, "PRE,POST is needed, for example 2,2", "{text}");
        }
    }
}

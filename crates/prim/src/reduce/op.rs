//! The names of reductions.

use core::fmt;
use core::str::FromStr;

/// A reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// [`Reducer::sum`](crate::Reducer::sum)
    Sum,
    /// [`Reducer::exact_sum`](crate::Reducer::exact_sum)
    ExactSum,
    /// [`Reducer::prod`](crate::Reducer::prod)
    Prod,
    /// [`Reducer::min`](crate::Reducer::min)
    Min,
    /// [`Reducer::max`](crate::Reducer::max)
    Max,
    /// [`Reducer::argmin`](crate::Reducer::argmin)
    Argmin,
    /// [`Reducer::argmax`](crate::Reducer::argmax)
    Argmax,
    /// [`Reducer::mean`](crate::Reducer::mean)
    Mean,
    /// [`Reducer::norm2`](crate::Reducer::norm2)
    Norm2,
    /// [`Reducer::dot`](crate::Reducer::dot)
    Dot,
}

impl Op {
    /// All operations.
    pub const ALL: &[Self] = &[
        Self::Sum,
        Self::ExactSum,
        Self::Prod,
        Self::Min,
        Self::Max,
        Self::Argmin,
        Self::Argmax,
        Self::Mean,
        Self::Norm2,
        Self::Dot,
    ];

    /// Input arrays: 2 for [`Dot`](Self::Dot), 1 for all others.
    #[must_use]
    pub fn inputs(self) -> usize {
        if self == Self::Dot { 2 } else { 1 }
    }

    /// Whether no elements at all have a result.
    #[must_use]
    pub fn allows_empty(self) -> bool {
        !matches!(
            self,
            Self::Min | Self::Max | Self::Argmin | Self::Argmax | Self::Mean
        )
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::ExactSum => "exact-sum",
            Self::Prod => "prod",
            Self::Min => "min",
            Self::Max => "max",
            Self::Argmin => "argmin",
            Self::Argmax => "argmax",
            Self::Mean => "mean",
            Self::Norm2 => "norm2",
            Self::Dot => "dot",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is not that of an [`Op`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown reduction {0:?}; known are sum, exact-sum, prod, min, max, argmin, argmax, mean, norm2, dot"
)]
pub struct UnknownOp(pub String);

impl FromStr for Op {
    type Err = UnknownOp;

    fn from_str(name: &str) -> Result<Self, UnknownOp> {
        let found = Self::ALL.iter().find(|op| op.name() == name);
        found.copied().ok_or_else(|| UnknownOp(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for &op in Op::ALL {
            assert_eq!(op.to_string().parse(), Ok(op));
            assert!(UnknownOp(String::new()).to_string().contains(op.name()));
        }
        assert_eq!("median".parse::<Op>(), Err(UnknownOp("median".into())));
    }
}

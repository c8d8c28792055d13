//! The types of samples.

use core::fmt::{Debug, Display};

use super::edges::Edges;
use super::error::BinsError;
use super::even::{EvenFloat, EvenInteger};
use super::key::{Key, Rule};
use crate::Scalar;

/// A type of samples: `u8`, `u16`, `i32`, `f32` or `f64`.
///
/// Sealed: what bin a sample is in is a contract for each type.
pub trait Sample: Scalar + PartialOrd + Send + Sync {
    /// What ranges and edges are given in: `i64` for integers, so that the end of a range can be
    /// above the greatest sample; the type itself for floats.
    type Bound: Copy + PartialOrd + Debug + Display + Send + Sync + 'static;

    #[doc(hidden)]
    type Key: Key;
    #[doc(hidden)]
    fn key(self) -> Self::Key;
    #[doc(hidden)]
    fn bound_to_f64(bound: Self::Bound) -> f64;
    #[doc(hidden)]
    fn rule(
        bounds: &Bounds<Self::Bound>,
        bins: u32,
        clamp: bool,
    ) -> Result<Rule<Self::Key>, BinsError>;
}

/// What bins were made of.
#[derive(Clone, Debug)]
pub enum Bounds<B> {
    /// The ends of the range.
    Even(B, B),
    /// Of integers: the first value, and the one behind the last.
    Values(B, B),
    /// Ascending, the first below the last.
    Edges(Vec<B>),
}

/// Integer ranges and edges lie in −2^31 ..= 2^31.
fn check_bound(bound: i64) -> Result<(), BinsError> {
    if (-1 << 31..=1 << 31).contains(&bound) {
        Ok(())
    } else {
        Err(BinsError::Bound { bound })
    }
}

/// The rule of integers that are at most `greatest`.
fn integer_rule(
    bounds: &Bounds<i64>,
    bins: u32,
    clamp: bool,
    greatest: i64,
) -> Result<Rule<i32>, BinsError> {
    match bounds {
        &(Bounds::Even(low, high) | Bounds::Values(low, high)) => {
            check_bound(low)?;
            check_bound(high)?;
            // Where no sample is `high`, its own step is saved.
            let closed = matches!(bounds, Bounds::Even(..)) && high <= greatest;
            Ok(Rule::Even(EvenInteger::new(low, high, bins, closed, clamp)))
        }
        Bounds::Edges(edges) => {
            edges.iter().try_for_each(|&edge| check_bound(edge))?;
            let (from, to) = if clamp {
                (i32::MIN, i32::MAX)
            } else {
                // No key reaches 2^31.
                let last = edges[edges.len() - 1].min(i32::MAX.into());
                (edges[0] as i32, last as i32)
            };
            let reached = edges.iter().filter_map(|&edge| i32::try_from(edge).ok());
            Ok(Rule::Edges(Edges::new(reached.collect(), from, to, bins)))
        }
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Sample for $integer {
            type Bound = i64;
            type Key = i32;
            #[inline(always)]
            fn key(self) -> i32 {
                self.into()
            }
            fn bound_to_f64(bound: i64) -> f64 {
                bound as f64
            }
            fn rule(bounds: &Bounds<i64>, bins: u32, clamp: bool) -> Result<Rule<i32>, BinsError> {
                integer_rule(bounds, bins, clamp, Self::MAX.into())
            }
        }
    )*};
}
integers!(u8, u16, i32);

macro_rules! floats {
    ($($float:ident),*) => {$(
        impl Sample for $float {
            type Bound = $float;
            type Key = $float;
            #[inline(always)]
            fn key(self) -> $float {
                self
            }
            fn bound_to_f64(bound: $float) -> f64 {
                bound.into()
            }
            fn rule(
                bounds: &Bounds<$float>,
                bins: u32,
                clamp: bool,
            ) -> Result<Rule<$float>, BinsError> {
                match bounds {
                    &(Bounds::Even(low, high) | Bounds::Values(low, high)) => {
                        let scale = bins as $float / (high - low);
                        if !(scale.is_finite() && scale > 0.0) {
                            let (low, high) = (low.into(), high.into());
                            return Err(BinsError::Scale { low, high, bins });
                        }
                        Ok(Rule::Even(EvenFloat::<$float>::new(low, high, scale, bins, clamp)))
                    }
                    Bounds::Edges(edge) => {
                        let (from, to) = if clamp {
                            ($float::NEG_INFINITY, $float::INFINITY)
                        } else {
                            (edge[0], edge[edge.len() - 1])
                        };
                        Ok(Rule::Edges(Edges::new(edge.clone(), from, to, bins)))
                    }
                }
            }
        }
    )*};
}
floats!(f32, f64);

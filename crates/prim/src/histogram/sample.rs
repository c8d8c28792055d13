//! The types of samples.

use core::fmt::{Debug, Display};

use super::edges::Edges;
use super::error::BinsError;
use super::even::{EvenFloat, EvenInteger, EvenWide};
use super::key::{Key, Rule};
use crate::Scalar;

/// A type of samples: `i8` to `i64`, `u8` to `u64`, `f32` or `f64`.
///
/// Sealed: what bin a sample is in is a contract for each type.
pub trait Sample: Scalar + PartialOrd + Send + Sync {
    /// What ranges and edges are given in: `i64` for integers of up to 32 bits and `i128` for wider ones, so that the
    /// end of a range can be above the greatest sample; the type itself for floats.
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

/// A type of samples that GPUs count, too: `u8`, `u16`, `i32`, `f32` or `f64`.
pub trait DeviceSample: Sample {}
impl DeviceSample for u8 {}
impl DeviceSample for u16 {}
impl DeviceSample for i32 {}
impl DeviceSample for f32 {}
impl DeviceSample for f64 {}

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
integers!(i8, u8, i16, u16, i32);

/// The rule of wide integers that are `least` to `greatest`, whose keys are `least_key` and on.
fn wide_rule(
    bounds: &Bounds<i128>,
    bins: u32,
    clamp: bool,
    (least, greatest): (i128, i128),
    least_key: i64,
) -> Result<Rule<i64>, BinsError> {
    let check = |bound: i128| {
        if (least..=greatest + 1).contains(&bound) {
            Ok(())
        } else {
            Err(BinsError::WideBound {
                bound,
                least,
                greatest,
            })
        }
    };
    let moved = |bound: i128| bound - least + i128::from(least_key);
    match bounds {
        &(Bounds::Even(low, high) | Bounds::Values(low, high)) => {
            check(low)?;
            check(high)?;
            let closed = matches!(bounds, Bounds::Even(..));
            let rule = EvenWide::new(moved(low), moved(high), bins, closed, clamp);
            Ok(Rule::Even(rule))
        }
        Bounds::Edges(edges) => {
            edges.iter().try_for_each(|&edge| check(edge))?;
            // No key is behind the last.
            let key = |edge: i128| moved(edge).min(i64::MAX.into()) as i64;
            let (from, to) = if clamp {
                (i64::MIN, i64::MAX)
            } else {
                (key(edges[0]), key(edges[edges.len() - 1]))
            };
            let reached = edges
                .iter()
                .filter_map(|&edge| i64::try_from(moved(edge)).ok());
            Ok(Rule::Edges(Edges::new(reached.collect(), from, to, bins)))
        }
    }
}

macro_rules! wide_integers {
    ($($integer:ty: $bound:ty, $least_key:expr, $key:expr;)*) => {$(
        impl Sample for $integer {
            type Bound = $bound;
            type Key = i64;
            #[inline(always)]
            fn key(self) -> i64 {
                $key(self)
            }
            fn bound_to_f64(bound: $bound) -> f64 {
                bound as f64
            }
            fn rule(bounds: &Bounds<$bound>, bins: u32, clamp: bool) -> Result<Rule<i64>, BinsError> {
                let wide = match bounds {
                    &Bounds::Even(low, high) => Bounds::Even(low.into(), high.into()),
                    &Bounds::Values(low, high) => Bounds::Values(low.into(), high.into()),
                    Bounds::Edges(edges) => Bounds::Edges(edges.iter().map(|&edge| edge.into()).collect()),
                };
                let limits = (<$integer>::MIN.into(), <$integer>::MAX.into());
                wide_rule(&wide, bins, clamp, limits, $least_key)
            }
        }
    )*};
}
wide_integers! {
    u32: i64, 0, i64::from;
    i64: i128, i64::MIN, |value| value;
    u64: i128, i64::MIN, |value: u64| (value ^ 1 << 63).cast_signed();
}

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

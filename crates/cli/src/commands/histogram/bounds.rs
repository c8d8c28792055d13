//! Bounds of bins in the type of the samples.

use crosswarp::prim::histogram::{Bins, Sample};

use crate::commands::error::CommandError;

/// What the command needs to know of a type of samples.
pub trait BoundedSample: Sample {
    /// A bound as typed.
    fn bound(text: &str) -> Result<Self::Bound, CommandError>;
    /// The least bound at or above `value`: what samples ≥ `value` are at or above, too.
    fn at_or_above(value: f64) -> Self::Bound;
    /// A range around a single value, where all samples are equal.
    fn around(value: f64) -> (Self::Bound, Self::Bound);
    /// The sample, exactly.
    fn widen(self) -> f64;
    /// A bin for every integer of a range, `high` left out.
    fn integers(low: Self::Bound, high: Self::Bound) -> Result<Bins<Self>, CommandError>;
    /// A bin for every integer from one sample to another, both with one.
    fn integers_between(least: f64, greatest: f64) -> Result<Bins<Self>, CommandError>;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl BoundedSample for $integer {
            fn bound(text: &str) -> Result<i64, CommandError> {
                text.parse().map_err(|_| {
                    CommandError::Usage(format!("the range of integer samples needs integers, {text} is none"))
                })
            }
            fn at_or_above(value: f64) -> i64 {
                value.ceil() as i64
            }
            fn around(value: f64) -> (i64, i64) {
                (value as i64, value as i64 + 1)
            }
            fn widen(self) -> f64 {
                self.into()
            }
            fn integers(low: i64, high: i64) -> Result<Bins<Self>, CommandError> {
                Ok(Bins::integers(low, high)?)
            }
            fn integers_between(least: f64, greatest: f64) -> Result<Bins<Self>, CommandError> {
                Self::integers(least as i64, greatest as i64 + 1)
            }
        }
    )*};
}
integers!(u8, u16, i32);

macro_rules! floats {
    ($($float:ident),*) => {$(
        impl BoundedSample for $float {
            fn bound(text: &str) -> Result<$float, CommandError> {
                text.parse().map_err(|_| CommandError::Usage(format!("{text} is no number")))
            }
            #[allow(clippy::unnecessary_cast)] // Reason: written for both types.
            fn at_or_above(value: f64) -> $float {
                let nearest = value as $float;
                if f64::from(nearest) < value { nearest.next_up() } else { nearest }
            }
            #[allow(clippy::unnecessary_cast)] // Reason: as above.
            fn around(value: f64) -> ($float, $float) {
                (value as $float - 0.5, value as $float + 0.5)
            }
            fn widen(self) -> f64 {
                self.into()
            }
            fn integers(_: $float, _: $float) -> Result<Bins<Self>, CommandError> {
                Err(no_integers())
            }
            fn integers_between(_: f64, _: f64) -> Result<Bins<Self>, CommandError> {
                Err(no_integers())
            }
        }
    )*};
}
floats!(f32, f64);

fn no_integers() -> CommandError {
    CommandError::Usage("--integer needs samples that are integers (u8, u16 or i32)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_the_samples_type_keep_the_order() {
        // The least f32 at or above 0.1 and 1/3, which have no f32.
        for value in [0.1, 1.0 / 3.0, -0.1, 0.0, 2.5, 1e-50] {
            let bound = f32::at_or_above(value);
            assert!(f64::from(bound) >= value && f64::from(bound.next_down()) < value);
        }
        assert_eq!((i32::at_or_above(2.5), i32::at_or_above(-2.5)), (3, -2));
        assert_eq!(f32::around(1.0), (0.5, 1.5));
    }
}

//! Bounds of bins in the type of the samples.

use crosswarp::prim::histogram::{Bins, Sample};

use crate::commands::error::CommandError;

/// What the command needs to know of a type of samples.
pub trait BoundedSample: Sample {
    /// No sample is less, but a NaN.
    const LEAST: Self;
    /// No sample is greater, but a NaN.
    const GREATEST: Self;
    /// A bound as typed.
    fn bound(text: &str) -> Result<Self::Bound, CommandError>;
    /// The least bound at or above `value`: what samples ≥ `value` are at or above, too.
    fn at_or_above(value: f64) -> Self::Bound;
    /// The same of an integer.
    fn at_or_above_integer(value: i128) -> Self::Bound;
    /// The bound that is this sample; `None` of one that is infinite.
    fn exact(self) -> Option<Self::Bound>;
    /// A range around a single value, where all samples are equal.
    fn around(value: Self::Bound) -> (Self::Bound, Self::Bound);
    /// A bin for every integer of a range, `high` left out.
    fn integers(low: Self::Bound, high: Self::Bound) -> Result<Bins<Self>, CommandError>;
    /// A bin for every integer from one sample to another, both with one.
    fn integers_between(
        least: Self::Bound,
        greatest: Self::Bound,
    ) -> Result<Bins<Self>, CommandError>;
}

macro_rules! integers {
    ($($integer:ty: $bound:ty;)*) => {$(
        impl BoundedSample for $integer {
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
            fn bound(text: &str) -> Result<$bound, CommandError> {
                text.parse().map_err(|_| {
                    CommandError::Usage(format!("the range of integer samples needs integers, {text} is none"))
                })
            }
            fn at_or_above(value: f64) -> $bound {
                value.ceil() as $bound
            }
            fn at_or_above_integer(value: i128) -> $bound {
                value.clamp(<$bound>::MIN.into(), <$bound>::MAX.into()) as $bound
            }
            fn exact(self) -> Option<$bound> {
                Some(self.into())
            }
            fn around(value: $bound) -> ($bound, $bound) {
                (value, value + 1)
            }
            fn integers(low: $bound, high: $bound) -> Result<Bins<Self>, CommandError> {
                Ok(Bins::integers(low, high)?)
            }
            fn integers_between(least: $bound, greatest: $bound) -> Result<Bins<Self>, CommandError> {
                Self::integers(least, greatest + 1)
            }
        }
    )*};
}
integers! {
    i8: i64; i16: i64; i32: i64; i64: i128;
    u8: i64; u16: i64; u32: i64; u64: i128;
}

macro_rules! floats {
    ($($float:ident),*) => {$(
        impl BoundedSample for $float {
            const LEAST: Self = Self::NEG_INFINITY;
            const GREATEST: Self = Self::INFINITY;
            fn bound(text: &str) -> Result<$float, CommandError> {
                text.parse().map_err(|_| CommandError::Usage(format!("{text} is no number")))
            }
            #[allow(clippy::unnecessary_cast)] // Reason: written for both types.
            fn at_or_above(value: f64) -> $float {
                let nearest = value as $float;
                if f64::from(nearest) < value { nearest.next_up() } else { nearest }
            }
            fn at_or_above_integer(value: i128) -> $float {
                let nearest = value as $float;
                // Whole floats are exact as integers, but those beyond i128.
                if (nearest as i128) < value { nearest.next_up() } else { nearest }
            }
            fn exact(self) -> Option<$float> {
                self.is_finite().then_some(self)
            }
            fn around(value: $float) -> ($float, $float) {
                (value - 0.5, value + 0.5)
            }
            fn integers(_: $float, _: $float) -> Result<Bins<Self>, CommandError> {
                Err(no_integers())
            }
            fn integers_between(_: $float, _: $float) -> Result<Bins<Self>, CommandError> {
                Err(no_integers())
            }
        }
    )*};
}
floats!(f32, f64);

fn no_integers() -> CommandError {
    CommandError::Usage("--integer needs samples that are integers".to_owned())
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
        for value in [
            0,
            1 << 24,
            (1 << 24) + 1,
            -(1 << 24) - 1,
            i128::from(u64::MAX),
        ] {
            let bound = f32::at_or_above_integer(value);
            let below = bound.next_down().floor() as i128;
            assert!(bound as i128 >= value && below < value, "{value}");
        }
        assert_eq!(u8::at_or_above_integer(1 << 70), i64::MAX);
        assert_eq!(u64::at_or_above_integer(1 << 64), 1 << 64);
    }
}

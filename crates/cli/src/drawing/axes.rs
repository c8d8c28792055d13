//! Scales of a plot: from values to places, and the marks along them.

use crate::drawing::ticks::{labels, ticks};
use crate::format::general;

/// How values of one direction lie along it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Equal differences are equal distances.
    Linear {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
    },
    /// Equal ratios are equal distances.
    Log {
        /// Value at the start, positive.
        low: f64,
        /// Value at the end.
        high: f64,
    },
}

impl Scale {
    /// Linear, never empty.
    pub fn linear(low: f64, high: f64) -> Self {
        Self::Linear {
            low,
            high: if high > low { high } else { low + 1.0 },
        }
    }

    /// Logarithmic, over whole decades around the positive ones of `values`.
    pub fn log(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = values
            .into_iter()
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
        if high == 0.0 {
            return Self::Log {
                low: 1.0,
                high: 10.0,
            };
        }
        // Ends that are themselves numbers: the decades of f64 from its normal numbers on.
        let low = low.log10().floor().clamp(-307.0, 307.0);
        let high = high.log10().ceil().clamp(low + 1.0, 308.0);
        Self::Log {
            low: 10f64.powf(low),
            high: 10f64.powf(high),
        }
    }

    /// Where `value` lies: 0 at the start, 1 at the end, never outside.
    pub fn place(&self, value: f64) -> f64 {
        let place = match *self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => {
                // Not of the quotients: they may be too large for a number.
                let log = value.max(f64::MIN_POSITIVE).ln() - low.ln();
                log / (high.ln() - low.ln())
            }
        };
        place.clamp(0.0, 1.0)
    }

    /// Round values along it, with their texts.
    pub fn marks(&self) -> Vec<(f64, String)> {
        match *self {
            Self::Linear { low, high } => {
                let marks = ticks(low, high, 8);
                marks.iter().copied().zip(labels(&marks)).collect()
            }
            Self::Log { low, high } => {
                let (first, last) = (low.log10().round() as i32, high.log10().round() as i32);
                (first..=last)
                    .map(|exponent| 10f64.powi(exponent))
                    .map(|value| (value, general(value, 6)))
                    .collect()
            }
        }
    }
}

/// The two directions of a plot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axes<'a> {
    /// To the right.
    pub x: Scale,
    /// Upwards.
    pub y: Scale,
    /// What x is.
    pub x_label: &'a str,
    /// What y is.
    pub y_label: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends() {
        let linear = Scale::linear(0.0, 200.0);
        assert_eq!(
            (linear.place(50.0), linear.place(-1.0), linear.place(1e9)),
            (0.25, 0.0, 1.0)
        );
        let log = Scale::log([3.0, 250.0, 0.0, f64::NAN]);
        assert_eq!(
            log,
            Scale::Log {
                low: 1.0,
                high: 1000.0
            }
        );
        assert!((log.place(10.0) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(log.place(0.0), 0.0);
        assert_eq!(Scale::log([]).marks().len(), 2);
        assert_eq!(Scale::log([0.5, 2.0]).marks()[0].1, "0.1");
        assert!(Scale::linear(5.0, 5.0).place(5.0).is_finite());
        for extreme in [f64::MAX, 1.5e308, 5e-324, f64::MIN_POSITIVE] {
            for other in [extreme, 1.0, f64::MAX] {
                let log = Scale::log([extreme, other]);
                assert!(log.marks().len() < 700);
                assert!((0.0..=1.0).contains(&log.place(extreme)));
            }
        }
    }
}

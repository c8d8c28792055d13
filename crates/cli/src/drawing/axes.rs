//! Scales of a plot: from values to places, and the marks along them.

use std::ops::RangeInclusive;

use super::ticks::{labels, ticks};
use crate::format::{general, with_separators};

/// Most marks of a logarithmic scale.
const MOST_DECADES: usize = 12;
/// Most powers of ten between which there are fine marks.
const MOST_FINE_DECADES: usize = 6;

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// How values of one direction lie along it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Equal differences are equal distances.
    Linear {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
        /// Whether only whole numbers are marked.
        whole: bool,
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
            whole: false,
        }
    }

    /// From 0 to `last`, of whole numbers.
    pub fn counts(last: f64) -> Self {
        Self::Linear {
            low: 0.0,
            high: last.max(1.0),
            whole: true,
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
            Self::Linear { low, high, .. } => (value - low) / (high - low),
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
            Self::Linear { low, high, whole } => {
                let mut marks = ticks(low, high, 8);
                marks.retain(|mark| !whole || mark.fract() == 0.0);
                marks.iter().copied().zip(labels(&marks)).collect()
            }
            Self::Log { .. } => {
                let decades = self.decades();
                // Of many decades some.
                let step = decades.clone().count().div_ceil(MOST_DECADES);
                decades
                    .step_by(step)
                    .map(|exponent| 10f64.powi(exponent))
                    .map(|value| (value, with_separators(&general(value, 6))))
                    .collect()
            }
        }
    }

    /// Multiples of powers of ten between the marks, if they are few enough.
    pub fn fine_marks(&self) -> Vec<f64> {
        let decades = self.decades();
        if decades.clone().count() > MOST_FINE_DECADES {
            return Vec::new();
        }
        let last = decades.end() - decades.start();
        decades
            .take(last.max(0) as usize)
            .flat_map(|exponent| (2..10).map(move |k| f64::from(k) * 10f64.powi(exponent)))
            .collect()
    }

    /// The marks of a logarithmic scale with their texts as powers: 10⁻³.
    pub fn powers(&self) -> Vec<(f64, String)> {
        let superscript = |c: char| match c.to_digit(10) {
            Some(digit) => SUPERSCRIPTS[digit as usize],
            None => '⁻',
        };
        let power = |(value, _): (f64, String)| {
            let exponent = value.log10().round().to_string();
            let exponent: String = exponent.chars().map(superscript).collect();
            (value, format!("10{exponent}"))
        };
        self.marks().into_iter().map(power).collect()
    }

    /// The powers of ten along a logarithmic scale.
    fn decades(&self) -> RangeInclusive<i32> {
        match self {
            Self::Linear { .. } => RangeInclusive::new(1, 0),
            Self::Log { low, high } => low.log10().round() as i32..=high.log10().round() as i32,
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
    /// Whether a logarithmic y is marked as powers of ten, with fine lines between them.
    pub powers: bool,
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
        let powers: Vec<String> = Scale::log([1e-11, 1e-10])
            .powers()
            .into_iter()
            .map(|mark| mark.1)
            .collect();
        assert_eq!(powers, ["10⁻¹¹", "10⁻¹⁰"]);
        assert_eq!(Scale::log([1.0, 100.0]).fine_marks().len(), 16);
        assert_eq!(Scale::log([1.0, 1e100]).fine_marks().len(), 0);
        assert_eq!(linear.fine_marks().len(), 0);
        let counts = Scale::counts(2.0).marks();
        assert_eq!(counts.len(), 3, "{counts:?}");
        assert!(Scale::linear(5.0, 5.0).place(5.0).is_finite());
        for extreme in [f64::MAX, 1.5e308, 5e-324, f64::MIN_POSITIVE] {
            for other in [extreme, 1.0, f64::MAX] {
                let log = Scale::log([extreme, other]);
                assert!(log.marks().len() <= MOST_DECADES);
                assert!((0.0..=1.0).contains(&log.place(extreme)));
            }
        }
    }
}

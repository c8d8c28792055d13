//! Round numbers along an axis.

use crate::format::{general, with_separators};

/// Round values in `low..=high`, about `wanted` of them, 1, 2 or 5 times a power of ten apart.
///
/// `low` and `high` are finite and `low < high`.
pub fn ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let raw = (high - low) / wanted.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    // The nearest of 1, 2, 5 and 10 by ratio: the bounds are their geometric means.
    let round = match raw / power {
        ..1.415 => 1.0,
        ..3.163 => 2.0,
        ..7.072 => 5.0,
        _ => 10.0,
    };
    let step = round * power;
    if !step.is_normal() {
        return vec![low, high];
    }
    // The slack lets an end that is itself a round number keep its tick.
    let slack = 1e-9 * (high - low) / step;
    let first = (low / step - slack).ceil() as i64;
    let last = (high / step + slack).floor() as i64;
    (first..=last).map(|k| k as f64 * step).collect()
}

/// The ticks' texts, with no more digits than tell them apart.
pub fn labels(ticks: &[f64]) -> Vec<String> {
    let texts = (6..=15)
        .map(|digits| {
            ticks
                .iter()
                .map(|&t| general(t, digits))
                .collect::<Vec<_>>()
        })
        .find(|texts| texts.windows(2).all(|pair| pair[0] != pair[1]))
        .unwrap_or_else(|| ticks.iter().map(|&t| general(t, 17)).collect());
    texts.iter().map(|text| with_separators(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(
            ticks(0.0, 1.0, 5),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(
            labels(&ticks(0.0, 1.0, 5)),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(
            labels(&ticks(236.0, 1076.0, 5)),
            ["400", "600", "800", "1,000"]
        );
        assert_eq!(
            labels(&ticks(-1.0, 1.0, 4)),
            ["-1", "-0.5", "0", "0.5", "1"]
        );
        assert_eq!(
            labels(&ticks(0.0, 4194303.0, 4)),
            ["0", "1e+06", "2e+06", "3e+06", "4e+06"]
        );
        assert_eq!(labels(&ticks(1000.0001, 1000.0005, 4))[0], "1,000.0001");
    }

    #[test]
    fn odd_ranges_do_not_run_away() {
        for (low, high) in [
            (1.0, 1.0 + f64::EPSILON),
            (-1e300, 1e300),
            (5e-324, 1e-323),
            (1e20, 1.0000001e20),
        ] {
            let found = ticks(low, high, 5);
            assert!(found.len() < 20, "{low} {high}: {found:?}");
            assert_eq!(labels(&found).len(), found.len());
        }
    }
}

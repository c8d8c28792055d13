//! The functions of formulas.
//!
//! `sqrt`, `abs`, `floor` and the like are exact, so the standard library's are the same on every system;
//! all others come from `libm`. `round` takes halves away from zero, `fract` has the sign of its argument,
//! `log` is `ln`. `min` and `max` give NaN if an argument is NaN; −0 is less than +0.

use super::Step;

/// The function `name` with the number of its arguments.
pub fn function(name: &str) -> Option<(Step, usize)> {
    let found = FUNCTIONS.binary_search_by_key(&name, |known| known.0);
    found.ok().map(|place| {
        let step = FUNCTIONS[place].1;
        (step, if matches!(step, Step::Two(_)) { 2 } else { 1 })
    })
}

/// The functions' names.
pub fn names() -> String {
    FUNCTIONS.map(|(name, _)| name).join(", ")
}

/// By name.
const FUNCTIONS: [(&str, Step); 31] = [
    ("abs", Step::One(f64::abs)),
    ("acos", Step::One(libm::acos)),
    ("acosh", Step::One(libm::acosh)),
    ("asin", Step::One(libm::asin)),
    ("asinh", Step::One(libm::asinh)),
    ("atan", Step::One(libm::atan)),
    ("atan2", Step::Two(libm::atan2)),
    ("atanh", Step::One(libm::atanh)),
    ("cbrt", Step::One(libm::cbrt)),
    ("ceil", Step::One(f64::ceil)),
    ("cos", Step::One(libm::cos)),
    ("cosh", Step::One(libm::cosh)),
    ("exp", Step::One(libm::exp)),
    ("floor", Step::One(f64::floor)),
    ("fract", Step::One(f64::fract)),
    ("hypot", Step::Two(libm::hypot)),
    ("ln", Step::One(libm::log)),
    ("log", Step::One(libm::log)),
    ("log10", Step::One(libm::log10)),
    ("log2", Step::One(libm::log2)),
    ("max", Step::Two(greater)),
    ("min", Step::Two(lesser)),
    ("pow", Step::Two(libm::pow)),
    ("round", Step::One(f64::round)),
    ("signum", Step::One(f64::signum)),
    ("sin", Step::One(libm::sin)),
    ("sinh", Step::One(libm::sinh)),
    ("sqrt", Step::One(f64::sqrt)),
    ("tan", Step::One(libm::tan)),
    ("tanh", Step::One(libm::tanh)),
    ("trunc", Step::One(f64::trunc)),
];

fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || a.total_cmp(&b).is_lt() && !b.is_nan() {
        a
    } else {
        b
    }
}

fn greater(a: f64, b: f64) -> f64 {
    -lesser(-a, -b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        for (name, _) in FUNCTIONS {
            assert!(
                function(name).is_some(),
                "{name}: the table is sorted by name"
            );
        }
        assert!(function("").is_none() && function("sine").is_none());
    }

    #[test]
    fn extrema_keep_nan_and_order_zeros() {
        for (a, b, least, greatest) in [
            (1.0, 2.0, 1.0, 2.0),
            (-0.0, 0.0, -0.0, 0.0),
            (
                f64::NEG_INFINITY,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::INFINITY,
            ),
        ] {
            for (a, b) in [(a, b), (b, a)] {
                assert_eq!(lesser(a, b).to_bits(), f64::to_bits(least));
                assert_eq!(greater(a, b).to_bits(), f64::to_bits(greatest));
            }
        }
        for nan in [f64::NAN, -f64::NAN] {
            for other in [0.0, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(lesser(nan, other).is_nan() && lesser(other, nan).is_nan());
                assert!(greater(nan, other).is_nan() && greater(other, nan).is_nan());
            }
        }
    }
}

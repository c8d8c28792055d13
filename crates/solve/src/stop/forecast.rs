//! When a solve is likely to stop.

/// How many sweeps are likely to go on until the tolerance is met, at least 1, if the norms fall by the same power of
/// the number of sweeps as in the last half of them. A pass need not be longer; if it is too short, another follows.
pub(crate) fn likely_left(history: &[f64], tolerance: f64) -> usize {
    let done = history.len();
    if done < 4 {
        return usize::MAX;
    }
    let (half, last) = (history[done / 2 - 1], history[done - 1]);
    let power = (half / last).ln() / (done as f64 / (done / 2) as f64).ln();
    let total = done as f64 * (last / tolerance).powf(1.0 / power);
    // Not a number, or without end, if the norms do not fall or nothing is tolerated.
    if power > 0.0 && total.is_finite() {
        ((total - done as f64).ceil() as usize).max(1)
    } else {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_that_fall_like_a_power_are_foreseen() {
        let norms: Vec<f64> = (1..=100).map(|sweep| f64::from(sweep).powi(-2)).collect();
        // 10^-6 is met by sweep 1000.
        assert!(likely_left(&norms, 1e-6).abs_diff(900) <= 1);
        assert_eq!(likely_left(&norms, 1e-4), 1);
        assert_eq!(likely_left(&norms, 0.0), usize::MAX);
        assert_eq!(likely_left(&[1.0; 10], 0.5), usize::MAX);
        assert_eq!(likely_left(&norms[..3], 1e-6), usize::MAX);
    }
}

//! The decision whether to stop, the same on every PE.

use crosswarp_prim::Superaccumulator;

use crate::element::Real;
use crate::problem::Norm;

/// What the sums of a pass's sweeps decide; the same on every PE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decision {
    /// No sweep meets the tolerance.
    GoOn,
    /// The last sweep in the history does.
    Stop,
    /// The last norm in the history is NaN or infinite, and does not meet the tolerance.
    NotFinite,
}

/// How norms are made of sums, and when they end a solve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Criterion {
    pub norm: Norm,
    /// Points of the grid.
    pub points: usize,
    pub tolerance: f64,
}

impl Criterion {
    /// Whether the last of `history` meets the tolerance.
    pub(crate) fn is_met(&self, history: &[f64]) -> bool {
        history.last().is_some_and(|&norm| norm <= self.tolerance)
    }

    /// Appends the norms of sweeps with these sums over all PEs to `history`, up to the first that ends the solve.
    pub(crate) fn decide<F: Real>(
        &self,
        sums: &[Superaccumulator<F>],
        history: &mut Vec<f64>,
    ) -> Decision {
        for sum in sums {
            let norm = self.norm.of(sum.round_f64(), self.points);
            history.push(norm);
            if self.is_met(history) {
                return Decision::Stop;
            }
            if !norm.is_finite() {
                return Decision::NotFinite;
            }
        }
        Decision::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(of: &[f64]) -> Vec<Superaccumulator<f64>> {
        let sum = |&value: &f64| {
            let mut sum = Superaccumulator::new();
            sum.add(value);
            sum
        };
        of.iter().map(sum).collect()
    }

    #[test]
    fn the_first_sweep_that_ends_a_solve_is_the_last_in_the_history() {
        let criterion = |tolerance| Criterion {
            norm: Norm::L2,
            points: 9,
            tolerance,
        };
        for (tolerance, of, decision, norms) in [
            (1.0, &[9.0, 4.0][..], Decision::GoOn, &[3.0, 2.0][..]),
            (2.0, &[9.0, 4.0, 1.0], Decision::Stop, &[3.0, 2.0]),
            (
                2.0,
                &[9.0, f64::INFINITY, 1.0],
                Decision::NotFinite,
                &[3.0, f64::INFINITY],
            ),
            (
                f64::INFINITY,
                &[f64::INFINITY, 1.0],
                Decision::Stop,
                &[f64::INFINITY],
            ),
        ] {
            let mut history = Vec::new();
            let found = criterion(tolerance).decide(&sums(of), &mut history);
            assert_eq!(
                (found, &history[..]),
                (decision, norms),
                "{tolerance} {of:?}"
            );
        }
    }
}

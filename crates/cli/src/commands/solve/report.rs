//! The result of a solve: one JSON object, or lines for people.

use serde::Serialize;

use crate::format::{counted, exponential, figure, general, grouped, pes, si};
use crate::output::json::{self, Run};

/// The result of a solve, serialised as the object that `--json` prints.
#[derive(Serialize)]
pub struct SolveReport {
    /// laplace1d, laplace2d or fill.
    pub problem: &'static str,
    /// f32 or f64.
    pub dtype: &'static str,
    /// Of a fill: the number type of its values; else null.
    pub values_dtype: Option<&'static str>,
    /// What computed: cpu or cuda.
    pub backend: &'static str,
    /// How it was run; the seconds are those of the sweeps.
    #[serde(flatten)]
    pub run: Run,
    /// jacobi, cg, chebyshev, mg, or mgcg where conjugate gradients were taken in the end.
    pub method: &'static str,
    /// Sweeps made; null for mg and mgcg.
    pub sweeps: Option<u64>,
    /// Cycles made; null for all others.
    pub cycles: Option<u64>,
    /// Whether the norm, or the relative residual, came down to the limit.
    pub converged: bool,
    /// Norm of the last sweep's change; null without any, and for all but jacobi.
    pub norm: Option<f64>,
    /// Estimate of the same norm of what is left to the solution; null where it cannot be told, and for all but jacobi.
    pub remaining_error_estimate: Option<f64>,
    /// The last residual, relative to the first; null for jacobi.
    pub relative_residual: Option<f64>,
    /// By what a cycle, or sweep, multiplies the residual; null without any.
    pub convergence_factor: Option<f64>,
    /// Levels of multigrid; null for all others.
    pub levels: Option<usize>,
    /// Of the seconds, those in which levels were made, and copied to a GPU; null for jacobi.
    pub setup_seconds: Option<f64>,
    /// Whether the residual is as small as rounding allows, and larger than the limit.
    pub floor_reached: bool,
    /// What rounding alone leaves of the relative residual; null for jacobi, and where nothing was to be solved.
    pub floor: Option<f64>,
    /// The limit that is sure to be kept: the one that was asked for, or twice the floor if that is larger; null for jacobi.
    pub effective_limit: Option<f64>,
    /// What was taken away from a source that no field solves, relative to the sum of all sizes; null where nothing was.
    pub projected: Option<f64>,
    /// Every sweep's number and norm, or cycle's and relative residual; null unless they were asked for.
    pub history: Option<Vec<(u64, f64)>>,
    /// SHA-256 of the whole field, row-major, little-endian.
    pub field_sha256: String,
    /// Cells updated, those computed twice at the seams not counted, by second; of mg, cells times cycles.
    pub cell_updates_per_second: f64,
    /// How GPUs were used; null on the CPU.
    pub strategy: Option<&'static str>,
    /// The faster strategies that `auto` could not take, and why.
    pub not_taken: Vec<NotTaken>,
}

/// A strategy that could not be taken.
#[derive(Serialize)]
pub struct NotTaken {
    /// Its name.
    pub strategy: &'static str,
    /// Why not.
    pub reason: String,
}

/// What only people are told.
pub struct SolveDetails {
    /// `512 x 512 cells`, say.
    pub size: String,
    /// What computed, in words.
    pub machine: String,
    /// Where it had to stop.
    pub tolerance: f64,
    /// The norm of a sweep's change in a word.
    pub norm: &'static str,
    /// Whether there is a method that gets closer.
    pub mg_can: bool,
    /// Sweeps per pass through memory, or relaxations of a cycle.
    pub how: String,
    /// The rim of a fill.
    pub rim: Option<&'static str>,
    /// Files written.
    pub files: Vec<String>,
}

impl SolveReport {
    /// One line of JSON.
    pub fn to_json(&self) -> String {
        json::line(self)
    }

    /// The closing lines of a run.
    pub fn summary(&self, details: &SolveDetails) -> String {
        let mut text = match self.relative_residual {
            Some(residual) => self.of_residual(residual, details.tolerance),
            None => self.of_sweeps(details),
        };
        if let Some(projected) = self.projected {
            let part = exponential(projected, 2);
            text.push_str(&format!(
                "\nNo field solves what was asked for: {part} of all sources and derivatives was taken away from the source"
            ));
        }
        text.push_str(&format!(
            "\n{} {}{} on {} ({}), {}, {}",
            details.size,
            self.dtype,
            match self.values_dtype {
                Some(other) if other != self.dtype => format!(" (values {other})"),
                _ => String::new(),
            },
            pes(self.run.pes),
            self.run.world,
            details.machine,
            details.how,
        ));
        if let Some(rim) = details.rim {
            text.push_str(&format!(", {rim} rim"));
        }
        text.push_str(&format!("; {} s", figure(self.run.seconds, 4)));
        if self.cycles.is_none() {
            let rate = si(self.cell_updates_per_second, " cell updates/s");
            text.push_str(&format!(", {rate}"));
        }
        if let Some(strategy) = self.strategy {
            text.push_str(&format!("\nStrategy {strategy}"));
            for not in &self.not_taken {
                text.push_str(&format!("; not {}: {}", not.strategy, not.reason));
            }
        }
        if !details.files.is_empty() {
            text.push_str("\nWrote ");
            text.push_str(&details.files.join(", "));
        }
        text
    }

    fn of_sweeps(&self, details: &SolveDetails) -> String {
        let sweeps = counted(self.sweeps.unwrap_or_default(), "sweep");
        let tolerance = general(details.tolerance, 6);
        let Some(norm) = self.norm else {
            return "No sweep was made".to_owned();
        };
        let error = general(norm, 6);
        let mut text = if self.converged {
            format!("Converged after {sweeps}: error {error} <= tolerance {tolerance}")
        } else {
            format!("Did not converge in {sweeps}: error {error} > tolerance {tolerance}")
        };
        if norm == 0.0 && self.dtype == "f32" {
            text.push_str("\nNo digit of f32 changes any more, which is not yet the solution; --dtype f64 goes on");
        }
        if let Some(estimate) = self.remaining_error_estimate {
            text.push_str(&format!(
                "\nThe solution is about {} ({}) away, or more",
                general(estimate, 2),
                details.norm
            ));
            if self.converged && estimate > MUCH * details.tolerance {
                let times = grouped((estimate / details.tolerance).round() as u64);
                text.push_str(&format!(": {times} times the tolerance"));
                if details.mg_can {
                    text.push_str("; --method mg goes all the way");
                }
            }
        }
        text
    }

    fn of_residual(&self, residual: f64, limit: f64) -> String {
        let what = match (self.cycles, self.levels) {
            (Some(cycles), Some(levels)) => {
                let levels = counted(levels as u64, "level");
                format!("{} of {levels}", counted(cycles, "cycle"))
            }
            _ => counted(self.sweeps.unwrap_or_default(), "sweep"),
        };
        let above = residual;
        let residual = exponential(residual, 2);
        let limit = general(limit, 6);
        if self.converged && self.cycles.or(self.sweeps) == Some(0) {
            "Nothing to solve: the residual of the first guess is 0".to_owned()
        } else if self.converged {
            format!("Solved in {what}: relative residual {residual} <= {limit}")
        } else if self.floor_reached {
            let why = match self.effective_limit {
                Some(effective) if above <= effective => {
                    format!("rounding can leave up to {}", exponential(effective, 2))
                }
                // It is not of the size of the floor, but there is no direction in which it shrinks.
                _ => "steps do not make it smaller".to_owned(),
            };
            format!(
                "Solved as far as rounding allows in {what}: relative residual {residual} > {limit}, and {why}"
            )
        } else {
            format!("Did not converge in {what}: relative residual {residual} > {limit}")
        }
    }
}

/// So many times the tolerance is much.
const MUCH: f64 = 10.0;

/// How far the solution is, in the norm of the changes, if those go on to shrink as the last ones did. As the smooth
/// parts of the error, which shrink slowest, come to be all that is left, they shrink less, so it can be more.
pub fn remaining_error(norms: &[f64]) -> Option<f64> {
    let last = norms.len().checked_sub(1)?;
    // Over many sweeps, since one may be rounding; but the early ones fall faster.
    let window = (norms.len() / 10).clamp(1, 1000);
    let before = norms[last.checked_sub(window)?];
    let ratio = (norms[last] / before).powf(1.0 / window as f64);
    let rest = norms[last] * ratio / (1.0 - ratio);
    (norms[last] > 0.0 && ratio < 1.0 && rest.is_finite()).then_some(rest)
}

/// The mean factor of the last cycles, of which each multiplies the residual.
pub fn convergence_factor(residuals: &[f64]) -> Option<f64> {
    const FEW: usize = 4;
    let last = residuals.last()?;
    // The first cycle tells more of the first guess than of the ones to come.
    let count = (residuals.len() - 1).clamp(1, FEW);
    let before = match residuals.len() - 1 {
        0 => 1.0,
        at => residuals[at - count],
    };
    let factor = (last / before).powf(1.0 / count as f64);
    factor.is_finite().then_some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_series_has_the_rest_it_has() {
        let norms: Vec<f64> = (0..2000).map(|k| 3.0 * 0.99f64.powi(k)).collect();
        let rest: f64 = (2000..9000).map(|k| 3.0 * 0.99f64.powi(k)).sum();
        let estimate = remaining_error(&norms).unwrap();
        assert!((estimate / rest - 1.0).abs() < 1e-9, "{estimate} {rest}");
        assert_eq!(remaining_error(&[0.5, 0.25]), Some(0.25));
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        for norms in [
            &[][..],
            &[1.0],
            &[1.0, 1.0],
            &[1.0, 2.0],
            &[1.0, 0.0],
            &[0.0, 0.0],
        ] {
            assert_eq!(remaining_error(norms), None, "{norms:?}");
        }
        assert_eq!(convergence_factor(&[]), None);
        assert_eq!(convergence_factor(&[0.0, 0.0]), None);
    }

    #[test]
    fn the_factor_is_that_of_the_last_cycles() {
        assert_eq!(convergence_factor(&[0.25]), Some(0.25));
        let residuals = [0.5, 0.4, 0.04, 0.004, 4e-4, 4e-5];
        let factor = convergence_factor(&residuals).unwrap();
        assert!((factor - 0.1).abs() < 1e-12, "{factor}");
        assert_eq!(convergence_factor(&[0.5, 0.05]), Some(0.1));
    }
}

//! The result of a solve: one JSON object, or lines for people.

use serde::Serialize;

use crate::format::{general, grouped, pes, si};
use crate::output::json::{self, Run};

/// The result of a solve, serialised as the object that `--json` prints.
#[derive(Serialize)]
pub struct SolveReport {
    /// laplace1d, laplace2d or fill.
    pub problem: &'static str,
    /// f32 or f64.
    pub dtype: &'static str,
    /// What computed: cpu or cuda.
    pub backend: &'static str,
    /// How it was run; the seconds are those of the sweeps.
    #[serde(flatten)]
    pub run: Run,
    /// Sweeps made.
    pub sweeps: u64,
    /// Whether the norm reached the tolerance.
    pub converged: bool,
    /// Norm of the last sweep; null without any.
    pub norm: Option<f64>,
    /// Every sweep's number and norm.
    pub history: Vec<(u64, f64)>,
    /// SHA-256 of the whole field, row-major, little-endian.
    pub field_sha256: String,
    /// Cells updated, those computed twice at the seams not counted, by second.
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
    /// Sweeps per pass through memory.
    pub sweeps_per_pass: usize,
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
        let sweeps = grouped(self.sweeps);
        let tolerance = general(details.tolerance, 6);
        let outcome = match self.norm {
            Some(norm) if self.converged => {
                format!(
                    "Converged after {sweeps} sweeps: error {} <= tolerance {tolerance}",
                    general(norm, 6)
                )
            }
            Some(norm) => {
                format!(
                    "Did not converge in {sweeps} sweeps: error {} > tolerance {tolerance}",
                    general(norm, 6)
                )
            }
            None => "No sweep was made".to_owned(),
        };
        let mut text = format!(
            "{outcome}\n{} {} on {} ({}), {}, {} sweeps per pass; {} s, {}",
            details.size,
            self.dtype,
            pes(self.run.pes),
            self.run.world,
            details.machine,
            details.sweeps_per_pass,
            general(self.run.seconds, 4),
            si(self.cell_updates_per_second, " cell updates/s"),
        );
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
}

//! The results of a command: one JSON object, or lines for people.

use serde::Serialize;
use serde::ser::SerializeStruct;

use crate::general::{general, grouped, pes, si};
use crate::reduce::json_value;

/// The result of a solve, serialised as the object that `--json` prints.
#[derive(Serialize)]
pub struct SolveReport {
    /// laplace1d, laplace2d or fill.
    pub problem: &'static str,
    /// f32 or f64.
    pub dtype: &'static str,
    /// What computed: cpu or cuda.
    pub backend: &'static str,
    /// Number of PEs.
    pub pes: usize,
    /// threads or processes.
    pub world: &'static str,
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
    /// Time of the sweeps, in seconds.
    pub seconds: f64,
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
        serde_json::to_string(self).expect("numbers and texts can be serialised")
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
            pes(self.pes),
            self.world,
            details.machine,
            details.sweeps_per_pass,
            general(self.seconds, 4),
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

/// The result of a reduction, serialised as the object that `--json` prints.
pub struct ReduceReport {
    /// The operation.
    pub op: &'static str,
    /// `cpu` or `cuda`.
    pub backend: &'static str,
    /// Type of the elements.
    pub dtype: String,
    /// Number of elements.
    pub count: usize,
    /// The result.
    pub value: crosswarp::prim::Value,
    /// Time of the reduction, reading included.
    pub seconds: f64,
    /// Bytes of all elements by second.
    pub bytes_per_second: f64,
    /// Number of PEs; for people.
    pub pes: usize,
    /// threads or processes; for people.
    pub world: &'static str,
    /// Where the work was done; for people.
    pub place: String,
}

impl ReduceReport {
    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be serialised")
    }
}

impl Serialize for ReduceReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ReduceReport", 8)?;
        object.serialize_field("op", self.op)?;
        object.serialize_field("backend", self.backend)?;
        object.serialize_field("dtype", &self.dtype)?;
        object.serialize_field("count", &self.count)?;
        object.serialize_field("value", &json_value(self.value))?;
        object.serialize_field("bits", &self.value.hex())?;
        object.serialize_field("seconds", &self.seconds)?;
        object.serialize_field("bytes_per_second", &self.bytes_per_second)?;
        object.end()
    }
}

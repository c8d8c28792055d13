//! How measured rows are shown.

use std::fmt::Write as _;

use crosswarp::cuda::Device;
use crosswarp::lab::measure::{Machine, Row};

use crate::commands::error::CommandError;
use crate::commands::source_commit::COMMIT;
use crate::console;
use crate::format::{grouped, with_separators};

/// From this many bytes on, the table shows a rate.
const PAYLOAD: u64 = 1 << 16;

/// Where measured rows go: a table, or one JSON object a line with machine and version.
pub struct Rows {
    machine: Option<Machine>,
    /// Width of the first column.
    width: usize,
    headed: bool,
}

impl Rows {
    /// A table whose first column has `width` characters or, with `json`, objects that name `device`.
    pub fn new(json: bool, device: &Device, width: usize) -> Self {
        Self {
            machine: json.then(|| Machine::with_gpu(device)),
            width,
            headed: false,
        }
    }

    /// The same of the processor.
    pub fn of_host(json: bool, width: usize) -> Self {
        Self {
            machine: json.then(Machine::of_host),
            width,
            headed: false,
        }
    }

    /// Shows one row. All rows of a table have the same parameters.
    pub fn show(&mut self, row: &Row) -> Result<(), CommandError> {
        if let Some(machine) = &self.machine {
            let row = row.clone().about("commit", COMMIT);
            return Ok(console::line(row.json(machine))?);
        }
        if !self.headed {
            console::line(heading(row, self.width))?;
            self.headed = true;
        }
        Ok(console::line(line(row, self.width))?)
    }
}

/// Width of a parameter's column.
fn column(name: &str) -> usize {
    name.len().max(9) + 2
}

fn heading(row: &Row, width: usize) -> String {
    let mut out = format!("{:<width$}", "what");
    for (name, _) in &row.parameters {
        let _ = write!(out, "{name:>0$}", column(name));
    }
    out + &format!(
        "{:>15}{:>14}{:>14}{:>14}{:>11}",
        "bytes", "us", "min", "max", "GB/s"
    )
}

fn line(row: &Row, width: usize) -> String {
    let mut out = format!("{:<width$}", row.what);
    for (name, value) in &row.parameters {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) if number.is_f64() => {
                format!("{:.1}", number.as_f64().unwrap_or_default())
            }
            other => other.to_string(),
        };
        let _ = write!(out, "{text:>0$}", column(name));
    }
    let bytes = row.bytes.unwrap_or_default();
    let rate = row.gigabytes().filter(|_| bytes >= PAYLOAD);
    let time = &row.time;
    let us = |seconds: f64| with_separators(&format!("{:.3}", 1e6 * seconds));
    out + &format!(
        "{:>15}{:>14}{:>14}{:>14}{:>11}",
        grouped(bytes),
        us(time.median),
        us(time.min),
        us(time.max),
        rate.map_or(String::new(), |rate| with_separators(&format!("{rate:.1}"))),
    )
}

#[cfg(test)]
mod tests {
    use crosswarp::lab::measure::Timing;

    use super::*;

    #[test]
    fn lines_stand_under_their_headings() {
        let time = Timing {
            median: 1.5e-6,
            min: 1e-6,
            max: 2e-6,
            samples: 3,
            calls: 1,
        };
        let row = Row::new("get", time)
            .with("scope", "warp")
            .with("pes", 2)
            .bytes(8);
        let (heading, line) = (heading(&row, 10), line(&row, 10));
        assert_eq!(heading.len(), line.len());
        for (name, value) in [
            ("scope", "warp"),
            ("pes", "2"),
            ("bytes", "8"),
            ("us", "1.500"),
        ] {
            let end = |text: &str, part: &str| text.find(part).map(|at| at + part.len());
            assert_eq!(end(&heading, name), end(&line, value), "{heading}\n{line}");
        }
        assert!(line.trim_end().ends_with("2.000"), "no rate: {line}");
    }
}

//! `crosswarp bench`: how measured rows are shown, and the benches of verbs and reductions.

pub mod compare;
pub mod histogram;
pub mod jacobi;
pub mod transpose;

use std::fmt::Write as _;

use crosswarp::cuda::Device;
use crosswarp::lab::bench;
use crosswarp::lab::measure::{Machine, Row};

use crate::args::{
    BenchHistogramArgs, BenchPrimArgs, BenchReduceArgs, BenchShmemArgs, BenchTransposeArgs,
};
use crate::commands::error::CliError;
use crate::console;
use crate::world::{in_world_of, kind_name};

/// From this many bytes on, the table shows a rate.
const PAYLOAD: u64 = 1 << 16;

/// Where measured rows go: a table, or one JSON object a line with machine and version.
pub struct Rows {
    machine: Option<Machine>,
    /// Width of the first column.
    width: usize,
    headed: bool,
}

/// The commit that this command is built from; rows of benchmarks have it.
pub const COMMIT: &str = env!("CROSSWARP_COMMIT");

impl Rows {
    /// A table whose first column has `width` characters or, with `json`, objects that name `device`.
    pub fn new(json: bool, device: &Device, width: usize) -> Self {
        Self {
            machine: json.then(|| Machine::with_gpu(device)),
            width,
            headed: false,
        }
    }

    /// Shows one row. All rows of a table have the same parameters.
    pub fn show(&mut self, row: &Row) -> Result<(), CliError> {
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
        "{:>13}{:>12}{:>12}{:>12}{:>11}",
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
    out + &format!(
        "{bytes:>13}{:>12.3}{:>12.3}{:>12.3}{:>11}",
        1e6 * time.median,
        1e6 * time.min,
        1e6 * time.max,
        rate.map_or(String::new(), |rate| format!("{rate:.1}")),
    )
}

/// Measures the device verbs.
pub fn shmem(args: &BenchShmemArgs) -> Result<i32, CliError> {
    let devices = Device::all().map_err(crosswarp::cuda::Error::from)?;
    let pes = args.pes.map_or(devices.len(), |pes| pes as usize);
    in_world_of(args.pes, pes, |pe| {
        let device = devices[pe.my_pe() % devices.len()];
        let mut rows = Rows::new(args.json, &device, 26);
        let mut outcome = Ok(());
        bench::shmem(pe, device, |row| {
            if pe.my_pe() == 0 && outcome.is_ok() {
                outcome = rows.show(&row.with("world", kind_name(pe)));
            }
        })?;
        outcome.map(|()| 0)
    })
}

/// Measures the primitives on the first GPU: the other benches, one after the other.
pub fn prim(args: &BenchPrimArgs) -> Result<i32, CliError> {
    let json = args.json;
    reduce(&BenchReduceArgs { device: 0, json })?;
    let samples = BenchHistogramArgs::SAMPLES;
    histogram::histogram(&BenchHistogramArgs {
        device: 0,
        samples,
        json,
    })?;
    transpose::transpose(&BenchTransposeArgs { pes: None, json })
}

/// Measures sums, of whole arrays and of segments.
pub fn reduce(args: &BenchReduceArgs) -> Result<i32, CliError> {
    let device = Device::get(args.device).map_err(crosswarp::cuda::Error::from)?;
    let mut rows = Rows::new(args.json, &device, 38);
    let mut outcome = Ok(());
    bench::reduce(&device, |row| {
        if outcome.is_ok() {
            outcome = rows.show(&row);
        }
    })?;
    outcome.map(|()| 0)
}

#[cfg(test)]
mod tests {
    use crosswarp::lab::measure::Spread;

    use super::*;

    #[test]
    fn lines_stand_under_their_headings() {
        let time = Spread {
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

//! The arguments of `crosswarp roofline`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use crosswarp::lab::models::roofline::DataSheet;

use super::data_sheet::data_sheet;
use super::pictures::PictureArgs;
use crate::defaults;

/// Bytes that a thread can have in flight: all shared memory of an SM, of the largest there are.
const MOST_IN_FLIGHT: i64 = 228 << 10;

const ROOFLINE_AFTER: &str = "\
Without a GPU by name and without ceilings, those of this machine are measured: of its GPU, else
of its processor. A point is a kernel's counted work: the bytes it has to move through device
memory, its floating-point operations and, if measured, its seconds.

Examples:
  crosswarp roofline
  crosswarp roofline --gpu h200 --latency 600
  crosswarp roofline --gpu a100 --point saxpy=12e9,2e9,6.5e-3 --svg roof.svg
  crosswarp roofline --gpu h100 --latency 480 --file sum.cu --threads 256 --load 16";

/// Arguments of `roofline`.
#[derive(Args, Debug)]
#[command(after_help = ROOFLINE_AFTER)]
pub struct RooflineArgs {
    /// A GPU by name: the ceilings of its data sheet [default: this machine's, measured]
    #[arg(long = "gpu", alias = "device", value_name = "GPU", value_parser = data_sheet)]
    pub device: Option<&'static DataSheet>,
    /// Memory bandwidth, GB/s, instead of the GPU's
    #[arg(long, value_name = "GB/S", value_parser = positive)]
    pub bandwidth: Option<f64>,
    /// Arithmetic, GFLOP/s, instead of the GPU's
    #[arg(long, value_name = "GFLOP/S", value_parser = positive)]
    pub rate: Option<f64>,
    /// A kernel: NAME=BYTES,OPERATIONS or NAME=BYTES,OPERATIONS,SECONDS
    #[arg(long, value_name = "POINT", value_parser = point)]
    pub point: Vec<Point>,
    /// Latency of device memory, ns: shows the bytes that must be in flight
    #[arg(long, value_name = "NS", value_parser = positive)]
    pub latency: Option<f64>,
    /// A cubin or CUDA source: the bytes that its resident threads keep in flight
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The kernel's name, where the file has several
    #[arg(long, alias = "name", value_name = "NAME", requires = "file")]
    pub kernel: Option<String>,
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..=1024),
        help = format!(
            "Threads of a block of the kernel [default: its launch bounds, else {}]",
            defaults::BLOCK.threads
        ))]
    pub threads: Option<u32>,
    /// Bytes that each thread of the kernel has in flight
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 4,
        requires = "file",
        value_parser = clap::value_parser!(u32).range(1..=MOST_IN_FLIGHT)
    )]
    pub load: u32,
    /// The plot.
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// A kernel on the roofline.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// Bytes it has to move.
    pub bytes: f64,
    /// Operations it has to do.
    pub operations: f64,
    /// What it took.
    pub seconds: Option<f64>,
}

fn point(text: &str) -> Result<Point, String> {
    let wanted = "wanted is NAME=BYTES,OPERATIONS or NAME=BYTES,OPERATIONS,SECONDS";
    let (name, numbers) = text.split_once('=').ok_or(wanted)?;
    let numbers: Result<Vec<f64>, String> = numbers.split(',').map(positive).collect();
    let numbers = numbers.map_err(|reason| format!("{reason}; {wanted}"))?;
    let (bytes, operations, seconds) = match numbers[..] {
        [bytes, operations] => (bytes, operations, None),
        [bytes, operations, seconds] => (bytes, operations, Some(seconds)),
        _ => return Err(wanted.to_owned()),
    };
    Ok(Point {
        name: name.to_owned(),
        bytes,
        operations,
        seconds,
    })
}

fn positive(text: &str) -> Result<f64, String> {
    // Products and quotients of these, in any unit, are numbers, too.
    let wanted = || "a number from 1e-30 to 1e30 is needed".to_owned();
    let value: f64 = text.parse().map_err(|_| wanted())?;
    (1e-30..=1e30)
        .contains(&value)
        .then_some(value)
        .ok_or_else(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_or_refused_with_what_is_wanted() {
        let saxpy = point("saxpy=12e9,2e9,6.5e-3").unwrap();
        assert_eq!((saxpy.bytes, saxpy.seconds), (12e9, Some(6.5e-3)));
        assert_eq!(point("x=1,2").unwrap().seconds, None);
        for bad in ["x", "x=1", "x=1,2,3,4", "x=1,-2", "x=1,nan", "x=1,inf"] {
            assert!(point(bad).unwrap_err().contains("NAME=BYTES"), "{bad}");
        }
        assert!(data_sheet("H200").is_ok() && data_sheet("g80").is_err());
    }
}

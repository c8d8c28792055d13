//! The arguments of `crosswarp ladder`.

use std::path::PathBuf;

use crate::input::choice::{Choice, one_of};
use clap::{Args, ValueHint};
use crosswarp::lab::ladder::Subject;

const LADDER_AFTER: &str = "\
Each rung is a small kernel whose result is checked in this run. With --json there is one object a
line, which `crosswarp bench compare` reads.

Examples:
  crosswarp ladder reduce
  crosswarp ladder reduce --html report.html
  crosswarp ladder reduce --counters --html report.html
  crosswarp ladder histogram --bins 100000
  crosswarp ladder histogram --source
  crosswarp ladder transpose --size 16384 --json > transpose.json
  crosswarp ladder sgemm --cpu";

/// Arguments of `ladder`.
#[derive(Args, Debug)]
#[command(after_help = LADDER_AFTER)]
pub struct LadderArgs {
    /// The problem
    #[arg(value_parser = one_of(SUBJECTS))]
    pub subject: Subject,
    /// Elements, samples, points, or rows and columns [default: depends on the problem]
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,
    /// Bins of histograms [default: 256; on GPUs also 65,536]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub bins: Option<u32>,
    /// Number of the GPU [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "cpu")]
    pub device: Option<usize>,
    /// The processor's rungs, even if there is a GPU
    #[arg(long)]
    pub cpu: bool,
    /// Measure less often and for less long
    #[arg(long)]
    pub quick: bool,
    /// Run each rung once more under Nsight Compute for its achieved occupancy
    #[arg(long, conflicts_with = "cpu")]
    pub counters: bool,
    /// Print the source of the GPU's rungs and end
    #[arg(long, conflicts_with_all = ["html", "json", "counters"])]
    pub source: bool,
    /// Run each rung once, behind a mark, and nothing else: what --counters profiles
    #[arg(long, hide = true)]
    pub marked: bool,
    /// Write a page with charts that needs nothing else
    #[arg(long, value_name = "REPORT.html", value_parser = super::pictures::html, value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print one JSON object a rung and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The problems.
const SUBJECTS: &[Choice<Subject>] = &[
    Choice::new(
        Subject::Reduce,
        Subject::Reduce.name(),
        "Sum of an array, f32 and f16",
    ),
    Choice::new(
        Subject::Histogram,
        Subject::Histogram.name(),
        "Counts of samples by bin",
    ),
    Choice::new(
        Subject::Transpose,
        Subject::Transpose.name(),
        "Transpose of a matrix",
    ),
    Choice::new(
        Subject::Jacobi1d,
        Subject::Jacobi1d.name(),
        "Jacobi sweeps in one dimension",
    ),
    Choice::new(
        Subject::Sgemm,
        Subject::Sgemm.name(),
        "Product of two matrices, f32",
    ),
];

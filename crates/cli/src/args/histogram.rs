//! The arguments of `crosswarp histogram`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use crosswarp::prim::histogram::OutOfRange;

use super::backend::BackendArgs;
use crate::defaults::HISTOGRAM_BINS;
use crate::input::choice::{Choice, one_of};
use crate::input::range::RangeText;

const HISTOGRAM_AFTER: &str = "\
A sample on an edge belongs to the bin above it, one on the last edge to the last bin, as in
NumPy: 0, 1, 2 and 3 in 3 bins are 1, 1 and 2. With --integer every value has its own bin, and
HIGH has none. Without --range the range is from the least to the greatest sample; if all are
equal, from 0.5 below to 0.5 above them (integers: from the sample to 1 above it). NaNs are in no
bin. Counts are the same on CPUs and GPUs, for any number of PEs. The file may be larger than
memory, and than the GPU's. GPUs count u8, u16, i32, f32 and f64.

Examples:
  crosswarp histogram image.npy --integer --svg levels.svg
  crosswarp histogram samples.npy --bins 100 --range -5:5 --out-of-range clamp
  crosswarp histogram samples.npy --edges decades.npy --csv counts.csv
  zcat counts.npy.gz | crosswarp histogram - --integer
  crosswarp histogram energies.npy --bins 4096 --weights multiplicities.npy -o totals.npy --json";

/// Arguments of `histogram`.
#[derive(Args, Debug)]
#[command(after_help = HISTOGRAM_AFTER)]
pub struct HistogramArgs {
    /// NPY file of samples, - for standard input: integers of any width, bool, f32, f64
    #[arg(value_name = "FILE.npy", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    #[arg(long, value_name = "N", help_heading = "Bins",
        help = format!("Number of bins of the same width [default: {HISTOGRAM_BINS}]"))]
    pub bins: Option<usize>,
    /// Where they begin and end [default: the samples' range]
    #[arg(
        long,
        value_name = "LOW:HIGH",
        allow_hyphen_values = true,
        help_heading = "Bins"
    )]
    pub range: Option<RangeText>,
    /// A bin for every integer of the range
    #[arg(long, conflicts_with = "bins", help_heading = "Bins")]
    pub integer: bool,
    /// Ascending edges of bins, a 1-D NPY file
    #[arg(long, value_name = "EDGES.npy", value_hint = ValueHint::FilePath, help_heading = "Bins",
        conflicts_with_all = ["bins", "range", "integer"])]
    pub edges: Option<PathBuf>,
    /// What becomes of samples outside the range
    #[arg(long, default_value = "drop", value_parser = one_of(OUT_OF_RANGE), help_heading = "Bins")]
    pub out_of_range: OutOfRange,
    /// Add these weights instead of counting: an NPY file of u8, u16 or u32 of the samples' shape
    #[arg(long, value_name = "WEIGHTS.npy", value_hint = ValueHint::FilePath, help_heading = "Bins")]
    pub weights: Option<PathBuf>,

    /// Where to work
    #[command(flatten)]
    pub backend: BackendArgs,

    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Outputs")]
    pub json: bool,
    /// Write the totals as NPY (u64); - is standard output, here and below
    #[arg(short, long, value_name = "TOTALS.npy", value_parser = super::pictures::npy, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub output: Option<PathBuf>,
    /// Write edges and totals as CSV
    #[arg(long, value_name = "TOTALS.csv", value_parser = super::pictures::csv, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub csv: Option<PathBuf>,
    /// Draw the bins as bars
    #[arg(long, alias = "plot", value_name = "BARS.svg", value_parser = super::pictures::svg, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub svg: Option<PathBuf>,
    /// The same as a picture
    #[arg(long, value_name = "BARS.png", value_parser = super::pictures::png, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub png: Option<PathBuf>,
    /// Heading of the drawing [default: the file and what is in it]
    #[arg(long, value_name = "TEXT", help_heading = "Outputs")]
    pub title: Option<String>,
    /// Unit of the samples, shown at their axis
    #[arg(long, value_name = "TEXT", help_heading = "Outputs")]
    pub unit: Option<String>,
}

/// What becomes of samples outside the range.
const OUT_OF_RANGE: &[Choice<OutOfRange>] = &[
    Choice::new(OutOfRange::Drop, "drop", "They are not counted"),
    Choice::new(
        OutOfRange::Clamp,
        "clamp",
        "They count in the first or last bin",
    ),
];

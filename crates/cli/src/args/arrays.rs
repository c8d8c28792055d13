//! The arguments of the commands on NPY files: `reduce`, `histogram`, `transpose`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::EXIT_CODES;
use crate::commands::histogram::RangeText;
use crate::world::backend::BackendArgs;

const REDUCE_AFTER: &str = "\
Several files are one array, in the order given; all have the same dtype. dot takes two
files of the same length. Sums are reproducible: the same bits for any number of PEs and
any split into files. Integers: sums and products wrap. argmin and argmax print the lowest
index. bf16 has no NPY dtype: --dtype bf16 reads u16 files as bf16. Finite floats give a
finite sum, mean or norm unless the result itself is beyond the range of its type (squares of
f64: beyond 1.8e308 each). No elements have the sum 0 and the product 1; their mean, min, max,
argmin and argmax are an error.

Examples:
  crosswarp reduce sum samples.npy
  crosswarp reduce norm2 part1.npy part2.npy --json
  crosswarp reduce sum ill-conditioned.npy --exact
  crosswarp reduce dot a.npy b.npy
  crosswarp reduce mean weights.npy --dtype bf16";

/// Arguments of `reduce`.
#[derive(Args, Debug)]
#[command(after_help = format!("{REDUCE_AFTER}\n\n{EXIT_CODES}"))]
pub struct ReduceArgs {
    /// The operation
    #[arg(value_enum)]
    pub op: ReduceKind,
    /// NPY files: f16, f32, f64, i8 to i64, u8 to u64
    #[arg(required = true, value_name = "FILE.npy", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// With sum: add all elements exactly and round once
    #[arg(long)]
    pub exact: bool,
    /// Read u16 files as bf16
    #[arg(long, value_enum)]
    pub dtype: Option<Reinterpret>,
    #[command(flatten)]
    pub backend: BackendArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ReduceKind {
    /// Sum of the elements
    Sum,
    /// Product of the elements
    Prod,
    /// Least element (NaN if there is one)
    Min,
    /// Greatest element (NaN if there is one)
    Max,
    /// Index of the first least element
    Argmin,
    /// Index of the first greatest element
    Argmax,
    /// Arithmetic mean
    Mean,
    /// Square root of the sum of squares
    Norm2,
    /// Sum of products of two files
    Dot,
}

impl ReduceKind {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Min => "min",
            Self::Max => "max",
            Self::Argmin => "argmin",
            Self::Argmax => "argmax",
            Self::Mean => "mean",
            Self::Norm2 => "norm2",
            Self::Dot => "dot",
        }
    }
}

/// Types that NPY cannot name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Reinterpret {
    /// bfloat16
    Bf16,
}

const HISTOGRAM_AFTER: &str = "\
A sample on an edge belongs to the bin above it, one on the last edge to the last bin, as in
NumPy: 0, 1, 2 and 3 in 3 bins are 1, 1 and 2. With --integer every value has its own bin, and
HIGH has none. Without --range the range is from the least to the greatest sample; if all are
equal, from 0.5 below to 0.5 above them (integers: from the sample to 1 above it). NaNs are in no
bin. Counts are the same on CPUs and GPUs, for any number of PEs. The file may be larger than
the GPU's memory.

Examples:
  crosswarp histogram image.npy --integer --plot levels.svg
  crosswarp histogram samples.npy --bins 100 --range -5:5 --out-of-range clamp
  crosswarp histogram samples.npy --edges decades.npy --csv counts.csv
  crosswarp histogram energies.npy --bins 4096 --weights multiplicities.npy -o totals.npy --json";

/// Arguments of `histogram`.
#[derive(Args, Debug)]
#[command(after_help = format!("{HISTOGRAM_AFTER}\n\n{EXIT_CODES}"))]
pub struct HistogramArgs {
    /// NPY file of samples: u8, u16, i32, f32, f64
    #[arg(value_name = "FILE.npy", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Number of bins of the same width [default: 64]
    #[arg(long, value_name = "N", help_heading = "Bins")]
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
    #[arg(long, value_enum, default_value_t = OutsideArg::Drop, help_heading = "Bins")]
    pub out_of_range: OutsideArg,
    /// Add these weights instead of counting: an NPY file of u8, u16 or u32 of the samples' shape
    #[arg(long, value_name = "WEIGHTS.npy", value_hint = ValueHint::FilePath, help_heading = "Bins")]
    pub weights: Option<PathBuf>,

    /// Where to work
    #[command(flatten)]
    pub backend: BackendArgs,

    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Outputs")]
    pub json: bool,
    /// Write the totals as NPY (u64)
    #[arg(short, long, value_name = "TOTALS.npy", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub output: Option<PathBuf>,
    /// Write edges and totals as CSV
    #[arg(long, value_name = "TOTALS.csv", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub csv: Option<PathBuf>,
    /// Draw the bins as bars
    #[arg(long, value_name = "BARS.svg", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub plot: Option<PathBuf>,
    /// The same as a picture
    #[arg(long, value_name = "BARS.png", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub png: Option<PathBuf>,
}

/// What becomes of samples outside the range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OutsideArg {
    /// They are not counted
    Drop,
    /// They count in the first or last bin
    Clamp,
}

const TRANSPOSE_AFTER: &str = "\
A file of shape (rows, columns) becomes one of (columns, rows); one of (matrices, rows, columns),
each matrix by itself, one of (matrices, columns, rows). Any dtype of NPY that is a plain number.
The file may be larger than memory, and than a GPU's: it goes through in panels, one GPU working
beside the reading and writing. Under `crosswarp run`, and with --pes on GPUs, the PEs share the
rows of each matrix, which must then fit their memory, and PE 0 writes.

Examples:
  crosswarp transpose table.npy --output columns.npy
  crosswarp transpose images.npy -o turned.npy --json
  crosswarp run -n 4 -- crosswarp transpose table.npy -o columns.npy";

/// Arguments of `transpose`.
#[derive(Args, Debug)]
#[command(after_help = format!("{TRANSPOSE_AFTER}\n\n{EXIT_CODES}"))]
pub struct TransposeArgs {
    /// NPY file of 2 or 3 axes
    #[arg(value_name = "FILE.npy", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// NPY file to write
    #[arg(short, long, value_name = "OUT.npy", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub backend: BackendArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use crosswarp::cuda::Arch;
use crosswarp::solve::Strategy;

use crate::backend::BackendArgs;
use crate::boundary::SideBoundary;
use crate::histogram::RangeText;
use crate::lab::args as lab;
use crate::picture::Colours;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    run-time error (a file, memory, another PE)
  2    usage error (the command line)
  3    not converged within the sweeps allowed; everything asked for is written
  130  interrupted (Ctrl-C); a checkpoint is written first if one is configured
  141  standard output was closed by its reader";

const EXAMPLES: &str = "\
Examples:
  crosswarp solve laplace1d
  crosswarp solve laplace2d --png potential.png --plot convergence.svg
  crosswarp solve fill --values dem.npy --known known.npy -o filled.npy --png filled.png
  crosswarp reduce sum samples.npy
  crosswarp run -n 4 -- crosswarp solve laplace1d";

/// Laplace and Poisson problems and reproducible reductions over one or many PEs.
#[derive(Parser, Debug)]
#[command(name = "crosswarp", version, styles = STYLES, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Solve a Laplace or Poisson problem by Jacobi sweeps
    Solve(Box<SolveArgs>),
    /// Reduce the elements of NPY files to one value, the same bits for any number of PEs
    Reduce(ReduceArgs),
    /// Count the samples of an NPY file in bins
    Histogram(Box<HistogramArgs>),
    /// Transpose the matrices of an NPY file into another
    Transpose(TransposeArgs),
    /// Run a program as a world of PEs, one process each
    Run(RunArgs),
    /// Install OpenSHMEM for C and C++: oshcc, oshc++, oshrun, shmem.h, the library
    Install(InstallArgs),
    /// Show what this machine offers and what would be used
    Info,
    /// Compile every GPU kernel and show what it needs; no GPU needed
    Kernels(KernelsArgs),
    /// How many blocks of a kernel an SM holds, and what stops more; no GPU needed
    Occupancy(Box<lab::OccupancyArgs>),
    /// Bank conflicts of accesses to shared memory; no GPU needed
    Banks(lab::BanksArgs),
    /// Lanes that idle in the reduction trees of a block; no GPU needed
    Divergence(lab::DivergenceArgs),
    /// What bandwidth and arithmetic allow a kernel; no GPU needed
    Roofline(Box<lab::RooflineArgs>),
    /// Every textbook variant of a problem, checked and measured beside the roof
    Ladder(lab::LadderArgs),
    /// Run a program under Nsight Compute, with the model beside what it measures
    Profile(lab::ProfileArgs),
    /// Measure this machine
    Bench {
        /// What to measure
        #[command(subcommand)]
        what: BenchCommand,
    },
    /// Write a completion script for a shell to standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Arguments of `kernels`.
#[derive(Args, Debug)]
pub struct KernelsArgs {
    /// Architectures to compile for
    #[arg(
        long,
        value_name = "ARCH",
        value_delimiter = ',',
        default_value = "sm_90"
    )]
    pub arch: Vec<Arch>,
}

/// What `bench` measures.
#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// One-sided communication and collectives inside kernels: latency, bandwidth (needs a GPU)
    Shmem(BenchShmemArgs),
    /// Transpositions beside a copy, or over several GPUs (needs a GPU)
    Transpose(BenchTransposeArgs),
    /// Histograms by bins and distribution (needs a GPU)
    Histogram(BenchHistogramArgs),
    /// Laplace solves on GPUs: whole solves, norm of every sweep (needs a GPU)
    Jacobi(BenchJacobiArgs),
    /// Sums of arrays in GPU memory, from 2^10 to 2^30 elements (needs a GPU)
    Reduce(BenchReduceArgs),
    /// Reduce, histogram and transpose, one after the other (needs a GPU)
    Prim(BenchPrimArgs),
    /// Two runs of a bench side by side
    Compare(lab::CompareArgs),
}

/// Arguments of `bench transpose`.
#[derive(Args, Debug)]
pub struct BenchTransposeArgs {
    /// PEs, dealt out over the GPUs; from 2 on, matrices spread over them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pes: Option<u32>,
    /// Print one JSON object a row
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench jacobi`.
#[derive(Args, Debug)]
pub struct BenchJacobiArgs {
    /// PEs, dealt out over the GPUs [default: 1, 2, 4, ... up to the GPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub pes: Option<u32>,
    /// How sweeps are launched and halos exchanged [default: auto]
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<Strategy>,
    /// Sides of the square planes
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1024,4096,16384"
    )]
    pub sides: Vec<usize>,
    /// Print one JSON object a row
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench prim`.
#[derive(Args, Debug)]
pub struct BenchPrimArgs {
    /// Print one JSON object a row
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench reduce`.
#[derive(Args, Debug)]
pub struct BenchReduceArgs {
    /// Number of the GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: usize,
    /// Print one JSON object a row
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench shmem`.
#[derive(Args, Debug)]
pub struct BenchShmemArgs {
    /// PEs, dealt out over the GPUs [default: the GPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pes: Option<u32>,
    /// Print one JSON object a row
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench histogram`.
#[derive(Args, Debug)]
pub struct BenchHistogramArgs {
    /// Number of the GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: usize,
    /// Samples, as a power of two
    #[arg(long, value_name = "LOG2", default_value_t = Self::SAMPLES, value_parser = clap::value_parser!(u32).range(10..=32))]
    pub samples: u32,
    /// Print one JSON object a row
    #[arg(long)]
    pub json: bool,
}

impl BenchHistogramArgs {
    /// 2^27.
    pub const SAMPLES: u32 = 27;
}

const SOLVE_AFTER: &str = "\
Problems:
  laplace1d  points between two fixed ends, zero inside; stops on the rms change of a sweep
  laplace2d  a plane with a boundary on each side, zero inside
  fill       unknown cells of a field solved from the known ones
  FILE.toml  any of these, with a source, an initial field, fixed cells (see examples/)

Boundaries (--boundary SIDE=KIND, SIDE one of left, right, top, bottom):
  top=1.5            a constant
  top='sin(pi*x)'    a formula: x = column * spacing, y = row * spacing, i = column, j = row;
                     row 0 is the top, the spacing is 1/(max(nx,ny)-1)
  top=profile.npy    one value a point
  top=periodic       wraps around (then the opposite side too)

Examples:
  crosswarp solve laplace1d --points 1000000 --left 5 --right 10 --tolerance 1e-5
  crosswarp solve laplace2d --nx 400 --ny 300 --boundary top='sin(pi*x)' --png field.png
  crosswarp solve laplace2d --preset nvidia --nx 1024 --ny 1024 --max-sweeps 1000 --json
  crosswarp solve fill --values dem.npy --known known.png -o filled.npy --png filled.png
  crosswarp solve examples/heated_plate.toml --checkpoint plate.ckpt --checkpoint-every 5000";

/// Arguments of `solve`.
#[derive(Args, Debug)]
#[command(after_help = format!("{SOLVE_AFTER}\n\n{EXIT_CODES}"))]
pub struct SolveArgs {
    /// laplace1d, laplace2d, fill, or a problem file (FILE.toml)
    #[arg(value_name = "PROBLEM", value_hint = ValueHint::FilePath)]
    pub problem: String,

    /// Number of points [default: 4194304]
    #[arg(long, value_name = "N", help_heading = "laplace1d")]
    pub points: Option<usize>,
    /// Value of the left end [default: 5]
    #[arg(
        long,
        value_name = "VALUE",
        allow_hyphen_values = true,
        help_heading = "laplace1d"
    )]
    pub left: Option<f64>,
    /// Value of the right end [default: 10]
    #[arg(
        long,
        value_name = "VALUE",
        allow_hyphen_values = true,
        help_heading = "laplace1d"
    )]
    pub right: Option<f64>,

    /// Columns [default: 256; preset: 16384]
    #[arg(long, value_name = "N", help_heading = "laplace2d")]
    pub nx: Option<usize>,
    /// Rows [default: 256; preset: 16384]
    #[arg(long, value_name = "N", help_heading = "laplace2d")]
    pub ny: Option<usize>,
    /// A published problem instead of boundaries
    #[arg(
        long,
        value_enum,
        help_heading = "laplace2d",
        conflicts_with = "boundary"
    )]
    pub preset: Option<Preset>,
    /// Boundary of one side; sides not named are 0 [default: two sine arches]
    #[arg(long, value_name = "SIDE=KIND", help_heading = "laplace2d")]
    pub boundary: Vec<SideBoundary>,

    /// Field with unknown cells: NPY (f32, f64) or greyscale PNG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "fill")]
    pub values: Option<PathBuf>,
    /// Which cells are known: NPY (u8, bool; not 0) or PNG (not black)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "fill")]
    pub known: Option<PathBuf>,

    /// Number type of the field [default: f32; fill: the file's]
    #[arg(long, value_enum, help_heading = "Method")]
    pub dtype: Option<FieldType>,
    /// Stop when the norm of a sweep's change is at most this [default: laplace1d 1e-4,
    /// laplace2d 1e-7, preset 1e-8, fill 1e-4]
    #[arg(long, value_name = "NORM", help_heading = "Method")]
    pub tolerance: Option<f64>,
    /// Stop after this many sweeps in any case [default: 1000000; preset 1000]
    #[arg(long, value_name = "N", help_heading = "Method")]
    pub max_sweeps: Option<u64>,
    /// Norm of a sweep's change: l2 = sqrt(sum of squares), rms = l2 / sqrt(cells)
    /// [default: rms; preset l2]
    #[arg(long, value_enum, help_heading = "Method")]
    pub norm: Option<NormKind>,
    /// Where and on how many PEs.
    #[command(flatten, next_help_heading = "Method")]
    pub backend: BackendArgs,
    /// How sweeps are launched on GPUs and halos exchanged: auto, sweep, host-exchange,
    /// device-put, persistent [default: auto]; the result is the same
    #[arg(long, value_name = "NAME", help_heading = "Method")]
    pub strategy: Option<Strategy>,
    /// Sweeps per pass through memory [default: chosen for the machine]; the result is the same
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Method")]
    pub block: Option<u32>,

    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Outputs")]
    pub json: bool,
    /// Write the field as NPY
    #[arg(short, long, value_name = "FIELD.npy", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub output: Option<PathBuf>,
    /// Write a picture of the field
    #[arg(long, value_name = "PICTURE.png", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub png: Option<PathBuf>,
    /// Colours of the picture [default: viridis]
    #[arg(long, value_enum, requires = "png", help_heading = "Outputs")]
    pub colours: Option<Colours>,
    /// Write a log plot of the norms
    #[arg(long, value_name = "PLOT.svg", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub plot: Option<PathBuf>,
    /// Write every sweep's norm as CSV
    #[arg(long, value_name = "NORMS.csv", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub history: Option<PathBuf>,
    /// Write the field as VTK image data, for ParaView
    #[arg(long, value_name = "FIELD.vti", value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub vti: Option<PathBuf>,

    /// Keep a checkpoint in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Checkpoints")]
    pub checkpoint: Option<PathBuf>,
    /// Sweeps between checkpoints [default: 10000]
    #[arg(long, value_name = "K", requires = "checkpoint", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Checkpoints")]
    pub checkpoint_every: Option<u64>,
    /// Go on from a checkpoint of the same problem
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Checkpoints")]
    pub resume: Option<PathBuf>,
}

/// Published problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Preset {
    /// The Jacobi problem of NVIDIA's multi-gpu-programming-models
    Nvidia,
}

/// Number types of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// IEEE single precision
    F32,
    /// IEEE double precision
    F64,
}

/// Norms of a sweep's change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// Square root of the sum of squares
    L2,
    /// The same divided by the square root of the number of cells
    Rms,
}

const REDUCE_AFTER: &str = "\
Several files are one array, in the order given; all have the same dtype. dot takes two
files of the same length. Sums are reproducible: the same bits for any number of PEs and
any split into files. Integers: sums and products wrap. argmin and argmax print the lowest
index. bf16 has no NPY dtype: --dtype bf16 reads u16 files as bf16.

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
Bins are half-open: a sample on an edge belongs to the bin above it. Without --range the range
is that of the samples. NaNs are in no bin. Counts are the same on CPUs and GPUs, for any number
of PEs. The file may be larger than the GPU's memory.

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

const RUN_AFTER: &str = "\
Every PE is one process of this host; a Crosswarp program among them joins the world when it
starts. The run ends when all PEs have ended. If one fails, the others are ended and its exit
code is the run's. The program `crosswarp` is this very command.

Examples:
  crosswarp run -n 4 -- crosswarp solve laplace1d
  crosswarp run -n 2 --label --timeout 60 -- ./my-program --its-option";

/// Arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_AFTER)]
pub struct RunArgs {
    /// Number of PEs
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub n: u32,
    /// End the run after this many seconds (exit code 124)
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Begin every line of output with the number of its PE
    #[arg(long)]
    pub label: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub program: Vec<std::ffi::OsString>,
}

const INSTALL_AFTER: &str = "\
Builds the C library with cargo, from the sources this command was built from, and lays out
bin, include, lib and lib/pkgconfig below the prefix.

Example:
  crosswarp install --prefix ~/.local
  oshcc -O2 ring.c -o ring
  oshrun -np 4 ./ring";

/// Arguments of `install`.
#[derive(Args, Debug)]
#[command(after_help = INSTALL_AFTER)]
pub struct InstallArgs {
    /// Where to install
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub prefix: PathBuf,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wanted = || "a positive number of seconds is needed".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wanted())?;
    if seconds <= 0.0 {
        return Err(wanted());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wanted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_table_of_arguments_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn negative_values_and_boundaries_are_understood() {
        let cli = Cli::try_parse_from([
            "crosswarp",
            "solve",
            "laplace1d",
            "--left",
            "-5",
            "--right",
            "-1e-3",
        ])
        .unwrap();
        let Command::Solve(solve) = cli.command else {
            panic!()
        };
        assert_eq!((solve.left, solve.right), (Some(-5.0), Some(-1e-3)));
        assert!(seconds("0").is_err() && seconds("nan").is_err() && seconds("1e30").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
    }
}

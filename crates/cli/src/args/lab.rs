//! The lab's part of the command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use crosswarp::cuda::Arch;
use crosswarp::lab::models::roofline::DataSheet;

use crate::drawing::files::PictureArgs;

/// A GPU by the key of its data sheet.
pub fn data_sheet(text: &str) -> Result<&'static DataSheet, String> {
    DataSheet::of(&text.to_lowercase()).ok_or_else(|| {
        let keys: Vec<&str> = DataSheet::all().iter().map(|sheet| sheet.key).collect();
        format!("known are {}", keys.join(", "))
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

const OCCUPANCY_AFTER: &str = "\
The kernel is given by its numbers, or by a file: a cubin, or CUDA C++ source of kernels alone,
which is compiled for the architecture (of a whole program, nvcc -cubin makes a cubin). Of several
kernels without --kernel there is a line each. Numbers on the command line win over the file's.

Examples:
  crosswarp occupancy --device v100 --threads 256 --registers 62 --grid 4096
  crosswarp occupancy kernels.cu --arch sm_90 --kernel sum --curve registers --svg sum.svg
  crosswarp occupancy --device h100 --threads 1024 --registers 40 --min-blocks 2
  crosswarp occupancy --device h100 --threads 512 --cluster 16 --gpcs 16,16,16,16,16,16,18,18";

/// Arguments of `occupancy`.
#[derive(Args, Debug)]
#[command(after_help = OCCUPANCY_AFTER)]
pub struct OccupancyArgs {
    /// A cubin or a CUDA source (.cu) with the kernel
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// One of the file's kernels, by its name in the source or in the cubin
    #[arg(long, value_name = "NAME", requires = "file")]
    pub kernel: Option<String>,
    /// Compute capability, e.g. sm_90 or 9.0 [default: the cubin's, else the GPU's, else 9.0]
    #[arg(long, value_name = "ARCH", conflicts_with = "device")]
    pub arch: Option<Arch>,
    /// A GPU by name, for compute capability and SMs
    #[arg(long, value_name = "GPU", value_parser = data_sheet)]
    pub device: Option<&'static DataSheet>,
    /// Threads of a block [default: the kernel's launch bounds, else 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Registers of a thread [default: the kernel's, else 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub registers: Option<u32>,
    /// Shared memory of a block, bytes, static and dynamic [default: the kernel's static, else 0]
    #[arg(long, value_name = "BYTES")]
    pub shared: Option<u32>,
    /// Blocks of the grid, for the waves
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u64).range(1..))]
    pub grid: Option<u64>,
    /// Streaming multiprocessors of the GPU [default: the GPU's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sms: Option<u32>,
    /// Blocks of a cluster
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub cluster: Option<u32>,
    /// SMs of each graphics processing cluster (GPC) of the card, which no cluster crosses
    #[arg(
        long,
        value_name = "N,N,...",
        value_delimiter = ',',
        requires = "cluster"
    )]
    pub gpcs: Vec<u32>,
    /// Show what __launch_bounds__(threads, N) does to the registers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub min_blocks: Option<u32>,
    /// Show the occupancy over a range
    #[arg(long, value_enum)]
    pub curve: Option<CurveOver>,
    /// The curve as a picture.
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// What a curve runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CurveOver {
    /// Threads of a block
    Threads,
    /// Registers of a thread
    Registers,
    /// Shared memory of a block
    Shared,
}

const BANKS_AFTER: &str = "\
The index is an expression as in C, in `lane` and the iteration `i`; lane accesses element
[index] of an array in shared memory, and elements have --width bytes. A tile has 32 rows, and
a warp reads its columns, a row each lane.

Examples:
  crosswarp banks
  crosswarp banks strided-tree
  crosswarp banks tile --svg tile.svg
  crosswarp banks --index 'lane * 33 + i' --iterations 32
  crosswarp banks --index 'lane * 5' --width 16
  crosswarp banks --tile 64 --pad 1 --width 8 --png tile.png";

/// Arguments of `banks`.
#[derive(Args, Debug)]
#[command(after_help = BANKS_AFTER)]
pub struct BanksArgs {
    /// A pattern of the textbook [default: all of them, in a line each]
    #[arg(value_enum)]
    pub pattern: Option<BankPattern>,
    /// A pattern of your own
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "pattern")]
    pub index: Option<String>,
    /// Columns of a tile of your own
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["pattern", "index"])]
    pub tile: Option<u16>,
    /// Elements between the tile's rows
    #[arg(long, value_name = "N", default_value_t = 0, requires = "tile")]
    pub pad: u16,
    /// Keep the tile's element (row, column) at column ^ row
    #[arg(long, requires = "tile")]
    pub swizzle: bool,
    /// Values of i, from 0
    #[arg(long, value_name = "N", default_value_t = 1, requires = "index", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub iterations: u16,
    /// Bytes of each lane's access; those of the textbook's patterns have 4
    #[arg(long, value_enum, default_value = "4", conflicts_with = "pattern")]
    pub width: AccessWidth,
    /// A picture of the banks.
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The textbook's patterns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BankPattern {
    /// Tree whose stride doubles: 2-way conflicts and up
    StridedTree,
    /// Tree whose stride halves: none
    SequentialTree,
    /// Columns of a 32 x 32 tile: 32-way
    Tile,
    /// Columns of a 32 x 33 tile: none
    TilePadded,
    /// Columns of a 32 x 32 tile kept at column ^ row: none
    TileSwizzled,
}

/// Bytes of each lane's access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum AccessWidth {
    /// One word
    #[value(name = "4")]
    Bytes4,
    /// Two words
    #[value(name = "8")]
    Bytes8,
    /// Four words
    #[value(name = "16")]
    Bytes16,
}

/// Arguments of `divergence`.
#[derive(Args, Debug)]
pub struct DivergenceArgs {
    /// Threads of the block, a power of two up to 1024
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub threads: u32,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Bytes that a thread can have in flight: all shared memory of an SM, of the largest there are.
const MOST_IN_FLIGHT: i64 = 228 << 10;

const ROOFLINE_AFTER: &str = "\
Without a GPU by name and without ceilings, those of this machine are measured: of its GPU, else
of its processor. A point is a kernel's counted work: the bytes it has to move through device
memory, its floating-point operations and, if measured, its seconds.

Examples:
  crosswarp roofline
  crosswarp roofline --device h200 --latency 600
  crosswarp roofline --device a100 --point saxpy=12e9,2e9,6.5e-3 --svg roof.svg
  crosswarp roofline --device h100 --latency 480 --kernel sum.cu --threads 256 --load 16";

/// Arguments of `roofline`.
#[derive(Args, Debug)]
#[command(after_help = ROOFLINE_AFTER)]
pub struct RooflineArgs {
    /// A GPU by name: the ceilings of its data sheet [default: this machine's, measured]
    #[arg(long, value_name = "GPU", value_parser = data_sheet)]
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
    pub kernel: Option<PathBuf>,
    /// The kernel's name, where the file has several
    #[arg(long, value_name = "NAME", requires = "kernel")]
    pub name: Option<String>,
    /// Threads of a block of the kernel [default: its launch bounds, else 256]
    #[arg(long, value_name = "N", requires = "kernel", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Bytes that each thread of the kernel has in flight
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 4,
        requires = "kernel",
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

const LADDER_AFTER: &str = "\
Each rung is a small kernel whose result is checked in this run. With --json there is one object a
line, which `crosswarp bench compare` reads.

Examples:
  crosswarp ladder reduce
  crosswarp ladder reduce --html report.html
  crosswarp ladder reduce --counters --html report.html
  crosswarp ladder histogram --source
  crosswarp ladder transpose --size 16384 --json > transpose.json
  crosswarp ladder sgemm --cpu";

/// Arguments of `ladder`.
#[derive(Args, Debug)]
#[command(after_help = LADDER_AFTER)]
pub struct LadderArgs {
    /// The problem
    #[arg(value_enum)]
    pub subject: LadderSubject,
    /// Elements, samples, points, or rows and columns [default: depends on the problem]
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,
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
    #[arg(long, value_name = "REPORT.html", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print one JSON object a rung and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LadderSubject {
    /// Sum of an array, f32 and f16
    Reduce,
    /// Counts of samples by bin
    Histogram,
    /// Transpose of a matrix
    Transpose,
    /// Jacobi sweeps in one dimension
    Jacobi1d,
    /// Product of two matrices, f32
    Sgemm,
}

const PROFILE_AFTER: &str = "\
Under `crosswarp run` one PE is profiled, the others run as they are; kernels that wait for other
PEs can not be profiled, since the profiler runs each launch several times.

Examples:
  crosswarp profile -- ./my-program
  crosswarp profile --kernel tile_padded --launches 1 -- crosswarp ladder transpose --quick
  crosswarp run -n 4 -- crosswarp profile --pe 2 -- ./my-program";

/// Arguments of `profile`.
#[derive(Args, Debug)]
#[command(after_help = PROFILE_AFTER)]
pub struct ProfileArgs {
    /// The PE to profile, in a world of processes
    #[arg(long, value_name = "PE", default_value_t = 0)]
    pub pe: u32,
    /// Only kernels of this name, or regex:EXPRESSION
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Launches to pass over first
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: u32,
    /// Launches to profile
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub launches: u32,
    /// Print one JSON object a launch and nothing else
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub program: Vec<std::ffi::OsString>,
}

const COMPARE_AFTER: &str = "\
Both files hold one JSON object a line, as `crosswarp bench ... --json` prints them. Rows are the
same measurement if all but the figures, the version and the machine is equal. A change counts
where the samples of one run are all below those of the other.

Example:
  crosswarp bench compare before.json after.json";

/// Arguments of `bench compare`.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_AFTER)]
pub struct CompareArgs {
    /// Rows of the first run
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// Rows of the second run
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
    /// Print one JSON object a row and nothing else
    #[arg(long)]
    pub json: bool,
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

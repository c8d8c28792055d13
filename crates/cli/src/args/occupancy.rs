//! The arguments of `crosswarp occupancy`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use crosswarp::cuda::Arch;
use crosswarp::lab::models::occupancy::Axis;
use crosswarp::lab::models::roofline::DataSheet;

use super::data_sheet::data_sheet;
use super::pictures::PictureArgs;
use crate::defaults;
use crate::input::choice::{Choice, one_of};

const OCCUPANCY_AFTER: &str = "\
The kernel is given by its numbers, or by a file: a cubin, or CUDA C++ source of kernels alone,
which is compiled for the architecture (of a whole program, nvcc -cubin makes a cubin). Of several
kernels without --kernel there is a line each. Numbers on the command line win over the file's.

Examples:
  crosswarp occupancy --gpu v100 --threads 256 --registers 62 --grid 4096
  crosswarp occupancy kernels.cu --arch sm_90 --kernel sum --curve registers --svg sum.svg
  crosswarp occupancy --gpu h100 --threads 1024 --registers 40 --min-blocks 2
  crosswarp occupancy --gpu h100 --threads 512 --cluster 16 --gpcs 16,16,16,16,16,16,18,18";

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
    #[arg(long = "gpu", alias = "device", value_name = "GPU", value_parser = data_sheet)]
    pub device: Option<&'static DataSheet>,
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024),
        help = format!("Threads of a block [default: the kernel's launch bounds, else {}]", defaults::BLOCK.threads))]
    pub threads: Option<u32>,
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255),
        help = format!("Registers of a thread [default: the kernel's, else {}]", defaults::BLOCK.registers))]
    pub registers: Option<u32>,
    #[arg(long, value_name = "BYTES",
        help = format!(
            "Shared memory of a block, bytes, static and dynamic [default: the kernel's static, else {}]",
            defaults::BLOCK.shared
        ))]
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
    #[arg(long, value_parser = one_of(AXES))]
    pub curve: Option<Axis>,
    /// The curve as a picture.
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// What a curve runs over.
const AXES: &[Choice<Axis>] = &[
    Choice::new(Axis::Threads, "threads", "Threads of a block"),
    Choice::new(Axis::Registers, "registers", "Registers of a thread"),
    Choice::new(Axis::Shared, "shared", "Shared memory of a block"),
];

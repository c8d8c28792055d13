//! The arguments of `crosswarp bench`.

use clap::{Args, Subcommand};
use crosswarp::solve::Strategy;

use super::compare::CompareArgs;

/// What `bench` measures.
#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// Processors: one-sided communication, collectives, sums, solves; no GPU needed
    Cpu(BenchCpuArgs),
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
    Compare(CompareArgs),
}

/// Arguments of `bench cpu`.
#[derive(Args, Debug)]
#[command(after_help = "\
Between threads; between processes under `crosswarp run`. Some 20 seconds.

Examples:
  crosswarp bench cpu
  crosswarp run -n 2 -- crosswarp bench cpu --json")]
pub struct BenchCpuArgs {
    /// PEs [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub pes: Option<u32>,
    /// Side of the square plane that is solved
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(64..=1 << 17))]
    pub side: u32,
    /// Print one JSON object a row and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench transpose`.
#[derive(Args, Debug)]
pub struct BenchTransposeArgs {
    /// PEs, dealt out over the GPUs; from 2 on, matrices spread over them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pes: Option<u32>,
    /// Print one JSON object a row and nothing else
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
        default_value = "1024,4096,16384",
        value_parser = clap::value_parser!(u32).range(3..=1 << 20)
    )]
    pub sides: Vec<u32>,
    /// Weak scaling: planes N wide with N rows for every PE; without a value none
    #[arg(
        long,
        num_args = 0..,
        value_name = "N",
        value_delimiter = ',',
        default_value = "8192",
        value_parser = clap::value_parser!(u32).range(3..=1 << 18)
    )]
    pub weak: Vec<u32>,
    /// Print one JSON object a row and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench prim`.
#[derive(Args, Debug)]
pub struct BenchPrimArgs {
    /// Print one JSON object a row and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench reduce`.
#[derive(Args, Debug)]
pub struct BenchReduceArgs {
    /// Number of the GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: usize,
    /// Print one JSON object a row and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench shmem`.
#[derive(Args, Debug)]
pub struct BenchShmemArgs {
    /// PEs, dealt out over the GPUs [default: the GPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pes: Option<u32>,
    /// Print one JSON object a row and nothing else
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
    /// Print one JSON object a row and nothing else
    #[arg(long)]
    pub json: bool,
}

impl BenchHistogramArgs {
    /// 2^27.
    pub const SAMPLES: u32 = 27;
}

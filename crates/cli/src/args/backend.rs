//! The options that say where and on how many PEs a command works.

use clap::{Args, ValueEnum};

/// The options.
#[derive(Args, Debug)]
pub struct BackendArgs {
    /// Where to work; the result is the same
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: BackendKind,
    /// Number of the GPU [default: PEs are dealt out over all]
    #[arg(long, value_name = "N")]
    pub device: Option<usize>,
    /// Number of PEs, threads of this process [default: the physical cores, or the GPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub pes: Option<u32>,
}

/// What can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BackendKind {
    /// The GPUs if there are any and they pay, else the CPU
    Auto,
    /// The CPU
    Cpu,
    /// The GPUs
    Cuda,
}

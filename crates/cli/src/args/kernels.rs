//! The arguments of `crosswarp kernels`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use crosswarp::cuda::Arch;

const KERNELS_AFTER: &str = "\
Needs no GPU, and NVRTC for what did not come with the command. Where a program finds
../share/crosswarp/kernels.bundle from its own folder, made from the same sources by --embed, its
kernels need no compiler and no first run of many seconds; code for sm_80 serves sm_86 and sm_89, too.

Examples:
  crosswarp kernels --arch sm_80,sm_90
  crosswarp kernels --embed share/crosswarp/kernels.bundle";

/// Arguments of `kernels`.
#[derive(Args, Debug)]
#[command(after_help = KERNELS_AFTER)]
pub struct KernelsArgs {
    /// Architectures to compile for (sm_90; with --embed sm_80, sm_90, sm_100 and sm_120)
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    pub arch: Vec<Arch>,
    /// Compile all kernels for every type, and write them to a file that the command can come with
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub embed: Option<PathBuf>,
    /// Print one JSON object a kernel and nothing else
    #[arg(long, conflicts_with = "embed")]
    pub json: bool,
}

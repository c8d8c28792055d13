//! The arguments of `crosswarp kernels`.

use clap::Args;
use crosswarp::cuda::Arch;

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
    /// Print one JSON object a kernel and nothing else
    #[arg(long)]
    pub json: bool,
}

//! The arguments of `crosswarp divergence`.

use clap::Args;

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

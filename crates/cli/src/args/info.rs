//! The arguments of `crosswarp info`.

use clap::Args;

/// Arguments of `info`.
#[derive(Args, Debug)]
pub struct InfoArgs {
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

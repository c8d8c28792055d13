//! The arguments of `crosswarp profile`.

use clap::{Args, ValueHint};

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

//! `crosswarp install`: the C library, its headers and wrappers, and this command, below a prefix.

pub mod c_library;

use super::error::CommandError;
use crate::args::install::InstallArgs;
use crate::console;

/// Builds and installs; the exit code.
pub fn install(args: &InstallArgs) -> Result<i32, CommandError> {
    let own = std::env::current_exe().map_err(CommandError::Executable)?;
    let bin = c_library::install(&args.prefix, &own)?;
    console::line(format_args!(
        "installed oshcc, oshc++ (also as oshcxx and oshCC), oshrun and crosswarp in {}",
        bin.display()
    ))?;
    Ok(0)
}

//! `crosswarp install`: the C library, its headers and wrappers, man pages, completions, this command and the kernels
//! that came with it, below a prefix; or what programs written for NVSHMEM are built with, below one of its own.

mod built;
mod c_library;
pub mod error;
mod file;
mod manual;
mod nvshmem;

use crosswarp::cuda::Bundle;

use super::error::CommandError;
use crate::args::install::InstallArgs;
use crate::console;
use error::InstallError;

/// Installs, after having cargo build what is missing; the exit code.
pub fn install(args: &InstallArgs) -> Result<i32, CommandError> {
    let own = std::env::current_exe().map_err(CommandError::Executable)?;
    let prefix = &args.prefix;
    console::line(format_args!("installing below {}", prefix.display()))?;
    let bin = prefix.join("bin");
    if args.nvshmem {
        nvshmem::install(&own, prefix)?;
        // For `nvshmrun`.
        file::copy(&own, &bin.join("crosswarp"))?;
        console::line(format_args!(
            "installed headers, libraries, nvshmrun and nvshmem-info for programs written for NVSHMEM: NVSHMEM_HOME={}",
            prefix.display()
        ))?;
        return Ok(0);
    }
    match c_library::beside(&own) {
        Some(libraries) => c_library::lay_out(&libraries, prefix)?,
        None => {
            // Sources of a registry are no place to build in.
            let target = tempfile::tempdir().map_err(InstallError::Folder)?;
            c_library::lay_out(&c_library::build(target.path())?, prefix)?;
        }
    }
    if let Some(bundle) = Bundle::of_program() {
        file::copy(bundle.path(), &prefix.join(Bundle::PLACE))?;
    }
    manual::install(prefix)?;
    file::copy(&own, &bin.join("crosswarp"))?;
    console::line(format_args!(
        "installed oshcc, oshc++ (also as oshcxx and oshCC), oshrun and crosswarp in {}, man pages and completions in {}",
        bin.display(),
        prefix.join("share").display()
    ))?;
    Ok(0)
}

//! The world in which a command works: the launcher's processes, else threads.

pub mod backend;

use crosswarp::shmem::{Pe, WorldKind, init, spmd, under_launcher};

use crate::commands::error::CliError;

/// Runs `work` on every PE and returns what PE 0, or this process's PE, returned.
///
/// Under the launcher the world is the launcher's; else it has `n_pes` threads.
///
/// # Errors
/// [`CliError::Usage`] if `pes`, what was asked for, contradicts the launcher's world; what `work`
/// returned, a PE's own error before one that is only the echo of another PE's.
pub fn in_world_of<R: Send>(
    pes: Option<u32>,
    n_pes: usize,
    work: impl Fn(&Pe) -> Result<R, CliError> + Sync,
) -> Result<R, CliError> {
    if under_launcher() {
        let pe = init()?;
        if let Some(asked) = pes.filter(|&asked| asked as usize != pe.n_pes()) {
            return Err(CliError::Usage(format!(
                "--pes {asked} contradicts the {} PEs that `crosswarp run` has started",
                pe.n_pes()
            )));
        }
        let result = work(&pe);
        if result.is_err() {
            // A PE that ends without having left is a failure to the launcher, which then ends
            // the others: none waits for this one, and none repeats what it says.
            std::mem::forget(pe);
        }
        return result;
    }
    let mut first = None;
    for result in spmd(n_pes, work)? {
        match (&first, &result) {
            (None, _) => first = Some(result),
            (Some(Ok(_)), Err(_)) => first = Some(result),
            (Some(Err(known)), Err(new)) if known.is_echo() && !new.is_echo() => {
                first = Some(result)
            }
            _ => {}
        }
    }
    first.expect("a world has at least one PE")
}

/// The name of a world's kind in reports.
pub fn kind_name(pe: &Pe) -> &'static str {
    match pe.kind() {
        WorldKind::Threads => "threads",
        WorldKind::Processes => "processes",
    }
}

//! The PEs that do a command's work: the launcher's processes, else threads.

use std::ops::Range;

use crosswarp::shmem::{InitError, Pe, WorldError, WorldKind, init, spmd, under_launcher};

/// Why there is no world to work in.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The threads' world.
    #[error(transparent)]
    Threads(#[from] WorldError),
    /// The processes' world.
    #[error(transparent)]
    Processes(#[from] InitError),
    /// Another number of PEs than the launcher's.
    #[error("--pes {asked} contradicts the {started} PEs that the launcher has started")]
    Contradiction {
        /// What was asked for.
        asked: u32,
        /// What there is.
        started: usize,
    },
}

/// What the work of a PE can end with.
pub trait PeError: From<JoinError> + Send {
    /// Whether the error only says that another PE has failed.
    fn is_echo(&self) -> bool;
}

/// Runs `work` on every PE and returns what PE 0, or this process's PE, returned.
///
/// Under the launcher the world is the launcher's; else it has `n_pes` threads.
///
/// # Errors
/// [`JoinError::Contradiction`] if `pes`, what was asked for, contradicts the launcher's world; what `work`
/// returned, a PE's own error before one that is only the echo of another PE's.
pub fn in_world_of<R: Send, E: PeError>(
    pes: Option<u32>,
    n_pes: usize,
    work: impl Fn(&Pe) -> Result<R, E> + Sync,
) -> Result<R, E> {
    if under_launcher() {
        let pe = init().map_err(JoinError::from)?;
        if let Some(asked) = pes.filter(|&asked| asked as usize != pe.n_pes()) {
            let started = pe.n_pes();
            return Err(JoinError::Contradiction { asked, started }.into());
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
    for result in spmd(n_pes, work).map_err(JoinError::from)? {
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

/// This PE's part of `count` elements.
pub fn share(count: usize, pe: &Pe) -> Range<usize> {
    let bound = |k: usize| (count as u128 * k as u128 / pe.n_pes() as u128) as usize;
    bound(pe.my_pe())..bound(pe.my_pe() + 1)
}

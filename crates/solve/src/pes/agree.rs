//! What PEs must know of each other before they go on.

use crosswarp_shmem::Pe;

use crate::method::jacobi::SolveError;
use crate::pes::reduction::Meeting;

/// The smallest `mine` of all PEs. Collective.
pub(crate) fn least(pe: &Pe, mine: u64) -> Result<u64, SolveError> {
    let meeting = Meeting::new(pe, 1)?;
    let least = meeting.min(mine)?;
    meeting.free()?;
    Ok(least)
}

/// `mine`, if it is `Ok` on every PE. Collective.
///
/// Errors: this PE's own, else [`SolveError::PeerFailed`] with the first PE that has one.
pub(crate) fn all_ready<T>(pe: &Pe, mine: Result<T, SolveError>) -> Result<T, SolveError> {
    let me = if mine.is_ok() {
        u64::MAX
    } else {
        pe.my_pe() as u64
    };
    let first = least(pe, me)?;
    let mine = mine?;
    if first == u64::MAX {
        Ok(mine)
    } else {
        Err(SolveError::PeerFailed { pe: first as usize })
    }
}

//! What PEs must know of each other before they go on.

use crosswarp_shmem::Pe;

use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;

/// The smallest `mine` of all PEs. Collective.
pub(crate) fn least(pe: &Pe, mine: u64) -> Result<u64, PeError> {
    let reduction = Reduction::new(pe, 1)?;
    let least = reduction.min(mine)?;
    reduction.free()?;
    Ok(least)
}

/// `mine`, if it is `Ok` on every PE. Collective.
///
/// Errors: this PE's own, else [`PeError::SetUpFailed`] with the first PE that has one.
pub(crate) fn all_ready<T, E: From<PeError>>(pe: &Pe, mine: Result<T, E>) -> Result<T, E> {
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
        Err(PeError::SetUpFailed { pe: first as usize }.into())
    }
}

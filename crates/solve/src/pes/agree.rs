//! What PEs must know of each other before they go on.

use crosswarp_shmem::Pe;

use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::ProblemError;

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

/// The first bad cell of the whole grid, on every PE alike.
pub(crate) fn first_bad(
    reduction: &Reduction<'_>,
    mine: Option<ProblemError>,
    nx: usize,
) -> Result<Option<ProblemError>, PeError> {
    let code = match mine {
        Some(ProblemError::Value { x, y }) => ((y * nx + x) * 2) as u64,
        Some(ProblemError::Source { x, y }) => ((y * nx + x) * 2 + 1) as u64,
        _ => u64::MAX,
    };
    let code = reduction.min(code)?;
    if code == u64::MAX {
        return Ok(None);
    }
    let cell = (code / 2) as usize;
    let (x, y) = (cell % nx, cell / nx);
    Ok(Some(if code.is_multiple_of(2) {
        ProblemError::Value { x, y }
    } else {
        ProblemError::Source { x, y }
    }))
}

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

/// The first PE that says `me`. Collective.
pub(crate) fn first_of(reduction: &Reduction<'_>, me: bool) -> Result<Option<usize>, PeError> {
    let mine = if me {
        reduction.pe().my_pe() as u64
    } else {
        u64::MAX
    };
    let first = reduction.min(mine)?;
    Ok((first != u64::MAX).then_some(first as usize))
}

/// `mine`, if it is `Ok` on every PE. Collective.
///
/// Errors: this PE's own, else [`PeError::SetUpFailed`] with the first PE that has one.
pub(crate) fn all_ready<T, E: From<PeError>>(pe: &Pe, mine: Result<T, E>) -> Result<T, E> {
    let reduction = Reduction::new(pe, 1)?;
    let all = all_ready_by(&reduction, mine);
    reduction.free()?;
    all
}

/// As [`all_ready`], where there is a reduction already.
pub(crate) fn all_ready_by<T, E: From<PeError>>(
    reduction: &Reduction<'_>,
    mine: Result<T, E>,
) -> Result<T, E> {
    let failed = first_of(reduction, mine.is_err())?;
    let mine = mine?;
    match failed {
        None => Ok(mine),
        Some(pe) => Err(PeError::SetUpFailed { pe }.into()),
    }
}

/// The first bad cell of the whole grid, on every PE alike.
pub(crate) fn first_bad(
    reduction: &Reduction<'_>,
    mine: Option<ProblemError>,
    nx: usize,
) -> Result<Option<ProblemError>, PeError> {
    let code = |x: usize, y: usize, kind: usize| ((y * nx + x) * 4 + kind) as u64;
    let (mine, value) = match mine {
        Some(ProblemError::Value { x, y }) => (code(x, y, 0), 0.0),
        Some(ProblemError::Source { x, y }) => (code(x, y, 1), 0.0),
        Some(ProblemError::Coefficient { x, y, value }) => (code(x, y, 2), value),
        Some(ProblemError::Reaction { x, y, value }) => (code(x, y, 3), value),
        _ => (u64::MAX, 0.0),
    };
    let code = reduction.min(mine)?;
    if code == u64::MAX {
        return Ok(None);
    }
    let bits = if mine == code {
        value.to_bits()
    } else {
        u64::MAX
    };
    let value = f64::from_bits(reduction.min(bits)?);
    let cell = (code / 4) as usize;
    let (x, y) = (cell % nx, cell / nx);
    Ok(Some(match code % 4 {
        0 => ProblemError::Value { x, y },
        1 => ProblemError::Source { x, y },
        2 => ProblemError::Coefficient { x, y, value },
        _ => ProblemError::Reaction { x, y, value },
    }))
}

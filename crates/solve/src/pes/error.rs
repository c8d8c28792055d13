//! What can go wrong among the PEs of a solve.

use crosswarp_shmem::{AllocError, CollectiveError, WaitError};

/// The PEs of a solve can not go on together.
#[derive(Debug, thiserror::Error)]
pub enum PeError {
    /// Another PE has no memory for its rows, or could not set up its GPU: its own error says what.
    #[error("PE {pe} could not set up its part, so no PE solves")]
    SetUpFailed {
        /// The first such PE.
        pe: usize,
    },
    /// The symmetric heap has no room, or the PEs disagree.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The PEs no longer act together.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// A neighbour did not answer.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

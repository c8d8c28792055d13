//! What carries messages between hosts.

use std::time::Duration;
use thiserror::Error;

/// A message or a reply could not be carried.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum EngineError {
    /// The other side is gone or can't be reached.
    #[error("host {host} can't be reached: {reason}")]
    Unreachable {
        /// The host.
        host: usize,
        /// What the engine says.
        reason: String,
    },
}

/// A PE's way to the agents of other hosts, and back for their replies. Object-safe: which one a world has is
/// decided when it starts, and a message costs far more than the call.
///
/// Messages may arrive in any order, and more than once: the agent knows them by their numbers. So may replies, of which
/// the second to a question is nobody's any more. Several threads may call at the same time.
pub(crate) trait Engine: Send + Sync {
    /// Sends the bytes of `head` and `body`, one after the other, to the agent of `host`. Both may be reused on
    /// return; the message leaves without further calls.
    ///
    /// # Errors
    /// [`EngineError`]; the message may have arrived all the same.
    fn send(&self, host: usize, head: &[u8], body: &[u8]) -> Result<(), EngineError>;

    /// Hands each reply that has come to `deliver`.
    ///
    /// # Errors
    /// [`EngineError`]; some reply will not come any more.
    fn progress(&self, deliver: &mut dyn FnMut(&[u8])) -> Result<(), EngineError>;

    /// Sleeps until a reply may have come, but not longer than `limit`.
    fn sleep(&self, limit: Duration);
}

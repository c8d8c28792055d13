//! What a PE has sent to other hosts, and what it waits for from there. The verbs are in
//! [`crate::verbs::raw::remote`].

use crate::transport::engine::Engine;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use thiserror::Error;

/// What was put may not have arrived.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeliveryError {
    /// A PE failed, and with it the world.
    #[error("PE {pe} failed: what PE {me} put may not have arrived")]
    PeerFailed {
        /// The PE that put.
        me: usize,
        /// The PE that failed.
        pe: usize,
    },
    /// Another host can't be reached.
    #[error(
        "the host of PE {pe} can't be reached ({reason}): what PE {me} put may not have arrived"
    )]
    Unreachable {
        /// The PE that put.
        me: usize,
        /// The first PE of the host.
        pe: usize,
        /// Why.
        reason: String,
    },
}

/// A PE's dealings with other hosts.
pub(crate) struct Remote {
    pub(crate) engine: Box<dyn Engine>,
    state: Mutex<State>,
    pub(crate) lost: OnceLock<DeliveryError>,
}

/// See [`Remote::state`].
#[derive(Default)]
pub(crate) struct State {
    pub(crate) last_token: u64,
    /// Replies that are waited for, and those of them that have come.
    pub(crate) replies: HashMap<u64, Option<Vec<u8>>>,
    pub(crate) channels: Vec<Channel>,
}

/// What has been sent to one host.
#[derive(Clone, Copy, Default)]
pub(crate) struct Channel {
    /// Number of the last message.
    pub(crate) sent: u64,
    /// The last one before the last fence.
    pub(crate) fenced: u64,
    /// The last one that a quiet has to complete: one that changes memory, and has no reply.
    pub(crate) outstanding: u64,
    /// The last one that is known to be done.
    pub(crate) done: u64,
}

impl Remote {
    /// By way of `engine`, to `hosts` hosts.
    pub(crate) fn new(engine: Box<dyn Engine>, hosts: usize) -> Self {
        let channels = vec![Channel::default(); hosts];
        let state = State {
            channels,
            ..State::default()
        };
        Self {
            engine,
            state: Mutex::new(state),
            lost: OnceLock::new(),
        }
    }

    /// What could not be delivered.
    pub(crate) fn lost(&self) -> Option<&DeliveryError> {
        self.lost.get()
    }

    /// What has been sent and asked.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // What is done under the lock does not panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is issued from now on is done after what was issued before, host by host.
    pub(crate) fn fence(&self) {
        for channel in &mut self.state().channels {
            channel.fenced = channel.sent;
        }
    }
}

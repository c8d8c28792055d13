//! Why a collective did not come about.

use crate::team::collective_call::{Call, Kind};
use crate::transport::remote::DeliveryError;
use crate::wait::waiter::WaitError;
use thiserror::Error;

/// A collective that did not come about. After a mismatch all PEs know of it and may go on; after a
/// failed wait the world is good for nothing but leaving.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum CollectiveError {
    /// The PEs called different collectives, or the same with different sizes.
    #[error("PE {me} called {mine}, but PE {pe} called {theirs}")]
    Mismatch {
        /// The PE that reports.
        me: usize,
        /// What it called.
        mine: Call,
        /// The first PE that called something else.
        pe: usize,
        /// What that one called.
        theirs: Call,
    },
    /// A source and a destination whose lengths do not go together; every PE must pass the same.
    #[error("{kind:?}: the destination has {dest} elements, the call needs {needed}")]
    Length {
        /// Which collective.
        kind: Kind,
        /// Elements of the destination.
        dest: usize,
        /// Elements it must have.
        needed: usize,
    },
    /// What all PEs bring together does not fit the destination of this PE; it was not touched.
    #[error("PE {me}: collect of {total} elements into a destination of {dest}")]
    Room {
        /// The PE that reports.
        me: usize,
        /// Elements of all PEs.
        total: usize,
        /// Elements of the destination.
        dest: usize,
    },
    /// Another thread of this PE, or this one, was in a collective of the same team; this one did not begin.
    #[error(
        "PE {me} called {kind:?} while another of its threads was in a collective of the same team"
    )]
    Busy {
        /// The PE that reports.
        me: usize,
        /// What was called.
        kind: Kind,
    },
    /// What a PE brings is not in its symmetric memory; on every PE alike, and nothing was touched.
    #[error("PE {pe} brings {bytes} bytes to a collect that are not in its symmetric memory")]
    Source {
        /// The PE that brings them.
        pe: usize,
        /// How many bytes.
        bytes: usize,
    },
    /// Of a barrier between hosts: what this PE has put may not have arrived. It did not begin.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// The rendezvous itself failed.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

//! Handing file descriptors around: how PEs share memory that only a driver can export.
//!
//! Processes pass them around a ring of socket pairs, one hop a round; the launcher made the pairs and
//! handed each PE its two ends, so nothing has a name. Threads just duplicate each other's.
#![allow(unsafe_code)] // borrows descriptors other threads of this process lend

use crate::memory::alloc::AllocError;
use crate::team::Team;
use crate::team::biased_lock::Held;
use crate::team::collective_call::{Call, Kind};
use crate::team::error::CollectiveError;
use crate::wait::waiter::WaitError;
use crate::world::endpoint::Endpoint;
use crate::world::mapped::WorldKind;
use crate::world::ring::{receive_fd, send_fd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use thiserror::Error;

/// File descriptors could not be shared.
#[derive(Debug, Error)]
pub enum ShareError {
    /// The system refused to pass one on.
    #[error("cannot pass a file descriptor to another PE: {0}")]
    Pass(#[source] std::io::Error),
    /// A neighbour sent something else.
    #[error("PE {me} got a message without a file descriptor")]
    Empty {
        /// The PE that got it.
        me: usize,
    },
    /// File descriptors mean nothing on another host.
    #[error("PEs of several hosts can not share file descriptors")]
    Hosts,
    /// The agent of this host could not map a segment.
    #[error("the launcher could not map a segment of PE {me} for the PEs of other hosts")]
    Agent {
        /// The PE whose segment it is.
        me: usize,
    },
    /// The symmetric memory for the exchange could not be had.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// Another PE could not pass one on or take one; so no PE has any.
    #[error("PE {pe} could not share file descriptors")]
    Peer {
        /// The first PE that failed.
        pe: usize,
    },
    /// The rendezvous of the PEs failed.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl From<WaitError> for ShareError {
    fn from(error: WaitError) -> Self {
        Self::Collective(error.into())
    }
}

impl Endpoint {
    /// See [`Pe::share_fd`](crate::Pe::share_fd).
    pub(crate) fn share_fd(&self, mine: BorrowedFd<'_>) -> Result<Vec<OwnedFd>, ShareError> {
        match self.remote {
            Some(_) => Err(ShareError::Hosts),
            None => self.share_fd_in(&self.world(), mine),
        }
    }

    /// The same among the PEs of `team`, which are all those of this host; element `i` is its PE `i`'s.
    pub(crate) fn share_fd_in(
        &self,
        team: &Team<'_>,
        mine: BorrowedFd<'_>,
    ) -> Result<Vec<OwnedFd>, ShareError> {
        match self.kind() {
            WorldKind::Threads => self.share_among_threads(team, mine),
            WorldKind::Processes => self.share_around_ring(team, mine),
        }
    }

    fn share_among_threads(
        &self,
        team: &Team<'_>,
        mine: BorrowedFd<'_>,
    ) -> Result<Vec<OwnedFd>, ShareError> {
        let turn = team.turn(Kind::Share)?;
        let epoch = team.next_epoch();
        team.rendezvous_with(&turn, call(0), &[mine.as_raw_fd() as u64], 0)?;
        let duplicates = (0..team.n_pes()).map(|member| {
            // SAFETY: after rendezvous `epoch`, before this PE's next.
            let [number] = unsafe { team.control(member).arrivals.payload_words(epoch) };
            // SAFETY: PE threads of one process; the owner of `number` keeps it open until the
            // rendezvous below, which we have not reached yet.
            let theirs = unsafe { BorrowedFd::borrow_raw(number as RawFd) };
            Ok(rustix::io::fcntl_dupfd_cloexec(theirs, 0)?)
        });
        let duplicates = duplicates.collect::<std::io::Result<Vec<_>>>();
        // Also the rendezvous after which the owners may close theirs.
        self.all_or_none(team, &turn, 1, duplicates.map_err(ShareError::Pass))
    }

    fn share_around_ring(
        &self,
        team: &Team<'_>,
        mine: BorrowedFd<'_>,
    ) -> Result<Vec<OwnedFd>, ShareError> {
        let (me, n) = (team.my_pe(), team.n_pes());
        let pass = |error: rustix::io::Errno| ShareError::Pass(error.into());
        let turn = team.turn(Kind::Share)?;
        let mut shared: Vec<Option<OwnedFd>> = (0..n).map(|_| None).collect();
        // The first thing that went wrong here. The rounds go on all the same, or the others would hang.
        let mut failed = None;
        match rustix::io::fcntl_dupfd_cloexec(mine, 0) {
            Ok(mine) => shared[me] = Some(mine),
            Err(error) => failed = Some(pass(error)),
        }
        if let Some(ring) = self.ring() {
            for round in 0..n - 1 {
                // In round k each PE passes on what came to it in round k - 1, if anything did.
                let to_pass = shared[(me + n - round) % n].as_ref();
                let sent = to_pass.map(|fd| send_fd(ring.right.as_fd(), fd));
                // After the rendezvous every PE has sent, so receiving does not wait.
                team.rendezvous(&turn, call(round))?;
                let received = receive_fd(ring.left.as_fd());
                if failed.is_none() {
                    failed = match (sent, &received) {
                        (Some(Err(error)), _) | (_, &Err(error)) => Some(pass(error)),
                        (_, Ok(None)) => Some(ShareError::Empty { me: self.my_pe() }),
                        _ => None,
                    };
                }
                shared[(me + n - round - 1) % n] = received.ok().flatten();
            }
        }
        let mine = match failed {
            None => Ok(shared.into_iter().flatten().collect()),
            Some(error) => Err(error),
        };
        self.all_or_none(team, &turn, n - 1, mine)
    }

    /// What this PE has, if every PE has what it should.
    pub(crate) fn all_or_none<R>(
        &self,
        team: &Team<'_>,
        turn: &Held<'_>,
        round: usize,
        mine: Result<R, ShareError>,
    ) -> Result<R, ShareError> {
        let epoch = team.next_epoch();
        team.rendezvous_with(turn, call(round), &[u64::from(mine.is_err())], 0)?;
        let failed = |&member: &usize| {
            // SAFETY: after rendezvous `epoch`, before this PE's next.
            let [failed] = unsafe { team.control(member).arrivals.payload_words(epoch) };
            failed != 0
        };
        match (mine, (0..team.n_pes()).find(failed)) {
            (Ok(_), Some(member)) => Err(ShareError::Peer {
                pe: team.world_pe(member),
            }),
            (mine, _) => mine,
        }
    }
}

fn call(round: usize) -> Call {
    Call {
        kind: Kind::Share,
        parameter: 0,
        bytes: round as u64,
    }
}

//! Handing file descriptors around: how PEs share memory that only a driver can export.
//!
//! Processes pass them around a ring of socket pairs, one hop a round; the launcher made the pairs and
//! handed each PE its two ends, so nothing has a name. Threads just duplicate each other's.
#![allow(unsafe_code)] // borrows descriptors other threads of this process lend

use crate::call::Kind;
use crate::collective::CollectiveError;
use crate::pe::{Pe, WorldKind};
use crate::symmetric::Sym;
use crate::{AllocError, wait::WaitError};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::mem::MaybeUninit;
use thiserror::Error;

/// This PE's ends of the ring.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) right: OwnedFd,
    pub(crate) left: OwnedFd,
}

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
    /// The symmetric memory for the exchange could not be had.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The PEs did not meet.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl From<WaitError> for ShareError {
    fn from(error: WaitError) -> Self {
        Self::Collective(error.into())
    }
}

impl Pe {
    /// Gives every PE a duplicate of every PE's `mine`; element `i` is PE `i`'s, one's own included.
    ///
    /// Collective. Descriptors received are close-on-exec.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn share_fd(&self, mine: BorrowedFd<'_>) -> Result<Vec<OwnedFd>, ShareError> {
        match self.kind() {
            WorldKind::Threads => self.share_among_threads(mine),
            WorldKind::Processes => self.share_around_ring(mine),
        }
    }

    fn share_among_threads(&self, mine: BorrowedFd<'_>) -> Result<Vec<OwnedFd>, ShareError> {
        let (number, all): (Sym<i32>, Sym<i32>) = (self.alloc(1)?, self.alloc(self.n_pes())?);
        self.write(&number, &[mine.as_raw_fd()]);
        self.world().fcollect(&all, &number)?;
        let mut numbers = vec![0; self.n_pes()];
        self.read(&mut numbers, &all);
        let duplicates: Result<Vec<_>, _> = numbers
            .into_iter()
            .map(|number| {
                // SAFETY: PE threads of one process; the owner of `number` keeps it open until the
                // meeting below, which we have not reached yet.
                let theirs = unsafe { BorrowedFd::borrow_raw(number) };
                rustix::io::fcntl_dupfd_cloexec(theirs, 0)
            })
            .collect();
        // Also the meeting after which the owners may close theirs.
        self.free(all)?;
        self.free(number)?;
        duplicates.map_err(|error| ShareError::Pass(error.into()))
    }

    fn share_around_ring(&self, mine: BorrowedFd<'_>) -> Result<Vec<OwnedFd>, ShareError> {
        let (me, n) = (self.my_pe(), self.n_pes());
        let pass = |error: rustix::io::Errno| ShareError::Pass(error.into());
        let mut shared: Vec<Option<OwnedFd>> = (0..n).map(|_| None).collect();
        shared[me] = Some(rustix::io::fcntl_dupfd_cloexec(mine, 0).map_err(pass)?);
        if let Some(ring) = self.ring() {
            for round in 0..n - 1 {
                // In round k each PE passes on what came to it in round k - 1.
                let to_pass = shared[(me + n - round) % n].as_ref();
                let sent = send_fd(ring.right.as_fd(), to_pass.expect("it came last round"));
                // After the meeting every PE has sent, so receiving does not wait. It is held also
                // when sending failed, or the others would hang.
                self.meet(Kind::Share, 0, round as u64)?;
                sent.map_err(pass)?;
                let received = receive_fd(ring.left.as_fd()).map_err(pass)?;
                shared[(me + n - round - 1) % n] = Some(received.ok_or(ShareError::Empty { me })?);
            }
        }
        Ok(shared.into_iter().flatten().collect())
    }
}

fn send_fd(socket: BorrowedFd<'_>, fd: &OwnedFd) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    // The space is sized for exactly one.
    let fits = control.push(SendAncillaryMessage::ScmRights(&fds));
    debug_assert!(fits);
    // A descriptor travels only with data.
    sendmsg(
        socket,
        &[IoSlice::new(&[0])],
        &mut control,
        SendFlags::NOSIGNAL,
    )
}

fn receive_fd(socket: BorrowedFd<'_>) -> rustix::io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let mut fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok(fds.next().and_then(|mut fds| fds.next()))
}

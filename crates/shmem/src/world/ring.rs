//! Sockets between neighbouring PEs, and sending a file descriptor through one.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::mem::MaybeUninit;

/// This PE's ends of the ring.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) right: OwnedFd,
    pub(crate) left: OwnedFd,
}

pub(crate) fn send_fd(socket: BorrowedFd<'_>, fd: &OwnedFd) -> rustix::io::Result<usize> {
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

pub(crate) fn receive_fd(socket: BorrowedFd<'_>) -> rustix::io::Result<Option<OwnedFd>> {
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

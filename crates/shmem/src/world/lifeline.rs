//! What a PE sends its launcher through the lifeline, a socket that both hold.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::mem::MaybeUninit;

/// Words of a message, which goes with one file descriptor: the PE, then position and length of a segment or zeros.
const WORDS: usize = 3;

/// What a PE has sent.
#[derive(Debug)]
pub(crate) enum Sent {
    /// This process is the PE, and no child of the launcher.
    Joined {
        pe: usize,
        /// Its pidfd.
        process: OwnedFd,
    },
    /// A segment of the PE, for the agent.
    Segment {
        pe: usize,
        position: usize,
        len: usize,
        memory: OwnedFd,
    },
    /// There was no room for one more descriptor.
    Nothing,
}

fn send(
    lifeline: BorrowedFd<'_>,
    words: [u64; WORDS],
    fd: BorrowedFd<'_>,
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    // The space is sized for exactly one.
    let fits = control.push(SendAncillaryMessage::ScmRights(&fds));
    debug_assert!(fits);
    let bytes: &[u8] = bytemuck::bytes_of(&words);
    let message = [IoSlice::new(bytes)];
    rustix::io::retry_on_intr(|| sendmsg(lifeline, &message, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Tells the launcher that `process` has joined as PE `pe`.
pub(crate) fn send_joined(
    lifeline: BorrowedFd<'_>,
    pe: usize,
    process: &OwnedFd,
) -> rustix::io::Result<()> {
    send(lifeline, [pe as u64, 0, 0], process.as_fd())
}

/// Sends the launcher the `len` bytes of `memory` that PE `pe` has at `position`.
pub(crate) fn send_segment(
    lifeline: BorrowedFd<'_>,
    pe: usize,
    position: usize,
    len: usize,
    memory: BorrowedFd<'_>,
) -> rustix::io::Result<()> {
    send(lifeline, [pe as u64, position as u64, len as u64], memory)
}

/// For the launcher: waits for what a PE sends next. `None` at the end.
pub(crate) fn receive(lifeline: BorrowedFd<'_>) -> rustix::io::Result<Option<Sent>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut words = [0u64; WORDS];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        let bytes: &mut [u8] = bytemuck::bytes_of_mut(&mut words);
        recvmsg(lifeline, &mut [IoSliceMut::new(bytes)], &mut control, flags)
    })?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fd = fds.next().and_then(|mut fds| fds.next());
    let [pe, position, len] = words.map(|word| word as usize);
    Ok(Some(match fd {
        Some(process) if position == 0 => Sent::Joined { pe, process },
        Some(memory) => Sent::Segment {
            pe,
            position,
            len,
            memory,
        },
        None => Sent::Nothing,
    }))
}

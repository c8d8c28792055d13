//! Frames on a connection: four bytes of length, then as many bytes.

use rustix::buffer::spare_capacity;
use rustix::fd::AsFd;
use rustix::io::{Errno, IoSlice};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use std::io;

/// Bytes of a length.
pub(crate) const LENGTH: usize = 4;
/// What is read at once.
const CHUNK: usize = 256 << 10;

/// The bytes of a connection that have come, cut into frames.
#[derive(Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    /// Those before have been handed out.
    start: usize,
}

impl Incoming {
    /// Reads what there is, without waiting; whether the other side may send more.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn read(&mut self, socket: impl AsFd) -> io::Result<bool> {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.reserve(CHUNK);
        let flags = RecvFlags::DONTWAIT;
        let read =
            rustix::io::retry_on_intr(|| recv(&socket, spare_capacity(&mut self.bytes), flags));
        match read {
            Ok((_, 0)) => Ok(false),
            Ok(_) | Err(Errno::AGAIN) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The next `bytes` bytes, if they have come.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&[u8]> {
        let start = self.start;
        let taken = self.bytes.get(start..start.checked_add(bytes)?)?;
        self.start += bytes;
        Some(taken)
    }

    /// The next frame, if it has come; frames of more than `most` bytes are an error.
    ///
    /// # Errors
    /// The length that is too large.
    pub(crate) fn frame(&mut self, most: usize) -> Result<Option<&[u8]>, usize> {
        let Some(length) = self.bytes.get(self.start..self.start + LENGTH) else {
            return Ok(None);
        };
        let length: [u8; LENGTH] = length.try_into().unwrap_or_default();
        let length = u32::from_le_bytes(length) as usize;
        if length > most {
            return Err(length);
        }
        if self.bytes.len() < self.start + LENGTH + length {
            return Ok(None);
        }
        self.start += LENGTH;
        Ok(self.take(length))
    }
}

/// Sends as much of `parts`, one after the other, as the socket takes; waits only if it is a waiting one. Returns how
/// many bytes it took.
///
/// # Errors
/// What the system says.
pub(crate) fn send(socket: impl AsFd, parts: &[&[u8]], flags: SendFlags) -> io::Result<usize> {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let mut sent = 0;
    while sent < total {
        let mut skip = sent;
        let rest: Vec<IoSlice<'_>> = parts
            .iter()
            .filter_map(|part| {
                let cut = skip.min(part.len());
                skip -= cut;
                (cut < part.len()).then(|| IoSlice::new(&part[cut..]))
            })
            .collect();
        // No signal if the other side has closed: a program's own library must not end it.
        let flags = flags | SendFlags::NOSIGNAL;
        let step = rustix::io::retry_on_intr(|| {
            sendmsg(&socket, &rest, &mut SendAncillaryBuffer::default(), flags)
        });
        match step {
            Ok(bytes) => sent += bytes,
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}

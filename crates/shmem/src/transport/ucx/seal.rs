//! What goes over UCX, and how its receiver knows that it is from somebody who may send it.
//!
//! UCX asks nobody who he is. So PEs and agents first meet at the agent's TCP port, where both prove that they know the
//! job's [key](crate::transport::tcp::key) and tell each other the addresses of their workers. That leaves them with a
//! key of their own, and each message and reply carries the code of its head and of the length of its body under it.
//! One with a wrong code is dropped unread; so is one that has come before, which is known by its number or token.

use crate::transport::tcp::key::{BYTES, Key};
use crate::transport::ucx::library::Version;
use crate::transport::ucx::worker::Worker;

/// Active messages from PEs to agents: a sealed [`Head`](crate::transport::message::Head), and the body.
pub(super) const MESSAGE: u16 = 1;
/// Active messages from agents to PEs: a sealed host number and [`Reply`](crate::transport::message::Reply), and what
/// was fetched.
pub(super) const REPLY: u16 = 2;

/// `head` with the code of it and of a body of `length` bytes in front, for active messages of kind `id`.
pub(super) fn seal(session: Key, id: u16, head: &[&[u8]], length: usize) -> Vec<u8> {
    let mut sealed = vec![0; BYTES];
    head.iter().for_each(|part| sealed.extend_from_slice(part));
    let code = session.code(id as u8, [&sealed[BYTES..], &length.to_le_bytes(), &[]]);
    sealed[..BYTES].copy_from_slice(&code);
    sealed
}

/// What was sealed, to find out who says that he has sealed it.
pub(super) fn unread(sealed: &[u8]) -> Option<&[u8]> {
    sealed.get(BYTES..)
}

/// Whether `sealed` is from who knows `session`.
pub(super) fn is_from(session: Key, id: u16, sealed: &[u8], length: usize) -> bool {
    sealed.split_at_checked(BYTES).is_some_and(|(code, head)| {
        session.is_code(id as u8, [head, &length.to_le_bytes(), &[]], code)
    })
}

/// What PE and agent tell each other over TCP.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Introduction {
    pub(super) version: Version,
    /// Of the worker; none in the answer to one of another version.
    pub(super) address: Vec<u8>,
}

impl Introduction {
    /// Of `worker`.
    pub(super) fn of(worker: &Worker) -> Self {
        Self {
            version: worker.ucx().version(),
            address: worker.address().to_vec(),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let Version {
            major,
            minor,
            release,
        } = self.version;
        let version = [major, minor, release].map(u32::to_le_bytes);
        [version.as_flattened(), &self.address].concat()
    }

    /// `None`: these are none.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (version, address) = bytes.split_at_checked(12)?;
        let number = |at: usize| {
            let bytes = version[at..at + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        Some(Self {
            version: Version {
                major: number(0),
                minor: number(4),
                release: number(8),
            },
            address: address.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_key_can_seal() {
        let (key, another) = (Key([1; BYTES]), Key([2; BYTES]));
        let sealed = seal(key, MESSAGE, &[b"he", b"ad"], 5);
        assert_eq!(unread(&sealed), Some(&b"head"[..]));
        assert!(is_from(key, MESSAGE, &sealed, 5));
        assert!(!is_from(another, MESSAGE, &sealed, 5));
        assert!(!is_from(key, REPLY, &sealed, 5), "a message as a reply");
        assert!(!is_from(key, MESSAGE, &sealed, 6), "another body");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(!is_from(key, MESSAGE, &changed, 5), "byte {at}");
        }
        for length in 0..BYTES {
            assert!(!is_from(key, MESSAGE, &sealed[..length], 5));
        }
    }

    #[test]
    fn introductions_are_read_as_they_were_written() {
        let version = Version {
            major: 1,
            minor: 22,
            release: 300,
        };
        for address in [vec![], vec![7; 300]] {
            let said = Introduction { version, address };
            assert_eq!(Introduction::parse(&said.bytes()), Some(said));
        }
        assert_eq!(Introduction::parse(&[0; 11]), None);
    }
}

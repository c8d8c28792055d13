//! Who may talk to a job's agents: whoever knows its key.
//!
//! The agent says a number nobody has said before, the other side one of its own, and both answer with the code of
//! both under the key (SipHash-2-4 with 128 bits; Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). The
//! key itself is never sent here. What is sent afterwards is neither secret nor protected against a changing
//! middleman: that is what the hosts' network is trusted for.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::io::{self, Read, Write};

/// Bytes of a key, of a number and of a code.
pub(crate) const BYTES: usize = 16;
/// The first bytes of every connection; they change with what is sent on it.
const GREETING: [u8; 8] = *b"xwarp\0\0\x01";
/// Bytes of the agent's first words.
pub(crate) const CHALLENGE: usize = GREETING.len() + BYTES;
/// Bytes of the answer.
pub(crate) const ANSWER: usize = 1 + 4 + 2 * BYTES;

/// What the parts of one job know, and nobody else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) [u8; BYTES]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Who connects to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A PE of another host.
    Pe(u32),
    /// The launcher that started the agent's host.
    Launcher,
}

impl Who {
    fn bytes(self) -> [u8; 5] {
        let (role, number) = match self {
            Self::Pe(pe) => (1, pe),
            Self::Launcher => (2, 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [role, a, b, c, d]
    }

    fn from_bytes(bytes: [u8; 5]) -> Option<Self> {
        let [role, number @ ..] = bytes;
        match role {
            1 => Some(Self::Pe(u32::from_le_bytes(number))),
            2 => Some(Self::Launcher),
            _ => None,
        }
    }
}

/// Random bytes.
fn random() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

impl Key {
    /// A new one.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn random() -> io::Result<Self> {
        random().map(Self)
    }

    /// The code of `parts`, one after the other; `side` tells codes apart that mean different things.
    pub(crate) fn code(self, side: u8, parts: [&[u8]; 3]) -> [u8; BYTES] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write_u8(side);
        for part in parts {
            hasher.write(part);
        }
        hasher.finish128().as_bytes()
    }

    /// Whether that is `code`. All bytes are looked at, so that the time says nothing of how many are right.
    pub(crate) fn is_code(self, side: u8, parts: [&[u8]; 3], code: &[u8]) -> bool {
        let expected = self.code(side, parts);
        let differing = expected.iter().zip(code);
        let differing = differing.fold(0, |all, (a, b)| all | (a ^ b));
        code.len() == BYTES && differing == 0
    }
}

/// Who has proven itself.
pub(crate) struct Admitted {
    pub(crate) who: Who,
    /// What the other side gets to hear.
    pub(crate) reply: [u8; BYTES],
    /// What only the two sides of this connection know.
    pub(crate) session: Key,
}

/// The agent's side of one connection, until the other has proven itself.
pub(crate) struct Door {
    key: Key,
    number: [u8; BYTES],
}

impl Door {
    /// One more, and what to say first.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(key: Key) -> io::Result<(Self, [u8; CHALLENGE])> {
        let number = random()?;
        let mut challenge = [0; CHALLENGE];
        challenge[..GREETING.len()].copy_from_slice(&GREETING);
        challenge[GREETING.len()..].copy_from_slice(&number);
        Ok((Self { key, number }, challenge))
    }

    /// Who the other side is, and what to reply; `None`: a stranger.
    pub(crate) fn admit(&self, answer: &[u8; ANSWER]) -> Option<Admitted> {
        let (who, rest) = answer.split_at(5);
        let (number, code) = rest.split_at(BYTES);
        let parts = [who, &self.number, number];
        let proven = self.key.is_code(1, parts, code);
        let who = Who::from_bytes(who.try_into().ok()?).filter(|_| proven)?;
        Some(Admitted {
            who,
            reply: self.key.code(2, parts),
            session: Key(self.key.code(3, parts)),
        })
    }
}

/// The other side: says `who` this is, and makes sure that the agent knows the key. Returns a key that only the two sides
/// of this connection know.
///
/// # Errors
/// What the system says; `InvalidData` for one that doesn't know the key, or closes the connection because this side
/// doesn't.
pub(crate) fn knock(stream: &mut (impl Read + Write), key: Key, who: Who) -> io::Result<Key> {
    let refused = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut challenge = [0; CHALLENGE];
    stream.read_exact(&mut challenge)?;
    let (greeting, theirs) = challenge.split_at(GREETING.len());
    if greeting != GREETING {
        return Err(refused("it is no agent of this version"));
    }
    let (who, mine) = (who.bytes(), random()?);
    let parts = [&who[..], theirs, &mine];
    let code = key.code(1, parts);
    stream.write_all(&[&who[..], &mine, &code].concat())?;
    let mut reply = [0; BYTES];
    let read = stream.read_exact(&mut reply);
    read.map_err(|_| refused("it closed the connection; does it belong to another job?"))?;
    match key.is_code(2, parts, &reply) {
        true => Ok(Key(key.code(3, parts))),
        false => Err(refused("it does not know the job's key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Agent and other side with these keys; who was admitted with which key, and the key of the other side if that was
    /// content.
    fn meet(agent: Key, other: Key) -> (Option<(Who, Key)>, Option<Key>) {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let other = std::thread::spawn(move || knock(&mut far, other, Who::Pe(7)).ok());
        let (door, challenge) = Door::open(agent).unwrap();
        near.write_all(&challenge).unwrap();
        let mut answer = [0; ANSWER];
        near.read_exact(&mut answer).unwrap();
        let admitted = door.admit(&answer);
        if let Some(Admitted { reply, .. }) = &admitted {
            near.write_all(reply).unwrap();
        }
        drop(near);
        let admitted = admitted.map(|admitted| (admitted.who, admitted.session));
        (admitted, other.join().unwrap())
    }

    #[test]
    fn both_sides_must_know_the_key() {
        let (key, another) = (Key::random().unwrap(), Key::random().unwrap());
        let (admitted, session) = meet(key, key);
        let session = session.expect("one key");
        assert_eq!(admitted, Some((Who::Pe(7), session)));
        assert_ne!(
            meet(key, key).1,
            Some(session),
            "each connection has another"
        );
        assert_eq!(meet(key, another), (None, None));
    }

    /// Vector of the reference implementation (github.com/veorq/SipHash, vectors_sip128): key 0..15, no input.
    #[test]
    fn codes_are_those_of_siphash() {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let hasher = SipHasher24::new_with_key(&key);
        let expected = [
            0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55,
            0x02, 0x93,
        ];
        assert_eq!(hasher.finish128().as_bytes(), expected);
    }
}

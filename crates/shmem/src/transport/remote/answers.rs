//! Where replies go that a PE does not wait for one by one: those of its non-blocking gets and fetching atomics.
//!
//! 1. An entry is made before its message leaves, and is named by the message's token.
//! 2. Whoever finds the reply, whatever it waits for itself, stores what was fetched and removes the entry, both under
//!    the lock of the PE's [state](crate::transport::remote::State). Nobody writes to a place whose entry is gone.
//! 3. A quiet returns when the entries made before it are gone: their replies have come, or can't come any more, in a
//!    world that has ended. So a place has to be valid until the next quiet, and no longer.
#![allow(unsafe_code)] // writes where the issuer said

use crate::transport::message::Reply;
use std::collections::BTreeMap;

/// So many answers may be under way to a PE, ...
const MOST: usize = 1024;
/// ... or so many bytes of them, or one: neither side has to hold more of what nobody reads yet.
const MOST_BYTES: usize = 4 << 20;

/// Where an answer goes.
pub(crate) struct Place {
    to: *mut u8,
    bytes: usize,
    /// It is the reply's word; else its body.
    word: bool,
    host: usize,
}

// SAFETY: the pointer is only written through, by whichever thread holds the lock of the state, and by rule 3 what it
// points to is left alone by others meanwhile.
unsafe impl Send for Place {}

impl Place {
    /// For `bytes` bytes of `host`, or for a word of so many.
    ///
    /// # Safety
    /// `to` is valid for writing so many bytes, and nobody else uses them, until the next quiet of the PE returns.
    pub(crate) unsafe fn new(to: *mut u8, bytes: usize, word: bool, host: usize) -> Self {
        Self {
            to,
            bytes,
            word,
            host,
        }
    }

    /// Stores the answer; one of another length is none of ours.
    fn store(self, reply: &Reply, body: &[u8]) {
        let word = reply.word.to_le_bytes();
        let from = if self.word {
            word.get(..self.bytes)
        } else {
            Some(body)
        };
        if let Some(from) = from.filter(|from| from.len() == self.bytes) {
            // SAFETY: by `new`: the entry was there until now, so no quiet that came after it has returned. What came
            // lies in memory of this library, and overlaps nothing.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.to, self.bytes) };
        }
    }
}

/// What is under way, by token: later ones are greater.
#[derive(Default)]
pub(crate) struct Answers {
    places: BTreeMap<u64, Place>,
    bytes: usize,
}

impl Answers {
    /// Whether one more may be asked for.
    pub(crate) fn has_room(&self) -> bool {
        self.places.len() < MOST && self.bytes < MOST_BYTES
    }

    /// The answer to `token` goes to `place`.
    pub(crate) fn expect(&mut self, token: u64, place: Place) {
        self.bytes += place.bytes;
        self.places.insert(token, place);
    }

    /// Takes a reply, if it is one to these.
    pub(crate) fn deliver(&mut self, reply: &Reply, body: &[u8]) {
        if let Some(place) = self.places.remove(&reply.token) {
            self.bytes -= place.bytes;
            place.store(reply, body);
        }
    }

    /// A host that has not answered all up to `token`.
    pub(crate) fn host_up_to(&self, token: u64) -> Option<usize> {
        let (&first, place) = self.places.first_key_value()?;
        (first <= token).then_some(place.host)
    }

    /// Those up to `token` will not come.
    pub(crate) fn forget_up_to(&mut self, token: u64) {
        self.places = self.places.split_off(&(token + 1));
        self.bytes = self.places.values().map(|place| place.bytes).sum();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn place(to: &mut [u8], word: bool) -> Place {
        // SAFETY: the tests deliver while the buffers live.
        unsafe { Place::new(to.as_mut_ptr(), to.len(), word, 1) }
    }

    fn reply(token: u64) -> Reply {
        let word = 0x0807_0605_0403_0201;
        Reply { token, word }
    }

    #[test]
    fn an_answer_goes_where_it_was_asked_for_and_only_once() {
        let mut answers = Answers::default();
        let (mut bytes, mut word) = ([0; 3], [0; 2]);
        answers.expect(7, place(&mut bytes, false));
        answers.expect(8, place(&mut word, true));
        answers.deliver(&reply(8), &[]);
        answers.deliver(&reply(7), &[5, 6, 7]);
        answers.deliver(&reply(7), &[9, 9, 9]);
        assert_eq!((bytes, word), ([5, 6, 7], [1, 2]));
        assert_eq!((answers.host_up_to(u64::MAX), answers.bytes), (None, 0));
    }

    #[test]
    fn an_answer_of_another_length_is_not_stored() {
        let mut answers = Answers::default();
        let (mut short, mut wide) = ([0; 3], [0; 9]);
        answers.expect(1, place(&mut short, false));
        answers.expect(2, place(&mut wide, true));
        answers.deliver(&reply(1), &[1; 4]);
        answers.deliver(&reply(2), &[1; 9]);
        assert_eq!((short, wide), ([0; 3], [0; 9]));
        assert_eq!(answers.host_up_to(2), None);
    }

    #[test]
    fn what_is_forgotten_is_not_stored() {
        let mut answers = Answers::default();
        let (mut old, mut new) = ([0; 2], [0; 2]);
        answers.expect(1, place(&mut old, true));
        answers.expect(2, place(&mut new, true));
        answers.forget_up_to(1);
        answers.deliver(&reply(1), &[]);
        assert_eq!(
            (answers.host_up_to(1), answers.host_up_to(2)),
            (None, Some(1))
        );
        answers.deliver(&reply(2), &[]);
        assert_eq!((old, new), ([0; 2], [1, 2]));
    }

    #[test]
    fn there_is_room_for_so_many_and_so_much() {
        let mut answers = Answers::default();
        let mut bytes = vec![0; MOST_BYTES];
        for token in 0..MOST as u64 {
            assert!(answers.has_room());
            answers.expect(token, place(&mut bytes[..1], false));
        }
        assert!(!answers.has_room());
        answers.deliver(&reply(0), &[1]);
        assert!(answers.has_room());
        answers.expect(MOST as u64, place(&mut bytes, false));
        assert!(!answers.has_room());
    }
}

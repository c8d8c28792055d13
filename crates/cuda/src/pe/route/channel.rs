//! Messages to and from one PE of another host, by way of its and this PE's symmetric heap on the host: a ring of places
//! at the receiver for each sender. The receiver tells the sender how many it has done.

use std::collections::VecDeque;
use std::ptr::NonNull;

use bytemuck::bytes_of;
use crosswarp_shmem::internal::Courier;
use crosswarp_shmem::{AllocError, DeliveryError, Pe, Sym};

use crate::layout::ROUTE_BODY;
use crate::pe::route::message::{HEAD, Head};

/// Places of a ring.
const PLACES: usize = 8;
/// Most bytes of a body: more in one message gain nothing (`bench/results/route-2026-11-25.txt`).
const MOST_BODY: usize = 256 << 10;
/// Most bytes of all rings of a PE, unless elements of strided entries would not fit.
const MOST_RINGS: usize = 32 << 20;
/// The part of the symmetric heap on the host that the rings may take, unless as above.
const SHARE: usize = 8;

/// Where the rings and their words are in the symmetric heap, the same on every PE.
#[derive(Clone, Copy)]
pub(super) struct Places {
    /// Of the rings, one for each sender.
    pub(super) rings: usize,
    /// Of a word for each sender: how many of its messages have come.
    pub(super) arrived: usize,
    /// Of a word for each receiver: how many of this PE's messages it has done.
    pub(super) done: usize,
    /// Of a word for each PE: not 0 once it has left.
    pub(super) left: usize,
    /// Most bytes of a message's body.
    pub(super) body: usize,
}

impl Places {
    /// Makes the rings and their words, which are to be kept. `left`: as [`Places::left`]. Collective.
    ///
    /// # Errors
    /// There is no room in the symmetric heap.
    pub(super) fn make(pe: &Pe, left: &Sym<u64>) -> Result<(Self, Sym<u8>, Sym<u64>), AllocError> {
        let n = pe.n_pes();
        let body = Self::body(n, pe.heap_bytes());
        let rings = pe.alloc::<u8>(Self::ring_bytes(n, body))?;
        // `arrived` and `done`.
        let words = pe.alloc_zeroed::<u64>(2 * n)?;
        let places = Self {
            rings: rings.offset(),
            arrived: words.offset(),
            done: words.offset() + 8 * n,
            left: left.offset(),
            body,
        };
        Ok((places, rings, words))
    }

    /// Most bytes of a body, among `n` PEs with heaps of `heap_bytes` bytes.
    fn body(n: usize, heap_bytes: usize) -> usize {
        let room = MOST_RINGS.min(heap_bytes / SHARE) / (n * PLACES);
        let mut body = MOST_BODY;
        while body > ROUTE_BODY && HEAD + body > room {
            body /= 2;
        }
        body
    }

    /// Bytes of the rings of a PE in a world of `n` PEs.
    fn ring_bytes(n: usize, body: usize) -> usize {
        n * PLACES * (HEAD + body)
    }

    /// Most bytes of a message.
    pub(super) fn message(&self) -> usize {
        HEAD + self.body
    }

    /// The place at its receiver of message `number` of PE `sender`, counted from 0.
    fn of(&self, sender: usize, number: u64) -> usize {
        let place = sender * PLACES + number as usize % PLACES;
        self.rings + place * self.message()
    }
}

/// This PE's dealings with one other.
pub(super) struct Channel {
    pe: usize,
    /// Messages that wait for a place.
    waiting: VecDeque<Vec<u8>>,
    /// Messages so far, those that wait included.
    numbered: u64,
    sent: u64,
    /// Of these, done at the other side.
    done: u64,
    received: u64,
    /// Of the received ones, those that the other side knows to be done.
    told: u64,
    /// The other side is gone: nothing can be sent, and nobody need wait for it.
    gone: bool,
}

impl Channel {
    pub(super) fn new(pe: usize) -> Self {
        Self {
            pe,
            waiting: VecDeque::new(),
            numbered: 0,
            sent: 0,
            done: 0,
            received: 0,
            told: 0,
            gone: false,
        }
    }

    /// Takes a message of a few bytes for sending; its number.
    pub(super) fn push(&mut self, mut head: Head, body: &[u8]) -> u64 {
        head.body = body.len() as u32;
        if !self.gone {
            let mut message = bytes_of(&head).to_vec();
            message.extend_from_slice(body);
            self.waiting.push_back(message);
        }
        self.numbered += 1;
        self.numbered
    }

    /// Whether so many messages wait that no more should be made.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= PLACES
    }

    /// Whether a message would be sent at once.
    pub(super) fn has_place(&self) -> bool {
        self.waiting.is_empty() && self.sent - self.done < PLACES as u64
    }

    /// Sends a message, head and body, for which there is a place; its number.
    pub(super) fn send(
        &mut self,
        courier: &Courier,
        places: &Places,
        message: &[u8],
    ) -> Result<u64, DeliveryError> {
        self.numbered += 1;
        self.post(courier, places, message)?;
        Ok(self.numbered)
    }

    fn post(
        &mut self,
        courier: &Courier,
        places: &Places,
        message: &[u8],
    ) -> Result<(), DeliveryError> {
        let me = courier.my_pe();
        let at = places.of(me, self.sent);
        self.sent += 1;
        // The word says that the message is there, whatever came before it: places are used in turn, and the one before
        // may come later.
        let arrived = (places.arrived + 8 * me, self.sent);
        courier.put_signal(self.pe, (at, message), arrived)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether message `number` is done.
    pub(super) fn is_done(&self, number: u64) -> bool {
        self.gone || self.done >= number
    }

    /// Whether all are.
    pub(super) fn is_idle(&self) -> bool {
        self.is_done(self.numbered)
    }

    pub(super) fn give_up(&mut self) {
        self.gone = true;
        self.waiting.clear();
    }

    /// Sees which places are free again, and sends what waits for them; whether anything changed.
    pub(super) fn advance(
        &mut self,
        courier: &Courier,
        places: &Places,
    ) -> Result<bool, DeliveryError> {
        if self.gone {
            return Ok(false);
        }
        let done = courier.word(places.done + 8 * self.pe);
        let mut changed = done != self.done;
        self.done = done;
        while self.sent - self.done < PLACES as u64
            && let Some(message) = self.waiting.pop_front()
        {
            self.post(courier, places, &message)?;
            changed = true;
        }
        Ok(changed)
    }

    /// The next message that has come, if it is `due`: its head, and where its body is until it is [told](Self::tell) to
    /// be done.
    pub(super) fn receive(
        &mut self,
        courier: &Courier,
        places: &Places,
        due: impl Fn(&Head) -> bool,
    ) -> Option<(Head, NonNull<u8>)> {
        if courier.word(places.arrived + 8 * self.pe) <= self.received {
            return None;
        }
        let at = places.of(self.pe, self.received);
        let mut head = [0; HEAD];
        courier.read(at, &mut head);
        let mut head: Head = bytemuck::pod_read_unaligned(&head);
        head.body = head.body.min(places.body as u32);
        if !due(&head) {
            return None;
        }
        self.received += 1;
        Some((head, courier.at(at + HEAD, head.body as usize)))
    }

    /// How many have been received.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Tells the other side that the first `done` messages are done.
    pub(super) fn tell(
        &mut self,
        courier: &Courier,
        places: &Places,
        done: u64,
    ) -> Result<bool, DeliveryError> {
        if done == self.told {
            return Ok(false);
        }
        self.told = done;
        let signal = (places.done + 8 * courier.my_pe(), done);
        courier.put_signal(self.pe, (places.rings, &[]), signal)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_as_large_as_the_heap_has_room_for() {
        let large = 1 << 40;
        assert_eq!(Places::body(2, large), MOST_BODY);
        for (n, heap) in [(2, large), (3, 1 << 27), (64, large), (5, 1 << 24)] {
            let body = Places::body(n, heap);
            let room = MOST_RINGS.min(heap / SHARE);
            assert!(Places::ring_bytes(n, body) <= room, "{n} {heap} {body}");
            assert!(body == MOST_BODY || Places::ring_bytes(n, 2 * body) > room);
        }
        // An element of a strided entry fits in any case.
        assert_eq!(Places::body(2, 1 << 20), ROUTE_BODY);
        assert_eq!(Places::body(4096, large), ROUTE_BODY);
    }
}

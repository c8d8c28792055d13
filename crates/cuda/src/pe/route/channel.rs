//! Messages to and from one PE of another host, by way of its and this PE's symmetric heap on the host: a ring of places
//! at the receiver for each sender. The receiver tells the sender how many it has done.

use std::collections::VecDeque;

use bytemuck::bytes_of;
use crosswarp_shmem::DeliveryError;
use crosswarp_shmem::internal::Courier;

use crate::pe::route::message::{BODY, HEAD, Head};

/// Places of a ring.
const PLACES: usize = 8;
/// Bytes of a place.
const PLACE: usize = HEAD + BODY;

/// Bytes of the rings of a PE in a world of `n` PEs.
pub(super) const fn ring_bytes(n: usize) -> usize {
    n * PLACES * PLACE
}

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

    /// Takes a message for sending; its number.
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

    /// Sends what there is a place for; whether anything changed.
    pub(super) fn advance(
        &mut self,
        courier: &Courier,
        places: Places,
    ) -> Result<bool, DeliveryError> {
        if self.gone {
            return Ok(false);
        }
        let me = courier.my_pe();
        let done = courier.word(places.done + 8 * self.pe);
        let mut changed = done != self.done;
        self.done = done;
        while self.sent - self.done < PLACES as u64
            && let Some(message) = self.waiting.pop_front()
        {
            let at = places.rings + (me * PLACES + self.sent as usize % PLACES) * PLACE;
            self.sent += 1;
            // The word says that the message is there, whatever came before it: places are used in turn, and the one
            // before may come later.
            courier.put_signal(
                self.pe,
                (at, &message),
                (places.arrived + 8 * me, self.sent),
            )?;
            changed = true;
        }
        Ok(changed)
    }

    /// The next message that has come.
    pub(super) fn receive(
        &mut self,
        courier: &Courier,
        places: Places,
        message: &mut Vec<u8>,
    ) -> Option<Head> {
        if courier.word(places.arrived + 8 * self.pe) <= self.received {
            return None;
        }
        let at = places.rings + (self.pe * PLACES + self.received as usize % PLACES) * PLACE;
        let mut head = [0; HEAD];
        courier.read(at, &mut head);
        let head: Head = bytemuck::pod_read_unaligned(&head);
        message.resize((head.body as usize).min(BODY), 0);
        courier.read(at + HEAD, message);
        self.received += 1;
        Some(head)
    }

    /// How many have been received.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Tells the other side that the first `done` messages are done.
    pub(super) fn tell(
        &mut self,
        courier: &Courier,
        places: Places,
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

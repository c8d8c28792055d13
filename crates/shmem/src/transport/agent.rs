//! The agent of a host: does what PEs of other hosts send, to the memory of this host's PEs.
//!
//! It has all heaps and the control memory of its host mapped. It never waits for anybody, so every message is done
//! some time after it came. All words of a host's memory are changed by its processors alone, those of the agent
//! included, so atomic operations of local and remote PEs on one word are atomic to each other.
//!
//! # Order
//! Messages come in any order, and one that has come before does nothing. One that names others it is `after` is held
//! until these are done. What is done for one PE happens before the reply to its flush and before what is done after it.
#![allow(unsafe_code)] // reads and writes mapped heaps, at positions it has checked

use crate::memory::copy::{get_bytes, put_bytes};
use crate::team::choice::Proposal;
use crate::team::rendezvous::Tag;
use crate::transport::message::{Arrival, HEAD, Head, Kind, Op, Part, Reply};
use crate::transport::remote::combined::ROOM;
use crate::verbs::raw::atomic::{RawInt, RawValue};
use crate::wait::sync::Ordering;
use crate::world::control::{MAX_TEAMS, PeState, SLOT_BYTES};
use crate::world::mapped::Mapped;
use std::collections::{BTreeSet, HashMap};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::fence;
use thiserror::Error;

/// A message that no PE of this world sends. Nothing was done.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum BadMessage {
    /// It has no head or an unknown one.
    #[error("a message of {bytes} bytes that is none of ours")]
    Head {
        /// Its length.
        bytes: usize,
    },
    /// It is about a PE that is not of this host, or from one that is not in the world.
    #[error("a message from PE {from} for PE {pe}, which is not of this host")]
    Pe {
        /// Who sent it, as it says.
        from: usize,
        /// Whose memory it is about.
        pe: usize,
    },
    /// It is about bytes outside of symmetric memory, or a word that is not aligned.
    #[error("a message from PE {from} about {bytes} bytes at position {position}")]
    Place {
        /// Who sent it.
        from: usize,
        /// Where.
        position: usize,
        /// How many.
        bytes: usize,
    },
}

/// Takes a reply for the PE whose messages are being done.
pub(crate) type Replies<'a> = &'a mut dyn FnMut(&Reply, &[u8]);

/// See the [module](self).
pub(crate) struct Agent {
    world: Arc<Mapped>,
    host: usize,
    senders: HashMap<u32, Sender>,
    fetched: Vec<u8>,
}

/// What one PE has sent.
#[derive(Default)]
struct Sender {
    /// All messages up to this number are done.
    done: u64,
    /// Numbers above that are done.
    ahead: BTreeSet<u64>,
    /// Messages that are after ones not done yet.
    held: Vec<(Head, Vec<u8>)>,
}

impl Sender {
    fn finish(&mut self, number: u64) {
        self.ahead.insert(number);
        while self.ahead.remove(&(self.done + 1)) {
            self.done += 1;
        }
    }

    /// A held message that need not wait any longer.
    fn ready(&mut self) -> Option<(Head, Vec<u8>)> {
        let at = self
            .held
            .iter()
            .position(|(head, _)| head.after <= self.done)?;
        Some(self.held.swap_remove(at))
    }
}

impl Agent {
    /// The agent of the host whose memory `world` is.
    pub(crate) fn new(world: Arc<Mapped>, host: usize) -> Self {
        Self {
            world,
            host,
            senders: HashMap::new(),
            fetched: Vec::new(),
        }
    }

    /// Whose it is.
    pub(crate) fn host(&self) -> usize {
        self.host
    }

    /// Ends the world for the PEs of this host: what PE `pe` sends makes no sense, so what it did is not known.
    pub(crate) fn give_up_on(&self, pe: usize) {
        self.world.control.end(pe, self.world.shared());
    }

    /// The longest message that a PE sends.
    pub(crate) fn longest_message(&self) -> usize {
        let arrivals = self.world.control.n_pes() * (size_of::<Arrival>() + SLOT_BYTES);
        HEAD + ROOM + self.world.heap_bytes.max(arrivals)
    }

    /// Does what `message`, from PE `from`, says, or keeps it until it may be done. `reply` gets the replies to it and
    /// to those that waited for it.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub(crate) fn serve(
        &mut self,
        from: usize,
        message: &[u8],
        reply: Replies<'_>,
    ) -> Result<(), BadMessage> {
        let bytes = message.len();
        let (head, body) = Head::parse(message).ok_or(BadMessage::Head { bytes })?;
        self.take(from, head, body, reply)
    }

    /// Whether this is a message that has not come before.
    pub(crate) fn is_new(&self, head: &Head) -> bool {
        self.senders.get(&head.from).is_none_or(|sender| {
            head.number > sender.done
                && !sender.ahead.contains(&head.number)
                && !sender
                    .held
                    .iter()
                    .any(|(held, _)| held.number == head.number)
        })
    }

    /// As [`serve`](Self::serve), for a message that has come in two parts.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub(crate) fn take(
        &mut self,
        from: usize,
        head: Head,
        body: &[u8],
        reply: Replies<'_>,
    ) -> Result<(), BadMessage> {
        let bytes = HEAD + body.len();
        let kind = head.kind().ok_or(BadMessage::Head { bytes })?;
        self.check_pes(from, &head, kind)?;
        if !self.is_new(&head) {
            return Ok(());
        }
        let sender = self.senders.entry(head.from).or_default();
        if head.after > sender.done {
            sender.held.push((head, body.to_vec()));
            return Ok(());
        }
        self.execute(&head, kind, body, reply)?;
        self.finish(&head, reply)
    }

    /// Notes that a message is done, and does those that have been waiting for it.
    fn finish(&mut self, head: &Head, reply: Replies<'_>) -> Result<(), BadMessage> {
        let from = head.from;
        let mut number = head.number;
        loop {
            let sender = self.senders.entry(from).or_default();
            sender.finish(number);
            let Some((head, body)) = sender.ready() else {
                return Ok(());
            };
            let kind = head.kind().ok_or(BadMessage::Head { bytes: body.len() })?;
            self.execute(&head, kind, &body, reply)?;
            number = head.number;
        }
    }

    fn check_pes(&self, from: usize, head: &Head, kind: Kind) -> Result<(), BadMessage> {
        let (n_pes, pe) = (self.world.control.n_pes(), head.pe as usize);
        let here = match kind {
            Kind::Flush | Kind::Arrive | Kind::Left | Kind::Failed | Kind::Puts => true,
            _ => pe < n_pes && self.world.hosts.of(pe) == self.host,
        };
        let elsewhere = from < n_pes && self.world.hosts.of(from) != self.host;
        match here && elsewhere && from == head.from as usize {
            true => Ok(()),
            false => Err(BadMessage::Pe { from, pe }),
        }
    }

    fn execute(
        &mut self,
        head: &Head,
        kind: Kind,
        body: &[u8],
        reply: Replies<'_>,
    ) -> Result<(), BadMessage> {
        let from = head.from as usize;
        let position = head.position as usize;
        // What was done before is seen before.
        fence(Ordering::Release);
        let bytes = body.len();
        let split = body.split_at_checked(head.combined as usize);
        let (combined, body) = split.ok_or(BadMessage::Head { bytes })?;
        self.combined(head, combined, reply)?;
        match kind {
            Kind::Put => self.put(head, position, body),
            Kind::PutSignal => {
                self.put(head, position, body)?;
                let signal = head.signal_or_stride as usize;
                self.atomic(head, signal).map(drop)
            }
            Kind::PutStrided => self.strided(
                head,
                body.len() / (head.width as usize).max(1),
                |at, i, width| {
                    let element = &body[i * width..][..width];
                    // SAFETY: `strided` checked that `width` bytes lie there.
                    unsafe { put_bytes(at, element.as_ptr(), width) };
                },
            ),
            Kind::Get => self.get(head, position, reply),
            Kind::GetStrided => {
                let elements = head.length as usize;
                let bytes = elements.checked_mul(head.width as usize);
                let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize);
                let bytes = bytes.ok_or(self.bad_place(head, position, usize::MAX))?;
                let mut fetched = std::mem::take(&mut self.fetched);
                fetched.resize(bytes, 0);
                let copied = self.strided(head, elements, |at, i, width| {
                    let element = &mut fetched[i * width..][..width];
                    // SAFETY: `strided` checked that `width` bytes lie there.
                    unsafe { get_bytes(element.as_mut_ptr(), at, width) };
                });
                self.fetched = fetched;
                copied.map(|()| self.reply(head, 0, reply))
            }
            Kind::Atomic => self.change(head, position, reply),
            Kind::Puts => Ok(()),
            Kind::Flush => {
                self.fetched.clear();
                self.reply(head, 0, reply);
                Ok(())
            }
            Kind::Arrive => self.arrive(body),
            Kind::Handshake => self.handshake(head, body),
            Kind::Left => {
                self.world.control.pe(from).set_state(PeState::Finished);
                self.world.control.wake_all(self.world.shared());
                Ok(())
            }
            Kind::Failed => {
                self.world.control.pe(from).set_state(PeState::Failed);
                self.world.control.end(from, self.world.shared());
                Ok(())
            }
        }
    }

    /// Replies with `word` and what was fetched.
    fn reply(&self, head: &Head, word: u64, reply: Replies<'_>) {
        let token = head.token;
        reply(&Reply { token, word }, &self.fetched);
    }

    fn bad_place(&self, head: &Head, position: usize, bytes: usize) -> BadMessage {
        BadMessage::Place {
            from: head.from as usize,
            position,
            bytes,
        }
    }

    /// Where the message's PE has `bytes` bytes at `position`.
    fn place(&self, head: &Head, position: usize, bytes: usize) -> Result<NonNull<u8>, BadMessage> {
        let place = self.world.place(head.pe as usize, position, bytes);
        place.ok_or(self.bad_place(head, position, bytes))
    }

    /// Wakes the message's PE if it sleeps on one of these bytes.
    fn notify(&self, head: &Head, position: usize, bytes: usize) {
        let parker = &self.world.control.pe(head.pe as usize).parker;
        parker.notify_store(position, position + bytes, self.world.shared());
    }

    fn put(&self, head: &Head, position: usize, body: &[u8]) -> Result<(), BadMessage> {
        if body.is_empty() {
            return Ok(());
        }
        let at = self.place(head, position, body.len())?;
        // SAFETY: `place` checked that so many bytes lie there.
        unsafe { put_bytes(at.as_ptr(), body.as_ptr(), body.len()) };
        self.notify(head, position, body.len());
        Ok(())
    }

    fn get(&mut self, head: &Head, position: usize, reply: Replies<'_>) -> Result<(), BadMessage> {
        let bytes = head.length as usize;
        let at = self.place(head, position, bytes)?;
        self.fetched.resize(bytes, 0);
        // SAFETY: `place` checked that so many bytes lie there; the buffer has room for as many.
        unsafe { get_bytes(self.fetched.as_mut_ptr(), at.as_ptr(), bytes) };
        self.reply(head, 0, reply);
        Ok(())
    }

    /// Does an atomic operation, and replies with what was there if that is wanted.
    fn change(
        &mut self,
        head: &Head,
        position: usize,
        reply: Replies<'_>,
    ) -> Result<(), BadMessage> {
        let word = self.atomic(head, position)?;
        if head.token != 0 {
            self.fetched.clear();
            self.reply(head, word, reply);
        }
        Ok(())
    }

    /// Does what is combined at the front of a message, in order.
    fn combined(
        &mut self,
        head: &Head,
        mut parts: &[u8],
        reply: Replies<'_>,
    ) -> Result<(), BadMessage> {
        while !parts.is_empty() {
            let bytes = parts.len();
            let bad = BadMessage::Head { bytes };
            let (part, body, rest) = Part::parse(parts).ok_or(bad)?;
            let (kind, head) = part.message(head, body).ok_or(bad)?;
            let position = part.position as usize;
            // A PE of another host has no memory here: a bad place.
            match kind {
                Kind::Get => self.get(&head, position, reply)?,
                Kind::Atomic => self.change(&head, position, reply)?,
                _ => self.put(&head, position, body)?,
            }
            fence(Ordering::Release);
            parts = rest;
        }
        Ok(())
    }

    /// Calls `element(at, i, width)` for each of `n` elements of the message.
    fn strided(
        &self,
        head: &Head,
        n: usize,
        mut element: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), BadMessage> {
        let (width, position) = (head.width as usize, head.position as usize);
        let stride = head.signal_or_stride as i64 as isize;
        if n == 0 {
            return Ok(());
        }
        let bad = self.bad_place(head, position, width);
        // First and last lie in the heap, so all do.
        let reach = isize::try_from(n - 1)
            .ok()
            .and_then(|steps| steps.checked_mul(stride));
        let last = reach
            .and_then(|reach| position.checked_add_signed(reach))
            .ok_or(bad)?;
        let (low, high) = (position.min(last), position.max(last));
        let bytes = (high - low).checked_add(width).ok_or(bad)?;
        let first = self.place(head, low, bytes)?;
        for i in 0..n {
            let at = position.wrapping_add_signed(i as isize * stride) - low;
            element(first.as_ptr().wrapping_add(at), i, width);
        }
        self.notify(head, low, bytes);
        Ok(())
    }

    fn atomic(&self, head: &Head, position: usize) -> Result<u64, BadMessage> {
        let width = match head.kind() {
            Some(Kind::PutSignal) => size_of::<u64>(),
            _ => head.width as usize,
        };
        let at = self.place(head, position, width)?.as_ptr();
        let aligned = matches!(width, 2 | 4 | 8) && at.addr().is_multiple_of(width);
        let op = head.op().filter(|_| aligned);
        let op = op.ok_or(self.bad_place(head, position, width))?;
        // SAFETY: a word of `width` bytes lies there, aligned, in memory that `world` keeps mapped. Atomics may be
        // shared and any bits are valid.
        let old = unsafe {
            match width {
                2 => u64::from(change::<u16>(
                    &*at.cast(),
                    op,
                    head.operand as u16,
                    head.expected as u16,
                )),
                4 => u64::from(change::<u32>(
                    &*at.cast(),
                    op,
                    head.operand as u32,
                    head.expected as u32,
                )),
                _ => change::<u64>(&*at.cast(), op, head.operand, head.expected),
            }
        };
        if op != Op::Fetch {
            self.notify(head, position, width);
        }
        Ok(old)
    }

    /// Shows this host's PEs how others arrived.
    fn arrive(&self, mut arrivals: &[u8]) -> Result<(), BadMessage> {
        let bytes = arrivals.len();
        let bad = BadMessage::Head { bytes };
        while !arrivals.is_empty() {
            let (arrival, rest) = arrivals.split_at_checked(size_of::<Arrival>()).ok_or(bad)?;
            let arrival: Arrival = bytemuck::pod_read_unaligned(arrival);
            let (pe, in_slot) = (arrival.pe as usize, arrival.in_slot as usize);
            let (slot, rest) = rest.split_at_checked(in_slot).ok_or(bad)?;
            arrivals = rest;
            let elsewhere = pe < self.world.control.n_pes() && self.world.hosts.of(pe) != self.host;
            if !elsewhere || arrival.index >= MAX_TEAMS as u64 || in_slot > SLOT_BYTES {
                return Err(bad);
            }
            let team = &self.world.control.pe(pe).teams[arrival.index as usize];
            // Two hosts may have sent it on, and its next one may have come: what has been seen is not written again.
            if team.arrivals.came_to(arrival.epoch) {
                continue;
            }
            if !slot.is_empty() {
                let to = team.slot_to_write(arrival.epoch);
                // SAFETY: a slot has room for so many bytes. By rule 2 of `rendezvous` nobody reads it before the
                // arrival below: the PE came to this rendezvous after all PEs of this host had left the last but one.
                unsafe { std::ptr::copy_nonoverlapping(slot.as_ptr(), to, slot.len()) };
            }
            let tag = Tag {
                tag: arrival.tag,
                detail: arrival.detail,
            };
            team.arrivals.set_in_slot(arrival.epoch, in_slot);
            // SAFETY: as above; only this thread writes the lines of PEs of other hosts.
            unsafe { team.arrivals.announce(arrival.epoch, tag, &arrival.payload) };
        }
        self.notify_arrival();
        Ok(())
    }

    fn handshake(&self, head: &Head, body: &[u8]) -> Result<(), BadMessage> {
        let control = &self.world.control;
        let bytes = body.len();
        if bytes != 0 && bytes != size_of::<Proposal>() {
            return Err(BadMessage::Head { bytes });
        }
        let calls = control.calls(head.from as usize, head.pe as usize);
        if bytes != 0 {
            let said: Proposal = bytemuck::pod_read_unaligned(body);
            let shown = &control.pe(head.from as usize).proposal.0;
            // SAFETY: only this thread writes the proposals of PEs of other hosts.
            let known = shown.with(|words| unsafe { words.read() });
            // Each PE that the sender calls gets it: the first may be reading it when the second is called.
            if known != said {
                // SAFETY: by rule 2 of `active_set` nobody reads the last one any more.
                shown.with_mut(|words| unsafe { words.write(said) });
            }
        }
        // Release: who sees the call sees the proposal.
        calls.store(head.operand, Ordering::Release);
        self.notify_arrival();
        Ok(())
    }

    /// Wakes PEs of this host that wait for arrivals.
    fn notify_arrival(&self) {
        let (control, hosts) = (&self.world.control, &self.world.hosts);
        for pe in (0..control.n_pes()).filter(|&pe| hosts.of(pe) == self.host) {
            control.pe(pe).parker.notify_arrival(self.world.shared());
        }
    }
}

/// Changes a word as `op` says; returns what was there.
fn change<T: RawInt + Copy>(at: &<T as RawValue>::Atomic, op: Op, operand: T, expected: T) -> T {
    let order = Ordering::AcqRel;
    match op {
        Op::Fetch => T::load(at, Ordering::Acquire),
        Op::Set => T::swap(at, operand, order),
        Op::CompareSwap => T::compare_swap(at, expected, operand, order),
        Op::Add => T::add(at, operand, order),
        Op::And => T::and(at, operand, order),
        Op::Or => T::or(at, operand, order),
        Op::Xor => T::xor(at, operand, order),
    }
}

//! The verbs on remote PEs: messages to their hosts' agents, and what has to be complete or in order when.
//!
//! | verb | message | returns |
//! |---|---|---|
//! | put of up to 2 KiB, strided put of few elements | none: [travels][combined] with the next | at once |
//! | larger put or strided put, atomic without a result | one | at once |
//! | put with a signal | one, data and signal | at once |
//! | get, fetching atomic | one | with the reply |
//! | non-blocking get of up to 2 KiB, non-blocking fetching atomic | none: [travels][combined] with the next | at once |
//! | larger non-blocking get | one for each 128 KiB | at once |
//!
//! [combined]: crate::transport::remote::combined
//! [answers]: crate::transport::remote::answers
//!
//! A PE's atomics and gets at one host come after what it has put there before, and its atomics before its later
//! ones. That is more than OpenSHMEM promises, and what programs get of mapped memory.
//!
//! | order | message | returns |
//! |---|---|---|
//! | fence | none: later messages are done after earlier ones | at once |
//! | quiet | a flush to each host that has something outstanding | with the replies, and all [answers] |
//!
//! What can't be delivered ends the world here: all waits end, and fence and quiet say why.
#![allow(unsafe_code)] // reads and writes memory that callers name by address

use crate::transport::engine::EngineError;
use crate::transport::message::{Head, Kind, Op, Part, Reply};
use crate::transport::remote::answers::Place;
use crate::transport::remote::combined::SMALL;
use crate::transport::remote::{State, Wire};
use crate::verbs::raw::atomic::AtomicValue;
use crate::world::endpoint::Endpoint;
use bytemuck::Pod;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More than so many bytes go in several messages: the agent stores one while the next is on its way.
const CHUNK: usize = 128 << 10;
/// Strided puts of so many elements travel as puts of each.
const FEW: usize = 16;
/// So many pieces of a get are asked for at a time.
const AHEAD: usize = 8;
/// Looks for a reply before sleeping, some 100 µs. After each others may run: the agents and PEs that the reply
/// depends on may share this PE's core. (Two hosts with eight PEs each on the same two busy cores, all with atomics:
/// 140-470 µs each, without yielding 720-930.)
const LOOKS: u32 = 200;
/// The longest sleep between two looks at the membership.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// How elements of a strided transfer lie at the remote PE: bytes of each, and from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct Spacing {
    pub(crate) width: usize,
    pub(crate) stride: isize,
}

impl Spacing {
    /// Of elements `T` that are `stride` elements apart.
    pub(crate) fn of<T>(stride: isize) -> Self {
        Self {
            width: size_of::<T>(),
            stride: stride * size_of::<T>() as isize,
        }
    }
}

/// What a reply is to come to.
#[derive(Clone, Copy)]
struct Asked {
    host: usize,
    number: u64,
    token: u64,
}

impl Endpoint {
    /// The way to PEs whose memory is not mapped.
    ///
    /// # Panics
    /// If all are.
    fn remote(&self) -> &Arc<Wire> {
        let remote = self.remote.as_ref();
        let remote = remote
            .expect("PEs without mapped memory are on other hosts, and there is a way to these");
        remote.wire()
    }

    /// See [`Wire::send`].
    fn send(&self, host: usize, head: Head, body: &[u8], all_before: bool) {
        self.remote().send(host, head, body, all_before);
    }

    /// As [`send`](Self::send), with a token; waits for the reply.
    fn ask(&self, host: usize, head: Head) -> Option<Vec<u8>> {
        let asked = self.ask_later(host, head);
        self.reply(asked)
    }

    /// Sends what is to be done, and replied to, after all before.
    fn ask_later(&self, host: usize, mut head: Head) -> Asked {
        let remote = self.remote();
        {
            let mut state = remote.state();
            state.last_token += 1;
            head.token = state.last_token;
            state.replies.insert(head.token, None);
        }
        let number = remote.send(host, head, &[], true);
        Asked {
            host,
            number,
            token: head.token,
        }
    }

    /// Waits for the reply; `None` if it can't come any more.
    fn reply(&self, asked: Asked) -> Option<Vec<u8>> {
        let (remote, token) = (self.remote(), asked.token);
        let reply = self.look_until(asked.host, |state| {
            let came = state.replies.get(&token).is_some_and(Option::is_some);
            came.then(|| state.channels[asked.host].done(asked.number))?;
            state.replies.remove(&token).flatten()
        });
        if reply.is_none() {
            remote.state().replies.remove(&token);
        }
        reply
    }

    /// Looks for replies, of `host` above all, until `ready` finds what it wants; `None`: the world has ended before.
    fn look_until<R>(
        &self,
        host: usize,
        mut ready: impl FnMut(&mut State) -> Option<R>,
    ) -> Option<R> {
        let remote = self.remote();
        let start = Instant::now();
        let mut looks = 0;
        loop {
            let progress = remote.look();
            let found = ready(&mut remote.state());
            if found.is_some() {
                return found;
            }
            let timed_out = self
                .wait_timeout()
                .is_some_and(|limit| start.elapsed() > limit);
            if let Err(error) = progress {
                remote.lose(error);
            } else if timed_out {
                let reason = format!("no reply within {} s", start.elapsed().as_secs());
                remote.lose(EngineError::Unreachable { host, reason });
            }
            if self.control().ended_by().is_some() {
                return None;
            }
            looks += 1;
            match looks < LOOKS {
                true => rustix::thread::sched_yield(),
                false => remote.engine.sleep(HEARTBEAT),
            }
        }
    }

    /// Asks for what goes to `to`, `bytes` bytes or a word of so many, and returns: the next quiet waits for the answer.
    /// While as much is under way as may be, it waits for some of that first.
    ///
    /// # Safety
    /// As [`Place::new`].
    unsafe fn ask_nbi(&self, head: Head, to: *mut u8, bytes: usize) {
        let remote = self.remote();
        let host = self.hosts().of(head.pe as usize);
        let room = |state: &mut State| state.answers.has_room().then_some(());
        if room(&mut remote.state()).is_none() {
            // What has not been sent is not answered.
            remote.send_all();
            if self.look_until(host, room).is_none() {
                return;
            }
        }
        let word = head.kind() == Some(Kind::Atomic);
        // SAFETY: by the caller.
        let place = unsafe { Place::new(to, bytes, word, host) };
        remote.ask(host, head, place);
    }

    /// Stores `bytes` bytes from `source` on at `position` of `pe`; `source` may be reused on return.
    ///
    /// # Safety
    /// `source` is valid for reading so many bytes.
    #[cold]
    pub(crate) unsafe fn remote_put(
        &self,
        pe: usize,
        position: usize,
        source: *const u8,
        bytes: usize,
    ) {
        let host = self.hosts().of(pe);
        if (1..=SMALL).contains(&bytes) {
            // SAFETY: by the caller.
            return self.put_small(pe, position, unsafe { slice(source, bytes) });
        }
        for start in (0..bytes).step_by(CHUNK) {
            let head = Head {
                pe: pe as u32,
                position: (position + start) as u64,
                ..Head::new(Kind::Put)
            };
            // SAFETY: by the caller.
            let body = unsafe { slice(source.add(start), CHUNK.min(bytes - start)) };
            self.send(host, head, body, false);
        }
    }

    /// Stores one value at `position` of `pe`.
    #[cold]
    pub(crate) fn remote_p<T: Pod>(&self, pe: usize, position: usize, value: T) {
        // SAFETY: the bytes of a value.
        unsafe { self.remote_put(pe, position, (&raw const value).cast(), size_of::<T>()) };
    }

    /// The value at `position` of `pe`; zero bytes if it can't be had.
    #[cold]
    pub(crate) fn remote_g<T: Pod>(&self, pe: usize, position: usize) -> T {
        let mut value = T::zeroed();
        // SAFETY: room for one value, of which any bits are valid.
        unsafe { self.remote_get(pe, position, (&raw mut value).cast(), size_of::<T>()) };
        value
    }

    /// Stores at most [`SMALL`] bytes, when this PE next deals with their host, or a little later.
    fn put_small(&self, pe: usize, position: usize, bytes: &[u8]) {
        let part = Part::put(pe, position, bytes.len());
        self.remote().put(self.hosts().of(pe), part, bytes);
    }

    /// As [`remote_put`](Self::remote_put), then changes the word at position `signal`.
    ///
    /// # Safety
    /// As there.
    #[cold]
    pub(crate) unsafe fn remote_put_signal(
        &self,
        pe: usize,
        (position, source, bytes): (usize, *const u8, usize),
        (signal, op, value): (usize, Op, u64),
    ) {
        if bytes > CHUNK {
            // SAFETY: by the caller.
            unsafe { self.remote_put(pe, position, source, bytes) };
            return self.remote_signal(pe, (signal, op, value));
        }
        let head = Head {
            pe: pe as u32,
            position: position as u64,
            signal_or_stride: signal as u64,
            operand: value,
            ..Head::new(Kind::PutSignal).with_op(op)
        };
        // SAFETY: by the caller.
        let body = unsafe { slice(source, bytes) };
        self.send(self.hosts().of(pe), head, body, false);
    }

    /// Changes the word at position `signal` of `pe` after all that was put there before.
    #[cold]
    pub(crate) fn remote_signal(&self, pe: usize, (signal, op, value): (usize, Op, u64)) {
        let head = Head {
            pe: pe as u32,
            position: signal as u64,
            width: 8,
            operand: value,
            ..Head::new(Kind::Atomic).with_op(op)
        };
        self.send(self.hosts().of(pe), head, &[], true);
    }

    /// Stores `n` elements, `source_stride` bytes apart from `source` on, at `position` of `pe` and what follows.
    ///
    /// # Safety
    /// `source` is valid for reading all of them.
    #[cold]
    pub(crate) unsafe fn remote_put_strided(
        &self,
        pe: usize,
        (position, there): (usize, Spacing),
        (source, source_stride): (*const u8, isize),
        n: usize,
    ) {
        // SAFETY: by the caller.
        let element = |i| unsafe { slice(source.offset(i * source_stride), there.width) };
        if n <= FEW && (1..=SMALL / FEW).contains(&there.width) {
            for i in 0..n as isize {
                let position = position.wrapping_add_signed(i * there.stride);
                self.put_small(pe, position, element(i));
            }
            return;
        }
        let mut body = Vec::with_capacity(n * there.width);
        (0..n as isize).for_each(|i| body.extend_from_slice(element(i)));
        let head = Head {
            pe: pe as u32,
            position: position as u64,
            width: there.width as u32,
            signal_or_stride: there.stride as u64,
            ..Head::new(Kind::PutStrided)
        };
        self.send(self.hosts().of(pe), head, &body, false);
    }

    /// Fetches `bytes` bytes at `position` of `pe` to `dest`, which stays as it is if they can't be had.
    ///
    /// # Safety
    /// `dest` is valid for writing so many bytes.
    #[cold]
    pub(crate) unsafe fn remote_get(
        &self,
        pe: usize,
        position: usize,
        dest: *mut u8,
        bytes: usize,
    ) {
        let host = self.hosts().of(pe);
        let ask = |start: usize| {
            let head = Head {
                pe: pe as u32,
                position: (position + start) as u64,
                length: CHUNK.min(bytes - start) as u64,
                ..Head::new(Kind::Get)
            };
            (start, self.ask_later(host, head))
        };
        let mut starts = (0..bytes).step_by(CHUNK);
        let mut asked: VecDeque<_> = starts.by_ref().take(AHEAD).map(ask).collect();
        while let Some((start, piece)) = asked.pop_front() {
            let Some(reply) = self.reply(piece) else {
                return;
            };
            asked.extend(starts.next().map(ask));
            let len = CHUNK.min(bytes - start);
            if let Some((_, part)) = Reply::parse(&reply).filter(|(_, part)| part.len() == len) {
                // SAFETY: by the caller.
                unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), dest.add(start), len) };
            }
        }
    }

    /// As [`remote_get`](Self::remote_get), but `dest` is written by the time the next quiet returns.
    ///
    /// # Safety
    /// Until then `dest` is valid for writing so many bytes, and nobody else uses them.
    #[cold]
    pub(crate) unsafe fn remote_get_nbi(
        &self,
        pe: usize,
        position: usize,
        dest: *mut u8,
        bytes: usize,
    ) {
        for start in (0..bytes).step_by(CHUNK) {
            let len = CHUNK.min(bytes - start);
            let head = Head {
                pe: pe as u32,
                position: (position + start) as u64,
                length: len as u64,
                ..Head::new(Kind::Get)
            };
            // SAFETY: by the caller.
            unsafe { self.ask_nbi(head, dest.add(start), len) };
        }
    }

    /// Fetches `n` elements from `position` of `pe` and what follows, to places `dest_stride` bytes apart.
    ///
    /// # Safety
    /// `dest` is valid for writing all of them.
    #[cold]
    pub(crate) unsafe fn remote_get_strided(
        &self,
        pe: usize,
        (position, there): (usize, Spacing),
        (dest, dest_stride): (*mut u8, isize),
        n: usize,
    ) {
        let head = Head {
            pe: pe as u32,
            position: position as u64,
            width: there.width as u32,
            signal_or_stride: there.stride as u64,
            length: n as u64,
            ..Head::new(Kind::GetStrided)
        };
        let reply = self.ask(self.hosts().of(pe), head);
        let Some((_, fetched)) = reply.as_deref().and_then(Reply::parse) else {
            return;
        };
        for (i, element) in fetched.chunks_exact(there.width).take(n).enumerate() {
            // SAFETY: by the caller.
            unsafe {
                let to = dest.offset(i as isize * dest_stride);
                std::ptr::copy_nonoverlapping(element.as_ptr(), to, there.width);
            }
        }
    }

    /// Changes the word at (position, PE) by `op`; what was there, or 0 if that can't be had.
    #[cold]
    pub(crate) fn remote_fetch<T: AtomicValue>(
        &self,
        op: Op,
        place: (usize, usize),
        operand: Option<T>,
        expected: Option<T>,
    ) -> T {
        let head = Head {
            expected: expected.map_or(0, bits),
            ..atomic::<T>(op, place, operand)
        };
        let reply = self.ask(self.hosts().of(place.1), head);
        let word = reply
            .as_deref()
            .and_then(Reply::parse)
            .map_or(0, |(reply, _)| reply.word);
        value(word)
    }

    /// As [`remote_fetch`](Self::remote_fetch), but the result is in `fetched` by the time the next quiet returns.
    ///
    /// # Safety
    /// Until then `fetched` is valid for writing, and nobody else uses it.
    #[cold]
    pub(crate) unsafe fn remote_fetch_nbi<T: AtomicValue>(
        &self,
        op: Op,
        place: (usize, usize),
        operands: (Option<T>, Option<T>),
        fetched: *mut T,
    ) {
        let (operand, expected) = operands;
        let head = Head {
            expected: expected.map_or(0, bits),
            ..atomic::<T>(op, place, operand)
        };
        // SAFETY: by the caller.
        unsafe { self.ask_nbi(head, fetched.cast(), size_of::<T>()) };
    }

    /// As [`remote_fetch`](Self::remote_fetch), without the result.
    #[cold]
    pub(crate) fn remote_change<T: AtomicValue>(&self, op: Op, place: (usize, usize), operand: T) {
        let head = atomic(op, place, Some(operand));
        self.send(self.hosts().of(place.1), head, &[], true);
    }

    /// Completes what was sent to other hosts, and what they were asked for.
    #[cold]
    pub(crate) fn remote_quiet(&self) {
        let last;
        let busy: Vec<usize> = {
            let state = self.remote().state();
            // Later ones are of other threads, which may go on asking.
            last = state.last_token;
            let channels = state.channels.iter().enumerate();
            let busy = channels.filter(|(_, channel)| !channel.is_quiet());
            busy.map(|(host, _)| host).collect()
        };
        // All are under way before the first is waited for.
        let ask = |host| self.ask_later(host, Head::new(Kind::Flush));
        let asked: Vec<Asked> = busy.into_iter().map(ask).collect();
        for flush in asked {
            self.reply(flush);
        }
        let missing = self.remote().state().answers.host_up_to(last);
        if let Some(host) = missing {
            let all = |state: &mut State| match state.answers.host_up_to(last) {
                None => Some(()),
                Some(_) => None,
            };
            if self.look_until(host, all).is_none() {
                self.remote().state().answers.forget_up_to(last);
            }
        }
    }

    /// Sends `host` arrivals of this host's PEs, and of others, to be shown there.
    #[cold]
    pub(crate) fn remote_arrive(&self, host: usize, arrivals: &[u8]) {
        self.send(host, Head::new(Kind::Arrive), arrivals, false);
    }

    /// Calls `pe` to a handshake for the `number`th time, with these words if it has not heard them yet.
    #[cold]
    pub(crate) fn remote_handshake(&self, pe: usize, number: u64, proposal: &[u64]) {
        let head = Head {
            pe: pe as u32,
            operand: number,
            ..Head::new(Kind::Handshake)
        };
        self.send(
            self.hosts().of(pe),
            head,
            bytemuck::cast_slice(proposal),
            true,
        );
    }

    /// Tells the other hosts that this PE is gone.
    #[cold]
    pub(crate) fn remote_leave(&self, failed: bool) {
        let kind = if failed { Kind::Failed } else { Kind::Left };
        // SAFETY: nothing collective goes on while a PE leaves, or after.
        let arrivals = (!failed).then(|| unsafe { self.last_arrivals() });
        for host in self.hosts_of(0..self.n_pes()) {
            if let Some(arrivals) = &arrivals {
                self.remote_arrive(host, arrivals);
            }
            self.send(host, Head::new(kind), &[], !failed);
        }
    }

    /// The other hosts of `pes`, each once.
    fn hosts_of(&self, pes: impl Iterator<Item = usize>) -> Vec<usize> {
        let mine = self.hosts().of(self.my_pe());
        let mut hosts: Vec<_> = pes
            .map(|pe| self.hosts().of(pe))
            .filter(|&host| host != mine)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

/// The message for `op` on the word of type `T` at (position, PE).
fn atomic<T: AtomicValue>(op: Op, (position, pe): (usize, usize), operand: Option<T>) -> Head {
    Head {
        pe: pe as u32,
        position: position as u64,
        width: size_of::<T>() as u32,
        operand: operand.map_or(0, bits),
        ..Head::new(Kind::Atomic).with_op(op)
    }
}

/// The bits of a value of at most 8 bytes.
fn bits<T: AtomicValue>(value: T) -> u64 {
    let mut word = [0; 8];
    word[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    u64::from_le_bytes(word)
}

/// The value of these [`bits`].
fn value<T: AtomicValue>(word: u64) -> T {
    bytemuck::pod_read_unaligned(&word.to_le_bytes()[..size_of::<T>()])
}

/// # Safety
/// `at` is valid for reading `bytes` bytes, which nobody else changes meanwhile unless they are symmetric.
unsafe fn slice<'a>(at: *const u8, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: by the caller.
    unsafe { std::slice::from_raw_parts(at, bytes) }
}

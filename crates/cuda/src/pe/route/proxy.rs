//! The thread of a PE that carries what its kernels do to PEs of other hosts, and does what kernels of these do here.
#![allow(unsafe_code)] // Copies to and from places that kernels and other PEs name.

use std::collections::{HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytemuck::bytes_of;
use crosswarp_shmem::DeliveryError;
use crosswarp_shmem::internal::Courier;

use crate::driver::error::CudaError;
use crate::layout::{InboxEntry, ROUTE_ENTRIES, RouteOp};
use crate::pe::route::board::Board;
use crate::pe::route::channel::{Channel, Places};
use crate::pe::route::gpu::{Gpu, Spread};
use crate::pe::route::inbox::{Inbox, InboxPlace};
use crate::pe::route::message::{HEAD, Head, Kind};
use crate::pe::route::outgoing::Outgoing;
use crate::pe::route::ring::{self, Entry, inbox_op};

/// Looks without a change before the thread sleeps between them.
const LOOKS: u32 = 2000;
const NAP: Duration = Duration::from_micros(20);
/// How long what is under way when the world ends may take.
const LAST: Duration = Duration::from_secs(10);

/// Why it ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProxyError {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error("PE {pe} sent a message that makes no sense ({what})")]
    Message { pe: usize, what: &'static str },
}

/// When an entry is complete.
enum Until {
    /// Message `number` to `pe` is done.
    Done { pe: usize, number: u64 },
    /// So many bytes have come.
    Fetched,
}

/// What taking an entry comes to.
enum Taken {
    /// It has been read, and all that it puts from.
    Whole(Until),
    /// What it puts from is to be sent.
    Puts(Outgoing),
}

/// Where what an entry fetches goes.
struct Fetch {
    pe: usize,
    /// `None`: the value goes to the entry's place.
    to: Option<Spread>,
    left: u64,
}

/// A received message whose atomic operation is under way.
struct UnderWay {
    message: u64,
    operation: u64,
    /// The token, if an answer is wanted.
    answer: Option<u64>,
}

pub(super) struct Proxy<G: Gpu> {
    courier: Courier,
    board: Arc<Board>,
    gpu: G,
    /// Of the heap of this PE.
    heap: u64,
    heap_bytes: u64,
    places: Places,
    /// Of each PE of another host.
    channels: Vec<Option<Channel>>,
    inbox: Inbox,
    under_way: Vec<VecDeque<UnderWay>>,
    /// The entry that is being taken puts this, and has been sent up to the message of this number.
    puts: Option<(Outgoing, u64)>,
    /// What each PE gets.
    answers: Vec<VecDeque<Outgoing>>,
    taken: u64,
    completed: u64,
    outstanding: VecDeque<(u64, Until)>,
    /// By 1 + the entry's number.
    fetches: HashMap<u64, Fetch>,
    /// Values whose place has not been emptied: the entry's number and the value.
    values: Vec<(u64, u64)>,
    /// Of each place for a value: whether one has yet to come for it. Race prevented: the entry of the ring's next round,
    /// answered sooner by another PE, would give its value to who waits for this one. (Those that have come are given in this
    /// order.)
    promised: Box<[bool; ROUTE_ENTRIES]>,
    /// Room for a message.
    message: G::Message,
}

impl<G: Gpu> Proxy<G> {
    pub(super) fn new(
        courier: Courier,
        board: Arc<Board>,
        gpu: G,
        inbox: InboxPlace,
        (heap, heap_bytes): (u64, u64),
        places: Places,
    ) -> Self {
        let n = courier.membership().n_pes();
        let channels = (0..n).map(|pe| courier.is_remote(pe).then(|| Channel::new(pe)));
        Self {
            channels: channels.collect(),
            under_way: (0..n).map(|_| VecDeque::new()).collect(),
            answers: (0..n).map(|_| VecDeque::new()).collect(),
            message: gpu.message(places.message()),
            courier,
            board,
            gpu,
            inbox: Inbox::new(inbox),
            heap,
            heap_bytes,
            places,
            puts: None,
            taken: 0,
            completed: 0,
            outstanding: VecDeque::new(),
            fetches: HashMap::new(),
            values: Vec::new(),
            promised: Box::new([false; ROUTE_ENTRIES]),
        }
    }

    /// Serves until told to stop, and then ends what is under way.
    pub(super) fn run(mut self) -> Result<(), ProxyError> {
        let membership = self.courier.membership();
        let (mut looks, mut stopping) = (0, None);
        loop {
            let changed = self.turn()?;
            looks = if changed { 0 } else { looks + 1 };
            if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            }
            std::thread::sleep(NAP);
            for (pe, channel) in self.channels.iter_mut().enumerate() {
                let left =
                    membership.has_left(pe) || self.courier.word(self.places.left + 8 * pe) != 0;
                if let Some(channel) = channel.as_mut().filter(|_| left) {
                    channel.give_up();
                    let promised = &mut self.promised;
                    self.fetches.retain(|token, fetch| {
                        if fetch.pe == pe && fetch.to.is_none() {
                            promised[place_of(token - 1)] = false;
                        }
                        fetch.pe != pe
                    });
                }
            }
            if self.board.stops() {
                let since = *stopping.get_or_insert_with(Instant::now);
                let sent = self.answers.iter().all(VecDeque::is_empty);
                let idle = sent && self.channels.iter().flatten().all(Channel::is_idle);
                if idle || membership.failed().is_some() || since.elapsed() > LAST {
                    return Ok(());
                }
            }
        }
    }

    fn turn(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        for channel in self.channels.iter_mut().flatten() {
            changed |= channel.advance(&self.courier, &self.places)?;
        }
        changed |= self.take_entries()?;
        changed |= self.receive()?;
        changed |= self.inbox.look(&self.board);
        self.answer();
        changed |= self.send_answers()?;
        changed |= self.inbox.give(&mut self.gpu)?;
        for channel in self.channels.iter_mut().flatten() {
            changed |= channel.advance(&self.courier, &self.places)?;
        }
        changed |= self.tell()?;
        self.complete();
        Ok(changed)
    }

    fn channel(&mut self, pe: usize) -> &mut Channel {
        let channel = self.channels.get_mut(pe).and_then(Option::as_mut);
        channel.expect("kernels route to PEs of other hosts alone")
    }

    /// Takes what kernels ask for, as far as there are places for it.
    fn take_entries(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        loop {
            if let Some((mut puts, number)) = self.puts.take() {
                let sent = self.send_parts(&mut puts)?;
                changed |= sent.is_some();
                let (pe, number) = (puts.pe, sent.unwrap_or(number));
                if !puts.is_done() {
                    self.puts = Some((puts, number));
                    return Ok(changed);
                }
                self.has_taken(Until::Done { pe, number });
            }
            let Some(entry) = ring::read(self.board.ring(), self.taken) else {
                return Ok(changed);
            };
            let fetches = matches!(entry.op, RouteOp::Fetch | RouteOp::AtomicFetch);
            let place = place_of(self.taken);
            if self.channel(entry.pe).is_full() || fetches && self.promised[place] {
                return Ok(changed);
            }
            self.promised[place] |= fetches;
            changed = true;
            match self.take(&entry, self.taken + 1) {
                Taken::Whole(until) => self.has_taken(until),
                Taken::Puts(puts) => self.puts = Some((puts, 0)),
            }
        }
    }

    fn has_taken(&mut self, until: Until) {
        self.outstanding.push_back((self.taken, until));
        self.taken += 1;
        // Release: what was put from has been read.
        self.board.taken().store(self.taken, Ordering::Release);
    }

    /// Sends what there are places for; the number of the last message.
    fn send_parts(&mut self, outgoing: &mut Outgoing) -> Result<Option<u64>, ProxyError> {
        let (mut last, pe) = (None, outgoing.pe);
        while !outgoing.is_done() {
            if self.channel(pe).is_gone() {
                // Nobody waits for it.
                while !outgoing.is_done() {
                    outgoing.next(self.places.body);
                }
                return Ok(last);
            }
            if !self.channel(pe).has_place() {
                return Ok(last);
            }
            let (head, from, bytes) = outgoing.next(self.places.body);
            let message = &mut self.message[..HEAD + bytes];
            let (to, body) = message.split_at_mut(HEAD);
            to.copy_from_slice(bytes_of(&head));
            // SAFETY: a kernel puts from there, and waits until its entry is taken; or it was checked when it was asked for.
            unsafe { self.gpu.read(body, from) }?;
            let channel = self.channels[pe].as_mut().expect("of another host");
            last = Some(channel.send(&self.courier, &self.places, message)?);
        }
        Ok(last)
    }

    /// Sends what `entry`, whose token is given, asks for, unless it is more than a word.
    fn take(&mut self, entry: &Entry, token: u64) -> Taken {
        let (pe, n, width) = (entry.pe, entry.n as usize, entry.width as usize);
        let head = Head {
            offset: entry.offset,
            width: entry.width,
            ..Head::new(Kind::Put)
        };
        let mut fetch = |to, left| {
            let fetch = Fetch { pe, to, left };
            self.fetches.insert(token, fetch);
        };
        let asks = match entry.op {
            RouteOp::Put => {
                let from = Spread::bytes(entry.local);
                return Taken::Puts(Outgoing::new(pe, head, from, n));
            }
            RouteOp::PutStrided => {
                let from = Spread {
                    address: entry.local,
                    width,
                    stride: entry.operand as usize,
                };
                let head = Head {
                    stride: entry.expected,
                    ..Head {
                        kind: Kind::PutStrided as u32,
                        ..head
                    }
                };
                return Taken::Puts(Outgoing::new(pe, head, from, n * width));
            }
            RouteOp::Word => {
                let bytes = entry.operand.to_le_bytes();
                let number = self.channel(pe).push(head, &bytes[..width]);
                return Taken::Whole(Until::Done { pe, number });
            }
            RouteOp::Atomic | RouteOp::AtomicFetch => {
                let fetches = entry.op == RouteOp::AtomicFetch;
                let head = Head {
                    offset: entry.offset,
                    op: inbox_op(entry),
                    operand: entry.operand,
                    expected: entry.expected,
                    token: if fetches { token } else { 0 },
                    ..Head::new(Kind::Atomic)
                };
                if !fetches {
                    let number = self.channel(pe).push(head, &[]);
                    return Taken::Whole(Until::Done { pe, number });
                }
                fetch(None, 8);
                head
            }
            RouteOp::Fetch => {
                fetch(None, 8);
                Head {
                    token,
                    kind: Kind::Fetch as u32,
                    ..head
                }
            }
            RouteOp::Get => {
                fetch(Some(Spread::bytes(entry.local)), entry.n);
                Head {
                    token,
                    bytes: entry.n,
                    kind: Kind::Get as u32,
                    ..head
                }
            }
            RouteOp::GetStrided => {
                let to = Spread {
                    address: entry.local,
                    width,
                    stride: entry.operand as usize,
                };
                let bytes = (n * width) as u64;
                fetch(Some(to), bytes);
                Head {
                    token,
                    bytes,
                    stride: entry.expected,
                    kind: Kind::GetStrided as u32,
                    ..head
                }
            }
        };
        self.channel(pe).push(asks, &[]);
        Taken::Whole(Until::Fetched)
    }

    /// What other hosts' PEs ask for, and what they answer.
    fn receive(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        for pe in 0..self.channels.len() {
            loop {
                // Race prevented: what is put after an atomic operation, and after a fence, must not come before it. (Who
                // sees a flag would not see what was added.)
                let operates = !self.under_way[pe].is_empty();
                let due = |head: &Head| !(operates && head.kind().is_some_and(Kind::stores));
                let Some((head, body)) = self.channels[pe]
                    .as_mut()
                    .and_then(|channel| channel.receive(&self.courier, &self.places, due))
                else {
                    break;
                };
                self.serve(pe, &head, body)?;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// The address of `bytes` bytes of this PE's heap, every `stride` from the first to the last.
    fn place(&self, pe: usize, offset: u64, bytes: u64) -> Result<u64, ProxyError> {
        let inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.heap_bytes);
        match inside {
            true => Ok(self.heap + offset),
            false => Err(ProxyError::Message {
                pe,
                what: "outside of the device heap",
            }),
        }
    }

    fn spread(&self, pe: usize, head: &Head, bytes: u64) -> Result<Spread, ProxyError> {
        let width = head.width.max(1);
        if width > self.places.body as u64 {
            return Err(ProxyError::Message {
                pe,
                what: "elements larger than a message",
            });
        }
        let steps = (bytes / width).saturating_sub(1);
        let reach = steps
            .checked_mul(head.stride)
            .and_then(|reach| reach.checked_add(width));
        let reach = reach.ok_or(ProxyError::Message {
            pe,
            what: "a stride",
        })?;
        let address = self.place(pe, head.offset, reach)?;
        Ok(Spread {
            address,
            width: width as usize,
            stride: head.stride as usize,
        })
    }

    /// `body` is where the message's `head.body` bytes are until it is told to be done.
    fn serve(&mut self, pe: usize, head: &Head, body: NonNull<u8>) -> Result<(), ProxyError> {
        let kind = head.kind().ok_or(ProxyError::Message {
            pe,
            what: "of no kind",
        })?;
        let bytes = head.body as usize;
        match kind {
            Kind::Put => {
                let to = Spread::bytes(self.place(pe, head.offset, bytes as u64)?);
                // SAFETY: `place` checked.
                unsafe { self.gpu.write(to, body, bytes) }?;
            }
            Kind::PutStrided => {
                let to = self.spread(pe, head, bytes as u64)?;
                // SAFETY: `spread` checked.
                unsafe { self.gpu.write(to, body, bytes) }?;
            }
            Kind::Get | Kind::GetStrided => {
                let from = match kind {
                    Kind::GetStrided => self.spread(pe, head, head.bytes)?,
                    _ => Spread::bytes(self.place(pe, head.offset, head.bytes)?),
                };
                let answer = Head {
                    token: head.token,
                    ..Head::new(Kind::Data)
                };
                let answer = Outgoing::new(pe, answer, from, head.bytes as usize);
                self.answers[pe].push_back(answer);
            }
            Kind::Fetch => {
                let mut word = [0; 8];
                let bytes = (head.width as usize).min(8);
                let from = Spread::bytes(self.place(pe, head.offset, bytes as u64)?);
                // SAFETY: `place` checked.
                unsafe { self.gpu.read(&mut word[..bytes], from) }?;
                self.send_value(pe, head.token, u64::from_le_bytes(word));
            }
            Kind::Atomic => {
                self.place(pe, head.offset, 1 << (head.op >> 8).min(3))?;
                if head.op & 0xff > ring::LAST_CHANGE {
                    return Err(ProxyError::Message {
                        pe,
                        what: "no such operation",
                    });
                }
                let entry = InboxEntry {
                    op: head.op,
                    offset: head.offset,
                    operand: head.operand,
                    expected: head.expected,
                };
                let operation = self.inbox.push(entry);
                let message = self.channel(pe).received();
                let answer = (head.token != 0).then_some(head.token);
                self.under_way[pe].push_back(UnderWay {
                    message,
                    operation,
                    answer,
                });
            }
            Kind::Data => self.store_data(pe, head.token, body, bytes)?,
            Kind::Value => {
                if self.fetches.remove(&head.token).is_some() {
                    let number = head.token - 1;
                    self.promised[place_of(number)] = false;
                    self.values.push((number, head.operand));
                }
            }
        }
        Ok(())
    }

    fn send_value(&mut self, pe: usize, token: u64, operand: u64) {
        let head = Head {
            token,
            operand,
            ..Head::new(Kind::Value)
        };
        self.channel(pe).push(head, &[]);
    }

    /// Sends what other PEs get, as far as there are places for it.
    fn send_answers(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        for pe in 0..self.answers.len() {
            while let Some(mut first) = self.answers[pe].pop_front() {
                changed |= self.send_parts(&mut first)?.is_some();
                if !first.is_done() {
                    self.answers[pe].push_front(first);
                    break;
                }
            }
        }
        Ok(changed)
    }

    /// Stores the next part of what an entry gets.
    fn store_data(
        &mut self,
        pe: usize,
        token: u64,
        body: NonNull<u8>,
        bytes: usize,
    ) -> Result<(), ProxyError> {
        let Some(fetch) = self.fetches.get_mut(&token) else {
            return Ok(());
        };
        let wrong = ProxyError::Message {
            pe,
            what: "an answer to another question",
        };
        let (Some(to), Some(left)) = (&mut fetch.to, fetch.left.checked_sub(bytes as u64)) else {
            return Err(wrong);
        };
        let at = *to;
        to.address += (bytes / at.width * at.stride) as u64;
        fetch.left = left;
        if left == 0 {
            self.fetches.remove(&token);
        }
        // SAFETY: the kernel gets to there, and waits until the entry is complete.
        unsafe { self.gpu.write(at, body, bytes) }?;
        Ok(())
    }

    /// Answers for atomic operations that are done, and gives kernels the values they wait for.
    fn answer(&mut self) {
        for pe in 0..self.under_way.len() {
            while let Some(first) = self.under_way[pe].front()
                && self.inbox.is_done(first.operation)
            {
                let (operation, answer) = (first.operation, first.answer);
                self.under_way[pe].pop_front();
                if let Some(token) = answer {
                    let value = self.inbox.result(&self.board, operation);
                    self.send_value(pe, token, value);
                }
            }
        }
        let board = &self.board;
        self.values
            .retain(|&(number, value)| !give_fetched(board, number, value));
    }

    /// Tells other PEs what of theirs is done.
    fn tell(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        for (channel, under_way) in self.channels.iter_mut().zip(&self.under_way) {
            let Some(channel) = channel else { continue };
            let done = under_way
                .front()
                .map_or(channel.received(), |first| first.message - 1);
            changed |= channel.tell(&self.courier, &self.places, done)?;
        }
        Ok(changed)
    }

    /// Tells kernels which entries are complete.
    fn complete(&mut self) {
        let before = self.completed;
        while let Some((number, until)) = self.outstanding.front() {
            let complete = match until {
                Until::Done { pe, number } => self.channels[*pe]
                    .as_ref()
                    .is_some_and(|channel| channel.is_done(*number)),
                Until::Fetched => !self.fetches.contains_key(&(number + 1)),
            };
            if !complete {
                break;
            }
            self.completed = number + 1;
            self.outstanding.pop_front();
        }
        if self.completed != before {
            // Release: what was got is there.
            self.board
                .completed()
                .store(self.completed, Ordering::Release);
        }
    }
}

/// The place for what entry `number` fetches.
fn place_of(number: u64) -> usize {
    number as usize % ROUTE_ENTRIES
}

/// Gives the kernel that waits for entry `number` its value; `false`: the place still has another one.
fn give_fetched(board: &Board, number: u64, value: u64) -> bool {
    let [place, word] = board.fetched(number);
    // Acquire: the last value has been read.
    if place.load(Ordering::Acquire) != 0 {
        return false;
    }
    word.store(value, Ordering::Relaxed);
    // Release: who sees the number sees the value.
    place.store(number + 1, Ordering::Release);
    true
}

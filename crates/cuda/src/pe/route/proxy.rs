//! The thread of a PE that carries what its kernels do to PEs of other hosts, and does what kernels of these do here.
#![allow(unsafe_code)] // Copies to and from places that kernels and other PEs name.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crosswarp_shmem::DeliveryError;
use crosswarp_shmem::internal::Courier;

use crate::driver::error::CudaError;
use crate::layout::{InboxEntry, RouteOp};
use crate::pe::route::RouteMemory;
use crate::pe::route::channel::{Channel, Places};
use crate::pe::route::copy::{Copies, Spread};
use crate::pe::route::inbox::Inbox;
use crate::pe::route::message::{BODY, Head, Kind};
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
    /// The token and the bytes of the word, if an answer is wanted.
    answer: Option<u64>,
}

pub(super) struct Proxy {
    courier: Courier,
    memory: Arc<RouteMemory>,
    copies: Copies,
    /// Of the heap of this PE.
    heap: u64,
    heap_bytes: u64,
    places: Places,
    /// Of each PE of another host.
    channels: Vec<Option<Channel>>,
    inbox: Inbox,
    under_way: Vec<VecDeque<UnderWay>>,
    taken: u64,
    completed: u64,
    outstanding: VecDeque<(u64, Until)>,
    /// By 1 + the entry's number.
    fetches: HashMap<u64, Fetch>,
    /// Values whose place has not been emptied: the entry's number and the value.
    values: Vec<(u64, u64)>,
    buffer: Vec<u8>,
}

impl Proxy {
    pub(super) fn new(
        courier: Courier,
        memory: Arc<RouteMemory>,
        copies: Copies,
        inbox: Inbox,
        (heap, heap_bytes): (u64, u64),
        places: Places,
    ) -> Self {
        let n = courier.membership().n_pes();
        let channels = (0..n).map(|pe| courier.is_remote(pe).then(|| Channel::new(pe)));
        Self {
            channels: channels.collect(),
            under_way: (0..n).map(|_| VecDeque::new()).collect(),
            courier,
            memory,
            copies,
            inbox,
            heap,
            heap_bytes,
            places,
            taken: 0,
            completed: 0,
            outstanding: VecDeque::new(),
            fetches: HashMap::new(),
            values: Vec::new(),
            buffer: vec![0; BODY],
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
                    self.fetches.retain(|_, fetch| fetch.pe != pe);
                }
            }
            if self.memory.stops() {
                let since = *stopping.get_or_insert_with(Instant::now);
                let idle = self.channels.iter().flatten().all(Channel::is_idle);
                if idle || membership.failed().is_some() || since.elapsed() > LAST {
                    return Ok(());
                }
            }
        }
    }

    fn turn(&mut self) -> Result<bool, ProxyError> {
        let mut changed = self.take_entries()?;
        changed |= self.receive()?;
        changed |= self.inbox.look(&self.memory.inbox);
        self.answer();
        changed |= self.inbox.give(&self.memory.inbox, &self.copies)?;
        for channel in self.channels.iter_mut().flatten() {
            changed |= channel.advance(&self.courier, self.places)?;
        }
        changed |= self.tell()?;
        self.complete();
        Ok(changed)
    }

    fn channel(&mut self, pe: usize) -> &mut Channel {
        let channel = self.channels.get_mut(pe).and_then(Option::as_mut);
        channel.expect("kernels route to PEs of other hosts alone")
    }

    /// What kernels ask for.
    fn take_entries(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        while let Some(entry) = ring::read(self.memory.ring(), self.taken) {
            if self.channel(entry.pe).is_full() {
                break;
            }
            let until = self.start(&entry, self.taken + 1)?;
            self.outstanding.push_back((self.taken, until));
            self.taken += 1;
            // Release: what was put from has been read.
            self.memory.taken().store(self.taken, Ordering::Release);
            changed = true;
        }
        Ok(changed)
    }

    /// Sends what `entry`, whose token is given, asks for.
    fn start(&mut self, entry: &Entry, token: u64) -> Result<Until, ProxyError> {
        let pe = entry.pe;
        let (n, width) = (entry.n as usize, entry.width as usize);
        let head = Head {
            offset: entry.offset,
            width: entry.width,
            ..Head::new(Kind::Put)
        };
        match entry.op {
            RouteOp::Word => {
                let bytes = entry.operand.to_le_bytes();
                let number = self.channel(pe).push(head, &bytes[..width]);
                return Ok(Until::Done { pe, number });
            }
            RouteOp::Put => {
                let mut number = 0;
                let mut part = std::mem::take(&mut self.buffer);
                for start in (0..n).step_by(BODY) {
                    part.resize(BODY.min(n - start), 0);
                    // SAFETY: the kernel puts from there, and waits until the entry is taken.
                    unsafe { self.copies.read(&mut part, entry.local + start as u64) }?;
                    let head = Head {
                        offset: entry.offset + start as u64,
                        ..head
                    };
                    number = self.channel(pe).push(head, &part);
                    self.channel_advance(pe)?;
                }
                self.buffer = part;
                return Ok(Until::Done { pe, number });
            }
            RouteOp::PutStrided => {
                let (here, there) = (entry.operand, entry.expected);
                let at_once = BODY / width;
                let mut number = 0;
                let mut part = std::mem::take(&mut self.buffer);
                for first in (0..n).step_by(at_once) {
                    part.resize(at_once.min(n - first) * width, 0);
                    let address = entry.local + first as u64 * here;
                    // SAFETY: as above.
                    unsafe {
                        self.copies.collect(
                            &mut part,
                            Spread {
                                address,
                                width,
                                stride: here as usize,
                            },
                        )
                    }?;
                    let head = Head {
                        offset: entry.offset + first as u64 * there,
                        width: entry.width,
                        stride: there,
                        ..Head::new(Kind::PutStrided)
                    };
                    number = self.channel(pe).push(head, &part);
                }
                self.buffer = part;
                return Ok(Until::Done { pe, number });
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
                let number = self.channel(pe).push(head, &[]);
                if !fetches {
                    return Ok(Until::Done { pe, number });
                }
                self.fetches.insert(
                    token,
                    Fetch {
                        pe,
                        to: None,
                        left: 8,
                    },
                );
            }
            RouteOp::Fetch => {
                let head = Head {
                    token,
                    offset: entry.offset,
                    width: entry.width,
                    ..Head::new(Kind::Fetch)
                };
                self.channel(pe).push(head, &[]);
                self.fetches.insert(
                    token,
                    Fetch {
                        pe,
                        to: None,
                        left: 8,
                    },
                );
            }
            RouteOp::Get | RouteOp::GetStrided => {
                let strided = entry.op == RouteOp::GetStrided;
                let bytes = if strided { n * width } else { n } as u64;
                let head = Head {
                    token,
                    offset: entry.offset,
                    bytes,
                    width: entry.width,
                    stride: entry.expected,
                    ..Head::new(if strided { Kind::GetStrided } else { Kind::Get })
                };
                self.channel(pe).push(head, &[]);
                let (width, stride) = if strided {
                    (width, entry.operand as usize)
                } else {
                    (1, 1)
                };
                let to = Some(Spread {
                    address: entry.local,
                    width,
                    stride,
                });
                self.fetches.insert(
                    token,
                    Fetch {
                        pe,
                        to,
                        left: bytes,
                    },
                );
            }
        }
        Ok(Until::Fetched)
    }

    fn channel_advance(&mut self, pe: usize) -> Result<(), ProxyError> {
        let channel = self.channels[pe].as_mut().expect("of another host");
        channel.advance(&self.courier, self.places)?;
        Ok(())
    }

    /// What other hosts' PEs ask for, and what they answer.
    fn receive(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        let mut body = Vec::new();
        for pe in 0..self.channels.len() {
            while let Some(head) = self.channels[pe]
                .as_mut()
                .and_then(|channel| channel.receive(&self.courier, self.places, &mut body))
            {
                self.serve(pe, &head, &body)?;
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

    fn serve(&mut self, pe: usize, head: &Head, body: &[u8]) -> Result<(), ProxyError> {
        let kind = head.kind().ok_or(ProxyError::Message {
            pe,
            what: "of no kind",
        })?;
        match kind {
            Kind::Put => {
                let to = self.place(pe, head.offset, body.len() as u64)?;
                // SAFETY: `place` checked.
                unsafe { self.copies.write(to, body) }?;
            }
            Kind::PutStrided => {
                let to = self.spread(pe, head, body.len() as u64)?;
                // SAFETY: `spread` checked.
                unsafe { self.copies.spread(to, body) }?;
            }
            Kind::Get | Kind::GetStrided => self.send_data(pe, head, kind == Kind::GetStrided)?,
            Kind::Fetch => {
                let mut word = [0; 8];
                let bytes = (head.width as usize).min(8);
                let from = self.place(pe, head.offset, bytes as u64)?;
                // SAFETY: `place` checked.
                unsafe { self.copies.read(&mut word[..bytes], from) }?;
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
            Kind::Data => self.store_data(pe, head.token, body)?,
            Kind::Value => {
                if self.fetches.remove(&head.token).is_some() {
                    self.values.push((head.token - 1, head.operand));
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

    /// Sends what a get asks for.
    fn send_data(&mut self, pe: usize, head: &Head, strided: bool) -> Result<(), ProxyError> {
        let from = match strided {
            true => self.spread(pe, head, head.bytes)?,
            false => Spread {
                address: self.place(pe, head.offset, head.bytes)?,
                width: 1,
                stride: 1,
            },
        };
        let at_once = BODY / from.width * from.width;
        let mut part = std::mem::take(&mut self.buffer);
        for start in (0..head.bytes as usize).step_by(at_once.max(1)) {
            part.resize(at_once.min(head.bytes as usize - start), 0);
            let address = from.address + (start / from.width * from.stride) as u64;
            // SAFETY: checked above.
            unsafe {
                match strided {
                    true => self.copies.collect(&mut part, Spread { address, ..from }),
                    false => self.copies.read(&mut part, address),
                }
            }?;
            let answer = Head {
                token: head.token,
                ..Head::new(Kind::Data)
            };
            self.channel(pe).push(answer, &part);
            self.channel_advance(pe)?;
        }
        self.buffer = part;
        Ok(())
    }

    /// Stores the next part of what an entry gets.
    fn store_data(&mut self, pe: usize, token: u64, body: &[u8]) -> Result<(), ProxyError> {
        let Some(fetch) = self.fetches.get_mut(&token) else {
            return Ok(());
        };
        let Some(to) = &mut fetch.to else {
            return Err(ProxyError::Message {
                pe,
                what: "an answer to another question",
            });
        };
        let at = *to;
        to.address += (body.len() / at.width * at.stride) as u64;
        fetch.left = fetch.left.saturating_sub(body.len() as u64);
        if fetch.left == 0 {
            self.fetches.remove(&token);
        }
        // SAFETY: the kernel gets to there, and waits until the entry is complete.
        unsafe {
            if at.stride == at.width {
                self.copies.write(at.address, body)
            } else {
                self.copies.spread(at, body)
            }
        }?;
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
                    let value = self.inbox.result(&self.memory.inbox, operation);
                    self.send_value(pe, token, value);
                }
            }
        }
        let memory = &self.memory;
        self.values
            .retain(|&(number, value)| !memory.give_fetched(number, value));
    }

    /// Tells other PEs what of theirs is done.
    fn tell(&mut self) -> Result<bool, ProxyError> {
        let mut changed = false;
        for (channel, under_way) in self.channels.iter_mut().zip(&self.under_way) {
            let Some(channel) = channel else { continue };
            let done = under_way
                .front()
                .map_or(channel.received(), |first| first.message - 1);
            changed |= channel.tell(&self.courier, self.places, done)?;
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
            self.memory
                .completed()
                .store(self.completed, Ordering::Release);
        }
    }
}

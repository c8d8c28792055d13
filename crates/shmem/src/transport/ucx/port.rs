//! A PE's way to agents: one worker, and an endpoint to each agent that it deals with.

use std::collections::VecDeque;
use std::io::{Error, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::transport::engine::{Engine, EngineError};
use crate::transport::message::Reply;
use crate::transport::tcp::frame::LENGTH;
use crate::transport::tcp::key::Key;
use crate::transport::tcp::port::connect;
use crate::transport::ucx::active_message::{Data, Message, Protocol, Receive};
use crate::transport::ucx::context::Context;
use crate::transport::ucx::endpoint::Endpoint;
use crate::transport::ucx::library::UcxError;
use crate::transport::ucx::request::Request;
use crate::transport::ucx::seal::{Introduction, MESSAGE, REPLY, is_from, seal, unread};
use crate::transport::ucx::status::Status;
use crate::transport::ucx::worker::Worker;

/// The longest sleep: UCX may miss an event.
const NAP: Duration = Duration::from_millis(50);
/// How long a PE may leave alone what it has sent before it is helped.
const GRACE: Duration = Duration::from_millis(5);
/// The same of what UCX is known to have still.
const SHORT_GRACE: Duration = Duration::from_micros(200);
/// So many times the helper looks before it sleeps until it is told.
const LOOKS: u32 = 20;
/// So many bytes may be on their way; who sends more waits.
const MOST_UNDER_WAY: usize = 4 << 20;
/// How long a PE that leaves waits for what it has sent to be on its way.
const LAST: Duration = Duration::from_secs(5);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the [module](self).
pub(crate) struct Port {
    me: u32,
    key: Key,
    this: Arc<This>,
    helper: Mutex<Option<JoinHandle<()>>>,
}

/// What the PE's threads and its helper share.
struct This {
    worker: Arc<Worker>,
    hosts: Vec<Host>,
    outgoing: Mutex<Outgoing>,
    /// Whether there is something in `outgoing`.
    waits: AtomicBool,
    /// Counts looks for replies.
    looks: AtomicU64,
    /// Whether the helper looks.
    watched: AtomicBool,
    ends: Mutex<bool>,
    /// Tells the helper to look.
    watch: Condvar,
    /// Replies that have come.
    came: Mutex<VecDeque<Vec<u8>>>,
    /// Heads of those whose bodies are on their way.
    coming: Mutex<Vec<(Vec<u8>, Receive)>>,
}

/// The way to one agent.
struct Host {
    address: SocketAddr,
    way: OnceLock<Way>,
    /// Held by the thread that connects.
    connecting: Mutex<()>,
}

struct Way {
    endpoint: Arc<Endpoint>,
    session: Key,
    /// Whether something was sent that UCX may still have: a message is complete when UCX has it in a buffer.
    sent: AtomicBool,
}

/// Messages that UCX has not taken yet.
#[derive(Default)]
struct Outgoing {
    messages: Vec<(Request, usize)>,
    bytes: usize,
}

impl This {
    fn ways(&self) -> impl Iterator<Item = &Way> {
        self.hosts.iter().filter_map(|host| host.way.get())
    }

    /// Takes a reply, if it is from an agent that this PE knows.
    fn receive(&self, message: Message<'_>) {
        let length = match &message.data {
            Data::Here(body) => body.len(),
            Data::There(rendezvous) => rendezvous.length(),
        };
        let parts = unread(message.header).and_then(|head| head.split_first_chunk());
        let Some((&host, head)) = parts.filter(|(_, head)| head.len() == size_of::<Reply>()) else {
            return;
        };
        let host = self.hosts.get(u64::from_le_bytes(host) as usize);
        let Some(way) = host.and_then(|host| host.way.get()) else {
            return;
        };
        if !is_from(way.session, REPLY, message.header, length) {
            tracing::warn!("dropped a reply that no agent has sent");
            return;
        }
        match message.data {
            Data::Here(body) => lock(&self.came).push_back([head, body].concat()),
            // A failure is the endpoint's.
            Data::There(rendezvous) => {
                if let Ok(receive) = rendezvous.receive() {
                    lock(&self.coming).push((head.to_vec(), receive));
                }
            }
        }
    }

    /// Completes the replies whose bodies have come.
    fn complete(&self) {
        // Not under the lock: UCX locks the worker where it frees, and handlers lock this while the worker is locked.
        let coming = std::mem::take(&mut *lock(&self.coming));
        for (head, mut receive) in coming {
            match receive.poll() {
                Ok(None) => lock(&self.coming).push((head, receive)),
                Ok(Some(body)) => lock(&self.came).push_back([head, body].concat()),
                // The endpoint says what went wrong.
                Err(_) => {}
            }
        }
    }

    fn any_came(&self) -> bool {
        !lock(&self.came).is_empty()
    }

    /// Does what there is to do; whether there was any.
    fn progress(&self) -> bool {
        let did = self.worker.progress();
        if did {
            self.complete();
        }
        if self.waits.load(Ordering::Relaxed) {
            self.forget_what_has_left(&mut lock(&self.outgoing));
        }
        did
    }

    fn forget_what_has_left(&self, outgoing: &mut Outgoing) {
        // What went wrong, the endpoint says.
        let messages = &mut outgoing.messages;
        messages.retain_mut(|(message, _)| message.poll() == Ok(false));
        outgoing.bytes = messages.iter().map(|(_, bytes)| bytes).sum();
        self.waits.store(!messages.is_empty(), Ordering::Relaxed);
    }

    /// Makes sure that the helper looks after what has just been sent.
    fn is_sent(self: &Arc<Self>, way: &Way, helper: &Mutex<Option<JoinHandle<()>>>) {
        // SeqCst, with `help`: either this sees that it looks no more, or that sees that something was sent.
        way.sent.store(true, Ordering::SeqCst);
        if self.watched.load(Ordering::SeqCst) || self.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut helper = lock(helper);
        if helper.is_none() {
            let this = Arc::clone(self);
            let thread = std::thread::Builder::new().name("ucx".into());
            // Without it, what UCX keeps leaves with the PE's next call.
            *helper = thread.spawn(move || this.help()).ok();
        }
        drop(lock(&self.ends));
        self.watch.notify_one();
    }

    /// Sees off what the PE leaves alone: it may compute, and what it has sent is to arrive all the same.
    fn help(&self) {
        let mut idle = 0;
        let mut ends = lock(&self.ends);
        loop {
            while !*ends && !self.watched.load(Ordering::SeqCst) {
                let woken = self.watch.wait(ends);
                ends = woken.unwrap_or_else(PoisonError::into_inner);
            }
            if *ends {
                return;
            }
            let looks = self.looks.load(Ordering::Relaxed);
            let grace = match self.waits.load(Ordering::Relaxed) {
                true => SHORT_GRACE,
                false => GRACE,
            };
            let woken = self.watch.wait_timeout(ends, grace);
            ends = woken.unwrap_or_else(PoisonError::into_inner).0;
            let any = |order| self.ways().any(|way| way.sent.load(order));
            if !any(Ordering::Relaxed) {
                idle += 1;
                if idle == LOOKS {
                    idle = 0;
                    self.watched.store(false, Ordering::SeqCst);
                    if any(Ordering::SeqCst) {
                        self.watched.store(true, Ordering::SeqCst);
                    }
                }
                continue;
            }
            idle = 0;
            // A PE that looks for replies makes its own progress.
            if self.looks.load(Ordering::Relaxed) != looks || *ends {
                continue;
            }
            drop(ends);
            self.see_off();
            ends = lock(&self.ends);
        }
    }

    /// Until all that was sent has left, or the PE ends.
    fn see_off(&self) {
        let mut flushes: Vec<Request> = Vec::new();
        for way in self.ways() {
            if way.sent.swap(false, Ordering::SeqCst) {
                // One that has failed says so to the PE.
                flushes.extend(way.endpoint.flush().ok());
            }
        }
        while !*lock(&self.ends) {
            flushes.retain_mut(|flush| flush.poll() == Ok(false));
            if flushes.is_empty() && !self.waits.load(Ordering::Relaxed) {
                return;
            }
            let did = self.progress();
            // This thread may have taken what another one is asleep for.
            if self.any_came() {
                let _ = self.worker.wake();
            }
            if !did && self.worker.sleep(NAP).is_err() {
                std::thread::sleep(GRACE);
            }
        }
    }
}

impl Port {
    /// Of PE `me`, to the agents that listen at `addresses`, by host.
    ///
    /// # Errors
    /// [`UcxError`]
    pub(crate) fn new(me: usize, key: Key, addresses: &[SocketAddr]) -> Result<Self, UcxError> {
        let worker = Worker::new(&Context::of_this_process()?)?;
        let host = |&address: &SocketAddr| Host {
            address,
            way: OnceLock::new(),
            connecting: Mutex::default(),
        };
        let this = Arc::new(This {
            worker,
            hosts: addresses.iter().map(host).collect(),
            outgoing: Mutex::default(),
            waits: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            ends: Mutex::new(false),
            watch: Condvar::new(),
            came: Mutex::default(),
            coming: Mutex::default(),
        });
        // The handler belongs to the worker, which belongs to this.
        let in_handler = Arc::downgrade(&this);
        let handled = this.worker.on_message(REPLY, move |message| {
            if let Some(this) = in_handler.upgrade() {
                this.receive(message);
            }
        });
        handled.map_err(UcxError::of("can not receive"))?;
        Ok(Self {
            me: me as u32,
            key,
            this,
            helper: Mutex::default(),
        })
    }

    fn unreachable(&self, host: usize, error: impl std::fmt::Display) -> EngineError {
        EngineError::Unreachable {
            host,
            reason: format!("{}: {error}", self.this.hosts[host].address),
        }
    }

    /// Meets the agent at its TCP port.
    fn connect(&self, host: usize) -> std::io::Result<Way> {
        let (mut stream, session) = connect(self.this.hosts[host].address, self.key, self.me)?;
        let ours = Introduction::of(&self.this.worker);
        let said = ours.bytes();
        stream.write_all(&[&(said.len() as u32).to_le_bytes()[..], &said].concat())?;
        let theirs = read_frame(&mut stream)?;
        let theirs = Introduction::parse(&theirs).ok_or(std::io::ErrorKind::InvalidData)?;
        if theirs.version != ours.version {
            let (theirs, ours) = (theirs.version, ours.version);
            let text = format!("it has UCX {theirs}, this host {ours}");
            return Err(Error::other(text));
        }
        // SAFETY: an agent that has proven that it knows the job's key says so, of a library of this version.
        let endpoint = unsafe { Endpoint::connect(&self.this.worker, &theirs.address) };
        Ok(Way {
            endpoint: endpoint.map_err(Error::other)?,
            session,
            sent: AtomicBool::new(false),
        })
    }

    fn way(&self, host: usize) -> Result<&Way, EngineError> {
        let there = &self.this.hosts[host];
        if let Some(way) = there.way.get() {
            return Ok(way);
        }
        let _connecting = lock(&there.connecting);
        if there.way.get().is_none() {
            let way = self.connect(host);
            let way = way.map_err(|error| self.unreachable(host, error))?;
            let _ = there.way.set(way);
        }
        there
            .way
            .get()
            .ok_or_else(|| self.unreachable(host, "not connected"))
    }

    /// Waits while UCX has much that it has not taken.
    fn wait_for_room(&self, message: Request, bytes: usize, way: &Way) -> Result<(), Status> {
        let mut outgoing = lock(&self.this.outgoing);
        outgoing.bytes += bytes;
        outgoing.messages.push((message, bytes));
        if !self.this.waits.swap(true, Ordering::Relaxed) {
            self.this.watch.notify_one();
        }
        while outgoing.bytes > MOST_UNDER_WAY {
            drop(outgoing);
            if !self.this.progress() {
                way.endpoint.check()?;
                self.this.worker.sleep(NAP)?;
            }
            outgoing = lock(&self.this.outgoing);
        }
        Ok(())
    }
}

/// The frame that a connection begins with.
fn read_frame(stream: &mut std::net::TcpStream) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut length = [0; LENGTH];
    stream.read_exact(&mut length)?;
    let mut bytes = Vec::new();
    let length = u64::from(u32::from_le_bytes(length));
    stream.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Engine for Port {
    fn send(&self, host: usize, head: &[u8], body: &[u8]) -> Result<(), EngineError> {
        let way = self.way(host)?;
        let send = || {
            let sealed = seal(way.session, MESSAGE, &[head], body.len());
            let mut message = way.endpoint.send(MESSAGE, &sealed, body, Protocol::Any)?;
            self.this.is_sent(way, &self.helper);
            match message.poll()? {
                true => Ok(()),
                false => self.wait_for_room(message, body.len(), way),
            }
        };
        send().map_err(|status: Status| self.unreachable(host, status))
    }

    fn progress(&self, deliver: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        self.this.looks.fetch_add(1, Ordering::Relaxed);
        self.this.progress();
        loop {
            let Some(reply) = lock(&self.this.came).pop_front() else {
                break;
            };
            deliver(&reply);
        }
        for (host, there) in self.this.hosts.iter().enumerate() {
            if let Some(way) = there.way.get() {
                let checked = way.endpoint.check();
                checked.map_err(|status| self.unreachable(host, status))?;
            }
        }
        Ok(())
    }

    fn sleep(&self, limit: Duration) {
        let this = &self.this;
        // Every outcome means: look again.
        let _ = (this.worker).sleep_if(limit.min(NAP), || !this.any_came());
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // All leaves before the endpoints are closed.
        let mut last: Vec<Request> = Vec::new();
        for way in self.this.ways() {
            last.extend(way.endpoint.flush().ok());
        }
        let start = Instant::now();
        while start.elapsed() < LAST {
            last.retain_mut(|flush| flush.poll() == Ok(false));
            if last.is_empty() && !self.this.waits.load(Ordering::Relaxed) {
                break;
            }
            if !self.this.progress() {
                let _ = self.this.worker.sleep(NAP);
            }
        }
        lock(&self.this.outgoing).messages.clear();
        *lock(&self.this.ends) = true;
        self.this.watch.notify_one();
        let _ = self.this.worker.wake();
        if let Some(helper) = lock(&self.helper).take() {
            let _ = helper.join();
        }
    }
}

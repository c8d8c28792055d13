//! A PE's way to agents: one worker, and an endpoint to each agent that it deals with.

use std::collections::VecDeque;
use std::io::{Error, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
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
const GRACE: Duration = Duration::from_millis(1);
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
    hosts: Vec<Host>,
    this: Arc<This>,
    helper: Mutex<Option<JoinHandle<()>>>,
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
}

/// What the PE's threads and its helper share.
struct This {
    worker: Arc<Worker>,
    outgoing: Mutex<Outgoing>,
    /// Whether there is something in `outgoing`.
    waits: AtomicBool,
    /// Tells the helper.
    left_alone: Condvar,
    replies: Arc<Replies>,
}

/// What UCX has not handed to the network yet.
#[derive(Default)]
struct Outgoing {
    messages: Vec<UnderWay>,
    bytes: usize,
    /// Whether the helper has been told.
    helped: bool,
    ends: bool,
}

struct UnderWay {
    bytes: usize,
    message: Request,
    /// Of the endpoint, after the message: a message may be complete while UCX still has it in a buffer.
    flush: Request,
}

impl UnderWay {
    /// Whether it has left; what went wrong, the endpoint says.
    fn has_left(&mut self) -> bool {
        self.message.poll() != Ok(false) && self.flush.poll() != Ok(false)
    }
}

/// What has come from agents.
struct Replies {
    /// By host: the key of the session.
    sessions: Box<[OnceLock<Key>]>,
    came: Mutex<VecDeque<Vec<u8>>>,
    /// Those whose bodies are on their way.
    coming: Mutex<Vec<(Vec<u8>, Receive)>>,
}

impl Replies {
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
        let session = self.sessions.get(u64::from_le_bytes(host) as usize);
        let Some(&session) = session.and_then(OnceLock::get) else {
            return;
        };
        if !is_from(session, REPLY, message.header, length) {
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

    /// Completes those whose bodies have come.
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

    fn any(&self) -> bool {
        !lock(&self.came).is_empty()
    }
}

impl This {
    /// Does what there is to do; whether there was any.
    fn progress(&self) -> bool {
        let did = self.worker.progress();
        if did {
            self.replies.complete();
        }
        if self.waits.load(Ordering::Relaxed) {
            self.forget_what_has_left(&mut lock(&self.outgoing));
        }
        did
    }

    fn forget_what_has_left(&self, outgoing: &mut Outgoing) {
        outgoing.messages.retain_mut(|one| !one.has_left());
        outgoing.bytes = outgoing.messages.iter().map(|one| one.bytes).sum();
        self.waits
            .store(!outgoing.messages.is_empty(), Ordering::Relaxed);
    }

    /// Sends what the PE leaves alone: it may compute, and what it has sent is to arrive all the same.
    fn help(&self) {
        loop {
            let mut outgoing = lock(&self.outgoing);
            while !outgoing.helped && !outgoing.ends {
                let woken = self.left_alone.wait(outgoing);
                outgoing = woken.unwrap_or_else(PoisonError::into_inner);
            }
            if outgoing.ends {
                return;
            }
            drop(outgoing);
            std::thread::sleep(GRACE);
            while self.waits.load(Ordering::Relaxed) {
                let did = self.progress();
                // This thread may have taken what another one is asleep for.
                if self.replies.any() {
                    let _ = self.worker.wake();
                }
                if !did && self.worker.sleep(NAP).is_err() {
                    std::thread::sleep(GRACE);
                }
            }
            let mut outgoing = lock(&self.outgoing);
            outgoing.helped = !outgoing.messages.is_empty();
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
        let replies = Arc::new(Replies {
            sessions: addresses.iter().map(|_| OnceLock::new()).collect(),
            came: Mutex::default(),
            coming: Mutex::default(),
        });
        // The handler belongs to the worker, which these replies may keep.
        let in_handler = Arc::downgrade(&replies);
        let handled = worker.on_message(REPLY, move |message| {
            if let Some(replies) = in_handler.upgrade() {
                replies.receive(message);
            }
        });
        handled.map_err(UcxError::of("can not receive"))?;
        let host = |&address: &SocketAddr| Host {
            address,
            way: OnceLock::new(),
            connecting: Mutex::default(),
        };
        Ok(Self {
            me: me as u32,
            key,
            hosts: addresses.iter().map(host).collect(),
            this: Arc::new(This {
                worker,
                outgoing: Mutex::default(),
                waits: AtomicBool::new(false),
                left_alone: Condvar::new(),
                replies,
            }),
            helper: Mutex::default(),
        })
    }

    fn unreachable(&self, host: usize, error: impl std::fmt::Display) -> EngineError {
        EngineError::Unreachable {
            host,
            reason: format!("{}: {error}", self.hosts[host].address),
        }
    }

    /// Meets the agent at its TCP port.
    fn connect(&self, host: usize) -> std::io::Result<Way> {
        let (mut stream, session) = connect(self.hosts[host].address, self.key, self.me)?;
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
        // Before anything can come from there.
        let _ = self.this.replies.sessions[host].set(session);
        // SAFETY: an agent that has proven that it knows the job's key says so, of a library of this version.
        let endpoint = unsafe { Endpoint::connect(&self.this.worker, &theirs.address) };
        Ok(Way {
            endpoint: endpoint.map_err(Error::other)?,
            session,
        })
    }

    fn way(&self, host: usize) -> Result<&Way, EngineError> {
        let there = &self.hosts[host];
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

    /// Sees to it that what UCX still has leaves, and waits if it is much.
    fn see_off(&self, one: UnderWay, way: &Way) -> Result<(), Status> {
        let mut outgoing = lock(&self.this.outgoing);
        outgoing.bytes += one.bytes;
        outgoing.messages.push(one);
        self.this.waits.store(true, Ordering::Relaxed);
        if !outgoing.helped {
            outgoing.helped = true;
            self.this.left_alone.notify_one();
            let mut helper = lock(&self.helper);
            if helper.is_none() {
                let this = Arc::clone(&self.this);
                let thread = std::thread::Builder::new().name("ucx".into());
                // Without it, what was sent leaves with the PE's next call.
                *helper = thread.spawn(move || this.help()).ok();
            }
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
            let mut one = UnderWay {
                bytes: body.len(),
                message: way.endpoint.send(MESSAGE, &sealed, body, Protocol::Any)?,
                flush: way.endpoint.flush()?,
            };
            match one.has_left() {
                true => way.endpoint.check(),
                false => self.see_off(one, way),
            }
        };
        send().map_err(|status: Status| self.unreachable(host, status))
    }

    fn progress(&self, deliver: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        self.this.progress();
        loop {
            let Some(reply) = lock(&self.this.replies.came).pop_front() else {
                break;
            };
            deliver(&reply);
        }
        for (host, there) in self.hosts.iter().enumerate() {
            if let Some(way) = there.way.get() {
                let checked = way.endpoint.check();
                checked.map_err(|status| self.unreachable(host, status))?;
            }
        }
        Ok(())
    }

    fn sleep(&self, limit: Duration) {
        let replies = &self.this.replies;
        // Every outcome means: look again.
        let _ = (self.this.worker).sleep_if(limit.min(NAP), || !replies.any());
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let start = Instant::now();
        while self.this.waits.load(Ordering::Relaxed) && start.elapsed() < LAST {
            if !self.this.progress() {
                let _ = self.this.worker.sleep(NAP);
            }
        }
        let mut outgoing = lock(&self.this.outgoing);
        outgoing.ends = true;
        outgoing.messages.clear();
        self.this.waits.store(false, Ordering::Relaxed);
        drop(outgoing);
        self.this.left_alone.notify_one();
        let _ = self.this.worker.wake();
        if let Some(helper) = lock(&self.helper).take() {
            let _ = helper.join();
        }
    }
}

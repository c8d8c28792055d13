//! The agent's end: a worker that is served by a thread of its own, beside the one that listens on TCP.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::transport::agent::Agent;
use crate::transport::message::{Head, Reply};
use crate::transport::tcp::key::Key;
use crate::transport::tcp::server::Hears;
use crate::transport::ucx::active_message::{Data, Message, Protocol, Receive};
use crate::transport::ucx::context::Context;
use crate::transport::ucx::endpoint::Endpoint;
use crate::transport::ucx::library::UcxError;
use crate::transport::ucx::seal::{Introduction, MESSAGE, REPLY, is_from, seal, unread};
use crate::transport::ucx::status::Status;
use crate::transport::ucx::worker::Worker;

/// The longest sleep: UCX may miss an event.
const NAP: Duration = Duration::from_millis(50);
/// More is no introduction.
const LONGEST_INTRODUCTION: usize = 64 << 10;

/// A worker for an agent, before it serves.
pub(crate) struct Server {
    worker: Arc<Worker>,
}

/// A server at work.
struct Serving {
    agent: Agent,
    guests: HashMap<u32, Guest>,
    /// Messages whose bodies are on their way.
    coming: Vec<(Head, Receive)>,
}

/// A PE that has introduced itself.
struct Guest {
    session: Key,
    endpoint: Arc<Endpoint>,
    /// Whether something it sent made no sense.
    dismissed: bool,
}

/// Locked by the thread that serves, in handlers too, where UCX holds its worker; so no call to UCX is made by any
/// other thread that holds this.
type Shared = Mutex<Serving>;

fn lock(serving: &Shared) -> MutexGuard<'_, Serving> {
    serving.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// One more.
    ///
    /// # Errors
    /// [`UcxError`]
    pub(crate) fn new() -> Result<Self, UcxError> {
        Ok(Self::on(Worker::new(&Context::of_this_process()?)?))
    }

    /// With this worker.
    pub(super) fn on(worker: Arc<Worker>) -> Self {
        Self { worker }
    }

    /// With what `agent` does; and who hears the introductions of its guests.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn with(self, agent: Agent) -> Result<(At, Introductions), Status> {
        let serving = Arc::new(Mutex::new(Serving {
            agent,
            guests: HashMap::new(),
            coming: Vec::new(),
        }));
        // The handler belongs to the worker, which belongs to the guests' endpoints.
        let in_handler = Arc::downgrade(&serving);
        self.worker.on_message(MESSAGE, move |message| {
            if let Some(serving) = in_handler.upgrade() {
                lock(&serving).receive(message);
            }
        })?;
        let introductions = Introductions {
            worker: Arc::clone(&self.worker),
            serving: Arc::clone(&serving),
        };
        let at = At {
            worker: self.worker,
            serving,
            stop: AtomicBool::new(false),
        };
        Ok((at, introductions))
    }
}

/// A worker and what is done with what comes there.
pub(crate) struct At {
    worker: Arc<Worker>,
    serving: Arc<Shared>,
    stop: AtomicBool,
}

impl At {
    /// Serves until told to stop.
    ///
    /// # Errors
    /// [`Status`] of what concerns more than one PE.
    pub(crate) fn serve(&self) -> Result<(), Status> {
        while !self.stop.load(Ordering::Acquire) {
            let progressed = self.worker.progress();
            let served = lock(&self.serving).serve_those_that_came();
            if !progressed && !served {
                self.worker.sleep(NAP)?;
            }
        }
        Ok(())
    }

    /// Lets [`serve`](Self::serve) end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        // Without it, it looks at the end of its nap.
        let _ = self.worker.wake();
    }
}

impl Serving {
    /// Takes what has come, if it is from a guest.
    fn receive(&mut self, message: Message<'_>) {
        let Some((head, _)) = unread(message.header).and_then(Head::parse) else {
            return;
        };
        let length = match &message.data {
            Data::Here(body) => body.len(),
            Data::There(rendezvous) => rendezvous.length(),
        };
        let Some(guest) = self.guests.get(&head.from).filter(|guest| !guest.dismissed) else {
            return;
        };
        if !is_from(guest.session, MESSAGE, message.header, length) || !self.agent.is_new(&head) {
            tracing::warn!("dropped a message that PE {} has not sent", head.from);
            return;
        }
        match message.data {
            Data::Here(body) => self.take(head, body),
            Data::There(_) if length > self.agent.longest_message() => {
                self.dismiss(head.from, &format!("a message of {length} bytes"));
            }
            Data::There(rendezvous) => match rendezvous.receive() {
                Ok(receive) => self.coming.push((head, receive)),
                Err(error) => self.dismiss(head.from, &error.to_string()),
            },
        }
    }

    /// Whether there were any.
    fn serve_those_that_came(&mut self) -> bool {
        let coming = std::mem::take(&mut self.coming);
        let before = coming.len();
        for (head, mut receive) in coming {
            match receive.poll() {
                Ok(None) => self.coming.push((head, receive)),
                Ok(Some(body)) => self.take(head, &body),
                // Its sender is gone, which whoever watches it has noticed.
                Err(_) => {}
            }
        }
        self.coming.len() < before
    }

    fn take(&mut self, head: Head, body: &[u8]) {
        let Some(guest) = self.guests.get(&head.from) else {
            return;
        };
        let host = (self.agent.host() as u64).to_le_bytes();
        let mut reply = |reply: &Reply, fetched: &[u8]| {
            let sealed = seal(guest.session, REPLY, &[&host, reply.bytes()], fetched.len());
            // A guest that is gone needs no reply. What is under way the worker goes on with.
            drop(guest.endpoint.send(REPLY, &sealed, fetched, Protocol::Any));
        };
        if let Err(error) = self.agent.take(head.from as usize, head, body, &mut reply) {
            self.dismiss(head.from, &error.to_string());
        }
    }

    fn dismiss(&mut self, pe: u32, why: &str) {
        tracing::error!("PE {pe} of another host: {why}");
        self.agent.give_up_on(pe as usize);
        if let Some(guest) = self.guests.get_mut(&pe) {
            guest.dismissed = true;
        }
    }
}

/// Hears at the agent's TCP port who PEs are.
pub(crate) struct Introductions {
    worker: Arc<Worker>,
    serving: Arc<Shared>,
}

impl Hears for Introductions {
    fn longest_message(&self) -> usize {
        LONGEST_INTRODUCTION
    }

    fn hear(
        &mut self,
        (pe, session): (u32, Key),
        message: &[u8],
        reply: &mut dyn FnMut(&[&[u8]]),
    ) -> Result<(), String> {
        let theirs = Introduction::parse(message);
        let theirs = theirs.ok_or("it does not introduce itself as PEs do")?;
        let mut ours = Introduction::of(&self.worker);
        if theirs.version != ours.version {
            ours.address.clear();
            reply(&[&ours.bytes()]);
            return Ok(());
        }
        if lock(&self.serving).guests.contains_key(&pe) {
            return Err("it introduces itself twice".into());
        }
        // SAFETY: a PE that has proven that it knows the job's key says so, of a library of this version.
        let endpoint = unsafe { Endpoint::connect(&self.worker, &theirs.address) };
        let guest = Guest {
            session,
            endpoint: endpoint.map_err(|error| error.to_string())?,
            dismissed: false,
        };
        // Only this thread adds guests.
        lock(&self.serving).guests.insert(pe, guest);
        reply(&[&ours.bytes()]);
        Ok(())
    }

    fn give_up_on(&mut self, pe: u32) {
        lock(&self.serving).agent.give_up_on(pe as usize);
    }
}

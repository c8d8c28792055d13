//! An engine for tests: hosts that are threads of one process, over a network that delays, reorders and loses
//! acknowledgements.
//!
//! A world of threads is cut into hosts by [`FAKE_HOSTS`](crate::world::config::FAKE_HOSTS). PEs of different hosts
//! have none of each other's memory mapped, so whatever reaches a PE of another host has gone through messages and an
//! agent.

use crate::transport::agent::Agent;
use crate::transport::engine::{Engine, EngineError};
use crate::transport::message::Reply;
use crate::transport::network::NetworkError;
use crate::transport::tcp::key::Key;
use crate::transport::tcp::server::{Server, Stop};
use crate::world::config;
use crate::world::mapped::Mapped;
use std::collections::VecDeque;
use std::net::SocketAddr;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};
use thiserror::Error;

/// A message is delayed for less than this.
const MOST_DELAY: Duration = Duration::from_micros(100);
/// One message in so many is delayed.
const DELAYED: u64 = 16;
/// One acknowledgement in so many gets lost. Whoever does not get it sends again, so what it was for comes twice: a
/// message to the agent, a reply to the PE.
const LOST: u64 = 16;
/// What is sent again is sent after this, or somewhat later.
const AGAIN: Duration = Duration::from_micros(200);

/// What is on its way.
#[derive(Clone)]
enum Way {
    /// From a PE to the agent.
    Message(usize, Vec<u8>),
    /// From the agent to a PE.
    Reply(usize, Vec<u8>),
}

/// Replies on their way to a PE.
#[derive(Default)]
pub(crate) struct Mailbox {
    replies: Mutex<VecDeque<Vec<u8>>>,
    came: Condvar,
}

impl Mailbox {
    fn deliver(&self, reply: Vec<u8>) {
        self.replies().push_back(reply);
        self.came.notify_all();
    }

    fn replies(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        // A queue is whole whenever the lock is free.
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The network of a world.
pub(crate) enum Network {
    /// Queues between threads.
    Queues {
        agents: Vec<Sender<(usize, Vec<u8>)>>,
        mailboxes: Arc<[Mailbox]>,
    },
    /// As between real hosts. Agents end when the network is dropped.
    Real {
        network: config::Network,
        key: Key,
        addresses: Vec<SocketAddr>,
        _stop: Vec<Stop>,
    },
}

/// A network did not start.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    /// What the system says of a thread, or a socket.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// It can't be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// One PE's way into it.
struct Port {
    agents: Vec<Sender<(usize, Vec<u8>)>>,
    mailboxes: Arc<[Mailbox]>,
    me: usize,
}

impl Network {
    /// Starts an agent for each of `worlds`, the memory of each host; they talk over `real`, or over queues. They end
    /// with the network and all its ports.
    ///
    /// # Errors
    /// [`StartError`].
    pub(crate) fn start<'scope>(
        worlds: &[Arc<Mapped>],
        real: Option<config::Network>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Self, StartError> {
        let agents = worlds.iter().enumerate();
        let agents = agents.map(|(host, world)| Agent::new(Arc::clone(world), host));
        let thread = |host| std::thread::Builder::new().name(format!("agent {host}"));
        if let Some(network) = real {
            let key = Key::random()?;
            let (mut addresses, mut stops) = (Vec::new(), Vec::new());
            for (host, agent) in agents.enumerate() {
                let serves = network.serves()?;
                let server = Server::listen(SocketAddr::from(([127, 0, 0, 1], 0)), key)?;
                addresses.push(server.address()?);
                stops.push(server.stop());
                let serve = move || {
                    let served = serves.serve(server, agent, drop);
                    served.unwrap_or_else(|error| panic!("an agent can't go on: {error}"));
                };
                thread(host).spawn_scoped(scope, serve)?;
            }
            return Ok(Self::Real {
                network,
                key,
                addresses,
                _stop: stops,
            });
        }
        let n_pes = worlds.first().map_or(0, |world| world.control.n_pes());
        let mailboxes: Arc<[Mailbox]> = (0..n_pes).map(|_| Mailbox::default()).collect();
        let mut senders = Vec::new();
        for (host, agent) in agents.enumerate() {
            let (sender, receiver) = channel();
            let (mailboxes, seed) = (Arc::clone(&mailboxes), host as u64 + 1);
            let serve = move || serve(agent, receiver, &mailboxes, seed);
            thread(host).spawn_scoped(scope, serve)?;
            senders.push(sender);
        }
        Ok(Self::Queues {
            agents: senders,
            mailboxes,
        })
    }

    /// The way of PE `me`.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub(crate) fn port(&self, me: usize) -> Result<Box<dyn Engine>, NetworkError> {
        Ok(match self {
            Self::Queues { agents, mailboxes } => Box::new(Port {
                agents: agents.clone(),
                mailboxes: Arc::clone(mailboxes),
                me,
            }),
            Self::Real {
                network,
                key,
                addresses,
                ..
            } => network.port(me, *key, addresses)?,
        })
    }
}

/// How many messages came twice, replies late, and replies twice, in all worlds of the process.
#[cfg(test)]
static LOSSES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Counts one of [`LOSSES`], for tests.
fn count(_which: usize) {
    #[cfg(test)]
    LOSSES[_which].fetch_add(1, Ordering::Relaxed);
}

/// Serves what comes, in random order, until nobody can send any more.
fn serve(mut agent: Agent, receiver: Receiver<(usize, Vec<u8>)>, mailboxes: &[Mailbox], seed: u64) {
    let mut random = Random(seed);
    let mut waiting: Vec<(Instant, Way)> = Vec::new();
    let mut open = true;
    while open || !waiting.is_empty() {
        let next = waiting.iter().map(|(due, _)| *due).min();
        let patience = next.map_or(Duration::from_secs(1), |due| {
            due.saturating_duration_since(Instant::now())
        });
        let mut first = match receiver.recv_timeout(patience) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                open = false;
                std::thread::sleep(patience.min(MOST_DELAY));
                None
            }
        };
        let now = Instant::now();
        while let Some((from, message)) = first.take().or_else(|| receiver.try_recv().ok()) {
            let message = Way::Message(from, message);
            if random.below(LOST) == 0 {
                count(0);
                waiting.push((now + random.again(), message.clone()));
            }
            let delay = match random.below(DELAYED) {
                0 => random.duration(MOST_DELAY),
                _ => Duration::ZERO,
            };
            waiting.push((now + delay, message));
        }
        let (mut due, later): (Vec<_>, Vec<_>) =
            waiting.drain(..).partition(|&(due, _)| due <= now);
        waiting = later;
        while !due.is_empty() {
            let (from, message) = match due.swap_remove(random.below(due.len() as u64) as usize).1 {
                Way::Message(from, message) => (from, message),
                Way::Reply(to, reply) => {
                    mailboxes[to].deliver(reply);
                    continue;
                }
            };
            let mut reply = |head: &Reply, body: &[u8]| {
                let reply = [head.bytes(), body].concat();
                // The reply is itself an acknowledgement, and has one: either may be what is lost.
                let lost = random.below(LOST);
                if lost < 2 {
                    count(if lost == 0 { 1 } else { 2 });
                    let again = Way::Reply(from, reply.clone());
                    waiting.push((now + random.again(), again));
                }
                if lost != 0 {
                    mailboxes[from].deliver(reply);
                }
            };
            if let Err(error) = agent.serve(from, &message, &mut reply) {
                panic!("the agent got {error}");
            }
        }
    }
}

impl Engine for Port {
    fn send(&self, host: usize, head: &[u8], body: &[u8]) -> Result<(), EngineError> {
        let sent = self.agents[host].send((self.me, [head, body].concat()));
        sent.map_err(|_| EngineError::Unreachable {
            host,
            reason: "its agent has ended".into(),
        })
    }

    fn progress(&self, deliver: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        loop {
            let Some(reply) = self.mailboxes[self.me].replies().pop_front() else {
                return Ok(());
            };
            deliver(&reply);
        }
    }

    fn sleep(&self, limit: Duration) {
        let mailbox = &self.mailboxes[self.me];
        let replies = mailbox.replies();
        if replies.is_empty() {
            // Whoever is woken looks again; another thread may have taken what came.
            drop(
                mailbox
                    .came
                    .wait_timeout(replies, limit.min(Duration::from_millis(1))),
            );
        }
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Shorter than `most`.
    fn duration(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.below(most.as_nanos() as u64))
    }

    /// How long after the first time something is sent again.
    fn again(&mut self) -> Duration {
        AGAIN + self.duration(AGAIN)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ThreadWorld;

    /// A message that comes again is not done again, and a reply that comes again, or late, is that to its own question.
    #[test]
    fn what_comes_twice_is_done_once() {
        const TIMES: u64 = 2000;
        let sums = ThreadWorld::new(2).heap_bytes(1 << 20).fake_hosts("2");
        let sums = sums.spmd(|pe| {
            let words = pe.alloc_zeroed::<u64>(2).unwrap();
            let there = 1 - pe.my_pe();
            for i in 0..TIMES {
                assert_eq!(pe.atomic_fetch_add(words.at(0), 1, there), i);
                pe.atomic_add(words.at(1), 1, there);
            }
            pe.barrier().unwrap();
            let mut sums = [0; 2];
            pe.read(&mut sums, &words);
            pe.free(words).unwrap();
            sums
        });
        assert_eq!(sums.unwrap(), [[TIMES; 2]; 2]);
        for (losses, what) in LOSSES
            .iter()
            .zip(["messages twice", "replies late", "replies twice"])
        {
            assert_ne!(losses.load(Ordering::Relaxed), 0, "{what}");
        }
    }
}

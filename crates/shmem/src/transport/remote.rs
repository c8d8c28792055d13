//! What a PE has sent to other hosts, and what it waits for from there. The verbs are in
//! [`crate::verbs::raw::remote`].

pub(crate) mod answers;
pub(crate) mod combined;

use crate::transport::engine::{Engine, EngineError};
use crate::transport::message::{Head, Kind, Part, Reply};
use crate::transport::remote::answers::{Answers, Place};
use crate::transport::remote::combined::{Combined, SMALL, Watch};
use crate::wait::waiter::Unsent;
use crate::world::mapped::Mapped;
use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use thiserror::Error;

/// What was put may not have arrived.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeliveryError {
    /// A PE failed, and with it the world.
    #[error("PE {pe} failed: what PE {me} put may not have arrived")]
    PeerFailed {
        /// The PE that put.
        me: usize,
        /// The PE that failed.
        pe: usize,
    },
    /// Another host can't be reached.
    #[error(
        "the host of PE {pe} can't be reached ({reason}): what PE {me} put may not have arrived"
    )]
    Unreachable {
        /// The PE that put.
        me: usize,
        /// The first PE of the host.
        pe: usize,
        /// Why.
        reason: String,
    },
}

/// A PE's dealings with other hosts; they end when it is dropped.
pub(crate) struct Remote(Arc<Wire>);

/// What it shares with its [watch](crate::transport::remote::combined).
pub(crate) struct Wire {
    pub(crate) engine: Box<dyn Engine>,
    world: Arc<Mapped>,
    me: usize,
    state: Mutex<State>,
    /// Hosts for which something is combined. Changed under the lock of the state.
    waiting: AtomicUsize,
    /// Wakes the watch.
    pub(crate) wake: Condvar,
    pub(crate) lost: OnceLock<DeliveryError>,
}

/// See [`Wire::state`].
#[derive(Default)]
pub(crate) struct State {
    pub(crate) last_token: u64,
    /// Replies that are waited for, and those of them that have come.
    pub(crate) replies: HashMap<u64, Option<Vec<u8>>>,
    /// Replies that only a quiet waits for.
    pub(crate) answers: Answers,
    pub(crate) channels: Vec<Channel>,
    pub(crate) watch: Watch,
}

/// What has been sent to one host.
#[derive(Default)]
pub(crate) struct Channel {
    /// Number of the last message.
    sent: u64,
    /// The last one before the last fence.
    fenced: u64,
    /// The last one that a quiet has to complete: one that changes memory, and has no reply.
    outstanding: u64,
    /// All up to this one are known to be done.
    done: u64,
    /// Puts and questions that have not been sent.
    pub(crate) combined: Combined,
}

impl Channel {
    /// Fills in number and order of the next message: after all that was sent before, or what was sent before the last
    /// fence. `fenced`: a fence has come since the first of the combined puts in it.
    fn number(&mut self, head: &mut Head, all_before: bool, fenced: bool) {
        head.after = if all_before { self.sent } else { self.fenced };
        self.sent += 1;
        head.number = self.sent;
        let changes = matches!(head.kind(), Some(kind) if kind.changes_memory());
        // A PE waits for the reply to its atomic, but other threads of it do not.
        if (changes && head.token == 0) || head.combined != 0 {
            self.outstanding = self.sent;
        }
        // What comes after that fence has to come after the puts before it.
        if fenced {
            self.fenced = self.sent;
        }
    }

    /// Whether a quiet has anything to complete.
    pub(crate) fn is_quiet(&self) -> bool {
        self.outstanding <= self.done && self.combined.is_empty()
    }

    /// A message that came after all before it, of this number, is done.
    pub(crate) fn done(&mut self, number: u64) {
        self.done = self.done.max(number);
    }
}

impl Remote {
    /// PE `me`'s, of `world`, by way of `engine`.
    pub(crate) fn new(engine: Box<dyn Engine>, world: Arc<Mapped>, me: usize) -> Self {
        let mut state = State::default();
        state
            .channels
            .resize_with(world.hosts.n(), Channel::default);
        Self(Arc::new(Wire {
            engine,
            world,
            me,
            state: Mutex::new(state),
            waiting: AtomicUsize::new(0),
            wake: Condvar::new(),
            lost: OnceLock::new(),
        }))
    }

    pub(crate) fn wire(&self) -> &Arc<Wire> {
        &self.0
    }
}

impl Unsent for Remote {
    #[inline]
    fn send_waiting(&self) {
        if self.0.waiting() {
            self.0.send_all();
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.0.end_watch();
    }
}

impl Wire {
    /// What has been sent and asked.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // What is done under the lock does not panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is issued from now on is done after what was issued before, host by host.
    pub(crate) fn fence(&self) {
        for channel in &mut self.state().channels {
            channel.fenced = channel.sent;
            channel.combined.fence();
        }
    }

    /// Whether puts wait. Another thread's last one may be missed.
    #[inline]
    pub(crate) fn waiting(&self) -> bool {
        // Relaxed: what a thread has itself put it sees; nothing is read because of it that the lock does not guard.
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Has a put of at most [`SMALL`] bytes travel with others.
    pub(crate) fn put(self: &Arc<Self>, host: usize, part: Part, bytes: &[u8]) {
        let combined = self.combine(&mut self.state(), host, part, bytes);
        if !combined {
            let head = Head {
                pe: part.pe,
                position: part.position,
                ..Head::new(Kind::Put)
            };
            self.send(host, head, bytes, false);
        }
    }

    /// Asks for what goes to `place`; few bytes travel with others. The token is filled in.
    pub(crate) fn ask(self: &Arc<Self>, host: usize, head: Head, place: Place) {
        let mut head = head;
        let combined = {
            let mut state = self.state();
            state.last_token += 1;
            head.token = state.last_token;
            state.answers.expect(head.token, place);
            let (part, question) = Part::question(&head);
            let few = question.length <= SMALL as u64;
            few && self.combine(&mut state, host, part, bytemuck::bytes_of(&question))
        };
        if !combined {
            self.send(host, head, &[], true);
        }
    }

    /// Has `part` wait for others to travel with; false: it can't.
    fn combine(self: &Arc<Self>, state: &mut State, host: usize, part: Part, bytes: &[u8]) -> bool {
        let State {
            channels, watch, ..
        } = state;
        let combined = &mut channels[host].combined;
        let waits = self.begin_watch(watch) && combined.has_room(bytes.len());
        if waits {
            if combined.is_empty() {
                self.waiting.fetch_add(1, Ordering::Relaxed);
            }
            combined.push(part, bytes, watch.tick);
        }
        waits
    }

    /// Looks for replies.
    ///
    /// # Errors
    /// [`EngineError`]; some reply will not come any more.
    pub(crate) fn look(&self) -> Result<(), EngineError> {
        self.engine.progress(&mut |reply| {
            let Some((head, body)) = Reply::parse(reply) else {
                return;
            };
            let mut state = self.state();
            match state.replies.get_mut(&head.token) {
                Some(place) => *place = Some(reply.to_vec()),
                None => state.answers.deliver(&head, body),
            }
        })
    }

    /// Sends `head`, of which number, sender and order are filled in, and `body`; to be done after all that was
    /// sent there before, or what was sent before the last fence. Returns its number. What waits for `host` goes with it,
    /// or before it, and questions are asked after all that was sent before them.
    pub(crate) fn send(
        &self,
        host: usize,
        mut head: Head,
        body: &[u8],
        mut all_before: bool,
    ) -> u64 {
        head.from = self.me as u32;
        let (mut front, mut puts) = (Vec::new(), None);
        {
            let channel = &mut self.state().channels[host];
            let mut fenced = false;
            if !channel.combined.is_empty() {
                let asks;
                (front, fenced, asks) = channel.combined.take();
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                let combined = front.len() as u16;
                if body.len() <= SMALL {
                    head.combined = combined;
                    all_before |= asks;
                    front.extend_from_slice(body);
                } else {
                    let puts = puts.insert(Head {
                        from: head.from,
                        combined,
                        ..Head::new(Kind::Puts)
                    });
                    channel.number(puts, asks, mem::take(&mut fenced));
                }
            }
            channel.number(&mut head, all_before, fenced);
        }
        let (engine, mut sent) = (&self.engine, Ok(()));
        if let Some(puts) = puts {
            sent = engine.send(host, puts.bytes(), &front);
        }
        let body = if head.combined == 0 { body } else { &front };
        sent.and_then(|()| engine.send(host, head.bytes(), body))
            .unwrap_or_else(|error| self.lose(error));
        if front.capacity() != 0 {
            self.state().channels[host].combined.reuse(front);
        }
        head.number
    }

    /// Sends what waits, for all hosts.
    #[cold]
    pub(crate) fn send_all(&self) {
        for host in 0..self.world.hosts.n() {
            let waits = !self.state().channels[host].combined.is_empty();
            if waits {
                self.send(host, Head::new(Kind::Puts), &[], false);
            }
        }
    }

    /// Notes that `error` has kept something from being delivered, and ends the world for all PEs of this host.
    pub(crate) fn lose(&self, error: EngineError) {
        let EngineError::Unreachable { host, reason } = error;
        let (me, world) = (self.me, &self.world);
        let pe = world.hosts.members(host).next().unwrap_or(me);
        let lost = DeliveryError::Unreachable { me, pe, reason };
        // The first says why.
        let _ = self.lost.set(lost);
        world.control.end(pe, world.shared());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::transport::message::{Head, Kind};
    use crate::{CollectiveError, DeliveryError, Pe, SymRef, ThreadWorld, WaitError};

    /// Messages that it takes PE 0 to do this with a word of the other PE.
    fn messages_of(work: impl Fn(&Pe, SymRef<'_, u64>, usize) + Sync) -> u64 {
        let world = ThreadWorld::new(2).heap_bytes(1 << 20).fake_hosts("2");
        let sent = world.spmd(|pe| {
            let word = pe.alloc_zeroed::<u64>(1).unwrap();
            let sent = || match &pe.endpoint.remote {
                Some(remote) => remote.wire().state().channels[1 - pe.my_pe()].sent,
                None => panic!("two PEs on two hosts"),
            };
            let before = sent();
            work(pe, word.all(), 1 - pe.my_pe());
            pe.quiet().unwrap();
            let sent = sent() - before;
            pe.barrier().unwrap();
            pe.free(word).unwrap();
            sent
        });
        sent.unwrap()[0]
    }

    #[test]
    fn small_puts_travel_together() {
        let puts =
            |n| messages_of(move |pe, word, there| (0..n).for_each(|i| pe.p(word, i, there)));
        assert_eq!(puts(0), 0);
        assert!(puts(1) <= 2, "one with the quiet, at best");
        // The watch may send some early, but only one message each half a millisecond.
        let messages = puts(20_000);
        assert!(messages < 10_000, "{messages}");
    }

    #[test]
    fn questions_of_a_scope_travel_together() {
        let messages = messages_of(|pe, word, there| {
            let (mut got, mut old) = (vec![0; 10_000], vec![0; 10_000]);
            pe.scope(|ops| {
                for (got, old) in got.chunks_mut(1).zip(&mut old) {
                    ops.get(got, word, there);
                    ops.atomic_fetch_add(old, word, 1, there);
                }
                Ok::<_, DeliveryError>(())
            })
            .unwrap();
        });
        assert!((1..10_000).contains(&messages), "{messages}");
    }

    /// An agent that gets what no PE sends hears that PE no more. What the engine says of it stays said: by quiet, fence,
    /// scopes and waits, again and again.
    #[test]
    fn what_the_engine_says_is_not_forgotten() {
        let world = ThreadWorld::new(2).heap_bytes(1 << 20).fake_hosts("tcp:2");
        let said = world.spmd(|pe| {
            let word = pe.alloc_zeroed::<u64>(1).unwrap();
            if pe.my_pe() == 0 {
                let nowhere = Head {
                    pe: 1,
                    position: 1 << 40,
                    ..Head::new(Kind::Put)
                };
                let wire = pe.endpoint.remote.as_ref().unwrap().wire();
                wire.send(1, nowhere, &[1], false);
            }
            let all = (pe.my_pe() == 0).then(|| {
                let quiet = pe.quiet();
                let scope = pe.scope(|ops| {
                    ops.put(&word, &[1], 1);
                    Ok::<_, DeliveryError>(())
                });
                [quiet, pe.fence(), scope, pe.quiet()]
            });
            let waited = pe.wait_until(&word, crate::Cmp::Ne, 0);
            (all, waited, pe.barrier())
        });
        let said = said.unwrap();
        let (all, waited, met) = &said[0];
        let [first, others @ ..] = &all.as_ref().unwrap()[..] else {
            panic!("PE 0 had nothing to say: {said:?}");
        };
        // Who closes a connection on which there is something to read yet resets it.
        let closed = |reason: &str| {
            reason.ends_with("the agent has closed the connection")
                || reason.contains("Connection reset by peer")
        };
        let told = matches!(first, Err(DeliveryError::Unreachable { me: 0, pe: 1, reason }) if closed(reason));
        assert!(told, "{said:?}");
        assert!(others.iter().all(|other| other == first), "{said:?}");
        assert_eq!(
            met.clone(),
            first.clone().map_err(CollectiveError::Delivery),
            "{said:?}"
        );
        let ended =
            |waited: &Result<u64, WaitError>| matches!(waited, Err(WaitError::PeerFailed { .. }));
        assert!(ended(waited) && ended(&said[1].1), "{said:?}");
    }
}

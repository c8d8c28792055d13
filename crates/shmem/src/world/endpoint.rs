//! One PE's side of its world: all that the verbs need of it.
//!
//! The lowest of three storeys. On it stand the verbs over addresses (teams, [`raw`](crate::raw)), and on these the
//! handles of Rust programs ([`Pe`](crate::Pe), [`Sym`](crate::Sym), [`Context`](crate::Context)).

use crate::memory::allocator::Heap;
use crate::memory::region::Region;
use crate::memory::segment::Segments;
use crate::team::biased_lock::Turn;
use crate::team::indices::TeamIndices;
use crate::transport::courier::Courier;
use crate::transport::engine::Engine;
use crate::transport::hosts::Hosts;
use crate::transport::remote::{DeliveryError, Remote};
use crate::wait::sync;
use crate::wait::waiter::{Unsent, Waiter};
use crate::world::control::{Control, EndMark, PeControl, PeState};
use crate::world::mapped::{Mapped, Part, WorldKind};
use crate::world::membership::Membership;
use crate::world::ring::Ring;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A PE in its world: who it is, its peers and their memory, how it waits, and which blocks of its heap and which
/// team indices it has taken. Dropping it leaves the world.
pub(crate) struct Endpoint {
    world: Arc<Mapped>,
    me: usize,
    /// The way to PEs of other hosts, if there are any.
    pub(crate) remote: Option<Remote>,
    // Everything the fast paths need, without a walk through the Arc.
    peers: Box<[Peer]>,
    /// In the control memory; see [`Endpoint::end_mark`].
    end_mark: NonNull<EndMark>,
    /// This PE's own heap: where it begins, as a number, and how long every heap is.
    heap_start: usize,
    heap_bytes: usize,
    pub(crate) segments: Segments,
    heap: Mutex<Heap>,
    team_indices: Mutex<TeamIndices>,
    /// See [`crate::team::biased_lock`].
    pub(crate) gate: sync::Mutex<()>,
    /// Of the threads that make teams of active sets.
    pub(crate) handshakes: Turn,
}

/// What the fast paths need of one PE.
pub(crate) struct Peer {
    /// Its heap.
    pub(crate) heap: Piece,
    /// Its part of the first registered segment.
    pub(crate) segment: Piece,
    control: NonNull<PeControl>,
}

/// What is mapped here of a PE's symmetric memory. Nothing is where the PE is on another host, so that one comparison says
/// whether there is a place here for a byte.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    start: NonNull<u8>,
    bytes: usize,
}

/// At least as strictly as any element.
#[repr(align(4096))]
struct Aligned;

impl Piece {
    pub(crate) const NONE: Self = Self {
        start: NonNull::<Aligned>::dangling().cast(),
        bytes: 0,
    };

    /// `bytes` bytes mapped from `start` on, if they are.
    pub(crate) fn new(start: Option<NonNull<u8>>, bytes: usize) -> Self {
        start.map_or(Self::NONE, |start| Self { start, bytes })
    }

    /// Where it begins, if there is any of it.
    #[inline(always)]
    pub(crate) fn start(&self) -> Option<NonNull<u8>> {
        self.is_mapped().then_some(self.start)
    }

    #[inline(always)]
    pub(crate) fn is_mapped(&self) -> bool {
        self.bytes != 0
    }

    /// Its byte `offset`, with `bytes` of them from there on.
    ///
    /// Not an `Option<NonNull<_>>`: the compiler would test for null again after the addition.
    #[inline(always)]
    pub(crate) fn at(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let fits = offset < self.bytes && bytes <= self.bytes - offset;
        // SAFETY: inside the mapping.
        #[allow(unsafe_code)]
        fits.then(|| unsafe { self.start.as_ptr().add(offset) })
    }

    /// The same for bytes that end before `end`, of which there may be none: also at the piece's own end.
    ///
    /// # Safety
    /// `offset` is not beyond `end`.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn before(&self, offset: usize, end: usize) -> Option<*mut u8> {
        // SAFETY: inside the mapping, or its end.
        (end <= self.bytes).then(|| unsafe { self.start.as_ptr().add(offset) })
    }
}

impl Peer {
    #[inline(always)]
    pub(crate) fn control(&self) -> &PeControl {
        // SAFETY: points into the control memory, which the `Endpoint` that owns this `Peer` keeps mapped;
        // `Control::pe` says why it may be shared.
        #[allow(unsafe_code)]
        unsafe {
            self.control.as_ref()
        }
    }
}

// The base addresses point into `world.heaps`, which this handle keeps alive; what may be done with
// them is argued where it is done.
#[allow(unsafe_code)]
// SAFETY: `NonNull`s are the only fields that are not Send by themselves, and the mappings they point into
// belong to no thread.
unsafe impl Send for Endpoint {}
#[allow(unsafe_code)]
// SAFETY: through `&Endpoint` the addresses are only used for the raw and atomic accesses of `rma` and
// `atomic`, which allow for concurrent use, and the marks of the control memory are atomics.
unsafe impl Sync for Endpoint {}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PE {} of {} ({:?})", self.me, self.n_pes(), self.kind())
    }
}

impl Endpoint {
    /// `engine`: the way to the agents of other hosts, if there are any.
    pub(crate) fn join(world: Arc<Mapped>, me: usize, engine: Option<Box<dyn Engine>>) -> Self {
        let control = world.control.pe(me);
        control.set_pid(std::process::id());
        control.set_state(PeState::Joined);
        let bases = world
            .heaps
            .iter()
            .map(|heap| heap.as_ref().map(Region::base));
        let peers = bases.enumerate();
        let peers = peers.map(|(pe, heap)| Peer {
            heap: Piece::new(heap, world.heap_bytes),
            segment: Piece::NONE,
            control: NonNull::from(world.control.pe(pe)),
        });
        Self {
            me,
            peers: peers.collect(),
            remote: engine.map(|engine| Remote::new(engine, Arc::clone(&world), me)),
            heap_start: own_heap(&world, me).base().addr().get(),
            end_mark: NonNull::from(world.control.end_mark()),
            heap_bytes: world.heap_bytes,
            segments: Segments::default(),
            heap: Mutex::new(Heap::new(world.heap_bytes)),
            team_indices: Mutex::default(),
            gate: sync::Mutex::new(()),
            handshakes: Turn::default(),
            world,
        }
    }

    /// This PE's number, from 0.
    #[inline(always)]
    pub(crate) fn my_pe(&self) -> usize {
        self.me
    }

    /// Number of PEs in the world.
    #[inline(always)]
    pub(crate) fn n_pes(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn kind(&self) -> WorldKind {
        self.world.kind
    }

    /// Bytes of each PE's symmetric heap.
    #[inline(always)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// After how long waits give up; `None`: never.
    pub(crate) fn wait_timeout(&self) -> Option<Duration> {
        self.world.patience.timeout
    }

    pub(crate) fn membership(&self) -> Membership {
        Membership::new(&self.world, self.me)
    }

    /// See [`Courier`]; `None` in a world of one host.
    pub(crate) fn courier(&self) -> Option<Courier> {
        let wire = Arc::clone(self.remote.as_ref()?.wire());
        Some(Courier::new(Arc::clone(&self.world), wire, self.me))
    }

    pub(crate) fn control(&self) -> &Control {
        &self.world.control
    }

    /// The socket to the launcher, in a world of several hosts.
    pub(crate) fn launcher(&self) -> Option<BorrowedFd<'_>> {
        self.world.launcher.as_ref().map(OwnedFd::as_fd)
    }

    /// Lets the agent of this host, a thread of this process, reach a segment of this PE.
    pub(crate) fn add_part(&self, part: Part) {
        self.world.add_part(part);
    }

    /// Who is on which host.
    pub(crate) fn hosts(&self) -> &Hosts {
        &self.world.hosts
    }

    pub(crate) fn shared(&self) -> bool {
        self.world.shared()
    }

    pub(crate) fn ring(&self) -> Option<&Ring> {
        self.world.ring.as_ref()
    }

    /// Panics if `pe` does not exist.
    #[inline(always)]
    pub(crate) fn peer(&self, pe: usize) -> &Peer {
        match self.peers.get(pe) {
            Some(peer) => peer,
            None => no_such_pe(pe, self.n_pes()),
        }
    }

    pub(crate) fn peers_mut(&mut self) -> &mut [Peer] {
        &mut self.peers
    }

    /// Where this PE's own heap begins.
    #[inline(always)]
    pub(crate) fn heap_start(&self) -> usize {
        self.heap_start
    }

    pub(crate) fn waiter(&self) -> Waiter<'_> {
        Waiter {
            control: self.control(),
            me: self.me,
            shared: self.shared(),
            patience: self.world.patience,
            unsent: self.remote.as_ref().map(|remote| remote as &dyn Unsent),
        }
    }

    /// Sends puts that wait for others: this PE looks for what may depend on them.
    #[inline]
    pub(crate) fn send_waiting(&self) {
        if let Some(remote) = &self.remote {
            remote.send_waiting();
        }
    }

    pub(crate) fn heap(&self) -> MutexGuard<'_, Heap> {
        // The heap's own operations do not panic half-way.
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn team_indices(&self) -> MutexGuard<'_, TeamIndices> {
        // Nor do those of the indices.
        self.team_indices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders what this PE has issued to each other PE.
    #[inline(always)]
    pub(crate) fn fence(&self) {
        // Release keeps every earlier access before every later store, for all observers of a
        // cache-coherent machine. The C library ends copies made with non-temporal stores by a
        // store fence of its own.
        fence(Ordering::Release);
        if let Some(remote) = &self.remote {
            remote.wire().fence();
        }
    }

    /// Completes what this PE has issued.
    #[inline(always)]
    pub(crate) fn quiet(&self) {
        // SeqCst, not Release: a get issued after must not be served before the puts have left the
        // store buffer (two PEs that each put, quiet and get must not both miss the other's put).
        fence(Ordering::SeqCst);
        if self.remote.is_some() {
            self.remote_quiet();
        }
    }

    #[inline(always)]
    fn end_mark(&self) -> &EndMark {
        // SAFETY: points into the control memory, which `world` keeps mapped at its place as long as this `Endpoint`
        // lives; an atomic, which may be shared (`Control::header`).
        #[allow(unsafe_code)]
        unsafe {
            self.end_mark.as_ref()
        }
    }

    /// Whether what is issued can arrive: a PE that has failed takes its memory with it.
    #[inline(always)]
    pub(crate) fn can_deliver(&self) -> Result<(), DeliveryError> {
        match self.end_mark().ended_by() {
            None => Ok(()),
            Some(pe) => Err(self.undelivered(pe)),
        }
    }

    /// Why what this PE put may not have arrived, now that the world has been ended in the name of `pe`.
    #[cold]
    fn undelivered(&self, pe: usize) -> DeliveryError {
        let remote = self.remote.as_ref();
        let lost = remote.and_then(|remote| remote.wire().lost.get());
        let failed = DeliveryError::PeerFailed { me: self.me, pe };
        lost.cloned().unwrap_or(failed)
    }

    /// See [`Pe::leave`](crate::Pe::leave).
    pub(crate) fn leave(&self) {
        // 1. Complete what this PE has put: its peers go on using their heaps.
        self.quiet();
        // 2. Say how it left. A panicking PE has failed, and its peers with it; otherwise only those
        //    who wait for this PE in particular get an error.
        let mine = self.control().pe(self.me);
        if mine.state() != PeState::Joined {
            return;
        }
        if self.remote.is_some() {
            self.remote_leave(std::thread::panicking());
        }
        if std::thread::panicking() {
            mine.set_state(PeState::Failed);
            self.control().end(self.me, self.shared());
        } else {
            mine.set_state(PeState::Finished);
            // 3. Wake sleepers, so that whoever waits for this PE learns that it will not come.
            self.control().wake_all(self.shared());
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.leave();
    }
}

fn own_heap(world: &Mapped, me: usize) -> &Region {
    let heap = world.heaps[me].as_ref();
    heap.expect("a PE joins where its heap is mapped")
}

#[cold]
fn no_such_pe(pe: usize, n: usize) -> ! {
    // C's negative numbers come as very large ones.
    let pe = pe as isize;
    panic!("PE {pe} does not exist in a world of {n}");
}

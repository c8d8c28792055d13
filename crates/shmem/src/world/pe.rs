//! One PE's handle on its world.

use crate::memory::allocator::Heap;
use crate::memory::region::Region;
use crate::memory::segment::Segments;
use crate::memory::symmetric::SymRef;
use crate::team::Seats;
use crate::team::turn::Turn;
use crate::wait::sync;
use crate::wait::waiter::{Patience, Waiter};
use crate::world::control::{Control, PeControl, PeState};
use crate::world::ring::Ring;
use bytemuck::Pod;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the PEs of a world are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorldKind {
    /// Threads of this process.
    Threads,
    /// Processes of one host, started by the launcher.
    Processes,
}

/// How a program may use its threads, as OpenSHMEM names it; each allows what those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum ThreadLevel {
    /// There is one thread.
    Single,
    /// Only the thread that joined the world uses it.
    Funneled,
    /// All threads may use it, one at a time.
    Serialized,
    /// All threads may use it at any time.
    Multiple,
}

/// The version of the OpenSHMEM specification that names and meanings follow.
pub const SPECIFICATION: (u32, u32) = (1, 5);

/// A world as seen from one process: the control memory and every PE's heap, mapped.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) control: Control,
    pub(crate) heaps: Vec<Region>,
    pub(crate) heap_bytes: usize,
    pub(crate) kind: WorldKind,
    pub(crate) patience: Patience,
    /// Sockets to the neighbours; only worlds of processes have them.
    pub(crate) ring: Option<Ring>,
}

impl Mapped {
    /// Whether other processes share the memory.
    pub(crate) fn shared(&self) -> bool {
        self.kind == WorldKind::Processes
    }
}

/// This PE in its world: who it is, its heap, and all the verbs.
///
/// Made by [`spmd`](crate::spmd) (one per thread) or [`init`](crate::init) (one per process); leaving
/// the world is dropping it. All methods take `&self` and may be called from several threads of the
/// PE, except that the collectives of a team must be called by one thread at a time, in the same order on all
/// PEs; a second thread gets [`CollectiveError::Busy`](crate::CollectiveError::Busy).
///
/// ```
/// let squares = crosswarp_shmem::spmd(3, |pe| pe.my_pe() * pe.my_pe()).unwrap();
/// assert_eq!(squares, [0, 1, 4]);
/// ```
pub struct Pe {
    world: Arc<Mapped>,
    me: usize,
    // Everything the fast paths need, without a walk through the Arc.
    peers: Box<[Peer]>,
    /// This PE's own heap: where it begins, as a number, and how long every heap is.
    heap_start: usize,
    heap_bytes: usize,
    pub(crate) segments: Segments,
    heap: Mutex<Heap>,
    seats: Mutex<Seats>,
    /// See [`crate::team::turn`].
    pub(crate) gate: sync::Mutex<()>,
    /// Of the threads that make teams of active sets.
    pub(crate) handshakes: Turn,
}

/// Who of a world is still there, as one PE sees it. It keeps the world's memory mapped and does not need the
/// [`Pe`], so a thread may look at it for as long as it likes.
#[derive(Clone, Debug)]
pub struct Membership {
    world: Arc<Mapped>,
    me: usize,
}

impl Membership {
    /// Number of the PE that looks.
    pub fn my_pe(&self) -> usize {
        self.me
    }

    /// Number of PEs in the world.
    pub fn n_pes(&self) -> usize {
        self.world.control.n_pes()
    }

    /// A PE that has failed, and with it the world.
    pub fn failed(&self) -> Option<usize> {
        self.world.control.ended_by()
    }

    /// Whether `pe` has left the world in good order. Panics if it does not exist.
    pub fn has_left(&self, pe: usize) -> bool {
        self.world.control.pe(pe).state() == PeState::Finished
    }
}

/// What the fast paths need of one PE.
pub(crate) struct Peer {
    /// Its heap.
    pub(crate) heap: NonNull<u8>,
    /// Its part of the first registered segment; means nothing before one is registered.
    pub(crate) segment: NonNull<u8>,
    control: NonNull<PeControl>,
}

impl Peer {
    #[inline(always)]
    pub(crate) fn control(&self) -> &PeControl {
        // SAFETY: points into the control memory, which the `Pe` that owns this `Peer` keeps mapped;
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
// SAFETY: `NonNull` is the only field that is not Send by itself, and the mappings it points into
// belong to no thread.
unsafe impl Send for Pe {}
#[allow(unsafe_code)]
// SAFETY: through `&Pe` the addresses are only used for the raw and atomic accesses of `rma` and
// `atomic`, which allow for concurrent use.
unsafe impl Sync for Pe {}

impl fmt::Debug for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PE {} of {} ({:?})", self.me, self.n_pes(), self.kind())
    }
}

impl Pe {
    pub(crate) fn join(world: Arc<Mapped>, me: usize) -> Self {
        let control = world.control.pe(me);
        control.set_pid(std::process::id());
        control.set_state(PeState::Joined);
        let peers = world.heaps.iter().map(Region::base).enumerate();
        let peers = peers.map(|(pe, heap)| Peer {
            heap,
            segment: heap,
            control: NonNull::from(world.control.pe(pe)),
        });
        Self {
            me,
            peers: peers.collect(),
            heap_start: world.heaps[me].base().addr().get(),
            heap_bytes: world.heap_bytes,
            segments: Segments::default(),
            heap: Mutex::new(Heap::new(world.heap_bytes)),
            seats: Mutex::default(),
            gate: sync::Mutex::new(()),
            handshakes: Turn::default(),
            world,
        }
    }

    /// This PE's number, from 0.
    #[inline]
    pub fn my_pe(&self) -> usize {
        self.me
    }

    /// Number of PEs in the world.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.peers.len()
    }

    /// Whether the PEs are threads or processes.
    pub fn kind(&self) -> WorldKind {
        self.world.kind
    }

    /// What threads may do with this handle: always [`ThreadLevel::Multiple`], by its type.
    pub fn thread_level(&self) -> ThreadLevel {
        ThreadLevel::Multiple
    }

    /// Whether PE `pe` exists and can be reached: then its whole heap can.
    pub fn pe_accessible(&self, pe: usize) -> bool {
        pe < self.n_pes()
    }

    /// Where this process can load and store `pe`'s copy of `object`; what a race leaves is unspecified.
    ///
    /// # Panics
    /// If `pe` does not exist.
    pub fn ptr<'a, T: Pod>(&self, object: impl Into<SymRef<'a, T>>, pe: usize) -> *mut T {
        self.address(object.into(), pe)
    }

    /// Bytes of each PE's symmetric heap.
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// After how long waits give up; `None`: never.
    pub fn wait_timeout(&self) -> Option<Duration> {
        self.world.patience.timeout
    }

    /// The lives of the PEs, for a thread that watches them.
    pub fn membership(&self) -> Membership {
        Membership {
            world: Arc::clone(&self.world),
            me: self.me,
        }
    }

    pub(crate) fn control(&self) -> &Control {
        &self.world.control
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

    /// Wakes `pe` if it sleeps until something in `object` changes; called after every store there.
    #[inline(always)]
    pub(crate) fn notify<T: Pod>(&self, object: SymRef<'_, T>, pe: usize) {
        let (start, end) = (
            object.offset(),
            object.offset() + object.len() * size_of::<T>(),
        );
        let parker = &self.peer(pe).control().parker;
        parker.notify_store(start, end, self.shared());
    }

    pub(crate) fn waiter(&self) -> Waiter<'_> {
        Waiter {
            control: self.control(),
            me: self.me,
            shared: self.shared(),
            patience: self.world.patience,
        }
    }

    pub(crate) fn heap(&self) -> MutexGuard<'_, Heap> {
        // The heap's own operations do not panic half-way.
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seats(&self) -> MutexGuard<'_, Seats> {
        // Nor do those of the seats.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cold]
fn no_such_pe(pe: usize, n: usize) -> ! {
    // C's negative numbers come as very large ones.
    let pe = pe as isize;
    panic!("PE {pe} does not exist in a world of {n}");
}

impl Pe {
    /// Leaves the world: completes this PE's puts and tells the others not to wait for it. The memory stays
    /// mapped while the handle lives, but nothing collective may follow. Dropping the handle does the same;
    /// a second time does nothing.
    pub fn leave(&self) {
        // 1. Complete what this PE has put: its peers go on using their heaps.
        self.quiet();
        // 2. Say how it left. A panicking PE has failed, and its peers with it; otherwise only those
        //    who wait for this PE in particular get an error.
        let mine = self.control().pe(self.me);
        if mine.state() != PeState::Joined {
            return;
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

    /// Asks the launcher to end all PEs, whatever they are doing, when this process ends, and to report
    /// `status` as the exit code of the run.
    pub fn announce_exit(&self, status: i32) {
        self.control().announce_exit(status);
    }

    /// Ends all PEs, whatever they are doing; the run's exit code is `status`, which may be 0. A world of
    /// threads ends with its process.
    pub fn global_exit(&self, status: i32) -> ! {
        self.announce_exit(status);
        std::process::exit(status)
    }
}

impl Drop for Pe {
    fn drop(&mut self) {
        self.leave();
    }
}

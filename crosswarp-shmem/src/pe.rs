//! One PE's handle on its world.

use crate::alloc::Book;
use crate::collective::Team;
use crate::control::{Control, Life};
use crate::fds::Ring;
use crate::region::Region;
use crate::symmetric::SymRef;
use crate::wait::{Patience, Waiter};
use bytemuck::Pod;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the PEs of a world are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorldKind {
    /// Threads of this process.
    Threads,
    /// Processes of one host, started by the launcher.
    Processes,
}

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
/// PE, except that collectives must be called by one thread at a time, in the same order on all PEs.
///
/// ```
/// let squares = crosswarp_shmem::spmd(3, |pe| pe.my_pe() * pe.my_pe()).unwrap();
/// assert_eq!(squares, [0, 1, 4]);
/// ```
pub struct Pe {
    world: Arc<Mapped>,
    me: usize,
    // Everything the fast paths need, without a walk through the Arc.
    bases: Box<[NonNull<u8>]>,
    book: Mutex<Book>,
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
        control.set_life(Life::Joined);
        Self {
            me,
            bases: world.heaps.iter().map(Region::base).collect(),
            book: Mutex::new(Book::new(world.heap_bytes)),
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
        self.bases.len()
    }

    /// Whether the PEs are threads or processes.
    pub fn kind(&self) -> WorldKind {
        self.world.kind
    }

    /// Bytes of each PE's symmetric heap.
    pub fn heap_bytes(&self) -> usize {
        self.world.heap_bytes
    }

    /// The team of all PEs.
    pub fn world(&self) -> Team<'_> {
        Team { pe: self }
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

    /// Start and length of `pe`'s heap in this process. Panics if `pe` does not exist.
    #[inline(always)]
    pub(crate) fn heap_of(&self, pe: usize) -> (NonNull<u8>, usize) {
        assert!(
            pe < self.bases.len(),
            "PE {pe} does not exist in a world of {}",
            self.bases.len()
        );
        (self.bases[pe], self.world.heap_bytes)
    }

    /// Wakes `pe` if it sleeps until something in `object` changes; called after every store there.
    #[inline(always)]
    pub(crate) fn notify<T: Pod>(&self, object: SymRef<'_, T>, pe: usize) {
        let (start, end) = (
            object.offset(),
            object.offset() + object.len() * size_of::<T>(),
        );
        let parker = &self.control().pe(pe).arrival.parker;
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

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        // The book's own operations do not panic half-way.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pe {
    fn drop(&mut self) {
        // 1. Complete what this PE has put: its peers go on using their heaps.
        self.quiet();
        // 2. Say how it left. A panicking PE has failed, and its peers with it; otherwise only those
        //    who wait for this PE in particular get an error.
        let mine = self.control().pe(self.me);
        if std::thread::panicking() {
            mine.set_life(Life::Failed);
            self.control().end(self.me, self.shared());
        } else {
            mine.set_life(Life::Finished);
            // 3. Wake sleepers, so that whoever waits for this PE learns that it will not come.
            self.control().wake_all(self.shared());
        }
    }
}

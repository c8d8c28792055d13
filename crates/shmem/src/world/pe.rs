//! The handle of a PE: on top of its [endpoint](crate::world::endpoint), with the verbs of [`crate::verbs`].
#![allow(unsafe_code)] // passes a promise of the caller on; a handle is its endpoint

use crate::memory::symmetric::SymRef;
use crate::team::Team;
use crate::transport::engine::Engine;
use crate::verbs::raw::Raw;
use crate::world::endpoint::Endpoint;
use crate::world::fds::ShareError;
use crate::world::mapped::{Mapped, WorldKind};
use crate::world::membership::Membership;
use bytemuck::Pod;
use rustix::fd::{BorrowedFd, OwnedFd};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

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

/// This PE in its world: who it is, its heap, and all the verbs, which the [first page](crate) has by purpose.
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
#[repr(transparent)]
pub struct Pe {
    pub(crate) endpoint: Endpoint,
}

impl fmt::Debug for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

impl Pe {
    pub(crate) fn join(world: Arc<Mapped>, me: usize, engine: Option<Box<dyn Engine>>) -> Self {
        let endpoint = Endpoint::join(world, me, engine);
        Self { endpoint }
    }

    /// The handle that `endpoint` is in.
    #[inline(always)]
    pub(crate) fn of(endpoint: &Endpoint) -> &Self {
        // SAFETY: `repr(transparent)`: a handle is an endpoint and nothing else, so a reference to one is a
        // reference to the other.
        unsafe { &*ptr::from_ref(endpoint).cast() }
    }

    /// This PE's number, from 0.
    #[inline]
    pub fn my_pe(&self) -> usize {
        self.endpoint.my_pe()
    }

    /// Number of PEs in the world.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.endpoint.n_pes()
    }

    /// Whether the PEs are threads or processes.
    pub fn kind(&self) -> WorldKind {
        self.endpoint.kind()
    }

    /// What threads may do with this handle: always [`ThreadLevel::Multiple`], by its type.
    pub fn thread_level(&self) -> ThreadLevel {
        ThreadLevel::Multiple
    }

    /// Whether PE `pe` exists and can be reached: then its whole heap can.
    pub fn pe_accessible(&self, pe: usize) -> bool {
        pe < self.n_pes()
    }

    /// Where this process can load and store `pe`'s copy of `object`, null if `pe` is on another host; what a race
    /// leaves is unspecified.
    ///
    /// # Panics
    /// If `pe` does not exist.
    pub fn ptr<'a, T: Pod>(&self, object: impl Into<SymRef<'a, T>>, pe: usize) -> *mut T {
        let place = self.endpoint.mapped(object.into(), pe);
        place.map_or(ptr::null_mut(), |(at, _)| at)
    }

    /// Bytes of each PE's symmetric heap.
    pub fn heap_bytes(&self) -> usize {
        self.endpoint.heap_bytes()
    }

    /// After how long waits give up; `None`: never.
    pub fn wait_timeout(&self) -> Option<Duration> {
        self.endpoint.wait_timeout()
    }

    /// Which PEs are there, for a thread that watches them.
    pub fn membership(&self) -> Membership {
        self.endpoint.membership()
    }

    /// The team of all PEs.
    #[inline]
    pub fn world(&self) -> Team<'_> {
        self.endpoint.world()
    }

    /// The team of the PEs whose memory this PE can load and store directly: those of its host.
    /// Its collectives are independent of the world's.
    pub fn shared_team(&self) -> Team<'_> {
        self.endpoint.shared_team()
    }

    /// This PE for access by address; see [`raw`](crate::verbs::raw).
    #[inline(always)]
    pub fn raw(&self) -> Raw<'_> {
        Raw::new(&self.endpoint)
    }

    /// Gives every PE a duplicate of every PE's `mine`; element `i` is PE `i`'s, one's own included.
    ///
    /// Collective. Descriptors received are close-on-exec.
    ///
    /// # Errors
    /// [`ShareError`], on every PE if on one.
    pub fn share_fd(&self, mine: BorrowedFd<'_>) -> Result<Vec<OwnedFd>, ShareError> {
        self.endpoint.share_fd(mine)
    }

    /// The same among the PEs of [`shared_team`](Self::shared_team) alone; element `i` is its PE `i`'s. Collective over
    /// these.
    ///
    /// # Errors
    /// [`ShareError`], on every PE of the team if on one.
    pub fn share_fd_on_host(&self, mine: BorrowedFd<'_>) -> Result<Vec<OwnedFd>, ShareError> {
        self.endpoint.share_fd_in(&self.shared_team(), mine)
    }

    /// For a thread that serves this PE beside the program; `None` in a world of one host.
    #[doc(hidden)]
    pub fn courier(&self) -> Option<crate::internal::Courier> {
        self.endpoint.courier()
    }

    /// Makes `len` bytes of this process symmetric: those at `base`, which are a shared mapping of
    /// `memory` from its beginning. From then on the [raw layer](crate::verbs::raw) takes addresses in them as
    /// it takes addresses in the heap, as fast for the first segment and a little slower for further ones.
    ///
    /// Collective; every PE passes the same `len`. `memory` must be sealed against shrinking, as
    /// [`raw::memfd`](crate::verbs::raw::memfd) makes it; it may be closed afterwards.
    ///
    /// # Errors
    /// [`ShareError`]; a mismatch of the lengths is one.
    ///
    /// # Safety
    /// `base..base + len` is mapped shared from the start of `memory`, readable and writable, aligned to
    /// a page, overlaps no other symmetric memory, and stays so while this `Pe` lives. Like all symmetric
    /// memory it may change at any time.
    pub unsafe fn register_segment(
        &mut self,
        base: NonNull<u8>,
        len: usize,
        memory: BorrowedFd<'_>,
    ) -> Result<(), ShareError> {
        // SAFETY: by the caller.
        unsafe { self.endpoint.register_segment(base, len, memory) }
    }

    /// Leaves the world: completes this PE's puts and tells the others not to wait for it. The memory stays
    /// mapped while the handle lives, but nothing collective may follow. Dropping the handle does the same;
    /// a second time does nothing.
    pub fn leave(&self) {
        self.endpoint.leave();
    }

    /// Asks the launcher to end all PEs, whatever they are doing, when this process ends, and to report
    /// `status` as the exit code of the run.
    pub fn announce_exit(&self, status: i32) {
        self.endpoint.control().announce_exit(status);
    }

    /// Ends all PEs, whatever they are doing; the run's exit code is `status`, which may be 0. A world of
    /// threads ends with its process.
    pub fn global_exit(&self, status: i32) -> ! {
        self.announce_exit(status);
        std::process::exit(status)
    }
}

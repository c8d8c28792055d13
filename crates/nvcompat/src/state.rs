//! A PE's world: there from `nvshmem_init` to `nvshmem_finalize`, with a GPU from when it is first needed. The PE is this
//! process, or this thread if the program has made a world of threads (`threads`).
//!
//! 1. A `Place` is changed by beginning and end alone, that of the process under its lock; everybody else takes a reference.
//! 2. The GPU is opened by whoever needs it first, under the lock of `gpu`. All PEs come to this (it is collective).
//! 3. Teams are changed under their lock by the calls that make and destroy them, which are collective.
#![allow(unsafe_code)] // Owns what its own fields refer to.

use crate::driver::ContextGuard;
use crate::gpu::Gpu;
use crate::invitations::Invitations;
use crate::say::{say, speaks, thread_speaks};
use crate::teams::{Shape, Teams};
use crate::types::Status;
use crosswarp_shmem::{CollectiveError, Pe, Sym, op};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLock};

/// One world.
pub(crate) struct World {
    /// Of `owned`, which outlives all that uses it.
    pub(crate) pe: &'static Pe,
    /// How the program asked for it: a second time it must ask for the same.
    pub(crate) asked: Asked,
    pub(crate) teams: Mutex<Teams>,
    /// For agreements of all PEs, and of a team's.
    word: Sym<u64>,
    /// Where PEs that make a team without a parent find one another.
    pub(crate) invitations: Mutex<Invitations>,
    gpu: Mutex<Opened>,
    /// The last field: it is dropped when nothing refers to it any more.
    _owned: Owned,
}

/// A PE's handle. That of a process lives as long as the process: its memory may be in use by others to their end. That of
/// a thread holds the memory of the whole world, as the others' do, and ends with its world.
struct Owned {
    pe: NonNull<Pe>,
    of_thread: bool,
}

// SAFETY: it is a `Box<Pe>`, which may be sent, and gives nothing out but by the reference in `World`.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.of_thread {
            // SAFETY: from a box, and given back once. `World`'s other fields, which refer to it, are gone. Nobody else has
            // the reference longer than one to the world or its GPU, and of a thread's world only that thread has these, in
            // calls of which none is under way when the last one is dropped.
            drop(unsafe { Box::from_raw(self.pe.as_ptr()) });
        }
    }
}

/// How a world was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    OfLauncher,
    WithId { rank: i32, n: i32, id: [u8; 16] },
    OfCommunicator,
    OfOpenShmem,
}

enum Opened {
    NotYet,
    Yes(Arc<Gpu>),
    /// It was tried, on all PEs, and the reason has been said.
    Failed(Status),
}

/// Where a PE has its world.
pub(crate) struct Place {
    pub(crate) world: Option<Arc<World>>,
    /// How often the library was initialised more than finalised.
    pub(crate) open: u32,
    /// Of a thread that is a PE.
    pub(crate) thread: Option<Thread>,
    /// Of the process: a world of threads has it.
    pub(crate) threads_run: bool,
}

/// A thread that is a PE, before it has joined its world, which it does once.
pub(crate) enum Thread {
    Joins(Box<Pe>),
    HasJoined,
}

static PROCESS: RwLock<Place> = RwLock::new(Place {
    world: None,
    open: 0,
    thread: None,
    threads_run: false,
});

thread_local! {
    static THREAD: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// The process that opened its GPU.
static OPENED_BY: AtomicU32 = AtomicU32::new(0);

/// What nobody asked for: a kernel that has waited in vain ends by a trap, and most programs then end with what the CUDA
/// runtime calls that.
extern "C" fn tell_of_vain_wait() {
    // A process that this one has forked ends by itself.
    if OPENED_BY.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // Whoever holds one of these may be the thread that ends the process.
    let Ok(place) = PROCESS.try_read() else {
        return;
    };
    if let Some(world) = &place.world
        && let Ok(opened) = world.gpu.try_lock()
        && let Opened::Yes(gpu) = &*opened
        && let Some(wait) = gpu.world.waited_in_vain()
    {
        say(format_args!("{wait}"));
    }
}

impl World {
    /// `of_thread`: the PE is the calling thread, and the world is taken by it alone.
    pub(crate) fn new(pe: Pe, asked: Asked, of_thread: bool) -> Result<Self, String> {
        // Before all that refers to it, so that it is dropped after them if one fails.
        let pe = NonNull::from(Box::leak(Box::new(pe)));
        let owned = Owned { pe, of_thread };
        // SAFETY: it lives as long as `owned`.
        let pe: &'static Pe = unsafe { pe.as_ref() };
        Ok(Self {
            word: pe.alloc(2).map_err(|error| error.to_string())?,
            invitations: Mutex::new(Invitations::new(pe).map_err(|error| error.to_string())?),
            teams: Mutex::new(Teams::new(pe)?),
            pe,
            asked,
            gpu: Mutex::new(Opened::NotYet),
            _owned: owned,
        })
    }

    /// Its GPU, opened if it is not yet.
    ///
    /// Errors: a status; the reason has been said.
    pub(crate) fn gpu(&self) -> Result<Arc<Gpu>, Status> {
        let gpu = self.open()?;
        // Without the lock: see `units`.
        gpu.install_new_units();
        Ok(gpu)
    }

    fn open(&self) -> Result<Arc<Gpu>, Status> {
        let mut opened = self.gpu.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*opened, Opened::NotYet) {
            let shapes = self.teams().shapes();
            *opened = match Gpu::open(self.pe, &shapes, |mine| self.smallest(mine)) {
                Ok(gpu) => {
                    static AT_EXIT: Once = Once::new();
                    OPENED_BY.store(std::process::id(), Ordering::Relaxed);
                    // SAFETY: a function without arguments. What could not be registered only says less.
                    AT_EXIT.call_once(|| unsafe { _ = libc::atexit(tell_of_vain_wait) });
                    Opened::Yes(Arc::new(gpu))
                }
                Err((status, reason)) => {
                    say(format_args!("{reason}"));
                    Opened::Failed(status)
                }
            };
        }
        match &*opened {
            Opened::Yes(gpu) => Ok(gpu.clone()),
            Opened::Failed(status) => Err(*status),
            Opened::NotYet => Err(Status::Internal),
        }
    }

    /// Its GPU if it was opened.
    pub(crate) fn opened_gpu(&self) -> Option<Arc<Gpu>> {
        match &*self.gpu.lock().unwrap_or_else(PoisonError::into_inner) {
            Opened::Yes(gpu) => Some(gpu.clone()),
            _ => None,
        }
    }

    /// Closes the GPU; nobody uses it any more.
    pub(crate) fn close_gpu(&self) {
        let mut opened = self.gpu.lock().unwrap_or_else(PoisonError::into_inner);
        // Where there is one, there is a driver.
        let _guard = matches!(*opened, Opened::Yes(_)).then(ContextGuard::keep);
        *opened = Opened::NotYet;
    }

    pub(crate) fn teams(&self) -> MutexGuard<'_, Teams> {
        self.teams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the memory of team `index` ready, and tells kernels of it, if there is a GPU.
    pub(crate) fn place_team(&self, index: usize, shape: Shape) -> Result<(), String> {
        let Some(gpu) = self.opened_gpu() else {
            return Ok(());
        };
        gpu.clear_team(index)?;
        gpu.set_team(index, Some(shape))
    }

    /// Takes the handle of a team back that did not come about on this PE.
    pub(crate) fn take_back(&self, index: usize) {
        self.teams().0[index] = None;
        if let Some(gpu) = self.opened_gpu()
            && let Err(error) = gpu.set_team(index, None)
        {
            say(format_args!("team {index}: {error}"));
        }
    }

    /// The words that all PEs of `team` give, combined bit by bit. Collective over it.
    pub(crate) fn common_bits(
        &self,
        team: &crosswarp_shmem::Team<'_>,
        mine: u64,
    ) -> Result<u64, CollectiveError> {
        self.pe.write(self.word.at(0), &[mine]);
        team.reduce(self.word.at(0), self.word.at(0), op::And)?;
        Ok(self.pe.g(self.word.at(0), self.pe.my_pe()))
    }

    /// The smallest of all PEs' values. Collective.
    pub(crate) fn smallest(&self, mine: i64) -> Result<i64, CollectiveError> {
        // In the order of unsigned numbers.
        const SIGN: u64 = 1 << 63;
        self.pe.write(self.word.at(1), &[mine as u64 ^ SIGN]);
        let world = self.pe.world();
        world.reduce(self.word.at(1), self.word.at(1), op::Min)?;
        Ok((self.pe.g(self.word.at(1), self.pe.my_pe()) ^ SIGN) as i64)
    }
}

/// The world, if there is one.
pub(crate) fn world() -> Option<Arc<World>> {
    // At the end of the process the thread has nothing of its own any more.
    let own = THREAD.try_with(|own| own.borrow().as_ref().map(|place| place.world.clone()));
    own.ok().flatten().unwrap_or_else(|| {
        let place = PROCESS.read().unwrap_or_else(PoisonError::into_inner);
        place.world.clone()
    })
}

/// The world, for the function `name`; without one, a line says what is missing.
pub(crate) fn world_for(name: &str) -> Result<Arc<World>, Status> {
    world().ok_or_else(|| {
        say(format_args!(
            "{name} was called before nvshmem_init or after nvshmem_finalize"
        ));
        Status::InvalidValue
    })
}

/// Changes which world there is. `change` must not ask for it otherwise.
pub(crate) fn change<R>(change: impl FnOnce(&mut Place) -> R) -> R {
    if is_thread() {
        return THREAD.with_borrow_mut(|own| change(own.as_mut().expect("it is one")));
    }
    let mut place = PROCESS.write().unwrap_or_else(PoisonError::into_inner);
    let result = change(&mut place);
    speaks(place.world.as_ref().map(|world| world.pe.my_pe()));
    result
}

/// Whether this thread is a PE.
pub(crate) fn is_thread() -> bool {
    THREAD
        .try_with(|own| own.borrow().is_some())
        .unwrap_or(false)
}

/// The process has a world of threads, and no other, while this lives: what tells kernels which PE they are in is one for
/// all of the process.
pub(crate) struct ThreadsRun(());

impl ThreadsRun {
    pub(crate) fn begin() -> Result<Self, &'static str> {
        let mut place = PROCESS.write().unwrap_or_else(PoisonError::into_inner);
        if is_thread() || place.world.is_some() {
            return Err("this thread or process is a PE already");
        }
        if place.threads_run {
            return Err("the process has a world of threads; the next begins when it has ended");
        }
        place.threads_run = true;
        Ok(Self(()))
    }
}

impl Drop for ThreadsRun {
    fn drop(&mut self) {
        let mut place = PROCESS.write().unwrap_or_else(PoisonError::into_inner);
        place.threads_run = false;
    }
}

/// Runs `work` with this thread as `pe`; its world, if it has not been finalized.
pub(crate) fn with_thread(pe: Pe, work: impl FnOnce()) -> Option<Arc<World>> {
    thread_speaks(Some(pe.my_pe()));
    let place = Place {
        world: None,
        open: 0,
        thread: Some(Thread::Joins(Box::new(pe))),
        threads_run: false,
    };
    THREAD.set(Some(place));
    work();
    let place = THREAD.take();
    thread_speaks(None);
    place.and_then(|place| place.world)
}

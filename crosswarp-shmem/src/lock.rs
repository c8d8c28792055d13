//! Locks: mutual exclusion between the PEs of a world, first come, first served.
//!
//! The queue of Mellor-Crummey and Scott ("Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991): a PE that has to wait does so on its own copy of the lock's word,
//! so that it can sleep there and nobody else's line is disturbed.
//!
//! A lock is one word at each PE, 0 while nobody is interested. Access rules
//! 1. `tail` counts only at the lock's home PE: 1 + the PE that came last, 0 when the lock is free.
//! 2. `node` of a PE: the PE itself sets and clears `BUSY` (some thread of it holds the lock or is in the
//!    queue) and sets `WAITING` before it links itself to the one before; that one clears `WAITING` to hand the
//!    lock over; the one behind adds its number, once.
//! 3. Once a holder has seen who is behind it, or has emptied the queue, nobody else writes its `node`.

use crate::alloc::AllocError;
use crate::pe::Pe;
use crate::symmetric::Sym;
use crate::sync::{AtomicU32, Ordering};
use crate::wait::{Wait, WaitError};

/// The owner must not go on before the one before it clears this.
const WAITING: u32 = 1;
/// A thread of the owner holds the lock or is in the queue.
const BUSY: u32 = 2;
/// Above the flags: 1 + the PE behind.
const BEHIND: u32 = 2;

/// One PE's copy of a lock.
#[repr(C)]
pub(crate) struct LockWord {
    tail: AtomicU32,
    node: AtomicU32,
}

impl LockWord {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            tail: AtomicU32::new(0),
            node: AtomicU32::new(0),
        }
    }
}

/// What the algorithm needs of the world.
pub(crate) trait Queue {
    /// Why a wait failed.
    type Error;
    /// PE `pe`'s copy.
    fn word(&self, pe: usize) -> &LockWord;
    /// Wakes `pe` if it sleeps on its copy.
    fn notify(&self, pe: usize);
    /// Waits until `ready`, which looks at this PE's copy.
    fn wait(&self, ready: impl Fn() -> bool) -> Result<(), Self::Error>;
    /// Where the queue's tail is, and who asks.
    fn home_and_me(&self) -> (usize, usize);

    /// Takes the lock, waiting for it.
    ///
    /// Memory ordering: Acquire; all that holders before did is visible.
    #[inline]
    fn acquire(&self) -> Result<(), Self::Error> {
        let (home, me) = self.home_and_me();
        let mine = &self.word(me).node;
        while !enter(mine) {
            self.wait(|| mine.load(Ordering::Relaxed) & BUSY == 0)?;
        }
        // Acquire: pairs with the Release of a holder that emptied the queue. Release: the one behind me
        // must see my node in order.
        let tail = &self.word(home).tail;
        let before = tail.swap(me as u32 + 1, Ordering::AcqRel);
        if before == 0 {
            return Ok(());
        }
        mine.fetch_or(WAITING, Ordering::Relaxed);
        let before = before as usize - 1;
        // Release: who sees the link sees WAITING set, and so does not clear it too early.
        let link = (me as u32 + 1) << BEHIND;
        self.word(before).node.fetch_or(link, Ordering::Release);
        self.notify(before);
        // Acquire: pairs with the hand-over.
        self.wait(|| mine.load(Ordering::Acquire) & WAITING == 0)
    }

    /// Takes the lock if it is free.
    ///
    /// Memory ordering: as [`acquire`](Self::acquire) if it does.
    #[inline]
    fn try_acquire(&self) -> bool {
        let (home, me) = self.home_and_me();
        let mine = &self.word(me).node;
        if !enter(mine) {
            return false;
        }
        let (tail, new) = (&self.word(home).tail, me as u32 + 1);
        let got = tail.compare_exchange(0, new, Ordering::AcqRel, Ordering::Relaxed);
        if got.is_err() {
            mine.store(0, Ordering::Release);
            self.notify(me);
        }
        got.is_ok()
    }

    /// Gives the lock, which this PE holds, to the one behind it. Returns whether it did hold it, as far as
    /// can be seen.
    ///
    /// Memory ordering: Release.
    #[inline]
    fn release(&self) -> Result<bool, Self::Error> {
        let (home, me) = self.home_and_me();
        let mine = &self.word(me).node;
        let seen = mine.load(Ordering::Acquire);
        if seen & BUSY == 0 {
            return Ok(false);
        }
        let mut behind = seen >> BEHIND;
        if behind == 0 {
            let (tail, last) = (&self.word(home).tail, me as u32 + 1);
            let emptied = tail.compare_exchange(last, 0, Ordering::AcqRel, Ordering::Relaxed);
            if emptied.is_ok() {
                // Release: pairs with the Acquire of another thread of this PE.
                mine.store(0, Ordering::Release);
                self.notify(me);
                return Ok(true);
            }
            // Someone has come, and will link itself presently.
            self.wait(|| mine.load(Ordering::Relaxed) >> BEHIND != 0)?;
            // Acquire: its WAITING before its link.
            behind = mine.load(Ordering::Acquire) >> BEHIND;
        }
        let behind = behind as usize - 1;
        mine.store(0, Ordering::Release);
        self.notify(me);
        // Release: what I did under the lock happens before what the next holder does.
        let next = &self.word(behind).node;
        next.fetch_and(!WAITING, Ordering::Release);
        self.notify(behind);
        Ok(true)
    }
}

/// Makes the calling thread the one of its PE that is in the queue, unless another is.
#[inline(always)]
fn enter(mine: &AtomicU32) -> bool {
    // Acquire: pairs with the store of 0 by another thread of this PE that has left the queue.
    let entered = mine.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed);
    entered.is_ok()
}

/// A lock of a world, by where its copies are.
pub(crate) struct PeLock<'a> {
    pub(crate) pe: &'a Pe,
    /// Address of this PE's own copy.
    addr: usize,
    home: usize,
}

impl<'a> PeLock<'a> {
    /// # Safety
    /// `addr` is the symmetric address of a word aligned to 8, used as a lock only and 0 at first.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn at(pe: &'a Pe, addr: usize) -> Self {
        // Different locks have different homes, so that not all queues begin at one PE.
        let home = (pe.position(addr) / 8) % pe.n_pes();
        Self { pe, addr, home }
    }
}

impl Queue for PeLock<'_> {
    type Error = WaitError;

    #[inline(always)]
    fn word(&self, pe: usize) -> &LockWord {
        let (place, _) = self.pe.locate(self.addr, pe);
        // SAFETY: by the caller of `at`; two atomics, of which any bits are valid.
        #[allow(unsafe_code)]
        unsafe {
            place.cast::<LockWord>().as_ref()
        }
    }

    #[inline(always)]
    fn notify(&self, pe: usize) {
        self.pe.notify_addr(self.addr, 8, pe);
    }

    #[inline(always)]
    fn wait(&self, ready: impl Fn() -> bool) -> Result<(), WaitError> {
        let wait = || Wait::Lock {
            offset: self.pe.position(self.addr),
        };
        self.pe.waiter().until(wait, || ready().then_some(()))
    }

    #[inline(always)]
    fn home_and_me(&self) -> (usize, usize) {
        (self.home, self.pe.my_pe())
    }
}

/// A lock that all PEs of a world share, fair: PEs get it in the order in which they asked.
///
/// ```
/// let total = crosswarp_shmem::spmd(3, |pe| {
///     let (lock, sum) = (pe.alloc_lock()?, pe.alloc_zeroed::<u64>(1)?);
///     for _ in 0..100 {
///         let _held = pe.lock(&lock)?;
///         let seen = pe.g(&sum, 0);
///         pe.p(&sum, seen + 1, 0);
///     }
///     pe.barrier()?;
///     let total = pe.g(&sum, 0);
///     pe.free_lock(lock)?;
///     Ok::<_, crosswarp_shmem::Error>(total)
/// })
/// .unwrap();
/// assert_eq!(total, [Ok(300), Ok(300), Ok(300)]);
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle does not free the lock; see Pe::free_lock"]
pub struct Lock {
    word: Sym<u64>,
}

/// Possession of a [`Lock`], given up on drop.
///
/// Memory ordering: giving it up completes all puts (a `quiet`), and whoever gets the lock next sees them.
#[must_use = "the lock is given up when this is dropped"]
pub struct LockGuard<'a> {
    lock: PeLock<'a>,
}

impl std::fmt::Debug for LockGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lock held by PE {}", self.lock.pe.my_pe())
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        self.lock.pe.quiet();
        // Fails only when a PE of the queue has died, and then every other wait says so.
        let _ = self.lock.release();
    }
}

/// Locks.
impl Pe {
    /// A new lock, free. Collective, as [`alloc`](Self::alloc).
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_lock(&self) -> Result<Lock, AllocError> {
        let word = self.alloc_zeroed(1)?;
        Ok(Lock { word })
    }

    /// Frees a lock that nobody holds or waits for. Collective, as [`free`](Self::free).
    ///
    /// # Errors
    /// As [`free`](Self::free).
    pub fn free_lock(&self, lock: Lock) -> Result<(), AllocError> {
        self.free(lock.word)
    }

    /// Waits for `lock` and takes it. A thread that holds it must not ask for it again. PEs are served in the
    /// order of asking, threads of one PE in any order.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn lock<'a>(&'a self, lock: &'a Lock) -> Result<LockGuard<'a>, WaitError> {
        let lock = self.at_lock(lock);
        lock.acquire()?;
        Ok(LockGuard { lock })
    }

    /// Takes `lock` if it is free.
    pub fn try_lock<'a>(&'a self, lock: &'a Lock) -> Option<LockGuard<'a>> {
        let lock = self.at_lock(lock);
        lock.try_acquire().then_some(LockGuard { lock })
    }

    fn at_lock<'a>(&'a self, lock: &'a Lock) -> PeLock<'a> {
        let addr = self.address(lock.word.all(), self.my_pe()).addr();
        // SAFETY: `address` checked the place; the word was zeroed before any PE had the handle, which
        // gives no other access to it.
        #[allow(unsafe_code)]
        unsafe {
            PeLock::at(self, addr)
        }
    }
}

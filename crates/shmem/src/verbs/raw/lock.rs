//! Locks by address: mutual exclusion between the PEs of a world, first come, first served.
//!
//! The queue of Mellor-Crummey and Scott ("Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991): a PE that has to wait does so on its own copy of the lock's word,
//! so that it can sleep there and nobody else's line is disturbed.
//!
//! A PE whose wait fails cannot be taken out of the middle of the queue, so it leaves its `node` there, marked:
//! whoever hands the lock over to such a node passes it on to the next. Until then the PE can ask again and
//! has its old place back. Nobody waits for a link, either: a holder that someone is behind who has not linked
//! itself yet leaves the lock in its own node, for that one to find. So giving a lock up never waits or fails.
//!
//! A lock is one word at each PE, 0 while nobody is interested. Access rules
//! 1. `tail` counts only at the lock's home PE: 1 + the PE that came last, 0 when the lock is free.
//! 2. `node` of a PE: while it is 0 only the PE writes it (`BUSY`: some thread of it holds the lock or is in the
//!    queue, or its node is). The PE sets `WAITING` before it links itself to the one before; whoever hands the
//!    lock over to the node clears it. The one behind adds its number, once.
//! 3. A thread of the PE sets `ABANDONED` and clears it only while `WAITING` is set, both in one step with looking
//!    at that. So who clears `WAITING` and sees `ABANDONED` has the lock and the node to itself, as a holder has its
//!    own; and who does not see it has handed the lock over.
//! 4. A holder without a link that is not the last sets `LEFT` and is done with the lock and its node; the one
//!    that links itself and sees `LEFT` has both.
//! 5. Once a holder has seen who is behind it, or has emptied the queue, nobody else writes its `node`. It sets it
//!    to 0.

use super::Raw;
use crate::transport::message::Op;
use crate::wait::sync::{AtomicU32, Ordering};
use crate::wait::waiter::{Wait, WaitError};
use crate::world::endpoint::Endpoint;

/// The owner must not go on before the one before it clears this.
const WAITING: u32 = 1;
/// A thread of the owner holds the lock or is in the queue.
const BUSY: u32 = 2;
/// The owner has stopped waiting.
const ABANDONED: u32 = 4;
/// The lock is here for the one that comes behind.
const LEFT: u32 = 8;
/// Above the flags: 1 + the PE behind.
const BEHIND: u32 = 4;

/// One PE's copy of a lock.
#[repr(C)]
pub(crate) struct LockWord {
    tail: AtomicU32,
    node: AtomicU32,
}

impl LockWord {
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Self {
            tail: AtomicU32::new(0),
            node: AtomicU32::new(0),
        }
    }
}

/// A word of a PE's copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    /// Who came last.
    Tail,
    /// Its place in the queue.
    Node,
}

/// An atomic step on such a word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Load,
    Store(u32),
    Swap(u32),
    CompareSwap(u32, u32),
    And(u32),
    Or(u32),
}

impl LockWord {
    /// Acquire and Release, as far as `step` loads and stores.
    #[inline(always)]
    fn step(&self, field: Field, step: Step) -> u32 {
        let (word, order) = (self.field(field), Ordering::AcqRel);
        match step {
            Step::Load => word.load(Ordering::Acquire),
            Step::Store(value) => {
                word.store(value, Ordering::Release);
                value
            }
            Step::Swap(value) => word.swap(value, order),
            Step::CompareSwap(expected, value) => {
                let swapped = word.compare_exchange(expected, value, order, Ordering::Acquire);
                swapped.unwrap_or_else(|seen| seen)
            }
            Step::And(value) => word.fetch_and(value, order),
            Step::Or(value) => word.fetch_or(value, order),
        }
    }

    #[inline(always)]
    fn field(&self, field: Field) -> &AtomicU32 {
        match field {
            Field::Tail => &self.tail,
            Field::Node => &self.node,
        }
    }
}

/// What the algorithm needs of the world.
pub(crate) trait Queue {
    /// Why a wait failed.
    type Error;
    /// PE `pe`'s copy; `None` if that is on another host.
    fn word(&self, pe: usize) -> Option<&LockWord>;
    /// A step on the copy of a PE of another host; what was there before.
    fn step_elsewhere(&self, pe: usize, field: Field, step: Step) -> u32;
    /// Wakes `pe` if it sleeps on its copy.
    fn notify(&self, pe: usize);
    /// Waits until `ready`, which looks at this PE's copy.
    fn wait(&self, ready: impl Fn() -> bool) -> Result<(), Self::Error>;
    /// Where the queue's tail is, and who asks.
    fn home_and_me(&self) -> (usize, usize);

    /// A step on any PE's copy; what was there before.
    #[inline(always)]
    fn step(&self, pe: usize, field: Field, step: Step) -> u32 {
        match self.word(pe) {
            Some(word) => word.step(field, step),
            None => self.step_elsewhere(pe, field, step),
        }
    }

    /// This PE's own node.
    #[inline(always)]
    fn own_node(&self) -> &AtomicU32 {
        let (_, me) = self.home_and_me();
        &self.word(me).expect("a PE's own memory is mapped").node
    }

    /// Takes the lock, waiting for it. After an error the PE's place in the queue is its own until the lock
    /// passes it.
    ///
    /// Memory ordering: Acquire; all that holders before did is visible.
    #[inline]
    fn acquire(&self) -> Result<(), Self::Error> {
        let (home, me) = self.home_and_me();
        let mine = self.own_node();
        if !enter(mine) {
            // Relaxed: what is done then looks again.
            let free = || {
                let seen = mine.load(Ordering::Relaxed);
                seen & BUSY == 0 || waits_for_nobody(seen)
            };
            loop {
                if reenter(mine) {
                    return self.wait_for_turn(mine, me);
                }
                self.wait(free)?;
                if enter(mine) {
                    break;
                }
            }
        }
        // Acquire: pairs with the Release of a holder that emptied the queue. Release: the one behind me
        // must see my node in order.
        let before = self.step(home, Field::Tail, Step::Swap(me as u32 + 1));
        if before == 0 {
            return Ok(());
        }
        mine.fetch_or(WAITING, Ordering::Relaxed);
        let before = before as usize - 1;
        // Release: who sees the link sees WAITING set, and so does not clear it too early. Acquire: pairs
        // with the Release of the holder that left the lock there.
        let link = (me as u32 + 1) << BEHIND;
        if self.step(before, Field::Node, Step::Or(link)) & LEFT != 0 {
            mine.fetch_and(!WAITING, Ordering::Relaxed);
            self.step(before, Field::Node, Step::Store(0));
            self.notify(before);
            return Ok(());
        }
        self.wait_for_turn(mine, me)
    }

    /// Waits until the lock has been handed over to this PE's node, or leaves it.
    #[inline]
    fn wait_for_turn(&self, mine: &AtomicU32, me: usize) -> Result<(), Self::Error> {
        // Acquire: pairs with the hand-over.
        let handed_over = || mine.load(Ordering::Acquire) & WAITING == 0;
        let Err(error) = self.wait(handed_over) else {
            return Ok(());
        };
        let leave = |seen: u32| (seen & WAITING != 0).then_some(seen | ABANDONED);
        let left = mine.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave);
        // If it could not, the lock has come just now.
        if left.is_ok() {
            // Another thread of this PE may want the place.
            self.notify(me);
            return Err(error);
        }
        Ok(())
    }

    /// Takes the lock if it is free.
    ///
    /// Memory ordering: as [`acquire`](Self::acquire) if it does.
    #[inline]
    fn try_acquire(&self) -> bool {
        let (home, me) = self.home_and_me();
        let mine = self.own_node();
        if !enter(mine) {
            return false;
        }
        let got = self.step(home, Field::Tail, Step::CompareSwap(0, me as u32 + 1)) == 0;
        if !got {
            mine.store(0, Ordering::Release);
            self.notify(me);
        }
        got
    }

    /// Gives the lock, which this PE holds, to the one behind it. Returns whether it did hold it, as far as
    /// can be seen.
    ///
    /// Memory ordering: Release.
    #[inline]
    fn release(&self) -> bool {
        let (_, me) = self.home_and_me();
        let seen = self.own_node().load(Ordering::Relaxed);
        if seen & BUSY == 0 || seen & (WAITING | ABANDONED | LEFT) != 0 {
            return false;
        }
        let mut of = me;
        while let Some(next) = self.leave(of) {
            // Release: what I did under the lock happens before what the next holder does. Acquire: if the node
            // is abandoned, its link and what is before that.
            let seen = self.step(next, Field::Node, Step::And(!WAITING));
            if seen & ABANDONED == 0 {
                self.notify(next);
                break;
            }
            // Nobody is there: its node is mine now.
            of = next;
        }
        true
    }

    /// Ends the use of PE `of`'s node, which has the lock. Returns who gets the lock from this thread, if it is
    /// not free or left to the one that comes.
    #[inline]
    fn leave(&self, of: usize) -> Option<usize> {
        let (home, _) = self.home_and_me();
        // Acquire: their WAITING before their link.
        let mut behind = self.step(of, Field::Node, Step::Load) >> BEHIND;
        let mut emptied = false;
        if behind == 0 {
            let last = of as u32 + 1;
            emptied = self.step(home, Field::Tail, Step::CompareSwap(last, 0)) == last;
            if !emptied {
                // Someone has come and will link itself, or just has.
                behind = self.step(of, Field::Node, Step::Or(LEFT)) >> BEHIND;
                if behind == 0 {
                    return None;
                }
            }
        }
        // Release: pairs with the Acquire of another thread of that PE.
        self.step(of, Field::Node, Step::Store(0));
        self.notify(of);
        (!emptied).then(|| behind as usize - 1)
    }
}

/// Makes the calling thread the one of its PE that is in the queue, unless another is or its node is.
#[inline(always)]
fn enter(mine: &AtomicU32) -> bool {
    // Acquire: pairs with the store of 0 by whoever ended the node's last use.
    let entered = mine.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed);
    entered.is_ok()
}

/// Whether the node is in the queue with nobody waiting for it.
fn waits_for_nobody(seen: u32) -> bool {
    seen & (ABANDONED | WAITING) == ABANDONED | WAITING
}

/// Makes the calling thread the one that waits, if a thread of its PE has stopped waiting and the lock has not
/// passed since.
#[cold]
fn reenter(mine: &AtomicU32) -> bool {
    let again = |seen: u32| waits_for_nobody(seen).then_some(seen & !ABANDONED);
    let entered = mine.fetch_update(Ordering::Acquire, Ordering::Relaxed, again);
    entered.is_ok()
}

/// A lock of a world, by where its copies are.
pub(crate) struct PeLock<'a> {
    pub(crate) endpoint: &'a Endpoint,
    /// Address of this PE's own copy.
    addr: usize,
    home: usize,
}

impl<'a> PeLock<'a> {
    /// # Safety
    /// `addr` is the symmetric address of a word aligned to 8, used as a lock only and 0 at first.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn at(endpoint: &'a Endpoint, addr: usize) -> Self {
        // Different locks have different homes, so that not all queues begin at one PE.
        let home = (endpoint.position(addr) / 8) % endpoint.n_pes();
        Self {
            endpoint,
            addr,
            home,
        }
    }
}

impl Queue for PeLock<'_> {
    type Error = WaitError;

    #[inline(always)]
    fn word(&self, pe: usize) -> Option<&LockWord> {
        let (place, _) = self.endpoint.locate(self.addr, pe);
        // SAFETY: by the caller of `at`; two atomics, of which any bits are valid.
        #[allow(unsafe_code)]
        place.map(|place| unsafe { &*place.cast::<LockWord>() })
    }

    #[cold]
    fn step_elsewhere(&self, pe: usize, field: Field, step: Step) -> u32 {
        let offset = match field {
            Field::Tail => std::mem::offset_of!(LockWord, tail),
            Field::Node => std::mem::offset_of!(LockWord, node),
        };
        let place = (self.endpoint.position(self.addr) + offset, pe);
        let (op, operand, expected) = match step {
            Step::Load => (Op::Fetch, None, None),
            // Fetching, too: the next step must not overtake it.
            Step::Store(value) | Step::Swap(value) => (Op::Set, Some(value), None),
            Step::CompareSwap(expected, value) => (Op::CompareSwap, Some(value), Some(expected)),
            Step::And(value) => (Op::And, Some(value), None),
            Step::Or(value) => (Op::Or, Some(value), None),
        };
        self.endpoint.remote_fetch(op, place, operand, expected)
    }

    #[inline(always)]
    fn notify(&self, pe: usize) {
        self.endpoint.notify_addr(self.addr, 8, pe);
    }

    #[inline(always)]
    fn wait(&self, ready: impl Fn() -> bool) -> Result<(), WaitError> {
        let wait = || Wait::Lock {
            offset: self.endpoint.position(self.addr),
        };
        self.endpoint.waiter().until(wait, || ready().then_some(()))
    }

    #[inline(always)]
    fn home_and_me(&self) -> (usize, usize) {
        (self.home, self.endpoint.my_pe())
    }
}

/// Locks in symmetric words that are 0 at first; ordered and served as [`Lock`](crate::Lock)s.
///
/// # Safety of all
/// See the [module](super); `lock` is symmetric, aligned to 8, and used for nothing else.
impl Raw<'_> {
    /// As [`Pe::lock`](crate::Pe::lock).
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See above.
    #[inline]
    pub unsafe fn set_lock(self, lock: *mut i64) -> Result<(), WaitError> {
        // SAFETY: by the caller.
        unsafe { PeLock::at(self.endpoint, lock.addr()) }.acquire()
    }

    /// As [`Pe::try_lock`](crate::Pe::try_lock): whether the lock was free and is held now.
    ///
    /// # Safety
    /// See above.
    #[inline]
    pub unsafe fn test_lock(self, lock: *mut i64) -> bool {
        // SAFETY: by the caller.
        unsafe { PeLock::at(self.endpoint, lock.addr()) }.try_acquire()
    }

    /// Completes all puts and gives the lock up. Returns false, having done nothing, if no thread of this PE
    /// has it.
    ///
    /// # Safety
    /// See above.
    #[inline]
    pub unsafe fn clear_lock(self, lock: *mut i64) -> bool {
        self.endpoint.quiet();
        // SAFETY: by the caller.
        unsafe { PeLock::at(self.endpoint, lock.addr()) }.release()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    /// A lock whose home is PE 0, and what it protects.
    struct Shared {
        words: Vec<LockWord>,
        inside: AtomicU32,
    }

    impl Shared {
        fn new(n: usize) -> Self {
            Self {
                words: (0..n).map(|_| LockWord::new()).collect(),
                inside: AtomicU32::new(0),
            }
        }

        fn asker(&self, me: usize) -> Asker<'_> {
            Asker {
                shared: self,
                me,
                gives_up: AtomicBool::new(false),
            }
        }

        /// Waits until PE `pe` is the last in the queue.
        fn is_last(&self, pe: usize) {
            let start = Instant::now();
            while self.words[0].tail.load(Ordering::Relaxed) != pe as u32 + 1 {
                assert!(start.elapsed() < Duration::from_secs(60));
                std::thread::yield_now();
            }
        }

        /// Nobody is interested, so every word is as at first.
        fn is_at_rest(&self) {
            for word in &self.words {
                assert_eq!(word.tail.load(Ordering::Relaxed), 0);
                assert_eq!(word.node.load(Ordering::Relaxed), 0);
            }
        }
    }

    /// A PE whose waits fail when it is told to give up.
    struct Asker<'a> {
        shared: &'a Shared,
        me: usize,
        gives_up: AtomicBool,
    }

    impl Asker<'_> {
        fn without_patience(self) -> Self {
            self.gives_up.store(true, Ordering::Relaxed);
            self
        }

        fn take(&self) -> Result<(), ()> {
            self.acquire()?;
            assert_eq!(self.shared.inside.fetch_add(1, Ordering::Relaxed), 0);
            Ok(())
        }

        fn give(&self) {
            assert_eq!(self.shared.inside.fetch_sub(1, Ordering::Relaxed), 1);
            assert!(self.release());
        }
    }

    impl Queue for Asker<'_> {
        type Error = ();

        fn word(&self, pe: usize) -> Option<&LockWord> {
            Some(&self.shared.words[pe])
        }

        fn step_elsewhere(&self, _: usize, _: Field, _: Step) -> u32 {
            unreachable!("all are on one host")
        }

        fn notify(&self, _: usize) {}

        fn wait(&self, ready: impl Fn() -> bool) -> Result<(), ()> {
            let start = Instant::now();
            while !ready() {
                if self.gives_up.load(Ordering::Relaxed) {
                    return Err(());
                }
                assert!(start.elapsed() < Duration::from_secs(60), "a lock is lost");
                std::thread::yield_now();
            }
            Ok(())
        }

        fn home_and_me(&self) -> (usize, usize) {
            (0, self.me)
        }
    }

    #[test]
    fn the_lock_passes_those_who_gave_up() {
        for abandoned in 0..3 {
            let lock = Shared::new(5);
            let holder = lock.asker(0);
            holder.take().unwrap();
            for pe in 1..=abandoned {
                assert_eq!(lock.asker(pe).without_patience().take(), Err(()));
                assert!(!lock.asker(pe).try_acquire() && !lock.asker(pe).release());
            }
            // Behind them somebody waits.
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let last = lock.asker(4);
                    last.take().unwrap();
                    last.give();
                });
                lock.is_last(4);
                holder.give();
            });
            lock.is_at_rest();
            for pe in 0..5 {
                assert!(lock.asker(pe).try_acquire() && lock.asker(pe).release());
                lock.asker(pe).take().unwrap();
                lock.asker(pe).give();
            }
            lock.is_at_rest();
        }
    }

    #[test]
    fn the_lock_is_free_when_all_who_asked_gave_up() {
        let lock = Shared::new(4);
        lock.asker(2).take().unwrap();
        for pe in [0, 3, 1] {
            assert_eq!(lock.asker(pe).without_patience().take(), Err(()));
        }
        lock.asker(2).give();
        lock.is_at_rest();
    }

    #[test]
    fn who_asks_again_has_kept_its_place() {
        let lock = Shared::new(3);
        lock.asker(0).take().unwrap();
        assert_eq!(lock.asker(1).without_patience().take(), Err(()));
        let order = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let (order, lock) = (&order, &lock);
            let ask = |pe: usize| {
                move || {
                    lock.asker(pe).take().unwrap();
                    order.lock().unwrap().push(pe);
                    lock.asker(pe).give();
                }
            };
            let last = scope.spawn(ask(2));
            lock.is_last(2);
            let again = scope.spawn(ask(1));
            // It waits again: no flag says that nobody does.
            while waits_for_nobody(lock.words[1].node.load(Ordering::Relaxed)) {
                std::thread::yield_now();
            }
            lock.asker(0).give();
            again.join().unwrap();
            last.join().unwrap();
            assert_eq!(*order.lock().unwrap(), [1, 2]);
        });
        lock.is_at_rest();
    }

    /// Two threads of each of three PEs, half of which have no patience.
    #[test]
    fn askers_without_patience_lose_no_lock() {
        let lock = Shared::new(3);
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let lock = &lock;
                scope.spawn(move || {
                    for round in 0..3000 {
                        let asker = lock.asker(thread % 3);
                        let hasty = thread < 3 && round % 3 != 0;
                        let asker = if hasty {
                            asker.without_patience()
                        } else {
                            asker
                        };
                        if asker.take().is_ok() {
                            asker.give();
                        }
                    }
                });
            }
        });
        // Those who gave up last are passed.
        for pe in 0..3 {
            lock.asker(pe).take().unwrap();
            lock.asker(pe).give();
        }
        lock.is_at_rest();
    }
}

//! Jobs that threads come to without a lock, and the meeting of those that go to sleep with those that have a job.
//!
//! A job is behind a [`Door`]. Its state has in one word how many threads may still come in, how many are inside, and
//! whether the owner sleeps until nobody is.
#![allow(unsafe_code)] // Reason: what is behind a door is on the stack of who opened it.

use super::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, UnsafeCell, fence};

/// Jobs at a time; others are done without help.
const DOORS: usize = if cfg!(loom) { 2 } else { 64 };

const INSIDE: u32 = 0x7fff;
const OWNER_SLEEPS: u32 = 0x8000;
const ONE_WANTED: u32 = 0x1_0000;
const WANTED: u32 = 0xffff_0000;
/// Most threads that may come in at a time.
pub const MOST_WANTED: usize = INSIDE as usize;

/// 1. `job` is written by who has taken the door, while it is closed and nobody is inside.
/// 2. It is read by threads inside.
/// 3. What it leads to stays as long as the door is open, or anybody inside.
// Lines of its own, two because processors fetch pairs: others are at their doors.
#[repr(align(128))]
pub struct Door {
    state: AtomicU32,
    job: UnsafeCell<*const ()>,
}

// SAFETY: the rules above.
unsafe impl Sync for Door {}
// SAFETY: the same.
unsafe impl Send for Door {}

impl Door {
    fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            job: UnsafeCell::new(std::ptr::null()),
        }
    }

    /// Lets `wanted` threads in, at most [`MOST_WANTED`]. By who has taken the door.
    pub fn open(&self, job: *const (), wanted: usize) {
        // SAFETY: rule 1.
        self.job.with_mut(|place| unsafe { *place = job });
        // Release: who comes in sees the job, and all that was written before.
        self.state
            .store(wanted as u32 * ONE_WANTED, Ordering::Release);
    }

    /// Goes inside, if anybody is wanted there: the job.
    fn come_in(&self) -> Option<*const ()> {
        // Relaxed: only a hint.
        let mut state = self.state.load(Ordering::Relaxed);
        while state & WANTED != 0 {
            // Acquire: with the release of `open`; others that came in or went out since are part of its release
            // sequence. It does not matter for which opening the state was read: the job is read afterwards.
            let inside = state - ONE_WANTED + 1;
            let order = (Ordering::Acquire, Ordering::Relaxed);
            match self
                .state
                .compare_exchange_weak(state, inside, order.0, order.1)
            {
                // SAFETY: rule 2.
                Ok(_) => return Some(self.job.with(|job| unsafe { *job })),
                Err(now) => state = now,
            }
        }
        None
    }

    /// Goes out; whether the owner is to be woken.
    #[must_use]
    pub fn go_out(&self) -> bool {
        // Release: the owner sees what was done inside.
        self.state.fetch_sub(1, Ordering::Release) == OWNER_SLEEPS + 1
    }

    /// Lets nobody else in. By the owner.
    pub fn close(&self) {
        // Relaxed: `is_empty` comes after it.
        self.state.fetch_and(!WANTED, Ordering::Relaxed);
    }

    /// Whether nobody is inside. Of a closed door.
    pub fn is_empty(&self) -> bool {
        // Acquire: with the release of all who went out, one after the other in the same word.
        self.state.load(Ordering::Acquire) & INSIDE == 0
    }

    /// Says that the owner is going to sleep. Then it looks whether the room [is empty](Self::is_empty), under the lock
    /// under which those who are told by [`go_out`](Self::go_out) wake it.
    pub fn owner_sleeps(&self) {
        // Relaxed: who goes out changes the same word, so it is before, and seen by the look, or after, and sees this.
        self.state.fetch_or(OWNER_SLEEPS, Ordering::Relaxed);
    }

    /// How many may still come in, and how many are inside.
    fn counts(&self) -> [usize; 2] {
        let state = self.state.load(Ordering::Relaxed);
        [state / ONE_WANTED, state & INSIDE].map(|count| count as usize)
    }
}

/// All doors, and how many threads sleep.
pub struct Doors {
    /// A bit for each door that somebody has taken. Threads that look for a job look here.
    taken: Line<AtomicU64>,
    /// Threads that sleep, or are about to.
    asleep: Line<AtomicUsize>,
    doors: [Door; DOORS],
}

/// A cache line of its own.
#[repr(align(128))]
struct Line<T>(T);

impl Doors {
    pub fn new() -> Self {
        Self {
            taken: Line(AtomicU64::new(0)),
            asleep: Line(AtomicUsize::new(0)),
            doors: std::array::from_fn(|_| Door::new()),
        }
    }

    /// A closed door for the caller alone, if there is one.
    pub fn take(&self) -> Option<&Door> {
        let mut taken = self.taken.0.load(Ordering::Relaxed);
        loop {
            let free = (!taken).trailing_zeros();
            let door = self.doors.get(free as usize)?;
            // Acquire: with the release of `give_back`, so that its former owner is done with it.
            let order = (Ordering::Acquire, Ordering::Relaxed);
            match self
                .taken
                .0
                .compare_exchange_weak(taken, taken | 1 << free, order.0, order.1)
            {
                Ok(_) => return Some(door),
                Err(now) => taken = now,
            }
        }
    }

    /// Gives a door back that is closed and empty.
    pub fn give_back(&self, door: &Door) {
        let number = self.doors.iter().position(|one| std::ptr::eq(one, door));
        let bit = number.map_or(0, |number| 1 << number);
        // Release: with `take`.
        self.taken.0.fetch_and(!bit, Ordering::Release);
    }

    fn taken(&self) -> impl Iterator<Item = &Door> {
        let mut taken = self.taken.0.load(Ordering::Relaxed);
        std::iter::from_fn(move || {
            let door = self.doors.get(taken.trailing_zeros() as usize)?;
            taken &= taken - 1;
            Some(door)
        })
    }

    /// Goes inside where a thread is wanted.
    pub fn come_in(&self) -> Option<(&Door, *const ())> {
        self.taken().find_map(|door| Some((door, door.come_in()?)))
    }

    /// How many threads may still come in somewhere, and how many are inside.
    pub fn counts(&self) -> [usize; 2] {
        self.taken().map(Door::counts).fold([0; 2], |sum, counts| {
            [sum[0] + counts[0], sum[1] + counts[1]]
        })
    }

    /// Says that this thread is about to sleep. It must look for a job once more then ([`come_in`](Self::come_in)), under
    /// the lock under which sleepers are woken.
    pub fn falls_asleep(&self) {
        self.asleep.0.fetch_add(1, Ordering::Relaxed);
        // The race: a thread looks for a job and sleeps, and who opens a door looks for sleepers and finds none. With
        // this fence and that of `asleep`, one of them sees what the other has written before.
        fence(Ordering::SeqCst);
    }

    /// Says that this thread is awake again.
    pub fn wakes(&self) {
        self.asleep.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many threads sleep, or are about to and have not seen a door that the caller has opened before.
    pub fn asleep(&self) -> usize {
        // See `falls_asleep`.
        fence(Ordering::SeqCst);
        self.asleep.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod models {
    //! `RUSTFLAGS="--cfg loom" cargo test -p crosswarp-prim --lib --release loom`

    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::*;

    /// What a job leads to: the owner writes it before and after, those inside between.
    struct Work(UnsafeCell<usize>, AtomicUsize);

    fn work() -> Work {
        Work(UnsafeCell::new(0), AtomicUsize::new(0))
    }

    impl Work {
        fn owner_writes(&self, value: usize) {
            // SAFETY: loom fails the model if anybody reads meanwhile.
            self.0.with_mut(|place| unsafe { *place = value });
        }

        fn helper_reads(&self) -> usize {
            self.1.fetch_add(1, Ordering::Relaxed);
            // SAFETY: loom fails the model if it is written meanwhile.
            self.0.with(|place| unsafe { *place })
        }
    }

    struct Pool {
        doors: Doors,
        lock: Mutex<()>,
        call: Condvar,
        end: Condvar,
    }

    fn pool() -> Arc<Pool> {
        Arc::new(Pool {
            doors: Doors::new(),
            lock: Mutex::new(()),
            call: Condvar::new(),
            end: Condvar::new(),
        })
    }

    impl Pool {
        fn help(&self, (door, job): (&Door, *const ())) {
            // SAFETY: rule 3; jobs are `Work` here.
            assert!(unsafe { &*job.cast::<Work>() }.helper_reads() > 0);
            if door.go_out() {
                drop(self.lock.lock().unwrap());
                self.end.notify_all();
            }
        }

        fn close(&self, door: &Door) {
            door.close();
            if !door.is_empty() {
                let mut lock = self.lock.lock().unwrap();
                door.owner_sleeps();
                while !door.is_empty() {
                    lock = self.end.wait(lock).unwrap();
                }
            }
            self.doors.give_back(door);
        }
    }

    // One helper: with two the interleavings are too many.
    #[test]
    fn loom_who_saw_one_job_may_come_to_the_next_and_each_is_left_alone_when_its_door_is_closed() {
        loom::model(|| {
            let pool = pool();
            let helper = {
                let pool = pool.clone();
                thread::spawn(move || {
                    if let Some(found) = pool.doors.come_in() {
                        pool.help(found);
                    }
                })
            };
            for _ in 0..2 {
                let work = work();
                work.owner_writes(1);
                let door = pool.doors.take().unwrap();
                door.open((&raw const work).cast(), 1);
                pool.close(door);
                work.owner_writes(0);
                assert!(work.1.load(Ordering::Relaxed) <= 1, "one was wanted");
            }
            helper.join().unwrap();
        });
    }

    #[test]
    fn loom_a_sleeper_is_woken_for_a_job() {
        loom::model(|| {
            let pool = pool();
            let sleeper = {
                let pool = pool.clone();
                thread::spawn(move || {
                    let mut lock = pool.lock.lock().unwrap();
                    loop {
                        pool.doors.falls_asleep();
                        if let Some(found) = pool.doors.come_in() {
                            pool.doors.wakes();
                            drop(lock);
                            return pool.help(found);
                        }
                        // A lost wake-up is a deadlock.
                        lock = pool.call.wait(lock).unwrap();
                        pool.doors.wakes();
                    }
                })
            };
            let work = work();
            work.owner_writes(1);
            let door = pool.doors.take().unwrap();
            door.open((&raw const work).cast(), 1);
            if pool.doors.asleep() > 0 {
                drop(pool.lock.lock().unwrap());
                pool.call.notify_one();
            }
            sleeper.join().unwrap();
            pool.close(door);
            work.owner_writes(0);
            assert_eq!(work.1.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn loom_doors_are_each_taken_by_one() {
        loom::model(|| {
            let pool = pool();
            let other = {
                let pool = pool.clone();
                thread::spawn(move || {
                    let work = work();
                    work.owner_writes(1);
                    let door = pool.doors.take().unwrap();
                    door.open((&raw const work).cast(), 1);
                    pool.close(door);
                    work.owner_writes(0);
                })
            };
            let door = pool.doors.take().unwrap();
            let work = work();
            work.owner_writes(1);
            door.open((&raw const work).cast(), 1);
            pool.close(door);
            work.owner_writes(0);
            other.join().unwrap();
        });
    }
}

//! Threads that are kept from one call to the next: to start one takes 40 µs, to wake one 5 to 10, to share work with
//! those that are looking for some 1.
//!
//! Who has work opens a [door](door) to it, does it part by part, and others come to help, or not: nobody waits for a
//! thread that has not begun. So a busy machine, a thread that cannot be started and a fork cost help, never an answer.
//!
//! A thread that has helped, or was woken, looks for the next job for a while ([`LOOK`]) before it sleeps.
//!
//! A fork takes none of the threads along, and perhaps a lock that one of them had. So its child forgets the pool that it has
//! inherited, without a look at it, and makes one of its own. (The child of a bare `clone` or `_Fork`, which know no handlers,
//! must not call.)
#![allow(unsafe_code)] // Reason: threads that outlive a call work on what is on its stack.

mod door;
mod sleepers;
mod sync;

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use crosswarp_shmem::internal::HeldSignals;
use door::{Door, Doors, MOST_WANTED};
use sleepers::{Sleepers, allow};

/// How long a thread without work is kept.
const KEPT: Duration = Duration::from_secs(10);

/// How long a thread that has been woken, or has done a job, looks for another before it sleeps: calls follow one another, as
/// in a loop, and what a loop of Python does in between, another library's call for example, takes some tens of microseconds.
/// One that looked for less after it was woken for a job that was over when it came would miss the next one, too. A program
/// that makes a call now and then pays these microseconds of other processors for each.
pub const LOOK: Duration = Duration::from_micros(50);
/// How long the owner of a job looks whether all are out before it sleeps: what is left are the last of equal parts.
const LOOK_FOR_END: Duration = Duration::from_micros(20);
/// Looks, which take tens of nanoseconds each, between two at the clock. The processor is not given away in between: who
/// else spins, as the threads of OpenBLAS do for milliseconds after a call of NumPy's, would have it most of the time.
const LOOKS: u32 = 16;
/// If so much time has passed between two looks at the clock, another one had the processor, and needs it more.
const AWAY: Duration = Duration::from_micros(10);

/// Does `work` with each of `0..parts`, on this thread and on up to `threads - 1` kept ones, and returns when all are done.
///
/// Which thread does which part is open. A panic in `work` comes out here, and parts that nobody has begun are left undone
/// then. What is returned is for how long this thread had nothing to do but to wait for others.
pub fn share(threads: usize, parts: usize, work: &(dyn Fn(usize) + Sync)) -> Duration {
    let helpers = threads.min(parts).saturating_sub(1).min(MOST_WANTED);
    let pool = (helpers > 0).then(Pool::of_this_process).flatten();
    let Some(pool) = pool else {
        (0..parts).for_each(work);
        return Duration::ZERO;
    };
    pool.share(helpers, parts, work)
}

/// How many threads look for a job now, and so come at once, and how many there are.
pub fn kept() -> [usize; 2] {
    Pool::found().map_or([0; 2], |pool| {
        [pool.looking(), pool.threads.load(Ordering::Relaxed)]
    })
}

/// Whether threads look for jobs when this process has so many in all. Where they are more than processors, one that looks
/// keeps one that works from working. (Of two processors another library's thread that spins may have one: a dot product of
/// 10^6 `f64` after each of NumPy's took 133 to 212 µs, where one thread takes 200.)
pub fn may_look(threads: usize) -> bool {
    // 0: not asked yet. No lock, which a fork could leave taken.
    static PROCESSORS: AtomicUsize = AtomicUsize::new(0);
    let mut processors = PROCESSORS.load(Ordering::Relaxed);
    if processors == 0 {
        processors = thread::available_parallelism().map_or(1, usize::from);
        PROCESSORS.store(processors, Ordering::Relaxed);
    }
    threads <= processors
}

/// Ends the threads that have nothing to do, and returns when they are gone. Before a fork: the system then counts one
/// thread, and Python does not warn of others.
pub fn rest() {
    if let Some(pool) = Pool::found() {
        pool.rest();
    }
}

/// What is looked for, if it is found in time. Nothing is looked for longer than once where time is 0.
fn look<R>(time: Duration, mut found: impl FnMut() -> Option<R>) -> Option<R> {
    let first = found();
    if first.is_some() || time.is_zero() {
        return first;
    }
    let begun = Instant::now();
    let mut before = begun;
    loop {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            let found = found();
            if found.is_some() {
                return found;
            }
        }
        let now = Instant::now();
        if now - begun > time || now - before > AWAY {
            return None;
        }
        before = now;
    }
}

/// Work that some threads share. It lives on the stack of the thread that has it to do.
///
/// Each thread has a seat, to which a group of neighbouring parts belongs, and in the next job of as many threads the same,
/// so that arrays that are worked on again and again are found in the caches of the processors that had them. Who is done
/// with its own group goes on with the next one's.
struct Job<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    parts: usize,
    /// At least two: who has work sits at the first.
    seats: usize,
    /// Of each seat's group the first part that nobody has begun, counted from the group's first.
    next: [Line<AtomicUsize>; MOST_SEATS],
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

const MOST_SEATS: usize = 64;

/// A cache line of its own.
#[repr(align(64))]
struct Line<T>(T);

impl<'a> Job<'a> {
    fn new(seats: usize, parts: usize, work: &'a (dyn Fn(usize) + Sync)) -> Self {
        Self {
            work,
            parts,
            seats: seats.min(MOST_SEATS),
            next: [const { Line(AtomicUsize::new(0)) }; MOST_SEATS],
            panic: Mutex::new(None),
        }
    }

    /// The seat of the thread of this number, which is at least 1. Two threads may have the same one: they share its parts.
    fn seat(&self, number: usize) -> usize {
        1 + (number - 1) % (self.seats - 1)
    }

    /// Does parts until there are no more.
    fn help(&self, seat: usize) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            let first = |group: usize| self.parts * group / self.seats;
            for group in (seat..self.seats).chain(0..seat) {
                let (next, parts) = (&self.next[group].0, first(group + 1) - first(group));
                // Relaxed: one order of this counter is enough for each part to be taken once. What was written before
                // is seen by who has come by the door, and what parts leave by who has closed it.
                while next.load(Ordering::Relaxed) < parts {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part < parts {
                        (self.work)(first(group) + part);
                    }
                }
            }
        }));
        if let Err(panic) = done {
            for next in &self.next[..self.seats] {
                next.0.store(self.parts, Ordering::Relaxed);
            }
            lock(&self.panic).get_or_insert(panic);
        }
    }
}

#[derive(Default)]
struct State {
    /// All threads; one of them takes its own handle out when it leaves.
    handles: HashMap<ThreadId, JoinHandle<()>>,
    /// How many are to leave as soon as they have no job.
    leave: usize,
    sleepers: Sleepers,
    /// Those that have left because of that.
    gone: Vec<JoinHandle<()>>,
}

struct Pool {
    doors: Doors,
    /// All threads; changed under the lock.
    threads: AtomicUsize,
    state: Mutex<State>,
    /// There is a job to come to, or somebody is to leave.
    call: Condvar,
    /// A job has nobody inside any more, or somebody has left.
    end: Condvar,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the child of a fork does. (A look at the number of the process each time would take 0.15 µs.)
extern "C" fn forget_the_pool() {
    // Relaxed: the child has one thread.
    POOL.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Sees to it that children of this process forget its pool; whether they will.
fn children_forget_the_pool() -> bool {
    static ASKED: AtomicBool = AtomicBool::new(false);
    // Relaxed: who does not see it asks once more, which changes nothing.
    if ASKED.load(Ordering::Relaxed) {
        return true;
    }
    // SAFETY: a child may store to an atomic in a handler. The C library takes the handler back when the library that has it is
    // unloaded.
    let error = unsafe { libc::pthread_atfork(None, None, Some(forget_the_pool)) };
    ASKED.store(error == 0, Ordering::Relaxed);
    error == 0
}

impl Pool {
    /// This process's pool, if it has one.
    fn found() -> Option<&'static Pool> {
        // Acquire: with the release below, so that the pool is seen as it was made.
        // SAFETY: null, or a pool that was leaked.
        unsafe { POOL.load(Ordering::Acquire).as_ref() }
    }

    /// The same, made if need be; nothing if a child could not be told to forget it.
    fn of_this_process() -> Option<&'static Pool> {
        if let Some(pool) = Self::found() {
            return Some(pool);
        }
        if !children_forget_the_pool() {
            return None;
        }
        let pool = Box::into_raw(Box::new(Pool {
            doors: Doors::new(),
            threads: AtomicUsize::new(0),
            state: Mutex::default(),
            call: Condvar::new(),
            end: Condvar::new(),
        }));
        // Release: see `found`.
        let order = (Ordering::Release, Ordering::Relaxed);
        if POOL
            .compare_exchange(ptr::null_mut(), pool, order.0, order.1)
            .is_err()
        {
            // Another thread was faster.
            // SAFETY: made above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(pool) });
        }
        Self::found()
    }

    fn share(
        &'static self,
        helpers: usize,
        parts: usize,
        work: &(dyn Fn(usize) + Sync),
    ) -> Duration {
        let job = Job::new(helpers + 1, parts, work);
        let published = self.publish(&job, helpers);
        job.help(0);
        let waited = published.map_or(Duration::ZERO, Published::end);
        let panic = lock(&job.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        waited
    }

    /// Lets `helpers` threads come to the job, until what is returned is dropped; nothing if there are too many jobs.
    fn publish<'a>(&'static self, job: &'a Job<'_>, helpers: usize) -> Option<Published<'a>> {
        let published = Published {
            pool: self,
            door: self.doors.take()?,
            _job: job,
        };
        // The door knows no lifetimes; `Published` keeps its rule 3.
        published.door.open(ptr::from_ref(job).cast(), helpers);
        let [wanted, _] = self.doors.counts();
        let looking = self.looking();
        if looking < wanted {
            self.call(wanted - looking);
        }
        Some(published)
    }

    /// Threads that look for a job, or will before they sleep.
    fn looking(&self) -> usize {
        let (asleep, [_, inside]) = (self.doors.asleep(), self.doors.counts());
        let threads = self.threads.load(Ordering::Relaxed);
        threads.saturating_sub(asleep + inside)
    }

    /// Wakes `missing` threads, and starts those that there are not.
    fn call(&'static self, missing: usize) {
        let mut state = lock(&self.state);
        loop {
            let [wanted, inside] = self.doors.counts();
            // Those that have no job, and are not about to leave.
            let free = self.threads.load(Ordering::Relaxed);
            let free = free.saturating_sub(inside + state.leave);
            if free >= wanted || !self.start(&mut state) {
                break;
            }
        }
        state.sleepers.leave_the_callers_processor(missing);
        drop(state);
        let asleep = self.doors.asleep();
        if missing < asleep {
            for _ in 0..missing {
                self.call.notify_one();
            }
        } else if asleep > 0 {
            self.call.notify_all();
        }
    }

    /// Starts a thread; whether there was one to be had.
    fn start(&'static self, state: &mut State) -> bool {
        // For its seat. After others have left some may have the same.
        let number = 1 + self.threads.load(Ordering::Relaxed);
        // Signals are for the threads of the program, which may block them to wait for them.
        let held = HeldSignals::but_faults();
        let thread = thread::Builder::new()
            .name("crosswarp".into())
            .spawn(move || self.serve(number));
        drop(held);
        let Ok(thread) = thread else {
            return false;
        };
        // Before it leaves it comes by the lock that the caller has, and finds its handle.
        state.handles.insert(thread.thread().id(), thread);
        self.threads.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// What a thread does.
    fn serve(&self, number: usize) {
        loop {
            // This one, those beside it, and one that has work.
            let threads = self.threads.load(Ordering::Relaxed) + 1;
            let found = look(
                if may_look(threads) {
                    LOOK
                } else {
                    Duration::ZERO
                },
                || self.doors.come_in(),
            );
            if let Some(found) = found {
                self.help(number, found);
                continue;
            }
            let mut state = lock(&self.state);
            self.doors.falls_asleep();
            // From here on who opens a door does not count on this thread, but comes by the lock to call or start one.
            if let Some(found) = self.doors.come_in() {
                self.doors.wakes();
                drop(state);
                self.help(number, found);
                continue;
            }
            if state.leave > 0 {
                state.leave -= 1;
                let handle = self.remove(&mut state);
                state.gone.extend(handle);
                self.end.notify_all();
                return;
            }
            state.sleepers.add();
            let (mut state, waited) = self
                .call
                .wait_timeout(state, KEPT)
                .unwrap_or_else(PoisonError::into_inner);
            let allowed = state.sleepers.remove();
            if waited.timed_out() && state.leave == 0 && self.doors.counts()[0] == 0 {
                self.remove(&mut state);
                return;
            }
            self.doors.wakes();
            drop(state);
            if let Some(processors) = allowed {
                allow(&processors);
            }
        }
    }

    /// Takes this thread, which is asleep to others, out of those that there are.
    fn remove(&self, state: &mut State) -> Option<JoinHandle<()>> {
        self.threads.fetch_sub(1, Ordering::Relaxed);
        self.doors.wakes();
        state.handles.remove(&thread::current().id())
    }

    fn help(&self, number: usize, (door, job): (&Door, *const ())) {
        // SAFETY: a job, as `publish` says, and this thread is inside until it goes out: rule 3 of `Door`.
        let job = unsafe { &*job.cast::<Job<'static>>() };
        job.help(job.seat(number));
        if door.go_out() {
            // The owner holds the lock from its look until it sleeps.
            drop(lock(&self.state));
            self.end.notify_all();
        }
    }

    fn rest(&self) {
        let mut state = lock(&self.state);
        let idle = || {
            let threads = self.threads.load(Ordering::Relaxed);
            threads.saturating_sub(self.doors.counts()[1])
        };
        state.leave = idle().saturating_sub(self.doors.counts()[0]);
        self.call.notify_all();
        // One that was to leave may have found a job, which takes as long as it takes.
        while state.leave > 0 && idle() > 0 {
            let again = self.end.wait_timeout(state, Duration::from_millis(1));
            state = again.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.leave = 0;
        let gone = std::mem::take(&mut state.gone);
        drop(state);
        for thread in gone {
            // It has nothing to say: panics are the jobs'.
            let _ = thread.join();
        }
    }
}

/// A job behind an open door.
struct Published<'a> {
    pool: &'static Pool,
    door: &'static Door,
    /// It is there until nobody is inside.
    _job: &'a Job<'a>,
}

impl Published<'_> {
    /// Waits until nobody is inside: for how long.
    fn end(self) -> Duration {
        self.door.close();
        if self.door.is_empty() {
            return Duration::ZERO;
        }
        let begun = Instant::now();
        drop(self);
        begun.elapsed()
    }
}

impl Drop for Published<'_> {
    /// Returns when nobody is inside, and nobody comes any more: rule 3 of [`Door`].
    fn drop(&mut self) {
        let (pool, door) = (self.pool, self.door);
        door.close();
        let is_empty = || door.is_empty().then_some(());
        if look(LOOK_FOR_END, is_empty).is_none() {
            let mut state = lock(&pool.state);
            door.owner_sleeps();
            while !door.is_empty() {
                let again = pool.end.wait(state);
                state = again.unwrap_or_else(PoisonError::into_inner);
            }
        }
        pool.doors.give_back(door);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::*;

    #[test]
    fn every_part_is_done_once() {
        for threads in [0, 1, 2, 5] {
            for parts in [0, 1, 2, 3, 1000] {
                let done: Vec<_> = (0..parts).map(|_| AtomicU64::new(0)).collect();
                share(threads, parts, &|part| {
                    done[part].fetch_add(1, Ordering::Relaxed);
                });
                assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1));
            }
        }
    }

    /// Waits in a part until as many threads are in parts.
    fn meet(count: &AtomicUsize, threads: usize) {
        count.fetch_add(1, Ordering::SeqCst);
        while count.load(Ordering::SeqCst) < threads {
            thread::yield_now();
        }
    }

    #[test]
    fn threads_come_and_come_again() {
        for _ in 0..100 {
            let count = AtomicUsize::new(0);
            share(4, 4, &|_| meet(&count, 4));
        }
    }

    #[test]
    fn several_callers_and_callers_in_parts() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let sum = AtomicU64::new(0);
                        share(3, 7, &|part| {
                            share(2, 5, &|inner| {
                                sum.fetch_add((part * 5 + inner) as u64, Ordering::Relaxed);
                            });
                        });
                        assert_eq!(sum.into_inner(), 34 * 35 / 2);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_comes_out_and_nothing_is_broken() {
        // On the caller's thread or on another: who comes first is open, so all parts do.
        for _ in 0..20 {
            let panic = catch_unwind(|| share(2, 2, &|part| panic!("part {part}"))).unwrap_err();
            assert!(panic.downcast_ref::<String>().unwrap().starts_with("part "));
        }
        let others = AtomicBool::new(false);
        let count = AtomicUsize::new(0);
        let caller = thread::current().id();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            share(2, 2, &|_| {
                meet(&count, 2);
                if thread::current().id() != caller {
                    others.store(true, Ordering::Relaxed);
                    panic!("elsewhere");
                }
            });
        }));
        assert!(panic.is_err() && others.into_inner());
        every_part_is_done_once();
    }

    #[test]
    fn after_a_rest_threads_come_again() {
        for _ in 0..20 {
            threads_come_and_come_again();
            rest();
        }
    }

    #[test]
    fn the_child_of_a_fork_has_threads_of_its_own() {
        threads_come_and_come_again();
        // SAFETY: the child calls what takes no lock that another thread may have had (the system's allocator sees to its
        // own), and ends without a return.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let done = catch_unwind(threads_come_and_come_again);
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(done.is_err())) };
        }
        let begun = Instant::now();
        let mut status = 0;
        let ended = loop {
            // SAFETY: `status` is there for the call.
            let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
            if ended != 0 {
                break ended;
            }
            if begun.elapsed() > Duration::from_secs(60) {
                // SAFETY: of a child that has not been waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
                panic!("the child waits for threads that it does not have");
            }
            thread::sleep(Duration::from_millis(1));
        };
        assert_eq!((ended, status), (child, 0));
    }

    #[test]
    fn threads_take_no_signals_but_their_own() {
        let count = AtomicUsize::new(0);
        let caller = thread::current().id();
        share(2, 2, &|_| {
            meet(&count, 2);
            if thread::current().id() != caller {
                let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
                let held = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
                let held = u64::from_str_radix(held.unwrap().trim(), 16).unwrap();
                // SIGINT and SIGTERM, but not SIGBUS and SIGSEGV.
                assert_eq!(held & 0x4442, 0x4002);
            }
        });
    }
}

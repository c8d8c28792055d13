//! Threads that are kept from one call to the next: to start one takes 40 µs, to wake one 5 to 10.
//!
//! Who has work publishes it, does it part by part, and others come to help, or not: nobody waits for a thread that has
//! not begun. So a busy machine, a thread that cannot be started and a fork cost help, never an answer.
//!
//! A fork takes none of the threads along, and perhaps a lock that one of them had. So the process that [`share`] is
//! called in makes a pool of its own, and does not look at what it has inherited.
#![allow(unsafe_code)] // Reason: threads that outlive a call work on what is on its stack.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use crosswarp_shmem::internal::HeldSignals;

/// How long a thread without work is kept.
const KEPT: Duration = Duration::from_secs(10);

/// Does `work` with each of `0..parts`, on this thread and on up to `threads - 1` kept ones, and returns when all are done.
///
/// Which thread does which part is open. A panic in `work` comes out here, and parts that nobody has begun are left undone
/// then.
pub fn share(threads: usize, parts: usize, work: &(dyn Fn(usize) + Sync)) {
    let helpers = threads.min(parts).saturating_sub(1);
    if helpers == 0 {
        (0..parts).for_each(work);
    } else {
        Pool::of_this_process().share(helpers, parts, work);
    }
}

/// Ends the threads that have nothing to do, and returns when they are gone. Before a fork: the system then counts one
/// thread, and Python does not warn of others.
pub fn rest() {
    if let Some(pool) = Pool::found() {
        pool.rest();
    }
}

/// Work that some threads share. It lives on the stack of the thread that has it to do.
struct Job<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    parts: usize,
    /// The first part that nobody has begun.
    next: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job<'_> {
    /// Does parts until there are no more.
    fn help(&self) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            loop {
                // Relaxed: one order of this counter is enough for each part to be taken once. What was written before
                // is seen by who has come by the pool's lock, and what parts leave by who waits with it.
                let part = self.next.fetch_add(1, Ordering::Relaxed);
                if part >= self.parts {
                    return;
                }
                (self.work)(part);
            }
        }));
        if let Err(panic) = done {
            self.next.store(self.parts, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(panic);
        }
    }
}

/// A job that threads may come to.
struct Open {
    /// 1. It is there as long as its entry is in the list.
    /// 2. Who has it to do takes the entry out when nobody is inside.
    /// 3. A thread of the pool reads it between its entry's counting it in and out, both under the pool's lock.
    job: *const Job<'static>,
    /// Threads that may still come.
    wanted: usize,
    inside: usize,
}

// SAFETY: a pointer to what threads may share: `Job` is `Sync`.
unsafe impl Send for Open {}

#[derive(Default)]
struct State {
    open: Vec<Open>,
    /// All threads; one of them takes its own handle out when it leaves.
    threads: HashMap<ThreadId, JoinHandle<()>>,
    /// Those that have no job.
    idle: usize,
    /// How many are to leave as soon as they have none.
    leave: usize,
    /// Those that have left because of that.
    gone: Vec<JoinHandle<()>>,
}

impl State {
    /// Threads that may still come to jobs.
    fn wanted(&self) -> usize {
        self.open.iter().map(|open| open.wanted).sum()
    }

    /// Threads that have no job, and are not about to leave.
    fn free(&self) -> usize {
        self.idle - self.leave
    }
}

struct Pool {
    process: u32,
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

impl Pool {
    /// This process's pool, if it has one.
    fn found() -> Option<&'static Pool> {
        // Acquire: with the release below, so that the pool is seen as it was made.
        // SAFETY: null, or a pool that was leaked.
        let pool = unsafe { POOL.load(Ordering::Acquire).as_ref() };
        pool.filter(|pool| pool.process == std::process::id())
    }

    fn of_this_process() -> &'static Pool {
        loop {
            if let Some(pool) = Self::found() {
                return pool;
            }
            // Null, or the parent's, which is left as it is.
            let before = POOL.load(Ordering::Acquire);
            let pool = Box::into_raw(Box::new(Pool {
                process: std::process::id(),
                state: Mutex::default(),
                call: Condvar::new(),
                end: Condvar::new(),
            }));
            // Release: see `found`.
            if POOL
                .compare_exchange(before, pool, Ordering::Release, Ordering::Relaxed)
                .is_err()
            {
                // SAFETY: made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(pool) });
            }
        }
    }

    fn share(&'static self, helpers: usize, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let job = Job {
            work,
            parts,
            next: AtomicUsize::new(0),
            panic: Mutex::new(None),
        };
        let published = self.publish(&job, helpers);
        job.help();
        drop(published);
        let panic = lock(&job.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Lets `helpers` threads come to the job, until what is returned is dropped.
    fn publish<'a>(&'static self, job: &'a Job<'_>, helpers: usize) -> Published<'a> {
        // The list knows no lifetimes; rules 1 and 2 of `Open` keep this one.
        let address: *const Job<'static> = ptr::from_ref(job).cast();
        let published = Published {
            pool: self,
            address,
            _job: job,
        };
        let mut state = lock(&self.state);
        state.open.push(Open {
            job: address,
            wanted: helpers,
            inside: 0,
        });
        while state.free() < state.wanted() && self.start(&mut state) {}
        drop(state);
        for _ in 0..helpers {
            self.call.notify_one();
        }
        published
    }

    /// Starts a thread; whether there was one to be had.
    fn start(&'static self, state: &mut State) -> bool {
        // Signals are for the threads of the program, which may block them to wait for them.
        let held = HeldSignals::but_faults();
        let thread = thread::Builder::new()
            .name("crosswarp".into())
            .spawn(|| self.serve());
        drop(held);
        let Ok(thread) = thread else {
            return false;
        };
        // It comes by the lock that the caller has, and finds its handle.
        state.threads.insert(thread.thread().id(), thread);
        state.idle += 1;
        true
    }

    /// What a thread does.
    fn serve(&self) {
        let me = thread::current().id();
        let mut state = lock(&self.state);
        loop {
            if state.leave > 0 {
                state.leave -= 1;
                state.idle -= 1;
                let handle = state.threads.remove(&me);
                state.gone.extend(handle);
                self.end.notify_all();
                return;
            }
            if let Some(open) = state.open.iter_mut().find(|open| open.wanted > 0) {
                open.wanted -= 1;
                open.inside += 1;
                let job = open.job;
                state.idle -= 1;
                drop(state);
                // SAFETY: rule 3: counted in above, and out below.
                unsafe { &*job }.help();
                state = lock(&self.state);
                state.idle += 1;
                if let Some(open) = state.open.iter_mut().find(|open| open.job == job) {
                    open.inside -= 1;
                    if open.inside == 0 {
                        self.end.notify_all();
                    }
                }
                continue;
            }
            let (again, waited) = self
                .call
                .wait_timeout(state, KEPT)
                .unwrap_or_else(PoisonError::into_inner);
            state = again;
            if waited.timed_out() && state.leave == 0 && state.wanted() == 0 {
                state.idle -= 1;
                state.threads.remove(&me);
                return;
            }
        }
    }

    fn rest(&self) {
        let mut state = lock(&self.state);
        state.leave = state.idle - state.wanted().min(state.idle);
        self.call.notify_all();
        while state.leave > 0 {
            state = self.end.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let gone = std::mem::take(&mut state.gone);
        drop(state);
        for thread in gone {
            // It has nothing to say: panics are the jobs'.
            let _ = thread.join();
        }
    }
}

/// A job in the list.
struct Published<'a> {
    pool: &'static Pool,
    address: *const Job<'static>,
    /// It is there until the entry is gone.
    _job: &'a Job<'a>,
}

impl Drop for Published<'_> {
    /// Takes the entry out once nobody is inside: rule 2 of [`Open`].
    fn drop(&mut self) {
        let mut state = lock(&self.pool.state);
        loop {
            let mine = state.open.iter_mut().enumerate();
            let Some((at, open)) = mine.into_iter().find(|(_, open)| open.job == self.address)
            else {
                return;
            };
            // Nobody else comes.
            open.wanted = 0;
            if open.inside == 0 {
                state.open.swap_remove(at);
                return;
            }
            state = self
                .pool
                .end
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
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

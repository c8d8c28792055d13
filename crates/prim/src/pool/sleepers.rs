//! On which processors sleepers wake.
//!
//! A thread that is woken may be put behind the one that woke it, although another processor is idle: a virtual machine's
//! idle processors count as taken where their host has given them to others meanwhile (Linux, `available_idle_cpu`). There
//! it stays for milliseconds, longer than the job. So who wakes threads takes its own processor from those that they may run
//! on; once awake they get it back.

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// A thread that sleeps, or is about to.
struct Sleeper {
    thread: Pid,
    /// Where it might run, if it wakes with fewer.
    allowed: Option<CpuSet>,
}

#[derive(Default)]
pub struct Sleepers(Vec<Sleeper>);

impl Sleepers {
    /// Of the calling thread, which is about to sleep.
    pub fn add(&mut self) {
        self.0.push(Sleeper {
            thread: gettid(),
            allowed: None,
        });
    }

    /// Of the calling thread, which is awake: what to [`allow`] it again.
    pub fn remove(&mut self) -> Option<CpuSet> {
        let thread = gettid();
        let place = self.0.iter().position(|one| one.thread == thread)?;
        // In the order in which they fell asleep: so they are woken, too.
        self.0.remove(place).allowed
    }

    /// Takes the caller's processor from the first `count`, which it is about to wake, where they have others.
    pub fn leave_the_callers_processor(&mut self, count: usize) {
        let here = sched_getcpu();
        for sleeper in self.0.iter_mut().take(count) {
            // Known already where it was woken before, and is not yet awake.
            let known = sleeper
                .allowed
                .map_or_else(|| sched_getaffinity(Some(sleeper.thread)), Ok);
            let Ok(allowed) = known else {
                continue;
            };
            let mut others = allowed;
            others.unset(here);
            // Where that is refused, the thread wakes where it would have.
            if others.count() > 0 && sched_setaffinity(Some(sleeper.thread), &others).is_ok() {
                sleeper.allowed = Some(allowed);
            }
        }
    }
}

/// Lets the calling thread run on these processors.
pub fn allow(processors: &CpuSet) {
    // Where that is refused, it goes on with those it has.
    let _ = sched_setaffinity(None, processors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_woken_may_not_run_where_the_caller_does_until_it_is_awake() {
        let whole = sched_getaffinity(None).unwrap();
        std::thread::spawn(move || {
            let mut sleepers = Sleepers::default();
            sleepers.add();
            sleepers.leave_the_callers_processor(1);
            let allowed = sleepers.remove();
            assert_eq!(allowed.is_some(), whole.count() > 1);
            let now = sched_getaffinity(None).unwrap();
            assert_eq!(now.count(), (whole.count() - 1).max(1));
            if let Some(allowed) = allowed {
                allow(&allowed);
            }
            assert_eq!(sched_getaffinity(None).unwrap(), whole);
            assert!(sleepers.remove().is_none());
        })
        .join()
        .unwrap();
    }
}

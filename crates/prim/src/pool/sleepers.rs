//! On which processors sleepers wake.
//!
//! The system may put a thread that is woken behind the one that woke it, although another processor is idle: of a virtual
//! machine, idle processors count as taken where the host has given them to others meanwhile (Linux, `available_idle_cpu`).
//! There the thread stays for milliseconds, longer than the job. So who wakes threads takes its own processor from those that
//! they may run on; once awake they get it back.
//!
//! What they get back is what they had when they were woken. Where the processors that the process may use are first made
//! fewer and then more again, threads keep the fewer until they end, [`KEPT`](super::KEPT) after the last job.

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Threads that are sent elsewhere when they are woken: each takes a microsecond or two of who wakes them. Where there are
/// more, there are more processors, too.
const FEW: usize = 4;

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

    /// Takes the caller's processor from the first `count`, at most [`FEW`], which it is about to wake, where they have
    /// others.
    pub fn leave_the_callers_processor(&mut self, count: usize) {
        let (here, mut left) = (sched_getcpu(), count.min(FEW));
        for sleeper in &mut self.0 {
            let allowed = match sleeper.allowed {
                // Woken before, or passed over by the condition variable, and not awake since.
                Some(allowed) => allowed,
                None if left == 0 => continue,
                None => {
                    left -= 1;
                    match sched_getaffinity(Some(sleeper.thread)) {
                        Ok(allowed) => allowed,
                        Err(_) => continue,
                    }
                }
            };
            if !allowed.is_set(here) {
                continue;
            }
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

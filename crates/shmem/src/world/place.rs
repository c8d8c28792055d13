//! On which processors PEs begin.
//!
//! The system may start a thread behind the one that starts it although another processor is idle: a virtual machine's idle
//! processors count as taken where their host has given them to others meanwhile (Linux, `available_idle_cpu`). Two PEs then
//! share a processor for some milliseconds, which is all that a small solve takes.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Moves the calling thread, which is PE `me` of `n_pes` that run here, to a processor of its own if there are enough, counted
/// from processor `first` on. It is free to be moved again: the processors may be others', too.
pub(crate) fn begin_apart(me: usize, n_pes: usize, first: usize) {
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let count = allowed.count() as usize;
    if n_pes < 2 || n_pes > count {
        return;
    }
    let before = (0..first).filter(|&one| allowed.is_set(one)).count();
    let mut all = (0..CpuSet::MAX_CPU).filter(|&one| allowed.is_set(one));
    let own = all.nth((before + me * count / n_pes) % count);
    if let Some(own) = own {
        let mut only = CpuSet::new();
        only.set(own);
        // Where that is refused, the thread begins where it is.
        if sched_setaffinity(None, &only).is_ok() {
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_run_where_it_might_before() {
        let allowed = sched_getaffinity(None).unwrap();
        for n_pes in 0..=allowed.count() as usize + 1 {
            for me in 0..n_pes {
                begin_apart(me, n_pes, me);
                assert_eq!(sched_getaffinity(None).unwrap(), allowed);
            }
        }
    }
}

//! The host's threads and vectors that a primitive works with.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Simd;
use crate::pool::{LOOK, kept, may_look, share};
use crate::sum::leaf::LEAF;

/// How much work pays for waking a thread, and how it is cut.
#[derive(Clone, Copy)]
pub(crate) enum Cost {
    /// At the speed of memory: 1 MiB. A dot product of `f64` on 2 cores of Zen 5 that others kept busy, with one thread,
    /// two kept ones and two that are started, medians (least) in µs: 1 MiB 22 (21), 23 (15), 70 (67); 2 MiB 42 (41),
    /// 43 (36), 98 (92); 8 MB 159 (155), 164 (111), 238 (201). Below, a thread that does not come in time costs more than
    /// it could bring.
    Streaming,
    /// A few nanoseconds an element: 64 KiB.
    Slow,
}

impl Cost {
    fn bytes_per_thread(self) -> usize {
        match self {
            Self::Streaming => 1 << 20,
            Self::Slow => 64 << 10,
        }
    }

    /// The same for a thread that looks for work, and comes at once.
    fn bytes_per_looking_thread(self) -> usize {
        match self {
            Self::Streaming => READY,
            Self::Slow => self.bytes_per_thread(),
        }
    }

    /// Parts that each thread would do if all came at once; one that comes late leaves some to the others.
    fn parts_per_thread(self) -> usize {
        match self {
            Self::Streaming => 4,
            // Each part has counters of its own, for example.
            Self::Slow => 1,
        }
    }

    /// What a thread that looks for work would have done in the time until it begins: half a microsecond.
    fn bytes_of_the_way(self) -> usize {
        match self {
            Self::Streaming => 32 << 10,
            Self::Slow => 0,
        }
    }

    /// What a thread works on between two looks at the flag that stops it: a few milliseconds.
    fn bytes_per_look(self) -> usize {
        match self {
            Self::Streaming => 16 << 20,
            Self::Slow => 1 << 20,
        }
    }
}

/// What pays for a thread that looks for work, at the speed of memory: 3 µs of one, three times of what it takes to come
/// and to leave what it found.
const READY: usize = 192 << 10;

/// Leaves of a part of [`Cost::Streaming`] at least, where there are enough for all threads.
const LEAVES_PER_PART: usize = 4;

/// Work, without a pause between, after which threads are started for work that pays only for such as look for some: half a
/// millisecond. Starting ten threads takes as long, so if this was the last of it, it took twice as long.
const START: usize = 32 << 20;
/// The same for waking threads that there are: 30 µs.
const WAKE: usize = 2 << 20;

/// Microseconds of work are not shared for so many times the time that was lost when a thread came, and was kept from
/// working then, because others need the processors more: a tenth of the time is lost at most.
const ALONE: u32 = 10;
/// What a thread waits for others at most, at the end of such work, if nothing keeps them from it.
const WAIT: Duration = Duration::from_micros(50);

/// Calls of this thread that follow one another, of work that pays for threads that look for some.
#[derive(Clone, Copy)]
struct Run {
    bytes: usize,
    /// When the last one ended.
    ended: Instant,
    /// Until when this thread works alone.
    alone: Option<Instant>,
}

thread_local! {
    static RUN_OF_CALLS: Cell<Option<Run>> = const { Cell::new(None) };
}

impl Run {
    /// The run with a call that begins now.
    fn with(bytes: usize) -> Self {
        let now = Instant::now();
        let before = RUN_OF_CALLS.get();
        let alone = before.and_then(|run| run.alone);
        let alone = alone.filter(|&alone| now < alone);
        // In a longer pause threads that looked have gone to sleep.
        let goes_on = before.filter(|run| now - run.ended < LOOK && alone.is_none());
        Self {
            bytes: bytes.saturating_add(goes_on.map_or(0, |run| run.bytes)),
            ended: now,
            alone,
        }
    }

    /// Threads for a call, if `cold` are worth being woken and `ready` worth to come when they look for work.
    fn threads(&mut self, cold: usize, ready: usize) -> usize {
        if self.alone.is_some() {
            return cold;
        }
        let [looking, kept] = kept();
        if self.bytes >= if kept + 1 < ready { START } else { WAKE } {
            // Once in a run of such a length.
            self.bytes = 0;
            return ready;
        }
        cold.max(ready.min(1 + looking))
    }

    fn end(mut self, waited: Duration) {
        self.ended = Instant::now();
        if waited > WAIT {
            self.alone = Some(self.ended + waited * ALONE);
        }
        RUN_OF_CALLS.set(Some(self));
    }
}

/// With which of `leaves` leaves part `part` begins, of `parts` parts, as many for each of `threads` threads, at least two. The
/// first ones are those of the thread that has the work: others begin when it has done `late` leaves.
fn first_leaf(part: usize, parts: usize, threads: usize, leaves: usize, late: usize) -> usize {
    let own = parts / threads;
    let own_leaves = (leaves + late * (threads - 1))
        .div_ceil(threads)
        .min(leaves);
    match part.checked_sub(own) {
        None => own_leaves * part / own,
        Some(more) => own_leaves + (leaves - own_leaves) * more / (parts - own),
    }
}

/// How many threads, and with which vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers<'a> {
    pub simd: Simd,
    pub threads: usize,
    /// When it becomes true, work is left undone.
    pub stop: Option<&'a AtomicBool>,
}

impl Workers<'_> {
    /// One thread with the machine's widest vectors.
    pub fn new() -> Self {
        Self::of(Simd::detect())
    }

    /// One thread with these vectors.
    pub fn of(simd: Simd) -> Self {
        Self {
            simd,
            threads: 1,
            stop: None,
        }
    }

    /// Whether work may have been left undone.
    pub fn is_stopped(&self) -> bool {
        // Nothing is read that the one who stops has written before.
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Splits 0..`len` (elements that take `bytes` each, in all inputs together) into a few ranges per thread, cut at
    /// multiples of a leaf, and works on all of them. Results are in the order of the ranges. Those of workers that can be stopped are more
    /// and shorter ranges; when they are stopped, some are missing at the end of a range, but never all.
    pub fn split<R: Send>(
        &self,
        cost: Cost,
        bytes: usize,
        len: usize,
        work: impl Fn(Range<usize>) -> R + Sync,
    ) -> Vec<R> {
        let bytes_in_all = len * bytes;
        let threads = |each: usize| self.threads.min(bytes_in_all / each).max(1);
        let cold = threads(cost.bytes_per_thread());
        let ready = threads(cost.bytes_per_looking_thread());
        if ready == cold || !may_look(2) {
            return self.split_in(cold, cost, bytes, len, work).0;
        }
        let mut run = Run::with(bytes_in_all);
        let threads = run.threads(cold, ready);
        let (found, waited) = self.split_in(threads, cost, bytes, len, work);
        // Parts of more work may take longer than others.
        run.end(if threads > cold {
            waited
        } else {
            Duration::ZERO
        });
        found
    }

    /// Results, and how long this thread waited for others at the end.
    fn split_in<R: Send>(
        &self,
        threads: usize,
        cost: Cost,
        bytes: usize,
        len: usize,
        work: impl Fn(Range<usize>) -> R + Sync,
    ) -> (Vec<R>, Duration) {
        let piece = self.stop.map_or(usize::MAX, |_| {
            (cost.bytes_per_look() / bytes).next_multiple_of(LEAF)
        });
        let work = |range: Range<usize>| {
            if range.len() <= piece {
                return (Some(work(range)), Vec::new());
            }
            let starts = range.clone().step_by(piece).enumerate();
            let found = starts
                .take_while(|(number, _)| *number == 0 || !self.is_stopped())
                .map(|(_, start)| work(start..range.end.min(start + piece)));
            (None, found.collect())
        };
        // The most common case has no list.
        let all = |(one, more): (Option<R>, Vec<R>)| one.into_iter().chain(more);
        if threads == 1 {
            return (all(work(0..len)).collect(), Duration::ZERO);
        }
        let leaves = len.div_ceil(LEAF);
        // As many for each thread, and not less than a few leaves each: a part has a total of its own.
        let each = leaves / (threads * LEAVES_PER_PART);
        let parts = threads * each.clamp(1, cost.parts_per_thread());
        let late = cost.bytes_of_the_way() / (LEAF * bytes);
        let cut = |part: usize| (first_leaf(part, parts, threads, leaves, late) * LEAF).min(len);
        let results: Vec<_> = (0..parts).map(|_| Mutex::new((None, Vec::new()))).collect();
        let waited = share(threads, parts, &|part| {
            // Not the first, so that there is a result.
            if part > 0 && self.is_stopped() {
                return;
            }
            let found = work(cut(part)..cut(part + 1));
            // Nobody else has this place's lock.
            *results[part].lock().unwrap_or_else(PoisonError::into_inner) = found;
        });
        let results = results.into_iter();
        let found = results
            .flat_map(|found| all(found.into_inner().unwrap_or_else(PoisonError::into_inner)));
        (found.collect(), waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_leaves_and_the_first_thread_has_more() {
        for threads in 2..=9 {
            for each in 1..=4 {
                let parts = threads * each;
                for leaves in [0, 1, threads, parts, parts + 1, 8 * parts, 1000] {
                    for late in [0, 1, 4, 2000] {
                        let begins = |part| first_leaf(part, parts, threads, leaves, late);
                        assert_eq!((begins(0), begins(parts)), (0, leaves));
                        assert!((0..parts).all(|part| begins(part) <= begins(part + 1)));
                        assert!(begins(each) * threads >= leaves);
                    }
                }
            }
        }
        // Two threads, 49 leaves: 25 and 24; and where the other one is four leaves late.
        assert_eq!(first_leaf(4, 8, 2, 49, 0), 25);
        assert_eq!(first_leaf(4, 8, 2, 49, 4), 27);
    }
}

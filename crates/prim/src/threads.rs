//! The host's threads and vectors that a primitive works with.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Simd;
use crate::pool::share;
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

    /// Parts that each thread would do if all came at once; one that comes late leaves some to the others.
    fn parts_per_thread(self) -> usize {
        match self {
            Self::Streaming => 4,
            // Each part has counters of its own, for example.
            Self::Slow => 1,
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
        let threads = self
            .threads
            .min(len * bytes / cost.bytes_per_thread())
            .max(1);
        let piece = self.stop.map_or(usize::MAX, |_| {
            (cost.bytes_per_look() / bytes).next_multiple_of(LEAF)
        });
        let work = |range: Range<usize>| {
            if range.len() <= piece {
                return vec![work(range)];
            }
            let starts = range.clone().step_by(piece).enumerate();
            starts
                .take_while(|(number, _)| *number == 0 || !self.is_stopped())
                .map(|(_, start)| work(start..range.end.min(start + piece)))
                .collect()
        };
        if threads == 1 {
            return work(0..len);
        }
        let parts = threads * cost.parts_per_thread();
        let leaves = len.div_ceil(LEAF);
        let cut = |part: usize| (leaves * part / parts * LEAF).min(len);
        let results: Vec<Mutex<Vec<R>>> = (0..parts).map(|_| Mutex::default()).collect();
        share(threads, parts, &|part| {
            // Not the first, so that there is a result.
            if part > 0 && self.is_stopped() {
                return;
            }
            let found = work(cut(part)..cut(part + 1));
            // Nobody else has this place's lock.
            *results[part].lock().unwrap_or_else(PoisonError::into_inner) = found;
        });
        let results = results.into_iter();
        results
            .flat_map(|found| found.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }
}

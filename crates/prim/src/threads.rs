//! The host's threads and vectors that a primitive works with.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::Simd;
use crate::sum::leaf::LEAF;

/// How much work pays for starting a thread, which takes about 40 µs.
#[derive(Clone, Copy)]
pub(crate) enum Cost {
    /// At the speed of memory: 16 MiB. On 2 cores of Zen 5 two threads reach 90 GB/s on 16 MiB of
    /// `f32`, one 118; on 64 MiB it is 66 and 57.
    Streaming,
    /// A few nanoseconds an element: 64 KiB.
    Slow,
}

impl Cost {
    fn bytes_per_thread(self) -> usize {
        match self {
            Self::Streaming => 16 << 20,
            Self::Slow => 64 << 10,
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

    /// Splits 0..`len` (elements of `T`) into one range per thread, cut at multiples of a leaf, and
    /// works on all of them. Results are in the order of the ranges. Those of workers that can be stopped are more
    /// and shorter ranges; when they are stopped, some are missing at the end of a thread's, but never all.
    pub fn split<T, R: Send>(
        &self,
        cost: Cost,
        len: usize,
        work: impl Fn(Range<usize>) -> R + Sync,
    ) -> Vec<R> {
        let parts = self
            .threads
            .min(len * size_of::<T>() / cost.bytes_per_thread())
            .max(1);
        let piece = self.stop.map_or(usize::MAX, |_| {
            (cost.bytes_per_look() / size_of::<T>()).next_multiple_of(LEAF)
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
        if parts == 1 {
            return work(0..len);
        }
        let leaves = len.div_ceil(LEAF);
        let cut = |part: usize| (leaves * part / parts * LEAF).min(len);
        let mut ranges = (0..parts).map(|part| cut(part)..cut(part + 1));
        let mine = ranges.next().unwrap_or(0..len);
        let work = &work;
        thread::scope(|scope| {
            let others: Vec<_> = ranges
                .map(|range| {
                    let task = range.clone();
                    let thread = thread::Builder::new().spawn_scoped(scope, move || work(task));
                    // Without a thread to be had, its range is worked on here.
                    thread.map_err(|_| range)
                })
                .collect();
            let mut results = work(mine);
            results.extend(others.into_iter().flat_map(|thread| {
                match thread {
                    Ok(thread) => thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    Err(range) => work(range),
                }
            }));
            results
        })
    }
}

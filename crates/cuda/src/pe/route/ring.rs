//! The ring by which a PE's kernels ask for what is to be done at PEs of other hosts: written by kernels
//! (`device/pe/route.cuh`), read here.
//!
//! 1. A kernel writes entry `number` into place `number % entries`, once `taken` says that the entry a round before was
//!    taken. No other entry is written there meanwhile: numbers are handed out once each.
//! 2. Each word of an entry says by its lowest bit whether it has come, for a kernel's stores may arrive in any order. The
//!    bit differs from round to round.
//! 3. What a kernel made visible to the host before it wrote an entry is there for whoever has read all of the entry;
//!    and it may change that again once it has seen the entry taken.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{
    AtomicOp, ROUTE_ATOMIC_BIT, ROUTE_EXPECTED_BIT, ROUTE_OPERAND_BIT, ROUTE_PE_BIT,
    ROUTE_WIDTH_BIT, ROUTE_WORDS, RouteOp,
};

/// A word of the ring. `loom` has its own.
pub(super) trait Word {
    /// Acquire, for rule 3.
    fn load(&self) -> u64;
}

impl Word for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
}

/// The lowest bit of the words of entry `number`, in a ring of so many entries.
fn round(entries: usize, number: u64) -> u64 {
    !(number / entries as u64) & 1
}

/// The words of entry `number`, if all of it has come.
pub(super) fn words<W: Word, const N: usize>(ring: &[W], number: u64) -> Option<[u64; N]> {
    let entries = ring.len() / N;
    let (place, round) = (number as usize % entries * N, round(entries, number));
    let mut words = [0; N];
    for (word, at) in words.iter_mut().zip(&ring[place..]) {
        let seen = at.load();
        if seen & 1 != round {
            return None;
        }
        *word = seen >> 1;
    }
    Some(words)
}

/// What a kernel asks for; see `route_entry` there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) op: RouteOp,
    pub(super) pe: usize,
    pub(super) local: u64,
    pub(super) offset: u64,
    pub(super) n: u64,
    /// Or the stride at `local`, in bytes.
    pub(super) operand: u64,
    /// Or the stride at `pe`, in bytes.
    pub(super) expected: u64,
    /// Bytes of a word or element.
    pub(super) width: u64,
    pub(super) change: u64,
}

/// Entry `number`, if all of it has come.
pub(super) fn read(ring: &[AtomicU64], number: u64) -> Option<Entry> {
    let [head, local, offset, n, operand, expected, element, _] =
        words::<_, ROUTE_WORDS>(ring, number)?;
    let bit = |bit: u32| (head >> bit & 1) << 63;
    let field = |from: u32, to: u32| head >> from & ((1 << (to - from)) - 1);
    Some(Entry {
        op: op(field(0, ROUTE_ATOMIC_BIT)),
        pe: (head >> ROUTE_PE_BIT) as usize,
        local,
        offset,
        n,
        operand: operand | bit(ROUTE_OPERAND_BIT),
        expected: expected | bit(ROUTE_EXPECTED_BIT),
        width: match element {
            0 => 1 << field(ROUTE_WIDTH_BIT, ROUTE_OPERAND_BIT),
            bytes => bytes,
        },
        change: field(ROUTE_ATOMIC_BIT, ROUTE_WIDTH_BIT),
    })
}

fn op(number: u64) -> RouteOp {
    let all = [
        RouteOp::Put,
        RouteOp::Word,
        RouteOp::Get,
        RouteOp::Fetch,
        RouteOp::PutStrided,
        RouteOp::GetStrided,
        RouteOp::Atomic,
        RouteOp::AtomicFetch,
    ];
    let known = all.into_iter().find(|&op| op as u64 == number);
    known.expect("kernels of this library write entries")
}

/// The `op` of an `inbox_entry`.
pub(super) fn inbox_op(entry: &Entry) -> u64 {
    entry.change | u64::from(entry.width.trailing_zeros()) << 8
}

/// Atomic operations that there are; kernels number them.
pub(super) const LAST_CHANGE: u64 = AtomicOp::AddF16 as u64;

/// What `issue` in `device/pe/route.cuh` does, for tests.
#[cfg(test)]
pub(super) mod kernel {
    use super::*;

    /// The words of an entry before they get their lowest bit. Of strided entries `element` is the width.
    pub(in super::super) fn words_of(entry: &Entry, strided: bool) -> [u64; ROUTE_WORDS] {
        let width = match strided {
            true => 0,
            false => u64::from(entry.width.trailing_zeros()),
        };
        let head = entry.op as u64
            | entry.change << ROUTE_ATOMIC_BIT
            | width << ROUTE_WIDTH_BIT
            | (entry.operand >> 63) << ROUTE_OPERAND_BIT
            | (entry.expected >> 63) << ROUTE_EXPECTED_BIT
            | (entry.pe as u64) << ROUTE_PE_BIT;
        let element = if strided { entry.width } else { 0 };
        let (operand, expected) = (entry.operand, entry.expected);
        [
            head,
            entry.local,
            entry.offset,
            entry.n,
            operand,
            expected,
            element,
            0,
        ]
    }

    /// Where the words of entry `number` go, and what is stored there.
    pub(in super::super) fn stores<W, const N: usize>(
        ring: &[W],
        number: u64,
        words: [u64; N],
    ) -> impl DoubleEndedIterator<Item = (&W, u64)> {
        let entries = ring.len() / N;
        let (place, round) = (number as usize % entries * N, round(entries, number));
        let words = words.into_iter().map(move |word| word << 1 | round);
        ring[place..place + N].iter().zip(words.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::ROUTE_ENTRIES;
    use kernel::{stores, words_of};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64 as LoomU64, fence};

    #[test]
    fn entries_come_whole_in_every_round_whatever_word_comes_last() {
        let words: Vec<AtomicU64> = (0..ROUTE_ENTRIES * ROUTE_WORDS)
            .map(|_| AtomicU64::new(0))
            .collect();
        for number in [0, 1, ROUTE_ENTRIES as u64 - 1] {
            for round in 0..4 {
                let number = number + round * ROUTE_ENTRIES as u64;
                let entry = Entry {
                    op: RouteOp::AtomicFetch,
                    pe: 3 + number as usize % 1000,
                    local: 0x7fff_1234_5678,
                    offset: number * 8,
                    n: 1 << 40,
                    operand: u64::MAX - number,
                    expected: 1 << 63 | number,
                    width: 4 << (number % 2),
                    change: AtomicOp::CompareSwap as u64,
                };
                // From the last word on to the first one.
                for (at, word) in stores(&words, number, words_of(&entry, false)).rev() {
                    assert_eq!(read(&words, number), None, "entry {number}");
                    at.store(word, Ordering::Relaxed);
                }
                assert_eq!(read(&words, number), Some(entry));
            }
        }
    }

    impl Word for LoomU64 {
        fn load(&self) -> u64 {
            self.load(Ordering::Acquire)
        }
    }

    /// A ring of one entry of two words, and what a kernel puts from. loom checks that nobody writes there while the
    /// other reads.
    struct Model {
        ring: [LoomU64; 2],
        taken: LoomU64,
        source: UnsafeCell<u64>,
    }

    // SAFETY: loom fails the model at the first access to `source` that is not ordered with all others.
    #[allow(unsafe_code)]
    unsafe impl Sync for Model {}

    /// Until `word` is `least`, as `wait_far` looks.
    fn wait(word: &LoomU64, least: u64) {
        while word.load(Ordering::Acquire) < least {
            loom::thread::yield_now();
        }
    }

    /// The flags of the ring over all interleavings, for as many rounds as the bit has values and one more: every entry
    /// comes whole and once, with what was put from, which the kernel may then change.
    #[test]
    #[allow(unsafe_code)] // looks into the cell, as loom checks
    fn loom_entries_are_read_whole_and_once() {
        const ROUNDS: u64 = 3;
        loom::model(|| {
            let model = Arc::new(Model {
                ring: [LoomU64::new(0), LoomU64::new(0)],
                taken: LoomU64::new(0),
                source: UnsafeCell::new(0),
            });
            let kernel = {
                let model = Arc::clone(&model);
                loom::thread::spawn(move || {
                    for number in 0..ROUNDS {
                        // Rule 1 is `issue`'s wait, rule 3 `put_by_host`'s.
                        wait(&model.taken, number);
                        // SAFETY: as for `Sync`.
                        model.source.with_mut(|at| unsafe { *at = 7 * number });
                        // `show_host`
                        fence(Ordering::SeqCst);
                        // In any order: the second word first, every other time.
                        let words = [number, 100 + number];
                        let mut all: Vec<_> = stores(&model.ring, number, words).collect();
                        if number % 2 == 1 {
                            all.reverse();
                        }
                        for (at, word) in all {
                            at.store(word, Ordering::Relaxed);
                        }
                    }
                })
            };
            for number in 0..ROUNDS {
                let entry = loop {
                    match words::<_, 2>(&model.ring, number) {
                        Some(entry) => break entry,
                        None => loom::thread::yield_now(),
                    }
                };
                assert_eq!(entry, [number, 100 + number]);
                // SAFETY: as for `Sync`.
                let source = model.source.with(|at| unsafe { *at });
                assert_eq!(source, 7 * number);
                model.taken.store(number + 1, Ordering::Release);
            }
            kernel.join().unwrap();
        });
    }
}

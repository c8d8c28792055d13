//! The ring by which a PE's kernels ask for what is to be done at PEs of other hosts: written by kernels
//! (`device/pe/route.cuh`), read here.
//!
//! Each word of an entry says by its lowest bit whether it has come: a kernel's stores may arrive in any order. The
//! kernels see from `taken` which entries may be used again.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{
    AtomicOp, ROUTE_ATOMIC_BIT, ROUTE_ENTRIES, ROUTE_EXPECTED_BIT, ROUTE_OPERAND_BIT, ROUTE_PE_BIT,
    ROUTE_WIDTH_BIT, ROUTE_WORDS, RouteOp,
};

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

/// Entry `number`, if all of it has come to `words`.
pub(super) fn read(words: &[AtomicU64], number: u64) -> Option<Entry> {
    let place = (number % ROUTE_ENTRIES as u64) as usize * ROUTE_WORDS;
    let round = !(number / ROUTE_ENTRIES as u64) & 1;
    let mut word = [0; ROUTE_WORDS];
    for (word, at) in word.iter_mut().zip(&words[place..]) {
        // Acquire: what the kernel made visible to the host before is read after.
        let seen = at.load(Ordering::Acquire);
        if seen & 1 != round {
            return None;
        }
        *word = seen >> 1;
    }
    let [head, local, offset, n, operand, expected, element, _] = word;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As `issue` in `device/pe/route.cuh` writes it.
    fn words_of(entry: &Entry, number: u64) -> [u64; ROUTE_WORDS] {
        let head = entry.op as u64
            | entry.change << ROUTE_ATOMIC_BIT
            | u64::from(entry.width.trailing_zeros()) << ROUTE_WIDTH_BIT
            | (entry.operand >> 63) << ROUTE_OPERAND_BIT
            | (entry.expected >> 63) << ROUTE_EXPECTED_BIT
            | (entry.pe as u64) << ROUTE_PE_BIT;
        let round = !(number / ROUTE_ENTRIES as u64) & 1;
        let (operand, expected) = (entry.operand, entry.expected);
        [
            head,
            entry.local,
            entry.offset,
            entry.n,
            operand,
            expected,
            0,
            0,
        ]
        .map(|word| word << 1 | round)
    }

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
                let place = (number % ROUTE_ENTRIES as u64) as usize * ROUTE_WORDS;
                let all = words_of(&entry, number);
                for last in 0..ROUTE_WORDS {
                    assert_eq!(read(&words, number), None, "word {last} of {number}");
                    // From the last word on to the first one.
                    let word = ROUTE_WORDS - 1 - last;
                    words[place + word].store(all[word], Ordering::Relaxed);
                }
                assert_eq!(read(&words, number), Some(entry));
            }
        }
    }
}

//! Whose turn it is among the elements of a set that are all there to be returned.
//!
//! OpenSHMEM asks that a series of calls of `test_any` or `wait_until_any` returns each element whose
//! condition stays true. A thread therefore remembers for its latest sets which element it returned last,
//! and the next look at the same set begins behind it. That alone would not do: two series of calls for one
//! set that take turns would each see every other element only, and sets may push one another out of what
//! is remembered. So a set that is not remembered, and one look in [`AT_RANDOM`], begins at a random
//! element: whatever is asked in between, each call has a chance of returning any element that holds.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many sets a thread remembers.
const REMEMBERED: usize = 16;

/// One look in so many begins anywhere.
const AT_RANDOM: u64 = 8;

/// A set and where the next look at it begins.
type Turn = Cell<(usize, usize)>;

thread_local! {
    /// By a hash of the set's address; 0 is no set.
    static TURNS: [Turn; REMEMBERED] = const { [const { Cell::new((0, 0)) }; REMEMBERED] };
    /// The state of this thread's random numbers; 0 before the first.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Threads that look only once must not all begin at the same element.
static SEED: AtomicU64 = AtomicU64::new(1);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64.
fn random() -> u64 {
    RANDOM.with(|state| {
        let before = match state.get() {
            0 => SEED.fetch_add(1, Ordering::Relaxed).wrapping_mul(ODD),
            state => state,
        };
        let mut z = before.wrapping_add(ODD);
        state.set(z);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

fn with<R>(set: usize, op: impl FnOnce(&Turn) -> R) -> R {
    let slot = (set as u64).wrapping_mul(ODD) >> 60;
    TURNS.with(|turns| op(&turns[slot as usize % REMEMBERED]))
}

/// Where a look at the set at address `set`, of `len` elements (at least one), begins.
pub(crate) fn begin(set: usize, len: usize) -> usize {
    let random = random();
    with(set, |turn| match turn.get() {
        (known, next) if known == set && !random.is_multiple_of(AT_RANDOM) => next % len,
        _ => (random / AT_RANDOM) as usize % len,
    })
}

/// Element `found` of the set has been returned.
pub(crate) fn returned(set: usize, found: usize) {
    with(set, |turn| turn.set((set, found + 1)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls until every element of each of the sets, all of which hold, has been returned.
    fn calls(sets: &[usize], len: usize) -> usize {
        let mut seen = vec![vec![false; len]; sets.len()];
        let mut calls = 0;
        while seen.iter().flatten().any(|&seen| !seen) {
            for (&set, seen) in sets.iter().zip(&mut seen) {
                let found = begin(set, len);
                returned(set, found);
                seen[found] = true;
            }
            calls += 1;
            assert!(calls < 100_000, "{seen:?}");
        }
        calls
    }

    /// The second time as two series of calls that take turns.
    #[test]
    fn every_element_of_a_set_is_returned() {
        for len in 1..20 {
            calls(&[0x1000], len);
            calls(&[0x1000, 0x1000], len);
        }
    }

    /// Two that hold, far apart in the order of looking one way and close the other way.
    #[test]
    fn two_elements_of_many_are_returned_about_as_often() {
        let firsts = (0..1000).filter(|_| {
            let found = if begin(0x3000, 1000) == 0 { 0 } else { 999 };
            returned(0x3000, found);
            found == 0
        });
        let firsts = firsts.count();
        assert!((300..700).contains(&firsts), "{firsts}");
    }

    /// More sets than are remembered push one another out in the same order again and again.
    #[test]
    fn many_sets_in_turn_are_fair_too() {
        for n in [2, 15, 100] {
            let sets: Vec<usize> = (1..=n).map(|i| i * 4096).collect();
            for len in [2, 3, 8] {
                calls(&sets, len);
            }
        }
    }

    #[test]
    fn threads_that_look_once_do_not_all_begin_at_one_element() {
        let begun: std::collections::BTreeSet<usize> = (0..64)
            .map(|_| std::thread::spawn(|| begin(0x2000, 4)).join().unwrap())
            .collect();
        assert_eq!(begun.len(), 4);
    }
}

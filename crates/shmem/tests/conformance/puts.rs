//! Puts that PEs of other hosts get together, or each by itself: they arrive, whole and in order.
#![allow(unsafe_code)] // looks at its own memory without a call

use std::time::{Duration, Instant};

use crate::cases::Case;
use crosswarp_shmem::{Cmp, Pe};

pub const CASES: &[Case] = &[
    ("puts without another call", puts_without_another_call),
    ("puts between fences", puts_between_fences),
    ("puts of many sizes", puts_of_many_sizes),
    ("puts of many pieces", puts_of_many_pieces),
    ("few elements apart", few_elements_apart),
    ("puts of several threads", puts_of_several_threads),
];

/// A small put arrives although the PE that issued it computes on and makes no other call, and so does the answer.
fn puts_without_another_call(pe: &Pe) {
    let words = pe.alloc_zeroed::<u64>(2).unwrap();
    let last = pe.n_pes() - 1;
    let start = Instant::now();
    for round in 1..=20 {
        if pe.my_pe() == 0 {
            pe.p(words.at(0), round, last);
        }
        if pe.my_pe() == 0 && last != 0 {
            let back = pe.ptr(words.at(1), 0);
            // SAFETY: this PE's own word, aligned, which is only accessed atomically while it changes.
            while unsafe { back.read_volatile() } != round {
                std::thread::sleep(Duration::from_micros(100));
                assert!(start.elapsed() < Duration::from_secs(120), "round {round}");
            }
        } else if pe.my_pe() == last {
            assert_eq!(pe.wait_until(words.at(0), Cmp::Eq, round), Ok(round));
            pe.p(words.at(1), round, 0);
        }
    }
    pe.barrier().unwrap();
    pe.free(words).unwrap();
}

/// Puts of all kinds with fences between: whoever looks in the other order never sees a later one without an earlier.
fn puts_between_fences(pe: &Pe) {
    const ROUNDS: u64 = 300;
    const LONG: usize = 700;
    let words = pe.alloc_zeroed::<u64>(8).unwrap();
    let long = pe.alloc_zeroed::<u64>(LONG).unwrap();
    let last = pe.n_pes() - 1;
    if pe.my_pe() == 0 {
        for round in 1..=ROUNDS {
            pe.p(words.at(0), round, last);
            pe.fence().unwrap();
            pe.p(words.at(1), round, last);
            pe.p(words.at(7), round, last);
            pe.fence().unwrap();
            pe.put(&long, &[round; LONG], last);
            pe.fence().unwrap();
            pe.iput(words.range(2..=4), 2, &[round; 2], 1, 2, last);
            pe.fence().unwrap();
            pe.atomic_set(words.at(5), round, last);
            pe.fence().unwrap();
            pe.p(words.at(6), round, last);
            if round % 50 == 0 {
                pe.quiet().unwrap();
                assert_eq!(pe.g(words.at(6), last), round);
            }
        }
    }
    if pe.my_pe() == last {
        let mut later = 0;
        while later != ROUNDS {
            later = 0;
            for word in [6, 5, 4, 2] {
                let seen = pe.atomic_fetch(words.at(word), last);
                assert!(seen >= later, "word {word}: {seen} after {later}");
                later = if word == 4 { later } else { seen };
            }
            for element in [LONG - 1, 0] {
                let seen = pe.atomic_fetch(long.at(element), last);
                assert!(seen >= later, "element {element}: {seen} after {later}");
            }
            for word in [1, 0] {
                let seen = pe.atomic_fetch(words.at(word), last);
                assert!(seen >= later, "word {word}: {seen} after {later}");
            }
            later = pe.wait_until(words.at(6), Cmp::Ge, later).unwrap();
            std::thread::yield_now();
        }
    }
    pe.barrier().unwrap();
    pe.free(long).unwrap();
    pe.free(words).unwrap();
}

/// Large puts arrive whole, wake who waits for what is in them, come after what a fence has put before them, and leave
/// what is beside them alone.
fn puts_of_many_pieces(pe: &Pe) {
    const SIZES: [usize; 4] = [100_003, 50_000, 16_385, 40_001];
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (to, from) = ((me + 1) % n, (me + n - 1) % n);
    let object = pe.alloc_zeroed::<u64>(SIZES[0] + 2).unwrap();
    let ordered = pe.alloc_zeroed::<u64>(1).unwrap();
    let mut expected = vec![0; SIZES[0] + 2];
    for (round, size) in (1..).zip(SIZES) {
        let value = |from: usize, i: usize| round << 48 | (from as u64) << 32 | i as u64;
        let data: Vec<u64> = (0..size).map(|i| value(me, i)).collect();
        pe.p(&ordered, round, to);
        pe.fence().unwrap();
        pe.put(object.range(1..=size), &data, to);
        let last = value(from, size - 1);
        assert_eq!(pe.wait_until(object.at(size), Cmp::Eq, last), Ok(last));
        assert_eq!(pe.g(&ordered, me), round);
        pe.barrier().unwrap();
        for (i, expected) in expected[1..=size].iter_mut().enumerate() {
            *expected = value(from, i);
        }
        let mut seen = vec![0; expected.len()];
        pe.read(&mut seen, &object);
        let wrong = (0..seen.len()).find(|&i| seen[i] != expected[i]);
        assert_eq!(wrong, None, "round {round}: the first wrong element");
        pe.barrier().unwrap();
    }
    pe.free(ordered).unwrap();
    pe.free(object).unwrap();
}

/// Sizes around those up to which puts travel together, more of them than do at once.
fn puts_of_many_sizes(pe: &Pe) {
    const SIZES: [usize; 9] = [1, 8, 100, 2047, 2048, 2049, 4096, 8191, 8192];
    const TIMES: usize = 12;
    let bytes = SIZES.iter().sum::<usize>() * TIMES;
    let object = pe.alloc_zeroed::<u8>(bytes).unwrap();
    let content = |from: usize, at: usize| (at * 7 + at / 256 + from * 31) as u8;
    let to = (pe.my_pe() + 1) % pe.n_pes();
    let mut start = 0;
    for size in SIZES.into_iter().cycle().take(SIZES.len() * TIMES) {
        let data: Vec<u8> = (start..start + size)
            .map(|at| content(pe.my_pe(), at))
            .collect();
        pe.put(object.range(start..start + size), &data, to);
        start += size;
    }
    pe.barrier().unwrap();
    let from = (pe.my_pe() + pe.n_pes() - 1) % pe.n_pes();
    let mut seen = vec![0; bytes];
    pe.read(&mut seen, &object);
    let wrong = (0..bytes).find(|&at| seen[at] != content(from, at));
    assert_eq!(wrong, None);
    pe.free(object).unwrap();
}

/// Strided puts of few and of many elements touch these alone.
fn few_elements_apart(pe: &Pe) {
    const LEN: usize = 400;
    let object = pe.alloc_zeroed::<u32>(LEN).unwrap();
    let to = (pe.my_pe() + 1) % pe.n_pes();
    let source: Vec<u32> = (1..=100).collect();
    for n in [1, 2, 15, 16, 17, 100] {
        pe.iput(&object, 4, &source, 1, n, to);
        pe.quiet().unwrap();
        let mut seen = vec![0; LEN];
        pe.get(&mut seen, &object, to);
        for (at, &seen) in seen.iter().enumerate() {
            let expected = if at % 4 == 0 && at / 4 < n {
                source[at / 4]
            } else {
                0
            };
            assert_eq!(seen, expected, "element {at} of {n}");
        }
        pe.put(&object, &[0; LEN], to);
        pe.fence().unwrap();
    }
    pe.barrier().unwrap();
    pe.free(object).unwrap();
}

/// Threads of one PE put at the same time; the quiet of one completes what it put itself, at least.
fn puts_of_several_threads(pe: &Pe) {
    const EACH: usize = 2000;
    const THREADS: usize = 3;
    let object = pe.alloc_zeroed::<u64>(EACH * THREADS).unwrap();
    let to = (pe.my_pe() + 1) % pe.n_pes();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let object = &object;
            scope.spawn(move || {
                for at in (thread * EACH..).take(EACH) {
                    pe.p(object.at(at), at as u64 + 1, to);
                    if at % 97 == 0 {
                        pe.quiet().unwrap();
                        assert_eq!(pe.g(object.at(at), to), at as u64 + 1);
                    }
                }
            });
        }
    });
    pe.barrier().unwrap();
    let mut seen = vec![0; EACH * THREADS];
    pe.read(&mut seen, &object);
    assert!(seen.into_iter().eq(1..=(EACH * THREADS) as u64));
    pe.free(object).unwrap();
}

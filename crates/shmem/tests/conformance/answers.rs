//! Gets and fetching atomics that nobody waits for one by one: what they fetch is there when their scope ends.
#![allow(unsafe_code)] // the layer by address is unsafe; each address below is one of a live object

use crate::cases::{Case, right};
use crosswarp_shmem::{DeliveryError, Pe};

pub const CASES: &[Case] = &[
    (
        "more gets than may be under way",
        more_gets_than_may_be_under_way,
    ),
    (
        "more bytes than may be under way",
        more_bytes_than_may_be_under_way,
    ),
    ("every ticket once", every_ticket_once),
    (
        "operations of all kinds in order",
        operations_of_all_kinds_in_order,
    ),
    ("scopes that fail", scopes_that_fail),
    ("scopes of several threads", scopes_of_several_threads),
    (
        "a barrier completes what was asked",
        a_barrier_completes_what_was_asked,
    ),
];

/// What PE `pe` has in word `i`.
fn word(pe: usize, i: usize) -> u64 {
    (pe as u64 + 1) << 32 | i as u64
}

fn filled(pe: &Pe, n: usize) -> crosswarp_shmem::Sym<u64> {
    let words = pe.alloc_zeroed::<u64>(n).unwrap();
    let mine: Vec<u64> = (0..n).map(|i| word(pe.my_pe(), i)).collect();
    pe.write(&words, &mine);
    pe.barrier().unwrap();
    words
}

fn more_gets_than_may_be_under_way(pe: &Pe) {
    const WORDS: usize = 3000;
    let words = filled(pe, WORDS);
    for size in [1, 7, 300] {
        let mut got = vec![0; WORDS];
        pe.scope(|ops| {
            for (i, part) in got.chunks_mut(size).enumerate() {
                let from = i * size;
                ops.get(
                    part,
                    words.range(from..from + part.len()),
                    (pe.my_pe() + i) % pe.n_pes(),
                );
            }
            Ok::<_, DeliveryError>(())
        })
        .unwrap();
        for (i, got) in got.into_iter().enumerate() {
            assert_eq!(
                got,
                word((pe.my_pe() + i / size) % pe.n_pes(), i),
                "{size}: {i}"
            );
        }
    }
    pe.barrier().unwrap();
    pe.free(words).unwrap();
}

fn more_bytes_than_may_be_under_way(pe: &Pe) {
    const WORDS: usize = 5 << 17;
    let words = filled(pe, WORDS);
    let mut got = vec![0; WORDS];
    let there = right(pe);
    pe.scope(|ops| {
        ops.get(&mut got, &words, there);
        Ok::<_, DeliveryError>(())
    })
    .unwrap();
    assert!((0..WORDS).all(|i| got[i] == word(there, i)));
    pe.barrier().unwrap();
    pe.free(words).unwrap();
}

fn every_ticket_once(pe: &Pe) {
    const EACH: usize = 1500;
    let n = pe.n_pes();
    let counter = pe.alloc_zeroed::<u32>(1).unwrap();
    let drawn = pe.alloc_zeroed::<u32>(n * EACH).unwrap();
    let mut tickets = vec![u32::MAX; EACH];
    pe.scope(|ops| {
        for (i, ticket) in tickets.iter_mut().enumerate() {
            match i % 2 {
                0 => ops.atomic_fetch_inc(ticket, &counter, n - 1),
                _ => ops.atomic_fetch_add(ticket, &counter, 1, n - 1),
            }
        }
        Ok::<_, DeliveryError>(())
    })
    .unwrap();
    // A PE's own come in the order in which it drew them.
    assert!(tickets.is_sorted());
    let mine = pe.my_pe() * EACH;
    pe.put(drawn.range(mine..mine + EACH), &tickets, 0);
    pe.barrier().unwrap();
    if pe.my_pe() == 0 {
        let mut all = vec![0; n * EACH];
        pe.read(&mut all, &drawn);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..(n * EACH) as u32));
    }
    pe.barrier().unwrap();
    pe.free(drawn).unwrap();
    pe.free(counter).unwrap();
}

/// What a PE asks comes after what it has put there before, and what it changes before its later puts.
fn operations_of_all_kinds_in_order(pe: &Pe) {
    const ROUNDS: usize = 400;
    // A block for each PE that may come here.
    let words = pe.alloc_zeroed::<u64>(3 * pe.n_pes()).unwrap();
    let there = right(pe);
    let [a, b, c] = [0, 1, 2].map(|i| words.at(3 * pe.my_pe() + i));
    let (mut olds, mut gots) = (vec![[0; 4]; ROUNDS], vec![[0; 2]; ROUNDS]);
    pe.scope(|ops| {
        for (i, (old, got)) in olds.iter_mut().zip(&mut gots).enumerate() {
            let i = i as u64;
            let [old0, old1, old2, old3] = old;
            let (got0, got1) = got.split_at_mut(1);
            pe.p(a, 2 * i, there);
            ops.atomic_fetch_or(old0, a, 1, there);
            ops.atomic_swap(old1, b, i + 1, there);
            ops.get(got0, a, there);
            ops.atomic_compare_swap(old2, b, i + 1, 7 * i, there);
            pe.fence()?;
            ops.atomic_fetch(old3, b, there);
            pe.p(b, i, there);
            pe.fence()?;
            pe.atomic_add(c, 1, there);
            ops.get(got1, c, there);
        }
        Ok::<_, DeliveryError>(())
    })
    .unwrap();
    for (i, (old, got)) in olds.into_iter().zip(gots).enumerate() {
        let i = i as u64;
        assert_eq!(old, [2 * i, i.saturating_sub(1), i + 1, 7 * i], "round {i}");
        assert_eq!(got, [2 * i + 1, i + 1], "round {i}");
    }
    pe.barrier().unwrap();
    pe.free(words).unwrap();
}

fn scopes_that_fail(pe: &Pe) {
    #[derive(Debug, PartialEq)]
    struct Enough;
    impl From<DeliveryError> for Enough {
        fn from(error: DeliveryError) -> Self {
            panic!("{error}");
        }
    }
    let words = filled(pe, 4);
    let mut got = [0; 4];
    let there = right(pe);
    let ended = pe.scope(|ops| {
        ops.get(&mut got, &words, there);
        Err::<(), _>(Enough)
    });
    assert_eq!(ended, Err(Enough));
    assert_eq!(got, [0, 1, 2, 3].map(|i| word(there, i)));
    // Not a panic: in this world it would be the PE's end.
    pe.barrier().unwrap();
    pe.free(words).unwrap();
}

/// Each thread's scope ends while others go on asking.
fn scopes_of_several_threads(pe: &Pe) {
    const THREADS: usize = 3;
    let words = filled(pe, 64);
    let counter = pe.alloc_zeroed::<u64>(1).unwrap();
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                for round in 0..40 {
                    let there = (pe.my_pe() + round) % pe.n_pes();
                    let (mut got, mut old) = ([0; 64], 0);
                    pe.scope(|ops| {
                        for (i, got) in got.chunks_mut(1).enumerate() {
                            ops.get(got, words.range(i..=i), there);
                        }
                        ops.atomic_fetch_add(&mut old, &counter, 1, 0);
                        Ok::<_, DeliveryError>(())
                    })
                    .unwrap();
                    assert!((0..64).all(|i| got[i] == word(there, i)));
                }
            });
        }
    });
    pe.barrier().unwrap();
    let counted = pe.g(&counter, 0);
    assert_eq!(counted, (pe.n_pes() * THREADS * 40) as u64);
    pe.barrier().unwrap();
    pe.free(counter).unwrap();
    pe.free(words).unwrap();
}

fn a_barrier_completes_what_was_asked(pe: &Pe) {
    let words = filled(pe, 100);
    let (raw, there) = (pe.raw(), right(pe));
    let own = raw.heap().cast_const();
    let mut got = [0_u64; 100];
    let mut old = 0_u64;
    // SAFETY: `words` lies at its offset in the heap; both buffers live until after the barrier.
    unsafe {
        let from = own.add(words.offset()).cast::<u64>();
        for i in 0..100 {
            let to = got.as_mut_ptr().add(i).cast();
            raw.get_nbi(to, from.add(i).cast(), size_of::<u64>(), there);
        }
        raw.atomic_fetch_nbi(&raw mut old, from.add(99), there);
    }
    pe.barrier().unwrap();
    assert!((0..100).all(|i| got[i] == word(there, i)));
    assert_eq!(old, word(there, 99));
    pe.free(words).unwrap();
}

//! A word that is put is stored once. A receiver that sees it and resets it at once must not find it again,
//! which it would if the copy stored the word a second time. (Which stores a copy makes for each length and
//! alignment is fixed by the tests of `copy.rs`; here the machine's code runs.)
#![allow(unsafe_code)] // the raw layer is under test too; its addresses are those of live objects

use crate::cases::Case;
use crosswarp_shmem::{AtomicInt, Cmp, DeliveryError, Pe, SignalOp};
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("a word of 2 bytes comes once", comes_once::<u16>),
    ("a word of 4 bytes comes once", comes_once::<u32>),
    ("a word of 8 bytes comes once", comes_once::<u64>),
];

/// PE 0 sends; PE 1 takes the word away by swaps that never pause, so that the line of the cache is asked for while
/// it is written. Each word sent is taken once.
fn comes_once<T: AtomicInt + From<u8>>(pe: &Pe) {
    let words = pe.alloc_zeroed::<T>(64).unwrap();
    let (signal, taken) = (
        pe.alloc_zeroed::<u64>(1).unwrap(),
        pe.alloc_zeroed::<u64>(1).unwrap(),
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // The receiver has to run beside the sender for the race to be there.
    let rounds = if pe.n_pes() <= cores { 5000 } else { 30 };
    let (zero, one) = (T::from(0), T::from(1));
    for round in 1..=rounds {
        let word = words.at((round % 64) as usize);
        if pe.my_pe() == 0 && pe.n_pes() > 1 {
            // The length is known at run time only, as in a library.
            let source = vec![one; std::hint::black_box(1)];
            match round % 6 {
                0 => pe.put(word, &source, 1),
                1 => {
                    let issued = pe.scope(|ops| {
                        ops.put(word, &source, 1);
                        Ok::<_, DeliveryError>(())
                    });
                    issued.unwrap();
                }
                2 => pe.iput(word, 1, &source, 1, 1, 1),
                3 => pe.p(word, one, 1),
                4 => pe.put_signal(word, &source, &signal, 1, SignalOp::Add, 1),
                _ => {
                    let (to, from) = (pe.ptr(word, 0).cast(), source.as_ptr().cast());
                    // SAFETY: both are one element.
                    unsafe { pe.raw().put(to, from, size_of_val(&*source), 1) };
                }
            }
            pe.wait_until(&taken, Cmp::Eq, round).unwrap();
        } else if pe.my_pe() == 1 {
            let start = Instant::now();
            let mut looks = 0u32;
            while pe.atomic_swap(word, zero, 1) == zero {
                looks += 1;
                if looks.is_multiple_of(1024) {
                    std::thread::yield_now();
                    assert!(
                        start.elapsed() < Duration::from_secs(60),
                        "nothing has come"
                    );
                }
            }
            for _ in 0..10 {
                let again = pe.atomic_swap(word, zero, 1);
                assert!(again == zero, "round {round}: the word has come back");
            }
            pe.atomic_set(&taken, round, 0);
        }
    }
    pe.barrier().unwrap();
    for at in 0..64 {
        let late = pe.g(words.at(at), pe.my_pe());
        assert!(late == zero, "a word has come back late");
    }
    pe.free(words).unwrap();
    pe.free(signal).unwrap();
    pe.free(taken).unwrap();
}

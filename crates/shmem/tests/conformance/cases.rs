//! The contract, case by case. Meanings are those of the OpenSHMEM 1.5 specification, sections 9.3
//! (memory management), 9.5 (put and get), 9.7 (atomics), 9.8 (signals), 9.9 (collectives), 9.10
//! (wait and test) and 9.11 (ordering).

use crosswarp_shmem::op::{And, Complex, Max, Min, Or, Prod, ReduceOp, Sum, Xor};
use crosswarp_shmem::{
    AllocError, AtomicInt, Cmp, CollectiveError, CollectiveKind, Error, Pe, Pod, ShareError,
    SignalOp,
};

pub type Case = (&'static str, fn(&Pe));

pub const CASES: &[Case] = &[
    ("allocation", allocation),
    ("allocation errors", allocation_errors),
    ("mismatches", mismatches),
    ("zeroed allocation", zeroed_allocation),
    ("put and get of every size", put_and_get_of_every_size),
    ("strided", strided),
    ("non-blocking", non_blocking),
    ("local views", local_views),
    ("atomics u16", atomics::<u16>),
    ("atomics i16", atomics::<i16>),
    ("atomics u32", atomics::<u32>),
    ("atomics i32", atomics::<i32>),
    ("atomics u64", atomics::<u64>),
    ("atomics i64", atomics::<i64>),
    ("atomics usize", atomics::<usize>),
    ("atomic floats", atomic_floats),
    ("compare-swap lock", compare_swap_lock),
    ("signals", signals),
    ("signal after data", signal_after_data),
    ("barrier order", barrier_order),
    ("broadcast", broadcast),
    ("fcollect", fcollect),
    ("alltoall", alltoall),
    ("reduce integers", reduce_integers),
    ("reduce floats in rank order", reduce_floats_in_rank_order),
    ("collectives back to back", collectives_back_to_back),
    ("shared file descriptors", shared_file_descriptors),
];

/// Payload lengths on both sides of the inline limit of the collectives (4096 bytes).
const LENGTHS: [usize; 6] = [0, 1, 7, 64, 512, 5000];

pub fn right(pe: &Pe) -> usize {
    (pe.my_pe() + 1) % pe.n_pes()
}

pub fn left(pe: &Pe) -> usize {
    (pe.my_pe() + pe.n_pes() - 1) % pe.n_pes()
}

fn allocation(pe: &Pe) {
    let offsets = pe.alloc::<u64>(2 * pe.n_pes()).unwrap();
    let a = pe.alloc::<u8>(3).unwrap();
    let b = pe.alloc_aligned::<u32>(5, 4096).unwrap();
    let empty = pe.alloc::<u64>(0).unwrap();
    assert_eq!((a.len(), b.len(), empty.len()), (3, 5, 0));
    assert_eq!(a.offset() % 64, 0);
    assert_eq!(b.offset() % 4096, 0);
    // The same offsets on every PE: everyone tells everyone.
    let mine = [a.offset() as u64, b.offset() as u64];
    for other in 0..pe.n_pes() {
        let at = 2 * pe.my_pe();
        pe.put(offsets.range(at..at + 2), &mine, other);
    }
    pe.barrier().unwrap();
    let mut all = vec![0; offsets.len()];
    pe.read(&mut all, &offsets);
    assert!(all.chunks(2).all(|theirs| theirs == mine), "{all:?}");
    // Freed memory is used again: this would overflow the heap many times over.
    for _ in 0..50 {
        let big = pe.alloc::<u8>(pe.heap_bytes() / 2).unwrap();
        pe.free(big).unwrap();
    }
    pe.free(b).unwrap();
    pe.free(a).unwrap();
    pe.free(empty).unwrap();
    pe.free(offsets).unwrap();
}

fn allocation_errors(pe: &Pe) {
    let too_much = pe.alloc::<u8>(pe.heap_bytes() + 1).unwrap_err();
    assert!(
        matches!(too_much, AllocError::OutOfHeap { bytes, heap, .. } if bytes == heap + 1),
        "{too_much}"
    );
    let overflow = pe.alloc::<u64>(usize::MAX / 4).unwrap_err();
    assert!(
        matches!(overflow, AllocError::TooLarge { .. }),
        "{overflow}"
    );
    let align = pe.alloc_aligned::<u64>(1, 48).unwrap_err();
    let most = pe.heap_bytes().next_power_of_two().max(2 << 20);
    assert_eq!(align, AllocError::BadAlign { align: 48, most });
    let align = pe.alloc_aligned::<u64>(1, 2 * most).unwrap_err();
    let expected = AllocError::BadAlign {
        align: 2 * most,
        most,
    };
    assert_eq!(align, expected);
    // Addresses, not only offsets, are aligned, on every PE.
    let aligned = pe.alloc_aligned::<u8>(1, most / 4).unwrap();
    let address = pe.raw().heap().addr() + aligned.offset();
    assert_eq!(address % (most / 4), 0);
    pe.free(aligned).unwrap();
    // Nothing was lost by it.
    let object = pe.alloc::<u8>(100).unwrap();
    pe.free(object).unwrap();
}

fn mismatches(pe: &Pe) {
    if pe.n_pes() == 1 {
        return;
    }
    // The last PE asks for something else; every PE hears of it.
    let odd = pe.my_pe() == pe.n_pes() - 1;
    let error = pe.alloc::<u8>(if odd { 200 } else { 100 }).unwrap_err();
    let AllocError::Collective(CollectiveError::Mismatch { mine, theirs, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(mine.bytes + theirs.bytes, 300);
    assert_eq!(mine.kind, CollectiveKind::Alloc);
    // Different collectives.
    let error = if odd { pe.sync() } else { pe.barrier() }.unwrap_err();
    assert!(matches!(error, CollectiveError::Mismatch { .. }), "{error}");
    // Sizes, small and large, and the destination stays as it was.
    for len in [8, 4000] {
        let (dest, source) = (pe.alloc::<u32>(len).unwrap(), pe.alloc::<u32>(len).unwrap());
        pe.write(&dest, &vec![7; len]);
        let part = 0..if odd { len / 2 } else { len };
        let error = pe
            .world()
            .reduce(dest.range(part.clone()), source.range(part), Sum)
            .unwrap_err();
        assert!(matches!(error, CollectiveError::Mismatch { .. }), "{error}");
        let mut after = vec![0; len];
        pe.read(&mut after, &dest);
        assert_eq!(after, vec![7; len]);
        // A wrong length on every PE is named as such.
        let error = pe.world().fcollect(&dest, &source).unwrap_err();
        assert!(matches!(error, CollectiveError::Length { .. }), "{error}");
        pe.free(source).unwrap();
        pe.free(dest).unwrap();
    }
}

fn zeroed_allocation(pe: &Pe) {
    for _ in 0..3 {
        let object = pe.alloc_zeroed::<u32>(1000).unwrap();
        let mut seen = vec![1; 1000];
        pe.get(&mut seen, &object, right(pe));
        assert!(seen.iter().all(|&value| value == 0));
        pe.barrier().unwrap();
        // Dirty it, so that the next round finds used memory.
        pe.write(&object, &[0xdead_beef; 1000]);
        pe.free(object).unwrap();
    }
}

fn put_and_get_of_every_size(pe: &Pe) {
    fn check<T: Pod + PartialEq + std::fmt::Debug>(pe: &Pe, make: impl Fn(usize) -> T) {
        for len in [1usize, 2, 33, 1000] {
            let object = pe.alloc::<T>(len).unwrap();
            let values: Vec<T> = (0..len).map(|i| make(i + 7 * pe.my_pe())).collect();
            pe.put(&object, &values, right(pe));
            pe.barrier().unwrap();
            let expected: Vec<T> = (0..len).map(|i| make(i + 7 * left(pe))).collect();
            let mut seen = vec![T::zeroed(); len];
            pe.read(&mut seen, &object);
            assert_eq!(seen, expected);
            pe.get(&mut seen, &object, right(pe));
            assert_eq!(seen, values);
            pe.barrier().unwrap();
            for (i, &value) in expected.iter().enumerate() {
                pe.p(object.at(len - 1 - i), value, left(pe));
            }
            pe.barrier().unwrap();
            for (i, &value) in values.iter().enumerate() {
                assert_eq!(pe.g(object.at(len - 1 - i), pe.my_pe()), value);
            }
            pe.free(object).unwrap();
        }
    }
    check(pe, |i| i as u8);
    check(pe, |i| i as i16);
    check(pe, |i| i as f32 + 0.5);
    check(pe, |i| i as f64 - 0.25);
    check(pe, |i| (i as u128).wrapping_mul(u128::MAX / 99));
    check(pe, |i| [i as u8, 1, 2]);
    check(pe, |i| [i as u8, 3, 4, 5]); // four bytes, aligned to one
}

fn strided(pe: &Pe) {
    let object = pe.alloc_zeroed::<u16>(64).unwrap();
    let source: Vec<u16> = (0..40).map(|i| i + 100 * pe.my_pe() as u16).collect();
    pe.iput(object.range(4..), 3, &source, 2, 20, right(pe));
    pe.iput(&object, 5, &source, 9, 0, right(pe));
    pe.barrier().unwrap();
    for i in 0..20 {
        let expected = 2 * i as u16 + 100 * left(pe) as u16;
        assert_eq!(pe.g(object.at(4 + 3 * i), pe.my_pe()), expected);
    }
    assert_eq!(pe.g(object.at(5), pe.my_pe()), 0);
    let mut dest = [0; 40];
    pe.iget(&mut dest, 2, object.range(4..), 3, 20, right(pe));
    for i in 0..20 {
        assert_eq!(dest[2 * i], source[2 * i]);
        assert_eq!(dest[2 * i + 1], 0);
    }
    pe.free(object).unwrap();
}

fn non_blocking(pe: &Pe) {
    let object = pe.alloc::<u64>(256).unwrap();
    let values: Vec<u64> = (0..256).map(|i| i << pe.my_pe()).collect();
    pe.scope(|ops| {
        for chunk in 0..16 {
            let part = 16 * chunk..16 * (chunk + 1);
            ops.put(object.range(part.clone()), &values[part], right(pe));
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    let mut back = vec![0; 256];
    let n = pe.scope(|ops| {
        ops.get(&mut back, &object, right(pe));
        Ok::<_, Error>(256)
    });
    assert_eq!((n, back), (Ok(256), values));
    // What the work returns comes out.
    let refused = AllocError::TooLarge { len: 7, element: 8 };
    let wrong = pe.scope(|_| Err::<(), _>(Error::Alloc(refused.clone())));
    assert_eq!(wrong, Err(Error::Alloc(refused)));
    pe.free(object).unwrap();
}

#[allow(unsafe_code)]
fn local_views(pe: &Pe) {
    let object = pe.alloc::<u32>(10).unwrap();
    // SAFETY: between the allocation and the barrier nobody else touches it.
    unsafe { pe.local_mut(&object) }.fill(pe.my_pe() as u32);
    pe.barrier().unwrap();
    let mut seen = [0; 10];
    pe.get(&mut seen, &object, left(pe));
    assert_eq!(seen, [left(pe) as u32; 10]);
    // SAFETY: nobody writes to it any more.
    assert_eq!(unsafe { pe.local(&object) }, [pe.my_pe() as u32; 10]);
    pe.free(object).unwrap();
}

fn atomics<T: AtomicInt + From<u8> + std::fmt::Debug>(pe: &Pe) {
    let t = |value: u8| T::from(value);
    let object = pe.alloc_zeroed::<T>(8).unwrap();
    let n = pe.n_pes();
    // Each operation on the right neighbour's words, which only this PE uses now.
    let (at, to) = (object.at(0), right(pe));
    pe.atomic_set(at, t(12), to);
    assert_eq!(pe.atomic_fetch(at, to), t(12));
    assert_eq!(pe.atomic_fetch_add(at, t(5), to), t(12));
    assert_eq!(pe.atomic_fetch_inc(at, to), t(17));
    pe.atomic_add(at, t(2), to);
    pe.atomic_inc(at, to);
    assert_eq!(pe.atomic_swap(at, t(0b1100), to), t(21));
    assert_eq!(pe.atomic_compare_swap(at, t(1), t(99), to), t(0b1100));
    assert_eq!(
        pe.atomic_compare_swap(at, t(0b1100), t(0b1010), to),
        t(0b1100)
    );
    assert_eq!(pe.atomic_fetch_and(at, t(0b0110), to), t(0b1010));
    assert_eq!(pe.atomic_fetch_or(at, t(0b1001), to), t(0b0010));
    assert_eq!(pe.atomic_fetch_xor(at, t(0b0001), to), t(0b1011));
    pe.atomic_and(at, t(0b1010), to);
    pe.atomic_or(at, t(0b0100), to);
    pe.atomic_xor(at, t(0b1000), to);
    assert_eq!(pe.atomic_fetch(at, to), t(0b0110));
    pe.barrier().unwrap();
    // All PEs on one word: no update is lost, and every old value is seen by exactly one PE.
    let rounds = 100u8;
    let mut olds = Vec::new();
    for _ in 0..rounds {
        pe.atomic_inc(object.at(1), 0);
        olds.push(pe.atomic_fetch_inc(object.at(2), 0));
    }
    assert!(olds.windows(2).all(|pair| pair[0] < pair[1]));
    pe.barrier().unwrap();
    let mut total = t(0);
    let counter = pe.alloc_zeroed::<T>(1).unwrap();
    for _ in 0..n {
        total = pe.atomic_fetch_add(&counter, t(rounds), pe.my_pe());
    }
    let _ = total;
    let expected = pe.atomic_fetch(&counter, pe.my_pe());
    assert_eq!(pe.atomic_fetch(object.at(1), 0), expected);
    assert_eq!(pe.atomic_fetch(object.at(2), 0), expected);
    pe.free(counter).unwrap();
    pe.free(object).unwrap();
}

fn atomic_floats(pe: &Pe) {
    let (single, double) = (
        pe.alloc_zeroed::<f32>(1).unwrap(),
        pe.alloc_zeroed::<f64>(1).unwrap(),
    );
    let to = right(pe);
    pe.atomic_set(&single, -0.5, to);
    assert_eq!(pe.atomic_swap(&single, f32::INFINITY, to), -0.5);
    assert_eq!(pe.atomic_fetch(&single, to), f32::INFINITY);
    assert_eq!(pe.atomic_swap(&double, 1e300, to), 0.0);
    pe.barrier().unwrap();
    assert_eq!(pe.atomic_fetch(&double, pe.my_pe()), 1e300);
    pe.barrier().unwrap();
    pe.free(double).unwrap();
    pe.free(single).unwrap();
}

/// A lock made by hand of compare-swap and set protects plain gets and puts.
fn compare_swap_lock(pe: &Pe) {
    let lock = pe.alloc_zeroed::<u32>(1).unwrap();
    let sum = pe.alloc_zeroed::<u64>(1).unwrap();
    for _ in 0..50 {
        while pe.atomic_compare_swap(&lock, 0, 1, 0) != 0 {
            std::thread::yield_now();
        }
        let seen = pe.g(&sum, 0);
        pe.p(&sum, seen + 1, 0);
        pe.quiet().unwrap();
        pe.atomic_set(&lock, 0, 0);
    }
    pe.barrier().unwrap();
    assert_eq!(pe.g(&sum, 0), 50 * pe.n_pes() as u64);
    pe.free(sum).unwrap();
    pe.free(lock).unwrap();
}

fn signals(pe: &Pe) {
    let data = pe.alloc_zeroed::<u32>(pe.n_pes()).unwrap();
    let signal = pe.alloc_zeroed::<u64>(1).unwrap();
    // Everyone sends to everyone; additions of signals must not get lost.
    for other in 0..pe.n_pes() {
        let mine = data.range(pe.my_pe()..=pe.my_pe());
        pe.put_signal(
            mine,
            &[1 + pe.my_pe() as u32],
            &signal,
            3,
            SignalOp::Add,
            other,
        );
    }
    let all = 3 * pe.n_pes() as u64;
    assert_eq!(pe.signal_wait_until(&signal, Cmp::Ge, all), Ok(all));
    let mut seen = vec![0; pe.n_pes()];
    pe.read(&mut seen, &data);
    assert!(
        seen.iter()
            .zip(1..)
            .all(|(&seen, expected)| seen == expected)
    );
    pe.barrier().unwrap();
    pe.signal(&signal, 77, SignalOp::Set, right(pe));
    assert_eq!(pe.signal_wait_until(&signal, Cmp::Eq, 77), Ok(77));
    assert_eq!(pe.signal_fetch(&signal), 77);
    pe.free(signal).unwrap();
    pe.free(data).unwrap();
}

/// Many messages around a ring: the signal never runs ahead of its data.
fn signal_after_data(pe: &Pe) {
    const LEN: usize = 300;
    let data = pe.alloc_zeroed::<u64>(LEN).unwrap();
    let (there, back) = (
        pe.alloc_zeroed::<u64>(1).unwrap(),
        pe.alloc_zeroed::<u64>(1).unwrap(),
    );
    let mut seen = [0; LEN];
    for round in 1..=200u64 {
        pe.put_signal(
            &data,
            &[round; LEN],
            &there,
            round,
            SignalOp::Set,
            right(pe),
        );
        pe.signal_wait_until(&there, Cmp::Ge, round).unwrap();
        pe.read(&mut seen, &data);
        assert_eq!(seen, [round; LEN]);
        pe.signal(&back, round, SignalOp::Set, left(pe));
        pe.signal_wait_until(&back, Cmp::Ge, round).unwrap();
    }
    pe.free(back).unwrap();
    pe.free(there).unwrap();
    pe.free(data).unwrap();
}

/// What was put before a barrier is there after it, over and over.
fn barrier_order(pe: &Pe) {
    let cells = pe.alloc_zeroed::<u32>(pe.n_pes()).unwrap();
    for round in 1..=300u32 {
        for other in 0..pe.n_pes() {
            pe.p(cells.at(pe.my_pe()), round, other);
        }
        pe.barrier().unwrap();
        for i in 0..pe.n_pes() {
            assert_eq!(pe.g(cells.at(i), pe.my_pe()), round);
        }
        pe.sync().unwrap();
    }
    pe.free(cells).unwrap();
}

fn broadcast(pe: &Pe) {
    for len in LENGTHS {
        let (dest, source) = (pe.alloc::<i32>(len).unwrap(), pe.alloc::<i32>(len).unwrap());
        for root in 0..pe.n_pes() {
            let value = |i: usize, pe: usize| (i + 1000 * pe) as i32;
            let mine: Vec<_> = (0..len).map(|i| value(i, pe.my_pe())).collect();
            pe.write(&source, &mine);
            pe.world().broadcast(&dest, &source, root).unwrap();
            let mut seen = vec![0; len];
            pe.read(&mut seen, &dest);
            let expected: Vec<_> = (0..len).map(|i| value(i, root)).collect();
            assert_eq!(seen, expected);
            // In place.
            pe.world().broadcast(&source, &source, root).unwrap();
            pe.read(&mut seen, &source);
            assert_eq!(seen, expected);
        }
        pe.free(source).unwrap();
        pe.free(dest).unwrap();
    }
}

fn fcollect(pe: &Pe) {
    for len in LENGTHS {
        let dest = pe.alloc::<u64>(len * pe.n_pes()).unwrap();
        let source = pe.alloc::<u64>(len).unwrap();
        let value = |i: usize, pe: usize| (i ^ (pe << 20)) as u64;
        let mine: Vec<_> = (0..len).map(|i| value(i, pe.my_pe())).collect();
        pe.write(&source, &mine);
        pe.world().fcollect(&dest, &source).unwrap();
        let mut seen = vec![0; dest.len()];
        pe.read(&mut seen, &dest);
        for (j, &seen) in seen.iter().enumerate() {
            assert_eq!(seen, value(j % len, j / len));
        }
        pe.free(source).unwrap();
        pe.free(dest).unwrap();
    }
}

fn alltoall(pe: &Pe) {
    for len in LENGTHS {
        let total = len * pe.n_pes();
        let (dest, source) = (
            pe.alloc::<u32>(total).unwrap(),
            pe.alloc::<u32>(total).unwrap(),
        );
        let value = |i: usize, from: usize, to: usize| (i + 10_000 * from + 100_000 * to) as u32;
        let mine: Vec<_> = (0..total)
            .map(|j| value(j % len, pe.my_pe(), j / len))
            .collect();
        pe.write(&source, &mine);
        pe.world().alltoall(&dest, &source).unwrap();
        let mut seen = vec![0; total];
        pe.read(&mut seen, &dest);
        for (j, &seen) in seen.iter().enumerate() {
            assert_eq!(seen, value(j % len, j / len, pe.my_pe()));
        }
        pe.free(source).unwrap();
        pe.free(dest).unwrap();
    }
}

/// Against the same fold over all PEs' values, computed locally.
fn check_reduce<T, O>(pe: &Pe, op: O, value: impl Fn(usize, usize) -> T)
where
    T: Pod + PartialEq + std::fmt::Debug,
    O: ReduceOp<T>,
{
    for len in LENGTHS {
        let (dest, source) = (pe.alloc::<T>(len).unwrap(), pe.alloc::<T>(len).unwrap());
        let expected: Vec<T> = (0..len)
            .map(|i| {
                let values = (0..pe.n_pes()).map(|pe| value(i, pe));
                values.reduce(O::apply).unwrap()
            })
            .collect();
        let mine: Vec<T> = (0..len).map(|i| value(i, pe.my_pe())).collect();
        pe.write(&source, &mine);
        pe.world().reduce(&dest, &source, op).unwrap();
        let mut seen = vec![T::zeroed(); len];
        pe.read(&mut seen, &dest);
        assert_eq!(seen, expected);
        pe.world().reduce(&source, &source, op).unwrap();
        pe.read(&mut seen, &source);
        assert_eq!(seen, expected, "in place");
        pe.free(source).unwrap();
        pe.free(dest).unwrap();
    }
}

fn reduce_integers(pe: &Pe) {
    let mix = |i: usize, pe: usize| (i as u64).wrapping_mul(2654435761) + pe as u64 * 40503 + 7;
    check_reduce(pe, Sum, mix);
    check_reduce(pe, Prod, |i, pe| mix(i, pe) as i32);
    check_reduce(pe, Min, |i, pe| mix(i, pe) as i16);
    check_reduce(pe, Max, |i, pe| mix(i, pe) as u8);
    check_reduce(pe, And, mix);
    check_reduce(pe, Or, |i, pe| mix(i, pe) as u32);
    check_reduce(pe, Xor, |i, pe| mix(i, pe) as i64);
}

fn reduce_floats_in_rank_order(pe: &Pe) {
    // Values whose sum depends on the order: the rank order is part of the contract.
    let value = |i: usize, pe: usize| [1e16, 1.0, -1e16, 3.0, 0.1, 1e-3, -7.0][(i + pe) % 7];
    check_reduce(pe, Sum, value);
    check_reduce(pe, Prod, |i, pe| value(i, pe) as f32);
    check_reduce(pe, Min, value);
    check_reduce(pe, Max, |i, pe| value(i, pe) as f32);
    let complex = |i: usize, pe: usize| Complex {
        re: value(i, pe),
        im: value(i + 1, pe),
    };
    check_reduce(pe, Sum, complex);
    check_reduce(pe, Prod, complex);
}

/// The inline slots are reused every second collective; nobody may see another round's value.
fn collectives_back_to_back(pe: &Pe) {
    let (value, sum) = (pe.alloc::<u64>(1).unwrap(), pe.alloc::<u64>(1).unwrap());
    for round in 0..500u64 {
        pe.write(&value, &[round]);
        pe.world().reduce(&sum, &value, Sum).unwrap();
        assert_eq!(pe.g(&sum, pe.my_pe()), round * pe.n_pes() as u64);
    }
    pe.free(sum).unwrap();
    pe.free(value).unwrap();
}

/// Every PE reads every PE's file through the descriptors it was given.
fn shared_file_descriptors(pe: &Pe) {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;
    if pe.shared_team().n_pes() < pe.n_pes() {
        let shared = pe.share_fd(std::io::stderr().as_fd());
        assert!(matches!(shared, Err(ShareError::Hosts)), "{shared:?}");
        return;
    }
    for round in 0..3 {
        let mut mine = tempfile::tempfile().unwrap();
        write!(mine, "{} in round {round}", pe.my_pe()).unwrap();
        let shared = pe.share_fd(mine.as_fd()).unwrap();
        assert_eq!(shared.len(), pe.n_pes());
        for (owner, fd) in shared.into_iter().enumerate() {
            // The position is shared with the owner and all its other readers.
            let mut file = std::fs::File::open(format!(
                "/proc/self/fd/{}",
                std::os::fd::AsRawFd::as_raw_fd(&fd)
            ))
            .unwrap();
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, format!("{owner} in round {round}"));
        }
    }
}

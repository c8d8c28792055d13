//! The raw layer: the verbs by address, in the heap and in registered segments.
#![allow(unsafe_code)] // the layer under test is unsafe; each address below is one of a live object

use crate::cases::{Case, left, right};
use crosswarp_shmem::raw::{Values, WaitSet, memfd};
use crosswarp_shmem::{AllocError, Cmp, Pe, SignalOp};
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

pub const CASES: &[Case] = &[
    ("raw: heap", heap),
    ("raw: verbs in the heap", verbs_in_the_heap),
    ("raw: wait sets", wait_sets),
];

fn heap(pe: &Pe) {
    let raw = pe.raw();
    // What does nothing must not meet: only one PE calls.
    if pe.my_pe() == 0 {
        assert!(raw.malloc(0, 8).unwrap().is_null());
        assert!(raw.calloc(0, 8).unwrap().is_null());
        assert!(raw.calloc(8, 0).unwrap().is_null());
        raw.free(ptr::null_mut()).unwrap();
    }
    for align in [1, 8, 64, 4096, 2 << 20] {
        let object = raw.malloc(100, align).unwrap();
        assert_eq!(object.addr() % align.max(64), 0);
        assert!(raw.contains(object, 100));
        raw.free(object).unwrap();
    }
    let dirty = raw.malloc(1 << 20, 1).unwrap();
    // SAFETY: allocated just above.
    unsafe { ptr::write_bytes(dirty, 0xa5, 1 << 20) };
    raw.free(dirty).unwrap();
    let zeros = raw.calloc(1 << 10, 1 << 10).unwrap();
    // SAFETY: allocated just above, and nobody writes there yet.
    let clean = unsafe { std::slice::from_raw_parts(zeros, 1 << 20) };
    assert!(clean.iter().all(|&byte| byte == 0));
    // Growing and shrinking keeps what fits.
    // SAFETY: still allocated.
    unsafe { ptr::write_bytes(zeros, 3 + pe.my_pe() as u8, 1 << 20) };
    let more = raw.realloc(zeros, 3 << 20).unwrap();
    assert_ne!(more, zeros);
    let less = raw.realloc(more, 1000).unwrap();
    assert_eq!(less, more, "it fits where it is");
    let mut theirs = [0; 1000];
    // SAFETY: `less` has 1000 bytes on every PE.
    unsafe { raw.get(theirs.as_mut_ptr(), less, 1000, right(pe)) };
    assert_eq!(theirs, [3 + right(pe) as u8; 1000]);
    pe.barrier().unwrap();
    let too_much = raw.realloc(less, pe.heap_bytes() + 1).unwrap_err();
    assert!(matches!(too_much, AllocError::OutOfHeap { .. }));
    let stranger = raw.free(less.wrapping_add(8)).unwrap_err();
    assert!(matches!(stranger, AllocError::NotAllocated { .. }));
    assert!(raw.realloc(less, 0).unwrap().is_null());
    let overflow = raw.calloc(usize::MAX, 3).unwrap_err();
    assert!(matches!(overflow, AllocError::TooLarge { .. }));
}

fn verbs_in_the_heap(pe: &Pe) {
    let object = pe.raw().malloc(512, 8).unwrap();
    verbs(pe, object);
    pe.raw().free(object).unwrap();
}

/// Two segments of a process world: the first is found by the fast path, the second by the slow one.
pub fn segments(pe: &mut Pe) {
    const BYTES: usize = 8192;
    let mut bases = Vec::new();
    for _ in 0..2 {
        let memory = memfd("crosswarp-test", BYTES).unwrap();
        // SAFETY: a fresh mapping of the file just made.
        let base = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                BYTES,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                &memory,
                0,
            )
        };
        let base = NonNull::new(base.unwrap().cast::<u8>()).unwrap();
        // SAFETY: mapped above from the start of `memory`, never unmapped.
        unsafe { pe.register_segment(base, BYTES, memory.as_fd()) }.unwrap();
        bases.push(base.as_ptr());
    }
    for base in bases {
        let raw = pe.raw();
        assert!(raw.contains(base, BYTES) && !raw.contains(base.wrapping_add(1), BYTES));
        verbs(pe, base);
        // The last bytes are as reachable as the first.
        verbs(pe, base.wrapping_add(BYTES - 512));
        pe.barrier().unwrap();
    }
    // A stranger's address is refused in words.
    let stranger = Box::new(0u64);
    assert!(!pe.raw().contains(&*stranger, 8));
    assert!(pe.raw().ptr(&*stranger, 0).is_null());
}

/// All kinds of operations on 512 symmetric bytes, to the right neighbour and back.
fn verbs(pe: &Pe, at: *mut u8) {
    let (raw, to, me) = (pe.raw(), right(pe), pe.my_pe());
    let words = at.cast::<u64>();
    let word = |i: usize| words.wrapping_add(i);
    // SAFETY: 64 words on every PE, aligned; local arguments are live arrays long enough.
    unsafe {
        ptr::write_bytes(at, 0, 512);
        pe.barrier().unwrap();
        let source: Vec<u64> = (0..64).map(|i| i + 100 * me as u64).collect();
        raw.put(at, source.as_ptr().cast(), 8 * 8, to);
        raw.put(ptr::null_mut(), ptr::null(), 0, to); // nothing, from nowhere
        raw.p(word(8), 7 + me as u64, to);
        raw.p(word(9).cast::<[u32; 2]>(), [1, 2], to);
        raw.iput(word(10), 2, source.as_ptr(), 3, 4, to);
        raw.atomic_set(word(20).cast::<f64>(), 0.25, to);
        raw.atomic_set(word(21), 10, to);
        assert_eq!(raw.atomic_fetch_add(word(21), 5, to), 10);
        assert_eq!(raw.atomic_fetch_and(word(21), 0b0111, to), 15);
        assert_eq!(raw.atomic_fetch_or(word(21), 0b1000, to), 7);
        assert_eq!(raw.atomic_fetch_xor(word(21), 0b0011, to), 15);
        assert_eq!(raw.atomic_compare_swap(word(21), 1, 99, to), 12);
        assert_eq!(raw.atomic_compare_swap(word(21), 12, 13, to), 12);
        assert_eq!(raw.atomic_swap(word(22).cast::<i32>(), -3, to), 0);
        pe.barrier().unwrap();
        let from = left(pe) as u64;
        assert_eq!(raw.g(word(7), me), 7 + 100 * from);
        assert_eq!(raw.g(word(8), me), 7 + from);
        assert_eq!(raw.g(word(9).cast::<u32>().wrapping_add(1), me), 2);
        let strided: [u64; 8] = std::array::from_fn(|i| raw.g(word(10 + i), me));
        let s = |i: u64| 3 * i + 100 * from;
        assert_eq!(strided, [s(0), 0, s(1), 0, s(2), 0, s(3), 0]);
        let mut back = [0; 8];
        raw.iget(back.as_mut_ptr(), 2, word(10), 2, 4, to);
        let mine = |i: u64| 3 * i + 100 * me as u64;
        assert_eq!(back, [mine(0), 0, mine(1), 0, mine(2), 0, mine(3), 0]);
        assert_eq!(raw.atomic_fetch(word(20).cast::<f64>(), me), 0.25);
        assert_eq!(raw.atomic_fetch(word(21), me), 13);
        assert_eq!(raw.atomic_fetch(word(22).cast::<i32>(), me), -3);
        // Through the pointer as through the verb.
        let there = raw.ptr(word(8), to);
        let mapped = there.is_null() || there.read() == 7 + me as u64;
        assert!(mapped, "a pointer to another value");
        // Which is not an address that the verbs take, unless it is this PE's own.
        assert_eq!(raw.contains(there, 8), to == me);
        pe.barrier().unwrap();
        // A sleeper on any of these addresses is woken.
        for round in 1..=3 {
            if me == 0 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            } else {
                raw.wait_until(word(30), Cmp::Ge, round).unwrap();
                // The neighbour may be further already, never behind.
                assert!(raw.g(word(31), me) >= round);
            }
            if to != 0 {
                let data = (&raw const round).cast();
                raw.put_signal(word(31).cast(), data, 8, word(30), 1, SignalOp::Add, to);
            }
        }
        pe.barrier().unwrap();
        assert_eq!(raw.signal_fetch(word(30)), if me == 0 { 0 } else { 3 });
        pe.barrier().unwrap();
    }
}

fn wait_sets(pe: &Pe) {
    let (raw, to) = (pe.raw(), right(pe));
    let ivars = raw.calloc(5, 8).unwrap().cast::<i64>();
    let status = [0, 1, 0, 0, 0];
    let values = [10, 11, 12, 13, 14];
    let set = WaitSet {
        ivars: ivars.cast_const(),
        n: 5,
        status: status.as_ptr(),
        cmp: Cmp::Eq,
        values: Values::Each(values.as_ptr()),
    };
    let none = WaitSet { n: 0, ..set };
    let excluded = [1, 1, 1, 1, 1];
    let left_out = WaitSet {
        status: excluded.as_ptr(),
        ..set
    };
    let mut found = [usize::MAX; 5];
    // SAFETY: five elements everywhere, and room for five indices.
    unsafe {
        for empty in [none, left_out] {
            assert_eq!(raw.wait_until_any(empty), Ok(usize::MAX));
            assert_eq!(raw.test_any(empty), usize::MAX);
            assert_eq!(raw.wait_until_some(empty, found.as_mut_ptr()), Ok(0));
            assert_eq!(raw.test_some(empty, found.as_mut_ptr()), 0);
            assert!(raw.test_all(empty));
            assert_eq!(raw.wait_until_all(empty), Ok(()));
        }
        assert_eq!(raw.test_any(set), usize::MAX);
        assert!(!raw.test_all(set));
        pe.barrier().unwrap();
        // The one left out first: it must not be found.
        raw.p(ivars.add(1), 11, to);
        raw.p(ivars.add(3), 13, to);
        assert_eq!(raw.wait_until_any(set), Ok(3));
        assert_eq!(raw.wait_until_some(set, found.as_mut_ptr()), Ok(1));
        assert_eq!(found[0], 3);
        pe.barrier().unwrap();
        for i in [0, 2, 4] {
            raw.p(ivars.add(i), values[i], to);
        }
        assert_eq!(raw.wait_until_all(set), Ok(()));
        assert!(raw.test_all(set));
        assert_eq!(raw.test_some(set, found.as_mut_ptr()), 4);
        assert_eq!(found[..4], [0, 2, 3, 4]);
        // Whoever keeps holding has its turn.
        let mut turns = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            turns.insert(raw.wait_until_any(set).unwrap());
        }
        assert_eq!(turns.iter().copied().collect::<Vec<_>>(), [0, 2, 3, 4]);
        let all = WaitSet {
            status: ptr::null(),
            values: Values::One(10),
            cmp: Cmp::Ge,
            ..set
        };
        pe.barrier().unwrap();
        assert_eq!(raw.wait_until_some(all, found.as_mut_ptr()), Ok(5));
        // Asleep on several: any of them wakes.
        for round in 20..23 {
            let set = WaitSet {
                values: Values::One(round),
                ..all
            };
            if pe.my_pe() == 0 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            } else {
                assert_eq!(raw.wait_until_any(set), Ok(round as usize % 5));
            }
            if to != 0 {
                raw.atomic_set(ivars.add(round as usize % 5), round, to);
            }
            pe.barrier().unwrap();
        }
    }
    assert_eq!(status, [0, 1, 0, 0, 0]);
    raw.free(ivars.cast()).unwrap();
}

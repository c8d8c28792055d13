//! Waiting, locks and contexts (OpenSHMEM 1.5, sections 9.5, 9.10 and 9.12).

use crate::cases::{Case, left, right};
use crosswarp_shmem::{Cmp, ContextOptions, DeliveryError, Pe, SignalOp, ThreadLevel, WaitSet};
use std::sync::atomic::{AtomicU64, Ordering};

pub const CASES: &[Case] = &[
    ("locks", locks),
    ("locks by address", locks_by_address),
    ("wait and test", wait_and_test),
    ("wait sets", wait_sets),
    ("contexts", contexts),
    ("where things are", where_things_are),
    ("stores through pointers", stores_through_pointers),
];

/// Two locks with different homes, each of which protects plain gets and puts.
fn locks(pe: &Pe) {
    let locks = [pe.alloc_lock().unwrap(), pe.alloc_lock().unwrap()];
    let sums = pe.alloc_zeroed::<u64>(2).unwrap();
    for round in 0..100 {
        let which = (round + pe.my_pe()) % 2;
        let sum = sums.at(which);
        let held = pe.lock(&locks[which]).unwrap();
        let seen = pe.g(sum, 0);
        pe.p(sum, seen + 1, 0);
        // Held by this PE, and so for other threads of it as well.
        assert!(pe.try_lock(&locks[which]).is_none());
        drop(held);
    }
    pe.barrier().unwrap();
    assert_eq!(
        pe.g(sums.at(0), 0) + pe.g(sums.at(1), 0),
        100 * pe.n_pes() as u64
    );
    // One PE holds on; the others can not have it, then all get it in turn.
    if pe.my_pe() == 0 {
        let held = pe.lock(&locks[0]).unwrap();
        pe.barrier().unwrap();
        pe.barrier().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        pe.p(sums.at(0), 0, 0);
        drop(held);
    } else {
        pe.barrier().unwrap();
        assert!(pe.try_lock(&locks[0]).is_none());
        pe.barrier().unwrap();
        // Whoever has it after PE 0 sees what PE 0 did under it.
        let _held = pe.lock(&locks[0]).unwrap();
        assert_eq!(pe.g(sums.at(0), 0), 0);
    }
    // Threads of one PE exclude each other too.
    let mine = pe.alloc_zeroed::<u64>(1).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let _held = pe.lock(&locks[1]).unwrap();
                    let seen = pe.g(&mine, 0);
                    pe.p(&mine, seen + 1, 0);
                }
            });
        }
    });
    pe.barrier().unwrap();
    assert_eq!(pe.g(&mine, 0), 150 * pe.n_pes() as u64);
    pe.free(mine).unwrap();
    pe.free(sums).unwrap();
    for lock in locks {
        pe.free_lock(lock).unwrap();
    }
}

/// First come, first served: PEs that ask one after the other get it in that order.
#[allow(unsafe_code)]
fn locks_by_address(pe: &Pe) {
    let (raw, me, n) = (pe.raw(), pe.my_pe(), pe.n_pes());
    let lock = raw.calloc(1, 8).unwrap().cast::<i64>();
    let order = pe.alloc_zeroed::<u64>(1).unwrap();
    let turn = pe.alloc_zeroed::<u32>(1).unwrap();
    // SAFETY: the lock is a zeroed word of the heap, used for nothing else.
    unsafe {
        assert!(!raw.clear_lock(lock), "nobody has it");
        pe.barrier().unwrap();
        if me == 0 {
            assert!(raw.test_lock(lock) && !raw.test_lock(lock));
            // Everyone asks in turn while it is held. That a PE is in the queue can not be seen from
            // outside, so there is a pause for it.
            for other in 1..n {
                pe.atomic_set(&turn, 1, other);
                pe.wait_until(&turn, Cmp::Eq, other as u32).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            assert!(raw.clear_lock(lock));
        } else {
            pe.wait_until(&turn, Cmp::Eq, 1).unwrap();
            pe.atomic_set(&turn, me as u32, 0);
            raw.set_lock(lock).unwrap();
            // How many were before me, PE 0 aside.
            let before = pe.g(&order, 0);
            pe.p(&order, before + 1, 0);
            assert!(raw.clear_lock(lock));
            pe.p(&order, before + 1, me);
        }
    }
    pe.barrier().unwrap();
    if me != 0 {
        assert_eq!(pe.g(&order, me), me as u64, "served out of turn");
    }
    pe.free(turn).unwrap();
    pe.free(order).unwrap();
    raw.free(lock.cast()).unwrap();
}

fn wait_and_test(pe: &Pe) {
    let flags = pe.alloc_zeroed::<i64>(8).unwrap();
    let at = |i| flags.at(i);
    assert!(pe.test(at(0), Cmp::Eq, 0) && !pe.test(at(0), Cmp::Ne, 0));
    pe.barrier().unwrap();
    // By p, by put, by an atomic: any of them ends a wait, for every comparison.
    let to = right(pe);
    pe.p(at(0), -5, to);
    pe.put(flags.range(1..2), &[-5], to);
    pe.atomic_add(at(2), -5, to);
    pe.atomic_swap(at(3), 5, to);
    pe.atomic_set(at(4), 5, to);
    pe.iput(flags.range(5..), 1, &[5], 1, 1, to);
    assert_eq!(pe.wait_until(at(0), Cmp::Lt, 0), Ok(-5));
    assert_eq!(pe.wait_until(at(1), Cmp::Le, -5), Ok(-5));
    assert_eq!(pe.wait_until(at(2), Cmp::Eq, -5), Ok(-5));
    assert_eq!(pe.wait_until(at(3), Cmp::Gt, 4), Ok(5));
    assert_eq!(pe.wait_until(at(4), Cmp::Ge, 5), Ok(5));
    assert_eq!(pe.wait_until(at(5), Cmp::Ne, 0), Ok(5));
    pe.barrier().unwrap();
    // Long enough apart that the waiter sleeps: the wake-up must come.
    if pe.n_pes() > 1 {
        let round_trips = 5;
        for round in 1..=round_trips {
            if pe.my_pe() == 0 {
                std::thread::sleep(std::time::Duration::from_millis(2));
                for other in 1..pe.n_pes() {
                    pe.p(at(6), round, other);
                }
            } else {
                pe.wait_until(at(6), Cmp::Ge, round).unwrap();
            }
        }
    }
    pe.free(flags).unwrap();
}

/// All, any and some, with elements left out, empty sets, and one value or one each.
fn wait_sets(pe: &Pe) {
    let flags = pe.alloc_zeroed::<i32>(6).unwrap();
    let (to, me) = (right(pe), pe.my_pe());
    let values = [5, 6, 7, 8, 9, 10];
    let mut marks = [false; 6];
    let all_marked = [true; 6];
    let none = flags.range(0..0);
    for empty in [
        WaitSet::new(none, Cmp::Eq, 1),
        WaitSet::each(none, Cmp::Eq, &[]),
        WaitSet::new(&flags, Cmp::Ne, 0).without(&all_marked),
    ] {
        assert_eq!(pe.wait_until_all(&empty), Ok(()));
        assert_eq!(pe.wait_until_any(&empty), Ok(None));
        assert_eq!(pe.wait_until_some(&empty), Ok(vec![]));
        assert!(pe.test_all(&empty));
        assert_eq!(pe.test_any(&empty), None);
        assert_eq!(pe.test_some(&empty), []);
    }
    let set = WaitSet::each(&flags, Cmp::Eq, &values);
    assert!(!pe.test_all(&set) && pe.test_any(&set).is_none() && pe.test_some(&set).is_empty());
    pe.barrier().unwrap();
    for (i, &value) in values.iter().enumerate() {
        pe.p(flags.at(i), value, to);
        let set = WaitSet::each(&flags, Cmp::Eq, &values).without(&marks);
        // The others may be further; this one is there at last.
        while !pe.wait_until_some(&set).unwrap().contains(&i) {}
        assert!(
            pe.wait_until_any(&set)
                .unwrap()
                .is_some_and(|first| first <= i || !marks[i])
        );
        marks[i] = true;
    }
    pe.wait_until_all(&set).unwrap();
    pe.wait_until_all(&WaitSet::new(&flags, Cmp::Ge, 5))
        .unwrap();
    assert_eq!(pe.test_some(&WaitSet::new(&flags, Cmp::Gt, 8)), [4, 5]);
    marks = [true, true, true, true, true, false];
    assert_eq!(pe.test_any(&set.without(&marks)), Some(5));
    // All of them hold and stay so: each has its turn, also beside calls for another set.
    let (any, part) = (
        WaitSet::new(&flags, Cmp::Ge, 5),
        WaitSet::new(flags.range(1..3), Cmp::Ge, 5),
    );
    let (mut waited, mut tested, mut in_part) = ([false; 6], [false; 6], [false; 2]);
    let mut calls = 0;
    while [&waited[..], &tested, &in_part].concat().contains(&false) {
        waited[pe.wait_until_any(&any).unwrap().unwrap()] = true;
        in_part[pe.test_any(&part).unwrap()] = true;
        tested[pe.test_any(&any).unwrap()] = true;
        calls += 1;
        assert!(calls < 1000, "{waited:?} {tested:?} {in_part:?}");
    }
    pe.barrier().unwrap();
    // Asleep on several.
    if me == 0 {
        std::thread::sleep(std::time::Duration::from_millis(3));
        for other in 1..pe.n_pes() {
            pe.atomic_set(flags.at(other % 6), -1, other);
        }
    } else {
        let any = WaitSet::new(&flags, Cmp::Lt, 0);
        assert_eq!(pe.wait_until_any(&any), Ok(Some(me % 6)));
    }
    pe.barrier().unwrap();
    pe.free(flags).unwrap();
}

/// Every operation through contexts of two teams, with the PEs numbered as in the team.
fn contexts(pe: &Pe) {
    let n = pe.n_pes();
    let words = pe.alloc_zeroed::<u64>(32).unwrap();
    let back = pe.world().split_strided(n - 1, -1, n).unwrap().unwrap();
    let options = ContextOptions {
        nostore: true,
        ..Default::default()
    };
    let (context, of_world) = (back.context(options), pe.world());
    let of_world = of_world.context(ContextOptions::default());
    assert_eq!(
        (context.options(), context.team().my_pe()),
        (options, n - 1 - pe.my_pe())
    );
    // To the right neighbour in the team's order, which is the left one in the world's.
    let to = (back.my_pe() + 1) % n;
    assert_eq!(back.world_pe(to), left(pe));
    context.p(words.at(0), 1 + pe.my_pe() as u64, to);
    context.put(words.range(1..3), &[10, 11], to);
    context.put(words.range(3..4), &[12], to);
    context.iput(words.range(4..8), 2, &[13, 0, 14], 2, 2, to);
    context.fence().unwrap();
    context.put_signal(words.range(8..9), &[15], words.at(9), 1, SignalOp::Set, to);
    let value = [16];
    context
        .scope(|ops| {
            ops.put_signal(
                words.range(10..11),
                &value,
                words.at(11),
                1,
                SignalOp::Add,
                to,
            );
            Ok::<_, DeliveryError>(())
        })
        .unwrap();
    pe.wait_until_all(&WaitSet::new(words.range(9..10), Cmp::Eq, 1))
        .unwrap();
    pe.barrier().unwrap();
    let mut seen = [0; 12];
    pe.read(&mut seen, words.range(..12));
    let from = 1 + right(pe) as u64;
    assert_eq!(seen, [from, 10, 11, 12, 13, 0, 14, 0, 15, 1, 16, 1]);
    let (mut got, mut strided) = ([0; 2], [0; 4]);
    context.get(&mut got, words.range(1..3), to);
    assert_eq!(got, [10, 11]);
    context
        .scope(|ops| {
            ops.get(&mut got[..1], words.range(3..4), to);
            Ok::<_, DeliveryError>(())
        })
        .unwrap();
    context.iget(&mut strided, 3, words.range(4..8), 2, 2, to);
    context.quiet().unwrap();
    assert_eq!((got[0], strided), (12, [13, 0, 0, 14]));
    assert_eq!(context.g(words.at(0), to), 1 + pe.my_pe() as u64);
    assert_eq!(of_world.g(words.at(0), left(pe)), 1 + pe.my_pe() as u64);
    // Atomics, blocking and not.
    let at = words.at(20);
    context.atomic_set(at, 3, to);
    assert_eq!(context.atomic_fetch(at, to), 3);
    assert_eq!(context.atomic_fetch_add(at, 4, to), 3);
    assert_eq!(context.atomic_fetch_inc(at, to), 7);
    assert_eq!(context.atomic_compare_swap(at, 8, 12, to), 8);
    assert_eq!(context.atomic_swap(at, 0b1100, to), 12);
    assert_eq!(context.atomic_fetch_and(at, 0b0110, to), 0b1100);
    assert_eq!(context.atomic_fetch_or(at, 0b0001, to), 0b0100);
    assert_eq!(context.atomic_fetch_xor(at, 0b0111, to), 0b0101);
    context.atomic_inc(at, to);
    context.atomic_add(at, 1, to);
    context.atomic_and(at, 0b0100, to);
    context.atomic_or(at, 0b1000, to);
    context.atomic_xor(at, 0b0100, to);
    macro_rules! check {
        ($old:literal, $name:ident($($arg:expr),*)) => {
            let mut fetched = 0;
            let delivered = context.scope(|ops| {
                ops.$name(&mut fetched, $($arg),*);
                Ok::<_, DeliveryError>(())
            });
            assert_eq!((delivered, fetched), (Ok(()), $old));
        };
    }
    check!(0b1000, atomic_fetch(at, to));
    check!(0b1000, atomic_fetch_add(at, 1, to));
    check!(0b1001, atomic_fetch_inc(at, to));
    check!(0b1010, atomic_fetch_and(at, 0b0110, to));
    check!(0b0010, atomic_fetch_or(at, 0b0101, to));
    check!(0b0111, atomic_fetch_xor(at, 0b0001, to));
    check!(0b0110, atomic_swap(at, 40, to));
    check!(40, atomic_compare_swap(at, 40, 41, to));
    pe.barrier().unwrap();
    assert_eq!(pe.atomic_fetch(at, pe.my_pe()), 41);
    back.destroy().unwrap();
    pe.free(words).unwrap();
}

#[allow(unsafe_code)]
fn where_things_are(pe: &Pe) {
    assert_eq!(pe.thread_level(), ThreadLevel::Multiple);
    let object = pe.alloc::<u32>(3).unwrap();
    pe.write(&object, &[1, 2, pe.my_pe() as u32]);
    pe.barrier().unwrap();
    assert!(pe.pe_accessible(pe.n_pes() - 1) && !pe.pe_accessible(pe.n_pes()));
    let place = pe.ptr(object.at(2), right(pe));
    // The neighbour is on this host, or its memory has no address here.
    let neighbours = pe.shared_team();
    let here = (0..neighbours.n_pes()).any(|i| neighbours.world_pe(i) == right(pe));
    assert_eq!(place.is_null(), !here);
    if here {
        // SAFETY: the place of the third element on the neighbour, which nobody writes to now.
        let seen = unsafe { place.read() };
        assert_eq!(seen, right(pe) as u32);
    }
    pe.barrier().unwrap();
    pe.free(object).unwrap();
}

/// A plain store through a pointer ends a wait too, though nobody is told of it.
#[allow(unsafe_code)]
fn stores_through_pointers(pe: &Pe) {
    let flag = pe.alloc_zeroed::<u64>(1).unwrap();
    for round in 1..=20 {
        if pe.my_pe() == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            for other in 1..pe.n_pes() {
                let place = pe.ptr(&flag, other);
                if place.is_null() {
                    pe.p(&flag, round, other);
                    continue;
                }
                // SAFETY: a live word of the other PE, which reads it atomically; so the store is atomic.
                let there = unsafe { AtomicU64::from_ptr(place) };
                there.store(round, Ordering::Release);
            }
        } else {
            pe.wait_until(&flag, Cmp::Ge, round).unwrap();
        }
    }
    pe.free(flag).unwrap();
}

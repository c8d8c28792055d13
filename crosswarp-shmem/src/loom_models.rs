//! Models of the wait, the signal and the barrier, run under `loom` over all interleavings:
//! `RUSTFLAGS="--cfg loom" cargo test -p crosswarp-shmem --lib --release loom`.
//!
//! Sleepers go straight to sleep (spinning and yielding only add looks), time does not pass, so a
//! lost wake-up shows as a deadlock.

use crate::parker::{Parker, Watched};
use crate::rendezvous::{Arrival, Tag, rendezvous};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use std::convert::Infallible;
use std::time::Duration;

/// Waits as `Waiter::sleep_until` does, without the looks at lives and clocks.
fn sleep_until(parker: &Parker, watched: Watched, mut ready: impl FnMut() -> bool) {
    while !ready() {
        parker.sleep(watched, true, Duration::MAX, &mut ready);
    }
}

#[test]
fn loom_wait_is_always_woken() {
    loom::model(|| {
        let shared = Arc::new((Parker::new(), AtomicU64::new(0)));
        let writer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                // `p`: a relaxed store, then the look for sleepers.
                shared.1.store(1, Ordering::Relaxed);
                shared.0.notify_store(64, 72, true);
            })
        };
        sleep_until(&shared.0, Watched::Word(64), || {
            shared.1.load(Ordering::Acquire) == 1
        });
        writer.join().unwrap();
    });
}

/// Two threads of one PE sleep on different words: neither hides the other's watch.
#[test]
fn loom_two_sleepers_are_both_woken() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Arc::new((Parker::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let other = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                sleep_until(&shared.0, Watched::Word(8), || {
                    shared.2.load(Ordering::Acquire) == 1
                });
            })
        };
        let writer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                shared.1.store(1, Ordering::Relaxed);
                shared.0.notify_store(0, 8, true);
                shared.2.store(1, Ordering::Relaxed);
                shared.0.notify_store(8, 16, true);
            })
        };
        sleep_until(&shared.0, Watched::Word(0), || {
            shared.1.load(Ordering::Acquire) == 1
        });
        other.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn loom_signal_is_not_seen_before_its_data() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        // Parker, data, signal of the receiving PE.
        let pe = Arc::new((Parker::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let pe = Arc::clone(&pe);
                loom::thread::spawn(move || {
                    pe.1.fetch_add(21, Ordering::Relaxed);
                    pe.2.fetch_add(1, Ordering::AcqRel);
                    pe.0.notify_store(64, 72, true);
                })
            })
            .collect();
        sleep_until(&pe.0, Watched::Word(64), || {
            pe.2.load(Ordering::Acquire) == 2
        });
        assert_eq!(pe.1.load(Ordering::Relaxed), 42);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

/// One PE of a world of `n`: meets the others `tags.len()` times, with something to see each time.
fn meet(world: &(Vec<Arrival>, Vec<AtomicU64>), me: usize, tags: &[u64]) -> Vec<Option<usize>> {
    let (lines, values) = world;
    let n = lines.len();
    let mut differing = Vec::new();
    for (round, &tag) in tags.iter().enumerate() {
        values[me].store(round as u64 + 1, Ordering::Relaxed);
        let tag = Tag { tag, detail: 0 };
        let met = rendezvous(
            |pe| &lines[pe],
            n,
            me,
            true,
            tag,
            |pe, epoch| -> Result<(), Infallible> {
                sleep_until(&lines[me].parker, Watched::Arrivals, || {
                    lines[pe].arrived() >= epoch
                });
                Ok(())
            },
        );
        let Ok(met) = met;
        differing.push(met.map(|(pe, _)| pe));
        for value in values {
            let value = value.load(Ordering::Relaxed);
            // What was written before the meeting is seen; the other may already be one further.
            assert!(value == round as u64 + 1 || value == round as u64 + 2);
        }
    }
    differing
}

fn world(n: usize) -> Arc<(Vec<Arrival>, Vec<AtomicU64>)> {
    Arc::new((
        (0..n).map(|_| Arrival::new()).collect(),
        (0..n).map(|_| AtomicU64::new(0)).collect(),
    ))
}

#[test]
fn loom_barrier_of_two_meets_and_is_always_woken() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = world(2);
        let other = {
            let world = Arc::clone(&world);
            loom::thread::spawn(move || meet(&world, 1, &[7, 9]))
        };
        // Different tags: the one of a PE that is a round ahead must not be taken for this round's.
        assert_eq!(meet(&world, 0, &[7, 9]), [None, None]);
        assert_eq!(other.join().unwrap(), [None, None]);
    });
}

#[test]
fn loom_barrier_of_three_meets_once() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let world = world(3);
        let others: Vec<_> = (1..3)
            .map(|me| {
                let world = Arc::clone(&world);
                loom::thread::spawn(move || meet(&world, me, &[7]))
            })
            .collect();
        assert_eq!(meet(&world, 0, &[7]), [None]);
        for other in others {
            assert_eq!(other.join().unwrap(), [None]);
        }
    });
}

#[test]
fn loom_a_mismatch_is_seen_by_both_sides_in_every_round() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = world(2);
        let other = {
            let world = Arc::clone(&world);
            loom::thread::spawn(move || meet(&world, 1, &[7, 9]))
        };
        assert_eq!(meet(&world, 0, &[8, 9]), [Some(1), None]);
        assert_eq!(other.join().unwrap(), [Some(0), None]);
    });
}

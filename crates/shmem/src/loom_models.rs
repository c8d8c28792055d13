//! Models of the wait, the signal, the lock, the turn and the rendezvous with its payloads, run under `loom` over all
//! interleavings: `RUSTFLAGS="--cfg loom" cargo test -p crosswarp-shmem --lib --release loom`.
//!
//! What an atomic guards is in a cell, in the code (payloads) and in the models (what is put, what a lock protects), so
//! that `loom` reports a data race where an ordering is missing, also if the values happen to be right.
//!
//! Sleepers go straight to sleep (spinning and yielding only add looks), time does not pass, so a
//! lost wake-up shows as a deadlock.
#![allow(unsafe_code)] // looks into cells, as loom checks

use crate::team::active_set::{handshake, has_called};
use crate::team::biased_lock::Turn;
use crate::team::rendezvous::{Tag, rendezvous};
use crate::verbs::raw::lock::{Field, LockWord, Queue, Step};
use crate::wait::parker::{Parker, Watched};
use crate::world::control::{INDEX_WORDS, Proposed, TeamControl};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use std::convert::Infallible;
use std::time::Duration;

/// A word that the model says is guarded; loom checks that it is.
struct Guarded(UnsafeCell<u64>);

// SAFETY: loom fails the model at the first access that is not ordered with all others.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    fn get(&self) -> u64 {
        // SAFETY: as for `Sync`.
        self.0.with(|word| unsafe { *word })
    }
    fn set(&self, value: u64) {
        // SAFETY: as for `Sync`.
        self.0.with_mut(|word| unsafe { *word = value });
    }
}

/// Waits as `Waiter::sleep_until` does, without the looks at membership and clocks.
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
        // Parker, data of each sender, signal of the receiving PE.
        let data = [Guarded::new(), Guarded::new()];
        let pe = Arc::new((Parker::new(), data, AtomicU64::new(0)));
        let senders: Vec<_> = (0..2)
            .map(|sender| {
                let pe = Arc::clone(&pe);
                loom::thread::spawn(move || {
                    pe.1[sender].set(21);
                    pe.2.fetch_add(1, Ordering::AcqRel);
                    pe.0.notify_store(64, 72, true);
                })
            })
            .collect();
        sleep_until(&pe.0, Watched::Word(64), || {
            pe.2.load(Ordering::Acquire) == 2
        });
        assert_eq!(pe.1[0].get() + pe.1[1].get(), 42);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

/// A lock whose home is PE 0.
struct ModelLock {
    words: Vec<LockWord>,
    parkers: Vec<Parker>,
    /// The PEs that several threads use.
    shared: Vec<usize>,
    /// What the lock protects.
    sum: Guarded,
}

impl ModelLock {
    /// For threads of the PEs `asking`.
    fn new(asking: impl Iterator<Item = usize> + Clone) -> Self {
        let threads = |pe: usize| asking.clone().filter(|&asks| asks == pe).count();
        Self {
            words: (0..3).map(|_| LockWord::new()).collect(),
            parkers: (0..3).map(|_| Parker::new()).collect(),
            shared: (0..3).filter(|&pe| threads(pe) > 1).collect(),
            sum: Guarded::new(),
        }
    }
}

/// A PE that asks, and whether its waits fail at once.
struct ModelQueue<'a>(&'a ModelLock, usize, bool);

impl Queue for ModelQueue<'_> {
    type Error = ();
    fn word(&self, pe: usize) -> Option<&LockWord> {
        Some(&self.0.words[pe])
    }
    fn step_elsewhere(&self, _: usize, _: Field, _: Step) -> u32 {
        unreachable!("all are on one host")
    }
    fn notify(&self, pe: usize) {
        // A thread that is alone at its PE has nobody there to wake. The fence of the attempt, a full one in a model,
        // would hide that the hand-over after it orders nothing.
        if pe != self.1 || self.0.shared.contains(&pe) {
            self.0.parkers[pe].notify_store(0, 8, true);
        }
    }
    fn wait(&self, ready: impl Fn() -> bool) -> Result<(), ()> {
        if self.2 {
            return if ready() { Ok(()) } else { Err(()) };
        }
        sleep_until(&self.0.parkers[self.1], Watched::Word(0), ready);
        Ok(())
    }
    fn home_and_me(&self) -> (usize, usize) {
        (0, self.1)
    }
}

/// What is done under the lock, and giving it up.
fn use_once(queue: &ModelQueue<'_>) -> u64 {
    let sum = &queue.0.sum;
    sum.set(sum.get() + 1);
    assert!(queue.release());
    1
}

/// The PEs of `hasty` take the lock once if they get it at once; then they ask again, until they get it if `again`.
/// PE `patient` takes it once. Whatever happens, nobody waits for ever and the lock ends up free.
fn model_lock_given_up(patient: usize, hasty: &'static [usize], again: bool, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let lock = Arc::new(ModelLock::new(hasty.iter().copied().chain([patient])));
        let threads: Vec<_> = hasty
            .iter()
            .map(|&pe| {
                let lock = Arc::clone(&lock);
                loom::thread::spawn(move || {
                    let queue = ModelQueue(&lock, pe, true);
                    if queue.acquire().is_ok() {
                        return use_once(&queue);
                    }
                    let queue = ModelQueue(&lock, pe, false);
                    if again {
                        queue.acquire().unwrap();
                        return use_once(&queue);
                    }
                    0
                })
            })
            .collect();
        let queue = ModelQueue(&lock, patient, false);
        queue.acquire().unwrap();
        let mut taken = use_once(&queue);
        for thread in threads {
            taken += thread.join().unwrap();
        }
        assert_eq!(lock.sum.get(), taken);
        for pe in 0..3 {
            let queue = ModelQueue(&lock, pe, false);
            assert!(queue.try_acquire(), "the lock is lost");
            use_once(&queue);
        }
    });
}

#[test]
fn loom_a_lock_passes_a_pe_that_gave_up() {
    model_lock_given_up(0, &[1], false, 4);
    model_lock_given_up(1, &[0], false, 4);
    model_lock_given_up(2, &[0, 1], false, 2);
}

#[test]
fn loom_a_pe_that_gave_up_gets_the_lock_when_it_asks_again() {
    model_lock_given_up(0, &[1], true, 4);
    model_lock_given_up(2, &[0, 1], true, 2);
    // Two threads of one PE.
    model_lock_given_up(1, &[1, 1], true, 2);
}

/// `asking[i]` is the PE of thread `i`, each of which takes the lock once; the last only tries.
fn model_lock(asking: &'static [usize], preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let lock = Arc::new(ModelLock::new(asking.iter().copied()));
        let ask = |lock: &ModelLock, pe: usize, only_try: bool| {
            let queue = ModelQueue(lock, pe, false);
            if only_try && !queue.try_acquire() {
                return 0;
            }
            if !only_try {
                queue.acquire().unwrap();
            }
            use_once(&queue)
        };
        let (&first, others) = asking.split_first().unwrap();
        let threads: Vec<_> = others
            .iter()
            .map(|&pe| {
                let lock = Arc::clone(&lock);
                loom::thread::spawn(move || ask(&lock, pe, false))
            })
            .collect();
        let mut taken = ask(&lock, first, true);
        for thread in threads {
            taken += thread.join().unwrap();
        }
        assert_eq!(lock.sum.get(), taken);
    });
}

#[test]
fn loom_lock_of_two_pes() {
    model_lock(&[0, 1], 4);
}

#[test]
fn loom_lock_of_two_threads_of_a_pe_and_another_pe() {
    model_lock(&[1, 1, 0], 2);
    model_lock(&[0, 1, 1], 2);
}

#[test]
fn loom_lock_of_three_pes() {
    model_lock(&[2, 0, 1], 2);
}

/// Two threads take turns in a team, of which neither, one or the other came before. At most one is in at a time,
/// and one that is alone gets in.
#[test]
fn loom_one_thread_at_a_time_has_the_turn() {
    for earlier in [&[][..], &[1], &[2], &[1, 2]] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let shared = Arc::new((Turn::default(), Mutex::new(()), Guarded::new()));
            let enter = |shared: &(Turn, Mutex<()>, Guarded), me: u64| {
                let Some(held) = shared.0.enter(me, true, &shared.1) else {
                    return false;
                };
                // Two at a time would lose one, or see each other.
                let seen = shared.2.get();
                shared.2.set(seen + 1);
                assert!(shared.0.enter(me, true, &shared.1).is_none(), "it has it");
                assert_eq!(shared.2.get(), seen + 1);
                drop(held);
                true
            };
            let mut entered = 0;
            for &thread in earlier {
                assert!(enter(&shared, thread));
                entered += 1;
            }
            let other = {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || {
                    u64::from(enter(&shared, 2)) + u64::from(enter(&shared, 2))
                })
            };
            entered += u64::from(enter(&shared, 1)) + u64::from(enter(&shared, 1));
            entered += other.join().unwrap();
            assert_eq!(shared.2.get(), entered);
            assert!(enter(&shared, 1) && enter(&shared, 2), "nobody has it");
        });
    }
}

/// What the PEs of a model share: what each shows to the team, and parkers.
struct World {
    controls: Vec<TeamControl>,
    parkers: Vec<Parker>,
}

/// One rendezvous of the first `n` PEs.
fn rendezvous_once(
    world: &World,
    n: usize,
    me: usize,
    tag: u64,
    payload: &[u64],
) -> Option<(usize, Tag)> {
    // SAFETY: each PE of a model is one thread, and the wait ends with the arrival.
    let met = unsafe {
        rendezvous(
            |pe| &world.controls[pe].arrivals,
            |pe| &world.parkers[pe],
            n,
            me,
            true,
            Tag { tag, detail: 0 },
            payload,
            |_| Ok(()),
            |pe, epoch| -> Result<(), Infallible> {
                sleep_until(&world.parkers[me], Watched::Arrivals, || {
                    world.controls[pe].arrivals.came_to(epoch)
                });
                // Already now what it wrote can be read. Here, because the fences further on are full ones in
                // a model and would hide that the look at the arrival orders nothing.
                let _ = world.controls[pe].arrivals.payload(epoch);
                let _ = world.controls[pe].slot(epoch);
                Ok(())
            },
        )
    };
    let Ok(met) = met;
    met
}

/// One PE of a world of `n`: `tags.len()` rendezvous, each with a payload in the line and one in the slot.
fn rendezvous_often(world: &World, me: usize, tags: &[u64]) -> Vec<Option<usize>> {
    let mut differing = Vec::new();
    for (epoch, &tag) in (1..).zip(tags) {
        let value = |pe: usize| 10 * epoch + pe as u64;
        let slot = world.controls[me].slot_to_write(epoch).cast::<u64>();
        // SAFETY: before my arrival.
        unsafe { slot.write(value(me)) };
        let met = rendezvous_once(world, world.controls.len(), me, tag, &[value(me)]);
        differing.push(met.map(|(pe, _)| pe));
        for (pe, control) in world.controls.iter().enumerate() {
            // SAFETY: after the arrival of all, before my next.
            let (words, slot) = unsafe {
                let slot = control.slot(epoch).cast::<u64>().read();
                (control.arrivals.payload_words(epoch), slot)
            };
            assert_eq!((words, slot), ([value(pe)], value(pe)));
        }
    }
    differing
}

fn world(n: usize) -> Arc<World> {
    Arc::new(World {
        controls: (0..n).map(|_| TeamControl::new()).collect(),
        parkers: (0..n).map(|_| Parker::new()).collect(),
    })
}

/// A team of three ends; two of its PEs go on as another team at the same index while the third may still
/// be in the last rendezvous of the old one.
#[test]
fn loom_an_index_is_used_again_while_a_peer_still_leaves() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(1);
    model.check(|| {
        let world = world(3);
        let pe = |world: &World, me: usize| {
            // `destroy`: tags are not compared.
            let _ = rendezvous_once(world, 3, me, 1, &[]);
            if me == 2 {
                return;
            }
            // Both have come to epoch 1 in teams now gone, so the new one begins there.
            let arrivals = &world.controls[me].arrivals;
            arrivals.begin(arrivals.epoch());
            assert_eq!(rendezvous_once(world, 2, me, 2, &[10 + me as u64]), None);
            // SAFETY: after the arrival, before my next.
            let theirs = unsafe { world.controls[1 - me].arrivals.payload_words(2) };
            assert_eq!(theirs, [11 - me as u64]);
        };
        let others: Vec<_> = (1..3)
            .map(|me| {
                let world = Arc::clone(&world);
                loom::thread::spawn(move || pe(&world, me))
            })
            .collect();
        pe(&world, 0);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn loom_barrier_of_two_meets_and_is_always_woken() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = world(2);
        let other = {
            let world = Arc::clone(&world);
            loom::thread::spawn(move || rendezvous_often(&world, 1, &[7, 9]))
        };
        // Different tags: the one of a PE that is a round ahead must not be taken for this round's.
        assert_eq!(rendezvous_often(&world, 0, &[7, 9]), [None, None]);
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
                loom::thread::spawn(move || rendezvous_often(&world, me, &[7]))
            })
            .collect();
        assert_eq!(rendezvous_often(&world, 0, &[7]), [None]);
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
            loom::thread::spawn(move || rendezvous_often(&world, 1, &[7, 9]))
        };
        assert_eq!(rendezvous_often(&world, 0, &[8, 9]), [Some(1), None]);
        assert_eq!(other.join().unwrap(), [Some(0), None]);
    });
}

/// Two PEs that choose an index for an active set, twice.
#[test]
fn loom_a_handshake_of_two_hands_over_both_proposals() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let proposals = [0, 1].map(|_| Proposed(UnsafeCell::new([0; 1 + INDEX_WORDS])));
        // At `[from]`: the calls to the other.
        let calls = [AtomicU64::new(0), AtomicU64::new(0)];
        let shared = Arc::new((proposals, calls, [Parker::new(), Parker::new()]));
        let pe = |shared: &([Proposed; 2], [AtomicU64; 2], [Parker; 2]), me: usize| {
            let (proposals, calls, parkers) = shared;
            for round in 1..3 {
                // SAFETY: each PE is one thread, and the wait ends with the call.
                let all = unsafe {
                    handshake(
                        &[0, 1],
                        me,
                        |pe| &proposals[pe],
                        |from, _| &calls[from],
                        |pe| parkers[pe].notify_arrival(true),
                        |pe, number| -> Result<(), Infallible> {
                            sleep_until(&parkers[me], Watched::Arrivals, || {
                                has_called(&calls[pe], number)
                            });
                            Ok(())
                        },
                        &[10 * round + me as u64; 1 + INDEX_WORDS],
                    )
                };
                let Ok(all) = all;
                assert_eq!([all[0][0], all[1][0]], [10 * round, 10 * round + 1]);
            }
        };
        let other = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || pe(&shared, 1))
        };
        pe(&shared, 0);
        other.join().unwrap();
    });
}

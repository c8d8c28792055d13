//! "No hang, no silence": every wait that can not succeed ends with an error that says why.

use crosswarp_shmem::{
    Cmp, CollectiveError, DeliveryError, Error, ThreadWorld, Wait, WaitError, WorldError,
};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn world(n: usize) -> ThreadWorld {
    ThreadWorld::new(n).heap_bytes(1 << 20)
}

/// Time limits that grow until they are long enough for all that comes before the wait, however slow
/// the machine.
fn limits() -> impl Iterator<Item = Duration> {
    (0..9).map(|i| Duration::from_millis(100 << i))
}

#[test]
fn a_wait_gives_up_after_the_configured_time() {
    for limit in limits() {
        let start = Instant::now();
        let ended = AtomicUsize::new(0);
        let errors = world(2)
            .wait_timeout(limit)
            .spmd(|pe| {
                let flag = pe.alloc_zeroed::<u32>(1).ok();
                let error = (pe.my_pe() == 0)
                    .then(|| Some(pe.wait_until(flag.as_ref()?, Cmp::Eq, 7).unwrap_err()));
                stay_until_all_have(&ended, 2);
                error.flatten()
            })
            .unwrap();
        let Some(error) = &errors[0] else { continue };
        assert!(start.elapsed() >= limit);
        let WaitError::TimedOut { me: 0, wait, .. } = error else {
            panic!("{errors:?}");
        };
        assert!(
            matches!(
                wait,
                Wait::Value {
                    cmp: Cmp::Eq,
                    expected: 7,
                    ..
                }
            ),
            "{wait:?}"
        );
        return;
    }
    panic!("the flag could not be allocated in time");
}

/// So that nobody leaves the world while another waits.
fn stay_until_all_have(ended: &AtomicUsize, n: usize) {
    ended.fetch_add(1, Ordering::Relaxed);
    while ended.load(Ordering::Relaxed) < n {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_barrier_names_the_pe_that_is_missing() {
    let mut waits = Vec::new();
    for limit in limits() {
        let ended = AtomicUsize::new(0);
        let errors = world(3)
            .wait_timeout(limit)
            .spmd(|pe| {
                let error = (pe.my_pe() != 1).then(|| pe.barrier().unwrap_err());
                stay_until_all_have(&ended, 3);
                error
            })
            .unwrap();
        let named = errors.into_iter().flatten().map(|error| match error {
            CollectiveError::Wait(WaitError::TimedOut { wait, .. }) => wait,
            error => panic!("{error}"),
        });
        waits = named.collect();
        if waits == [Wait::Collective { number: 1, pe: 1 }; 2] {
            return;
        }
        // One of the two that come was late.
    }
    panic!("{waits:?}");
}

#[test]
fn a_pe_that_has_left_is_not_waited_for() {
    let errors = world(3)
        .spmd(|pe| (pe.my_pe() != 2).then(|| pe.barrier().unwrap_err()))
        .unwrap();
    for (me, error) in errors.into_iter().enumerate().take(2) {
        let wait = Wait::Collective { number: 1, pe: 2 };
        let left = WaitError::PeerLeft { me, pe: 2, wait };
        assert_eq!(error, Some(CollectiveError::Wait(left)));
    }
}

#[test]
fn a_value_nobody_is_left_to_write_is_not_waited_for() {
    let errors = world(3)
        .spmd(|pe| {
            let flag = pe.alloc_zeroed::<u64>(1).ok()?;
            (pe.my_pe() == 0).then(|| pe.signal_wait_until(&flag, Cmp::Ne, 0).unwrap_err())
        })
        .unwrap();
    assert!(
        matches!(errors[0], Some(WaitError::PeerLeft { .. })),
        "{:?}",
        errors[0]
    );
}

#[test]
fn a_panic_ends_the_waits_of_the_others() {
    let ended = std::sync::Mutex::new(Vec::new());
    let error = world(4)
        .spmd(|pe| {
            if pe.my_pe() == 2 {
                std::thread::sleep(Duration::from_millis(20));
                panic!("lost my {}", "marbles");
            }
            ended.lock().unwrap().push(pe.barrier().unwrap_err());
        })
        .unwrap_err();
    assert!(
        matches!(&error, WorldError::Panicked { pe: 2, message } if message == "lost my marbles"),
        "{error}"
    );
    let ended = ended.into_inner().unwrap();
    assert_eq!(ended.len(), 3);
    for error in ended {
        assert!(
            matches!(
                error,
                CollectiveError::Wait(WaitError::PeerFailed { pe: 2, .. })
            ),
            "{error}"
        );
    }
}

/// PE 0 panics too, because of PE 2, and is the first to be looked at.
#[test]
fn the_panic_reported_is_the_one_that_came_first() {
    let error = world(4)
        .spmd(|pe| {
            assert!(pe.my_pe() != 2, "the cause");
            pe.barrier().unwrap();
        })
        .unwrap_err();
    assert!(
        matches!(&error, WorldError::Panicked { pe: 2, message } if message == "the cause"),
        "{error}"
    );
}

#[test]
fn worlds_without_pes_are_refused() {
    assert!(matches!(
        world(0).spmd(|_| ()),
        Err(WorldError::NoPes { n_pes: 0 })
    ));
    assert!(matches!(
        world(1 << 20).spmd(|_| ()),
        Err(WorldError::TooManyPes { .. })
    ));
}

#[test]
fn two_worlds_at_a_time_do_not_meet() {
    std::thread::scope(|scope| {
        for n in [2, 3] {
            scope.spawn(move || {
                let sums = world(n).spmd(|pe| {
                    let sum = pe.alloc_zeroed::<u64>(1)?;
                    for _ in 0..100 {
                        pe.atomic_inc(&sum, 0);
                        pe.barrier()?;
                    }
                    Ok::<_, Error>(pe.g(&sum, 0))
                });
                assert_eq!(sums.unwrap(), vec![Ok(100 * n as u64); n]);
            });
        }
    });
}

/// Who waited in vain for a lock is not in the way of the others, and has lost nothing itself.
#[test]
fn a_lock_is_not_lost_when_a_wait_for_it_times_out() {
    // Threads, so that they can take steps without a wait of the world's.
    let step = Barrier::new(3);
    let ended = world(3).wait_timeout(Duration::from_secs(2)).spmd(|pe| {
        step.wait();
        let lock = pe.alloc_lock().unwrap();
        let held = (pe.my_pe() == 0).then(|| pe.lock(&lock).unwrap());
        step.wait();
        if pe.my_pe() == 1 {
            let error = pe.lock(&lock).unwrap_err();
            assert!(
                matches!(error, WaitError::TimedOut { me: 1, .. }),
                "{error}"
            );
            assert!(pe.try_lock(&lock).is_none(), "PE 0 has it");
        }
        step.wait();
        drop(held);
        step.wait();
        for turn in [2, 1, 0] {
            if pe.my_pe() == turn {
                drop(pe.lock(&lock).unwrap());
                drop(pe.try_lock(&lock).expect("nobody has it"));
            }
            step.wait();
        }
    });
    ended.unwrap();
}

/// Asking in vain gives nothing up that another thread of the PE holds.
#[test]
fn a_lock_that_is_refused_stays_held() {
    let ended = world(1).spmd(|pe| {
        let lock = pe.alloc_lock().unwrap();
        let held = pe.lock(&lock).unwrap();
        for _ in 0..3 {
            assert!(pe.try_lock(&lock).is_none());
        }
        drop(held);
        drop(pe.try_lock(&lock).unwrap());
    });
    ended.unwrap();
}

/// A PE that only puts learns that nobody is there any more.
#[test]
fn quiet_fence_and_scopes_tell_of_a_pe_that_failed() {
    let seen = std::sync::Mutex::new(Vec::new());
    let ended = world(2).spmd(|pe| {
        let word = pe.alloc_zeroed::<u32>(1).unwrap();
        if pe.my_pe() == 1 {
            panic!("on purpose");
        }
        while pe.quiet().is_ok() {
            pe.p(&word, 1, 1);
            std::thread::sleep(Duration::from_millis(1));
        }
        let scope = pe.scope(|ops| {
            ops.put(&word, &[2], 1);
            Ok::<_, DeliveryError>(())
        });
        *seen.lock().unwrap() = vec![pe.quiet(), pe.fence(), scope];
    });
    let Err(WorldError::Panicked { pe: 1, .. }) = ended else {
        panic!("{ended:?}");
    };
    let error = || Err(DeliveryError::PeerFailed { me: 0, pe: 1 });
    assert_eq!(*seen.lock().unwrap(), [error(), error(), error()]);
}

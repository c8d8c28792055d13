//! Two threads of one PE in collectives of one team at once: an error for the one that comes second, whatever
//! the collective, and never anything worse. All of it in safe code.
#![forbid(unsafe_code)]

use crosswarp_shmem::op::Sum;
use crosswarp_shmem::{AllocError, CollectiveError, CollectiveKind, Pe, TeamError, ThreadWorld};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

fn world(n: usize) -> ThreadWorld {
    let limit = Duration::from_secs(60);
    ThreadWorld::new(n).heap_bytes(8 << 20).wait_timeout(limit)
}

/// Two threads of PE 0 call `sync`, for which PE 1 comes only once one of them has been turned away. The other
/// one then has met it. Before, neither, one of the two or another thread has been in a collective.
#[test]
fn the_second_thread_is_busy() {
    for before in 0..3 {
        let (busy, turned_away) = mpsc::channel();
        let turned_away = Mutex::new(turned_away);
        let results = world(2).spmd(|pe| {
            match before {
                0 => {}
                1 => pe.sync().unwrap(),
                _ => {
                    pe.sync().unwrap();
                    std::thread::scope(|scope| scope.spawn(|| pe.sync()).join())
                        .unwrap()
                        .unwrap();
                }
            }
            if pe.my_pe() == 1 {
                let turned_away = turned_away.lock().unwrap();
                let error = turned_away.recv_timeout(Duration::from_secs(60)).unwrap();
                let (me, kind) = (0, CollectiveKind::Sync);
                assert_eq!(error, CollectiveError::Busy { me, kind });
                return vec![pe.sync()];
            }
            let call = || {
                let result = pe.sync();
                if let Err(error) = &result {
                    busy.send(error.clone()).unwrap();
                }
                result
            };
            std::thread::scope(|scope| {
                let other = scope.spawn(call);
                vec![call(), other.join().unwrap()]
            })
        });
        let results = results.unwrap().concat();
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    }
}

/// Threads that take turns by themselves are never turned away.
#[test]
fn threads_one_after_the_other_are_not_busy() {
    let ok = world(3).spmd(|pe| {
        for _ in 0..50 {
            pe.barrier().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| pe.barrier().unwrap()).join().unwrap();
                scope.spawn(|| pe.barrier().unwrap()).join().unwrap();
            });
        }
        // Teams of their own do not get in each other's way.
        let (row, column) = pe.world().split_2d(2).unwrap();
        std::thread::scope(|scope| {
            for team in [&row, &column] {
                scope.spawn(|| (0..200).for_each(|_| team.sync().unwrap()));
            }
        });
    });
    ok.unwrap();
}

/// One call of any collective. What it returns does not matter here, only that it returns.
fn anything(pe: &Pe, choice: usize) -> Result<(), String> {
    let world = pe.world();
    let text = |error: CollectiveError| error.to_string();
    match choice % 10 {
        0 => pe.barrier().map_err(text),
        1 | 2 => {
            let source = pe.alloc::<u64>(1 + 900 * (choice % 2));
            let dest = pe.alloc::<u64>(8000);
            let (source, dest) = match (source, dest) {
                (Ok(source), Ok(dest)) => (source, dest),
                (Err(error), _) | (_, Err(error)) => return Err(error.to_string()),
            };
            let collected = world.collect(&dest, &source).map(drop).map_err(text);
            let freed = pe.free(source).and(pe.free(dest));
            collected.and(freed.map_err(|error| error.to_string()))
        }
        3 => {
            let numbers = pe.alloc_zeroed::<f64>(1000).map_err(|e| e.to_string())?;
            world.reduce(&numbers, &numbers, Sum).map_err(text)?;
            pe.free(numbers).map_err(|e: AllocError| e.to_string())
        }
        4 => pe.sync().map_err(text),
        5 => {
            let text = |error: TeamError| error.to_string();
            match world.split_strided(0, 1, pe.n_pes()).map_err(text)? {
                Some(team) => {
                    let _ = team.sync();
                    team.destroy().map_err(text)
                }
                None => Ok(()),
            }
        }
        6 => {
            let all = pe
                .alloc::<u32>(40 * pe.n_pes())
                .map_err(|e| e.to_string())?;
            world.fcollect(&all, all.range(..40)).map_err(text)?;
            pe.free(all).map_err(|e| e.to_string())
        }
        7 => {
            use std::os::fd::AsFd;
            let shared = pe.share_fd(std::io::stderr().as_fd());
            shared.map(drop).map_err(|error| error.to_string())
        }
        8 => {
            let words = pe.alloc_zeroed::<u16>(60).map_err(|e| e.to_string())?;
            world.broadcast(&words, &words, 0).map_err(text)?;
            world.inscan(&words, &words, Sum).map_err(text)?;
            pe.free(words).map_err(|e| e.to_string())
        }
        _ => {
            let words = pe
                .alloc::<u8>(3000 * pe.n_pes())
                .map_err(|e| e.to_string())?;
            world.alltoall(&words, &words).map_err(text)?;
            pe.free(words).map_err(|e| e.to_string())
        }
    }
}

/// Whatever they call, and however their calls pair up with those of other PEs, threads get results or errors.
#[test]
fn whatever_two_threads_call_they_get_an_answer() {
    for seed in 0..6 {
        let ended = world(2 + seed % 2).spmd(|pe| {
            std::thread::scope(|scope| {
                for thread in 0..2 {
                    scope.spawn(move || {
                        let mut choice = 7 * seed + 3 * thread + 1;
                        for _ in 0..300 {
                            choice = choice.wrapping_mul(6_364_136_223_846_793_005) + 1;
                            // A PE that has left, or a wait that is over, is seen by all.
                            let _ = anything(pe, choice >> 33);
                        }
                    });
                }
            });
        });
        ended.unwrap();
    }
}

/// Lengths that one thread shows must not be taken for another's: what one shows in its line is a length and a
/// place to the one and plain data, all ones, to the other.
#[test]
fn data_is_not_taken_for_lengths() {
    let ended = world(2).spmd(|pe| {
        let (short, long) = (pe.alloc::<u8>(8).unwrap(), pe.alloc::<u8>(9000).unwrap());
        let (ones, sums) = (
            pe.alloc::<u64>(5).unwrap(),
            pe.alloc::<u64>(5 * pe.n_pes()).unwrap(),
        );
        pe.write(&ones, &[u64::MAX; 5]);
        let room = pe.alloc::<u8>(20_000).unwrap();
        pe.barrier().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (short, long, ones, sums, room) = (&short, &long, &ones, &sums, &room);
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let result = match (thread, round % 2) {
                            (0, 0) => pe.world().collect(room, short).map(drop),
                            (0, _) => pe.world().collect(room, long).map(drop),
                            (_, 0) => pe.world().fcollect(sums, ones),
                            _ => pe.world().collect(room, short).map(drop),
                        };
                        // Whatever else comes of it.
                        if matches!(result, Err(CollectiveError::Wait(_))) {
                            return;
                        }
                    }
                });
            }
        });
    });
    ended.unwrap();
}

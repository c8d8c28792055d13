//! How device worlds end, and what ends with them: waits for PEs that are gone, collectives that do not agree, worlds
//! dropped under kernels that wait, objects of other worlds, teams. Without a GPU each test says so by name and does
//! nothing.

#![allow(unsafe_code)] // launches kernels

#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::time::Duration;

use crosswarp_cuda::{
    Arch, Device, DeviceTeam, DeviceWorld, DeviceWorldError, HeapError, Launch, Module, Options,
    PinnedBuffer, Source, Stream, SyncError,
};
use crosswarp_shmem::{Cmp, Pe, SignalOp, op};
use support::{LIMIT, as_process, as_processes, compiles, on_all_gpus, on_one_gpu};

/// Longer than a PE has to be gone before waits for it end.
const LONG: Duration = Duration::from_millis(1500);

const KERNELS: Source<'static> = Source::new(
    "endings.cu",
    r#"
    #include "pe.cuh"
    // Waits for the host in a way that nobody but the host can end, then uses the heap.
    extern "C" __global__ void stubborn(const volatile cw::u32* go, cw::u32* word) {
        while (*go == 0) {}
        *word = 7;
    }
    // As if the team had had so many rendezvous.
    extern "C" __global__ void advance(cw::team t, cw::u64 rendezvous) {
        cw::detail::scratch_of(t)->generation = rendezvous;
    }"#,
);

fn world<'w>(pe: &'w Pe, device: Device, limit: Option<Duration>) -> DeviceWorld<'w> {
    DeviceWorld::new(pe, device, Some(256 << 20), limit).unwrap()
}

#[test]
fn sources_compile() {
    let archs = [Arch::new(8, 0), Arch::new(9, 0)];
    compiles("sources_compile", &[KERNELS], &archs, &Options::new());
}

/// PE 2 leaves; what PEs 0 and 1 wait for from each other still comes, long after.
fn healthy_waits_go_on(pe: &Pe, device: Device) {
    let me = pe.my_pe();
    let stream = Stream::new(&device).unwrap();
    let world = world(pe, device, None);
    let signal = world.heap().alloc_zeroed::<u64>(1).unwrap();
    let team = world.team(0, 1, 2).unwrap();
    let Some(team) = team else {
        return;
    };
    if me == 0 {
        world
            .signal_wait_on_stream(&stream, &signal, Cmp::Eq, 5)
            .unwrap();
        world.barrier_on_stream(&stream, &team).unwrap();
    } else {
        std::thread::sleep(LONG);
        world
            .signal_on_stream(&stream, &signal, 5, SignalOp::Set, 0)
            .unwrap();
        std::thread::sleep(LONG);
        world.barrier_on_stream(&stream, &team).unwrap();
    }
    world.synchronize(&stream).unwrap();
}

#[test]
fn waits_for_others_than_the_one_that_left_go_on() {
    on_one_gpu("healthy_waits_go_on", 3, healthy_waits_go_on);
    on_all_gpus("healthy_waits_go_on", |pe, device| {
        if pe.n_pes() > 2 {
            healthy_waits_go_on(pe, device);
        }
    });
}

/// The last PE leaves; the others meet all, without a limit. Nobody but the watcher looks at who is there.
fn hopeless_waits_end(pe: &Pe, device: Device) {
    let last = pe.n_pes() - 1;
    let stream = Stream::new(&device).unwrap();
    let world = world(pe, device, None);
    if pe.my_pe() == last {
        return;
    }
    for _ in 0..2 {
        world.barrier_on_stream(&stream, world.everyone()).unwrap();
        // Knows nothing of worlds, and ends.
        stream.synchronize().unwrap();
        match world.synchronize(&stream).unwrap_err() {
            SyncError::Left(left) => assert_eq!((left.pe, left.gone), (pe.my_pe(), last)),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn waits_for_a_pe_that_left_end_without_anyone_looking() {
    on_one_gpu("hopeless_waits_end", 2, hopeless_waits_end);
    on_one_gpu("hopeless_waits_end", 3, hopeless_waits_end);
    on_all_gpus("hopeless_waits_end", hopeless_waits_end);
}

/// PE 0 drops its world under a barrier to which PE 1 never comes, while PE 1 stays.
#[test]
fn a_world_can_be_dropped_under_a_wait() {
    let met = Barrier::new(2);
    on_one_gpu("a_world_can_be_dropped_under_a_wait", 2, |pe, device| {
        let stream = Stream::new(&device).unwrap();
        let world = world(pe, device, None);
        if pe.my_pe() == 0 {
            world.barrier_on_stream(&stream, world.everyone()).unwrap();
            drop(world);
            stream.synchronize().unwrap();
        }
        met.wait();
    });
}

/// A kernel that nothing ends: the drop gives up, and what the kernel uses stays where it is.
#[test]
fn a_world_can_be_dropped_under_a_kernel_that_does_not_end() {
    on_one_gpu("dropped_under_a_stubborn_kernel", 1, |pe, device| {
        let stream = Stream::new(&device).unwrap();
        let world = world(pe, device, Some(Duration::from_millis(100)));
        let module = world.load(&KERNELS).unwrap();
        let stubborn = module.function("stubborn").unwrap();
        let go = PinnedBuffer::<u32>::zeroed(&device, 1).unwrap();
        let word = world.heap().alloc_zeroed::<u32>(1).unwrap();
        let at = world.heap().address_of(&word, 0);
        let launch = Launch::new(&stubborn);
        launch.load().unwrap();
        // SAFETY: the parameters are (const volatile u32*, u32*).
        unsafe { launch.launch(&stream, (go.address(), at)) }.unwrap();
        drop(world);
        assert!(!stream.is_done().unwrap());
        // SAFETY: one word, which the kernel only reads.
        unsafe { (go.address() as *mut u32).write_volatile(1) };
        // An address that was unmapped would be an error here.
        stream.synchronize().unwrap();
    });
}

/// What a PE may call; PE 0 calls the first, the others the second.
type Call<'a> = (&'static str, &'a dyn Fn(&DeviceTeam));

fn mismatches(pe: &Pe, device: Device) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let world = world(pe, device, Some(LIMIT));
    let stream = &Stream::new(&device).unwrap();
    let heap = world.heap();
    // More than two PEs pull shares of broadcasts of `longer` elements.
    let (len, longer) = (80_000, 300_000);
    let (a, b) = (
        heap.alloc_zeroed::<u32>(longer).unwrap(),
        heap.alloc_zeroed::<u32>(longer.max(len * n)).unwrap(),
    );
    let (x, y) = (
        heap.alloc_zeroed::<f32>(len).unwrap(),
        heap.alloc_zeroed::<f32>(len).unwrap(),
    );
    let world = &world;
    let broadcast = |team: &DeviceTeam, len, root| {
        let (to, from) = (b.range(..len), a.range(..len));
        world
            .broadcast_on_stream(stream, team, to, from, root)
            .unwrap();
    };
    let fcollect = |team: &DeviceTeam, len| {
        let (to, from) = (b.range(..len * n), a.range(..len));
        world.fcollect_on_stream(stream, team, to, from).unwrap();
    };
    let alltoall = |team: &DeviceTeam, len| {
        let (to, from) = (b.range(..len * n), b.range(..len * n));
        world.alltoall_on_stream(stream, team, to, from).unwrap();
    };
    let sum = |team: &DeviceTeam, len| {
        let (to, from) = (b.range(..len), a.range(..len));
        world.sum_on_stream(stream, team, to, from).unwrap();
    };
    let cases: [[Call<'_>; 2]; 20] = [
        [
            ("small root 0", &|t| broadcast(t, 4, 0)),
            ("small root 1", &|t| broadcast(t, 4, 1)),
        ],
        [
            ("large root 0", &|t| broadcast(t, len, 0)),
            ("large root 1", &|t| broadcast(t, len, 1)),
        ],
        [
            ("larger root 0", &|t| broadcast(t, longer, 0)),
            ("larger root 1", &|t| broadcast(t, longer, 1)),
        ],
        [
            ("larger", &|t| broadcast(t, longer, 0)),
            ("large", &|t| broadcast(t, len, 0)),
        ],
        [
            ("large broadcast", &|t| broadcast(t, longer, 0)),
            ("large sum", &|t| sum(t, longer)),
        ],
        [
            ("large sum", &|t| sum(t, len)),
            ("large fcollect", &|t| fcollect(t, len)),
        ],
        [
            ("fcollect of 2", &|t| fcollect(t, 2)),
            ("fcollect of 3", &|t| fcollect(t, 3)),
        ],
        [
            ("fcollect of 300", &|t| fcollect(t, 300)),
            ("fcollect of 2", &|t| fcollect(t, 2)),
        ],
        [
            ("fcollect of many", &|t| fcollect(t, 70_000)),
            ("one less", &|t| fcollect(t, 69_999)),
        ],
        [
            ("fcollect of many", &|t| fcollect(t, 70_000)),
            ("of few", &|t| fcollect(t, 2)),
        ],
        [
            ("nothing", &|t| fcollect(t, 0)),
            ("something", &|t| fcollect(t, 2)),
        ],
        [
            ("alltoall", &|t| alltoall(t, 2)),
            ("fcollect", &|t| fcollect(t, 2)),
        ],
        [
            ("sum", &|t| sum(t, 4)),
            ("max", &|t| {
                let (to, from) = (b.range(..4), a.range(..4));
                world
                    .reduce_on_stream(stream, t, to, from, op::Max)
                    .unwrap();
            }),
        ],
        [
            ("sum of u32", &|t| sum(t, 4)),
            ("sum of f32", &|t| {
                let (to, from) = (y.range(..4), x.range(..4));
                world.sum_on_stream(stream, t, to, from).unwrap();
            }),
        ],
        [
            ("sum", &|t| sum(t, 4)),
            ("barrier", &|t| world.barrier_on_stream(stream, t).unwrap()),
        ],
        // Several blocks in units.
        [
            ("sum of kilobytes", &|t| sum(t, 4000)),
            ("of more", &|t| sum(t, 8000)),
        ],
        [
            ("sum of few", &|t| sum(t, 4)),
            ("of kilobytes", &|t| sum(t, 8000)),
        ],
        [
            ("sum of kilobytes", &|t| sum(t, 4000)),
            ("of many", &|t| sum(t, len)),
        ],
        [
            ("sum of kilobytes", &|t| sum(t, 4000)),
            ("fcollect of many", &|t| fcollect(t, 70_000)),
        ],
        [
            ("sum of kilobytes", &|t| sum(t, 4000)),
            ("sync", &|t| world.sync_on_stream(stream, t).unwrap()),
        ],
    ];
    for [first, second] in cases {
        let what = format!("{} and {} on PE {me} of {n}", first.0, second.0);
        // A team of its own, for it is out of step afterwards.
        let team = world.team(0, 1, n).unwrap().unwrap();
        let (_, call) = if me == 0 { first } else { second };
        call(&team);
        match world.synchronize(stream).unwrap_err() {
            SyncError::Mismatch(found) => {
                assert_eq!(found.pe, me, "{what}");
                // Among more than two, those that agree see the one that does not.
                assert!(
                    if me == 0 {
                        found.peer != 0
                    } else {
                        found.peer == 0
                    },
                    "{what}: {found}"
                );
            }
            other => panic!("{what}: {other}"),
        }
        pe.barrier().unwrap();
        world.destroy_team(Some(team)).unwrap();
    }
    // The world goes on.
    fcollect(world.everyone(), 2);
    sum(world.everyone(), 0);
    world.synchronize(stream).unwrap();
    pe.barrier().unwrap();
}

#[test]
fn different_collectives_are_an_error_on_every_pe() {
    on_one_gpu("mismatches", 2, mismatches);
    on_one_gpu("mismatches", 3, mismatches);
    on_all_gpus("mismatches", mismatches);
}

/// An object of a larger world, whose elements would lie in the next PE's heap.
#[test]
fn objects_of_other_worlds_are_refused() {
    on_one_gpu("objects_of_other_worlds_are_refused", 2, |pe, device| {
        let stream = Stream::new(&device).unwrap();
        let small = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
        let large = world(pe, device, Some(LIMIT));
        let far = large.heap().alloc_zeroed::<u32>(20 << 20).unwrap();
        let near = small.heap().alloc_zeroed::<u32>(4).unwrap();
        let (end, some) = (far.range((20 << 20) - 4..), near.range(..));
        let refused = |what: &str, call: &dyn Fn()| {
            let outcome = catch_unwind(AssertUnwindSafe(call));
            assert!(outcome.is_err(), "{what} was not refused");
        };
        refused("put", &|| {
            let _ = small.put(&stream, far.range(..1), &[1], 0);
        });
        refused("get", &|| {
            let _ = small.get(&stream, &mut [0], far.range(..1), 0);
        });
        refused("put_on_stream", &|| {
            let _ = small.put_on_stream(&stream, end, some, 0);
        });
        refused("get_on_stream from", &|| {
            let _ = small.get_on_stream(&stream, some, end, 0);
        });
        refused("get_on_stream to", &|| {
            let _ = small.get_on_stream(&stream, end, some, 0);
        });
        refused("iput", &|| {
            let _ = small.iput(&stream, end, 1, &[1; 4], 1, 4, 0);
        });
        refused("iget_on_stream", &|| {
            let _ = small.iget_on_stream(&stream, some, 1, end, 1, end.len(), 0);
        });
        refused("sum_on_stream", &|| {
            let _ = small.sum_on_stream(&stream, small.everyone(), some, end);
        });
        refused("broadcast_on_stream", &|| {
            let _ = small.broadcast_on_stream(&stream, small.everyone(), end, some, 0);
        });
        refused("address_of", &|| {
            small.heap().address_of(&far, 0);
        });
        pe.barrier().unwrap();
        // One PE's mistake is an error on both.
        let other = small.heap().alloc_zeroed::<u32>(4).unwrap();
        let outcome = small.heap().free(if pe.my_pe() == 0 { far } else { other });
        match outcome.unwrap_err() {
            HeapError::OtherHeap => assert_eq!(pe.my_pe(), 0),
            HeapError::Collective(_) => assert_eq!(pe.my_pe(), 1),
            error => panic!("{error}"),
        }
        pe.barrier().unwrap();
    });
}

/// Many more teams than the heap has room for, one after the other; a new one works on the memory of old ones.
#[test]
fn teams_are_destroyed() {
    on_one_gpu("teams_are_destroyed", 2, |pe, device| {
        let stream = Stream::new(&device).unwrap();
        let world = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
        let ones = world.heap().alloc_zeroed::<u32>(1).unwrap();
        for round in 0..3000 {
            let both = world.team(0, 1, 2).unwrap();
            let second = world.team(1, 1, 1).unwrap();
            if round % 500 == 0 {
                world.put(&stream, &ones, &[1], pe.my_pe()).unwrap();
                let team = both.as_ref().unwrap();
                world.sum_on_stream(&stream, team, &ones, &ones).unwrap();
                world.synchronize(&stream).unwrap();
                let mut sum = [0];
                world.get(&stream, &mut sum, &ones, pe.my_pe()).unwrap();
                assert_eq!(sum, [2]);
            }
            world.destroy_team(both).unwrap();
            world.destroy_team(second).unwrap();
        }
        // Not one team, and not the whole team.
        let (first, second) = (world.team(0, 1, 2).unwrap(), world.team(0, 1, 2).unwrap());
        let brought = if pe.my_pe() == 0 { first } else { second };
        let outcome = world.destroy_team(brought);
        assert!(matches!(outcome, Err(DeviceWorldError::TeamMismatch)));
        let third = world.team(0, 1, 2).unwrap();
        let outcome = world.destroy_team(third.filter(|_| pe.my_pe() == 0));
        assert!(matches!(outcome, Err(DeviceWorldError::TeamMismatch)));
        pe.barrier().unwrap();
    });
}

/// Sums large and small when a team has met more than 2^32 times.
#[test]
fn teams_meet_often() {
    on_one_gpu("teams_meet_often", 2, |pe, device| {
        let stream = Stream::new(&device).unwrap();
        let world = world(pe, device, Some(LIMIT));
        let module: Module = world.load(&KERNELS).unwrap();
        let advance = module.function("advance").unwrap();
        let launch = Launch::new(&advance);
        launch.load().unwrap();
        let len = (16 << 20) / 4 + 5;
        let (a, b) = (
            world.heap().alloc_zeroed::<u32>(len).unwrap(),
            world.heap().alloc_zeroed::<u32>(len).unwrap(),
        );
        for rendezvous in [
            (1u64 << 32) - 9,
            (1 << 32) + 3,
            (1 << 40) - 7,
            (1 << 40) + 2,
        ] {
            let mine: Vec<u32> = (0..len as u32).map(|i| i ^ pe.my_pe() as u32).collect();
            world
                .put(&stream, a.range(..len), &mine, pe.my_pe())
                .unwrap();
            pe.barrier().unwrap();
            // SAFETY: the parameters are (team, u64); nobody meets meanwhile.
            unsafe { launch.launch(&stream, (world.everyone(), rendezvous)) }.unwrap();
            stream.synchronize().unwrap();
            pe.barrier().unwrap();
            for n in [len, 3] {
                let (to, from) = (b.range(..n), a.range(..n));
                world
                    .sum_on_stream(&stream, world.everyone(), to, from)
                    .unwrap();
                world.synchronize(&stream).unwrap();
                let mut seen = vec![0; n];
                world
                    .get(&stream, &mut seen, b.range(..n), pe.my_pe())
                    .unwrap();
                // i + (i ^ 1)
                let right = |(i, &sum): (usize, &u32)| sum == 2 * (i as u32 & !1) + 1;
                let wrong = seen.iter().enumerate().position(|at| !right(at));
                assert_eq!(wrong, None, "after {rendezvous} rendezvous, {n} elements");
                pe.barrier().unwrap();
            }
        }
    });
}

#[test]
fn gpus_as_processes() {
    as_processes("gpus_as_processes", "pe_of_a_process_world", 2);
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn pe_of_a_process_world() {
    as_process(|pe, device| {
        mismatches(pe, device);
        hopeless_waits_end(pe, device);
    });
}

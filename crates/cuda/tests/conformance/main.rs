//! The device verbs inside kernels, on every kind of device world this machine can make: several PEs on
//! one GPU, several GPUs as threads, several GPUs as processes. Without a GPU each test says so by name
//! and does nothing.

#![allow(unsafe_code)] // launches kernels

#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use crosswarp_cuda::{
    Arch, Buffer, Device, DeviceWorld, Launch, Module, Options, Source, Stream, SyncError,
};
use crosswarp_shmem::Pe;
use support::{LIMIT, as_process, as_processes, compiles, on_all_gpus, on_one_gpu};

const CONFORMANCE: Source<'static> = Source::new(
    "conformance.cu",
    include_str!("../../kernels/conformance.cu"),
);

/// Room of each of the two symmetric arrays: the longest payload for eight PEs, in the widest type.
const BYTES: usize = 8 * 3008 * 8;

const SCOPES: [(&str, u32); 3] = [("thread", 1), ("warp", 32), ("block", 128)];

/// One PE's part of the whole suite.
fn suite(pe: &Pe, device: Device) {
    let module = Module::compile(&device, &CONFORMANCE).unwrap();
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(256 << 20), Some(LIMIT)).unwrap();
    world.install(&module).unwrap();
    let heap = world.heap();
    let me = pe.my_pe();
    let (a, b) = (
        heap.alloc::<u8>(BYTES).unwrap(),
        heap.alloc::<u8>(BYTES).unwrap(),
    );
    let words = heap.alloc::<u64>(64).unwrap();
    let (a_at, b_at) = (heap.address_of(&a, me), heap.address_of(&b, me));
    let words_at = heap.address_of(&words, me);
    world.put(&stream, &words, 0, &[0; 64], me).unwrap();
    let errors = Buffer::<u32>::zeroed(&stream, 2).unwrap();
    let state = Buffer::<u8>::zeroed(&stream, 128 + 2 * 16 * 4096).unwrap();
    pe.barrier().unwrap();

    let done = |what: &str| {
        let waited = world.synchronize(&stream);
        let seen = errors.to_vec(&stream).unwrap();
        // Read everything before failing, so that all PEs fail alike.
        pe.barrier().unwrap();
        waited.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(
            seen[0], 0,
            "{what} on PE {me}: {} wrong, last at place {}",
            seen[0], seen[1]
        );
    };
    // memory_, collectives_ and extremes_SCOPE_TYPE, whichever there are.
    for (scope, threads) in SCOPES {
        let of_scope = |kernel: &&String| {
            let kind = kernel.split_once('_');
            kind.is_some_and(|(kind, rest)| {
                ["memory", "collectives", "extremes"].contains(&kind) && rest.starts_with(scope)
            })
        };
        let names: Vec<&String> = module.kernels().iter().filter(of_scope).collect();
        assert!(names.len() >= 6, "{names:?}");
        for name in names {
            let function = module.function(name).unwrap();
            let launch = Launch::new(&function).block(threads);
            let args = (a_at, b_at, BYTES as u64, &errors);
            // SAFETY: the parameters are (T*, T*, u64, u32*); the arrays have BYTES bytes each.
            unsafe { world.launch_together(launch, &stream, args) }.unwrap();
            done(name);
        }
    }
    for (scope, threads) in SCOPES {
        for verb in ["signals", "words"] {
            let name = format!("{verb}_{scope}");
            let function = module.function(&name).unwrap();
            let launch = Launch::new(&function).block(threads);
            let args = (a_at, b_at, BYTES as u64, words_at, &errors);
            // SAFETY: the parameters are (T*, T*, u64, u64*, u32*).
            unsafe { world.launch_together(launch, &stream, args) }.unwrap();
            done(&name);
        }
    }
    for name in ["atomics", "wait_sets"] {
        let function = module.function(name).unwrap();
        // SAFETY: the parameters are (u64*, u32*).
        unsafe { world.launch_together(Launch::new(&function), &stream, (words_at, &errors)) }
            .unwrap();
        done(name);
    }
    let function = module.function("collectives_grid").unwrap();
    for n in [100u64, 40_000] {
        let launch = Launch::new(&function).grid(4).block(128);
        // SAFETY: the parameters are (float*, float*, u64, grid_state*, u32*); n floats fit.
        unsafe { world.launch_together(launch, &stream, (a_at, b_at, n, &state, &errors)) }
            .unwrap();
        done("collectives_grid");
    }
    for (blocks, threads) in [(1, 1), (1, 113), (7, 113), (8, 256), (3, 1024)] {
        let function = module.function("levels").unwrap();
        let launch = Launch::new(&function).grid(blocks).block(threads.max(8));
        // SAFETY: the parameters are (grid_state*, u32*).
        unsafe { world.launch_together(launch, &stream, (&state, &errors)) }.unwrap();
        done("levels");
        for name in ["extremes_levels_float", "extremes_levels_double"] {
            let function = module.function(name).unwrap();
            let launch = Launch::new(&function).grid(blocks).block(threads);
            // SAFETY: the parameters are (grid_state*, u32*).
            unsafe { world.launch_together(launch, &stream, (&state, &errors)) }.unwrap();
            done(name);
        }
    }
    if device.properties().cluster_launch {
        let function = module.function("cluster_level").unwrap();
        for blocks in [1u32, 2, 4, 8] {
            let launch = Launch::new(&function)
                .grid(2 * blocks)
                .block(96)
                .cluster(blocks);
            // SAFETY: the parameter is u32*.
            unsafe { launch.launch(&stream, (&errors,)) }.unwrap();
            done("cluster_level");
        }
    }
    // Too much for the GPU: refused on every PE, nothing hangs.
    let function = module.function("levels").unwrap();
    let launch = Launch::new(&function).grid(1 << 20).block(1024);
    // SAFETY: never starts.
    let refused = unsafe { world.launch_together(launch, &stream, (&state, &errors)) };
    assert!(refused.is_err());
    pe.barrier().unwrap();
}

/// A kernel's wait gives up and the host says which; every PE has one.
fn gives_up(pe: &Pe, device: Device) {
    let module = Module::compile(&device, &CONFORMANCE).unwrap();
    let stream = Stream::new(&device).unwrap();
    let limit = Duration::from_millis(50);
    let world = DeviceWorld::new(pe, device, Some(64 << 20), Some(limit)).unwrap();
    world.install(&module).unwrap();
    let words = world.heap().alloc::<u64>(64).unwrap();
    world.put(&stream, &words, 0, &[3; 64], pe.my_pe()).unwrap();
    let errors = Buffer::<u32>::zeroed(&stream, 2).unwrap();
    let at = world.heap().address_of(&words, pe.my_pe());
    let function = module.function("wait_in_vain").unwrap();
    // SAFETY: the parameters are (u64*, u32*).
    unsafe { world.launch_together(Launch::new(&function), &stream, (at, &errors)) }.unwrap();
    let error = world.synchronize(&stream).unwrap_err();
    let SyncError::Timeout(timeout) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (timeout.pe, timeout.expected, timeout.seen),
        (pe.my_pe(), 12345, 3)
    );
    assert_eq!(errors.to_vec(&stream).unwrap()[0], 0);
    // The record is cleared: the world goes on.
    world.synchronize(&stream).unwrap();
    pe.barrier().unwrap();
}

/// A kernel's wait ends when another PE leaves, long before the limit, and its host learns which.
fn is_left(pe: &Pe, device: Device) {
    let module = Module::compile(&device, &CONFORMANCE).unwrap();
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
    world.install(&module).unwrap();
    let words = world.heap().alloc_zeroed::<u64>(64).unwrap();
    let errors = Buffer::<u32>::zeroed(&stream, 2).unwrap();
    let at = world.heap().address_of(&words, pe.my_pe());
    let function = module.function("wait_in_vain").unwrap();
    let launch = world.prepare_together(Launch::new(&function)).unwrap();
    if pe.my_pe() != 0 {
        // Before anything is freed: that waits for the kernel, if the GPU is shared.
        drop(world);
        return;
    }
    // SAFETY: the parameters are (u64*, u32*).
    unsafe { launch.launch(&stream, (at, &errors)) }.unwrap();
    let error = world.synchronize(&stream).unwrap_err();
    let SyncError::Left(left) = error else {
        panic!("{error}")
    };
    assert_eq!((left.pe, left.expected), (0, 12345));
    assert_ne!(left.gone, 0);
    // The kernel knew that its wait had ended in vain.
    assert_eq!(errors.to_vec(&stream).unwrap()[0], 0);
}

#[test]
fn sources_compile() {
    let archs = [Arch::new(8, 0), Arch::new(9, 0)];
    let less = Options::new().define("ONE_TYPE_PER_SCOPE", 1);
    compiles("sources_compile", &[CONFORMANCE], &archs, &less);
}

#[test]
#[ignore = "takes minutes, and the tests below compile it, too: fills the cache for a machine with a GPU"]
fn whole_source_compiles() {
    let archs = [Arch::new(9, 0)];
    compiles(
        "whole_source_compiles",
        &[CONFORMANCE],
        &archs,
        &Options::new(),
    );
}

#[test]
fn one_gpu_1_pe() {
    on_one_gpu("one_gpu_1_pe", 1, suite);
}

#[test]
fn one_gpu_2_pes() {
    on_one_gpu("one_gpu_2_pes", 2, suite);
}

#[test]
fn one_gpu_3_pes() {
    on_one_gpu("one_gpu_3_pes", 3, suite);
}

#[test]
fn one_gpu_4_pes() {
    on_one_gpu("one_gpu_4_pes", 4, suite);
}

#[test]
fn waits_give_up() {
    on_one_gpu("waits_give_up", 2, gives_up);
}

#[test]
fn waits_end_when_a_pe_leaves() {
    on_one_gpu("waits_end_when_a_pe_leaves", 2, is_left);
    on_all_gpus("waits_end_when_a_pe_leaves", is_left);
}

#[test]
fn gpus_as_threads() {
    on_all_gpus("gpus_as_threads", suite);
}

#[test]
fn gpus_as_processes() {
    as_processes("gpus_as_processes", "pe_of_a_process_world", 1);
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn pe_of_a_process_world() {
    as_process(suite);
}

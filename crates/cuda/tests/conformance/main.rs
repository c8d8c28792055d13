//! The device verbs inside kernels, on every kind of device world this machine can make: several PEs on
//! one GPU, several GPUs as threads, several GPUs as processes. Without a GPU each test says so by name
//! and does nothing.

#![allow(unsafe_code)] // launches kernels

#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crosswarp_cuda::{
    Arch, Buffer, Device, DeviceWorld, Function, Launch, Module, Options, Source, Stream,
    SyncError, grid_state_bytes, kernel_resources,
};
use crosswarp_shmem::Pe;
use support::{
    LIMIT, as_process, as_processes, compiles, cubins, on_all_gpus, on_gpus_of_hosts, on_hosts,
    on_one_gpu, verbs_with,
};

const HEADERS: &[(&str, &str)] = &[
    ("common.cuh", include_str!("common.cuh")),
    ("lengths.cuh", include_str!("lengths.cuh")),
    ("specials.cuh", include_str!("specials.cuh")),
];

const fn source(name: &'static str, text: &'static str) -> Source<'static> {
    Source::new(name, text).with_headers(HEADERS)
}

const SIGNALS: Source<'static> = source("signals.cu", include_str!("signals.cu"));

/// Several, because compilers work on one each. Those that take longest come first.
const SOURCES: [Source<'static>; 7] = [
    source("collectives.cu", include_str!("collectives.cu")),
    source("extremes.cu", include_str!("extremes.cu")),
    source("sums.cu", include_str!("sums.cu")),
    source("memory.cu", include_str!("memory.cu")),
    source("levels.cu", include_str!("levels.cu")),
    source("atomics.cu", include_str!("atomics.cu")),
    SIGNALS,
];

/// Room of each of the two symmetric arrays: the longest payload for eight PEs, in the widest type.
const BYTES: usize = 8 * 3008 * 8;

/// Of the collectives of a grid: more than 1 MiB, with an odd end.
const GRID_FLOATS: usize = 300_001;

const SCOPES: [(&str, u32); 3] = [("thread", 1), ("warp", 32), ("block", 128)];

/// What kernels named VERB_SCOPE_TYPE are about, for each scope.
const VERBS: [&str; 8] = [
    "alltoall",
    "broadcast",
    "extremes",
    "fcollect",
    "max",
    "memory",
    "reducescatter",
    "sum",
];

/// Whether kernels of these names check every verb for every scope.
fn has_every_verb<'a>(names: impl Iterator<Item = &'a String> + Clone) {
    for (scope, _) in SCOPES {
        let of_scope = format!("_{scope}_");
        let split = |name: &'a String| Some(name.split_once(&of_scope)?.0);
        let verbs: BTreeSet<&str> = names.clone().filter_map(split).collect();
        assert!(verbs.iter().eq(&VERBS), "{scope}: {verbs:?}");
    }
}

/// With `CROSSWARP_ONE_TYPE=1` each scope has one type instead of all, for tools that make kernels a hundred times
/// slower.
fn options() -> Options {
    if std::env::var_os("CROSSWARP_ONE_TYPE").is_some_and(|value| value == "1") {
        one_type_per_scope()
    } else {
        Options::new()
    }
}

fn one_type_per_scope() -> Options {
    Options::new().define("ONE_TYPE_PER_SCOPE", 1)
}

/// The code of all sources for `arch`, for worlds of one host or of several. Compiled once a process, however many PEs ask
/// for it.
fn code(arch: Arch, hosts: Hosts) -> Arc<[Vec<u8>]> {
    type Code = BTreeMap<(Arch, Hosts), Arc<[Vec<u8>]>>;
    static CODE: Mutex<Code> = Mutex::new(BTreeMap::new());
    let mut code = CODE.lock().unwrap_or_else(PoisonError::into_inner);
    let options = match hosts {
        Hosts::One => options(),
        Hosts::Several => over_hosts(options()),
    };
    let cubins = || cubins(&SOURCES, &[arch], &options).into();
    Arc::clone(code.entry((arch, hosts)).or_insert_with(cubins))
}

/// Of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hosts {
    One,
    Several,
}

/// As `DeviceWorld::options` has it in a world of several hosts.
fn over_hosts(options: Options) -> Options {
    options.define("CROSSWARP_ROUTED", 1)
}

/// Compiles for every GPU here, before there is a world whose limits of time it would count against. Processes find
/// the code in the user's cache.
fn compile_first(hosts: Hosts) {
    for device in Device::all().unwrap_or_default() {
        code(device.arch(), hosts);
        // The first PE compiles it otherwise, while the others wait.
        if hosts == Hosts::Several {
            let options = over_hosts(Options::new());
            cubins(&verbs_with(&options), &[device.arch()], &options);
        }
    }
}

/// The suite's kernels on a GPU, in one module a source.
struct Kernels(Vec<Module>);

impl Kernels {
    fn load(world: &DeviceWorld<'_>) -> Self {
        let load = |cubin: &Vec<u8>| {
            let module = Module::load(&world.device(), cubin).unwrap();
            world.install(&module).unwrap();
            module
        };
        let hosts = match DeviceWorld::needs_one_host(world.pe(), "the suite") {
            Ok(()) => Hosts::One,
            Err(_) => Hosts::Several,
        };
        Self(
            code(world.device().arch(), hosts)
                .iter()
                .map(load)
                .collect(),
        )
    }

    fn names(&self) -> impl Iterator<Item = &String> + Clone {
        self.0.iter().flat_map(Module::kernels)
    }

    fn get(&self, name: &str) -> Function {
        let has = |module: &&Module| module.kernels().iter().any(|kernel| kernel == name);
        let module = self.0.iter().find(has);
        let module = module.unwrap_or_else(|| panic!("no kernel {name}"));
        module.function(name).unwrap()
    }
}

/// One PE's part of the whole suite.
fn suite(pe: &Pe, device: Device) {
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(256 << 20), Some(LIMIT)).unwrap();
    let kernels = Kernels::load(&world);
    let heap = world.heap();
    let me = pe.my_pe();
    let (a, b) = (
        heap.alloc::<u8>(BYTES).unwrap(),
        heap.alloc::<u8>(BYTES).unwrap(),
    );
    let words = heap.alloc::<u64>(64).unwrap();
    let (a_at, b_at) = (heap.address_of(&a, me), heap.address_of(&b, me));
    let words_at = heap.address_of(&words, me);
    world.put(&stream, &words, &[0; 64], me).unwrap();
    let errors = Buffer::<u32>::zeroed(&stream, 2).unwrap();
    let state = Buffer::<u8>::zeroed(&stream, grid_state_bytes(4096)).unwrap();
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
    has_every_verb(kernels.names());
    for (scope, threads) in SCOPES {
        let of_scope = format!("_{scope}_");
        for name in kernels.names().filter(|name| name.contains(&of_scope)) {
            let function = kernels.get(name);
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
            let function = kernels.get(&name);
            let launch = Launch::new(&function).block(threads);
            let args = (a_at, b_at, BYTES as u64, words_at, &errors);
            // SAFETY: the parameters are (T*, T*, u64, u64*, u32*).
            unsafe { world.launch_together(launch, &stream, args) }.unwrap();
            done(&name);
        }
    }
    for name in ["atomics", "wait_sets"] {
        let function = kernels.get(name);
        // SAFETY: the parameters are (u64*, u32*).
        unsafe { world.launch_together(Launch::new(&function), &stream, (words_at, &errors)) }
            .unwrap();
        done(name);
    }
    let function = kernels.get("collectives_grid");
    let many = heap.alloc::<f32>(GRID_FLOATS).unwrap();
    let more = heap.alloc::<f32>(GRID_FLOATS).unwrap();
    let (a_at, b_at) = (heap.address_of(&many, me), heap.address_of(&more, me));
    for n in [100, 40_000, GRID_FLOATS as u64] {
        let launch = Launch::new(&function).grid(4).block(128);
        // SAFETY: the parameters are (float*, float*, u64, grid_state*, u32*); GRID_FLOATS fit.
        unsafe { world.launch_together(launch, &stream, (a_at, b_at, n, &state, &errors)) }
            .unwrap();
        done("collectives_grid");
    }
    for (blocks, threads) in [(1, 1), (1, 113), (7, 113), (8, 256), (3, 1024)] {
        let function = kernels.get("levels");
        let launch = Launch::new(&function).grid(blocks).block(threads.max(8));
        // SAFETY: the parameters are (grid_state*, u32*).
        unsafe { world.launch_together(launch, &stream, (&state, &errors)) }.unwrap();
        done("levels");
        for name in ["extremes_levels_float", "extremes_levels_double"] {
            let function = kernels.get(name);
            let launch = Launch::new(&function).grid(blocks).block(threads);
            // SAFETY: the parameters are (grid_state*, u32*).
            unsafe { world.launch_together(launch, &stream, (&state, &errors)) }.unwrap();
            done(name);
        }
    }
    if device.properties().cluster_launch {
        let function = kernels.get("cluster_level");
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
    let function = kernels.get("levels");
    let launch = Launch::new(&function).grid(1 << 20).block(1024);
    // SAFETY: never starts.
    let refused = unsafe { world.launch_together(launch, &stream, (&state, &errors)) };
    assert!(refused.is_err());
    pe.barrier().unwrap();
}

/// A kernel's wait gives up and the host says which; every PE has one.
fn gives_up(pe: &Pe, device: Device) {
    let module = Module::compile(&device, &SIGNALS).unwrap();
    let stream = Stream::new(&device).unwrap();
    // Long enough for the sum below, beside whatever else the machine does.
    let limit = Duration::from_secs(3);
    let world = DeviceWorld::new(pe, device, Some(64 << 20), Some(limit)).unwrap();
    world.install(&module).unwrap();
    let words = world.heap().alloc::<u64>(64).unwrap();
    world.put(&stream, &words, &[3; 64], pe.my_pe()).unwrap();
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
    // The record is cleared: the world goes on, also with a sum that waits often.
    world.synchronize(&stream).unwrap();
    pe.barrier().unwrap();
    let (n, pes) = ((4 << 20) + 3, pe.n_pes());
    let source = world.heap().alloc::<f32>(n).unwrap();
    let total = world.heap().alloc::<f32>(n).unwrap();
    let value = |pe: usize, i: usize| (pe * 100 + i % 97) as f32;
    let mine: Vec<f32> = (0..n).map(|i| value(pe.my_pe(), i)).collect();
    world.put(&stream, &source, &mine, pe.my_pe()).unwrap();
    pe.barrier().unwrap();
    world
        .sum_on_stream(&stream, world.everyone(), &total, &source)
        .unwrap();
    world.synchronize(&stream).unwrap();
    let mut seen = vec![0.0; n];
    world.get(&stream, &mut seen, &total, pe.my_pe()).unwrap();
    let of_all = |i| (0..pes).map(|pe| value(pe, i)).sum::<f32>();
    let wrong = (0..n).find(|&i| seen[i] != of_all(i));
    assert_eq!(wrong, None, "a sum after a wait that gave up");
    pe.barrier().unwrap();
}

/// A kernel's wait ends when another PE leaves, long before the limit, and its host learns which.
fn is_left(pe: &Pe, device: Device) {
    let module = Module::compile(&device, &SIGNALS).unwrap();
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

/// Compiles all sources for `archs`, and looks for the kernels that the suite launches.
fn sources_compile_for(test: &str, archs: &[Arch], options: &Options) {
    let compiled = compiles(test, &SOURCES, archs, options);
    for cubins in compiled.chunks(SOURCES.len()) {
        let resources = |cubin: &Vec<u8>| kernel_resources(cubin).unwrap();
        let kernels = cubins.iter().flat_map(resources);
        let names: Vec<String> = kernels.map(|kernel| kernel.name).collect();
        has_every_verb(names.iter());
    }
}

#[test]
fn sources_compile() {
    let archs = [Arch::new(8, 0), Arch::new(9, 0)];
    sources_compile_for("sources_compile", &archs, &one_type_per_scope());
}

#[test]
#[ignore = "takes a minute of a processor, as the tests below do: fills the cache for a machine with a GPU"]
fn whole_source_compiles() {
    let archs = [Arch::new(9, 0)];
    sources_compile_for("whole_source_compiles", &archs, &Options::new());
}

#[test]
fn sources_compile_for_several_hosts() {
    let archs = [Arch::new(9, 0)];
    let options = over_hosts(one_type_per_scope());
    sources_compile_for("sources_compile_for_several_hosts", &archs, &options);
}

fn suite_over_hosts(test: &str, n: usize, hosts: &'static str) {
    compile_first(Hosts::Several);
    on_hosts(test, n, hosts, suite);
}

#[test]
fn one_gpu_2_pes_of_2_hosts() {
    suite_over_hosts("one_gpu_2_pes_of_2_hosts", 2, "2");
}

#[test]
fn one_gpu_3_pes_of_2_hosts() {
    suite_over_hosts("one_gpu_3_pes_of_2_hosts", 3, "1+2");
}

#[test]
fn one_gpu_4_pes_of_2_hosts() {
    suite_over_hosts("one_gpu_4_pes_of_2_hosts", 4, "2");
}

#[test]
fn gpus_of_hosts() {
    compile_first(Hosts::Several);
    on_gpus_of_hosts("gpus_of_hosts", suite);
}

#[test]
fn a_grid_that_fills_the_gpu_gets_what_other_hosts_add() {
    compile_first(Hosts::Several);
    on_gpus_of_hosts(
        "a_grid_that_fills_the_gpu_gets_what_other_hosts_add",
        fills_the_gpu,
    );
}

/// Every block that fits PE 0's GPU waits for what the others add to a word of its, once that grid runs.
fn fills_the_gpu(pe: &Pe, device: Device) {
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
    let kernels = Kernels::load(&world);
    let words = world.heap().alloc_zeroed::<u64>(64).unwrap();
    let errors = Buffer::<u32>::zeroed(&stream, 2).unwrap();
    let at = world.heap().address_of(&words, pe.my_pe());
    let function = kernels.get("wait_in_all_blocks");
    let blocks = match pe.my_pe() {
        0 => Launch::new(&function).block(512).max_resident().unwrap(),
        _ => 1,
    };
    let launch = Launch::new(&function).grid(blocks as u32).block(512);
    // SAFETY: the parameters are (u64*, u32*).
    unsafe { world.launch_together(launch, &stream, (at, &errors)) }.unwrap();
    world.synchronize(&stream).unwrap();
    assert_eq!(errors.to_vec(&stream).unwrap()[0], 0);
    pe.barrier().unwrap();
}

fn suite_on_one_gpu(test: &str, n: usize) {
    compile_first(Hosts::One);
    on_one_gpu(test, n, suite);
}

#[test]
fn one_gpu_1_pe() {
    suite_on_one_gpu("one_gpu_1_pe", 1);
}

#[test]
fn one_gpu_2_pes() {
    suite_on_one_gpu("one_gpu_2_pes", 2);
}

#[test]
fn one_gpu_3_pes() {
    suite_on_one_gpu("one_gpu_3_pes", 3);
}

#[test]
fn one_gpu_4_pes() {
    suite_on_one_gpu("one_gpu_4_pes", 4);
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
    compile_first(Hosts::One);
    on_all_gpus("gpus_as_threads", suite);
}

#[test]
fn gpus_as_processes() {
    compile_first(Hosts::One);
    as_processes("gpus_as_processes", "pe_of_a_process_world", 1);
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn pe_of_a_process_world() {
    as_process(suite);
}

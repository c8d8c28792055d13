//! What needs a GPU: modules, launches, memory, streams and graphs. Without a GPU (or NVRTC) each test
//! says by name that it was skipped.
#![allow(unsafe_code)] // Launches kernels.

use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{
    ArchLimits, BlockNeeds, Buffer, BufferRef, ByValue, Device, Error, Event, Function, Graph,
    Launch, LaunchError, Limit, Link, Module, ModuleError, Nvrtc, Occupancy, Options, PinnedBuffer,
    Priority, Source, Stream, THREADS, compile, describe, kernel_resources, skip,
};

const KERNELS: Source<'static> = Source::new("gpu.cu", include_str!("kernels/gpu.cu"));

struct Gpu {
    device: Device,
    stream: Stream,
    module: Module,
}

impl Gpu {
    fn function(&self, name: &str) -> Function {
        self.module.function(name).unwrap()
    }
}

fn gpu(test: &str) -> Option<Gpu> {
    if let Err(reason) = Device::count() {
        skip::skip_gpu(test, 1, format!("no GPU: {reason}"));
        return None;
    }
    if let Err(reason) = Nvrtc::get() {
        skip::skip_gpu(test, 1, reason);
        return None;
    }
    let device = Device::get(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let module = Module::compile(&device, &KERNELS).unwrap_or_else(|error| panic!("{error}"));
    Some(Gpu {
        device,
        stream,
        module,
    })
}

/// Deterministic bits; every kind of number comes up, subnormals and infinities too.
fn bits(count: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    })
    .take(count)
}

#[test]
fn devices_are_what_they_say() {
    let Some(Gpu { device, .. }) = gpu("devices_are_what_they_say") else {
        return;
    };
    let count = Device::count().unwrap();
    assert_eq!(Device::all().unwrap().len(), count);
    let error = Device::get(count).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("there is no GPU {count}: this machine has {count}, numbered from 0")
    );
    let properties = device.properties();
    assert_eq!(properties.warp_size, 32);
    assert!(device.free_memory().unwrap() <= properties.memory);
    assert_eq!(device.link(&device).unwrap(), Link::Same);
    if let Some(limits) = ArchLimits::of(device.arch()) {
        assert_eq!(limits.warps * 32, properties.max_threads_per_multiprocessor);
        assert_eq!(limits.blocks, properties.max_blocks_per_multiprocessor);
        assert_eq!(limits.registers, properties.registers_per_multiprocessor);
        assert_eq!(limits.shared, properties.shared_per_multiprocessor);
        assert_eq!(limits.shared_per_block, properties.shared_per_block_optin);
        assert_eq!(limits.reserved_shared, properties.reserved_shared_per_block);
    }
    println!("{}", describe());
}

#[test]
fn the_cubin_and_the_driver_agree_on_resources() {
    let Some(gpu) = gpu("the_cubin_and_the_driver_agree_on_resources") else {
        return;
    };
    let cubin = compile(&KERNELS, gpu.device.arch(), &Options::new()).unwrap();
    for kernel in kernel_resources(&cubin).unwrap() {
        let function = gpu.function(&kernel.name);
        let attributes = function.attributes();
        assert_eq!(kernel.registers, attributes.registers, "{}", kernel.name);
        assert_eq!(
            kernel.static_shared, attributes.static_shared,
            "{}",
            kernel.name
        );
        assert_eq!(kernel.local, attributes.local, "{}", kernel.name);
        if let Some(most) = kernel.max_threads {
            assert_eq!(most, attributes.max_threads, "{}", kernel.name);
        }
    }
}

#[test]
fn occupancy_agrees_with_the_driver() {
    let Some(gpu) = gpu("occupancy_agrees_with_the_driver") else {
        return;
    };
    let Some(limits) = ArchLimits::of(gpu.device.arch()) else {
        return;
    };
    for name in ["fill", "reverse", "resources", "arithmetic64"] {
        let function = gpu.function(name);
        let attributes = *function.attributes();
        for threads in [1, 32, 33, 96, 128, 256, 300, 512, 1000, 1024] {
            for shared in [0, 1, 1000, 10_000, 40_000, 100_000, 200_000] {
                let total = attributes.static_shared + shared;
                if threads > attributes.max_threads || total > limits.shared_per_block {
                    continue;
                }
                let needs = BlockNeeds {
                    threads,
                    registers: attributes.registers,
                    shared: total,
                };
                assert_eq!(
                    Occupancy::new(limits, &needs).blocks,
                    function.blocks_per_multiprocessor(threads, shared).unwrap(),
                    "{name}, {needs:?}"
                );
            }
        }
    }
}

#[test]
fn names_are_looked_up() {
    let Some(gpu) = gpu("names_are_looked_up") else {
        return;
    };
    let error = gpu.module.function("absent").unwrap_err();
    assert!(
        matches!(&error, ModuleError::NoKernel { kernels, .. } if kernels.contains(&"fill".to_string())),
        "{error}"
    );
    assert!(matches!(
        gpu.module.function("zero\0byte"),
        Err(ModuleError::NoKernel { .. })
    ));
    assert!(matches!(
        gpu.module.global("absent"),
        Err(ModuleError::NoGlobal { .. })
    ));
    assert_eq!(gpu.module.global("counter").unwrap().size, 4);
    assert_eq!(gpu.module.global("scale").unwrap().size, 16);
    assert_eq!(gpu.function("by_value").parameters(), [8, 8, 1, 8]);
}

#[test]
fn a_cubin_for_another_architecture_is_refused() {
    let Some(gpu) = gpu("a_cubin_for_another_architecture_is_refused") else {
        return;
    };
    let others = Nvrtc::get()
        .unwrap()
        .archs()
        .iter()
        .filter(|arch| arch.major != gpu.device.arch().major);
    for &arch in others {
        let cubin = compile(&THREADS, arch, &Options::new()).unwrap();
        let error = Module::load(&gpu.device, &cubin).unwrap_err();
        assert!(
            matches!(error, ModuleError::WrongArch { .. }),
            "{arch}: {error:?}"
        );
    }
    let cubin = compile(&THREADS, gpu.device.arch(), &Options::new()).unwrap();
    assert!(Module::load(&gpu.device, &cubin).is_ok());
    assert!(matches!(
        Module::load(&gpu.device, &cubin[..cubin.len() / 2]),
        Err(ModuleError::Cubin(_))
    ));
}

#[test]
fn arguments_of_all_kinds_arrive() {
    let Some(gpu) = gpu("arguments_of_all_kinds_arrive") else {
        return;
    };
    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct Pair {
        a: u16,
        padding: u16,
        b: u32,
    }
    let out = Buffer::<f64>::zeroed(&gpu.stream, 3).unwrap();
    let function = gpu.function("by_value");
    let launch = Launch::new(&function);
    let pair = ByValue(Pair {
        a: 7,
        padding: 0,
        b: 1 << 20,
    });
    // SAFETY: the kernel takes a pointer, a structure like Pair, a byte and a double.
    unsafe { launch.launch(&gpu.stream, (out.range(1..2), pair, 200u8, 0.5f64)) }.unwrap();
    assert_eq!(
        out.to_vec(&gpu.stream).unwrap(),
        [0.0, 7.0 + 524_288.0 + 200.0, 0.0]
    );

    // SAFETY: refused before anything is launched.
    let error = unsafe { launch.launch(&gpu.stream, (&out, pair, 200u32, 0.5f64)) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "launch of by_value: its parameters have [8, 8, 1, 8] bytes, the arguments [8, 8, 4, 8]"
    );
    // SAFETY: as above.
    let error = unsafe { launch.launch(&gpu.stream, ()) };
    assert!(matches!(error, Err(LaunchError::Arguments { .. })));
}

#[test]
fn arithmetic_gives_the_cpus_bits() {
    let Some(gpu) = gpu("arithmetic_gives_the_cpus_bits") else {
        return;
    };
    const N: usize = 100_000;
    macro_rules! compare {
        ($float:ty, $kernel:literal, $from:expr, $close:expr) => {{
            // Half of the triples are arbitrary bits; in the others a · b is close to c, where a
            // contraction shows.
            let any: Vec<u64> = bits(3 * N).collect();
            let input: Vec<$float> = any
                .chunks_exact(3)
                .enumerate()
                .flat_map(|(i, t)| {
                    let [a, b, c] = [$from(t[0]), $from(t[1]), $from(t[2])];
                    if i % 2 == 0 {
                        [a, b, c]
                    } else {
                        $close(t[0], t[1])
                    }
                })
                .collect();
            let wanted = input.chunks_exact(3).flat_map(|t| {
                [
                    t[0] * t[1] + t[2],
                    t[0] / t[1],
                    t[2].sqrt(),
                    t[0] - t[1] * t[2],
                ]
            });
            let given = Buffer::from_slice(&gpu.stream, &input).unwrap();
            let out = Buffer::<$float>::zeroed(&gpu.stream, 4 * N).unwrap();
            let function = gpu.function($kernel);
            // SAFETY: three inputs and four outputs for each of N.
            unsafe {
                Launch::new(&function)
                    .block(256)
                    .launch(&gpu.stream, (&given, &out, N as u32))
            }
            .unwrap();
            let mut compared = 0;
            for (index, (got, want)) in out
                .to_vec(&gpu.stream)
                .unwrap()
                .iter()
                .zip(wanted)
                .enumerate()
            {
                // NaNs differ in their payload by the processor's taste.
                if got.is_nan() && want.is_nan() {
                    continue;
                }
                compared += 1;
                assert_eq!(
                    got.to_bits(),
                    want.to_bits(),
                    "{} result {}: {got:e} for {want:e}",
                    $kernel,
                    index
                );
            }
            assert!(compared > 3 * N);
        }};
    }
    let near_f32 = |a: u64, b: u64| {
        let [a, b] = [a, b].map(|x| 1.0 + (x >> 41) as f32 / (1 << 23) as f32);
        [a, b, -(a * b)]
    };
    let near_f64 = |a: u64, b: u64| {
        let [a, b] = [a, b].map(|x| 1.0 + (x >> 12) as f64 / (1u64 << 52) as f64);
        [a, b, -(a * b)]
    };
    compare!(
        f32,
        "arithmetic",
        |x: u64| f32::from_bits(x as u32),
        near_f32
    );
    compare!(f64, "arithmetic64", f64::from_bits, near_f64);
}

#[test]
fn shared_memory_beyond_48_kib_is_opted_in() {
    let Some(gpu) = gpu("shared_memory_beyond_48_kib_is_opted_in") else {
        return;
    };
    let most = gpu.device.properties().shared_per_block_optin;
    let n = most / 4;
    let input: Vec<u32> = (0..n).collect();
    let given = Buffer::from_slice(&gpu.stream, &input).unwrap();
    let out = Buffer::<u32>::zeroed(&gpu.stream, n as usize).unwrap();
    let function = gpu.function("reverse");
    // Small after large: opting in must not stick to one size.
    for (n, bytes) in [(100, 400), (n, most), (200, 800), (n, most)] {
        let launch = Launch::new(&function).block(256).shared(bytes);
        // SAFETY: n elements in, out and in shared memory.
        unsafe { launch.launch(&gpu.stream, (&given, &out, n)) }.unwrap();
        let got = out.to_vec(&gpu.stream).unwrap();
        assert!(got[..n as usize].iter().rev().copied().eq(0..n));
    }
    let error = Launch::new(&function)
        .shared(most + 1)
        .prepare()
        .unwrap_err();
    let limit = LaunchError::Limit {
        kernel: "reverse".into(),
        limit: Limit::Shared,
        value: u64::from(most) + 1,
        most: most.into(),
    };
    assert_eq!(error, limit);
}

#[test]
fn cooperative_grids_are_as_large_as_fit_and_no_larger() {
    let Some(gpu) = gpu("cooperative_grids_are_as_large_as_fit_and_no_larger") else {
        return;
    };
    let function = gpu.function("meet");
    let launch = Launch::new(&function).block(256).cooperative();
    let most = launch.max_resident().unwrap() as u32;
    assert_eq!(most % gpu.device.properties().multiprocessors, 0);
    let arrived = Buffer::<u32>::zeroed(&gpu.stream, 1).unwrap();
    let seen = Buffer::<u32>::zeroed(&gpu.stream, most as usize).unwrap();
    // SAFETY: a counter that is 0, and an entry per block.
    unsafe {
        launch
            .clone()
            .grid(most)
            .launch(&gpu.stream, (&arrived, &seen))
    }
    .unwrap();
    assert!(
        seen.to_vec(&gpu.stream)
            .unwrap()
            .iter()
            .all(|&seen| seen == 1)
    );
    let error = launch.grid(most + 1).prepare().unwrap_err();
    assert!(
        matches!(error, LaunchError::Limit { limit: Limit::CoResident, value, most: limit, .. }
            if value == u64::from(most) + 1 && limit == u64::from(most)),
        "{error}"
    );
}

#[test]
fn clusters_are_formed_up_to_the_devices_size() {
    let Some(gpu) = gpu("clusters_are_formed_up_to_the_devices_size") else {
        return;
    };
    let function = gpu.function("ranks");
    let launch = Launch::new(&function).block(128);
    if !gpu.device.properties().cluster_launch {
        assert!(matches!(
            launch.clone().cluster(1).prepare(),
            Err(LaunchError::Unsupported { .. })
        ));
        return;
    }
    let most = launch.max_cluster().unwrap();
    assert!(most >= 8, "{most}");
    for size in [1, 2, 8, most] {
        let blocks = 3 * size;
        let out = Buffer::<u32>::zeroed(&gpu.stream, blocks as usize).unwrap();
        // SAFETY: an entry per block.
        unsafe {
            launch
                .clone()
                .grid(blocks)
                .cluster(size)
                .launch(&gpu.stream, (&out,))
        }
        .unwrap();
        let wanted: Vec<u32> = (0..blocks).map(|block| block % size + 100 * size).collect();
        assert_eq!(
            out.to_vec(&gpu.stream).unwrap(),
            wanted,
            "clusters of {size}"
        );
    }
    let error = launch
        .clone()
        .grid(4 * most)
        .cluster(2 * most)
        .prepare()
        .unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::Limit {
                limit: Limit::Cluster,
                ..
            }
        ),
        "{error}"
    );
    assert!(matches!(
        launch.clone().grid(3).cluster(2).prepare(),
        Err(LaunchError::Uneven { .. })
    ));
    // Cooperative with clusters: whole clusters that fit.
    let cooperative = launch.cluster(2).cooperative();
    let resident = cooperative.max_resident().unwrap();
    assert!(resident > 0 && resident.is_multiple_of(2));
    assert!(cooperative.clone().grid(resident as u32).prepare().is_ok());
    assert!(cooperative.grid(resident as u32 + 2).prepare().is_err());
}

#[test]
fn each_lane_of_the_threads_kernel_reports_once_and_warps_stay_together() {
    let Some(gpu) = gpu("each_lane_of_the_threads_kernel_reports_once_and_warps_stay_together")
    else {
        return;
    };
    let function = Module::compile(&gpu.device, &THREADS)
        .unwrap()
        .function("threads")
        .unwrap();
    let (blocks, threads) = (40u32, 80u32); // The third warp of each block is half full.
    let reports = Buffer::<[u32; 4]>::zeroed(&gpu.stream, (blocks * threads) as usize).unwrap();
    let arrived = Buffer::<u32>::zeroed(&gpu.stream, 1).unwrap();
    // SAFETY: an entry per thread, and a counter that is 0.
    unsafe {
        Launch::new(&function)
            .grid(blocks)
            .block(threads)
            .launch(&gpu.stream, (&reports, &arrived))
    }
    .unwrap();
    let reports = reports.to_vec(&gpu.stream).unwrap();
    for pair in reports.windows(2) {
        let ([_, block, warp, lane], [_, next_block, next_warp, next_lane]) = (pair[0], pair[1]);
        let last = if warp == 2 { 15 } else { 31 };
        if lane == last {
            assert_eq!(next_lane, 0);
        } else {
            assert_eq!((next_block, next_warp, next_lane), (block, warp, lane + 1));
        }
    }
    let mut indices: Vec<u32> = reports.iter().map(|report| report[0]).collect();
    assert!(
        reports
            .iter()
            .all(|[index, block, warp, lane]| *index == block * threads + warp * 32 + lane)
    );
    indices.sort_unstable();
    assert!(indices.into_iter().eq(0..blocks * threads));
}

#[test]
fn globals_can_be_reached_by_address() {
    let Some(gpu) = gpu("globals_can_be_reached_by_address") else {
        return;
    };
    let function = gpu.function("add_scaled");
    let out = Buffer::<f32>::zeroed(&gpu.stream, 1).unwrap();
    let fill = gpu.function("fill");
    // SAFETY: `counter` has room for the one element that one thread writes.
    unsafe {
        Launch::new(&fill).launch(
            &gpu.stream,
            (gpu.module.global("counter").unwrap().address, 5u32),
        )
    }
    .unwrap();
    // SAFETY: one element.
    unsafe { Launch::new(&function).launch(&gpu.stream, (&out, 10.0f32)) }.unwrap();
    assert_eq!(out.to_vec(&gpu.stream).unwrap(), [25.0]);
}

#[test]
fn copies_are_in_order_and_whole() {
    let Some(gpu) = gpu("copies_are_in_order_and_whole") else {
        return;
    };
    let values: Vec<u32> = (0..1_000_003).collect();
    let buffer = Buffer::from_slice(&gpu.stream, &values).unwrap();
    let other = Buffer::<u32>::zeroed(&gpu.stream, values.len()).unwrap();
    gpu.stream
        .copy(other.range(3..), buffer.range(..1_000_000))
        .unwrap();
    gpu.stream.zero(other.range(10..20)).unwrap();
    let got = other.to_vec(&gpu.stream).unwrap();
    assert_eq!(got[..3], [0; 3]);
    let wanted = |i: u32| if (10..20).contains(&i) { 0 } else { i - 3 };
    assert!(got[3..].iter().copied().eq((3..1_000_003).map(wanted)));

    let mut input = PinnedBuffer::<u32>::zeroed(&gpu.device, 1000).unwrap();
    assert!(input.iter().all(|&value| value == 0));
    input.copy_from_slice(&values[..1000]);
    let mut output = vec![0u32; 1000];
    gpu.stream
        .scope(|copies| -> Result<(), Error> {
            copies.write(buffer.range(500..1500), &input)?;
            copies.read(&mut output, buffer.range(500..1500))?;
            Ok(())
        })
        .unwrap();
    assert_eq!(output[..], input[..]);

    let empty = Buffer::<f64>::from_slice(&gpu.stream, &[]).unwrap();
    assert!(empty.to_vec(&gpu.stream).unwrap().is_empty());
    let error = Buffer::<u64>::new(&gpu.device, usize::MAX / 8).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    let error = Buffer::<u64>::new(&gpu.device, usize::MAX).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
}

#[test]
fn a_kernel_reads_and_writes_pinned_memory() {
    let Some(gpu) = gpu("a_kernel_reads_and_writes_pinned_memory") else {
        return;
    };
    let mut values = PinnedBuffer::<u64>::zeroed(&gpu.device, 64).unwrap();
    values.iter_mut().zip(0..).for_each(|(value, i)| *value = i);
    let function = gpu.function("square");
    // SAFETY: an entry per thread; the host waits before it looks.
    unsafe {
        Launch::new(&function)
            .block(64)
            .launch(&gpu.stream, (&values,))
    }
    .unwrap();
    gpu.stream.synchronize().unwrap();
    assert!(values.iter().copied().eq((0..64).map(|i| i * i)));
}

#[test]
fn events_order_streams_and_keep_time() {
    let Some(gpu) = gpu("events_order_streams_and_keep_time") else {
        return;
    };
    let second = Stream::with_priority(&gpu.device, Priority::High).unwrap();
    let (start, end) = (
        Event::new(&gpu.device).unwrap(),
        Event::new(&gpu.device).unwrap(),
    );
    let (spin, fill) = (gpu.function("spin"), gpu.function("fill"));
    let buffer = Buffer::<u32>::zeroed(&gpu.stream, 1).unwrap();
    let cycles = 20_000_000u64; // About 10 ms.
    gpu.stream.record(&start).unwrap();
    // SAFETY: `spin` accesses no memory; `fill` writes one element.
    unsafe {
        Launch::new(&spin).launch(&gpu.stream, (cycles,)).unwrap();
        Launch::new(&fill)
            .launch(&gpu.stream, (&buffer, 9u32))
            .unwrap();
    }
    gpu.stream.record(&end).unwrap();
    second.wait(&end).unwrap();
    assert_eq!(buffer.to_vec(&second).unwrap(), [9]);
    assert!(end.is_done().unwrap() && gpu.stream.is_done().unwrap());
    let least = cycles as f64 / (f64::from(gpu.device.properties().clock_khz) * 1e3);
    let took = end.since(&start).unwrap();
    assert!(
        took >= Duration::from_secs_f64(0.9 * least) && took < Duration::from_secs(10),
        "{took:?}"
    );
    // Without timing there is an order, but no time.
    let untimed = Event::without_timing(&gpu.device).unwrap();
    gpu.stream.record(&untimed).unwrap();
    assert!(untimed.since(&start).is_err());
}

/// As of other libraries: streams that they made, memory by its address, and a thread whose context stays theirs.
#[test]
fn streams_and_memory_of_others_are_borrowed() {
    let Some(gpu) = gpu("streams_and_memory_of_others_are_borrowed") else {
        return;
    };
    let (device, values) = (gpu.device, (0..1000u32).collect::<Vec<_>>());
    let theirs = Buffer::from_slice(&gpu.stream, &values).unwrap();
    // SAFETY: the legacy default stream, the thread's, and one that lives on.
    let streams = [0, 1, 2, gpu.stream.handle() as usize]
        .map(|handle| unsafe { Stream::borrowed(&device, handle as _) });
    for stream in &streams {
        let copy = Buffer::new(&device, 10).unwrap();
        // SAFETY: a part of `theirs`, which lives on.
        let part = unsafe { BufferRef::<u32>::from_raw(theirs.address() + 40, 10) };
        stream.copy(&copy, part).unwrap();
        assert_eq!(copy.to_vec(stream).unwrap(), values[10..20]);
    }
    assert_eq!(streams[3].id().unwrap(), gpu.stream.id().unwrap());
    assert_eq!(streams[0].id().unwrap(), streams[1].id().unwrap());
    drop(streams);
    // It was not destroyed with them.
    assert_eq!(theirs.to_vec(&gpu.stream).unwrap(), values);
    let number = Stream::new(&device).unwrap().id().unwrap();
    assert_ne!(Stream::new(&device).unwrap().id().unwrap(), number);

    assert_eq!(Device::of_address(theirs.address() + 4).unwrap(), device);
    assert!(Device::of_address(8).is_err());
    // SAFETY: a stream that lives on.
    let of_stream = unsafe { Device::of_stream(gpu.stream.handle()) };
    assert_eq!(of_stream.unwrap(), device);

    std::thread::spawn(move || {
        let current = || {
            let mut context = std::ptr::null_mut();
            // SAFETY: writes one handle; the driver is there.
            unsafe { cudarc::driver::sys::cuCtxGetCurrent(&mut context) };
            context
        };
        assert!(current().is_null());
        assert_eq!(Device::current().unwrap(), None);
        {
            let _entered = device.enter().unwrap();
            assert_eq!(Device::current().unwrap(), Some(device));
            assert!(!current().is_null());
            let _again = device.enter().unwrap();
            Device::get(Device::count().unwrap() - 1)
                .unwrap()
                .bind()
                .unwrap();
        }
        assert!(current().is_null());
    })
    .join()
    .unwrap();
}

#[test]
fn a_graph_repeats_what_was_recorded() {
    let Some(gpu) = gpu("a_graph_repeats_what_was_recorded") else {
        return;
    };
    let values = Buffer::<u64>::from_slice(&gpu.stream, &[2, 3]).unwrap();
    let saved = Buffer::<u64>::zeroed(&gpu.stream, 2).unwrap();
    let square = gpu.function("square");
    let launch = Launch::new(&square).block(2).prepare().unwrap();
    let graph = Graph::capture(&gpu.stream, |stream| -> Result<(), Error> {
        stream.copy(&saved, &values)?;
        // SAFETY: two threads, two elements, alive until the end of this test.
        unsafe { launch.launch(stream, (&values,)) }?;
        Ok(())
    })
    .unwrap();
    assert_eq!(graph.len(), 2);
    assert_eq!(
        values.to_vec(&gpu.stream).unwrap(),
        [2, 3],
        "recorded, not run"
    );
    for _ in 0..3 {
        // SAFETY: the buffers and the module are alive.
        unsafe { graph.launch(&gpu.stream) }.unwrap();
    }
    assert_eq!(values.to_vec(&gpu.stream).unwrap(), [256, 6561]);
    assert_eq!(saved.to_vec(&gpu.stream).unwrap(), [16, 81]);
}

#[test]
fn a_capture_takes_no_host_memory_and_ends_in_any_case() {
    let Some(gpu) = gpu("a_capture_takes_no_host_memory_and_ends_in_any_case") else {
        return;
    };
    let buffer = Buffer::<u32>::from_slice(&gpu.stream, &[1, 2]).unwrap();
    let mut host = [0; 2];
    let result = Graph::capture(&gpu.stream, |stream| stream.read(&mut host, &buffer));
    assert!(result.unwrap_err().to_string().contains("CAPTURE"));
    let result = Graph::capture(&gpu.stream, |stream| {
        stream.scope(|copies| copies.write(&buffer, &[3, 4]))
    });
    assert!(result.is_err());
    let panicked = std::panic::catch_unwind(|| {
        Graph::capture(&gpu.stream, |_| -> Result<(), Error> {
            panic!("inside a capture")
        })
    });
    assert!(panicked.is_err());
    assert!(!gpu.stream.is_capturing().unwrap());
    assert_eq!(buffer.to_vec(&gpu.stream).unwrap(), [1, 2]);
}

#[test]
fn streams_and_kernels_of_two_gpus_are_told_apart() {
    let Some(gpu) = gpu("streams_and_kernels_of_two_gpus_are_told_apart") else {
        return;
    };
    let Ok(second) = Device::get(1) else {
        skip::skip_gpu(
            "streams_and_kernels_of_two_gpus_are_told_apart",
            2,
            "one GPU",
        );
        return;
    };
    let stream = Stream::new(&second).unwrap();
    let buffer = Buffer::<u32>::zeroed(&gpu.stream, 1).unwrap();
    let fill = gpu.function("fill");
    // SAFETY: refused before anything is launched.
    let error = unsafe { Launch::new(&fill).launch(&stream, (&buffer, 1u32)) }.unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::WrongDevice {
                kernel_device: 0,
                stream_device: 1,
                ..
            }
        ),
        "{error}"
    );
    if gpu.device.link(&second).unwrap() != Link::None {
        gpu.device.enable_peer_access(&second).unwrap();
        gpu.device.enable_peer_access(&second).unwrap();
        let far = Buffer::<u32>::from_slice(&stream, &[5]).unwrap();
        gpu.stream.copy(&buffer, &far).unwrap();
        assert_eq!(buffer.to_vec(&gpu.stream).unwrap(), [5]);
    }
}

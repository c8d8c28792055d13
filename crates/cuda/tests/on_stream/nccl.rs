//! NCCL under the collectives in stream order.

use crosswarp_cuda::skip::skip_tool;
use crosswarp_cuda::{Device, DeviceWorld, DeviceWorldError, Graph, Nccl, NcclError, Stream};
use crosswarp_shmem::Pe;

use crate::case::{Case, value};
use crate::support::{LIMIT, as_process, as_processes, on_all_gpus, on_gpus_of_hosts, on_one_gpu};
use crate::teams;

/// The collectives with NCCL for the larger ones. Every result is exact, so the order of sums does not
/// show; lengths lie on both sides of the limit, and the bitwise operations are never NCCL's.
fn suite(pe: &Pe, device: Device) {
    let stream = Stream::new(&device).unwrap();
    let mut world = DeviceWorld::new(pe, device, Some(256 << 20), Some(LIMIT)).unwrap();
    for min_bytes in [1, 2048] {
        world.use_nccl(min_bytes).unwrap();
        Case::of_all(&world, &stream).collectives();
    }
    graph(&Case::of_all(&world, &stream));
    // Not the team of all.
    teams(pe, &world, &stream);
}

/// NCCL's collectives recorded into a graph beside a kernel of ours, and run three times.
fn graph(case: &Case<'_>) {
    let (world, stream, pe) = (case.world, case.stream, case.pe);
    let (len, pes) = (60_000, pe.n_pes());
    let heap = world.heap();
    let (source, sums) = (heap.alloc::<f32>(len).unwrap(), heap.alloc(len).unwrap());
    let all = heap.alloc::<f32>(len * pes).unwrap();
    let everyone = world.everyone();
    let record = |stream: &Stream| -> Result<(), DeviceWorldError> {
        world.sum_on_stream(stream, everyone, &sums, &source)?;
        world.fcollect_on_stream(stream, everyone, &all, &sums)?;
        world.barrier_on_stream(stream, everyone)
    };
    // The first of each connects the GPUs, which can not be recorded.
    record(stream).unwrap();
    world.synchronize(stream).unwrap();
    pe.barrier().unwrap();
    let graph = Graph::capture(stream, record).unwrap();
    for round in 0..3 {
        let of = |pe: usize, i: usize| value(pe, i + round) as f32;
        let mine: Vec<f32> = (0..len).map(|i| of(case.me(), i)).collect();
        case.fill(&source, &mine);
        pe.barrier().unwrap();
        // SAFETY: heap, communicator and team outlive the run; all PEs launch.
        unsafe { graph.launch(stream) }.unwrap();
        let seen = case.seen("graph with NCCL", &all, len * pes);
        let sum = |i| (0..pes).map(|pe| of(pe, i)).sum::<f32>();
        let expected: Vec<f32> = (0..len * pes).map(|i| sum(i % len)).collect();
        case.check("graph with NCCL", &seen, &expected);
    }
    pe.barrier().unwrap();
}

/// Whether NCCL can be used here; if not, says why.
fn usable(test: &str) -> bool {
    let reason = match (Nccl::get(), std::env::var("NCCL_NVLS_ENABLE").as_deref()) {
        (Err(reason), _) => reason.to_string(),
        (_, Ok("0")) => return true,
        _ => "NCCL_NVLS_ENABLE is not 0".into(),
    };
    skip_tool(test, reason);
    false
}

/// Refused on every PE, and the kernels go on as before.
#[test]
fn needs_a_gpu_per_pe() {
    on_one_gpu("needs_a_gpu_per_pe", 2, |pe, device| {
        let stream = Stream::new(&device).unwrap();
        let mut world = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
        let refused = world.use_nccl(1);
        assert!(
            matches!(
                refused,
                Err(DeviceWorldError::Nccl(NcclError::SharedGpu {
                    pe: 0,
                    other: 1
                }))
            ),
            "{refused:?}"
        );
        let sums = world.heap().alloc::<u32>(1).unwrap();
        let mine = world.heap().alloc::<u32>(1).unwrap();
        world.put(&stream, &mine, &[5], pe.my_pe()).unwrap();
        let everyone = world.everyone();
        world
            .sum_on_stream(&stream, everyone, &sums, &mine)
            .unwrap();
        world.synchronize(&stream).unwrap();
        let mut sum = [0];
        world.get(&stream, &mut sum, &sums, pe.my_pe()).unwrap();
        assert_eq!(sum, [10]);
        pe.barrier().unwrap();
    });
}

/// Where NCCL can not be used for another reason, the error says which, on every PE.
fn refused(pe: &Pe, device: Device) {
    let mut world = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
    let refused = world.use_nccl(1);
    assert!(
        matches!(
            refused,
            Err(DeviceWorldError::Nccl(
                NcclError::NotFound { .. } | NcclError::Multicast { .. }
            ))
        ),
        "{refused:?}"
    );
    pe.barrier().unwrap();
}

#[test]
fn gpus_as_threads() {
    let body = match usable("nccl::gpus_as_threads") {
        true => suite,
        false => refused,
    };
    on_all_gpus("nccl::gpus_as_threads", body);
}

#[test]
fn gpus_of_hosts() {
    if usable("nccl::gpus_of_hosts") {
        on_gpus_of_hosts("nccl::gpus_of_hosts", suite);
    }
}

#[test]
fn gpus_as_processes() {
    if usable("nccl::gpus_as_processes") {
        let program = "nccl::pe_of_a_process_world";
        as_processes("nccl::gpus_as_processes", program, 2);
    }
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn pe_of_a_process_world() {
    as_process(suite);
}

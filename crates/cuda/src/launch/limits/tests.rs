use super::*;
use crate::arch::Arch;
use crate::launch::LaunchError;

/// An H200, as its driver describes it.
pub(crate) fn hopper() -> DeviceProperties {
    DeviceProperties {
        name: "NVIDIA H200".into(),
        pci: "0000:01:00.0".into(),
        arch: Arch::new(9, 0),
        memory: 140 << 30,
        multiprocessors: 132,
        clock_khz: 1_980_000,
        l2: 60 << 20,
        warp_size: 32,
        max_threads_per_block: 1024,
        max_block: [1024, 1024, 64],
        max_grid: [2_147_483_647, 65_535, 65_535],
        max_threads_per_multiprocessor: 2048,
        max_blocks_per_multiprocessor: 32,
        registers_per_multiprocessor: 65_536,
        shared_per_multiprocessor: 233_472,
        shared_per_block: 49_152,
        shared_per_block_optin: 232_448,
        reserved_shared_per_block: 1024,
        cooperative_launch: true,
        cluster_launch: true,
        virtual_memory: true,
        posix_handles: true,
        fabric_handles: false,
    }
}

fn kernel() -> FunctionAttributes {
    FunctionAttributes {
        max_threads: 512,
        registers: 96,
        static_shared: 1000,
        dynamic_shared: 48_152,
        local: 0,
        constant: 0,
    }
}

fn shape(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Shape {
    Shape {
        grid: grid.into(),
        block: block.into(),
        cluster: None,
        dynamic_shared: 0,
        cooperative: false,
    }
}

fn refusal(shape: Shape) -> Refusal {
    check(&hopper(), &kernel(), &shape).unwrap_err()
}

#[test]
fn a_launch_at_every_limit_passes() {
    for (grid, block) in [
        (
            Dim3 {
                x: 2_147_483_647,
                y: 65_535,
                z: 65_535,
            },
            Dim3 { x: 512, y: 1, z: 1 },
        ),
        (Dim3::from(1), Dim3 { x: 1, y: 512, z: 1 }),
        (Dim3::from(1), Dim3 { x: 8, y: 1, z: 64 }),
    ] {
        assert_eq!(check(&hopper(), &kernel(), &shape(grid, block)), Ok(()));
    }
    let shared = Shape {
        dynamic_shared: 232_448 - 1000,
        cooperative: true,
        ..shape(1, 1)
    };
    assert_eq!(check(&hopper(), &kernel(), &shared), Ok(()));
    let cluster = Shape {
        cluster: Some((2, 3).into()),
        ..shape((4, 9, 5), 64)
    };
    assert_eq!(check(&hopper(), &kernel(), &cluster), Ok(()));
}

#[test]
fn one_beyond_each_limit_is_refused_by_its_name() {
    assert_eq!(
        refusal(shape(1u32 << 31, 1)),
        Refusal::Limit(Limit::Grid(0), 1 << 31, (1 << 31) - 1)
    );
    assert_eq!(
        refusal(shape((1, 65_536), 1)),
        Refusal::Limit(Limit::Grid(1), 65_536, 65_535)
    );
    assert_eq!(
        refusal(shape((1, 1, 65_536), 1)),
        Refusal::Limit(Limit::Grid(2), 65_536, 65_535)
    );
    assert_eq!(
        refusal(shape(1, 1025)),
        Refusal::Limit(Limit::Block(0), 1025, 1024)
    );
    assert_eq!(
        refusal(shape(1, (1, 1, 65))),
        Refusal::Limit(Limit::Block(2), 65, 64)
    );
    assert_eq!(
        refusal(shape(1, (32, 33))),
        Refusal::Limit(Limit::Threads, 1056, 1024)
    );
    assert_eq!(
        refusal(shape(1, 513)),
        Refusal::Limit(Limit::KernelThreads, 513, 512)
    );
    let shared = Shape {
        dynamic_shared: 232_448 - 999,
        ..shape(1, 1)
    };
    assert_eq!(
        refusal(shared),
        Refusal::Limit(Limit::Shared, 232_449, 232_448)
    );
    let overflow = Shape {
        dynamic_shared: u32::MAX,
        ..shape(1, 1)
    };
    assert_eq!(
        refusal(overflow),
        Refusal::Limit(Limit::Shared, (1 << 32) + 999, 232_448)
    );
    assert_eq!(
        refusal(shape(1, u32::MAX)),
        Refusal::Limit(Limit::Block(0), u64::from(u32::MAX), 1024)
    );
}

#[test]
fn empty_and_uneven_sizes_are_refused() {
    assert_eq!(refusal(shape(0, 1)), Refusal::Empty("grid"));
    assert_eq!(refusal(shape(1, (1, 0))), Refusal::Empty("block"));
    let cluster = |size: (u32, u32, u32), grid: (u32, u32, u32)| Shape {
        cluster: Some(size.into()),
        ..shape(grid, 1)
    };
    assert_eq!(
        refusal(cluster((1, 1, 0), (1, 1, 1))),
        Refusal::Empty("cluster")
    );
    assert_eq!(
        refusal(cluster((1, 2, 1), (4, 5, 1))),
        Refusal::Uneven(1, 5, 2)
    );
}

#[test]
fn what_a_gpu_can_not_do_is_refused() {
    let old = DeviceProperties {
        cluster_launch: false,
        cooperative_launch: false,
        ..hopper()
    };
    let cluster = Shape {
        cluster: Some(1.into()),
        ..shape(1, 1)
    };
    assert_eq!(
        check(&old, &kernel(), &cluster),
        Err(Refusal::Unsupported("clusters"))
    );
    let cooperative = Shape {
        cooperative: true,
        ..shape(1, 1)
    };
    assert_eq!(
        check(&old, &kernel(), &cooperative),
        Err(Refusal::Unsupported("cooperative launches"))
    );
    // Without opting in there is only what every block may have.
    let small = DeviceProperties {
        shared_per_block_optin: 0,
        ..hopper()
    };
    let shared = Shape {
        dynamic_shared: 48_153,
        ..shape(1, 1)
    };
    assert_eq!(
        check(&small, &kernel(), &shared),
        Err(Refusal::Limit(Limit::Shared, 49_153, 49_152))
    );
}

#[test]
fn the_line_says_which_limit_and_its_value() {
    let error = LaunchError::Limit {
        kernel: "sweep".into(),
        limit: Limit::Shared,
        value: 232_449,
        most: 232_448,
    };
    assert_eq!(
        error.to_string(),
        "launch of sweep: 232449 bytes of static and dynamic shared memory of a block, the limit is 232448"
    );
    let error = LaunchError::Uneven {
        kernel: "sweep".into(),
        axis: 1,
        grid: 5,
        cluster: 2,
    };
    assert_eq!(
        error.to_string(),
        "launch of sweep: 5 blocks of the grid are no multiple of 2 blocks of a cluster in y"
    );
}

#[test]
fn counts_do_not_overflow() {
    let most = u32::MAX;
    assert_eq!(Dim3::from((most, most, most)).count(), u64::MAX);
    assert_eq!(Dim3::from((2, 3, 4)).count(), 24);
}

//! What theoretical occupancy answers beside the number: the waves of a grid, where clusters fit, what
//! launch bounds cost in registers, how much less of a resource lets one more block in, and curves.
//!
//! The rule itself, and the limits of each compute capability, are
//! [`crosswarp_cuda::Occupancy`] and [`crosswarp_cuda::ArchLimits`].

pub use crosswarp_cuda::{ArchLimits, BlockNeeds, LimitedBy, Occupancy};

/// The most registers a thread may have if `blocks` blocks are to be resident; `None` if that many
/// never are, for another reason or at any number of registers.
///
/// With `needs.threads` and `blocks` from `__launch_bounds__(threads, blocks)` this is the cap that
/// the compiler has to keep, by spilling if it must.
///
/// ```
/// use crosswarp_lab::models::occupancy::{ArchLimits, BlockNeeds, most_registers};
/// let hopper = ArchLimits::of("9.0".parse().unwrap()).unwrap();
/// let needs = BlockNeeds { threads: 256, registers: 62, shared: 0 };
/// assert_eq!(most_registers(hopper, &needs, 8), Some(32));
/// assert_eq!(most_registers(hopper, &needs, 9), None, "2304 threads");
/// ```
pub fn most_registers(limits: &ArchLimits, needs: &BlockNeeds, blocks: u32) -> Option<u32> {
    most(limits.registers_per_thread, |registers| {
        Occupancy::new(
            limits,
            &BlockNeeds {
                registers,
                ..*needs
            },
        )
        .blocks
            >= blocks
    })
}

/// The most shared memory a block may have, in bytes, if `blocks` blocks are to be resident; `None`
/// if that many never are.
pub fn most_shared(limits: &ArchLimits, needs: &BlockNeeds, blocks: u32) -> Option<u32> {
    most(limits.shared_per_block, |shared| {
        Occupancy::new(limits, &BlockNeeds { shared, ..*needs }).blocks >= blocks
    })
}

/// The largest of `0..=top` for which `fits`, which holds up to some value and not beyond.
fn most(top: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    if !fits(0) {
        return None;
    }
    let (mut good, mut bad) = (0, top + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

/// What a curve runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Threads of a block, whole warps.
    Threads,
    /// Registers of a thread.
    Registers,
    /// Shared memory of a block, KiB by KiB.
    Shared,
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurvePoint {
    /// Threads, registers or bytes.
    pub x: u32,
    /// With that many.
    pub occupancy: Occupancy,
}

/// The occupancy of blocks that need `needs`, but for what `axis` runs over.
pub fn curve(limits: &ArchLimits, needs: &BlockNeeds, axis: Axis) -> Vec<CurvePoint> {
    let (first, last, step) = match axis {
        Axis::Threads => (32, limits.threads_per_block, 32),
        Axis::Registers => (1, limits.registers_per_thread, 1),
        Axis::Shared => (0, limits.shared_per_block, 1024),
    };
    let point = |x: u32| {
        let needs = match axis {
            Axis::Threads => BlockNeeds {
                threads: x,
                ..*needs
            },
            Axis::Registers => BlockNeeds {
                registers: x,
                ..*needs
            },
            Axis::Shared => BlockNeeds {
                shared: x,
                ..*needs
            },
        };
        CurvePoint {
            x,
            occupancy: Occupancy::new(limits, &needs),
        }
    };
    (first..=last).step_by(step).map(point).collect()
}

/// Where clusters fit: all blocks of one run on the SMs of one GPU processing cluster (GPC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clusters {
    /// Blocks of a cluster.
    pub size: u32,
    /// Clusters resident at once on the whole GPU.
    pub resident: u32,
    /// Block places that no cluster can use, since those left over in a GPC are too few.
    pub idle_blocks: u32,
}

/// Clusters of `size` blocks on a GPU with `gpcs` SMs in each GPC and room for `blocks` blocks on an SM.
///
/// GPUs of one model differ in the SMs that are switched off, so the SMs of each GPC are a property of
/// the card. With all SMs in one GPC the result is an upper bound.
pub fn clusters(blocks: u32, gpcs: &[u32], size: u32) -> Clusters {
    let size = size.max(1);
    let places = |sms: &u32| u128::from(*sms) * u128::from(blocks);
    let resident: u128 = gpcs.iter().map(|sms| places(sms) / u128::from(size)).sum();
    let all: u128 = gpcs.iter().map(places).sum();
    let narrow = |count: u128| u32::try_from(count).unwrap_or(u32::MAX);
    Clusters {
        size,
        resident: narrow(resident),
        idle_blocks: narrow(all - resident * u128::from(size)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(major: u32, minor: u32) -> &'static ArchLimits {
        ArchLimits::of(crosswarp_cuda::Arch::new(major, minor)).unwrap()
    }

    const NEEDS: BlockNeeds = BlockNeeds {
        threads: 256,
        registers: 62,
        shared: 0,
    };

    #[test]
    fn launch_bounds_cap_registers_as_the_programming_guide_says() {
        // 65,536 registers over the threads asked for, rounded down to the unit of 8 per thread.
        for (threads, blocks, cap) in [(256, 8, 32), (256, 4, 64), (1024, 1, 64), (1024, 2, 32)] {
            let needs = BlockNeeds { threads, ..NEEDS };
            assert_eq!(most_registers(limits(8, 0), &needs, blocks), Some(cap));
        }
        assert_eq!(
            most_registers(
                limits(8, 0),
                &BlockNeeds {
                    threads: 128,
                    ..NEEDS
                },
                1
            ),
            Some(255)
        );
    }

    #[test]
    fn shared_memory_for_one_more_block() {
        // 164 KiB in two blocks: 82 KiB each, less the KiB the system reserves.
        assert_eq!(most_shared(limits(8, 0), &NEEDS, 2), Some(81 * 1024));
        assert_eq!(most_shared(limits(9, 0), &NEEDS, 1), Some(232_448));
        assert_eq!(
            most_shared(limits(9, 0), &NEEDS, 5),
            None,
            "registers allow 4"
        );
    }

    #[test]
    fn clusters_do_not_cross_gpcs() {
        // An H100 with 132 SMs: one block an SM, clusters of 16 fit once in a GPC of 16 or 18 SMs.
        let gpcs = [16, 16, 16, 16, 16, 16, 18, 18];
        let of_16 = clusters(1, &gpcs, 16);
        assert_eq!((of_16.resident, of_16.idle_blocks), (8, 4));
        assert_eq!(clusters(1, &gpcs, 2).resident, 66);
        assert_eq!(clusters(0, &gpcs, 2).resident, 0);
        assert_eq!(clusters(u32::MAX, &[u32::MAX; 3], 1).resident, u32::MAX);
    }

    #[test]
    fn curves_cover_their_range() {
        let threads = curve(limits(9, 0), &NEEDS, Axis::Threads);
        assert_eq!((threads[0].x, threads[31].x, threads.len()), (32, 1024, 32));
        let registers = curve(limits(9, 0), &NEEDS, Axis::Registers);
        assert_eq!(
            registers[61].occupancy,
            Occupancy::new(limits(9, 0), &NEEDS)
        );
        assert_eq!(curve(limits(9, 0), &NEEDS, Axis::Shared).len(), 228);
    }

    proptest! {
        #[test]
        fn caps_are_the_last_that_fit(
            row in 0..14usize, warps in 1..=32u32, blocks in 1..=32u32, shared in 0..=100_000u32,
        ) {
            let limits = &ArchLimits::all()[row];
            let needs = BlockNeeds { threads: 32 * warps, registers: 16, shared };
            let fits = |registers, shared| {
                let needs = BlockNeeds { registers, shared, ..needs };
                Occupancy::new(limits, &needs).blocks >= blocks
            };
            match most_registers(limits, &needs, blocks) {
                Some(cap) => {
                    prop_assert!(fits(cap, shared));
                    prop_assert!(!fits(cap + 1, shared));
                }
                None => prop_assert!(!fits(0, shared)),
            }
            if let Some(most) = most_shared(limits, &needs, blocks) {
                prop_assert!(fits(16, most));
                prop_assert!(!fits(16, most + 1));
            }
        }

        #[test]
        fn curves_fall_with_registers_and_shared_memory(row in 0..14usize, warps in 1..=32u32) {
            let limits = &ArchLimits::all()[row];
            let needs = BlockNeeds { threads: 32 * warps, registers: 32, shared: 0 };
            for axis in [Axis::Registers, Axis::Shared] {
                let points = curve(limits, &needs, axis);
                prop_assert!(points.windows(2).all(|p| p[1].occupancy.blocks <= p[0].occupancy.blocks));
            }
        }
    }
}

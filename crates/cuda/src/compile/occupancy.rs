//! Theoretical occupancy: how many blocks of a kernel fit on one SM, and what stops more.
//!
//! The limits per compute capability and their sources are in `data/occupancy_limits.csv`. The rule
//! agrees with NVIDIA's `cuda_occupancy.h`: registers are given to warps in units, and warps belong
//! to one of the SM's four partitions for good.

use std::sync::OnceLock;

use crate::arch::Arch;

/// What an SM of one compute capability has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchLimits {
    /// The compute capability.
    pub arch: Arch,
    /// Most threads of a block.
    pub threads_per_block: u32,
    /// Most warps resident on an SM.
    pub warps: u32,
    /// Most blocks resident on an SM.
    pub blocks: u32,
    /// 32-bit registers of an SM.
    pub registers: u32,
    /// Most registers of a thread.
    pub registers_per_thread: u32,
    /// Registers are given to a warp in units of so many.
    pub register_unit: u32,
    /// Partitions of an SM, each with its share of the registers.
    pub partitions: u32,
    /// Shared memory of an SM, bytes.
    pub shared: u32,
    /// Most shared memory of a block, bytes.
    pub shared_per_block: u32,
    /// Shared memory the system takes from each block, bytes.
    pub reserved_shared: u32,
    /// Shared memory is given to a block in units of so many bytes.
    pub shared_unit: u32,
}

const LANES: u32 = 32;
const TABLE: &str = include_str!("../../data/occupancy_limits.csv");

impl ArchLimits {
    /// The limits of `arch`; `None` for one the table does not have, or not wholly.
    pub fn of(arch: Arch) -> Option<&'static Self> {
        Self::all().iter().find(|limits| limits.arch == arch)
    }

    /// Every compute capability of the table, ascending.
    pub fn all() -> &'static [Self] {
        static PARSED: OnceLock<Vec<ArchLimits>> = OnceLock::new();
        PARSED.get_or_init(|| parse(TABLE))
    }
}

/// The complete rows of the table.
fn parse(table: &str) -> Vec<ArchLimits> {
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        // Only the last column, the source, is quoted and holds commas.
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| {
            fields
                .get(columns.iter().position(|column| *column == name)?)
                .copied()
        };
        let number = |name: &str| field(name)?.parse::<u32>().ok();
        Some(ArchLimits {
            arch: field("cc")?.parse().ok()?,
            threads_per_block: number("max_threads_per_block")?,
            warps: number("max_warps_per_sm")?,
            blocks: number("max_blocks_per_sm")?,
            registers: number("regs_per_sm")?,
            registers_per_thread: number("max_regs_per_thread")?,
            register_unit: number("reg_alloc_unit_regs")?,
            partitions: number("subpartitions_per_sm")?,
            shared: number("smem_per_sm_bytes")?,
            shared_per_block: number("smem_per_block_optin_bytes")?,
            reserved_shared: number("smem_reserved_per_block_bytes")?,
            shared_unit: number("smem_alloc_unit_bytes")?,
        })
    };
    lines.filter_map(row).collect()
}

/// What one block needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockNeeds {
    /// Threads.
    pub threads: u32,
    /// Registers of each thread.
    pub registers: u32,
    /// Static and dynamic shared memory, bytes, without what the system reserves.
    pub shared: u32,
}

/// What stops more blocks from being resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    /// Warps of the SM.
    Warps,
    /// Registers of the SM.
    Registers,
    /// Shared memory of the SM.
    Shared,
    /// The number of blocks an SM keeps track of.
    Blocks,
}

/// Blocks of one kernel on one SM.
///
/// ```
/// use crosswarp_cuda::{Arch, ArchLimits, BlockNeeds, LimitedBy, Occupancy};
/// let volta = ArchLimits::of(Arch::new(7, 0)).unwrap();
/// let occupancy = Occupancy::new(volta, &BlockNeeds { threads: 256, registers: 62, shared: 0 });
/// assert_eq!((occupancy.blocks, occupancy.limited_by), (4, LimitedBy::Registers));
/// assert_eq!(occupancy.fraction(), 0.5);
/// assert_eq!(occupancy.waves(4096, 80), 12.8);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks that fit; 0 if not even one does.
    pub blocks: u32,
    /// Blocks that would fit if only warps counted.
    pub by_warps: u32,
    /// Blocks that would fit if only registers counted; at most `by_blocks`.
    pub by_registers: u32,
    /// Blocks that would fit if only shared memory counted; at most `by_blocks`.
    pub by_shared: u32,
    /// Blocks the SM keeps track of.
    pub by_blocks: u32,
    /// The first of the limits that is the lowest, in the order warps, blocks, registers, shared
    /// memory.
    pub limited_by: LimitedBy,
    /// Warps of `blocks` blocks.
    pub warps: u32,
    /// Warps the SM could hold.
    pub max_warps: u32,
}

impl Occupancy {
    /// Blocks with `needs` on an SM with `limits`.
    pub fn new(limits: &ArchLimits, needs: &BlockNeeds) -> Self {
        let warps = needs.threads.div_ceil(LANES).max(1);
        let threads_fit = (1..=limits.threads_per_block).contains(&needs.threads);
        let by_warps = if threads_fit { limits.warps / warps } else { 0 };

        let by_registers = {
            let per_warp = (u64::from(LANES) * u64::from(needs.registers.max(1)))
                .next_multiple_of(limits.register_unit.into());
            let partitions = u64::from(limits.partitions);
            let whole = per_warp.saturating_mul(u64::from(warps).next_multiple_of(partitions));
            let fits = needs.registers <= limits.registers_per_thread
                && whole <= u64::from(limits.registers);
            let per_partition = u64::from(limits.registers) / partitions / per_warp;
            if fits {
                partitions * per_partition / u64::from(warps)
            } else {
                0
            }
        };

        let by_shared = {
            let taken = u64::from(needs.shared) + u64::from(limits.reserved_shared);
            match taken.next_multiple_of(limits.shared_unit.into()) {
                _ if needs.shared > limits.shared_per_block => 0,
                0 => u64::from(limits.blocks),
                taken => u64::from(limits.shared) / taken,
            }
        };

        let by_blocks = limits.blocks;
        let at_most = |blocks: u64| u32::try_from(blocks).unwrap_or(u32::MAX).min(by_blocks);
        let (by_registers, by_shared) = (at_most(by_registers), at_most(by_shared));
        let all = [
            (by_warps, LimitedBy::Warps),
            (by_blocks, LimitedBy::Blocks),
            (by_registers, LimitedBy::Registers),
            (by_shared, LimitedBy::Shared),
        ];
        // The first of equals, as documented.
        let (blocks, limited_by) = all
            .into_iter()
            .reduce(|a, b| if b.0 < a.0 { b } else { a })
            .unwrap_or(all[0]);
        Self {
            blocks,
            by_warps,
            by_registers,
            by_shared,
            by_blocks,
            limited_by,
            warps: blocks * warps,
            max_warps: limits.warps,
        }
    }

    /// Resident warps as a share of those the SM could hold, 0 to 1.
    pub fn fraction(&self) -> f64 {
        f64::from(self.warps) / f64::from(self.max_warps)
    }

    /// How many times over a grid of `grid` blocks fills `multiprocessors` SMs; infinite if not even
    /// one block fits.
    pub fn waves(&self, grid: u64, multiprocessors: u32) -> f64 {
        grid as f64 / (f64::from(self.blocks) * f64::from(multiprocessors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on(major: u32, minor: u32, threads: u32, registers: u32, shared: u32) -> Occupancy {
        Occupancy::new(
            ArchLimits::of(Arch::new(major, minor)).unwrap(),
            &BlockNeeds {
                threads,
                registers,
                shared,
            },
        )
    }

    #[test]
    fn the_table_is_read_whole() {
        let archs: Vec<u32> = ArchLimits::all()
            .iter()
            .map(|limits| limits.arch.number())
            .collect();
        assert_eq!(
            archs,
            [70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121],
            "10.7 has no complete row"
        );
        let hopper = ArchLimits::of(Arch::new(9, 0)).unwrap();
        assert_eq!(
            (
                hopper.warps,
                hopper.blocks,
                hopper.shared,
                hopper.shared_per_block
            ),
            (64, 32, 233_472, 232_448)
        );
        assert_eq!(
            (hopper.registers, hopper.register_unit, hopper.partitions),
            (65536, 256, 4)
        );
        assert_eq!(
            (
                hopper.reserved_shared,
                hopper.shared_unit,
                hopper.registers_per_thread
            ),
            (1024, 128, 255)
        );
    }

    #[test]
    fn the_published_example_comes_out() {
        let occupancy = on(7, 0, 256, 62, 0);
        let limits = (
            occupancy.by_blocks,
            occupancy.by_registers,
            occupancy.by_shared,
            occupancy.by_warps,
        );
        assert_eq!(limits, (32, 4, 32, 8));
        assert_eq!(occupancy.fraction(), 0.5);
        assert_eq!(format!("{:.2}", occupancy.waves(4096, 80)), "12.80");
    }

    #[test]
    fn each_limit_can_be_the_one() {
        assert_eq!(on(9, 0, 1024, 32, 0).limited_by, LimitedBy::Warps);
        assert_eq!(on(9, 0, 1024, 64, 0).limited_by, LimitedBy::Registers);
        assert_eq!(on(9, 0, 32, 16, 100_000).limited_by, LimitedBy::Shared);
        assert_eq!(on(9, 0, 32, 16, 0).limited_by, LimitedBy::Blocks);
        assert_eq!(on(9, 0, 32, 16, 232_448).blocks, 1);
    }

    #[test]
    fn what_does_not_fit_has_no_block() {
        assert_eq!(on(9, 0, 1024, 65, 0).blocks, 0, "66,560 registers");
        assert_eq!(on(9, 0, 1025, 16, 0).blocks, 0);
        assert_eq!(on(9, 0, 0, 16, 0).blocks, 0);
        assert_eq!(on(9, 0, 32, 256, 0).blocks, 0);
        assert_eq!(on(9, 0, 32, 16, 232_449).blocks, 0);
        assert_eq!(on(9, 0, u32::MAX, u32::MAX, u32::MAX).blocks, 0);
        assert_eq!(on(9, 0, 0, 16, 0).waves(1, 1), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn needing_more_never_fits_more(
            row in 0..14usize, threads in 1..=1024u32, registers in 0..=255u32, shared in 0..=240_000u32,
        ) {
            let limits = &ArchLimits::all()[row];
            let with = |registers, shared| Occupancy::new(limits, &BlockNeeds { threads, registers, shared });
            let base = with(registers, shared);
            prop_assert!(with(registers + 1, shared).blocks <= base.blocks);
            prop_assert!(with(registers, shared + 1).blocks <= base.blocks);
            prop_assert!(base.warps <= limits.warps && base.blocks <= limits.blocks);
            prop_assert!(u64::from(base.warps) * 32 * u64::from(registers) <= u64::from(limits.registers));
            prop_assert!(u64::from(base.blocks) * u64::from(shared + limits.reserved_shared) <= u64::from(limits.shared));
        }
    }
}

//! Teams of PEs as kernels know them.
#![allow(unsafe_code)] // A kernel argument.

use std::ffi::c_void;

use crate::launch::args::KernelArg;
use crate::layout::{
    SMALL_BYTES, STAGED_SETS, STAGED_VECTORS, TeamScratch, TeamState, UNIT_BYTES, VECTOR_BYTES,
    grid_state_bytes,
};
use crate::pe::heap::{DeviceHeap, DeviceSym, HeapError};

/// The part of the heap that the slots for large reductions may take, ...
const STAGE_SHARE: usize = 4;
/// ... and those of another team than that of all: there may be many.
const TEAM_STAGE_SHARE: usize = 16;
/// Blocks that those of another team are for, in a world of several hosts. A piece of a reduction is as large as what
/// travels at a time, 256 KiB.
const TEAM_STAGE_BLOCKS: usize = 8;
const _: () = assert!(TEAM_STAGE_BLOCKS * STAGED_VECTORS * VECTOR_BYTES == 256 << 10);

/// Most blocks that make a reduction of some kilobytes in units: of 64 KiB, ...
pub(super) const UNIT_BLOCKS: usize = 32;
/// ... or as many as have room here, ...
const SCRATCHES_OF_ALL: usize = 512 << 10;
/// ... and those of another team than that of all.
const SCRATCHES: usize = 128 << 10;

/// How many blocks that are in a team of `size` PEs. All but the first have a scratch of their own, in `bytes`.
fn unit_blocks(size: usize, bytes: usize) -> usize {
    match size {
        1 => 1,
        _ => (1 + bytes / scratch_bytes(size)).min(UNIT_BLOCKS),
    }
}

/// Where the state of the grids begins that the stream-ordered verbs launch for the team, behind the scratch.
fn grid_at(size: usize) -> usize {
    scratch_bytes(size).next_multiple_of(128)
}

/// Where the words begin by which the blocks of such a grid meet those of other PEs, behind its state. `blocks`: most of a
/// grid.
fn block_words_at(size: usize, blocks: usize) -> usize {
    (grid_at(size) + grid_state_bytes(blocks)).next_multiple_of(128)
}

/// Where the scratches begin of blocks that make a reduction in units, behind those words.
fn unit_scratches_at(size: usize, blocks: usize) -> usize {
    (block_words_at(size, blocks) + block_words_bytes(size, blocks)).next_multiple_of(128)
}

/// Bytes of these words: for each block the number of its last rendezvous, and a word of each PE.
fn block_words_bytes(size: usize, blocks: usize) -> usize {
    8 * (1 + size) * blocks
}

impl TeamState {
    /// `pe`'s part in the team of `size` PEs from `start` on, `stride` apart; `None` if it has none.
    fn of(pe: usize, start: usize, stride: usize, size: usize, scratch: u64) -> Option<Self> {
        let away = pe.checked_sub(start)?;
        let rank = away / stride;
        (away % stride == 0 && rank < size).then_some(Self {
            me: rank as i32,
            size: size as i32,
            start: start as i32,
            stride: stride as i32,
            scratch,
            stage: 0,
            stage_blocks: 0,
        })
    }
}

fn scratch_bytes(size: usize) -> usize {
    let slots = SMALL_BYTES / UNIT_BYTES * VECTOR_BYTES;
    size_of::<TeamScratch>() + (8 * size).next_multiple_of(128) + 2 * size * slots
}

/// Bytes of the slots for large reductions by `blocks` blocks, and of what goes before them.
fn stage_bytes(size: usize, blocks: usize) -> usize {
    let slots = STAGED_SETS * STAGED_VECTORS * VECTOR_BYTES;
    (8 * size * (1 + 2 * blocks)).next_multiple_of(128) + size * blocks * slots
}

/// PEs that meet in collectives: `start`, `start + stride`, … of a [`DeviceWorld`](crate::DeviceWorld), ranked in this
/// order.
///
/// A kernel takes it by value: pass `&DeviceTeam` for a parameter `cw::team`. A team's collectives
/// follow one another: all its PEs call the same ones in the same order, and no two of one PE run at
/// once (whichever kernels or streams they are in).
///
/// ```
/// use crosswarp_cuda::{Device, DeviceWorld, Stream};
/// use crosswarp_shmem::op;
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let pe = crosswarp_shmem::init()?;
///     let stream = Stream::new(&device)?;
///     let world = DeviceWorld::new(&pe, device, Some(64 << 20), None)?;
///     let (source, dest) = (world.heap().alloc::<f32>(3)?, world.heap().alloc::<f32>(3)?);
///     world.put(&stream, &source, &[1.0, 2.0, 3.0], pe.my_pe())?;
///     // A team of every second PE; the others get `None`.
///     if let Some(team) = world.team(0, 2, pe.n_pes().div_ceil(2))? {
///         world.reduce_on_stream(&stream, &team, &dest, &source, op::Sum)?;
///         world.synchronize(&stream)?;
///         let mut sums = [0.0; 3];
///         world.get(&stream, &mut sums, &dest, pe.my_pe())?;
///         assert_eq!(sums[2], 3.0 * team.n_pes() as f32);
///     }
///     pe.barrier()?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct DeviceTeam {
    state: TeamState,
    /// The heap of the world it is of.
    heap: u64,
    /// How many blocks make a reduction in units at most, each of `SMALL_BYTES`.
    unit_blocks: usize,
}

// SAFETY: points to `crosswarp::team`'s bytes in the handle.
unsafe impl KernelArg for &DeviceTeam {
    fn pointer(&self) -> *const c_void {
        (&raw const self.state).cast()
    }
    fn size(&self) -> usize {
        size_of::<TeamState>()
    }
}

impl DeviceTeam {
    /// This PE's rank in the team.
    pub fn my_pe(&self) -> usize {
        self.state.me as usize
    }

    /// Number of PEs.
    pub fn n_pes(&self) -> usize {
        self.state.size as usize
    }

    pub(crate) fn state(&self) -> TeamState {
        self.state
    }

    /// Heap offset of the counter and slots of the grids that the stream-ordered verbs launch.
    pub(crate) fn grid(&self) -> usize {
        self.state.scratch as usize + grid_at(self.n_pes())
    }

    /// Heap offset of the words of these grids' blocks. `multiprocessors`: of the largest GPU.
    pub(crate) fn block_words(&self, multiprocessors: usize) -> usize {
        self.state.scratch as usize + block_words_at(self.n_pes(), multiprocessors)
    }

    /// How many blocks make a reduction in units at most, each of `SMALL_BYTES`.
    pub(crate) fn unit_blocks(&self) -> usize {
        self.unit_blocks
    }

    /// Heap offset of the scratches of these blocks, but of the first, which has the team's. `multiprocessors`: of the
    /// largest GPU.
    pub(crate) fn unit_scratches(&self, multiprocessors: usize) -> usize {
        self.state.scratch as usize + unit_scratches_at(self.n_pes(), multiprocessors)
    }

    /// Whether it is a team of the world with this heap.
    pub(crate) fn is_of(&self, heap: &DeviceHeap<'_>) -> bool {
        self.heap == heap.id()
    }

    /// Panics if it is not.
    pub(crate) fn check(&self, heap: &DeviceHeap<'_>) {
        assert!(self.is_of(heap), "the team is of another device world");
    }

    /// The team of all PEs, with slots for large reductions by up to `blocks` blocks (the same number on
    /// every PE) unless they would take too much of the heap. Collective as `make`.
    pub(crate) fn of_all(
        heap: &DeviceHeap<'_>,
        blocks: usize,
        multiprocessors: usize,
    ) -> Result<Self, HeapError> {
        let size = heap.pe().n_pes();
        // Not given back: it lives as long as the heap.
        let bytes = unit_scratches_at(size, multiprocessors) + SCRATCHES_OF_ALL;
        let scratch: DeviceSym<u8> = heap.alloc_zeroed(bytes)?;
        let team = Self::of_parts(heap, 0, 1, size, scratch.offset());
        let mut team = team.expect("every PE is in the team of all");
        team.unit_blocks = unit_blocks(size, SCRATCHES_OF_ALL);
        let bytes = stage_bytes(size, blocks);
        if size > 1 && bytes <= heap.limit() / STAGE_SHARE {
            // As `scratch`, not given back.
            let stage: DeviceSym<u8> = heap.alloc_zeroed(bytes)?;
            team.set_stage(stage.offset(), blocks);
        }
        Ok(team)
    }

    fn set_stage(&mut self, offset: usize, blocks: usize) {
        self.state.stage = offset as u64;
        self.state.stage_blocks = blocks as u64;
    }

    /// As [`make`](Self::make), for a team that has PEs of several hosts: with slots for large reductions behind the rest,
    /// unless they would take too much of the heap.
    pub(crate) fn make_over_hosts(
        heap: &DeviceHeap<'_>,
        start: usize,
        stride: usize,
        size: usize,
        multiprocessors: usize,
    ) -> Result<(Option<Self>, DeviceSym<u8>), HeapError> {
        let (at, blocks) = (
            Self::bytes(size, multiprocessors).next_multiple_of(128),
            TEAM_STAGE_BLOCKS,
        );
        let stage = stage_bytes(size, blocks);
        if stage <= heap.limit() / TEAM_STAGE_SHARE
            && let Ok(scratch) = heap.alloc_zeroed(at + stage)
        {
            let mut team = Self::of_parts(heap, start, stride, size, scratch.offset());
            if let Some(team) = &mut team {
                team.set_stage(scratch.offset() + at, blocks);
            }
            return Ok((team, scratch));
        }
        // Without, they go in smaller pieces.
        Self::make(heap, start, stride, size, multiprocessors)
    }

    /// Makes the team, and the memory for it on every PE. Collective over the world; fails on all PEs or none.
    /// `multiprocessors`: of the largest GPU.
    pub(crate) fn make(
        heap: &DeviceHeap<'_>,
        start: usize,
        stride: usize,
        size: usize,
        multiprocessors: usize,
    ) -> Result<(Option<Self>, DeviceSym<u8>), HeapError> {
        let bytes = Self::bytes(size, multiprocessors);
        // Zeroed on every PE when it returns on any, so peers may write to it.
        let scratch: DeviceSym<u8> = heap.alloc_zeroed(bytes)?;
        let team = Self::of_parts(heap, start, stride, size, scratch.offset());
        Ok((team, scratch))
    }

    /// Bytes of the memory of a team; of a smaller one not more.
    pub(crate) fn bytes(size: usize, multiprocessors: usize) -> usize {
        let units = if size > 1 { SCRATCHES } else { 0 };
        unit_scratches_at(size, multiprocessors) + units
    }

    /// The team whose memory is at `scratch`.
    pub(crate) fn of_parts(
        heap: &DeviceHeap<'_>,
        start: usize,
        stride: usize,
        size: usize,
        scratch: usize,
    ) -> Option<Self> {
        let state = TeamState::of(heap.pe().my_pe(), start, stride, size, scratch as u64);
        state.map(|state| Self {
            state,
            heap: heap.id(),
            unit_blocks: unit_blocks(size, SCRATCHES),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_team_takes_has_room_for_smaller_ones_and_for_all_scratches() {
        for size in 1..=64 {
            for multiprocessors in [1, 108, 132, 148] {
                let bytes = DeviceTeam::bytes(size, multiprocessors);
                let least = DeviceTeam::bytes(size.max(2) - 1, multiprocessors);
                assert!(least <= bytes, "{size}");
                let at = unit_scratches_at(size, multiprocessors);
                let scratches = unit_blocks(size, SCRATCHES) - 1;
                assert!(at + scratches * scratch_bytes(size) <= bytes, "{size}");
            }
        }
        // 64 KiB between two PEs, and none where nobody is met.
        assert_eq!(
            [1, 2, 4].map(|size| unit_blocks(size, SCRATCHES_OF_ALL)),
            [1, 32, 16]
        );
    }

    #[test]
    fn members_are_ranked_and_others_left_out() {
        let rank = |pe, start, stride, size| {
            TeamState::of(pe, start, stride, size, 0).map(|state| state.me as usize)
        };
        for start in 0..4 {
            for stride in 1..4 {
                for size in 1..5 {
                    let members: Vec<_> = (0..size).map(|rank| start + rank * stride).collect();
                    for pe in 0..20 {
                        let expected = members.iter().position(|&member| member == pe);
                        assert_eq!(
                            rank(pe, start, stride, size),
                            expected,
                            "{pe} of {members:?}"
                        );
                    }
                }
            }
        }
    }
}

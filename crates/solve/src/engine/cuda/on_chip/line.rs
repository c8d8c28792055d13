//! Solves on a line in one kernel: the line stays in the registers of the GPUs (`kernels/jacobi/on_chip/line.cuh`).
#![allow(unsafe_code)] // Launches of kernels.

use std::ops::Range;

use crosswarp_cuda::sum_layout::TRACKERS;
use crosswarp_cuda::{
    Buffer, ByValue, DeviceSym, DeviceWorld, Function, Launch, PinnedBuffer, Stream,
};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::LEAF;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cuda::kernels;
use crate::engine::cuda::sums::sum_of_squares;
use crate::engine::slab::{MOST_SWEEPS_OF_RUN, Run};
use crate::field::partition::Partition;
use crate::gpu::Gpu;
use crate::gpu::arguments::{DIGITS, LINE_SETS, LINE_TILE_HALO, LineRun};
use crate::gpu::error::GpuError;
use crate::pes::agree::{all_ready, least};

/// Most sweeps of a pass, and points of a halo.
pub(crate) const DEPTH: usize = LINE_TILE_HALO;

/// How the leaves of a line are dealt out: the same on every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    blocks: usize,
    warps: usize,
}

impl Grid {
    /// A warp for each of `leaves`, as evenly as can be: at most `blocks` blocks at once of at most `warps` warps.
    fn of(leaves: usize, blocks: usize, warps: usize) -> Option<Grid> {
        let each = leaves.div_ceil(blocks.max(1)).max(1);
        let needed = leaves.div_ceil(each).max(1);
        (blocks > 0 && each <= warps).then_some(Grid {
            blocks: needed,
            warps: each,
        })
    }

    fn launch<F>(self, kernel: &Function) -> Launch<'_> {
        Launch::new(kernel)
            .grid(self.blocks as u32)
            .block(32 * self.warps as u32)
            .shared((self.warps * LEAF * size_of::<F>()) as u32)
    }
}

/// What the blocks of all PEs write to.
enum Shared<'w, F: Real> {
    /// One PE alone.
    Alone {
        edges: Buffer<F>,
        slots: Buffer<u64>,
        arrived: Buffer<u64>,
    },
    World {
        world: Box<DeviceWorld<'w>>,
        edges: DeviceSym<F>,
        slots: DeviceSym<u64>,
        /// Of each PE, then the count of this PE's blocks, so that a wait for it has a place in the heap, too.
        signals: DeviceSym<u64>,
    },
}

/// The kernel and what it needs beside the line.
pub(crate) struct OnChipLine<'w, F: Real> {
    shared: Shared<'w, F>,
    kernel: Function,
    grid: Grid,
    sums: PinnedBuffer<u64>,
    /// Sweeps made and passes; the host reads it after the kernel.
    result: PinnedBuffer<u64>,
    passes: u64,
    left: i32,
    right: i32,
}

impl<'w, F: Real> OnChipLine<'w, F> {
    /// For the parts of `partition`. Collective.
    ///
    /// Errors: on every PE if on any; [`GpuError::TooLargeForChip`] if the line does not fit.
    pub(crate) fn new(
        pe: &'w Pe,
        gpu: &Gpu,
        partition: &Partition,
        stream: &Stream,
    ) -> Result<OnChipLine<'w, F>, GpuError> {
        let found = all_ready(pe, kernels::find_of_pe::<F>(&gpu.device, "run_line"));
        let (kernel, threads) = found?;
        let warps = threads as usize / 32;
        let alone = pe.n_pes() == 1;
        let world = if alone {
            None
        } else {
            DeviceWorld::needs_one_host(pe, "a line on the chips")?;
            let world = DeviceWorld::without_verbs(pe, gpu.device, None, pe.wait_timeout())?;
            all_ready(pe, world.install(kernel.module()).map_err(GpuError::from))?;
            Some(Box::new(world))
        };
        let sharing = world.as_ref().map_or(1, |world| world.pes_on_gpu());
        let whole = Grid { blocks: 1, warps }.launch::<F>(&kernel);
        let together = all_ready(pe, whole.max_resident().map_err(GpuError::from))?;
        let most = least(pe, together / sharing as u64)? as usize;
        let largest = (0..partition.active())
            .map(|pe| partition.rows(pe).len())
            .max()
            .unwrap_or(0);
        let Some(grid) = Grid::of(largest.div_ceil(LEAF), most, warps) else {
            return Err(GpuError::TooLargeForChip {
                cells: largest,
                most: most * warps * LEAF,
            });
        };
        let edges = LINE_SETS * (2 + grid.blocks * grid.warps) * 2 * DEPTH;
        let slots = LINE_SETS * pe.n_pes() * DEPTH * Superaccumulator::<F>::WORDS;
        let buffers = || -> Result<_, GpuError> {
            let sums = PinnedBuffer::zeroed(
                &gpu.device,
                MOST_SWEEPS_OF_RUN * Superaccumulator::<F>::WORDS,
            )?;
            let result = PinnedBuffer::zeroed(&gpu.device, 2)?;
            Ok((sums, result))
        };
        let (sums, result) = all_ready(pe, buffers())?;
        let shared = match world {
            None => {
                grid.launch::<F>(&kernel).load()?;
                Shared::Alone {
                    edges: Buffer::zeroed(stream, edges)?,
                    slots: Buffer::zeroed(stream, slots)?,
                    arrived: Buffer::zeroed(stream, 1)?,
                }
            }
            Some(world) => {
                let edges = world.heap().alloc_zeroed(edges)?;
                let slots = world.heap().alloc_zeroed(slots)?;
                let signals = world.heap().alloc_zeroed(pe.n_pes() + 1)?;
                // All kernels run at once, and are loaded, before any PE waits for another.
                let launch = grid.launch::<F>(&kernel);
                world.prepare_together(launch)?;
                Shared::World {
                    world,
                    edges,
                    slots,
                    signals,
                }
            }
        };
        let (me, active) = (pe.my_pe(), partition.active());
        Ok(OnChipLine {
            grid,
            shared,
            sums,
            result,
            passes: 0,
            left: if 0 < me && me < active {
                me as i32 - 1
            } else {
                -1
            },
            right: if me + 1 < active { me as i32 + 1 } else { -1 },
            kernel,
        })
    }

    /// Makes the sweeps of `run` from `before` to `after`, the addresses of the own points; all PEs call it. `sums` is
    /// as in [`RunUntilStopped::run`](crate::engine::slab::RunUntilStopped::run).
    pub(crate) fn run(
        &mut self,
        stream: &Stream,
        (before, after): (u64, u64),
        (own, points): (&Range<usize>, usize),
        run: &Run<'_>,
        sums: &mut Vec<Superaccumulator<F>>,
    ) -> Result<(), GpuError> {
        let mut threshold = [0; DIGITS];
        let words = Superaccumulator::<F>::WORDS;
        // As many as the accumulator has limbs.
        run.threshold
            .digits(F::MIN_LSB_EXPONENT, &mut threshold[..words - TRACKERS]);
        let (edges, slots, signals, arrived) = match &self.shared {
            Shared::Alone {
                edges,
                slots,
                arrived,
            } => (edges.address(), slots.address(), 0, arrived.address()),
            Shared::World {
                world,
                edges,
                slots,
                signals,
            } => {
                let (heap, me) = (world.heap(), world.pe().my_pe());
                let signals = heap.address_of(signals, me);
                (
                    heap.address_of(edges, me),
                    heap.address_of(slots, me),
                    signals,
                    signals + 8 * world.pe().n_pes() as u64,
                )
            }
        };
        self.result.fill(0);
        let parameters = LineRun {
            before,
            after,
            edges,
            slots,
            signals,
            arrived,
            sums: self.sums.address(),
            result: self.result.address(),
            points: points as i64,
            own_start: own.start as i64,
            own_end: own.end as i64,
            first_pass: self.passes,
            left: self.left,
            right: self.right,
            most: run.most as i32,
            depth: run.depth as i32,
            done: run.done.min(i32::MAX as usize) as i32,
            log_threshold: (run.threshold.log2() - f64::from(F::MIN_LSB_EXPONENT)) as f32,
            allows_infinity: run.threshold.allows_infinity().into(),
            threshold,
            padding: 0,
        };
        let mut launch = self.grid.launch::<F>(&self.kernel);
        if matches!(self.shared, Shared::Alone { .. }) {
            launch = launch.cooperative();
        }
        // SAFETY: the parameter is a `line_run`. The line has 32 points of padding on both sides; edges, slots, signals
        // and sums have as many elements as `new` worked out for this grid, and all live until the stream has been
        // waited for, below. With other PEs, `prepare_together` has found that all kernels run at once, and nothing
        // here or in the method's loop waits for the whole device before they have ended.
        unsafe { launch.launch(stream, (ByValue(parameters),)) }?;
        match &self.shared {
            Shared::Alone { .. } => stream.synchronize()?,
            Shared::World { world, .. } => world.synchronize(stream)?,
        }
        let (made, passes) = (self.result[0] as usize, self.result[1]);
        self.passes += passes;
        for words in self.sums[..made * words].chunks_exact(words) {
            sums.push(sum_of_squares(words));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_dealt_out_evenly_and_fit() {
        for (leaves, blocks, expected) in [
            (0, 132, Some((1, 1))),
            (1, 132, Some((1, 1))),
            (132, 132, Some((132, 1))),
            (133, 132, Some((67, 2))),
            (2048, 132, Some((128, 16))),
            (2112, 132, Some((132, 16))),
            (2113, 132, None),
            (3, 0, None),
        ] {
            let grid = Grid::of(leaves, blocks, 16).map(|grid| (grid.blocks, grid.warps));
            assert_eq!(grid, expected, "{leaves} leaves, {blocks} blocks");
        }
    }
}

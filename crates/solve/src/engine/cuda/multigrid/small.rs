//! The small levels, which one launch has: the smallest ones a block of it, those before them all its blocks.
#![allow(unsafe_code)] // A launch of a kernel.

use crosswarp_cuda::{ByValue, Function, Launch, Stream, grid_state_bytes};

use super::Coarse;
use crate::engine::cpu::multigrid::coarse::ALIKE_ABOVE;
use crate::engine::cpu::multigrid::smoothing::Smoothing;
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::kernels;
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    COARSEST_POINTS, LevelPass, MOST_RELAXATIONS, Relaxations, SMALL_POINTS, SMALL_SHARED,
    SMALL_THREADS,
};

/// The kernel.
pub(super) const KERNEL: &str = "level_cycle_small";

/// Most points of a level of all blocks: larger ones are faster in passes.
const GRID_POINTS: usize = 1 << 19;
// The kernel looks all couplings up.
const _: () = assert!(GRID_POINTS <= ALIKE_ABOVE);

/// The levels that one launch has.
pub(super) struct Small {
    /// The first of them.
    pub from: usize,
    kernel: Function,
    levels: ArenaBuffer<LevelPass>,
    /// How many of them all blocks have.
    of_grid: usize,
    blocks: u32,
    /// By which blocks wait for each other.
    state: ArenaBuffer<u8>,
    shared_bytes: u32,
    omegas: Relaxations,
}

impl Small {
    /// `whole_gpu`: whether blocks may wait for each other on all multiprocessors.
    pub fn new(
        gpu: &Gpu,
        arena: &Arena,
        levels: &[Coarse],
        whole_gpu: bool,
        (factor, active): &(ArenaBuffer<f64>, ArenaBuffer<u8>),
        smoothing: &Smoothing,
    ) -> Result<Small, GpuError> {
        let arguments: Vec<LevelPass> = (levels.iter())
            .map(|level| level.level.arguments_of_two())
            .collect();
        let points = |level: &LevelPass| level.nx as usize * level.ny as usize;
        // The coarsest level's factor, what is known of levels, a scratch field, and each level's field and right side.
        let bytes = |from: usize, known: usize| {
            let all: usize = arguments[from..].iter().map(points).sum();
            size_of::<f64>() * factor.len()
                + size_of::<LevelPass>() * known
                + size_of::<f32>() * (points(&arguments[from]) + 2 * all)
        };
        let fits = |&from: &usize| {
            !levels[from].level.shape.spread
                && points(&arguments[from]) <= SMALL_POINTS
                && bytes(from, levels.len()) <= SMALL_SHARED as usize
        };
        let of_block = (0..levels.len())
            .find(fits)
            .expect("the coarsest level is small");
        let of_grid =
            |&at: &usize| !levels[at].level.shape.spread && points(&arguments[at]) <= GRID_POINTS;
        let from = match whole_gpu {
            true => (0..of_block).find(of_grid).unwrap_or(of_block),
            false => of_block,
        };
        let kernel = kernels::find_plain(&gpu.device, KERNEL)?;
        let shared_bytes = bytes(of_block, levels.len() - from) as u32;
        let launch = Launch::new(&kernel)
            .block(SMALL_THREADS as u32)
            .shared(shared_bytes);
        let blocks = match from == of_block {
            true => 1,
            false => {
                let useful = points(&arguments[from]).div_ceil(SMALL_THREADS) as u64;
                let most = u64::from(gpu.device.properties().multiprocessors);
                launch.max_resident()?.min(most).min(useful).max(1) as u32
            }
        };
        let mut small = arguments[from..].to_vec();
        let last = small.last_mut().expect("it is one of them");
        assert!(points(last) <= COARSEST_POINTS);
        (last.factor, last.active) = (factor.address(), active.address());
        let mut omegas = Relaxations {
            pre: [0.0; MOST_RELAXATIONS],
            post: [0.0; MOST_RELAXATIONS],
            pre_count: smoothing.pre.len() as i32,
            post_count: smoothing.post.len() as i32,
        };
        let pairs = [
            (&mut omegas.pre, &smoothing.pre),
            (&mut omegas.post, &smoothing.post),
        ];
        for (to, from) in pairs {
            for (omega, step) in to.iter_mut().zip(from) {
                *omega = step.omega;
            }
        }
        Ok(Small {
            from,
            kernel,
            levels: arena.copied(&small)?,
            of_grid: of_block - from,
            blocks,
            state: arena.zeroed(grid_state_bytes(blocks as usize))?,
            shared_bytes,
            omegas,
        })
    }

    /// A cycle for the first of these levels from zero, or a `full` solve from the coarsest one up.
    pub fn cycle(&self, stream: &Stream, full: bool) -> Result<(), GpuError> {
        let launch = Launch::new(&self.kernel)
            .grid(self.blocks)
            .block(SMALL_THREADS as u32)
            .shared(self.shared_bytes);
        let launch = match self.of_grid {
            0 => launch,
            _ => launch.cooperative(),
        };
        let arguments = (
            self.levels.range(..),
            self.levels.len() as i32,
            self.of_grid as i32,
            i32::from(full),
            ByValue(self.omegas),
            self.state.range(..),
        );
        // SAFETY: the parameters are the levels, whose arrays live until the stream has been waited for, how many these
        // are, how many of these all blocks have, an int, a `relaxations`, and the state of a grid of so many blocks, which
        // run at once; the shared memory is for the levels of a block.
        Ok(unsafe { launch.launch(stream, arguments) }?)
    }
}

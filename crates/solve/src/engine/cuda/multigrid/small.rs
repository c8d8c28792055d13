//! The small levels, which one block has.
#![allow(unsafe_code)] // A launch of a kernel.

use crosswarp_cuda::{Buffer, ByValue, Function, Launch, Stream};

use super::Coarse;
use crate::engine::cpu::multigrid::hierarchy::Smoothing;
use crate::engine::cuda::kernels;
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    COARSEST_POINTS, LevelPass, MOST_RELAXATIONS, Relaxations, SMALL_POINTS, SMALL_SHARED,
    SMALL_THREADS,
};

/// The kernel.
pub(super) const KERNEL: &str = "level_cycle_small";

/// The levels that one block has.
pub(super) struct Small {
    /// The first of them.
    pub from: usize,
    kernel: Function,
    levels: Buffer<LevelPass>,
    shared_bytes: u32,
    omegas: Relaxations,
}

impl Small {
    pub fn new(
        gpu: &Gpu,
        stream: &Stream,
        levels: &[Coarse],
        (factor, active): &(Buffer<f64>, Buffer<u8>),
        smoothing: &Smoothing,
    ) -> Result<Small, GpuError> {
        let arguments: Vec<LevelPass> =
            levels.iter().map(|level| level.level.arguments()).collect();
        let points = |level: &LevelPass| level.nx as usize * level.ny as usize;
        // A scratch field, and each level's field and right side.
        let bytes = |from: usize| {
            let all: usize = arguments[from..].iter().map(points).sum();
            size_of::<f32>() * (points(&arguments[from]) + 2 * all)
        };
        let fits = |&from: &usize| {
            !levels[from].level.shape.spread
                && points(&arguments[from]) <= SMALL_POINTS
                && bytes(from) <= SMALL_SHARED as usize
        };
        let from = (0..levels.len())
            .find(fits)
            .expect("the coarsest level is small");
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
        omegas.pre[..smoothing.pre.len()].copy_from_slice(&smoothing.pre);
        omegas.post[..smoothing.post.len()].copy_from_slice(&smoothing.post);
        Ok(Small {
            from,
            kernel: kernels::find_plain(&gpu.device, KERNEL)?,
            levels: Buffer::from_slice(stream, &small)?,
            shared_bytes: bytes(from) as u32,
            omegas,
        })
    }

    /// A cycle for the first of these levels from zero, or a `full` solve from the coarsest one up.
    pub fn cycle(&self, stream: &Stream, full: bool) -> Result<(), GpuError> {
        let launch = Launch::new(&self.kernel)
            .block(SMALL_THREADS as u32)
            .shared(self.shared_bytes);
        let arguments = (
            &self.levels,
            self.levels.len() as i32,
            i32::from(full),
            ByValue(self.omegas),
        );
        // SAFETY: the parameters are the levels, whose arrays live until the stream has been waited for, how many these
        // are, an int and a `relaxations`; the shared memory is for these levels.
        Ok(unsafe { launch.launch(stream, arguments) }?)
    }
}

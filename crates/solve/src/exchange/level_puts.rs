//! Rows of multigrid levels from GPU to GPU: a kernel of each PE puts them into buffers of the others, over NVLink where
//! GPUs have it, and copies what has come to where it belongs (`kernels/multigrid/exchange.cu`). The host waits for nothing.
#![allow(unsafe_code)] // Launches of kernels.

use std::ops::Range;

use bytemuck::Zeroable;
use crosswarp_cuda::{ByValue, Device, DeviceSym, DeviceWorld, Function, Launch, Stream};
use crosswarp_shmem::Pe;

use crate::engine::cpu::multigrid::shape::Shape;
use crate::gpu::Gpu;
use crate::gpu::choice::Declined;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{LEVEL_EXCHANGE_THREADS, LevelEdge, LevelExchange, MOST_EDGES};
use crate::pes::agree::{all_ready, least};
use crate::pes::error::PeError;

/// The kernel.
pub(crate) const KERNEL: &str = "level_exchange";
/// Most blocks of an exchange: so many copy about as fast as NVLink lets them.
const MOST_BLOCKS: usize = 32;
/// Bytes that a block should have, at least.
const BYTES_OF_BLOCK: usize = 32 << 10;
/// Most PEs of a GPU: each has a stream that waits for others, and a process has so many hardware queues.
const MOST_ON_GPU: usize = 8;

/// Signals of what comes from above and from below; those of gathers, by PE, follow.
const ABOVE: usize = 0;
const BELOW: usize = 1;
const GATHERED: usize = 2;

/// How rows of levels on GPUs travel: by puts, or as on CPUs.
#[derive(Default)]
pub(crate) struct OnGpus<'p> {
    /// Where GPUs reach each other.
    pub puts: Option<LevelPuts<'p>>,
    /// Why not, where they do not.
    pub declined: Vec<Declined>,
    /// The GPU for which either was found.
    pub reached: Option<Device>,
}

impl OnGpus<'_> {
    /// Leaves the other GPUs if what used them has failed: PEs need not have exchanged as often as each other. Before what
    /// it used is freed, because that waits for kernels of other PEs on the GPU, which may wait for this one.
    pub(crate) fn leave_after<T, E>(&mut self, used: &Result<T, E>) {
        if used.is_err() {
            *self = OnGpus::default();
        }
    }
}

/// Rows that lie together in a GPU's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// A multiple of 16.
    pub address: u64,
    /// A multiple of 16.
    pub bytes: usize,
}

/// What has been exchanged of a kind.
#[derive(Clone, Copy, Default)]
struct Count {
    exchanges: u64,
    /// Blocks of all of them, which each have signalled.
    blocks: u64,
}

impl Count {
    /// Counts one more, of stretches of so many `bytes` on every PE; its blocks, `most` of them at most.
    fn next(&mut self, bytes: usize, most: usize) -> u32 {
        let blocks = bytes.div_ceil(BYTES_OF_BLOCK).clamp(1, most);
        self.exchanges += 1;
        self.blocks += blocks as u64;
        blocks as u32
    }
}

/// Buffers and signals, in the symmetric device heap.
pub(crate) struct LevelPuts<'p> {
    world: DeviceWorld<'p>,
    kernel: Function,
    /// Two of [above, below].
    halos: DeviceSym<u8>,
    /// Two whole levels.
    gathered: DeviceSym<u8>,
    signals: DeviceSym<u64>,
    /// Blocks of an exchange at most; the same on every PE.
    most_blocks: usize,
    halo_count: Count,
    gather_count: Count,
    /// Whether PEs may have done what no PE may do while a kernel waits for it: see [`meet`](Self::meet).
    apart: bool,
}

impl<'p> LevelPuts<'p> {
    /// Room for halos of up to `halo` bytes on a side, and for the `gathered` bytes of a whole level. `kernel` is [`KERNEL`],
    /// found on all PEs. Collective.
    ///
    /// Errors: on every PE, if GPUs can not reach each other, PEs that are processes share one, or too many do.
    pub(crate) fn new(
        pe: &'p Pe,
        gpu: &Gpu,
        kernel: Function,
        [halo, gathered]: [usize; 2],
    ) -> Result<LevelPuts<'p>, GpuError> {
        DeviceWorld::needs_one_host(pe, "putting halos from kernels")?;
        let world = DeviceWorld::without_verbs(pe, gpu.device, None, pe.wait_timeout())?;
        let installed = world.install(kernel.module()).map_err(GpuError::from);
        let crowded = match world.pes_on_gpu() {
            pes if pes > MOST_ON_GPU => Err(GpuError::TooManyOnGpu {
                pes,
                most: MOST_ON_GPU,
            }),
            _ => Ok(()),
        };
        all_ready(pe, installed.and(crowded))?;
        let heap = world.heap();
        let halos = heap.alloc(4 * halo)?;
        let gathered = heap.alloc(2 * gathered)?;
        let signals = heap.alloc_zeroed(GATHERED + pe.n_pes())?;
        // Blocks wait for passes of PEs that share their GPU, and a block of these may need a whole multiprocessor: half of
        // them have no block that waits.
        let share = gpu.device.properties().multiprocessors as usize / (2 * world.pes_on_gpu());
        let most_blocks = (least(pe, share as u64)? as usize).clamp(1, MOST_BLOCKS);
        // Checks that the kernels of all PEs run at once, and loads them. It is also the barrier before which no PE signals
        // to another.
        let launch = Launch::new(&kernel).grid(most_blocks as u32);
        world.prepare_together(launch.block(LEVEL_EXCHANGE_THREADS as u32))?;
        Ok(LevelPuts {
            world,
            kernel,
            halos,
            gathered,
            signals,
            most_blocks,
            halo_count: Count::default(),
            gather_count: Count::default(),
            apart: true,
        })
    }

    /// Makes the `depth` rows around the own ones of a level that is spread what they are where they are computed, for what
    /// follows in `stream`. `stretch`: where rows lie, which do not go over an end of the level. Collective.
    pub(crate) fn halo(
        &mut self,
        stream: &Stream,
        shape: &Shape,
        depth: usize,
        stretch: impl Fn(Range<isize>) -> Stretch,
    ) -> Result<(), GpuError> {
        self.meet()?;
        let (own, deep) = (shape.own(), depth as isize);
        let [above, below] = shape.neighbours();
        let rows = stretch(own.start..own.start + deep);
        let capacity = self.halos.len() / 4;
        assert!(rows.bytes <= capacity);
        let blocks = self.halo_count.next(rows.bytes, self.most_blocks);
        let set = 2 * (self.halo_count.exchanges % 2) as usize;
        let buffers = self.world.heap().address_of(&self.halos, self.me());
        let buffer = |side: usize| buffers + ((set + side) * capacity) as u64;
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        // What goes up comes from below.
        if let Some(pe) = above {
            let come = stretch(own.start - deep..own.start);
            sends.push(edge(pe, BELOW, rows, buffer(BELOW)));
            receives.push(edge(pe, ABOVE, come, buffer(ABOVE)));
        }
        if let Some(pe) = below {
            let rows = stretch(own.end - deep..own.end);
            let come = stretch(own.end..own.end + deep);
            sends.push(edge(pe, ABOVE, rows, buffer(ABOVE)));
            receives.push(edge(pe, BELOW, come, buffer(BELOW)));
        }
        self.launch(stream, blocks, self.halo_count.blocks, &sends, &receives)
    }

    /// Gives every PE all rows of a level that is not spread, of which each has computed those of its cut, for what follows
    /// in `stream`. Collective.
    pub(crate) fn gather(
        &mut self,
        stream: &Stream,
        shape: &Shape,
        stretch: impl Fn(Range<isize>) -> Stretch,
    ) -> Result<(), GpuError> {
        self.meet()?;
        let (pes, me) = (self.world.pe().n_pes(), self.me());
        let of = |pe: usize| stretch(shape.cuts[pe] as isize..shape.cuts[pe + 1] as isize);
        let all = stretch(0..shape.y.len as isize);
        let capacity = self.gathered.len() / 2;
        assert!(all.bytes <= capacity);
        let part = all.bytes.div_ceil(pes);
        let blocks = self.gather_count.next(part, self.most_blocks);
        let set = (self.gather_count.exchanges % 2) as usize * capacity;
        let buffers = self.world.heap().address_of(&self.gathered, me) + set as u64;
        let buffer = |of: Stretch| buffers + (of.address - all.address);
        // As many at a time as a launch has room for: to those behind, from those before, so that what a launch waits for is
        // sent by the same one of another PE.
        let steps: Vec<usize> = (1..pes).collect();
        for steps in steps.chunks(MOST_EDGES) {
            let to = |step| edge((me + step) % pes, GATHERED + me, of(me), buffer(of(me)));
            let from = |step| {
                let pe = (me + pes - step) % pes;
                edge(pe, GATHERED + pe, of(pe), buffer(of(pe)))
            };
            let sends: Vec<_> = steps.iter().copied().map(to).collect();
            let receives: Vec<_> = steps.iter().copied().map(from).collect();
            self.launch(stream, blocks, self.gather_count.blocks, &sends, &receives)?;
        }
        Ok(())
    }

    /// Whether this PE has its GPU for itself.
    pub(crate) fn is_alone(&self) -> bool {
        self.world.pes_on_gpu() == 1
    }

    /// Waits for `stream`.
    ///
    /// Errors: also if a wait for another PE was given up.
    pub(crate) fn synchronize(&mut self, stream: &Stream) -> Result<(), GpuError> {
        self.apart = true;
        Ok(self.world.synchronize(stream)?)
    }

    /// Lets every PE come here before any one's kernels wait again, if the host has waited for a stream since: then PEs may
    /// have freed memory or loaded kernels, which waits for all kernels of a GPU.
    fn meet(&mut self) -> Result<(), GpuError> {
        if self.apart {
            self.world.pe().sync().map_err(PeError::from)?;
            self.apart = false;
        }
        Ok(())
    }

    fn me(&self) -> usize {
        self.world.pe().my_pe()
    }

    fn launch(
        &self,
        stream: &Stream,
        blocks: u32,
        sent: u64,
        sends: &[LevelEdge],
        receives: &[LevelEdge],
    ) -> Result<(), GpuError> {
        let mut arguments = LevelExchange {
            signals: self.world.heap().address_of(&self.signals, self.me()),
            sent,
            sends: sends.len() as i32,
            receives: receives.len() as i32,
            send: [LevelEdge::zeroed(); MOST_EDGES],
            receive: [LevelEdge::zeroed(); MOST_EDGES],
        };
        arguments.send[..sends.len()].copy_from_slice(sends);
        arguments.receive[..receives.len()].copy_from_slice(receives);
        let launch = Launch::new(&self.kernel)
            .grid(blocks)
            .block(LEVEL_EXCHANGE_THREADS as u32);
        // SAFETY: the parameter is a `level_exchange_of`; rows are stored, as the caller vouches with `stretch`, buffers hold
        // as many bytes as `new` was told, and all blocks of all PEs' exchanges run at once, as `new` has found.
        Ok(unsafe { launch.launch(stream, (ByValue(arguments),)) }?)
    }
}

fn edge(pe: usize, signal: usize, rows: Stretch, buffer: u64) -> LevelEdge {
    LevelEdge {
        pe: pe as i32,
        signal: signal as i32,
        bytes: rows.bytes as i64,
        rows: rows.address,
        buffer,
    }
}

//! Sums over the finest level, by leaves, as the host reads them.
#![allow(unsafe_code)] // Launches of kernels.

use std::ops::Range;

use crosswarp_cuda::{ByValue, Device, Function, Launch, PinnedBuffer, Stream};
use crosswarp_prim::leaf::LANES as LEAF_COLUMNS;
use crosswarp_prim::{Float, Superaccumulator};

use super::exchange;
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::kernels;
use crate::exchange::level_rows::LevelRows;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{LEVEL_THREADS, LevelPass, SUM_COPIES};

/// The kernels that add up.
const ADD_LEAVES: &str = "level_add_leaves";
const PUBLISH_SUM: &str = "level_publish_sum";
pub(super) const KERNELS: [&str; 2] = [ADD_LEAVES, PUBLISH_SUM];

/// Blocks that add up leaves: so many keep a large GPU busy.
const ADDING_BLOCKS: usize = 264;

/// What kernels leave by columns of leaves is added up here.
pub(super) struct LeafSums {
    add_leaves: Function,
    publish_sum: Function,
    /// What these are told.
    arguments: LevelPass,
    /// For the host: the words of each kind of sum.
    total: PinnedBuffer<u64>,
    _sums: ArenaBuffer<f64>,
    _words: ArenaBuffer<u64>,
}

impl LeafSums {
    /// Of leaves of so many `columns` in rows of leaves `bands`, for up to `kinds` sums at once.
    pub fn new(
        arena: &Arena,
        columns: usize,
        bands: Range<usize>,
        kinds: usize,
    ) -> Result<LeafSums, GpuError> {
        let device: &Device = arena.stream().device();
        let pitch = columns.next_multiple_of(LEAF_COLUMNS);
        let of_a_kind = bands.len() * pitch;
        let words = Superaccumulator::<f64>::WORDS;
        let sums = arena.buffer::<f64>(kinds * of_a_kind)?;
        let copies = arena.zeroed(kinds * SUM_COPIES * words)?;
        let total = PinnedBuffer::zeroed(device, kinds * words)?;
        let before = (bands.start * pitch * size_of::<f64>()) as u64;
        Ok(LeafSums {
            add_leaves: kernels::find_plain(device, ADD_LEAVES)?,
            publish_sum: kernels::find_plain(device, PUBLISH_SUM)?,
            arguments: LevelPass {
                sums: sums.address().wrapping_sub(before),
                sum_pitch: pitch as i64,
                sum_kind: of_a_kind as i64,
                nx: columns as i32,
                leaf_bands: bands.len() as i32,
                first_band: bands.start as i32,
                words: copies.address(),
                total: total.address(),
                ..bytemuck::Zeroable::zeroed()
            },
            total,
            _sums: sums,
            _words: copies,
        })
    }

    /// Where a kernel leaves its sums: what of `level_pass` that takes.
    pub fn place(&self) -> LevelPass {
        self.arguments
    }

    /// Adds up the first `kinds` that kernels have left, for the host.
    pub fn publish(&self, stream: &Stream, kinds: usize) -> Result<(), GpuError> {
        let across = (self.arguments.nx as usize).div_ceil(LEAF_COLUMNS);
        let leaves = across * self.arguments.leaf_bands as usize;
        let blocks = (leaves * 32).div_ceil(LEVEL_THREADS).min(ADDING_BLOCKS);
        let add = Launch::new(&self.add_leaves)
            .grid((blocks as u32, kinds as u32))
            .block(LEVEL_THREADS as u32);
        let publish = Launch::new(&self.publish_sum)
            .grid(kinds as u32)
            .block(LEVEL_THREADS as u32);
        // SAFETY: the parameters are `level_pass<double>`, whose sums a kernel has set for all leaves of these kinds, and
        // whose words the host reads after it has waited.
        unsafe {
            add.launch(stream, (ByValue(self.arguments),))?;
            publish.launch(stream, (ByValue(self.arguments),))?;
        }
        Ok(())
    }

    /// What [`publish`](Self::publish) has left. Waits for it.
    pub fn read<const N: usize>(
        &self,
        stream: &Stream,
        rows: &mut LevelRows<'_>,
    ) -> Result<[Superaccumulator<f64>; N], GpuError> {
        exchange::synchronize(stream, rows)?;
        let words = Superaccumulator::<f64>::WORDS;
        Ok(std::array::from_fn(|kind| {
            let mut sum = <<f64 as Float>::Words as bytemuck::Zeroable>::zeroed();
            let of_kind = &self.total[kind * words..][..words];
            sum.as_mut().copy_from_slice(of_kind);
            Superaccumulator::from_words(sum)
        }))
    }
}

//! The kernels that make a plane's sweeps in memory.

use std::ops::Range;

use crosswarp_cuda::{Function, Launch};
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use crate::element::Real;
use crate::engine::cuda::kernels;
use crate::engine::cuda::plane::field::{MAX_DEPTH, PlaneField};
use crate::engine::cuda::temporal::block_order::{BlockOrder, PassCutter};
use crate::engine::cuda::temporal::strips::{PassKind, PassShape};
use crate::exchange::device_put::DevicePut;
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;

/// Cells of a PE from which on an `f64` plane is large. Six sweeps a pass take all registers, and at the ends of rows, where
/// columns are fixed, their loop no longer stays in the instruction cache; of large and wide planes ends are a small part.
/// (`bench/results/jacobi-f64-sweeps-h200-2026-11-28.txt`)
const LARGE_CELLS: usize = 1 << 26;
/// And columns.
const LARGE_COLUMNS: usize = 1 << 13;

/// How sweeps are made in memory.
pub(super) enum Sweeps {
    /// Not at all: the chip makes all of them.
    OnChip,
    /// One a launch.
    One(Function),
    /// Several in a pass.
    Pass(Box<PassKernel>),
}

impl Sweeps {
    /// Most sweeps of a launch.
    pub(super) fn depth(&self) -> usize {
        match self {
            Sweeps::OnChip | Sweeps::One(_) => 1,
            Sweeps::Pass(pass) => pass.depth(),
        }
    }
}

/// The kernel of passes, and how it cuts the band.
pub(super) struct PassKernel {
    kernel: Function,
    pub cutter: PassCutter,
    /// How the whole band is cut.
    pub order: BlockOrder,
}

impl PassKernel {
    /// What the kernel for `field` is called, and what it is made for.
    pub(super) fn name<F: Real>(field: &PlaneField<F>) -> (&'static str, PassKind) {
        // The same on all PEs.
        let nx = field.layout.nx;
        let cells = field.partition.total() / field.partition.active() * nx;
        let large = size_of::<F>() == 8 && cells >= LARGE_CELLS && nx >= LARGE_COLUMNS;
        match (field.fixed.is_some(), field.source.is_some()) {
            (false, false) if large => ("pass_large", PassKind::Large),
            (false, false) => ("pass_plain", PassKind::Plain),
            (true, false) => ("pass_fixed", PassKind::Mask),
            (false, true) => ("pass_source", PassKind::Source),
            (true, true) => ("pass_both", PassKind::Source),
        }
    }

    /// For the band of `field`, with `exchange` beside it.
    pub(super) fn new<F: Real>(
        field: &PlaneField<F>,
        gpu: &Gpu,
        exchange: Option<&DevicePut<'_, F>>,
    ) -> Result<PassKernel, GpuError> {
        let (name, kind) = Self::name(field);
        let kernel = kernels::find::<F>(&gpu.device, name)?.0;
        let shape = PassShape::of::<F>(kind);
        // It is compiled for as many as have room.
        let warps = kernel.attributes().max_threads as usize / 32;
        let launch = pass_launch(&kernel, &shape, warps);
        launch.load()?;
        let cutter = PassCutter {
            shape,
            nx: field.layout.nx,
            wraps: field.wrap_x,
            warps,
            blocks: launch.max_resident()? as usize,
        };
        let own = &field.own;
        let order = match exchange {
            Some(exchange) => {
                let beside = exchange.blocks_beside(&kernel, 32 * warps as u32, cutter.blocks);
                let cutter = PassCutter {
                    blocks: cutter.blocks.saturating_sub(beside),
                    ..cutter
                };
                match parts(own) {
                    Some(parts) => cutter.edges_first(parts),
                    None => cutter.whole_counted(own.clone()),
                }
            }
            None => cutter.whole(own.clone()),
        };
        Ok(PassKernel {
            kernel,
            cutter,
            order,
        })
    }

    /// Most sweeps of a pass.
    pub(super) fn depth(&self) -> usize {
        self.cutter.shape.depth
    }

    /// A launch, but for the grid.
    pub(super) fn launch(&self) -> Launch<'_> {
        pass_launch(&self.kernel, &self.cutter.shape, self.cutter.warps)
    }
}

fn pass_launch<'f>(kernel: &'f Function, shape: &PassShape, warps: usize) -> Launch<'f> {
    Launch::new(kernel)
        .block(32 * warps as u32)
        .shared(shape.shared(warps))
}

/// The leaves that hold what the neighbours need, and those between; none if nothing is between.
pub(super) fn parts(own: &Range<usize>) -> Option<[Range<usize>; 3]> {
    let (start, end) = (own.start, own.end);
    // A ghost row, and the row it copies, besides the halo.
    let deep = MAX_DEPTH + 2;
    let inner =
        start + deep.next_multiple_of(LEAF_ROWS)..end.saturating_sub(deep) / LEAF_ROWS * LEAF_ROWS;
    (inner.start < inner.end).then(|| [start..inner.start, inner.clone(), inner.end..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_band_and_hold_the_halos() {
        for (start, end) in [(0, 3), (0, 47), (16, 64), (160, 1003), (32, 80)] {
            let Some([top, inner, bottom]) = parts(&(start..end)) else {
                assert!(end - start < 16 + 16 + 12 + 15);
                continue;
            };
            assert_eq!((top.start, bottom.end), (start, end));
            assert_eq!((top.end, inner.end), (inner.start, bottom.start));
            assert!(top.len() >= 12 && bottom.len() >= 12 && !inner.is_empty());
            assert!(inner.start % 16 == 0 && inner.end % 16 == 0);
        }
    }
}

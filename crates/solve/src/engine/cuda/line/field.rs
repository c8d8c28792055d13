//! The memory of a PE's part of a line in its GPU.

use std::ops::Range;

use crosswarp_cuda::{Buffer, Stream};
use crosswarp_prim::leaf::LEAF;

use crate::element::Real;
use crate::engine::cpu::line::CpuLine;
use crate::engine::slab::MOST_SWEEPS_OF_PASS;
use crate::exchange::Place;
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::gpu::arguments::LINE_PASS_HALO;
use crate::gpu::error::GpuError;

/// Points of padding on both sides of the own ones, and most sweeps of a pass.
pub(super) const PAD: usize = LINE_PASS_HALO;
const _: () = assert!(PAD <= MOST_SWEEPS_OF_PASS);

/// Points of one PE with halos left and right, before and after a pass.
pub(super) struct LineField<F: Real> {
    pub partition: Partition,
    pub own: Range<usize>,
    pub before: Buffer<F>,
    pub after: Buffer<F>,
    pub stream: Stream,
}

impl<F: Real> LineField<F> {
    /// The points that `host` has.
    pub(super) fn new(host: &CpuLine<F>, stream: &Stream) -> Result<LineField<F>, GpuError> {
        let own = host.own();
        // Whole leaves, as the kernel of lines on the chip takes them.
        let stored = own.len().next_multiple_of(LEAF) + 2 * PAD;
        let field = LineField {
            partition: *host.partition(),
            before: Buffer::zeroed(stream, stored)?,
            after: Buffer::zeroed(stream, stored)?,
            stream: stream.clone(),
            own,
        };
        let values = host.values();
        stream.write(field.before.range(PAD..PAD + values.len()), values)?;
        Ok(field)
    }

    pub(super) fn place(&self) -> Place {
        Place {
            own: self.own.clone(),
            total: self.partition.total(),
            active: self.partition.active(),
            wraps: false,
        }
    }

    /// The first stored point.
    pub(super) fn first(&self) -> isize {
        self.own.start as isize - PAD as isize
    }
}

/// The address of the first own point.
pub(super) fn point0<F: Real>(buffer: &Buffer<F>) -> u64 {
    buffer.address() + (PAD * size_of::<F>()) as u64
}

impl<F: Real> LocalRows<F> for LineField<F> {
    type Error = GpuError;

    fn partition(&self) -> &Partition {
        &self.partition
    }

    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn row_len(&self) -> usize {
        1
    }

    fn wraps(&self) -> bool {
        false
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), GpuError> {
        let from = rows.start - self.own.start + PAD;
        let at = out.len();
        out.resize(at + rows.len(), F::ZERO);
        let part = self.before.range(from..from + rows.len());
        Ok(self.stream.read(&mut out[at..], part)?)
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), GpuError> {
        let at = (first - self.own.start as isize + PAD as isize) as usize;
        let part = self.before.range(at..at + values.len());
        Ok(self.stream.write(part, values)?)
    }
}

//! The memory of a PE's band of a plane in its GPU, with mask, source and ghosts.
#![allow(unsafe_code)] // Launches of kernels.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_cuda::{Buffer, Function, Launch, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::LANES as LEAF_COLUMNS;

use crate::element::Real;
use crate::engine::cpu::plane::CpuPlane;
use crate::engine::cuda::kernels;
use crate::engine::cuda::layout::Layout;
use crate::exchange::Place;
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::gpu::arguments::{BETWEEN_PASSES_THREADS, Band, PAD};
use crate::gpu::error::GpuError;
use crate::problem::Problem2d;

/// Most sweeps of a pass that any kernel makes.
pub(super) const MAX_DEPTH: usize = 10;
/// Stored rows before the own ones: halos, and the ghost row at the end of a grid that wraps.
const ROWS_BEFORE: usize = MAX_DEPTH + 2;
/// Stored rows behind the own ones. A strip's last leaf is advanced as a whole (15 rows more), for which as many rows
/// more are read as a pass has levels, two steps may be too many, and five rows are fetched ahead. Of the last of these
/// rows columns behind the padding are read, too: there has to be one row more.
const ROWS_BEHIND: usize = 32;

/// Rows of one PE with halos above and below, before and after a pass.
pub(super) struct PlaneField<F: Real> {
    pub partition: Partition,
    pub own: Range<usize>,
    pub layout: Layout,
    pub wrap_x: bool,
    pub wrap_y: bool,
    pub before: Buffer<F>,
    pub after: Buffer<F>,
    pub fixed: Option<Buffer<u8>>,
    pub source: Option<Buffer<F>>,
    /// Two halves, which passes add their norms to in turn.
    pub words: Buffer<u64>,
    wrap_rows: Function,
    wrap_columns: Function,
    /// Of passes, and of what they need between them.
    pub stream: Stream,
}

impl<F: Real> PlaneField<F> {
    /// The band that `host` has loaded.
    pub(super) fn new(
        problem: &Problem2d<F>,
        host: &CpuPlane<F>,
        gpu: &Gpu,
    ) -> Result<PlaneField<F>, GpuError> {
        let (own, nx) = (host.own(), problem.nx);
        if nx > i32::MAX as usize - 256 || problem.ny > i32::MAX as usize - 256 {
            return Err(GpuError::TooLong {
                longest: nx.max(problem.ny),
            });
        }
        let layout = Layout {
            nx,
            pitch: PAD + nx.next_multiple_of(LEAF_COLUMNS) + PAD,
            first: own.start as isize - ROWS_BEFORE as isize,
            rows: if own.is_empty() {
                0
            } else {
                ROWS_BEFORE + own.len() + ROWS_BEHIND
            },
        };
        let stream = Stream::new(&gpu.device)?;
        let elements = layout.rows * layout.pitch;
        let before = Buffer::zeroed(&stream, elements)?;
        let after = Buffer::zeroed(&stream, elements)?;
        let own_rows = own.start as isize..own.end as isize;
        layout.upload(&stream, &before, host.before(), own_rows)?;
        let (fixed, source) = host.given_fields();
        let fixed = fixed
            .map(|field| given(&layout, &stream, field))
            .transpose()?;
        let source = source
            .map(|field| given(&layout, &stream, field))
            .transpose()?;
        Ok(PlaneField {
            partition: *host.partition(),
            own,
            layout,
            wrap_x: problem.wrap_x(),
            wrap_y: problem.wrap_y(),
            before,
            after,
            fixed,
            source,
            words: Buffer::zeroed(&stream, 2 * MAX_DEPTH * Superaccumulator::<F>::WORDS)?,
            wrap_rows: loaded(kernels::find::<F>(&gpu.device, "wrap_rows")?.0)?,
            wrap_columns: loaded(kernels::find::<F>(&gpu.device, "wrap_columns")?.0)?,
            stream,
        })
    }

    /// Elements of `before`.
    pub(super) fn elements(&self) -> usize {
        self.layout.rows * self.layout.pitch
    }

    /// The band for a pass from `before` to `after` that adds to the half `half` of the words.
    pub(super) fn band(&self, before: &Buffer<F>, after: &Buffer<F>, half: usize) -> Band {
        Band {
            before: column0(before),
            after: column0(after),
            fixed: self.fixed.as_ref().map_or(0, column0),
            source: self.source.as_ref().map_or(0, column0),
            words: self.words.address() + 8 * self.words_of(half).start as u64,
            pitch: self.layout.pitch as i64,
            nx: self.layout.nx as i32,
            ny: self.partition.total() as i32,
            first: self.layout.first as i32,
            own_start: self.own.start as i32,
            own_end: self.own.end as i32,
            wrap_x: self.wrap_x.into(),
            wrap_y: self.wrap_y.into(),
            padding: 0,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place {
            own: self.own.clone(),
            total: self.partition.total(),
            active: self.partition.active(),
            wraps: self.wrap_y,
        }
    }

    /// The words of a half.
    pub(super) fn words_of(&self, half: usize) -> Range<usize> {
        let words = MAX_DEPTH * Superaccumulator::<F>::WORDS;
        half * words..(half + 1) * words
    }

    /// Makes the ghosts, and the halos beyond them, copies of inner cells again, where the grid wraps around and this
    /// PE has both sides. `rows`: how many rows at each end.
    pub(super) fn wrap(&self, band: Band, rows: usize) -> Result<(), GpuError> {
        let field = |launch: Launch<'_>, a: i32, b: i32| {
            let (first, nx) = (band.first, band.nx);
            // SAFETY: the parameters are F*, i64 and four ints; the rows and columns are stored.
            unsafe { launch.launch(&self.stream, (band.before, band.pitch, first, nx, a, b)) }
        };
        if self.wrap_y && self.partition.active() == 1 {
            let launch = Launch::new(&self.wrap_rows)
                .grid((
                    self.layout.nx.div_ceil(BETWEEN_PASSES_THREADS as usize) as u32,
                    2 * rows as u32,
                ))
                .block(BETWEEN_PASSES_THREADS);
            field(launch, band.ny, rows as i32)?;
        }
        if self.wrap_x {
            let y0 = band.own_start - rows as i32;
            let count = self.own.len() + 2 * rows;
            let threads = count * 2 * (PAD + 1);
            let launch = Launch::new(&self.wrap_columns)
                .grid(threads.div_ceil(BETWEEN_PASSES_THREADS as usize) as u32)
                .block(BETWEEN_PASSES_THREADS);
            field(launch, y0, count as i32)?;
        }
        Ok(())
    }
}

impl<F: Real> LocalRows<F> for PlaneField<F> {
    type Error = GpuError;

    fn partition(&self) -> &Partition {
        &self.partition
    }

    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn row_len(&self) -> usize {
        self.layout.nx
    }

    fn wraps(&self) -> bool {
        self.wrap_y
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), GpuError> {
        let rows = rows.start as isize..rows.end as isize;
        self.layout
            .download(&self.stream, &self.before, rows, |_, row| {
                out.extend_from_slice(row);
            })
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), GpuError> {
        for (y, row) in (first..).zip(values.chunks_exact(self.layout.nx)) {
            let start = self.layout.elements(&(y..y)).start + PAD;
            self.stream
                .write(self.before.range(start..start + row.len()), row)?;
        }
        Ok(())
    }
}

/// The address of column 0, from which the kernels count, of the first stored row.
pub(super) fn column0<T: Pod>(buffer: &Buffer<T>) -> u64 {
    buffer.address() + (PAD * size_of::<T>()) as u64
}

/// A mask or a source, in all stored rows that the host has.
fn given<T: Pod>(
    layout: &Layout,
    stream: &Stream,
    field: &Field<T>,
) -> Result<Buffer<T>, GpuError> {
    let buffer = Buffer::zeroed(stream, layout.rows * layout.pitch)?;
    let stored = layout.first..layout.first + layout.rows as isize;
    let rows = field.rows();
    let both = rows.start.max(stored.start)..rows.end.min(stored.end);
    layout.upload(stream, &buffer, field, both)?;
    Ok(buffer)
}

/// The kernel, ready to run: a first launch that loads it would wait for kernels that wait for another PE.
pub(super) fn loaded(kernel: Function) -> Result<Function, GpuError> {
    Launch::new(&kernel).load()?;
    Ok(kernel)
}

//! Passes over a line, or one launch a sweep.
#![allow(unsafe_code)] // Launches of kernels.

use std::ops::Range;

use crosswarp_cuda::{Buffer, ByValue, Function, Launch, PinnedBuffer, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES, LEAF};

use crate::element::Real;
use crate::engine::cuda::kernels;
use crate::engine::cuda::line::field::{LineField, PAD, point0};
use crate::engine::cuda::sums::sum_of_squares;
use crate::engine::slab::Passes;
use crate::exchange::device_put::{DevicePut, DeviceRows};
use crate::exchange::host_exchange::{BufferRows, HostExchange};
use crate::exchange::put_signal::PutSignal;
use crate::exchange::{HaloExchange, Place, Rows};
use crate::gpu::Gpu;
use crate::gpu::arguments::Segment;
use crate::gpu::error::GpuError;
use crate::gpu::strategy::Strategy;

/// The kernel of passes, for each type of fields.
pub(super) const PASS: &str = "pass_line";

/// How sweeps are made.
pub(super) enum Sweeps {
    /// One a launch.
    One(Function),
    /// Up to [`PAD`] in a pass.
    Pass {
        kernel: Function,
        threads: u32,
        /// Points of a block.
        points: usize,
    },
}

impl Sweeps {
    /// One a launch.
    pub(super) fn one<F: Real>(gpu: &Gpu) -> Result<Sweeps, GpuError> {
        Ok(Sweeps::One(
            kernels::find::<F>(&gpu.device, "sweep_line")?.0,
        ))
    }

    /// Several in a pass.
    pub(super) fn pass<F: Real>(gpu: &Gpu) -> Result<Sweeps, GpuError> {
        let (kernel, threads) = kernels::find::<F>(&gpu.device, PASS)?;
        Ok(Sweeps::Pass {
            kernel,
            threads,
            // A warp holds a leaf.
            points: threads as usize / 32 * LEAF,
        })
    }

    /// Most in a pass.
    pub(super) fn depth(&self) -> usize {
        match self {
            Sweeps::One(_) => 1,
            Sweeps::Pass { .. } => PAD,
        }
    }

    /// Gives `depth` sweeps of `points`, which begin on a leaf, to `stream`.
    fn launch<F: Real>(
        &self,
        stream: &Stream,
        field: &LineField<F>,
        words: &Buffer<u64>,
        points: Range<usize>,
        depth: usize,
    ) -> Result<(), GpuError> {
        let from = ((points.start - field.own.start) * size_of::<F>()) as u64;
        let segment = ByValue(Segment {
            before: point0(&field.before) + from,
            after: point0(&field.after) + from,
            words: words.address(),
            points: field.partition.total() as i64,
            own_start: points.start as i64,
            own_end: points.end as i64,
        });
        match self {
            Sweeps::One(kernel) => {
                let launch = Launch::new(kernel)
                    .grid(points.len().div_ceil(LEAF) as u32)
                    .block(LANES as u32);
                // SAFETY: the parameter is a `segment`, whose arrays hold its points and PAD more on each side,
                // and live until the stream has been waited for.
                unsafe { launch.launch(stream, (segment,)) }?;
            }
            Sweeps::Pass {
                kernel,
                threads,
                points: of_block,
            } => {
                let launch = Launch::new(kernel)
                    .grid(points.len().div_ceil(*of_block) as u32)
                    .block(*threads);
                // SAFETY: as above; the second parameter is an int.
                unsafe { launch.launch(stream, (segment, depth as i32)) }?;
            }
        }
        Ok(())
    }
}

/// How halos travel between passes.
pub(super) enum Halos<'w, F: Real> {
    /// Through the hosts, or not at all.
    ThroughHosts,
    /// By copies that the hosts start and wait for.
    Copied(Box<HostExchange<'w, F>>),
    /// Put by a kernel.
    Put(Box<DevicePut<'w, F>>),
}

/// Points of one PE, and what makes passes over them.
pub(super) struct LinePasses<'w, F: Real> {
    // Its device world is dropped first: it tells the other PEs, before buffers wait for kernels that may wait for this
    // PE.
    halos: Halos<'w, F>,
    pub sweeps: Sweeps,
    pub field: LineField<F>,
    words: Buffer<u64>,
    /// Where the words of a pass are copied to.
    sums: PinnedBuffer<u64>,
}

impl<'w, F: Real> LinePasses<'w, F> {
    /// What [`Choice::taken`](crate::Choice::taken) says of it.
    pub(super) fn name(&self) -> &'static str {
        match (&self.sweeps, &self.halos) {
            (Sweeps::One(_), _) => Strategy::Sweep.name(),
            (Sweeps::Pass { .. }, Halos::Put(_)) => Strategy::DevicePut.name(),
            (Sweeps::Pass { .. }, Halos::Copied(_)) => Strategy::HostExchange.name(),
            (Sweeps::Pass { .. }, Halos::ThroughHosts) => "passes",
        }
    }

    pub(super) fn new(
        gpu: &Gpu,
        field: LineField<F>,
        sweeps: Sweeps,
        halos: Halos<'w, F>,
    ) -> Result<LinePasses<'w, F>, GpuError> {
        let words = PAD * Superaccumulator::<F>::WORDS;
        Ok(LinePasses {
            halos,
            sweeps,
            field,
            words: Buffer::new(&gpu.device, words)?,
            sums: PinnedBuffer::zeroed(&gpu.device, words)?,
        })
    }
}

fn buffer_rows<'a, F: Real>(
    field: &'a LineField<F>,
    buffer: &'a Buffer<F>,
    place: &'a Place,
) -> BufferRows<'a, F> {
    BufferRows {
        buffer,
        first: field.first(),
        pitch: 1,
        place,
        stream: &field.stream,
    }
}

/// The first leaf, those that hold the last [`PAD`] points, and in between what neighbours do not need; if there is
/// something in between.
fn edges(own: &Range<usize>) -> Option<[Range<usize>; 3]> {
    let (start, end) = (own.start, own.end);
    let inner = start + LEAF..end.saturating_sub(PAD) / LEAF * LEAF;
    (inner.start < inner.end).then(|| [start..inner.start, inner.clone(), inner.end..end])
}

impl<F: Real> Passes<F> for LinePasses<'_, F> {
    type Error = GpuError;

    fn exchange(
        &mut self,
        through_hosts: &mut PutSignal<'_, F>,
        rows: Rows,
    ) -> Result<(), GpuError> {
        let place = self.field.place();
        let field = &mut self.field;
        let idle = field.own.is_empty();
        match &mut self.halos {
            Halos::ThroughHosts => through_hosts.exchange(field, rows),
            Halos::Copied(exchange) if !idle => {
                let mut before = buffer_rows(field, &field.before, &place);
                if !exchange.is_under_way() {
                    exchange.edge_after(&field.stream)?;
                    exchange.start(&before, rows)?;
                }
                exchange.finish(&mut before)
            }
            Halos::Put(exchange) if !idle => {
                let mut before = DeviceRows {
                    address: field.before.address(),
                    pitch: 1,
                    first: field.first(),
                    columns: 1,
                    place: &place,
                    stream: &field.stream,
                };
                exchange.exchange(&mut before, rows)
            }
            Halos::Copied(_) | Halos::Put(_) => Ok(()),
        }
    }

    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), GpuError> {
        let (field, all) = (&self.field, &self.words);
        if field.own.is_empty() {
            return Ok(());
        }
        let (depth, count) = (norms.len(), Superaccumulator::<F>::WORDS);
        let words = 0..depth * count;
        field.stream.zero(all.range(words.clone()))?;
        match (&mut self.halos, edges(&field.own)) {
            // When a pass is made again, its edges have been sent.
            (Halos::Copied(exchange), Some([first, inner, last])) if !exchange.is_under_way() => {
                let place = field.place();
                let edge = exchange.edge_after(&field.stream)?.clone();
                self.sweeps.launch(&edge, field, all, first, depth)?;
                self.sweeps.launch(&edge, field, all, last, depth)?;
                // The next pass may have as many sweeps.
                exchange.start(&buffer_rows(field, &field.after, &place), Rows::halo(PAD))?;
                self.sweeps
                    .launch(&field.stream, field, all, inner, depth)?;
                exchange.tell(&place)?;
                exchange.join(&field.stream)?;
            }
            _ => {
                let own = field.own.clone();
                self.sweeps.launch(&field.stream, field, all, own, depth)?;
            }
        }
        if let Halos::Put(exchange) = &self.halos {
            // Also notices if a neighbour is gone.
            exchange.synchronize(&field.stream)?;
        }
        let sums = &mut self.sums[words.clone()];
        field.stream.read(sums, all.range(words))?;
        for (norm, sum) in norms.iter_mut().zip(sums.chunks_exact(count)) {
            norm.merge(&sum_of_squares(sum));
        }
        Ok(())
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.field.before, &mut self.field.after);
    }
}

//! A PE's part of the line in its GPU's memory.
#![allow(unsafe_code)] // Launches of kernels.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{Buffer, ByValue, Function, Launch, PinnedBuffer, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES, LEAF};
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cpu::line::Slab1d;
use crate::engine::cuda::on_chip::line::LineMarch;
use crate::engine::cuda::plane::sum_of_squares;
use crate::engine::cuda::{kernels, on_chip::line as line_march};
use crate::engine::slab::{March, Slab};
use crate::exchange::device_put as exchange;
use crate::exchange::device_put::{Exchange, FieldRows, Place};
use crate::exchange::host_exchange::{HostExchange, StoredRows};
use crate::exchange::put_signal::{Halo, Rows};
use crate::field::partition::Partition;
use crate::gpu::choice::Choice;
use crate::gpu::{Gpu, Strategy};
use crate::method::jacobi::{MOST_SWEEPS, SolveError};
use crate::pes::agree::all_ready;
use crate::problem::Norm;
use crate::stop::threshold::Threshold;

/// `crosswarp::line_halo`: points of padding on both sides of the own ones, and most sweeps of a pass.
const PAD: usize = MOST_SWEEPS;

/// `crosswarp::segment`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Segment {
    before: u64,
    after: u64,
    words: u64,
    points: i64,
    own_start: i64,
    own_end: i64,
}

/// Points of one PE with halos left and right.
pub(crate) struct Line<'w, F: Real> {
    // Their device worlds are dropped first: they tell the other PEs, before buffers wait for kernels that may wait for
    // this PE.
    advance: Advance<'w, F>,
    halos: Halos<'w, F>,
    partition: Partition,
    own: Range<usize>,
    before: Buffer<F>,
    after: Buffer<F>,
    words: Buffer<u64>,
    /// Where the words of a pass are copied to.
    sums: PinnedBuffer<u64>,
    stream: Stream,
    choice: Choice,
}

/// How sweeps are made.
enum Advance<'w, F: Real> {
    /// All in one launch.
    March(Box<LineMarch<'w, F>>),
    /// One a launch.
    Sweep(Function),
    /// Up to [`PAD`] in a pass.
    Pass {
        kernel: Function,
        threads: u32,
        /// Points of a block.
        points: usize,
    },
}

/// How halos travel between passes.
enum Halos<'w, F: Real> {
    /// Through the hosts, or not at all.
    Host,
    /// By copies that the hosts start and wait for.
    Copied(Box<HostExchange<'w, F>>),
    /// Put by a kernel.
    Put(Box<Exchange<'w, F>>),
}

impl<'w, F: Real> Line<'w, F> {
    /// The points that `host` has. Collective.
    pub(crate) fn new(pe: &'w Pe, host: &Slab1d<F>, gpu: &Gpu) -> Result<Line<'w, F>, SolveError> {
        let own = host.own();
        let stream = Stream::new(&gpu.device)?;
        let alone = host.partition().active() == 1;
        let march = || LineMarch::new(pe, gpu, host.partition(), &stream).map(Box::new);
        let put = || {
            let kernel = all_ready(pe, exchange::kernel::<F>(&gpu.device))?;
            let exchange = Exchange::new(pe, gpu.device, kernel, PAD, 1, &stream)?;
            Ok::<_, SolveError>(Halos::Put(Box::new(exchange)))
        };
        let pass = || all_ready(pe, Advance::pass(gpu));
        let mut choice = Choice::default();
        let (advance, halos) = match gpu.strategy {
            Strategy::Sweep => {
                let found = all_ready(pe, kernels::find::<F>(&gpu.device, "sweep_line"))?;
                (Advance::Sweep(found.0), Halos::Host)
            }
            Strategy::Persistent => (Advance::March(march()?), Halos::Host),
            // Where it can not be, all PEs are told so.
            Strategy::Auto => match choice.prefer(pe, Strategy::Persistent, march())? {
                Some(march) => (Advance::March(march), Halos::Host),
                None if alone => (pass()?, Halos::Host),
                None => {
                    let pass = pass()?;
                    let halos = choice.prefer(pe, Strategy::DevicePut, put())?;
                    (pass, halos.unwrap_or(Halos::Host))
                }
            },
            Strategy::HostExchange if !alone => {
                let exchange = HostExchange::new(pe, gpu.device, PAD, 1)?;
                (pass()?, Halos::Copied(Box::new(exchange)))
            }
            Strategy::DevicePut if !alone => (pass()?, put()?),
            Strategy::HostExchange | Strategy::DevicePut => (pass()?, Halos::Host),
        };
        choice.taken = match (&advance, &halos) {
            (Advance::March(_), _) => Strategy::Persistent.name(),
            (Advance::Sweep(_), _) => Strategy::Sweep.name(),
            (Advance::Pass { .. }, Halos::Put(_)) => Strategy::DevicePut.name(),
            (Advance::Pass { .. }, Halos::Copied(_)) => Strategy::HostExchange.name(),
            (Advance::Pass { .. }, Halos::Host) => "passes",
        };
        // Whole leaves, as a march takes them.
        let stored = own.len().next_multiple_of(LEAF) + 2 * PAD;
        let mut line = Line {
            partition: *host.partition(),
            before: Buffer::zeroed(&stream, stored)?,
            after: Buffer::zeroed(&stream, stored)?,
            words: Buffer::new(&gpu.device, PAD * Superaccumulator::<F>::WORDS)?,
            sums: PinnedBuffer::zeroed(&gpu.device, PAD * Superaccumulator::<F>::WORDS)?,
            advance,
            halos,
            own,
            stream,
            choice,
        };
        line.stream
            .write(line.before.range(PAD..PAD + line.own.len()), host.values())?;
        if let Advance::March(kernel) = &mut line.advance {
            // No PE allocates any more while another's kernel may be waiting for it on the same GPU.
            pe.barrier()?;
            // Two short passes whose outcome is forgotten: the first accesses to memory, another GPU's most of all, and
            // fetching the code take longer than a whole solve.
            let point0 = |buffer: &Buffer<F>| buffer.address() + (PAD * size_of::<F>()) as u64;
            let fields = (point0(&line.before), point0(&line.after));
            let march = March {
                done: 0,
                most: 4,
                next: 0,
                depth: 2,
                threshold: &Threshold::new(0.0, Norm::L2, 1),
            };
            let whole = (&line.own, line.partition.total());
            kernel.run(&line.stream, fields, whole, &march, &mut Vec::new())?;
        }
        Ok(line)
    }

    /// How sweeps are made.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    fn place(&self) -> Place {
        Place {
            own: self.own.clone(),
            total: self.partition.total(),
            active: self.partition.active(),
            wraps: false,
        }
    }

    fn stored(&self) -> StoredRows {
        StoredRows {
            first: self.own.start as isize - PAD as isize,
            pitch: 1,
        }
    }

    /// The first leaf, those that hold the last [`PAD`] points, and in between what neighbours do not need; if there is
    /// something in between.
    fn edges(&self) -> Option<[Range<usize>; 3]> {
        let (start, end) = (self.own.start, self.own.end);
        let inner = start + LEAF..end.saturating_sub(PAD) / LEAF * LEAF;
        (inner.start < inner.end).then(|| [start..inner.start, inner.clone(), inner.end..end])
    }

    /// Copies the points before the next sweep to `host`.
    pub(crate) fn save(&self, host: &mut Slab1d<F>) -> Result<(), SolveError> {
        let mut values = Vec::new();
        self.pack(self.own.clone(), &mut values)?;
        host.unpack(self.own.start as isize, &values)
    }
}

/// The points of a pass.
struct Part {
    segment: Segment,
    element: u64,
}

impl Part {
    fn of<F: Real>(
        own: &Range<usize>,
        before: &Buffer<F>,
        after: &Buffer<F>,
        words: &Buffer<u64>,
        place: &Place,
    ) -> Part {
        let element = size_of::<F>() as u64;
        Part {
            segment: Segment {
                before: before.address() + PAD as u64 * element,
                after: after.address() + PAD as u64 * element,
                words: words.address(),
                points: place.total as i64,
                own_start: own.start as i64,
                own_end: own.end as i64,
            },
            element,
        }
    }

    /// Gives `depth` sweeps of `points`, which begin on a leaf, to `stream`.
    fn launch<F: Real>(
        &self,
        stream: &Stream,
        advance: &Advance<'_, F>,
        points: Range<usize>,
        depth: usize,
    ) -> Result<(), SolveError> {
        let from = (points.start as i64 - self.segment.own_start) as u64 * self.element;
        let segment = ByValue(Segment {
            before: self.segment.before + from,
            after: self.segment.after + from,
            own_start: points.start as i64,
            own_end: points.end as i64,
            ..self.segment
        });
        match advance {
            Advance::Sweep(kernel) => {
                let launch = Launch::new(kernel)
                    .grid(points.len().div_ceil(LEAF) as u32)
                    .block(LANES as u32);
                // SAFETY: the parameter is a `segment`, whose arrays hold its points and PAD more on each side,
                // and live until the stream has been waited for.
                unsafe { launch.launch(stream, (segment,)) }?;
            }
            Advance::Pass {
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
            Advance::March(_) => unreachable!("it marches"),
        }
        Ok(())
    }
}

impl<F: Real> Advance<'_, F> {
    fn pass(gpu: &Gpu) -> Result<Self, SolveError> {
        let (kernel, threads) = kernels::find::<F>(&gpu.device, "pass_line")?;
        Ok(Advance::Pass {
            kernel,
            threads,
            // A lane holds 64 points.
            points: threads as usize * 64,
        })
    }
}

impl<F: Real> Slab<F> for Line<'_, F> {
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

    fn starts_singly(&self) -> bool {
        false
    }

    fn default_depth(&self) -> usize {
        self.depth_limit().min(32)
    }

    fn depth_limit(&self) -> usize {
        match self.advance {
            Advance::Sweep(_) => 1,
            Advance::March(_) => line_march::DEPTH,
            Advance::Pass { .. } => PAD,
        }
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), SolveError> {
        let from = rows.start - self.own.start + PAD;
        let at = out.len();
        out.resize(at + rows.len(), F::ZERO);
        let part = self.before.range(from..from + rows.len());
        Ok(self.stream.read(&mut out[at..], part)?)
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), SolveError> {
        let at = (first - self.own.start as isize + PAD as isize) as usize;
        let part = self.before.range(at..at + values.len());
        Ok(self.stream.write(part, values)?)
    }

    fn exchange(&mut self, pe: &Pe, halo: &mut Halo<F>, rows: Rows) -> Result<(), SolveError> {
        let (place, stored) = (self.place(), self.stored());
        if let Halos::Host = self.halos {
            return halo.exchange(pe, self, rows);
        }
        if self.own.is_empty() {
            return Ok(());
        }
        match &mut self.halos {
            Halos::Host => unreachable!("returned above"),
            Halos::Copied(exchange) => {
                if !exchange.is_under_way() {
                    exchange.edge_after(&self.stream)?;
                    exchange.send(&self.before, stored, &place, rows)?;
                }
                exchange.receive(&self.stream, &self.before, stored, &place)
            }
            Halos::Put(exchange) => {
                let field = FieldRows {
                    address: self.before.address(),
                    pitch: 1,
                    first: stored.first,
                    columns: 1,
                };
                exchange.launch(&field, &place, rows)
            }
        }
    }

    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), SolveError> {
        if self.own.is_empty() {
            return Ok(());
        }
        let count = Superaccumulator::<F>::WORDS;
        let words = 0..norms.len() * count;
        self.stream.zero(self.words.range(words.clone()))?;
        let depth = norms.len();
        let (place, stored, edges) = (self.place(), self.stored(), self.edges());
        // When a pass is made again, its edges have been sent.
        let sends = matches!(&self.halos, Halos::Copied(exchange) if !exchange.is_under_way());
        match (&mut self.halos, edges) {
            (Halos::Copied(exchange), Some([first, inner, last])) if sends => {
                let edge = exchange.edge_after(&self.stream)?.clone();
                let part = Part::of(&self.own, &self.before, &self.after, &self.words, &place);
                part.launch(&edge, &self.advance, first, depth)?;
                part.launch(&edge, &self.advance, last, depth)?;
                // The next pass may have as many sweeps.
                exchange.send(&self.after, stored, &place, Rows::halo(PAD))?;
                part.launch(&self.stream, &self.advance, inner, depth)?;
                exchange.tell(&place)?;
                exchange.join(&self.stream)?;
            }
            _ => {
                let part = Part::of(&self.own, &self.before, &self.after, &self.words, &place);
                part.launch(&self.stream, &self.advance, self.own.clone(), depth)?;
            }
        }
        let sums = &mut self.sums[words.clone()];
        if let Halos::Put(exchange) = &self.halos {
            // Also notices if a neighbour is gone.
            exchange.synchronize(&self.stream)?;
        }
        self.stream.read(sums, self.words.range(words))?;
        for (norm, sum) in norms.iter_mut().zip(sums.chunks_exact(count)) {
            norm.merge(&sum_of_squares(sum));
        }
        Ok(())
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.before, &mut self.after);
    }

    fn marches(&self) -> bool {
        matches!(self.advance, Advance::March(_))
    }

    fn march(
        &mut self,
        march: &March<'_>,
        sums: &mut Vec<Superaccumulator<F>>,
    ) -> Result<(), SolveError> {
        let Advance::March(kernel) = &mut self.advance else {
            unreachable!("only then it marches");
        };
        let point0 = |buffer: &Buffer<F>| buffer.address() + (PAD * size_of::<F>()) as u64;
        let fields = (point0(&self.before), point0(&self.after));
        let line = (&self.own, self.partition.total());
        kernel.run(&self.stream, fields, line, march, sums)?;
        self.accept();
        Ok(())
    }
}

//! A PE's part of the line in its GPU's memory.
#![allow(unsafe_code)] // Launches of kernels.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{Buffer, ByValue, Function, Launch, PinnedBuffer, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES, LEAF};
use crosswarp_shmem::Pe;

use crate::cuda::line_march::LineMarch;
use crate::cuda::plane::sum_of_squares;
use crate::cuda::{Gpu, Strategy, kernels, line_march};
use crate::driver::{MOST_SWEEPS, SolveError};
use crate::partition::Partition;
use crate::real::Real;
use crate::slab::{March, Slab};
use crate::slab1d::Slab1d;

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
    partition: Partition,
    own: Range<usize>,
    before: Buffer<F>,
    after: Buffer<F>,
    words: Buffer<u64>,
    advance: Advance<'w, F>,
    /// Where the words of a pass are copied to.
    sums: PinnedBuffer<u64>,
    stream: Stream,
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

impl<'w, F: Real> Line<'w, F> {
    /// The points that `host` has. Collective.
    pub(crate) fn new(pe: &'w Pe, host: &Slab1d<F>, gpu: &Gpu) -> Result<Line<'w, F>, SolveError> {
        let own = host.own();
        let stream = Stream::new(&gpu.device)?;
        let march = || LineMarch::new(pe, gpu, host.partition(), &stream).map(Box::new);
        let advance = match gpu.strategy {
            Strategy::Sweep => Advance::Sweep(kernels::find::<F>(&gpu.device, "sweep_line")?.0),
            Strategy::Persistent => Advance::March(march()?),
            // Where it can not be, all PEs are told so.
            Strategy::Auto => match march() {
                Ok(march) => Advance::March(march),
                Err(_) => Advance::pass(gpu)?,
            },
            Strategy::HostExchange | Strategy::DevicePut => Advance::pass(gpu)?,
        };
        // Whole leaves, as a march takes them.
        let stored = own.len().next_multiple_of(LEAF) + 2 * PAD;
        let line = Line {
            partition: *host.partition(),
            before: Buffer::zeroed(&stream, stored)?,
            after: Buffer::zeroed(&stream, stored)?,
            words: Buffer::new(&gpu.device, PAD * Superaccumulator::<F>::WORDS)?,
            sums: PinnedBuffer::zeroed(&gpu.device, PAD * Superaccumulator::<F>::WORDS)?,
            advance,
            own,
            stream,
        };
        line.stream
            .write(line.before.range(PAD..PAD + line.own.len()), host.values())?;
        Ok(line)
    }

    /// Copies the points before the next sweep to `host`.
    pub(crate) fn save(&self, host: &mut Slab1d<F>) -> Result<(), SolveError> {
        let mut values = Vec::new();
        self.pack(self.own.clone(), &mut values)?;
        host.unpack(self.own.start as isize, &values)
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

    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), SolveError> {
        if self.own.is_empty() {
            return Ok(());
        }
        let point0 = |buffer: &Buffer<F>| buffer.address() + (PAD * size_of::<F>()) as u64;
        let segment = Segment {
            before: point0(&self.before),
            after: point0(&self.after),
            words: self.words.address(),
            points: self.partition.total() as i64,
            own_start: self.own.start as i64,
            own_end: self.own.end as i64,
        };
        let count = Superaccumulator::<F>::WORDS;
        let words = self.words.range(..norms.len() * count);
        self.stream.zero(words)?;
        let segment = ByValue(segment);
        match &self.advance {
            Advance::Sweep(kernel) => {
                let launch = Launch::new(kernel)
                    .grid(self.own.len().div_ceil(LEAF) as u32)
                    .block(LANES as u32);
                // SAFETY: the parameter is a `segment`, whose arrays hold the own points and PAD more on each side,
                // and live until the stream has been waited for.
                unsafe { launch.launch(&self.stream, (segment,)) }?;
            }
            Advance::Pass {
                kernel,
                threads,
                points,
            } => {
                let launch = Launch::new(kernel)
                    .grid(self.own.len().div_ceil(*points) as u32)
                    .block(*threads);
                // SAFETY: as above; the second parameter is an int.
                unsafe { launch.launch(&self.stream, (segment, norms.len() as i32)) }?;
            }
            Advance::March(_) => unreachable!("it marches"),
        }
        let sums = &mut self.sums[..norms.len() * count];
        self.stream.read(sums, words)?;
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

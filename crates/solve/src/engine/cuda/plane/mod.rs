//! A PE's band of a 2-D grid in its GPU's memory.
//!
//! The host reads a pass's norms while the next pass already runs: whether it was needed turns out later. If the stop
//! lies in the pass before, what the early pass wrote is forgotten; the field before that pass is still there.

mod edges_first;
mod launches;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{Buffer, Event, Function, Launch, PinnedBuffer, Stream};
use crosswarp_prim::leaf::LANES as LEAF_COLUMNS;
use crosswarp_prim::{Float, Superaccumulator};
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cpu::plane::Slab2d;
use crate::engine::cuda::kernels;
use crate::engine::cuda::layout::{Layout, PAD};
use crate::engine::cuda::on_chip::plane::{Resident, Wraps, fits};
use crate::engine::cuda::temporal::block_order::{Machine, Order};
use crate::engine::cuda::temporal::strips::PassShape;
use crate::engine::slab::{March, Slab};
use crate::exchange::device_put as exchange;
use crate::exchange::device_put::{Exchange, Place};
use crate::exchange::host_exchange::HostExchange;
use crate::exchange::put_signal::{Halo, Rows};
use crate::field::partition::Partition;
use crate::field::storage::Field;
use crate::gpu::choice::Choice;
use crate::gpu::{Gpu, Strategy};
use crate::method::jacobi::SolveError;
use crate::pes::agree::{all_ready, least};
use crate::problem::Problem2d;

/// Most sweeps of a pass that any kernel makes.
const MAX_DEPTH: usize = 10;
/// Stored rows before the own ones: halos, and the ghost row at the end of a grid that wraps.
const ROWS_BEFORE: usize = MAX_DEPTH + 2;
/// Stored rows behind the own ones. A strip's last leaf is advanced as a whole (15 rows more), for which as many rows more
/// are read as a pass has levels, two steps may be too many, and five rows are fetched ahead. Of the last of these rows
/// columns behind the padding are read, too: there has to be one row more.
const ROWS_BEHIND: usize = 32;

/// `crosswarp::band`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Band {
    before: u64,
    after: u64,
    fixed: u64,
    source: u64,
    words: u64,
    pitch: i64,
    nx: i32,
    ny: i32,
    first: i32,
    own_start: i32,
    own_end: i32,
    wrap_x: i32,
    wrap_y: i32,
    padding: u32,
}

/// How sweeps are made.
enum Advance {
    /// One a launch.
    Sweep(Function),
    /// Up to `depth` in a pass.
    Pass {
        kernel: Function,
        machine: Machine,
        /// How the whole band is cut.
        order: Box<Order>,
    },
}

/// A launch of a pass's kernel, but for the grid.
fn pass_launch<'f>(kernel: &'f Function, shape: &PassShape, warps: usize) -> Launch<'f> {
    Launch::new(kernel)
        .block(32 * warps as u32)
        .shared(shape.shared(warps))
}

/// Rows of one PE with halos above and below.
pub(crate) struct Plane<'w, F: Real> {
    // The device worlds are dropped first: they tell the other PEs, before buffers wait for kernels that may wait for this
    // PE.
    exchange: Option<Exchange<'w, F>>,
    /// Makes the sweeps, if there is one, but for the first of a grid that wraps around.
    resident: Option<Resident<'w, F>>,
    /// Another way: the hosts exchange.
    host: Option<HostExchange<'w, F>>,
    partition: Partition,
    own: Range<usize>,
    layout: Layout,
    wrap_x: bool,
    wrap_y: bool,
    before: Buffer<F>,
    after: Buffer<F>,
    /// What an early pass writes to; none if memory is short.
    spare: Option<Buffer<F>>,
    fixed: Option<Buffer<u8>>,
    source: Option<Buffer<F>>,
    words: Buffer<u64>,
    /// Where the words of a pass are copied to.
    sums: PinnedBuffer<u64>,
    /// The pass expected after the next one.
    expected: Option<usize>,
    /// Sweeps of the pass from `before` to `after` that has been launched early, its exchange included.
    early: Option<usize>,
    /// The same from `after` to `spare`.
    earlier: Option<usize>,
    /// Whether the exchange of the halos of what the last pass makes has been launched, and nothing waits for it yet.
    sent: bool,
    /// Which half of `words` the next pass adds to.
    half: usize,
    /// Which halves are zero, once what is in the streams has ended.
    zero: [bool; 2],
    advance: Advance,
    wrap_rows: Function,
    wrap_columns: Function,
    publish: Function,
    /// The words of the last pass are in `sums`.
    published: Event,
    /// What has been given to `stream` up to the last pass, or later, is over.
    passed: Event,
    /// Of passes, and of what they need between them.
    stream: Stream,
    /// Of what goes on beside passes: exchanges, and what is published while the next pass begins. The same stream if there
    /// are no exchanges, or too many PEs share the GPU.
    beside: Stream,
    choice: Choice,
}

impl<'w, F: Real> Plane<'w, F> {
    /// The band that `host` has loaded. Collective.
    pub(crate) fn new(
        pe: &'w Pe,
        problem: &Problem2d<F>,
        host: &Slab2d<F>,
        gpu: &Gpu,
    ) -> Result<Plane<'w, F>, SolveError> {
        let (own, nx) = (host.own(), problem.nx);
        if nx > i32::MAX as usize - 256 || problem.ny > i32::MAX as usize - 256 {
            return Err(SolveError::TooLongForGpu {
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
        let stored = layout.first..layout.first + layout.rows as isize;
        layout.upload(
            &stream,
            &before,
            host.before(),
            own.start as isize..own.end as isize,
        )?;
        let (fixed, source) = host.given_fields();
        fn given<T: Pod>(
            layout: &Layout,
            stream: &Stream,
            field: &Field<T>,
            stored: &Range<isize>,
        ) -> Result<Buffer<T>, SolveError> {
            let buffer = Buffer::zeroed(stream, layout.rows * layout.pitch)?;
            let rows = field.rows();
            let both = rows.start.max(stored.start)..rows.end.min(stored.end);
            layout.upload(stream, &buffer, field, both)?;
            Ok(buffer)
        }
        let fixed = fixed
            .map(|field| given(&layout, &stream, field, &stored))
            .transpose()?;
        let source = source
            .map(|field| given(&layout, &stream, field, &stored))
            .transpose()?;
        let chip = || {
            let source = source.is_some();
            let wraps = Wraps {
                x: problem.wrap_x(),
                y: problem.wrap_y(),
            };
            Resident::new(
                pe,
                gpu.device,
                &stream,
                host.partition(),
                nx,
                wraps,
                elements,
                source,
            )
        };
        let mut choice = Choice::default();
        let resident = match gpu.strategy {
            Strategy::Persistent => Some(chip()?),
            // Where it can not be, all PEs are told so.
            Strategy::Auto => {
                let fits = fits::<F>(&gpu.device, host.partition(), nx);
                let made = all_ready(pe, fits).and_then(|()| chip());
                choice.prefer(pe, Strategy::Persistent, made)?
            }
            _ => None,
        };
        let make = || {
            let kernel = all_ready(pe, exchange::kernel::<F>(&gpu.device))?;
            let columns = nx.next_multiple_of(LEAF_COLUMNS);
            Exchange::new(pe, gpu.device, kernel, MAX_DEPTH + 1, columns, &stream)?.beside_passes()
        };
        let alone = host.partition().active() == 1;
        let exchange = match gpu.strategy {
            Strategy::DevicePut if !alone => Some(make()?),
            // Where it can not be, all PEs are told so.
            Strategy::Auto if !alone && resident.is_none() => {
                choice.prefer(pe, Strategy::DevicePut, make())?
            }
            _ => None,
        };
        let advance = match gpu.strategy {
            Strategy::Sweep => Advance::Sweep(kernels::find::<F>(&gpu.device, "sweep_plane")?.0),
            _ => {
                let plain = fixed.is_none() && source.is_none();
                let name = match (fixed.is_some(), source.is_some()) {
                    (false, false) => "pass_plain",
                    (true, false) => "pass_fixed",
                    (false, true) => "pass_source",
                    (true, true) => "pass_both",
                };
                let kernel = kernels::find::<F>(&gpu.device, name)?.0;
                let shape = PassShape::of::<F>(plain);
                // It is compiled for as many as have room.
                let warps = kernel.attributes().max_threads as usize / 32;
                let launch = pass_launch(&kernel, &shape, warps);
                launch.load()?;
                let machine = Machine {
                    shape,
                    nx,
                    wraps: problem.wrap_x(),
                    warps,
                    blocks: launch.max_resident()? as usize,
                };
                let order = match &exchange {
                    Some(exchange) => {
                        let beside =
                            exchange.blocks_beside(&kernel, 32 * warps as u32, machine.blocks);
                        let machine = Machine {
                            blocks: machine.blocks.saturating_sub(beside),
                            ..machine
                        };
                        match edges_first::parts(&own) {
                            Some(parts) => machine.edges_first(parts),
                            None => machine.whole_counted(own.clone()),
                        }
                    }
                    None => machine.whole(own.clone()),
                };
                Advance::Pass {
                    kernel,
                    machine,
                    order: Box::new(order),
                }
            }
        };
        let host_exchange = if gpu.strategy == Strategy::HostExchange && !alone {
            let exchange = HostExchange::new(pe, gpu.device, MAX_DEPTH + 1, layout.pitch)?;
            Some(exchange)
        } else {
            None
        };
        choice.taken = match gpu.strategy {
            Strategy::Sweep => Strategy::Sweep.name(),
            _ if resident.is_some() => Strategy::Persistent.name(),
            _ if exchange.is_some() => Strategy::DevicePut.name(),
            _ if host_exchange.is_some() => Strategy::HostExchange.name(),
            _ => "passes",
        };
        let early =
            exchange.is_some() || (alone && resident.is_none() && gpu.strategy != Strategy::Sweep);
        let spare = early
            .then(|| Buffer::zeroed(&stream, elements).ok())
            .flatten();
        // Early passes are launched on all PEs or on none.
        let spare = if pe.n_pes() > 1 && least(pe, spare.is_some().into())? == 0 {
            None
        } else {
            spare
        };
        let beside = exchange.as_ref().map_or(&stream, Exchange::stream).clone();
        Ok(Plane {
            beside,
            words: Buffer::zeroed(&stream, 2 * MAX_DEPTH * Superaccumulator::<F>::WORDS)?,
            exchange,
            resident,
            host: host_exchange,
            expected: None,
            early: None,
            earlier: None,
            sent: false,
            half: 0,
            zero: [true; 2],
            spare,
            sums: PinnedBuffer::zeroed(&gpu.device, MAX_DEPTH * Superaccumulator::<F>::WORDS)?,
            wrap_rows: loaded(kernels::find::<F>(&gpu.device, "wrap_rows")?.0)?,
            wrap_columns: loaded(kernels::find::<F>(&gpu.device, "wrap_columns")?.0)?,
            publish: loaded(kernels::find_plain(&gpu.device, "publish")?)?,
            published: Event::without_timing(&gpu.device)?,
            passed: Event::without_timing(&gpu.device)?,
            wrap_x: problem.wrap_x(),
            wrap_y: problem.wrap_y(),
            partition: *host.partition(),
            own,
            layout,
            before,
            after,
            fixed,
            source,
            advance,
            stream,
            choice,
        })
    }

    /// How sweeps are made.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Copies the field before the next pass to `host`.
    ///
    /// Errors: also if a kernel ever gave up waiting for a neighbour.
    pub(crate) fn save(&self, host: &mut Slab2d<F>) -> Result<(), SolveError> {
        self.check_waits()?;
        let rows = self.own.start as isize..self.own.end as isize;
        self.layout
            .download(&self.stream, &self.before, rows, |y, row| {
                host.overwrite(y, row);
            })
    }

    /// The band for a pass from `before` to `after` that adds to the half `half` of the words.
    fn band(&self, before: &Buffer<F>, after: &Buffer<F>, half: usize) -> Band {
        // The kernels count from column 0.
        let column0 = |address: u64, element: usize| address + (PAD * element) as u64;
        let field = size_of::<F>();
        Band {
            before: column0(before.address(), field),
            after: column0(after.address(), field),
            fixed: self
                .fixed
                .as_ref()
                .map_or(0, |mask| column0(mask.address(), 1)),
            source: self
                .source
                .as_ref()
                .map_or(0, |source| column0(source.address(), field)),
            words: self.words.address() + 8 * self.half_start(half) as u64,
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

    fn place(&self) -> Place {
        Place {
            own: self.own.clone(),
            total: self.partition.total(),
            active: self.partition.active(),
            wraps: self.wrap_y,
        }
    }

    /// The first word of a half.
    fn half_start(&self, half: usize) -> usize {
        half * MAX_DEPTH * Superaccumulator::<F>::WORDS
    }

    fn check_waits(&self) -> Result<(), SolveError> {
        if let Some(resident) = &self.resident {
            resident.synchronize(&self.stream)?;
        }
        match &self.exchange {
            Some(exchange) => {
                self.join()?;
                exchange.synchronize(&self.stream)
            }
            None => Ok(()),
        }
    }
}

impl<F: Real> Slab<F> for Plane<'_, F> {
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

    fn starts_singly(&self) -> bool {
        self.wrap_x || self.wrap_y
    }

    fn default_depth(&self) -> usize {
        self.depth_limit()
    }

    fn depth_limit(&self) -> usize {
        match self.advance {
            Advance::Sweep(_) => 1,
            _ if self.resident.is_some() => 1,
            Advance::Pass { ref machine, .. } => machine.shape.depth,
        }
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), SolveError> {
        self.join()?;
        let rows = rows.start as isize..rows.end as isize;
        self.layout
            .download(&self.stream, &self.before, rows, |_, row| {
                out.extend_from_slice(row);
            })
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), SolveError> {
        for (y, row) in (first..).zip(values.chunks_exact(self.layout.nx)) {
            let start = self.layout.elements(&(y..y)).start + PAD;
            self.stream
                .write(self.before.range(start..start + row.len()), row)?;
        }
        Ok(())
    }

    fn exchange(&mut self, pe: &Pe, halo: &mut Halo<F>, rows: Rows) -> Result<(), SolveError> {
        if self.host.is_some() && !self.own.is_empty() {
            self.exchange_by_host(rows)?;
        } else if self.partition.active() > 1 && self.exchange.is_none() {
            halo.exchange(pe, self, rows)?;
        }
        // An early pass has had its halos.
        if self.own.is_empty() || self.early.is_some() {
            return Ok(());
        }
        let band = self.band(&self.before, &self.after, self.half);
        self.fill_halos(band, rows)
    }

    fn expect(&mut self, next: Option<usize>) {
        self.expected = next;
    }

    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), SolveError> {
        if self.own.is_empty() {
            return Ok(());
        }
        let (half, count) = (self.half, Superaccumulator::<F>::WORDS);
        self.earlier = None;
        // When a pass is made again, its edge has been sent.
        if self.host.as_ref().is_some_and(|host| !host.is_under_way()) {
            self.launch_edges_first(norms.len())?;
        } else if self.early.take() != Some(norms.len()) {
            let band = self.band(&self.before, &self.after, half);
            self.launch(band, half, norms.len())?;
        }
        self.publish(half, norms.len() * count)?;
        let next = self.expected.take().filter(|_| self.spare.is_some());
        if let (Some(next), Some(spare)) = (next, &self.spare) {
            let band = self.band(&self.after, spare, 1 - half);
            self.fill_halos(band, Rows::halo(next))?;
            self.launch(band, 1 - half, next)?;
        }
        self.earlier = next;
        match &self.exchange {
            Some(exchange) => exchange.wait(&self.published, &self.beside)?,
            None => self.published.synchronize()?,
        }
        let sums = &self.sums[..norms.len() * count];
        for (norm, sum) in norms.iter_mut().zip(sums.chunks_exact(count)) {
            norm.merge(&sum_of_squares(sum));
        }
        Ok(())
    }

    fn marches(&self) -> bool {
        self.resident.is_some()
    }

    fn march(
        &mut self,
        march: &March<'_>,
        sums: &mut Vec<Superaccumulator<F>>,
    ) -> Result<(), SolveError> {
        let mut band = self.band(&self.before, &self.after, 0);
        let column0 = |buffer: &Buffer<F>| buffer.address() + (PAD * size_of::<F>()) as u64;
        let resident = self.resident.as_mut().expect("only then it marches");
        let threshold = Some(march.threshold);
        if resident.begun() != Some(march.most) {
            resident.begin(&self.stream, band, column0, march.most, threshold)?;
        }
        let (made, stops) = resident.finish(&self.stream)?;
        if made < march.most {
            // More may have been made: again, from the chunk of the stop on.
            let chunk = (made - 1) / Resident::<F>::CHUNK;
            if chunk > 0 {
                band.before = column0(resident.kept(chunk));
            }
            let left = made - chunk * Resident::<F>::CHUNK;
            resident.begin(&self.stream, band, column0, left, None)?;
            resident.finish(&self.stream)?;
        }
        std::mem::swap(&mut self.before, &mut self.after);
        if self.wrap_x && self.wrap_y && !self.own.is_empty() {
            // The corners: ghosts of ghosts.
            self.wrap(self.band(&self.before, &self.after, 0), 1)?;
        }
        let band = self.band(&self.before, &self.after, 0);
        let resident = self.resident.as_mut().expect("as above");
        if !stops && march.next > 0 {
            // The host reads the sums meanwhile.
            resident.begin(&self.stream, band, column0, march.next, threshold)?;
        }
        resident.sums(made, sums);
        Ok(())
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.before, &mut self.after);
        self.half = 1 - self.half;
        self.early = self.earlier.take();
        if let (Some(_), Some(spare)) = (self.early, &mut self.spare) {
            std::mem::swap(&mut self.after, spare);
        }
    }
}

/// The kernel, ready to run: a first launch that loads it would wait for kernels that wait for another PE.
fn loaded(kernel: Function) -> Result<Function, SolveError> {
    Launch::new(&kernel).load()?;
    Ok(kernel)
}

/// The accumulator of a sum of squares whose words the kernels have added up.
pub(crate) fn sum_of_squares<F: Real>(words: &[u64]) -> Superaccumulator<F> {
    let mut sum = <F as Float>::Words::zeroed();
    sum.as_mut().copy_from_slice(words);
    // The kernels do not count values other than −0.0; that a sum is not −0.0 makes no difference to a norm.
    sum.as_mut()[words.len() - 4] = 1;
    Superaccumulator::from_words(sum)
}

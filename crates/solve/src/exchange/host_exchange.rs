//! Halos by copies from GPU to GPU that the host starts and waits for: the scheme of programs that use MPI.
//!
//! Rows travel into the neighbour's staging buffer by the copy engines; when they have arrived, the host says so to
//! the neighbour's host, which has them copied into its field. The buffers are used in turn, for the reason that stands
//! in [`put_signal`](crate::exchange::put_signal).

use crosswarp_cuda::{Buffer, Device, DeviceSym, DeviceWorld, Event, Stream};
use crosswarp_shmem::{Cmp, Pe, SignalOp, Sym};

use crate::element::Real;
use crate::exchange::HaloExchange;
use crate::exchange::edges::{Place, Rows, opposite};
use crate::gpu::error::GpuError;

/// A PE's rows in its GPU's memory, for this exchange.
pub(crate) struct BufferRows<'a, F: bytemuck::Pod> {
    pub buffer: &'a Buffer<F>,
    /// The first stored row.
    pub first: isize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Where the rows belong.
    pub place: &'a Place,
    /// Of the passes.
    pub stream: &'a Stream,
}

impl<F: bytemuck::Pod> BufferRows<'_, F> {
    fn elements(&self, first: isize, count: usize) -> std::ops::Range<usize> {
        let start = (first - self.first) as usize * self.pitch;
        start..start + count * self.pitch
    }
}

/// Staging buffers, signals between the hosts, and the stream of what lies at the edge.
pub(crate) struct HostExchange<'w, F: bytemuck::Pod> {
    world: DeviceWorld<'w>,
    /// Two sets of [from above, from below].
    staging: DeviceSym<F>,
    signals: Sym<u64>,
    /// For the edge's passes and copies, beside the stream of the interior.
    edge: Stream,
    ready: Event,
    copied: Event,
    /// The exchanges so far.
    number: u64,
    /// What has been sent and the neighbours' not been received.
    under_way: Option<Rows>,
    /// Whether the neighbours know that it has arrived.
    told: bool,
}

impl<'w, F: Real> HostExchange<'w, F> {
    /// Room for halos of up to `rows` rows of `pitch` elements. Collective.
    ///
    /// Errors: on every PE alike, if GPUs cannot reach each other.
    pub(crate) fn new(
        pe: &'w Pe,
        device: Device,
        rows: usize,
        pitch: usize,
    ) -> Result<HostExchange<'w, F>, GpuError> {
        let world = DeviceWorld::without_verbs(pe, device, None, pe.wait_timeout())?;
        let staging = world.heap().alloc(4 * rows * pitch)?;
        Ok(HostExchange {
            staging,
            signals: pe.alloc_zeroed(2)?,
            edge: Stream::new(&device)?,
            ready: Event::without_timing(&device)?,
            copied: Event::without_timing(&device)?,
            world,
            number: 0,
            under_way: None,
            told: false,
        })
    }

    /// The stream on which the rows at the edge are made, before [`start`](HaloExchange::start); it
    /// goes on from where `stream` is.
    pub(crate) fn edge_after(&self, stream: &Stream) -> Result<&Stream, GpuError> {
        stream.record(&self.ready)?;
        self.edge.wait(&self.ready)?;
        Ok(&self.edge)
    }

    /// Lets `stream` go on only after what was given to the edge's stream.
    pub(crate) fn join(&self, stream: &Stream) -> Result<(), GpuError> {
        Ok(stream.wait(&self.copied)?)
    }

    /// Whether rows are under way that have not been received.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Where rows for `side` of the current exchange lie.
    fn staged(&self, side: usize, elements: usize) -> std::ops::Range<usize> {
        let capacity = self.staging.len() / 4;
        let start = (2 * (self.number % 2) as usize + side) * capacity;
        start..start + elements
    }

    /// Waits until what was sent has arrived and tells the neighbours.
    pub(crate) fn tell(&mut self, place: &Place) -> Result<(), GpuError> {
        let Some(rows) = self.under_way.filter(|_| !self.told) else {
            return Ok(());
        };
        self.world.wait(&self.copied, &self.edge)?;
        let me = self.world.pe().my_pe();
        for (side, edge) in place.edges(me, rows).into_iter().enumerate() {
            let Some(edge) = edge else { continue };
            // Release: the copies have ended, and the neighbour's GPU sees what its host lets it read after this.
            let signal = self.signals.at(opposite(side));
            let pe = self.world.pe();
            pe.signal(signal, self.number, SignalOp::Set, edge.pe);
        }
        self.told = true;
        Ok(())
    }
}

/// The rows that go are made by what the edge's stream got before `start`. The halos are valid for what is given to the
/// field's stream after `finish`, in which the host waits for the neighbours' hosts.
impl<F: Real> HaloExchange<BufferRows<'_, F>> for HostExchange<'_, F> {
    type Error = GpuError;

    fn start(&mut self, field: &BufferRows<'_, F>, rows: Rows) -> Result<(), GpuError> {
        self.number += 1;
        let me = self.world.pe().my_pe();
        for (side, edge) in field.place.edges(me, rows).into_iter().enumerate() {
            let Some(edge) = edge.filter(|edge| edge.count > 0) else {
                continue;
            };
            let from = field.buffer.range(field.elements(edge.send, edge.count));
            // What goes up comes from below.
            let to = self.staging.range(self.staged(opposite(side), from.len()));
            self.world.put_on_stream(&self.edge, to, from, edge.pe)?;
        }
        // What goes to another host is on its way when the stream has come to here.
        self.world.quiet_on_stream(&self.edge)?;
        self.edge.record(&self.copied)?;
        self.under_way = Some(rows);
        self.told = false;
        Ok(())
    }

    fn finish(&mut self, field: &mut BufferRows<'_, F>) -> Result<(), GpuError> {
        self.tell(field.place)?;
        let rows = self.under_way.take().expect("`start` came before");
        let me = self.world.pe().my_pe();
        for (side, edge) in field.place.edges(me, rows).into_iter().enumerate() {
            let Some(edge) = edge else { continue };
            // Acquire. The neighbour can be one exchange ahead, and then writes the other buffer.
            let signal = self.signals.at(side);
            let pe = self.world.pe();
            pe.signal_wait_until(signal, Cmp::Ge, self.number)?;
            if edge.count == 0 {
                continue;
            }
            let to = field.buffer.range(field.elements(edge.receive, edge.count));
            let from = self.staging.range(self.staged(side, to.len()));
            self.world
                .get_on_stream(field.stream, to, from, pe.my_pe())?;
        }
        // The next but one exchange writes these buffers again. Its sender has then seen this PE's signal of the next
        // one, which follows copies that `edge_after` put behind the ones here.
        Ok(())
    }
}

//! Halos by copies from GPU to GPU that the host starts and waits for: the scheme of programs that use MPI.
//!
//! Rows travel into the neighbour's staging buffer by the copy engines; when they have arrived, the host says so to
//! the neighbour's host, which has them copied into its field. The buffers are used in turn, for the reason that stands
//! in [`halo`](crate::exchange::put_signal).

use crosswarp_cuda::{Buffer, Device, DeviceSym, DeviceWorld, Event, Stream};
use crosswarp_shmem::{Cmp, Pe, SignalOp, Sym};

use crate::element::Real;
use crate::exchange::device_put::Place;
use crate::exchange::put_signal::Rows;
use crate::method::jacobi::SolveError;

/// Where the rows of a field lie in its buffer.
#[derive(Clone, Copy)]
pub(crate) struct StoredRows {
    /// The first stored row.
    pub first: isize,
    /// Elements from one row to the next.
    pub pitch: usize,
}

impl StoredRows {
    fn elements(&self, first: isize, count: usize) -> std::ops::Range<usize> {
        let start = (first - self.first) as usize * self.pitch;
        start..start + count * self.pitch
    }
}

/// What travels on one side.
struct Edge {
    pe: usize,
    /// 0: above, 1: below.
    side: usize,
    count: usize,
    send: isize,
    receive: isize,
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
    ) -> Result<HostExchange<'w, F>, SolveError> {
        let world = DeviceWorld::new(pe, device, None, pe.wait_timeout())?;
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

    /// The stream on which the rows at the edge are made, before [`send`](Self::send); it goes on from where `stream` is.
    pub(crate) fn edge_after(&self, stream: &Stream) -> Result<&Stream, SolveError> {
        stream.record(&self.ready)?;
        self.edge.wait(&self.ready)?;
        Ok(&self.edge)
    }

    /// Lets `stream` go on only after what was given to the edge's stream.
    pub(crate) fn join(&self, stream: &Stream) -> Result<(), SolveError> {
        Ok(stream.wait(&self.copied)?)
    }

    /// Whether rows are under way that have not been received.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    fn edges(&self, place: &Place, rows: Rows) -> impl Iterator<Item = Edge> + use<F> {
        let (me, own, active) = (self.world.pe().my_pe(), &place.own, place.active);
        let count = |wrapped: bool| if wrapped { rows.wrapped } else { rows.inner };
        let above = (me > 0 || place.wraps).then(|| {
            let (wrapped, start) = (me == 0, own.start as isize);
            // The row that the ghost above copies is row 1 of the other end.
            let (send, end) = if wrapped { (1, 1) } else { (start, start) };
            Edge {
                pe: (me + active - 1) % active,
                side: 0,
                count: count(wrapped),
                send,
                receive: end - count(wrapped) as isize,
            }
        });
        let below = (me + 1 < active || place.wraps).then(|| {
            let wrapped = me + 1 == active;
            let end = if wrapped { place.total - 1 } else { own.end } as isize;
            Edge {
                pe: (me + 1) % active,
                side: 1,
                count: count(wrapped),
                send: end - count(wrapped) as isize,
                receive: end,
            }
        });
        above.into_iter().chain(below)
    }

    /// Where rows for `side` of the current exchange lie.
    fn staged(&self, side: usize, elements: usize) -> std::ops::Range<usize> {
        let capacity = self.staging.len() / 4;
        let start = (2 * (self.number % 2) as usize + side) * capacity;
        start..start + elements
    }

    /// Sends the outermost rows of `field` on their way, once the edge's stream has made them. PEs that own rows call it.
    pub(crate) fn send(
        &mut self,
        field: &Buffer<F>,
        stored: StoredRows,
        place: &Place,
        rows: Rows,
    ) -> Result<(), SolveError> {
        self.number += 1;
        for edge in self.edges(place, rows).filter(|edge| edge.count > 0) {
            let from = field.range(stored.elements(edge.send, edge.count));
            // What goes up comes from below.
            let to = self.staging.range(self.staged(1 - edge.side, from.len()));
            self.world.put_on_stream(&self.edge, to, from, edge.pe)?;
        }
        self.edge.record(&self.copied)?;
        self.under_way = Some(rows);
        self.told = false;
        Ok(())
    }

    /// Waits until what was sent has arrived and tells the neighbours.
    pub(crate) fn tell(&mut self, place: &Place) -> Result<(), SolveError> {
        let Some(rows) = self.under_way.filter(|_| !self.told) else {
            return Ok(());
        };
        self.world.wait(&self.copied, &self.edge)?;
        for edge in self.edges(place, rows) {
            // Release: the copies have ended, and the neighbour's GPU sees what its host lets it read after this.
            let signal = self.signals.at(1 - edge.side);
            let pe = self.world.pe();
            pe.signal(signal, self.number, SignalOp::Set, edge.pe);
        }
        self.told = true;
        Ok(())
    }

    /// Waits for the neighbours' rows and gives their copies into the halos of `field` to `stream`.
    pub(crate) fn receive(
        &mut self,
        stream: &Stream,
        field: &Buffer<F>,
        stored: StoredRows,
        place: &Place,
    ) -> Result<(), SolveError> {
        self.tell(place)?;
        let rows = self.under_way.take().expect("sent before");
        for edge in self.edges(place, rows) {
            // Acquire. The neighbour can be one exchange ahead, and then writes the other buffer.
            let signal = self.signals.at(edge.side);
            let pe = self.world.pe();
            pe.signal_wait_until(signal, Cmp::Ge, self.number)?;
            if edge.count == 0 {
                continue;
            }
            let to = field.range(stored.elements(edge.receive, edge.count));
            let from = self.staging.range(self.staged(edge.side, to.len()));
            self.world.get_on_stream(stream, to, from, pe.my_pe())?;
        }
        // The next but one exchange writes these buffers again. Its sender has then seen this PE's signal of the next
        // one, which follows copies that `edge_after` put behind the ones here.
        Ok(())
    }
}

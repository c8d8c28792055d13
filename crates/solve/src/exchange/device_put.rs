//! Halos from GPU to GPU: each PE's kernel puts its outermost rows into its neighbours' memory.
#![allow(unsafe_code)] // Launches of kernels.

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{
    ByValue, Device, DeviceSym, DeviceWorld, Event, Function, Launch, Priority, Stream,
};
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cuda::kernels;
use crate::exchange::put_signal::Rows;
use crate::method::jacobi::SolveError;
use crate::pes::agree::all_ready;

/// Blocks of the exchange: few and small, because they have to find room beside the blocks of a pass, and enough for the
/// rows of a pass to travel well before it ends.
const BLOCKS: u32 = 2;
/// Most PEs of a GPU that exchange on a stream of their own, beside the pass.
///
/// A stream may wait for an exchange, and that for a neighbour's. If both streams share one of the 8 hardware queues of a
/// process, the neighbour's work may lie behind the wait, for ever.
const MOST_BESIDE: usize = 3;

/// `crosswarp::edge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct Edge {
    pe: i32,
    count: i32,
    send: i64,
    receive: i64,
}

impl Edge {
    const NONE: Edge = Edge {
        pe: -1,
        count: 0,
        send: 0,
        receive: 0,
    };
}

/// `crosswarp::exchange`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Parameters {
    field: u64,
    buffers: u64,
    signals: u64,
    pitch: i64,
    part: i64,
    number: u64,
    made: u64,
    first: i64,
    columns: i32,
    padding: i32,
    edges: [Edge; 2],
}

/// Rows of a field on the device.
pub(crate) struct FieldRows {
    /// Address of row `first`, column 0.
    pub address: u64,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// The first stored row.
    pub first: isize,
    /// Elements of a row that travel, a multiple of 128.
    pub columns: usize,
}

/// This PE's place among its neighbours.
pub(crate) struct Place {
    /// The rows it owns.
    pub own: std::ops::Range<usize>,
    /// Rows of the grid.
    pub total: usize,
    /// PEs that own rows; the first ones.
    pub active: usize,
    /// Whether the rows wrap around.
    pub wraps: bool,
}

impl Place {
    /// What PE `me` sends and receives above and below.
    fn edges(&self, me: usize, rows: Rows) -> [Edge; 2] {
        let own = &self.own;
        let count = |wrapped: bool| if wrapped { rows.wrapped } else { rows.inner } as i64;
        let edge = |pe: usize, wrapped: bool, send: i64, receive: i64| Edge {
            pe: pe as i32,
            count: count(wrapped) as i32,
            send,
            receive,
        };
        let mut edges = [Edge::NONE; 2];
        if me > 0 || self.wraps {
            let (wrapped, start) = (me == 0, own.start as i64);
            // The row that the ghost below copies is row 1.
            let (send, end) = if wrapped { (1, 1) } else { (start, start) };
            let above = (me + self.active - 1) % self.active;
            edges[0] = edge(above, wrapped, send, end - count(wrapped));
        }
        if me + 1 < self.active || self.wraps {
            let wrapped = me + 1 == self.active;
            let end = if wrapped { self.total - 1 } else { own.end } as i64;
            let below = (me + 1) % self.active;
            edges[1] = edge(below, wrapped, end - count(wrapped), end);
        }
        edges
    }
}

/// Buffers and signals of the exchange, in the symmetric device heap.
pub(crate) struct Exchange<'w, F> {
    world: DeviceWorld<'w>,
    buffers: DeviceSym<F>,
    signals: DeviceSym<u64>,
    kernel: Function,
    threads: u32,
    /// Where exchanges run: beside the passes, or with them, if too many PEs share the GPU.
    stream: Stream,
    /// The halos of the last exchange are in place.
    filled: Event,
    /// The exchanges so far.
    number: u64,
    /// Warps of all passes so far that make rows for neighbours.
    made: u64,
}

/// The kernel of [`Exchange::new`], found before it: what fails on one PE alone must not be taken for an exchange
/// that no PE can have.
pub(crate) fn kernel<F: Real>(device: &Device) -> Result<(Function, u32), SolveError> {
    kernels::find::<F>(device, "exchange_halos")
}

impl<'w, F: Real> Exchange<'w, F> {
    /// Room for halos of up to `rows` rows of `columns` elements on `stream`; `kernel` is from [`kernel`]. Collective.
    ///
    /// Errors: on every PE alike, if GPUs cannot reach each other, or PEs that are processes share one.
    pub(crate) fn new(
        pe: &'w Pe,
        device: Device,
        (kernel, threads): (Function, u32),
        rows: usize,
        columns: usize,
        stream: &Stream,
    ) -> Result<Exchange<'w, F>, SolveError> {
        let world = DeviceWorld::new(pe, device, None, pe.wait_timeout())?;
        all_ready(pe, world.install(kernel.module()).map_err(SolveError::from))?;
        let buffers = world.heap().alloc(4 * rows * columns)?;
        let signals = world.heap().alloc_zeroed(3)?;
        let filled = all_ready(pe, Event::without_timing(&device).map_err(SolveError::from))?;
        // Checks that the kernels of all PEs run at once, and loads them. It is also the meeting before which no PE
        // signals to another. Twice the blocks: they wait for passes, too, which need room as well.
        world.prepare_together(Launch::new(&kernel).grid(2 * BLOCKS).block(threads))?;
        Ok(Exchange {
            world,
            buffers,
            signals,
            kernel,
            threads,
            stream: stream.clone(),
            filled,
            number: 0,
            made: 0,
        })
    }

    /// From now on exchanges run beside the passes, on a stream of their own, unless too many PEs share the GPU.
    /// Collective.
    pub(crate) fn beside_passes(mut self) -> Result<Exchange<'w, F>, SolveError> {
        let stream = if self.world.pes_on_gpu() <= MOST_BESIDE {
            Stream::with_priority(&self.world.device(), Priority::High)
        } else {
            Ok(self.stream.clone())
        };
        self.stream = all_ready(self.world.pe(), stream.map_err(SolveError::from))?;
        Ok(self)
    }

    /// The stream of the exchanges.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Blocks that should stay free for it beside `blocks` blocks of `threads` threads of a pass, which are all that run
    /// at once.
    pub(crate) fn blocks_beside(&self, pass: &Function, threads: u32, blocks: usize) -> usize {
        let device = self.world.device();
        let properties = device.properties();
        // Registers are given to warps in units of 256.
        let registers = |kernel: &Function, threads: u32| {
            (kernel.attributes().registers * 32).next_multiple_of(256) * (threads / 32)
        };
        let of_each = (blocks as u32).div_ceil(properties.multiprocessors);
        let taken = of_each * registers(pass, threads);
        let fits = taken + registers(&self.kernel, self.threads)
            <= properties.registers_per_multiprocessor;
        if fits { 0 } else { BLOCKS as usize }
    }

    /// Where the warps of a pass that is about to be launched count, `warps` of them.
    pub(crate) fn count(&mut self, warps: u64) -> u64 {
        self.made += warps;
        let heap = self.world.heap();
        heap.address_of(&self.signals, self.world.pe().my_pe()) + 2 * size_of::<u64>() as u64
    }

    /// Gives the exchange of `rows` rows of `field`, which the last pass makes, to the stream of exchanges: it waits for
    /// nothing else than the rows it sends. All PEs that own rows call it.
    pub(crate) fn launch(
        &mut self,
        field: &FieldRows,
        place: &Place,
        rows: Rows,
    ) -> Result<(), SolveError> {
        let me = self.world.pe().my_pe();
        let edges = place.edges(me, rows);
        self.number += 1;
        let heap = self.world.heap();
        let parameters = Parameters {
            field: field.address,
            buffers: heap.address_of(&self.buffers, me),
            signals: heap.address_of(&self.signals, me),
            pitch: field.pitch as i64,
            part: (self.buffers.len() / 4) as i64,
            number: self.number,
            made: self.made,
            first: field.first as i64,
            columns: field.columns as i32,
            padding: 0,
            edges,
        };
        let launch = Launch::new(&self.kernel).grid(BLOCKS).block(self.threads);
        // SAFETY: the parameter is an `exchange`; the rows are stored, as the caller vouches with `field`, and the
        // buffers hold as many rows as `new` was told. A pass may still be writing the field: the kernel reads rows that
        // are counted as made, and writes halos, which no pass writes.
        unsafe { launch.launch(&self.stream, (ByValue(parameters),)) }?;
        Ok(self.stream.record(&self.filled)?)
    }

    /// Lets `stream` go on only with the halos of the last exchange.
    pub(crate) fn join(&self, stream: &Stream) -> Result<(), SolveError> {
        if self.stream.handle() != stream.handle() {
            stream.wait(&self.filled)?;
        }
        Ok(())
    }

    /// Waits for `event` of `stream`.
    ///
    /// Errors: also if a neighbour is gone.
    pub(crate) fn wait(&self, event: &Event, stream: &Stream) -> Result<(), SolveError> {
        Ok(self.world.wait(event, stream)?)
    }

    /// Waits for `stream`.
    ///
    /// Errors: also if a wait for a neighbour was given up.
    pub(crate) fn synchronize(&self, stream: &Stream) -> Result<(), SolveError> {
        Ok(self.world.synchronize(stream)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(pe: i32, count: i32, send: i64, receive: i64) -> Edge {
        Edge {
            pe,
            count,
            send,
            receive,
        }
    }

    #[test]
    fn points_beyond_2_to_the_31_have_their_own_numbers() {
        // A line of 2 · 2³² points on two PEs.
        let cut = 1i64 << 32;
        let place = |own: std::ops::Range<usize>| Place {
            own,
            total: 2 * cut as usize,
            active: 2,
            wraps: false,
        };
        let rows = Rows::halo(64);
        let left = place(0..cut as usize).edges(0, rows);
        assert_eq!(left, [Edge::NONE, edge(1, 64, cut - 64, cut)]);
        let right = place(cut as usize..2 * cut as usize).edges(1, rows);
        assert_eq!(right, [edge(0, 64, cut, cut - 64), Edge::NONE]);
    }

    #[test]
    fn ends_that_wrap_around_exchange_one_row_more() {
        let place = |own: std::ops::Range<usize>| Place {
            own,
            total: 100,
            active: 2,
            wraps: true,
        };
        let rows = Rows::halo(6);
        let upper = place(0..48).edges(0, rows);
        assert_eq!(upper, [edge(1, 7, 1, -6), edge(1, 6, 42, 48)]);
        let lower = place(48..100).edges(1, rows);
        assert_eq!(lower, [edge(0, 6, 48, 42), edge(0, 7, 92, 99)]);
    }
}

//! Halos from GPU to GPU: a kernel of each PE puts its outermost rows into its neighbours' memory, over NVLink where
//! GPUs have it (`kernels/jacobi/exchange/device_put.cuh`).
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{
    ByValue, Device, DeviceSym, DeviceWorld, Event, Function, Launch, Priority, Stream,
};
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::exchange::HaloExchange;
use crate::exchange::edges::{Edge, Place, Rows};
use crate::gpu::arguments::{EdgeParameters, ExchangeParameters};
use crate::gpu::error::GpuError;
use crate::pes::agree::all_ready;

/// The kernel, for each type of fields.
pub(crate) const KERNEL: &str = "exchange_halos";
/// Blocks of the exchange: few and small, because they have to find room beside the blocks of a pass, and enough for
/// the rows of a pass to travel well before it ends.
const BLOCKS: u32 = 2;
/// Most PEs of a GPU that exchange on a stream of their own, beside the pass.
///
/// A stream may wait for an exchange, and that for a neighbour's. If both streams share one of the 8 hardware queues of
/// a process, the neighbour's work may lie behind the wait, for ever.
const MOST_BESIDE: usize = 3;

impl EdgeParameters {
    fn of(edge: Option<Edge>) -> EdgeParameters {
        match edge {
            Some(edge) => EdgeParameters {
                pe: edge.pe as i32,
                count: edge.count as i32,
                send: edge.send as i64,
                receive: edge.receive as i64,
            },
            None => EdgeParameters {
                pe: -1,
                count: 0,
                send: 0,
                receive: 0,
            },
        }
    }
}

/// A PE's rows in its GPU's memory, for this exchange.
pub(crate) struct DeviceRows<'a> {
    /// Address of row `first`, column 0.
    pub address: u64,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// The first stored row.
    pub first: isize,
    /// Elements of a row that travel, a multiple of 128.
    pub columns: usize,
    /// Where the rows belong.
    pub place: &'a Place,
    /// Of the passes.
    pub stream: &'a Stream,
}

/// Buffers and signals of the exchange, in the symmetric device heap.
pub(crate) struct DevicePut<'w, F> {
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

impl<'w, F: Real> DevicePut<'w, F> {
    /// Room for halos of up to `rows` rows of `columns` elements on `stream`; `kernel` is [`KERNEL`], and the
    /// threads of its block, found on all PEs. Collective.
    ///
    /// Errors: on every PE alike, if GPUs cannot reach each other, or PEs that are processes share one.
    pub(crate) fn new(
        pe: &'w Pe,
        device: Device,
        (kernel, threads): (Function, u32),
        rows: usize,
        columns: usize,
        stream: &Stream,
    ) -> Result<DevicePut<'w, F>, GpuError> {
        DeviceWorld::needs_one_host(pe, "putting halos from kernels")?;
        let world = DeviceWorld::without_verbs(pe, device, None, pe.wait_timeout())?;
        all_ready(pe, world.install(kernel.module()).map_err(GpuError::from))?;
        let buffers = world.heap().alloc(4 * rows * columns)?;
        let signals = world.heap().alloc_zeroed(3)?;
        let filled = all_ready(pe, Event::without_timing(&device).map_err(GpuError::from))?;
        // Checks that the kernels of all PEs run at once, and loads them. It is also the barrier before which no PE
        // signals to another. Twice the blocks: they wait for passes, too, which need room as well.
        world.prepare_together(Launch::new(&kernel).grid(2 * BLOCKS).block(threads))?;
        Ok(DevicePut {
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
    pub(crate) fn beside_passes(mut self) -> Result<DevicePut<'w, F>, GpuError> {
        let stream = if self.world.pes_on_gpu() <= MOST_BESIDE {
            Stream::with_priority(&self.world.device(), Priority::High)
        } else {
            Ok(self.stream.clone())
        };
        self.stream = all_ready(self.world.pe(), stream.map_err(GpuError::from))?;
        Ok(self)
    }

    /// The stream of the exchanges.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Blocks that should stay free for it beside `blocks` blocks of `threads` threads of a pass, which are all that
    /// run at once.
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

    /// Lets `stream` go on only with the halos of the last exchange.
    pub(crate) fn join(&self, stream: &Stream) -> Result<(), GpuError> {
        if self.stream.handle() != stream.handle() {
            stream.wait(&self.filled)?;
        }
        Ok(())
    }

    /// Waits for `event` of `stream`.
    ///
    /// Errors: also if a neighbour is gone.
    pub(crate) fn wait(&self, event: &Event, stream: &Stream) -> Result<(), GpuError> {
        Ok(self.world.wait(event, stream)?)
    }

    /// Waits for `stream`.
    ///
    /// Errors: also if a wait for a neighbour was given up.
    pub(crate) fn synchronize(&self, stream: &Stream) -> Result<(), GpuError> {
        Ok(self.world.synchronize(stream)?)
    }
}

/// The kernel waits for nothing else than the rows it sends, which the last pass counts. The halos are valid for what
/// is given to the field's stream after `finish`. Each `start` launches a whole exchange, so another may follow without
/// `finish` between, where the halos of the first are not needed: a pass that is made again.
impl<F: Real> HaloExchange<DeviceRows<'_>> for DevicePut<'_, F> {
    type Error = GpuError;

    fn start(&mut self, field: &DeviceRows<'_>, rows: Rows) -> Result<(), GpuError> {
        let me = self.world.pe().my_pe();
        let edges = field.place.edges(me, rows).map(EdgeParameters::of);
        self.number += 1;
        let heap = self.world.heap();
        let parameters = ExchangeParameters {
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
        // buffers hold as many rows as `new` was told. A pass may still be writing the field: the kernel reads rows
        // that are counted as made, and writes halos, which no pass writes.
        unsafe { launch.launch(&self.stream, (ByValue(parameters),)) }?;
        Ok(self.stream.record(&self.filled)?)
    }

    fn finish(&mut self, field: &mut DeviceRows<'_>) -> Result<(), GpuError> {
        self.join(field.stream)
    }
}

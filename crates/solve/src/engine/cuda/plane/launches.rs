//! What a plane gives to its streams: passes, exchanges of halos, copies of ghosts, and words for the host.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{ByValue, Launch};
use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};

use crate::element::Real;
use crate::engine::cuda::plane::field::PlaneField;
use crate::engine::cuda::plane::pass_kernel::Sweeps;
use crate::engine::cuda::plane::passes::PlanePasses;
use crate::exchange::device_put::DeviceRows;
use crate::exchange::{HaloExchange, Place, Rows};
use crate::gpu::arguments::{BETWEEN_PASSES_THREADS, Band};
use crate::gpu::error::GpuError;

/// The rows of the field whose column 0 of the first stored row is at `address`.
fn rows_of<'a, F: Real>(
    field: &'a PlaneField<F>,
    address: u64,
    place: &'a Place,
) -> DeviceRows<'a> {
    DeviceRows {
        address,
        pitch: field.layout.pitch,
        first: field.layout.first,
        columns: field.layout.nx.next_multiple_of(LEAF_COLUMNS),
        place,
        stream: &field.stream,
    }
}

impl<F: Real> PlanePasses<'_, F> {
    /// The words of a half that is about to be added to begin at 0.
    pub(super) fn begin_at_zero(&mut self, half: usize) -> Result<(), GpuError> {
        // What is published is left zero; not so what was added by an early pass that was forgotten.
        if !std::mem::replace(&mut self.zero[half], false) {
            let words = self.field.words_of(half);
            self.field.stream.zero(self.field.words.range(words))?;
        }
        Ok(())
    }

    /// Gives the `depth` sweeps of the pass of `band` to the stream; its words begin at 0.
    pub(super) fn launch(&mut self, band: Band, half: usize, depth: usize) -> Result<(), GpuError> {
        // If a pass is made again, what it overwrites may still be on its way.
        self.join()?;
        self.begin_at_zero(half)?;
        let made = band.after;
        let band = ByValue(band);
        match &self.sweeps {
            Sweeps::OnChip => unreachable!("no sweep is made in memory"),
            Sweeps::One(kernel) => {
                let leaves = self.field.own.len().div_ceil(LEAF_ROWS)
                    * self.field.layout.nx.div_ceil(LEAF_COLUMNS);
                let launch = Launch::new(kernel)
                    .grid(leaves as u32)
                    .block(LEAF_COLUMNS as u32);
                // SAFETY: the parameter is a `band`, whose arrays hold the rows and columns around the own ones that
                // a sweep reads, and live until the streams have been waited for: an exchange beside is joined before.
                unsafe { launch.launch(&self.field.stream, (band,)) }?;
            }
            Sweeps::Pass(pass) => {
                let order = &pass.order;
                let exchange = self.exchange.as_mut();
                let count = exchange.map_or(0, |exchange| exchange.count(order.counted()));
                let strips = ByValue(order.strips(count));
                let launch = pass.launch().grid(order.blocks());
                // SAFETY: the parameters are a `band`, a `strips` and an int. As above; a pass reads `ROWS_BEFORE` and
                // `ROWS_BEHIND` rows around the own ones at most, and writes only own rows, on which the exchange that
                // runs beside it relies. The count is there if blocks are counted.
                unsafe { launch.launch(&self.field.stream, (band, strips, depth as i32)) }?;
            }
        }
        if self.goes_apart() {
            self.field.stream.record(&self.passed)?;
        }
        // As many rows as any pass needs.
        let most = self.sweeps.depth();
        let most = most.min(self.field.partition.max_depth(self.field.wrap_y));
        self.send(made, Rows::halo(most))
    }

    /// Whether there is a stream beside that of the passes.
    pub(super) fn goes_apart(&self) -> bool {
        self.beside.handle() != self.field.stream.handle()
    }

    /// Has the words of a half copied to the host and zeroed, once the last pass is over.
    pub(super) fn publish(&mut self, half: usize, count: usize) -> Result<(), GpuError> {
        let words = self.field.words_of(half);
        let (count, all) = (count as i32, words.len() as i32);
        if self.goes_apart() {
            self.beside.wait(&self.passed)?;
        }
        let publish = Launch::new(&self.publish).block(BETWEEN_PASSES_THREADS);
        let parameters = (self.field.words.range(words), &self.sums, count, all);
        // SAFETY: the parameters are two u64* and two ints; the first array has `all` words, the second `count`, and
        // the host looks at it only after the event.
        unsafe { publish.launch(&self.beside, parameters) }?;
        self.zero[half] = true;
        Ok(self.beside.record(&self.published)?)
    }

    /// Gives the exchange of the halos of the field at `field` to the stream beside; it waits for the rows that are
    /// sent.
    pub(super) fn send(&mut self, field: u64, rows: Rows) -> Result<(), GpuError> {
        let place = self.field.place();
        if let Some(exchange) = &mut self.exchange {
            exchange.start(&rows_of(&self.field, field, &place), rows)?;
            self.sent = true;
        }
        Ok(())
    }

    /// Holds the stream of passes back until an exchange that has been launched is over.
    pub(super) fn join(&self) -> Result<(), GpuError> {
        match &self.exchange {
            Some(exchange) if self.sent => exchange.join(&self.field.stream),
            _ => Ok(()),
        }
    }

    /// Fills the halos of the field before `band`'s pass, which waits for them, and makes what follows from them.
    pub(super) fn fill_halos(&mut self, band: Band, rows: Rows) -> Result<(), GpuError> {
        if self.exchange.is_some() && !self.sent {
            if self.goes_apart() {
                // The field may be one that no pass has made.
                self.field.stream.record(&self.passed)?;
                self.beside.wait(&self.passed)?;
            }
            self.send(band.before, rows)?;
        }
        let place = self.field.place();
        if let Some(exchange) = &mut self.exchange {
            exchange.finish(&mut rows_of(&self.field, band.before, &place))?;
        }
        self.sent = false;
        // Before the first sweep the ghosts stay as they were given.
        if rows.wrapped > 0 {
            self.field.wrap(band, rows.wrapped)?;
        }
        Ok(())
    }
}

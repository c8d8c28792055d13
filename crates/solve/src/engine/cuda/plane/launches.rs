//! What a plane gives to its streams: passes, exchanges of halos, copies of ghosts, and words for the host.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{ByValue, Launch};
use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};

use super::{Advance, Band, Plane, pass_launch};
use crate::element::Real;
use crate::engine::cuda::layout::PAD;
use crate::engine::slab::Slab;
use crate::exchange::device_put::FieldRows;
use crate::exchange::put_signal::Rows;
use crate::method::jacobi::SolveError;

impl<F: Real> Plane<'_, F> {
    /// The words of a half that is about to be added to begin at 0.
    pub(super) fn begin_at_zero(&mut self, half: usize) -> Result<(), SolveError> {
        // What is published is left zero; not so what was added by an early pass that was forgotten.
        if !std::mem::replace(&mut self.zero[half], false) {
            let words = self.half_start(half)..self.half_start(half + 1);
            self.stream.zero(self.words.range(words))?;
        }
        Ok(())
    }

    /// Gives the `depth` sweeps of the pass of `band` to the stream; its words begin at 0.
    pub(super) fn launch(
        &mut self,
        band: Band,
        half: usize,
        depth: usize,
    ) -> Result<(), SolveError> {
        // If a pass is made again, what it overwrites may still be on its way.
        self.join()?;
        self.begin_at_zero(half)?;
        let made = band.after;
        let band = ByValue(band);
        match &self.advance {
            Advance::Sweep(kernel) => {
                let leaves =
                    self.own.len().div_ceil(LEAF_ROWS) * self.layout.nx.div_ceil(LEAF_COLUMNS);
                let launch = Launch::new(kernel)
                    .grid(leaves as u32)
                    .block(LEAF_COLUMNS as u32);
                // SAFETY: the parameter is a `band`, whose arrays hold the rows and columns around the own ones that
                // a sweep reads, and live until the streams have been waited for: an exchange beside is joined before.
                unsafe { launch.launch(&self.stream, (band,)) }?;
            }
            Advance::Pass {
                kernel,
                machine,
                order,
            } => {
                let exchange = self.exchange.as_mut();
                let count = exchange.map_or(0, |exchange| exchange.count(order.counted()));
                let strips = ByValue(order.strips(count));
                let launch = pass_launch(kernel, &machine.shape, machine.warps);
                let launch = launch.grid(order.blocks());
                // SAFETY: the parameters are a `band`, a `strips` and an int. As above; a pass reads `ROWS_BEFORE`
                // and `ROWS_BEHIND` rows around the own ones at most, and writes only own rows, on which the exchange that
                // runs beside it relies. The count is there if blocks are counted.
                unsafe { launch.launch(&self.stream, (band, strips, depth as i32)) }?;
            }
        }
        if self.goes_apart() {
            self.stream.record(&self.passed)?;
        }
        // As many rows as any pass needs.
        let most = self.depth_limit();
        let most = most.min(self.partition.max_depth(self.wrap_y));
        self.send(made, Rows::halo(most))
    }

    /// Whether there is a stream beside that of the passes.
    pub(super) fn goes_apart(&self) -> bool {
        self.beside.handle() != self.stream.handle()
    }

    /// Has the words of a half copied to the host and zeroed, once the last pass is over.
    pub(super) fn publish(&mut self, half: usize, count: usize) -> Result<(), SolveError> {
        let words = self.half_start(half)..self.half_start(half + 1);
        let (count, all) = (count as i32, words.len() as i32);
        if self.goes_apart() {
            self.beside.wait(&self.passed)?;
        }
        let publish = Launch::new(&self.publish).block(256);
        let parameters = (self.words.range(words), &self.sums, count, all);
        // SAFETY: the parameters are two u64* and two ints; the first array has `all` words, the second `count`, and the
        // host looks at it only after the event.
        unsafe { publish.launch(&self.beside, parameters) }?;
        self.zero[half] = true;
        Ok(self.beside.record(&self.published)?)
    }

    /// Gives the exchange of the halos of the field at `field` to the stream beside; it waits for the rows that are sent.
    pub(super) fn send(&mut self, field: u64, rows: Rows) -> Result<(), SolveError> {
        let place = self.place();
        if let Some(exchange) = &mut self.exchange {
            let field = FieldRows {
                address: field,
                pitch: self.layout.pitch,
                first: self.layout.first,
                columns: self.layout.nx.next_multiple_of(LEAF_COLUMNS),
            };
            exchange.launch(&field, &place, rows)?;
            self.sent = true;
        }
        Ok(())
    }

    /// Holds the stream of passes back until an exchange that has been launched is over.
    pub(super) fn join(&self) -> Result<(), SolveError> {
        match &self.exchange {
            Some(exchange) if self.sent => exchange.join(&self.stream),
            _ => Ok(()),
        }
    }

    /// Fills the halos of the field before `band`'s pass, which waits for them, and makes what follows from them.
    pub(super) fn fill_halos(&mut self, band: Band, rows: Rows) -> Result<(), SolveError> {
        if self.exchange.is_some() && !self.sent {
            if self.goes_apart() {
                // The field may be one that no pass has made.
                self.stream.record(&self.passed)?;
                self.beside.wait(&self.passed)?;
            }
            self.send(band.before, rows)?;
        }
        self.join()?;
        self.sent = false;
        // Before the first sweep the ghosts stay as they were given.
        if rows.wrapped > 0 {
            self.wrap(band, rows.wrapped)?;
        }
        Ok(())
    }

    /// Makes the ghosts, and the halos beyond them, copies of inner cells again, where the grid wraps around and this
    /// PE has both sides. `rows`: how many rows at each end.
    pub(super) fn wrap(&self, band: Band, rows: usize) -> Result<(), SolveError> {
        let field = |launch: Launch<'_>, a: i32, b: i32| {
            let (first, nx) = (band.first, band.nx);
            // SAFETY: the parameters are F*, i64 and four ints; the rows and columns are stored.
            unsafe { launch.launch(&self.stream, (band.before, band.pitch, first, nx, a, b)) }
        };
        if self.wrap_y && self.partition.active() == 1 {
            let launch = Launch::new(&self.wrap_rows)
                .grid((self.layout.nx.div_ceil(256) as u32, 2 * rows as u32))
                .block(256);
            field(launch, band.ny, rows as i32)?;
        }
        if self.wrap_x {
            let y0 = band.own_start - rows as i32;
            let count = self.own.len() + 2 * rows;
            let threads = count * 2 * (PAD + 1);
            let launch = Launch::new(&self.wrap_columns)
                .grid(threads.div_ceil(256) as u32)
                .block(256);
            field(launch, y0, count as i32)?;
        }
        Ok(())
    }
}

//! Halos by put and signal between the PEs' hosts, nothing else.
//!
//! # Why no buffer is overwritten while it is read
//! Exchanges are numbered from 1 and use one of two buffers in turn. A PE puts into its neighbour's buffer in exchange
//! s only after it has seen, at the end of its own exchange s − 1, the neighbour's signal s − 1. The neighbour sent
//! that at the start of its exchange s − 1, hence after it had read the buffer of exchange s − 2, which is the one
//! that exchange s writes. Every exchange signals in both directions, also when it carries no rows.

use std::ops::Range;

use crosswarp_shmem::{Cmp, Pe, SignalOp, Sym};

use crate::element::Real;
use crate::exchange::HaloExchange;
use crate::exchange::edges::{Place, Rows, image, opposite};
use crate::field::rows::LocalRows;
use crate::pes::error::PeError;

/// Buffers and signals of the exchange, in the symmetric heap.
pub(crate) struct PutSignal<'p, F> {
    pe: &'p Pe,
    buffers: Sym<F>,
    signals: Sym<u64>,
    row_len: usize,
    /// The exchanges so far.
    number: u64,
    /// What the last one moves.
    rows: Rows,
    packed: Vec<F>,
}

impl<'p, F: Real> PutSignal<'p, F> {
    /// Collective: allocates buffers for halos of up to `depth` rows.
    pub(crate) fn new(
        pe: &'p Pe,
        row_len: usize,
        depth: usize,
    ) -> Result<PutSignal<'p, F>, PeError> {
        let buffers = pe.alloc::<F>(4 * (depth + 1) * row_len)?;
        let signals = pe.alloc_zeroed::<u64>(2)?;
        Ok(PutSignal {
            pe,
            buffers,
            signals,
            row_len,
            number: 0,
            rows: Rows::FIRST,
            packed: Vec::new(),
        })
    }

    /// Collective: gives the buffers back.
    pub(crate) fn free(self) -> Result<(), PeError> {
        self.pe.free(self.buffers)?;
        self.pe.free(self.signals)?;
        Ok(())
    }

    fn send<R: LocalRows<F>>(
        &mut self,
        field: &R,
        rows: Range<usize>,
        to: usize,
        side: usize,
    ) -> Result<(), R::Error> {
        let target = self.part(side, rows.len());
        self.packed.clear();
        field.pack(rows, &mut self.packed)?;
        let (buffer, signal) = (self.buffers.range(target), self.signals.at(side));
        // Release: the rows are visible to whoever sees the signal.
        self.pe
            .put_signal(buffer, &self.packed, signal, self.number, SignalOp::Set, to);
        Ok(())
    }

    fn receive<R: LocalRows<F>>(
        &mut self,
        field: &mut R,
        first: isize,
        count: usize,
        side: usize,
    ) -> Result<(), R::Error> {
        let signal = self.signals.at(side);
        // Acquire. The neighbour can be one exchange ahead, and then writes the other buffer: at least, not equal.
        self.pe
            .signal_wait_until(signal, Cmp::Ge, self.number)
            .map_err(PeError::from)?;
        let source = self.part(side, count);
        self.packed.clear();
        self.packed.resize(count * self.row_len, F::ZERO);
        self.pe.read(&mut self.packed, self.buffers.range(source));
        field.unpack(first, &self.packed)
    }

    /// Where `count` rows for `side` of the current exchange lie.
    fn part(&self, side: usize, count: usize) -> Range<usize> {
        let capacity = self.buffers.len() / 4;
        let start = (2 * (self.number % 2) as usize + side) * capacity;
        start..start + count * self.row_len
    }
}

fn place<F: Real>(field: &impl LocalRows<F>) -> Place {
    Place {
        own: field.own(),
        total: field.partition().total(),
        active: field.partition().active(),
        wraps: field.wraps(),
    }
}

/// All PEs may call: those without rows do nothing. The halos are valid when `finish` returns.
impl<F: Real, R: LocalRows<F>> HaloExchange<R> for PutSignal<'_, F> {
    type Error = R::Error;

    fn start(&mut self, field: &R, rows: Rows) -> Result<(), R::Error> {
        let (me, place) = (self.pe.my_pe(), place(field));
        self.rows = rows;
        if me >= place.active || place.active == 1 {
            return Ok(());
        }
        self.number += 1;
        for (side, edge) in place.edges(me, rows).into_iter().enumerate() {
            let Some(edge) = edge else { continue };
            let first = edge.send as usize;
            // What goes up comes from below.
            self.send(field, first..first + edge.count, edge.pe, opposite(side))?;
        }
        Ok(())
    }

    fn finish(&mut self, field: &mut R) -> Result<(), R::Error> {
        let (me, place) = (self.pe.my_pe(), place(field));
        if me >= place.active {
            return Ok(());
        }
        if place.active == 1 {
            return if place.wraps {
                wrap_alone(field, self.rows.wrapped)
            } else {
                Ok(())
            };
        }
        for (side, edge) in place.edges(me, self.rows).into_iter().enumerate() {
            let Some(edge) = edge else { continue };
            self.receive(field, edge.receive, edge.count, side)?;
        }
        Ok(())
    }
}

/// The ghost rows and the halos beyond them, `count` rows at each end, of a grid that one PE owns alone.
fn wrap_alone<F: Real, R: LocalRows<F>>(field: &mut R, count: usize) -> Result<(), R::Error> {
    let total = field.partition().total();
    let mut row = Vec::with_capacity(field.row_len());
    let ends =
        (1 - count as isize..1).chain(total as isize - 1..total as isize - 1 + count as isize);
    for y in ends {
        let image = image(y, total);
        row.clear();
        field.pack(image..image + 1, &mut row)?;
        field.unpack(y, &row)?;
    }
    Ok(())
}

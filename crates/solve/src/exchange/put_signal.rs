//! The exchange of halos: put + signal between neighbours, nothing else.
//!
//! # Why no buffer is overwritten while it is read
//! Exchanges are numbered from 1 and use one of two buffers in turn. A PE puts into its neighbour's buffer in exchange
//! s only after it has seen, at the end of its own exchange s − 1, the neighbour's signal s − 1. The neighbour sent
//! that at the start of its exchange s − 1, hence after it had read the buffer of exchange s − 2, which is the one
//! that exchange s writes. Every exchange signals in both directions, also when it carries no rows.

use std::ops::Range;

use crosswarp_shmem::{Cmp, Pe, SignalOp, Sym};

use crate::element::Real;
use crate::engine::slab::Slab;
use crate::method::jacobi::SolveError;

/// The sides of a slab: index of the buffer and signal that the neighbour on that side writes.
const ABOVE: usize = 0;
const BELOW: usize = 1;

/// How many rows an exchange moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Across an edge inside the grid: the depth of the halo.
    pub inner: usize,
    /// Across the ends of a grid that wraps: the ghost row and the halo beyond it.
    pub wrapped: usize,
}

impl Rows {
    /// The halo of a pass of `depth` sweeps.
    pub(crate) fn halo(depth: usize) -> Rows {
        Rows {
            inner: depth,
            wrapped: depth + 1,
        }
    }

    /// The halo of the very first sweep, which leaves the ghosts as they were given.
    pub(crate) const FIRST: Rows = Rows {
        inner: 1,
        wrapped: 0,
    };
    /// The ghosts alone.
    pub(crate) const GHOSTS: Rows = Rows {
        inner: 0,
        wrapped: 1,
    };
}

/// What an exchange does on one side.
struct Edge {
    neighbour: usize,
    wrapped: bool,
}

/// Buffers and signals of the exchange, in the symmetric heap.
pub(crate) struct Halo<F> {
    buffers: Sym<F>,
    signals: Sym<u64>,
    row_len: usize,
    /// The exchanges so far.
    number: u64,
    packed: Vec<F>,
}

impl<F: Real> Halo<F> {
    /// Collective: allocates buffers for halos of up to `depth` rows.
    pub(crate) fn new(pe: &Pe, row_len: usize, depth: usize) -> Result<Halo<F>, SolveError> {
        let buffers = pe.alloc::<F>(4 * (depth + 1) * row_len)?;
        let signals = pe.alloc_zeroed::<u64>(2)?;
        Ok(Halo {
            buffers,
            signals,
            row_len,
            number: 0,
            packed: Vec::new(),
        })
    }

    /// Collective: gives the buffers back.
    pub(crate) fn free(self, pe: &Pe) -> Result<(), SolveError> {
        pe.free(self.buffers)?;
        pe.free(self.signals)?;
        Ok(())
    }

    /// Sends the slab's outermost rows to its neighbours and receives theirs.
    ///
    /// Returns when the halos are in place. PEs without rows do nothing.
    pub(crate) fn exchange(
        &mut self,
        pe: &Pe,
        slab: &mut impl Slab<F>,
        rows: Rows,
    ) -> Result<(), SolveError> {
        let (me, active, total) = (
            pe.my_pe(),
            slab.partition().active(),
            slab.partition().total(),
        );
        if me >= active {
            return Ok(());
        }
        if active == 1 {
            if slab.wraps() {
                wrap_alone(slab, rows.wrapped)?;
            }
            return Ok(());
        }
        let own = slab.own();
        let above = (me > 0 || slab.wraps()).then(|| Edge {
            neighbour: (me + active - 1) % active,
            wrapped: me == 0,
        });
        let below = (me + 1 < active || slab.wraps()).then(|| Edge {
            neighbour: (me + 1) % active,
            wrapped: me + 1 == active,
        });

        self.number += 1;
        if let Some(edge) = &above {
            let count = rows.across(edge);
            // The row that the ghost below copies is row 1.
            let first = if edge.wrapped { 1 } else { own.start };
            self.send(pe, slab, first..first + count, edge.neighbour, BELOW)?;
        }
        if let Some(edge) = &below {
            let count = rows.across(edge);
            let end = if edge.wrapped { total - 1 } else { own.end };
            self.send(pe, slab, end - count..end, edge.neighbour, ABOVE)?;
        }
        if let Some(edge) = &above {
            let count = rows.across(edge);
            let end = if edge.wrapped { 1 } else { own.start as isize };
            self.receive(pe, slab, end - count as isize, count, ABOVE)?;
        }
        if let Some(edge) = &below {
            let first = if edge.wrapped { total - 1 } else { own.end };
            self.receive(pe, slab, first as isize, rows.across(edge), BELOW)?;
        }
        Ok(())
    }

    fn send(
        &mut self,
        pe: &Pe,
        slab: &impl Slab<F>,
        rows: Range<usize>,
        to: usize,
        side: usize,
    ) -> Result<(), SolveError> {
        let target = self.part(side, rows.len());
        self.packed.clear();
        slab.pack(rows, &mut self.packed)?;
        let (buffer, signal) = (self.buffers.range(target), self.signals.at(side));
        // Release: the rows are visible to whoever sees the signal.
        pe.put_signal(buffer, &self.packed, signal, self.number, SignalOp::Set, to);
        Ok(())
    }

    fn receive(
        &mut self,
        pe: &Pe,
        slab: &mut impl Slab<F>,
        first: isize,
        count: usize,
        side: usize,
    ) -> Result<(), SolveError> {
        // Acquire. The neighbour can be one exchange ahead, and then writes the other buffer: at least, not equal.
        pe.signal_wait_until(self.signals.at(side), Cmp::Ge, self.number)?;
        let source = self.part(side, count);
        self.packed.clear();
        self.packed.resize(count * self.row_len, F::ZERO);
        pe.read(&mut self.packed, self.buffers.range(source));
        slab.unpack(first, &self.packed)
    }

    /// Where `count` rows for `side` of the current exchange lie.
    fn part(&self, side: usize, count: usize) -> Range<usize> {
        let capacity = self.buffers.len() / 4;
        let start = (2 * (self.number % 2) as usize + side) * capacity;
        start..start + count * self.row_len
    }
}

impl Rows {
    fn across(self, edge: &Edge) -> usize {
        if edge.wrapped {
            self.wrapped
        } else {
            self.inner
        }
    }
}

/// The ghost rows and the halos beyond them, `count` rows at each end, of a grid that one PE owns alone.
fn wrap_alone<F: Real>(slab: &mut impl Slab<F>, count: usize) -> Result<(), SolveError> {
    let total = slab.partition().total();
    let mut row = Vec::with_capacity(slab.row_len());
    let ends =
        (1 - count as isize..1).chain(total as isize - 1..total as isize - 1 + count as isize);
    for y in ends {
        let image = image(y, total);
        row.clear();
        slab.pack(image..image + 1, &mut row)?;
        slab.unpack(y, &row)?;
    }
    Ok(())
}

/// The inner row (or column) that number `at` of a periodic grid of `total` is a copy of.
pub(crate) fn image(at: isize, total: usize) -> usize {
    1 + (at - 1).rem_euclid(total as isize - 2) as usize
}

//! Rows of multigrid levels between PEs: halos by put and signal, and whole levels to everybody.
//!
//! # Why no buffer is overwritten while it is read
//! As in `put_signal.rs`: exchanges of a kind are numbered, use one of two buffers in turn, and each waits for all who
//! wrote into it. Who puts into a buffer in exchange s has seen the signal s − 1 of its reader, who sent that after it
//! had read what exchange s − 2 left there. Gathers have a signal for each sender: a sum of them could count one PE
//! twice and another not at all.

use bytemuck::Pod;
use crosswarp_shmem::{Cmp, Pe, SignalOp, Sym};

use crate::element::Real;
use crate::engine::cpu::multigrid::row_table::RowTable;
use crate::engine::cpu::multigrid::shape::{HALO, Shape};
use crate::exchange::level_puts::OnGpus;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// Buffers and signals, in the symmetric heap.
pub(crate) struct LevelRows<'p> {
    pe: &'p Pe,
    halos: Sym<u32>,
    halo_signals: Sym<u64>,
    halo_number: u64,
    gathered: Sym<u32>,
    gather_signals: Sym<u64>,
    gather_number: u64,
    packed: Vec<u32>,
    /// Where levels are on GPUs.
    pub gpus: OnGpus<'p>,
}

/// 32-bit words of `count` elements.
fn words<T>(count: usize) -> usize {
    count * (size_of::<T>() / size_of::<u32>())
}

impl<'p> LevelRows<'p> {
    /// Collective: buffers for halos of the finest level `shape` in `f64` and of operators of `parts` parts in `T` on
    /// the others, and for the first of these that is not spread; halos are `depth` rows deep at most.
    pub(crate) fn new<T: Real>(
        pe: &'p Pe,
        shape: &Shape,
        coarser: &[Shape],
        parts: usize,
        depth: usize,
    ) -> Result<LevelRows<'p>, PeError> {
        // An operator's row has `parts` times as many elements as the field's, and a column more on both sides.
        let operator = |level: &Shape| words::<T>(parts * (level.x.len + 2));
        let halo = if shape.spread {
            let finest = words::<f64>(shape.x.len);
            depth
                * coarser
                    .first()
                    .map_or(finest, |level| operator(level).max(finest))
        } else {
            0
        };
        let whole = coarser
            .iter()
            .find(|level| shape.spread && !level.spread)
            .map_or(0, |level| operator(level) * level.y.len);
        Ok(LevelRows {
            pe,
            halos: pe.alloc(4 * halo)?,
            halo_signals: pe.alloc_zeroed(2)?,
            halo_number: 0,
            gathered: pe.alloc(2 * whole)?,
            gather_signals: pe.alloc_zeroed(pe.n_pes())?,
            gather_number: 0,
            packed: Vec::new(),
            gpus: OnGpus::default(),
        })
    }

    pub(crate) fn pe(&self) -> &'p Pe {
        self.pe
    }

    /// Collective: gives the buffers back.
    pub(crate) fn free(self) -> Result<(), PeError> {
        self.pe.free(self.halos)?;
        self.pe.free(self.halo_signals)?;
        self.pe.free(self.gathered)?;
        self.pe.free(self.gather_signals)?;
        Ok(())
    }

    /// Makes the `depth` rows above and below the own ones, and the columns beyond both ends of rows that wrap, what
    /// they are where they are computed. Collective if the level is spread.
    pub(crate) fn halo<T: Pod>(
        &mut self,
        shape: &Shape,
        field: &mut Field<T>,
        depth: usize,
    ) -> Result<(), PeError> {
        self.halo_of(shape, field, depth)?;
        if shape.x.wraps {
            for y in shape.rows(depth) {
                wrap_columns(field, y);
            }
        }
        Ok(())
    }

    /// As [`halo`](Self::halo), without the columns.
    pub(crate) fn halo_of<R: Rows>(
        &mut self,
        shape: &Shape,
        rows: &mut R,
        depth: usize,
    ) -> Result<(), PeError> {
        assert!(depth <= HALO);
        if shape.spread {
            return self.exchange(shape, rows, depth);
        }
        if shape.y.wraps {
            let len = shape.y.len as isize;
            for y in (-(depth as isize)..0).chain(len..len + depth as isize) {
                rows.copy(y.rem_euclid(len), y);
            }
        }
        Ok(())
    }

    fn exchange<R: Rows>(
        &mut self,
        shape: &Shape,
        rows: &mut R,
        depth: usize,
    ) -> Result<(), PeError> {
        let own = shape.own();
        self.halo_number += 1;
        let number = self.halo_number;
        let capacity = self.halos.len() / 4;
        let len = depth * rows.words();
        assert!(len <= capacity);
        // Buffers and signals: 0 is for what comes from above, 1 from below.
        let part = |side: usize| {
            let start = (2 * (number % 2) as usize + side) * capacity;
            start..start + len
        };
        let [above, below] = shape.neighbours();
        let depth = depth as isize;
        for (to, side, range) in [
            (above, 1, own.start..own.start + depth),
            (below, 0, own.end - depth..own.end),
        ] {
            let Some(to) = to else { continue };
            self.packed.clear();
            range.for_each(|y| self.packed.extend_from_slice(rows.get(y)));
            // Release: the rows are visible to whoever sees the signal.
            self.pe.put_signal(
                self.halos.range(part(side)),
                &self.packed,
                self.halo_signals.at(side),
                number,
                SignalOp::Set,
                to,
            );
        }
        for (from, side, first) in [(above, 0, own.start - depth), (below, 1, own.end)] {
            if from.is_none() {
                continue;
            }
            // Acquire. The neighbour can be one exchange ahead, and then writes the other buffer.
            self.pe
                .signal_wait_until(self.halo_signals.at(side), Cmp::Ge, number)?;
            self.packed.resize(len, 0);
            self.pe.read(&mut self.packed, self.halos.range(part(side)));
            for (y, row) in (first..).zip(self.packed.chunks_exact(rows.words())) {
                rows.set(y, row);
            }
        }
        Ok(())
    }

    /// Gives every PE all rows of a level that is not spread, of which each has computed those of its cut. Collective.
    pub(crate) fn gather<R: Rows>(&mut self, shape: &Shape, rows: &mut R) -> Result<(), PeError> {
        let (pes, me) = (shape.cuts.len() - 1, shape.me);
        let of = |pe: usize| shape.cuts[pe]..shape.cuts[pe + 1];
        self.gather_number += 1;
        let number = self.gather_number;
        let start = (number % 2) as usize * (self.gathered.len() / 2);
        let words = rows.words();
        assert!(shape.y.len * words <= self.gathered.len() / 2);
        let part = |pe: usize| start + of(pe).start * words..start + of(pe).end * words;
        self.packed.clear();
        of(me).for_each(|y| self.packed.extend_from_slice(rows.get(y as isize)));
        for to in (1..pes).map(|step| (me + step) % pes) {
            // Release, as above.
            self.pe.put_signal(
                self.gathered.range(part(me)),
                &self.packed,
                self.gather_signals.at(me),
                number,
                SignalOp::Set,
                to,
            );
        }
        for from in (0..pes).filter(|&from| from != me) {
            self.pe
                .signal_wait_until(self.gather_signals.at(from), Cmp::Ge, number)?;
            let part = part(from);
            self.packed.resize(part.len(), 0);
            self.pe.read(&mut self.packed, self.gathered.range(part));
            for (y, row) in of(from).zip(self.packed.chunks_exact(words)) {
                rows.set(y as isize, row);
            }
        }
        Ok(())
    }
}

/// Rows that can be sent, as words of 32 bits.
pub(crate) trait Rows {
    /// Words of a row.
    fn words(&self) -> usize;
    /// Row `y`.
    fn get(&self, y: isize) -> &[u32];
    /// Sets row `y`.
    fn set(&mut self, y: isize, row: &[u32]);
    /// Makes row `to` a copy of row `from`.
    fn copy(&mut self, from: isize, to: isize);
}

impl<T: Pod> Rows for Field<T> {
    fn words(&self) -> usize {
        words::<T>(self.columns())
    }
    fn get(&self, y: isize) -> &[u32] {
        bytemuck::cast_slice(self.row(y))
    }
    fn set(&mut self, y: isize, row: &[u32]) {
        bytemuck::cast_slice_mut(self.row_mut(y)).copy_from_slice(row);
    }
    fn copy(&mut self, from: isize, to: isize) {
        self.copy_row(from, to);
    }
}

impl<T: Real> Rows for RowTable<T> {
    fn words(&self) -> usize {
        words::<T>(self.elements())
    }
    fn get(&self, y: isize) -> &[u32] {
        bytemuck::cast_slice(self.whole(y))
    }
    fn set(&mut self, y: isize, row: &[u32]) {
        // What arrived need not be aligned for `T`.
        let mut aligned = vec![T::ZERO; self.elements()];
        bytemuck::cast_slice_mut(&mut aligned).copy_from_slice(row);
        self.set(y, &aligned);
    }
    fn copy(&mut self, from: isize, to: isize) {
        self.copy(from, to);
    }
}

/// The columns beyond both ends of row `y` become copies of those at the other end.
pub(crate) fn wrap_columns<T: Pod>(field: &mut Field<T>, y: isize) {
    let nx = field.row(y).len() as isize;
    let halo = HALO as isize;
    for x in (-halo..0).chain(nx..nx + halo) {
        let value = field.row(y)[x.rem_euclid(nx) as usize];
        field.padded_row_mut(y)[(crate::field::storage::PAD as isize + x) as usize] = value;
    }
}

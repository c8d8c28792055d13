//! Rows of multigrid levels between PEs: halos by put and signal, and whole levels to everybody.
//!
//! # Why no buffer is overwritten while it is read
//! As in `put_signal.rs`: exchanges of a kind are numbered, use one of two buffers in turn, and each waits for all who
//! wrote into it. Who puts into a buffer in exchange s has seen the signal s − 1 of its reader, who sent that after it
//! had read what exchange s − 2 left there. Gathers have a signal for each sender: a sum of them could count one PE
//! twice and another not at all.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_shmem::{Cmp, Pe, SignalOp, Sym};

use crate::engine::cpu::multigrid::shape::{HALO, Shape};
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
}

/// 32-bit words of `count` elements.
fn words<T>(count: usize) -> usize {
    count * (size_of::<T>() / size_of::<u32>())
}

impl<'p> LevelRows<'p> {
    /// Collective: buffers for halos of the finest level `shape` in `f64`, and for the first of `coarser` that is not
    /// spread.
    pub(crate) fn new(
        pe: &'p Pe,
        shape: &Shape,
        coarser: &[Shape],
    ) -> Result<LevelRows<'p>, PeError> {
        let halo = if shape.spread {
            words::<f64>(HALO * shape.x.len)
        } else {
            0
        };
        let whole = coarser
            .iter()
            .find(|level| shape.spread && !level.spread)
            .map_or(0, |level| words::<f64>(level.x.len * level.y.len));
        Ok(LevelRows {
            pe,
            halos: pe.alloc(4 * halo)?,
            halo_signals: pe.alloc_zeroed(2)?,
            halo_number: 0,
            gathered: pe.alloc(2 * whole)?,
            gather_signals: pe.alloc_zeroed(pe.n_pes())?,
            gather_number: 0,
            packed: Vec::new(),
        })
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
        assert!(depth <= HALO);
        if shape.spread {
            self.exchange(shape, field, depth)?;
        } else if shape.y.wraps {
            let len = shape.y.len as isize;
            for y in (-(depth as isize)..0).chain(len..len + depth as isize) {
                field.copy_row(y.rem_euclid(len), y);
            }
        }
        if shape.x.wraps {
            for y in shape.rows(depth) {
                wrap_columns(field, y);
            }
        }
        Ok(())
    }

    fn exchange<T: Pod>(
        &mut self,
        shape: &Shape,
        field: &mut Field<T>,
        depth: usize,
    ) -> Result<(), PeError> {
        let (pes, me, own) = (shape.cuts.len() - 1, shape.me, shape.own());
        self.halo_number += 1;
        let number = self.halo_number;
        let capacity = self.halos.len() / 4;
        let len = words::<T>(depth * shape.x.len);
        // Buffers and signals: 0 is for what comes from above, 1 from below.
        let part = |side: usize| {
            let start = (2 * (number % 2) as usize + side) * capacity;
            start..start + len
        };
        let above = (me > 0 || shape.y.wraps).then(|| (me + pes - 1) % pes);
        let below = (me + 1 < pes || shape.y.wraps).then(|| (me + 1) % pes);
        let depth = depth as isize;
        for (to, side, rows) in [
            (above, 1, own.start..own.start + depth),
            (below, 0, own.end - depth..own.end),
        ] {
            let Some(to) = to else { continue };
            self.pack(field, rows);
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
            self.pe
                .read(&mut self.packed, self.halos.range(part(side)));
            for (y, row) in (first..).zip(self.packed.chunks_exact(words::<T>(shape.x.len))) {
                bytemuck::cast_slice_mut(field.row_mut(y)).copy_from_slice(row);
            }
        }
        Ok(())
    }

    /// Gives every PE all rows of a level that is not spread, of which each has computed those of its cut. Collective.
    pub(crate) fn gather<T: Pod>(
        &mut self,
        shape: &Shape,
        field: &mut Field<T>,
    ) -> Result<(), PeError> {
        let (pes, me) = (shape.cuts.len() - 1, shape.me);
        let rows = |pe: usize| shape.cuts[pe]..shape.cuts[pe + 1];
        self.gather_number += 1;
        let number = self.gather_number;
        let start = (number % 2) as usize * (self.gathered.len() / 2);
        let row_words = words::<T>(shape.x.len);
        let part = |pe: usize| start + rows(pe).start * row_words..start + rows(pe).end * row_words;
        self.pack(field, rows(me).start as isize..rows(me).end as isize);
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
            for (y, row) in rows(from).zip(self.packed.chunks_exact(row_words)) {
                bytemuck::cast_slice_mut(field.row_mut(y as isize)).copy_from_slice(row);
            }
        }
        Ok(())
    }

    fn pack<T: Pod>(&mut self, field: &Field<T>, rows: Range<isize>) {
        self.packed.clear();
        for y in rows {
            self.packed
                .extend_from_slice(bytemuck::cast_slice(field.row(y)));
        }
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

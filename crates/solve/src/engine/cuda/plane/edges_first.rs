//! Passes with the rows at the edge first, so that they travel while the others are made.
#![allow(unsafe_code)] // A launch.

use std::ops::Range;

use crosswarp_cuda::{ByValue, Stream};
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use super::{Advance, MAX_DEPTH, Plane, pass_launch};
use crate::element::Real;
use crate::engine::slab::Slab;
use crate::exchange::host_exchange::StoredRows;
use crate::exchange::put_signal::Rows;
use crate::method::jacobi::SolveError;

impl<F: Real> Plane<'_, F> {
    fn stored(&self) -> StoredRows {
        StoredRows {
            first: self.layout.first,
            pitch: self.layout.pitch,
        }
    }

    /// Fills the halos of the field before the next pass by copies, unless the pass before has sent them already.
    pub(super) fn exchange_by_host(&mut self, rows: Rows) -> Result<(), SolveError> {
        let (stored, place) = (self.stored(), self.place());
        let host = self.host.as_mut().expect("called only with one");
        if !host.is_under_way() {
            host.edge_after(&self.stream)?;
            host.send(&self.before, stored, &place, rows)?;
        }
        host.receive(&self.stream, &self.before, stored, &place)
    }

    /// Gives the `depth` sweeps of a pass to the streams, the edge first, and has it copied to the neighbours, which are
    /// told when it has arrived.
    pub(super) fn launch_edges_first(&mut self, depth: usize) -> Result<(), SolveError> {
        let (stored, place) = (self.stored(), self.place());
        // As many as any pass needs.
        let most = self
            .depth_limit()
            .min(self.partition.max_depth(self.wrap_y));
        self.begin_at_zero(self.half)?;
        let host = self.host.as_ref().expect("called only with one");
        let edge = host.edge_after(&self.stream)?.clone();
        let inner = match parts(&self.own) {
            Some([top, inner, bottom]) => {
                self.launch_rows(&edge, top, depth)?;
                self.launch_rows(&edge, bottom, depth)?;
                Some(inner)
            }
            None => {
                self.launch_rows(&edge, self.own.clone(), depth)?;
                None
            }
        };
        let host = self.host.as_mut().expect("as above");
        host.send(&self.after, stored, &place, Rows::halo(most))?;
        if let Some(inner) = inner {
            self.launch_rows(&self.stream, inner, depth)?;
        }
        let host = self.host.as_mut().expect("as above");
        host.tell(&place)?;
        host.join(&self.stream)
    }

    /// Gives a pass over `rows`, which begin on a leaf and end with one or with the band, to `stream`.
    fn launch_rows(
        &self,
        stream: &Stream,
        rows: Range<usize>,
        depth: usize,
    ) -> Result<(), SolveError> {
        let band = self.band(&self.before, &self.after, self.half);
        let Advance::Pass {
            kernel, machine, ..
        } = &self.advance
        else {
            unreachable!("only passes have an edge of their own");
        };
        let order = machine.whole(rows);
        let launch = pass_launch(kernel, &machine.shape, machine.warps).grid(order.blocks());
        let strips = ByValue(order.strips(0));
        // SAFETY: as in `launch`; fewer rows have as many around them.
        unsafe { launch.launch(stream, (ByValue(band), strips, depth as i32)) }?;
        Ok(())
    }
}

/// The leaves that hold what the neighbours need, and those between; none if nothing is between.
pub(super) fn parts(own: &Range<usize>) -> Option<[Range<usize>; 3]> {
    let (start, end) = (own.start, own.end);
    // A ghost row, and the row it copies, besides the halo.
    let deep = MAX_DEPTH + 2;
    let inner =
        start + deep.next_multiple_of(LEAF_ROWS)..end.saturating_sub(deep) / LEAF_ROWS * LEAF_ROWS;
    (inner.start < inner.end).then(|| [start..inner.start, inner.clone(), inner.end..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_band_and_hold_the_halos() {
        for (start, end) in [(0, 3), (0, 47), (16, 64), (160, 1003), (32, 80)] {
            let Some([top, inner, bottom]) = parts(&(start..end)) else {
                assert!(end - start < 16 + 16 + 12 + 15);
                continue;
            };
            assert_eq!((top.start, bottom.end), (start, end));
            assert_eq!((top.end, inner.end), (inner.start, bottom.start));
            assert!(top.len() >= 12 && bottom.len() >= 12 && !inner.is_empty());
            assert!(inner.start % 16 == 0 && inner.end % 16 == 0);
        }
    }
}

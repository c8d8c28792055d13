//! A PE's rows of a field, as they are given to the caller.

use std::ops::Range;

use crate::element::Real;
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::pes::error::PeError;

/// Rows without halos.
pub(crate) struct Band<F> {
    partition: Partition,
    own: Range<usize>,
    nx: usize,
    values: Vec<F>,
}

impl<F: Real> Band<F> {
    /// The rows of PE `pe`: `fill` is called for each.
    pub(crate) fn new(
        partition: Partition,
        pe: usize,
        nx: usize,
        mut fill: impl FnMut(usize, &mut [F]),
    ) -> Band<F> {
        let own = partition.rows(pe);
        let mut values = vec![F::ZERO; own.len() * nx];
        for (y, row) in own.clone().zip(values.chunks_exact_mut(nx)) {
            fill(y, row);
        }
        Band {
            partition,
            own,
            nx,
            values,
        }
    }

    /// Row `y`, which this PE owns.
    pub(crate) fn row(&self, y: usize) -> &[F] {
        let at = y.checked_sub(self.own.start).unwrap_or(usize::MAX);
        let row = self.values.chunks_exact(self.nx).nth(at);
        row.unwrap_or_else(|| panic!("row {y} is not among this PE's rows {:?}", self.own))
    }
}

impl<F: Real> LocalRows<F> for Band<F> {
    type Error = PeError;

    fn partition(&self) -> &Partition {
        &self.partition
    }

    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn row_len(&self) -> usize {
        self.nx
    }

    fn wraps(&self) -> bool {
        false
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), PeError> {
        for y in rows {
            out.extend_from_slice(self.row(y));
        }
        Ok(())
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), PeError> {
        let at = (first as usize - self.own.start) * self.nx;
        self.values[at..at + values.len()].copy_from_slice(values);
        Ok(())
    }
}

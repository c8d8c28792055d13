//! A PE's rows of a field, as they are given to the caller.

use std::io;
use std::ops::Range;

use crate::element::Real;
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// Rows without halos.
pub(crate) struct Band<F> {
    partition: Partition,
    own: Range<usize>,
    /// By their numbers in the problem; others may be there, too.
    values: Field<F>,
}

impl<F: Real> Band<F> {
    /// The rows of PE `pe`: `fill` is called for each.
    ///
    /// Errors: the system's, when the memory can not be mapped.
    pub(crate) fn new(
        partition: Partition,
        pe: usize,
        nx: usize,
        mut fill: impl FnMut(usize, &mut [F]),
    ) -> io::Result<Band<F>> {
        let own = partition.rows(pe);
        let mut values = Field::lazy(own.start as isize..own.end as isize, nx)?;
        for y in own {
            fill(y, values.row_mut(y as isize));
        }
        Ok(Band::of(partition, pe, values))
    }

    /// The rows of PE `pe` of `values`, whose rows and columns are the problem's.
    pub(crate) fn of(partition: Partition, pe: usize, values: Field<F>) -> Band<F> {
        let own = partition.rows(pe);
        Band {
            partition,
            own,
            values,
        }
    }

    /// Row `y`, which this PE owns.
    pub(crate) fn row(&self, y: usize) -> &[F] {
        if !self.own.contains(&y) {
            panic!("row {y} is not among this PE's rows {:?}", self.own);
        }
        self.values.row(y as isize)
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
        self.values.columns()
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
        let nx = self.values.columns();
        for (y, values) in (first..).zip(values.chunks_exact(nx)) {
            self.values.row_mut(y).copy_from_slice(values);
        }
        Ok(())
    }
}

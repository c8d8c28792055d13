//! What gathering, checkpoints and exchanges need of a PE's rows, wherever these lie.

use std::ops::Range;

use crate::element::Real;
use crate::field::partition::Partition;
use crate::pes::error::PeError;

/// A PE's rows of a field that is distributed by rows, in host memory or a GPU's. In 1-D a row is a point.
pub(crate) trait LocalRows<F: Real> {
    /// What copying rows may fail with.
    type Error: From<PeError>;

    /// How the rows are dealt.
    fn partition(&self) -> &Partition;
    /// The rows of this PE.
    fn own(&self) -> Range<usize>;
    /// Elements of a row.
    fn row_len(&self) -> usize;
    /// Whether the rows wrap around, with ghost rows 0 and total − 1.
    fn wraps(&self) -> bool;
    /// Appends the rows `rows` (own rows, before the next sweep) to `out`.
    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), Self::Error>;
    /// Overwrites the rows from `first` on, own or halo, before the next sweep.
    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), Self::Error>;
}

//! A PE's part of a field, as the driver sees it.

use std::ops::Range;

use crosswarp_prim::Superaccumulator;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::exchange::put_signal::{Halo, Rows};
use crate::field::partition::Partition;
use crate::method::jacobi::SolveError;
use crate::stop::threshold::Threshold;

/// A field distributed by rows. In 1-D a row is a point.
///
/// The slab holds the field before and after a pass; the halo rows belong to the field before.
pub(crate) trait Slab<F: Real>: Sized {
    /// How the rows are dealt.
    fn partition(&self) -> &Partition;
    /// The rows of this PE.
    fn own(&self) -> Range<usize>;
    /// Elements of a row.
    fn row_len(&self) -> usize;
    /// Whether the rows wrap around, with ghost rows 0 and total − 1.
    fn wraps(&self) -> bool;
    /// Whether the first sweep must stand alone, because its ghosts are not yet copies.
    fn starts_singly(&self) -> bool;
    /// Sweeps of a pass unless the caller chooses.
    fn default_depth(&self) -> usize;
    /// Most sweeps of a pass.
    fn depth_limit(&self) -> usize;
    /// Appends the rows `rows` (own rows, before the pass) to `out`.
    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), SolveError>;
    /// Overwrites the rows from `first` on, own or halo, before the pass.
    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), SolveError>;
    /// Sends the outermost rows to the neighbours and receives theirs as halos. Collective.
    fn exchange(&mut self, pe: &Pe, halo: &mut Halo<F>, rows: Rows) -> Result<(), SolveError> {
        halo.exchange(pe, self, rows)
    }
    /// Says how many sweeps the pass after the next call of `pass` is likely to have, so that it may begin early.
    fn expect(&mut self, _next: Option<usize>) {}
    /// Advances the own rows by `norms.len()` sweeps; the field before the pass stays. Needs halos that deep.
    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), SolveError>;
    /// Makes the field after the pass the one before the next.
    fn accept(&mut self);

    /// Whether the slab makes its sweeps by [`march`](Self::march) instead; the same on every PE.
    fn marches(&self) -> bool {
        false
    }
    /// Makes at least one sweep and at most `march.most`, and stops after the first one that meets the threshold. The
    /// field before becomes the one after the last of them. `sums` (empty) gets each sweep's sum over all PEs, the same
    /// on every PE. Exchanges the halos itself. Collective.
    fn march(
        &mut self,
        _march: &March<'_>,
        _sums: &mut Vec<Superaccumulator<F>>,
    ) -> Result<(), SolveError> {
        unreachable!("only slabs that say so march")
    }
}

/// What a slab that stops by itself is to do.
pub(crate) struct March<'a> {
    /// Sweeps made since the start of the solve.
    pub done: usize,
    /// Most sweeps, at least 1.
    pub most: usize,
    /// Most sweeps of the march after this one, if neither meets the threshold; 0: none follows.
    pub next: usize,
    /// Sweeps between two exchanges of halos, at least 1 and at most [`Slab::depth_limit`].
    pub depth: usize,
    /// When a sweep's norm meets the tolerance.
    pub threshold: &'a Threshold,
}

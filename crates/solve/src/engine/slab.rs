//! A PE's part of a field, and how it is advanced, as a method sees it.

use crosswarp_prim::Superaccumulator;

use crate::element::Real;
use crate::exchange::Rows;
use crate::exchange::put_signal::PutSignal;
use crate::field::rows::LocalRows;
use crate::stop::threshold::Threshold;

/// Most sweeps of a pass on any engine.
pub(crate) const MOST_SWEEPS_OF_PASS: usize = 64;
/// Most sweeps that an engine makes by itself between two looks at interrupts and the observer.
pub(crate) const MOST_SWEEPS_OF_RUN: usize = 1024;

/// The rows of a PE with an engine that makes sweeps over them.
pub(crate) trait Slab<F: Real>: LocalRows<F> {
    /// Whether the first sweep must stand alone, because its ghosts are not yet copies.
    fn starts_singly(&self) -> bool;
    /// Sweeps of a pass unless the caller chooses.
    fn default_depth(&self) -> usize;
    /// Most sweeps of a pass.
    fn depth_limit(&self) -> usize;
    /// How the next sweeps are made; the same on every PE. `singly`: the next is one that stands alone, which is made
    /// by a pass.
    fn advance(&mut self, singly: bool) -> Advance<'_, F, Self::Error>;
}

/// How an engine makes its next sweeps.
pub(crate) enum Advance<'s, F, E> {
    /// By passes; exchanges, norms and the stop are the method's.
    Passes(&'s mut dyn Passes<F, Error = E>),
    /// By itself, until it stops.
    UntilStopped(Box<dyn RunUntilStopped<F, Error = E> + 's>),
}

/// An engine that makes several sweeps in a pass through memory.
///
/// It holds the field before and after a pass; the halo rows belong to the field before.
pub(crate) trait Passes<F: Real> {
    /// What may go wrong.
    type Error;

    /// Sends the outermost rows to the neighbours and receives theirs as halos: through the hosts, if the engine has no
    /// exchange of its own. Collective.
    fn exchange(
        &mut self,
        through_hosts: &mut PutSignal<'_, F>,
        rows: Rows,
    ) -> Result<(), Self::Error>;
    /// Says how many sweeps the pass after the next call of `pass` is likely to have, so that it may begin early.
    fn expect(&mut self, _next: Option<usize>) {}
    /// Advances the own rows by `norms.len()` sweeps; the field before the pass stays. Needs halos that deep.
    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), Self::Error>;
    /// Makes the field after the pass the one before the next.
    fn accept(&mut self);
}

/// An engine that makes many sweeps, exchanges halos, adds up norms and stops without the method.
pub(crate) trait RunUntilStopped<F: Real> {
    /// What may go wrong.
    type Error;

    /// Makes at least one sweep and at most `run.most`, and stops after the first one that meets the threshold. The
    /// field before becomes the one after the last of them. `sums` (empty) gets each sweep's sum over all PEs, the same
    /// on every PE. Collective.
    fn run(
        &mut self,
        run: &Run<'_>,
        sums: &mut Vec<Superaccumulator<F>>,
    ) -> Result<(), Self::Error>;
}

/// What an engine that stops by itself is to do.
pub(crate) struct Run<'a> {
    /// Sweeps made since the start of the solve.
    pub done: usize,
    /// Most sweeps, at least 1.
    pub most: usize,
    /// Most sweeps of the run after this one, if neither meets the threshold; 0: none follows.
    pub next: usize,
    /// Sweeps between two exchanges of halos, at least 1 and at most [`Slab::depth_limit`].
    pub depth: usize,
    /// When a sweep's norm meets the tolerance.
    pub threshold: &'a Threshold,
}

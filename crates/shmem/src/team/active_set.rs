//! Active sets: the strided sets of PEs that OpenSHMEM's older collectives name in every call.
//!
//! A set becomes a team the first time it is used, and stays one. Its PEs have no parent team to agree
//! over, so they agree in pairs: each keeps, for each other PE, a count of the handshakes the two have been
//! in (`calls` of the control memory). Two PEs are in the same handshakes in the same order, so equal
//! counts mean that both have come.
//!
//! Access rules
//! 1. `calls[from]` of PE `to` is written by `from` only.
//!    One thread of it at a time: `handshakes` of the `Endpoint`.
//! 2. `proposal` of a PE is written by it before its call (Release) and read by others after they saw that call
//!    (Acquire) and before their next one; it is not written again before it has seen that next call.
//!    So it is plain data.
#![allow(unsafe_code)] // reads and writes the proposals, which calls guard

use crate::team::biased_lock::this_thread;
use crate::team::choice::Proposal;
use crate::team::collective_call::Kind;
use crate::team::error::CollectiveError;
use crate::team::shape::Shape;
use crate::team::{Team, TeamError};
use crate::wait::sync::{AtomicU64, Ordering};
use crate::wait::waiter::Wait;
use crate::world::control::{MAX_TEAMS, Proposed};
use crate::world::endpoint::Endpoint;

impl Endpoint {
    /// The team of the PEs `start`, `start + stride`, … of the world, `size` of them; see
    /// [`raw::Raw::active_set`](crate::verbs::raw::Raw::active_set).
    pub(crate) fn active_set_team(
        &self,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Team<'_>, TeamError> {
        let n = self.n_pes();
        let no_such_set = TeamError::Shape {
            start,
            stride,
            size,
            parent: n,
        };
        if (start, stride, size) == (0, 1, n) {
            return Ok(self.world());
        }
        let Some(shape) = Shape::new(start, stride, size, n) else {
            return Err(no_such_set);
        };
        let known = self.team_indices().active_sets.get(&shape).copied();
        let index = match known {
            Some(index) => index,
            None => {
                if self.team_at(shape, 0).is_none() {
                    return Err(no_such_set);
                }
                let turn = self
                    .handshakes
                    .enter(this_thread(), self.shared(), &self.gate);
                let _turn = turn.ok_or(CollectiveError::Busy {
                    me: self.my_pe(),
                    kind: Kind::Split,
                })?;
                let everyone = Shape::new(0, 1, size, size).ok_or(no_such_set.clone())?;
                let me = (0..size).find(|&i| shape.world_pe(i) == self.my_pe());
                let exchange = |proposal: &Proposal| self.handshake(shape, size, proposal);
                // Away from where teams look first.
                let first = MAX_TEAMS / 2;
                let taken = self.take_indices(&[everyone], me.unwrap_or(0), first, exchange)?;
                let index = taken.ok_or(TeamError::TooMany { most: MAX_TEAMS })?[0];
                self.team_indices().active_sets.insert(shape, index);
                index
            }
        };
        self.team_at(shape, index).ok_or(no_such_set)
    }

    /// Hands every PE of `shape` every other's words. For the one thread of the PE that has the turn of `handshakes`.
    fn handshake(
        &self,
        shape: Shape,
        size: usize,
        proposal: &Proposal,
    ) -> Result<Vec<Proposal>, CollectiveError> {
        let control = self.control();
        let pes: Vec<usize> = (0..size).map(|i| shape.world_pe(i)).collect();
        let wait = |pe: usize, number: u64| {
            let theirs = control.calls(pe, self.my_pe());
            self.waiter().until(
                || Wait::Collective { number, pe },
                || has_called(theirs, number).then_some(()),
            )
        };
        // SAFETY: the caller is the one thread of its PE here, and the wait ends with the call.
        let proposals = unsafe {
            handshake(
                &pes,
                self.my_pe(),
                |pe| &control.pe(pe).proposal,
                |from, to| control.calls(from, to),
                |pe| {
                    control.pe(pe).parker.notify_arrival(self.shared());
                    if !self.peer(pe).heap.is_mapped() {
                        let number = control.calls(self.my_pe(), pe).load(Ordering::Relaxed);
                        // The second call of a handshake says nothing new.
                        let words = if number % 2 == 1 { &proposal[..] } else { &[] };
                        self.remote_handshake(pe, number, words);
                    }
                },
                wait,
                proposal,
            )
        };
        Ok(proposals?)
    }
}

/// Whether the PE whose calls to this one are `theirs` has made call `number`.
pub(crate) fn has_called(theirs: &AtomicU64, number: u64) -> bool {
    // Acquire: pairs with the Release store in `call_and_wait`.
    theirs.load(Ordering::Acquire) >= number
}

/// Hands each of `pes`, of which `me` is one, every other's words. `wake(pe)` wakes it if it waits for calls; `wait`
/// waits until `pe` has called `me` as often as the number says.
///
/// # Safety
/// The calling thread is the only one of PE `me` in a handshake, and all use the same words by the access rules.
/// `wait` returns `Ok` only after it has seen `has_called`.
pub(crate) unsafe fn handshake<'a, E>(
    pes: &[usize],
    me: usize,
    proposal_of: impl Fn(usize) -> &'a Proposed,
    calls: impl Fn(usize, usize) -> &'a AtomicU64,
    wake: impl Fn(usize),
    mut wait: impl FnMut(usize, u64) -> Result<(), E>,
    proposal: &Proposal,
) -> Result<Vec<Proposal>, E> {
    // SAFETY: by rule 2 nobody reads it before my call.
    let write = |words: *mut Proposal| unsafe { words.write(*proposal) };
    proposal_of(me).0.with_mut(write);
    let mut call_and_wait = || {
        let others = || pes.iter().copied().filter(|&pe| pe != me);
        for pe in others() {
            // Only this PE writes the word.
            let calls = calls(me, pe);
            calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Release);
            wake(pe);
        }
        for pe in others() {
            wait(pe, calls(me, pe).load(Ordering::Relaxed))?;
        }
        Ok(())
    };
    call_and_wait()?;
    // SAFETY: by rule 2 its PE does not write it before my next call.
    let read = |words: *const Proposal| unsafe { words.read() };
    let proposals = pes.iter().map(|&pe| proposal_of(pe).0.with(read)).collect();
    // Everyone has read before anyone writes again.
    call_and_wait()?;
    Ok(proposals)
}

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

use crate::team::call::Kind;
use crate::team::choice::Proposal;
use crate::team::error::CollectiveError;
use crate::team::shape::Shape;
use crate::team::turn::this_thread;
use crate::team::{Team, TeamError};
use crate::wait::sync::Ordering;
use crate::wait::waiter::Wait;
use crate::world::control::MAX_TEAMS;
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

    /// Hands every PE of `shape` every other's words.
    fn handshake(
        &self,
        shape: Shape,
        size: usize,
        proposal: &Proposal,
    ) -> Result<Vec<Proposal>, CollectiveError> {
        let mine = &self.control().pe(self.my_pe()).proposal.0;
        for (word, &value) in mine.iter().zip(proposal) {
            word.store(value, Ordering::Relaxed);
        }
        self.call_and_wait(shape, size)?;
        let read = |i: usize| {
            let theirs = &self.control().pe(shape.world_pe(i)).proposal.0;
            std::array::from_fn(|word| theirs[word].load(Ordering::Relaxed))
        };
        let proposals = (0..size).map(read).collect();
        // Everyone has read before anyone writes again.
        self.call_and_wait(shape, size)?;
        Ok(proposals)
    }

    fn call_and_wait(&self, shape: Shape, size: usize) -> Result<(), CollectiveError> {
        let (control, me) = (self.control(), self.my_pe());
        let others = || {
            let pes = (0..size).map(|i| shape.world_pe(i));
            pes.filter(move |&pe| pe != me)
        };
        for pe in others() {
            // Only this PE writes the word.
            let calls = control.calls(me, pe);
            calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Release);
            control.pe(pe).parker.notify_arrival(self.shared());
            if self.peer(pe).heap.is_none() {
                let proposal = &control.pe(me).proposal.0;
                let words = proposal.each_ref().map(|word| word.load(Ordering::Relaxed));
                self.remote_handshake(pe, calls.load(Ordering::Relaxed), &words);
            }
        }
        for pe in others() {
            let number = control.calls(me, pe).load(Ordering::Relaxed);
            let theirs = control.calls(pe, me);
            self.waiter().until(
                || Wait::Collective { number, pe },
                || (theirs.load(Ordering::Acquire) >= number).then_some(()),
            )?;
        }
        Ok(())
    }
}

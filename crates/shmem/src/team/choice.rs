//! The choice of an index for a new team.
//!
//! A team needs one index that is free at each of its PEs. The PEs of the parent tell each other which indices
//! they have free, and all compute the same choice from that; should another thread of some PE have taken the
//! index meanwhile, all hear of it and choose again.
//!
//! Epochs at an index only grow (rule 3 of [`crate::team::rendezvous`]): a new team begins at the largest number
//! that any of its PEs has ever reached in a team now gone.

use crate::team::shape::Shape;
use crate::world::control::{INDEX_WORDS, MAX_TEAMS};
use crate::world::endpoint::Endpoint;

/// What one PE tells the others when an index is chosen: its largest epoch, and its free indices; then, in
/// the first word, whether it got what was chosen.
pub(crate) type Proposal = [u64; 1 + INDEX_WORDS];

/// The lowest index from `first` on (then from 0) that all members of `group` propose, and the epoch it
/// begins at. Takes it out of their proposals.
fn choose(
    proposals: &mut [Proposal],
    group: impl Iterator<Item = usize> + Clone,
    first: usize,
) -> Option<(usize, u64)> {
    let mut common = [u64::MAX; INDEX_WORDS];
    let mut epoch = 0;
    for member in group.clone() {
        let [top, free @ ..] = &proposals[member];
        epoch = epoch.max(*top);
        for (common, free) in common.iter_mut().zip(free) {
            *common &= free;
        }
    }
    let free = |index: &usize| common[index / 64] >> (index % 64) & 1 == 1;
    let index = (first..MAX_TEAMS).chain(0..first).find(free)?;
    for member in group {
        proposals[member][1 + index / 64] &= !(1 << (index % 64));
    }
    Some((index, epoch))
}

impl Endpoint {
    /// Chooses an index for each of `groups` (sets of positions in what `exchange` returns) and takes those
    /// of the groups that `me` is in. `exchange` hands everyone everyone's words; it and the arguments
    /// other than `me` are the same on all PEs that take part. `None` if some PE has too few free.
    pub(crate) fn take_indices<E>(
        &self,
        groups: &[Shape],
        me: usize,
        first: usize,
        mut exchange: impl FnMut(&Proposal) -> Result<Vec<Proposal>, E>,
    ) -> Result<Option<Vec<usize>>, E> {
        loop {
            let mut proposal: Proposal = [0; 1 + INDEX_WORDS];
            {
                let indices = self.team_indices();
                proposal[0] = indices.top;
                proposal[1..].copy_from_slice(&indices.free);
            }
            let mut proposals = exchange(&proposal)?;
            let members = |group: &Shape| {
                let group = *group;
                (0..group.size).map(move |i| group.world_pe(i))
            };
            let chosen: Option<Vec<_>> = groups
                .iter()
                .map(|group| choose(&mut proposals, members(group), first))
                .collect();
            // Everyone computes the same, so everyone gives up.
            let Some(chosen) = chosen else {
                return Ok(None);
            };
            let mine = || {
                let in_mine = |group: &Shape| group.index_of(me).is_some();
                let with_group = groups.iter().zip(&chosen);
                with_group.filter(move |(group, _)| in_mine(group))
            };
            let mut taken = Vec::new();
            let mut got_all = true;
            for (_, &(index, _)) in mine() {
                // Another thread may have been quicker.
                if self.team_indices().take(index) {
                    taken.push(index);
                } else {
                    got_all = false;
                }
            }
            let mut outcome: Proposal = [0; 1 + INDEX_WORDS];
            outcome[0] = u64::from(got_all);
            if got_all {
                for (_, &(index, epoch)) in mine() {
                    let own = &self.control().pe(self.my_pe()).teams[index];
                    own.arrivals.begin(epoch);
                }
            }
            // Also the rendezvous after which everyone has set its own up.
            let outcomes = exchange(&outcome);
            let all_got_theirs = |all: &Vec<Proposal>| all.iter().all(|outcome| outcome[0] == 1);
            if outcomes.as_ref().is_ok_and(all_got_theirs) {
                return Ok(Some(chosen.into_iter().map(|(index, _)| index).collect()));
            }
            for index in taken {
                // Where it began counts, though no team came of it: what is chosen next must not begin below.
                let epoch = self.control().pe(self.my_pe()).teams[index]
                    .arrivals
                    .epoch();
                self.team_indices().give_back(index, epoch);
            }
            outcomes?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PE 1 has used many epochs, an odd number of them (begun at 0, the line of even ones would be written over),
    /// and loses the race for an index after PE 0 has set its own up to begin above
    /// them. The next team there, of PE 0 and PE 2, must begin at one number.
    #[test]
    fn an_index_given_back_after_a_lost_race_does_not_lag_behind() {
        use std::sync::{Barrier, Mutex};
        let (words, step) = (Mutex::new(vec![[0; _]; 3]), Barrier::new(3));
        let exchange_among = |me: usize, members: &[usize], proposal: &Proposal| {
            words.lock().unwrap()[me] = *proposal;
            step.wait();
            let all: Vec<Proposal> = {
                let words = words.lock().unwrap();
                members.iter().map(|&member| words[member]).collect()
            };
            step.wait();
            Ok::<_, std::convert::Infallible>(all)
        };
        let pair = Shape::new(0, 1, 2, 2).unwrap();
        let indices = crate::spmd(3, |pe| {
            let me = pe.my_pe();
            if me == 1 {
                pe.endpoint.team_indices().top = 1001;
            }
            let mut round = 0;
            // PEs 0 and 1, with 2 beside them in the steps only. Two tries, of two exchanges each.
            let exchange = |proposal: &Proposal| {
                let all = exchange_among(me, &[0, 1], proposal);
                round += 1;
                if me == 1 && round == 1 {
                    // Another thread of PE 1 is quicker.
                    assert!(pe.endpoint.team_indices().take(2));
                }
                all
            };
            if me < 2 {
                let Ok(taken) = pe.endpoint.take_indices(&[pair], me, 0, exchange);
                assert_eq!(
                    taken,
                    Some(vec![3]),
                    "the index after the one that was lost"
                );
            } else {
                for _ in 0..4 {
                    let Ok(_) = exchange_among(me, &[], &[0; _]);
                }
            }
            // PEs 0 and 2.
            let exchange = |proposal: &Proposal| exchange_among(me, &[0, 2], proposal);
            if me == 1 {
                for _ in 0..2 {
                    let Ok(_) = exchange_among(me, &[], &[0; _]);
                }
                return None;
            }
            let Ok(taken) = pe.endpoint.take_indices(&[pair], me / 2, 0, exchange);
            let index = taken.unwrap()[0];
            Some((
                index,
                pe.endpoint.control().pe(me).teams[index].arrivals.epoch(),
            ))
        });
        let indices = indices.unwrap();
        assert_eq!(indices[0].unwrap().0, 2, "the index that was given back");
        assert_eq!(indices[0], indices[2]);
    }
}

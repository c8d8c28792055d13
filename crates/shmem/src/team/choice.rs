//! The choice of a seat for a new team.
//!
//! A team needs a *seat* with the same index at each of its PEs, free at all of them. The PEs of the parent
//! tell each other which seats they have free, and all compute the same choice from that; should another
//! thread of some PE have taken the seat meanwhile, all hear of it and choose again.
//!
//! Epochs of a seat only grow (rule 3 of [`crate::team::rendezvous`]): a new team begins at the largest number
//! that any of its PEs has ever reached in a team now gone.

use crate::team::shape::Shape;
use crate::world::control::{SEAT_WORDS, SEATS};
use crate::world::endpoint::Endpoint;

/// What one PE tells the others when a seat is chosen: its largest epoch, and its free seats; then, in
/// the first word, whether it got what was chosen.
pub(crate) type Proposal = [u64; 1 + SEAT_WORDS];

/// The lowest seat from `first` on (then from 0) that all members of `group` propose, and the epoch it
/// begins at. Takes it out of their proposals.
fn choose(
    proposals: &mut [Proposal],
    group: impl Iterator<Item = usize> + Clone,
    first: usize,
) -> Option<(usize, u64)> {
    let mut common = [u64::MAX; SEAT_WORDS];
    let mut epoch = 0;
    for member in group.clone() {
        let [top, free @ ..] = &proposals[member];
        epoch = epoch.max(*top);
        for (common, free) in common.iter_mut().zip(free) {
            *common &= free;
        }
    }
    let free = |seat: &usize| common[seat / 64] >> (seat % 64) & 1 == 1;
    let seat = (first..SEATS).chain(0..first).find(free)?;
    for member in group {
        proposals[member][1 + seat / 64] &= !(1 << (seat % 64));
    }
    Some((seat, epoch))
}

impl Endpoint {
    /// Chooses a seat for each of `groups` (sets of indices into what `exchange` returns) and takes those
    /// of the groups that `me` is in. `exchange` hands everyone everyone's words; it and the arguments
    /// other than `me` are the same on all PEs that take part. `None` if some PE has too few seats.
    pub(crate) fn take_seats<E>(
        &self,
        groups: &[Shape],
        me: usize,
        first: usize,
        mut exchange: impl FnMut(&Proposal) -> Result<Vec<Proposal>, E>,
    ) -> Result<Option<Vec<usize>>, E> {
        loop {
            let mut proposal: Proposal = [0; 1 + SEAT_WORDS];
            {
                let seats = self.seats();
                proposal[0] = seats.top;
                proposal[1..].copy_from_slice(&seats.free);
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
            for (_, &(seat, _)) in mine() {
                // Another thread may have been quicker.
                if self.seats().take(seat) {
                    taken.push(seat);
                } else {
                    got_all = false;
                }
            }
            let mut verdict: Proposal = [0; 1 + SEAT_WORDS];
            verdict[0] = u64::from(got_all);
            if got_all {
                for (_, &(seat, epoch)) in mine() {
                    let place = &self.control().pe(self.my_pe()).places[seat];
                    place.seat.begin(epoch);
                }
            }
            // Also the rendezvous after which everyone's seat is set up.
            let verdicts = exchange(&verdict);
            let all_got_theirs = |all: &Vec<Proposal>| all.iter().all(|verdict| verdict[0] == 1);
            if verdicts.as_ref().is_ok_and(all_got_theirs) {
                return Ok(Some(chosen.into_iter().map(|(seat, _)| seat).collect()));
            }
            for seat in taken {
                // Where it began counts, though no team came of it: what is chosen next must not begin below.
                let epoch = self.control().pe(self.my_pe()).places[seat].seat.epoch();
                self.seats().give_back(seat, epoch);
            }
            verdicts?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PE 1 has used many epochs, an odd number of them (begun at 0, the line of even ones would be written over),
    /// and loses the race for a seat after PE 0 has set its own up to begin above
    /// them. The next team there, of PE 0 and PE 2, must begin at one number.
    #[test]
    fn a_seat_given_back_after_a_lost_race_does_not_lag_behind() {
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
        let seats = crate::spmd(3, |pe| {
            let me = pe.my_pe();
            if me == 1 {
                pe.endpoint.seats().top = 1001;
            }
            let mut round = 0;
            // PEs 0 and 1, with 2 beside them in the steps only. Two tries, of two exchanges each.
            let exchange = |proposal: &Proposal| {
                let all = exchange_among(me, &[0, 1], proposal);
                round += 1;
                if me == 1 && round == 1 {
                    // Another thread of PE 1 is quicker.
                    assert!(pe.endpoint.seats().take(2));
                }
                all
            };
            if me < 2 {
                let Ok(taken) = pe.endpoint.take_seats(&[pair], me, 0, exchange);
                assert_eq!(taken, Some(vec![3]), "the seat after the one that was lost");
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
            let Ok(taken) = pe.endpoint.take_seats(&[pair], me / 2, 0, exchange);
            let seat = taken.unwrap()[0];
            Some((seat, pe.endpoint.control().pe(me).places[seat].seat.epoch()))
        });
        let seats = seats.unwrap();
        assert_eq!(seats[0].unwrap().0, 2, "the seat that was given back");
        assert_eq!(seats[0], seats[2]);
    }
}

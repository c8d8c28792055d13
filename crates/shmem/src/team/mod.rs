//! Teams: strided sets of PEs that meet among themselves.
//!
//! A team needs a *seat* with the same index at each of its PEs, free at all of them. The PEs of the parent
//! tell each other which seats they have free, and all compute the same choice from that; should another
//! thread of some PE have taken the seat meanwhile, all hear of it and choose again.
//!
//! Epochs of a seat only grow (rule 3 of [`crate::team::rendezvous`]): a new team begins at the largest number
//! that any of its PEs has ever reached in a team now gone.

pub(crate) mod active_set;
pub(crate) mod call;
pub(crate) mod collective;
pub(crate) mod error;
pub(crate) mod rendezvous;
pub(crate) mod turn;

use crate::team::call::{Call, Kind};
use crate::team::error::CollectiveError;
use crate::team::rendezvous::meet;
use crate::team::turn::{Held, this_thread};
use crate::wait::parker::Parker;
use crate::wait::waiter::Wait;
use crate::world::control::{Place, SEAT_WORDS, SEATS};
use crate::world::pe::Pe;
use std::collections::HashMap;
use std::fmt;
use thiserror::Error;

/// Seat of the world.
const WORLD: usize = 0;
/// Seat of the shared team.
const SHARED: usize = 1;

/// What one PE tells the others when a seat is chosen: its largest epoch, and its free seats; then, in
/// the first word, whether it got what was chosen.
pub(crate) type Proposal = [u64; 1 + SEAT_WORDS];

/// A team that could not be made or ended.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum TeamError {
    /// The parent has no such PEs.
    // C's negative numbers come as very large ones.
    #[error(
        "no team of {} PEs from PE {} at stride {stride} in one of {parent} PEs",
        *size as isize,
        *start as isize
    )]
    Shape {
        /// First PE, as numbered in the parent.
        start: usize,
        /// Distance between neighbours.
        stride: isize,
        /// PEs asked for.
        size: usize,
        /// PEs in the parent.
        parent: usize,
    },
    /// Some PE is in as many teams as it can be; destroy those no longer needed.
    #[error("a PE can be in {most} teams at a time, and some PE is")]
    TooMany {
        /// Most teams of a PE.
        most: usize,
    },
    /// The world and the shared team are not made and not destroyed.
    #[error("the world's teams can not be destroyed")]
    Predefined,
    /// The PEs did not meet.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

/// Which PEs of the world a team has: `start`, `start + stride`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    start: usize,
    stride: isize,
    size: usize,
}

impl Shape {
    fn world(n: usize) -> Self {
        Self {
            start: 0,
            stride: 1,
            size: n,
        }
    }

    /// `None` if not all of them lie in `0..n`.
    pub(crate) fn new(start: usize, stride: isize, size: usize, n: usize) -> Option<Self> {
        // The stride of a single PE means nothing; without a stride there is no second one.
        let stride = if size == 1 { 1 } else { stride };
        let steps = isize::try_from(size.checked_sub(1)?).ok()?;
        let last = isize::try_from(start)
            .ok()?
            .checked_add(steps.checked_mul(stride)?)?;
        let inside = start < n && usize::try_from(last).is_ok_and(|last| last < n);
        (inside && stride != 0).then_some(Self {
            start,
            stride,
            size,
        })
    }

    #[inline(always)]
    pub(crate) fn world_pe(&self, i: usize) -> usize {
        // Inside the world by construction; wrapping, so that there is no check on the way.
        self.start
            .wrapping_add_signed((i as isize).wrapping_mul(self.stride))
    }

    fn index_of(&self, world_pe: usize) -> Option<usize> {
        let distance = world_pe as isize - self.start as isize;
        let index = usize::try_from(distance / self.stride).ok()?;
        (distance % self.stride == 0 && index < self.size).then_some(index)
    }

    /// The shape among the PEs of this one, as PEs of the world.
    fn of(&self, inner: Self) -> Self {
        Self {
            start: self.world_pe(inner.start),
            stride: self.stride * inner.stride,
            size: inner.size,
        }
    }
}

/// What a PE knows of its own seats.
#[derive(Debug)]
pub(crate) struct Seats {
    free: [u64; SEAT_WORDS],
    /// The largest epoch of any seat given back, after a team or instead of one.
    top: u64,
    /// Teams of active sets, which are never given back.
    pub(crate) active_sets: HashMap<Shape, usize>,
}

impl Default for Seats {
    fn default() -> Self {
        let mut free = [u64::MAX; SEAT_WORDS];
        free[0] &= !(1 << WORLD | 1 << SHARED);
        Self {
            free,
            top: 0,
            active_sets: HashMap::new(),
        }
    }
}

impl Seats {
    fn take(&mut self, seat: usize) -> bool {
        let (word, bit) = (&mut self.free[seat / 64], 1 << (seat % 64));
        let was_free = *word & bit != 0;
        *word &= !bit;
        was_free
    }

    fn give_back(&mut self, seat: usize, epoch: u64) {
        self.free[seat / 64] |= 1 << (seat % 64);
        self.top = self.top.max(epoch);
    }
}

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

impl Pe {
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

/// A set of PEs that meet.
///
/// [`Pe::world`] has all; others are [split](Self::split_strided) off. PEs are numbered from 0 within each
/// team.
///
/// ```
/// use crosswarp_shmem::op::Sum;
/// let sums = crosswarp_shmem::spmd(4, |pe| {
///     let (mine, all) = (pe.alloc::<u64>(1)?, pe.alloc::<u64>(1)?);
///     pe.write(&mine, &[10 + pe.my_pe() as u64]);
///     pe.world().reduce(Sum, &all, &mine)?;
///     let total = pe.g(&all, pe.my_pe());
///     // The odd PEs, last first; the others get `None`.
///     if let Some(odd) = pe.world().split_strided(3, -2, 2)? {
///         odd.reduce(Sum, &all, &mine)?;
///         odd.destroy()?;
///     }
///     Ok::<_, crosswarp_shmem::Error>((total, pe.g(&all, pe.my_pe())))
/// })
/// .unwrap();
/// assert_eq!(sums, [Ok((46, 46)), Ok((46, 24)), Ok((46, 46)), Ok((46, 24))]);
/// ```
///
/// # Collectives
/// Every PE of the team calls them in the same order with objects of the same sizes (where sizes may
/// differ it says so). Sources and destinations are symmetric. On return the destination is complete on
/// this PE and the source may be reused. Each implies a `sync`, not a `quiet`. On a mismatch every PE gets
/// [`CollectiveError::Mismatch`] and no destination has been touched. Different threads of a PE may be in
/// collectives of different teams at the same time, but of each team one at a time: another one gets
/// [`CollectiveError::Busy`], and does not come to the rendezvous.
#[must_use = "dropping the handle does not give the team's resources back; see Team::destroy"]
pub struct Team<'a> {
    pub(crate) pe: &'a Pe,
    shape: Shape,
    me: usize,
    seat: usize,
}

impl fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape {
            start,
            stride,
            size,
        } = self.shape;
        write!(
            f,
            "PE {} of a team of {size} from PE {start} at stride {stride}",
            self.me
        )
    }
}

impl Pe {
    /// The team of all PEs.
    #[inline]
    pub fn world(&self) -> Team<'_> {
        Team {
            pe: self,
            shape: Shape::world(self.n_pes()),
            me: self.my_pe(),
            seat: WORLD,
        }
    }

    /// The team of all PEs whose memory this PE can load and store directly: of one host, so all.
    /// Its collectives are independent of the world's.
    pub fn shared_team(&self) -> Team<'_> {
        Team {
            seat: SHARED,
            ..self.world()
        }
    }

    /// A team whose seat has been taken; `None` if this PE is not in it.
    pub(crate) fn team_at(&self, shape: Shape, seat: usize) -> Option<Team<'_>> {
        Some(Team {
            pe: self,
            shape,
            me: shape.index_of(self.my_pe())?,
            seat,
        })
    }
}

impl<'a> Team<'a> {
    /// This PE's number in the team.
    #[inline]
    pub fn my_pe(&self) -> usize {
        self.me
    }

    /// Number of PEs in the team.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.shape.size
    }

    /// Number in the world of the team's PE `pe`.
    ///
    /// # Panics
    /// If `pe` is not below [`n_pes`](Self::n_pes).
    #[inline]
    pub fn world_pe(&self, pe: usize) -> usize {
        assert!(
            pe < self.n_pes(),
            "PE {} does not exist in a team of {}",
            pe as isize,
            self.n_pes()
        );
        self.shape.world_pe(pe)
    }

    /// Number in the team `other` of this team's PE `pe`; `None` if either does not have it.
    pub fn translate(&self, pe: usize, other: &Team<'_>) -> Option<usize> {
        let in_world = (pe < self.n_pes()).then(|| self.shape.world_pe(pe))?;
        other.shape.index_of(in_world)
    }

    /// Makes the team of this team's PEs `start`, `start + stride`, … (`size` of them; the stride may be
    /// negative, and means nothing for one PE). PEs that are not in it get `None`.
    ///
    /// Collective over this team, with the same arguments everywhere.
    ///
    /// # Errors
    /// On every PE alike: [`TeamError`].
    pub fn split_strided(
        &self,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Option<Team<'a>>, TeamError> {
        let shape = self.part(start, stride, size)?;
        let parameter = (start as u64) << 24 | (stride as u64 & 0xff_ffff);
        let seats = self.split(&[shape], parameter, size as u64)?;
        Ok(self.pe.team_at(self.shape.of(shape), seats[0]))
    }

    /// Lays this team's PEs out in rows of `row` PEs (the last may be shorter; a `row` beyond the team is
    /// the team) and makes a team of this PE's row and one of its column.
    ///
    /// Collective over this team, with the same argument everywhere.
    ///
    /// # Errors
    /// On every PE alike: [`TeamError`].
    pub fn split_2d(&self, row: usize) -> Result<(Team<'a>, Team<'a>), TeamError> {
        let n = self.n_pes();
        let row = row.min(n);
        if row == 0 {
            return Err(self.no_such_part(0, 1, 0));
        }
        let rows = (0..n.div_ceil(row))
            .map(|y| self.part(y * row, 1, row.min(n - y * row)))
            .collect::<Result<Vec<_>, _>>()?;
        let columns = (0..row)
            .map(|x| self.part(x, row as isize, (n - x).div_ceil(row)))
            .collect::<Result<Vec<_>, _>>()?;
        let groups = [rows.as_slice(), &columns].concat();
        let seats = self.split(&groups, u64::MAX >> 8, row as u64)?;
        let team = |group: usize| {
            let team = self.pe.team_at(self.shape.of(groups[group]), seats[group]);
            team.expect("every PE is in its row and in its column")
        };
        let (y, x) = (self.me / row, self.me % row);
        Ok((team(y), team(rows.len() + x)))
    }

    fn part(&self, start: usize, stride: isize, size: usize) -> Result<Shape, TeamError> {
        Shape::new(start, stride, size, self.n_pes())
            .ok_or_else(|| self.no_such_part(start, stride, size))
    }

    fn no_such_part(&self, start: usize, stride: isize, size: usize) -> TeamError {
        TeamError::Shape {
            start,
            stride,
            size,
            parent: self.n_pes(),
        }
    }

    /// Seats for `groups` of this team's PEs.
    fn split(&self, groups: &[Shape], parameter: u64, bytes: u64) -> Result<Vec<usize>, TeamError> {
        let call = Call {
            kind: Kind::Split,
            parameter: parameter & u64::MAX >> 8,
            bytes,
        };
        // Splits of different parents, which may happen at the same time, begin to look at different
        // places.
        let first = self.seat * 64 % SEATS;
        let turn = self.turn(Kind::Split)?;
        let exchange = |proposal: &Proposal| self.exchange_words(&turn, call, proposal);
        let seats = self.pe.take_seats(groups, self.me, first, exchange)?;
        seats.ok_or(TeamError::TooMany { most: SEATS })
    }

    /// Ends the team, once all its PEs have come here; what it used serves other teams.
    ///
    /// # Errors
    /// [`TeamError::Predefined`], or a wait that failed.
    pub fn destroy(self) -> Result<(), TeamError> {
        if self.seat <= SHARED {
            return Err(TeamError::Predefined);
        }
        // Tags are not compared: a PE that has left may be using its seat for another team already.
        let call = Call {
            kind: Kind::Destroy,
            parameter: 0,
            bytes: 0,
        };
        let turn = self.turn(Kind::Destroy)?;
        let _ = self.arrive(&turn, call, &[])?;
        let epoch = self.place(self.me).seat.epoch();
        // Before another team can have the seat.
        drop(turn);
        self.pe.seats().give_back(self.seat, epoch);
        Ok(())
    }

    /// The place of the team's PE `member`.
    #[inline(always)]
    pub(crate) fn place(&self, member: usize) -> &'a Place {
        let peer = self.pe.peer(self.shape.world_pe(member));
        &peer.control().places[self.seat]
    }

    /// This thread's turn for a collective of this kind.
    #[inline(always)]
    pub(crate) fn turn(&self, kind: Kind) -> Result<Held<'a>, CollectiveError> {
        let turn = &self.place(self.me).turn;
        let held = turn.enter(this_thread(), self.pe.shared(), &self.pe.gate);
        held.ok_or(CollectiveError::Busy {
            me: self.pe.my_pe(),
            kind,
        })
    }

    /// Number of the next rendezvous.
    #[inline(always)]
    pub(crate) fn next_epoch(&self) -> u64 {
        self.place(self.me).seat.epoch() + 1
    }

    /// Meets the others, with a few words for them; says who called something else, and what. For the thread
    /// whose turn it is, as all that follow.
    #[inline(always)]
    fn arrive(
        &self,
        _turn: &Held<'_>,
        mine: Call,
        payload: &[u64],
    ) -> Result<Option<(usize, Call)>, CollectiveError> {
        let waiter = self.pe.waiter();
        let parker = |member: usize| -> &Parker {
            let peer = self.pe.peer(self.shape.world_pe(member));
            &peer.control().parker
        };
        let differing = meet(
            |member| &self.place(member).seat,
            parker,
            self.n_pes(),
            self.me,
            self.pe.shared(),
            mine.to_tag(),
            payload,
            |member, number| {
                let seat = &self.place(member).seat;
                let pe = self.shape.world_pe(member);
                waiter.until(
                    || Wait::Collective { number, pe },
                    || seat.came_to(number).then_some(()),
                )
            },
        )?;
        Ok(differing.map(|(member, tag)| (member, Call::from_tag(tag))))
    }

    /// Meets all PEs of the team, each of which must be in the same call.
    #[inline]
    pub(crate) fn meet(&self, turn: &Held<'_>, mine: Call) -> Result<(), CollectiveError> {
        self.meet_with(turn, mine, &[])
    }

    /// Meets them with a few words, at most [`LINE_BYTES`](crate::team::rendezvous::LINE_BYTES) long, for the others
    /// to find in the payload of this PE's seat.
    #[inline(always)]
    pub(crate) fn meet_with(
        &self,
        turn: &Held<'_>,
        mine: Call,
        payload: &[u64],
    ) -> Result<(), CollectiveError> {
        match self.arrive(turn, mine, payload)? {
            None => Ok(()),
            Some((member, theirs)) => Err(CollectiveError::Mismatch {
                me: self.pe.my_pe(),
                mine,
                pe: self.shape.world_pe(member),
                theirs,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the plain list of PEs.
        #[test]
        fn shapes_are_what_they_say(
            n in 1usize..20, start in 0usize..22, stride in -5isize..6, size in 0usize..22,
            inner in (0usize..20, -3isize..4, 1usize..8),
        ) {
            let pes: Vec<isize> =
                (0..size as isize).map(|i| start as isize + i * stride).collect();
            let legal = size > 0
                && (size == 1 || stride != 0)
                && pes.iter().all(|&pe| (0..n as isize).contains(&pe));
            let shape = Shape::new(start, stride, size, n);
            prop_assert_eq!(shape.is_some(), legal);
            let Some(shape) = shape else { return Ok(()) };
            for pe in 0..n {
                let place = pes.iter().position(|&member| member == pe as isize);
                prop_assert_eq!(shape.index_of(pe), place);
            }
            if let Some(inner) = Shape::new(inner.0, inner.1, inner.2, size) {
                let both = shape.of(inner);
                for i in 0..inner.size {
                    prop_assert_eq!(both.world_pe(i), shape.world_pe(inner.world_pe(i)));
                    prop_assert_eq!(both.index_of(both.world_pe(i)), Some(i));
                }
            }
        }
    }

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
                pe.seats().top = 1001;
            }
            let mut round = 0;
            // PEs 0 and 1, with 2 beside them in the steps only. Two tries, of two exchanges each.
            let exchange = |proposal: &Proposal| {
                let all = exchange_among(me, &[0, 1], proposal);
                round += 1;
                if me == 1 && round == 1 {
                    // Another thread of PE 1 is quicker.
                    assert!(pe.seats().take(2));
                }
                all
            };
            if me < 2 {
                let Ok(taken) = pe.take_seats(&[pair], me, 0, exchange);
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
            let Ok(taken) = pe.take_seats(&[pair], me / 2, 0, exchange);
            let seat = taken.unwrap()[0];
            Some((seat, pe.control().pe(me).places[seat].seat.epoch()))
        });
        let seats = seats.unwrap();
        assert_eq!(seats[0].unwrap().0, 2, "the seat that was given back");
        assert_eq!(seats[0], seats[2]);
    }

    #[test]
    fn absurd_shapes_are_refused_without_overflow() {
        let max = isize::MAX;
        for (start, stride, size) in [
            (0, max, 3),
            (usize::MAX, 1, 1),
            (0, 1, usize::MAX),
            (1, isize::MIN, 2),
            (max as usize, max, 2),
        ] {
            assert_eq!(Shape::new(start, stride, size, 8), None);
        }
    }
}

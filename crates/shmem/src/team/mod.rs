//! Teams: strided sets of PEs with collectives of their own. By addresses; their verbs on handles are in
//! [`crate::verbs::collective`].

pub(crate) mod active_set;
pub(crate) mod biased_lock;
pub(crate) mod choice;
pub(crate) mod collective;
pub(crate) mod collective_call;
pub(crate) mod error;
pub(crate) mod indices;
pub(crate) mod over_hosts;
pub(crate) mod rendezvous;
pub(crate) mod shape;

use crate::team::biased_lock::{Held, this_thread};
use crate::team::choice::Proposal;
use crate::team::collective_call::{Call, Kind};
use crate::team::error::CollectiveError;
use crate::team::indices::{SHARED, WORLD};
use crate::team::shape::Shape;
use crate::wait::parker::Parker;
use crate::wait::waiter::Wait;
use crate::world::control::{MAX_TEAMS, TeamControl};
use crate::world::endpoint::Endpoint;
use std::fmt;
use thiserror::Error;

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
    /// The rendezvous of the PEs failed.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

/// A set of PEs with collectives of its own.
///
/// [`Pe::world`](crate::Pe::world) has all; others are [split](Self::split_strided) off. PEs are numbered from 0 within
/// each team.
///
/// ```
/// use crosswarp_shmem::op::Sum;
/// let sums = crosswarp_shmem::spmd(4, |pe| {
///     let (mine, all) = (pe.alloc::<u64>(1)?, pe.alloc::<u64>(1)?);
///     pe.write(&mine, &[10 + pe.my_pe() as u64]);
///     pe.world().reduce(&all, &mine, Sum)?;
///     let total = pe.g(&all, pe.my_pe());
///     // The odd PEs, last first; the others get `None`.
///     if let Some(odd) = pe.world().split_strided(3, -2, 2)? {
///         odd.reduce(&all, &mine, Sum)?;
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
    pub(crate) endpoint: &'a Endpoint,
    shape: Shape,
    me: usize,
    index: usize,
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

impl Endpoint {
    /// The team of all PEs.
    #[inline]
    pub(crate) fn world(&self) -> Team<'_> {
        Team {
            endpoint: self,
            shape: Shape::world(self.n_pes()),
            me: self.my_pe(),
            index: WORLD,
        }
    }

    /// The team of all PEs of this host; if they are no strided set, of this PE alone.
    pub(crate) fn shared_team(&self) -> Team<'_> {
        let me = self.my_pe();
        let alone = Shape {
            start: me,
            stride: 1,
            size: 1,
        };
        let shape = self.hosts().shape(self.hosts().of(me)).unwrap_or(alone);
        let team = self.team_at(shape, SHARED);
        team.expect("a PE is one of its host's")
    }

    /// A team whose index has been taken; `None` if this PE is not in it.
    pub(crate) fn team_at(&self, shape: Shape, index: usize) -> Option<Team<'_>> {
        Some(Team {
            endpoint: self,
            shape,
            me: shape.index_of(self.my_pe())?,
            index,
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
        let indices = self.split(&[shape], parameter, size as u64)?;
        Ok(self.endpoint.team_at(self.shape.of(shape), indices[0]))
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
        let indices = self.split(&groups, u64::MAX >> 8, row as u64)?;
        let team = |group: usize| {
            let team = self
                .endpoint
                .team_at(self.shape.of(groups[group]), indices[group]);
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

    /// Indices for `groups` of this team's PEs.
    fn split(&self, groups: &[Shape], parameter: u64, bytes: u64) -> Result<Vec<usize>, TeamError> {
        let call = Call {
            kind: Kind::Split,
            parameter: parameter & u64::MAX >> 8,
            bytes,
        };
        // Splits of different parents, which may happen at the same time, begin at different
        // indices.
        let first = self.index * 64 % MAX_TEAMS;
        let turn = self.turn(Kind::Split)?;
        let exchange = |proposal: &Proposal| self.exchange_words(&turn, call, proposal);
        let indices = self
            .endpoint
            .take_indices(groups, self.me, first, exchange)?;
        indices.ok_or(TeamError::TooMany { most: MAX_TEAMS })
    }

    /// Ends the team, once all its PEs have come here; what it used serves other teams.
    ///
    /// # Errors
    /// [`TeamError::Predefined`], or a wait that failed.
    pub fn destroy(self) -> Result<(), TeamError> {
        if self.index <= SHARED {
            return Err(TeamError::Predefined);
        }
        // Tags are not compared: a PE that has left may be using its index for another team already.
        let call = Call {
            kind: Kind::Destroy,
            parameter: 0,
            bytes: 0,
        };
        let turn = self.turn(Kind::Destroy)?;
        let _ = self.arrive(&turn, call, &[], 0)?;
        let epoch = self.control(self.me).arrivals.epoch();
        // Before another team can have the index.
        drop(turn);
        self.endpoint.team_indices().give_back(self.index, epoch);
        Ok(())
    }

    /// What the team's PE `member` shows to the team.
    #[inline(always)]
    pub(crate) fn control(&self, member: usize) -> &'a TeamControl {
        let peer = self.endpoint.peer(self.shape.world_pe(member));
        &peer.control().teams[self.index]
    }

    /// This thread's turn for a collective of this kind.
    #[inline(always)]
    pub(crate) fn turn(&self, kind: Kind) -> Result<Held<'a>, CollectiveError> {
        let turn = &self.control(self.me).turn;
        let held = turn.enter(this_thread(), self.endpoint.shared(), &self.endpoint.gate);
        held.ok_or(CollectiveError::Busy {
            me: self.endpoint.my_pe(),
            kind,
        })
    }

    /// Number of the next rendezvous.
    #[inline(always)]
    pub(crate) fn next_epoch(&self) -> u64 {
        self.control(self.me).arrivals.epoch() + 1
    }

    /// A rendezvous with a few words for the others; says who called something else, and what. For the thread
    /// whose turn it is, as all that follow.
    #[inline(always)]
    fn arrive(
        &self,
        _turn: &Held<'_>,
        mine: Call,
        payload: &[u64],
        in_slot: usize,
    ) -> Result<Option<(usize, Call)>, CollectiveError> {
        let waiter = self.endpoint.waiter();
        let parker = |member: usize| -> &Parker {
            let peer = self.endpoint.peer(self.shape.world_pe(member));
            &peer.control().parker
        };
        let wait = |member: usize, number: u64| {
            let arrivals = &self.control(member).arrivals;
            let pe = self.shape.world_pe(member);
            waiter.until(
                || Wait::Collective { number, pe },
                || arrivals.came_to(number).then_some(()),
            )
        };
        let several_hosts = self.endpoint.remote.is_some();
        if several_hosts {
            let arrivals = &self.control(self.me).arrivals;
            arrivals.set_in_slot(arrivals.epoch() + 1, in_slot);
        }
        // SAFETY: `_turn` is of this team and PE, so no other thread of the PE is here.
        #[allow(unsafe_code)]
        let differing = unsafe {
            rendezvous::rendezvous(
                |member| &self.control(member).arrivals,
                parker,
                self.n_pes(),
                self.me,
                self.endpoint.shared(),
                mine.to_tag(),
                payload,
                |epoch| match several_hosts {
                    true => self.arrive_elsewhere(epoch, wait),
                    false => Ok(()),
                },
                wait,
            )
        }?;
        Ok(differing.map(|(member, tag)| (member, Call::from_tag(tag))))
    }

    /// A rendezvous of all PEs of the team, each of which must be in the same call.
    #[inline]
    pub(crate) fn rendezvous(&self, turn: &Held<'_>, mine: Call) -> Result<(), CollectiveError> {
        self.rendezvous_with(turn, mine, &[], 0)
    }

    /// One with a few words, at most [`LINE_BYTES`](crate::team::rendezvous::LINE_BYTES) long, for the others
    /// to find in this PE's payload, and `in_slot` bytes that this PE has put into its slot.
    #[inline(always)]
    pub(crate) fn rendezvous_with(
        &self,
        turn: &Held<'_>,
        mine: Call,
        payload: &[u64],
        in_slot: usize,
    ) -> Result<(), CollectiveError> {
        match self.arrive(turn, mine, payload, in_slot)? {
            None => Ok(()),
            Some((member, theirs)) => Err(CollectiveError::Mismatch {
                me: self.endpoint.my_pe(),
                mine,
                pe: self.shape.world_pe(member),
                theirs,
            }),
        }
    }
}

/// Over the world.
impl Endpoint {
    /// A rendezvous of all PEs, each of which must be in the same call.
    pub(crate) fn rendezvous(
        &self,
        kind: Kind,
        parameter: u64,
        bytes: u64,
    ) -> Result<(), CollectiveError> {
        self.begin_collective(kind, parameter, bytes).map(drop)
    }

    /// As [`rendezvous`](Self::rendezvous), and stays in the collective while what it returns lives.
    pub(crate) fn begin_collective(
        &self,
        kind: Kind,
        parameter: u64,
        bytes: u64,
    ) -> Result<Held<'_>, CollectiveError> {
        let world = self.world();
        let turn = world.turn(kind)?;
        world.rendezvous(
            &turn,
            Call {
                kind,
                parameter,
                bytes,
            },
        )?;
        Ok(turn)
    }
}

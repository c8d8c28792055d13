//! The teams that this PE is in.

use crate::driver::number;
use crosswarp_shmem::{Pe, Team};
use std::ffi::c_int;
use std::sync::Arc;

/// How many teams there can be at a time, predefined ones included: one bit each in a word that PEs compare.
pub(crate) const MOST_TEAMS: usize = 64;
/// Handles of the predefined teams.
pub(crate) const WORLD: usize = 0;
const SHARED: usize = 1;
const NODE: usize = 2;
const SAME_MYPE_NODE: usize = 3;
/// The first handle of the program's teams; those between have names of other libraries' use.
pub(crate) const FIRST: usize = 6;

/// Start, stride and size, in PEs of the world.
pub(crate) type Shape = (usize, usize, usize);

/// One team: the host's, and its PEs.
pub(crate) struct Entry {
    pub(crate) team: Host,
    pub(crate) shape: Shape,
}

/// A team of the host's.
pub(crate) enum Host {
    /// Shared with threads that wait in it without the lock of the teams.
    Of(Arc<Team<'static>>),
    /// One that several handles may have, and that is not ended with any of them.
    Kept(Arc<Team<'static>>),
    /// This PE alone.
    Alone,
}

impl Host {
    /// The team, for those who wait in it; `None` if this PE is alone.
    pub(crate) fn team(&self) -> Option<Arc<Team<'static>>> {
        match self {
            Self::Of(team) | Self::Kept(team) => Some(Arc::clone(team)),
            Self::Alone => None,
        }
    }
}

/// The teams that this PE is in, by handle.
pub(crate) struct Teams(pub(crate) Vec<Option<Entry>>);

impl Teams {
    pub(crate) fn new(pe: &'static Pe) -> Self {
        let mut all: Vec<Option<Entry>> = (0..MOST_TEAMS).map(|_| None).collect();
        let shape_of = |team: &Team<'_>| (team.world_pe(0), 1, team.n_pes());
        all[WORLD] = Some(Entry {
            shape: shape_of(&pe.world()),
            team: Host::Of(Arc::new(pe.world())),
        });
        for handle in [SHARED, NODE] {
            all[handle] = Some(Entry {
                shape: shape_of(&pe.shared_team()),
                team: Host::Of(Arc::new(pe.shared_team())),
            });
        }
        // One host: nobody else has this PE's number there.
        all[SAME_MYPE_NODE] = Some(Entry {
            team: Host::Alone,
            shape: (pe.my_pe(), 1, 1),
        });
        Self(all)
    }

    pub(crate) fn get(&self, handle: c_int) -> Option<&Entry> {
        self.0.get(number(handle)?)?.as_ref()
    }

    /// The shape of the team with this handle, and the index that it is.
    pub(crate) fn shape(&self, handle: c_int) -> Option<(usize, Shape)> {
        Some((number(handle)?, self.get(handle)?.shape))
    }

    /// All that there are.
    pub(crate) fn shapes(&self) -> Vec<(usize, Shape)> {
        let entries = self.0.iter().enumerate();
        entries
            .filter_map(|(index, entry)| Some((index, entry.as_ref()?.shape)))
            .collect()
    }

    /// A bit for each handle that can be given.
    pub(crate) fn free(&self) -> u64 {
        (FIRST..MOST_TEAMS)
            .filter(|&index| self.0[index].is_none())
            .fold(0, |bits, index| bits | 1 << index)
    }
}

/// This PE's number in a team, from its number in the world.
pub(crate) fn rank((start, stride, size): Shape, pe: usize) -> Option<usize> {
    let away = pe.checked_sub(start)?;
    let rank = away / stride;
    (away % stride == 0 && rank < size).then_some(rank)
}

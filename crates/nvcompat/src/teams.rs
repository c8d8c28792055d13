//! The teams that this PE is in.

use crate::driver::number;
use crate::say::say;
use crosswarp_shmem::{Error, Pe, Team};
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
    /// Collective.
    pub(crate) fn new(pe: &'static Pe) -> Result<Self, String> {
        let mut all: Vec<Option<Entry>> = (0..MOST_TEAMS).map(|_| None).collect();
        let shape_of = |team: &Team<'_>| {
            let pes: Vec<usize> = (0..team.n_pes()).map(|rank| team.world_pe(rank)).collect();
            row(&pes).expect("teams of the host are rows")
        };
        all[WORLD] = Some(Entry {
            shape: shape_of(&pe.world()),
            team: Host::Of(Arc::new(pe.world())),
        });
        let host = host(pe).map_err(|error| error.to_string())?;
        if row(&host).is_some() {
            for handle in [SHARED, NODE] {
                all[handle] = Some(Entry {
                    shape: shape_of(&pe.shared_team()),
                    team: Host::Of(Arc::new(pe.shared_team())),
                });
            }
        } else if host[0] == pe.my_pe() {
            say(format_args!(
                "the PEs of this host, {host:?}, are not equally far from one another, as those of a team are: \
                 NVSHMEM_TEAM_SHARED and NVSHMEMX_TEAM_NODE are no teams here"
            ));
        }
        all[SAME_MYPE_NODE] = Self::same_number(pe, &host)?;
        Ok(Self(all))
    }

    /// The PEs that have this one's number on their hosts, where this one's has the PEs `host`; `None` if they are no row,
    /// for hosts have different numbers of PEs.
    fn same_number(pe: &'static Pe, host: &[usize]) -> Result<Option<Entry>, String> {
        let alone = Entry {
            team: Host::Alone,
            shape: (pe.my_pe(), 1, 1),
        };
        // On one host nobody else has this PE's number.
        if host.len() == pe.n_pes() {
            return Ok(Some(alone));
        }
        let mine = host.iter().take_while(|&&other| other < pe.my_pe()).count();
        let numbers = numbers(pe, mine).map_err(|error| error.to_string())?;
        let same = (0..pe.n_pes()).filter(|&other| numbers[other] == mine as u64);
        let Some(shape) = row(&same.collect::<Vec<_>>()) else {
            return Ok(None);
        };
        let (start, step, size) = shape;
        if size == 1 {
            return Ok(Some(alone));
        }
        let team = pe.raw().active_set(start, step as isize, size);
        let team = Host::Kept(Arc::new(team.map_err(|error| error.to_string())?));
        Ok(Some(Entry { team, shape }))
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

/// The PEs of this one's host, upwards. Collective.
fn host(pe: &Pe) -> Result<Vec<usize>, Error> {
    let word = pe.alloc::<u64>(1)?;
    let host = (0..pe.n_pes()).filter(|&other| !pe.ptr(&word, other).is_null());
    let host = host.collect();
    pe.free(word)?;
    Ok(host)
}

/// The `mine` of every PE. Collective.
fn numbers(pe: &Pe, mine: usize) -> Result<Vec<u64>, Error> {
    let (word, words) = (pe.alloc::<u64>(1)?, pe.alloc::<u64>(pe.n_pes())?);
    pe.write(&word, &[mine as u64]);
    pe.world().fcollect(&words, &word)?;
    let mut all = vec![0; pe.n_pes()];
    pe.read(&mut all, &words);
    pe.free(words)?;
    pe.free(word)?;
    Ok(all)
}

/// Start, step and size of the PEs, if they are equally far from one another, upwards.
pub(crate) fn row(pes: &[usize]) -> Option<Shape> {
    let start = *pes.first()?;
    let step = match pes.get(1) {
        Some(second) => second.checked_sub(start).filter(|&step| step > 0)?,
        None => 1,
    };
    let expected = (0..pes.len()).map(|i| start + i * step);
    pes.iter()
        .copied()
        .eq(expected)
        .then_some((start, step, pes.len()))
}

/// This PE's number in a team, from its number in the world.
pub(crate) fn rank((start, stride, size): Shape, pe: usize) -> Option<usize> {
    let away = pe.checked_sub(start)?;
    let rank = away / stride;
    (away % stride == 0 && rank < size).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_equal_steps_upwards() {
        assert_eq!(row(&[3]), Some((3, 1, 1)));
        assert_eq!(row(&[1, 3, 5]), Some((1, 2, 3)));
        assert_eq!(row(&[0, 1, 3]), None);
        assert_eq!(row(&[2, 1]), None);
        assert_eq!(row(&[]), None);
    }
}

//! Teams that their members make by an id, without a parent: nobody else takes part, or knows.
//!
//! Members do not know who the others are; each invites every PE of the world, and takes as members those that invite it
//! under the same id.
#![allow(unsafe_code)] // Reads and writes through C's pointers.

use crate::driver::number;
use crate::say::say;
use crate::setup::new_id;
use crate::state::{World, world_for};
use crate::teams::{Entry, Host, MOST_TEAMS, row};
use crate::types::{Status, TeamConfig, status};
use std::ffi::{c_int, c_long};
use std::sync::{Arc, PoisonError};

const INVALID: c_int = -1;
/// `NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID`.
const WITH_ID: c_long = 2;

/// The status, and why.
type Refusal = (Status, String);

/// `nvshmemx_team_get_uniqueid`: one PE asks, and the members get it by a way of their own.
pub(crate) unsafe fn get_uniqueid(uniqueid: *mut u64) -> c_int {
    const NAME: &str = "nvshmemx_team_get_uniqueid";
    if uniqueid.is_null() {
        say(format_args!("{NAME}: a null pointer"));
        return Status::InvalidValue as c_int;
    }
    match new_id() {
        Ok(id) => {
            let [low, high] = bytemuck::cast::<_, [u64; 2]>(id);
            // No id is 0. SAFETY: valid for writing, by the caller.
            unsafe { uniqueid.write((low ^ high).max(1)) };
            0
        }
        Err(reason) => {
            say(format_args!("{NAME}: {reason}"));
            Status::Internal as c_int
        }
    }
}

/// `nvshmemx_team_init`. Collective over the members.
pub(crate) unsafe fn init(
    team: *mut c_int,
    config: *mut TeamConfig,
    config_mask: c_long,
    npes: c_int,
    pe_idx_in_team: c_int,
) -> c_int {
    const NAME: &str = "nvshmemx_team_init";
    let refuse = |(status, reason): Refusal| {
        say(format_args!("{NAME}: {reason}"));
        status
    };
    let wrong = |reason: String| refuse((Status::InvalidValue, reason));
    if team.is_null() {
        return wrong("a null pointer for the team".into()) as c_int;
    }
    // SAFETY: null, or the caller's structure.
    let config = unsafe { config.as_ref() };
    let made = world_for(NAME).and_then(|world| {
        let id = config.filter(|_| config_mask & WITH_ID != 0);
        let id = id.map(|config| config.uniqueid).filter(|&id| id != 0);
        let id =
            id.ok_or_else(|| wrong("no unique id in the configuration and its mask".into()))?;
        let n = world.pe.n_pes();
        let size = number(npes).filter(|size| (1..=n).contains(size));
        let place = number(pe_idx_in_team).zip(size);
        let (me, size) = place
            .filter(|(me, size)| me < size)
            .ok_or_else(|| wrong(format!("PE {pe_idx_in_team} of {npes} in a world of {n}")))?;
        join(&world, id, me, size).map_err(refuse)
    });
    // SAFETY: valid for writing, by the caller.
    unsafe { team.write(made.unwrap_or(INVALID)) };
    status(made.map(|_| ()))
}

fn join(world: &World, id: u64, me: usize, size: usize) -> Result<c_int, Refusal> {
    let fail = |reason: String| (Status::Internal, reason);
    let mut invitations = world
        .invitations
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let free = world.teams().free();
    let mine = [id, me as u64, size as u64, free];
    let members = invitations.exchange(world.pe, mine).map_err(fail)?;
    let pes: Vec<usize> = members.iter().map(|&(pe, _)| pe).collect();
    // All members come to the same, by the same words.
    let shape = row(&pes).ok_or_else(|| {
        let reason = format!(
            "the PEs {pes:?} of the world are no row of equal steps upwards, as teams have to be"
        );
        (Status::NotSupported, reason)
    })?;
    let (start, step, _) = shape;
    let host = match size {
        1 => Host::Alone,
        _ => {
            let team = world.pe.raw().active_set(start, step as isize, size);
            Host::Kept(Arc::new(team.map_err(|error| fail(error.to_string()))?))
        }
    };
    let common = members.iter().fold(free, |bits, &(_, free)| bits & free);
    if common == 0 {
        let reason = format!("{MOST_TEAMS} teams are the most at a time");
        return Err((Status::OutOfMemory, reason));
    }
    let index = common.trailing_zeros() as usize;
    let met = host.team();
    world.teams().0[index] = Some(Entry { team: host, shape });
    let placed = world.place_team(index, shape);
    // Nobody uses the new team before its memory is clear on all its PEs. One whose GPU failed comes, too: the others wait.
    let met = met.map_or(Ok(()), |team| team.barrier());
    if let Err(reason) = placed.and(met.map_err(|error| error.to_string())) {
        world.take_back(index);
        return Err(fail(reason));
    }
    Ok(index as c_int)
}

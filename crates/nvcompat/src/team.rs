//! Teams: handles are indices into a table that kernels have, too.
#![allow(unsafe_code)] // Writes results through C's pointers.

use crate::driver::number;
use crate::say::say;
use crate::state::{World, world, world_for};
use crate::teams::{Entry, FIRST, Host, MOST_TEAMS, Shape, WORLD, rank};
use crate::types::{Status, TeamConfig, status};
use crosswarp_shmem::Team;
use std::ffi::{c_int, c_long};
use std::sync::Arc;

const INVALID: c_int = -1;

/// Without a world, and for PEs that are not in the team, −1.
pub(crate) unsafe fn my_pe(team: c_int) -> c_int {
    let Some(world) = world() else { return INVALID };
    let shape = world.teams().shape(team);
    let mine = shape.and_then(|(_, shape)| rank(shape, world.pe.my_pe()));
    mine.map_or(INVALID, |rank| rank as c_int)
}

pub(crate) unsafe fn n_pes(team: c_int) -> c_int {
    let Some(world) = world() else { return INVALID };
    let shape = world.teams().shape(team);
    shape.map_or(INVALID, |(_, (_, _, size))| size as c_int)
}

pub(crate) unsafe fn translate_pe(from: c_int, pe: c_int, to: c_int) -> c_int {
    let Some(world) = world() else { return INVALID };
    let teams = world.teams();
    let translated = || {
        let (_, (start, stride, size)) = teams.shape(from)?;
        let pe = number(pe).filter(|&pe| pe < size)?;
        rank(teams.shape(to)?.1, start + pe * stride)
    };
    translated().map_or(INVALID, |rank| rank as c_int)
}

/// Writes the configuration; there is nothing in it that a program could have set.
pub(crate) unsafe fn get_config(team: c_int, config: *mut TeamConfig) -> c_int {
    let outcome = world_for("nvshmem_team_get_config").and_then(|world| {
        let known = world.teams().get(team).is_some() && !config.is_null();
        known.then_some(()).ok_or(Status::InvalidValue)
    });
    if outcome.is_ok() {
        // SAFETY: valid for writing, by the caller.
        unsafe {
            (*config).num_contexts = 0;
            (*config).uniqueid = 0;
        }
    }
    status(outcome)
}

/// Shapes in PEs of the parent, of which this PE is in one or none: all get the same handle.
fn split(
    name: &str,
    world: &World,
    parent: c_int,
    parts: &[Shape],
    taken: &mut u64,
) -> Result<c_int, Status> {
    let fail = |what: String| {
        say(format_args!("{name}: {what}"));
        Status::Internal
    };
    let (start, stride, free) = {
        let teams = world.teams();
        let entry = teams.get(parent).ok_or_else(|| {
            say(format_args!("{name}: {parent} is no team of this PE"));
            Status::InvalidValue
        })?;
        let (start, stride, _) = entry.shape;
        (start, stride, teams.free() & !*taken)
    };
    let common = with_parent(world, parent, |team| world.common_bits(team, free))
        .unwrap_or(Ok(free))
        .map_err(|error| fail(error.to_string()))?;
    if common == 0 {
        say(format_args!(
            "{name}: {MOST_TEAMS} teams are the most at a time"
        ));
        return Err(Status::OutOfMemory);
    }
    let index = common.trailing_zeros() as usize;
    *taken |= 1 << index;
    let me = world.pe.my_pe();
    let in_world = |&(first, step, size): &Shape| (start + first * stride, stride * step, size);
    let mine = parts
        .iter()
        .find(|&part| rank(in_world(part), me).is_some())
        .copied();
    // The host's team, for agreements among its members. All PEs of the parent take part, for every part.
    let mut host = None;
    for &(first, step, size) in parts {
        let made = with_parent(world, parent, |team| {
            team.split_strided(first, step as isize, size)
        });
        match made {
            None => host = Some(Host::Alone),
            Some(Ok(None)) => {}
            Some(Ok(Some(team))) => host = Some(Host::Of(Arc::new(team))),
            Some(Err(error)) => {
                // On all PEs alike; of a part before this one the team is there.
                end(name, host);
                return Err(fail(error.to_string()));
            }
        }
    }
    let mut placed = Ok(());
    if let (Some(part), Some(team)) = (mine, host) {
        let shape = in_world(&part);
        world.teams().0[index] = Some(Entry { team, shape });
        placed = world.place_team(index, shape);
    }
    // Nobody uses the new team before its memory is clear on all its PEs, and what fails on one fails on all.
    let well = u64::from(placed.is_ok());
    let all = with_parent(world, parent, |team| world.common_bits(team, well)).unwrap_or(Ok(well));
    let reason = match (placed, all) {
        (Ok(()), Ok(1)) => None,
        (Ok(()), Ok(_)) => Some("another PE could not make its part".to_owned()),
        (Err(reason), _) => Some(reason),
        (_, Err(error)) => Some(error.to_string()),
    };
    if let Some(reason) = reason {
        take_apart(name, world, index);
        return Err(fail(reason));
    }
    Ok(match mine {
        Some(_) => index as c_int,
        None => INVALID,
    })
}

/// Runs `work` with the host's team of a handle, without the lock of the teams; `None` if it is of this PE alone.
fn with_parent<R>(
    world: &World,
    handle: c_int,
    work: impl FnOnce(&Team<'static>) -> R,
) -> Option<R> {
    let team = world.teams().get(handle)?.team.team()?;
    Some(work(&team))
}

pub(crate) unsafe fn split_strided(
    parent: c_int,
    start: c_int,
    stride: c_int,
    size: c_int,
    _config: *const TeamConfig,
    _config_mask: c_long,
    new_team: *mut c_int,
) -> c_int {
    const NAME: &str = "nvshmem_team_split_strided";
    let made = world_for(NAME).and_then(|world| {
        let parent_size = world.teams().shape(parent).map(|(_, (_, _, size))| size);
        let part = || {
            let (first, count) = (number(start)?, number(size)?);
            let step = number(stride)
                .filter(|&step| step > 0 || count == 1)?
                .max(1);
            let last = count
                .checked_sub(1)?
                .checked_mul(step)?
                .checked_add(first)?;
            (last < parent_size?).then_some((first, step, count))
        };
        let part = part().ok_or_else(|| {
            say(format_args!(
                "{NAME}: there are no {size} PEs from {start} on, {stride} apart, in a team of {}",
                parent_size.unwrap_or(0)
            ));
            Status::InvalidValue
        })?;
        split(NAME, &world, parent, &[part], &mut 0)
    });
    // SAFETY: valid for writing, by the caller.
    unsafe { new_team.write(made.unwrap_or(INVALID)) };
    status(made.map(|_| ()))
}

#[allow(clippy::too_many_arguments)] // C's
pub(crate) unsafe fn split_2d(
    parent: c_int,
    xrange: c_int,
    _xaxis_config: *const TeamConfig,
    _xaxis_mask: c_long,
    xaxis_team: *mut c_int,
    _yaxis_config: *const TeamConfig,
    _yaxis_mask: c_long,
    yaxis_team: *mut c_int,
) -> c_int {
    const NAME: &str = "nvshmem_team_split_2d";
    let made = world_for(NAME).and_then(|world| {
        let n = world
            .teams()
            .shape(parent)
            .map_or(0, |(_, (_, _, size))| size);
        let row = number(xrange).filter(|&row| row > 0).map(|row| row.min(n));
        let row = row.filter(|&row| row > 0).ok_or_else(|| {
            say(format_args!("{NAME}: xrange is {xrange} in a team of {n}"));
            Status::InvalidValue
        })?;
        let rows: Vec<Shape> = (0..n.div_ceil(row))
            .map(|y| (y * row, 1, row.min(n - y * row)))
            .collect();
        let columns: Vec<Shape> = (0..row).map(|x| (x, row, (n - x).div_ceil(row))).collect();
        let mut taken = 0;
        let x = split(NAME, &world, parent, &rows, &mut taken)?;
        let y = split(NAME, &world, parent, &columns, &mut taken).inspect_err(|_| {
            // Both or none, and on all PEs alike: each is in a row.
            if let Some(index) = number(x) {
                take_apart(NAME, &world, index);
            }
        })?;
        Ok((x, y))
    });
    let (x, y) = made.unwrap_or((INVALID, INVALID));
    // SAFETY: valid for writing, by the caller.
    unsafe {
        xaxis_team.write(x);
        yaxis_team.write(y);
    }
    status(made.map(|_| ()))
}

pub(crate) unsafe fn destroy(team: c_int) {
    const NAME: &str = "nvshmem_team_destroy";
    let Ok(world) = world_for(NAME) else { return };
    let index = number(team).filter(|index| (FIRST..MOST_TEAMS).contains(index));
    match index.filter(|&index| world.teams().0[index].is_some()) {
        Some(index) => take_apart(NAME, &world, index),
        // A PE that is not in a team has this for a handle.
        None if team == INVALID => {}
        None => say(format_args!("{NAME}: {team} is no team that was split off")),
    }
}

/// Ends the team with this handle, if this PE is in one. Collective over it.
fn take_apart(name: &str, world: &World, index: usize) {
    let entry = world.teams().0[index].take();
    end(name, entry.map(|entry| entry.team));
    if let Some(gpu) = world.opened_gpu()
        && let Err(error) = gpu.set_team(index, None)
    {
        say(format_args!("{name}: {error}"));
    }
}

/// Ends a team of the host's. Collective over it.
fn end(name: &str, team: Option<Host>) {
    let ended = match team {
        Some(Host::Of(host)) => match Arc::into_inner(host) {
            Some(host) => host.destroy().map_err(|error| error.to_string()),
            None => Err("another thread still waits in the team".to_owned()),
        },
        // The others may still be in it.
        Some(Host::Kept(host)) => host.barrier().map_err(|error| error.to_string()),
        Some(Host::Alone) | None => Ok(()),
    };
    if let Err(error) = ended {
        say(format_args!("{name}: {error}"));
    }
}

/// Meets the team on the host.
pub(crate) fn meet(world: &World, team: c_int) -> Result<(), String> {
    if team == WORLD as c_int {
        return world.pe.barrier().map_err(|error| error.to_string());
    }
    if world.teams().get(team).is_none() {
        return Err(format!("{team} is no team of this PE"));
    }
    let met = with_parent(world, team, |team| team.barrier());
    met.unwrap_or(Ok(())).map_err(|error| error.to_string())
}

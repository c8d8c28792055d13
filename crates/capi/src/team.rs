//! Teams: handles, splitting, numbers.
#![allow(unsafe_code)] // writes results through C's pointers

use crate::debug;
use crate::handles::Handles;
use crate::misuse;
use crate::world::{self, Name, enter_unchecked};
use crosswarp_shmem::{Pe, Team};
use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::sync::OnceLock;

/// `shmem_team_t`: 0 invalid, 1 the world, 2 the PEs that share memory, else a handle in [`MADE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct TeamHandle(usize);

impl TeamHandle {
    pub(crate) const INVALID: Self = Self(0);
    pub(crate) const WORLD: Self = Self(1);
    const SHARED: Self = Self(2);
}

/// `shmem_team_config_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct TeamConfig {
    num_contexts: c_int,
}

/// `SHMEM_TEAM_NUM_CONTEXTS`.
const NUM_CONTEXTS: c_long = 1;

/// A team behind a handle.
pub(crate) struct Made {
    pub(crate) team: Team<'static>,
    config: TeamConfig,
}

static WORLD: OnceLock<Made> = OnceLock::new();
static SHARED: OnceLock<Made> = OnceLock::new();
static MADE: Handles<Made> = Handles::new();

/// Makes the two teams there are from the beginning.
pub(crate) fn open(pe: &'static Pe) {
    let made = |team| Made {
        team,
        config: TeamConfig::default(),
    };
    WORLD.get_or_init(|| made(pe.world()));
    SHARED.get_or_init(|| made(pe.shared_team()));
}

impl TeamHandle {
    /// The team, unless the handle is invalid. `name` is the function it was given to.
    #[inline]
    pub(crate) fn get(self, name: Name) -> Option<&'static Made> {
        enter_unchecked(name);
        match self {
            Self::INVALID => None,
            Self::WORLD => WORLD.get(),
            Self::SHARED => SHARED.get(),
            Self(handle) => Some(MADE.get(handle).unwrap_or_else(|| self.destroyed(name))),
        }
    }

    #[cold]
    fn destroyed(self, name: Name) -> ! {
        misuse::end(
            name,
            format_args!("the team {:#x} was destroyed, or never created", self.0),
        )
    }
}

fn handle(team: Option<Team<'static>>, config: TeamConfig) -> TeamHandle {
    match team {
        None => TeamHandle::INVALID,
        Some(team) => TeamHandle(MADE.insert(Made { team, config })),
    }
}

/// What of `config` the mask selects; the rest is the default.
unsafe fn configuration(config: *const TeamConfig, mask: c_long) -> TeamConfig {
    // SAFETY: null, or valid by the caller.
    match unsafe { config.as_ref() } {
        Some(config) if mask & NUM_CONTEXTS != 0 => *config,
        _ => TeamConfig::default(),
    }
}

/// A PE's number in C; -1 for none.
fn or_none(number: Option<usize>) -> c_int {
    number
        .and_then(|number| c_int::try_from(number).ok())
        .unwrap_or(-1)
}

/// `shmem_team_my_pe`.
pub(crate) unsafe fn my_pe(name: Name, team: TeamHandle) -> c_int {
    or_none(team.get(name).map(|made| made.team.my_pe()))
}

/// `shmem_team_n_pes`.
pub(crate) unsafe fn n_pes(name: Name, team: TeamHandle) -> c_int {
    or_none(team.get(name).map(|made| made.team.n_pes()))
}

/// `shmem_team_get_config`.
pub(crate) unsafe fn get_config(
    name: Name,
    team: TeamHandle,
    mask: c_long,
    config: *mut TeamConfig,
) -> c_int {
    let Some(made) = team.get(name) else {
        return -1;
    };
    if mask & NUM_CONTEXTS != 0 {
        // SAFETY: valid for writing, by the caller.
        unsafe { config.write(made.config) };
    }
    0
}

/// `shmem_team_translate_pe`.
pub(crate) unsafe fn translate_pe(
    name: Name,
    from: TeamHandle,
    pe: c_int,
    to: TeamHandle,
) -> c_int {
    let (Some(from), Some(to)) = (from.get(name), to.get(name)) else {
        return -1;
    };
    let number = world::number(pe);
    if number >= from.team.n_pes() {
        return -1;
    }
    or_none(from.team.translate(number, &to.team))
}

/// `shmem_team_split_strided`. PEs outside of the new team get an invalid handle and 0.
#[allow(clippy::too_many_arguments)] // those of the function
pub(crate) unsafe fn split_strided(
    name: Name,
    parent: TeamHandle,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const TeamConfig,
    mask: c_long,
    new_team: *mut TeamHandle,
) -> c_int {
    // SAFETY: valid for writing, by the caller.
    unsafe { new_team.write(TeamHandle::INVALID) };
    let Some(parent) = parent.get(name) else {
        return -1;
    };
    // Negative numbers become ones that no team has, so that the split meets the others and fails.
    let (start, size) = (world::number(start), world::number(size));
    match parent.team.split_strided(start, stride as isize, size) {
        Ok(team) => {
            // SAFETY: by the caller.
            unsafe { new_team.write(handle(team, configuration(config, mask))) };
            0
        }
        Err(error) => failed(name, &error),
    }
}

/// `shmem_team_split_2d`.
#[allow(clippy::too_many_arguments)] // those of the function
pub(crate) unsafe fn split_2d(
    name: Name,
    parent: TeamHandle,
    xrange: c_int,
    x_config: *const TeamConfig,
    x_mask: c_long,
    x_team: *mut TeamHandle,
    y_config: *const TeamConfig,
    y_mask: c_long,
    y_team: *mut TeamHandle,
) -> c_int {
    // SAFETY: valid for writing, by the caller.
    unsafe {
        x_team.write(TeamHandle::INVALID);
        y_team.write(TeamHandle::INVALID);
    }
    let Some(parent) = parent.get(name) else {
        return -1;
    };
    match parent.team.split_2d(world::number(xrange)) {
        Ok((x, y)) => {
            // SAFETY: by the caller.
            unsafe {
                x_team.write(handle(Some(x), configuration(x_config, x_mask)));
                y_team.write(handle(Some(y), configuration(y_config, y_mask)));
            }
            0
        }
        Err(error) => failed(name, &error),
    }
}

/// A split that did not come about: nonzero, and in words when asked for.
fn failed(name: Name, error: &dyn std::error::Error) -> c_int {
    if debug::enabled() {
        misuse::say(format_args!("{name}: {error}"));
    }
    -1
}

/// `shmem_team_destroy`: nothing for an invalid handle.
pub(crate) unsafe fn destroy(name: Name, team: TeamHandle) {
    match team {
        TeamHandle::INVALID => {}
        TeamHandle::WORLD | TeamHandle::SHARED => {
            misuse::end(name, format_args!("this team is the library's own"));
        }
        TeamHandle(handle) => {
            enter_unchecked(name);
            let made = MADE.remove(handle).unwrap_or_else(|| team.destroyed(name));
            if let Err(error) = made.team.destroy() {
                misuse::end(name, format_args!("{error}"));
            }
        }
    }
}

/// `shmem_team_ptr` (1.6).
pub(crate) unsafe fn ptr(
    name: Name,
    team: TeamHandle,
    dest: *const c_void,
    pe: c_int,
) -> *mut c_void {
    let pe = world::number(pe);
    match team.get(name) {
        Some(made) if pe < made.team.n_pes() => enter_unchecked(name)
            .raw()
            .ptr(dest.cast::<u8>(), made.team.world_pe(pe))
            .cast(),
        _ => ptr::null_mut(),
    }
}

//! Contexts: a team whose numbers the operations use, and nothing else.
//!
//! Between mapped heaps every operation is complete, in order, when its call returns. So contexts have
//! nothing of their own to order or to complete, threads need none to be independent, and the options are
//! met by doing nothing.
#![allow(unsafe_code)] // writes results through C's pointers

use crate::handles::Handles;
use crate::misuse::{self, delivered};
use crate::team::TeamHandle;
use crate::world::{self, Name, enter_unchecked};
use std::ffi::{c_int, c_long};

/// `shmem_ctx_t`: 0 invalid, 1 the default, else a handle in [`MADE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Context(usize);

/// A context behind a handle.
pub(crate) struct Made {
    team: TeamHandle,
    /// The world's number of each PE of the team; empty for the world itself.
    pes: Box<[usize]>,
}

static MADE: Handles<Made> = Handles::new();

/// `shmem_ctx_session_config_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct SessionConfig {
    total_ops: usize,
}

impl Context {
    pub(crate) const INVALID: Self = Self(0);
    pub(crate) const DEFAULT: Self = Self(1);

    pub(crate) fn is_valid(self) -> bool {
        self != Self::INVALID
    }

    /// What it stands for; `None` for the default and the invalid one.
    #[inline(always)]
    pub(crate) fn object(self, name: Name) -> Option<&'static Made> {
        (self.0 > 1).then(|| MADE.get(self.0).unwrap_or_else(|| self.destroyed(name)))
    }

    /// The context's team as a handle of its own world.
    pub(crate) fn team_handle(self, name: Name) -> TeamHandle {
        self.object(name)
            .map_or(TeamHandle::WORLD, |object| object.team)
    }

    #[cold]
    fn destroyed(self, name: Name) -> ! {
        misuse::end(
            name,
            format_args!("the context {:#x} was destroyed, or never created", self.0),
        )
    }

    /// The world's number of the PE that this context calls `pe`.
    #[inline(always)]
    pub(crate) fn world_pe(self, name: Name, pe: c_int) -> usize {
        let number = world::number(pe);
        if self == Self::DEFAULT {
            return number;
        }
        self.number_in_team(name, number)
    }

    #[inline(never)]
    fn number_in_team(self, name: Name, number: usize) -> usize {
        let Some(object) = self.object(name) else {
            misuse::end(name, format_args!("ctx is SHMEM_CTX_INVALID"));
        };
        if object.pes.is_empty() {
            return number;
        }
        match object.pes.get(number) {
            Some(&pe) => pe,
            None => {
                let (pe, last) = (number as isize, object.pes.len() - 1);
                misuse::end(
                    name,
                    format_args!("pe is {pe}, but the context's team has PEs 0 to {last}"),
                )
            }
        }
    }
}

/// `shmem_ctx_create`.
pub(crate) unsafe fn create(name: Name, options: c_long, ctx: *mut Context) -> c_int {
    // SAFETY: by the caller.
    unsafe { team_create(name, TeamHandle::WORLD, options, ctx) }
}

/// `shmem_team_create_ctx`: never short of resources.
pub(crate) unsafe fn team_create(
    name: Name,
    team: TeamHandle,
    _options: c_long,
    ctx: *mut Context,
) -> c_int {
    let Some(made) = team.get(name) else {
        // SAFETY: valid for writing, by the caller.
        unsafe { ctx.write(Context::INVALID) };
        return -1;
    };
    let pes = match team {
        TeamHandle::WORLD => Box::default(),
        _ => (0..made.team.n_pes())
            .map(|pe| made.team.world_pe(pe))
            .collect(),
    };
    let handle = MADE.insert(Made { team, pes });
    // SAFETY: valid for writing, by the caller.
    unsafe { ctx.write(Context(handle)) };
    0
}

/// `shmem_ctx_destroy`: completes what was issued on it; nothing for an invalid context.
pub(crate) unsafe fn destroy(name: Name, ctx: Context) {
    if ctx == Context::DEFAULT {
        misuse::end(
            name,
            format_args!("the default context is the library's own"),
        );
    }
    if ctx.is_valid() {
        delivered(name, enter_unchecked(name).quiet());
        drop(MADE.remove(ctx.0).unwrap_or_else(|| ctx.destroyed(name)));
    }
}

/// `shmem_ctx_get_team`.
pub(crate) unsafe fn get_team(name: Name, ctx: Context, team: *mut TeamHandle) -> c_int {
    enter_unchecked(name);
    let (handle, code) = match ctx.is_valid() {
        true => (ctx.team_handle(name), 0),
        false => (TeamHandle::INVALID, -1),
    };
    // SAFETY: valid for writing, by the caller.
    unsafe { team.write(handle) };
    code
}

/// `shmem_ctx_session_start` (1.6): hints, of which none helps here.
pub(crate) unsafe fn session_start(
    name: Name,
    ctx: Context,
    _options: c_long,
    _config: *const SessionConfig,
    _mask: c_long,
) {
    enter_unchecked(name);
    ctx.object(name);
}

/// `shmem_ctx_session_stop` (1.6).
pub(crate) unsafe fn session_stop(name: Name, ctx: Context) {
    enter_unchecked(name);
    ctx.object(name);
}

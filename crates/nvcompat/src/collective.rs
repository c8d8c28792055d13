//! Collectives from the host: 0, or a status whose reason has been said.
#![allow(unsafe_code)] // C's functions: the caller promises what NVSHMEM asks of the arguments

use crate::driver::number;
use crate::gpu::Gpu;
use crate::on::On;
use crate::state::world_for;
use crate::types::{Status, status};
use crosswarp_cuda::{DeviceTeam, Stream};
use std::ffi::c_int;

/// The team of all PEs.
const WORLD: c_int = 0;

/// Gives a collective of `team` to the stream.
pub(crate) fn give(
    on: On,
    team: c_int,
    work: impl FnOnce(&Gpu, &Stream, &DeviceTeam) -> Result<(), String>,
) -> c_int {
    status(on.give_in(|world, gpu, stream| {
        let shape = world.teams().shape(team);
        let (index, shape) = shape.ok_or_else(|| format!("{team} is no team of this PE"))?;
        let team = gpu.team(index, shape);
        let team = team.ok_or_else(|| format!("this PE is not in team {index}"))?;
        gpu.may_wait_in(stream)?;
        match index {
            0 => work(gpu, stream, gpu.world.everyone()),
            _ => work(gpu, stream, &team),
        }
    }))
}

pub(crate) unsafe fn barrier(on: On, team: c_int) -> c_int {
    if let On::Stream(..) = on {
        return give(on, team, |gpu, stream, team| {
            // What was given to the library's own stream is part of what a barrier completes.
            crate::order::send_own(gpu, stream)?;
            gpu.world
                .barrier_on_stream(stream, team)
                .map_err(|error| error.to_string())
        });
    }
    meet(on, team)
}

pub(crate) unsafe fn team_sync(on: On, team: c_int) -> c_int {
    if let On::Stream(..) = on {
        return give(on, team, |gpu, stream, team| {
            gpu.world
                .sync_on_stream(stream, team)
                .map_err(|error| error.to_string())
        });
    }
    meet(on, team)
}

pub(crate) unsafe fn barrier_all(on: On) {
    match on {
        // SAFETY: asks for nothing.
        On::Stream(..) => _ = unsafe { barrier(on, WORLD) },
        On::Host(_) => _ = meet(on, WORLD),
    }
}

pub(crate) unsafe fn sync_all(on: On) {
    match on {
        // SAFETY: asks for nothing.
        On::Stream(..) => _ = unsafe { team_sync(on, WORLD) },
        On::Host(_) => _ = meet(on, WORLD),
    }
}

/// Completes what the library's own stream has, then meets the team on the host: kernels are not held up by it, and it
/// is not held up by theirs.
fn meet(on: On, team: c_int) -> c_int {
    let On::Host(name) = on else {
        return Status::Internal as c_int;
    };
    status(world_for(name).and_then(|world| {
        let gpu = world.gpu()?;
        on.said(gpu.quiet())?;
        on.said(crate::team::meet(&world, team))
    }))
}

/// A collective that moves `n` elements of `T`, as bytes.
fn moves<T>(
    on: On,
    team: c_int,
    (dest, source): (*mut T, *const T),
    bytes: impl FnOnce(&DeviceTeam, usize) -> (usize, usize),
    n: usize,
    work: impl FnOnce(
        &Gpu,
        &Stream,
        &DeviceTeam,
        crosswarp_cuda::DeviceSym<u8>,
        crosswarp_cuda::DeviceSym<u8>,
    ) -> Result<(), crosswarp_cuda::DeviceWorldError>,
) -> c_int {
    give(on, team, |gpu, stream, team| {
        let (to, from) = bytes(team, n.saturating_mul(size_of::<T>()));
        let dest = gpu.object::<u8>(dest.addr() as u64, to)?;
        let source = gpu.object::<u8>(source.addr() as u64, from)?;
        work(gpu, stream, team, dest, source).map_err(|error| error.to_string())
    })
}

pub(crate) unsafe fn broadcast<T>(
    on: On,
    team: c_int,
    dest: *mut T,
    source: *const T,
    n: usize,
    root: c_int,
) -> c_int {
    let Some(root) = number(root) else {
        return Status::InvalidValue as c_int;
    };
    give(on, team, |gpu, stream, team| {
        if root >= team.n_pes() {
            let n = team.n_pes();
            return Err(format!("rank {root} does not exist in a team of {n}"));
        }
        let bytes = n.saturating_mul(size_of::<T>());
        let dest = gpu.object::<u8>(dest.addr() as u64, bytes)?;
        let source = gpu.object::<u8>(source.addr() as u64, bytes)?;
        gpu.world
            .broadcast_on_stream(stream, team, &dest, &source, root)
            .map_err(|error| error.to_string())
    })
}

pub(crate) unsafe fn fcollect<T>(
    on: On,
    team: c_int,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> c_int {
    let all = |team: &DeviceTeam, bytes: usize| (bytes.saturating_mul(team.n_pes()), bytes);
    moves(
        on,
        team,
        (dest, source),
        all,
        n,
        |gpu, stream, team, dest, source| {
            gpu.world.fcollect_on_stream(stream, team, &dest, &source)
        },
    )
}

pub(crate) unsafe fn alltoall<T>(
    on: On,
    team: c_int,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> c_int {
    let all = |team: &DeviceTeam, bytes: usize| {
        let bytes = bytes.saturating_mul(team.n_pes());
        (bytes, bytes)
    };
    moves(
        on,
        team,
        (dest, source),
        all,
        n,
        |gpu, stream, team, dest, source| {
            gpu.world.alltoall_on_stream(stream, team, &dest, &source)
        },
    )
}

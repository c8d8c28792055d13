//! Worlds of PEs (processing elements), a symmetric heap, and OpenSHMEM's one-sided verbs.
//!
//! A *world* is `n` PEs. Each PE owns a *symmetric heap*; an object allocated there has the same
//! offset on every PE, so a handle ([`Sym`]) and a PE number name memory anywhere in the world.
//! [`put`](Pe::put) and [`get`](Pe::get) copy into and out of another PE's memory without its help;
//! [signals](Pe::put_signal), [`barrier`](Pe::barrier) and the collectives of a [`Team`] synchronise.
//! Names and meanings are those of the OpenSHMEM 1.5 specification.
//!
//! PEs are threads of one process ([`spmd`]) or processes of one or several hosts (`Launch`, [`init`]); the
//! same program runs on all.
//!
//! | what | where |
//! |---|---|
//! | a world | of threads: [`spmd`]; of processes: [`init`], where [`under_launcher`] is true |
//! | who and where | [`Pe::my_pe`], [`Pe::n_pes`], [`Pe::ptr`], [`Pe::pe_accessible`] |
//! | symmetric memory | [`Pe::alloc`], [`Pe::alloc_aligned`], [`Pe::alloc_zeroed`], [`Pe::free`], [`Sym`] |
//! | one's own copy | [`Pe::write`], [`Pe::read`] |
//! | put and get | [`Pe::put`], [`Pe::get`], [`Pe::p`], [`Pe::g`], [`Pe::iput`], [`Pe::iget`]; non-blocking: [`Pe::scope`] |
//! | atomics | [`Pe::atomic_fetch_add`] and its kin on [`AtomicInt`] and [`AtomicValue`] |
//! | signals and waiting | [`Pe::put_signal`], [`Pe::wait_until`], [`Pe::test`], several at once: [`WaitSet`] |
//! | order | [`Pe::fence`], [`Pe::quiet`], [`Context`] |
//! | teams | [`Pe::world`], [`Team::split_strided`], [`Team::split_2d`], [`Team::translate`] |
//! | collectives | [`Team::barrier`], [`Team::sync`], [`Team::broadcast`], [`Team::collect`], [`Team::fcollect`], [`Team::alltoall`], [`Team::alltoalls`], [`Team::reduce`], [`Team::inscan`], [`Team::exscan`] |
//! | locks | [`Pe::lock`], [`Pe::try_lock`] |
//! | the end | [`Pe::leave`], [`Pe::global_exit`] |
//! | by address, for C | [`raw`] |
//!
//! The calling thread may be any: [`Pe`] can be shared between the threads of a PE.
//!
//! # No hang, no silence
//! Every wait can say what it waits for ([`Wait`]). It gives up with an error after a configurable
//! time (`CROSSWARP_WAIT_TIMEOUT`; default: never), warns after 30 s, and ends at once when a peer
//! has failed or has left. PEs that call different collectives, or the same with different sizes, all
//! get [`CollectiveError::Mismatch`].
//!
//! # Panics
//! Indices out of range, PEs that do not exist and slices of unequal length panic, as slices do.
//! Everything that depends on the outside (memory, settings, other PEs) is an error value.
//!
//! Linux only: heaps are memfds, sleeping is a futex.
//!
//! # Features
//! `launch` (default): `Launch`, which starts a world of processes. Programs that are started need it not.

// Three storeys. A file imports files of its own storey and of those below.
//
// 1. State: `library`; `wait`; in `memory` region, copy, allocator, segment, position; in `world` config, control,
//    mapped, membership, ring, endpoint; in `team` rendezvous, biased_lock, shape, indices, collective_call, error; in
//    `transport` hosts, engine, message, remote and the engines; `verbs::op`.
// 2. Verbs over addresses, on an `Endpoint`: in `memory` locate, alloc, register; `world::fds`; in `team` choice,
//    active_set, collective and `Team` itself; `verbs::raw`; `transport::agent`, which does them for other hosts.
// 3. Handles: `memory::symmetric`; the files of `verbs`, each over its namesake in `verbs::raw` or `team`; in `world`
//    pe, context, and threads and processes, which make worlds; `bootstrap`; `launch`.

// What only the launcher reads.
#![cfg_attr(not(feature = "launch"), allow(dead_code))]

mod bootstrap;
mod held_signals;
#[cfg(feature = "launch")]
mod launch;
mod library;
mod memory;
mod team;
mod transport;
mod verbs;
mod wait;
mod world;

#[cfg(all(test, loom))]
mod loom_models;

pub use bootstrap::{AllGather, BootstrapError, IdListener, IdPlace};
pub use bytemuck::Pod;
#[cfg(feature = "launch")]
pub use launch::{Ended, Host, HostList, Launch, LaunchError, LostHost, Outcome, run_for_launcher};
pub use memory::alloc::AllocError;
pub use memory::symmetric::{Sym, SymRef};
pub use team::collective_call::{Call as CollectiveCall, Kind as CollectiveKind};
pub use team::error::CollectiveError;
pub use team::{Team, TeamError};
pub use transport::network::NetworkError;
pub use transport::remote::DeliveryError;
pub use verbs::lock::{Lock, LockGuard};
pub use verbs::raw::atomic::{AtomicInt, AtomicValue};
pub use verbs::raw::signal::SignalOp;
pub use verbs::scope::Operations;
pub use verbs::wait_set::WaitSet;
pub use verbs::{op, raw};
pub use wait::waiter::{Cmp, TenthSeconds, Wait, WaitError, interruptible};
pub use world::config::ConfigError;
pub use world::context::{Context, ContextOptions};
pub use world::created::WorldMemoryError;
pub use world::fds::ShareError;
pub use world::mapped::WorldKind;
pub use world::membership::Membership;
pub use world::pe::{Pe, SPECIFICATION, ThreadLevel};
pub use world::processes::{
    InitError, init, init_by_exchange, init_by_id, init_by_id_at, launched_pe, under_launcher,
};
pub use world::threads::{MAX_PES, ThreadWorld, WorldError, spmd};

/// Public for the other crates of this workspace only; not part of the interface.
#[doc(hidden)]
pub mod internal {
    pub use crate::bootstrap::address_of_host;
    pub use crate::held_signals::HeldSignals;
    #[cfg(feature = "launch")]
    pub use crate::launch::{GRACE, signal_mask::is_ignored};
    /// Finding and opening shared libraries.
    pub mod library {
        pub use crate::library::search::{
            Installed, Place, Refused, Search, Sought, Wheel, home, set_home,
        };
        pub use crate::library::trust::{Owner, check, find_program};
        pub use crate::library::{list, mapped_file, open_library, symbol};
    }
    pub use crate::memory::allocator::{Block, GRANULE, HeapAllocator};
    pub use crate::memory::static_names::name_static_data;
    pub use crate::transport::courier::Courier;
    pub use crate::transport::network::ucx;
    pub use crate::world::config::{
        BEAT, HEAP, PATIENCE, SETTINGS, SYMMETRIC_SIZE, Setting, WAIT_TIMEOUT, parse_bytes,
    };
    pub use crate::world::other_library::{is_other_openshmem, other_openshmem_of};
}

/// Any error of a running PE, for programs that only pass errors on.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum Error {
    /// From an allocation.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// From a collective.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// From a fence, a quiet or a scope.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// From making or ending a team.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// From a wait.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

// The README's program runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

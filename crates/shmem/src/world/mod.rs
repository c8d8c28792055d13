//! The PEs of a world: what they share, how they come together, one's side of it, and the handle of one.

pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod created;
pub(crate) mod endpoint;
pub(crate) mod fds;
pub(crate) mod lifeline;
pub(crate) mod mapped;
pub(crate) mod membership;
pub(crate) mod other_library;
pub(crate) mod pe;
pub(crate) mod processes;
pub(crate) mod ring;
pub(crate) mod threads;

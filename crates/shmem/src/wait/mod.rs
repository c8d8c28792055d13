//! Waiting: what a wait does, sleeping, and the atomics under both.

pub(crate) mod parker;
pub(crate) mod sync;
pub(crate) mod waiter;

//! What a PE does with the memory of others, typed and by address ([`raw`]).

pub(crate) mod alloc;
pub(crate) mod atomic;
pub(crate) mod collective;
pub(crate) mod lock;
pub mod op;
pub mod raw;
pub(crate) mod rma;
pub(crate) mod scope;
pub(crate) mod signal;
pub(crate) mod wait_set;

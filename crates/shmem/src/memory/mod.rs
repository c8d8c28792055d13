//! Mapped memory, the symmetric heap in it, segments beside it, how bytes are found and copied, and handles to them.

pub(crate) mod alloc;
pub(crate) mod allocator;
pub(crate) mod copy;
pub(crate) mod locate;
pub(crate) mod position;
pub(crate) mod region;
pub(crate) mod register;
pub(crate) mod segment;
pub(crate) mod static_names;
pub(crate) mod symmetric;

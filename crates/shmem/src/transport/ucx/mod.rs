//! UCX, opened at run time: the library's own words, made safe to use where that can be.
//!
//! | file | what it has |
//! |---|---|
//! | [library] | finding `libucp.so.0`; what is said where there is none |
//! | [ffi] | the functions and the structures they take, as far as they are used here |
//! | [status] | codes of UCX as errors |
//! | [context] | [`Context`](context::Context), one a process; [`Region`](context::Region): memory others may reach |
//! | [worker] | [`Worker`](worker::Worker): what makes progress, sleeps and has an address |
//! | [request] | [`Request`](request::Request): an operation that may not be complete |
//! | [endpoint] | [`Endpoint`](endpoint::Endpoint): a way to another worker; [`RemoteKey`](endpoint::RemoteKey) |
//! | [active_message] | messages and what is called when they come |
//! | [port] | the engine: a PE's way to agents |
//! | [server] | the agent's side of it |
//! | [seal] | how each knows that what comes is from the other |
//!
//! What keeps what alive: a worker its context; an endpoint and a request their worker; a key its endpoint; a request
//! the key and the buffers it was given. So the order in which they are dropped does not matter. Something that UCX
//! may still call or read when its owner is dropped (buffers of a request under way, handlers) moves to the worker,
//! which frees it once UCX is done with it, or after its own end.
//!
//! Facts that this relies on, read in the sources of 1.13 and 1.22 and held by the tests: codes that are returned have
//! eight valid bits; structures say in a mask which of their fields count, so newer fields are zero; a worker that
//! is for several threads locks itself, and its lock is one that a thread may take again (a handler may send); it may
//! not be progressed inside its own progress.
#![allow(unsafe_code)] // Calls into UCX.
#![allow(dead_code)] // The engine sends messages alone; only tests use remote memory, which measure it.

pub(crate) mod active_message;
pub(crate) mod context;
pub(crate) mod endpoint;
mod ffi;
pub(crate) mod library;
pub(crate) mod port;
pub(crate) mod request;
mod seal;
pub(crate) mod server;
pub(crate) mod status;
pub(crate) mod worker;

#[cfg(test)]
mod tests;

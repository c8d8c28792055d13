//! An engine over TCP sockets.
//!
//! Each agent listens; a PE connects to the agents whose PEs it deals with, when it first does. Both sides prove that
//! they know the job's [key](key) before anything else is said. Then [frames](frame) go both ways.
//!
//! A message is in the kernel's hands when `send` returns, so it arrives whatever the PE does next; and an agent
//! sleeps in `epoll` until something comes, so a PE need not do anything for what others do to its memory.

pub(crate) mod frame;
pub(crate) mod key;
pub(crate) mod port;
pub(crate) mod server;

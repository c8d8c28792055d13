//! The commands: each takes its arguments, works, and returns an exit code.

pub mod bench;
pub mod error;
pub mod histogram;
mod hosts;
pub mod info;
pub mod install;
pub mod kernels;
pub mod lab;
pub mod reduce;
pub mod run;
pub mod solve;
mod source_commit;
pub mod transpose;

//! Where commands work: processors or GPUs, threads or processes.

pub mod backend;
pub mod pes;

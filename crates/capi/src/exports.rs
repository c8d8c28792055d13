//! The exported symbols, generated from the table.
//!
//! For each function `shmem_…` and `pshmem_…` are separate symbols that call the same implementation, so
//! that a tool may define the one and call the other.
#![allow(unsafe_code)] // exports symbols; each passes its arguments on unchanged
#![allow(clippy::undocumented_unsafe_blocks)]
// Every generated function is
//     unsafe extern "C" fn shmem_…(arguments) { unsafe { implementation("shmem_…", arguments) } }
// SAFETY of all of them: the C caller promises what the specification asks of the arguments, which is
// what the implementation asks for.

use crate::context::{Context, SessionConfig};
use crate::long_double::{
    LongDouble, long_double_ctx_g, long_double_ctx_p, long_double_g, long_double_p,
};
use crate::team::{TeamConfig, TeamHandle};
use crate::{
    active, amo, collective, context, lock, memory, old_amo, order, reduce, rma, setup, signal,
    team, wait,
};
use crosswarp_shmem::op::Complex;
use std::ffi::{c_char, c_int, c_long, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));

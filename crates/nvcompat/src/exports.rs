//! The exported symbols, generated from the table, and two that only speak.
#![allow(unsafe_code)] // exports symbols; each passes its arguments on unchanged
#![allow(clippy::undocumented_unsafe_blocks)]
// Every generated function is
//     unsafe extern "C" fn nvshmem_…(arguments) { unsafe { implementation(arguments) } }
// SAFETY of all of them: the C caller promises what NVSHMEM's documentation asks of the arguments, which is what the
// implementation asks for.

use crate::on::On;
use crate::types::{Bf16, F16, InitAttributes, Stream, TeamConfig, UniqueId};
use crate::{
    amo, collective, joining, memory, module, order, reduce, rma, setup, signal, team, wait,
};
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));

/// What programs call that were linked with NVIDIA's device library: they can't run here as they are.
#[unsafe(no_mangle)]
extern "C" fn nvshmemid_hostlib_init_attr() -> c_int {
    crate::say::say(format_args!(
        "this program was built with NVIDIA's device library; compile it again with Crosswarp's headers"
    ));
    crate::types::Status::NotSupported as c_int
}

//! What C passes: handles, structures, numbers of 16 bits, statuses.

use std::ffi::{c_char, c_int, c_void};

/// `cudaStream_t`.
pub(crate) type Stream = *mut c_void;

/// `half`, by its bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct F16(u16);

/// `bfloat16`, by its bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Bf16(u16);

/// What functions return: `NVSHMEMX_SUCCESS` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    InvalidValue = 1,
    OutOfMemory = 2,
    NotSupported = 3,
    GpuNotSelected = 5,
    Internal = 7,
}

/// The status of an outcome, for C.
pub(crate) fn status(outcome: Result<(), Status>) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(status) => status as c_int,
    }
}

/// `nvshmemx_uniqueid_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UniqueId {
    version: c_int,
    bytes: [c_char; 124],
}

/// What the bytes of an id begin with.
const MARK: &[u8; 8] = b"xwarp id";

impl UniqueId {
    pub(crate) fn new(id: [u8; 16]) -> Self {
        let mut bytes = [0; 124];
        for (to, from) in bytes.iter_mut().zip(MARK.iter().chain(&id)) {
            *to = *from as c_char;
        }
        Self { version: 1, bytes }
    }

    /// The id, if it is one that [`new`](Self::new) made.
    pub(crate) fn id(&self) -> Option<[u8; 16]> {
        let bytes = self.bytes.map(|byte| byte as u8);
        let id = bytes.strip_prefix(MARK)?.first_chunk()?;
        Some(*id)
    }
}

/// `nvshmemx_init_attr_t`.
#[repr(C)]
pub struct InitAttributes {
    pub(crate) version: c_int,
    pub(crate) mpi_comm: *mut c_void,
    pub(crate) uniqueid: UniqueId,
    pub(crate) rank: c_int,
    pub(crate) n_pes: c_int,
}

/// `nvshmem_team_config_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TeamConfig {
    pub(crate) version: c_int,
    pub(crate) num_contexts: c_int,
    pub(crate) uniqueid: u64,
}

/// The names of what reductions combine, as `kernels/reduce.cu` has them.
pub(crate) const ELEMENTS: &[&str] = &[
    "schar", "uchar", "short", "u16", "half", "bfloat16", "i32", "u32", "i64", "u64", "float",
    "double",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_from_other_bytes() {
        let id = std::array::from_fn(|i| 200 + i as u8);
        assert_eq!(UniqueId::new(id).id(), Some(id));
        let mut other = UniqueId::new(id);
        other.bytes[3] = 0;
        assert_eq!(other.id(), None);
    }
}

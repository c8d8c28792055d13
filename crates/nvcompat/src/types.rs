//! What C passes: handles, structures, numbers of 16 bits, statuses.

use crosswarp_shmem::IdPlace;
use std::ffi::{c_char, c_int, c_void};
use std::net::{IpAddr, SocketAddr};

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

/// Behind the mark and the id: the host, bytes of the address (0: there is no place), the address, the port.
const WITH_PLACE: usize = MARK.len() + 16 + 16 + 1 + 16 + 2;

impl UniqueId {
    /// `place`: where PEs of other hosts meet PE 0, which then is on the host that makes the id.
    pub(crate) fn new(id: [u8; 16], place: Option<IdPlace>) -> Self {
        let mut whole = Vec::with_capacity(WITH_PLACE);
        whole.extend(MARK);
        whole.extend(id);
        if let Some(IdPlace { host, address }) = place {
            whole.extend(host);
            let octets = match address.ip() {
                IpAddr::V4(ip) => ip.octets().to_vec(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            whole.push(octets.len() as u8);
            whole.extend(octets);
            whole.resize(WITH_PLACE - 2, 0);
            whole.extend(address.port().to_le_bytes());
        }
        let mut bytes = [0; 124];
        for (to, from) in bytes.iter_mut().zip(whole) {
            *to = from as c_char;
        }
        Self { version: 1, bytes }
    }

    /// The id, and the place if it has one, if it is one that [`new`](Self::new) made.
    pub(crate) fn id(&self) -> Option<([u8; 16], Option<IdPlace>)> {
        let bytes = self.bytes.map(|byte| byte as u8);
        let (id, rest) = bytes.strip_prefix(MARK)?.split_first_chunk::<16>()?;
        let (host, rest) = rest.split_first_chunk::<16>()?;
        let (length, rest) = rest.split_first()?;
        let (octets, rest) = rest.split_first_chunk::<16>()?;
        let port = u16::from_le_bytes(*rest.first_chunk()?);
        let ip = match length {
            4 => IpAddr::from(*octets.first_chunk::<4>()?),
            16 => IpAddr::from(*octets),
            _ => return Some((*id, None)),
        };
        let address = SocketAddr::new(ip, port);
        let host = *host;
        Some((*id, Some(IdPlace { host, address })))
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
        assert_eq!(UniqueId::new(id, None).id(), Some((id, None)));
        for address in ["10.1.2.3:65000", "[2001:db8::ff01]:1"] {
            let (host, address) = ([0xfe; 16], address.parse().unwrap());
            let place = Some(IdPlace { host, address });
            assert_eq!(UniqueId::new(id, place).id(), Some((id, place)));
        }
        let mut other = UniqueId::new(id, None);
        other.bytes[3] = 0;
        assert_eq!(other.id(), None);
    }
}

//! One PE's part in an NCCL communicator, and which collectives NCCL takes.
#![allow(unsafe_code)] // Calls into NCCL.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::driver::device::Device;
use crate::driver::stream::Stream;
use crate::layout::{ELEMENT_TYPES, OpCode, TypeCode};
use crate::pe::collective::Collective;
use crate::pe::nccl::library::{BYTES, DataType, Handle, Nccl, NcclError, Operation};

/// The `ncclDataType_t` of the types that reductions combine, in the order of their numbers.
const DATA_TYPES: [DataType; ELEMENT_TYPES.len()] = [2, 3, 4, 5, 7, 8];

/// The number of the first floating-point type.
const FIRST_FLOAT: usize = f32::CODE;

/// The `ncclRedOp_t` of an operation on the type with this number, if NCCL has it. Of floats it does not say whether a
/// NaN wins a minimum or maximum, nor which zero: those are left to the kernels.
fn operation(op: i32, type_code: usize) -> Option<Operation> {
    const SUM: i32 = OpCode::Sum as i32;
    const PROD: i32 = OpCode::Prod as i32;
    const MIN: i32 = OpCode::Min as i32;
    const MAX: i32 = OpCode::Max as i32;
    match op {
        SUM => Some(0),
        PROD => Some(1),
        MIN if type_code < FIRST_FLOAT => Some(3),
        MAX if type_code < FIRST_FLOAT => Some(2),
        _ => None,
    }
}

/// This PE's part in an NCCL communicator of all PEs.
pub(crate) struct Communicator {
    nccl: &'static Nccl,
    device: Device,
    /// From how many bytes on it is used.
    pub(super) min_bytes: usize,
    /// NCCL wants one caller at a time.
    handle: Mutex<Owned>,
}

struct Owned(Handle);

// SAFETY: NCCL allows any thread to use a communicator, one at a time, with its GPU bound.
unsafe impl Send for Owned {}

impl Communicator {
    /// The part that [`Nccl::join`] made.
    pub(super) fn new(
        nccl: &'static Nccl,
        device: Device,
        min_bytes: usize,
        handle: Handle,
    ) -> Self {
        Self {
            nccl,
            device,
            min_bytes,
            handle: Mutex::new(Owned(handle)),
        }
    }

    /// Gives a collective to the stream, if NCCL has it: `n` elements of `size` bytes per PE, at
    /// addresses of this PE.
    ///
    /// # Safety
    /// Both addresses are device memory as long as the collective asks for, which outlives it.
    pub(crate) unsafe fn start(
        &self,
        stream: &Stream,
        collective: Collective,
        [dest, source]: [u64; 2],
        (n, size): (usize, usize),
    ) -> Option<Result<(), NcclError>> {
        let kind = match collective {
            Collective::Reduce { type_code, op } => {
                Some((DATA_TYPES[type_code - 1], operation(op, type_code)?))
            }
            _ => None,
        };
        if let Err(error) = self.device.bind() {
            return Some(Err(error.into()));
        }
        let guard = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let (handle, stream) = (guard.0, stream.handle());
        let (to, from) = (dest as *mut c_void, source as *const c_void);
        let (bytes, nccl) = (n * size, &self.nccl.functions);
        // SAFETY: the caller's promise; the communicator and the stream live, and no other thread uses
        // the communicator now.
        let (call, status) = unsafe {
            match (collective, kind) {
                (Collective::Reduce { .. }, Some((number, op))) => (
                    "ncclAllReduce",
                    (nccl.all_reduce)(from, to, n, number, op, handle, stream),
                ),
                (Collective::Broadcast { root }, _) => (
                    "ncclBroadcast",
                    (nccl.broadcast)(from, to, bytes, BYTES, root as c_int, handle, stream),
                ),
                (Collective::Fcollect, _) => (
                    "ncclAllGather",
                    (nccl.all_gather)(from, to, bytes, BYTES, handle, stream),
                ),
                // The kernels move them as fast at any size. As NCCL's sends and receives, 1 MiB to each
                // PE recorded into a graph hung when it ran (NCCL 2.28.3, four GPUs, twice of twice).
                (Collective::Alltoall, _) | (Collective::Reduce { .. }, None) => return None,
            }
        };
        Some(self.nccl.check(call, status))
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // What a PE that failed has begun may never end, and then destroying would wait for ever.
        if std::thread::panicking() || self.device.synchronize().is_err() {
            return;
        }
        let handle = self
            .handle
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nothing uses the communicator any more, and its GPU is bound by `synchronize`. There
        // is nobody to tell of a failure.
        unsafe { (self.nccl.functions.destroy)(handle.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against nccl.h: ncclSum 0, ncclProd 1, ncclMax 2, ncclMin 3.
    #[test]
    fn operations_have_nccls_numbers() {
        use crate::pe::collective::code;
        use crosswarp_shmem::op;
        let ops = [
            code::<f32, op::Sum>(),
            code::<f32, op::Prod>(),
            code::<f32, op::Max>(),
            code::<f32, op::Min>(),
        ];
        assert_eq!(
            ops.map(|op| operation(op, i32::CODE)),
            [Some(0), Some(1), Some(2), Some(3)]
        );
        // Floats' extrema stay with the kernels.
        assert_eq!(
            ops.map(|op| operation(op, FIRST_FLOAT)),
            [Some(0), Some(1), None, None]
        );
        let ops = [
            code::<u32, op::And>(),
            code::<u32, op::Or>(),
            code::<u32, op::Xor>(),
        ];
        assert_eq!(ops.map(|op| operation(op, u32::CODE)), [None; 3]);
    }
}

//! Why there is no device world, or no launch on all its PEs.

use crosswarp_shmem::{AllocError, CollectiveError};

use crate::compile::module::ModuleError;
use crate::driver::error::CudaError;
use crate::launch::LaunchError;
use crate::layout::WORLD_SYMBOL;
use crate::pe::heap::HeapError;
use crate::pe::nccl::library::NcclError;
use crate::pe::wait::SyncError;

/// A device world, or a launch on all its PEs, that did not come about; every PE gets an error.
#[derive(Debug, thiserror::Error)]
pub enum DeviceWorldError {
    /// The heap could not be made or has no room.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// A kernel can not be launched like this.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A module does not compile or load, or lacks the world: its source does not include `pe.cuh`.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// A module was compiled against other headers than this library's.
    #[error(
        "the module's {WORLD_SYMBOL} has {found} bytes, this library's has {expected}: it was compiled against other headers"
    )]
    Layout {
        /// Bytes in the module.
        found: usize,
        /// Bytes here.
        expected: usize,
    },
    /// A module of a world of several hosts was compiled for one of one host.
    #[error(
        "the module can't reach PEs of other hosts: compile it by `DeviceWorld::load`, or with the options of \
         `DeviceWorld::options`"
    )]
    NotRouted,
    /// What needs the memory of all PEs mapped, in a world of several hosts.
    #[error(
        "PE {other} is on another host than PE {pe}: {what} needs GPUs that reach each other's memory"
    )]
    OtherHosts {
        /// This PE.
        pe: usize,
        /// One of another host.
        other: usize,
        /// What was wanted.
        what: &'static str,
    },
    /// PEs that are processes share a GPU, which runs one process at a time.
    #[error(
        "PE {pe} and PE {other} are processes that share a GPU: their kernels do not run at once, so \
         they can not wait for one another; use one GPU per process, or PEs that are threads"
    )]
    SharedByProcesses {
        /// This PE.
        pe: usize,
        /// Another one on the same GPU.
        other: usize,
    },
    /// The kernels of all PEs on a GPU do not fit on it at once.
    #[error(
        "the kernels of the {pes} PEs on this GPU need {percent} % of it at once; they wait for one \
         another, so they must fit: take fewer blocks"
    )]
    NotCoResident {
        /// PEs on this GPU.
        pes: usize,
        /// What they need together, in percent of what can be resident.
        percent: u64,
    },
    /// Another PE could not launch.
    #[error("PE {pe} could not launch its kernel, so no PE did")]
    PeerFailed {
        /// The first such PE.
        pe: usize,
    },
    /// The PEs did not bring one team to be destroyed.
    #[error(
        "the PEs do not bring one team of this world to be destroyed: its members bring it, the others none, and the \
         team of all PEs stays"
    )]
    TeamMismatch,
    /// Another PE could not make its part of a device world or team.
    #[error("PE {pe} could not make its part of the device world or team, so no PE has one")]
    PeerNotReady {
        /// The first such PE.
        pe: usize,
    },
    /// NCCL can not be used, or failed.
    #[error(transparent)]
    Nccl(#[from] NcclError),
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// Host memory for the world could not be had.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The PEs did not meet.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// Work before it in the stream does not end.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

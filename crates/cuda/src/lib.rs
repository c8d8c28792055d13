//! GPUs as Crosswarp sees them: found at run time, programmed in CUDA C++ compiled at run time, and
//! launched with every limit checked.
//!
//! Nothing is needed when building, and of the machine only NVIDIA's driver and NVRTC: both are
//! opened when first used. Where one is missing, the error says what to install.
//!
//! - [`Device`]: the GPUs, their properties, the links between them.
//! - [`Source`], [`compile()`], [`Cache`], [`Module`], [`Function`]: from text to a kernel on a GPU.
//!   Arithmetic is compiled without contraction and without flushing, so that it gives the CPU's bits. A [`Bundle`] holds
//!   what was compiled beforehand.
//! - [`Stream`], [`Event`], [`Graph`]: order, time, repetition.
//! - [`Buffer`], [`PinnedBuffer`]: memory, and copies that can not outlive it.
//! - [`Launch`]: grids, blocks, clusters, cooperative grids.
//! - [`DeviceWorld`], [`DeviceHeap`], [`DeviceTeam`]: GPUs as PEs, their symmetric memory, and the verbs
//!   between them from the host, in stream order.
//! - [`kernel_resources`], [`Occupancy`], [`kernel_table`]: what kernels need, without a GPU.
//!
//! # Panics
//! Ranges outside of a buffer and copies between different lengths panic, as slices do. Everything
//! that depends on the machine is an error value.

mod arch;
mod compile;
mod describe;
mod driver;
mod error;
#[doc(hidden)]
pub mod internal;
mod kernels;
mod launch;
mod layout;
mod library;
mod pe;
#[doc(hidden)]
pub mod skip;
#[doc(hidden)]
pub mod sum_layout;

pub use arch::{Arch, ArchError};
pub use bytemuck::Pod;
pub use compile::bundle::{Bundle, BundleError};
pub use compile::cache::Cache;
pub use compile::cubin::{CubinError, KernelResources, cubin_arch, kernel_resources};
pub use compile::kernel_table::{KernelRow, TableError, compile_bundle, kernel_table};
pub use compile::module::{Function, FunctionAttributes, Global, Module, ModuleError};
pub use compile::nvrtc::{Nvrtc, NvrtcError};
pub use compile::occupancy::{ArchLimits, BlockNeeds, LimitedBy, Occupancy};
pub use compile::program::{CompileError, Diagnostic, Options, Severity, compile};
pub use compile::source::{HEADERS, Shape, Source};
pub use crosswarp_shmem::internal::library::find_program;
pub use describe::{Bundled, Compiler, Description, describe};
pub use driver::device::{Device, DeviceProperties, Entered, Link};
pub use driver::error::{CudaError, DriverError};
pub use driver::graph::Graph;
pub use driver::memory::{Buffer, BufferRef, CopyScope, PinnedBuffer};
pub use driver::stream::{Event, Priority, Stream};
pub use error::Error;
pub use kernels::{KERNELS, THREADS};
pub use launch::args::{ByValue, KernelArg, KernelArgs};
pub use launch::{Dim3, Launch, LaunchError, Limit, PreparedLaunch};
pub use layout::{exact_sum_bytes, grid_state_bytes};
pub use library::{Sought, find_library};
pub use pe::collective::DeviceNumber;
pub use pe::error::DeviceWorldError;
pub use pe::heap::{DeviceHeap, DeviceSym, HeapError};
pub use pe::nccl::library::{Nccl, NcclError};
pub use pe::sources::ON_STREAM;
pub use pe::spmd::{Spmd, SpmdError};
pub use pe::team::DeviceTeam;
pub use pe::view::{DeviceMemory, DeviceSymRef};
pub use pe::wait::{KernelLeft, KernelMismatch, KernelTimeout, KernelWait, SyncError, WorkStuck};
pub use pe::world::DeviceWorld;

// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

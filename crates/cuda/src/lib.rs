//! GPUs as Crosswarp sees them: found at run time, programmed in CUDA C++ compiled at run time, and
//! launched with every limit checked.
//!
//! Nothing is needed when building, and of the machine only NVIDIA's driver and NVRTC: both are
//! opened when first used. Where one is missing, the error says what to install.
//!
//! - [`Device`]: the GPUs, their properties, the links between them.
//! - [`Source`], [`compile()`], [`Cache`], [`Module`], [`Function`]: from text to a kernel on a GPU.
//!   Arithmetic is compiled without contraction and without flushing, so that it gives the CPU's bits.
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
mod args;
mod cache;
mod compile;
mod cubin;
mod describe;
mod device;
mod driver;
mod error;
mod graph;
mod heap;
mod kernel_wait;
mod launch;
#[cfg(test)]
mod layout;
mod library;
mod memory;
mod module;
mod nccl;
mod nvrtc;
mod occupancy;
mod on_stream;
mod search;
#[doc(hidden)]
pub mod skip;
mod source;
mod spmd;
mod stream;
mod strided;
mod table;
mod team;
mod trust;
mod view;
mod vmm;
mod world;

pub use arch::{Arch, ArchError};
pub use args::{ByValue, KernelArg, KernelArgs};
pub use bytemuck::Pod;
pub use cache::Cache;
pub use compile::{CompileError, Diagnostic, Options, Severity, compile};
pub use cubin::{CubinError, KernelResources, cubin_arch, kernel_resources};
pub use describe::{Compiler, Description, describe};
pub use device::{Device, DeviceProperties, Link};
pub use error::{CudaError, DriverError, Error};
pub use graph::Graph;
pub use heap::{DeviceHeap, DeviceSym, HeapError};
pub use kernel_wait::{
    KernelLeft, KernelMismatch, KernelTimeout, KernelWait, SyncError, WorkStuck,
};
pub use launch::{Dim3, Launch, LaunchError, Limit, PreparedLaunch};
pub use library::find_library;
pub use memory::{Buffer, BufferRef, CopyScope, PinnedBuffer};
pub use module::{Function, FunctionAttributes, Global, Module, ModuleError};
pub use nccl::{Nccl, NcclError};
pub use nvrtc::{Nvrtc, NvrtcError};
pub use occupancy::{ArchLimits, BlockNeeds, LimitedBy, Occupancy};
pub use on_stream::{DeviceNumber, ON_STREAM};
pub use search::Sought;
pub use source::{HEADERS, KERNELS, Shape, Source, THREADS};
pub use spmd::{Spmd, SpmdError};
pub use stream::{Event, Priority, Stream};
pub use table::{KernelRow, TableError, kernel_table};
pub use team::DeviceTeam;
pub use trust::find_program;
pub use view::{DeviceMemory, DeviceSymRef};
pub use world::{DeviceWorld, DeviceWorldError};

// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

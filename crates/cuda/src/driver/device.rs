//! GPUs: what they are, what they can do, and how they reach one another.
#![allow(unsafe_code)] // Calls into libcuda.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Mutex, OnceLock};

use cudarc::driver::sys::{self, CUdevice_P2PAttribute as P2p, CUdevice_attribute as Attribute};

use crate::arch::Arch;
use crate::driver::error::{CudaError, DriverError};
use crate::driver::libcuda::{self, cu};

/// What a GPU is and can do. Plain data: a description of a GPU that is not there is as good for
/// checking a launch against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceProperties {
    /// The driver's name for it, e.g. `NVIDIA H200`.
    pub name: String,
    /// PCI address, `domain:bus:device.function`.
    pub pci: String,
    /// Compute capability.
    pub arch: Arch,
    /// Device memory, bytes.
    pub memory: usize,
    /// Streaming multiprocessors (SMs).
    pub multiprocessors: u32,
    /// Highest SM clock, kHz.
    pub clock_khz: u32,
    /// Level-2 cache, bytes.
    pub l2: usize,
    /// Lanes of a warp.
    pub warp_size: u32,
    /// Most threads of a block.
    pub max_threads_per_block: u32,
    /// Largest block in x, y and z.
    pub max_block: [u32; 3],
    /// Largest grid in x, y and z.
    pub max_grid: [u32; 3],
    /// Most threads resident on an SM.
    pub max_threads_per_multiprocessor: u32,
    /// Most blocks resident on an SM.
    pub max_blocks_per_multiprocessor: u32,
    /// 32-bit registers of an SM.
    pub registers_per_multiprocessor: u32,
    /// Shared memory of an SM, bytes.
    pub shared_per_multiprocessor: u32,
    /// Most shared memory of a block, static and dynamic together, without opting in; bytes.
    pub shared_per_block: u32,
    /// The same for a function that opts in (which a launch does by itself); bytes.
    pub shared_per_block_optin: u32,
    /// Shared memory the driver takes from each block, bytes.
    pub reserved_shared_per_block: u32,
    /// Whether cooperative launches (grid barriers) work.
    pub cooperative_launch: bool,
    /// Whether launches with clusters work.
    pub cluster_launch: bool,
    /// Whether virtual memory management (reserve, create, map) works.
    pub virtual_memory: bool,
    /// Whether memory can be shared with other processes through file descriptors.
    pub posix_handles: bool,
    /// Whether memory can be shared with other hosts through fabric handles.
    pub fabric_handles: bool,
}

/// How one GPU reaches the memory of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It is the same GPU.
    Same,
    /// NVLink: direct loads, stores and atomics.
    NvLink,
    /// PCIe: direct loads and stores, but no atomics.
    Pcie,
    /// Not at all.
    None,
}

struct Inner {
    ordinal: usize,
    handle: sys::CUdevice,
    properties: DeviceProperties,
    context: OnceLock<Result<Context, CudaError>>,
    /// See `Stream::turn`.
    turns: Mutex<()>,
}

/// A primary context. Retained on first use and never released: at exit the driver may already be
/// unloading, and releasing then is what makes programs crash on their way out.
#[derive(Clone, Copy)]
struct Context(sys::CUcontext);

// SAFETY: a context may be made current in any thread; the driver serialises inside.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

thread_local! {
    /// The context that this thread holds as its current one (see [`Device::hold`]), or null.
    static HELD: Cell<sys::CUcontext> = const { Cell::new(ptr::null_mut()) };
}

/// See [`Device::hold`].
#[must_use]
pub struct Held {
    /// What is to be current again, or null.
    before: sys::CUcontext,
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(ptr::null_mut());
        if !self.before.is_null() {
            // SAFETY: it was current before.
            let _ = unsafe { cu!(cuCtxSetCurrent(self.before)) };
        }
    }
}

/// See [`Device::enter`].
#[must_use]
pub struct Entered(PhantomData<*const ()>);

impl Drop for Entered {
    fn drop(&mut self) {
        HELD.set(ptr::null_mut());
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle; this thread has pushed a context, and what was bound since has taken its place.
        let _ = unsafe { cu!(cuCtxPopCurrent_v2(&mut context)) };
    }
}

/// A GPU of this machine, by its number in the driver's order.
///
/// A small handle: copy it freely. Its primary context (shared with other CUDA libraries of the
/// process) is created by the first operation that needs it.
///
/// ```
/// use crosswarp_cuda::Device;
/// match Device::all() {
///     Ok(devices) => for device in devices {
///         println!("GPU {}: {}", device.ordinal(), device.properties().name);
///     },
///     Err(reason) => println!("no GPU: {reason}"),
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Device(&'static Inner);

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({}, {})", self.0.ordinal, self.0.properties.name)
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.0.ordinal == other.0.ordinal
    }
}

impl Eq for Device {}

fn table() -> Result<&'static [Inner], DriverError> {
    static TABLE: OnceLock<Result<Vec<Inner>, DriverError>> = OnceLock::new();
    TABLE
        .get_or_init(read_table)
        .as_deref()
        .map_err(DriverError::clone)
}

fn read_table() -> Result<Vec<Inner>, DriverError> {
    libcuda::version()?;
    let mut count = 0;
    // SAFETY: writes one integer; the driver is initialised.
    unsafe { cu!(cuDeviceGetCount(&mut count)) }?;
    if count == 0 {
        return Err(DriverError::NoDevice {
            visible: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
        });
    }
    (0..count)
        .map(|ordinal| {
            let mut handle = 0;
            // SAFETY: writes one integer; `ordinal` is below the count.
            unsafe { cu!(cuDeviceGet(&mut handle, ordinal)) }?;
            Ok(Inner {
                ordinal: ordinal as usize,
                handle,
                properties: read_properties(handle)?,
                context: OnceLock::new(),
                turns: Mutex::new(()),
            })
        })
        .collect()
}

fn read_properties(handle: sys::CUdevice) -> Result<DeviceProperties, CudaError> {
    use Attribute::*;
    let get = |attribute: Attribute| -> Result<u32, CudaError> {
        let mut value: c_int = 0;
        // SAFETY: writes one integer; `handle` is a device of the driver.
        unsafe { cu!(cuDeviceGetAttribute(&mut value, attribute, handle)) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let mut name = [0; 256];
    let mut pci = [0; 32];
    let mut memory = 0;
    // SAFETY: the driver writes at most the given number of bytes, the strings end with a zero.
    let (name, pci) = unsafe {
        cu!(cuDeviceGetName(
            name.as_mut_ptr(),
            name.len() as c_int,
            handle
        ))?;
        cu!(cuDeviceGetPCIBusId(
            pci.as_mut_ptr(),
            pci.len() as c_int,
            handle
        ))?;
        cu!(cuDeviceTotalMem_v2(&mut memory, handle))?;
        (CStr::from_ptr(name.as_ptr()), CStr::from_ptr(pci.as_ptr()))
    };
    Ok(DeviceProperties {
        name: name.to_string_lossy().into_owned(),
        pci: pci.to_string_lossy().into_owned(),
        arch: Arch::new(
            get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        memory,
        multiprocessors: get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        l2: get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        warp_size: get(CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        max_threads_per_block: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_block: [
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        max_grid: [
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        max_threads_per_multiprocessor: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        max_blocks_per_multiprocessor: get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        registers_per_multiprocessor: get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        shared_per_multiprocessor: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        shared_per_block: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_per_block_optin: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        reserved_shared_per_block: get(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        cooperative_launch: get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
        cluster_launch: get(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0,
        virtual_memory: get(Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)?
            != 0,
        posix_handles: get(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)? != 0,
        fabric_handles: get(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)? != 0,
    })
}

impl Device {
    /// How many GPUs the driver shows; at least 1.
    ///
    /// Errors: [`DriverError`] says why there is none.
    pub fn count() -> Result<usize, DriverError> {
        Ok(table()?.len())
    }

    /// The GPU of number `ordinal`, from 0.
    pub fn get(ordinal: usize) -> Result<Self, DriverError> {
        let table = table()?;
        let count = table.len();
        table
            .get(ordinal)
            .map(Self)
            .ok_or(DriverError::NoSuchDevice { ordinal, count })
    }

    /// Every GPU, in order.
    pub fn all() -> Result<Vec<Self>, DriverError> {
        Ok(table()?.iter().map(Self).collect())
    }

    /// The GPU whose memory begins at, or has, `address`: memory of any library of this process.
    ///
    /// Errors: [`DriverError::Failed`] for an address that is no memory of a GPU.
    pub fn of_address(address: sys::CUdeviceptr) -> Result<Self, DriverError> {
        table()?;
        let mut ordinal: c_int = 0;
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: writes one integer; an address of nothing is an error of the call.
        unsafe {
            cu!(cuPointerGetAttribute(
                (&raw mut ordinal).cast(),
                attribute,
                address
            ))
        }?;
        Self::get(ordinal.unsigned_abs() as usize)
    }

    /// The GPU whose context is the calling thread's current one, if there is one.
    pub fn current() -> Result<Option<Self>, DriverError> {
        let mut context = ptr::null_mut();
        table()?;
        // SAFETY: writes one handle.
        unsafe { cu!(cuCtxGetCurrent(&mut context)) }?;
        if context.is_null() {
            return Ok(None);
        }
        let mut handle = 0;
        // SAFETY: writes one integer; a context is current.
        unsafe { cu!(cuCtxGetDevice(&mut handle)) }?;
        Self::of_handle(handle).map(Some)
    }

    /// The GPU of a stream that another library of this process has made.
    ///
    /// # Safety
    /// `stream` is a stream, and none of the driver's default ones, which are of every GPU.
    pub unsafe fn of_stream(stream: sys::CUstream) -> Result<Self, DriverError> {
        table()?;
        let mut handle = 0;
        // SAFETY: writes one integer; a stream by the caller's promise.
        unsafe { cu!(cuStreamGetDevice(stream, &mut handle)) }?;
        Self::of_handle(handle)
    }

    fn of_handle(handle: sys::CUdevice) -> Result<Self, DriverError> {
        let all = table()?;
        let found = all.iter().find(|inner| inner.handle == handle);
        found.map(Self).ok_or(DriverError::NoSuchDevice {
            ordinal: handle.unsigned_abs() as usize,
            count: all.len(),
        })
    }

    /// The driver's CUDA version as (major, minor).
    pub fn driver_version() -> Result<(u32, u32), DriverError> {
        let version = libcuda::version()?.unsigned_abs();
        Ok((version / 1000, version % 1000 / 10))
    }

    /// Its number in the driver's order.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    pub(crate) fn turns(&self) -> &'static Mutex<()> {
        &self.0.turns
    }

    /// What it is and can do.
    pub fn properties(&self) -> &'static DeviceProperties {
        &self.0.properties
    }

    /// Its compute capability.
    pub fn arch(&self) -> Arch {
        self.0.properties.arch
    }

    /// The driver's handle.
    pub fn handle(&self) -> sys::CUdevice {
        self.0.handle
    }

    /// Makes this GPU's primary context the calling thread's current one, creating it first if this
    /// is its first use. Every operation of this crate does so by itself; call it before driver
    /// functions of your own.
    pub fn bind(&self) -> Result<(), CudaError> {
        let context = self.context()?;
        if HELD.get() == context.0 {
            return Ok(());
        }
        HELD.set(ptr::null_mut());
        // SAFETY: the context is retained for the life of the process.
        unsafe { cu!(cuCtxSetCurrent(context.0)) }
    }

    /// As [`bind`](Self::bind), and until the result is dropped it is known that the context is current, so what this
    /// crate does in between does not ask the driver for it again; then the context is current that was before, if any was.
    /// For calls that a program makes thousands of in a row. In between only functions of this crate change the context.
    #[doc(hidden)]
    pub fn hold(&self) -> Result<Held, CudaError> {
        let context = self.context()?.0;
        let mut before = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { cu!(cuCtxGetCurrent(&mut before)) }?;
        if before == context {
            before = ptr::null_mut();
        } else {
            // SAFETY: as in `bind`.
            unsafe { cu!(cuCtxSetCurrent(context)) }?;
        }
        HELD.set(context);
        Ok(Held { before })
    }

    /// As [`bind`](Self::bind), until the result is dropped: then the context is current that was before. For threads
    /// that other CUDA libraries use, which may rely on theirs.
    pub fn enter(&self) -> Result<Entered, CudaError> {
        let context = self.context()?;
        HELD.set(ptr::null_mut());
        // SAFETY: as above.
        unsafe { cu!(cuCtxPushCurrent_v2(context.0)) }?;
        Ok(Entered(PhantomData))
    }

    fn context(&self) -> Result<Context, CudaError> {
        let context = self.0.context.get_or_init(|| {
            let mut context = ptr::null_mut();
            // SAFETY: writes one handle; the device is valid and the driver initialised, since
            // `self` exists.
            unsafe { cu!(cuDevicePrimaryCtxRetain(&mut context, self.0.handle)) }?;
            Ok(Context(context))
        });
        context.clone()
    }

    /// Waits until all work given to this GPU by this process has ended.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.bind()?;
        // SAFETY: a context is current.
        unsafe { cu!(cuCtxSynchronize()) }
    }

    /// Device memory that is free now, bytes.
    pub fn free_memory(&self) -> Result<usize, CudaError> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers; a context is current.
        unsafe { cu!(cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok(free)
    }

    /// How this GPU reaches the memory of `peer`.
    ///
    /// NVLink is told from PCIe by native atomics over the link, which between GPUs only NVLink has.
    pub fn link(&self, peer: &Device) -> Result<Link, CudaError> {
        if self == peer {
            return Ok(Link::Same);
        }
        let attribute = |attribute: P2p| -> Result<c_int, CudaError> {
            let mut value = 0;
            // SAFETY: writes one integer; both devices are valid and differ.
            unsafe {
                cu!(cuDeviceGetP2PAttribute(
                    &mut value,
                    attribute,
                    self.0.handle,
                    peer.0.handle
                ))
            }?;
            Ok(value)
        };
        if attribute(P2p::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)? == 0 {
            return Ok(Link::None);
        }
        let atomics = attribute(P2p::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? != 0;
        Ok(if atomics { Link::NvLink } else { Link::Pcie })
    }

    /// Lets kernels and copies of this GPU access ordinary allocations of `peer` (memory mapped
    /// through virtual memory management has its own access rights). Doing it twice is no error.
    pub fn enable_peer_access(&self, peer: &Device) -> Result<(), CudaError> {
        if self == peer {
            return Ok(());
        }
        peer.bind()?;
        self.bind()?;
        let Some(Ok(context)) = peer.0.context.get() else {
            return Ok(());
        };
        // SAFETY: this GPU's context is current, the peer's is retained for good.
        match unsafe { cu!(cuCtxEnablePeerAccess(context.0, 0)) } {
            Err(error)
                if error.code == sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED as i32 =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

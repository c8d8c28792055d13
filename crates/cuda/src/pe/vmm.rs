//! Virtual memory management: address ranges, physical chunks, and mapping one into the other.
//!
//! Nothing here decides; `heap` does. What is mapped where, and that nobody uses an address after it
//! was unmapped, is the caller's to know, as these are addresses and not references.
#![allow(unsafe_code)] // Calls into libcuda.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use cudarc::driver::sys::{
    self, CUmemAccess_flags, CUmemAllocationGranularity_flags, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocationType,
};

use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;

/// Physical memory of `device` that can be handed to other processes as a file descriptor.
fn properties(device: &Device) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        location: location(device),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn location(device: &Device) -> sys::CUmemLocation {
    sys::CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device.handle(),
    }
}

/// The unit of physical chunks and of mappings on `device`, bytes.
pub(crate) fn granularity(device: &Device) -> Result<usize, CudaError> {
    device.bind()?;
    let mut granularity = 0;
    let flags = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: writes one integer; the properties are fully initialised.
    unsafe {
        cu!(cuMemGetAllocationGranularity(
            &mut granularity,
            &properties(device),
            flags
        ))
    }?;
    Ok(granularity)
}

/// A range of device addresses with nothing behind them yet; given back on drop.
#[derive(Debug)]
pub(crate) struct Range {
    base: u64,
    bytes: usize,
}

impl Range {
    /// Reserves `bytes` (a multiple of the granularity).
    pub(crate) fn reserve(device: &Device, bytes: usize) -> Result<Self, CudaError> {
        device.bind()?;
        let mut base = 0;
        // SAFETY: writes one address; takes only unused address space.
        unsafe { cu!(cuMemAddressReserve(&mut base, bytes, 0, 0, 0)) }?;
        Ok(Self { base, bytes })
    }

    /// The first address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Maps `chunk` at `offset` and lets `device` read and write it. The caller keeps offsets whole
    /// multiples of the granularity, inside the range, and used once.
    pub(crate) fn map(
        &self,
        offset: usize,
        chunk: &Chunk,
        device: &Device,
    ) -> Result<(), CudaError> {
        debug_assert!(
            offset
                .checked_add(chunk.bytes)
                .is_some_and(|end| end <= self.bytes)
        );
        let at = self.base + offset as u64;
        let access = sys::CUmemAccessDesc {
            location: location(device),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the addresses are reserved and unmapped (see above), the handle is alive; the
        // mapping keeps the physical memory alive by itself.
        unsafe {
            cu!(cuMemMap(at, chunk.bytes, 0, chunk.handle, 0))?;
            let granted = cu!(cuMemSetAccess(at, chunk.bytes, &access, 1));
            if granted.is_err() {
                // Leave nothing half-done; the first error is the one to report.
                let _ = cu!(cuMemUnmap(at, chunk.bytes));
            }
            granted
        }
    }

    /// Unmaps what `map` mapped. No work of the device may use it any more.
    pub(crate) fn unmap(&self, offset: usize, bytes: usize) -> Result<(), CudaError> {
        // SAFETY: the caller mapped exactly this, and has waited for the device.
        unsafe { cu!(cuMemUnmap(self.base + offset as u64, bytes)) }
    }
}

impl Range {
    /// Leaves the addresses, and what is mapped there, to work that may still use them.
    pub(crate) fn leak(&mut self) {
        self.bytes = 0;
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        // SAFETY: reserved by `reserve`, freed only here; `heap` unmaps before it drops the range.
        // A failure leaks addresses, nothing else.
        let _ = unsafe { cu!(cuMemAddressFree(self.base, self.bytes)) };
    }
}

/// Memory of the program's that other PEs can not map.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotShareable {
    /// It was not made by mapping.
    #[error("it is not mapped by cuMemMap ({0})")]
    NotMapped(CudaError),
    /// It is not the beginning of one allocation, or more than that.
    #[error(
        "it has to be one allocation of cuMemCreate from its beginning, and is in {size} bytes at {base:#x}"
    )]
    Part {
        /// Where the allocation begins.
        base: u64,
        /// Its size.
        size: usize,
    },
    /// It can not be handed to other processes.
    #[error(
        "it was made without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, so other PEs can not map it"
    )]
    NoFile,
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// Physical device memory, of this process or imported; released on drop (mappings keep it alive).
#[derive(Debug)]
pub(crate) struct Chunk {
    handle: sys::CUmemGenericAllocationHandle,
    bytes: usize,
}

impl Chunk {
    /// Takes `bytes` (a multiple of the granularity) of `device`'s memory.
    pub(crate) fn create(device: &Device, bytes: usize) -> Result<Self, CudaError> {
        device.bind()?;
        let mut handle = 0;
        // SAFETY: writes one handle; the properties are fully initialised.
        unsafe { cu!(cuMemCreate(&mut handle, bytes, &properties(device), 0)) }?;
        Ok(Self { handle, bytes })
    }

    /// The memory that the program has mapped at `address`, `bytes` of it.
    pub(crate) fn of_mapping(
        device: &Device,
        address: u64,
        bytes: usize,
    ) -> Result<Self, NotShareable> {
        device.bind()?;
        let (mut base, mut size) = (0, 0);
        // SAFETY: writes an address and a size; an address that is none of the driver's is an error.
        unsafe { cu!(cuMemGetAddressRange_v2(&mut base, &mut size, address)) }?;
        if base != address || size < bytes {
            return Err(NotShareable::Part { base, size });
        }
        let mut handle = 0;
        let at = address as usize as *mut std::ffi::c_void;
        // SAFETY: writes a handle, which is ours to release; an address that was not mapped is an error.
        unsafe { cu!(cuMemRetainAllocationHandle(&mut handle, at)) }
            .map_err(NotShareable::NotMapped)?;
        let chunk = Self { handle, bytes };
        let mut properties = std::mem::MaybeUninit::<sys::CUmemAllocationProp>::zeroed();
        // SAFETY: writes the structure, of which one field is read, a number: others may hold what the bindings' types
        // have no value for.
        let kinds = unsafe {
            let properties = properties.as_mut_ptr();
            cu!(cuMemGetAllocationPropertiesFromHandle(properties, handle))?;
            (&raw const (*properties).requestedHandleTypes).read()
        };
        let file = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        match kinds.0 & file.0 {
            0 => Err(NotShareable::NoFile),
            _ => Ok(chunk),
        }
    }

    /// A file descriptor that stands for the memory.
    pub(crate) fn export(&self) -> Result<OwnedFd, CudaError> {
        let mut fd = -1;
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        // SAFETY: for this kind of handle the driver writes one `int`, a new descriptor that is ours.
        unsafe {
            cu!(cuMemExportToShareableHandle(
                (&raw mut fd).cast(),
                self.handle,
                kind,
                0
            ))?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }

    /// The memory behind a descriptor that another PE exported; `bytes` as it was created.
    pub(crate) fn import(
        device: &Device,
        fd: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<Self, CudaError> {
        device.bind()?;
        let mut handle = 0;
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let number = fd.as_raw_fd() as usize as *mut std::ffi::c_void;
        // SAFETY: for this kind the driver takes the descriptor's number in place of a pointer and
        // does not keep the descriptor.
        unsafe { cu!(cuMemImportFromShareableHandle(&mut handle, number, kind)) }?;
        Ok(Self { handle, bytes })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: created or imported above, released only here.
        let _ = unsafe { cu!(cuMemRelease(self.handle)) };
    }
}

//! Compiled code on a GPU, and what can be looked up in it.
#![allow(unsafe_code)] // Calls into libcuda.

use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute};

use crate::arch::Arch;
use crate::compile::bundle::Bundle;
use crate::compile::cache::Cache;
use crate::compile::cubin::{CubinError, kernel_resources};
use crate::compile::kernel_table::{TableError, compile_all};
use crate::compile::program::{CompileError, Options};
use crate::compile::source::Source;
use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;

/// Why a module could not be compiled or loaded, or a name not found in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// Its source does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The bytes are no cubin.
    #[error(transparent)]
    Cubin(#[from] CubinError),
    /// The cubin is for another architecture.
    #[error("the cubin does not run on {device} ({arch}): {source}")]
    WrongArch {
        /// The GPU's name.
        device: String,
        /// Its architecture.
        arch: Arch,
        /// What the driver said.
        source: CudaError,
    },
    /// No kernel of that name.
    #[error("the module has no kernel '{name}'; it has: {}", if kernels.is_empty() { "none".into() } else { kernels.join(", ") })]
    NoKernel {
        /// The name asked for.
        name: String,
        /// The kernels there are (`extern "C"` ones by their names, others by their mangled names).
        kernels: Vec<String>,
    },
    /// No variable of that name.
    #[error("the module has no global variable '{name}' (extern \"C\" __device__ or __constant__)")]
    NoGlobal {
        /// The name asked for.
        name: String,
    },
    /// Another failure of the driver.
    #[error(transparent)]
    Failed(#[from] CudaError),
}

struct Inner {
    device: Device,
    handle: sys::CUmodule,
    kernels: Vec<String>,
    /// How many parameters each of `kernels` has. Drivers before CUDA 13.2 can not be asked.
    parameters: Vec<u32>,
}

// SAFETY: the driver lets any thread use a module; the handle is never changed after creation.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: loaded once, unloaded once, by the last owner. Kernels still running are
            // excluded by the contract of every launch.
            let _ = unsafe { cu!(cuModuleUnload(self.handle)) };
        }
    }
}

/// Code loaded into a GPU. A clone is another handle of the same module; it is unloaded when the
/// last handle, including every [`Function`] of it, is gone.
///
/// ```
/// use crosswarp_cuda::{Device, Error, Module, Source};
/// fn main() -> Result<(), Error> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let source = Source::new("k.cu", r#"extern "C" __global__ void k(float* out) { *out = 1; }"#);
///     let module = Module::compile(&device, &source)?;
///     let kernel = module.function("k")?;
///     println!("{} registers", kernel.attributes().registers);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Module(Arc<Inner>);

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Module({:?}, {})",
            self.0.device,
            self.0.kernels.join(", ")
        )
    }
}

/// A global variable of a module, in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Global {
    /// Its device address, valid as long as the module is loaded.
    pub address: sys::CUdeviceptr,
    /// Its size, bytes.
    pub size: usize,
}

impl Module {
    /// Compiles `source` for `device` (or takes the user's cache's copy) and loads it.
    pub fn compile(device: &Device, source: &Source<'_>) -> Result<Self, ModuleError> {
        Self::compile_with(device, source, &Options::new())
    }

    /// The same with options.
    pub fn compile_with(
        device: &Device,
        source: &Source<'_>,
        options: &Options,
    ) -> Result<Self, ModuleError> {
        let cubin = Cache::of_user().compile(source, device.arch(), options)?;
        Self::load(device, &cubin)
    }

    /// The same for several sources: what is to be compiled is compiled side by side.
    pub(crate) fn compile_all(
        device: &Device,
        sources: &[Source<'_>],
        options: &Options,
    ) -> Result<Vec<Self>, ModuleError> {
        let units: Vec<_> = sources
            .iter()
            .map(|&source| (source, options.clone()))
            .collect();
        let cubins = compile_all(&Cache::of_user(), &units, &[device.arch()], &|_, _| ());
        let cubins = cubins.map_err(|error| match error {
            TableError::Compile { error, .. } => ModuleError::from(error),
            TableError::Cubin { error, .. } => error.into(),
        })?;
        cubins
            .iter()
            .map(|cubin| Self::load(device, cubin))
            .collect()
    }

    /// Loads a cubin.
    pub fn load(device: &Device, cubin: &[u8]) -> Result<Self, ModuleError> {
        // The driver reads as far as the cubin's own header says, so a truncated one is refused here.
        let (kernels, parameters) = kernel_resources(cubin)?
            .into_iter()
            .map(|kernel| (kernel.name, kernel.parameters))
            .unzip();
        device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the bytes are a whole ELF file for CUDA, whose sections were found to lie inside.
        match unsafe { cu!(cuModuleLoadData(&mut handle, cubin.as_ptr().cast())) } {
            Ok(()) => Ok(Self(Arc::new(Inner {
                device: *device,
                handle,
                kernels,
                parameters,
            }))),
            Err(source) if source.code == sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU as i32 => {
                let properties = device.properties();
                Err(ModuleError::WrongArch {
                    device: properties.name.clone(),
                    arch: properties.arch,
                    source,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The GPU it is loaded into.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The names of its kernels, sorted.
    pub fn kernels(&self) -> &[String] {
        &self.0.kernels
    }

    /// The kernel of that name.
    pub fn function(&self, name: &str) -> Result<Function, ModuleError> {
        let missing = || ModuleError::NoKernel {
            name: name.into(),
            kernels: self.0.kernels.clone(),
        };
        let c_name = CString::new(name).map_err(|_| missing())?;
        self.0.device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle; the module is loaded and the name ends with a zero.
        match unsafe {
            cu!(cuModuleGetFunction(
                &mut handle,
                self.0.handle,
                c_name.as_ptr()
            ))
        } {
            Err(error) if not_found(&error) => return Err(missing()),
            other => other?,
        }
        let kernel = self.0.kernels.binary_search_by(|k| k.as_str().cmp(name));
        // Code that is called and not launched is no kernel to the driver, either.
        let parameters = self.0.parameters[kernel.map_err(|_| missing())?];
        Ok(Function {
            attributes: read_attributes(handle)?,
            parameters: read_parameters(handle, parameters)?,
            handle,
            name: name.into(),
            module: self.clone(),
        })
    }

    /// The `extern "C"` global variable of that name, of the `__device__` or `__constant__` kind.
    pub fn global(&self, name: &str) -> Result<Global, ModuleError> {
        let missing = || ModuleError::NoGlobal { name: name.into() };
        let c_name = CString::new(name).map_err(|_| missing())?;
        self.0.device.bind()?;
        let mut global = Global {
            address: 0,
            size: 0,
        };
        // SAFETY: writes two integers; the module is loaded and the name ends with a zero.
        let found = unsafe {
            cu!(cuModuleGetGlobal_v2(
                &mut global.address,
                &mut global.size,
                self.0.handle,
                c_name.as_ptr()
            ))
        };
        match found {
            Err(error) if not_found(&error) => Err(missing()),
            other => Ok(other.map(|()| global)?),
        }
    }
}

/// Compiles `sources` side by side and leaves the code in the user's cache, from which [`Module::compile`] takes it. Does
/// nothing where there is no cache that keeps it, or where the program came with the code; what fails is told when a module
/// is asked for.
pub fn compile_together(device: &Device, sources: &[Source<'_>]) {
    let cache = Cache::of_user();
    let bundled = Bundle::of_program().is_some_and(|bundle| bundle.serves(device.arch()));
    if bundled || !cache.keeps() {
        return;
    }
    let units: Vec<_> = sources
        .iter()
        .map(|&source| (source, Options::new()))
        .collect();
    let _ = compile_all(&cache, &units, &[device.arch()], &|_, _| ());
}

fn not_found(error: &CudaError) -> bool {
    error.code == sys::CUresult::CUDA_ERROR_NOT_FOUND as i32
}

/// What a kernel needs and allows, as the driver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Most threads of a block, from its registers and launch bounds.
    pub max_threads: u32,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, bytes.
    pub static_shared: u32,
    /// Dynamic shared memory a block may have without opting in, bytes.
    pub dynamic_shared: u32,
    /// Local memory of a thread, bytes.
    pub local: u32,
    /// Constant memory, bytes.
    pub constant: u32,
}

/// A kernel of a loaded module. Keeps the module loaded.
#[derive(Clone)]
pub struct Function {
    module: Module,
    handle: sys::CUfunction,
    name: Arc<str>,
    attributes: FunctionAttributes,
    parameters: Arc<[usize]>,
}

// SAFETY: the driver lets any thread use a function; the handle is never changed after creation.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({}, {:?})", self.name, self.module.0.device)
    }
}

impl Function {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The GPU it is loaded into.
    pub fn device(&self) -> &Device {
        self.module.device()
    }

    /// The module it is of.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// What it needs and allows.
    pub fn attributes(&self) -> &FunctionAttributes {
        &self.attributes
    }

    /// The sizes of its parameters in bytes, in order.
    pub fn parameters(&self) -> &[usize] {
        &self.parameters
    }

    /// The driver's handle, valid as long as the module is loaded.
    pub fn handle(&self) -> sys::CUfunction {
        self.handle
    }

    /// How many of its blocks fit on one SM, by the driver's reckoning, with `threads` threads and
    /// `dynamic_shared` bytes each.
    pub fn blocks_per_multiprocessor(
        &self,
        threads: u32,
        dynamic_shared: u32,
    ) -> Result<u32, CudaError> {
        self.device().bind()?;
        self.opt_in(dynamic_shared)?;
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: writes one integer; the function is loaded.
        unsafe {
            cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.handle,
                threads,
                dynamic_shared as usize
            ))
        }?;
        Ok(blocks.unsigned_abs())
    }

    /// Lets its blocks have all the shared memory the GPU can give, if `dynamic_shared` bytes are
    /// more than they may have without. Always to the same limit, so that threads that do so at the
    /// same time do not undo each other's.
    pub(crate) fn opt_in(&self, dynamic_shared: u32) -> Result<(), CudaError> {
        if dynamic_shared <= self.attributes.dynamic_shared {
            return Ok(());
        }
        let most = self
            .device()
            .properties()
            .shared_per_block_optin
            .saturating_sub(self.attributes.static_shared);
        self.set_attribute(
            Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            most,
        )
    }

    /// Lets clusters be larger than the size that works on every GPU with clusters.
    pub(crate) fn allow_large_clusters(&self) -> Result<(), CudaError> {
        self.set_attribute(
            Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
            1,
        )
    }

    fn set_attribute(&self, attribute: Attribute, value: u32) -> Result<(), CudaError> {
        self.device().bind()?;
        // SAFETY: the function is loaded; a value it can not have is an error of the call.
        unsafe { cu!(cuFuncSetAttribute(self.handle, attribute, value as c_int)) }
    }
}

fn read_attributes(handle: sys::CUfunction) -> Result<FunctionAttributes, CudaError> {
    use Attribute::*;
    let get = |attribute: Attribute| -> Result<u32, CudaError> {
        let mut value = 0;
        // SAFETY: writes one integer; the function is loaded.
        unsafe { cu!(cuFuncGetAttribute(&mut value, attribute, handle)) }?;
        Ok(value.unsigned_abs())
    };
    Ok(FunctionAttributes {
        max_threads: get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        registers: get(CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        static_shared: get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        dynamic_shared: get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        local: get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        constant: get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
    })
}

/// The sizes of `count` parameters.
fn read_parameters(handle: sys::CUfunction, count: u32) -> Result<Arc<[usize]>, CudaError> {
    let size = |index: u32| {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: writes two integers; the function is loaded.
        unsafe {
            cu!(cuFuncGetParamInfo(
                handle,
                index as usize,
                &mut offset,
                &mut size
            ))
        }?;
        Ok(size)
    };
    (0..count).map(size).collect()
}

//! Kernels of users: compiled with the device headers, launched on arrays.

use std::ffi::c_void;
use std::str::FromStr;

use crosswarp::cuda::{
    Arch, Cache, KernelArgs, KernelResources, Launch, Module, Options, Source, kernel_resources,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::Failure;
use crate::gpu::queue::{Gpu, OnGpu, Place, gpu, prepare};
use crate::run::guarded;

/// Compiles for `arch`, or without it for GPU `ordinal`, and returns a cubin with the architecture's name. Files are
/// (name, text) pairs that the source includes.
#[pyfunction]
fn compile_kernel<'py>(
    py: Python<'py>,
    name: String,
    text: String,
    headers: Vec<(String, String)>,
    defines: Vec<(String, String)>,
    arch: Option<&str>,
    ordinal: usize,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    guarded(move || {
        let arch = match arch {
            Some(arch) => {
                Arch::from_str(arch).map_err(|error| Failure::Input(error.to_string()))?
            }
            None => gpu(ordinal)?.device.arch(),
        };
        let cubin = prepare(py, move || {
            let headers: Vec<_> = headers.iter().map(|(a, b)| (&a[..], &b[..])).collect();
            let source = Source::new(&name, &text).with_headers(&headers);
            let options = defines
                .iter()
                .fold(Options::new(), |options, (name, value)| {
                    options.define(name, value)
                });
            Ok(Cache::of_user().compile(&source, arch, &options)?)
        })?;
        Ok((PyBytes::new(py, &cubin), arch.to_string()))
    })
}

/// What each kernel of a cubin needs.
#[pyfunction]
fn cubin_resources<'py>(py: Python<'py>, cubin: &[u8]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    guarded(move || {
        let found = kernel_resources(cubin).map_err(|error| Failure::Input(error.to_string()))?;
        let said = |kernel: KernelResources| {
            let dict = PyDict::new(py);
            dict.set_item("name", kernel.name)?;
            dict.set_item("registers", kernel.registers)?;
            dict.set_item("shared", kernel.static_shared)?;
            dict.set_item("local", kernel.local)?;
            dict.set_item("constant", kernel.constant)?;
            dict.set_item("max_threads", kernel.max_threads)?;
            dict.set_item("parameters", kernel.parameters)?;
            Ok(dict)
        };
        found.into_iter().map(said).collect()
    })
}

/// Code loaded into a GPU.
#[pyclass(frozen, module = "crosswarp._native")]
struct Loaded {
    gpu: &'static Gpu,
    /// Kernels of it may still run when it is let go.
    module: OnGpu<Module>,
}

/// The bytes of a launch's arguments.
struct Bytes<'a>(&'a [Vec<u8>]);

impl KernelArgs for Bytes<'_> {
    fn with<R>(&self, launch: impl FnOnce(&mut [*mut c_void], &[usize]) -> R) -> R {
        // The driver reads an argument as its type, whose alignment is 16 bytes at most.
        let mut places: Vec<Vec<u128>> = Vec::with_capacity(self.0.len());
        for bytes in self.0 {
            let mut place = vec![0; bytes.len().div_ceil(size_of::<u128>()).max(1)];
            bytemuck::cast_slice_mut(&mut place)[..bytes.len()].copy_from_slice(bytes);
            places.push(place);
        }
        let mut pointers: Vec<_> = places
            .iter_mut()
            .map(|place| place.as_mut_ptr().cast())
            .collect();
        let sizes: Vec<_> = self.0.iter().map(Vec::len).collect();
        launch(&mut pointers, &sizes)
    }
}

#[pymethods]
impl Loaded {
    #[new]
    fn new(ordinal: usize, cubin: &[u8]) -> Result<Loaded, Failure> {
        guarded(move || {
            let gpu = gpu(ordinal)?;
            let _entered = gpu.device.enter()?;
            Ok(Loaded {
                gpu,
                module: OnGpu::new(gpu.device, Module::load(&gpu.device, cubin)?),
            })
        })
    }

    /// The sizes of a kernel's parameters, bytes.
    fn parameters(&self, name: &str) -> Result<Vec<usize>, Failure> {
        guarded(move || {
            let _entered = self.gpu.device.enter()?;
            Ok(self.function(name)?.parameters().to_vec())
        })
    }

    /// Gives a launch to the stream.
    #[allow(clippy::too_many_arguments)] // Numbers of one call from Python.
    fn launch(
        &self,
        py: Python<'_>,
        place: Place,
        name: &str,
        grid: (u32, u32, u32),
        block: (u32, u32, u32),
        cluster: Option<(u32, u32, u32)>,
        shared: u32,
        cooperative: bool,
        arguments: Vec<Vec<u8>>,
    ) -> PyResult<()> {
        guarded(move || {
            let gpu = place.gpu()?;
            let work = || {
                place.with(gpu, |stream| {
                    let function = self.function(name)?;
                    let mut launch = Launch::new(&function)
                        .grid(grid)
                        .block(block)
                        .shared(shared);
                    if let Some(cluster) = cluster {
                        launch = launch.cluster(cluster);
                    }
                    if cooperative {
                        launch = launch.cooperative();
                    }
                    // SAFETY: the number and the sizes of the arguments are checked. That they are of the parameters' types,
                    // and that the kernel stays within its arrays, is the user's promise, as `Kernel` says; arrays are kept by
                    // rule 2, and the module until the GPU has done its work (`OnGpu`).
                    unsafe { launch.launch(stream, Bytes(&arguments)) }.map_err(as_input)
                })
            };
            Ok(py.detach(work)?)
        })
    }
}

/// Launches that are refused before the GPU is asked are the caller's mistakes.
fn as_input(error: crosswarp::cuda::LaunchError) -> Failure {
    match error {
        error @ crosswarp::cuda::LaunchError::Failed { .. } => error.into(),
        error => Failure::Input(error.to_string()),
    }
}

impl Loaded {
    fn function(&self, name: &str) -> Result<crosswarp::cuda::Function, Failure> {
        self.module
            .function(name)
            .map_err(|error| Failure::Input(error.to_string()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Loaded>()?;
    let headers: Vec<_> = crosswarp::cuda::HEADERS
        .iter()
        .map(|(name, _)| *name)
        .collect();
    module.add("HEADERS", headers)?;
    module.add_function(wrap_pyfunction!(compile_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(cubin_resources, module)?)
}

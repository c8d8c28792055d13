//! Launches: built, checked against every limit, then given to a stream.
#![allow(unsafe_code)] // Calls into libcuda.

use std::ptr;

use cudarc::driver::sys;

use crate::arch::Arch;
use crate::compile::module::Function;
use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;
use crate::driver::stream::Stream;
use crate::launch::args::KernelArgs;

pub(crate) mod args;
pub(crate) mod limits;

pub use limits::{Dim3, Limit};
use limits::{Refusal, Shape, check};

/// Why a kernel was not launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A limit is passed.
    #[error("launch of {kernel}: {value} {limit}, the limit is {most}")]
    Limit {
        /// The kernel.
        kernel: String,
        /// Which limit.
        limit: Limit,
        /// What was asked for.
        value: u64,
        /// What there is.
        most: u64,
    },
    /// A size of grid, block or cluster is 0.
    #[error("launch of {kernel}: a size of the {what} is 0")]
    Empty {
        /// The kernel.
        kernel: String,
        /// `grid`, `block` or `cluster`.
        what: &'static str,
    },
    /// The grid is no whole number of clusters.
    #[error("launch of {kernel}: {grid} blocks of the grid are no multiple of {cluster} blocks of a cluster in {}", ["x", "y", "z"][*axis])]
    Uneven {
        /// The kernel.
        kernel: String,
        /// 0 to 2.
        axis: usize,
        /// Blocks of the grid along the axis.
        grid: u32,
        /// Blocks of a cluster along the axis.
        cluster: u32,
    },
    /// The GPU has no such launches.
    #[error("launch of {kernel}: {device} has no {what}")]
    Unsupported {
        /// The kernel.
        kernel: String,
        /// The GPU's name.
        device: String,
        /// `clusters` or `cooperative launches`.
        what: &'static str,
    },
    /// The arguments are not of the sizes of the kernel's parameters.
    #[error(
        "launch of {kernel}: its parameters have {parameters:?} bytes, the arguments {arguments:?}"
    )]
    Arguments {
        /// The kernel.
        kernel: String,
        /// Sizes of the parameters, in order.
        parameters: Vec<usize>,
        /// Sizes of the arguments, in order.
        arguments: Vec<usize>,
    },
    /// Kernel and stream are of different GPUs.
    #[error(
        "launch of {kernel}: it is loaded into GPU {kernel_device}, the stream is of GPU {stream_device}"
    )]
    WrongDevice {
        /// The kernel.
        kernel: String,
        /// The kernel's GPU.
        kernel_device: usize,
        /// The stream's GPU.
        stream_device: usize,
    },
    /// The driver refused, or reports an earlier kernel's failure.
    #[error("launch of {kernel}: {source}")]
    Failed {
        /// The kernel.
        kernel: String,
        /// What the driver said.
        source: CudaError,
    },
}

/// A launch in the making: a kernel and how many threads run it.
///
/// ```
/// use crosswarp_cuda::{Buffer, Device, Error, Launch, Module, Source, Stream};
/// fn main() -> Result<(), Error> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let source = Source::new("fill.cu", r#"
///         extern "C" __global__ void fill(float* out, float value) {
///             out[blockIdx.x * blockDim.x + threadIdx.x] = value;
///         }"#);
///     let fill = Module::compile(&device, &source)?.function("fill")?;
///     let stream = Stream::new(&device)?;
///     let out = Buffer::<f32>::new(&device, 4 * 128)?;
///     let launch = Launch::new(&fill).grid(4).block(128);
///     // SAFETY: the parameters are a pointer and a float, and `out` has an element per thread.
///     unsafe { launch.launch(&stream, (&out, 1.5f32)) }?;
///     assert_eq!(out.to_vec(&stream)?, [1.5; 4 * 128]);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Launch<'f> {
    function: &'f Function,
    shape: Shape,
    overlapping: bool,
}

/// The largest cluster that every GPU with clusters has.
const PORTABLE_CLUSTER: u64 = 8;

impl<'f> Launch<'f> {
    /// One block of one thread, no dynamic shared memory.
    pub fn new(function: &'f Function) -> Self {
        let one = Dim3::from(1);
        let shape = Shape {
            grid: one,
            block: one,
            cluster: None,
            dynamic_shared: 0,
            cooperative: false,
        };
        Self {
            function,
            shape,
            overlapping: false,
        }
    }

    /// Blocks of the grid.
    pub fn grid(mut self, grid: impl Into<Dim3>) -> Self {
        self.shape.grid = grid.into();
        self
    }

    /// Threads of a block.
    pub fn block(mut self, block: impl Into<Dim3>) -> Self {
        self.shape.block = block.into();
        self
    }

    /// Blocks of a cluster; they run at once, on neighbouring SMs.
    pub fn cluster(mut self, cluster: impl Into<Dim3>) -> Self {
        self.shape.cluster = Some(cluster.into());
        self
    }

    /// Dynamic shared memory of a block, bytes. Beyond 48 KiB the kernel is opted in.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shape.dynamic_shared = bytes;
        self
    }

    /// All blocks resident at once, as barriers over the grid need.
    pub fn cooperative(mut self) -> Self {
        self.shape.cooperative = true;
        self
    }

    /// Lets the kernel begin while the one before it in the stream, or in a graph, is still running
    /// (programmatic dependent launch), which hides most of the launch. On GPUs below compute
    /// capability 9.0 nothing changes.
    ///
    /// The kernel must execute `griddepcontrol.wait` before it touches any memory that earlier work
    /// writes or that it writes itself: this belongs to what [`PreparedLaunch::launch`] asks.
    pub fn overlapping(mut self) -> Self {
        self.overlapping = self.device().arch() >= Arch::new(9, 0);
        self
    }

    /// The largest cluster, in blocks, that this kernel, block and shared memory can have.
    ///
    /// Errors: [`LaunchError::Unsupported`] on GPUs without clusters.
    pub fn max_cluster(&self) -> Result<u32, LaunchError> {
        self.checked(check(
            self.device().properties(),
            self.function.attributes(),
            &Shape {
                cluster: Some(1.into()),
                ..self.shape
            },
        ))?;
        self.opt_in(true)?;
        // The driver wants a grid that fits clusters of any size.
        let shape = Shape {
            grid: 16.into(),
            cluster: None,
            ..self.shape
        };
        let mut size = 0;
        self.with_config(&shape, ptr::null_mut(), |config| {
            // SAFETY: writes one integer; function and configuration are valid.
            unsafe {
                cu!(cuOccupancyMaxPotentialClusterSize(
                    &mut size,
                    self.function.handle(),
                    config
                ))
            }
        })?;
        Ok(size.unsigned_abs())
    }

    /// The most blocks that are resident at once with this block, shared memory and cluster, and so
    /// the largest cooperative grid.
    pub fn max_resident(&self) -> Result<u64, LaunchError> {
        let shape = Shape {
            grid: self.shape.cluster.unwrap_or(1.into()),
            ..self.shape
        };
        self.checked(check(
            self.device().properties(),
            self.function.attributes(),
            &shape,
        ))?;
        self.resident(&shape)
    }

    /// Checks every limit once; the result can be launched many times.
    ///
    /// Errors: all of [`LaunchError`] that do not depend on the stream or the arguments.
    pub fn prepare(&self) -> Result<PreparedLaunch<'f>, LaunchError> {
        let shape = &self.shape;
        self.checked(check(
            self.device().properties(),
            self.function.attributes(),
            shape,
        ))?;
        self.opt_in(
            shape
                .cluster
                .is_some_and(|cluster| cluster.count() > PORTABLE_CLUSTER),
        )?;
        if let Some(cluster) = shape.cluster {
            let most = u64::from(self.max_cluster()?);
            if cluster.count() > most {
                return self.checked(Err(Refusal::Limit(Limit::Cluster, cluster.count(), most)));
            }
        }
        if shape.cooperative {
            let most = self.resident(shape)?;
            if shape.grid.count() > most {
                return self.checked(Err(Refusal::Limit(
                    Limit::CoResident,
                    shape.grid.count(),
                    most,
                )));
            }
        }
        Ok(PreparedLaunch {
            launch: self.clone(),
        })
    }

    /// Checks every limit and gives the launch to `stream`. Returns at once; failures inside the
    /// kernel are reported by a later call on the GPU.
    ///
    /// # Safety
    /// See [`PreparedLaunch::launch`].
    pub unsafe fn launch(&self, stream: &Stream, args: impl KernelArgs) -> Result<(), LaunchError> {
        // SAFETY: the caller's promise.
        unsafe { self.prepare()?.launch(stream, args) }
    }

    /// The same without the checks, for what [`prepare`](Self::prepare) has found good before.
    pub(crate) fn prepared_before(self) -> PreparedLaunch<'f> {
        PreparedLaunch { launch: self }
    }

    /// Blocks of the grid.
    pub(crate) fn blocks(&self) -> u64 {
        self.shape.grid.count()
    }

    /// Has the kernel's code loaded now. Otherwise its first launch loads it, which takes some 50 µs and waits for
    /// kernels that are running, and they may be waiting for this one.
    pub fn load(&self) -> Result<(), LaunchError> {
        // SAFETY: the function is valid as long as `self.function` lives.
        unsafe { cu!(cuFuncLoad(self.function.handle())) }.map_err(|source| self.failed(source))
    }

    fn device(&self) -> &'f Device {
        self.function.device()
    }

    fn failed(&self, source: CudaError) -> LaunchError {
        LaunchError::Failed {
            kernel: self.function.name().into(),
            source,
        }
    }

    /// Lets the kernel have what it may only have after opting in.
    fn opt_in(&self, large_clusters: bool) -> Result<(), LaunchError> {
        self.function
            .opt_in(self.shape.dynamic_shared)
            .map_err(|error| self.failed(error))?;
        if large_clusters {
            self.function
                .allow_large_clusters()
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// See [`max_resident`](Self::max_resident); `shape` is within the static limits.
    fn resident(&self, shape: &Shape) -> Result<u64, LaunchError> {
        self.opt_in(
            shape
                .cluster
                .is_some_and(|cluster| cluster.count() > PORTABLE_CLUSTER),
        )?;
        match shape.cluster {
            Some(cluster) => {
                let mut clusters = 0;
                // Cooperation is left out: the count is what decides whether it is possible.
                self.with_config(
                    &Shape {
                        cooperative: false,
                        ..*shape
                    },
                    ptr::null_mut(),
                    |config| {
                        // SAFETY: writes one integer; function and configuration are valid.
                        unsafe {
                            cu!(cuOccupancyMaxActiveClusters(
                                &mut clusters,
                                self.function.handle(),
                                config
                            ))
                        }
                    },
                )?;
                Ok(u64::from(clusters.unsigned_abs()) * cluster.count())
            }
            None => {
                let threads = u32::try_from(shape.block.count()).unwrap_or(u32::MAX);
                let blocks = self
                    .function
                    .blocks_per_multiprocessor(threads, shape.dynamic_shared);
                let blocks = blocks.map_err(|error| self.failed(error))?;
                Ok(u64::from(blocks) * u64::from(self.device().properties().multiprocessors))
            }
        }
    }

    /// Calls the driver with the configuration of `shape`.
    fn with_config(
        &self,
        shape: &Shape,
        stream: sys::CUstream,
        call: impl FnOnce(&sys::CUlaunchConfig) -> Result<(), CudaError>,
    ) -> Result<(), LaunchError> {
        let attribute = |id, value| sys::CUlaunchAttribute {
            id,
            pad: [0; 4],
            value,
        };
        let none = sys::CUlaunchAttributeValue { pad: [0; 64] };
        let mut attributes =
            [attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE, none); 3];
        let mut count = 0;
        if let Some(Dim3 { x, y, z }) = shape.cluster {
            let mut value = none;
            value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            attributes[count] = attribute(
                sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                value,
            );
            count += 1;
        }
        if shape.cooperative {
            let mut value = none;
            value.cooperative = 1;
            attributes[count] = attribute(
                sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                value,
            );
            count += 1;
        }
        if self.overlapping {
            let mut value = none;
            value.programmaticStreamSerializationAllowed = 1;
            let id =
                sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes[count] = attribute(id, value);
            count += 1;
        }
        let config = sys::CUlaunchConfig {
            gridDimX: shape.grid.x,
            gridDimY: shape.grid.y,
            gridDimZ: shape.grid.z,
            blockDimX: shape.block.x,
            blockDimY: shape.block.y,
            blockDimZ: shape.block.z,
            sharedMemBytes: shape.dynamic_shared,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: count as u32,
        };
        self.device()
            .bind()
            .and_then(|()| call(&config))
            .map_err(|error| self.failed(error))
    }

    fn checked<T>(&self, result: Result<T, Refusal>) -> Result<T, LaunchError> {
        let kernel = || self.function.name().to_string();
        result.map_err(|refusal| match refusal {
            Refusal::Limit(limit, value, most) => LaunchError::Limit {
                kernel: kernel(),
                limit,
                value,
                most,
            },
            Refusal::Empty(what) => LaunchError::Empty {
                kernel: kernel(),
                what,
            },
            Refusal::Uneven(axis, grid, cluster) => LaunchError::Uneven {
                kernel: kernel(),
                axis,
                grid,
                cluster,
            },
            Refusal::Unsupported(what) => LaunchError::Unsupported {
                kernel: kernel(),
                device: self.device().properties().name.clone(),
                what,
            },
        })
    }
}

/// A launch whose limits have been checked.
#[derive(Debug, Clone)]
pub struct PreparedLaunch<'f> {
    launch: Launch<'f>,
}

impl PreparedLaunch<'_> {
    /// Gives the launch to `stream`, in order with the stream's other work. Returns at once; failures
    /// inside the kernel are reported by a later call on the GPU. The number and sizes of the
    /// arguments are checked, their types can not be.
    ///
    /// # Safety
    /// - Each argument is of its parameter's type.
    /// - The kernel, run with these arguments by this many threads, accesses only memory that is
    ///   valid for it: buffers live, and are of the GPU or reachable from it, until the kernel has
    ///   ended, and it stays within their lengths.
    /// - Host memory it writes ([`PinnedBuffer`](crate::PinnedBuffer)) is neither read nor written by
    ///   the host until the kernel has ended, except where both sides use atomic operations.
    /// - The kernel's module stays loaded until the kernel has ended: a [`Function`] or
    ///   [`Module`](crate::Module) of it is kept.
    pub unsafe fn launch(&self, stream: &Stream, args: impl KernelArgs) -> Result<(), LaunchError> {
        let Launch {
            function, shape, ..
        } = &self.launch;
        if stream.device() != function.device() {
            return Err(LaunchError::WrongDevice {
                kernel: function.name().into(),
                kernel_device: function.device().ordinal(),
                stream_device: stream.device().ordinal(),
            });
        }
        args.with(|pointers, sizes| {
            if sizes != function.parameters() {
                return Err(LaunchError::Arguments {
                    kernel: function.name().into(),
                    parameters: function.parameters().to_vec(),
                    arguments: sizes.to_vec(),
                });
            }
            let _turn = stream.turn();
            self.launch.with_config(shape, stream.handle(), |config| {
                // SAFETY: as many pointers as the kernel has parameters, each to as many bytes,
                // which the driver copies before it returns; function and stream are alive. What the
                // kernel does is the caller's promise.
                unsafe {
                    cu!(cuLaunchKernelEx(
                        config,
                        function.handle(),
                        pointers.as_mut_ptr(),
                        ptr::null_mut()
                    ))
                }
            })
        })
    }
}

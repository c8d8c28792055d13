//! Where work goes: a GPU and a stream, with what is kept for them.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use crosswarp::cuda::{Buffer, Device, PinnedBuffer, Stream};
use crosswarp::prim::DeviceTransposer;
use crosswarp::prim::cuda::{DeviceReducer, ReduceWorkspace};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::run::{guarded, on_its_own};

/// Streams of a GPU for which workspaces are kept. One of 64 KiB is made again for a stream that comes back later.
const MOST_WORKSPACES: usize = 64;

/// What has been made for a GPU, for as long as the process lives.
pub struct Gpu {
    pub device: Device,
    pub reducer: DeviceReducer,
    /// For elements of 1, 2, 4 and 8 bytes.
    pub transposers: [Mutex<Option<Arc<DeviceTransposer>>>; 4],
    /// For arrays of libraries that name none.
    stream: Stream,
    /// By the streams' numbers, the last used at the end. A handle may be given to another stream, a number never is.
    workspaces: Mutex<Vec<(u64, Arc<Mutex<Workspace>>)>>,
}

/// What reductions in one stream need.
pub struct Workspace {
    pub reduce: ReduceWorkspace,
    /// Results that a call waits for: the GPU writes them to the host itself.
    pub words: PinnedBuffer<u64>,
}

/// A lock's value; a panic has left nothing half done, since each is changed in one step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process is a child of one that had come to [`check_fork`].
static FORKED: AtomicBool = AtomicBool::new(false);

/// What the child of a fork does. (To ask for the process's number in each call took 0.2 µs.)
extern "C" fn note_the_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Refuses in a child of the process that first came here.
pub fn check_fork() -> Result<(), Failure> {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: a child may store to an atomic in a handler. The library stays loaded, as Python never unloads one. Where it
        // fails, for lack of memory, children meet CUDA's own error.
        unsafe { libc::pthread_atfork(None, None, Some(note_the_fork)) };
    });
    if FORKED.load(Ordering::Relaxed) {
        return Err(Failure::Gpu(
            "this process was forked from one that used a GPU, and CUDA does not work in it: start it with \
             multiprocessing's method 'spawn' or 'forkserver'"
                .into(),
        ));
    }
    Ok(())
}

/// What has been made for GPU `ordinal`.
pub fn gpu(ordinal: usize) -> Result<&'static Gpu, Failure> {
    static GPUS: Mutex<Option<HashMap<usize, &'static Gpu>>> = Mutex::new(None);
    check_fork()?;
    let mut gpus = lock(&GPUS);
    let gpus = gpus.get_or_insert_default();
    if let Some(gpu) = gpus.get(&ordinal) {
        return Ok(gpu);
    }
    let device = Device::get(ordinal)?;
    let _entered = device.enter()?;
    let gpu = Box::leak(Box::new(Gpu {
        device,
        reducer: DeviceReducer::new(&device),
        transposers: Default::default(),
        stream: Stream::new(&device)?,
        workspaces: Mutex::default(),
    }));
    gpus.insert(ordinal, gpu);
    Ok(gpu)
}

impl Gpu {
    /// What reductions in `stream` need.
    pub fn workspace(&self, stream: &Stream) -> Result<Arc<Mutex<Workspace>>, Failure> {
        let id = stream.id()?;
        let mut all = lock(&self.workspaces);
        if let Some(at) = all.iter().rposition(|(of, _)| *of == id) {
            let found = all[at].1.clone();
            if at + 1 < all.len() {
                let last = all.remove(at);
                all.push(last);
            }
            return Ok(found);
        }
        let made = Arc::new(Mutex::new(Workspace {
            reduce: self.reducer.workspace(stream)?,
            words: PinnedBuffer::zeroed(&self.device, 2)?,
        }));
        if all.len() == MOST_WORKSPACES {
            all.remove(0);
        }
        all.push((id, made.clone()));
        Ok(made)
    }
}

/// GPU, the stream's handle if there is one, and whether the call waits for its work.
#[derive(Clone, Copy, PartialEq, Eq, FromPyObject)]
pub struct Place(usize, Option<usize>, bool);

impl Place {
    /// A stream of a GPU, whose work a call does not wait for.
    pub fn of_stream(ordinal: usize, handle: usize) -> Place {
        Place(ordinal, Some(handle), false)
    }

    pub fn gpu(&self) -> Result<&'static Gpu, Failure> {
        gpu(self.0)
    }

    /// Does `work`, which gives work to the stream.
    pub fn with<R>(
        &self,
        gpu: &Gpu,
        work: impl FnOnce(&Stream) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let _entered = gpu.device.enter()?;
        let Place(_, handle, wait) = *self;
        let stream = match handle {
            // SAFETY: rule 1: it is a stream of this GPU, whose library uses the primary context, and the caller keeps it
            // meanwhile. What outlives the call (a workspace's stream) is used for a stream of the same number only.
            Some(handle) => unsafe { Stream::borrowed(&gpu.device, handle as _) },
            None => gpu.stream.clone(),
        };
        if stream.is_capturing()? {
            return Err(Failure::Gpu(
                "the current stream is being recorded into a graph, which arrays of GPUs can't be used in".into(),
            ));
        }
        let result = work(&stream);
        if wait {
            stream.synchronize()?;
        }
        result
    }
}

/// Compiles and loads something, on a thread of its own, which a signal does not wait for.
pub fn prepare<R: Send + 'static>(
    py: Python<'_>,
    make: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> PyResult<R> {
    on_its_own(py, Vec::new(), move |_| make())
}

/// Something that is let go in its GPU's context, when the work given to the GPU has ended, and without the interpreter's
/// lock meanwhile: that work may wait for what other threads do. A fork of its process leaves it alone.
pub struct OnGpu<T: Send> {
    what: ManuallyDrop<T>,
    device: Device,
    pid: u32,
}

impl<T: Send> OnGpu<T> {
    pub fn new(device: Device, what: T) -> OnGpu<T> {
        OnGpu {
            what: ManuallyDrop::new(what),
            device,
            pid: std::process::id(),
        }
    }
}

impl<T: Send> Deref for OnGpu<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.what
    }
}

impl<T: Send> Drop for OnGpu<T> {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            return;
        }
        let device = self.device;
        let what = &mut self.what;
        let let_go = || {
            // Without its context it stays: what would free it does nothing then.
            if let Ok(_entered) = device.enter() {
                let _ = device.synchronize();
                // SAFETY: once, in its destructor.
                unsafe { ManuallyDrop::drop(what) };
            }
        };
        // SAFETY: asks only. A thread that Python has never seen has no lock to give away, and attaching one while the
        // interpreter ends would crash.
        let unknown = unsafe { pyo3::ffi::PyGILState_GetThisThreadState() }.is_null();
        let mut let_go = Some(let_go);
        if !unknown {
            Python::try_attach(|py| let_go.take().map(|let_go| py.detach(let_go)));
        }
        if let Some(mut let_go) = let_go {
            let_go();
        }
    }
}

/// The handle of our stream of a GPU, for libraries that ask which stream their array is to be ready for.
#[pyfunction]
fn own_stream(ordinal: usize) -> Result<usize, Failure> {
    guarded(move || Ok(gpu(ordinal)?.stream.handle() as usize))
}

/// The number of the GPU that has this address.
#[pyfunction]
fn device_of(address: usize) -> Result<usize, Failure> {
    guarded(move || {
        check_fork()?;
        Ok(Device::of_address(address as u64)?.ordinal())
    })
}

/// The number of the GPU that an array without memory is on: its stream's, or the one whose context is current.
#[pyfunction]
fn device_of_stream(stream: Option<usize>) -> Result<usize, Failure> {
    guarded(move || {
        /// Handles up to this one are the driver's default streams.
        const PER_THREAD: usize = 2;
        check_fork()?;
        let device = match stream.filter(|&handle| handle > PER_THREAD) {
            // SAFETY: rule 1: a stream of the array's library.
            Some(handle) => Some(unsafe { Device::of_stream(handle as _) }?),
            None => Device::current()?,
        };
        Ok(device.map_or(0, |device| device.ordinal()))
    })
}

/// Memory of a GPU, ours.
#[pyclass(frozen, module = "crosswarp._native")]
struct DeviceMemory {
    buffer: OnGpu<Buffer<u8>>,
}

#[pymethods]
impl DeviceMemory {
    #[new]
    fn new(ordinal: usize, bytes: usize) -> Result<DeviceMemory, Failure> {
        guarded(move || {
            let device = gpu(ordinal)?.device;
            let _entered = device.enter()?;
            let buffer = Buffer::new(&device, bytes)?;
            Ok(DeviceMemory {
                buffer: OnGpu::new(device, buffer),
            })
        })
    }

    #[getter]
    fn address(&self) -> PyResult<usize> {
        guarded(|| Ok(self.buffer.address() as usize))
    }
}

/// Copies `bytes` bytes between host memory (an array's) and a GPU's, and waits for the end.
#[pyfunction]
fn device_copy(
    py: Python<'_>,
    place: Place,
    array: &Bound<'_, PyAny>,
    address: usize,
    to_device: bool,
) -> PyResult<()> {
    guarded(move || {
        let host = match to_device {
            true => crate::array::Array::prepared(array)?,
            false => crate::array::Array::output(array)?,
        };
        let gpu = place.gpu()?;
        Ok(py.detach(|| {
            place.with(gpu, |stream| {
                // SAFETY: rules 1 and 2: as many bytes as the array has.
                let there = unsafe { crate::gpu::elements::<u8>(address, host.bytes()) }?;
                match to_device {
                    true => stream.write(there, host.bytes_of())?,
                    false => stream.read(host.bytes_of_mut(), there)?,
                }
                Ok(())
            })
        })?)
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DeviceMemory>()?;
    module.add_function(wrap_pyfunction!(own_stream, module)?)?;
    module.add_function(wrap_pyfunction!(device_of, module)?)?;
    module.add_function(wrap_pyfunction!(device_of_stream, module)?)?;
    module.add_function(wrap_pyfunction!(device_copy, module)?)
}

//! Graphs: work recorded from a stream once and then run as a whole, at a fraction of the cost.
#![allow(unsafe_code)] // Calls into libcuda.

use std::ptr;

use cudarc::driver::sys;

use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;
use crate::driver::stream::Stream;

/// Recorded work, ready to run.
///
/// ```
/// use crosswarp_cuda::{Buffer, Device, Error, Graph, Stream};
/// fn main() -> Result<(), Error> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let stream = Stream::new(&device)?;
///     let (a, b) = (Buffer::from_slice(&stream, &[1, 2, 3])?, Buffer::zeroed(&stream, 3)?);
///     let graph = Graph::capture(&stream, |stream| stream.copy(&b, &a))?;
///     // SAFETY: both buffers outlive the run.
///     unsafe { graph.launch(&stream) }?;
///     assert_eq!(b.to_vec(&stream)?, [1, 2, 3]);
///     Ok(())
/// }
/// ```
pub struct Graph {
    device: Device,
    executable: sys::CUgraphExec,
    nodes: usize,
}

// SAFETY: launching is the only use after creation; the driver lets any thread launch, and
// serialises launches of one graph.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({:?}, {} nodes)", self.device, self.nodes)
    }
}

impl Graph {
    /// Records what `work` gives to `stream`, and to streams that wait for events of it, without
    /// running it. Other streams must have been joined back by events before `work` returns.
    ///
    /// Errors: those of `work`; what can not be recorded (synchronising, copies to or from host
    /// slices).
    pub fn capture<E: From<CudaError>>(
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Self, E> {
        stream.device().bind()?;
        {
            let _joining = stream.capture_lock();
            // Relaxed: what other code of the process does meanwhile (loading, allocating) is no
            // part of the graph, and no reason to fail.
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            // SAFETY: the stream is alive.
            unsafe { cu!(cuStreamBeginCapture_v2(stream.handle(), mode)) }?;
        }
        let capture = Capture { stream };
        work(stream)?;
        let graph = capture.end()?;
        let mut executable = ptr::null_mut();
        let mut nodes = 0;
        // SAFETY: the graph is whole; with a null array only the number of nodes is written.
        unsafe {
            cu!(cuGraphGetNodes(graph.0, ptr::null_mut(), &mut nodes))?;
            cu!(cuGraphInstantiateWithFlags(&mut executable, graph.0, 0))?;
        }
        Ok(Self {
            device: *stream.device(),
            executable,
            nodes,
        })
    }

    /// Number of operations in it.
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// Runs it in `stream`, in order with the stream's other work. Returns at once.
    ///
    /// # Safety
    /// For everything recorded, what its own contract asks holds for this run, too: memory and
    /// modules that it uses are alive until the run has ended, and nothing else races with it.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        stream.device().bind()?;
        let _turn = stream.turn();
        // SAFETY: the graph and the stream are alive; the rest is the caller's promise.
        unsafe { cu!(cuGraphLaunch(self.executable, stream.handle())) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: instantiated once, destroyed once; the driver lets a running one end first.
            let _ = unsafe { cu!(cuGraphExecDestroy(self.executable)) };
        }
    }
}

/// A capture under way; ended in any case, so that the stream can be used again.
struct Capture<'a> {
    stream: &'a Stream,
}

struct Recorded(sys::CUgraph);

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: from cuStreamEndCapture, destroyed once.
        let _ = unsafe { cu!(cuGraphDestroy(self.0)) };
    }
}

impl Capture<'_> {
    fn end(self) -> Result<Recorded, CudaError> {
        let stream = self.stream;
        std::mem::forget(self);
        end(stream)
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        let _ = end(self.stream);
    }
}

fn end(stream: &Stream) -> Result<Recorded, CudaError> {
    stream.device().bind()?;
    let _joining = stream.capture_lock();
    let mut graph = ptr::null_mut();
    // SAFETY: writes one handle; the stream is alive, and its capture was begun by `Graph::capture`.
    unsafe { cu!(cuStreamEndCapture(stream.handle(), &mut graph)) }?;
    Ok(Recorded(graph))
}

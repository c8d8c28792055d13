//! Streams, in which work runs in order, and events, which mark points in them.
#![allow(unsafe_code)] // Calls into libcuda.

use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;

/// A queue of work for one GPU: copies and launches given to it run one after the other.
///
/// Streams are independent of each other and of the driver's default stream; order between them is
/// made with [`wait`](Self::wait). A clone is another handle of the same stream.
///
/// ```
/// use crosswarp_cuda::{Device, Error, Event, Stream};
/// fn main() -> Result<(), Error> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let stream = Stream::new(&device)?;
///     let (start, end) = (Event::new(&device)?, Event::new(&device)?);
///     stream.record(&start)?;
///     // ... launches ...
///     stream.record(&end)?;
///     println!("{:?}", end.since(&start)?);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    device: Device,
    handle: sys::CUstream,
    /// Whether it is ours to destroy.
    owned: bool,
    /// Held by whatever makes the stream start or join a capture and by whatever must not be
    /// captured, so that neither happens in the middle of the other.
    capture: Mutex<()>,
}

// SAFETY: the driver lets any thread use a stream; the handle is never changed after creation.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // Work already in the stream still runs to its end.
        if self.owned && self.device.bind().is_ok() {
            // SAFETY: created by cuStreamCreateWithPriority, destroyed once, by its last owner.
            let _ = unsafe { cu!(cuStreamDestroy_v2(self.handle)) };
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({:?}, {:?})", self.0.device, self.0.handle)
    }
}

/// How urgent a stream's work is beside that of other streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// The driver's default, which is its lowest.
    #[default]
    Normal,
    /// The driver's highest: its blocks are scheduled before those of other streams that wait.
    High,
}

impl Stream {
    /// A new stream of `device`.
    pub fn new(device: &Device) -> Result<Self, CudaError> {
        Self::with_priority(device, Priority::Normal)
    }

    /// A new stream of `device` with a priority.
    pub fn with_priority(device: &Device, priority: Priority) -> Result<Self, CudaError> {
        device.bind()?;
        let (mut least, mut greatest) = (0, 0);
        let mut handle = ptr::null_mut();
        // SAFETY: writes two integers, then a handle; a context is current.
        unsafe {
            cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest))?;
            let level = if priority == Priority::High {
                greatest
            } else {
                least
            };
            let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
            cu!(cuStreamCreateWithPriority(&mut handle, flags, level))?;
        }
        Ok(Self::of(device, handle, true))
    }

    /// A stream that another library has made, of `device`'s primary context, to put work in order with that library's.
    /// It is not destroyed here. The null handle is the legacy default stream; the driver's handles of that (1) and of
    /// the calling thread's default stream (2) are streams, too.
    ///
    /// # Safety
    /// The handle is one of these or a stream of that context, and stays so while a clone of the result is in use.
    pub unsafe fn borrowed(device: &Device, handle: sys::CUstream) -> Self {
        Self::of(device, handle, false)
    }

    fn of(device: &Device, handle: sys::CUstream, owned: bool) -> Self {
        Self(Arc::new(Inner {
            device: *device,
            handle,
            owned,
            capture: Mutex::new(()),
        }))
    }

    /// A number that no other stream of this process has or had, unlike the handle, which may be given again.
    pub fn id(&self) -> Result<u64, CudaError> {
        self.0.device.bind()?;
        let mut id = 0;
        // SAFETY: writes one integer; the stream is alive.
        unsafe { cu!(cuStreamGetId(self.0.handle, &mut id)) }?;
        Ok(id)
    }

    /// The GPU it belongs to.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The driver's handle, valid as long as a clone of this stream lives.
    pub fn handle(&self) -> sys::CUstream {
        self.0.handle
    }

    /// Waits until everything given to the stream so far has ended.
    ///
    /// Errors: also those of work that failed since the last call, e.g. of a kernel's bad access.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.0.device.bind()?;
        // SAFETY: the stream is alive.
        unsafe { cu!(cuStreamSynchronize(self.0.handle)) }
    }

    /// Whether everything given to the stream so far has ended.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        self.0.device.bind()?;
        // SAFETY: the stream is alive.
        done(unsafe { cu!(cuStreamQuery(self.0.handle)) })
    }

    /// Lets `event` mark this point of the stream.
    pub fn record(&self, event: &Event) -> Result<(), CudaError> {
        self.0.device.bind()?;
        // SAFETY: both are alive; of different devices is an error of the call.
        unsafe { cu!(cuEventRecord(event.0.handle, self.0.handle)) }
    }

    /// Holds later work of this stream back until the point that `event` marks has been reached. The
    /// event may be of another stream, also of another GPU; one that was never recorded holds
    /// nothing back.
    pub fn wait(&self, event: &Event) -> Result<(), CudaError> {
        self.0.device.bind()?;
        let _joining = self.capture_lock();
        // SAFETY: both are alive.
        unsafe { cu!(cuStreamWaitEvent(self.0.handle, event.0.handle, 0)) }
    }

    /// Stores the low `bytes` of `value` at `at`, in stream order and behind all that the stream's earlier work wrote, as
    /// an entry of the stream: a kernel takes twice as long. False, and nothing is done, where there is no such entry: for
    /// words of other than 4 or 8 bytes or at no multiple of them, while the stream is captured, and on devices without.
    ///
    /// # Safety
    /// `at` is memory of so many bytes that the stream's GPU reaches, until the store has been made.
    #[doc(hidden)]
    pub unsafe fn write_word(&self, at: u64, value: u64, bytes: usize) -> Result<bool, CudaError> {
        let _not_now = self.capture_lock();
        if !matches!(bytes, 4 | 8) || !at.is_multiple_of(bytes as u64) || self.is_capturing()? {
            return Ok(false);
        }
        let _turn = self.turn();
        // CU_STREAM_WRITE_VALUE_DEFAULT has a fence for the system before the store. After it: the stream's next entry
        // begins when this one is done, as after a kernel.
        let flags = sys::CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32;
        // SAFETY: the address is the caller's promise, aligned as it must be; the stream is alive.
        let written = unsafe {
            match bytes {
                4 => cu!(cuStreamWriteValue32_v2(
                    self.0.handle,
                    at,
                    value as u32,
                    flags
                )),
                _ => cu!(cuStreamWriteValue64_v2(self.0.handle, at, value, flags)),
            }
        };
        match written {
            Err(error) if error.code == sys::CUresult::CUDA_ERROR_NOT_SUPPORTED as i32 => Ok(false),
            written => written.map(|()| true),
        }
    }

    /// Stores the low `bytes` of `value` at `at`, in stream order, but orders nothing that the stream's earlier work wrote
    /// for who looks at the word: in half the time of [`write_word`](Self::write_word), and also while the stream is
    /// captured. False, and nothing is done, for words of other than 1, 2 or 4 bytes, or at no multiple of them.
    ///
    /// # Safety
    /// As for [`write_word`](Self::write_word).
    #[doc(hidden)]
    pub unsafe fn store_word(&self, at: u64, value: u64, bytes: usize) -> Result<bool, CudaError> {
        if !matches!(bytes, 1 | 2 | 4) || !at.is_multiple_of(bytes as u64) {
            return Ok(false);
        }
        self.0.device.bind()?;
        let _turn = self.turn();
        let stream = self.0.handle;
        // SAFETY: the address is the caller's promise, aligned as it must be; the stream is alive.
        unsafe {
            match bytes {
                1 => cu!(cuMemsetD8Async(at, value as u8, 1, stream)),
                2 => cu!(cuMemsetD16Async(at, value as u16, 1, stream)),
                _ => cu!(cuMemsetD32Async(at, value as u32, 1, stream)),
            }
        }?;
        Ok(true)
    }

    /// Held while work is given to the GPU: threads take turns.
    ///
    /// The driver spreads streams over a few hardware queues, and where two threads give work to two
    /// streams at the same moment it may put both into one. Work in a queue waits for what is before it,
    /// so a kernel of one stream that waits for a kernel of the other would wait for ever (seen with
    /// driver 580; one launch at a time, up to 8 streams never shared a queue).
    ///
    /// `None` after a while: a thread may be held up inside the driver because its stream is full, and
    /// may need the others to go on.
    pub(crate) fn turn(&self) -> Option<MutexGuard<'static, ()>> {
        const PATIENCE: Duration = Duration::from_millis(10);
        let turns = self.0.device.turns();
        let mut since = None;
        loop {
            match turns.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// See [`Inner::capture`].
    pub(crate) fn capture_lock(&self) -> MutexGuard<'_, ()> {
        self.0
            .capture
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether work given to the stream is being recorded into a graph instead of being run.
    pub fn is_capturing(&self) -> Result<bool, CudaError> {
        self.0.device.bind()?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: writes one integer; the stream is alive.
        unsafe { cu!(cuStreamIsCapturing(self.0.handle, &mut status)) }?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}

/// A point in a stream: waited for, or the end of a measured time.
pub struct Event(EventInner);

struct EventInner {
    device: Device,
    handle: sys::CUevent,
}

// SAFETY: the driver lets any thread use an event; the handle is never changed after creation.
unsafe impl Send for EventInner {}
// SAFETY: as above.
unsafe impl Sync for EventInner {}

impl Drop for EventInner {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: created by cuEventCreate, destroyed once. The driver keeps what streams still
            // wait for.
            let _ = unsafe { cu!(cuEventDestroy_v2(self.handle)) };
        }
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({:?}, {:?})", self.0.device, self.0.handle)
    }
}

impl Event {
    /// An event that keeps the time.
    pub fn new(device: &Device) -> Result<Self, CudaError> {
        Self::with_flags(device, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// An event for order only, which is cheaper.
    pub fn without_timing(device: &Device) -> Result<Self, CudaError> {
        Self::with_flags(device, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn with_flags(device: &Device, flags: sys::CUevent_flags) -> Result<Self, CudaError> {
        device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle; a context is current.
        unsafe { cu!(cuEventCreate(&mut handle, flags as u32)) }?;
        Ok(Self(EventInner {
            device: *device,
            handle,
        }))
    }

    /// The driver's handle, valid as long as the event lives.
    pub fn handle(&self) -> sys::CUevent {
        self.0.handle
    }

    /// Waits until the point it marks has been reached; at once if it marks none.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.0.device.bind()?;
        // SAFETY: the event is alive.
        unsafe { cu!(cuEventSynchronize(self.0.handle)) }
    }

    /// Whether the point it marks has been reached.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        self.0.device.bind()?;
        // SAFETY: the event is alive.
        done(unsafe { cu!(cuEventQuery(self.0.handle)) })
    }

    /// The GPU's time from `start` to this event, to about half a microsecond. Waits for this one.
    ///
    /// Errors: both must keep the time, have been recorded, and be of one GPU.
    pub fn since(&self, start: &Event) -> Result<Duration, CudaError> {
        self.synchronize()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: writes one number; both events are alive.
        unsafe {
            cu!(cuEventElapsedTime_v2(
                &mut milliseconds,
                start.0.handle,
                self.0.handle
            ))
        }?;
        Ok(Duration::from_secs_f64(
            f64::from(milliseconds.max(0.0)) / 1e3,
        ))
    }
}

fn done(result: Result<(), CudaError>) -> Result<bool, CudaError> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.code == sys::CUresult::CUDA_ERROR_NOT_READY as i32 => Ok(false),
        Err(error) => Err(error),
    }
}

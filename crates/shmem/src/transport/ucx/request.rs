//! An operation that may not be complete.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::transport::ucx::ffi::{self, Functions, Padded, Parameters as _};
use crate::transport::ucx::status::{IN_PROGRESS, Status, started};
use crate::transport::ucx::worker::Worker;

/// An operation of a [`Worker`], which completes while that is progressed.
///
/// Dropping it does not stop the operation: the worker goes on with it, and keeps what it needs.
#[must_use = "says when the operation is complete"]
pub(crate) struct Request {
    state: State,
}

enum State {
    Done(Result<(), Status>, Kept),
    Going(Going),
}

/// What an operation uses until it is complete.
pub(super) enum Kept {
    Nothing,
    Key(#[expect(dead_code, reason = "held, not read")] Arc<Key>),
    Bytes([Bytes; 2]),
}

struct Going {
    operation: NonNull<c_void>,
    kept: Kept,
    worker: Arc<Worker>,
}

// SAFETY: UCX lets any thread ask about a request of a worker that is for several threads, and free it.
unsafe impl Send for Going {}
// SAFETY: without `&mut`, nothing is done to it.
unsafe impl Sync for Going {}

impl Request {
    /// Of `worker`, for what the function that started it returned.
    ///
    /// # Safety
    /// `returned` is from a function of UCX that may start an operation of `worker`; `kept` is all that it goes on
    /// using, but for what the caller of the operation promised to keep.
    pub(super) unsafe fn new(
        worker: &Arc<Worker>,
        returned: *mut c_void,
        kept: Kept,
    ) -> Result<Self, Status> {
        let state = match started(returned)? {
            None => State::Done(Ok(()), kept),
            Some(operation) => State::Going(Going {
                operation,
                kept,
                worker: Arc::clone(worker),
            }),
        };
        Ok(Self { state })
    }

    /// Whether the operation is complete. Memory that it read is free then, and memory that it wrote is written.
    ///
    /// # Errors
    /// What went wrong, each time it is asked.
    pub(crate) fn poll(&mut self) -> Result<bool, Status> {
        if let State::Going(going) = &mut self.state {
            let functions = going.worker.functions();
            // SAFETY: not freed yet.
            let code = unsafe { (functions.request_check_status)(going.operation.as_ptr()) }.code();
            if code == IN_PROGRESS {
                return Ok(false);
            }
            // The thread that progressed the worker wrote the data before it wrote the code.
            fence(Ordering::Acquire);
            let kept = std::mem::replace(&mut going.kept, Kept::Nothing);
            // Drops `going`, which frees the operation.
            self.state = State::Done(Status::of(code).map_or(Ok(()), Err), kept);
        }
        match &self.state {
            State::Done(result, _) => result.map(|()| true),
            State::Going(_) => Ok(false),
        }
    }

    /// The second buffer of a complete operation that had some, once.
    pub(super) fn take_bytes(&mut self) -> Option<Vec<u8>> {
        let State::Done(Ok(()), kept) = &mut self.state else {
            return None;
        };
        match std::mem::replace(kept, Kept::Nothing) {
            Kept::Bytes([_, bytes]) => Some(bytes.into_vec()),
            Kept::Nothing | Kept::Key(_) => None,
        }
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        match &self.kept {
            // Free in any case: UCX keeps it until it is complete.
            // SAFETY: not freed yet.
            Kept::Nothing => unsafe {
                (self.worker.functions().request_free)(self.operation.as_ptr());
            },
            Kept::Key(_) | Kept::Bytes(_) => {
                let kept = std::mem::replace(&mut self.kept, Kept::Nothing);
                self.worker.abandon(self.operation, Box::new(kept));
            }
        }
    }
}

impl Worker {
    /// Completes all that was put through endpoints of this worker: it is in the memory of the other sides then.
    ///
    /// # Errors
    /// [`Status`]: some endpoint has failed.
    pub(crate) fn flush(self: &Arc<Self>) -> Result<Request, Status> {
        let parameters = Padded::new(ffi::RequestParameters::zero());
        // SAFETY: parameters live until it returns.
        let returned = unsafe { (self.functions().worker_flush_nbx)(self.raw(), &parameters) };
        // SAFETY: from a flush of this worker, which uses nothing of ours.
        unsafe { Request::new(self, returned, Kept::Nothing) }
    }
}

/// The key to memory of another process, which operations under way go on using.
pub(super) struct Key {
    pub(super) raw: NonNull<ffi::RemoteKey>,
    pub(super) functions: &'static Functions,
}

// SAFETY: read only; UCX locks the worker where it is freed.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: unpacked once. Its worker is alive: whoever holds a key (a RemoteKey, a Request, the list of the
        // worker itself, which its end does not drop) holds that too, and drops it later.
        unsafe { (self.functions.rkey_destroy)(self.raw.as_ptr()) }
    }
}

/// A buffer that UCX reads or writes while its owner moves about.
pub(super) struct Bytes(NonNull<[u8]>);

// SAFETY: owns its memory.
unsafe impl Send for Bytes {}
// SAFETY: without `&mut`, nothing is done to it here.
unsafe impl Sync for Bytes {}

impl Bytes {
    pub(super) fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(NonNull::from(Box::leak(bytes.into())))
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.0.as_ptr().cast()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn into_vec(self) -> Vec<u8> {
        let bytes = std::mem::ManuallyDrop::new(self);
        // SAFETY: from a box, and not dropped.
        unsafe { Box::from_raw(bytes.0.as_ptr()) }.into_vec()
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::new([])
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: from a box, and dropped once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

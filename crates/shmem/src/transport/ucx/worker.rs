//! A worker: it makes progress, sleeps, and has an address.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd as _;

use crate::transport::ucx::context::Context;
use crate::transport::ucx::ffi::{self, Functions, Padded, Parameters as _};
use crate::transport::ucx::library::{Ucx, UcxError};
use crate::transport::ucx::status::{IN_PROGRESS, Status};

/// How long the end of a worker waits for operations that nobody waited for. Their endpoints are closed by then, so
/// they are as good as cancelled.
const LAST_PROGRESS: Duration = Duration::from_secs(1);

/// Sends and receives, for any thread. Nothing moves unless it is progressed.
pub(crate) struct Worker {
    raw: NonNull<ffi::Worker>,
    address: Vec<u8>,
    most_header: usize,
    events: RawFd,
    /// Operations that nobody waits for, with what they use.
    abandoned: Mutex<Vec<Abandoned>>,
    any_abandoned: AtomicBool,
    /// What UCX may call until the worker's end.
    kept: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    context: Arc<Context>,
}

struct Abandoned {
    operation: NonNull<c_void>,
    kept: Box<dyn Any + Send>,
}

// SAFETY: made for several threads (checked in `new`), so UCX locks it; the rest is locked here.
unsafe impl Send for Worker {}
// SAFETY: as above.
unsafe impl Sync for Worker {}

thread_local! {
    /// Whether this thread is in the progress of a worker, that is, in a handler.
    static PROGRESSING: Cell<bool> = const { Cell::new(false) };
}

impl Worker {
    /// A worker of `context`.
    ///
    /// # Errors
    /// [`UcxError`]
    pub(crate) fn new(context: &Arc<Context>) -> Result<Arc<Self>, UcxError> {
        let functions = context.functions();
        let parameters = Padded::new(ffi::WorkerParameters {
            mask: ffi::WORKER_THREAD_MODE,
            thread_mode: ffi::THREADS_MULTI,
            ..ffi::WorkerParameters::zero()
        });
        let mut raw = ptr::null_mut();
        // SAFETY: the context is alive, parameters live until it returns; `raw` is a place to write to.
        let made =
            unsafe { (functions.worker_create)(context.raw.as_ptr(), &parameters, &mut raw) };
        made.check()
            .map_err(UcxError::of("can not make a worker"))?;
        let raw = NonNull::new(raw).expect("UCX made a worker");
        // From here on the worker ends with this.
        let mut worker = Self {
            raw,
            address: Vec::new(),
            most_header: 0,
            events: -1,
            abandoned: Mutex::default(),
            any_abandoned: AtomicBool::new(false),
            kept: Mutex::default(),
            context: Arc::clone(context),
        };
        let mut attributes = Padded::new(ffi::WorkerAttributes {
            mask: ffi::ATTRIBUTE_THREAD_MODE | ffi::ATTRIBUTE_MOST_HEADER,
            ..ffi::WorkerAttributes::zero()
        });
        // SAFETY: the worker is alive; attributes are a place to write to.
        let asked = unsafe { (functions.worker_query)(raw.as_ptr(), &mut attributes) };
        asked
            .check()
            .map_err(UcxError::of("can not ask a worker"))?;
        if attributes.known.thread_mode != ffi::THREADS_MULTI {
            return Err(UcxError::OneThread {
                version: context.ucx.version(),
                path: context.ucx.path().into(),
            });
        }
        worker.most_header = attributes.known.most_header;
        worker.address = worker.find_address()?;
        // SAFETY: the worker is alive; a place to write to.
        let found = unsafe { (functions.worker_get_efd)(raw.as_ptr(), &mut worker.events) };
        found.check().map_err(UcxError::of("can not sleep"))?;
        Ok(Arc::new(worker))
    }

    fn find_address(&self) -> Result<Vec<u8>, UcxError> {
        let (mut address, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the worker is alive; two places to write to.
        let found =
            unsafe { (self.functions().worker_get_address)(self.raw(), &mut address, &mut length) };
        found
            .check()
            .map_err(UcxError::of("a worker has no address"))?;
        // SAFETY: UCX lends that many bytes until they are released, which is after the copy.
        let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length) }.to_vec();
        // SAFETY: from this worker, released once.
        unsafe { (self.functions().worker_release_address)(self.raw(), address) };
        Ok(bytes)
    }

    pub(super) fn raw(&self) -> *mut ffi::Worker {
        self.raw.as_ptr()
    }

    pub(super) fn functions(&self) -> &'static Functions {
        self.context.functions()
    }

    /// Whose it is.
    pub(crate) fn ucx(&self) -> &'static Ucx {
        self.context.ucx
    }

    /// What others need to make an [`Endpoint`](super::endpoint::Endpoint) to it.
    pub(crate) fn address(&self) -> &[u8] {
        &self.address
    }

    /// The longest header of an active message.
    pub(crate) fn most_header(&self) -> usize {
        self.most_header
    }

    /// Does what there is to do; whether there was any. Handlers are called here.
    ///
    /// In a handler it does nothing: UCX can not progress inside its own progress.
    pub(crate) fn progress(&self) -> bool {
        if PROGRESSING.replace(true) {
            return false;
        }
        // SAFETY: the worker is alive, and this thread is in no progress.
        let did = unsafe { (self.functions().worker_progress)(self.raw()) };
        PROGRESSING.set(false);
        if self.any_abandoned.load(Ordering::Relaxed) {
            self.free_abandoned();
        }
        did != 0
    }

    /// Readable when there is something to progress, if [`arm`](Self::arm) was called since the last progress.
    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: open as long as the worker is.
        unsafe { BorrowedFd::borrow_raw(self.events) }
    }

    /// Makes [`events`](Self::events) become readable at the next event. False if something happened since the last
    /// progress: progress first.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn arm(&self) -> Result<bool, Status> {
        // SAFETY: the worker is alive.
        match unsafe { (self.functions().worker_arm)(self.raw()) }.check() {
            Ok(()) => Ok(true),
            Err(Status::BUSY) => Ok(false),
            Err(status) => Err(status),
        }
    }

    /// Sleeps until there may be something to progress, but not longer than `limit`. UCX may miss an event: a limit of
    /// 50 ms or less makes that harmless.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn sleep(&self, limit: Duration) -> Result<(), Status> {
        self.sleep_if(limit, || true)
    }

    /// As [`sleep`](Self::sleep), unless what `still` looks at has changed before the next event could end the sleep.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn sleep_if(
        &self,
        limit: Duration,
        still: impl FnOnce() -> bool,
    ) -> Result<(), Status> {
        if self.arm()? && still() {
            let limit = Timespec::try_from(limit).ok();
            let events = self.events();
            let mut events = [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN)];
            // A signal ends the sleep too; whoever calls looks and comes back.
            let _ = poll(&mut events, limit.as_ref());
        }
        Ok(())
    }

    /// Ends the sleep of another thread, or the next one.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn wake(&self) -> Result<(), Status> {
        // SAFETY: the worker is alive; any thread may.
        unsafe { (self.functions().worker_signal)(self.raw()) }.check()
    }

    /// What is put before it arrives before what is put after it, per endpoint.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn fence(&self) -> Result<(), Status> {
        // SAFETY: the worker is alive.
        unsafe { (self.functions().worker_fence)(self.raw()) }.check()
    }

    /// Keeps what UCX may call until the worker's end.
    pub(super) fn keep(&self, called: Arc<dyn Any + Send + Sync>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(called);
    }

    /// Goes on with an operation that nobody waits for, and keeps what it uses.
    pub(super) fn abandon(&self, operation: NonNull<c_void>, kept: Box<dyn Any + Send>) {
        let mut abandoned = self
            .abandoned
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        abandoned.push(Abandoned { operation, kept });
        self.any_abandoned.store(true, Ordering::Relaxed);
    }

    fn free_abandoned(&self) {
        let abandoned = || {
            self.abandoned
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        // Not under the lock: UCX locks the worker where it frees, and a handler, with the worker locked, may abandon.
        let mut all = std::mem::take(&mut *abandoned());
        let complete = take_complete(&mut all, self.functions());
        let mut abandoned = abandoned();
        abandoned.append(&mut all);
        self.any_abandoned
            .store(!abandoned.is_empty(), Ordering::Relaxed);
        drop(abandoned);
        drop(complete);
    }
}

/// The complete ones, freed, so that what they used may be dropped.
fn take_complete(
    abandoned: &mut Vec<Abandoned>,
    functions: &Functions,
) -> Vec<Box<dyn Any + Send>> {
    let complete = abandoned.extract_if(.., |one| {
        // SAFETY: not freed yet.
        unsafe { (functions.request_check_status)(one.operation.as_ptr()) }.code() != IN_PROGRESS
    });
    let free = |one: Abandoned| {
        // SAFETY: not freed yet, and taken from the list.
        unsafe { (functions.request_free)(one.operation.as_ptr()) };
        one.kept
    };
    complete.map(free).collect()
}

impl Drop for Worker {
    /// In this order: what nobody waited for completes (endpoints are closed, since they hold the worker), so that its
    /// keys are freed while the worker lives; the worker ends, and UCX calls nothing more; then what it called goes.
    fn drop(&mut self) {
        let functions = self.functions();
        let mut abandoned = std::mem::take(&mut self.abandoned)
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        loop {
            drop(take_complete(&mut abandoned, functions));
            if abandoned.is_empty() || start.elapsed() > LAST_PROGRESS {
                break;
            }
            self.progress();
        }
        // UCX may use it until the worker is gone, and keys can not be freed after: leaked.
        std::mem::forget(abandoned);
        // SAFETY: endpoints and requests hold the worker, so there are none; it ends once.
        unsafe { (functions.worker_destroy)(self.raw()) };
    }
}

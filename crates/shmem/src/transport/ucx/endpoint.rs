//! Ways to other workers, and access to their memory.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicI8, Ordering};

use crate::transport::ucx::ffi::{self, Functions, Padded, Parameters as _};
use crate::transport::ucx::request::{Kept, Key, Request};
use crate::transport::ucx::status::{RawStatus, Status};
use crate::transport::ucx::worker::Worker;

/// A way from a worker to one of another process.
///
/// When the other side fails, operations under way complete with an error, new ones are refused, and it stays so.
pub(crate) struct Endpoint {
    raw: NonNull<ffi::Endpoint>,
    failure: Arc<Failure>,
    worker: Arc<Worker>,
}

// SAFETY: UCX locks the worker of an endpoint where it is used.
unsafe impl Send for Endpoint {}
// SAFETY: as above.
unsafe impl Sync for Endpoint {}

/// The first code that UCX told of an endpoint; 0 while there is none.
#[derive(Default)]
struct Failure(AtomicI8);

/// Called by UCX when the other side has failed.
///
/// # Safety
/// `argument` is a [`Failure`].
unsafe extern "C" fn on_error(argument: *mut c_void, _: *mut ffi::Endpoint, status: RawStatus) {
    // SAFETY: as the caller says; the worker keeps it until its end.
    let failure = unsafe { &*argument.cast::<Failure>() };
    let _ = (failure.0).compare_exchange(0, status.code(), Ordering::Release, Ordering::Relaxed);
}

impl Endpoint {
    /// To the worker whose [address](Worker::address) it is. The connection is made by the first operation, while both
    /// sides are progressed.
    ///
    /// # Errors
    /// [`Status`]: no network that the two sides have in common.
    ///
    /// # Safety
    /// `address` is what a worker of some process said, whole and unchanged: UCX trusts it.
    pub(crate) unsafe fn connect(
        worker: &Arc<Worker>,
        address: &[u8],
    ) -> Result<Arc<Self>, Status> {
        let failure = Arc::new(Failure::default());
        worker.keep(Arc::clone(&failure) as _);
        let parameters = Padded::new(ffi::EndpointParameters {
            mask: ffi::ENDPOINT_ADDRESS | ffi::ENDPOINT_ERROR_MODE | ffi::ENDPOINT_ERROR_HANDLER,
            address: address.as_ptr().cast(),
            error_mode: ffi::ERRORS_PEER,
            on_error: Some(on_error),
            on_error_argument: Arc::as_ptr(&failure).cast_mut().cast(),
        });
        let mut raw = ptr::null_mut();
        // SAFETY: parameters and address live until it returns; the failure lives as long as the worker; `raw` is a
        // place to write to.
        let made = unsafe { (worker.functions().ep_create)(worker.raw(), &parameters, &mut raw) };
        made.check()?;
        Ok(Arc::new(Self {
            raw: NonNull::new(raw).expect("UCX made an endpoint"),
            failure,
            worker: Arc::clone(worker),
        }))
    }

    pub(super) fn raw(&self) -> *mut ffi::Endpoint {
        self.raw.as_ptr()
    }

    pub(super) fn functions(&self) -> &'static Functions {
        self.worker.functions()
    }

    /// Whose it is.
    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// # Errors
    /// Why the other side is no longer there.
    pub(crate) fn check(&self) -> Result<(), Status> {
        Status::of(self.failure.0.load(Ordering::Acquire)).map_or(Ok(()), Err)
    }

    /// Completes what was put through this endpoint: it is in the memory of the other side then.
    ///
    /// # Errors
    /// [`Status`]: the other side has failed.
    pub(crate) fn flush(&self) -> Result<Request, Status> {
        self.check()?;
        let parameters = Padded::new(ffi::RequestParameters::zero());
        // SAFETY: the endpoint is alive; parameters live until it returns.
        let returned = unsafe { (self.functions().ep_flush_nbx)(self.raw(), &parameters) };
        // SAFETY: from a flush of this worker's endpoint, which uses nothing of ours.
        unsafe { Request::new(&self.worker, returned, Kept::Nothing) }
    }

    /// The key to memory of the other side, from its [bytes](super::context::Region::packed_key).
    ///
    /// # Errors
    /// [`Status`]
    ///
    /// # Safety
    /// `packed` is what a region of the process at the other side said, whole and unchanged: UCX trusts it.
    pub(crate) unsafe fn unpack(self: &Arc<Self>, packed: &[u8]) -> Result<RemoteKey, Status> {
        let mut raw = ptr::null_mut();
        // SAFETY: the endpoint is alive, the caller says what the bytes are; `raw` is a place to write to.
        let unpacked = unsafe {
            (self.functions().ep_rkey_unpack)(self.raw(), packed.as_ptr().cast(), &mut raw)
        };
        unpacked.check()?;
        let key = Key {
            raw: NonNull::new(raw).expect("UCX unpacked a key"),
            functions: self.functions(),
        };
        Ok(RemoteKey {
            key: Arc::new(key),
            endpoint: Arc::clone(self),
        })
    }
}

impl Drop for Endpoint {
    /// At once: operations under way are cancelled. Who wants them complete flushes first.
    fn drop(&mut self) {
        let parameters = Padded::new(ffi::RequestParameters {
            mask: ffi::REQUEST_FLAGS,
            flags: ffi::CLOSE_FORCE,
            ..ffi::RequestParameters::zero()
        });
        // SAFETY: alive, and closed once. Forced, it leaves no operation behind that would have to be freed.
        unsafe { (self.functions().ep_close_nbx)(self.raw(), &parameters) };
    }
}

/// The key to memory of another process, through an endpoint.
pub(crate) struct RemoteKey {
    key: Arc<Key>,
    endpoint: Arc<Endpoint>,
}

/// Of puts and gets: what is local is ordinary memory, which UCX need not find out.
fn host_memory() -> Padded<ffi::RequestParameters> {
    Padded::new(ffi::RequestParameters {
        mask: ffi::REQUEST_MEMORY_TYPE,
        memory_type: ffi::MEMORY_HOST,
        ..ffi::RequestParameters::zero()
    })
}

impl RemoteKey {
    /// Whose memory it is.
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Copies `length` bytes from `source` to the remote address `to`. Complete when `source` may be reused; a flush
    /// says that it has arrived.
    ///
    /// # Errors
    /// [`Status`]: the other side has failed.
    ///
    /// # Safety
    /// The bytes at `source` are readable and do not change until the request is complete, even if it is dropped; those
    /// at `to` belong to the region that the key is of.
    pub(crate) unsafe fn put(
        &self,
        source: *const u8,
        length: usize,
        to: u64,
    ) -> Result<Request, Status> {
        self.endpoint.check()?;
        // SAFETY: the caller lends `source` and says what `to` is; the request keeps the key; parameters live until it
        // returns.
        unsafe {
            let returned = (self.key.functions.put_nbx)(
                self.endpoint.raw(),
                source.cast(),
                length,
                to,
                self.key.raw.as_ptr(),
                &host_memory(),
            );
            self.request(returned)
        }
    }

    /// Copies `length` bytes from the remote address `from` to `into`.
    ///
    /// # Errors
    /// [`Status`]: the other side has failed.
    ///
    /// # Safety
    /// The bytes at `into` are writable, and nobody else's until the request is complete, even if it is dropped; those
    /// at `from` belong to the region that the key is of.
    pub(crate) unsafe fn get(
        &self,
        into: *mut u8,
        length: usize,
        from: u64,
    ) -> Result<Request, Status> {
        self.endpoint.check()?;
        // SAFETY: the caller lends `into` and says what `from` is; the request keeps the key; parameters live until it
        // returns.
        unsafe {
            let returned = (self.key.functions.get_nbx)(
                self.endpoint.raw(),
                into.cast(),
                length,
                from,
                self.key.raw.as_ptr(),
                &host_memory(),
            );
            self.request(returned)
        }
    }

    /// # Safety
    /// `returned` is from a put or get with this key.
    unsafe fn request(&self, returned: *mut c_void) -> Result<Request, Status> {
        let kept = Kept::Key(Arc::clone(&self.key));
        // SAFETY: of this endpoint's worker, as the caller says; it uses the key.
        unsafe { Request::new(self.endpoint.worker(), returned, kept) }
    }
}

//! Active messages: a header and data, and what is called when they come.

use std::cell::Cell;
use std::ffi::c_void;
use std::slice;
use std::sync::{Arc, Weak};

use crate::transport::ucx::endpoint::Endpoint;
use crate::transport::ucx::ffi::{self, Padded, Parameters as _};
use crate::transport::ucx::request::{Bytes, Kept, Request};
use crate::transport::ucx::status::{RawStatus, Status};
use crate::transport::ucx::worker::Worker;

/// How the data of a message travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// As UCX thinks best.
    Any,
    /// With the header. They are [here](Data::Here) when the handler is called.
    Eager,
    /// Once the handler says where they are to go: [there](Data::There).
    Rendezvous,
}

impl Endpoint {
    /// Sends a message to the handler for `id`. Complete when it has left, or, by rendezvous, when the other side has
    /// received or refused it.
    ///
    /// # Errors
    /// [`Status`]: the other side has failed, or the header is longer than [`Worker::most_header`].
    pub(crate) fn send(
        &self,
        id: u16,
        header: &[u8],
        data: impl Into<Box<[u8]>>,
        protocol: Protocol,
    ) -> Result<Request, Status> {
        let data = Bytes::new(data);
        let (start, length) = (data.as_ptr(), data.len());
        // SAFETY: the request keeps the data.
        unsafe { self.send_kept(id, header, start, length, protocol, data) }
    }

    /// The same with data that are lent.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// # Safety
    /// `length` bytes at `data` are readable and do not change until the request is complete, even if it is dropped.
    pub(crate) unsafe fn send_from(
        &self,
        id: u16,
        header: &[u8],
        data: *const u8,
        length: usize,
        protocol: Protocol,
    ) -> Result<Request, Status> {
        // SAFETY: the caller keeps the data.
        unsafe { self.send_kept(id, header, data, length, protocol, Bytes::default()) }
    }

    /// # Safety
    /// As [`send_from`](Self::send_from), but that the data may be what is kept.
    unsafe fn send_kept(
        &self,
        id: u16,
        header: &[u8],
        data: *const u8,
        length: usize,
        protocol: Protocol,
        kept: Bytes,
    ) -> Result<Request, Status> {
        self.check()?;
        if header.len() > self.worker().most_header() {
            return Err(Status::INVALID_PARAMETER);
        }
        let how = match protocol {
            Protocol::Any => 0,
            Protocol::Eager => ffi::SEND_EAGER,
            Protocol::Rendezvous => ffi::SEND_RENDEZVOUS,
        };
        let parameters = Padded::new(ffi::RequestParameters {
            mask: ffi::REQUEST_FLAGS | ffi::REQUEST_MEMORY_TYPE,
            flags: how,
            memory_type: ffi::MEMORY_HOST,
            ..ffi::RequestParameters::zero()
        });
        // UCX before 1.14 can not copy the header itself.
        let header = Bytes::new(header);
        // SAFETY: the request keeps the header, and the data are kept; parameters live until it returns.
        unsafe {
            let returned = (self.functions().am_send_nbx)(
                self.raw(),
                id.into(),
                header.as_ptr().cast(),
                header.len(),
                data.cast(),
                length,
                &parameters,
            );
            Request::new(self.worker(), returned, Kept::Bytes([header, kept]))
        }
    }
}

/// A message that has come, for the time of its handler.
pub(crate) struct Message<'a> {
    /// As it was sent.
    pub(crate) header: &'a [u8],
    /// Its data.
    pub(crate) data: Data<'a>,
}

/// Data of a message.
pub(crate) enum Data<'a> {
    /// All of them.
    Here(&'a [u8]),
    /// Still at the sender.
    There(Rendezvous<'a>),
}

/// Data that wait at the sender to be told where to go. They are refused, and their sender is done, if that does not
/// happen in the handler.
pub(crate) struct Rendezvous<'a> {
    descriptor: *mut c_void,
    length: usize,
    worker: &'a Arc<Worker>,
    /// Whether UCX has them.
    received: &'a Cell<bool>,
}

impl Rendezvous<'_> {
    /// Bytes to come.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Fetches the data into the `room` bytes at `into`.
    ///
    /// # Errors
    /// [`Status`], [`Status::MESSAGE_TRUNCATED`] if the room is too small.
    ///
    /// # Safety
    /// The bytes at `into` are writable, and nobody else's until the request is complete, even if it is dropped.
    pub(crate) unsafe fn receive_into(self, into: *mut u8, room: usize) -> Result<Request, Status> {
        // SAFETY: the caller keeps the memory.
        unsafe { self.receive_kept(into, room, Bytes::default()) }
    }

    /// Fetches the data into memory of their own.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn receive(self) -> Result<Receive, Status> {
        let data = Bytes::new(vec![0; self.length]);
        let (into, room) = (data.as_ptr(), data.len());
        // SAFETY: the request keeps the memory.
        let request = unsafe { self.receive_kept(into, room, data) }?;
        Ok(Receive { request })
    }

    /// # Safety
    /// As [`receive_into`](Self::receive_into), but that the memory may be what is kept.
    unsafe fn receive_kept(
        self,
        into: *mut u8,
        room: usize,
        kept: Bytes,
    ) -> Result<Request, Status> {
        // UCX does not look.
        if room < self.length {
            return Err(Status::MESSAGE_TRUNCATED);
        }
        self.received.set(true);
        let parameters = Padded::new(ffi::RequestParameters {
            mask: ffi::REQUEST_MEMORY_TYPE,
            memory_type: ffi::MEMORY_HOST,
            ..ffi::RequestParameters::zero()
        });
        // SAFETY: the descriptor is of the message whose handler runs, and used once, for `self` is gone; the memory is
        // kept; parameters live until it returns.
        unsafe {
            let returned = (self.worker.functions().am_recv_data_nbx)(
                self.worker.raw(),
                self.descriptor,
                into.cast(),
                self.length,
                &parameters,
            );
            let kept = Kept::Bytes([Bytes::default(), kept]);
            Request::new(self.worker, returned, kept)
        }
    }
}

/// Data on their way.
pub(crate) struct Receive {
    request: Request,
}

impl Receive {
    /// The data, once, when they have come.
    ///
    /// # Errors
    /// [`Status`]: the sender has failed.
    pub(crate) fn poll(&mut self) -> Result<Option<Vec<u8>>, Status> {
        Ok(self
            .request
            .poll()?
            .then(|| self.request.take_bytes())
            .flatten())
    }
}

/// What UCX hands to [`on_message`].
struct Handler {
    function: Box<dyn Fn(Message<'_>) + Send + Sync>,
    worker: Weak<Worker>,
}

impl Worker {
    /// Calls `function` for each message to `id`, in [`progress`](Self::progress); instead of an earlier one.
    ///
    /// It may send, put and get, but must not wait for that, and a panic in it ends the process. It must not own the
    /// worker, which would then never end.
    ///
    /// # Errors
    /// [`Status`]
    pub(crate) fn on_message(
        self: &Arc<Self>,
        id: u16,
        function: impl Fn(Message<'_>) + Send + Sync + 'static,
    ) -> Result<(), Status> {
        let handler = Arc::new(Handler {
            function: Box::new(function),
            worker: Arc::downgrade(self),
        });
        self.keep(Arc::clone(&handler) as _);
        let parameters = Padded::new(ffi::HandlerParameters {
            mask: ffi::HANDLER_ID
                | ffi::HANDLER_FLAGS
                | ffi::HANDLER_FUNCTION
                | ffi::HANDLER_ARGUMENT,
            id: id.into(),
            flags: ffi::HANDLER_WHOLE_MESSAGES,
            handler: Some(on_message),
            argument: Arc::as_ptr(&handler).cast_mut().cast(),
        });
        // SAFETY: parameters live until it returns, the handler as long as the worker.
        unsafe { (self.functions().worker_set_am_recv_handler)(self.raw(), &parameters) }.check()
    }
}

/// Called by UCX for a message.
///
/// # Safety
/// `argument` is a [`Handler`]; the rest is as UCX says of this callback.
unsafe extern "C" fn on_message(
    argument: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    attributes: *const ffi::MessageAttributes,
) -> RawStatus {
    // SAFETY: as the caller says; the worker keeps it until its end.
    let handler = unsafe { &*argument.cast::<Handler>() };
    // None while the worker ends: what comes then is refused. This is not its last owner, for whoever progresses it
    // holds it.
    let Some(worker) = handler.worker.upgrade() else {
        return RawStatus::OK;
    };
    // SAFETY: UCX lends the header for this call.
    let header = unsafe { bytes(header, header_length) };
    let received = Cell::new(false);
    // SAFETY: UCX lends the attributes for this call.
    let data = match unsafe { (*attributes).attributes } & ffi::MESSAGE_RENDEZVOUS {
        // SAFETY: UCX lends the data for this call, for they are no descriptor.
        0 => Data::Here(unsafe { bytes(data, length) }),
        _ => Data::There(Rendezvous {
            descriptor: data,
            length,
            worker: &worker,
            received: &received,
        }),
    };
    (handler.function)(Message { header, data });
    // In progress: the descriptor is not to be freed.
    match received.get() {
        true => RawStatus::IN_PROGRESS,
        false => RawStatus::OK,
    }
}

/// # Safety
/// `length` bytes at `start` are readable for `'a`.
unsafe fn bytes<'a>(start: *const c_void, length: usize) -> &'a [u8] {
    match length {
        // The pointer may be null then.
        0 => &[],
        // SAFETY: as the caller says.
        _ => unsafe { slice::from_raw_parts(start.cast(), length) },
    }
}

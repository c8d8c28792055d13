//! What is used of UCX's functions and structures (`ucp/api/ucp.h`), declared here.
//!
//! A structure begins with a mask that says which of its fields count. Newer versions add fields at the end, and read
//! none whose bit is not set; so each structure is zero where nothing is said, and [`Padded`] with room for growth.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

use libloading::Library;

use crate::library::symbol;
use crate::transport::ucx::status::RawStatus;

/// Named by pointers only.
pub(super) enum Config {}
/// Named by pointers only.
pub(super) enum Context {}
/// Named by pointers only.
pub(super) enum Worker {}
/// Named by pointers only.
pub(super) enum Endpoint {}
/// Named by pointers only.
pub(super) enum Memory {}
/// Named by pointers only.
pub(super) enum RemoteKey {}
/// Named by pointers only.
pub(super) enum Address {}

/// Whose zeroes mean that nothing is said.
///
/// # Safety
/// All fields are integers, raw pointers, optional functions, or such types: zeroes are a value.
pub(super) unsafe trait Parameters: Sized {
    /// Nothing said.
    fn zero() -> Self {
        // SAFETY: zeroes are a value, as the trait's implementors promise.
        unsafe { std::mem::zeroed() }
    }
}

/// A structure with room behind it, for what newer versions added.
#[repr(C)]
pub(super) struct Padded<T> {
    /// What is known of it.
    pub(super) known: T,
    room: [u64; 64],
}

impl<T: Parameters> Padded<T> {
    /// Zero but for what `known` says.
    pub(super) fn new(known: T) -> Self {
        Self {
            known,
            room: [0; 64],
        }
    }
}

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $offset:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            pub(super) struct $name {
                $($(#[$field_doc])* pub(super) $field: $type,)*
            }
            // SAFETY: integers, raw pointers and optional functions, see below.
            unsafe impl Parameters for $name {}
            const _: () = {
                $(assert!(offset_of!($name, $field) == $offset);)*
            };
        )*
    };
}

parameters! {
    /// `ucp_params_t`.
    ContextParameters {
        /// Which fields count.
        mask: u64 = 0,
        /// What the context is for.
        features: u64 = 8,
        /// Bytes of a request for its user.
        request_size: usize = 16,
        /// Called for a new request.
        request_init: *const c_void = 24,
        /// Called for an old one.
        request_cleanup: *const c_void = 32,
        /// Bits of a tag that name its sender.
        tag_sender_mask: u64 = 40,
        /// Whether workers of several threads share the context.
        workers_shared: c_int = 48,
    }
    /// `ucp_worker_params_t`.
    WorkerParameters {
        /// Which fields count.
        mask: u64 = 0,
        /// Which threads use it: [`THREADS_MULTI`].
        thread_mode: c_int = 8,
        /// Where its own threads run.
        cpus: [u64; 16] = 16,
        /// What wakes it.
        events: c_uint = 144,
    }
    /// `ucp_worker_attr_t`.
    WorkerAttributes {
        /// Which fields are asked for.
        mask: u64 = 0,
        /// Which threads may use it.
        thread_mode: c_int = 8,
        /// What its address is to hold.
        address_flags: u32 = 12,
        /// Its address.
        address: *mut Address = 16,
        /// Bytes of it.
        address_length: usize = 24,
        /// The longest header of an active message.
        most_header: usize = 32,
    }
    /// `ucp_ep_params_t`.
    EndpointParameters {
        /// Which fields count.
        mask: u64 = 0,
        /// Of the worker at the other side.
        address: *const Address = 8,
        /// What happens when the other side fails: [`ERRORS_PEER`].
        error_mode: c_int = 16,
        /// Called then.
        on_error: Option<ErrorHandler> = 24,
        /// Its first argument.
        on_error_argument: *mut c_void = 32,
    }
    /// `ucp_mem_map_params_t`.
    MapParameters {
        /// Which fields count.
        mask: u64 = 0,
        /// First byte.
        address: *mut c_void = 8,
        /// Bytes.
        length: usize = 16,
        /// How it is mapped.
        flags: c_uint = 24,
        /// What may be done to it.
        protection: c_uint = 28,
        /// What kind of memory it is: [`MEMORY_HOST`].
        memory_type: c_int = 32,
    }
    /// `ucp_request_param_t`.
    RequestParameters {
        /// Which fields count, and how the operation is to be done.
        mask: u32 = 0,
        /// Meaning depends on the function.
        flags: u32 = 4,
        /// Memory for the request.
        request: *mut c_void = 8,
        /// Called when it is complete.
        callback: *const c_void = 16,
        /// What the elements are; bytes if not said.
        datatype: u64 = 24,
        /// For the callback.
        user_data: *mut c_void = 32,
        /// For a reply.
        reply_buffer: *mut c_void = 40,
        /// What kind of memory the local buffer is: [`MEMORY_HOST`].
        memory_type: c_int = 48,
    }
    /// `ucp_am_handler_param_t`.
    HandlerParameters {
        /// Which fields count.
        mask: u64 = 0,
        /// Of which messages.
        id: c_uint = 8,
        /// How they are handed over.
        flags: u32 = 12,
        /// Called for each.
        handler: Option<MessageHandler> = 16,
        /// Its first argument.
        argument: *mut c_void = 24,
    }
    /// `ucp_am_recv_param_t`.
    MessageAttributes {
        /// What the message is.
        attributes: u64 = 0,
        /// Where a reply would go.
        reply_endpoint: *mut Endpoint = 8,
    }
}

/// `ucp_err_handler_cb_t`: argument, endpoint, status.
pub(super) type ErrorHandler = unsafe extern "C" fn(*mut c_void, *mut Endpoint, RawStatus);
/// `ucp_am_recv_callback_t`: argument, header and its length, data (or their descriptor) and their length, attributes.
pub(super) type MessageHandler = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    usize,
    *mut c_void,
    usize,
    *const MessageAttributes,
) -> RawStatus;

// ContextParameters::mask, then ::features.
pub(super) const CONTEXT_FEATURES: u64 = 1 << 0;
pub(super) const CONTEXT_WORKERS_SHARED: u64 = 1 << 5;
pub(super) const FEATURE_RMA: u64 = 1 << 1;
pub(super) const FEATURE_WAKEUP: u64 = 1 << 4;
pub(super) const FEATURE_ACTIVE_MESSAGES: u64 = 1 << 6;
// WorkerParameters::mask; ::thread_mode.
pub(super) const WORKER_THREAD_MODE: u64 = 1 << 0;
pub(super) const THREADS_MULTI: c_int = 2;
// WorkerAttributes::mask.
pub(super) const ATTRIBUTE_THREAD_MODE: u64 = 1 << 0;
pub(super) const ATTRIBUTE_MOST_HEADER: u64 = 1 << 3;
// EndpointParameters::mask; ::error_mode.
pub(super) const ENDPOINT_ADDRESS: u64 = 1 << 0;
pub(super) const ENDPOINT_ERROR_MODE: u64 = 1 << 1;
pub(super) const ENDPOINT_ERROR_HANDLER: u64 = 1 << 2;
pub(super) const ERRORS_PEER: c_int = 1;
// MapParameters::mask; ::memory_type and that of RequestParameters.
pub(super) const MAP_ADDRESS: u64 = 1 << 0;
pub(super) const MAP_LENGTH: u64 = 1 << 1;
pub(super) const MAP_MEMORY_TYPE: u64 = 1 << 4;
pub(super) const MEMORY_HOST: c_int = 0;
// RequestParameters::mask; ::flags of a close and of a message.
pub(super) const REQUEST_FLAGS: u32 = 1 << 4;
pub(super) const REQUEST_MEMORY_TYPE: u32 = 1 << 6;
pub(super) const CLOSE_FORCE: u32 = 1 << 0;
pub(super) const SEND_EAGER: u32 = 1 << 1;
pub(super) const SEND_RENDEZVOUS: u32 = 1 << 2;
// HandlerParameters::mask; ::flags.
pub(super) const HANDLER_ID: u64 = 1 << 0;
pub(super) const HANDLER_FLAGS: u64 = 1 << 1;
pub(super) const HANDLER_FUNCTION: u64 = 1 << 2;
pub(super) const HANDLER_ARGUMENT: u64 = 1 << 3;
pub(super) const HANDLER_WHOLE_MESSAGES: u32 = 1 << 0;
// MessageAttributes::attributes.
pub(super) const MESSAGE_RENDEZVOUS: u64 = 1 << 17;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a libucp.
        pub(super) struct Functions {
            $($(#[$doc])* pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Errors: which function it has not.
            pub(super) fn load(library: &Library) -> Result<Self, String> {
                Ok(Self {
                    $(
                        // SAFETY: the type is that of `ucp/api/ucp.h`, unchanged from 1.13 to 1.22; a status, which is
                        // eight bits there, is a RawStatus, which reads no others.
                        $name: unsafe { symbol(library, concat!("ucp_", stringify!($name)), NOT)? },
                    )*
                })
            }
        }
    };
}

const NOT: &str = "not UCX, or older than 1.13";

functions! {
    /// Major, minor and release number.
    get_version(*mut c_uint, *mut c_uint, *mut c_uint);
    /// Settings from the environment: prefix, file.
    config_read(*const c_char, *const c_char, *mut *mut Config) -> RawStatus;
    /// Sets one: name, value.
    config_modify(*mut Config, *const c_char, *const c_char) -> RawStatus;
    /// Frees settings.
    config_release(*mut Config);
    /// A context, for callers that know this version (major, minor) of the interface.
    init_version(
        c_uint,
        c_uint,
        *const Padded<ContextParameters>,
        *const Config,
        *mut *mut Context
    ) -> RawStatus;
    /// Ends a context.
    cleanup(*mut Context);
    /// A worker of a context.
    worker_create(*mut Context, *const Padded<WorkerParameters>, *mut *mut Worker) -> RawStatus;
    /// Ends a worker and its endpoints.
    worker_destroy(*mut Worker);
    /// Asks about a worker.
    worker_query(*mut Worker, *mut Padded<WorkerAttributes>) -> RawStatus;
    /// Its address and the bytes of that.
    worker_get_address(*mut Worker, *mut *mut Address, *mut usize) -> RawStatus;
    /// Frees an address.
    worker_release_address(*mut Worker, *mut Address);
    /// Does what there is to do; how much that was.
    worker_progress(*mut Worker) -> c_uint;
    /// Makes the event descriptor fire at the next event; busy if there was one since.
    worker_arm(*mut Worker) -> RawStatus;
    /// The event descriptor.
    worker_get_efd(*mut Worker, *mut c_int) -> RawStatus;
    /// Makes the event descriptor fire.
    worker_signal(*mut Worker) -> RawStatus;
    /// Orders what was put before what comes.
    worker_fence(*mut Worker) -> RawStatus;
    /// Completes what was put through all endpoints.
    worker_flush_nbx(*mut Worker, *const Padded<RequestParameters>) -> *mut c_void;
    /// An endpoint of a worker.
    ep_create(*mut Worker, *const Padded<EndpointParameters>, *mut *mut Endpoint) -> RawStatus;
    /// Ends an endpoint.
    ep_close_nbx(*mut Endpoint, *const Padded<RequestParameters>) -> *mut c_void;
    /// Completes what was put through an endpoint.
    ep_flush_nbx(*mut Endpoint, *const Padded<RequestParameters>) -> *mut c_void;
    /// Makes memory reachable.
    mem_map(*mut Context, *const Padded<MapParameters>, *mut *mut Memory) -> RawStatus;
    /// No longer.
    mem_unmap(*mut Context, *mut Memory) -> RawStatus;
    /// The key of reachable memory, as bytes.
    rkey_pack(*mut Context, *mut Memory, *mut *mut c_void, *mut usize) -> RawStatus;
    /// Frees those.
    rkey_buffer_release(*mut c_void);
    /// A key from its bytes, for one endpoint.
    ep_rkey_unpack(*mut Endpoint, *const c_void, *mut *mut RemoteKey) -> RawStatus;
    /// Frees it.
    rkey_destroy(*mut RemoteKey);
    /// From local memory, bytes of it, to a remote address.
    put_nbx(
        *mut Endpoint,
        *const c_void,
        usize,
        u64,
        *mut RemoteKey,
        *const Padded<RequestParameters>
    ) -> *mut c_void;
    /// Into local memory, bytes of it, from a remote address.
    get_nbx(
        *mut Endpoint,
        *mut c_void,
        usize,
        u64,
        *mut RemoteKey,
        *const Padded<RequestParameters>
    ) -> *mut c_void;
    /// An active message: its kind, header and data.
    am_send_nbx(
        *mut Endpoint,
        c_uint,
        *const c_void,
        usize,
        *const c_void,
        usize,
        *const Padded<RequestParameters>
    ) -> *mut c_void;
    /// Says what is called for active messages of a kind.
    worker_set_am_recv_handler(*mut Worker, *const Padded<HandlerParameters>) -> RawStatus;
    /// Fetches the data of a message: descriptor, memory, bytes of it.
    am_recv_data_nbx(
        *mut Worker,
        *mut c_void,
        *mut c_void,
        usize,
        *const Padded<RequestParameters>
    ) -> *mut c_void;
    /// How an operation stands.
    request_check_status(*mut c_void) -> RawStatus;
    /// Asks to give an operation up.
    request_cancel(*mut Worker, *mut c_void);
    /// Lets go of an operation.
    request_free(*mut c_void);
}

//! A context, which workers and memory belong to.

use std::ffi::{CString, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

use crate::transport::ucx::ffi::{self, Functions, Padded, Parameters as _};
use crate::transport::ucx::library::{OLDEST, Ucx, UcxError};

/// UCX with its settings: one a process. It chooses among networks what its workers use.
pub(crate) struct Context {
    pub(super) raw: NonNull<ffi::Context>,
    pub(super) ucx: &'static Ucx,
}

// SAFETY: made for workers of several threads (`workers_shared`), so UCX locks what they share.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The one of this process, made by the first call, with the machine's UCX and the settings of the environment; for
    /// messages alone: who can reach a worker that offers RMA can write anywhere in its process.
    ///
    /// # Errors
    /// [`UcxError`]
    pub(crate) fn of_this_process() -> Result<Arc<Self>, UcxError> {
        static CONTEXT: OnceLock<Result<Arc<Context>, UcxError>> = OnceLock::new();
        CONTEXT
            .get_or_init(|| {
                // A piece of a long transfer goes with its head: asking for it first takes twice as long over TCP.
                let unset = std::env::var_os("UCX_RNDV_THRESH").is_none();
                let settings = [("RNDV_THRESH", "256k")];
                let settings = if unset { &settings[..] } else { &[] };
                Self::with(Ucx::get()?, settings, ffi::FEATURE_ACTIVE_MESSAGES)
            })
            .clone()
    }

    /// With the settings of the environment (`UCX_…`), and after them `settings`: names without `UCX_`, and values.
    ///
    /// # Errors
    /// [`UcxError::Call`]: a setting makes no sense, or there is no network that would do. Names that UCX does not know
    /// are passed over.
    pub(crate) fn new(ucx: &'static Ucx, settings: &[(&str, &str)]) -> Result<Arc<Self>, UcxError> {
        let features = ffi::FEATURE_RMA | ffi::FEATURE_ACTIVE_MESSAGES;
        Self::with(ucx, settings, features)
    }

    fn with(
        ucx: &'static Ucx,
        settings: &[(&str, &str)],
        features: u64,
    ) -> Result<Arc<Self>, UcxError> {
        let config = Config::read(&ucx.functions)?;
        for (name, value) in settings {
            config.set(name, value)?;
        }
        let parameters = Padded::new(ffi::ContextParameters {
            mask: ffi::CONTEXT_FEATURES | ffi::CONTEXT_WORKERS_SHARED,
            features: features | ffi::FEATURE_WAKEUP,
            workers_shared: 1,
            ..ffi::ContextParameters::zero()
        });
        let mut raw = ptr::null_mut();
        // SAFETY: parameters and settings live until it returns; `raw` is a place to write to.
        let made = unsafe {
            (ucx.functions.init_version)(
                OLDEST.0,
                OLDEST.1,
                &parameters,
                config.raw.as_ptr(),
                &mut raw,
            )
        };
        made.check().map_err(UcxError::of("can not start"))?;
        let raw = NonNull::new(raw).expect("UCX made a context");
        Ok(Arc::new(Self { raw, ucx }))
    }

    pub(super) fn functions(&self) -> &'static Functions {
        &self.ucx.functions
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: workers and regions hold the context, so there are none.
        unsafe { (self.functions().cleanup)(self.raw.as_ptr()) }
    }
}

/// Settings, until a context is made of them.
struct Config {
    raw: NonNull<ffi::Config>,
    functions: &'static Functions,
}

impl Config {
    fn read(functions: &'static Functions) -> Result<Self, UcxError> {
        let mut raw = ptr::null_mut();
        // SAFETY: no prefix and no file mean the usual ones; `raw` is a place to write to.
        let read = unsafe { (functions.config_read)(ptr::null(), ptr::null(), &mut raw) };
        read.check()
            .map_err(UcxError::of("can not read settings"))?;
        let raw = NonNull::new(raw).expect("UCX read its settings");
        Ok(Self { raw, functions })
    }

    fn set(&self, name: &str, value: &str) -> Result<(), UcxError> {
        let text = |text: &str| CString::new(text).expect("settings are text without zeroes");
        let (name, value) = (text(name), text(value));
        // SAFETY: two strings that end in zero.
        let set = unsafe {
            (self.functions.config_modify)(self.raw.as_ptr(), name.as_ptr(), value.as_ptr())
        };
        let what = || format!("UCX_{}={}", name.to_string_lossy(), value.to_string_lossy());
        set.check().map_err(|status| UcxError::of(what())(status))
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // SAFETY: read from UCX and not released before.
        unsafe { (self.functions.config_release)(self.raw.as_ptr()) }
    }
}

/// Memory of this process that others may reach while it exists.
pub(crate) struct Region {
    raw: NonNull<ffi::Memory>,
    context: Arc<Context>,
    address: u64,
    length: usize,
}

// SAFETY: a handle that is read only; UCX locks the context where it is freed.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Makes `length` bytes from `address` on reachable.
    ///
    /// # Errors
    /// [`UcxError::Call`]: the network can not register it.
    ///
    /// # Safety
    /// The bytes are mapped and stay so while the region exists, and are written and read as memory is that other
    /// processes change at any time: whoever has the key may.
    pub(crate) unsafe fn map(
        context: &Arc<Context>,
        address: *mut u8,
        length: usize,
    ) -> Result<Self, UcxError> {
        let parameters = Padded::new(ffi::MapParameters {
            mask: ffi::MAP_ADDRESS | ffi::MAP_LENGTH | ffi::MAP_MEMORY_TYPE,
            address: address.cast::<c_void>(),
            length,
            memory_type: ffi::MEMORY_HOST,
            ..ffi::MapParameters::zero()
        });
        let mut raw = ptr::null_mut();
        // SAFETY: the caller lends the memory; parameters live until it returns; `raw` is a place to write to.
        let mapped =
            unsafe { (context.functions().mem_map)(context.raw.as_ptr(), &parameters, &mut raw) };
        mapped
            .check()
            .map_err(|status| UcxError::of(format!("can not register {length} bytes"))(status))?;
        Ok(Self {
            raw: NonNull::new(raw).expect("UCX registered memory"),
            context: Arc::clone(context),
            address: address.expose_provenance() as u64,
            length,
        })
    }

    /// Its first byte, as remote operations name it.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// What another process needs to reach it, as bytes.
    ///
    /// # Errors
    /// [`UcxError::Call`].
    pub(crate) fn packed_key(&self) -> Result<Vec<u8>, UcxError> {
        let functions = self.context.functions();
        let (mut bytes, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the region is registered with this context; two places to write to.
        let packed = unsafe {
            (functions.rkey_pack)(
                self.context.raw.as_ptr(),
                self.raw.as_ptr(),
                &mut bytes,
                &mut length,
            )
        };
        packed.check().map_err(UcxError::of("can not pack a key"))?;
        // SAFETY: UCX lends that many bytes until they are released, which is after the copy.
        let key = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec();
        // SAFETY: from `rkey_pack`, released once.
        unsafe { (functions.rkey_buffer_release)(bytes) };
        Ok(key)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: registered with this context, which is alive, and freed once. What it returns changes nothing.
        unsafe {
            (self.context.functions().mem_unmap)(self.context.raw.as_ptr(), self.raw.as_ptr());
        }
    }
}

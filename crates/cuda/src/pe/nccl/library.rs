//! NCCL, NVIDIA's collectives library, as it is found on the machine and opened once.
#![allow(unsafe_code)] // Opens a library and calls into it.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use crosswarp_shmem::internal::library::{
    self as search, Place, Search, list, mapped_file, open_library, symbol,
};
use cudarc::driver::sys::CUstream;
use libloading::Library;

use crate::driver::error::CudaError;
use crate::library::Sought;

const NAME: &str = "libnccl.so.2";
const VARIABLE: &str = "CROSSWARP_NCCL";
const SOUGHT: search::Sought = Sought {
    variable: VARIABLE,
    names: &[NAME],
    older: &[],
    wheel: "nccl",
}
.everywhere();
const MULTICAST: &str = "NCCL_NVLS_ENABLE";

/// Why NCCL can not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NcclError {
    /// There is no usable library.
    #[error(
        "NCCL (NVIDIA's collectives library, {NAME}) was not found; install it with `pip install \
         nvidia-nccl-cu13`, or set {VARIABLE} to the library's path. Looked at: {}",
        list(looked)
    )]
    NotFound {
        /// Each place looked at and what was the matter there, in the order of the search.
        looked: Vec<(String, String)>,
    },
    /// NCCL might use NVLink multicast, which can not be turned off by a call.
    #[error(
        "NCCL may use NVLink multicast, as {MULTICAST} is {}; start the program with {MULTICAST}=0",
        value.as_deref().unwrap_or("unset")
    )]
    Multicast {
        /// The variable's value.
        value: Option<String>,
    },
    /// Two PEs share a GPU; NCCL wants one for each.
    #[error("PE {pe} and PE {other} share a GPU; NCCL needs a GPU per PE")]
    SharedGpu {
        /// A PE.
        pe: usize,
        /// The other one.
        other: usize,
    },
    /// Another PE can not use NCCL.
    #[error("PE {pe} can not use NCCL, so no PE does")]
    PeerFailed {
        /// The first such PE.
        pe: usize,
    },
    /// A call of NCCL failed.
    #[error("{call} failed: {message} ({code})")]
    Call {
        /// NCCL's function, e.g. `ncclAllReduce`.
        call: &'static str,
        /// The `ncclResult_t` it returned.
        code: i32,
        /// NCCL's own text for it.
        message: String,
    },
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// `ncclResult_t`; 0 is success.
pub(super) type Status = c_int;
const SUCCESS: Status = 0;
/// `ncclDataType_t` and `ncclRedOp_t`.
pub(super) type DataType = c_int;
pub(super) type Operation = c_int;
/// `ncclUint8`.
pub(super) const BYTES: DataType = 1;
/// `ncclComm_t`.
pub(super) type Handle = *mut c_void;

/// `ncclUniqueId`, as words.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct UniqueId(pub(super) [u64; 16]);
const _: () = assert!(size_of::<UniqueId>() == 128);

/// The functions used, with the signatures of `nccl.h` (the same since NCCL 2.7).
pub(super) struct Functions {
    pub(super) error_string: unsafe extern "C" fn(Status) -> *const c_char,
    pub(super) version: unsafe extern "C" fn(*mut c_int) -> Status,
    pub(super) unique_id: unsafe extern "C" fn(*mut UniqueId) -> Status,
    pub(super) init_rank: unsafe extern "C" fn(*mut Handle, c_int, UniqueId, c_int) -> Status,
    pub(super) destroy: unsafe extern "C" fn(Handle) -> Status,
    pub(super) all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        DataType,
        Operation,
        Handle,
        CUstream,
    ) -> Status,
    pub(super) broadcast: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        DataType,
        c_int,
        Handle,
        CUstream,
    ) -> Status,
    pub(super) all_gather: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        DataType,
        Handle,
        CUstream,
    ) -> Status,
}

impl Functions {
    fn load(library: &Library) -> Result<Self, String> {
        const NOT: &str = "not NCCL, or older than 2.7";
        // SAFETY: the types are those of nccl.h, whose functions have kept them within version 2.
        unsafe {
            Ok(Self {
                error_string: symbol(library, "ncclGetErrorString", NOT)?,
                version: symbol(library, "ncclGetVersion", NOT)?,
                unique_id: symbol(library, "ncclGetUniqueId", NOT)?,
                init_rank: symbol(library, "ncclCommInitRank", NOT)?,
                destroy: symbol(library, "ncclCommDestroy", NOT)?,
                all_reduce: symbol(library, "ncclAllReduce", NOT)?,
                broadcast: symbol(library, "ncclBroadcast", NOT)?,
                all_gather: symbol(library, "ncclAllGather", NOT)?,
            })
        }
    }
}

/// The NCCL of this machine, for [`DeviceWorld::use_nccl`](crate::DeviceWorld::use_nccl).
///
/// Found once per process, in the order in the README ("How libraries are found").
///
/// ```
/// use crosswarp_cuda::Nccl;
/// match Nccl::get() {
///     Ok(nccl) => println!("NCCL {:?} at {}", nccl.version(), nccl.path().display()),
///     Err(reason) => println!("{reason}"), // says what to install
/// }
/// ```
pub struct Nccl {
    pub(super) functions: Functions,
    version: (u32, u32, u32),
    path: PathBuf,
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.version;
        write!(f, "Nccl {major}.{minor}.{patch} at {}", self.path.display())
    }
}

impl Nccl {
    /// The machine's NCCL. The search runs on the first call, the answer is kept.
    ///
    /// Errors: [`NcclError::NotFound`] names every place looked at.
    pub fn get() -> Result<&'static Self, NcclError> {
        static NCCL: OnceLock<Result<Nccl, NcclError>> = OnceLock::new();
        NCCL.get_or_init(|| Self::find(&Search::of_this_machine(&SOUGHT)))
            .as_ref()
            .map_err(NcclError::clone)
    }

    /// (major, minor, patch), e.g. (2, 28, 3).
    pub fn version(&self) -> (u32, u32, u32) {
        self.version
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn find(search: &Search) -> Result<Self, NcclError> {
        let found = search.find(&SOUGHT, Self::open);
        found.map_err(|looked| NcclError::NotFound { looked })
    }

    fn open(place: &Place) -> Result<Self, String> {
        let name = match place {
            Place::File(path) => path.as_os_str(),
            Place::Loader(name) => OsStr::new(name),
        };
        let functions = Functions::load(open_library(name)?)?;
        let mut code = 0;
        // SAFETY: writes one integer.
        if unsafe { (functions.version)(&mut code) } != SUCCESS {
            return Err("does not answer its version".into());
        }
        let path = match place {
            Place::File(path) => path.clone(),
            Place::Loader(name) => {
                mapped_file(functions.version as usize).unwrap_or_else(|| name.into())
            }
        };
        Ok(Self {
            functions,
            version: version_of(code.unsigned_abs()),
            path,
        })
    }

    /// A new name of a communicator, for all its PEs.
    pub(super) fn unique_id(&self) -> Result<UniqueId, NcclError> {
        let mut id = UniqueId([0; 16]);
        // SAFETY: writes one unique id.
        let status = unsafe { (self.functions.unique_id)(&mut id) };
        self.check("ncclGetUniqueId", status).map(|()| id)
    }

    /// Makes PE `me` of `n` a part of the communicator with this name. Its GPU is bound, and all `n` PEs call.
    pub(super) fn join(&self, n: usize, me: usize, id: UniqueId) -> Result<Handle, NcclError> {
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle.
        let status =
            unsafe { (self.functions.init_rank)(&mut handle, n as c_int, id, me as c_int) };
        self.check("ncclCommInitRank", status).map(|()| handle)
    }

    pub(super) fn check(&self, call: &'static str, code: Status) -> Result<(), NcclError> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: returns a static string for every integer.
        let message = unsafe { CStr::from_ptr((self.functions.error_string)(code)) };
        Err(NcclError::Call {
            call,
            code,
            message: message.to_string_lossy().into_owned(),
        })
    }
}

/// `NCCL_VERSION_CODE` taken apart; the major number moved up a digit with 2.9.
fn version_of(code: u32) -> (u32, u32, u32) {
    let major = if code < 10_000 { 1000 } else { 10_000 };
    (code / major, code % major / 100, code % 100)
}

/// Whether this process was started such that NCCL uses no multicast.
pub(super) fn multicast_is_off() -> Result<(), NcclError> {
    without_multicast(std::env::var_os(MULTICAST))
}

/// NCCL turns multicast off for 0 only; all it can not read means "on where there is any".
fn without_multicast(value: Option<OsString>) -> Result<(), NcclError> {
    match value {
        Some(value) if value == "0" => Ok(()),
        value => Err(NcclError::Multicast {
            value: value.map(|value| value.to_string_lossy().into_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_package_and_every_place() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder
            .path()
            .join("usr/lib/python3.12/site-packages/nvidia/nccl/lib");
        std::fs::create_dir_all(&site).unwrap();
        let fake = site.join(NAME);
        std::fs::write(&fake, "not a library").unwrap();
        let search = Search::new(folder.path(), &[]).without_loader();
        let places: Vec<_> = search.places(&SOUGHT).collect();
        assert_eq!(places, [Ok(Place::File(fake.clone()))]);
        let named = [(VARIABLE, fake.to_str().unwrap())];
        let error = Nccl::find(&Search::new(folder.path(), &named)).unwrap_err();
        let NcclError::NotFound { looked } = &error else {
            panic!("{error}")
        };
        assert_eq!(looked.len(), 3);
        let line = error.to_string();
        assert!(line.contains("pip install nvidia-nccl-cu13"), "{line}");
        assert!(line.contains(fake.to_str().unwrap()), "{line}");
        assert!(line.contains("because CROSSWARP_NCCL is set"), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }

    #[test]
    fn multicast_has_to_be_off() {
        assert_eq!(without_multicast(Some("0".into())), Ok(()));
        for value in [None, Some(""), Some("1"), Some("off")] {
            let error = without_multicast(value.map(OsString::from)).unwrap_err();
            let value = value.map(String::from);
            assert_eq!(error, NcclError::Multicast { value });
            assert!(error.to_string().ends_with("with NCCL_NVLS_ENABLE=0"));
        }
    }

    #[test]
    fn versions_are_taken_apart() {
        assert_eq!(version_of(2708), (2, 7, 8));
        assert_eq!(version_of(22803), (2, 28, 3));
    }
}

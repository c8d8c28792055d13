//! NCCL, NVIDIA's collectives library, behind one option of a device world: found on the machine,
//! opened once, and given the large stream-ordered collectives over all PEs.
#![allow(unsafe_code)] // Opens a library and calls into it.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::CUstream;
use libloading::Library;

use crate::driver::device::Device;
use crate::driver::stream::Stream;
use crate::library::search::{Place, Search, Sought};
use crate::library::{list, mapped_file, open_library, symbol};
use crate::pe::on_stream::Collective;
use crate::pe::team::DeviceTeam;
use crate::pe::world::{DeviceWorld, DeviceWorldError};

const NAME: &str = "libnccl.so.2";
const VARIABLE: &str = "CROSSWARP_NCCL";
const SOUGHT: Sought = Sought {
    variable: VARIABLE,
    names: &[NAME],
    older: &[],
    wheel: "nccl",
};
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
}

/// `ncclResult_t`; 0 is success.
type Status = c_int;
const SUCCESS: Status = 0;
/// `ncclDataType_t` and `ncclRedOp_t`.
type DataType = c_int;
type Operation = c_int;
/// `ncclUint8`.
const BYTES: DataType = 1;
/// `ncclComm_t`.
type Handle = *mut c_void;

/// `ncclUniqueId`, as words.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u64; 16]);
const _: () = assert!(size_of::<UniqueId>() == 128);

/// The functions used, with the signatures of `nccl.h` (the same since NCCL 2.7).
struct Functions {
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    version: unsafe extern "C" fn(*mut c_int) -> Status,
    unique_id: unsafe extern "C" fn(*mut UniqueId) -> Status,
    init_rank: unsafe extern "C" fn(*mut Handle, c_int, UniqueId, c_int) -> Status,
    destroy: unsafe extern "C" fn(Handle) -> Status,
    all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        DataType,
        Operation,
        Handle,
        CUstream,
    ) -> Status,
    broadcast: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        DataType,
        c_int,
        Handle,
        CUstream,
    ) -> Status,
    all_gather: unsafe extern "C" fn(
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

/// The NCCL of this machine, for [`DeviceWorld::use_nccl`].
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
    functions: Functions,
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

    fn check(&self, call: &'static str, code: Status) -> Result<(), NcclError> {
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

/// NCCL turns multicast off for 0 only; all it can not read means "on where there is any".
fn without_multicast(value: Option<OsString>) -> Result<(), NcclError> {
    match value {
        Some(value) if value == "0" => Ok(()),
        value => Err(NcclError::Multicast {
            value: value.map(|value| value.to_string_lossy().into_owned()),
        }),
    }
}

/// The `ncclDataType_t` of the numbers of the stream-ordered verbs, in their order.
const DATA_TYPES: [DataType; 6] = [2, 3, 4, 5, 7, 8];

/// The place in them of the first floating-point number.
const FIRST_FLOAT: usize = 4;

/// The `ncclRedOp_t` of an operation's number on the numbers of this place, if NCCL has it. Of floats it does not
/// say whether a NaN wins a minimum or maximum, nor which zero: those are left to the kernels.
fn operation(op: i32, number: usize) -> Option<Operation> {
    match op {
        0 => Some(0),                         // sum
        1 => Some(1),                         // prod
        2 if number < FIRST_FLOAT => Some(3), // min
        3 if number < FIRST_FLOAT => Some(2), // max
        _ => None,
    }
}

/// This PE's part in an NCCL communicator of all PEs.
pub(crate) struct Communicator {
    nccl: &'static Nccl,
    device: Device,
    /// From how many bytes on it is used.
    min_bytes: usize,
    /// NCCL wants one caller at a time.
    handle: Mutex<Owned>,
}

struct Owned(Handle);

// SAFETY: NCCL allows any thread to use a communicator, one at a time, with its GPU bound.
unsafe impl Send for Owned {}

impl Communicator {
    /// Gives a collective to the stream, if NCCL has it: `n` elements of `size` bytes per PE, at
    /// addresses of this PE.
    ///
    /// # Safety
    /// Both addresses are device memory as long as the collective asks for, which outlives it.
    pub(crate) unsafe fn start(
        &self,
        stream: &Stream,
        collective: Collective,
        [dest, source]: [u64; 2],
        (n, size): (usize, usize),
    ) -> Option<Result<(), DeviceWorldError>> {
        let kind = match collective {
            Collective::Reduce { number, op } => Some((DATA_TYPES[number], operation(op, number)?)),
            _ => None,
        };
        if let Err(error) = self.device.bind() {
            return Some(Err(error.into()));
        }
        let guard = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let (handle, stream) = (guard.0, stream.handle());
        let (to, from) = (dest as *mut c_void, source as *const c_void);
        let (bytes, nccl) = (n * size, &self.nccl.functions);
        // SAFETY: the caller's promise; the communicator and the stream live, and no other thread uses
        // the communicator now.
        let (call, status) = unsafe {
            match (collective, kind) {
                (Collective::Reduce { .. }, Some((number, op))) => (
                    "ncclAllReduce",
                    (nccl.all_reduce)(from, to, n, number, op, handle, stream),
                ),
                (Collective::Broadcast { root }, _) => (
                    "ncclBroadcast",
                    (nccl.broadcast)(from, to, bytes, BYTES, root as c_int, handle, stream),
                ),
                (Collective::Fcollect, _) => (
                    "ncclAllGather",
                    (nccl.all_gather)(from, to, bytes, BYTES, handle, stream),
                ),
                // The kernels move them as fast at any size. As NCCL's sends and receives, 1 MiB to each
                // PE recorded into a graph hung when it ran (NCCL 2.28.3, four GPUs, twice of twice).
                (Collective::Alltoall, _) | (Collective::Reduce { .. }, None) => return None,
            }
        };
        Some(self.nccl.check(call, status).map_err(Into::into))
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // What a PE that failed has begun may never end, and then destroying would wait for ever.
        if std::thread::panicking() || self.device.synchronize().is_err() {
            return;
        }
        let handle = self
            .handle
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nothing uses the communicator any more, and its GPU is bound by `synchronize`. There
        // is nobody to tell of a failure.
        unsafe { (self.nccl.functions.destroy)(handle.0) };
    }
}

/// NCCL for large collectives.
impl DeviceWorld<'_> {
    /// From now on broadcasts, fcollects and reductions by `Sum` and `Prod`, of integers also by
    /// `Min` and `Max`, in stream order go through NCCL, if they are over [`everyone`](Self::everyone) and move at least
    /// `min_bytes` bytes per PE (of `source`). A second call only changes `min_bytes`. (Alltoalls gain
    /// nothing and stay with the kernels.)
    ///
    /// Collective: all PEs call it with the same number, while no kernel waits for another PE. `1 << 20`
    /// is a good number for programs that broadcast; the other collectives gain nothing (the crate's
    /// README has the figures).
    ///
    /// It is an option because it gives up what the kernels promise: NCCL combines in an order of its
    /// own, so floating-point results are not the bits of the sum in PE order, and may differ between
    /// machines and versions. The world's wait limit does not end NCCL's waits, nor are PEs compared that call
    /// different collectives. NCCL takes device
    /// memory, and the first collective of each kind and size may meet all PEs in the host's call to
    /// connect the GPUs: make it before kernels wait, and before it is recorded into a graph.
    ///
    /// NVLink multicast is never used: NCCL has to be started with `NCCL_NVLS_ENABLE=0` in the
    /// environment.
    ///
    /// Errors: [`DeviceWorldError::Nccl`], on every PE if on any; the kernels are then used as before.
    pub fn use_nccl(&mut self, min_bytes: usize) -> Result<(), DeviceWorldError> {
        if let Some(communicator) = &mut self.nccl {
            communicator.min_bytes = min_bytes;
            return Ok(());
        }
        // The same answer on every PE.
        if let Some((pe, other)) = self.shared_gpu() {
            return Err(NcclError::SharedGpu { pe, other }.into());
        }
        // Who can not join must be known before anybody waits for it inside NCCL.
        let ready = without_multicast(std::env::var_os(MULTICAST)).and_then(|()| Nccl::get());
        let nccl = self.unless_a_peer_failed(ready.map_err(Into::into))?;
        let mut id = UniqueId([0; 16]);
        let made = match self.pe().my_pe() {
            // SAFETY: writes one unique id.
            0 => nccl.check("ncclGetUniqueId", unsafe {
                (nccl.functions.unique_id)(&mut id)
            }),
            _ => Ok(()),
        };
        self.unless_a_peer_failed(made.map_err(Into::into))?;
        for word in &mut id.0 {
            *word = self.gather(*word)?[0];
        }
        let bound = self.device().bind().map_err(Into::into);
        self.unless_a_peer_failed(bound)?;
        let (n, me) = (self.pe().n_pes() as c_int, self.pe().my_pe() as c_int);
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle; the GPU is bound, and every PE calls with the same id.
        let status = unsafe { (nccl.functions.init_rank)(&mut handle, n, id, me) };
        let joined = nccl.check("ncclCommInitRank", status).map_err(Into::into);
        // If a peer has failed the handle is left alone: destroying it could wait for that peer.
        self.unless_a_peer_failed(joined)?;
        self.nccl = Some(Communicator {
            nccl,
            device: self.device(),
            min_bytes,
            handle: Mutex::new(Owned(handle)),
        });
        Ok(())
    }

    /// NCCL, if it is to be used for a collective that moves this many bytes.
    pub(crate) fn nccl_for(&self, team: &DeviceTeam, bytes: usize) -> Option<&Communicator> {
        // Other teams of all PEs may be at work in another stream in another order.
        let everyone = team.state().scratch == self.everyone().state().scratch;
        let communicator = self.nccl.as_ref()?;
        (everyone && bytes >= communicator.min_bytes).then_some(communicator)
    }

    /// My outcome if I have failed, else whether a peer has. Collective.
    fn unless_a_peer_failed<T>(
        &self,
        mine: Result<T, DeviceWorldError>,
    ) -> Result<T, DeviceWorldError> {
        let well = self.gather(u64::from(mine.is_ok()))?;
        let mine = mine?;
        match well.iter().position(|&well| well == 0) {
            Some(pe) => Err(NcclError::PeerFailed { pe }.into()),
            None => Ok(mine),
        }
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

    /// Against nccl.h: ncclSum 0, ncclProd 1, ncclMax 2, ncclMin 3.
    #[test]
    fn operations_have_nccls_numbers() {
        use crate::pe::on_stream::code;
        use crosswarp_shmem::op;
        let ops = [
            code::<f32, op::Sum>(),
            code::<f32, op::Prod>(),
            code::<f32, op::Max>(),
            code::<f32, op::Min>(),
        ];
        assert_eq!(
            ops.map(|op| operation(op, 0)),
            [Some(0), Some(1), Some(2), Some(3)]
        );
        // Floats' extrema stay with the kernels.
        assert_eq!(
            ops.map(|op| operation(op, FIRST_FLOAT)),
            [Some(0), Some(1), None, None]
        );
        let ops = [
            code::<u32, op::And>(),
            code::<u32, op::Or>(),
            code::<u32, op::Xor>(),
        ];
        assert_eq!(ops.map(|op| operation(op, 1)), [None; 3]);
    }

    #[test]
    fn versions_are_taken_apart() {
        assert_eq!(version_of(2708), (2, 7, 8));
        assert_eq!(version_of(22803), (2, 28, 3));
    }
}

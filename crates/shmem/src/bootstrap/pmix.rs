//! PMIx, which Open MPI's `mpirun` and `srun --mpi=pmix` speak, by the library that they come with.
//!
//! The library is opened at run time; what is used of it is declared here, by the PMIx standard (version 4).
#![allow(unsafe_code)] // calls a C library

use super::{Bootstrap, BootstrapError, CARD, exchange, invalid, say};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::transmute;
use std::ptr;

const LIBRARY: &str = "libpmix.so.2";
/// `PMIX_RANK_WILDCARD`: the job instead of one of its processes.
const JOB: u32 = u32::MAX - 1;
/// `PMIX_GLOBAL`: for processes on all hosts.
const GLOBAL: u8 = 3;
/// `PMIX_BOOL`, `PMIX_STRING`, `PMIX_UINT32` and `PMIX_BYTE_OBJECT`.
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;
const BYTES: u16 = 27;

/// `pmix_proc_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Proc {
    namespace: [c_char; 256],
    rank: u32,
}

/// `pmix_value_t`: a type and a union, of which this has the members used; `rest` makes it as long as any version's.
#[repr(C)]
struct Value {
    kind: u16,
    member: Member,
    rest: [u64; 6],
}

#[derive(Clone, Copy)]
#[repr(C)]
union Member {
    text: *const c_char,
    number: u32,
    bytes: Bytes,
}

/// `pmix_byte_object_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Bytes {
    start: *const c_void,
    len: usize,
}

/// `pmix_info_t`, one that the library reads.
#[repr(C)]
struct Info {
    key: [c_char; 512],
    flags: u32,
    value: InfoValue,
}

/// `pmix_value_t` at its true length, for arrays of `pmix_info_t`.
#[repr(C)]
struct InfoValue {
    kind: u16,
    /// The union's first word; a flag is its first byte.
    first: u64,
    rest: [u64; 2],
}

const _: () = {
    assert!(size_of::<Proc>() == 260);
    assert!(size_of::<Info>() == 552 && std::mem::offset_of!(Info, value) == 520);
    assert!(size_of::<InfoValue>() == 32 && std::mem::offset_of!(InfoValue, first) == 8);
    assert!(std::mem::offset_of!(Value, member) == 8);
};

type Status = c_int;

// Info arrays, which are all empty but for the fence's, are passed as null and 0.
type Init = unsafe extern "C" fn(*mut Proc, *const c_void, usize) -> Status;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> Status;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *const Proc, usize) -> Status;
type Put = unsafe extern "C" fn(u8, *const c_char, *const Value) -> Status;
type Commit = unsafe extern "C" fn() -> Status;
type Fence = unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> Status;
type Get = unsafe extern "C" fn(
    *const Proc,
    *const c_char,
    *const c_void,
    usize,
    *mut *const Value,
) -> Status;
type ErrorString = unsafe extern "C" fn(Status) -> *const c_char;

/// The functions used.
struct Library {
    init: Init,
    finalize: Finalize,
    abort: Abort,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    error_string: ErrorString,
}

impl Library {
    fn open() -> Result<Self, BootstrapError> {
        let missing = || {
            // SAFETY: a string of the C library, which stays until this thread's next call of its kind.
            let reason = unsafe {
                let text = libc::dlerror();
                match text.is_null() {
                    true => String::new(),
                    false => CStr::from_ptr(text).to_string_lossy().into_owned(),
                }
            };
            BootstrapError::Library {
                library: LIBRARY,
                reason,
            }
        };
        let name = c"libpmix.so.2";
        // Global: the parts that it opens itself look for its symbols.
        // SAFETY: opens the launcher's own library, whose constructors may run anywhere.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if library.is_null() {
            return Err(missing());
        }
        let symbol = |name: &CStr| {
            // SAFETY: the library is open, and is never closed.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            match found.is_null() {
                true => Err(missing()),
                false => Ok(found),
            }
        };
        // SAFETY: these are functions of the standard with the signatures that it gives them.
        unsafe {
            Ok(Self {
                init: transmute::<*mut c_void, Init>(symbol(c"PMIx_Init")?),
                finalize: transmute::<*mut c_void, Finalize>(symbol(c"PMIx_Finalize")?),
                abort: transmute::<*mut c_void, Abort>(symbol(c"PMIx_Abort")?),
                put: transmute::<*mut c_void, Put>(symbol(c"PMIx_Put")?),
                commit: transmute::<*mut c_void, Commit>(symbol(c"PMIx_Commit")?),
                fence: transmute::<*mut c_void, Fence>(symbol(c"PMIx_Fence")?),
                get: transmute::<*mut c_void, Get>(symbol(c"PMIx_Get")?),
                error_string: transmute::<*mut c_void, ErrorString>(symbol(c"PMIx_Error_string")?),
            })
        }
    }

    fn check(&self, what: &str, status: Status) -> io::Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: returns a constant of the library.
        let text = unsafe {
            let text = (self.error_string)(status);
            match text.is_null() {
                true => String::new(),
                false => CStr::from_ptr(text).to_string_lossy().into_owned(),
            }
        };
        Err(io::Error::other(format!(
            "{what} failed: {text} ({status})"
        )))
    }
}

/// See the [module](self).
pub(super) struct Pmix {
    library: Library,
    me: Proc,
    n: usize,
    round: usize,
}

impl Pmix {
    /// Connects to the launcher's daemon on this host.
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub(super) fn open() -> Result<Self, BootstrapError> {
        let library = Library::open()?;
        let mut me = Proc {
            namespace: [0; 256],
            rank: 0,
        };
        // SAFETY: `me` is a `pmix_proc_t` to be filled in.
        let status = unsafe { (library.init)(&raw mut me, ptr::null(), 0) };
        library
            .check("PMIx_Init", status)
            .map_err(exchange("PMIx"))?;
        let mut this = Self {
            library,
            me,
            n: 0,
            round: 0,
        };
        let n = this.get(JOB, "pmix.job.size").and_then(|size| match size {
            Said::Number(n) => Ok(n as usize),
            _ => Err(invalid("the size of the job is no number")),
        });
        this.n = n.map_err(exchange("PMIx"))?;
        Ok(this)
    }

    fn cards(&mut self, card: &[u8], from: &[usize]) -> io::Result<Vec<Vec<u8>>> {
        self.round += 1;
        let key = format!("crosswarp.{}", self.round);
        if from.contains(&(self.me.rank as usize)) {
            let name = CString::new(key.clone())?;
            let start = card.as_ptr().cast();
            let len = card.len();
            let value = Value {
                kind: BYTES,
                member: Member {
                    bytes: Bytes { start, len },
                },
                rest: [0; 6],
            };
            // SAFETY: name and value are whole, and copied before the return.
            let status = unsafe { (self.library.put)(GLOBAL, name.as_ptr(), &raw const value) };
            self.library.check("PMIx_Put", status)?;
        }
        // SAFETY: takes nothing.
        let status = unsafe { (self.library.commit)() };
        self.library.check("PMIx_Commit", status)?;
        // Else what is put after the first exchange is not found under Slurm.
        let collect = Info::flag(c"pmix.collect");
        // SAFETY: no processes are named, which means all of the job; the info is whole.
        let status = unsafe { (self.library.fence)(ptr::null(), 0, &raw const collect, 1) };
        self.library.check("PMIx_Fence", status)?;
        let cards = from.iter().map(|&rank| match self.get(rank as u32, &key)? {
            Said::Bytes(card) if card.len() <= CARD => Ok(card),
            _ => Err(invalid(format!("rank {rank} has put something else"))),
        });
        cards.collect()
    }

    fn get(&self, rank: u32, key: &str) -> io::Result<Said> {
        let (who, name) = (Proc { rank, ..self.me }, CString::new(key)?);
        let mut value: *const Value = ptr::null();
        // SAFETY: who and name are whole; `value` is where a pointer to a value goes.
        let status = unsafe {
            let no = ptr::null();
            (self.library.get)(&raw const who, name.as_ptr(), no, 0, &raw mut value)
        };
        self.library.check(&format!("PMIx_Get of {key}"), status)?;
        if value.is_null() {
            return Err(invalid(format!("PMIx has no {key}")));
        }
        // A few values of some bytes, which are not worth the trouble with how each version frees them.
        // SAFETY: a value that now belongs to this process; only its type is read here, and below the member that this
        // type says, so nothing beyond what the library has made.
        let (kind, member) = unsafe { (&raw const (*value).kind, &raw const (*value).member) };
        // SAFETY: as above.
        unsafe {
            match *kind {
                UINT32 => Ok(Said::Number((*member).number)),
                STRING if !(*member).text.is_null() => {
                    let text = CStr::from_ptr((*member).text);
                    Ok(Said::Text(text.to_string_lossy().into_owned()))
                }
                BYTES => {
                    let Bytes { start, len } = (*member).bytes;
                    Ok(Said::Bytes(match start.is_null() || len == 0 {
                        true => Vec::new(),
                        false => std::slice::from_raw_parts(start.cast(), len).to_vec(),
                    }))
                }
                other => Err(invalid(format!("{key} is of type {other}"))),
            }
        }
    }
}

impl Info {
    /// That `name` is true.
    fn flag(name: &CStr) -> Self {
        let mut key = [0; 512];
        for (to, &from) in key.iter_mut().zip(name.to_bytes()) {
            *to = from as c_char;
        }
        Self {
            key,
            flags: 0,
            value: InfoValue {
                kind: BOOL,
                first: u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0]),
                rest: [0; 2],
            },
        }
    }
}

/// A value.
enum Said {
    Number(u32),
    Text(String),
    Bytes(Vec<u8>),
}

impl Bootstrap for Pmix {
    fn rank(&self) -> usize {
        self.me.rank as usize
    }

    fn n(&self) -> usize {
        self.n
    }

    fn host(&mut self) -> Result<String, BootstrapError> {
        let peers = self.get(JOB, "pmix.lpeers").map_err(exchange("PMIx"))?;
        match peers {
            Said::Text(peers) => Ok(format!("peers {}", peers.split(',').next().unwrap_or(""))),
            _ => Err(exchange("PMIx")(invalid(
                "the peers on this host are no text",
            ))),
        }
    }

    fn gather(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.cards(card, from).map_err(exchange("PMIx"))
    }

    fn abort(&mut self, reason: &BootstrapError) {
        say(reason);
        let text = CString::new(reason.to_string()).unwrap_or_default();
        // SAFETY: the text is whole; no processes are named, which means all.
        unsafe { (self.library.abort)(1, text.as_ptr(), ptr::null(), 0) };
    }

    fn finish(&mut self) {
        // SAFETY: no information is passed.
        unsafe { (self.library.finalize)(ptr::null(), 0) };
    }
}

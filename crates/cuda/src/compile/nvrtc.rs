//! NVRTC, NVIDIA's run-time compiler: found on the machine and opened once.
#![allow(unsafe_code)] // Opens a library and calls into it.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use crosswarp_shmem::internal::library::{
    self as search, Place, Search, list, mapped_file, open_library, symbol,
};
use libloading::Library;

use crate::arch::Arch;
use crate::library::Sought;

/// `libnvrtc.so` alone is what a toolkit's development package links.
const SOUGHT: search::Sought = Sought {
    variable: "CROSSWARP_NVRTC",
    names: &["libnvrtc.so.13", "libnvrtc.so"],
    older: &["libnvrtc.so.12"],
    wheel: "cuda_nvrtc",
}
.everywhere();

/// Why there is no usable NVRTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvrtcError {
    /// Each place looked at and what was the matter there, in the order of the search.
    pub looked: Vec<(String, String)>,
}

impl fmt::Display for NvrtcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "NVRTC (NVIDIA's run-time compiler, libnvrtc.so) was not found; install it with \
             `pip install nvidia-cuda-nvrtc` or a CUDA toolkit, or set CROSSWARP_NVRTC to the \
             library's path. Looked at: {}",
            list(&self.looked)
        )
    }
}

impl std::error::Error for NvrtcError {}

type Program = *mut c_void;
/// `nvrtcResult`; 0 is success.
type Status = c_int;
const SUCCESS: Status = 0;

/// The functions used, with the signatures of `nvrtc.h` (the same from CUDA 11.2 to 13).
struct Functions {
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    arch_count: unsafe extern "C" fn(*mut c_int) -> Status,
    archs: unsafe extern "C" fn(*mut c_int) -> Status,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
}

impl Functions {
    fn load(library: &Library) -> Result<Self, String> {
        const NOT: &str = "not NVRTC, or older than 11.2";
        // SAFETY: the types are those of nvrtc.h, whose functions have kept them since they exist.
        unsafe {
            Ok(Self {
                error_string: symbol(library, "nvrtcGetErrorString", NOT)?,
                version: symbol(library, "nvrtcVersion", NOT)?,
                arch_count: symbol(library, "nvrtcGetNumSupportedArchs", NOT)?,
                archs: symbol(library, "nvrtcGetSupportedArchs", NOT)?,
                create: symbol(library, "nvrtcCreateProgram", NOT)?,
                destroy: symbol(library, "nvrtcDestroyProgram", NOT)?,
                compile: symbol(library, "nvrtcCompileProgram", NOT)?,
                cubin_size: symbol(library, "nvrtcGetCUBINSize", NOT)?,
                cubin: symbol(library, "nvrtcGetCUBIN", NOT)?,
                log_size: symbol(library, "nvrtcGetProgramLogSize", NOT)?,
                log: symbol(library, "nvrtcGetProgramLog", NOT)?,
            })
        }
    }
}

/// The run-time compiler of this machine.
///
/// It needs no GPU and no driver. Found once per process, in the order in the README ("How libraries are found");
/// a version 13 anywhere comes before a version 12 anywhere.
pub struct Nvrtc {
    functions: Functions,
    version: (u32, u32),
    archs: Vec<Arch>,
    path: PathBuf,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Nvrtc {}.{} at {}",
            self.version.0,
            self.version.1,
            self.path.display()
        )
    }
}

/// What one compilation gave.
pub(crate) struct Compiled {
    /// The cubin, or NVRTC's name for what went wrong.
    pub cubin: Result<Vec<u8>, String>,
    /// The compiler's messages.
    pub log: String,
}

impl Nvrtc {
    /// The machine's NVRTC. The search runs on the first call, the answer is kept.
    ///
    /// Errors: [`NvrtcError`] names every place looked at.
    pub fn get() -> Result<&'static Self, NvrtcError> {
        static NVRTC: OnceLock<Result<Nvrtc, NvrtcError>> = OnceLock::new();
        NVRTC
            .get_or_init(|| Self::find(&Search::of_this_machine(&SOUGHT)))
            .as_ref()
            .map_err(NvrtcError::clone)
    }

    /// (major, minor), e.g. (13, 0).
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The architectures it compiles for, ascending.
    pub fn archs(&self) -> &[Arch] {
        &self.archs
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn find(search: &Search) -> Result<Self, NvrtcError> {
        let found = search.find(&SOUGHT, Self::open);
        found.map_err(|looked| NvrtcError { looked })
    }

    /// The places that hold an NVRTC but are not used, or would be looked at, and why they are refused.
    pub(crate) fn refused() -> Vec<(String, String)> {
        Search::of_this_machine(&SOUGHT).refused(&SOUGHT)
    }

    fn open(place: &Place) -> Result<Self, String> {
        if let Place::File(path) = place {
            // NVRTC opens its builtins by bare name when it first compiles. Opened here by path they
            // are found whatever the loader's path says.
            open_library(builtins_beside(path)?.as_os_str())?;
        }
        let name = match place {
            Place::File(path) => path.as_os_str(),
            Place::Loader(name) => OsStr::new(name),
        };
        let library = open_library(name)?;
        let functions = Functions::load(library)?;
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: each writes one integer.
        let status = unsafe {
            [
                (functions.version)(&mut major, &mut minor),
                (functions.arch_count)(&mut count),
            ]
        };
        if status != [SUCCESS; 2] || count < 0 {
            return Err("does not answer its version".into());
        }
        let mut numbers = vec![0; count as usize];
        // SAFETY: writes as many integers as it said there are.
        if unsafe { (functions.archs)(numbers.as_mut_ptr()) } != SUCCESS {
            return Err("does not answer its architectures".into());
        }
        let path = match place {
            Place::File(path) => path.clone(),
            Place::Loader(name) => {
                mapped_file(functions.version as usize).unwrap_or_else(|| name.into())
            }
        };
        let archs = numbers
            .iter()
            .map(|&n| Arch::from_number(n.unsigned_abs()))
            .collect();
        Ok(Self {
            functions,
            version: (major.unsigned_abs(), minor.unsigned_abs()),
            archs,
            path,
        })
    }

    /// Compiles `text` to a cubin. `headers` are (name, text) pairs that `#include` finds.
    pub(crate) fn compile(
        &self,
        name: &str,
        text: &str,
        headers: &[(&str, &str)],
        options: &[String],
    ) -> Compiled {
        let strings = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(CString::new).collect::<Result<Vec<_>, _>>()
        };
        let inputs = (
            CString::new(name),
            CString::new(text),
            strings(&mut headers.iter().map(|h| h.0)),
            strings(&mut headers.iter().map(|h| h.1)),
            strings(&mut options.iter().map(String::as_str)),
        );
        let (Ok(name), Ok(text), Ok(header_names), Ok(header_texts), Ok(options)) = inputs else {
            return Compiled {
                cubin: Err("a source, header or option contains a zero byte".into()),
                log: String::new(),
            };
        };
        let pointers = |strings: &[CString]| strings.iter().map(|s| s.as_ptr()).collect::<Vec<_>>();
        let (names, texts, options) = (
            pointers(&header_names),
            pointers(&header_texts),
            pointers(&options),
        );
        let mut program = ptr::null_mut();
        // SAFETY: every pointer is to a zero-terminated string that lives to the end of this
        // function, in arrays of the lengths given.
        let created = unsafe {
            (self.functions.create)(
                &mut program,
                text.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        if created != SUCCESS {
            return Compiled {
                cubin: Err(self.status_text(created)),
                log: String::new(),
            };
        }
        // SAFETY: the program was created above; the options are as above.
        let compiled =
            unsafe { (self.functions.compile)(program, options.len() as c_int, options.as_ptr()) };
        let log = self
            .read(program, self.functions.log_size, self.functions.log)
            .unwrap_or_default();
        let log = String::from_utf8_lossy(&log)
            .trim_end_matches('\0')
            .to_string();
        let cubin = if compiled == SUCCESS {
            self.read(program, self.functions.cubin_size, self.functions.cubin)
                .map_err(|s| self.status_text(s))
        } else {
            Err(self.status_text(compiled))
        };
        // SAFETY: the program is not used after this.
        unsafe { (self.functions.destroy)(&mut program) };
        Compiled { cubin, log }
    }

    fn read(
        &self,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        read: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, Status> {
        let mut length = 0;
        // SAFETY: `program` is live; writes one integer.
        let status = unsafe { size(program, &mut length) };
        if status != SUCCESS {
            return Err(status);
        }
        let mut bytes = vec![0u8; length];
        // SAFETY: writes `length` bytes.
        let status = unsafe { read(program, bytes.as_mut_ptr().cast()) };
        if status == SUCCESS {
            Ok(bytes)
        } else {
            Err(status)
        }
    }

    fn status_text(&self, status: Status) -> String {
        // SAFETY: returns a static string for every integer.
        unsafe { CStr::from_ptr((self.functions.error_string)(status)) }
            .to_string_lossy()
            .into_owned()
    }
}

fn builtins_beside(path: &Path) -> Result<PathBuf, String> {
    // The name may be a link into another folder; the builtins are beside the file itself.
    let file = path.canonicalize().map_err(|error| error.to_string())?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let entries = folder.read_dir().map_err(|error| error.to_string())?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .and_then(OsStr::to_str)
                .is_some_and(|n| n.starts_with("libnvrtc-builtins.so"))
        })
        .max()
        .ok_or_else(|| "libnvrtc-builtins.so is not beside it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_package_and_every_place() {
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("libnvrtc.so.13");
        std::fs::write(&fake, "not a library").unwrap();
        let search = Search::new(
            folder.path(),
            &[("CROSSWARP_NVRTC", fake.to_str().unwrap())],
        );
        let error = Nvrtc::open(&Place::File(fake.clone())).err().unwrap();
        assert_eq!(error, "libnvrtc-builtins.so is not beside it");
        std::fs::write(folder.path().join("libnvrtc-builtins.so.13.0"), "neither").unwrap();
        let Err(error) = Nvrtc::find(&search.without_loader()) else {
            panic!("found a text file")
        };
        let line = error.to_string();
        assert!(line.contains("pip install nvidia-cuda-nvrtc"), "{line}");
        assert!(line.contains(fake.to_str().unwrap()), "{line}");
        assert!(line.contains("site-packages"), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

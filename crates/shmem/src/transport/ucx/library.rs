//! `libucp.so.0`, as it is found on the machine and opened once.

use std::ffi::{OsStr, c_uint};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::library::search::{Installed, Place, Search, Sought, Wheel};
use crate::library::{list, mapped_file, open_library};
use crate::transport::ucx::ffi::Functions;
use crate::transport::ucx::status::Status;

const SOUGHT: Sought = Sought {
    variable: "CROSSWARP_UCX",
    names: &["libucp.so.0"],
    older: &[],
    installed: Installed {
        words: "HPC-X in HPCX_UCX_DIR, /opt/hpcx*",
        variables: &["HPCX_UCX_DIR"],
        folder: "opt/hpcx",
        // `mt` is its build for several threads.
        libraries: &["mt/lib", "lib", "ucx/mt/lib", "ucx/lib"],
    },
    wheel: Wheel::Folder("libucx"),
};

/// The oldest version that is taken.
pub(super) const OLDEST: (u32, u32) = (1, 13);

/// Why UCX can not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UcxError {
    /// There is no usable library.
    #[error(
        "UCX (libucp.so.0, 1.13 or newer) was not found; install it with `apt install libucx0` or `pip install \
         libucx-cu12`, or set CROSSWARP_UCX to the library's path. Looked at: {}",
        list(looked)
    )]
    NotFound {
        /// Each place looked at and what was the matter there, in the order of the search.
        looked: Vec<(String, String)>,
    },
    /// It is built for one thread only.
    #[error("UCX {version} ({}) is built without support for several threads (--enable-mt)", path.display())]
    OneThread {
        /// Its version.
        version: Version,
        /// Its file.
        path: PathBuf,
    },
    /// A call failed.
    #[error("UCX: {call}: {status}")]
    Call {
        /// What was tried.
        call: String,
        /// What became of it.
        status: Status,
    },
}

impl UcxError {
    /// For what a function returned.
    pub(super) fn of(call: impl Into<String>) -> impl FnOnce(Status) -> Self {
        let call = call.into();
        move |status| Self::Call { call, status }
    }
}

/// A version of UCX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    /// First number.
    pub(crate) major: u32,
    /// Second number.
    pub(crate) minor: u32,
    /// Third number.
    pub(crate) release: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.release)
    }
}

/// UCX, opened.
pub(crate) struct Ucx {
    pub(super) functions: Functions,
    version: Version,
    path: PathBuf,
}

impl Ucx {
    /// The variable that names its file.
    pub(crate) const VARIABLE: &str = SOUGHT.variable;
    /// The variable that says where its warnings go: `stdout` (if unset), `stderr` or `file:PATH`.
    pub(crate) const LOG_FILE: &str = "UCX_LOG_FILE";

    /// The machine's UCX. The search runs on the first call, the answer is kept.
    ///
    /// # Errors
    /// [`UcxError::NotFound`].
    pub(crate) fn get() -> Result<&'static Self, UcxError> {
        static UCX: OnceLock<Result<Ucx, UcxError>> = OnceLock::new();
        UCX.get_or_init(|| Self::find(&Search::of_this_machine(&SOUGHT)))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// What it says it is.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Its file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn find(search: &Search) -> Result<Self, UcxError> {
        let found = search.find(&SOUGHT, Self::open);
        found.map_err(|looked| UcxError::NotFound { looked })
    }

    fn open(place: &Place) -> Result<Self, String> {
        let name = match place {
            Place::File(path) => path.as_os_str(),
            Place::Loader(name) => OsStr::new(name),
        };
        let functions = Functions::load(open_library(name)?)?;
        let [mut major, mut minor, mut release]: [c_uint; 3] = [0; 3];
        // SAFETY: three places to write to.
        unsafe { (functions.get_version)(&mut major, &mut minor, &mut release) };
        let version = Version {
            major,
            minor,
            release,
        };
        // A second major version would be another interface.
        if major != OLDEST.0 || minor < OLDEST.1 {
            return Err(format!("is {version}, not 1.13 or a later 1.x"));
        }
        let path = match place {
            Place::File(path) => path.clone(),
            Place::Loader(name) => {
                mapped_file(functions.get_version as usize).unwrap_or_else(|| name.into())
            }
        };
        tracing::debug!(%version, path = %path.display(), "UCX");
        Ok(Self {
            functions,
            version,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_packages_and_every_place() {
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("libucp.so.0");
        std::fs::write(&fake, "").unwrap();
        let named = [("CROSSWARP_UCX", fake.to_str().unwrap())];
        let error = Ucx::find(&Search::new(folder.path(), &named))
            .err()
            .unwrap();
        let text = error.to_string();
        let file = fake.display().to_string();
        for words in [
            "apt install libucx0",
            "pip install libucx-cu12",
            &file,
            "not searched, because CROSSWARP_UCX is set",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!text.contains('\n'));
    }

    #[test]
    fn hpc_x_comes_before_wheels() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            "opt/hpcx/ucx/lib",
            "opt/hpcx-v2.18/ucx/mt/lib",
            "opt/hpcx-v2.9/ucx/lib",
            "opt/env/lib/python3.12/site-packages/libucx/lib",
            "named/mt/lib",
        ]
        .map(|folder| {
            let folder = root.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join("libucp.so.0");
            std::fs::write(&file, "").unwrap();
            file
        });
        let named = root.path().join("named").display().to_string();
        let search = Search::new(root.path(), &[("HPCX_UCX_DIR", &named)]).without_loader();
        let places: Vec<_> = search.places(&SOUGHT).filter_map(Result::ok).collect();
        let order = [4, 0, 1, 2, 3].map(|at: usize| Place::File(files[at].clone()));
        assert_eq!(places, order);
    }
}

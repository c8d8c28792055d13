//! Libraries of NVIDIA's that are opened at run time.

use std::ffi::OsStr;

use crosswarp_shmem::internal::library::{
    self as search, Installed, Place, Search, Wheel, list, open_library,
};
use libloading::Library;

/// A library of NVIDIA's to look for.
#[derive(Debug, Clone, Copy)]
pub struct Sought {
    /// The variable that names its file.
    pub variable: &'static str,
    /// File names, best first.
    pub names: &'static [&'static str],
    /// File names of older versions, for where there is no other.
    pub older: &'static [&'static str],
    /// The folder of its wheel under `nvidia`, beside `cu13` and the like.
    pub wheel: &'static str,
}

impl Sought {
    /// With the places that all libraries of NVIDIA's have in common.
    pub(crate) const fn everywhere(self) -> search::Sought {
        search::Sought {
            variable: self.variable,
            names: self.names,
            older: self.older,
            installed: TOOLKITS,
            wheel: Wheel::Nvidia(self.wheel),
        }
    }
}

const TOOLKITS: Installed = Installed {
    words: "CUDA toolkits in CUDA_HOME, CUDA_PATH, /usr/local/cuda*",
    variables: &["CUDA_HOME", "CUDA_PATH"],
    folder: "usr/local/cuda",
    libraries: &[
        "lib64",
        "targets/x86_64-linux/lib",
        "targets/sbsa-linux/lib",
        "lib",
    ],
};

/// Opens a library of NVIDIA's for the rest of the process, where the search finds it (README, "How libraries are
/// found").
///
/// Errors: one line that names every place looked at and what was the matter there.
pub fn find_library(sought: &Sought) -> Result<&'static Library, String> {
    let sought = sought.everywhere();
    let open = |place: &Place| match place {
        Place::File(path) => open_library(path.as_os_str()),
        Place::Loader(name) => open_library(OsStr::new(name)),
    };
    let found = Search::of_this_machine(&sought).find(&sought, open);
    found.map_err(|looked| format!("not found; looked at: {}", list(&looked)))
}

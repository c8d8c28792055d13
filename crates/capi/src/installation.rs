//! The files of an installation beside the library: headers, wrappers of compilers, the launcher's wrapper, and what
//! `pkg-config` reads. They are part of this crate, so that installing them needs no sources.

/// A file of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledFile {
    /// Its place below the prefix.
    pub path: &'static str,
    /// What it holds.
    pub text: String,
    /// Whether it is a program.
    pub executable: bool,
}

/// Where this crate's sources were when it was compiled.
pub const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

macro_rules! generated {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

const HEADERS: [(&str, &str); 5] = [
    ("include/shmem.h", generated!("shmem.h")),
    ("include/pshmem.h", generated!("pshmem.h")),
    ("include/shmemx.h", include_str!("../include/shmemx.h")),
    (
        "include/mpp/shmem.h",
        include_str!("../include/mpp-shmem.h"),
    ),
    (
        "include/mpp/shmemx.h",
        include_str!("../include/mpp-shmemx.h"),
    ),
];

/// Every file of an installation but the libraries and the command `crosswarp`.
pub fn files() -> Vec<InstalledFile> {
    let plain = |path, text: &str| InstalledFile {
        path,
        text: text.to_owned(),
        executable: false,
    };
    let program = |path, text: String| InstalledFile {
        path,
        text,
        executable: true,
    };
    let mut files: Vec<_> = HEADERS
        .iter()
        .map(|(path, text)| plain(path, text))
        .collect();
    // The names that other implementations have for the second are different.
    let compilers = [
        ("bin/oshcc", "cc", "OSHCC_CC"),
        ("bin/oshc++", "c++", "OSHCXX_CXX"),
        ("bin/oshcxx", "c++", "OSHCXX_CXX"),
        ("bin/oshCC", "c++", "OSHCXX_CXX"),
    ];
    for (path, compiler, variable) in compilers {
        let text = include_str!("../wrappers/oshcc")
            .replace("@NAME@", path.trim_start_matches("bin/"))
            .replace("@COMPILER@", compiler)
            .replace("@VARIABLE@", variable);
        files.push(program(path, text));
    }
    let oshrun = include_str!("../wrappers/oshrun").to_owned();
    files.push(program("bin/oshrun", oshrun));
    let description = include_str!("../wrappers/crosswarp-shmem.pc")
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    files.push(plain("lib/pkgconfig/crosswarp-shmem.pc", &description));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_to_fill_in() {
        for file in files() {
            let open = ["@NAME@", "@COMPILER@", "@VARIABLE@", "@VERSION@"];
            assert!(
                !open.iter().any(|name| file.text.contains(name)),
                "{}",
                file.path
            );
            assert_eq!(
                file.executable,
                file.text.starts_with("#!"),
                "{}",
                file.path
            );
        }
    }
}

//! The files of an installation: headers under every path that programs include, and what build systems read. They are
//! part of this crate, so that installing them needs no sources.

use crate::environment;
use crosswarp_cuda::HEADERS;
use std::path::PathBuf;

/// What programs are linked with.
#[derive(Debug, PartialEq, Eq)]
pub struct Libraries {
    /// Installed as `lib/libnvshmem_host.so.3`.
    pub shared: PathBuf,
    /// Installed as `lib/libnvshmem.a`.
    pub archive: Option<PathBuf>,
}

/// Links of an installation: names below the prefix, and what each leads to.
pub const LINKS: &[(&str, &str)] = &[
    ("lib/libnvshmem_host.so", "libnvshmem_host.so.3"),
    ("lib/libnvshmem.so", "libnvshmem_host.so.3"),
];

/// A file of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledFile {
    /// Its place below the prefix.
    pub path: String,
    /// What it holds.
    pub content: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

/// Where this crate's sources were when it was compiled.
pub const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

/// The paths below `include` that lead to the one header.
const PATHS: &[&str] = &[
    "nvshmem.h",
    "nvshmemx.h",
    "nvshmem_host.h",
    "host/nvshmem_api.h",
    "host/nvshmemx_api.h",
    "host/nvshmem_coll_api.h",
    "host/nvshmemx_coll_api.h",
    "host/nvshmem_macros.h",
    "device/nvshmem_defines.h",
    "device/nvshmemx_defines.h",
    "device/nvshmem_coll_defines.cuh",
    "device/nvshmemx_coll_defines.cuh",
    "device/nvshmem_device_macros.h",
    "device/tile/nvshmemx_tile_api.hpp",
    "device_host/nvshmem_common.cuh",
    "device_host/nvshmem_tensor.h",
    "device_host/nvshmem_types.h",
    "bootstrap_device_host/nvshmem_uniqueid.h",
    "non_abi/nvshmem_build_options.h",
];

/// Every file of an installation but the libraries.
pub fn files() -> Vec<InstalledFile> {
    let plain = |path: &str, text: String| InstalledFile {
        path: path.to_owned(),
        content: text.into_bytes(),
        executable: false,
    };
    let program = |path: &str, text: String| InstalledFile {
        executable: true,
        ..plain(path, text)
    };
    let mut files = vec![
        plain(
            "include/crosswarp_nvshmem.h",
            include_str!(concat!(env!("OUT_DIR"), "/crosswarp_nvshmem.h")).to_owned(),
        ),
        plain("include/crosswarp_nvshmem_device.cuh", device_header()),
        plain(
            "include/crosswarp_nvshmem_tile.h",
            include_str!("../include/crosswarp_nvshmem_tile.h").to_owned(),
        ),
        plain(
            "include/non_abi/nvshmem_version.h",
            include_str!("../include/non_abi/nvshmem_version.h").to_owned(),
        ),
    ];
    for path in PATHS {
        let up = "../".repeat(path.matches('/').count());
        files.push(plain(
            &format!("include/{path}"),
            format!("#include \"{up}crosswarp_nvshmem.h\"\n"),
        ));
    }
    for (path, text) in [
        (
            "lib/cmake/nvshmem/NVSHMEMConfig.cmake",
            include_str!("../wrappers/NVSHMEMConfig.cmake"),
        ),
        (
            "lib/cmake/nvshmem/NVSHMEMConfigVersion.cmake",
            include_str!("../wrappers/NVSHMEMConfigVersion.cmake"),
        ),
        (
            "lib/pkgconfig/nvshmem.pc",
            include_str!("../wrappers/nvshmem.pc"),
        ),
    ] {
        files.push(plain(path, text.to_owned()));
    }
    files.push(InstalledFile {
        path: "lib/libnvshmem_device.a".into(),
        content: empty_archive(),
        executable: false,
    });
    let run = include_str!("../wrappers/nvshmrun").to_owned();
    files.push(program("bin/nvshmrun", run));
    let info = include_str!("../wrappers/nvshmem-info")
        .replace("@VERSION@", &environment::greeting())
        .replace("@VARIABLES@", &environment::variables());
    files.push(program("bin/nvshmem-info", info));
    files
}

/// An archive of one object without anything in it: device linkers warn of one without objects.
fn empty_archive() -> Vec<u8> {
    let mut object = vec![0u8; 64];
    // A relocatable file of 64 bits, little-endian, for x86-64, with neither segments nor sections.
    object[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, word) in [(16, 1u16), (18, 62), (20, 1), (52, 64), (58, 64)] {
        object[at..at + 2].copy_from_slice(&word.to_le_bytes());
    }
    // The index of names, of none; then the object.
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in [("/", [0; 4].as_slice()), ("nothing.o/", &object)] {
        let size = content.len();
        let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
        archive.extend(header.bytes());
        archive.extend(content);
    }
    archive
}

/// The device headers of crosswarp-cuda that the verbs are made of, and what NVSHMEM's names mean, in one file.
fn device_header() -> String {
    let mut out = String::from(
        "// Made of Crosswarp's device headers; see crosswarp_nvshmem.h.\n#pragma once\n",
    );
    let mut included = Vec::new();
    include("layout.cuh", &mut included, &mut out);
    out += include_str!("../device/state.cuh");
    include("pe.cuh", &mut included, &mut out);
    out += include_str!("../device/nvshmem.cuh");
    out += include_str!("../device/tile.cuh");
    out
}

/// Appends the header and, before it, what it includes, each once.
fn include(name: &str, included: &mut Vec<String>, out: &mut String) {
    if included.iter().any(|known| known == name) {
        return;
    }
    included.push(name.to_owned());
    let (_, text) = HEADERS
        .iter()
        .find(|(header, _)| *header == name)
        .unwrap_or_else(|| panic!("no device header {name}"));
    for line in text.lines() {
        let inner = line
            .strip_prefix("#include \"")
            .and_then(|line| line.strip_suffix('"'));
        match inner {
            Some(inner) => include(inner, included, out),
            // The short name is the users' to give.
            None if line == "#pragma once" || line == "namespace cw = crosswarp;" => {}
            None => {
                *out += line;
                out.push('\n');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_to_fill_in() {
        for file in files() {
            let open = file.content.windows(9).any(|text| text == b"@VERSION@");
            assert!(!open, "{}", file.path);
            let script = file.content.starts_with(b"#!");
            assert_eq!(file.executable, script, "{}", file.path);
        }
    }

    #[test]
    fn the_device_header_is_whole() {
        let text = device_header();
        assert!(!text.contains("#include"));
        assert_eq!(text.matches("#pragma once").count(), 1);
        assert!(text.contains("namespace crosswarp_nvshmem {"));
    }
}

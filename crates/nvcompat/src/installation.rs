//! The files of an installation: headers under every path that programs include, and what build systems read. They are
//! part of this crate, so that installing them needs no sources.

use crosswarp_cuda::HEADERS;

/// A file of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledFile {
    /// Its place below the prefix.
    pub path: String,
    /// What it holds.
    pub text: String,
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
    "device_host/nvshmem_common.cuh",
    "device_host/nvshmem_types.h",
    "bootstrap_device_host/nvshmem_uniqueid.h",
    "non_abi/nvshmem_build_options.h",
];

/// Every file of an installation but the libraries.
pub fn files() -> Vec<InstalledFile> {
    let plain = |path: &str, text: String| InstalledFile {
        path: path.to_owned(),
        text,
        executable: false,
    };
    let mut files = vec![
        plain(
            "include/crosswarp_nvshmem.h",
            include_str!(concat!(env!("OUT_DIR"), "/crosswarp_nvshmem.h")).to_owned(),
        ),
        plain("include/crosswarp_nvshmem_device.cuh", device_header()),
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
    files
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

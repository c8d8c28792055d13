//! Makes the headers and the exported functions from the one table in `generator/table.rs`.

#[path = "generator/exports.rs"]
mod exports;
#[path = "generator/functions.rs"]
mod functions;
#[path = "generator/header.rs"]
mod header;
#[path = "generator/table.rs"]
mod table;
#[path = "generator/types.rs"]
mod types;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    for input in ["generator", "include"] {
        println!("cargo::rerun-if-changed={input}");
    }
    // What programs are linked with carries the installed name.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcrosswarp_shmem.so");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let rows = functions::rows();
    let part = |name: &str| {
        let path = Path::new("include").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let header = header::header(&rows, &part("shmem.begin.h"), &part("shmem.end.h"));
    let profiling = header::profiling_header(&rows, &part("pshmem.begin.h"), &part("pshmem.end.h"));
    for (name, text) in [
        ("shmem.h", header),
        ("pshmem.h", profiling),
        ("exports.rs", exports::exports(&rows)),
    ] {
        let path = out.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

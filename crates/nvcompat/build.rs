//! Makes the header, the exported functions and the list of names from the one table in `generator/table.rs`.

#[path = "generator/functions.rs"]
mod functions;
#[path = "generator/header.rs"]
mod header;
#[path = "generator/sets.rs"]
mod sets;
#[path = "generator/table.rs"]
mod table;
#[path = "generator/types.rs"]
mod types;

use functions::Form;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    for input in ["generator", "include"] {
        println!("cargo::rerun-if-changed={input}");
    }
    // What programs are linked with carries the name that they look for.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvshmem_host.so.3");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let groups = functions::groups();
    let path = Path::new("include/crosswarp_nvshmem.h");
    let mut header =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for (mark, text) in [
        ("@HOST@", header::host(&groups)),
        ("@BOTH@", header::both(&groups)),
        ("@KERNELS@", header::kernels(&groups)),
        ("@DEFINITIONS@", header::definitions(&groups)),
    ] {
        assert_eq!(header.matches(mark).count(), 1, "{mark}");
        header = header.replace(mark, &text);
    }
    let mut exports = String::new();
    let mut names = String::new();
    for (_, rows) in &groups {
        for function in rows.iter().flat_map(|row| row.functions()) {
            let on_host = matches!(function.form, Form::Host | Form::OnStream);
            if on_host {
                exports += &function.export();
                exports.push('\n');
            }
            names += &format!(
                "{} {}\n",
                if on_host { "host" } else { "kernel" },
                function.name
            );
        }
    }
    for (name, text) in [
        ("crosswarp_nvshmem.h", header),
        ("exports.rs", exports),
        ("names.txt", names),
        ("sets.h", sets::sets()),
    ] {
        let path = out.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

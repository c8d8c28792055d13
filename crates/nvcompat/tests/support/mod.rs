//! Compiling programs against the headers and the library as this build made them, and running them.
#![allow(dead_code)] // no test uses all of it

use crosswarp_cuda::{find_program, skip};
use crosswarp_nvshmem::installation;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The names that the table gives: `host` or `kernel`, and the name.
pub const NAMES: &str = include_str!(concat!(env!("OUT_DIR"), "/names.txt"));

/// A folder laid out as an installation.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    PREFIX
        .get_or_init(|| {
            let prefix = tempfile::tempdir().unwrap();
            let own = std::env::current_exe().unwrap();
            let libraries = installation::Libraries {
                shared: own.with_file_name("libcrosswarp_nvshmem.so"),
                archive: Some(own.with_file_name("libcrosswarp_nvshmem.a")),
            };
            for file in installation::files() {
                let path = prefix.path().join(&file.path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, file.content).unwrap();
            }
            let lib = prefix.path().join("lib");
            for (from, to) in [
                (libraries.shared, "libnvshmem_host.so.3"),
                (libraries.archive.unwrap(), "libnvshmem.a"),
            ] {
                assert!(from.exists(), "{}", from.display());
                std::os::unix::fs::symlink(from, lib.join(to)).unwrap();
            }
            for (name, target) in installation::LINKS {
                std::os::unix::fs::symlink(target, prefix.path().join(name)).unwrap();
            }
            prefix
        })
        .path()
}

/// NVIDIA's compiler, with the folder of its runtime library if that is not the usual one.
pub fn nvcc(test: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin/nvcc"));
    let found = match home.filter(|nvcc| nvcc.is_absolute() && nvcc.exists()) {
        Some(nvcc) => Ok(nvcc),
        None => find_program("nvcc"),
    };
    match found {
        Ok(nvcc) => Some(nvcc),
        Err(reason) => {
            skip::skip_tool(test, reason);
            None
        }
    }
}

/// `nvcc`, with the headers.
pub fn compiler(nvcc: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(nvcc);
    command
        .args(["-arch=sm_90", "-I"])
        .arg(prefix().join("include"));
    // Wheels have their libraries where nvcc does not look.
    if let Some(lib) = nvcc.parent().map(|bin| bin.join("../lib")) {
        command.arg("-L").arg(lib);
    }
    command.args(arguments);
    command
}

/// The arguments by which programs are linked with the library.
pub fn linked() -> [String; 3] {
    let lib = prefix().join("lib");
    [
        format!("-L{}", lib.display()),
        "-lnvshmem_host".into(),
        format!("-Wl,-rpath,{}", lib.display()),
    ]
}

/// The same for nvcc, which passes them on.
pub fn linked_by_nvcc() -> Vec<String> {
    let [path, library, rpath] = linked();
    vec![
        path,
        library,
        "-Xlinker".into(),
        rpath.trim_start_matches("-Wl,").replace(',', "="),
    ]
}

/// Where the toolkit's headers are.
pub fn toolkit(nvcc: &Path) -> PathBuf {
    nvcc.parent().unwrap().join("../include")
}

/// Where the toolkit's libraries are.
pub fn runtime_folder(nvcc: &Path) -> PathBuf {
    let home = nvcc.parent().unwrap().join("..");
    let folders = ["lib64", "lib"].map(|name| home.join(name));
    let found = folders.into_iter().find(|folder| folder.is_dir());
    found.unwrap_or_else(|| panic!("no libraries in {}", home.display()))
}

/// Runs a command that must succeed without a word.
pub fn succeed(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The same; and the compiler had nothing to say.
pub fn silently(command: &mut Command) {
    let output = succeed(command);
    let said = [output.stdout, output.stderr].concat();
    assert!(
        said.is_empty(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&said)
    );
}

/// Whether all of what takes minutes is wanted: `CROSSWARP_NVSHMEM_ALL` is 1.
pub fn all() -> bool {
    std::env::var("CROSSWARP_NVSHMEM_ALL").is_ok_and(|value| value == "1")
}

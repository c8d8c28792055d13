//! Ways of linking: position-dependent and -independent programs, the static library, libraries with data
//! of their own, tools that intercept functions, OpenMP.

mod support;

use std::path::Path;
use std::process::Command;
use support::{Language, PES, compile, launch, passes, prefix, source, succeed};

fn static_library() -> String {
    let library = prefix().join("lib/libcrosswarp_shmem.a");
    library.to_str().unwrap().to_owned()
}

#[test]
fn static_variables_of_every_kind_of_executable() {
    for (label, arguments) in [
        ("pie", &["-fPIE", "-pie"][..]),
        ("no-pie", &["-fno-pie", "-no-pie"]),
        ("now", &["-fPIE", "-pie", "-Wl,-z,relro,-z,now"]),
        ("lazy", &["-fPIE", "-pie", "-Wl,-z,norelro,-z,lazy"]),
    ] {
        let program = compile("statics.c", Language::C11, label, arguments);
        for n in [1, 2, 4] {
            assert_eq!(launch(n, &program, &[]).code(), 0, "{label} on {n} PEs");
        }
    }
}

/// The library's own variables are then among those of the program.
#[test]
fn the_static_library_serves_as_well() {
    let library = static_library();
    for (label, position) in [("a-pie", "-pie"), ("a-no-pie", "-no-pie")] {
        let arguments = [position, library.as_str(), "-ldl"];
        passes(
            &compile("statics.c", Language::C11, label, &arguments),
            &PES,
        );
    }
    passes(
        &compile("collect.c", Language::C11, "a", &[&library, "-ldl"]),
        &PES,
    );
}

#[test]
fn a_library_of_the_program_has_symmetric_variables() {
    let object = prefix().join("lib/libcounter.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-O1"])
        .arg(source("counter_library.c"))
        .arg("-o")
        .arg(&object);
    succeed(gcc);
    passes(
        &compile(
            "counter.c",
            Language::C11,
            "library",
            &["-L", prefix().join("lib").to_str().unwrap(), "-lcounter"],
        ),
        &PES,
    );
}

/// As where everything lies in folders of a package manager.
#[test]
fn the_c_library_keeps_its_variables_wherever_it_is() {
    let program = compile("elsewhere.c", Language::C11, "so", &[]);
    passes(&program, &[1, 2]);
    let mut gcc = Command::new("gcc");
    gcc.arg("-print-file-name=libc.so.6");
    let found = String::from_utf8(succeed(gcc).stdout).unwrap();
    let folder = prefix().join("elsewhere");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["libc.so.6", "libm.so.6"] {
        let from = Path::new(found.trim()).with_file_name(name);
        let to = folder.join(name);
        let _ = std::fs::remove_file(&to);
        std::fs::copy(from, to).unwrap();
    }
    let variable = format!("LD_LIBRARY_PATH={}", folder.display());
    for n in [1, 2] {
        // The shell and the loader are the system's; both libraries are of one version.
        let arguments = [variable.as_str(), program.to_str().unwrap()];
        let outcome = launch(n, Path::new("env"), &arguments);
        assert_eq!(outcome.code(), 0, "{n} PEs: {outcome:?}");
    }
}

/// A tool defines `shmem_…` and calls `pshmem_…`: between program and shared library, and before the
/// archive.
#[test]
fn a_tool_intercepts_functions() {
    passes(&compile("profile.c", Language::C11, "so", &[]), &PES);
}

/// It watches memory that this library moves (its runtime belongs to gcc, but may not be installed).
#[test]
fn the_address_sanitizer_has_nothing_to_say() {
    let mut probe = Command::new("gcc");
    let runtime = probe.arg("-print-file-name=libasan.so").output().unwrap();
    if !runtime.stdout.starts_with(b"/") {
        assert!(
            std::env::var_os("CROSSWARP_REQUIRE_TOOLS").is_none(),
            "no runtime of the address sanitizer"
        );
        eprintln!("skipped: no runtime of the address sanitizer");
        return;
    }
    let arguments = ["-g", "-fsanitize=address"];
    let program = compile("statics.c", Language::C11, "asan", &arguments);
    let leaks = ["ASAN_OPTIONS=detect_leaks=0", program.to_str().unwrap()];
    for n in [1, 3] {
        let outcome = launch(n, Path::new("env"), &leaks);
        assert_eq!(outcome.code(), 0, "{n} PEs: {outcome:?}");
    }
}

#[test]
fn openmp_threads_share_a_pe() {
    passes(
        &compile("openmp.c", Language::C11, "so", &["-fopenmp"]),
        &PES,
    );
}

/// Nothing in the library goes through a symbol that a tool may define.
#[test]
fn the_library_does_not_call_itself_by_name() {
    let mut readelf = Command::new("readelf");
    readelf
        .args(["--relocs", "--wide"])
        .arg(support::library("so"));
    let output = succeed(readelf);
    let relocations = String::from_utf8(output.stdout).unwrap();
    let own: Vec<_> = relocations
        .lines()
        .filter(|line| line.contains("shmem_"))
        .collect();
    assert!(own.is_empty(), "{own:?}");
}

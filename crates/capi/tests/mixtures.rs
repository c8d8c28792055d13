//! Programs compiled, linked or started with another OpenSHMEM's tools: one line says so, and right ones hear
//! nothing.

mod support;

use crosswarp_shmem::internal::other_openshmem_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Language, compile, prefix, source, succeed};

/// What `program` says on standard error, run alone.
fn said(program: &Path, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(program);
    command.arg("nothing").env("CROSSWARP_HEAP", "1M");
    for (name, _, _) in LAUNCHERS {
        command.env_remove(name);
    }
    let output = command.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

const LAUNCHERS: [(&str, &str, &str); 3] = [
    (
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "Open MPI's launcher",
    ),
    ("PMI_SIZE", "PMI_RANK", "a launcher for PMI"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "Slurm's srun"),
];

#[test]
fn right_programs_hear_nothing() {
    for (label, arguments) in [
        ("plain", &[][..]),
        ("gc", &["-Wl,--gc-sections", "-ffunction-sections", "-O2"]),
        ("stripped", &["-s"]),
        ("lto", &["-flto", "-O2"]),
    ] {
        let program = compile("misuse.c", Language::C11, label, arguments);
        assert_eq!(said(&program, &[]), "", "{label}");
        assert_eq!(other_openshmem_of(&program), None);
    }
    let program = compile("setup.c", Language::Cxx17, "mixture", &[]);
    assert_eq!(said(&program, &[]), "");
}

#[test]
fn another_launcher_is_named_by_its_first_process() {
    let program = compile("misuse.c", Language::C11, "launcher", &[]);
    for (size, rank, launcher) in LAUNCHERS {
        let line = said(&program, &[(size, "4"), (rank, "0")]);
        assert!(
            line.contains(&format!("started by {launcher} ({size} is 4)"))
                && line.contains("Crosswarp's oshrun"),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1, "{line}");
        assert_eq!(said(&program, &[(size, "4"), (rank, "2")]), "");
        // One process is one PE.
        assert_eq!(said(&program, &[(size, "1"), (rank, "0")]), "");
    }
}

/// A library that has nothing of OpenSHMEM but its name.
fn another_library() -> PathBuf {
    let library = prefix().join("lib/libsma.so.4");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-Wl,-soname,libsma.so.4"])
        .arg(source("counter_library.c"))
        .arg("-o")
        .arg(&library);
    succeed(gcc);
    library
}

#[test]
fn another_library_is_named() {
    let library = another_library();
    let arguments = ["-Wl,--no-as-needed", library.to_str().unwrap()];
    let program = compile("misuse.c", Language::C11, "two", &arguments);
    let line = said(&program, &[]);
    assert!(
        line.contains("libsma.so.4, another OpenSHMEM library, is loaded too"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1, "{line}");
    // It has Crosswarp's, too, so the launcher has nothing to say.
    assert_eq!(other_openshmem_of(&program), None);

    let alone = prefix().join("another");
    let mut gcc = Command::new("gcc");
    gcc.args(["-x", "c", "-", "-x", "none", "-Wl,--no-as-needed"])
        .arg(&library)
        .arg("-o")
        .arg(&alone)
        .stdin(std::fs::File::open(source("alone.c")).unwrap());
    succeed(gcc);
    assert_eq!(other_openshmem_of(&alone).as_deref(), Some("libsma.so.4"));
}

#[test]
fn another_header_is_noticed() {
    let program = compile("foreign.c", Language::C11, "so", &[]);
    let line = said(&program, &[]);
    assert!(
        line.contains("no part of this program was compiled with Crosswarp's shmem.h"),
        "{line}"
    );
    let library = prefix().join("lib/libcrosswarp_shmem.a");
    let arguments = [library.to_str().unwrap(), "-ldl"];
    let program = compile("foreign.c", Language::C11, "a", &arguments);
    assert_eq!(said(&program, &[]), line);
}

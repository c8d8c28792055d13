//! Compiling C programs against the library as this build made it, and running them.
#![allow(dead_code)] // no test uses all of it

use crosswarp_shmem::{Launch, Outcome};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

/// How a program is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    C99,
    C11,
    Cxx17,
}

impl Language {
    fn compiler(self) -> Command {
        let (compiler, language, standard) = match self {
            Self::C99 => ("gcc", "c", "-std=c99"),
            Self::C11 => ("gcc", "c", "-std=c11"),
            Self::Cxx17 => ("g++", "c++", "-std=c++17"),
        };
        let mut command = Command::new(compiler);
        command.args(["-x", language, standard]);
        command
    }
}

/// A folder laid out as an installation: `include`, `lib`.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        // One for each process: a program that another run is writing can not be started.
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
        remove_those_of_ended_processes(&all);
        let prefix = all.join(std::process::id().to_string());
        let (include, lib) = (prefix.join("include"), prefix.join("lib"));
        std::fs::create_dir_all(include.join("mpp")).unwrap();
        std::fs::create_dir_all(&lib).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        let made = Path::new(env!("OUT_DIR"));
        for (from, to) in [
            (made.join("shmem.h"), include.join("shmem.h")),
            (made.join("pshmem.h"), include.join("pshmem.h")),
            (source.join("shmemx.h"), include.join("shmemx.h")),
            (source.join("mpp-shmem.h"), include.join("mpp/shmem.h")),
            (source.join("mpp-shmemx.h"), include.join("mpp/shmemx.h")),
            (library("so"), lib.join("libcrosswarp_shmem.so")),
            (library("a"), lib.join("libcrosswarp_shmem.a")),
        ] {
            assert!(from.exists(), "{}", from.display());
            std::os::unix::fs::symlink(from, to).unwrap();
        }
        prefix
    })
}

/// `all` holds a folder for each process, whose name is its number.
fn remove_those_of_ended_processes(all: &Path) {
    let folders = std::fs::read_dir(all).into_iter().flatten();
    for folder in folders.map(Result::unwrap) {
        // Not ours, if another run removes it at the same time.
        if !Path::new("/proc").join(folder.file_name()).exists() {
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
    // One of that number that has ended may have left its own.
    let _ = std::fs::remove_dir_all(all.join(std::process::id().to_string()));
}

/// The library that cargo built for this test: it lies beside the test's own executable.
pub fn library(kind: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.with_file_name(format!("libcrosswarp_shmem_c.{kind}"))
}

/// The path of a test program's source.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/c")
        .join(name)
}

/// Compiles `tests/c/{name}`; `extra` are further arguments. Returns the executable.
///
/// Warnings are errors. Panics with the compiler's words if there are any.
pub fn compile(name: &str, language: Language, label: &str, extra: &[&str]) -> PathBuf {
    let prefix = prefix();
    let program = prefix.join(format!("{}-{language:?}-{label}", name.replace('.', "-")));
    let mut command = language.compiler();
    command
        .args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-O1",
            "-pthread",
        ])
        .arg("-I")
        .arg(prefix.join("include"))
        .arg(source(name))
        .args(["-x", "none"])
        .args(extra)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(prefix.join("lib"))
        .arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()));
    if !extra
        .iter()
        .any(|argument| argument.contains("libcrosswarp_shmem"))
    {
        command.arg("-lcrosswarp_shmem");
    }
    command.arg("-lm");
    succeed(command);
    program
}

/// Runs a command that must succeed.
pub fn succeed(mut command: Command) -> Output {
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

/// What has not ended by then hangs: some programs work for seconds on a quiet machine.
const WATCHDOG: Duration = Duration::from_secs(600);

/// Runs `program` on `n` PEs with a small heap.
pub fn launch(n: usize, program: &Path, args: &[&str]) -> Outcome {
    Launch::new(n, program)
        .args(args)
        .heap_bytes(32 << 20)
        .timeout(WATCHDOG)
        .run()
        .unwrap()
}

/// The usual numbers of PEs.
pub const PES: [usize; 6] = [1, 2, 3, 4, 5, 8];

/// Runs `program` on each of these numbers of PEs; it must end with 0.
pub fn passes(program: &Path, pes: &[usize]) {
    for &n in pes {
        let outcome = launch(n, program, &[]);
        assert_eq!(
            outcome.code(),
            0,
            "{} on {n} PEs: {outcome:?}",
            program.display()
        );
    }
}

//! What this command says when a tool that it starts fails: the tool's own words. The tool is a script.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::crosswarp;

/// An `ncu` in `folder` that does `then`; its log file is `$log`.
fn fake_ncu(folder: &Path, then: &str) {
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --log-file ] && log=$2; shift; done\n{then}\n"
    );
    let path = folder.join("ncu");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Exit code and the lines of this command's own on standard error.
fn profile(folder: &Path) -> (i32, String) {
    let path = std::env::var_os("PATH").unwrap();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    let output = crosswarp()
        .args(["profile", "--", "some-program"])
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env_remove("CROSSWARP_NCU")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let own = err.lines().filter(|line| line.starts_with("crosswarp:"));
    (
        output.status.code().unwrap(),
        own.collect::<Vec<_>>().join("\n"),
    )
}

#[test]
fn a_profiler_that_fails_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    fake_ncu(
        folder.path(),
        r#"printf '==PROF== Connected to process 7\n==ERROR== UnknownError\n' > "$log"
        echo '==WARNING== Profiling is not supported on device 1'
        printf 'perfworks: \033[31mcounters are busy\033[0m\n' >&2
        exit 9"#,
    );
    let (code, err) = profile(folder.path());
    assert_eq!((code, err.lines().count()), (1, 1), "{err}");
    for words in [
        "Nsight Compute: UnknownError",
        "exit status: 9",
        "Connected to process 7",
        "Profiling is not supported on device 1",
        "perfworks: \\u{1b}[31mcounters are busy",
    ] {
        assert!(err.contains(words), "{words} is not in {err}");
    }
    assert!(!err.contains('\u{1b}'), "{err}");
}

#[test]
fn a_profiler_without_a_table_is_quoted_too_and_the_quotation_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    fake_ncu(folder.path(), "seq 100000; echo the last line; exit 0");
    let (code, err) = profile(folder.path());
    assert_eq!(code, 1);
    assert!(err.contains("the last line") && err.len() < 2000, "{err}");
    fake_ncu(folder.path(), "echo no such program >&2; exit 3");
    let (code, err) = profile(folder.path());
    assert_eq!(code, 1);
    assert!(
        err.contains("ended with code 3") && err.contains("no such program"),
        "{err}"
    );
}

#[test]
fn a_relative_profiler_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = crosswarp()
        .args(["profile", "--", "true"])
        .env("CROSSWARP_NCU", "ncu")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        err.contains("CROSSWARP_NCU=ncu is a relative path"),
        "{err}"
    );
}

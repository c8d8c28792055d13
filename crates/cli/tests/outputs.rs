//! Where outputs go: links, devices, pipes, and what is left when writing fails.

mod common;

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::process::{Command, Output, Stdio};

use common::{crosswarp, names};

const SOLVE: [&str; 8] = [
    "solve",
    "laplace2d",
    "--nx",
    "60",
    "--ny",
    "60",
    "--max-sweeps",
    "20",
];
/// Of its result.
const NOT_CONVERGED: Option<i32> = Some(3);

/// What a shell's line prints and how it ends; `$crosswarp` is the command.
fn shell(line: &str, folder: &std::path::Path) -> Output {
    Command::new("sh")
        .args(["-c", line])
        .env("crosswarp", assert_cmd::cargo::cargo_bin!("crosswarp"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn links_stay_and_permissions_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("field"), "old").unwrap();
    symlink("field", at("link.npy")).unwrap();
    let output = crosswarp()
        .args(SOLVE)
        .arg("-o")
        .arg(at("link.npy"))
        .args(["--checkpoint", "/dev/null"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), NOT_CONVERGED, "{output:?}");
    assert!(at("link.npy").is_symlink());
    assert!(fs::read(at("field")).unwrap().starts_with(b"\x93NUMPY"));
    assert_eq!(names(folder.path()), ["field", "link.npy"]);
    let null = fs::symlink_metadata("/dev/null").unwrap().file_type();
    assert!(null.is_char_device());
}

/// Through a pipe, and into a file behind the shell's `>`, where the result comes after the field.
#[test]
fn standard_output_is_written_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!("\"$crosswarp\" {} -o /dev/stdout", SOLVE.join(" "));
    let piped = shell(&line, folder.path());
    assert_eq!(piped.status.code(), NOT_CONVERGED, "{piped:?}");
    let filed = shell(&format!("{line} > out"), folder.path());
    assert_eq!(filed.status.code(), NOT_CONVERGED, "{filed:?}");
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|part| part == what);
    for bytes in [piped.stdout, fs::read(folder.path().join("out")).unwrap()] {
        let field = find(&bytes, b"\x93NUMPY").expect("a field");
        let result = find(&bytes, b"Did not converge").expect("a result");
        assert!(result >= field + 60 * 60 * 4);
    }
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
    assert_eq!(names(folder.path()), ["out"]);
}

/// A limit on the size of files fails as a full disk does: late.
#[test]
fn a_write_that_fails_keeps_the_old_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for file in ["field.npy", "state"] {
        fs::write(at(file), "old").unwrap();
    }
    let line = format!(
        "trap '' XFSZ; ulimit -f 8; exec \"$crosswarp\" {} --checkpoint state -o field.npy",
        SOLVE.join(" ")
    );
    let output = shell(&line, folder.path());
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("field.npy: cannot write") && err.contains("the older file is still there"),
        "{err}"
    );
    for file in ["field.npy", "state"] {
        assert_eq!(fs::read(at(file)).unwrap(), b"old", "{file}");
    }
    assert_eq!(names(folder.path()), ["field.npy", "state"]);
}

/// `-` is standard input and output; what the command says then goes to standard error.
#[test]
fn arrays_come_and_go_through_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<f64> = (0..70_000).map(f64::from).collect();
    common::write_npy(&folder.path().join("x.npy"), &[7, 10_000], values);
    let said = |line: &str| {
        let output = shell(line, folder.path());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        (text(output.stdout), text(output.stderr))
    };
    let sum = "sum = 2449965000  (0x41e240eff9000000)\n70,000 elements f64";
    for line in [
        "\"$crosswarp\" reduce sum - < x.npy",
        "cat x.npy | \"$crosswarp\" reduce sum -",
        "cat x.npy | \"$crosswarp\" reduce sum /dev/stdin --pes 3",
        "cat x.npy | \"$crosswarp\" transpose - -o - | \"$crosswarp\" reduce sum -",
    ] {
        let (out, _) = said(line);
        assert!(out.starts_with(sum), "{line}: {out}");
    }
    let (out, err) = said(
        "cat x.npy | \"$crosswarp\" transpose - -o - > t.npy; \"$crosswarp\" transpose x.npy -o same.npy; \
         cmp t.npy same.npy",
    );
    assert!(
        err.contains("Wrote standard output: (10000, 7) f64"),
        "{err}"
    );
    assert!(out.contains("Wrote same.npy"), "{out}");
    let (out, err) =
        said("\"$crosswarp\" histogram x.npy --bins 7 -o - | \"$crosswarp\" reduce sum - --json");
    assert!(out.contains("\"value\":70000"), "{out}");
    assert!(err.contains("70,000 samples f64"), "{err}");
    // A solve looks at its values twice; `dot` takes the same array twice.
    let values = common::example("jacksboro/jacksboro_dem.npy");
    let known = common::example("jacksboro/jacksboro_known.npy");
    let line = format!(
        "cat {} | \"$crosswarp\" solve fill --values - --known {} -o filled.npy --quiet",
        values.display(),
        known.display()
    );
    said(&line);
    let (out, _) = said("cat x.npy | \"$crosswarp\" reduce dot - - --json");
    assert!(out.contains("\"count\":70000"), "{out}");
    let none = shell("\"$crosswarp\" reduce sum - < /dev/null", folder.path());
    let err = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(1));
    assert!(
        err.contains("standard input: not a regular file, nor a pipe"),
        "{err}"
    );
    // Two outputs cannot have it, and a pipe is no input of several processes.
    let two = shell("\"$crosswarp\" histogram x.npy -o - --csv -", folder.path());
    assert_eq!(two.status.code(), Some(2));
    let many = shell(
        "cat x.npy | \"$crosswarp\" run -n 2 -- \"$crosswarp\" reduce sum x.npy",
        folder.path(),
    );
    assert!(many.status.success(), "{many:?}");
}

#[test]
fn names_say_what_is_in_a_file() {
    for line in [
        "histogram x.npy -o x.csv",
        "histogram x.npy --csv x.npy",
        "transpose x.npy -o x.png",
        "solve laplace1d --history x.svg",
        "solve laplace1d -o x.png",
        "solve laplace1d --vti x.npy",
        "ladder reduce --html x.pdf",
    ] {
        let output = crosswarp().args(line.split(' ')).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {err}");
        assert!(err.contains("ends in ."), "{line}: {err}");
    }
}

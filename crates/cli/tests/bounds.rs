//! Input without bounds, or with absurd ones, is refused in one line: nothing is allocated for it or waited for.

mod common;

use std::path::Path;
use std::time::Duration;

use common::crosswarp;

/// Exit code and standard error of a command that must end.
fn refusal(args: &[&str]) -> (i32, String) {
    let output = crosswarp()
        .args(args)
        .timeout(Duration::from_secs(60))
        .output()
        .unwrap();
    let code = output.status.code();
    let code = code.unwrap_or_else(|| panic!("{args:?} did not end by itself"));
    (code, String::from_utf8(output.stderr).unwrap())
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn sizes_and_numbers_have_limits() {
    let no_inner_cell = "has no inner cell: both sizes must be at least 3";
    for (line, code, part) in [
        (
            "solve laplace2d --nx 0 --ny 18446744073709551615",
            2,
            no_inner_cell,
        ),
        ("solve laplace2d --nx 0 --ny 4000000000", 2, no_inner_cell),
        (
            "solve laplace2d --preset nvidia --nx 1 --ny 18446744073709551615",
            2,
            no_inner_cell,
        ),
        (
            "roofline --gpu h200 --point a=1,1e308",
            2,
            "a number from 1e-30 to 1e30 is needed",
        ),
        (
            "roofline --bandwidth 1e308 --rate 1",
            2,
            "a number from 1e-30 to 1e30 is needed",
        ),
        (
            "roofline --gpu h200 --file k.cu --load 4294967295",
            2,
            "4294967295 is not in 1..=233472",
        ),
        (
            "occupancy /dev/zero",
            1,
            "cannot read /dev/zero: longer than 64 MiB, the most that is read",
        ),
        (
            "bench compare /dev/zero /dev/zero",
            1,
            "cannot read /dev/zero: longer than 64 MiB",
        ),
        (
            "solve laplace1d --points 5000 --pes 1 --resume /dev/zero",
            1,
            "checkpoint /dev/zero is not a regular file",
        ),
    ] {
        let (found, message) = refusal(&words(line));
        assert_eq!(found, code, "{line}: {message}");
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn pipes_and_devices_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    for pipe in ["pipe", "pipe.png", "pipe.npy", "pipe.cuh"] {
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at(pipe), kind, mode, 0).unwrap();
    }
    std::os::unix::fs::symlink("/dev/zero", at("zero.toml")).unwrap();
    let path = |name: &str| at(name).display().to_string();
    let (pipe, png, npy, toml) = (
        path("pipe"),
        path("pipe.png"),
        path("pipe.npy"),
        path("zero.toml"),
    );
    for args in [
        &["solve", "fill", "--values", &png, "--known", &png][..],
        &["solve", "fill", "--values", &npy, "--known", &png],
        &[
            "solve",
            "laplace1d",
            "--points",
            "5000",
            "--pes",
            "1",
            "--resume",
            &pipe,
        ],
        &["solve", &toml],
        &["reduce", "sum", &npy],
    ] {
        let (code, message) = refusal(args);
        assert_eq!(code, 1, "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.contains("not a regular file") || message.contains("longer than 1 MiB"),
            "{message}"
        );
    }
}

#[test]
fn headers_that_are_no_files_are_not_given_to_the_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("k.cu");
    std::fs::write(&source, "#include \"/dev/zero\"\n__global__ void k() {}\n").unwrap();
    let (code, message) = refusal(&["occupancy", &source.display().to_string()]);
    assert_eq!(
        (code, message.as_str()),
        (1, "crosswarp: cannot read /dev/zero: not a regular file\n")
    );
}

#[test]
fn pictures_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("tile.png").display().to_string();
    let (code, message) = refusal(&["banks", "--tile", "1024", "--png", &picture]);
    assert_eq!(
        (code, message.as_str()),
        (
            2,
            "crosswarp: a PNG of 1458 x 37050 pixels: at most 16777216 are drawn; --svg has no such limit\n"
        )
    );
    assert!(!Path::new(&picture).exists());
}

#[test]
fn a_histogram_of_extreme_samples_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    common::write_npy(&folder.path().join("s.npy"), &[2], [-8e307f64, 8e307]);
    let (code, message) = refusal(&[
        "histogram",
        &at("s.npy"),
        "--png",
        &at("b.png"),
        "--plot",
        &at("b.svg"),
    ]);
    assert_eq!((code, message.as_str()), (0, ""));
}

#[test]
fn control_characters_are_not_echoed() {
    let folder = tempfile::tempdir().unwrap();
    let toml = folder.path().join("p.toml").display().to_string();
    std::fs::write(&toml, "kind = \"a\\u001b[31mb\\u0007\"\n").unwrap();
    for args in [
        &["solve", "a\u{1b}[31m\nb\u{7}"][..],
        &["solve", &toml],
        &["solve", "laplace2d", "--boundary", "top=\u{1b}[31mfoo\r"],
        &["a\u{1b}[31m\u{9b}"],
        &["occupancy", "a\u{1b}[31m\nb.cubin"],
        &["reduce", "sum", "a\u{1b}[31m\nb.npy"],
        &["banks", "--index", "\u{1b}]0;title\u{7}"],
        &["roofline", "--gpu", "h200\u{1b}"],
    ] {
        let (code, message) = refusal(args);
        assert!(code == 1 || code == 2, "{args:?}: {message}");
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!message.contains(control), "{args:?}: {message:?}");
        assert!(message.contains("\\u{1b}"), "{args:?}: {message:?}");
    }
    let output = crosswarp()
        .args(["roofline", "--gpu", "h200", "--point", "\u{1b}[31m=1,1"])
        .output()
        .unwrap();
    assert!(!output.stdout.contains(&0x1b));
}

//! Help, completions, `info` and `run`.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use common::{crosswarp, outcome};

#[test]
fn help_is_stable() {
    for (name, line) in [
        ("help", "--help"),
        ("help_solve", "solve --help"),
        ("help_reduce", "reduce --help"),
        ("help_transpose", "transpose --help"),
        ("help_run", "run --help"),
        ("help_install", "install --help"),
    ] {
        let output = crosswarp()
            .args(line.split(' '))
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        insta::assert_snapshot!(name, String::from_utf8(output.stdout).unwrap());
    }
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, err) = outcome(&format!("completions {shell}"));
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(
            out.contains("laplace1d") || out.contains("solve"),
            "{shell}"
        );
    }
}

#[test]
fn info_tells_what_would_be_used() {
    let (code, out, err) = outcome("info");
    assert_eq!((code, err.as_str()), (0, ""));
    for name in [
        "version",
        "processor",
        "cores",
        "vectors",
        "memory",
        "backend",
        "CROSSWARP_HEAP",
    ] {
        assert!(
            out.lines().any(|line| line.starts_with(name)),
            "{name}: {out}"
        );
    }
}

/// With "." on the PATH and in LD_LIBRARY_PATH: nothing of the current folder is run or loaded.
#[test]
fn nothing_is_taken_from_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let marked = at("marked");
    let script = format!(
        "#!/bin/sh\ntouch '{}'\necho {}\n",
        marked.display(),
        folder.path().display()
    );
    fs::write(at("python3"), script).unwrap();
    fs::set_permissions(at("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    let library = "lib/python3.12/site-packages/nvidia/cu13/lib";
    fs::create_dir_all(at(library)).unwrap();
    // Each would be opened, and then be found to be no library.
    for file in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"] {
        fs::write(at(library).join(file), "no library").unwrap();
        fs::write(at(file), "no library").unwrap();
    }
    let output = common::crosswarp()
        .arg("info")
        .current_dir(folder.path())
        .env_remove("CROSSWARP_NVRTC")
        .env("CUDA_HOME", "lib")
        .env("HOME", ".")
        .env("PATH", ":.:/nowhere")
        .env("LD_LIBRARY_PATH", "/nowhere:.")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for place in [
        "'' on PATH",
        "'.' on PATH",
        "'.' in LD_LIBRARY_PATH",
        "CUDA_HOME=lib",
        "HOME=.",
    ] {
        let refused = format!("refused  {place}: a relative path");
        assert!(text.contains(&refused), "{refused} is not in {text}");
    }
    assert!(!text.contains(library), "{text}");
    assert!(!text.contains("file too short"), "{text}");
    assert!(
        !marked.exists(),
        "the python3 of the current folder was run"
    );

    let named = common::crosswarp()
        .arg("info")
        .env("CROSSWARP_NVRTC", "libnvrtc.so.13")
        .output()
        .unwrap();
    let text = String::from_utf8(named.stdout).unwrap();
    let refused = "CROSSWARP_NVRTC=libnvrtc.so.13: a relative path";
    assert!(
        text.contains(refused) && text.contains("give an absolute one"),
        "{text}"
    );
}

#[test]
fn closed_outputs_end_quietly() {
    for line in ["--help", "info", "completions bash"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosswarp"));
        let output = command
            .args(line.split(' '))
            .stdout(writer)
            .output()
            .unwrap();
        assert!(
            matches!(output.status.code(), Some(0 | 141)),
            "{line}: {output:?}"
        );
        assert_eq!(output.stderr, b"", "{line}");
    }
}

#[test]
fn run_passes_codes_labels_and_limits() {
    let (code, out, _) = outcome("run -n 2 --label -- echo hello");
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!((code, lines), (0, vec!["[0] hello", "[1] hello"]));

    let (code, _, err) = outcome("run -n 2 -- false");
    assert_eq!(code, 1);
    assert!(
        err.starts_with("crosswarp: PE ") && err.contains(" ended with exit code 1"),
        "{err}"
    );

    let (code, _, err) = outcome("run -n 2 --timeout 0.2 -- sleep 30");
    assert_eq!(code, 124);
    assert!(err.contains("ended after the time limit of 0.2 s"), "{err}");

    let (code, _, err) = outcome("run -n 2 -- /no/such/program");
    assert_eq!(code, 1);
    assert!(err.contains("/no/such/program"), "{err}");
}

#[test]
fn errors_of_a_world_are_said_once_by_pe_0() {
    let (code, out, err) = outcome("run -n 3 -- crosswarp solve laplace1d --points 2");
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "crosswarp: 2 points: a line needs at least 3, two ends and one between\n"
    );
}

#[test]
fn killing_one_pe_ends_the_run_with_a_clear_line_and_leaves_nothing() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let checkpoint = elsewhere.path().join("c").display().to_string();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosswarp"));
    command
        .args("run -n 3 -- crosswarp".split(' '))
        .args(common::ENDLESS.split(' '))
        .args(["-o", "f.npy", "--checkpoint", &checkpoint])
        .args(["--checkpoint-every", "10"]);
    command
        .current_dir(folder.path())
        .env("CROSSWARP_HEAP", "64M");
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let launcher = command.spawn().unwrap();
    // Then all have joined and work.
    common::wait_for(&checkpoint);
    let pes = common::children(launcher.id());
    assert_eq!(pes.len(), 3);
    common::signal("KILL", pes[1]);
    let output = launcher.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(137), "{err}");
    assert!(
        err.starts_with("crosswarp: PE 1 was killed by signal 9 (SIGKILL)")
            && err.lines().count() == 1,
        "{err}"
    );
    assert_eq!(common::names(folder.path()), [""; 0]);
    assert!(pes.into_iter().all(common::has_ended));
}

/// `oshrun` beside this very command, as an installation has it.
fn oshrun(folder: &std::path::Path) -> std::process::Command {
    let wrapper = concat!(env!("CARGO_MANIFEST_DIR"), "/../capi/wrappers/oshrun");
    let (oshrun, own) = (folder.join("oshrun"), folder.join("crosswarp"));
    std::fs::copy(wrapper, &oshrun).unwrap();
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("crosswarp"), own).unwrap();
    let mut command = std::process::Command::new("sh");
    command.arg(oshrun).env("CROSSWARP_HEAP", "1M");
    command.stdout(std::process::Stdio::piped());
    command
}

#[test]
fn oshrun_is_the_launcher() {
    use std::io::BufRead;
    let folder = tempfile::tempdir().unwrap();
    let endless = "trap 'exit 3' TERM; echo $$; while :; do sleep 0.05; done";
    for (signal, code) in [("KILL", None), ("TERM", Some(3))] {
        let folder = folder.path().join(signal);
        std::fs::create_dir(&folder).unwrap();
        let mut running = oshrun(&folder)
            .args(["-np", "2", "--grace", "50", "sh", "-c", endless])
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(running.stdout.take().unwrap()).lines();
        let pes: Vec<u32> = lines
            .take(2)
            .map(|line| line.unwrap().parse().unwrap())
            .collect();
        common::signal(signal, running.id());
        assert_eq!(running.wait().unwrap().code(), code);
        common::until("its PEs live on", || {
            pes.iter().all(|&pe| common::has_ended(pe))
        });
    }
    let output = oshrun(&folder.path().join("KILL/.."))
        .args(["--grace", "soon", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_heap_too_large_for_the_addresses_is_named_as_such() {
    let mut command = crosswarp();
    command.args("run -n 2 -- crosswarp solve laplace1d --points 100".split(' '));
    let output = command.env("CROSSWARP_HEAP", "200T").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(
        err.contains("cannot reserve 219902325555200 bytes for each of 2 symmetric heaps: ")
            && err.contains("; set a smaller CROSSWARP_HEAP"),
        "{err}"
    );
}

/// What a PE waits for is said where it may be why it ended, and only there.
#[test]
fn a_pe_that_fails_by_itself_waited_for_nobody() {
    let (code, _, err) = outcome("run -n 2 -- false");
    assert_eq!(code, 1);
    assert!(err.contains(" ended with exit code 1\n"), "{err}");
    assert!(!err.contains("waited"), "{err}");
}

#[test]
fn an_error_of_a_running_world_is_said_once() {
    let mut command = crosswarp();
    command.args("run -n 3 -- crosswarp solve laplace2d --dtype f64".split(' '));
    let output = command.env("CROSSWARP_HEAP", "4K").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.starts_with("crosswarp: no room for ") && err.lines().count() == 1,
        "{err}"
    );
}

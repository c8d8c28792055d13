//! What the end-to-end tests share.
#![allow(dead_code)] // every test file uses a part
#![allow(unsafe_code)] // `pre_exec`, to start the command with no signal ignored

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use npyz::WriterBuilder;

/// The command, with a heap that fits anywhere.
pub fn crosswarp() -> Command {
    let mut command = Command::cargo_bin("crosswarp").unwrap();
    command
        .env("CROSSWARP_HEAP", "64M")
        .env_remove("RUST_BACKTRACE");
    command
}

/// Runs the command with the words of `line`.
pub fn run(line: &str) -> Output {
    crosswarp().args(line.split_whitespace()).output().unwrap()
}

/// Runs the command and returns its exit code, standard output and standard error.
pub fn outcome(line: &str) -> (i32, String, String) {
    let output = run(line);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// The object that a `--json` run printed; of a solve with the norms of all steps.
pub fn json(line: &str) -> serde_json::Value {
    let solve = line.split(' ').any(|word| word == "solve");
    let history = if solve { " --history /dev/null" } else { "" };
    let (_, out, err) = outcome(&format!("{line}{history}"));
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out:?} {err:?}"))
}

/// An example's path.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

/// Writes an array with npyz, an implementation of the format that is not ours.
pub fn write_npy<T: npyz::AutoSerialize>(
    path: &Path,
    shape: &[u64],
    values: impl IntoIterator<Item = T>,
) {
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(shape);
    let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values).unwrap();
    writer.finish().unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Reads an array of f32 with npyz.
pub fn read_npy_f32(path: &Path) -> (Vec<u64>, Vec<f32>) {
    let file = npyz::NpyFile::new(
        std::fs::File::open(path)
            .map(std::io::BufReader::new)
            .unwrap(),
    )
    .unwrap();
    (file.shape().to_vec(), file.into_vec().unwrap())
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A solve that no test lives to see the end of: its norm becomes 0 after millions of sweeps over a
/// million points.
pub const ENDLESS: &str =
    "solve laplace2d --nx 1000 --ny 1000 --dtype f64 --tolerance 0 --max-sweeps 1000000000";

/// Waits until `path` exists.
///
/// # Panics
/// After a minute, so that a failure is not a hang.
pub fn wait_for(path: &str) {
    until(&format!("{path} did not appear"), || {
        Path::new(path).exists()
    });
}

/// Waits until `reached`.
///
/// # Panics
/// With `otherwise` after a minute, so that a failure is not a hang.
pub fn until(otherwise: &str, mut reached: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !reached() {
        assert!(started.elapsed().as_secs() < 60, "{otherwise}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Whether the process has ended, be it still in the table or not: then it has no command line.
pub fn has_ended(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty())
}

/// The processes that the main thread of `parent` has started.
pub fn children(parent: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// The command as a process that heeds every signal. A shell starts what runs in its background with SIGINT
/// and SIGQUIT ignored, and programs that such a test starts would ignore them, too.
pub fn heeding_signals() -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosswarp"));
    command.env("CROSSWARP_HEAP", "64M");
    // SAFETY: plain system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in 1..32 {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

/// The command as a shell starts it in a script's background: with SIGINT ignored.
pub fn ignoring_interrupts() -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = heeding_signals();
    // SAFETY: a plain system call between fork and exec, after those of `heeding_signals`.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            Ok(())
        });
    }
    command
}

/// Whether a process ignores SIGINT (`SigIgn` of proc(5)).
pub fn ignores_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    mask >> (libc::SIGINT - 1) & 1 == 1
}

/// Sends a signal by its name.
pub fn signal(name: &str, pid: u32) {
    let mut kill = std::process::Command::new("kill");
    let status = kill.args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

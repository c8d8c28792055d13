//! Hosts made of network namespaces (bed.sh), and runs on them.

use crate::common::{has_ended, until};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Hosts of its own for each test, which see nobody else's addresses and ports.
pub struct Bed {
    name: String,
    n: usize,
    /// Variables of runs.
    variables: Vec<(&'static str, String)>,
    /// Runs are told of no remote shell.
    by_default: bool,
}

impl Bed {
    /// Makes `n` hosts. `None`, said by name, where that is not possible; a failure if `CROSSWARP_REQUIRE_HOSTS` is set.
    pub fn up(n: usize) -> Option<Self> {
        static BEDS: AtomicUsize = AtomicUsize::new(0);
        let number = BEDS.fetch_add(1, Ordering::Relaxed);
        let name = format!("cw{}x{number}", std::process::id());
        let bed = Self {
            name,
            n,
            variables: Vec::new(),
            by_default: false,
        };
        let made = bed.script(&["up", &n.to_string()]).output().unwrap();
        if made.status.success() {
            return Some(bed);
        }
        let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
        assert!(
            std::env::var_os("CROSSWARP_REQUIRE_HOSTS").is_none(),
            "no network namespaces: {why}"
        );
        eprintln!("skipped: network namespaces need root and iproute2: {why}");
        None
    }

    /// With this variable for all runs.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// With the remote shell that runs have by default.
    pub fn by_default(mut self) -> Self {
        self.by_default = true;
        self
    }

    /// With UCX, over TCP although all hosts are this machine. `None` without UCX, said by name, or a failure if
    /// `CROSSWARP_REQUIRE_TOOLS` is 1.
    pub fn over_ucx(self) -> Option<Self> {
        if let Err(why) = crosswarp::shmem::internal::ucx() {
            let required = std::env::var("CROSSWARP_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "{why}");
            eprintln!("skipped: {why}");
            return None;
        }
        Some(self.with("CROSSWARP_NETWORK", "ucx").with("UCX_TLS", "tcp"))
    }

    /// What a host calls itself.
    pub fn host_name(&self, host: usize) -> String {
        format!("{}-{host}", self.name)
    }

    fn path() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/bed.sh"))
    }

    /// The remote shell of these hosts.
    pub fn rsh() -> String {
        format!("{} rsh", Self::path().display())
    }

    /// `bed.sh` for this bed.
    pub fn script<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new(Self::path());
        command.env("BED", &self.name).args(args);
        command
    }

    /// Runs a command on host `host` to its end.
    pub fn run(&self, host: usize, words: &[&str]) -> Output {
        let host = host.to_string();
        let args = [&["run", &host], words].concat();
        self.script(&args).output().unwrap()
    }

    /// Starts `crosswarp run` on host 1, for the first hosts with `pes` PEs each.
    pub fn start(&self, pes: &[usize], options: &[&str], program: &[impl AsRef<OsStr>]) -> Run {
        let hosts: Vec<String> = (1..)
            .zip(pes)
            .map(|(host, pes)| format!("{}:{pes}", address(host)))
            .collect();
        self.start_on(&hosts.join(","), options, program)
    }

    /// The same on hosts as `--hosts` has them.
    pub fn start_on(&self, hosts: &str, options: &[&str], program: &[impl AsRef<OsStr>]) -> Run {
        let crosswarp = assert_cmd::cargo::cargo_bin!("crosswarp");
        let mut command = self.script(&["run", "1"]);
        command.arg(crosswarp).args(["run", "--hosts", hosts]);
        if !self.by_default {
            command.args(["--rsh", &Self::rsh()]);
        }
        command
            .args(options)
            .arg("--")
            .args(program)
            .env("CROSSWARP_HEAP", "64M")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env_remove("RUST_BACKTRACE");
        Run::of(&mut command)
    }

    /// The same with this executable's test `pe` in this role (see `roles`).
    pub fn start_role(&self, pes: &[usize], options: &[&str], role: &str) -> Run {
        self.start(pes, options, &in_role(role))
    }

    /// Drops what `from` sends to `to`.
    pub fn cut(&self, from: usize, to: usize) {
        let (from, to) = (from.to_string(), to.to_string());
        let cut = self.script(&["cut", &from, &to]).status().unwrap();
        assert!(cut.success());
    }

    /// Lets it through again.
    pub fn mend(&self, from: usize, to: usize) {
        let (from, to) = (from.to_string(), to.to_string());
        assert!(
            self.script(&["mend", &from, &to])
                .status()
                .unwrap()
                .success()
        );
    }

    /// The processes on `host`.
    pub fn pids(&self, host: usize) -> Vec<u32> {
        let pids = self.script(&["pids", &host.to_string()]).output().unwrap();
        let pids = String::from_utf8(pids.stdout).unwrap();
        pids.split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect()
    }

    /// The launcher of `host`, which has the agent in it.
    pub fn agent(&self, host: usize) -> u32 {
        let is_agent = |&pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.ends_with(b"crosswarp\0host\0")
        };
        self.pids(host)
            .into_iter()
            .find(is_agent)
            .expect("a launcher")
    }

    /// Waits until no process is left on any host.
    pub fn is_empty(&self) {
        for host in 1..=self.n {
            until(&format!("processes are left on host {host}"), || {
                self.pids(host).into_iter().all(has_ended)
            });
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // What a failed test has left is in namespaces that nobody else uses.
        for host in 1..=self.n {
            for pid in self.pids(host) {
                let _ = Command::new("kill")
                    .args(["-KILL", &pid.to_string()])
                    .status();
            }
        }
        let _ = self.script(&["down"]).status();
    }
}

/// What runs this executable's test `pe` in this role.
pub fn in_role(role: &str) -> [String; 4] {
    let test = std::env::current_exe().unwrap();
    let script =
        format!("ROLE='{role}' exec \"$0\" --ignored --exact roles::pe --nocapture --quiet");
    ["sh", "-c", &script, test.to_str().unwrap()].map(str::to_owned)
}

/// The address of a host.
pub fn address(host: usize) -> String {
    format!("10.67.0.{host}")
}

/// A run under way.
pub struct Run {
    child: Child,
    /// Standard input, until it is closed.
    pub input: Option<ChildStdin>,
    out: (Arc<Mutex<String>>, JoinHandle<()>),
    err: (Arc<Mutex<String>>, JoinHandle<()>),
}

/// Keeps what comes, line by line.
fn keep(from: impl Read + Send + 'static) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let kept = Arc::new(Mutex::new(String::new()));
    let to = Arc::clone(&kept);
    let mut from = BufReader::new(from);
    let thread = std::thread::spawn(move || {
        let mut line = Vec::new();
        while let Ok(1..) = from.read_until(b'\n', &mut line) {
            to.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    });
    (kept, thread)
}

impl Run {
    /// Starts it.
    pub fn of(command: &mut Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            input: child.stdin.take(),
            out: keep(child.stdout.take().unwrap()),
            err: keep(child.stderr.take().unwrap()),
            child,
        }
    }

    /// The process of the root: `bed.sh` has become it.
    pub fn root(&self) -> u32 {
        self.child.id()
    }

    fn texts(&self) -> (String, String) {
        (
            self.out.0.lock().unwrap().clone(),
            self.err.0.lock().unwrap().clone(),
        )
    }

    /// What follows `mark` on the lines of standard output that have it, once there are `n`.
    pub fn marked(&self, mark: &str, n: usize) -> Vec<String> {
        let marked = || -> Vec<String> {
            let out = self.texts().0;
            let after = |line: &str| Some(line.split_once(mark)?.1.trim().to_owned());
            out.split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
                .filter_map(after)
                .collect()
        };
        let started = std::time::Instant::now();
        loop {
            let all = marked();
            if all.len() >= n {
                return all;
            }
            let late = started.elapsed().as_secs() >= 60;
            assert!(!late, "no {n} lines with '{mark}': {:?}", self.texts());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Its exit code, standard output and standard error, once it has ended.
    ///
    /// # Panics
    /// If it has not after a minute.
    pub fn end(self) -> (i32, String, String) {
        self.end_within(std::time::Duration::from_secs(60))
    }

    /// The same, of a run that starts programs which take long to load.
    ///
    /// # Panics
    /// If it has not ended within `limit`.
    pub fn end_within(mut self, limit: std::time::Duration) -> (i32, String, String) {
        drop(self.input.take());
        let started = std::time::Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() >= limit {
                let _ = self.child.kill();
                panic!("the run does not end: {:?}", self.texts());
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let Self { out, err, .. } = self;
        for thread in [out.1, err.1] {
            thread.join().unwrap();
        }
        let code = status.code().unwrap_or_else(|| {
            128 + std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0)
        });
        let text = |kept: Arc<Mutex<String>>| kept.lock().unwrap().clone();
        (code, text(out.0), text(err.0))
    }
}

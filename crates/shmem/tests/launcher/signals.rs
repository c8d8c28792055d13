//! Signals to the launcher and its own sudden end: what they do to the PEs. The launcher is a process of its
//! own here.
#![allow(unsafe_code)] // `pre_exec`, to start a launcher with signals heeded or blocked

use crate::WATCHDOG;
use crosswarp_shmem::Launch;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A launcher as a process of its own, killed if it has not ended before the watchdog.
struct Launcher {
    child: Child,
    output: std::io::Lines<BufReader<ChildStdout>>,
    ended: Sender<()>,
}

/// What else a launcher is started with.
struct Around<'a> {
    /// The shell script that starts it, as "$@".
    script: &'a str,
    n_pes: usize,
    grace: Option<&'a str>,
    /// Whether all signals are blocked in it.
    blocked: bool,
    /// Comes before it starts, where all are blocked.
    pending: Option<i32>,
}

impl Default for Around<'_> {
    fn default() -> Self {
        Self {
            script: "exec \"$@\"",
            n_pes: 2,
            grace: None,
            blocked: false,
            pending: None,
        }
    }
}

impl Launcher {
    /// With PEs that run the shell script `pes`, their output labelled.
    fn start(pes: &str) -> Self {
        Self::start_in(Around::default(), pes)
    }

    fn start_in(around: Around<'_>, pes: &str) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", around.script, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "signals::a_launcher", "--nocapture"])
            .env("PES", pes)
            .env("N_PES", around.n_pes.to_string())
            .env("GRACE", around.grace.unwrap_or_default())
            .stdout(Stdio::piped());
        // SAFETY: plain system calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // A shell starts what runs in its background with SIGINT and SIGQUIT ignored, `nohup` with
                // SIGHUP; that passes through this test to the launcher.
                for signal in 1..32 {
                    libc::signal(signal, libc::SIG_DFL);
                }
                if around.blocked {
                    let mut all = std::mem::MaybeUninit::uninit();
                    libc::sigfillset(all.as_mut_ptr());
                    libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
                }
                if let Some(signal) = around.pending {
                    libc::kill(libc::getpid(), signal);
                }
                Ok(())
            });
        }
        let mut child = command.spawn().unwrap();
        let (ended, waits) = channel();
        let pid = Pid::from_child(&child);
        std::thread::spawn(move || {
            if waits.recv_timeout(WATCHDOG) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("the launcher does not end");
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            output,
            ended,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next labelled line, without its end.
    fn line(&mut self) -> Option<String> {
        self.output
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.starts_with('['))
    }

    /// What stands behind `word` in the next line of each PE that has it, in the order of the PEs.
    fn each(&mut self, word: &str) -> Vec<String> {
        let mut said: [Option<String>; 2] = [None, None];
        while said.iter().any(Option::is_none) {
            let line = self
                .line()
                .unwrap_or_else(|| panic!("no '{word}' any more"));
            let (pe, text) = line[1..].split_once("] ").unwrap();
            // The test's own first line may stand before it.
            if let Some((_, rest)) = text.split_once(word) {
                said[pe.parse::<usize>().unwrap()] = Some(rest.trim().to_owned());
            }
        }
        said.map(Option::unwrap).into()
    }

    /// The remaining lines, and how it ended.
    fn end(mut self) -> (Vec<String>, ExitStatus) {
        let lines = std::iter::from_fn(|| self.line()).collect();
        let status = self.child.wait().unwrap();
        let _ = self.ended.send(());
        (lines, status)
    }
}

#[test]
#[ignore = "the launcher of the tests below, which start it"]
fn a_launcher() {
    let script = std::env::var("PES").unwrap();
    let n_pes = std::env::var("N_PES").unwrap().parse().unwrap();
    let mut launch = Launch::new(n_pes, "sh").args(["-c", &script]).label(true);
    if let Ok(seconds) = std::env::var("GRACE").unwrap().parse() {
        launch = launch.grace(Duration::from_secs_f64(seconds));
    }
    std::process::exit(launch.heap_bytes(1 << 20).run().unwrap().code());
}

#[test]
fn a_slow_reader_gets_all_output() {
    // More than a pipe holds, but not more than all the pipes on the way.
    let launcher = Launcher::start("seq 10000");
    std::thread::sleep(Duration::from_millis(1500));
    let (lines, status) = launcher.end();
    for pe in 0..2 {
        let mine = lines
            .iter()
            .filter(|line| line.starts_with(&format!("[{pe}]")));
        let expected: Vec<_> = (1..=10_000).map(|i| format!("[{pe}] {i}")).collect();
        assert!(mine.eq(&expected), "{} lines", lines.len());
    }
    assert!(status.success());
}

#[test]
fn signals_ignored_when_the_run_starts_stay_ignored() {
    let around = Around {
        script: "trap '' HUP; exec \"$@\"",
        ..Around::default()
    };
    let pes = "kill -HUP $$; kill -HUP $PPID; echo survived";
    let (lines, status) = Launcher::start_in(around, pes).end();
    assert_eq!(lines.len(), 2);
    assert!(status.success());
}

/// Every signal blocked or SIGCHLD ignored: the launcher hears of the ends of PEs, and PEs have neither.
#[test]
fn a_launcher_started_with_signals_blocked_or_ignored_hears_them() {
    let pes = "grep -E 'Sig(Blk|Ign)' /proc/self/status; sleep 0.5; exit 4";
    for (script, blocked) in [("exec \"$@\"", true), ("trap '' CHLD; exec \"$@\"", false)] {
        let around = Around {
            script,
            blocked,
            ..Around::default()
        };
        let (lines, status) = Launcher::start_in(around, pes).end();
        assert_eq!(status.code(), Some(4), "{lines:?}");
        let masks = lines.iter().map(|line| line.split_once(":\t").unwrap().1);
        let chld_and_more = 1 << (libc::SIGCHLD - 1);
        for mask in masks {
            let mask = u64::from_str_radix(mask, 16).unwrap();
            assert_eq!(mask & chld_and_more, 0, "{lines:?}");
        }
        let unblocked = |line: &&String| line.ends_with("SigBlk:\t0000000000000000");
        assert_eq!(lines.iter().filter(unblocked).count(), 2, "{lines:?}");
    }
}

#[test]
fn a_signal_that_comes_before_the_first_pe_starts_none() {
    let around = Around {
        blocked: true,
        pending: Some(libc::SIGTERM),
        ..Around::default()
    };
    let (lines, status) = Launcher::start_in(around, "echo started").end();
    assert_eq!((lines, status.code()), (vec![], Some(143)));
}

/// Wherever in the start it comes: PE 0 sends it as soon as it runs.
#[test]
fn a_signal_during_the_start_of_many_ends_all() {
    let around = Around {
        n_pes: 100,
        ..Around::default()
    };
    let pes = "[ $CROSSWARP_PE = 0 ] && kill -TERM $PPID; exec sleep 600";
    let (_, status) = Launcher::start_in(around, pes).end();
    assert_eq!(status.code(), Some(143));
}

/// A loop that shell scripts below end with: a trap runs between two naps.
const NAP: &str = "while :; do sleep 0.05; done";

#[test]
fn a_second_interrupt_kills() {
    let pes = format!("trap 'echo first' INT; trap 'echo heard' USR1; echo ready; {NAP}");
    let mut launcher = Launcher::start(&pes);
    launcher.each("ready");
    launcher.signal(Signal::INT);
    launcher.each("first");
    // Something else in between does not start the count again.
    launcher.signal(Signal::USR1);
    launcher.each("heard");
    launcher.signal(Signal::INT);
    assert_eq!(launcher.end().1.code(), Some(137));
}

fn is_stopped(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.contains("State:\tT")
}

/// Waits for what must come.
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < WATCHDOG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_first_signal_continues_stopped_pes() {
    let pes = format!("trap 'echo heard; exit 5' TERM; echo ready $$; kill -STOP $$; {NAP}");
    let mut launcher = Launcher::start(&pes);
    let pes = launcher.each("ready");
    until("not stopped", || pes.iter().all(|pid| is_stopped(pid)));
    launcher.signal(Signal::TERM);
    launcher.each("heard");
    assert_eq!(launcher.end().1.code(), Some(5));
}

/// PE 0 ends at the signal at once, PE 1 first writes something: longer than a failure would let it.
#[test]
fn the_grace_is_for_every_pe() {
    let pes = format!(
        "[ $CROSSWARP_PE = 1 ] && trap 'sleep 1; echo written; exit 0' TERM; echo ready; {NAP}"
    );
    let mut launcher = Launcher::start(&pes);
    launcher.each("ready");
    launcher.signal(Signal::TERM);
    let (lines, status) = launcher.end();
    assert_eq!(
        (lines, status.code()),
        (vec!["[1] written".into()], Some(143))
    );
}

#[test]
fn the_end_of_the_grace_kills() {
    let pes = format!("trap 'echo heard' TERM; echo ready; {NAP}");
    let around = Around {
        grace: Some("0.2"),
        ..Around::default()
    };
    let mut launcher = Launcher::start_in(around, &pes);
    launcher.each("ready");
    launcher.signal(Signal::TERM);
    assert_eq!(launcher.end().1.code(), Some(137));
}

/// A process that has ended has no command line, be it still in the table or not.
fn has_ended(pid: &String) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty())
}

/// Shell commands that run PEs of this role behind a shell, which outlives every signal but SIGKILL.
fn behind_a_shell(role: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let test = test.to_str().unwrap();
    format!("trap : INT TERM; ROLE='{role}' '{test}' --ignored --exact pe --nocapture; {NAP}")
}

#[test]
fn signals_reach_pes_behind_a_shell() {
    let mut launcher = Launcher::start(&behind_a_shell("never give in"));
    let pes = launcher.each("here");
    launcher.signal(Signal::TERM);
    launcher.each("asked");
    launcher.signal(Signal::TERM);
    assert_eq!(launcher.end().1.code(), Some(137));
    until("they live on", || pes.iter().all(has_ended));
}

/// What the system does with a number once its process has ended: another gets it.
#[test]
fn a_process_that_has_got_the_number_of_an_ended_pe_is_not_signalled() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &go,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    // PE 0 joins and is killed; the shell that has started it goes on.
    let test = std::env::current_exe().unwrap();
    let pes = format!(
        "trap : TERM; ROLE='never wait' '{}' --ignored --exact pe --nocapture & pe=$!; \
         [ $CROSSWARP_PE = 1 ] || {{ read line < '{}'; kill -9 $pe; wait $pe; echo gone $pe; }}; {NAP}",
        test.display(),
        go.display()
    );
    let mut launcher = Launcher::start(&pes);
    let number = launcher.each("here")[0].parse::<u32>().unwrap();
    std::fs::write(&go, "go\n").unwrap();
    let gone = format!("[0] gone {number}");
    while launcher.line().expect("it ends") != gone {}
    match stranger(number) {
        None => println!("skipped: only root can choose the number of a process"),
        Some(mut stranger) => {
            launcher.signal(Signal::TERM);
            launcher.signal(Signal::INT);
            assert_eq!(launcher.end().1.code(), Some(137));
            assert_eq!(stranger.try_wait().unwrap(), None);
            stranger.kill().unwrap();
            stranger.wait().unwrap();
        }
    }
}

/// A process with this number, where that can be had.
fn stranger(number: u32) -> Option<Child> {
    for _ in 0..10_000 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).ok()?;
        let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        if stranger.id() == number {
            return Some(stranger);
        }
        // Another has started in between.
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
    None
}

/// PEs that never wait for anyone, and PEs that are no programs of ours.
#[test]
fn killing_the_launcher_leaves_no_pe_behind() {
    let plain = format!("echo here $$; {NAP}");
    for pes in [behind_a_shell("never wait"), plain] {
        let mut launcher = Launcher::start(&pes);
        let pes = launcher.each("here");
        launcher.signal(Signal::KILL);
        until("they live on", || pes.iter().all(has_ended));
        assert_eq!(launcher.end().1.signal(), Some(9));
    }
}

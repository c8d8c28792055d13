//! The launcher: exit codes, deaths, time limits, and nothing left behind.

#![allow(unsafe_code)] // `pre_exec`, to start a launcher with signals blocked

use crosswarp_shmem::{InitError, Launch, LaunchError, Pe, Wait};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// What has not ended by then hangs.
const WATCHDOG: Duration = Duration::from_secs(60);
/// Longer than that.
const EVER: Duration = Duration::from_secs(600);

/// Runs `role` (see `pe`) on every PE of a process world, through a shell when `wrapped`.
fn launch(n: usize, role: &str, wrapped: bool) -> Launch {
    let test = std::env::current_exe().unwrap();
    // Without `exec` the shell stays in between and the PE is its child.
    let exec = if wrapped { "" } else { "exec " };
    let script =
        format!("ROLE={role} {exec}\"$0\" --ignored --exact pe --nocapture >/dev/null; exit $?");
    Launch::new(n, "sh")
        .args(["-c".as_ref(), script.as_ref(), test.as_os_str()])
        .heap_bytes(1 << 20)
        .timeout(WATCHDOG)
}

#[test]
#[ignore = "one PE of the process worlds below, which start it"]
fn pe() {
    let pe = crosswarp_shmem::init().unwrap();
    match std::env::var("ROLE").unwrap().as_str() {
        "leave" => pe.barrier().unwrap(),
        "kill 1 in barrier 3" => {
            pe.barrier().unwrap();
            pe.barrier().unwrap();
            if pe.my_pe() == 1 {
                // Let the others reach their third barrier first.
                std::thread::sleep(Duration::from_millis(100));
                kill(std::process::id());
            }
            let _ = pe.barrier();
            // Ended by the launcher, not by returning.
            std::thread::sleep(EVER);
        }
        "stubborn" => {
            // SIGTERM does not impress these; SIGKILL must.
            let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            signal_hook::flag::register(signal_hook::consts::SIGTERM, ignored).unwrap();
            pe.barrier().unwrap();
            if pe.my_pe() == 0 {
                kill(std::process::id());
            }
            std::thread::sleep(EVER);
        }
        "fail after leaving" => fail_after_leaving(pe),
        "exit without leaving" => {
            if pe.my_pe() == 0 {
                std::process::exit(0);
            }
            let error = pe.barrier().unwrap_err().to_string();
            assert!(error.contains("PE 0 has left the world"), "{error}");
        }
        "global exit 0" => global_exit(&pe, 0),
        "global exit 41" => global_exit(&pe, 41),
        "never wait" => {
            println!("here {}", std::process::id());
            std::thread::sleep(EVER);
        }
        "never give in" => {
            let asked = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
                signal_hook::flag::register(signal, asked.clone()).unwrap();
            }
            println!("here {}", std::process::id());
            while !asked.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            println!("asked");
            std::thread::sleep(EVER);
        }
        "panic slowly" => panic_slowly(pe),
        "wait" => {
            let flag = pe.alloc_zeroed::<u64>(1).unwrap();
            let _ = pe.signal_wait_until(&flag, crosswarp_shmem::Cmp::Eq, 5);
        }
        role => panic!("no role '{role}'"),
    }
}

/// One PE ends all, of which one is in a barrier and one computes.
fn global_exit(pe: &Pe, status: i32) {
    pe.barrier().unwrap();
    match pe.my_pe() {
        1 => {
            std::thread::sleep(Duration::from_millis(50));
            pe.global_exit(status);
        }
        2 => std::thread::sleep(EVER),
        _ => pe.barrier().unwrap(),
    }
}

/// PE 0 fails at once; the others need longer and must be let finish.
fn fail_after_leaving(pe: Pe) {
    pe.barrier().unwrap();
    let me = pe.my_pe();
    drop(pe);
    if me == 0 {
        std::process::exit(3);
    }
    std::thread::sleep(Duration::from_millis(400));
    let file = std::env::var("MARK").unwrap();
    std::fs::write(format!("{file}.{me}"), "finished").unwrap();
}

#[test]
#[ignore = "runs as a second program of a PE"]
fn second_program() {
    let error = crosswarp_shmem::init().unwrap_err();
    assert!(matches!(error, InitError::Taken { .. }), "{error}");
}

#[test]
fn a_pe_joins_once() {
    let script = "ROLE=leave \"$0\" --ignored --exact pe > /dev/null &&
        exec \"$0\" --ignored --exact second_program > /dev/null";
    let outcome = Launch::new(2, "sh")
        .args([
            "-c".as_ref(),
            script.as_ref(),
            std::env::current_exe().unwrap().as_os_str(),
        ])
        .heap_bytes(1 << 20)
        .run()
        .unwrap();
    assert_eq!(outcome.code(), 0);
}

/// PE 2 panics and takes its time to end; the others fail because of it, at once.
fn panic_slowly(pe: Pe) {
    struct Slow;
    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    // Dropped after `pe`: by then the others know.
    let _slow = (pe.my_pe() == 2).then_some(Slow);
    let pe = pe;
    assert!(pe.my_pe() != 2, "the cause");
    pe.barrier().unwrap();
}

fn kill(pid: u32) -> ! {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    unreachable!("SIGKILL can not be survived");
}

#[test]
fn all_well_is_exit_code_0() {
    let outcome = launch(3, "leave", false).run().unwrap();
    assert_eq!((outcome.code(), outcome.failure), (0, None));
}

#[test]
fn a_global_exit_ends_all_and_is_no_failure() {
    for (status, wrapped) in [(0, false), (41, false), (0, true)] {
        let role = format!("'global exit {status}'");
        let outcome = launch(4, &role, wrapped).run().unwrap();
        assert_eq!(outcome.global_exit, Some(status));
        assert_eq!((outcome.code(), outcome.failure), (status, None));
    }
}

#[test]
fn a_killed_pe_ends_the_others() {
    for wrapped in [false, true] {
        let outcome = launch(4, "'kill 1 in barrier 3'", wrapped).run().unwrap();
        let failure = outcome.failure.as_ref().unwrap();
        assert_eq!((failure.pe, outcome.code()), (1, 137));
        let line = failure.to_string();
        if !wrapped {
            assert!(
                line.contains("PE 1 was killed by signal 9 (SIGKILL)"),
                "{line}"
            );
        }
        assert!(
            matches!(failure.last_wait, None | Some(Wait::Collective { .. })),
            "{line}"
        );
    }
}

#[test]
fn a_pe_that_ignores_sigterm_is_killed() {
    let outcome = launch(3, "stubborn", false).run().unwrap();
    assert_eq!(outcome.code(), 137);
}

#[test]
fn a_failure_after_leaving_ends_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let outcome = Launch::new(3, "sh")
        .args([
            "-c".as_ref(),
            "export ROLE='fail after leaving' MARK=\"$1\"; exec \"$0\" --ignored --exact pe --nocapture > /dev/null"
                .as_ref(),
            std::env::current_exe().unwrap().as_os_str(),
            mark.as_os_str(),
        ])
        .heap_bytes(1 << 20)
        .run()
        .unwrap();
    assert_eq!(outcome.code(), 3);
    assert_eq!(outcome.failure.unwrap().pe, 0);
    for pe in 1..3 {
        let file = dir.path().join(format!("mark.{pe}"));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "finished");
    }
}

#[test]
fn a_pe_that_exits_without_leaving_is_not_waited_for() {
    let outcome = launch(3, "'exit without leaving'", false).run().unwrap();
    assert_eq!(outcome.code(), 0);
}

#[test]
fn a_time_limit_ends_the_run_and_says_who_waits_for_what() {
    // So long a limit that both get as far as their wait.
    let mut limit = Duration::from_millis(250);
    loop {
        limit *= 2;
        let outcome = launch(2, "wait", false).timeout(limit).run().unwrap();
        assert_eq!(outcome.code(), 124);
        let waits = outcome.timed_out.unwrap();
        let both = [0, 1].map(|pe| match waits.get(pe) {
            Some((named, Some(Wait::Value { expected: 5, .. }))) => *named == pe,
            _ => false,
        });
        if both == [true, true] {
            return;
        }
        assert!(limit < WATCHDOG, "{waits:?}");
    }
}

#[test]
fn the_failure_reported_is_the_cause_of_the_others() {
    let outcome = launch(4, "'panic slowly'", false).run().unwrap();
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!((failure.pe, outcome.code()), (2, 101), "{failure}");
}

#[test]
fn a_time_limit_beyond_the_clock_is_none() {
    let launch = Launch::new(1, "true").timeout(Duration::MAX);
    assert_eq!(launch.heap_bytes(1 << 20).run().unwrap().code(), 0);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Launch::new(2, "no-such-program-anywhere")
        .run()
        .unwrap_err();
    assert!(
        matches!(&error, LaunchError::Spawn { program, .. } if program.contains("no-such")),
        "{error}"
    );
    assert!(matches!(
        Launch::new(0, "true").run(),
        Err(LaunchError::NumberOfPes { n_pes: 0 })
    ));
}

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
            .args(["--ignored", "--exact", "a_launcher", "--nocapture"])
            .env("PES", pes)
            .env("N_PES", around.n_pes.to_string())
            .env("GRACE", around.grace.unwrap_or_default())
            .stdout(Stdio::piped());
        if around.blocked {
            // SAFETY: plain system calls between fork and exec.
            unsafe {
                command.pre_exec(move || {
                    let mut all = std::mem::MaybeUninit::uninit();
                    libc::sigfillset(all.as_mut_ptr());
                    libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
                    if let Some(signal) = around.pending {
                        libc::kill(libc::getpid(), signal);
                    }
                    Ok(())
                });
            }
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

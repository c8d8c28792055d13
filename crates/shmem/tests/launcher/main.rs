//! The launcher: exit codes, deaths, time limits, and nothing left behind.

mod signals;

use crosswarp_shmem::{InitError, Launch, LaunchError, Pe, Wait};
use std::time::Duration;

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
        "lose 1" => {
            pe.barrier().unwrap();
            if pe.my_pe() == 1 {
                kill(std::process::id());
            }
            let error = pe.barrier().unwrap_err().to_string();
            assert!(error.contains("PE 1 has left the world"), "{error}");
            std::process::exit(9);
        }
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

/// The shell that has started PE 1 outlives it and says nothing.
#[test]
fn a_pe_killed_behind_a_shell_that_lives_on_is_not_waited_for() {
    let script = "ROLE='lose 1' \"$0\" --ignored --exact pe --nocapture > /dev/null; code=$?
        [ $CROSSWARP_PE = 0 ] && exit $code; while :; do sleep 0.05; done";
    let outcome = Launch::new(2, "sh")
        .args([
            "-c".as_ref(),
            script.as_ref(),
            std::env::current_exe().unwrap().as_os_str(),
        ])
        .heap_bytes(1 << 20)
        .timeout(WATCHDOG)
        .run()
        .unwrap();
    assert_eq!(outcome.code(), 9, "{outcome:?}");
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

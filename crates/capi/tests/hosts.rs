//! The C programs over hosts that share nothing, all played by this one.

mod support;

use crosswarp_shmem::{HostList, Launch, Outcome};
use std::path::Path;
use std::time::Duration;
use support::{Language, compile};

/// What has not ended by then hangs.
const WATCHDOG: Duration = Duration::from_secs(600);

#[test]
#[ignore = "the launcher of a host of the worlds below, which start it"]
fn host_of_a_world() {
    crosswarp_shmem::run_for_launcher().unwrap();
}

/// Runs `program` on `n` PEs on hosts as `CROSSWARP_FAKE_HOSTS` has them.
fn launch(hosts: &'static str, n: usize, program: &Path, args: &[&str]) -> Outcome {
    let test = std::env::current_exe().unwrap();
    let role = ["--ignored", "--exact", "host_of_a_world", "--nocapture"];
    let command = [test.into()].into_iter().chain(role.map(Into::into));
    let hosts = HostList::fake_as(Some(hosts), n, command.collect()).unwrap();
    Launch::new(n, program)
        .args(args)
        .heap_bytes(32 << 20)
        .timeout(WATCHDOG)
        .hosts(hosts.expect("several hosts"))
        .run()
        .unwrap()
}

macro_rules! over_hosts {
    ($($name:ident),* $(,)?) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            let program = compile(concat!(stringify!($name), ".c"), Language::C11, "hosts", &[]);
            for (hosts, n) in [("2", 2), ("2", 4), ("1+3", 4)] {
                let outcome = launch(hosts, n, &program, &[]);
                let ended = (outcome.code(), &outcome.lost);
                assert_eq!(ended, (0, &None), "{n} PEs on {hosts}: {outcome:?}");
            }
        })*
    };
}
over_hosts!(
    rma, amo, nbi, signal, wait, reduce, collect, teams, contexts, locks, memory, old, setup,
    statics, threads, generics, ring, heat, isort, matmul, samplesort
);

#[test]
#[ignore = "run by the test below, with variables set"]
fn programs_over_ucx() {
    for name in PROGRAMS {
        let program = compile(&format!("{name}.c"), Language::C11, "ucx", &[]);
        for (hosts, n) in [("ucx:2", 2), ("ucx:1+3", 4)] {
            let outcome = launch(hosts, n, &program, &[]);
            let ended = (outcome.code(), &outcome.lost);
            assert_eq!(ended, (0, &None), "{name}, {n} PEs on {hosts}: {outcome:?}");
        }
    }
}

/// Where UCX talks over TCP, as between hosts.
#[test]
fn all_of_them_over_ucx() {
    if let Err(why) = crosswarp_shmem::internal::ucx() {
        let required = std::env::var("CROSSWARP_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "{why}");
        return println!("skipped: programs over UCX: {why}");
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "programs_over_ucx", "--nocapture"])
        .env("UCX_TLS", "tcp")
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn hosts_with_different_programs_are_refused() {
    let one = compile("setup.c", Language::C11, "one", &["-O1"]);
    let other = compile("setup.c", Language::C11, "other", &["-O0"]);
    let script = r#"test $CROSSWARP_PE = 0 && exec "$0"; exec "$1""#;
    let both = ["-c", script, one.to_str().unwrap(), other.to_str().unwrap()];
    let outcome = launch("2", 2, Path::new("sh"), &both);
    let failure = outcome.failure.expect("a PE that refuses");
    assert_eq!(failure.status.code(), Some(1), "{failure}");
    let same = ["-c", script, one.to_str().unwrap(), one.to_str().unwrap()];
    assert_eq!(launch("2", 2, Path::new("sh"), &same).code(), 0);
}

//! The kinds of world for the suites that run on all.

use std::time::Duration;

use crosswarp_shmem::{HostList, Launch, Pe, ThreadWorld};

/// A hang is a failure, not a hanging test; what works on a busy machine may take a while.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs `body` as every PE of a world of `n` threads on one host.
pub fn threads(n: usize, heap_bytes: usize, body: fn(&Pe)) {
    threads_on("1", n, heap_bytes, body);
}

/// The same on hosts that share nothing, as `CROSSWARP_FAKE_HOSTS` has them.
pub fn threads_on(hosts: &'static str, n: usize, heap_bytes: usize, body: fn(&Pe)) {
    ThreadWorld::new(n)
        .heap_bytes(heap_bytes)
        .wait_timeout(LIMIT)
        .fake_hosts(hosts)
        .spmd(body)
        .unwrap();
}

/// Runs the ignored test `test` of this executable where UCX talks over TCP, as between hosts, though all are this one.
/// Without UCX that is skipped, by name, or a failure with `CROSSWARP_REQUIRE_TOOLS=1`.
pub fn over_ucx(test: &str) {
    if let Err(why) = crosswarp_shmem::internal::ucx() {
        let required = std::env::var("CROSSWARP_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "{why}");
        return println!("skipped: {test}: {why}");
    }
    let itself = std::env::current_exe().unwrap();
    let status = std::process::Command::new(itself)
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env("UCX_TLS", "tcp")
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

/// Runs the ignored test `pe_of_a_process_world` of this executable as every PE of a world of `n`
/// processes. Their reports of success would drown ours; what fails speaks on standard error.
pub fn processes(n: usize, heap_bytes: usize) {
    processes_on("1", n, heap_bytes);
}

/// The same on hosts that share nothing; the ignored test `host_of_a_process_world` is the launcher of each.
pub fn processes_on(hosts: &'static str, n: usize, heap_bytes: usize) {
    let test = std::env::current_exe().unwrap();
    let quietly = "exec \"$0\" --ignored --exact pe_of_a_process_world --nocapture > /dev/null";
    let args = [
        "--ignored",
        "--exact",
        "host_of_a_process_world",
        "--nocapture",
    ];
    let command = [test.clone().into()]
        .into_iter()
        .chain(args.map(Into::into));
    let hosts = HostList::fake_as(Some(hosts), n, command.collect()).unwrap();
    let mut launch = Launch::new(n, "sh")
        .args(["-c".as_ref(), quietly.as_ref(), test.as_os_str()])
        .heap_bytes(heap_bytes)
        .timeout(LIMIT);
    if let Some(hosts) = hosts {
        launch = launch.hosts(hosts);
    }
    let outcome = launch.run().unwrap();
    assert!(outcome.lost.is_none(), "{}", outcome.lost.unwrap());
    assert!(outcome.timed_out.is_none(), "{:?}", outcome.timed_out);
    assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
}

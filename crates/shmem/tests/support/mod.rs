//! The two kinds of world for the suites that run on both.

use std::time::Duration;

use crosswarp_shmem::{Launch, Pe, ThreadWorld};

/// A hang is a failure, not a hanging test; what works on a busy machine may take a while.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs `body` as every PE of a world of `n` threads.
pub fn threads(n: usize, heap_bytes: usize, body: fn(&Pe)) {
    ThreadWorld::new(n)
        .heap_bytes(heap_bytes)
        .wait_timeout(LIMIT)
        .spmd(body)
        .unwrap();
}

/// Runs the ignored test `pe_of_a_process_world` of this executable as every PE of a world of `n`
/// processes. Their reports of success would drown ours; what fails speaks on standard error.
pub fn processes(n: usize, heap_bytes: usize) {
    let test = std::env::current_exe().unwrap();
    let quietly = "exec \"$0\" --ignored --exact pe_of_a_process_world --nocapture > /dev/null";
    let outcome = Launch::new(n, "sh")
        .args(["-c".as_ref(), quietly.as_ref(), test.as_os_str()])
        .heap_bytes(heap_bytes)
        .timeout(LIMIT)
        .run()
        .unwrap();
    assert!(outcome.timed_out.is_none(), "{:?}", outcome.timed_out);
    assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
}

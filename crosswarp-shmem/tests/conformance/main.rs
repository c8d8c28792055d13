//! One suite for both kinds of world: every case runs with 1, 2, 3, 4, 5 and 8 PEs, as threads and as
//! processes.

mod cases;
mod raw;
mod teams;
mod waiting;

use crosswarp_shmem::{Launch, Pe, ThreadWorld};
use std::time::Duration;

/// Enough for the largest case, small enough for seven.
const HEAP_BYTES: usize = 8 << 20;
/// A hang is a failure, not a hanging test.
const LIMIT: Duration = Duration::from_secs(60);

fn run_all(pe: &Pe) {
    let suites = [cases::CASES, waiting::CASES, teams::CASES, raw::CASES];
    for (name, case) in suites.into_iter().flatten() {
        case(pe);
        let met = pe.barrier();
        met.unwrap_or_else(|error| panic!("'{name}' left the PEs out of step: {error}"));
    }
}

fn threads(n: usize) {
    ThreadWorld::new(n)
        .heap_bytes(HEAP_BYTES)
        .wait_timeout(LIMIT)
        .spmd(run_all)
        .unwrap();
}

fn processes(n: usize) {
    // The PEs are this test executable again. Their reports of success would drown ours; what fails
    // speaks on standard error.
    let test = std::env::current_exe().unwrap();
    let quietly = "exec \"$0\" --ignored --exact pe_of_a_process_world --nocapture > /dev/null";
    let outcome = Launch::new(n, "sh")
        .args(["-c".as_ref(), quietly.as_ref(), test.as_os_str()])
        .heap_bytes(HEAP_BYTES)
        .timeout(LIMIT)
        .run()
        .unwrap();
    assert!(outcome.timed_out.is_none(), "{:?}", outcome.timed_out);
    assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
}

#[test]
#[ignore = "one PE of the process worlds below, which start it"]
fn pe_of_a_process_world() {
    assert!(crosswarp_shmem::under_launcher());
    let mut pe = crosswarp_shmem::init().unwrap();
    assert_eq!(pe.kind(), crosswarp_shmem::WorldKind::Processes);
    raw::segments(&mut pe);
    run_all(&pe);
}

#[test]
fn segments_in_a_world_of_one() {
    raw::segments(&mut crosswarp_shmem::init().unwrap());
}

macro_rules! worlds {
    ($($n:literal $threads:ident $processes:ident),*) => {$(
        #[test]
        fn $threads() {
            threads($n);
        }
        #[test]
        fn $processes() {
            processes($n);
        }
    )*};
}
worlds!(
    1 threads_1 processes_1, 2 threads_2 processes_2, 3 threads_3 processes_3,
    4 threads_4 processes_4, 5 threads_5 processes_5, 8 threads_8 processes_8
);

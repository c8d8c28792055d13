//! Random programs against a sequential model: one-sided access, atomics, signals, locks, teams and
//! collectives in random order, on random sizes, in both kinds of world.
//!
//! Every PE makes the same program from the seed and runs all of it on the model, its own part also on the
//! world. Programs are free of races by construction, so memory and results must agree exactly. A failure
//! names seed and step; `SEED=…` with the same test runs that one alone.

mod model;
mod program;

use crosswarp_shmem::{Launch, Pe, ThreadWorld};
use std::time::Duration;

const HEAP_BYTES: usize = 4 << 20;
/// A hang is a failure, not a hanging test.
const LIMIT: Duration = Duration::from_secs(60);
const SEEDS: u64 = 12;
const STEPS: usize = 60;

fn run_all(pe: &Pe) {
    let one = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds = one.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        program::run(pe, seed, STEPS);
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
    // The PEs are this test executable again.
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
    run_all(&crosswarp_shmem::init().unwrap());
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
    1 threads_1 processes_1, 2 threads_2 processes_2, 3 threads_3 processes_3, 5 threads_5 processes_5,
    8 threads_8 processes_8
);

//! Random programs against a sequential model: one-sided access, atomics, signals, locks, teams and
//! collectives in random order, on random sizes, in both kinds of world.
//!
//! Every PE makes the same program from the seed and runs all of it on the model, its own part also on the
//! world. Programs are free of races by construction, so memory and results must agree exactly. A failure
//! names seed and step; `SEED=…` with the same test runs that one alone.

mod model;
mod program;
#[path = "../support/mod.rs"]
mod support;

use crosswarp_shmem::Pe;

const HEAP_BYTES: usize = 4 << 20;
const SEEDS: u64 = 12;
const STEPS: usize = 60;

fn run_all(pe: &Pe) {
    let one = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds = one.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        program::run(pe, seed, STEPS);
    }
}

#[test]
#[ignore = "one host of the process worlds below, which start it"]
fn host_of_a_process_world() {
    crosswarp_shmem::run_for_launcher().unwrap();
}

#[test]
#[ignore = "one PE of the process worlds below, which start it"]
fn pe_of_a_process_world() {
    run_all(&crosswarp_shmem::init().unwrap());
}

#[test]
#[ignore = "run by the test below, with variables set"]
fn worlds_over_ucx() {
    support::threads_on("ucx:1+3", 4, HEAP_BYTES, run_all);
    support::processes_on("ucx:2", 4, HEAP_BYTES);
}

#[test]
fn on_several_hosts_over_ucx() {
    support::over_ucx("worlds_over_ucx");
}

macro_rules! worlds {
    ($($n:literal $threads:ident $processes:ident),*) => {$(
        #[test]
        fn $threads() {
            support::threads($n, HEAP_BYTES, run_all);
        }
        #[test]
        fn $processes() {
            support::processes($n, HEAP_BYTES);
        }
    )*};
}
worlds!(
    1 threads_1 processes_1, 2 threads_2 processes_2, 3 threads_3 processes_3, 5 threads_5 processes_5,
    8 threads_8 processes_8
);

#[test]
fn threads_on_several_hosts() {
    for hosts in ["2", "tcp:1+3"] {
        support::threads_on(hosts, 4, HEAP_BYTES, run_all);
    }
}

#[test]
fn processes_on_several_hosts() {
    support::processes_on("2", 4, HEAP_BYTES);
}

//! One suite for all kinds of world: every case runs with 1, 2, 3, 4, 5 and 8 PEs, as threads and as processes, and
//! on hosts that share nothing: threads over a network that delays, reorders and loses acknowledgements, over TCP or over
//! UCX, processes over TCP or over UCX.

mod answers;
mod cases;
mod mismatch;
mod puts;
mod raw;
#[path = "../support/mod.rs"]
mod support;
mod teams;
mod waiting;
mod words;

use crosswarp_shmem::Pe;
use std::collections::BTreeSet;

/// Enough for the largest case, small enough for eight PEs.
const HEAP_BYTES: usize = 8 << 20;

fn run_all(pe: &Pe) {
    let suites = [
        cases::CASES,
        puts::CASES,
        answers::CASES,
        waiting::CASES,
        words::CASES,
        teams::CASES,
        raw::CASES,
        mismatch::CASES,
    ];
    for (name, case) in suites.into_iter().flatten() {
        case(pe);
        let met = pe.barrier();
        met.unwrap_or_else(|error| panic!("'{name}' left the PEs out of step: {error}"));
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
    assert!(crosswarp_shmem::under_launcher());
    let mut pe = crosswarp_shmem::init().unwrap();
    assert_eq!(pe.kind(), crosswarp_shmem::WorldKind::Processes);
    raw::segments(&mut pe);
    run_all(&pe);
    only_its_hosts_heaps_are_mapped(&pe);
}

/// Whatever a process did to PEs of other hosts, it can't have done by a load or store: it has mapped no heap but those of
/// its own host's PEs.
fn only_its_hosts_heaps_are_mapped(pe: &Pe) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    // Fields: addresses, rights, offset, device, inode, file.
    let files = maps.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (*fields.get(5)? == "/memfd:crosswarp-heap").then(|| fields[4].to_owned())
    });
    let files: BTreeSet<String> = files.collect();
    let word = pe.alloc_zeroed::<u64>(1).unwrap();
    let reached = (0..pe.n_pes()).filter(|&other| !pe.ptr(&word, other).is_null());
    let here = pe.shared_team().n_pes();
    assert_eq!((files.len(), reached.count()), (here, here));
}

#[test]
fn segments_in_a_world_of_one() {
    raw::segments(&mut crosswarp_shmem::init().unwrap());
}

#[test]
#[ignore = "run by the test below, with variables set"]
fn worlds_over_ucx() {
    for (hosts, n) in [("ucx:2", 2), ("ucx:1+3", 4), ("ucx:3", 5)] {
        support::threads_on(hosts, n, HEAP_BYTES, run_all);
        support::processes_on(hosts, n, HEAP_BYTES);
    }
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
    1 threads_1 processes_1, 2 threads_2 processes_2, 3 threads_3 processes_3,
    4 threads_4 processes_4, 5 threads_5 processes_5, 8 threads_8 processes_8
);

macro_rules! several_hosts {
    ($($hosts:literal $n:literal $threads:ident $tcp:literal $processes:ident),*) => {$(
        #[test]
        fn $threads() {
            support::threads_on($hosts, $n, HEAP_BYTES, run_all);
            support::threads_on($tcp, $n, HEAP_BYTES, run_all);
        }
        #[test]
        fn $processes() {
            support::processes_on($hosts, $n, HEAP_BYTES);
        }
    )*};
}
several_hosts!(
    "2" 2 threads_on_2_hosts "tcp:2" processes_on_2_hosts,
    "1+3" 4 threads_on_1_and_3 "tcp:1+3" processes_on_1_and_3,
    "3" 5 threads_on_3_hosts "tcp:3" processes_on_3_hosts
);

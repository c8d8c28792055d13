//! What a solve by multigrid takes of memory. Alone in its program: it looks at what the process has held at most.
#![cfg(target_os = "linux")]

mod cycles;

use crosswarp_shmem::spmd;
use crosswarp_solve::{Problem2d, solve_2d};
use cycles::{by_cell, options};

/// What the process has held at most so far, in bytes.
fn most_held() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    1024 * number.parse::<u64>().unwrap()
}

#[test]
fn a_plane_takes_at_most_40_bytes_a_cell() {
    let n = 2049;
    let problem = |n| Problem2d {
        source: Some(by_cell(|_, _| -1.0)),
        ..Problem2d::<f64>::laplace(n, n)
    };
    let run = |n| {
        let problem = problem(n);
        let ends = spmd(1, |pe| {
            let solution = solve_2d(pe, &problem, &options(1e-8), |_| {}).unwrap();
            (solution.converged, solution.row(n / 2)[n / 2])
        });
        ends.unwrap()[0]
    };
    // What the world and the program itself take.
    run(65);
    let before = most_held();
    let (converged, middle) = run(n);
    assert!(converged && middle > 0.0);
    let held = (most_held() - before) as f64 / (n * n) as f64;
    // The field and the right side alone are 16.
    assert!((16.0..=40.0).contains(&held), "{held} bytes a cell");
}

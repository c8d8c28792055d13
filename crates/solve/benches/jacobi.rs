//! Speed of the solver, beside a naive sweep and the machine's copy bandwidth, all in one run.
//!
//! `cargo bench -p crosswarp-solve --bench jacobi [-- PES]` prints a table; PES defaults to 2.
#![allow(unsafe_code)] // The naive loop is compiled for AVX2 too, to be fair to it.

use std::sync::Arc;
use std::time::Instant;

use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Norm, Options, Problem1d, Problem2d, Real, RowSource, solve_1d, solve_2d,
};

const SWEEPS: usize = 128;

/// G cell updates per second of the best of three runs.
fn solver<F: Real>(problem: &Problem2d<F>, pes: usize, depth: Option<usize>) -> (f64, usize) {
    let options = Options {
        sweeps_per_pass: depth,
        ..Options::new(0.0, SWEEPS)
    };
    let mut best = (0.0, 0);
    for _ in 0..3 {
        let ends = spmd(pes, |pe| {
            let solution = solve_2d(pe, problem, &options, |_| {}).expect("solves");
            let rate = solution.cell_updates as f64 / solution.seconds / 1e9;
            (rate, solution.sweeps_per_pass)
        })
        .expect("a world");
        if ends[0].0 > best.0 {
            best = ends[0];
        }
    }
    best
}

/// One sweep over `rows` rows of `n` cells, its norm a plain sum: the obvious loop.
#[inline(always)]
fn obvious_sweep(a: &[f32], b: &mut [f32], n: usize, rows: usize) -> f32 {
    let mut norm = 0.0f32;
    for y in 1..rows - 1 {
        let (up, rest) = a[(y - 1) * n..(y + 2) * n].split_at(n);
        let (row, down) = rest.split_at(n);
        let out = &mut b[y * n..(y + 1) * n];
        let mut lanes = [0.0f32; 16];
        for x in (1..n - 16).step_by(16) {
            for (lane, sum) in lanes.iter_mut().enumerate() {
                let i = x + lane;
                let new = 0.25 * (row[i + 1] + row[i - 1] + down[i] + up[i]);
                out[i] = new;
                *sum += (new - row[i]) * (new - row[i]);
            }
        }
        norm += lanes.iter().sum::<f32>();
    }
    norm
}

/// The obvious loop as the compiler vectorises it for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn obvious_sweep_avx2(a: &[f32], b: &mut [f32], n: usize, rows: usize) -> f32 {
    obvious_sweep(a, b, n, rows)
}

fn naive_sweep(a: &[f32], b: &mut [f32], n: usize, rows: usize) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { obvious_sweep_avx2(a, b, n, rows) };
    }
    obvious_sweep(a, b, n, rows)
}

/// G cell updates per second of one sweep per pass over two arrays, one thread per band.
fn naive(n: usize, threads: usize) -> f64 {
    let sweeps = 16;
    let barrier = std::sync::Barrier::new(threads);
    let seconds: Vec<f64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|k| {
                let barrier = &barrier;
                scope.spawn(move || {
                    // A band and its neighbours' rows; the halos stay as they are, which changes no timing.
                    let rows = n * (k + 1) / threads - n * k / threads + 2;
                    let mut a: Vec<f32> = (0..rows * n).map(|i| (i % 1009) as f32).collect();
                    let mut b = a.clone();
                    let mut best = f64::MAX;
                    for _ in 0..3 {
                        barrier.wait();
                        let start = Instant::now();
                        for _ in 0..sweeps {
                            let norm = naive_sweep(&a, &mut b, n, rows);
                            std::hint::black_box(norm);
                            std::mem::swap(&mut a, &mut b);
                        }
                        barrier.wait();
                        best = best.min(start.elapsed().as_secs_f64());
                    }
                    best
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .collect()
    });
    (n * n * sweeps) as f64 / seconds[0] / 1e9
}

/// GB/s read and written together by all threads copying 256 MiB each.
fn copy_bandwidth(threads: usize) -> f64 {
    let words = 1 << 25;
    let barrier = std::sync::Barrier::new(threads);
    let seconds: Vec<f64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let from = vec![1u64; words];
                    let mut to = vec![2u64; words];
                    (0..5)
                        .map(|_| {
                            barrier.wait();
                            let start = Instant::now();
                            to.copy_from_slice(std::hint::black_box(&from));
                            std::hint::black_box(&mut to);
                            barrier.wait();
                            start.elapsed().as_secs_f64()
                        })
                        .fold(f64::MAX, f64::min)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .collect()
    });
    (2 * 8 * words * threads) as f64 / seconds[0] / 1e9
}

/// Seconds of the sweeps of the seed problem, best of five.
fn seed(pes: usize) -> f64 {
    let problem = Problem1d {
        points: 4_194_304,
        left: 5.0f32,
        right: 10.0,
        norm: Norm::Rms,
    };
    (0..5)
        .map(|_| {
            let ends = spmd(pes, |pe| {
                let solution =
                    solve_1d(pe, &problem, &Options::new(1e-4, 1000), |_| {}).expect("solves");
                assert_eq!(solution.sweeps, 57);
                solution.seconds
            });
            ends.expect("a world")[0]
        })
        .fold(f64::MAX, f64::min)
}

fn noise<F: Real>() -> RowSource<F> {
    Arc::new(|y, row: &mut [F]| {
        for (x, value) in row.iter_mut().enumerate() {
            *value = F::from_f64(((x * 7919 + y * 104_729) % 1013) as f64 / 1013.0);
        }
    })
}

fn main() {
    let pes = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(2);
    let say = |what: &str, value: f64, unit: &str| println!("{what:<64} {value:>8.2} {unit}");
    println!("{pes} PEs, {SWEEPS} sweeps, norm of every sweep; best of three runs");
    say(
        "copy bandwidth, read + written",
        copy_bandwidth(pes),
        "GB/s",
    );
    say("naive sweep 8192² f32", naive(8192, pes), "G updates/s");
    let laplace = |n: usize| Problem2d::<f32> {
        initial: Some(noise()),
        top: Boundary::Fixed(vec![1.0; n]),
        ..Problem2d::laplace(n, n)
    };
    let solve = |what: &str, (rate, depth): (f64, usize)| {
        say(
            &format!("{what}, {depth} sweeps a pass"),
            rate,
            "G updates/s",
        );
    };
    let large = laplace(8192);
    solve("8192² f32", solver(&large, pes, None));
    for depth in [1, 4, 8, 16, 24, 32] {
        solve("8192² f32, asked for", solver(&large, pes, Some(depth)));
    }
    solve("8192² f32, one PE", solver(&large, 1, None));
    let mask: RowSource<u8> = Arc::new(|y, row| {
        for (x, byte) in row.iter_mut().enumerate() {
            *byte = u8::from((x / 16 + y / 16) % 5 == 0);
        }
    });
    let masked = Problem2d {
        fixed: Some(mask),
        ..large.clone()
    };
    solve("8192² f32 with a mask", solver(&masked, pes, None));
    let poisson = Problem2d {
        source: Some(noise()),
        ..large
    };
    solve("8192² f32 with a source", solver(&poisson, pes, None));
    drop((masked, poisson));
    solve(
        "8192² f32, NVIDIA's problem",
        solver(&Problem2d::<f32>::nvidia(8192, 8192), pes, None),
    );
    let double = Problem2d::<f64> {
        initial: Some(noise()),
        ..Problem2d::laplace(8192, 8192)
    };
    solve("8192² f64", solver(&double, pes, None));
    drop(double);
    for n in [256, 512, 1024, 2048, 4096] {
        solve(&format!("{n}² f32"), solver(&laplace(n), pes, None));
    }
    say(
        "1-D, 4,194,304 points f32 to 1e-4 (57 sweeps)",
        seed(pes) * 1e6,
        "µs",
    );
}

//! Speed of multigrid: seconds from a loaded problem to its solution, hierarchy included.
//!
//! `cargo bench -p crosswarp-solve --bench multigrid [-- PES]` prints one JSON object a row: the median, least and
//! greatest of nine solves, the median of the processor time that all PEs together spend, loading included, and how far the field is from the exact
//! solution, where that is known, relative in the L2 norm; PES defaults to 1. `PES planes` leaves boxes out.

use std::f64::consts::PI;
use std::sync::Arc;

use crosswarp_shmem::{Pe, spmd};
use crosswarp_solve::{
    Cycles, Method, Options, PlaneSource, Problem2d, Problem3d, RowSource, Solution, solve_2d,
    solve_3d,
};
use rustix::time::{ClockId, clock_gettime};

/// ∇²u = f with u = sin πx sin πy + ½ sin 3πx sin πy, zero on the sides, on nx × ny points.
fn two_waves(nx: usize, ny: usize) -> Problem2d<f64> {
    let h = 1.0 / (nx.max(ny) - 1) as f64;
    let sines = |n: usize, a: f64| -> Vec<f64> {
        (0..n)
            .map(|i| (a * PI * i as f64 / (n - 1) as f64).sin())
            .collect()
    };
    let (one, three, down) = (sines(nx, 1.0), sines(nx, 3.0), sines(ny, 1.0));
    let source: RowSource<f64> = Arc::new(move |y, row| {
        for (x, value) in row.iter_mut().enumerate() {
            *value = -PI * PI * down[y] * (2.0 * one[x] + 5.0 * three[x]);
        }
    });
    Problem2d {
        source: Some(source),
        spacing: h,
        ..Problem2d::laplace(nx, ny)
    }
}

/// The same in three dimensions, times sin πz, on n points along each axis.
fn two_waves_in_space(n: usize) -> Problem3d<f64> {
    let h = 1.0 / (n - 1) as f64;
    let sines = |a: f64| -> Vec<f64> { (0..n).map(|i| (a * PI * i as f64 * h).sin()).collect() };
    let (one, three) = (sines(1.0), sines(3.0));
    let source: PlaneSource<f64> = Arc::new(move |z, y, row| {
        for (x, value) in row.iter_mut().enumerate() {
            *value = -PI * PI * (one[y] * one[z]) * (3.0 * one[x] + 5.5 * three[x]);
        }
    });
    Problem3d {
        source: Some(source),
        spacing: [h; 3],
        ..Problem3d::laplace([n; 3])
    }
}

/// Every twentieth cell known, drawn by its number.
fn speckled(nx: usize, ny: usize) -> Problem2d<f64> {
    let known: RowSource<u8> = Arc::new(|y, row| {
        for (x, byte) in row.iter_mut().enumerate() {
            let mut z = (x as u64) << 32 | y as u64;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = u8::from((z ^ (z >> 31)).is_multiple_of(20));
        }
    });
    Problem2d {
        fixed: Some(known),
        ..two_waves(nx, ny)
    }
}

fn main() {
    let pes = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .next()
        .unwrap_or(1);
    let cases = [
        ("two waves", two_waves(2049, 2049)),
        ("two waves", two_waves(2048, 2048)),
        ("two waves", two_waves(2050, 2050)),
        ("two waves", two_waves(2000, 2000)),
        ("two waves", two_waves(577, 600)),
        ("5 % known", speckled(2049, 2049)),
    ];
    for (what, problem) in cases {
        let size = [problem.nx, problem.ny, 1];
        row(what, size, pes, |pe, options| {
            solve_2d(pe, &problem, options, |_| {}).expect("solves")
        });
    }
    if std::env::args().any(|argument| argument == "planes") {
        return;
    }
    for n in [129, 257] {
        let problem = two_waves_in_space(n);
        row("two waves", [n; 3], pes, |pe, options| {
            solve_3d(pe, &problem, options, |_| {}).expect("solves")
        });
    }
}

/// Solves to two tolerances, nine times each, and prints a row.
fn row(
    what: &str,
    [nx, ny, nz]: [usize; 3],
    pes: usize,
    solve: impl Fn(&Pe, &Options<'_>) -> Solution<f64> + Sync,
) {
    for tolerance in [1e-3, 1e-8] {
        let options = Options {
            method: Method::Multigrid(Cycles::default()),
            ..Options::new(tolerance, 100)
        };
        let (mut seconds, mut processor) = (Vec::new(), Vec::new());
        let (mut cycles, mut error) = (0, String::from("null"));
        for _ in 0..9 {
            let ends = spmd(pes, |pe| {
                let before = processor_seconds();
                let solution = solve(pe, &options);
                let spent = processor_seconds() - before;
                let off = match (what, nx == ny, nz) {
                    ("two waves", true, 1) => off(&solution, nx),
                    _ => [f64::NAN; 2],
                };
                (solution.seconds, solution.sweeps, off, spent)
            });
            let ends = ends.expect("a world");
            let (time, number, ..) = ends[0];
            seconds.push(time);
            cycles = number;
            let [off, all] = [0, 1].map(|k| ends.iter().map(|end| end.2[k]).sum::<f64>());
            if all > 0.0 {
                error = format!("{:.4e}", (off / all).sqrt());
            }
            processor.push(ends[0].3);
        }
        processor.sort_by(f64::total_cmp);
        let spent = 1e3 * processor[4];
        seconds.sort_by(f64::total_cmp);
        let [least, median, most] = [0, 4, 8].map(|at| 1e3 * seconds[at]);
        println!(
            r#"{{"impl": "crosswarp", "what": "{what}", "nx": {nx}, "ny": {ny}, "nz": {nz}, "pes": {pes}, "tolerance": {tolerance:e}, "cycles": {cycles}, "error": {error}, "ms": {median:.2}, "ms_min": {least:.2}, "ms_max": {most:.2}, "cpu_ms": {spent:.2}}}"#
        );
    }
}

/// Processor time of the whole process.
fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + 1e-9 * now.tv_nsec as f64
}

/// The sums of squares of what this PE's rows are off, and of the two waves themselves.
fn off(solution: &Solution<f64>, n: usize) -> [f64; 2] {
    let h = 1.0 / (n - 1) as f64;
    let wave = |a: f64, i: usize| (a * PI * i as f64 * h).sin();
    let across: Vec<f64> = (0..n).map(|x| wave(1.0, x) + 0.5 * wave(3.0, x)).collect();
    let mut sums = [0.0; 2];
    for y in solution.rows() {
        let down = wave(1.0, y);
        for (value, of) in solution.row(y).iter().zip(&across) {
            sums[0] += (value - down * of).powi(2);
            sums[1] += (down * of).powi(2);
        }
    }
    sums
}

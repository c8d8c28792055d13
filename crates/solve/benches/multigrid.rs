//! Speed of multigrid: seconds from a loaded problem to its solution, hierarchy included.
//!
//! `cargo bench -p crosswarp-solve --bench multigrid [-- PES]` prints one JSON object a row: the median, least and
//! greatest of nine solves, the median of the processor time that all PEs together spend, loading included, and how far
//! the field is from the exact solution, where that is known, relative in the L2 norm; PES defaults to 1. `PES planes`
//! leaves boxes out.

#[path = "../tests/jacksboro/mod.rs"]
mod jacksboro;

use std::f64::consts::PI;
use std::sync::Arc;

use crosswarp_shmem::{Pe, spmd};
use crosswarp_solve::{
    Cycles, Method, Options, PlaneSource, Problem2d, Problem3d, RowSource, Solution, Solver2d,
    solve_2d, solve_3d,
};
use jacksboro::Tile;
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

/// The voids of `examples/jacksboro`, each cell `times` times along both axes, solved from 0 on.
fn tile(times: usize) -> Problem2d<f64> {
    let Tile { nx, values, known } = jacksboro::tile();
    let ny = known.len() / nx;
    let at = move |x: usize, y: usize| y / times * nx + x / times;
    let values: RowSource<f64> = Arc::new(move |y, row| {
        for (x, value) in row.iter_mut().enumerate() {
            *value = values[at(x, y)];
        }
    });
    let known: RowSource<u8> = Arc::new(move |y, row| {
        for (x, byte) in row.iter_mut().enumerate() {
            *byte = known[at(x, y)].into();
        }
    });
    Problem2d::fill_natural(nx * times, ny * times, values, known).expect("a fill")
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
        ("tile", tile(1)),
        ("tile", tile(4)),
    ];
    for (what, problem) in cases {
        let size = [problem.nx, problem.ny, 1];
        row(what, size, pes, |pe, options| {
            solve_2d(pe, &problem, options, |_| {}).expect("solves")
        });
    }
    again(&two_waves(2049, 2049), pes);
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

/// As [`row`], the levels having been made beforehand, as what others plan or set up is.
fn again(problem: &Problem2d<f64>, pes: usize) {
    for tolerance in TOLERANCES {
        let options = of(tolerance);
        let ends = spmd(pes, |pe| {
            let mut solver = Solver2d::new(pe, problem, &Cycles::default()).expect("levels");
            let mut solve = || {
                let before = processor_seconds();
                let solution = solver.solve(None, None, &options, |_| {}).expect("solves");
                let spent = processor_seconds() - before;
                let off = off(&solution, problem.nx);
                (solution.seconds, solution.sweeps, off, spent)
            };
            // The first one's seconds are those of the levels, too.
            solve();
            let all: [_; SOLVES] = std::array::from_fn(|_| solve());
            solver.free().expect("a world");
            all
        });
        let ends = ends.expect("a world");
        let solves: Vec<Vec<Solve>> = (0..SOLVES)
            .map(|at| ends.iter().map(|end| end[at]).collect())
            .collect();
        let size = [problem.nx, problem.ny, 1];
        print("two waves, levels made once", size, tolerance, &solves);
    }
}

/// Seconds, cycles, squares of what is off and of all, seconds of the processor: of a PE.
type Solve = (f64, usize, [f64; 2], f64);

/// One full cycle; one more where nothing but sides is fixed; and all that `f64` is asked for.
const TOLERANCES: [f64; 3] = [0.5, 1e-3, 1e-8];

/// Of each kind.
const SOLVES: usize = 9;

fn of(tolerance: f64) -> Options<'static> {
    Options {
        method: Method::Multigrid(Cycles::default()),
        ..Options::new(tolerance, 100)
    }
}

/// Solves to each tolerance, and prints a row for each.
fn row(
    what: &str,
    [nx, ny, nz]: [usize; 3],
    pes: usize,
    solve: impl Fn(&Pe, &Options<'_>) -> Solution<f64> + Sync,
) {
    for tolerance in TOLERANCES {
        let options = of(tolerance);
        let one = |_| {
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
            ends.expect("a world")
        };
        let solves: Vec<Vec<Solve>> = (0..SOLVES).map(one).collect();
        print(what, [nx, ny, nz], tolerance, &solves);
    }
}

/// Prints the row of `solves`, each of all PEs.
fn print(what: &str, [nx, ny, nz]: [usize; 3], tolerance: f64, solves: &[Vec<Solve>]) {
    let sorted = |of: fn(&Solve) -> f64| {
        let mut all: Vec<f64> = solves.iter().map(|ends| 1e3 * of(&ends[0])).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (milliseconds, spent) = (sorted(|solve| solve.0), sorted(|solve| solve.3));
    let [least, median, most] = [0, SOLVES / 2, SOLVES - 1].map(|at| milliseconds[at]);
    let spent = spent[SOLVES / 2];
    let last = &solves[SOLVES - 1];
    let (pes, cycles) = (last.len(), last[0].1);
    let [off, all] = [0, 1].map(|k| last.iter().map(|end| end.2[k]).sum::<f64>());
    let error = match all > 0.0 {
        true => format!("{:.4e}", (off / all).sqrt()),
        false => String::from("null"),
    };
    println!(
        r#"{{"impl": "crosswarp", "what": "{what}", "nx": {nx}, "ny": {ny}, "nz": {nz}, "pes": {pes}, "tolerance": {tolerance:e}, "cycles": {cycles}, "error": {error}, "ms": {median:.2}, "ms_min": {least:.2}, "ms_max": {most:.2}, "cpu_ms": {spent:.2}}}"#
    );
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

//! `crosswarp bench jacobi`: whole solves on this machine's GPUs.

use crosswarp::cuda::Device;
use crosswarp::shmem::{Pe, under_launcher};
use crosswarp::solve::{
    Gpu, Norm, Options, Problem1d, Problem2d, Solution, SolveError, Strategy, solve_1d, solve_2d,
};

use crate::args::BenchJacobiArgs;
use crate::console;
use crate::error::CliError;
use crate::world::{in_world_of, kind_name};

/// Sweeps of a solve on a plane, and how often it is made.
const SWEEPS: usize = 1000;
const REPETITIONS: usize = 3;

/// What is measured.
#[derive(Clone, Copy)]
enum What {
    /// The line of 4,194,304 points to a tolerance of 1e-4.
    Line,
    /// The NVIDIA preset on a square plane of this side.
    Plane(usize),
}

/// A measurement, as PE 0 reports it.
struct Row {
    what: String,
    strategy: Strategy,
    pes: usize,
    world: &'static str,
    bytes: usize,
    sweeps: usize,
    /// Microseconds: of a solve on the line, of a sweep on a plane; sorted.
    times: Vec<f64>,
    updates_per_second: f64,
}

/// Measures and prints a table, or with `--json` one object a line.
pub fn jacobi(args: &BenchJacobiArgs) -> Result<i32, CliError> {
    let devices = Device::all().map_err(crosswarp::cuda::Error::from)?;
    let strategy = args.strategy.unwrap_or_default();
    if !args.json {
        console::line(format_args!(
            "{:<16}{:>14}{:>5}{:>8}{:>12}{:>12}{:>12}{:>16}",
            "what", "strategy", "PEs", "sweeps", "us", "min", "max", "G updates/s"
        ))?;
    }
    let pes: Vec<usize> = match args.pes {
        Some(pes) => vec![pes as usize],
        // The launcher's world is what it is.
        None if under_launcher() => vec![devices.len()],
        None => (0..)
            .map(|power| 1 << power)
            .take_while(|&pes| pes <= devices.len())
            .collect(),
    };
    let kinds = std::iter::once(What::Line).chain(args.sides.iter().map(|&side| What::Plane(side)));
    for what in kinds {
        for &pes in &pes {
            let row = in_world_of(args.pes, pes, |pe| {
                let gpu = Gpu {
                    device: devices[pe.my_pe() % devices.len()],
                    strategy,
                };
                Ok(measure(pe, gpu, what)?)
            })?;
            console::line(if args.json { json(&row) } else { line(&row) })?;
        }
    }
    Ok(0)
}

fn measure(pe: &Pe, gpu: Gpu, what: What) -> Result<Row, SolveError> {
    let mut times = Vec::new();
    let mut sweeps = 0;
    let mut best = 0.0f64;
    let bytes = match what {
        What::Line => 4 * POINTS,
        What::Plane(side) => 4 * side * side,
    };
    // The first one warms up: kernels are compiled and loaded.
    for repetition in 0..=REPETITIONS {
        let solution = solve(pe, gpu, what)?;
        sweeps = solution.sweeps;
        if repetition > 0 {
            let per = match what {
                What::Line => 1.0,
                What::Plane(_) => sweeps as f64,
            };
            times.push(solution.seconds * 1e6 / per);
            best = best.max(solution.cell_updates as f64 / solution.seconds);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(Row {
        what: match what {
            What::Line => format!("line_{POINTS}"),
            What::Plane(side) => format!("plane_{side}"),
        },
        strategy: gpu.strategy,
        pes: pe.n_pes(),
        world: kind_name(pe),
        bytes,
        sweeps,
        times,
        updates_per_second: best,
    })
}

const POINTS: usize = 4_194_304;

fn solve(pe: &Pe, gpu: Gpu, what: What) -> Result<Solution<f32>, SolveError> {
    let options = |tolerance: f64, max_sweeps: usize| Options {
        gpu: Some(gpu),
        ..Options::new(tolerance, max_sweeps)
    };
    match what {
        What::Line => {
            let problem = Problem1d {
                points: POINTS,
                left: 5.0,
                right: 10.0,
                norm: Norm::Rms,
            };
            solve_1d(pe, &problem, &options(1e-4, SWEEPS), |_| {})
        }
        What::Plane(side) => {
            let problem = Problem2d::nvidia(side, side);
            solve_2d(pe, &problem, &options(0.0, SWEEPS), |_| {})
        }
    }
}

impl Row {
    fn median(&self) -> f64 {
        self.times[self.times.len() / 2]
    }
}

fn line(row: &Row) -> String {
    format!(
        "{:<16}{:>14}{:>5}{:>8}{:>12.3}{:>12.3}{:>12.3}{:>16.1}",
        row.what,
        row.strategy.name(),
        row.pes,
        row.sweeps,
        row.median(),
        row.times[0],
        row.times[row.times.len() - 1],
        row.updates_per_second / 1e9,
    )
}

fn json(row: &Row) -> String {
    serde_json::json!({
        "impl": "crosswarp",
        "version": env!("CARGO_PKG_VERSION"),
        "world": row.world,
        "what": row.what,
        "scope": row.strategy.name(),
        "pes": row.pes,
        "bytes": row.bytes,
        "iterations": row.sweeps,
        "repetitions": row.times.len(),
        "us": row.median(),
        "us_min": row.times[0],
        "us_max": row.times[row.times.len() - 1],
        "updates_per_second": row.updates_per_second,
    })
    .to_string()
}

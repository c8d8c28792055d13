//! `crosswarp bench jacobi`: whole solves on this machine's GPUs.

use std::sync::Mutex;

use crosswarp::cuda::Device;
use crosswarp::lab::measure::{Row, counted};
use crosswarp::shmem::{Pe, under_launcher};
use crosswarp::solve::{
    Choice, Gpu, Norm, Options, Problem1d, Problem2d, Solution, SolveError, solve_1d, solve_2d,
};

use crate::args::BenchJacobiArgs;
use crate::commands::bench::Rows;
use crate::commands::error::CliError;
use crate::console;
use crate::world::{in_world_of, kind_name};

/// Sweeps of a solve on a plane, and how often it is made.
const SWEEPS: usize = 1000;
const REPETITIONS: u32 = 3;

/// What is measured.
#[derive(Clone, Copy)]
enum What {
    /// The line of 4,194,304 points to a tolerance of 1e-4.
    Line,
    /// The NVIDIA preset on a square plane of this side.
    Plane(usize),
    /// The same on a plane whose square part on every PE has this side: weak scaling.
    Weak(usize),
}

/// Measures and prints a table, or with `--json` one object a line.
pub fn jacobi(args: &BenchJacobiArgs) -> Result<i32, CliError> {
    let devices = Device::all().map_err(crosswarp::cuda::Error::from)?;
    let strategy = args.strategy.unwrap_or_default();
    // Of several processes one prints.
    let rows = (!console::is_follower()).then(|| Mutex::new(Rows::new(args.json, &devices[0], 16)));
    let pes: Vec<usize> = match args.pes {
        Some(pes) => vec![pes as usize],
        // The launcher's world is what it is.
        None if under_launcher() => vec![devices.len()],
        None => (0..)
            .map(|power| 1 << power)
            .take_while(|&pes| pes <= devices.len())
            .collect(),
    };
    for pes in pes {
        in_world_of(args.pes, pes, |pe| {
            let gpu = Gpu {
                device: devices[pe.my_pe() % devices.len()],
                strategy,
            };
            let planes = args.sides.iter().map(|&side| What::Plane(side as usize));
            let weak = args.weak.iter().map(|&side| What::Weak(side as usize));
            for what in std::iter::once(What::Line).chain(planes).chain(weak) {
                let row = measure(pe, gpu, what)?;
                if let (0, Some(rows)) = (pe.my_pe(), &rows) {
                    rows.lock().expect("only PE 0 locks it").show(&row)?;
                }
            }
            Ok(())
        })?;
    }
    Ok(0)
}

fn measure(pe: &Pe, gpu: Gpu, what: What) -> Result<Row, SolveError> {
    let (mut sweeps, mut updates) = (0, 0.0);
    let mut choice = Choice::default();
    // The first one warms up: kernels are compiled and loaded.
    let time = counted(1, REPETITIONS, 1, |_| -> Result<f64, SolveError> {
        let solution = solve(pe, gpu, what)?;
        let per = match what {
            What::Line => 1.0,
            What::Plane(_) | What::Weak(_) => solution.sweeps as f64,
        };
        sweeps = solution.sweeps;
        choice = solution.choice.unwrap_or_default();
        updates = solution.cell_updates as f64 / per;
        Ok(solution.seconds / per)
    })?;
    let (what, bytes) = match what {
        What::Line => (format!("line_{POINTS}"), 4 * POINTS),
        What::Plane(side) => (format!("plane_{side}"), 4 * side * side),
        What::Weak(side) => (format!("weak_{side}"), 4 * side * side * pe.n_pes()),
    };
    let not_taken: Vec<String> = choice
        .declined
        .iter()
        .map(|declined| format!("{}: {}", declined.strategy, declined.reason))
        .collect();
    let row = Row::new(what, time).about("strategy", choice.taken);
    let row = match not_taken.is_empty() {
        true => row,
        false => row.about("not_taken", not_taken),
    };
    Ok(row
        .with("scope", gpu.strategy.name())
        .with("pes", pe.n_pes())
        .with("world", kind_name(pe))
        .with("sweeps", sweeps)
        .with("gupdates", updates / time.median / 1e9)
        .bytes(bytes as u64))
}

const POINTS: usize = 4_194_304;

fn solve(pe: &Pe, gpu: Gpu, what: What) -> Result<Solution<f32>, SolveError> {
    let options = |tolerance: f64, max_sweeps: usize| Options {
        gpu: Some(gpu),
        ..Options::new(tolerance, max_sweeps)
    };
    let plane = |nx: usize, ny: usize| {
        let problem = Problem2d::nvidia(nx, ny);
        solve_2d(pe, &problem, &options(0.0, SWEEPS), |_| {})
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
        What::Plane(side) => plane(side, side),
        What::Weak(side) => plane(side, side * pe.n_pes()),
    }
}

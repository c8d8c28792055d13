//! Measuring whole Laplace solves on GPUs: the rows that `bench/peers/jacobi_nvshmem.cu` and `jacobi_sweep.cu` measure
//! of others.

use crosswarp_shmem::Pe;
use crosswarp_solve::{
    Choice, Gpu, Norm, Options, Problem1d, Problem2d, Solution, SolveError, solve_1d, solve_2d,
};

use super::error::BenchError;
use crate::measure::{Row, Timing, fixed_runs};

/// Sweeps of a solve on a plane, and how often it is made.
const SWEEPS: usize = 1000;
const REPETITIONS: u32 = 3;

/// JacobiProblem is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JacobiProblem {
    /// The line of 4,194,304 points to a tolerance of 1e-4.
    Line,
    /// The NVIDIA preset on a square plane of this side.
    Plane(usize),
    /// The same on a plane whose square part on every PE has this side: weak scaling.
    Weak(usize),
}

/// Measures one problem on the PEs of a world, each with its GPU; `world` is what the row says of its kind. Collective.
///
/// # Errors
/// The solver's.
pub fn jacobi(pe: &Pe, gpu: Gpu, what: JacobiProblem, world: &str) -> Result<Row, BenchError> {
    let solved = timed(pe, Some(gpu), what)?;
    let not_taken: Vec<String> = solved
        .choice
        .declined
        .iter()
        .map(|declined| format!("{}: {}", declined.strategy, declined.reason))
        .collect();
    let row = Row::new(solved.name, solved.time).about("strategy", solved.choice.taken);
    let row = match not_taken.is_empty() {
        true => row,
        false => row.about("not_taken", not_taken),
    };
    Ok(row
        .with("scope", gpu.strategy.name())
        .with("pes", pe.n_pes())
        .with("world", world)
        .with("sweeps", solved.sweeps)
        .with("gupdates", solved.updates / solved.time.median / 1e9)
        .bytes(solved.bytes as u64))
}

/// What was measured of a problem.
pub(super) struct Solved {
    pub name: String,
    /// Of a sweep, of a line the whole solve.
    pub time: Timing,
    pub sweeps: usize,
    /// Cells updated meanwhile.
    pub updates: f64,
    /// Of the field.
    pub bytes: usize,
    pub choice: Choice,
}

/// Solves one problem several times, on processors without a `gpu`. Collective.
pub(super) fn timed(pe: &Pe, gpu: Option<Gpu>, what: JacobiProblem) -> Result<Solved, BenchError> {
    let (mut sweeps, mut updates) = (0, 0.0);
    let mut choice = Choice::default();
    // The first one warms up: kernels are compiled and loaded.
    let time = fixed_runs(1, REPETITIONS, 1, |_| -> Result<f64, SolveError> {
        let solution = solve(pe, gpu, what)?;
        let per = match what {
            JacobiProblem::Line => 1.0,
            JacobiProblem::Plane(_) | JacobiProblem::Weak(_) => solution.sweeps as f64,
        };
        sweeps = solution.sweeps;
        choice = solution.choice.unwrap_or_default();
        updates = solution.cell_updates as f64 / per;
        Ok(solution.seconds / per)
    })?;
    let (name, bytes) = match what {
        JacobiProblem::Line => (format!("line_{POINTS}"), 4 * POINTS),
        JacobiProblem::Plane(side) => (format!("plane_{side}"), 4 * side * side),
        JacobiProblem::Weak(side) => (format!("weak_{side}"), 4 * side * side * pe.n_pes()),
    };
    Ok(Solved {
        name,
        time,
        sweeps,
        updates,
        bytes,
        choice,
    })
}

const POINTS: usize = 4_194_304;

fn solve(pe: &Pe, gpu: Option<Gpu>, what: JacobiProblem) -> Result<Solution<f32>, SolveError> {
    let options = |tolerance: f64, max_sweeps: usize| Options {
        gpu,
        ..Options::new(tolerance, max_sweeps)
    };
    let plane = |nx: usize, ny: usize| {
        let problem = Problem2d::nvidia(nx, ny);
        solve_2d(pe, &problem, &options(0.0, SWEEPS), |_| {})
    };
    match what {
        JacobiProblem::Line => {
            let problem = Problem1d {
                points: POINTS,
                left: 5.0,
                right: 10.0,
                norm: Norm::Rms,
            };
            solve_1d(pe, &problem, &options(1e-4, SWEEPS), |_| {})
        }
        JacobiProblem::Plane(side) => plane(side, side),
        JacobiProblem::Weak(side) => plane(side, side * pe.n_pes()),
    }
}

//! Crosswarp's own rungs that processor and GPU have in common.

use crosswarp_cuda::Device;
use crosswarp_solve::{
    Gpu, Norm, Options as SolveOptions, Problem1d, SolveError, Strategy, solve_1d,
};

use super::error::LadderError;
use super::inputs::{SWEEPS, relax};
use super::rung::Check;
use crate::measure::{Plan, Timing, fixed_runs};

/// Solves of the seed problem's kind, zero between two ends, with `n` points: on `device`, or on `threads`
/// threads. The times are those that the solver gives for its sweeps.
pub fn jacobi1d(
    n: usize,
    threads: usize,
    device: Option<Device>,
    plan: &Plan,
) -> Result<(Timing, Check), LadderError> {
    let problem = Problem1d {
        points: n,
        left: 5.0f32,
        right: 10.0,
        norm: Norm::L2,
    };
    let options = SolveOptions {
        gpu: device.map(|device| Gpu {
            device,
            strategy: Strategy::Auto,
        }),
        ..SolveOptions::new(0.0, SWEEPS)
    };
    let failed = |reason: String| LadderError::Rung {
        rung: "crosswarp",
        reason,
    };
    let pes = if device.is_some() { 1 } else { threads };
    let outcomes = crosswarp_shmem::spmd(pes, |pe| {
        let mut histories = Vec::new();
        let time = fixed_runs(1, plan.samples.max(1), 1, |_| -> Result<f64, SolveError> {
            let solution = solve_1d(pe, &problem, &options, |_| {})?;
            histories.push(solution.history);
            Ok(solution.seconds)
        })?;
        Ok::<_, SolveError>((time, histories))
    })
    .map_err(|error| failed(error.to_string()))?;
    let (time, histories) = outcomes
        .into_iter()
        .next()
        .ok_or_else(|| failed("no PE".to_owned()))?
        .map_err(|error| failed(error.to_string()))?;

    let mut field = vec![0.0; n];
    (field[0], field[n - 1]) = (problem.left, problem.right);
    let expected = relax(field).squares;
    let mut worst = 0.0f64;
    for history in &histories {
        if history.len() != SWEEPS {
            let wrong = format!("{} norms instead of {SWEEPS}", history.len());
            return Ok((time, Check::Wrong(wrong)));
        }
        for (norm, square) in history.iter().zip(&expected) {
            worst = worst.max((norm / square.sqrt() - 1.0).abs());
        }
    }
    // The solver's norms are sums of squares in the field's type, the reference's in f64.
    let check = if worst <= 1e-5 {
        Check::Within(worst)
    } else {
        Check::Wrong(format!("a norm is off by {worst:e}"))
    };
    Ok((time, check))
}

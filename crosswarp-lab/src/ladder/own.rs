//! Crosswarp's own rungs that processor and GPU have in common.

use crosswarp_cuda::Device;
use crosswarp_solve::{Gpu, Norm, Options as SolveOptions, Problem1d, Strategy, solve_1d};

use super::problem::{SWEEPS, relax};
use super::{LadderError, Verdict};
use crate::measure::{Plan, Spread};

/// Solves of the seed problem's kind, zero between two ends, with `n` points: on `device`, or on `threads`
/// threads. The times are those that the solver gives for its sweeps.
pub fn jacobi1d(
    n: usize,
    threads: usize,
    device: Option<Device>,
    plan: &Plan,
) -> Result<(Spread, Verdict), LadderError> {
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
    let samples = plan.samples.max(1);
    // One solve more than samples: the first warms up.
    let solves = crosswarp_shmem::spmd(pes, |pe| {
        (0..=samples)
            .map(|_| {
                let solution = solve_1d(pe, &problem, &options, |_| {})?;
                Ok((solution.seconds, solution.history))
            })
            .collect::<Result<Vec<_>, crosswarp_solve::SolveError>>()
    })
    .map_err(|error| failed(error.to_string()))?;
    let of_first = solves
        .into_iter()
        .next()
        .ok_or_else(|| failed("no PE".to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    let seconds = of_first[1..].iter().map(|(seconds, _)| *seconds).collect();
    let spread = Spread::of(seconds, 1).ok_or_else(|| failed("no samples".to_owned()))?;

    let mut field = vec![0.0; n];
    (field[0], field[n - 1]) = (problem.left, problem.right);
    let expected = relax(field).squares;
    let mut worst = 0.0f64;
    for (_, history) in &of_first {
        if history.len() != SWEEPS {
            let wrong = format!("{} norms instead of {SWEEPS}", history.len());
            return Ok((spread, Verdict::Wrong(wrong)));
        }
        for (norm, square) in history.iter().zip(&expected) {
            worst = worst.max((norm / square.sqrt() - 1.0).abs());
        }
    }
    // The solver's norms are sums of squares in the field's type, the reference's in f64.
    let verdict = if worst <= 1e-5 {
        Verdict::Within(worst)
    } else {
        Verdict::Wrong(format!("a norm is off by {worst:e}"))
    };
    Ok((spread, verdict))
}

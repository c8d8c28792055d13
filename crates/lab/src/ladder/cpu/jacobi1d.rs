//! Jacobi sweeps on the processor.
#![allow(unsafe_code)] // Calls functions compiled for vectors that were found.

use super::super::error::LadderError;
use super::super::inputs::{SWEEPS, first_field, grouped, jacobi_work, relax};
use super::super::rung::RungKind;
use super::super::solver;
use super::ladder_run::{LadderRun, RungSpec, on_threads};

/// The fields and the norms.
struct State {
    now: Vec<f32>,
    next: Vec<f32>,
    squares: Vec<f32>,
}

/// One sweep over `next`, whose neighbours in `now` begin one before; the sum of squared changes.
type Sweep = dyn Fn(&[f32], &mut [f32]) -> f32 + Sync;

fn scalar(now: &[f32], next: &mut [f32]) -> f32 {
    let mut sum = 0.0;
    for (k, value) in next.iter_mut().enumerate() {
        *value = 0.5 * (now[k] + now[k + 2]);
        let change = *value - now[k + 1];
        sum += change * change;
    }
    sum
}

vectorised! {
    /// Sixty-four chains of norms.
    fn vectors(now: &[f32], next: &mut [f32]) -> f32 {
        const LANES: usize = 64;
        let mut sum = [0.0f32; LANES];
        let whole = next.len() / LANES * LANES;
        let (body, rest) = next.split_at_mut(whole);
        for (number, chunk) in body.chunks_exact_mut(LANES).enumerate() {
            let at = number * LANES;
            let near = &now[at..at + LANES + 2];
            for k in 0..LANES {
                chunk[k] = 0.5 * (near[k] + near[k + 2]);
                let change = chunk[k] - near[k + 1];
                sum[k] += change * change;
            }
        }
        sum.iter().sum::<f32>() + scalar(&now[whole..], rest)
    }
}

fn solve(state: &mut State, first: &[f32], threads: usize, sweep: &Sweep) {
    state.now.copy_from_slice(first);
    state.next.copy_from_slice(first);
    state.squares.clear();
    let inner = first.len() - 2;
    let share = inner.div_ceil(threads);
    for _ in 0..SWEEPS {
        let now = &state.now;
        let parts = state.next[1..=inner].chunks_mut(share).enumerate();
        let square = if threads == 1 {
            sweep(now, &mut state.next[1..=inner])
        } else {
            on_threads(parts.collect(), |(number, part): (usize, &mut [f32])| {
                let from = number * share;
                sweep(&now[from..from + part.len() + 2], part)
            })
            .into_iter()
            .sum()
        };
        state.squares.push(square);
        std::mem::swap(&mut state.now, &mut state.next);
    }
}

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let n = run.size();
    run.group = format!(
        "{SWEEPS} Jacobi sweeps over {} points, f32, norm of each",
        grouped(n)
    );
    let first: Vec<f32> = (0..n).map(first_field).collect();
    let expected = relax(first.clone());
    let mut state = State {
        now: first.clone(),
        next: first.clone(),
        squares: Vec::new(),
    };
    let count = run.threads;
    for (name, why, threads, sweep) in [
        (
            "scalar",
            "The norm is a chain of additions, each of which waits for the one before.",
            1,
            &scalar as &Sweep,
        ),
        (
            "vectors",
            "The norm in as many chains as vectors have lanes; each sweep reads and writes the memory once.",
            1,
            &vectors,
        ),
        (
            "threads",
            "Every core has its part of each sweep, and threads are started anew for each.",
            count,
            &vectors,
        ),
    ] {
        let spec = RungSpec {
            name,
            kind: RungKind::Textbook,
            why,
            work: jacobi_work(n),
        };
        run.rung(
            spec,
            &mut state,
            |state| solve(state, &first, threads, sweep),
            |state| expected.check(&state.now, &state.squares),
        );
    }
    let (time, check) = solver::jacobi1d(n, count, None, &run.options.plan)?;
    let spec = RungSpec {
        name: "crosswarp",
        kind: RungKind::Crosswarp,
        why: "Several sweeps while a part of the field is in the cache: the memory is passed once for all of them.",
        work: jacobi_work(n),
    };
    run.done(spec, time, check);
    Ok(())
}

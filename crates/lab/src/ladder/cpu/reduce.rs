//! Sums of f32 on the processor.
#![allow(unsafe_code)] // Calls functions compiled for vectors that were found.

use crosswarp_prim::Reducer;

use super::super::error::LadderError;
use super::super::inputs::{exact_sum, grouped, sum_work, summand};
use super::super::rung::{Check, RungKind};
use super::ladder_run::{LadderRun, RungSpec, on_threads};

fn scalar(x: &[f32]) -> f32 {
    let mut sum = 0.0;
    for value in x {
        sum += value;
    }
    sum
}

fn unrolled(x: &[f32]) -> f32 {
    let mut sum = [0.0; 8];
    let chunks = x.chunks_exact(8);
    let rest = scalar(chunks.remainder());
    for chunk in chunks {
        for k in 0..8 {
            sum[k] += chunk[k];
        }
    }
    scalar(&sum) + rest
}

vectorised! {
    /// 128 accumulators: eight vectors of sixteen.
    fn vectors(x: &[f32]) -> f32 {
        let mut sum = [0.0f32; 128];
        let chunks = x.chunks_exact(128);
        let rest = scalar(chunks.remainder());
        for chunk in chunks {
            for k in 0..128 {
                sum[k] += chunk[k];
            }
        }
        scalar(&sum) + rest
    }
}

fn threads(x: &[f32], threads: usize) -> f32 {
    let parts = x.chunks(x.len().div_ceil(threads)).collect();
    on_threads(parts, vectors).into_iter().sum()
}

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let n = run.size();
    run.group = format!("sum of {} f32", grouped(n));
    let x: Vec<f32> = (0..n).map(summand).collect();
    let expected = exact_sum(n);
    let work = sum_work(n, 4);
    let count = run.threads;
    let mut rung = |name, kind, why, sum: &dyn Fn(&[f32]) -> f32| {
        let spec = RungSpec {
            name,
            kind,
            why,
            work,
        };
        let mut out = f32::NAN;
        let verify = |sum: &f32| Check::of(f64::from(*sum), expected, 0.0);
        run.rung(
            spec,
            &mut out,
            |out| *out = sum(std::hint::black_box(&x)),
            verify,
        );
    };
    use RungKind::{Crosswarp, Textbook};
    rung(
        "scalar",
        Textbook,
        "Each addition waits for the one before: one element in the latency of an add.",
        &scalar,
    );
    rung(
        "unrolled",
        Textbook,
        "Eight chains of additions run side by side.",
        &unrolled,
    );
    rung(
        "vectors",
        Textbook,
        "Eight chains of whole vectors: enough to keep one core's loads in flight.",
        &vectors,
    );
    rung(
        "threads",
        Textbook,
        "Every core has its part; from here the memory is the limit.",
        &|x| threads(x, count),
    );
    let reducer = Reducer::new().threads(count);
    rung(
        "crosswarp",
        Crosswarp,
        "Vectors and threads too, in leaves that meet exactly: the same bits for any number of either.",
        // A slice on no team has no error.
        &|x| reducer.sum(x).unwrap_or(f32::NAN),
    );
    Ok(())
}

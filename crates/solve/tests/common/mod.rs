//! The published scheme followed literally: two full arrays, one sweep at a time, one thread.
#![allow(dead_code)] // Every test program uses another part.

use std::sync::Arc;

use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{combine_lanes, empty_lanes};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Norm, Options, Problem1d, Problem2d, Real, Robin, RowSource, solve_1d, solve_2d,
};

/// Field (row-major) and norms.
#[derive(Clone, PartialEq)]
pub struct Run<F> {
    pub field: Vec<F>,
    pub history: Vec<f64>,
    pub converged: bool,
}

impl<F: Real> Run<F> {
    /// Compares bits and names the first difference.
    pub fn assert_same(&self, other: &Run<F>, context: &str) {
        assert_eq!(self.history.len(), other.history.len(), "sweeps, {context}");
        for (sweep, (a, b)) in self.history.iter().zip(&other.history).enumerate() {
            assert_eq!(
                a.to_bits(),
                b.to_bits(),
                "norm of sweep {sweep}: {a} {b}, {context}"
            );
        }
        assert_eq!(self.converged, other.converged, "{context}");
        assert_eq!(self.field.len(), other.field.len(), "{context}");
        for (i, (a, b)) in self.field.iter().zip(&other.field).enumerate() {
            assert_eq!(
                a.to_bits64(),
                b.to_bits64(),
                "cell {i}: {a:?} {b:?}, {context}"
            );
        }
    }
}

fn rows<T: bytemuck::Pod>(source: &Option<RowSource<T>>, nx: usize, ny: usize) -> Option<Vec<T>> {
    source.as_ref().map(|deliver| {
        let mut all = vec![T::zeroed(); nx * ny];
        all.chunks_mut(nx)
            .enumerate()
            .for_each(|(y, row)| deliver(y, row));
        all
    })
}

/// The sweeps of `problem`, by the letter.
pub fn reference_2d<F: Real>(problem: &Problem2d<F>, tolerance: f64, max_sweeps: usize) -> Run<F> {
    let (nx, ny) = (problem.nx, problem.ny);
    let mut a = rows(&problem.initial, nx, ny).unwrap_or(vec![F::ZERO; nx * ny]);
    if let (Boundary::Fixed(top), Boundary::Fixed(bottom)) = (&problem.top, &problem.bottom) {
        a[..nx].copy_from_slice(top);
        a[(ny - 1) * nx..].copy_from_slice(bottom);
    }
    if let (Boundary::Fixed(left), Boundary::Fixed(right)) = (&problem.left, &problem.right) {
        for y in 0..ny {
            a[y * nx] = left[y];
            a[y * nx + nx - 1] = right[y];
        }
    }
    let fixed = rows(&problem.fixed, nx, ny);
    let source = rows(&problem.source, nx, ny);
    let squared = F::from_f64(problem.spacing * problem.spacing);
    let quarter = F::from_f64(0.25);
    let mut a_new = a.clone();
    let mut history = Vec::new();
    let mut converged = false;
    while !converged && history.len() < max_sweeps {
        let mut lanes = vec![empty_lanes::<F>(); ny.div_ceil(16) * nx.div_ceil(128)];
        for y in 1..ny - 1 {
            for x in 1..nx - 1 {
                let i = y * nx + x;
                let mut total = ((a[i + 1] + a[i - 1]) + a[i + nx]) + a[i - nx];
                if let Some(source) = &source {
                    total = total - squared * source[i];
                }
                a_new[i] = if fixed.as_ref().is_some_and(|fixed| fixed[i] != 0) {
                    a[i]
                } else {
                    quarter * total
                };
                let difference = a_new[i] - a[i];
                let lane = &mut lanes[y / 16 * nx.div_ceil(128) + x / 128][x % 128];
                *lane = *lane + difference * difference;
            }
        }
        if matches!(problem.top, Boundary::Periodic) {
            a_new.copy_within((ny - 2) * nx..(ny - 1) * nx, 0);
            a_new.copy_within(nx..2 * nx, (ny - 1) * nx);
        }
        if matches!(problem.left, Boundary::Periodic) {
            for row in a_new.chunks_mut(nx) {
                row[0] = row[nx - 2];
                row[nx - 1] = row[1];
            }
        }
        let mut sum = Superaccumulator::<F>::new();
        lanes.iter().for_each(|lanes| sum.add(combine_lanes(lanes)));
        let sum = sum.round_f64().abs();
        let norm = match problem.norm {
            Norm::L2 => sum.sqrt(),
            Norm::Rms => (sum / (nx * ny) as f64).sqrt(),
        };
        history.push(norm);
        converged = norm <= tolerance;
        std::mem::swap(&mut a, &mut a_new);
    }
    Run {
        field: a,
        history,
        converged,
    }
}

/// The same on a line.
pub fn reference_1d<F: Real>(problem: &Problem1d<F>, tolerance: f64, max_sweeps: usize) -> Run<F> {
    let points = problem.points;
    let half = F::from_f64(0.5);
    let mut a = vec![F::ZERO; points];
    (a[0], a[points - 1]) = (problem.left, problem.right);
    let mut history = Vec::new();
    let mut converged = false;
    while !converged && history.len() < max_sweeps {
        let mut a_new = a.clone();
        let mut lanes = vec![empty_lanes::<F>(); points.div_ceil(2048)];
        for i in 1..points - 1 {
            a_new[i] = half * (a[i - 1] + a[i + 1]);
            let difference = a_new[i] - a[i];
            let lane = &mut lanes[i / 2048][i % 128];
            *lane = *lane + difference * difference;
        }
        let mut sum = Superaccumulator::<F>::new();
        lanes.iter().for_each(|lanes| sum.add(combine_lanes(lanes)));
        let sum = sum.round_f64().abs();
        let norm = match problem.norm {
            Norm::L2 => sum.sqrt(),
            Norm::Rms => (sum / points as f64).sqrt(),
        };
        history.push(norm);
        converged = norm <= tolerance;
        a = a_new;
    }
    Run {
        field: a,
        history,
        converged,
    }
}

/// The solver on `pes` threads; checks that all PEs agree.
pub fn run_2d<F: Real>(problem: &Problem2d<F>, pes: usize, options: &Options<'_>) -> Run<F> {
    let runs = spmd(pes, |pe| {
        let solution = solve_2d(pe, problem, options, |_| {}).unwrap();
        let field = solution.gather_all(pe).unwrap();
        Run {
            field,
            history: solution.history,
            converged: solution.converged,
        }
    })
    .unwrap();
    first_of(runs)
}

/// As [`run_2d`] on a line.
pub fn run_1d<F: Real>(problem: &Problem1d<F>, pes: usize, options: &Options<'_>) -> Run<F> {
    let runs = spmd(pes, |pe| {
        let solution = solve_1d(pe, problem, options, |_| {}).unwrap();
        let field = solution.gather_all(pe).unwrap();
        Run {
            field,
            history: solution.history,
            converged: solution.converged,
        }
    })
    .unwrap();
    first_of(runs)
}

fn first_of<F: Real>(runs: Vec<Run<F>>) -> Run<F> {
    for run in &runs[1..] {
        assert_eq!(run.history, runs[0].history);
        assert_eq!(run.converged, runs[0].converged);
        assert!(run.field.is_empty());
    }
    runs.into_iter().next().unwrap()
}

/// A rough, reproducible number in −1 … 1 for a cell.
pub fn noise(x: usize, y: usize, seed: u64) -> f64 {
    let mut hash = (x as u64) << 40 ^ (y as u64) << 16 ^ seed;
    for _ in 0..2 {
        hash = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (hash >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Which features a test problem has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    pub wrap_x: bool,
    pub wrap_y: bool,
    pub fixed: bool,
    pub source: bool,
}

/// A problem with noise in all its data, ghosts included.
pub fn noisy_problem<F: Real>(nx: usize, ny: usize, features: Features, seed: u64) -> Problem2d<F> {
    let profile = |len: usize, k: usize| {
        Boundary::Fixed(
            (0..len)
                .map(|i| F::from_f64(noise(i, k, seed)))
                .collect::<Vec<F>>(),
        )
    };
    let side = |wrap: bool, len: usize, k: usize| {
        if wrap {
            Boundary::Periodic
        } else {
            profile(len, k)
        }
    };
    let field = move |scale: f64, seed: u64| -> RowSource<F> {
        Arc::new(move |y, row: &mut [F]| {
            row.iter_mut()
                .enumerate()
                .for_each(|(x, value)| *value = F::from_f64(scale * noise(x, y, seed)));
        })
    };
    let mask: RowSource<u8> = Arc::new(move |y, row| {
        row.iter_mut().enumerate().for_each(|(x, byte)| {
            *byte = u8::from(noise(x, y, seed + 9) > 0.7) * (x % 255 + 1) as u8
        });
    });
    Problem2d {
        left: side(features.wrap_x, ny, 1),
        right: side(features.wrap_x, ny, 2),
        top: side(features.wrap_y, nx, 3),
        bottom: side(features.wrap_y, nx, 4),
        initial: Some(field(1.0, seed + 1)),
        fixed: features.fixed.then_some(mask),
        source: features.source.then(|| field(3.0, seed + 2)),
        spacing: 0.3,
        norm: if seed.is_multiple_of(2) {
            Norm::L2
        } else {
            Norm::Rms
        },
        ..Problem2d::laplace(nx, ny)
    }
}

/// `problem` with 2^exponent times all its values; exact unless they leave the normal range.
pub fn times_power<F: Real>(problem: &Problem2d<F>, exponent: i32) -> Problem2d<F> {
    let times = move |value: F| F::from_f64(value.to_f64() * 2f64.powi(exponent));
    let side = |side: &Boundary<F>| match side {
        Boundary::Fixed(profile) => Boundary::Fixed(profile.iter().map(|&v| times(v)).collect()),
        Boundary::Neumann(slopes) => Boundary::Neumann(slopes.iter().map(|&v| times(v)).collect()),
        Boundary::Robin(mixed) => Boundary::Robin(Robin {
            right: mixed.right.iter().map(|&v| times(v)).collect(),
            ..mixed.clone()
        }),
        Boundary::Periodic => Boundary::Periodic,
    };
    let rows = |source: &Option<RowSource<F>>| -> Option<RowSource<F>> {
        let deliver = source.clone()?;
        Some(Arc::new(move |y, row: &mut [F]| {
            deliver(y, row);
            row.iter_mut().for_each(|value| *value = times(*value));
        }))
    };
    Problem2d {
        left: side(&problem.left),
        right: side(&problem.right),
        top: side(&problem.top),
        bottom: side(&problem.bottom),
        initial: rows(&problem.initial),
        source: rows(&problem.source),
        ..problem.clone()
    }
}

impl<F: Real> Run<F> {
    /// With 2^exponent times all values.
    pub fn times_power(&self, exponent: i32) -> Run<F> {
        let power = 2f64.powi(exponent);
        Run {
            field: self
                .field
                .iter()
                .map(|value| F::from_f64(value.to_f64() * power))
                .collect(),
            history: self.history.iter().map(|norm| norm * power).collect(),
            converged: self.converged,
        }
    }
}

//! Multigrid in three dimensions: what it converges to, how fast, and with which bits.

mod boxes;
mod cycles;

use std::f64::consts::PI;
use std::sync::Arc;

use boxes::{by_point, rough, solve, solve_with};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Cycles, First, Method, Options, Problem3d, ProblemError, Side, SolveError, solve_3d,
};
use cycles::options;

/// sin πx sin πy sin πz + ½ sin 3πx sin πy sin πz on the unit cube with `n` intervals, and what the equations of seven
/// points have instead: each wave is one of their eigenvectors.
fn two_waves(n: usize) -> (Problem3d<f64>, Vec<f64>, Vec<f64>) {
    let h = 1.0 / n as f64;
    let wave = move |a: f64, i: usize| (a * PI * i as f64 * h).sin();
    let of = move |x: usize, y: usize, z: usize, parts: [f64; 2]| {
        (parts[0] * wave(1.0, x) + parts[1] * wave(3.0, x)) * (wave(1.0, y) * wave(1.0, z))
    };
    let exact = [3.0 * PI * PI, 11.0 * PI * PI];
    let half = |a: f64| (2.0 / h * (a * PI * h / 2.0).sin()).powi(2);
    let discrete = [3.0 * half(1.0), half(3.0) + 2.0 * half(1.0)];
    let problem = Problem3d {
        source: Some(by_point(move |x, y, z| {
            of(x, y, z, [-exact[0], -0.5 * exact[1]])
        })),
        spacing: [h; 3],
        ..Problem3d::laplace([n + 1; 3])
    };
    let field = |parts: [f64; 2]| -> Vec<f64> {
        let points = (0..=n).flat_map(|z| (0..=n).map(move |y| (y, z)));
        points
            .flat_map(|(y, z)| (0..=n).map(move |x| (x, y, z)))
            .map(|(x, y, z)| of(x, y, z, parts))
            .collect()
    };
    let solution = field([exact[0] / discrete[0], 0.5 * exact[1] / discrete[1]]);
    (problem, field([1.0, 0.5]), solution)
}

fn relative(field: &[f64], exact: &[f64]) -> f64 {
    let norm =
        |of: &dyn Fn(usize) -> f64| (0..exact.len()).map(|i| of(i).powi(2)).sum::<f64>().sqrt();
    norm(&|i| field[i] - exact[i]) / norm(&|i| exact[i])
}

#[test]
fn two_waves_come_out_as_seven_points_have_them() {
    let (problem, exact, discrete) = two_waves(32);
    let solved = solve(&problem, 1e-10, 2);
    assert!(solved.converged && solved.history.len() <= 10);
    assert!(relative(&solved.field, &discrete) < 1e-9);
    // A full cycle is about as good as the equations are.
    let full = solve_with(
        &problem,
        &Options {
            max_sweeps: 1,
            ..options(1e-10)
        },
        1,
    );
    assert!(relative(&full.field, &exact) < 1.5 * relative(&discrete, &exact));
    let v_only = Method::Multigrid(Cycles {
        first: First::V,
        ..Cycles::default()
    });
    let solved = solve_with(
        &problem,
        &Options {
            method: v_only,
            ..options(1e-8)
        },
        1,
    );
    assert!(
        solved.converged && solved.history.len() <= 9,
        "{:?}",
        solved.history
    );
}

#[test]
fn two_waves_of_256_intervals_have_the_error_of_seven_points() {
    let n = 256;
    let h = 1.0 / n as f64;
    let wave = move |a: f64, i: usize| (a * PI * i as f64 * h).sin();
    let across = move |x: usize, parts: [f64; 2]| parts[0] * wave(1.0, x) + parts[1] * wave(3.0, x);
    let rows = |parts| (0..=n).map(|x| across(x, parts)).collect::<Vec<f64>>();
    let (of_source, of_field) = (rows([-3.0 * PI * PI, -5.5 * PI * PI]), rows([1.0, 0.5]));
    let problem = Problem3d {
        source: Some(Arc::new(move |z, y, row: &mut [f64]| {
            let height = wave(1.0, y) * wave(1.0, z);
            for (value, of) in row.iter_mut().zip(&of_source) {
                *value = height * of;
            }
        })),
        spacing: [h; 3],
        ..Problem3d::<f64>::laplace([n + 1; 3])
    };
    // The sums of squares, without a second field of that size.
    let ends = spmd(1, |pe| {
        let solution = solve_3d(pe, &problem, &options(1e-8), |_| {}).unwrap();
        let (mut off, mut all) = (0.0, 0.0);
        for z in solution.rows() {
            for (y, row) in solution.row(z).chunks_exact(n + 1).enumerate() {
                let height = wave(1.0, y) * wave(1.0, z);
                for (value, of) in row.iter().zip(&of_field) {
                    off += (value - height * of).powi(2);
                    all += (height * of).powi(2);
                }
            }
        }
        (solution.converged, solution.sweeps, f64::sqrt(off / all))
    });
    let (converged, cycles, error) = ends.unwrap()[0];
    assert!(converged && cycles <= 8, "{cycles} cycles");
    assert!((error / 4.381e-5 - 1.0).abs() < 0.01, "{error}");
}

/// By how much the worst equation of `problem`, by the letter, does not hold, relative to the largest value.
fn worst_residual(problem: &Problem3d<f64>, field: &[f64]) -> f64 {
    let [nx, ny, nz] = problem.size;
    let at = |p: [usize; 3]| (p[2] * ny + p[1]) * nx + p[0];
    let mut source = vec![0.0; nx];
    let (mut worst, mut size) = (0.0f64, 0.0f64);
    for z in 0..nz {
        for y in 0..ny {
            if let Some(deliver) = &problem.source {
                deliver(z, y, &mut source);
            }
            for (x, &f) in source.iter().enumerate() {
                let place = [x, y, z];
                size = size.max(field[at(place)].abs());
                let ends = |axis: usize| [place[axis] == 0, place[axis] + 1 == problem.size[axis]];
                let fixed = (0..3).any(|axis| {
                    let on = ends(axis);
                    (0..2).any(|k| on[k] && problem.sides[axis][k] == Side::Fixed)
                });
                if fixed {
                    continue;
                }
                let mut residual = -f;
                for axis in 0..3 {
                    let (n, h) = (problem.size[axis], problem.spacing[axis]);
                    for (k, on_end) in ends(axis).into_iter().enumerate() {
                        let mut to = place;
                        let mut flow = 0.0;
                        to[axis] = match (problem.sides[axis][k], on_end) {
                            (Side::Neumann(slope), true) => {
                                flow = 2.0 * h * slope;
                                if k == 0 { 1 } else { n - 2 }
                            }
                            _ => (place[axis] + n + 2 * k - 1) % n,
                        };
                        residual += (field[at(to)] + flow - field[at(place)]) / (h * h);
                    }
                }
                worst = worst.max(residual.abs());
            }
        }
    }
    worst / size.max(1e-300)
}

#[test]
fn boxes_of_all_kinds_and_sizes() {
    let kinds = [
        [Side::Fixed; 2],
        [Side::Neumann(0.5), Side::Fixed],
        [Side::Fixed, Side::Neumann(-0.5)],
        [Side::Periodic; 2],
    ];
    for (which, size) in [
        [3, 3, 3],
        [17, 9, 12],
        [20, 33, 6],
        [7, 8, 40],
        [16, 16, 16],
        [31, 4, 5],
    ]
    .into_iter()
    .enumerate()
    {
        for shift in 0..4 {
            let sides: [_; 3] =
                std::array::from_fn(|axis| kinds[(which + shift * (axis + 1) + axis) % 4]);
            // Without a fixed side: see below.
            if !sides.as_flattened().contains(&Side::Fixed) {
                continue;
            }
            let problem = Problem3d {
                sides,
                source: rough(),
                initial: Some(by_point(|x, y, z| ((x + 2 * y + 3 * z) % 5) as f64)),
                spacing: [0.5, 0.6, 0.45],
                ..Problem3d::laplace(size)
            };
            let solved = solve(&problem, 1e-9, 2);
            assert!(solved.converged, "{size:?} {sides:?} {:?}", solved.history);
            // Small rings of an odd number of points, whose coarse points lie unevenly, take more.
            let small_ring = |axis: usize| sides[axis][0] == Side::Periodic && size[axis] < 8;
            let most = if (0..3).any(small_ring) { 26 } else { 14 };
            let cycles = solved.history.len();
            assert!(cycles <= most, "{size:?} {sides:?}: {cycles} cycles");
            let worst = worst_residual(&problem, &solved.field);
            assert!(worst < 1e-6, "{size:?} {sides:?}: {worst}");
        }
    }
}

#[test]
fn nothing_fixed_gives_a_mean_of_zero_or_an_error() {
    let wave = |x: usize, y: usize, z: usize| {
        let of = |i: usize, n: usize| (2.0 * PI * i as f64 / n as f64).cos();
        of(x, 24) * of(y, 21) + of(z, 19)
    };
    let problem = Problem3d {
        sides: [[Side::Periodic; 2]; 3],
        source: Some(by_point(wave)),
        ..Problem3d::laplace([24, 21, 19])
    };
    let solved = solve(&problem, 1e-9, 2);
    assert!(solved.converged && worst_residual(&problem, &solved.field) < 1e-6);
    let mean = solved.field.iter().sum::<f64>() / solved.field.len() as f64;
    assert!(mean.abs() < 1e-10, "{mean}");
    let uneven = Problem3d {
        source: Some(by_point(move |x, y, z| 1.0 + wave(x, y, z))),
        ..problem
    };
    assert!(matches!(
        refusal(&uneven),
        ProblemError::Incompatible { .. }
    ));
    // On request the mean, 1 of about 1.6, is taken away.
    for method in [
        Method::Multigrid(Cycles::default()),
        Method::PlainGradients,
        Method::Chebyshev,
    ] {
        let options = Options {
            method,
            project_source: true,
            ..Options::new(1e-10, 500)
        };
        let all = spmd(2, |pe| {
            let solution = solve_3d(pe, &uneven, &options, |_| {}).unwrap();
            (solution.gather_all(pe).unwrap(), solution.projected)
        });
        let (field, projected) = all.unwrap().remove(0);
        let projected = projected.expect("it does not cancel");
        assert!(projected.abs() > 0.5, "{projected}");
        let worst = field.iter().zip(&solved.field);
        let worst = worst.fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs()));
        assert!(worst < 1e-6, "{worst}");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_pes() {
    let around = [[Side::Periodic; 2], [Side::Fixed; 2], [Side::Periodic; 2]];
    for (sides, size) in [
        (
            [[Side::Fixed; 2], [Side::Neumann(0.5); 2], [Side::Fixed; 2]],
            [21, 18, 115],
        ),
        (around, [21, 18, 115]),
        // Rings of an even length, whose points have two colours.
        (around, [22, 18, 116]),
    ] {
        let problem = Problem3d {
            sides,
            source: rough(),
            ..Problem3d::laplace(size)
        };
        let alone = solve(&problem, 1e-9, 1);
        assert!(alone.converged);
        for pes in [2, 3, 5, 8] {
            let shared = solve(&problem, 1e-9, pes);
            assert_eq!(alone.history, shared.history, "{pes} PEs");
            assert!(alone.field == shared.field, "{pes} PEs");
        }
    }
}

#[test]
fn what_rounding_allows_is_told_from_what_was_asked_for() {
    let (problem, ..) = two_waves(16);
    let solved = solve(&problem, 1e-17, 1);
    assert!(
        !solved.converged && solved.floor_reached,
        "{:?}",
        solved.history
    );
    // They ended with the first cycle that left much of at most twice what rounding leaves.
    let floor = spmd(2, |pe| {
        let solution = solve_3d(pe, &problem, &options(1e-17), |_| {});
        solution.unwrap().floor.unwrap()
    });
    let floor = floor.unwrap().remove(0);
    let is_end = |pair: &[f64]| pair[1] <= 2.0 * floor && pair[1] > 0.4 * pair[0];
    let end = solved.history.windows(2).position(is_end);
    let last = solved.history.len() - 2;
    assert_eq!(end, Some(last), "{floor}: {:?}", solved.history);
    let nothing = Problem3d::laplace([9, 9, 9]);
    let solved = solve(&nothing, 1e-8, 1);
    assert!(solved.converged && solved.history.is_empty());
}

fn refusal(problem: &Problem3d<f64>) -> ProblemError {
    let error = spmd(2, |pe| solve_3d(pe, problem, &options(1e-8), |_| {}).err());
    match error.unwrap().remove(0) {
        Some(SolveError::Problem(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let plain = || Problem3d::<f64>::laplace([8, 9, 10]);
    let texts = [
        (
            Problem3d::laplace([8, 2, 10]),
            "a grid of 8 x 2 x 10 points has no inner point: all sizes must be at least 3",
        ),
        (
            Problem3d {
                sides: [
                    [Side::Fixed; 2],
                    [Side::Periodic, Side::Fixed],
                    [Side::Fixed; 2],
                ],
                ..plain()
            },
            "the top side is periodic but the bottom side is not: opposite sides wrap around together",
        ),
        (
            Problem3d {
                spacing: [1.0, 0.0, 1.0],
                ..plain()
            },
            "a grid spacing of 0: it must be positive and finite, and so must its square",
        ),
        (
            Problem3d {
                initial: Some(by_point(|x, y, z| {
                    if (x, y, z) == (1, 2, 9) {
                        f64::NAN
                    } else {
                        0.0
                    }
                })),
                ..plain()
            },
            "the value at x = 1, y = 2, z = 9 (point numbers) is not finite",
        ),
        (
            Problem3d {
                source: Some(by_point(|x, y, z| {
                    if (x, y, z) == (3, 2, 1) {
                        f64::INFINITY
                    } else {
                        0.0
                    }
                })),
                ..plain()
            },
            "the source at x = 3, y = 2, z = 1 (point numbers) is not finite",
        ),
    ];
    for (problem, expected) in texts {
        assert_eq!(refusal(&problem).to_string(), expected);
    }
    let by_jacobi = spmd(1, |pe| {
        let solved = solve_3d(pe, &plain(), &Options::new(1e-3, 10), |_| {});
        solved.err().unwrap().to_string()
    });
    assert!(by_jacobi.unwrap()[0].contains("Jacobi sweeps are for lines and planes only"));
}

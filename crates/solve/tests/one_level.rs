//! Chebyshev's iteration and conjugate gradients without cycles: what they converge to, how fast, and with which bits.

mod cycles;

use std::f64::consts::PI;

use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Method, Options, OptionsError, Problem2d, Problem3d, ProblemError, Real, Robin,
    RowSource, SolveError, solve_2d, solve_3d,
};
use cycles::{Solved, by_cell, mask, noise, options, solve, solve_with};

const METHODS: [Method; 2] = [Method::Chebyshev, Method::PlainGradients];

fn by<F: Real>(method: &Method, problem: &Problem2d<F>, tolerance: f64, pes: usize) -> Solved<F> {
    let options = Options {
        method: method.clone(),
        ..Options::new(tolerance, 20_000)
    };
    solve_with(problem, &options, pes)
}

fn rough_source<F: Real>() -> Option<RowSource<F>> {
    Some(by_cell::<F>(|x, y| (noise(x, y, 1) % 11) as f64 - 5.0))
}

fn neumann(n: usize) -> Boundary<f64> {
    Boundary::Neumann((0..n).map(|i| (i % 5) as f64 - 2.0).collect())
}

fn flat(n: usize) -> Boundary<f64> {
    Boundary::Neumann(vec![0.0; n])
}

/// Problems with a bound, with the steps that it allows: ln(2 / tolerance) √(2 / least) / 2, and some for the first
/// residual, which is measured in another norm.
fn problems() -> Vec<(&'static str, Problem2d<f64>)> {
    let (nx, ny) = (91, 74);
    let base = Problem2d {
        source: rough_source(),
        ..Problem2d::laplace(nx, ny)
    };
    let mixed = |n| {
        Boundary::Robin(Robin {
            value: vec![1.0; n],
            derivative: vec![2.0; n],
            right: vec![0.5; n],
        })
    };
    vec![
        ("sides", base.clone()),
        (
            "mirrors",
            Problem2d {
                left: neumann(ny),
                top: neumann(nx),
                ..base.clone()
            },
        ),
        (
            "a strip",
            Problem2d {
                left: Boundary::Periodic,
                right: Boundary::Periodic,
                ..base.clone()
            },
        ),
        (
            "a mask alone",
            Problem2d {
                left: flat(ny),
                right: flat(ny),
                top: flat(nx),
                bottom: flat(nx),
                fixed: mask(|x, y| (x + 3 * y) % 29 == 0),
                ..base.clone()
            },
        ),
        (
            "nothing fixed",
            Problem2d {
                left: flat(ny),
                right: flat(ny),
                top: flat(nx),
                bottom: flat(nx),
                source: Some(by_cell(|x, y| {
                    (PI * x as f64 / 90.0).cos() * (2.0 * PI * y as f64 / 73.0).cos()
                })),
                ..base.clone()
            },
        ),
        (
            "a coefficient",
            Problem2d {
                coefficient: Some(by_cell(|x, y| 1.0 + (noise(x, y, 3) % 5) as f64)),
                right: mixed(ny),
                ..base.clone()
            },
        ),
        (
            "two spacings and a term in u",
            Problem2d {
                spacing: 0.02,
                row_spacing: Some(0.03),
                reaction: Some(by_cell(|x, _| 50.0 + x as f64)),
                left: flat(ny),
                right: flat(ny),
                top: flat(nx),
                bottom: mixed(nx),
                ..base
            },
        ),
    ]
}

#[test]
fn both_come_to_what_multigrid_does() {
    for (what, problem) in problems() {
        let exact = solve(&problem, 1e-11, 1);
        assert!(exact.converged, "{what}");
        let largest = exact.field.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for method in METHODS {
            let solved = by(&method, &problem, 1e-10, 1);
            let steps = solved.history.len();
            assert!(solved.converged, "{what}, {method:?}: {steps} steps");
            // A periodic side's ghosts, and the mean of a singular problem, are in the field as of multigrid.
            let pairs = solved.field.iter().zip(&exact.field);
            let worst = pairs.fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs()));
            assert!(worst < 1e-6 * largest, "{what}, {method:?}: {worst}");
        }
    }
}

#[test]
fn steps_are_as_many_as_the_bound_says() {
    // On n x n intervals the least eigenvalue of a quarter of the operator is 2 sin²(π / 2n), and the largest below 2.
    for n in [32usize, 64, 128] {
        let problem = Problem2d {
            source: rough_source::<f64>(),
            ..Problem2d::laplace(n + 1, n + 1)
        };
        let least = 2.0 * (PI / (2 * n) as f64).sin().powi(2);
        let factor = (2.0 / least).sqrt();
        let most = 0.5 * factor * (2.0f64 / 1e-8).ln();
        for method in METHODS {
            let steps = by(&method, &problem, 1e-8, 2).history.len() as f64;
            assert!(
                steps <= most && steps > 0.3 * most,
                "{n}, {method:?}: {steps} of {most}"
            );
        }
        // The error of each step of Chebyshev's iteration is below 2 / (r^k + r^-k), in the norm of these residuals, whose
        // operator is symmetric.
        let history = by(&Method::Chebyshev, &problem, 1e-8, 1).history;
        let ratio = (factor + 1.0) / (factor - 1.0);
        for (k, relative) in history.iter().enumerate() {
            let power = ratio.powi(k as i32 + 1);
            assert!(
                *relative <= 1.001 * 2.0 / (power + 1.0 / power),
                "{n}, step {}",
                k + 1
            );
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_pes() {
    for (what, problem) in problems() {
        for method in METHODS {
            let alone = by(&method, &problem, 1e-6, 1);
            for pes in [2, 3, 5, 8] {
                let shared = by(&method, &problem, 1e-6, pes);
                assert_eq!(
                    alone.history, shared.history,
                    "{what}, {method:?}, {pes} PEs"
                );
                let pairs = alone.field.iter().zip(&shared.field);
                let same = pairs.into_iter().all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{what}, {method:?}, {pes} PEs");
            }
        }
    }
    // Large enough for five PEs to have parts, and too small for eight.
    let large = Problem2d {
        source: rough_source::<f32>(),
        fixed: mask(|x, y| noise(x, y, 7).is_multiple_of(20)),
        top: Boundary::Periodic,
        bottom: Boundary::Periodic,
        ..Problem2d::laplace(211, 150)
    };
    for method in METHODS {
        let alone = by(&method, &large, 1e-7, 1);
        assert!(alone.converged);
        for pes in [2, 3, 5, 8] {
            let shared = by(&method, &large, 1e-7, pes);
            assert_eq!(alone.history, shared.history, "{method:?}, {pes} PEs");
            assert_eq!(alone.field, shared.field, "{method:?}, {pes} PEs");
        }
    }
}

#[test]
fn a_negative_zero_counts_as_zero() {
    // The first PE has no other term in u, the last one large ones only.
    let problem = Problem2d {
        source: Some(by_cell::<f64>(|_, _| 1.0)),
        reaction: Some(by_cell(|_, y| if y < 48 { -0.0 } else { 1000.0 })),
        ..Problem2d::laplace(70, 96)
    };
    let alone = by(&Method::Chebyshev, &problem, 1e-8, 1);
    assert!(alone.converged);
    for pes in [2, 3] {
        let shared = by(&Method::Chebyshev, &problem, 1e-8, pes);
        assert_eq!(alone.history, shared.history, "{pes} PEs");
        assert_eq!(alone.field, shared.field, "{pes} PEs");
    }
}

#[test]
fn what_rounding_allows_is_told_from_what_was_asked_for() {
    let problem = Problem2d {
        source: rough_source::<f64>(),
        ..Problem2d::laplace(65, 65)
    };
    for method in METHODS {
        let solved = by(&method, &problem, 1e-16, 1);
        assert!(solved.floor_reached && !solved.converged, "{method:?}");
        assert!(solved.history.last().unwrap() < &1e-12);
        let nothing = by(&method, &Problem2d::<f32>::laplace(30, 20), 1e-8, 2);
        assert!(nothing.converged && nothing.history.is_empty());
    }
}

#[test]
fn magnitudes_do_not_matter() {
    for method in METHODS {
        for size in [1e-300f64, 1e-30, 1e30, 1e300] {
            let problem = Problem2d {
                top: Boundary::Fixed(vec![size; 33]),
                ..Problem2d::laplace(33, 33)
            };
            let solved = by(&method, &problem, 1e-11, 1);
            let middle = solved.field[16 * 33 + 16] / size;
            assert!(
                solved.converged && (middle - 0.25).abs() < 1e-9,
                "{size}: {middle}"
            );
        }
    }
}

#[test]
fn what_can_not_be_is_refused() {
    let refused = |problem: &Problem2d<f64>, options: &Options<'_>| {
        let all = spmd(2, |pe| {
            solve_2d(pe, problem, options, |_| {})
                .map(drop)
                .unwrap_err()
        });
        all.unwrap().swap_remove(1)
    };
    let with = |method: Method| Options {
        method,
        ..options(1e-8)
    };
    // Row 7 has no fixed cell, nor has column 9.
    let one_cell = Problem2d {
        left: flat(120),
        right: flat(120),
        top: flat(100),
        bottom: flat(100),
        fixed: mask(|x, y| (x, y) == (50, 60)),
        source: rough_source(),
        ..Problem2d::laplace(100, 120)
    };
    let error = refused(&one_cell, &with(Method::Chebyshev));
    assert!(
        matches!(error, SolveError::Problem(ProblemError::NoBound)),
        "{error}"
    );
    assert!(by(&Method::PlainGradients, &one_cell, 1e-8, 2).converged);
    let box_ = Problem3d::<f64>::laplace([9; 3]);
    let sweeps = with(Method::Jacobi);
    let all = spmd(1, |pe| {
        solve_3d(pe, &box_, &sweeps, |_| {}).map(drop).unwrap_err()
    });
    let error = all.unwrap().remove(0);
    assert!(
        matches!(error, SolveError::Options(OptionsError::NotInSpace)),
        "{error}"
    );
}

//! Chebyshev's iteration and conjugate gradients without cycles in boxes: what they converge to, how fast, with which bits,
//! and from checkpoints.

mod boxes;
mod cycles;

use std::f64::consts::PI;
use std::path::Path;

use boxes::{by_point, mask, rough, solve_with};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    CheckpointKind, Checkpointing, Method, Options, Problem3d, ProblemError, Side, SolveError,
    checkpoint_kind, solve_3d,
};
use cycles::{noise, options};

const METHODS: [Method; 2] = [Method::Chebyshev, Method::PlainGradients];

fn by(method: &Method, tolerance: f64) -> Options<'static> {
    Options {
        method: method.clone(),
        ..Options::new(tolerance, 5000)
    }
}

const FLAT: [Side<f64>; 2] = [Side::Neumann(0.0); 2];

/// Boxes with a bound. All are large enough that three PEs have parts of their own.
fn problems() -> Vec<(&'static str, Problem3d<f64>)> {
    let size = [23, 30, 41];
    let base = Problem3d {
        source: rough(),
        ..Problem3d::laplace(size)
    };
    let robin = Side::Robin {
        value: 1.0,
        derivative: 2.0,
        right: 0.5,
    };
    vec![
        ("sides", base.clone()),
        (
            "mirrors, a ring and three spacings",
            Problem3d {
                sides: [
                    [Side::Neumann(1.0), Side::Fixed],
                    [Side::Periodic; 2],
                    [Side::Fixed, Side::Neumann(-2.0)],
                ],
                spacing: [0.02, 0.03, 0.025],
                ..base.clone()
            },
        ),
        (
            "a mask alone",
            Problem3d {
                sides: [FLAT, FLAT, FLAT],
                fixed: mask(|x, y, z| (x + 3 * y + 5 * z) % 17 == 0),
                ..base.clone()
            },
        ),
        (
            "nothing fixed",
            Problem3d {
                sides: [FLAT, [Side::Periodic; 2], FLAT],
                source: Some(by_point(|x, _, z| {
                    (PI * x as f64 / 22.0).cos() * (2.0 * PI * z as f64 / 40.0).cos()
                })),
                ..base.clone()
            },
        ),
        (
            "a coefficient",
            Problem3d {
                coefficient: Some(by_point(|x, y, z| {
                    1.0 + (noise(x, y + 99 * z, 3) % 5) as f64
                })),
                sides: [[Side::Fixed, robin], [Side::Fixed; 2], [Side::Periodic; 2]],
                ..base.clone()
            },
        ),
        (
            "a term in u",
            Problem3d {
                spacing: [0.1; 3],
                reaction: Some(by_point(|x, _, _| 5.0 + x as f64)),
                sides: [FLAT, FLAT, [Side::Neumann(0.0), robin]],
                ..base
            },
        ),
    ]
}

#[test]
fn both_come_to_what_multigrid_does() {
    for (what, problem) in problems() {
        let exact = solve_with(&problem, &options(1e-11), 1);
        assert!(exact.converged, "{what}");
        let largest = exact.field.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for method in METHODS {
            let solved = solve_with(&problem, &by(&method, 1e-10), 1);
            let steps = solved.history.len();
            assert!(solved.converged, "{what}, {method:?}: {steps} steps");
            let pairs = solved.field.iter().zip(&exact.field);
            let worst = pairs.fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs()));
            assert!(worst < 1e-6 * largest, "{what}, {method:?}: {worst}");
        }
    }
}

#[test]
fn steps_are_as_many_as_the_bound_says() {
    // On n intervals along each axis the least eigenvalue of a sixth of the operator is 2 sin²(π / 2n), the largest below 2.
    for n in [16usize, 32] {
        let problem = Problem3d {
            source: rough(),
            ..Problem3d::laplace([n + 1; 3])
        };
        let least = 2.0 * (PI / (2 * n) as f64).sin().powi(2);
        let factor = (2.0 / least).sqrt();
        let most = 0.5 * factor * (2.0f64 / 1e-8).ln();
        for method in METHODS {
            let steps = solve_with(&problem, &by(&method, 1e-8), 2).history.len() as f64;
            assert!(
                steps <= most && steps > 0.3 * most,
                "{n}, {method:?}: {steps} of {most}"
            );
        }
        // Step by step: the error of Chebyshev's iteration is below 2 / (r^k + r^-k), in the norm of these residuals, whose
        // operator is symmetric.
        let history = solve_with(&problem, &by(&Method::Chebyshev, 1e-8), 1).history;
        let ratio = (factor + 1.0) / (factor - 1.0);
        for (k, relative) in history.iter().enumerate() {
            let power = ratio.powi(k as i32 + 1);
            let bound = 2.0 / (power + 1.0 / power);
            assert!(*relative <= 1.001 * bound, "{n}, step {}", k + 1);
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_pes() {
    for (what, problem) in problems() {
        for method in METHODS {
            let alone = solve_with(&problem, &by(&method, 1e-5), 1);
            assert!(alone.converged);
            // Five and eight are more than have 13 planes each.
            for pes in [2, 3, 5, 8] {
                let shared = solve_with(&problem, &by(&method, 1e-5), pes);
                assert!(
                    alone.bits() == shared.bits(),
                    "{what}, {method:?}, {pes} PEs"
                );
            }
        }
    }
}

#[test]
fn a_negative_zero_counts_as_zero() {
    // The first PE has no other term in u, the last one large ones only.
    let problem = Problem3d {
        source: Some(by_point(|_, _, _| 1.0)),
        reaction: Some(by_point(|_, _, z| if z < 20 { -0.0 } else { 1000.0 })),
        ..Problem3d::laplace([20, 20, 40])
    };
    let options = by(&Method::Chebyshev, 1e-8);
    let alone = solve_with(&problem, &options, 1);
    assert!(alone.converged);
    for pes in [2, 3] {
        assert!(
            alone.bits() == solve_with(&problem, &options, pes).bits(),
            "{pes} PEs"
        );
    }
}

#[test]
fn what_rounding_allows_is_told_from_what_was_asked_for() {
    let problem = Problem3d {
        source: rough(),
        ..Problem3d::laplace([17; 3])
    };
    for method in METHODS {
        let solved = solve_with(&problem, &by(&method, 1e-17), 1);
        assert!(solved.floor_reached && !solved.converged, "{method:?}");
        assert!(solved.history.last().unwrap() < &1e-12);
        let nothing = solve_with(&Problem3d::laplace([9, 8, 7]), &by(&method, 1e-8), 2);
        assert!(nothing.converged && nothing.history.is_empty());
    }
}

#[test]
fn magnitudes_do_not_matter() {
    for method in METHODS {
        for size in [1e-300f64, 1e-30, 1e30, 1e300] {
            let problem = Problem3d {
                initial: Some(by_point(move |_, _, z| if z == 0 { size } else { 0.0 })),
                coefficient: Some(by_point(|_, _, _| 1e200)),
                ..Problem3d::laplace([17; 3])
            };
            let solved = solve_with(&problem, &by(&method, 1e-11), 1);
            // One side of six at 1, the others at 0.
            let middle = solved.field[(8 * 17 + 8) * 17 + 8] / size;
            assert!(
                solved.converged && (middle - 1.0 / 6.0).abs() < 1e-9,
                "{size}: {middle}"
            );
        }
    }
}

#[test]
fn resumed_steps_end_with_the_same_bits_on_any_pes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let resuming = |options: &Options<'static>, path: &Path| Options {
        resume: Some(path.to_owned()),
        ..options.clone()
    };
    for (what, problem) in problems() {
        for (method, kind) in METHODS
            .into_iter()
            .zip([CheckpointKind::Chebyshev, CheckpointKind::Gradients])
        {
            let options = by(&method, 1e-6);
            let straight = solve_with(&problem, &options, 2);
            for (stop, before, after) in [(1, 1, 3), (6, 3, 1)] {
                let saving = Options {
                    checkpoint: Some(Checkpointing {
                        path: path.clone(),
                        every: 2,
                    }),
                    max_sweeps: stop,
                    ..options.clone()
                };
                solve_with(&problem, &saving, before);
                assert_eq!(checkpoint_kind(&path).unwrap(), kind);
                let resumed = solve_with(&problem, &resuming(&options, &path), after);
                assert!(
                    resumed.bits() == straight.bits(),
                    "{what}, {method:?}, {stop}"
                );
            }
            // Cycles do not go on from there.
            let cycles = resuming(&cycles::options(1e-8), &path);
            let refused = spmd(2, |pe| {
                let solved = solve_3d(pe, &problem, &cycles, |_| {});
                matches!(solved.map(drop), Err(SolveError::Checkpoint(_)))
            });
            assert!(refused.unwrap().iter().all(|&refused| refused));
        }
    }
}

#[test]
fn without_a_bound_chebyshev_is_refused_and_gradients_are_not() {
    // Lines along each axis without a fixed point.
    let problem = Problem3d {
        sides: [FLAT, FLAT, FLAT],
        fixed: mask(|x, y, z| (x, y, z) == (3, 7, 5)),
        source: rough(),
        ..Problem3d::laplace([12, 13, 14])
    };
    let options = by(&Method::Chebyshev, 1e-8);
    let refused = spmd(2, |pe| {
        let solved = solve_3d(pe, &problem, &options, |_| {});
        match solved.map(drop) {
            Err(SolveError::Problem(ProblemError::NoBound)) => true,
            other => panic!("{other:?}"),
        }
    });
    assert!(refused.unwrap().iter().all(|&refused| refused));
    assert!(solve_with(&problem, &by(&Method::PlainGradients, 1e-8), 2).converged);
}

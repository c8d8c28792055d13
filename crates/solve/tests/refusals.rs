//! Problems and options that make no sense, and what every PE says about them.

use std::sync::Arc;

use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Checkpointing, Norm, Options, OptionsError, Problem1d, Problem2d, ProblemError,
    RowSource, SolveError, solve_1d, solve_2d,
};

/// The error, which must be the same on three PEs.
fn refused(problem: &Problem2d<f32>, options: &Options<'_>) -> SolveError {
    let mut errors = spmd(3, |pe| {
        solve_2d(pe, problem, options, |_| {})
            .err()
            .expect("refused")
    })
    .unwrap();
    let first = errors.remove(0);
    for error in errors {
        assert_eq!(error.to_string(), first.to_string());
    }
    first
}

fn problem_error(problem: &Problem2d<f32>) -> ProblemError {
    match refused(problem, &Options::new(1e-3, 10)) {
        SolveError::Problem(error) => error,
        other => panic!("{other}"),
    }
}

fn base() -> Problem2d<f32> {
    Problem2d::laplace(50, 100)
}

#[test]
fn sizes() {
    for (nx, ny) in [(0, 0), (0, 5), (5, 0), (2, 5), (5, 2), (1, 1)] {
        assert_eq!(
            problem_error(&Problem2d::laplace(nx, ny)),
            ProblemError::TooSmall { nx, ny }
        );
    }
    let (nx, ny) = (usize::MAX / 2, 5);
    let problem = Problem2d {
        nx,
        ..Problem2d::laplace(5, 5)
    };
    assert_eq!(problem_error(&problem), ProblemError::TooLarge { nx, ny });
    let line = Problem1d {
        points: 2,
        left: 0.0f32,
        right: 1.0,
        norm: Norm::Rms,
    };
    let errors = spmd(2, |pe| {
        solve_1d(pe, &line, &Options::new(0.1, 1), |_| {})
            .err()
            .unwrap()
            .to_string()
    })
    .unwrap();
    assert_eq!(
        errors[1],
        "2 points: a line needs at least 3, two ends and one between"
    );
}

#[test]
fn sides() {
    let problem = Problem2d {
        left: Boundary::Fixed(vec![0.0; 99]),
        ..base()
    };
    assert_eq!(
        problem_error(&problem),
        ProblemError::ProfileLength {
            side: "left",
            length: 99,
            expected: 100
        }
    );
    let mut profile = vec![0.0; 50];
    profile[7] = f32::INFINITY;
    let problem = Problem2d {
        bottom: Boundary::Fixed(profile),
        ..base()
    };
    assert_eq!(
        problem_error(&problem),
        ProblemError::Boundary {
            side: "bottom",
            index: 7,
            value: f64::INFINITY
        }
    );
    let problem = Problem2d {
        bottom: Boundary::Periodic,
        ..base()
    };
    assert_eq!(
        problem_error(&problem),
        ProblemError::HalfPeriodic {
            periodic: "bottom",
            fixed: "top"
        }
    );
    for spacing in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-30, 1e30] {
        assert!(
            matches!(
                problem_error(&Problem2d { spacing, ..base() }),
                ProblemError::Spacing { .. }
            ),
            "{spacing}"
        );
    }
}

#[test]
fn bad_cells_are_named_by_all_pes() {
    // Two bad cells on two PEs: the first in reading order is named.
    let initial: RowSource<f32> = Arc::new(|y, row| {
        if y == 40 || y == 90 {
            row[11] = f32::NAN;
        }
    });
    let problem = Problem2d {
        initial: Some(initial),
        ..base()
    };
    assert_eq!(
        problem_error(&problem),
        ProblemError::Value { x: 11, y: 40 }
    );
    let source: RowSource<f32> =
        Arc::new(|y, row| row[12] = if y == 77 { f32::NEG_INFINITY } else { 1.0 });
    let problem = Problem2d {
        source: Some(source),
        ..base()
    };
    assert_eq!(
        problem_error(&problem),
        ProblemError::Source { x: 12, y: 77 }
    );
    let problem = Problem2d {
        fixed: Some(Arc::new(|_, row: &mut [u8]| row.fill(1))),
        ..base()
    };
    assert_eq!(problem_error(&problem), ProblemError::NothingFree);
}

#[test]
fn options() {
    let checkpoint = Some(Checkpointing {
        path: "never".into(),
        every: 0,
    });
    for (options, expected) in [
        (
            Options::new(-1.0, 10),
            OptionsError::Tolerance { tolerance: -1.0 },
        ),
        (Options::new(1.0, 0), OptionsError::NoSweeps),
        (
            Options {
                sweeps_per_pass: Some(0),
                ..Options::new(1.0, 1)
            },
            OptionsError::EmptyPass,
        ),
        (
            Options {
                checkpoint,
                ..Options::new(1.0, 1)
            },
            OptionsError::NeverCheckpoint,
        ),
    ] {
        match refused(&base(), &options) {
            SolveError::Options(error) => assert_eq!(error, expected),
            other => panic!("{other}"),
        }
    }
    assert!(matches!(
        refused(&base(), &Options::new(f64::NAN, 10)),
        SolveError::Options(OptionsError::Tolerance { .. })
    ));
}

#[test]
fn not_converging_is_no_error() {
    let ends = spmd(2, |pe| {
        let problem = Problem2d {
            top: Boundary::Fixed(vec![1.0; 50]),
            ..base()
        };
        let solution = solve_2d(pe, &problem, &Options::new(1e-9, 10), |_| {}).unwrap();
        (
            solution.converged,
            solution.sweeps,
            solution.cell_updates,
            solution.history.len(),
        )
    })
    .unwrap();
    assert_eq!(ends, [(false, 10, 48 * 98 * 10, 10); 2]);
}

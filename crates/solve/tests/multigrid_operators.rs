//! Multigrid with coefficients, a term cu, two spacings, and mixed conditions.

mod cycles;

use std::f64::consts::PI;

use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Cycles, Method, Options, Problem2d, ProblemError, Robin, SolveError, solve_2d,
};
use cycles::{by_cell, mask, noise, options, solve, solve_cg, solve_with};

/// The largest difference from `exact`, at x and y by column and row times the spacings.
fn worst(problem: &Problem2d<f64>, field: &[f64], exact: impl Fn(f64, f64) -> f64) -> f64 {
    let [h_x, h_y] = [
        problem.spacing,
        problem.row_spacing.unwrap_or(problem.spacing),
    ];
    let at = |i: usize| ((i % problem.nx) as f64 * h_x, (i / problem.nx) as f64 * h_y);
    (0..field.len())
        .map(|i| (field[i] - exact(at(i).0, at(i).1)).abs())
        .fold(0.0, f64::max)
}

/// `exact` on all sides of an nx × ny grid.
fn with_sides(
    nx: usize,
    ny: usize,
    [h_x, h_y]: [f64; 2],
    exact: impl Fn(f64, f64) -> f64,
) -> Problem2d<f64> {
    let (right, bottom) = ((nx - 1) as f64 * h_x, (ny - 1) as f64 * h_y);
    let column = |x: f64| Boundary::Fixed((0..ny).map(|y| exact(x, y as f64 * h_y)).collect());
    let row = |y: f64| Boundary::Fixed((0..nx).map(|x| exact(x as f64 * h_x, y)).collect());
    Problem2d {
        left: column(0.0),
        right: column(right),
        top: row(0.0),
        bottom: row(bottom),
        spacing: h_x,
        row_spacing: Some(h_y),
        ..Problem2d::laplace(nx, ny)
    }
}

/// Second differences of x² and y² are exact.
#[test]
fn two_spacings_and_a_term_in_u() {
    let spacings = [0.02, 0.03];
    let exact = |x: f64, y: f64| x * x + 2.0 * y * y - x * y;
    let c = |x: f64, y: f64| 3.0 + x + y;
    let at = move |x: usize, y: usize| (x as f64 * spacings[0], y as f64 * spacings[1]);
    let problem = Problem2d {
        reaction: Some(by_cell(move |x, y| c(at(x, y).0, at(x, y).1))),
        source: Some(by_cell(move |x, y| {
            let (x, y) = at(x, y);
            6.0 - c(x, y) * exact(x, y)
        })),
        ..with_sides(65, 90, spacings, exact)
    };
    let solved = solve(&problem, 1e-12, 2);
    assert!(
        solved.converged && solved.history.len() <= 18,
        "{:?}",
        solved.history
    );
    let worst = worst(&problem, &solved.field, exact);
    assert!(worst < 1e-10, "{worst}");
}

/// Of u linear, flows are exact, halved cells at mixed sides included.
#[test]
fn mixed_conditions() {
    let spacings = [0.02, 0.025];
    let (nx, ny) = (70, 51);
    let exact = |x: f64, y: f64| 1.0 + 2.0 * x - y;
    let mut problem = with_sides(nx, ny, spacings, exact);
    let mixed = |n: usize, slope: f64, value: &dyn Fn(usize) -> f64| {
        let a = |i: usize| (i % 3) as f64;
        let b = |i: usize| 0.5 + (i % 2) as f64;
        Boundary::Robin(Robin {
            value: (0..n).map(a).collect(),
            derivative: (0..n).map(b).collect(),
            right: (0..n).map(|i| a(i) * value(i) + b(i) * slope).collect(),
        })
    };
    let bottom = (ny - 1) as f64 * spacings[1];
    problem.left = mixed(ny, -2.0, &|y| exact(0.0, y as f64 * spacings[1]));
    problem.bottom = mixed(nx, -1.0, &|x| exact(x as f64 * spacings[0], bottom));
    // Outwards at the top is −y.
    problem.top = Boundary::Neumann(vec![1.0; nx]);
    let solved = solve(&problem, 1e-12, 3);
    assert!(solved.converged && solved.history.len() <= 14);
    let worst = worst(&problem, &solved.field, exact);
    assert!(worst < 1e-10, "{worst}");
}

/// Conductors in series: what each step takes of the whole is its share of the resistance.
#[test]
fn a_coefficient_that_jumps() {
    let (nx, ny, h) = (64, 40, 1.0 / 63.0);
    let kappa = |x: usize| if x < 32 { 1.0 } else { 100.0 };
    let resistance = move |x: usize| 2.0 / (kappa(x) + kappa(x + 1));
    let until = move |x: usize| (0..x).map(resistance).sum::<f64>();
    let exact = move |x: f64, _: f64| until((x / h).round() as usize) / until(nx - 1);
    let problem = Problem2d {
        coefficient: Some(by_cell(move |x, _| kappa(x))),
        row_spacing: None,
        ..with_sides(nx, ny, [h, h], exact)
    };
    let solved = solve(&problem, 1e-12, 1);
    assert!(solved.converged);
    let worst = worst(&problem, &solved.field, exact);
    assert!(worst < 1e-10, "{worst}");
}

fn rough(problem: Problem2d<f64>) -> Problem2d<f64> {
    Problem2d {
        source: Some(by_cell(|x, y| (noise(x, y, 1) % 11) as f64 - 5.0)),
        ..problem
    }
}

/// A smooth coefficient, and jumps of 10⁴ in squares of several sizes.
#[test]
fn coefficients_take_few_cycles() {
    let n = 257;
    let h = 1.0 / (n - 1) as f64;
    let smooth = Problem2d {
        coefficient: Some(by_cell(move |x, y| {
            let (x, y) = (x as f64 * h, y as f64 * h);
            (2.0 * (3.0 * PI * x).sin() * (2.0 * PI * y).sin()).exp()
        })),
        spacing: h,
        ..Problem2d::laplace(n, n)
    };
    let solved = solve(&rough(smooth), 1e-8, 1);
    let cycles = solved.history.len();
    assert!(solved.converged && cycles <= 9, "{cycles} cycles");
    // How many it takes depends on how their sides lie on the coarse points.
    for (square, most) in [(1, 10), (3, 13), (4, 13), (16, 13), (50, 13)] {
        let board = Problem2d {
            coefficient: Some(by_cell(move |x, y| {
                if (x / square + y / square) % 2 == 0 {
                    1.0
                } else {
                    1e4
                }
            })),
            ..Problem2d::laplace(n, n)
        };
        let solved = solve_cg(&rough(board), 1e-8, 1);
        let steps = solved.history.len();
        assert!(
            solved.converged && steps <= most,
            "squares of {square}: {steps} steps"
        );
    }
}

/// Cycles alone are slow where one coupling is much stronger than the other.
#[test]
fn conjugate_gradients_take_over() {
    let problem = Problem2d {
        spacing: 1.0,
        row_spacing: Some(4.0),
        ..rough(Problem2d::laplace(200, 150))
    };
    let with = |method| {
        let options = Options {
            method,
            max_sweeps: 200,
            ..options(1e-8)
        };
        solve_with(&problem, &options, 2)
    };
    let alone = with(Method::Multigrid(Cycles::default()));
    let automatic = with(Method::Automatic(Cycles::default()));
    assert!(alone.converged && alone.gradients_from.is_none());
    assert!(automatic.converged && automatic.gradients_from.is_some());
    let [alone, automatic] = [alone, automatic].map(|solved| solved.history.len());
    assert!(automatic < alone, "{automatic} steps, {alone} cycles");
    // Fast cycles go on alone.
    let plain = rough(Problem2d::laplace(200, 150));
    let options = Options {
        method: Method::Automatic(Cycles::default()),
        ..options(1e-8)
    };
    assert_eq!(solve_with(&plain, &options, 2).gradients_from, None);
}

/// A term of zero makes the general operator of the same equations.
#[test]
fn the_general_operator_agrees_with_the_plain_one() {
    let (nx, ny) = (83, 62);
    let sides: [fn(usize) -> Boundary<f64>; 3] = [
        |n| Boundary::Fixed((0..n).map(|i| (i % 17) as f64).collect()),
        |n| Boundary::Neumann((0..n).map(|i| (i % 5) as f64).collect()),
        |_| Boundary::Periodic,
    ];
    for (x, y) in [(0, 0), (0, 1), (1, 0), (0, 2), (2, 0), (1, 2)] {
        let plain = rough(Problem2d {
            left: sides[x](ny),
            right: sides[x](ny),
            top: sides[y](nx),
            bottom: sides[y](nx),
            fixed: mask(|x, y| noise(x, y, 3).is_multiple_of(90)),
            ..Problem2d::laplace(nx, ny)
        });
        let general = Problem2d {
            reaction: Some(by_cell(|_, _| 0.0)),
            ..plain.clone()
        };
        let [plain, general] = [plain, general].map(|problem| solve(&problem, 1e-12, 1));
        assert!(plain.converged && general.converged);
        let largest = plain.field.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for (i, (a, b)) in plain.field.iter().zip(&general.field).enumerate() {
            assert!((a - b).abs() < 1e-8 * largest, "{x} {y}, cell {i}: {a} {b}");
        }
    }
}

/// Nothing but a coefficient: a field of mean zero, and a source that does not cancel is refused.
#[test]
fn a_coefficient_with_nothing_fixed() {
    let (nx, ny) = (90, 77);
    let free = |n: usize| Boundary::Neumann(vec![0.0; n]);
    let wave =
        |x: usize, y: usize| (PI * x as f64 / 89.0).cos() * (2.0 * PI * y as f64 / 76.0).cos();
    let problem = Problem2d {
        coefficient: Some(by_cell(|x, y| 1.0 + ((x + 2 * y) % 7) as f64)),
        source: Some(by_cell(wave)),
        left: free(ny),
        right: free(ny),
        top: free(nx),
        bottom: free(nx),
        ..Problem2d::laplace(nx, ny)
    };
    let solved = solve(&problem, 1e-8, 2);
    assert!(solved.converged);
    let uneven = Problem2d {
        source: Some(by_cell(move |x, y| 1.0 + wave(x, y))),
        ..problem.clone()
    };
    // Tied by a term in u, any source has a solution.
    let tied = Problem2d {
        reaction: Some(by_cell(|_, _| 0.1)),
        ..uneven.clone()
    };
    assert!(solve(&tied, 1e-8, 1).converged);
    assert!(matches!(
        refusal(&uneven),
        ProblemError::Incompatible { .. }
    ));
}

#[test]
fn the_bits_do_not_depend_on_the_pes() {
    let (nx, ny) = (150, 270);
    let kappa = || by_cell(|x: usize, y: usize| 1.0 + (noise(x, y, 2) % 100) as f64);
    let mixed = |n: usize| {
        Boundary::Robin(Robin {
            value: vec![1.0; n],
            derivative: vec![0.5; n],
            right: (0..n).map(|i| (i % 7) as f64).collect(),
        })
    };
    let problems = [
        Problem2d {
            left: mixed(ny),
            top: mixed(nx),
            ..Problem2d::laplace(nx, ny)
        },
        Problem2d {
            top: Boundary::Periodic,
            bottom: Boundary::Periodic,
            coefficient: Some(kappa()),
            ..Problem2d::laplace(nx, ny)
        },
        Problem2d {
            coefficient: Some(kappa()),
            fixed: mask(|x, y| noise(x, y, 5).is_multiple_of(40)),
            row_spacing: Some(0.7),
            ..Problem2d::laplace(nx, ny)
        },
    ];
    for (which, problem) in problems.into_iter().enumerate() {
        let problem = rough(problem);
        let automatic = Options {
            method: Method::Automatic(Cycles::default()),
            ..options(1e-9)
        };
        let alone = solve_with(&problem, &automatic, 1);
        assert!(alone.converged);
        for pes in [2, 3, 5, 8] {
            let shared = solve_with(&problem, &automatic, pes);
            assert_eq!(alone.history, shared.history, "problem {which}, {pes} PEs");
            assert!(alone.field == shared.field, "problem {which}, {pes} PEs");
        }
    }
}

/// The operator's magnitude says nothing about the solution.
#[test]
fn magnitudes_of_coefficients_do_not_matter() {
    let with = |factor: f64| Problem2d {
        coefficient: Some(by_cell(move |x, y| factor * (1.0 + ((x * y) % 5) as f64))),
        top: Boundary::Fixed(vec![1.0; 40]),
        ..Problem2d::laplace(40, 40)
    };
    let expected = solve(&with(1.0), 1e-10, 1).field;
    for exponent in [-200, 200] {
        let field = solve(&with(2f64.powi(exponent)), 1e-10, 1).field;
        assert!(field == expected, "2^{exponent}");
    }
}

#[track_caller]
fn refusal(problem: &Problem2d<f64>) -> ProblemError {
    let error = spmd(2, |pe| solve_2d(pe, problem, &options(1e-8), |_| {}).err());
    match error.unwrap().remove(0) {
        Some(SolveError::Problem(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let plain = || Problem2d::<f64>::laplace(40, 50);
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let problem = Problem2d {
            coefficient: Some(by_cell(
                move |x, y| if (x, y) == (3, 40) { wrong } else { 1.0 },
            )),
            ..plain()
        };
        let error = refusal(&problem);
        assert!(
            matches!(error, ProblemError::Coefficient { x: 3, y: 40, .. }),
            "{error}"
        );
    }
    for wrong in [-1e-9, f64::NAN, f64::INFINITY] {
        let problem = Problem2d {
            reaction: Some(by_cell(
                move |x, y| if (x, y) == (39, 2) { wrong } else { 0.0 },
            )),
            ..plain()
        };
        let error = refusal(&problem);
        assert!(
            matches!(error, ProblemError::Reaction { x: 39, y: 2, .. }),
            "{error}"
        );
    }
    for (a, b) in [(1.0, 0.0), (-1.0, 1.0), (1.0, -2.0)] {
        let side = Robin {
            value: vec![a; 50],
            derivative: vec![b; 50],
            right: vec![0.0; 50],
        };
        let problem = Problem2d {
            right: Boundary::Robin(side),
            ..plain()
        };
        assert!(matches!(
            refusal(&problem),
            ProblemError::Robin {
                side: "right",
                index: 0,
                ..
            }
        ));
    }
    let problem = Problem2d {
        row_spacing: Some(-1.0),
        ..plain()
    };
    assert!(matches!(refusal(&problem), ProblemError::Spacing { .. }));
    // Jacobi sweeps have none of it.
    let problem = Problem2d {
        row_spacing: Some(2.0),
        ..plain()
    };
    let by_sweeps = spmd(1, |pe| {
        let solved = solve_2d(pe, &problem, &Options::new(1e-3, 10), |_| {});
        solved.err().unwrap().to_string()
    });
    assert_eq!(
        by_sweeps.unwrap()[0],
        "Jacobi sweeps can not have two spacings: take multigrid"
    );
}

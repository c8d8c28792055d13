//! A solver whose levels are made once: solves, vectors, conjugate gradients.

mod cycles;

use std::sync::Arc;

use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Cycles, Gradients, Method, Options, OptionsError, Problem2d, ProblemError, RowSource,
    SolveError, Solver2d,
};
use cycles::{Solved, by_cell, mask, noise, options, solve};

/// Problems of all kinds, for which A is not singular.
fn problems() -> Vec<Problem2d<f64>> {
    let slopes = |n: usize| Boundary::Neumann((0..n).map(|i| (i % 5) as f64 - 2.0).collect());
    let plain = |nx, ny| Problem2d {
        initial: Some(by_cell(|x, y| ((x + 3 * y) % 7) as f64)),
        source: Some(by_cell(|x, y| (noise(x, y, 3) % 11) as f64 - 5.0)),
        ..Problem2d::<f64>::laplace(nx, ny)
    };
    let known = mask(|x, y| noise(x, y, 1).is_multiple_of(9));
    vec![
        plain(70, 131),
        Problem2d {
            fixed: known.clone(),
            left: slopes(115),
            bottom: slopes(97),
            ..plain(97, 115)
        },
        Problem2d {
            fixed: known,
            top: Boundary::Periodic,
            bottom: Boundary::Periodic,
            coefficient: Some(by_cell(|x, y| 1.0e5 + (noise(x, y, 2) % 300_000) as f64)),
            reaction: Some(by_cell(|x, _| x as f64)),
            right: slopes(150),
            row_spacing: Some(0.7),
            ..plain(60, 150)
        },
    ]
}

#[test]
fn every_solve_has_the_bits_of_one_alone() {
    let sources: [Option<RowSource<f64>>; 3] = [
        None,
        Some(by_cell(|x, y| (x * y % 13) as f64)),
        Some(by_cell(|x, _| 1e12 * (x as f64 - 30.0))),
    ];
    let first_guess: RowSource<f64> = by_cell(|x, y| ((2 * x + y) % 5) as f64);
    for problem in problems() {
        for pes in [1, 3] {
            let solved = spmd(pes, |pe| {
                let mut solver = Solver2d::new(pe, &problem, &Cycles::default()).unwrap();
                let mut all = Vec::new();
                for source in &sources {
                    for initial in [None, Some(Arc::clone(&first_guess))] {
                        let solution = solver
                            .solve(source.clone(), initial, &options(1e-9), |_| {})
                            .unwrap();
                        let field = solution.gather_all(pe).unwrap();
                        all.push((field, solution.history.clone()));
                    }
                }
                solver.free().unwrap();
                all
            });
            let mut solved = solved.unwrap().swap_remove(0).into_iter();
            for source in &sources {
                for initial in [None, Some(Arc::clone(&first_guess))] {
                    let alone = Problem2d {
                        source: source.clone().or(problem.source.clone()),
                        initial: initial.or(problem.initial.clone()),
                        ..problem.clone()
                    };
                    let Solved { field, history, .. } = solve(&alone, 1e-9, 1);
                    let (again, its_history) = solved.next().unwrap();
                    assert_eq!(history, its_history);
                    assert!(field == again);
                }
            }
        }
    }
}

/// A vector of the points that a PE holds.
fn vector(solver: &Solver2d<'_, f64>, seed: u64) -> Vec<f64> {
    let columns = solver.columns();
    let points = solver
        .rows()
        .flat_map(|y| columns.clone().map(move |x| (x, y)));
    points
        .map(|(x, y)| (noise(x, y, seed) % 2000) as f64 / 1000.0 - 1.0)
        .collect()
}

#[test]
fn operator_and_preconditioner_are_symmetric_and_positive() {
    for problem in problems() {
        let dots = |pes: usize| {
            let all = spmd(pes, |pe| {
                let mut solver = Solver2d::new(pe, &problem, &Cycles::default()).unwrap();
                let (a, b) = (vector(&solver, 5), vector(&solver, 6));
                let (mut of_a, mut of_b) = (a.clone(), b.clone());
                let mut dots = Vec::new();
                for step in [Solver2d::apply, Solver2d::precondition] {
                    step(&mut solver, &a, &mut of_a).unwrap();
                    step(&mut solver, &b, &mut of_b).unwrap();
                    for (one, other) in [(&of_a, &b), (&a, &of_b), (&of_a, &a), (&of_b, &b)] {
                        dots.push(solver.dot(one, other).unwrap());
                    }
                }
                solver.free().unwrap();
                dots
            });
            all.unwrap().swap_remove(0)
        };
        let found = dots(1);
        for (dots, rounding) in found.chunks(4).zip([1e-13, 1e-5]) {
            let [one, other, of_a, of_b] = dots else {
                panic!("four of them")
            };
            assert!(*of_a > 0.0 && *of_b > 0.0, "{dots:?}");
            let size = (of_a * of_b).sqrt();
            assert!((one - other).abs() < rounding * size, "{dots:?}");
        }
        for pes in [2, 5] {
            assert_eq!(dots(pes), found, "{pes} PEs");
        }
    }
}

#[test]
fn the_operator_is_that_of_the_equations() {
    // Couplings by hand: 3 x 4 inner cells of a grid of two spacings, with a derivative on the right.
    let kappa = |x: usize, y: usize| 1.0 + (x * x + y) as f64;
    let problem = Problem2d {
        right: Boundary::Neumann(vec![1.0; 6]),
        coefficient: Some(by_cell(kappa)),
        reaction: Some(by_cell(|x, _| x as f64)),
        spacing: 0.5,
        row_spacing: Some(0.25),
        ..Problem2d::<f64>::laplace(5, 6)
    };
    let (nx, ny, h) = (5, 6, [0.5, 0.25]);
    let found = spmd(1, |pe| {
        let mut solver = Solver2d::new(pe, &problem, &Cycles::default()).unwrap();
        let u = vector(&solver, 9);
        let mut out = vec![0.0; u.len()];
        solver.apply(&u, &mut out).unwrap();
        solver.free().unwrap();
        (u, out)
    });
    let (u, out) = found.unwrap().swap_remove(0);
    let unknown = |x: usize, y: usize| x >= 1 && y >= 1 && y < ny - 1;
    for y in 0..ny {
        for x in 0..nx {
            let here = u[y * nx + x];
            if !unknown(x, y) {
                assert_eq!(out[y * nx + x], here);
                continue;
            }
            let half = if x == nx - 1 { 0.5 } else { 1.0 };
            let mut sum = x as f64 * h[0] * h[1] * half * here;
            for (dx, dy) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
                let (other_x, other_y) = (x as isize + dx, y as isize + dy);
                if other_x >= nx as isize {
                    continue;
                }
                let (other_x, other_y) = (other_x as usize, other_y as usize);
                let face = match dx {
                    0 => half * h[0] / h[1],
                    _ => h[1] / h[0],
                };
                let mean = 0.5 * (kappa(x, y) + kappa(other_x, other_y));
                // What is fixed is on the right side of the equations.
                let other = match unknown(other_x, other_y) {
                    true => u[other_y * nx + other_x],
                    false => 0.0,
                };
                sum += mean * face * (here - other);
            }
            let got = out[y * nx + x];
            assert!(
                (got - sum).abs() < 1e-12 * (1.0 + sum.abs()),
                "{x} {y}: {got} {sum}"
            );
        }
    }
}

#[test]
fn conjugate_gradients_solve_what_others_say() {
    // Laplace's levels precondition a coefficient between 1 and 3, which the operator of the caller has.
    let (nx, ny) = (90, 133);
    let known = mask(|x, y| noise(x, y, 1).is_multiple_of(40));
    let plain = Problem2d::<f64> {
        fixed: known.clone(),
        ..Problem2d::laplace(nx, ny)
    };
    let varying = Problem2d {
        coefficient: Some(by_cell(|x, y| 1.0 + (x * y % 3) as f64)),
        ..plain.clone()
    };
    let solve = |pes: usize| {
        let all = spmd(pes, |pe| {
            let cycles = Cycles::default();
            let mut levels = Solver2d::new(pe, &plain, &cycles).unwrap();
            let mut other = Solver2d::new(pe, &varying, &cycles).unwrap();
            let b = vector(&levels, 8);
            let mut u = vec![0.0; b.len()];
            let limits = Gradients {
                tolerance: 1e-11,
                most: 60,
            };
            let history = levels
                .cg(
                    &b,
                    &mut u,
                    limits,
                    |_, p, q| other.apply(p, q),
                    Solver2d::precondition,
                )
                .unwrap();
            let mut residual = vec![0.0; b.len()];
            other.apply(&u, &mut residual).unwrap();
            residual.iter_mut().zip(&b).for_each(|(r, b)| *r -= b);
            let norms = [levels.dot(&residual, &residual), levels.dot(&b, &b)];
            let [residual, first] = norms.map(|norm| norm.unwrap().sqrt());
            levels.free().unwrap();
            other.free().unwrap();
            (history, residual / first)
        });
        all.unwrap().swap_remove(0)
    };
    let (history, residual) = solve(1);
    assert!(history.len() < 35, "{history:?}");
    assert!(
        history.last().unwrap() <= &1e-11 && residual < 1e-10,
        "{residual}"
    );
    for pes in [2, 3, 8] {
        assert_eq!(solve(pes), (history.clone(), residual), "{pes} PEs");
    }
}

#[test]
fn what_makes_no_sense_is_an_error_and_the_next_solve_goes_on() {
    let problem = Problem2d::<f64> {
        top: Boundary::Fixed(vec![1.0; 40]),
        ..Problem2d::laplace(40, 70)
    };
    let fine = spmd(2, |pe| {
        let mut solver = Solver2d::new(pe, &problem, &Cycles::default()).unwrap();
        let bad: RowSource<f64> = by_cell(|x, y| if (x, y) == (3, 65) { f64::NAN } else { 0.0 });
        let error = solver.solve(Some(bad), None, &options(1e-8), |_| {}).err();
        assert!(matches!(
            error,
            Some(SolveError::Problem(ProblemError::Source { x: 3, y: 65 }))
        ));
        let sweeps = Options::new(1e-3, 10);
        let error = solver.solve(None, None, &sweeps, |_| {}).err();
        assert!(matches!(
            error,
            Some(SolveError::Options(OptionsError::NotOfLevels))
        ));
        let method = Method::ConjugateGradients(Cycles::default());
        let options = Options {
            method,
            ..options(1e-8)
        };
        let solved = solver.solve(None, None, &options, |_| {}).unwrap();
        solver.free().unwrap();
        solved.converged
    });
    assert_eq!(fine.unwrap(), [true, true]);
}

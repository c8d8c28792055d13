//! Solutions that are known in closed form.

mod common;

use std::f64::consts::PI;
use std::sync::Arc;

use common::run_2d;
use crosswarp_solve::{Boundary, Options, Problem2d, Real, RowSource};

/// A problem whose sides and initial field are `value` (x, y).
fn given<F: Real>(
    nx: usize,
    ny: usize,
    value: impl Fn(usize, usize) -> f64 + Send + Sync + 'static,
) -> Problem2d<F> {
    let at = |x: usize, y: usize| F::from_f64(value(x, y));
    let sides = Problem2d {
        left: Boundary::Fixed((0..ny).map(|y| at(0, y)).collect()),
        right: Boundary::Fixed((0..ny).map(|y| at(nx - 1, y)).collect()),
        top: Boundary::Fixed((0..nx).map(|x| at(x, 0)).collect()),
        bottom: Boundary::Fixed((0..nx).map(|x| at(x, ny - 1)).collect()),
        ..Problem2d::laplace(nx, ny)
    };
    let initial: RowSource<F> = Arc::new(move |y, row| {
        row.iter_mut()
            .enumerate()
            .for_each(|(x, cell)| *cell = F::from_f64(value(x, y)));
    });
    Problem2d {
        initial: Some(initial),
        ..sides
    }
}

type Polynomial = fn(f64, f64) -> f64;

/// 1, x, y, xy, x² − y² and x³ − 3xy² satisfy the five-point equation exactly. With small integers every operation
/// of a sweep is exact in f64, and in f32 while four times the values stay below 2^24.
#[test]
fn harmonic_polynomials_are_fixed_points() {
    let polynomials: [Polynomial; 6] = [
        |_, _| 1.0,
        |x, _| x,
        |_, y| y,
        |x, y| x * y,
        |x, y| x * x - y * y,
        |x, y| x * x * x - 3.0 * x * y * y,
    ];
    for (k, polynomial) in polynomials.into_iter().enumerate() {
        let value = move |x: usize, y: usize| polynomial(x as f64 - 60.0, y as f64 - 40.0);
        let long = run_2d(&given::<f64>(131, 97, value), 3, &Options::new(0.0, 50));
        assert_eq!(
            (long.history.as_slice(), long.converged),
            ([0.0].as_slice(), true),
            "polynomial {k} in f64"
        );
        let short = run_2d(&given::<f32>(131, 97, value), 2, &Options::new(0.0, 50));
        assert_eq!(
            (short.history.as_slice(), short.converged),
            ([0.0].as_slice(), true),
            "polynomial {k} in f32"
        );
        for (i, cell) in long.field.iter().enumerate() {
            assert_eq!(*cell, value(i % 131, i / 131), "polynomial {k}");
        }
    }
}

/// A polynomial of the next kind is not a fixed point: the test above can fail.
#[test]
fn others_are_not() {
    let run = run_2d(
        &given::<f64>(31, 33, |x, y| (x * x * y * y) as f64),
        2,
        &Options::new(0.0, 1),
    );
    assert!(run.history[0] > 0.0 && !run.converged);
}

/// sin(πx)·sinh(κy) solves the five-point equation exactly where cos(πh) + cosh(κh) = 2.
#[test]
fn sine_times_hyperbolic_sine_against_its_discrete_solution() {
    let n = 33;
    let h = 1.0 / (n - 1) as f64;
    let kappa = (2.0 - (PI * h).cos()).acosh() / h;
    let exact = move |x: usize, y: usize| {
        (PI * x as f64 * h).sin() * (kappa * y as f64 * h).sinh() / kappa.sinh()
    };
    let sides = given::<f64>(n, n, exact);
    let problem = Problem2d {
        initial: None,
        ..sides
    };
    let run = run_2d(&problem, 2, &Options::new(1e-18, 20_000));
    let worst = (0..n * n)
        .map(|i| (run.field[i] - exact(i % n, i / n)).abs())
        .fold(0.0, f64::max);
    // Rounding of a sweep, amplified by the 1 / (1 − cos πh) ≈ 200 of the iteration.
    assert!(
        worst < 200.0 * f64::EPSILON,
        "{worst:e} after {} sweeps",
        run.history.len()
    );
}

/// ∇²u = f with u = sin(πx)·sin(2πy): the error falls with h².
#[test]
fn a_manufactured_poisson_problem_converges_at_second_order() {
    let error = |n: usize| {
        let h = 1.0 / (n - 1) as f64;
        let u =
            move |x: usize, y: usize| (PI * x as f64 * h).sin() * (2.0 * PI * y as f64 * h).sin();
        let source: RowSource<f64> = Arc::new(move |y, row| {
            row.iter_mut()
                .enumerate()
                .for_each(|(x, f)| *f = -5.0 * PI * PI * u(x, y));
        });
        let problem = Problem2d {
            source: Some(source),
            spacing: h,
            ..Problem2d::laplace(n, n)
        };
        let run = run_2d(&problem, 2, &Options::new(1e-14, 100_000));
        assert!(run.converged);
        (0..n * n)
            .map(|i| (run.field[i] - u(i % n, i / n)).abs())
            .fold(0.0, f64::max)
    };
    let (coarse, middle, fine) = (error(17), error(33), error(65));
    for ratio in [coarse / middle, middle / fine] {
        assert!(
            (3.8..4.2).contains(&ratio),
            "{coarse:e} {middle:e} {fine:e}"
        );
    }
}

/// A ramp, periodic across: the exact solution is linear in y and constant in x.
#[test]
fn a_periodic_strip_between_two_plates() {
    let (nx, ny) = (35, 21);
    let problem = Problem2d::<f64> {
        left: Boundary::Periodic,
        right: Boundary::Periodic,
        bottom: Boundary::Fixed(vec![1.0; nx]),
        ..Problem2d::laplace(nx, ny)
    };
    let run = run_2d(&problem, 2, &Options::new(1e-15, 20_000));
    for (i, cell) in run.field.iter().enumerate() {
        assert!(
            (cell - (i / nx) as f64 / (ny - 1) as f64).abs() < 1e-12,
            "row {}",
            i / nx
        );
    }
}

/// Voids in a plane are filled with the plane, also on the rim.
#[test]
fn voids_in_a_plane_become_the_plane() {
    let (nx, ny) = (47, 38);
    let plane = |x: usize, y: usize| 2.0 * x as f64 - 3.0 * y as f64 + 100.0;
    let is_known = |x: usize, y: usize| {
        let inside = (10..30).contains(&x) && (8..25).contains(&y);
        let on_top = (35..40).contains(&x) && y < 6;
        let on_left = x < 2 && y == 20;
        !(inside || on_top || on_left)
    };
    let values: RowSource<f64> = Arc::new(move |y, row| {
        row.iter_mut().enumerate().for_each(|(x, v)| {
            *v = if is_known(x, y) {
                plane(x, y)
            } else {
                f64::NAN
            }
        });
    });
    let known: RowSource<u8> = Arc::new(move |y, row| {
        row.iter_mut()
            .enumerate()
            .for_each(|(x, byte)| *byte = is_known(x, y).into());
    });
    let problem = Problem2d::fill(nx, ny, values, known).unwrap();
    let run = run_2d(&problem, 3, &Options::new(1e-13, 10_000));
    assert!(run.converged);
    for (i, cell) in run.field.iter().enumerate() {
        let (x, y) = (i % nx, i / nx);
        assert!((cell - plane(x, y)).abs() < 1e-9, "{x} {y}: {cell}");
    }
}

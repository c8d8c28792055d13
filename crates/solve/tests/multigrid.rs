//! Multigrid: what it converges to, how fast, and with which bits.

mod cycles;

use std::f64::consts::PI;
use std::sync::Arc;

use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Cycles, First, Method, Options, Problem2d, Real, RowSource, solve_2d,
};
use cycles::{by_cell, mask, noise, options, solve, solve_cg, solve_with};

/// u = sin πx sin πy + ½ sin 3πx sin πy on the unit square with `n` intervals, zero on the sides.
fn two_waves<F: Real>(n: usize) -> (Problem2d<F>, Vec<f64>) {
    let h = 1.0 / n as f64;
    let wave =
        move |a: f64, x: usize, y: usize| (a * PI * x as f64 * h).sin() * (PI * y as f64 * h).sin();
    let exact = move |x: usize, y: usize| wave(1.0, x, y) + 0.5 * wave(3.0, x, y);
    let source = move |x, y| -PI * PI * (2.0 * wave(1.0, x, y) + 5.0 * wave(3.0, x, y));
    let problem = Problem2d {
        source: Some(by_cell(source)),
        spacing: h,
        ..Problem2d::laplace(n + 1, n + 1)
    };
    let field = (0..=n)
        .flat_map(|y| (0..=n).map(move |x| exact(x, y)))
        .collect();
    (problem, field)
}

fn relative_error<F: Real>(field: &[F], exact: &[f64]) -> f64 {
    let squares =
        |of: &dyn Fn(usize) -> f64| (0..exact.len()).map(|i| of(i).powi(2)).sum::<f64>().sqrt();
    squares(&|i| field[i].to_f64() - exact[i]) / squares(&|i| exact[i])
}

#[test]
fn two_waves_come_out_with_the_error_of_five_points() {
    let (problem, exact) = two_waves::<f64>(256);
    let solved = solve(&problem, 1e-8, 1);
    assert!(solved.converged && solved.history.len() <= 11);
    let error = relative_error(&solved.field, &exact);
    assert!((error / 4.737e-5 - 1.0).abs() < 0.01, "{error}");
}

#[test]
fn a_full_cycle_comes_to_the_error_of_five_points() {
    let (problem, exact) = two_waves::<f64>(256);
    let solved = solve(&problem, 1e-8, 1);
    assert!(solved.converged && solved.history.len() <= 5);
    let full = solve_with(
        &problem,
        &Options {
            max_sweeps: 1,
            ..options(1e-8)
        },
        1,
    );
    let error = relative_error(&full.field, &exact);
    assert!(error < 1.05 * 4.737e-5, "{error}");
    let v_only = Options {
        method: Method::Multigrid(Cycles {
            first: First::V,
            ..Cycles::default()
        }),
        ..options(1e-8)
    };
    let solved = solve_with(&problem, &v_only, 1);
    // A cycle leaves 0.074 of the error by local Fourier analysis (K. Stüben, U. Trottenberg, 1982): 7.1 cycles.
    let cycles = solved.history.len();
    assert!(solved.converged && cycles <= 8, "{cycles} cycles");
}

/// Sizes whose coarse points lie unevenly take as many cycles as a power of two and one.
#[test]
fn every_size_takes_about_as_many_cycles() {
    let of = |nx: usize, ny: usize| {
        let (x, y) = (PI / (nx - 1) as f64, PI / (ny - 1) as f64);
        let wave = move |i: usize, j: usize| {
            let across = 2.0 * (x * i as f64).sin() + 5.0 * (3.0 * x * i as f64).sin();
            -across * (y * j as f64).sin()
        };
        let problem = Problem2d {
            source: Some(by_cell::<f64>(wave)),
            ..Problem2d::laplace(nx, ny)
        };
        let solved = solve(&problem, 1e-8, 1);
        assert!(solved.converged);
        solved.history.len()
    };
    let usual = of(2049, 2049);
    assert!(usual <= 8, "{usual} cycles");
    // Points, of which two of an axis are on sides: 2000, 2048 and 2049 unknowns, and 577 x 600.
    for (nx, ny) in [(2002, 2002), (2050, 2050), (2051, 2051), (579, 602)] {
        let cycles = of(nx, ny);
        assert!(cycles.abs_diff(usual) <= 2, "{nx} x {ny}: {cycles} cycles");
    }
}

fn rough_source<F: Real>() -> Option<RowSource<F>> {
    Some(by_cell::<F>(|x, y| (noise(x, y, 1) % 11) as f64 - 5.0))
}

/// A smooth field with hills and valleys, in metres, say.
fn hills(x: usize, y: usize) -> f64 {
    let (x, y) = (x as f64, y as f64);
    150.0 * ((0.011 * x).sin() + (0.013 * y).cos()) + 60.0 * (0.03 * x + 0.021 * y).sin()
}

/// A blob of cells around each of some random places.
fn blobs(seed: u64) -> impl Fn(usize, usize) -> bool + Clone {
    let radius = 2 + (noise(0, 1, seed) % 30) as isize;
    let cell = 3 * radius + (noise(0, 2, seed) % 40) as isize;
    move |x, y| {
        let (x, y) = (x as isize, y as isize);
        (-1..=1).any(|dy| {
            (-1..=1).any(|dx| {
                let (cx, cy) = (x.div_euclid(cell) + dx, y.div_euclid(cell) + dy);
                let place = noise((cx + 9) as usize, (cy + 9) as usize, seed);
                let px = cx * cell + (place % cell as u64) as isize;
                let py = cy * cell + (place / 4096 % cell as u64) as isize;
                (x - px).pow(2) + (y - py).pow(2) <= radius * radius
            })
        })
    }
}

/// By how much the worst equation of `problem`, by the letter, does not hold for `field`, relative to the largest value.
fn worst_residual(problem: &Problem2d<f64>, field: &[f64]) -> f64 {
    let (nx, ny) = (problem.nx, problem.ny);
    let (mut source, mut fixed) = (vec![0.0; nx * ny], vec![0u8; nx * ny]);
    for y in 0..ny {
        if let Some(deliver) = &problem.source {
            deliver(y, &mut source[y * nx..][..nx]);
        }
        if let Some(deliver) = &problem.fixed {
            deliver(y, &mut fixed[y * nx..][..nx]);
        }
    }
    let is_fixed = |side: &Boundary<f64>| matches!(side, Boundary::Fixed(_));
    let mirror = |side: &Boundary<f64>| matches!(side, Boundary::Neumann(_));
    let squared = problem.spacing * problem.spacing;
    let (mut worst, mut size) = (0.0f64, 0.0f64);
    for y in 0..ny {
        for x in 0..nx {
            let on_fixed = (x == 0 && is_fixed(&problem.left))
                || (x + 1 == nx && is_fixed(&problem.right))
                || (y == 0 && is_fixed(&problem.top))
                || (y + 1 == ny && is_fixed(&problem.bottom));
            // Ghosts are nobody's.
            let ghost = ((x == 0 || x + 1 == nx) && matches!(problem.left, Boundary::Periodic))
                || ((y == 0 || y + 1 == ny) && matches!(problem.top, Boundary::Periodic));
            if on_fixed || ghost || fixed[y * nx + x] != 0 {
                continue;
            }
            let left = if x == 0 && mirror(&problem.left) {
                1
            } else {
                x - 1
            };
            let right = if x + 1 == nx && mirror(&problem.right) {
                x - 1
            } else {
                x + 1
            };
            let up = if y == 0 && mirror(&problem.top) {
                1
            } else {
                y - 1
            };
            let down = if y + 1 == ny && mirror(&problem.bottom) {
                y - 1
            } else {
                y + 1
            };
            let centre = field[y * nx + x];
            let sum = field[y * nx + left]
                + field[y * nx + right]
                + field[up * nx + x]
                + field[down * nx + x];
            // The mirror image is 2hg larger than the cell inside.
            let flow = |side: &Boundary<f64>, there: bool, at: usize| match side {
                Boundary::Neumann(slope) if there => 2.0 * problem.spacing * slope[at],
                _ => 0.0,
            };
            let flows = flow(&problem.left, x == 0, y)
                + flow(&problem.right, x + 1 == nx, y)
                + flow(&problem.top, y == 0, x)
                + flow(&problem.bottom, y + 1 == ny, x);
            let residual = sum + flows - 4.0 * centre - squared * source[y * nx + x];
            worst = worst.max(residual.abs());
            size = size
                .max(centre.abs())
                .max((squared * source[y * nx + x]).abs());
        }
    }
    worst / size
}

#[test]
fn masks_of_every_kind_take_few_cycles() {
    let (nx, ny) = (577, 600);
    let random = |share: u64| mask(move |x, y| noise(x, y, 7).is_multiple_of(share));
    let cases = [
        // One cell wide: where the height passes a multiple of 25.
        (
            "contour lines",
            10,
            mask(|x, y| {
                let step = |x, y| (hills(x, y) / 25.0).floor();
                step(x, y) != step(x + 1, y) || step(x, y) != step(x, y + 1)
            }),
        ),
        ("every second", 10, random(2)),
        ("5 % known", 10, random(20)),
        ("0.5 % known", 12, random(200)),
        (
            "serpentine",
            10,
            mask(|x, y| {
                // A corridor six cells wide, with walls of one that leave a gap at one end.
                y % 7 == 6 && if y / 7 % 2 == 0 { x < 577 - 7 } else { x >= 7 }
            }),
        ),
        (
            "one large hole",
            10,
            mask(|x, y| (x as f64 - 288.0).powi(2) + (y as f64 - 300.0).powi(2) > 200.0f64.powi(2)),
        ),
        ("blobs", 10, mask(blobs(3))),
    ];
    for (name, most, fixed) in cases {
        let fixed = fixed.unwrap();
        let problem = Problem2d {
            initial: {
                let known = fixed.clone();
                Some(Arc::new(move |y, row: &mut [f64]| {
                    let mut byte = vec![0u8; row.len()];
                    known(y, &mut byte);
                    for (x, value) in row.iter_mut().enumerate() {
                        *value = if byte[x] != 0 { hills(x, y) } else { 0.0 };
                    }
                }))
            },
            fixed: Some(fixed),
            left: Boundary::Neumann(vec![0.0; ny]),
            right: Boundary::Neumann(vec![0.0; ny]),
            top: Boundary::Neumann(vec![0.0; nx]),
            bottom: Boundary::Neumann(vec![0.0; nx]),
            ..Problem2d::laplace(nx, ny)
        };
        let solved = solve(&problem, 1e-8, 1);
        let cycles = solved.history.len();
        assert!(
            solved.converged && cycles <= most,
            "{name}: {cycles} cycles"
        );
        let worst = worst_residual(&problem, &solved.field);
        assert!(worst < 1e-6, "{name}: {worst}");
        let solved = solve_cg(&problem, 1e-8, 1);
        let steps = solved.history.len();
        assert!(solved.converged && steps <= 9, "{name}: {steps} steps");
        let worst = worst_residual(&problem, &solved.field);
        assert!(worst < 1e-6, "{name}: {worst}");
    }
}

#[test]
fn no_random_mask_needs_many_cycles() {
    // Of every density and size of blobs.
    let masks = std::env::var("CROSSWARP_MASKS").map_or(1000, |count| count.parse().unwrap());
    for seed in 0..masks {
        let (nx, ny) = (
            20 + (noise(1, 1, seed) % 120) as usize,
            20 + (noise(1, 2, seed) % 120) as usize,
        );
        let share = 2 + noise(1, 3, seed) % 60;
        let blob = blobs(seed);
        let known = move |x: usize, y: usize| match seed % 3 {
            0 => noise(x, y, seed).is_multiple_of(share),
            1 => blob(x, y),
            _ => !blob(x, y) || noise(x, y, seed).is_multiple_of(share),
        };
        let problem = Problem2d {
            fixed: mask(known),
            source: rough_source::<f64>(),
            ..Problem2d::laplace(nx, ny)
        };
        let run = spmd(1, |pe| {
            solve_2d(pe, &problem, &options(1e-8), |_| {})
                .map(|solution| (solution.converged, solution.sweeps))
        });
        match run.unwrap().remove(0) {
            Ok((converged, cycles)) => {
                assert!(converged && cycles <= 20, "seed {seed}: {cycles} cycles")
            }
            Err(error) => assert!(error.to_string().contains("nothing to solve"), "{error}"),
        }
    }
}

#[test]
fn sides_of_all_kinds_and_sizes() {
    for (nx, ny) in [
        (501, 467),
        (100, 77),
        (33, 500),
        (6, 5),
        (5, 6),
        (3, 3),
        (4, 200),
        (300, 3),
    ] {
        let neumann = |n| Boundary::Neumann((0..n).map(|i| (i % 5) as f64 - 2.0).collect());
        let zero = |n| Boundary::Fixed(vec![0.0; n]);
        for kind in 0..8 {
            let (x, y) = (kind % 3, kind / 3);
            let side = |kind: usize, n| match kind {
                0 => zero(n),
                1 => neumann(n),
                _ => Boundary::Periodic,
            };
            let problem = Problem2d {
                source: rough_source(),
                left: side(x, ny),
                right: if x == 1 { zero(ny) } else { side(x, ny) },
                top: side(y, nx),
                bottom: side(y, nx),
                ..Problem2d::laplace(nx, ny)
            };
            if (x, y) == (2, 1) {
                // Nothing fixed: see below.
                continue;
            }
            let solved = solve(&problem, 1e-8, 1);
            let cycles = solved.history.len();
            assert!(
                solved.converged && cycles <= 15,
                "{nx} x {ny}, {x} {y}: {cycles} cycles"
            );
            let worst = worst_residual(&problem, &solved.field);
            assert!(worst < 1e-6, "{nx} x {ny}, {x} {y}: {worst}");
        }
    }
}

#[test]
fn nothing_fixed_gives_a_mean_of_zero_or_an_error() {
    let (nx, ny) = (501, 467);
    let wave = |x: usize, y: usize| {
        (PI * x as f64 / (501 - 1) as f64).cos() * (2.0 * PI * y as f64 / (467 - 1) as f64).cos()
    };
    let neumann = Problem2d {
        source: Some(by_cell::<f64>(wave)),
        left: Boundary::Neumann(vec![0.0; ny]),
        right: Boundary::Neumann(vec![0.0; ny]),
        top: Boundary::Neumann(vec![0.0; nx]),
        bottom: Boundary::Neumann(vec![0.0; nx]),
        ..Problem2d::laplace(nx, ny)
    };
    // Rings of odd numbers of cells, whose coarse points lie unevenly: with the ghosts 501 x 467, and without.
    let rings = [(nx, ny), (nx + 2, ny + 2)].map(|(nx, ny)| {
        let angle = move |at: usize, cells: usize| 2.0 * PI * at as f64 / (cells - 2) as f64;
        Problem2d {
            source: Some(by_cell::<f64>(move |x, y| {
                angle(x, nx).cos() * angle(y, ny).sin()
            })),
            left: Boundary::Periodic,
            right: Boundary::Periodic,
            top: Boundary::Periodic,
            bottom: Boundary::Periodic,
            ..Problem2d::laplace(nx, ny)
        }
    });
    for problem in [&neumann, &rings[0], &rings[1]] {
        let (nx, ny) = (problem.nx, problem.ny);
        let solved = solve(problem, 1e-8, 2);
        let cycles = solved.history.len();
        assert!(
            solved.converged && cycles <= 9,
            "{nx} x {ny}: {cycles} cycles"
        );
        let by_cg = solve_cg(problem, 1e-8, 2);
        let steps = by_cg.history.len();
        assert!(by_cg.converged && steps <= 9, "{steps} steps");
        assert!(worst_residual(problem, &by_cg.field) < 1e-6);
        assert!(worst_residual(problem, &solved.field) < 1e-6);
        let largest = solved.field.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        let mean = solved.field.iter().sum::<f64>() / (nx * ny) as f64;
        // Sides count half in the mean that is zero, and twice or not at all in this one.
        assert!(mean.abs() < 1e-2 * largest, "{mean} {largest}");
    }
    let uneven = Problem2d {
        source: Some(by_cell::<f64>(move |x, y| 1.0 + wave(x, y))),
        ..neumann
    };
    let error = spmd(1, |pe| {
        let solved = solve_2d(pe, &uneven, &options(1e-8), |_| {});
        solved.err().unwrap().to_string()
    });
    let text = error.unwrap().remove(0);
    assert!(text.contains("must cancel"), "{text}");
}

#[test]
fn an_incompatible_source_is_projected_on_request() {
    let (nx, ny) = (61, 75);
    let wave = |x: usize, y: usize| {
        (PI * x as f64 / 60.0).cos() * (2.0 * PI * y as f64 / 74.0).cos() * (1 + x % 3) as f64
    };
    let flat = |n| Boundary::Neumann(vec![0.0; n]);
    // Flows across the sides, too: 0.01 for each of 60 lengths on the left.
    let problem = |mean: f64| Problem2d {
        source: Some(by_cell::<f64>(move |x, y| wave(x, y) + mean)),
        left: Boundary::Neumann(vec![0.01; ny]),
        right: flat(ny),
        top: flat(nx),
        bottom: flat(nx),
        ..Problem2d::laplace(nx, ny)
    };
    let all = |problem: &Problem2d<f64>, method: Method, pes| {
        let options = Options {
            method,
            project_source: true,
            ..Options::new(1e-10, 3000)
        };
        let solved = spmd(pes, |pe| {
            let solution = solve_2d(pe, problem, &options, |_| {}).unwrap();
            assert!(solution.converged);
            (solution.gather_all(pe).unwrap(), solution.projected)
        });
        solved.unwrap().remove(0)
    };
    let mg = Method::Multigrid(Cycles::default());
    let (field, projected) = all(&problem(0.0), mg.clone(), 1);
    let projected = projected.expect("it does not cancel");
    assert!(projected.abs() > 1e-4, "{projected}");
    // The same whatever was added, by any method and any number of PEs.
    for (mean, method, pes) in [
        (0.25, mg.clone(), 3),
        (0.0, Method::Chebyshev, 2),
        (-3.0, Method::PlainGradients, 1),
    ] {
        let (other, _) = all(&problem(mean), method.clone(), pes);
        let largest = field.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for (a, b) in field.iter().zip(&other) {
            assert!((a - b).abs() < 1e-7 * largest, "{mean} {method:?}: {a} {b}");
        }
    }
    // The equations hold but for one constant.
    let left = |x: usize, y: usize| {
        let at = |x: usize, y: usize| field[y * nx + x];
        at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1) - 4.0 * at(x, y) - wave(x, y)
    };
    let constant = left(5, 5);
    assert!(constant.abs() > 1e-5);
    for (x, y) in [(1, 1), (30, 30), (59, 73), (17, 60)] {
        assert!((left(x, y) - constant).abs() < 1e-8, "{x} {y}");
    }
    // What cancels stays as it is, and what is fixed somewhere, too.
    let even = Problem2d {
        source: Some(by_cell::<f64>(|x, _| (PI * x as f64 / 60.0).cos())),
        left: flat(ny),
        ..problem(0.0)
    };
    assert_eq!(all(&even, mg.clone(), 2).1, None);
    let fixed = Problem2d {
        right: Boundary::Fixed(vec![1.0; ny]),
        ..problem(0.0)
    };
    let (with, projected) = all(&fixed, mg, 1);
    assert_eq!(projected, None);
    assert!(with == solve(&fixed, 1e-10, 1).field);
}

#[test]
fn a_derivative_on_a_side_is_the_slope_there() {
    // u = x: the derivative outwards is −1 on the left and 1 on the right.
    let (nx, ny, h) = (65, 33, 1.0 / 64.0);
    let ramp: Vec<f64> = (0..nx).map(|x| x as f64 * h).collect();
    let problem = Problem2d {
        left: Boundary::Neumann(vec![-1.0; ny]),
        right: Boundary::Neumann(vec![1.0; ny]),
        top: Boundary::Fixed(ramp.clone()),
        bottom: Boundary::Fixed(ramp.clone()),
        spacing: h,
        ..Problem2d::laplace(nx, ny)
    };
    let solved = solve(&problem, 1e-12, 1);
    for (i, value) in solved.field.iter().enumerate() {
        assert!((value - ramp[i % nx]).abs() < 1e-9, "cell {i}: {value}");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_pes() {
    let (nx, ny) = (211, 333);
    let sides: [fn(usize) -> Boundary<f64>; 3] = [
        |n| Boundary::Fixed((0..n).map(|i| (i % 17) as f64).collect()),
        |n| Boundary::Neumann(vec![0.5; n]),
        |_| Boundary::Periodic,
    ];
    // Of 209 and 331 points the rings have, and of even numbers: these have two colours.
    for (x, y, more) in [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
        (2, 0, 1),
        (0, 1, 0),
        (0, 2, 0),
        (0, 2, 1),
    ] {
        let (nx, ny) = (nx + more, ny + more);
        for masked in [false, true] {
            let problem = Problem2d {
                source: rough_source(),
                left: sides[x](ny),
                right: sides[x](ny),
                top: sides[y](nx),
                bottom: sides[y](nx),
                fixed: if masked {
                    mask(|x, y| noise(x, y, 5).is_multiple_of(50))
                } else {
                    None
                },
                ..Problem2d::laplace(nx, ny)
            };
            let alone = solve(&problem, 1e-9, 1);
            assert!(alone.converged);
            for pes in [2, 3, 5, 8] {
                let shared = solve(&problem, 1e-9, pes);
                assert_eq!(alone.history, shared.history, "{pes} PEs, {x} {y} {masked}");
                let same = alone
                    .field
                    .iter()
                    .zip(&shared.field)
                    .all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{pes} PEs, {x} {y} {masked}");
            }
        }
    }
    let problem = Problem2d {
        source: rough_source::<f64>(),
        left: sides[1](ny),
        fixed: mask(|x, y| noise(x, y, 5).is_multiple_of(50)),
        ..Problem2d::laplace(nx, ny)
    };
    let alone = solve_cg(&problem, 1e-9, 1);
    for pes in [2, 3, 5, 8] {
        let shared = solve_cg(&problem, 1e-9, pes);
        assert_eq!(alone.history, shared.history, "{pes} PEs");
        assert_eq!(alone.field, shared.field, "{pes} PEs");
    }
    // Levels so large that they know which of their points are alike, which ring or not.
    for y in [0, 2] {
        let problem = Problem2d {
            source: rough_source::<f64>(),
            top: sides[y](1600),
            bottom: sides[y](1600),
            ..Problem2d::laplace(1600, 1503)
        };
        let alone = solve(&problem, 1e-3, 1);
        for pes in [2, 5] {
            let shared = solve(&problem, 1e-3, pes);
            assert_eq!(alone.history, shared.history, "{pes} PEs, large, {y}");
            assert_eq!(alone.field, shared.field, "{pes} PEs, large, {y}");
        }
    }
    // Fewer rows than PEs on all levels.
    let small = Problem2d {
        source: rough_source::<f32>(),
        ..Problem2d::laplace(40, 9)
    };
    let alone = solve(&small, 1e-8, 1);
    let shared = solve(&small, 1e-8, 8);
    assert_eq!(alone.field, shared.field);
}

#[test]
fn f32_fields_are_solved_in_f64_and_rounded_once() {
    // What five points are off by themselves is 7.4e-7 here.
    let (problem, exact) = two_waves::<f64>(2048);
    let double = solve(&problem, 1e-9, 1);
    assert!(double.converged && relative_error(&double.field, &exact) < 7.5e-7);
    let (single, _) = two_waves::<f32>(2048);
    let rounded = solve(&single, 1e-9, 1);
    assert!(rounded.converged && relative_error(&rounded.field, &exact) < 1e-6);
    // The source of the one is the other's, rounded.
    assert!(relative_error(&rounded.field, &double.field) < 1e-6);
}

#[test]
fn what_rounding_allows_is_told_from_what_was_asked_for() {
    let (problem, _) = two_waves::<f64>(256);
    let solved = solve(&problem, 1e-14, 1);
    assert!(solved.floor_reached && !solved.converged);
    let by_cg = solve_cg(&problem, 1e-14, 1);
    assert!(by_cg.floor_reached && !by_cg.converged && by_cg.history.len() < 20);
    assert!(solved.history.len() < 20 && solved.history.last().unwrap() < &1e-10);
}

/// Floor, whether it was reached, and the relative residuals.
fn with_floor(
    problem: &Problem2d<f64>,
    options: &Options<'_>,
    pes: usize,
) -> (f64, bool, Vec<f64>) {
    let solved = spmd(pes, |pe| {
        let solution = solve_2d(pe, problem, options, |_| {}).unwrap();
        let floor = solution.floor.unwrap();
        (floor, solution.floor_reached, solution.history.clone())
    });
    solved.unwrap().swap_remove(pes - 1)
}

#[test]
fn a_limit_below_twice_the_floor_is_kept_where_cycles_come_down_to_it() {
    let (problem, exact) = two_waves::<f64>(64);
    let norm = |of: &[f64]| of.iter().map(|value| value * value).sum::<f64>().sqrt();
    // h²f is the first residual; what rounding of 4u leaves is 4 · 2⁻⁵³ ‖u‖.
    let h = 1.0 / 64.0f64;
    let first = h * h * PI * PI * (29.0f64 / 1.25).sqrt() * norm(&exact);
    let floor = 4.0 * 2f64.powi(-53) * norm(&exact) / first;
    let solved = |tolerance: f64| with_floor(&problem, &options(tolerance), 3);
    let (found, reached, long) = solved(1e-8);
    assert!((found / floor - 1.0).abs() < 0.01, "{found} {floor}");
    assert!(!reached);
    let (found, reached, history) = solved(1e-30);
    let least = history.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    let last = history.len() - 1;
    // It ends with a cycle that leaves much.
    assert!(reached && history[last] <= 2.0 * found, "{history:?}");
    assert!(history[last] > 0.4 * history[last - 1], "{history:?}");
    assert_eq!(history[..long.len()], long);
    assert!(least < 1.8 * floor, "{history:?}");
    // The ratio of two norms times the first may be a digit below the last one.
    for tolerance in [least.next_up(), 2.0 * floor, 4.0 * floor] {
        let (_, reached, history) = solved(tolerance);
        let last = history.last().unwrap();
        assert!(!reached && *last <= tolerance, "{tolerance}: {history:?}");
    }
}

#[test]
fn a_constant_coefficient_does_not_change_the_floor() {
    let (problem, _) = two_waves::<f64>(64);
    for method in [
        Method::Multigrid(Cycles::default()),
        Method::ConjugateGradients(Cycles::default()),
        Method::PlainGradients,
        Method::Chebyshev,
    ] {
        let by = |tolerance: f64| Options {
            method: method.clone(),
            ..Options::new(tolerance, 2000)
        };
        let (floor, ..) = with_floor(&problem, &by(1e-10), 1);
        for coefficient in [1e-6, 1e4] {
            let problem = Problem2d {
                coefficient: Some(by_cell(move |_, _| coefficient)),
                ..problem.clone()
            };
            let (found, reached, history) = with_floor(&problem, &by(1e-10), 2);
            let last = history.last().unwrap();
            assert!(!reached && *last <= 1e-10, "{method:?}: {history:?}");
            assert!(
                (found / floor - 1.0).abs() < 1e-6,
                "{method:?}: {found} {floor}"
            );
            let (found, reached, history) = with_floor(&problem, &by(1e-30), 2);
            let last = history.last().unwrap();
            assert!(reached && *last <= 2.0 * found, "{method:?}: {history:?}");
        }
    }
}

#[test]
fn nothing_on_the_right_takes_no_cycle() {
    let solved = solve(&Problem2d::<f32>::laplace(50, 60), 1e-8, 2);
    assert!(solved.converged && solved.history.is_empty());
    assert!(solved.field.iter().all(|&value| value == 0.0));
}

#[test]
fn magnitudes_do_not_matter() {
    for size in [1e-300f64, 1e-30, 1e30, 1e300] {
        let problem = Problem2d {
            top: Boundary::Fixed(vec![size; 65]),
            ..Problem2d::laplace(65, 65)
        };
        let solved = solve(&problem, 1e-10, 1);
        assert!(solved.converged, "{size}: {:?}", solved.history);
        let middle = solved.field[32 * 65 + 32] / size;
        assert!((middle - 0.25).abs() < 1e-9, "{size}: {middle}");
    }
}

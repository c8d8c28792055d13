//! Boxes with coefficients, masks and mixed sides: the equations hold, in how many cycles, with which bits.

mod boxes;
mod cycles;

use boxes::{by_point, mask, rough, solve};
use crosswarp_shmem::spmd;
use crosswarp_solve::{PlaneSource, Problem3d, Side, SolveError, solve_3d};
use cycles::{noise, options};

fn values(source: &Option<PlaneSource<f64>>, size: [usize; 3], else_: f64) -> Vec<f64> {
    let [nx, ny, nz] = size;
    let mut all = vec![else_; nx * ny * nz];
    if let Some(source) = source {
        for (row, out) in all.chunks_exact_mut(nx).enumerate() {
            out.fill(0.0);
            source(row / ny, row % ny, out);
        }
    }
    all
}

/// By how much the worst equation of `problem` does not hold, relative to the largest coupling times the largest value:
/// finite volumes by the letter.
fn worst_residual(problem: &Problem3d<f64>, field: &[f64]) -> f64 {
    let size = problem.size;
    let [nx, ny, nz] = size;
    let at = |p: [usize; 3]| (p[2] * ny + p[1]) * nx + p[0];
    let kappa = values(&problem.coefficient, size, 1.0);
    let reaction = values(&problem.reaction, size, 0.0);
    let source = values(&problem.source, size, 0.0);
    let mut fixed = vec![0u8; nx * ny * nz];
    if let Some(mask) = &problem.fixed {
        for (row, out) in fixed.chunks_exact_mut(nx).enumerate() {
            mask(row / ny, row % ny, out);
        }
    }
    let (mut worst, mut most) = (0.0f64, 0.0f64);
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                let place = [x, y, z];
                let here = at(place);
                let ends = |axis: usize| [place[axis] == 0, place[axis] + 1 == size[axis]];
                let side = |axis: usize| {
                    let on = ends(axis);
                    (0..2)
                        .find(|&k| on[k] && problem.sides[axis][k] != Side::Periodic)
                        .map(|k| problem.sides[axis][k])
                };
                let on_fixed = (0..3).any(|axis| side(axis) == Some(Side::Fixed));
                if on_fixed || fixed[here] != 0 {
                    continue;
                }
                let lengths: [f64; 3] = std::array::from_fn(|axis| match side(axis) {
                    Some(_) => 0.5 * problem.spacing[axis],
                    None => problem.spacing[axis],
                });
                let volume = lengths[0] * lengths[1] * lengths[2];
                let mut residual = -volume * (source[here] + reaction[here] * field[here]);
                for axis in 0..3 {
                    let area = volume / lengths[axis];
                    for (k, on_end) in ends(axis).into_iter().enumerate() {
                        let n = size[axis];
                        if on_end && side(axis).is_some() {
                            residual += kappa[here]
                                * area
                                * match problem.sides[axis][k] {
                                    Side::Neumann(slope) => slope,
                                    Side::Robin {
                                        value,
                                        derivative,
                                        right,
                                    } => (right - value * field[here]) / derivative,
                                    _ => 0.0,
                                };
                            continue;
                        }
                        let mut to = place;
                        to[axis] = (place[axis] + n + 2 * k - 1) % n;
                        let there = at(to);
                        let coupling =
                            0.5 * (kappa[here] + kappa[there]) * area / problem.spacing[axis];
                        residual += coupling * (field[there] - field[here]);
                        most = most.max(coupling * field[here].abs());
                    }
                }
                worst = worst.max(residual.abs());
            }
        }
    }
    worst / most
}

fn robin(value: f64) -> Side<f64> {
    Side::Robin {
        value,
        derivative: 0.5,
        right: 0.25,
    }
}

#[test]
fn boxes_of_all_kinds_and_sizes() {
    let kinds = [
        [Side::Fixed; 2],
        [Side::Neumann(0.5), robin(2.0)],
        [robin(0.0), Side::Neumann(-0.5)],
        [Side::Periodic; 2],
        [Side::Fixed, robin(1.0)],
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
        for shift in 0..5 {
            let sides: [_; 3] =
                std::array::from_fn(|axis| kinds[(which + shift * (axis + 1) + axis) % 5]);
            let problem = Problem3d {
                sides,
                source: rough(),
                initial: Some(by_point(|x, y, z| ((x + 2 * y + 3 * z) % 5) as f64)),
                coefficient: (shift != 1).then(|| {
                    by_point(|x, y, z| {
                        (1.5 * (x as f64 / 3.0).sin() * (y as f64 / 4.0).cos() + z as f64 / 20.0)
                            .exp()
                    })
                }),
                reaction: (shift == 2)
                    .then(|| by_point(|x, y, z| (noise(x, y, z as u64) % 3) as f64 / 100.0)),
                fixed: mask(move |x, y, z| {
                    noise(x, y + 1000 * z, 7).is_multiple_of(20 + 9 * shift as u64)
                        || (x, y, z) == (1, 1, 1)
                }),
                spacing: [0.5, 0.6, 0.45],
                ..Problem3d::laplace(size)
            };
            let solved = solve(&problem, 1e-9, 2);
            assert!(solved.converged, "{size:?} {sides:?} {:?}", solved.history);
            let cycles = solved.history.len();
            assert!(cycles <= 16, "{size:?} {shift} {sides:?}: {cycles} cycles");
            let worst = worst_residual(&problem, &solved.field);
            assert!(worst < 1e-7, "{size:?} {sides:?}: {worst}");
        }
    }
}

#[test]
fn a_coefficient_of_one_is_none() {
    let plain = Problem3d {
        sides: [
            [Side::Fixed, Side::Neumann(1.0)],
            [Side::Periodic; 2],
            [Side::Fixed; 2],
        ],
        source: rough(),
        initial: Some(by_point(|x, y, _| (x * y % 7) as f64)),
        ..Problem3d::laplace([33, 28, 30])
    };
    let general = Problem3d {
        coefficient: Some(by_point(|_, _, _| 1.0)),
        ..plain.clone()
    };
    let (one, other) = (solve(&plain, 1e-12, 1), solve(&general, 1e-12, 1));
    let largest = one.field.iter().fold(0.0f64, |most, u| most.max(u.abs()));
    for (a, b) in one.field.iter().zip(&other.field) {
        assert!((a - b).abs() < 1e-9 * largest, "{a} {b}");
    }
    let (a, b) = (one.history.len(), other.history.len());
    assert!(b <= a + 1, "{a} and {b} cycles");
}

#[test]
fn masks_take_few_cycles() {
    let n = 65;
    for (what, fixed, most) in [
        (
            "5 %",
            mask(|x, y, z| noise(x, y + 1000 * z, 3).is_multiple_of(20)),
            10,
        ),
        (
            "0.5 %",
            mask(|x, y, z| noise(x, y + 1000 * z, 3).is_multiple_of(200)),
            12,
        ),
        (
            "shells",
            mask(|x, y, z| {
                let r = |i: usize| (i as f64 - 30.3).powi(2);
                ((r(x) + r(y) + r(z)).sqrt() as usize).is_multiple_of(9)
            }),
            12,
        ),
        (
            "a corridor",
            mask(|x, _, z| x.is_multiple_of(7) && !(if (x / 7) % 2 == 0 { z < 6 } else { z > 58 })),
            14,
        ),
        ("one point", mask(|x, y, z| (x, y, z) == (31, 20, 40)), 14),
    ] {
        let problem = Problem3d {
            sides: [[Side::Neumann(0.0); 2]; 3],
            initial: Some(by_point(|x, y, z| (noise(x, y, z as u64) % 100) as f64)),
            source: rough(),
            fixed,
            ..Problem3d::laplace([n; 3])
        };
        let solved = solve(&problem, 1e-8, 2);
        let cycles = solved.history.len();
        assert!(
            solved.converged && cycles <= most,
            "{what}: {cycles} cycles {:?}",
            solved.history
        );
        assert!(worst_residual(&problem, &solved.field) < 1e-6, "{what}");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_pes() {
    for (sides, fixed) in [
        (
            [
                [Side::Fixed; 2],
                [Side::Neumann(0.5); 2],
                [robin(1.0), Side::Fixed],
            ],
            true,
        ),
        (
            [[Side::Periodic; 2], [Side::Fixed; 2], [Side::Periodic; 2]],
            true,
        ),
        (
            [[Side::Periodic; 2], [robin(0.5); 2], [Side::Periodic; 2]],
            false,
        ),
    ] {
        let problem = Problem3d {
            sides,
            source: rough(),
            coefficient: Some(by_point(|x, y, z| {
                1.0 + (noise(x, y, z as u64) % 16) as f64
            })),
            fixed: if fixed {
                mask(|x, y, z| noise(x, y, z as u64).is_multiple_of(40))
            } else {
                None
            },
            ..Problem3d::laplace([21, 18, 115])
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
fn magnitudes_of_any_size_are_solved() {
    for size in [1e-200, 1e-30, 1e30, 1e200] {
        let problem = Problem3d {
            coefficient: Some(by_point(move |x, _, _| size * (1 + x % 3) as f64)),
            source: Some(by_point(move |_, _, _| -size)),
            ..Problem3d::laplace([17, 18, 19])
        };
        let solved = solve(&problem, 1e-9, 2);
        assert!(
            solved.converged && solved.history.len() <= 14,
            "{size}: {:?}",
            solved.history
        );
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let plain = || Problem3d::<f64>::laplace([8, 9, 10]);
    let at = |place: (usize, usize, usize), value: f64| {
        Some(by_point(
            move |x, y, z| if (x, y, z) == place { value } else { 1.0 },
        ))
    };
    for (problem, expected) in [
        (
            Problem3d {
                coefficient: at((1, 2, 9), 0.0),
                ..plain()
            },
            "the coefficient at x = 1, y = 2, z = 9 (point numbers) is not positive and finite",
        ),
        (
            Problem3d {
                coefficient: at((1, 2, 3), f64::NAN),
                ..plain()
            },
            "the coefficient at x = 1, y = 2, z = 3 (point numbers) is not positive and finite",
        ),
        (
            Problem3d {
                reaction: at((7, 0, 3), -1.0),
                ..plain()
            },
            "the factor c at x = 7, y = 0, z = 3 (point numbers) is not zero, or positive and finite",
        ),
        (
            Problem3d {
                fixed: mask(|_, _, _| true),
                ..plain()
            },
            "",
        ),
        (
            Problem3d {
                sides: [
                    [Side::Fixed; 2],
                    [robin(-1.0), Side::Fixed],
                    [Side::Fixed; 2],
                ],
                ..plain()
            },
            "",
        ),
    ] {
        let error = spmd(2, |pe| solve_3d(pe, &problem, &options(1e-8), |_| {}).err());
        let Some(SolveError::Problem(error)) = error.unwrap().remove(0) else {
            panic!("accepted: {expected}");
        };
        assert!(
            expected.is_empty() || error.to_string() == expected,
            "{error}"
        );
    }
}

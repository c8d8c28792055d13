//! Solves whose arrays lie on a GPU have the bits of those that read rows on the host.
//!
//! Needs a GPU and NVRTC; where there is none the tests say so and pass, or fail with CROSSWARP_REQUIRE_GPU=1.

mod cycles;

use std::sync::Arc;

use crosswarp_cuda::{Buffer, BufferRef, Stream};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Cycles, DeviceArrays, First, Gpu, Method, Options, PlaneSource, Problem2d, Problem3d,
    Real, Robin, RowSource, Side, Solution, SolveError, Solver2d, Strategy, solve_3d,
    solve_3d_on_device,
};
use cycles::{alone, by_cell, mask, noise, options};

/// A GPU, or nothing where the test is skipped.
fn gpu(test: &str) -> Option<Gpu> {
    cycles::gpu(test, Strategy::Auto)
}

/// The values of all points.
fn values<F: Real>(size: [usize; 2], rows: &RowSource<F>) -> Vec<F> {
    let [nx, ny] = size;
    let mut all = vec![F::ZERO; nx * ny];
    for (y, row) in all.chunks_exact_mut(nx).enumerate() {
        rows(y, row);
    }
    all
}

/// What a source and a first guess are, each of them or none.
type Given<F> = [Option<RowSource<F>>; 2];

/// The bits of the field, and what else is said.
#[derive(Debug, PartialEq)]
struct Said {
    field: Vec<u64>,
    history: Vec<f64>,
    ends: (bool, bool, Option<f64>, Option<f64>),
}

fn said<F: Real>(solution: &Solution<F>, field: &[F]) -> Said {
    Said {
        field: field.iter().map(|value| value.to_f64().to_bits()).collect(),
        history: solution.history.clone(),
        ends: (
            solution.converged,
            solution.floor_reached,
            solution.floor,
            solution.projected,
        ),
    }
}

/// Solves `problem` by the same levels with each of `given`, on the host and on `gpu`.
fn assert_same<F: Real>(
    gpu: Gpu,
    name: &str,
    problem: &Problem2d<F>,
    given: &[Given<F>],
    options: &Options<'_>,
) {
    let on_gpu = Options {
        gpu: Some(gpu),
        ..options.clone()
    };
    let (size, points) = ([problem.nx, problem.ny], problem.nx * problem.ny);
    let cycles = options.method.cycles().expect("they are cycles");
    let _alone = alone();
    let done = spmd(1, |pe| {
        let mut host = Solver2d::new(pe, problem, cycles).unwrap();
        let mut device = Solver2d::new(pe, problem, cycles).unwrap();
        let stream = Stream::new(&gpu.device).unwrap();
        for (at, [source, initial]) in given.iter().enumerate() {
            let solution = host
                .solve(source.clone(), initial.clone(), options, |_| {})
                .unwrap();
            let expected = said(&solution, &solution.gather_all(pe).unwrap());
            let copy = |rows: &Option<RowSource<F>>| {
                let values = rows.as_ref().map(|rows| values(size, rows));
                values.map(|values| Buffer::from_slice(&stream, &values).unwrap())
            };
            let (source, initial) = (copy(source), copy(initial));
            let field = Buffer::new(&gpu.device, points).unwrap();
            let arrays = DeviceArrays {
                source: source.as_ref().map(BufferRef::from),
                initial: initial.as_ref().map(BufferRef::from),
                field: (&field).into(),
            };
            let mut seen = 0;
            let solution = device
                .solve_on_device(&arrays, &on_gpu, |_| seen += 1)
                .unwrap();
            let solution = solution.unwrap_or_else(|| panic!("{name}, {at}: left to the host"));
            assert_eq!(seen, solution.sweeps, "{name}, {at}");
            assert!(solution.rows().is_empty() && solution.choice.is_some());
            let found = said(&solution, &field.to_vec(&stream).unwrap());
            assert_eq!(found.history, expected.history, "{name}, {at}");
            assert_eq!(found.ends, expected.ends, "{name}, {at}");
            let other = (found.field.iter().zip(&expected.field)).position(|(a, b)| a != b);
            assert_eq!(other, None, "{name}, {at}: another value at that point");
        }
        host.free().unwrap();
        device.free().unwrap();
    });
    done.unwrap();
}

fn value(x: usize, y: usize, seed: u64) -> f64 {
    (noise(x, y, seed) >> 11) as f64 / (1u64 << 53) as f64
}

/// Sources and first guesses: usual ones, large and tiny ones, which are scaled, and none.
fn usual<F: Real>() -> Vec<Given<F>> {
    let source = |size: f64| Some(by_cell(move |x, y| size * (value(x, y, 1) - 0.5)));
    let initial = |size: f64| Some(by_cell(move |x, y| size * value(x, y, 2)));
    vec![
        [source(1e3), None],
        [source(1e3), initial(1.0)],
        [source(1e-15), None],
        [None, initial(1e15)],
        [source(1e15), initial(1e14)],
        [source(1e3), None],
    ]
}

fn of_type<F: Real>(gpu: Gpu) {
    let number = |value: f64| F::from_f64(value);
    let profile = |n: usize, seed| (0..n).map(move |i| number(value(i, 0, seed)));
    let fixed = |n: usize, seed| Boundary::Fixed(profile(n, seed).collect::<Vec<F>>());
    let slopes = |n: usize, seed| Boundary::Neumann(profile(n, seed).collect::<Vec<F>>());
    let plain = |nx, ny| Problem2d {
        spacing: 1.0 / 64.0,
        ..Problem2d::<F>::laplace(nx, ny)
    };
    let known = mask(|x, y| noise(x, y, 5).is_multiple_of(9));
    let (nx, ny) = (300, 171);
    let problems = [
        ("zero sides", plain(nx, ny)),
        ("few points", plain(3, 5)),
        (
            "rows with values",
            Problem2d {
                top: fixed(nx, 3),
                bottom: fixed(nx, 4),
                ..plain(nx, ny)
            },
        ),
        (
            "sides with values",
            Problem2d {
                left: fixed(ny, 3),
                right: slopes(ny, 4),
                top: slopes(nx, 6),
                bottom: fixed(nx, 7),
                ..plain(nx, ny)
            },
        ),
        (
            "rows that wrap around",
            Problem2d {
                top: Boundary::Periodic,
                bottom: Boundary::Periodic,
                left: slopes(ny, 4),
                ..plain(nx, ny)
            },
        ),
        (
            "columns that wrap around",
            Problem2d {
                left: Boundary::Periodic,
                right: Boundary::Periodic,
                ..plain(nx, ny)
            },
        ),
        (
            "known points",
            Problem2d {
                fixed: known.clone(),
                right: slopes(ny, 3),
                ..plain(nx, ny)
            },
        ),
        (
            "a coefficient",
            Problem2d {
                coefficient: Some(by_cell(|x, y| 1.0e5 + 3e5 * value(x, y, 8))),
                reaction: Some(by_cell(|x, _| x as f64)),
                fixed: known,
                left: slopes(ny, 3),
                bottom: slopes(nx, 4),
                row_spacing: Some(0.02),
                ..plain(nx, ny)
            },
        ),
        (
            "a mixed condition",
            Problem2d {
                top: Boundary::Robin(Robin {
                    value: vec![number(1.0); nx],
                    derivative: vec![number(0.5); nx],
                    right: profile(nx, 3).collect(),
                }),
                left: slopes(ny, 9),
                ..plain(nx, ny)
            },
        ),
    ];
    for (name, problem) in &problems {
        for first in [First::Full, First::V] {
            let cycles = Cycles {
                first,
                ..Cycles::default()
            };
            let options = Options {
                method: Method::Multigrid(cycles),
                ..options(1e-6)
            };
            let name = format!("{name}, {first:?}, {}", F::NAME);
            assert_same(gpu, &name, problem, &usual(), &options);
        }
    }
}

#[test]
fn arrays_of_f64_give_the_bits_of_rows() {
    if let Some(gpu) = gpu("arrays_of_f64_give_the_bits_of_rows") {
        of_type::<f64>(gpu);
    }
}

#[test]
fn arrays_of_f32_give_the_bits_of_rows() {
    if let Some(gpu) = gpu("arrays_of_f32_give_the_bits_of_rows") {
        of_type::<f32>(gpu);
    }
}

/// Where nothing ties the field to a value its mean is taken away, and from the source what does not cancel, if that is wanted.
#[test]
fn singular_problems_lose_their_means() {
    let Some(gpu) = gpu("singular_problems_lose_their_means") else {
        return;
    };
    let (nx, ny) = (131, 260);
    let wraps = || Boundary::<f64>::Periodic;
    let slopes = |n: usize| Boundary::Neumann((0..n).map(|i| value(i, 0, 3)).collect());
    let problems = [
        Problem2d {
            left: wraps(),
            right: wraps(),
            top: wraps(),
            bottom: wraps(),
            ..Problem2d::laplace(nx, ny)
        },
        Problem2d {
            left: slopes(ny),
            right: slopes(ny),
            top: slopes(nx),
            bottom: slopes(nx),
            ..Problem2d::laplace(nx, ny)
        },
        Problem2d {
            left: wraps(),
            right: wraps(),
            top: slopes(nx),
            bottom: slopes(nx),
            coefficient: Some(by_cell(|x, y| 1.0 + ((x - 1) % 129 + y) as f64)),
            ..Problem2d::laplace(nx, ny)
        },
    ];
    let options = Options {
        method: Method::Multigrid(Cycles::default()),
        project_source: true,
        ..options(1e-8)
    };
    for problem in &problems {
        assert_same(gpu, "singular", problem, &usual()[..3], &options);
    }
    let source =
        Buffer::from_slice(&Stream::new(&gpu.device).unwrap(), &vec![1.0; nx * ny]).unwrap();
    let field = Buffer::new(&gpu.device, nx * ny).unwrap();
    let arrays = DeviceArrays {
        source: Some((&source).into()),
        initial: None,
        field: (&field).into(),
    };
    let options = Options {
        gpu: Some(gpu),
        project_source: false,
        ..options
    };
    let _alone = alone();
    let error = spmd(1, |pe| {
        let mut solver = Solver2d::new(pe, &problems[0], &Cycles::default()).unwrap();
        let refused = solver.solve_on_device(&arrays, &options, |_| {});
        solver.free().unwrap();
        refused.err()
    });
    let error = error.unwrap().swap_remove(0);
    assert!(matches!(error, Some(SolveError::Problem(_))), "{error:?}");
}

/// By a plane's and a row's number.
fn by_point<F: Real>(of: impl Fn([usize; 3]) -> f64 + Send + Sync + 'static) -> PlaneSource<F> {
    Arc::new(move |z, y, row: &mut [F]| {
        for (x, value) in row.iter_mut().enumerate() {
            *value = F::from_f64(of([x, y, z]));
        }
    })
}

/// A source and a first guess.
type GivenInBox<F> = [Option<PlaneSource<F>>; 2];

fn assert_same_box<F: Real>(
    gpu: Gpu,
    name: &str,
    problem: &Problem3d<F>,
    [source, initial]: GivenInBox<F>,
    options: &Options<'_>,
) {
    let [nx, ny, nz] = problem.size;
    let of_host = Problem3d {
        source: source.clone(),
        initial: initial.clone(),
        ..problem.clone()
    };
    let _alone = alone();
    let expected = spmd(1, |pe| {
        let solution = solve_3d(pe, &of_host, options, |_| {}).unwrap();
        said(&solution, &solution.gather_all(pe).unwrap())
    });
    let expected = expected.unwrap().swap_remove(0);
    let on_gpu = Options {
        gpu: Some(gpu),
        ..options.clone()
    };
    let stream = Stream::new(&gpu.device).unwrap();
    let copy = |planes: Option<PlaneSource<F>>| {
        let planes = planes?;
        let mut all = vec![F::ZERO; nx * ny * nz];
        for (row, values) in all.chunks_exact_mut(nx).enumerate() {
            planes(row / ny, row % ny, values);
        }
        Some(Buffer::from_slice(&stream, &all).unwrap())
    };
    let (source, initial) = (copy(source), copy(initial));
    let field = Buffer::new(&gpu.device, nx * ny * nz).unwrap();
    let arrays = DeviceArrays {
        source: source.as_ref().map(BufferRef::from),
        initial: initial.as_ref().map(BufferRef::from),
        field: (&field).into(),
    };
    let found = spmd(1, |pe| {
        let solution = solve_3d_on_device(pe, problem, &arrays, &on_gpu, |_| {}).unwrap();
        let solution = solution.unwrap_or_else(|| panic!("{name}: left to the host"));
        said(&solution, &field.to_vec(&stream).unwrap())
    });
    let found = found.unwrap().swap_remove(0);
    assert_eq!(found.history, expected.history, "{name}");
    assert_eq!(found.ends, expected.ends, "{name}");
    let other = (found.field.iter().zip(&expected.field)).position(|(a, b)| a != b);
    assert_eq!(other, None, "{name}: another value at that point");
}

fn boxes_of_type<F: Real>(gpu: Gpu) {
    let slope = |value: f64| Side::Neumann(F::from_f64(value));
    let wraps = [Side::Periodic; 2];
    let size = [50, 33, 41];
    let sides = [
        [[Side::Fixed; 2]; 3],
        [
            [slope(0.5), Side::Fixed],
            [Side::Fixed; 2],
            [slope(-1.0), slope(0.25)],
        ],
        [wraps, [Side::Fixed; 2], [Side::Fixed, slope(2.0)]],
        [wraps, wraps, wraps],
        [[slope(1.0), slope(0.0)], [slope(-1.0), slope(3.0)], wraps],
    ];
    let source = |size: f64| -> Option<PlaneSource<F>> {
        Some(by_point(move |[x, y, z]| {
            size * (value(x, y + 100 * z, 1) - 0.5)
        }))
    };
    let initial = |size: f64| -> Option<PlaneSource<F>> {
        Some(by_point(move |[x, y, z]| size * value(x, y + 100 * z, 2)))
    };
    for (at, sides) in sides.into_iter().enumerate() {
        let problem = Problem3d {
            sides,
            spacing: [0.02, 0.03, 0.025],
            ..Problem3d::<F>::laplace(size)
        };
        for first in [First::Full, First::V] {
            let options = Options {
                method: Method::Multigrid(Cycles {
                    first,
                    ..Cycles::default()
                }),
                project_source: true,
                ..options(1e-6)
            };
            for (number, given) in [
                [source(1e3), None],
                [source(1e3), initial(1.0)],
                [source(1e-15), None],
                [None, initial(1e15)],
            ]
            .into_iter()
            .enumerate()
            {
                let name = format!("box {at}, {first:?}, {}, {number}", F::NAME);
                assert_same_box(gpu, &name, &problem, given, &options);
            }
        }
    }
}

#[test]
fn arrays_of_boxes_give_the_bits_of_planes() {
    let Some(gpu) = gpu("arrays_of_boxes_give_the_bits_of_planes") else {
        return;
    };
    boxes_of_type::<f64>(gpu);
    boxes_of_type::<f32>(gpu);
    let fixed: PlaneSource<u8> =
        Arc::new(|z, y, row: &mut [u8]| row[5] = (z == 3 && y == 4).into());
    let masked = Problem3d {
        fixed: Some(fixed),
        ..Problem3d::<f64>::laplace([9, 9, 9])
    };
    let plain = Problem3d::<f64>::laplace([9, 9, 9]);
    let stream = Stream::new(&gpu.device).unwrap();
    let field = Buffer::from_slice(&stream, &vec![7.0; 9 * 9 * 9]).unwrap();
    let wrong = Buffer::from_slice(&stream, &vec![f64::INFINITY; 9 * 9 * 9]).unwrap();
    let options = Options {
        gpu: Some(gpu),
        ..options(1e-6)
    };
    let _alone = alone();
    for (problem, source) in [(&masked, None), (&plain, Some((&wrong).into()))] {
        let arrays = DeviceArrays {
            source,
            initial: None,
            field: (&field).into(),
        };
        let left = spmd(1, |pe| {
            let solution = solve_3d_on_device(pe, problem, &arrays, &options, |_| {}).unwrap();
            solution.is_none()
        });
        assert!(left.unwrap()[0]);
        assert!(
            field
                .to_vec(&stream)
                .unwrap()
                .iter()
                .all(|&value| value == 7.0)
        );
    }
}

/// What the host has to say or to solve is left to it, and nothing is written; solves afterwards are as ever.
#[test]
fn what_the_host_has_to_solve_is_left_to_it() {
    let Some(gpu) = gpu("what_the_host_has_to_solve_is_left_to_it") else {
        return;
    };
    let n = 65;
    let problem = Problem2d::<f64>::laplace(n, n);
    let stream = Stream::new(&gpu.device).unwrap();
    let array = |value: f64| Buffer::from_slice(&stream, &vec![value; n * n]).unwrap();
    let (good, wrong, huge, field) = (array(1.0), array(f64::NAN), array(1e305), array(7.0));
    let on_gpu = |method| Options {
        gpu: Some(gpu),
        method,
        ..options(1e-9)
    };
    let cycles = on_gpu(Method::Multigrid(Cycles::default()));
    let gradients = on_gpu(Method::ConjugateGradients(Cycles::default()));
    let _alone = alone();
    let done = spmd(1, |pe| {
        let mut solver = Solver2d::new(pe, &problem, &Cycles::default()).unwrap();
        let mut solve = |source: &Buffer<f64>, options: &Options<'_>| {
            let arrays = DeviceArrays {
                source: Some(source.into()),
                initial: None,
                field: (&field).into(),
            };
            let solution = solver.solve_on_device(&arrays, options, |_| {}).unwrap();
            solution.is_some()
        };
        let on_host = Options {
            gpu: None,
            ..cycles.clone()
        };
        for (source, options) in [
            (&wrong, &cycles),
            (&huge, &cycles),
            (&good, &gradients),
            (&good, &on_host),
        ] {
            assert!(!solve(source, options));
            assert!(
                field
                    .to_vec(&stream)
                    .unwrap()
                    .iter()
                    .all(|&value| value == 7.0)
            );
        }
        assert!(solve(&good, &cycles));
        assert!(field.to_vec(&stream).unwrap()[0] == 0.0);
        solver.free().unwrap();
    });
    done.unwrap();
    // Of two PEs each would have a part.
    let done = spmd(2, |pe| {
        let mut solver = Solver2d::new(pe, &problem, &Cycles::default()).unwrap();
        let arrays = DeviceArrays {
            source: Some((&good).into()),
            initial: None,
            field: (&field).into(),
        };
        let solution = solver.solve_on_device(&arrays, &cycles, |_| {}).unwrap();
        assert!(solution.is_none());
        solver.free().unwrap();
    });
    done.unwrap();
    let by_rows = Problem2d {
        source: Some(by_cell(|_, _| 1.0)),
        ..problem
    };
    let slow = Problem2d {
        coefficient: Some(by_cell(
            |x, y| if (x / 2 + y / 2) % 2 == 0 { 1.0 } else { 1e6 },
        )),
        ..Problem2d::<f64>::laplace(n, n)
    };
    let automatic = on_gpu(Method::Automatic(Cycles::default()));
    for (problem, source) in [(&by_rows, None), (&slow, Some(&good))] {
        let done = spmd(1, |pe| {
            let mut solver = Solver2d::new(pe, problem, &Cycles::default()).unwrap();
            let arrays = DeviceArrays {
                source: source.map(BufferRef::from),
                initial: None,
                field: (&field).into(),
            };
            let solution = solver.solve_on_device(&arrays, &automatic, |_| {}).unwrap();
            assert!(solution.is_none());
            let one: RowSource<f64> = Arc::new(|_, row: &mut [f64]| row.fill(1.0));
            let solved = solver.solve(Some(one), None, &automatic, |_| {}).unwrap();
            assert!(solved.converged);
            solver.free().unwrap();
        });
        done.unwrap();
    }
}

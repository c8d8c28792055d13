//! Operators of planes made of arrays on a GPU give the bits of those that the host makes of rows.
//!
//! Needs a GPU and NVRTC; where there is none the tests say so and pass, or fail with CROSSWARP_REQUIRE_GPU=1.

mod cycles;

use crosswarp_cuda::{Buffer, BufferRef, Stream};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, DeviceArrays, DeviceOperator, Gpu, Options, Problem2d, Real, Robin, RowSource,
    Solution, SolveError, Strategy, solve_2d, solve_2d_on_device,
};
use cycles::{alone, by_cell, mask, noise, options};

/// A GPU, or nothing where the test is skipped.
fn gpu(test: &str) -> Option<Gpu> {
    cycles::gpu(test, Strategy::Auto)
}

fn value(x: usize, y: usize, seed: u64) -> f64 {
    (noise(x, y, seed) >> 11) as f64 / (1u64 << 53) as f64
}

/// What rows deliver, in the memory of a GPU.
fn copied<T: bytemuck::Pod + Default>(
    stream: &Stream,
    [nx, ny]: [usize; 2],
    rows: &Option<RowSource<T>>,
) -> Option<Buffer<T>> {
    let rows = rows.as_ref()?;
    let mut all = vec![T::default(); nx * ny];
    for (y, row) in all.chunks_exact_mut(nx).enumerate() {
        rows(y, row);
    }
    Some(Buffer::from_slice(stream, &all).unwrap())
}

/// And the field.
type Solved<F> = (Solution<F>, Vec<F>);

/// Solves `problem` with all its arrays on `gpu`.
fn solved_there<F: Real + Default>(
    gpu: Gpu,
    problem: &Problem2d<F>,
    options: &Options<'_>,
) -> Result<Option<Solved<F>>, SolveError> {
    let _alone = alone();
    let options = Options {
        gpu: Some(gpu),
        ..options.clone()
    };
    let stream = Stream::new(&gpu.device).unwrap();
    let size = [problem.nx, problem.ny];
    let planes = [
        &problem.source,
        &problem.initial,
        &problem.coefficient,
        &problem.reaction,
    ]
    .map(|rows| copied(&stream, size, rows));
    let [source, initial, coefficient, reaction] = planes
        .each_ref()
        .map(|plane| plane.as_ref().map(BufferRef::from));
    let fixed = copied(&stream, size, &problem.fixed);
    let field = Buffer::new(&gpu.device, problem.nx * problem.ny).unwrap();
    let operator = DeviceOperator {
        fixed: fixed.as_ref().map(BufferRef::from),
        coefficient,
        reaction,
    };
    let arrays = DeviceArrays {
        source,
        initial,
        field: (&field).into(),
    };
    let rest = Problem2d {
        source: None,
        initial: None,
        coefficient: None,
        reaction: None,
        fixed: None,
        ..problem.clone()
    };
    let done = spmd(1, |pe| {
        let solution = solve_2d_on_device(pe, &rest, &operator, &arrays, &options, |_| {})?;
        Ok(solution.map(|solution| (solution, field.to_vec(&stream).unwrap())))
    });
    done.unwrap().swap_remove(0)
}

fn assert_same<F: Real + Default>(
    gpu: Gpu,
    name: &str,
    problem: &Problem2d<F>,
    options: &Options<'_>,
) {
    let host = spmd(1, |pe| {
        let solution = solve_2d(pe, problem, options, |_| {}).unwrap();
        let field = solution.gather_all(pe).unwrap();
        (solution, field)
    });
    let (expected, field) = host.unwrap().swap_remove(0);
    let there = solved_there(gpu, problem, options).unwrap();
    let (solution, found) = there.unwrap_or_else(|| panic!("{name}: left to the host"));
    assert_eq!(solution.history, expected.history, "{name}");
    assert_eq!(solution.floor, expected.floor, "{name}");
    assert_eq!(solution.converged, expected.converged, "{name}");
    let bits = |value: &F| value.to_f64().to_bits();
    let other = (found.iter().zip(&field)).position(|(a, b)| bits(a) != bits(b));
    assert_eq!(other, None, "{name}: another value at that point");
}

fn of_type<F: Real + Default>(gpu: Gpu) {
    let options = options(1e-9);
    let (nx, ny) = (302, 172);
    let kappa = |size: f64| by_cell(move |x, y| size * (0.5 + 3.0 * value(x, y, 8)));
    let profile = |n: usize, seed| (0..n).map(move |i| F::from_f64(value(i, 0, seed)));
    let fixed = |n: usize, seed| Boundary::Fixed(profile(n, seed).collect::<Vec<F>>());
    let slopes = |n: usize, seed| Boundary::Neumann(profile(n, seed).collect::<Vec<F>>());
    let mixed = |n: usize, seed| {
        Boundary::Robin(Robin {
            value: profile(n, seed).collect(),
            derivative: profile(n, seed + 1)
                .map(|b| F::from_f64(0.5 + b.to_f64()))
                .collect(),
            right: profile(n, seed + 2).collect(),
        })
    };
    let plain = || Problem2d::<F> {
        spacing: 1.0 / 64.0,
        source: Some(by_cell(|x, y| 1e3 * (value(x, y, 1) - 0.5))),
        ..Problem2d::laplace(nx, ny)
    };
    let around = move |x: usize, y: usize| ((x + nx - 3) % (nx - 2), (y + ny - 3) % (ny - 2));
    let known = || mask(|x, y| noise(x, y, 5).is_multiple_of(19));
    for size in [1.0, 1e-14, 1e14] {
        let problem = Problem2d {
            coefficient: Some(kappa(size)),
            source: Some(by_cell(move |x, y| size * (value(x, y, 1) - 0.5))),
            initial: Some(by_cell(|x, y| value(x, y, 2))),
            left: fixed(ny, 3),
            right: slopes(ny, 4),
            ..plain()
        };
        assert_same(gpu, &format!("a coefficient of {size}"), &problem, &options);
    }
    let problem = Problem2d {
        reaction: Some(by_cell(|x, y| 1e3 * value(x, y, 9))),
        row_spacing: Some(1.0 / 100.0),
        top: mixed(nx, 11),
        right: mixed(ny, 21),
        ..plain()
    };
    assert_same(gpu, "a factor c", &problem, &options);
    let problem = Problem2d {
        coefficient: Some(kappa(1.0)),
        left: mixed(ny, 11),
        right: mixed(ny, 21),
        bottom: mixed(nx, 31),
        top: mixed(nx, 41),
        ..problem
    };
    assert_same(gpu, "all that differs", &problem, &options);
    let problem = Problem2d {
        fixed: known(),
        initial: Some(by_cell(|x, y| value(x, y, 2))),
        top: Boundary::Neumann(vec![F::ZERO; nx]),
        ..plain()
    };
    assert_same(gpu, "fixed cells", &problem, &options);
    let problem = Problem2d {
        coefficient: Some(kappa(1.0)),
        ..problem
    };
    assert_same(gpu, "fixed cells and a coefficient", &problem, &options);
    let problem = Problem2d {
        left: Boundary::Periodic,
        right: Boundary::Periodic,
        coefficient: Some(by_cell(move |x, y| {
            let (x, y) = around(x, y);
            0.5 + value(x, y, 8)
        })),
        ..plain()
    };
    assert_same(gpu, "columns that wrap around", &problem, &options);
    let problem = Problem2d {
        top: Boundary::Periodic,
        bottom: Boundary::Periodic,
        fixed: mask(move |x, y| {
            let (x, y) = around(x, y);
            noise(x, y, 5).is_multiple_of(40)
        }),
        initial: Some(by_cell(move |x, y| {
            let (x, y) = around(x, y);
            value(x, y, 2)
        })),
        ..problem
    };
    assert_same(gpu, "both wrap around", &problem, &options);
    let problem = Problem2d {
        left: slopes(ny, 5),
        right: slopes(ny, 6),
        top: Boundary::Neumann(vec![F::ZERO; nx]),
        bottom: Boundary::Neumann(vec![F::ZERO; nx]),
        coefficient: Some(kappa(1.0)),
        ..plain()
    };
    let projected = Options {
        project_source: true,
        ..options
    };
    assert_same(gpu, "nothing fixed", &problem, &projected);
}

#[test]
fn arrays_of_f32_give_the_operator_of_rows() {
    if let Some(gpu) = gpu("arrays_of_f32_give_the_operator_of_rows") {
        of_type::<f32>(gpu);
    }
}

#[test]
fn arrays_of_f64_give_the_operator_of_rows() {
    if let Some(gpu) = gpu("arrays_of_f64_give_the_operator_of_rows") {
        of_type::<f64>(gpu);
    }
}

#[test]
fn what_the_host_says_more_of_is_left_to_it() {
    let Some(gpu) = gpu("what_the_host_says_more_of_is_left_to_it") else {
        return;
    };
    let options = options(1e-8);
    let at = |what: f64| by_cell(move |x, y| if (x, y) == (7, 150) { what } else { 1.0 });
    let usual = Problem2d::<f64> {
        source: Some(by_cell(|_, _| 1.0)),
        coefficient: Some(at(2.0)),
        reaction: Some(at(0.0)),
        ..Problem2d::laplace(300, 170)
    };
    let is_left =
        |problem: &Problem2d<f64>| solved_there(gpu, problem, &options).unwrap().is_none();
    assert!(!is_left(&usual));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let coefficient = Some(at(wrong));
        assert!(
            is_left(&Problem2d {
                coefficient,
                ..usual.clone()
            }),
            "κ {wrong}"
        );
    }
    for wrong in [-1e-9, f64::NAN, f64::INFINITY] {
        let reaction = Some(at(wrong));
        assert!(
            is_left(&Problem2d {
                reaction,
                ..usual.clone()
            }),
            "c {wrong}"
        );
    }
    let tiny = Problem2d {
        coefficient: Some(by_cell(|_, _| 1e-305)),
        ..usual.clone()
    };
    assert!(is_left(&tiny));
    let crossed = Problem2d {
        fixed: mask(|x, y| (x, y) == (50, 60)),
        left: Boundary::Neumann(vec![1.0; 170]),
        ..usual.clone()
    };
    assert!(is_left(&crossed));
    let small = Problem2d {
        source: Some(by_cell(|_, _| 1.0)),
        coefficient: Some(by_cell(|_, _| 1.0)),
        ..Problem2d::laplace(40, 30)
    };
    assert!(is_left(&small));
    let all_fixed = Problem2d {
        fixed: mask(|_, _| true),
        ..usual
    };
    assert!(solved_there(gpu, &all_fixed, &options).is_err());
}

//! Cycles and steps in boxes on a GPU have the bits of the CPU's: field, and residual after every one.
//!
//! Needs a GPU and NVRTC; where there is none the tests say so and pass, or fail with CROSSWARP_REQUIRE_GPU=1.

mod boxes;
mod cycles;

use std::sync::Arc;

use boxes::{by_point, mask};
use crosswarp_cuda::Device;
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Checkpointing, Cycles, First, Gpu, GpuError, Method, Options, OptionsError, PlaneSource,
    Problem3d, Real, Side, SolveError, Strategy, solve_3d,
};
use cycles::{alone, noise, options};

/// A GPU, or nothing where the test is skipped.
fn gpu(test: &str) -> Option<Gpu> {
    // Levels are dealt to PEs, however small.
    cycles::gpu(test, Strategy::DevicePut)
}

/// The bits of the field and of the residuals, and how it ended.
#[derive(Debug, PartialEq)]
struct Solved {
    history: Vec<f64>,
    field: Vec<u64>,
    ends: (bool, bool, Option<usize>),
}

/// On CPUs, or on `gpu` and the others that there are, by turns.
fn solve<F: Real>(
    gpu: Option<Gpu>,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    pes: usize,
) -> Solved {
    let devices: Vec<Device> = match gpu {
        Some(_) => (0..).map_while(|at| Device::get(at).ok()).collect(),
        None => Vec::new(),
    };
    let _alone = gpu.map(|_| alone());
    let mut all = spmd(pes, |pe| {
        let gpu = gpu.map(|gpu| Gpu {
            device: devices[pe.my_pe() % devices.len()],
            ..gpu
        });
        let options = Options {
            gpu,
            ..options.clone()
        };
        let solution = solve_3d(pe, problem, &options, |_| {}).unwrap();
        let choice = solution.choice.as_ref().map(|choice| choice.taken);
        let of_levels = !matches!(options.method, Method::Chebyshev | Method::PlainGradients);
        let taken = if of_levels { "cycles" } else { "steps" };
        assert_eq!(choice, gpu.map(|_| taken));
        let field = solution.gather_all(pe).unwrap();
        let bits = field.iter().map(|value| value.to_f64().to_bits());
        Solved {
            history: solution.history.clone(),
            field: bits.collect(),
            ends: (
                solution.converged,
                solution.floor_reached,
                solution.gradients_from,
            ),
        }
    })
    .unwrap();
    all.swap_remove(0)
}

fn assert_same(found: &Solved, cpu: &Solved, name: &str) {
    assert_eq!(found.history, cpu.history, "{name}");
    let other = (found.field.iter().zip(&cpu.field)).position(|(a, b)| a != b);
    assert_eq!(other, None, "{name}: another value at that point");
    assert_eq!(found.ends, cpu.ends, "{name}");
}

/// Compares these numbers of PEs with the CPU, and gives the cycles.
fn same<F: Real>(
    gpu: Gpu,
    name: &str,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    pes: &[usize],
) -> usize {
    let cpu = solve(None, problem, options, 1);
    for &pes in pes {
        let found = solve(Some(gpu), problem, options, pes);
        assert_same(&found, &cpu, &format!("{name}, {pes} PEs"));
    }
    cpu.history.len()
}

fn values<F: Real>(seed: u64) -> PlaneSource<F> {
    Arc::new(move |z, y, row: &mut [F]| {
        for (x, value) in row.iter_mut().enumerate() {
            let bits = noise(x, y + 1000 * z, seed) >> 11;
            *value = F::from_f64(bits as f64 / (1u64 << 53) as f64 - 0.5);
        }
    })
}

/// Noise on the right, at the start, and on fixed sides.
fn noisy<F: Real>(size: [usize; 3]) -> Problem3d<F> {
    Problem3d {
        source: Some(values(1)),
        initial: Some(values(2)),
        ..Problem3d::laplace(size)
    }
}

const FIXED: [Side<f64>; 2] = [Side::Fixed; 2];
const WRAPS: [Side<f64>; 2] = [Side::Periodic; 2];

#[test]
fn fixed_sides_at_every_size() {
    let Some(gpu) = gpu("fixed_sides_at_every_size") else {
        return;
    };
    for size in [
        [3, 3, 3],
        [33, 33, 33],
        [65, 40, 97],
        [18, 75, 34],
        [130, 7, 9],
        [4, 100, 5],
        [6, 5, 90],
    ] {
        let name = format!("{size:?}");
        let problem = noisy::<f64>(size);
        same(gpu, &name, &problem, &options(1e-9), &[1, 2, 3]);
        let problem = Problem3d {
            spacing: [0.3, 0.4, 0.35],
            ..noisy::<f32>(size)
        };
        same(
            gpu,
            &format!("{name}, f32"),
            &problem,
            &options(1e-7),
            &[1, 2],
        );
    }
}

#[test]
fn sides_of_every_kind() {
    let Some(gpu) = gpu("sides_of_every_kind") else {
        return;
    };
    let slopes = [Side::Neumann(0.5), Side::Fixed];
    let other = [Side::Fixed, Side::Neumann(-1.0)];
    for (which, size) in [[17, 24, 13], [50, 33, 40], [31, 66, 29]]
        .into_iter()
        .enumerate()
    {
        for (kind, sides) in [
            [slopes, FIXED, other],
            [WRAPS, FIXED, FIXED],
            [FIXED, WRAPS, other],
            [FIXED, slopes, WRAPS],
            [WRAPS, WRAPS, FIXED],
            [WRAPS, slopes, WRAPS],
        ]
        .into_iter()
        .enumerate()
        {
            let problem = Problem3d {
                sides,
                spacing: [1.0, 0.9, 1.1],
                ..noisy::<f64>(size)
            };
            let name = format!("{size:?}, sides {kind}");
            same(gpu, &name, &problem, &options(1e-8), &[1, 2 + which % 2]);
        }
        // Singular: a source of mean zero.
        let [nx, ny, nz] = size;
        let middle = |n: usize| (n - 1) as f64 / 2.0;
        let problem = Problem3d {
            sides: [WRAPS; 3],
            source: Some(by_point(move |x, y, z| {
                x as f64 - middle(nx) + (y as f64 - middle(ny)) * (z as f64 - middle(nz))
            })),
            ..Problem3d::laplace(size)
        };
        let name = format!("{size:?}, nothing fixed");
        same(gpu, &name, &problem, &options(1e-8), &[1, 2]);
    }
}

/// Red-black order on axes that wrap around: tiles lie across their ends, or are wider than they are.
#[test]
fn even_axes_that_wrap_around() {
    let Some(gpu) = gpu("even_axes_that_wrap_around") else {
        return;
    };
    for size in [
        [64, 64, 64],
        [128, 100, 36],
        [60, 136, 40],
        [8, 8, 8],
        [256, 12, 20],
    ] {
        for (kind, sides) in [
            [WRAPS, FIXED, FIXED],
            [FIXED, WRAPS, FIXED],
            [FIXED, FIXED, WRAPS],
            [WRAPS, WRAPS, FIXED],
            [FIXED, WRAPS, WRAPS],
            [WRAPS, FIXED, WRAPS],
        ]
        .into_iter()
        .enumerate()
        {
            // Couplings that are the same power of two, or not.
            for spacing in [[1.0; 3], [1.0, 0.9, 1.1]] {
                let problem = Problem3d {
                    sides,
                    spacing,
                    ..noisy::<f64>(size)
                };
                let name = format!("{size:?}, sides {kind}, spacing {spacing:?}");
                same(gpu, &name, &problem, &options(1e-8), &[1, 2]);
            }
        }
    }
}

/// Where the field is zero at first, the right side is the residual.
#[test]
fn fields_that_begin_with_zero() {
    let Some(gpu) = gpu("fields_that_begin_with_zero") else {
        return;
    };
    for (size, sides) in [
        ([65, 40, 97], [FIXED; 3]),
        ([130, 71, 33], [FIXED; 3]),
        ([3, 3, 3], [FIXED; 3]),
        ([72, 100, 36], [FIXED, WRAPS, FIXED]),
        (
            [35, 50, 36],
            [WRAPS, FIXED, [Side::Neumann(0.5), Side::Fixed]],
        ),
        ([70, 36, 52], [FIXED, FIXED, WRAPS]),
    ] {
        for first in [First::V, First::Full] {
            let problem = Problem3d {
                sides,
                initial: None,
                ..noisy::<f64>(size)
            };
            let cycles = Cycles {
                first,
                ..Cycles::default()
            };
            let options = Options {
                method: Method::Multigrid(cycles),
                ..options(1e-8)
            };
            let name = format!("{size:?}, {sides:?}, first {first:?}");
            same(gpu, &name, &problem, &options, &[1, 2, 3]);
        }
    }
}

#[test]
fn any_relaxations_and_first_cycles() {
    let Some(gpu) = gpu("any_relaxations_and_first_cycles") else {
        return;
    };
    for (pre, post) in [(1, 1), (1, 2), (2, 1), (3, 1), (2, 3), (3, 3)] {
        for first in [First::V, First::Full] {
            let options = Options {
                method: Method::Multigrid(Cycles { pre, post, first }),
                ..options(1e-8)
            };
            let name = format!("V({pre},{post}), first {first:?}");
            let problem = noisy::<f64>([41, 37, 30]);
            same(gpu, &name, &problem, &options, &[1, 2]);
        }
    }
}

/// Few cycles on few points: every kernel, for tools under which they take a hundred times as long.
#[test]
fn every_kernel_on_few_points() {
    let Some(gpu) = gpu("every_kernel_on_few_points") else {
        return;
    };
    let periodic = Problem3d {
        sides: [WRAPS, FIXED, WRAPS],
        ..noisy::<f64>([30, 19, 12])
    };
    for (name, problem) in [("plain", noisy([30, 19, 12])), ("periodic", periodic)] {
        for (pre, post) in [(2, 2), (1, 2)] {
            let cycles = Cycles {
                pre,
                post,
                ..Cycles::default()
            };
            let options = Options {
                method: Method::Multigrid(cycles),
                ..Options::new(1e-30, 2)
            };
            same(gpu, name, &problem, &options, &[1]);
        }
    }
}

/// So many planes a PE that several levels are dealt to them.
#[test]
fn levels_are_dealt_to_any_number_of_pes() {
    let Some(gpu) = gpu("levels_are_dealt_to_any_number_of_pes") else {
        return;
    };
    for (name, z) in [("plain", FIXED), ("periodic", WRAPS)] {
        let problem = Problem3d {
            sides: [FIXED, FIXED, z],
            ..noisy::<f64>([45, 38, 131])
        };
        for (pre, post) in [(2, 2), (3, 1)] {
            let options = Options {
                method: Method::Multigrid(Cycles {
                    pre,
                    post,
                    ..Cycles::default()
                }),
                ..options(1e-8)
            };
            let name = format!("{name}, V({pre},{post})");
            same(gpu, &name, &problem, &options, &[1, 2, 3, 5, 8]);
            let through_hosts = Gpu {
                strategy: Strategy::HostExchange,
                ..gpu
            };
            same(through_hosts, &name, &problem, &options, &[3]);
        }
    }
}

/// Halos of many blocks, of PEs that share GPUs: blocks that wait leave room for the passes that they wait for.
#[test]
fn large_boxes_are_dealt_by_themselves() {
    let Some(gpu) = gpu("large_boxes_are_dealt_by_themselves") else {
        return;
    };
    let automatic = Gpu {
        strategy: Strategy::Auto,
        ..gpu
    };
    let problem = noisy::<f64>([180, 190, 200]);
    same(automatic, "large", &problem, &options(1e-2), &[2, 8]);
}

/// Checkpoints of cycles go from CPUs to GPUs and back.
#[test]
fn cycles_on_gpus_are_resumed_anywhere() {
    let Some(gpu) = gpu("cycles_on_gpus_are_resumed_anywhere") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = noisy::<f64>([35, 30, 60]);
    let options = Options {
        method: Method::Automatic(Cycles::default()),
        ..options(1e-10)
    };
    let straight = solve(None, &problem, &options, 1);
    let saving = Options {
        checkpoint: Some(Checkpointing {
            path: path.clone(),
            every: 3,
        }),
        max_sweeps: 4,
        ..options.clone()
    };
    let resuming = Options {
        resume: Some(path.clone()),
        ..options.clone()
    };
    for pes in [1, 3] {
        solve(Some(gpu), &problem, &saving, pes);
        let found = solve(None, &problem, &resuming, 2);
        assert_same(&found, &straight, "from GPUs");
        solve(None, &problem, &saving, 2);
        let found = solve(Some(gpu), &problem, &resuming, pes);
        assert_same(&found, &straight, "to GPUs");
    }
}

/// The methods that are not cycles alone.
fn others() -> [Method; 3] {
    [
        Method::ConjugateGradients(Cycles::default()),
        Method::PlainGradients,
        Method::Chebyshev,
    ]
}

#[test]
fn gradients_and_chebyshevs_iteration_have_the_cpus_bits() {
    let Some(gpu) = gpu("gradients_and_chebyshevs_iteration_have_the_cpus_bits") else {
        return;
    };
    let slopes = [Side::Neumann(0.5), Side::Fixed];
    for size in [[5, 4, 6], [40, 33, 26], [17, 20, 61], [300, 20, 18]] {
        for (kind, sides) in [
            [FIXED, FIXED, FIXED],
            [slopes, FIXED, WRAPS],
            [WRAPS, slopes, FIXED],
        ]
        .into_iter()
        .enumerate()
        {
            for method in others() {
                let problem = Problem3d {
                    sides,
                    spacing: [1.0, 0.9, 1.1],
                    ..noisy::<f64>(size)
                };
                let name = format!("{size:?}, sides {kind}, {method:?}");
                let options = Options {
                    method,
                    max_sweeps: 50,
                    ..options(1e-9)
                };
                same(gpu, &name, &problem, &options, &[1, 3]);
            }
        }
    }
}

/// Boxes whose couplings differ from point to point: by their sides, masks, coefficients and reactions.
fn of_points(size: [usize; 3]) -> Vec<(&'static str, Problem3d<f64>)> {
    let robin = Side::Robin {
        value: 2.0,
        derivative: 1.0,
        right: 0.3,
    };
    let sparse = mask(|x, y, z| noise(x, y + 1000 * z, 7).is_multiple_of(60));
    let uneven = Some(by_point(|x, y, z| {
        (2.0 * (x as f64 / 9.0).sin() * (y as f64 / 7.0).cos() + (z as f64 / 11.0).sin()).exp()
    }));
    vec![
        (
            "fixed points",
            Problem3d {
                fixed: sparse.clone(),
                ..noisy(size)
            },
        ),
        (
            "mixed sides",
            Problem3d {
                sides: [[robin, Side::Neumann(0.5)], FIXED, [Side::Fixed, robin]],
                ..noisy(size)
            },
        ),
        (
            "coefficient, one ring",
            Problem3d {
                sides: [WRAPS, [Side::Neumann(-1.0), Side::Fixed], FIXED],
                coefficient: uneven.clone(),
                reaction: Some(by_point(|x, y, z| value_at(x, y, z, 9))),
                spacing: [1.0, 0.9, 1.1],
                ..noisy(size)
            },
        ),
        (
            "coefficient, two rings",
            Problem3d {
                sides: [FIXED, WRAPS, WRAPS],
                coefficient: uneven,
                fixed: sparse,
                ..noisy(size)
            },
        ),
        (
            "checkerboard",
            Problem3d {
                coefficient: Some(by_point(|x, y, z| {
                    if (x / 5 + y / 4 + z / 6) % 2 == 0 {
                        1e4
                    } else {
                        1.0
                    }
                })),
                ..noisy(size)
            },
        ),
    ]
}

fn value_at(x: usize, y: usize, z: usize, seed: u64) -> f64 {
    (noise(x, y + 1000 * z, seed) >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn couplings_of_points_have_the_cpus_bits() {
    let Some(gpu) = gpu("couplings_of_points_have_the_cpus_bits") else {
        return;
    };
    let cycles = Cycles::default;
    let uneven = Cycles {
        pre: 1,
        post: 3,
        first: First::V,
    };
    for size in [[5, 4, 6], [40, 33, 26], [17, 20, 61], [300, 18, 14]] {
        for (name, problem) in of_points(size) {
            for method in [
                Method::Multigrid(cycles()),
                Method::Multigrid(uneven.clone()),
                Method::Automatic(cycles()),
            ]
            .into_iter()
            .chain(others())
            {
                let name = format!("{name}, {size:?}, {method:?}");
                let options = Options {
                    method,
                    max_sweeps: 15,
                    ..options(1e-9)
                };
                same(gpu, &name, &problem, &options, &[1, 3]);
            }
        }
    }
}

/// So many planes a PE that coarse levels, too, are dealt to them, with sides at whose ends there is an equation.
#[test]
fn levels_of_points_are_dealt_to_any_number_of_pes() {
    let Some(gpu) = gpu("levels_of_points_are_dealt_to_any_number_of_pes") else {
        return;
    };
    let free = [Side::Neumann(0.5), Side::Neumann(-0.5)];
    for (nz, pes) in [(80, [2, 3]), (131, [3, 5])] {
        let size = [40, 38, nz];
        for (name, problem) in of_points(size) {
            for sides in [[FIXED, FIXED, free], [FIXED, free, WRAPS]] {
                // Mixed sides are another problem's.
                let sides = if name == "mixed sides" {
                    problem.sides
                } else {
                    sides
                };
                let problem = Problem3d {
                    sides,
                    ..problem.clone()
                };
                let options = Options {
                    method: Method::Automatic(Cycles::default()),
                    max_sweeps: 8,
                    ..options(1e-9)
                };
                same(gpu, &format!("{name}, {size:?}"), &problem, &options, &pes);
            }
        }
    }
}

#[test]
fn points_on_gpus_are_resumed_anywhere() {
    let Some(gpu) = gpu("points_on_gpus_are_resumed_anywhere") else {
        return;
    };
    for (name, problem) in of_points([40, 33, 60]) {
        for method in [Method::Automatic(Cycles::default()), Method::Chebyshev] {
            are_resumed_anywhere(gpu, name, &problem, method, false);
        }
    }
}

/// Checkpoints of all methods go from CPUs to GPUs and back, in the middle of conjugate gradients, too.
#[test]
fn other_methods_on_gpus_are_resumed_anywhere() {
    let Some(gpu) = gpu("other_methods_on_gpus_are_resumed_anywhere") else {
        return;
    };
    let problem = Problem3d {
        spacing: [1.0, 1.0, 12.0],
        ..noisy::<f64>([40, 33, 60])
    };
    let automatic = Method::Automatic(Cycles::default());
    for method in others().into_iter().chain([automatic]) {
        // Cycles are slow there.
        let switches = matches!(method, Method::Automatic(_));
        are_resumed_anywhere(gpu, "flat", &problem, method, switches);
    }
}

/// Solves on a GPU, from a checkpoint of a CPU, and the other way round. `switches`: whether cycles have given way to
/// conjugate gradients when the checkpoint is written.
fn are_resumed_anywhere(
    gpu: Gpu,
    name: &str,
    problem: &Problem3d<f64>,
    method: Method,
    switches: bool,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let options = Options {
        method,
        max_sweeps: 20,
        ..options(1e-12)
    };
    let straight = solve(None, problem, &options, 1);
    let saving = Options {
        checkpoint: Some(Checkpointing {
            path: path.clone(),
            every: 4,
        }),
        max_sweeps: 7,
        ..options.clone()
    };
    let resuming = Options {
        resume: Some(path.clone()),
        ..options.clone()
    };
    for pes in [1, 3] {
        let name = format!("{name}, {:?}, {pes} PEs", options.method);
        let saved = solve(Some(gpu), problem, &saving, pes);
        if switches {
            assert!(saved.ends.2.is_some_and(|from| from < 6), "{name}");
        }
        let found = solve(None, problem, &resuming, 2);
        assert_same(&found, &straight, &format!("from GPUs, {name}"));
        solve(None, problem, &saving, 2);
        let found = solve(Some(gpu), problem, &resuming, pes);
        assert_same(&found, &straight, &format!("to GPUs, {name}"));
    }
}

#[test]
fn extreme_magnitudes_and_the_floor() {
    let Some(gpu) = gpu("extreme_magnitudes_and_the_floor") else {
        return;
    };
    for size in [1e-170, 1e-20, 1e25, 1e200] {
        let problem = Problem3d {
            initial: Some(by_point(move |_, _, z| if z == 0 { size } else { 0.0 })),
            ..Problem3d::laplace([27, 20, 24])
        };
        let name = format!("sides of {size}");
        let cycles = same(gpu, &name, &problem, &options(1e-8), &[1]);
        assert!(cycles <= 14, "{size}: {cycles} cycles");
    }
    // Less than rounding leaves; and where cycles are slow, conjugate gradients take over.
    let cycles = same(
        gpu,
        "floor",
        &noisy::<f64>([33; 3]),
        &options(1e-18),
        &[1, 2],
    );
    assert!(cycles < 40);
    let automatic = Options {
        method: Method::Automatic(Cycles::default()),
        ..options(1e-9)
    };
    let flat = Problem3d {
        spacing: [1.0, 1.0, 12.0],
        ..noisy::<f64>([40, 33, 26])
    };
    same(gpu, "flat", &flat, &automatic, &[1, 2]);
}

#[test]
fn what_gpus_do_not_do_is_said() {
    let Some(gpu) = gpu("what_gpus_do_not_do_is_said") else {
        return;
    };
    let plain = || Problem3d::<f64>::laplace([9, 10, 11]);
    let refused = |problem: &Problem3d<f64>, method: Method| {
        let options = Options {
            method,
            gpu: Some(gpu),
            ..options(1e-8)
        };
        let ends = spmd(2, |pe| {
            match solve_3d(pe, problem, &options, |_| {}).map(drop) {
                Err(SolveError::Options(error)) => error,
                other => panic!("{other:?}"),
            }
        });
        ends.unwrap().remove(0)
    };
    assert_eq!(refused(&plain(), Method::Jacobi), OptionsError::NotInSpace);
    let long = Options {
        method: Method::Multigrid(Cycles::default()),
        gpu: Some(gpu),
        ..options(1e-8)
    };
    let ends = spmd(2, |pe| {
        let problem = Problem3d::<f64>::laplace([3, 3_000_000, 3]);
        solve_3d(pe, &problem, &long, |_| {}).map(drop)
    });
    for end in ends.unwrap() {
        assert!(
            matches!(
                end,
                Err(SolveError::Gpu(GpuError::TooManyRows {
                    rows: 3_000_000,
                    most: 2_097_120
                }))
            ),
            "{end:?}"
        );
    }
}

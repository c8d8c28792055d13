//! Cycles and steps on a GPU have the bits of the CPU's: field, and residual after every one.
//!
//! Needs a GPU and NVRTC; where there is none the tests say so and pass, or fail with CROSSWARP_REQUIRE_GPU=1.

mod cycles;

use crosswarp_cuda::Device;
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Checkpointing, Cycles, First, Gpu, Method, Options, Problem2d, Real, Robin, Strategy,
    solve_2d,
};
use cycles::{Solved, alone, by_cell, mask, noise, options, solve_with};

/// A GPU, or nothing where the test is skipped.
fn gpu(test: &str) -> Option<Gpu> {
    // Levels are dealt to PEs, however small.
    cycles::gpu(test, Strategy::DevicePut)
}

/// On `gpu` and the others that there are, by turns.
fn solve_on<F: Real>(
    gpu: Gpu,
    problem: &Problem2d<F>,
    options: &Options<'_>,
    pes: usize,
) -> Solved<F> {
    let devices: Vec<Device> = (0..).map_while(|at| Device::get(at).ok()).collect();
    let _alone = alone();
    let mut all = spmd(pes, |pe| {
        let gpu = Gpu {
            device: devices[pe.my_pe() % devices.len()],
            ..gpu
        };
        let options = Options {
            gpu: Some(gpu),
            ..options.clone()
        };
        let solution = solve_2d(pe, problem, &options, |_| {}).unwrap();
        Solved {
            field: solution.gather_all(pe).unwrap(),
            history: solution.history.clone(),
            converged: solution.converged,
            floor_reached: solution.floor_reached,
            gradients_from: solution.gradients_from,
        }
    })
    .unwrap();
    all.swap_remove(0)
}

fn assert_same<F: Real>(found: &Solved<F>, cpu: &Solved<F>, name: &str) {
    assert_eq!(found.history, cpu.history, "{name}");
    let other = (found.field.iter().zip(&cpu.field))
        .position(|(a, b)| a.to_f64().to_bits() != b.to_f64().to_bits());
    assert_eq!(other, None, "{name}: another value at that cell");
    let ends = |solved: &Solved<F>| (solved.converged, solved.floor_reached);
    assert_eq!(ends(found), ends(cpu), "{name}");
    assert_eq!(found.gradients_from, cpu.gradients_from, "{name}");
}

/// Compares 1 and 3 PEs with the CPU, and gives the cycles.
fn same<F: Real>(gpu: Gpu, name: &str, problem: &Problem2d<F>, options: &Options<'_>) -> usize {
    let cpu = solve_with(problem, options, 1);
    for pes in [1, 3] {
        let found = solve_on(gpu, problem, options, pes);
        assert_same(&found, &cpu, &format!("{name}, {pes} PEs"));
    }
    cpu.history.len()
}

fn value(x: usize, y: usize, seed: u64) -> f64 {
    (noise(x, y, seed) >> 11) as f64 / (1u64 << 53) as f64
}

/// Noise on the right and at the start.
fn noisy<F: Real>(nx: usize, ny: usize) -> Problem2d<F> {
    Problem2d {
        source: Some(by_cell(|x, y| 1e3 * (value(x, y, 1) - 0.5))),
        initial: Some(by_cell(|x, y| value(x, y, 2))),
        ..Problem2d::laplace(nx, ny)
    }
}

/// A field that begins as zero but for its first and last row is not read where it is zero: with a residual of its own
/// first, a relaxation, or three, which are two launches.
#[test]
fn fields_that_begin_as_zero_need_not_be_read() {
    let Some(gpu) = gpu("fields_that_begin_as_zero_need_not_be_read") else {
        return;
    };
    let fixed = |n: usize, seed| Boundary::Fixed((0..n).map(|i| value(i, 0, seed)).collect());
    let of_ends = |nx: usize, ny: usize| Problem2d {
        source: Some(by_cell(|x, y| 1e3 * (value(x, y, 1) - 0.5))),
        top: fixed(nx, 3),
        bottom: fixed(nx, 4),
        ..Problem2d::<f64>::laplace(nx, ny)
    };
    for (nx, ny) in [(1100, 700), (300, 40)] {
        for (first, pre, post) in [
            (First::Full, 2, 2),
            (First::Full, 1, 2),
            (First::V, 2, 2),
            (First::V, 3, 1),
        ] {
            let options = Options {
                method: Method::Multigrid(Cycles { pre, post, first }),
                ..options(1e-8)
            };
            let mut problem = of_ends(nx, ny);
            let name = format!("{nx} x {ny}, {first:?}, V({pre},{post})");
            same(gpu, &name, &problem, &options);
            // Columns that are not zero are read.
            problem.left = fixed(ny, 5);
            same(gpu, &format!("{name}, left"), &problem, &options);
        }
    }
}

#[test]
fn sides_of_every_kind_at_every_size() {
    let Some(gpu) = gpu("sides_of_every_kind_at_every_size") else {
        return;
    };
    let fixed = |n: usize, seed| Boundary::Fixed((0..n).map(|i| value(i, 0, seed)).collect());
    for (nx, ny) in [
        (9, 12),
        (33, 17),
        (18, 131),
        (300, 260),
        (257, 545),
        (1025, 40),
        (1600, 60),
    ] {
        for kind in 0..6 {
            let mut problem = noisy::<f64>(nx, ny);
            match kind {
                0 => {
                    problem.left = fixed(ny, 3);
                    problem.top = fixed(nx, 4);
                }
                1 => {
                    problem.left = Boundary::Neumann(vec![0.5; ny]);
                    problem.bottom = Boundary::Neumann(vec![-1.0; nx]);
                }
                2 => {
                    problem.left = Boundary::Periodic;
                    problem.right = Boundary::Periodic;
                    problem.bottom = Boundary::Neumann(vec![2.0; nx]);
                }
                3 => {
                    problem.top = Boundary::Periodic;
                    problem.bottom = Boundary::Periodic;
                    problem.right = fixed(ny, 5);
                }
                4 => {
                    // Singular: a source of mean zero.
                    let sides = [
                        &mut problem.left,
                        &mut problem.right,
                        &mut problem.top,
                        &mut problem.bottom,
                    ];
                    sides
                        .into_iter()
                        .for_each(|side| *side = Boundary::Periodic);
                    problem.source = Some(by_cell(move |x, y| {
                        let row = if y == 0 || y == ny - 1 { 0.0 } else { 1.0 };
                        let at = x as f64 - (nx - 1) as f64 / 2.0;
                        if x == 0 || x == nx - 1 { 0.0 } else { row * at }
                    }));
                }
                _ => {
                    problem.right = Boundary::Robin(Robin {
                        value: vec![2.0; ny],
                        derivative: vec![1.0; ny],
                        right: vec![0.3; ny],
                    });
                    problem.top = Boundary::Neumann(vec![1.0; nx]);
                }
            }
            same(
                gpu,
                &format!("{nx} x {ny}, sides {kind}"),
                &problem,
                &options(1e-9),
            );
        }
    }
}

#[test]
fn masks_and_coefficients() {
    let Some(gpu) = gpu("masks_and_coefficients") else {
        return;
    };
    let automatic = Options {
        method: Method::Automatic(Cycles::default()),
        ..options(1e-8)
    };
    for (nx, ny) in [(70, 60), (513, 300), (290, 514)] {
        for share in [2, 20, 300] {
            let problem = Problem2d {
                fixed: mask(move |x, y| noise(x, y, 7).is_multiple_of(share)),
                left: Boundary::Neumann(vec![0.0; ny]),
                right: Boundary::Neumann(vec![0.0; ny]),
                ..noisy::<f32>(nx, ny)
            };
            same(
                gpu,
                &format!("mask {nx} x {ny}, 1 of {share}"),
                &problem,
                &options(1e-8),
            );
        }
        let problem = Problem2d {
            coefficient: Some(by_cell(move |x, y| {
                (2.0 * (x as f64 / 31.0).sin() * (y as f64 / 19.0).cos()).exp()
            })),
            reaction: Some(by_cell(|x, y| value(x, y, 9))),
            fixed: mask(|x, y| noise(x, y, 7).is_multiple_of(50)),
            top: Boundary::Neumann(vec![0.0; nx]),
            ..noisy::<f64>(nx, ny)
        };
        same(
            gpu,
            &format!("coefficient {nx} x {ny}"),
            &problem,
            &options(1e-9),
        );
        // Rows and columns that wrap around: of an even number, and of one that is odd, if not at once.
        let around = Problem2d {
            left: Boundary::Periodic,
            right: Boundary::Periodic,
            initial: Some(by_cell(move |x, y| {
                value((x + nx - 3) % (nx - 2), (y + ny - 3) % (ny - 2), 2)
            })),
            fixed: mask(move |x, y| {
                noise((x + nx - 3) % (nx - 2), (y + ny - 3) % (ny - 2), 7).is_multiple_of(40)
            }),
            ..noisy::<f64>(nx, ny)
        };
        same(gpu, &format!("around {nx} x {ny}"), &around, &options(1e-8));
        let around = Problem2d {
            top: Boundary::Periodic,
            bottom: Boundary::Periodic,
            reaction: Some(by_cell(|_, _| 0.125)),
            ..around
        };
        let name = format!("around both ways {nx} x {ny}");
        same(gpu, &name, &around, &options(1e-8));
        // Cycles are slow here: conjugate gradients take over.
        let problem = Problem2d {
            coefficient: Some(by_cell(
                |x, y| if (x / 7 + y / 5) % 2 == 0 { 1e4 } else { 1.0 },
            )),
            ..noisy::<f64>(nx, ny)
        };
        same(
            gpu,
            &format!("checkerboard {nx} x {ny}"),
            &problem,
            &automatic,
        );
    }
}

#[test]
fn any_relaxations_and_first_cycles() {
    let Some(gpu) = gpu("any_relaxations_and_first_cycles") else {
        return;
    };
    for (pre, post) in [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 3)] {
        for first in [First::V, First::Full] {
            let options = Options {
                method: Method::Multigrid(Cycles { pre, post, first }),
                ..options(1e-8)
            };
            // Of the second one some levels have few rows that are the same, and the finest one has strips without a side.
            for (nx, ny) in [(145, 203), (977, 600)] {
                let problem = noisy::<f64>(nx, ny);
                let name = format!("V({pre},{post}), first {first:?}, {nx} x {ny}");
                same(gpu, &name, &problem, &options);
            }
        }
    }
}

/// Few cycles on few rows: every kernel, for tools under which they take a hundred times as long.
#[test]
fn every_kernel_on_few_rows() {
    let Some(gpu) = gpu("every_kernel_on_few_rows") else {
        return;
    };
    // Strips with sides and without.
    let (nx, ny) = (1000, 49);
    let plain = noisy::<f64>(nx, ny);
    let periodic = Problem2d {
        left: Boundary::Periodic,
        right: Boundary::Periodic,
        ..plain.clone()
    };
    let rows = Problem2d {
        top: Boundary::Periodic,
        bottom: Boundary::Periodic,
        // Ghosts are the cells that they stand for.
        initial: Some(by_cell(|x, y| value(x, (y + 48) % 49, 2))),
        ..noisy::<f64>(nx, 51)
    };
    let varying = Problem2d {
        reaction: Some(by_cell(|x, y| value(x, y, 9))),
        fixed: mask(|x, y| noise(x, y, 7).is_multiple_of(50)),
        ..plain.clone()
    };
    for (name, problem) in [
        ("plain", plain),
        ("periodic", periodic),
        ("rows around", rows),
        ("varying", varying),
    ] {
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
            same(gpu, name, &problem, &options);
        }
    }
}

/// So many rows a PE that several levels are dealt to them.
#[test]
fn levels_are_dealt_to_any_number_of_pes() {
    let Some(gpu) = gpu("levels_are_dealt_to_any_number_of_pes") else {
        return;
    };
    let periodic = Problem2d {
        top: Boundary::Periodic,
        bottom: Boundary::Periodic,
        fixed: mask(|x, y| noise(x, (y + 640) % 641, 7).is_multiple_of(500)),
        // Ghosts are the cells that they stand for.
        initial: Some(by_cell(|x, y| value(x, (y + 640) % 641, 2))),
        ..noisy::<f64>(400, 643)
    };
    let alike = Problem2d {
        fixed: None,
        ..periodic.clone()
    };
    let problems = [
        ("plain", noisy::<f64>(513, 777)),
        ("periodic", periodic),
        ("alike", alike),
    ];
    for (name, problem) in problems {
        for (pre, post) in [(2, 2), (3, 1)] {
            let options = Options {
                method: Method::Multigrid(Cycles {
                    pre,
                    post,
                    ..Cycles::default()
                }),
                ..options(1e-9)
            };
            let cpu = solve_with(&problem, &options, 2);
            let put = [1, 2, 5, 8].map(|pes| (Strategy::DevicePut, pes));
            let others = [
                (Strategy::HostExchange, 5),
                (Strategy::HostExchange, 10),
                (Strategy::Auto, 3),
            ];
            for (strategy, pes) in put.into_iter().chain(others) {
                let found = solve_on(Gpu { strategy, ..gpu }, &problem, &options, pes);
                let name = format!("{name}, V({pre},{post}), {strategy}, {pes} PEs");
                assert_same(&found, &cpu, &name);
            }
        }
    }
}

/// Levels so large that they are dealt to PEs by themselves, and smaller ones that every PE computes.
#[test]
fn large_levels_are_dealt_and_small_ones_are_not() {
    let Some(gpu) = gpu("large_levels_are_dealt_and_small_ones_are_not") else {
        return;
    };
    let automatic = Gpu {
        strategy: Strategy::Auto,
        ..gpu
    };
    // Of the second one the first coarse level has more cells than go by tiles.
    for (nx, ny, pes) in [(1100, 4500, &[1, 3][..]), (4700, 4700, &[1])] {
        let problem = noisy::<f64>(nx, ny);
        let options = options(1e-3);
        let cpu = solve_with(&problem, &options, 2);
        for &pes in pes {
            let found = solve_on(automatic, &problem, &options, pes);
            assert_same(&found, &cpu, &format!("{nx} x {ny}, {pes} PEs"));
        }
    }
}

/// Each PE of a GPU has a stream that waits for others, and there are so many queues of a GPU.
#[test]
fn too_many_pes_on_a_gpu_are_told_so() {
    let Some(gpu) = gpu("too_many_pes_on_a_gpu_are_told_so") else {
        return;
    };
    // The heaps of 33 PEs of one process take more addresses than there are.
    let devices = Device::all().unwrap();
    let devices = &devices[..devices.len().min(2)];
    let problem = noisy::<f64>(300, 600 * devices.len());
    let _alone = alone();
    let ends = spmd(8 * devices.len() + 1, |pe| {
        let options = Options {
            gpu: Some(Gpu {
                device: devices[pe.my_pe() % devices.len()],
                ..gpu
            }),
            ..options(1e-9)
        };
        solve_2d(pe, &problem, &options, |_| {}).map(drop)
    });
    let said: Vec<_> = ends
        .unwrap()
        .into_iter()
        .map(|end| end.unwrap_err())
        .collect();
    let first = said[0].to_string();
    assert!(first.contains("9 PEs on a GPU: at most 8"), "{first}");
}

/// Checkpoints of cycles go from CPUs to GPUs and back.
#[test]
fn cycles_on_gpus_are_resumed_anywhere() {
    let Some(gpu) = gpu("cycles_on_gpus_are_resumed_anywhere") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = noisy::<f64>(301, 280);
    let options = Options {
        method: Method::Automatic(Cycles::default()),
        ..options(1e-10)
    };
    let straight = solve_with(&problem, &options, 1);
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
        solve_on(gpu, &problem, &saving, pes);
        assert_same(&solve_with(&problem, &resuming, 2), &straight, "from GPUs");
        solve_with(&problem, &saving, 2);
        assert_same(
            &solve_on(gpu, &problem, &resuming, pes),
            &straight,
            "to GPUs",
        );
    }
}

#[test]
fn extreme_magnitudes_and_the_floor() {
    let Some(gpu) = gpu("extreme_magnitudes_and_the_floor") else {
        return;
    };
    for size in [1e-170, 1e-20, 1e25, 1e200] {
        let problem = Problem2d {
            top: Boundary::Fixed(vec![size; 97]),
            ..Problem2d::laplace(97, 80)
        };
        let cycles = same::<f64>(gpu, &format!("sides of {size}"), &problem, &options(1e-8));
        assert!(cycles <= 12, "{size}: {cycles} cycles");
    }
    // Less than rounding leaves.
    let cycles = same(gpu, "floor", &noisy::<f64>(129, 129), &options(1e-18));
    assert!(cycles < 40);
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
    for (nx, ny) in [(9, 12), (70, 60), (300, 260), (1025, 40)] {
        let plain = noisy::<f64>(nx, ny);
        let mirrors = Problem2d {
            left: Boundary::Neumann(vec![0.5; ny]),
            bottom: Boundary::Neumann(vec![-1.0; nx]),
            ..noisy::<f64>(nx, ny)
        };
        let ring = Problem2d {
            left: Boundary::Periodic,
            right: Boundary::Periodic,
            bottom: Boundary::Neumann(vec![2.0; nx]),
            ..noisy::<f64>(nx, ny)
        };
        let tall_ring = Problem2d {
            top: Boundary::Periodic,
            bottom: Boundary::Periodic,
            right: Boundary::Neumann(vec![1.0; ny]),
            fixed: mask(|x, y| noise(x, y, 7).is_multiple_of(20)),
            ..noisy::<f64>(nx, ny)
        };
        let varying = Problem2d {
            coefficient: Some(by_cell(move |x, y| {
                (2.0 * (x as f64 / 31.0).sin() * (y as f64 / 19.0).cos()).exp()
            })),
            reaction: Some(by_cell(|x, y| value(x, y, 9))),
            fixed: mask(|x, y| noise(x, y, 7).is_multiple_of(50)),
            top: Boundary::Neumann(vec![0.0; nx]),
            right: Boundary::Robin(Robin {
                value: vec![2.0; ny],
                derivative: vec![1.0; ny],
                right: vec![0.3; ny],
            }),
            ..noisy::<f64>(nx, ny)
        };
        let problems = [
            ("plain", &plain),
            ("mirrors", &mirrors),
            ("ring", &ring),
            ("tall ring", &tall_ring),
            ("varying", &varying),
        ];
        for (name, problem) in problems {
            for method in others() {
                let options = Options {
                    max_sweeps: 60,
                    ..options(1e-9)
                };
                let name = format!("{name} {nx} x {ny}, {method:?}");
                same(gpu, &name, problem, &Options { method, ..options });
            }
        }
    }
}

/// Checkpoints of all methods go from CPUs to GPUs and back, in the middle of conjugate gradients, too.
#[test]
fn other_methods_on_gpus_are_resumed_anywhere() {
    let Some(gpu) = gpu("other_methods_on_gpus_are_resumed_anywhere") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = Problem2d {
        coefficient: Some(by_cell(
            |x, y| if (x / 7 + y / 5) % 2 == 0 { 1e4 } else { 1.0 },
        )),
        ..noisy::<f64>(301, 280)
    };
    let automatic = Method::Automatic(Cycles::default());
    for method in others().into_iter().chain([automatic]) {
        let options = Options {
            method,
            max_sweeps: 20,
            ..options(1e-12)
        };
        let straight = solve_with(&problem, &options, 1);
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
            let name = format!("{:?}, {pes} PEs", options.method);
            let saved = solve_on(gpu, &problem, &saving, pes);
            if matches!(options.method, Method::Automatic(_)) {
                assert!(saved.gradients_from.is_some_and(|from| from < 6), "{name}");
            }
            let found = solve_with(&problem, &resuming, 2);
            assert_same(&found, &straight, &format!("from GPUs, {name}"));
            solve_with(&problem, &saving, 2);
            let found = solve_on(gpu, &problem, &resuming, pes);
            assert_same(&found, &straight, &format!("to GPUs, {name}"));
        }
    }
}

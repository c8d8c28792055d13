//! On GPUs: the bits of the literal program and of the CPU, for every strategy, feature, depth of passes and number of
//! PEs.
//!
//! Needs a GPU and NVRTC; where there is none the tests say so and pass, or fail with CROSSWARP_REQUIRE_GPU=1. With
//! several GPUs PEs are dealt out over them, and there are always cases with more PEs than GPUs.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{Features, Run, noisy_problem, reference_1d, reference_2d, run_1d, run_2d};
use crosswarp_cuda::{Device, Nvrtc, skip};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, Checkpointing, Gpu, Norm, Options, Problem1d, Problem2d, Real, Strategy, solve_1d,
    solve_2d,
};

/// The GPUs, or nothing and a line that says why the test is skipped.
fn gpus(test: &str) -> Option<Vec<Device>> {
    let reason = match Device::all() {
        Err(reason) => reason.to_string(),
        Ok(devices) => match Nvrtc::get() {
            Ok(_) => return Some(devices),
            Err(reason) => reason.to_string(),
        },
    };
    skip::skip_gpu(test, 1, reason);
    None
}

/// Kernels that wait for one another must fit the GPU together: one world at a time.
fn alone() -> MutexGuard<'static, ()> {
    static GPUS: Mutex<()> = Mutex::new(());
    GPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where and how a test solves.
#[derive(Clone, Copy)]
struct On<'a> {
    gpus: &'a [Device],
    pes: usize,
    strategy: Strategy,
}

impl On<'_> {
    fn options<'o>(&self, pe: usize, options: &Options<'o>) -> Options<'o> {
        Options {
            gpu: Some(Gpu {
                device: self.gpus[pe % self.gpus.len()],
                strategy: self.strategy,
            }),
            ..options.clone()
        }
    }

    fn run_2d<F: Real>(&self, problem: &Problem2d<F>, options: &Options<'_>) -> Run<F> {
        let _alone = alone();
        let runs = spmd(self.pes, |pe| {
            let options = self.options(pe.my_pe(), options);
            let solution = solve_2d(pe, problem, &options, |_| {}).unwrap();
            let field = solution.gather_all(pe).unwrap();
            Run {
                field,
                history: solution.history,
                converged: solution.converged,
            }
        });
        runs.unwrap().into_iter().next().unwrap()
    }

    fn run_1d<F: Real>(&self, problem: &Problem1d<F>, options: &Options<'_>) -> Run<F> {
        let _alone = alone();
        let runs = spmd(self.pes, |pe| {
            let options = self.options(pe.my_pe(), options);
            let solution = solve_1d(pe, problem, &options, |_| {}).unwrap();
            let field = solution.gather_all(pe).unwrap();
            Run {
                field,
                history: solution.history,
                converged: solution.converged,
            }
        });
        runs.unwrap().into_iter().next().unwrap()
    }

    fn name(&self) -> String {
        format!("{}, {} PEs", self.strategy, self.pes)
    }

    /// Whether PEs are on several GPUs. Making a world of them takes far longer than a small solve, so there are fewer.
    fn is_wide(&self) -> bool {
        self.gpus.len() > 1 && self.pes > 1
    }
}

/// Every strategy on 1 PE, one per GPU, and one more than that; on one GPU also on four.
fn everywhere(gpus: &[Device]) -> Vec<On<'_>> {
    let pes = match gpus.len() {
        1 => vec![1, 2, 4],
        several => vec![1, several, several + 1],
    };
    let on = |strategy: Strategy| {
        pes.clone().into_iter().map(move |pes| On {
            gpus,
            pes,
            strategy,
        })
    };
    Strategy::ALL.iter().copied().flat_map(on).collect()
}

fn passes_of(depth: usize, tolerance: f64, max_sweeps: usize) -> Options<'static> {
    Options {
        sweeps_per_pass: Some(depth),
        ..Options::new(tolerance, max_sweeps)
    }
}

fn check_2d<F: Real>(places: &[On<'_>], problem: &Problem2d<F>, sweeps: usize, what: &str) {
    // A stop at a sweep that lies inside of a pass.
    let unlimited = reference_2d(problem, 0.0, sweeps);
    let tolerance = *unlimited.history.last().unwrap();
    let expected = reference_2d(problem, tolerance, sweeps + 5);
    for on in places {
        let depths: &[usize] = if on.is_wide() { &[3] } else { &[1, 3, 16] };
        for &depth in depths {
            on.run_2d(problem, &passes_of(depth, tolerance, sweeps + 5))
                .assert_same(&expected, &format!("{what}, {}, depth {depth}", on.name()));
        }
    }
}

#[test]
fn planes_with_all_features() {
    let Some(gpus) = gpus("planes_with_all_features") else {
        return;
    };
    let places = everywhere(&gpus);
    let near: Vec<On<'_>> = places.iter().copied().filter(|on| !on.is_wide()).collect();
    for bits in 0..16u32 {
        let on = |bit: u32| bits >> bit & 1 == 1;
        // Without any feature, wrapping around, given fields, and all.
        let places = if [0b0000, 0b0011, 0b1100, 0b1111].contains(&bits) {
            &places
        } else {
            &near
        };
        let features = Features {
            wrap_x: on(0),
            wrap_y: on(1),
            fixed: on(2),
            source: on(3),
        };
        let what = format!("{features:?}");
        check_2d(
            places,
            &noisy_problem::<f32>(407, 243, features, 2),
            13,
            &what,
        );
        check_2d(
            places,
            &noisy_problem::<f64>(151, 107, features, 3),
            11,
            &what,
        );
    }
}

#[test]
fn planes_of_odd_sizes() {
    let Some(gpus) = gpus("planes_of_odd_sizes") else {
        return;
    };
    for (nx, ny) in [
        (3, 3),
        (3, 200),
        (1000, 3),
        (128, 128),
        (129, 17),
        (130, 33),
        (256, 400),
        (1500, 97),
    ] {
        for wrap in [false, true] {
            let features = Features {
                wrap_x: wrap,
                wrap_y: wrap,
                ..Features::default()
            };
            let what = format!("{nx} x {ny}, wrap {wrap}");
            let places = everywhere(&gpus);
            check_2d(
                &places,
                &noisy_problem::<f32>(nx, ny, features, 5),
                9,
                &what,
            );
        }
    }
}

/// Of 2^26 cells and more and wide enough, for which passes of `f64` have a kernel of their own.
#[test]
fn large_planes() {
    let Some(gpus) = gpus("large_planes") else {
        return;
    };
    let on = On {
        gpus: &gpus,
        pes: 1,
        strategy: Strategy::Auto,
    };
    for wrap in [false, true] {
        let features = Features {
            wrap_x: wrap,
            wrap_y: wrap,
            ..Features::default()
        };
        let problem = noisy_problem::<f64>(9001, 7457, features, 6);
        // Two passes of six sweeps and one of one.
        let expected = reference_2d(&problem, 0.0, 13);
        on.run_2d(&problem, &Options::new(0.0, 13))
            .assert_same(&expected, &format!("wrap {wrap}"));
    }
}

#[test]
fn small_and_subnormal_values() {
    let Some(gpus) = gpus("small_and_subnormal_values") else {
        return;
    };
    // The front that leaves the sides has numbers of every size down to the smallest subnormal.
    let problem = Problem2d::<f32>::nvidia(512, 300);
    let expected = reference_2d(&problem, 0.0, 150);
    assert!(expected.field.iter().any(|x| x.is_subnormal()));
    for on in everywhere(&gpus) {
        on.run_2d(&problem, &Options::new(0.0, 150))
            .assert_same(&expected, &on.name());
    }
}

#[test]
fn values_of_every_magnitude() {
    let Some(gpus) = gpus("values_of_every_magnitude") else {
        return;
    };
    let sides = |value: f32| Problem2d::<f32> {
        top: Boundary::Fixed(vec![value; 200]),
        left: Boundary::Fixed(vec![-value; 200]),
        ..Problem2d::laplace(200, 200)
    };
    for value in [1e-38, 1e-22, 1e25, 3e38] {
        let problem = sides(value);
        let tolerance = f64::from(value) * 1e-3;
        let expected = run_2d(&problem, 2, &Options::new(tolerance, 1000));
        assert!(expected.converged && expected.history.len() > 10);
        for on in everywhere(&gpus) {
            on.run_2d(&problem, &Options::new(tolerance, 1000))
                .assert_same(&expected, &format!("{value}, {}", on.name()));
        }
    }
    let line = Problem1d {
        points: 9000,
        left: 1e-170f64,
        right: 3e-171,
        norm: Norm::Rms,
    };
    let expected = run_1d(&line, 2, &Options::new(1e-174, 1000));
    assert!(expected.history.len() > 10);
    for on in everywhere(&gpus) {
        on.run_1d(&line, &Options::new(1e-174, 1000))
            .assert_same(&expected, &on.name());
    }
}

#[test]
fn a_long_solve_to_its_tolerance() {
    let Some(gpus) = gpus("a_long_solve_to_its_tolerance") else {
        return;
    };
    let problem = noisy_problem::<f64>(140, 153, Features::default(), 5);
    let options = Options::new(2e-6, 100_000);
    let expected = run_2d(&problem, 2, &options);
    assert!(expected.converged && expected.history.len() > 1000);
    for on in everywhere(&gpus) {
        on.run_2d(&problem, &options)
            .assert_same(&expected, &on.name());
    }
}

#[test]
fn persistent_kernels_stop_at_any_sweep_of_a_chunk() {
    let Some(gpus) = gpus("persistent_kernels_stop_at_any_sweep_of_a_chunk") else {
        return;
    };
    fn check<F: Real>(gpus: &[Device], features: Features) {
        let problem = noisy_problem::<F>(300, 139, features, 4);
        let norms = run_2d(&problem, 2, &Options::new(0.0, 330)).history;
        for stop in [1, 2, 31, 32, 33, 63, 64, 65, 128, 129, 200, 329] {
            let options = Options::new(norms[stop - 1], 330);
            let expected = run_2d(&problem, 2, &options);
            for pes in [1, 2, gpus.len() + 1] {
                let on = On {
                    gpus,
                    pes,
                    strategy: Strategy::Persistent,
                };
                on.run_2d(&problem, &options).assert_same(
                    &expected,
                    &format!("{features:?}, stop {stop}, {}", on.name()),
                );
            }
        }
    }
    check::<f32>(&gpus, Features::default());
    let all = Features {
        wrap_x: true,
        wrap_y: true,
        fixed: true,
        source: true,
    };
    check::<f64>(&gpus, all);
}

#[test]
fn planes_with_two_leaves_on_an_sm() {
    let Some(gpus) = gpus("planes_with_two_leaves_on_an_sm") else {
        return;
    };
    // 200 leaves: on one GPU of 100 to 199 SMs two of them on each, of one PE or four.
    for bits in [0, 1, 2, 15u32] {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let features = Features {
            wrap_x: on(0),
            wrap_y: on(1),
            fixed: on(2),
            source: on(3),
        };
        let problem = noisy_problem::<f32>(1001, 397, features, 6);
        let expected = run_2d(&problem, 2, &Options::new(0.0, 83));
        for pes in [1, 2, 4] {
            let on = On {
                gpus: &gpus[..1],
                pes,
                strategy: Strategy::Persistent,
            };
            on.run_2d(&problem, &Options::new(0.0, 83))
                .assert_same(&expected, &format!("{features:?}, {}", on.name()));
        }
    }
}

#[test]
fn planes_too_large_for_the_chip_are_refused_by_name() {
    let Some(gpus) = gpus("planes_too_large_for_the_chip_are_refused_by_name") else {
        return;
    };
    let options = Options {
        gpu: Some(Gpu {
            device: gpus[0],
            strategy: Strategy::Persistent,
        }),
        ..Options::new(0.0, 1)
    };
    let problem = Problem2d::<f32>::laplace(16384, 1024);
    let errors = spmd(1, |pe| {
        let error = solve_2d(pe, &problem, &options, |_| {}).err().unwrap();
        error.to_string()
    });
    let error = errors.unwrap().remove(0);
    assert!(
        error.contains("persistent") && error.contains("16777216"),
        "{error}"
    );
}

/// Fields as small as kernels take them, each kernel at least once: what sanitizers are run on, under which a kernel
/// takes a hundred times as long. PEs as many as GPUs, and two.
fn small_places(gpus: &[Device], strategies: &[Strategy]) -> Vec<(Strategy, usize)> {
    let pes = [1, gpus.len().max(2)];
    let on = |&strategy: &Strategy| pes.map(|pes| (strategy, pes));
    strategies.iter().flat_map(on).collect()
}

fn small_plane<F: Real>(
    gpus: &[Device],
    strategies: &[Strategy],
    (nx, ny): (usize, usize),
    features: Features,
    sweeps: usize,
) {
    let problem = noisy_problem::<F>(nx, ny, features, 7);
    let options = Options::new(0.0, sweeps);
    let expected = run_2d(&problem, 2, &options);
    for (strategy, pes) in small_places(gpus, strategies) {
        let on = On {
            gpus,
            pes,
            strategy,
        };
        let what = format!("{nx} x {ny} of {}, {features:?}, {}", F::NAME, on.name());
        on.run_2d(&problem, &options).assert_same(&expected, &what);
    }
}

const WRAPPING: Features = Features {
    wrap_x: true,
    wrap_y: true,
    fixed: false,
    source: false,
};

/// Without and with fixed cells and a source.
fn given_fields(wrap: bool) -> [Features; 4] {
    [(false, false), (true, false), (false, true), (true, true)].map(|(fixed, source)| Features {
        wrap_x: wrap,
        wrap_y: wrap,
        fixed,
        source,
    })
}

/// A solution says how it was made, and, where `auto` could not do the fastest, why.
#[test]
fn solutions_name_their_strategy() {
    let Some(gpus) = gpus("solutions_name_their_strategy") else {
        return;
    };
    let choice = |strategy: Strategy, pes: usize, nx: usize, ny: usize| {
        let _alone = alone();
        let choices = spmd(pes, |pe| {
            let options = Options {
                gpu: Some(Gpu {
                    device: gpus[0],
                    strategy,
                }),
                ..Options::new(0.0, 2)
            };
            let problem = Problem2d::<f32>::laplace(nx, ny);
            let solution = solve_2d(pe, &problem, &options, |_| {}).unwrap();
            solution.choice.unwrap()
        });
        let choices = choices.unwrap();
        assert!(choices.iter().all(|choice| choice == &choices[0]));
        choices.into_iter().next().unwrap()
    };
    let named = [
        (Strategy::Sweep, "sweep"),
        (Strategy::HostExchange, "host-exchange"),
        (Strategy::DevicePut, "device-put"),
        (Strategy::Persistent, "persistent"),
        (Strategy::Auto, "persistent"),
    ];
    for (strategy, taken) in named {
        let choice = choice(strategy, 2, 300, 200);
        assert_eq!(
            (choice.taken, choice.declined.len()),
            (taken, 0),
            "{strategy}"
        );
    }
    for (pes, taken) in [(1, "passes"), (2, "device-put")] {
        let large = choice(Strategy::Auto, pes, 16384, 1024);
        assert_eq!(large.taken, taken);
        assert_eq!(large.declined.len(), 1);
        assert_eq!(large.declined[0].strategy, Strategy::Persistent);
        assert!(
            large.declined[0].reason.contains("on the chip"),
            "{large:?}"
        );
    }
}

#[test]
fn small_planes_sweep_by_sweep() {
    let Some(gpus) = gpus("small_planes_sweep_by_sweep") else {
        return;
    };
    for features in given_fields(true) {
        small_plane::<f32>(&gpus, &[Strategy::Sweep], (140, 45), features, 4);
        small_plane::<f64>(&gpus, &[Strategy::Sweep], (140, 45), features, 4);
    }
}

#[test]
fn small_planes_by_passes() {
    let Some(gpus) = gpus("small_planes_by_passes") else {
        return;
    };
    // A group of eight warps and a smaller one, or the smallest; a pass of full depth and a shorter one.
    let strategies = [Strategy::HostExchange, Strategy::DevicePut];
    for (size, wrap) in [((1000, 70), false), ((140, 45), true)] {
        for features in given_fields(wrap) {
            small_plane::<f32>(&gpus, &strategies, size, features, 20);
            small_plane::<f64>(&gpus, &strategies, size, features, 11);
        }
    }
}

#[test]
fn small_planes_on_the_chip() {
    let Some(gpus) = gpus("small_planes_on_the_chip") else {
        return;
    };
    let on_chip = [Strategy::Persistent];
    let given = Features {
        fixed: true,
        source: true,
        ..Features::default()
    };
    for features in [Features::default(), given] {
        // Deep edges, over more than two chunks.
        small_plane::<f32>(&gpus, &on_chip, (300, 70), features, 140);
        small_plane::<f64>(&gpus, &on_chip, (300, 70), features, 75);
        // Too few rows to wrap around with deep halos: narrow units.
        let around = Features {
            wrap_y: true,
            ..features
        };
        small_plane::<f32>(&gpus, &on_chip, (200, 7), around, 140);
        small_plane::<f64>(&gpus, &on_chip, (200, 5), around, 75);
        // 200 leaves: on one GPU of 100 to 199 SMs two a block, or narrow units.
        small_plane::<f32>(&gpus[..1], &on_chip, (1001, 397), features, 10);
        small_plane::<f64>(&gpus[..1], &on_chip, (1001, 397), features, 5);
    }
    small_plane::<f32>(&gpus, &on_chip, (300, 70), WRAPPING, 20);
    small_plane::<f64>(&gpus, &on_chip, (300, 70), WRAPPING, 10);
}

#[test]
fn small_planes_in_wide_units() {
    let Some(gpus) = gpus("small_planes_in_wide_units") else {
        return;
    };
    // More narrow units than the GPU has warps for.
    let blocks = gpus[0].properties().multiprocessors as usize;
    let size = (128 * 25, 16 * (4 * blocks / 25 + 1));
    let source = Features {
        source: true,
        ..Features::default()
    };
    for features in [Features::default(), source] {
        small_plane::<f32>(&gpus[..1], &[Strategy::Persistent], size, features, 2);
        small_plane::<f64>(&gpus[..1], &[Strategy::Persistent], size, features, 2);
    }
}

#[test]
fn small_lines() {
    let Some(gpus) = gpus("small_lines") else {
        return;
    };
    fn check<F: Real>(gpus: &[Device], sweeps: usize) {
        let problem = Problem1d {
            points: 9000,
            left: F::from_f64(5.0),
            right: F::from_f64(-0.3),
            norm: Norm::Rms,
        };
        let options = Options::new(0.0, sweeps);
        let expected = run_1d(&problem, 2, &options);
        for (strategy, pes) in small_places(gpus, Strategy::ALL) {
            let on = On {
                gpus,
                pes,
                strategy,
            };
            on.run_1d(&problem, &options)
                .assert_same(&expected, &format!("{}, {}", F::NAME, on.name()));
        }
    }
    check::<f32>(&gpus, 75);
    check::<f64>(&gpus, 75);
}

#[test]
fn lines() {
    let Some(gpus) = gpus("lines") else {
        return;
    };
    fn check<F: Real>(gpus: &[Device], points: usize, sweeps: usize) {
        let problem = Problem1d {
            points,
            left: F::from_f64(5.0),
            right: F::from_f64(-0.3),
            norm: Norm::Rms,
        };
        let unlimited = reference_1d(&problem, 0.0, sweeps);
        let tolerance = *unlimited.history.last().unwrap();
        let expected = reference_1d(&problem, tolerance, sweeps + 5);
        for on in everywhere(gpus) {
            if on.is_wide() && ![3, 2049, 100_001].contains(&points) {
                continue;
            }
            let depths: &[usize] = if on.pes == 1 { &[1, 7, 100] } else { &[7] };
            for &depth in depths {
                on.run_1d(&problem, &passes_of(depth, tolerance, sweeps + 5))
                    .assert_same(&expected, &format!("{points} points, {}", on.name()));
            }
        }
    }
    for points in [3, 64, 2047, 2048, 2049, 9000, 100_001] {
        check::<f32>(&gpus, points, 40);
        check::<f64>(&gpus, points, 75);
    }
}

#[test]
fn the_seed_problem() {
    let Some(gpus) = gpus("the_seed_problem") else {
        return;
    };
    let problem = Problem1d {
        points: 4_194_304,
        left: 5.0f32,
        right: 10.0,
        norm: Norm::Rms,
    };
    let options = Options::new(1e-4, 1000);
    let expected = run_1d(&problem, 2, &options);
    assert_eq!(expected.history.len(), 57);
    for on in everywhere(&gpus) {
        on.run_1d(&problem, &options)
            .assert_same(&expected, &on.name());
    }
}

#[test]
fn checkpoints_go_from_cpu_to_gpu_and_back() {
    let Some(gpus) = gpus("checkpoints_go_from_cpu_to_gpu_and_back") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let saving = |max_sweeps: usize| Options {
        checkpoint: Some(Checkpointing {
            path: path.clone(),
            every: 20,
        }),
        ..Options::new(0.0, max_sweeps)
    };
    let resuming = Options {
        resume: Some(path.clone()),
        ..Options::new(0.0, 90)
    };
    let features = Features {
        wrap_x: true,
        wrap_y: true,
        fixed: true,
        source: true,
    };
    for features in [features, Features::default()] {
        let problem = noisy_problem::<f32>(130, 77, features, 4);
        let straight = run_2d(&problem, 2, &Options::new(0.0, 90));
        for on in everywhere(&gpus) {
            run_2d(&problem, 3, &saving(47));
            on.run_2d(&problem, &resuming)
                .assert_same(&straight, &on.name());
            on.run_2d(&problem, &saving(47));
            run_2d(&problem, 2, &resuming).assert_same(&straight, &on.name());
            // A single sweep before, which is special with ghosts.
            on.run_2d(&problem, &saving(1));
            on.run_2d(&problem, &resuming)
                .assert_same(&straight, &on.name());
        }
    }
    let line = Problem1d {
        points: 9000,
        left: 1.0f64,
        right: -2.0,
        norm: Norm::L2,
    };
    let straight = run_1d(&line, 1, &Options::new(0.0, 90));
    for on in everywhere(&gpus) {
        run_1d(&line, 3, &saving(47));
        on.run_1d(&line, &resuming)
            .assert_same(&straight, &on.name());
        on.run_1d(&line, &saving(47));
        run_1d(&line, 2, &resuming).assert_same(&straight, &on.name());
    }
}

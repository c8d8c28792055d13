//! Interrupted and resumed cycles, and the field between steps.

mod common;
mod cycles;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use common::{Features, noisy_problem};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, CheckpointError, CheckpointKind, Checkpointing, Cycles, First, Method, Options,
    Problem2d, Problem3d, Real, Side, Solution, SolveError, checkpoint_kind, solve_2d, solve_3d,
};
use cycles::{by_cell, mask, noise};

/// Field, relative residuals, and after how many cycles conjugate gradients were taken.
#[derive(Debug, PartialEq)]
struct Ended {
    field: Vec<u64>,
    history: Vec<u64>,
    gradients_from: Option<usize>,
}

fn ended<F: Real>(pe: &crosswarp_shmem::Pe, solution: &Solution<F>) -> Ended {
    let field = solution.gather_all(pe).unwrap();
    Ended {
        field: field.iter().map(|value| value.to_bits64()).collect(),
        history: solution.history.iter().map(|norm| norm.to_bits()).collect(),
        gradients_from: solution.gradients_from,
    }
}

fn run<F: Real>(problem: &Problem2d<F>, options: &Options<'_>, pes: usize) -> Ended {
    let mut all = spmd(pes, |pe| {
        ended(pe, &solve_2d(pe, problem, options, |_| {}).unwrap())
    })
    .unwrap();
    all.swap_remove(0)
}

fn saving(options: &Options<'static>, path: &Path, most: usize) -> Options<'static> {
    Options {
        checkpoint: Some(Checkpointing {
            path: path.to_owned(),
            every: 2,
        }),
        max_sweeps: most,
        ..options.clone()
    }
}

fn resuming(options: &Options<'static>, path: &Path) -> Options<'static> {
    Options {
        resume: Some(path.to_owned()),
        ..options.clone()
    }
}

fn by(method: impl Fn(Cycles) -> Method, tolerance: f64) -> Options<'static> {
    Options {
        method: method(Cycles::default()),
        ..Options::new(tolerance, 60)
    }
}

/// Periodic one way, with a mask, a source and large values.
fn masked<F: Real>() -> Problem2d<F> {
    Problem2d {
        left: Boundary::Periodic,
        right: Boundary::Periodic,
        top: Boundary::Neumann(vec![F::ZERO; 140]),
        source: Some(by_cell(|x, y| 1e12 * (noise(x, y, 3) % 100) as f64)),
        initial: Some(by_cell(|x, y| {
            // Ghosts are the cells that they stand for.
            1e13 * (noise((x + 137) % 138, y, 5) % 1000) as f64
        })),
        fixed: mask(|x, y| noise((x + 137) % 138, y, 7).is_multiple_of(50)),
        ..Problem2d::laplace(140, 177)
    }
}

/// A coefficient that jumps from cell to cell, for which cycles alone are slow.
fn rough() -> Problem2d<f64> {
    Problem2d {
        coefficient: Some(by_cell(|x, y| 10f64.powi((noise(x, y, 11) % 9) as i32 - 4))),
        source: Some(by_cell(|_, _| -1.0)),
        ..Problem2d::laplace(150, 131)
    }
}

fn kind_of(options: &Options<'_>) -> CheckpointKind {
    match options.method {
        Method::Chebyshev => CheckpointKind::Chebyshev,
        Method::PlainGradients => CheckpointKind::Gradients,
        _ => CheckpointKind::Cycles,
    }
}

fn check<F: Real>(problem: &Problem2d<F>, options: &Options<'static>, stops: &[usize], what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let straight = run(problem, options, 2);
    for &stop in stops {
        for (before, after) in [(1, 3), (3, 1), (5, 2)] {
            assert!(stop < straight.history.len(), "{what} ends before {stop}");
            run(problem, &saving(options, &path, stop), before);
            assert_eq!(checkpoint_kind(&path).unwrap(), kind_of(options));
            let resumed = run(problem, &resuming(options, &path), after);
            assert!(resumed == straight, "{what}, stopped after {stop}");
        }
    }
    // Nothing lies beside the checkpoint.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn resumed_cycles_end_with_the_same_bits_on_any_pes() {
    check(
        &masked::<f64>(),
        &by(Method::Multigrid, 1e-10),
        &[1, 4],
        "cycles, f64",
    );
    check(
        &masked::<f32>(),
        &by(Method::Multigrid, 1e-10),
        &[3],
        "cycles, f32",
    );
    let first = Options {
        method: Method::Multigrid(Cycles {
            first: First::V,
            pre: 1,
            post: 3,
        }),
        ..Options::new(1e-9, 60)
    };
    // So small that every PE computes all of it.
    let small = noisy_problem::<f64>(40, 37, Features::default(), 4);
    check(&small, &first, &[1, 2], "small");
    // A mean is taken away in the end only.
    let singular = Problem2d {
        left: Boundary::Neumann(vec![0.0; 131]),
        right: Boundary::Neumann(vec![0.0; 131]),
        top: Boundary::Neumann(vec![0.0; 150]),
        bottom: Boundary::Neumann(vec![0.0; 150]),
        source: Some(by_cell(|x, _| if x < 75 { 1.0 } else { -1.0 })),
        ..Problem2d::laplace(150, 131)
    };
    check(&singular, &by(Method::Automatic, 1e-9), &[2], "singular");
}

#[test]
fn resumed_conjugate_gradients_do_too() {
    let options = by(Method::ConjugateGradients, 1e-9);
    check(&rough(), &options, &[1, 4], "conjugate gradients");
    let options = by(Method::Automatic, 1e-9);
    let from = run(&rough(), &options, 1).gradients_from.unwrap();
    let around = [from, from + 1, from + 3];
    check(&rough(), &options, &around, "around the change of method");
}

#[test]
fn resumed_steps_on_one_level_do_too() {
    for method in [Method::Chebyshev, Method::PlainGradients] {
        let options = Options {
            method: method.clone(),
            ..Options::new(1e-8, 2000)
        };
        let what = format!("{method:?}");
        check(&masked::<f64>(), &options, &[1, 7], &what);
        check(&masked::<f32>(), &options, &[4], &what);
        // So small that every PE computes all of it.
        let small = noisy_problem::<f64>(40, 37, Features::default(), 4);
        check(&small, &options, &[2], &what);
        let varying = Problem2d {
            coefficient: Some(by_cell(|x, y| 1.0 + (noise(x, y, 11) % 9) as f64)),
            ..rough()
        };
        check(&varying, &options, &[5], &what);
    }
}

/// At the floor the residual that is kept up to date is off, and the steps begin again, once or more often.
#[test]
fn resumed_steps_that_begin_again_do_too() {
    let small = noisy_problem::<f64>(40, 37, Features::default(), 4);
    let options = Options {
        method: Method::PlainGradients,
        ..Options::new(1e-15, 2000)
    };
    let steps = run(&small, &options, 1).history.len();
    let stops: Vec<usize> = (steps - 12..steps).collect();
    check(&small, &options, &stops, "gradients at the floor");
}

#[test]
fn resumed_cycles_in_a_box_do_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = Problem3d {
        sides: [
            [Side::Periodic; 2],
            [Side::Neumann(1.0), Side::Fixed],
            [Side::Fixed; 2],
        ],
        source: Some(Arc::new(|z, y, row: &mut [f64]| {
            row.iter_mut().enumerate().for_each(|(x, value)| {
                *value = (noise(x, y + 1000 * z, 9) % 7) as f64;
            });
        })),
        ..Problem3d::laplace([33, 40, 45])
    };
    let solve = |options: &Options<'_>, pes| {
        let mut all = spmd(pes, |pe| {
            ended(pe, &solve_3d(pe, &problem, options, |_| {}).unwrap())
        })
        .unwrap();
        all.swap_remove(0)
    };
    let options = by(Method::Multigrid, 1e-9);
    let straight = solve(&options, 2);
    for (before, after) in [(1, 3), (3, 1)] {
        solve(&saving(&options, &path, 3), before);
        assert!(solve(&resuming(&options, &path), after) == straight);
    }
}

#[test]
fn a_resumed_solve_that_had_converged_makes_no_cycle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let options = by(Method::Multigrid, 1e-12);
    run(&masked::<f64>(), &saving(&options, &path, 4), 2);
    let loose = Options {
        tolerance: 1e-2,
        ..resuming(&options, &path)
    };
    let again = run(&masked::<f64>(), &loose, 1);
    assert_eq!(again.history.len(), 4);
}

#[test]
fn checkpoints_of_something_else_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let cycles = by(Method::Multigrid, 1e-10);
    let sweeps = Options::new(0.0, 10);
    let problem = noisy_problem::<f64>(50, 60, Features::default(), 4);
    let refusal = |problem: &Problem2d<f64>, options: &Options<'static>| {
        let options = resuming(options, &path);
        let mut all = spmd(2, |pe| match solve_2d(pe, problem, &options, |_| {}) {
            Err(SolveError::Checkpoint(error)) => error,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted"),
        })
        .unwrap();
        all.swap_remove(0)
    };
    run(&problem, &saving(&sweeps, &path, 4), 1);
    assert_eq!(checkpoint_kind(&path).unwrap(), CheckpointKind::Sweeps);
    let error = refusal(&problem, &cycles);
    assert!(
        matches!(
            error,
            CheckpointError::OtherMethod {
                found: "Jacobi sweeps",
                ..
            }
        ),
        "{error}"
    );
    run(&problem, &saving(&cycles, &path, 2), 1);
    let error = refusal(&problem, &sweeps);
    assert!(
        error
            .to_string()
            .ends_with("holds cycles, but the method makes Jacobi sweeps"),
        "{error}"
    );
    let chebyshev = Options {
        method: Method::Chebyshev,
        ..cycles.clone()
    };
    let error = refusal(&problem, &chebyshev);
    assert!(
        error
            .to_string()
            .ends_with("holds cycles, but the method makes steps of Chebyshev's iteration"),
        "{error}"
    );
    let other = noisy_problem::<f64>(50, 61, Features::default(), 4);
    let error = refusal(&other, &cycles);
    assert!(
        matches!(error, CheckpointError::OtherGrid { .. }),
        "{error}"
    );
    let other = Problem2d {
        bottom: Boundary::Fixed(vec![0.5; 50]),
        ..problem.clone()
    };
    let error = refusal(&other, &cycles);
    assert!(
        matches!(error, CheckpointError::OtherProblem { .. }),
        "{error}"
    );

    let whole = fs::read(&path).unwrap();
    for (at, byte) in [(200, 1), (whole.len() / 2, 128), (whole.len() - 1, 1)] {
        let mut damaged = whole.clone();
        damaged[at] ^= byte;
        fs::write(&path, damaged).unwrap();
        let error = refusal(&problem, &cycles);
        assert!(
            matches!(error, CheckpointError::Damaged { .. }),
            "{at}: {error}"
        );
    }
    // Planes, fields, where conjugate gradients began.
    for word in [8, 9, 10] {
        let mut claims = whole.clone();
        claims[8 * word + 6] = 1;
        fs::write(&path, claims).unwrap();
        refusal(&problem, &cycles);
    }
    for length in [0, 70, 100, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        refusal(&problem, &cycles);
    }
}

#[test]
fn the_field_between_steps_is_that_of_a_solve_that_ends_there() {
    let every = NonZeroUsize::new(3);
    let shown = |problem: &Problem2d<f32>, options: &Options<'static>, pes| {
        let options = Options {
            field_every: every,
            ..options.clone()
        };
        let mut all = spmd(pes, |pe| {
            let mut fields = Vec::new();
            let solved = solve_2d(pe, problem, &options, |progress| {
                assert_eq!(progress.field.is_some(), progress.sweeps % 3 == 0);
                if let Some(field) = progress.field {
                    let mut bits = Vec::new();
                    let taken = field.gather(pe, |values| {
                        bits.extend(
                            values
                                .iter()
                                .map(|&value| u64::from((value as f32).to_bits())),
                        );
                        Ok::<(), ()>(())
                    });
                    taken.unwrap().unwrap();
                    fields.push((progress.sweeps, bits));
                }
            })
            .unwrap();
            let straight = ended(pe, &solved);
            (fields, straight)
        })
        .unwrap();
        all.swap_remove(0)
    };
    let small = noisy_problem::<f32>(90, 70, Features::default(), 4);
    for (problem, options) in [
        (masked::<f32>(), by(Method::Multigrid, 1e-12)),
        (masked::<f32>(), by(Method::ConjugateGradients, 1e-12)),
        (small, Options::new(0.0, 20)),
    ] {
        let (fields, with) = shown(&problem, &options, 3);
        assert!(fields.len() >= 2);
        assert!(with == run(&problem, &options, 1));
        for (steps, field) in fields {
            let options = Options {
                max_sweeps: steps,
                ..options.clone()
            };
            assert!(field == run(&problem, &options, 2).field, "after {steps}");
        }
    }
}

/// Puts a NaN into a checkpoint, as its word `word`, with the checksum that goes with it.
fn spoil(path: &Path, word: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = 8 * word;
    bytes[at..at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    let end = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_norm_that_is_not_finite_says_at_which_step_and_on_which_pe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    // Of 12 bands the second PE of three has rows 64 to 127; nothing is carried that far by the passes of a step.
    let problem = Problem2d {
        source: Some(by_cell(|x, y| (noise(x, y, 3) % 100) as f64)),
        ..Problem2d::<f64>::laplace(140, 192)
    };
    let sweeps = Options {
        method: Method::Chebyshev,
        ..Options::new(1e-8, 500)
    };
    // A header, norms (of methods that look at the residual one more), and the rows of all fields.
    for (options, first, fields) in [
        (Options::new(0.0, 500), 8 + 4, 1),
        (sweeps, 12 + 5, 2),
        (by(Method::Multigrid, 1e-10), 12 + 5, 1),
    ] {
        run(&problem, &saving(&options, &path, 4), 1);
        spoil(&path, first + 96 * fields * 140 + 70);
        let options = resuming(&options, &path);
        for pes in [1, 3] {
            let errors = spmd(pes, |pe| solve_2d(pe, &problem, &options, |_| {}).err());
            for error in errors.unwrap() {
                let error = error.expect("no norm").to_string();
                let start = match (&options.method, pes) {
                    (Method::Multigrid(_), 1) => {
                        "after cycle 5 the norm is NaN in the rows of PE 0, ".into()
                    }
                    // A cycle carries it everywhere.
                    (Method::Multigrid(_), _) => "after cycle 5 the norm is NaN, ".into(),
                    _ => format!(
                        "after sweep 5 the norm is NaN in the rows of PE {}, ",
                        pes / 2
                    ),
                };
                assert!(error.starts_with(&start), "{error}");
            }
        }
    }
}

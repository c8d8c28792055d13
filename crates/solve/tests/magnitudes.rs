//! A problem of very small or very large values is solved as the same problem of ordinary ones: same sweeps, and the
//! same bits times a power of two.

mod common;

use std::fs;

use common::{Features, Run, noisy_problem, run_1d, run_2d, times_power};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Boundary, CheckpointError, Checkpointing, Norm, Options, Problem1d, Problem2d, Real, RowSource,
    SolveError, solve_2d,
};
use std::sync::Arc;

fn top<F: Real>(value: f64) -> Problem2d<F> {
    Problem2d {
        top: Boundary::Fixed(vec![F::from_f64(value); 65]),
        ..Problem2d::laplace(65, 49)
    }
}

/// Solves with `value` on the top, and with `value` · 2^−exponent, which lies in [1, 2).
fn check_top<F: Real>(value: f64, exponent: i32) {
    let power = 2f64.powi(exponent);
    let ordinary = F::from_f64(value).to_f64() / power;
    assert!((1.0..2.0).contains(&ordinary), "{value}: {ordinary}");
    let expected = run_2d(&top::<F>(ordinary), 1, &Options::new(1e-4, 10_000));
    assert!(expected.converged && expected.history.len() > 100);
    for pes in [1, 3] {
        let run = run_2d(&top::<F>(value), pes, &Options::new(1e-4 * power, 10_000));
        run.assert_same(
            &expected.times_power(exponent),
            &format!("top {value}, {pes} PEs"),
        );
    }
}

#[test]
fn small_and_large_sides_stop_at_the_same_sweep_with_the_same_bits() {
    check_top::<f32>(2f64.powi(-70), -70);
    check_top::<f32>(1e-20, -67);
    check_top::<f32>(1e-22, -74);
    check_top::<f32>(1e25, 83);
    check_top::<f32>(1e38, 126);
    check_top::<f64>(1e-170, -565);
    check_top::<f64>(1e300, 996);
}

#[test]
fn subnormal_values_are_solved_as_normal_ones() {
    let value = f32::from_bits(3);
    let expected = run_2d(&top::<f32>(1.5), 1, &Options::new(1e-4, 10_000));
    let run = run_2d(
        &top::<f32>(value.into()),
        2,
        &Options::new(1e-4 * 2f64.powi(-148), 10_000),
    );
    run.assert_same(&expected.times_power(-148), "top of 3 · 2^-149");
}

#[test]
fn initial_values_masks_sources_and_ghosts_are_scaled_too() {
    for bits in 0..16u32 {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let features = Features {
            wrap_x: on(0),
            wrap_y: on(1),
            fixed: on(2),
            source: on(3),
        };
        let problem = noisy_problem::<f32>(150, 67, features, 3);
        let expected = run_2d(&problem, 1, &Options::new(0.0, 25));
        for exponent in [-60, 80] {
            run_2d(&times_power(&problem, exponent), 2, &Options::new(0.0, 25)).assert_same(
                &expected.times_power(exponent),
                &format!("{features:?}, 2^{exponent}"),
            );
        }
    }
}

#[test]
fn a_source_alone_tells_the_magnitude() {
    let problem = |f: f32, spacing: f64| {
        let source: RowSource<f32> = Arc::new(move |_, row| row.fill(f));
        Problem2d {
            source: Some(source),
            spacing,
            ..Problem2d::laplace(40, 40)
        }
    };
    let expected = run_2d(&problem(4.0, 0.5), 1, &Options::new(1e-3, 10_000));
    assert!(expected.history.len() > 100);
    // The last one is not even subnormal: its norms can be told, its solution is zero.
    for (f, h, exponent) in [(-98, 0.5, -100), (60, 4.0, 64), (-98, 2f64.powi(-40), -178)] {
        let power = 2f64.powi(exponent);
        run_2d(
            &problem(2f32.powi(f), h),
            3,
            &Options::new(1e-3 * power, 10_000),
        )
        .assert_same(
            &expected.times_power(exponent),
            &format!("source of 2^{f}, spacing {h}"),
        );
    }
}

#[test]
fn lines_are_scaled() {
    let line = |power: f64| Problem1d {
        points: 9001,
        left: (1.7 * power) as f32,
        right: (-0.3 * power) as f32,
        norm: Norm::L2,
    };
    let expected = run_1d(&line(1.0), 1, &Options::new(1e-3, 500));
    for exponent in [-90, -70, 70, 120] {
        let power = 2f64.powi(exponent);
        run_1d(&line(power), 3, &Options::new(1e-3 * power, 500))
            .assert_same(&expected.times_power(exponent), &format!("2^{exponent}"));
    }
}

#[test]
fn a_problem_of_zeros_has_converged() {
    let run: Run<f32> = run_2d(&Problem2d::laplace(20, 20), 2, &Options::new(0.0, 10));
    assert!(run.converged && run.history == [0.0]);
}

fn saving(path: &std::path::Path, max_sweeps: usize) -> Options<'static> {
    Options {
        checkpoint: Some(Checkpointing {
            path: path.to_owned(),
            every: 20,
        }),
        ..Options::new(0.0, max_sweeps)
    }
}

fn resuming(path: &std::path::Path, max_sweeps: usize) -> Options<'static> {
    Options {
        resume: Some(path.to_owned()),
        ..Options::new(0.0, max_sweeps)
    }
}

fn version(path: &std::path::Path) -> u64 {
    u64::from_le_bytes(fs::read(path).unwrap()[8..16].try_into().unwrap())
}

#[test]
fn a_scaled_solve_is_resumed_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    // Most values are subnormal, or less, once they are what they stand for.
    for value in [1e-37, 1e37] {
        let problem = top::<f32>(value);
        let straight = run_2d(&problem, 1, &Options::new(0.0, 90));
        run_2d(&problem, 2, &saving(&path, 47));
        assert_eq!(version(&path), 2);
        run_2d(&problem, 3, &resuming(&path, 90)).assert_same(&straight, &format!("top {value}"));
    }
}

#[test]
fn checkpoints_of_ordinary_problems_stay_version_1_and_are_of_no_other_scale() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    run_2d(&top::<f32>(1.0), 2, &saving(&path, 40));
    assert_eq!(version(&path), 1);
    let problem = top::<f32>(2f64.powi(40));
    let errors = spmd(2, |pe| {
        solve_2d(pe, &problem, &resuming(&path, 90), |_| {}).err()
    });
    for error in errors.unwrap() {
        let Some(SolveError::Checkpoint(CheckpointError::OtherScale {
            found, expected, ..
        })) = error
        else {
            panic!("{error:?}");
        };
        assert_eq!((found, expected), (0, 40));
    }
}

#[test]
fn a_norm_that_is_not_a_number_ends_the_solve_and_says_at_which_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = top::<f32>(1.0);
    run_2d(&problem, 1, &saving(&path, 40));
    // A field with a NaN in it, and the checksum that goes with it.
    let mut bytes = fs::read(&path).unwrap();
    let (content, _) = bytes.split_at_mut(64 + 8 * 40 + 4 * 65 * 49);
    content[64 + 8 * 40 + 4 * (65 * 20 + 30)..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    let checksum = crc32fast::hash(content);
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let errors = spmd(2, |pe| {
        solve_2d(pe, &problem, &resuming(&path, 100_000), |_| {}).err()
    });
    for error in errors.unwrap() {
        let error = error.expect("no norm").to_string();
        assert!(
            error.starts_with("after sweep 41 the norm is NaN")
                && error.contains("NaN or infinite"),
            "{error}"
        );
    }
}

#[test]
fn a_solution_beyond_the_type_is_an_error_on_every_pe() {
    let source: RowSource<f32> = Arc::new(|_, row| row.fill(-1e37));
    let problem = Problem2d {
        source: Some(source),
        ..Problem2d::laplace(40, 40)
    };
    let errors = spmd(3, |pe| {
        solve_2d(pe, &problem, &Options::new(0.0, 3000), |_| {}).err()
    });
    for error in errors.unwrap() {
        let error = error.expect("some values are too large").to_string();
        assert!(error.contains("range of f32"), "{error}");
    }
}

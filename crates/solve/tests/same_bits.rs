//! Field, norms and stopping sweep have the bits of the literal program, for any PEs, depths and features.

mod common;

use common::{Features, noisy_problem, reference_1d, reference_2d, run_1d, run_2d};
use crosswarp_solve::{Norm, Options, Problem1d, Problem2d, Real};
use proptest::prelude::*;

const PES: [usize; 5] = [1, 2, 3, 4, 7];

fn options(tolerance: f64, max_sweeps: usize, depth: usize) -> Options<'static> {
    Options {
        sweeps_per_pass: Some(depth),
        ..Options::new(tolerance, max_sweeps)
    }
}

/// All PE counts, and depths around the stop, which is made to lie inside most of them.
fn check_2d<F: Real>(problem: &Problem2d<F>, sweeps: usize, depths: &[usize], context: &str) {
    let unlimited = reference_2d(problem, 0.0, sweeps);
    // A tolerance that is first met by the last sweep only if the norms fall; else by an earlier one.
    let tolerance = *unlimited.history.last().unwrap();
    let expected = reference_2d(problem, tolerance, sweeps + 7);
    for pes in PES {
        for &depth in depths {
            let found = run_2d(problem, pes, &options(tolerance, sweeps + 7, depth));
            found.assert_same(&expected, &format!("{context}, {pes} PEs, depth {depth}"));
        }
    }
}

#[test]
fn every_block_from_1_to_32() {
    let problem = noisy_problem::<f32>(150, 131, Features::default(), 1);
    let depths: Vec<usize> = (1..=32).collect();
    check_2d(&problem, 37, &depths, "plain");
}

#[test]
fn all_features_over_several_tiles() {
    for bits in 0..16u32 {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let features = Features {
            wrap_x: on(0),
            wrap_y: on(1),
            fixed: on(2),
            source: on(3),
        };
        let context = format!("{features:?}");
        check_2d(
            &noisy_problem::<f32>(1063, 113, features, 2),
            21,
            &[9, 32],
            &context,
        );
        check_2d(
            &noisy_problem::<f64>(541, 67, features, 3),
            18,
            &[5, 16],
            &context,
        );
    }
}

#[test]
fn the_nvidia_problem() {
    let problem = Problem2d::<f32>::nvidia(256, 256);
    let expected = reference_2d(&problem, 1e-9, 100);
    for pes in PES {
        run_2d(&problem, pes, &Options::new(1e-9, 100))
            .assert_same(&expected, &format!("{pes} PEs"));
    }
}

#[test]
fn a_long_solve_to_its_tolerance() {
    let problem = noisy_problem::<f64>(40, 53, Features::default(), 5);
    let expected = reference_2d(&problem, 1e-7, 100_000);
    assert!(expected.converged && expected.history.len() > 1000);
    for pes in [1, 3] {
        run_2d(&problem, pes, &Options::new(1e-7, 100_000))
            .assert_same(&expected, &format!("{pes} PEs"));
    }
}

#[test]
fn lines_of_all_lengths() {
    for points in [
        3, 4, 5, 127, 128, 129, 2047, 2048, 2049, 2050, 3071, 3072, 3100, 4095, 4097, 6143, 14_400,
        20_500,
    ] {
        let problem = Problem1d {
            points,
            left: 5.0f32,
            right: 10.0,
            norm: Norm::Rms,
        };
        let tolerance = *reference_1d(&problem, 0.0, 41).history.last().unwrap();
        let expected = reference_1d(&problem, tolerance, 60);
        for pes in PES {
            for depth in [1, 7, 31, 32] {
                run_1d(&problem, pes, &options(tolerance, 60, depth)).assert_same(
                    &expected,
                    &format!("{points} points, {pes} PEs, depth {depth}"),
                );
            }
        }
        let problem = Problem1d {
            points,
            left: -0.3f64,
            right: 1e-30,
            norm: Norm::L2,
        };
        let expected = reference_1d(&problem, 0.0, 45);
        run_1d(&problem, 3, &Options::new(0.0, 45))
            .assert_same(&expected, &format!("{points} points, f64"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_small_grid(
        nx in 3usize..160, ny in 3usize..90, bits in 0u32..16, seed in 0u64..1000,
        pes in 1usize..8, depth in 1usize..=32, sweeps in 1usize..60,
    ) {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let features = Features { wrap_x: on(0), wrap_y: on(1), fixed: on(2), source: on(3) };
        let problem = noisy_problem::<f32>(nx, ny, features, seed);
        // A tiny grid may have no free cell, which the solver refuses.
        let mut mask = vec![0; nx];
        let free = (1..ny - 1).any(|y| match &problem.fixed {
            Some(fixed) => { mask.fill(0); fixed(y, &mut mask); mask[1..nx - 1].contains(&0) }
            None => true,
        });
        prop_assume!(free);
        let expected = reference_2d(&problem, 1e-3, sweeps);
        run_2d(&problem, pes, &options(1e-3, sweeps, depth)).assert_same(&expected, "");
    }
}

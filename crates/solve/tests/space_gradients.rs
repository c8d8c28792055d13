//! Conjugate gradients with cycles in boxes: where cycles alone are slow, with which bits, and from checkpoints.

mod boxes;
mod cycles;

use std::path::Path;

use boxes::{by_point, solve_with};
use crosswarp_solve::{
    CheckpointKind, Checkpointing, Cycles, Method, Options, Problem3d, Side, checkpoint_kind,
};
use cycles::noise;

fn by(method: impl Fn(Cycles) -> Method, tolerance: f64, most: usize) -> Options<'static> {
    Options {
        method: method(Cycles::default()),
        ..Options::new(tolerance, most)
    }
}

/// A coefficient that jumps from point to point, by up to ten to the power of `digits`.
fn jumping(digits: u64, size: [usize; 3]) -> Problem3d<f64> {
    Problem3d {
        coefficient: Some(by_point(move |x, y, z| {
            10f64.powi((noise(x, y + 1000 * z, 11) % (digits + 1)) as i32)
        })),
        source: Some(by_point(|_, _, _| -1.0)),
        sides: [
            [Side::Fixed; 2],
            [Side::Neumann(0.5), Side::Fixed],
            [Side::Periodic; 2],
        ],
        ..Problem3d::laplace(size)
    }
}

#[test]
fn they_come_to_what_cycles_do_in_fewer_steps() {
    let smooth = Problem3d {
        coefficient: None,
        ..jumping(0, [21, 30, 26])
    };
    for (problem, fewer) in [(smooth, 0), (jumping(2, [21, 30, 26]), 1)] {
        let cycles = solve_with(&problem, &by(Method::Multigrid, 1e-11, 200), 1);
        let gradients = solve_with(&problem, &by(Method::ConjugateGradients, 1e-11, 200), 1);
        assert!(cycles.converged && gradients.converged);
        assert_eq!(
            (cycles.gradients_from, gradients.gradients_from),
            (None, Some(0))
        );
        let steps = (cycles.history.len(), gradients.history.len());
        assert!(steps.1 + fewer <= steps.0 + 1, "{steps:?}");
        let largest = cycles.field.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for (a, b) in cycles.field.iter().zip(&gradients.field) {
            assert!((a - b).abs() < 1e-8 * largest, "{a} {b}");
        }
    }
}

#[test]
fn where_cycles_are_slow_gradients_take_over() {
    let problem = jumping(6, [25, 33, 28]);
    let cycles = solve_with(&problem, &by(Method::Multigrid, 1e-8, 40), 1);
    let automatic = solve_with(&problem, &by(Method::Automatic, 1e-8, 100), 1);
    assert!(!cycles.converged, "{} cycles", cycles.history.len());
    let from = automatic.gradients_from.expect("they are slow");
    assert!(automatic.converged && from > 0, "{automatic:?}");
    // Until then cycles as they are by themselves.
    assert_eq!(automatic.history[..from], cycles.history[..from]);
}

#[test]
fn the_bits_do_not_depend_on_the_pes() {
    for problem in [
        jumping(5, [19, 22, 61]),
        Problem3d {
            coefficient: None,
            ..jumping(0, [19, 22, 61])
        },
    ] {
        for method in [Method::Automatic, Method::ConjugateGradients] {
            let options = by(method, 1e-8, 60);
            let alone = solve_with(&problem, &options, 1).bits();
            for pes in [2, 3, 5, 8] {
                let shared = solve_with(&problem, &options, pes).bits();
                assert!(alone == shared, "{pes} PEs");
            }
        }
    }
}

#[test]
fn resumed_steps_end_with_the_same_bits_on_any_pes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let saving = |options: &Options<'static>, path: &Path, most| Options {
        checkpoint: Some(Checkpointing {
            path: path.to_owned(),
            every: 2,
        }),
        max_sweeps: most,
        ..options.clone()
    };
    let problem = jumping(6, [19, 22, 61]);
    let gradients = by(Method::ConjugateGradients, 1e-8, 100);
    let automatic = by(Method::Automatic, 1e-8, 100);
    let straight = solve_with(&problem, &automatic, 2);
    let from = straight.gradients_from.unwrap();
    for (options, stops) in [
        (gradients, vec![1, 4]),
        (automatic, vec![from, from + 1, from + 3]),
    ] {
        let straight = solve_with(&problem, &options, 2).bits();
        for stop in stops {
            for (before, after) in [(1, 3), (3, 1)] {
                solve_with(&problem, &saving(&options, &path, stop), before);
                assert_eq!(checkpoint_kind(&path).unwrap(), CheckpointKind::Cycles);
                let resuming = Options {
                    resume: Some(path.clone()),
                    ..options.clone()
                };
                let resumed = solve_with(&problem, &resuming, after).bits();
                assert!(resumed == straight, "stopped after {stop}");
            }
        }
    }
}

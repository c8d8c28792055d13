//! Interrupted and resumed solves, and checkpoints that are refused.

mod common;

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Features, Run, noisy_problem, run_1d, run_2d};
use crosswarp_shmem::{Pe, spmd};
use crosswarp_solve::{
    CheckpointError, Checkpointing, Norm, Options, Problem1d, Problem2d, SolveError, solve_1d,
    solve_2d,
};

const ALL: Features = Features {
    wrap_x: true,
    wrap_y: true,
    fixed: true,
    source: true,
};

fn saving(path: &Path, every: usize, max_sweeps: usize) -> Options<'static> {
    let checkpoint = Some(Checkpointing {
        path: path.to_owned(),
        every,
    });
    Options {
        checkpoint,
        ..Options::new(0.0, max_sweeps)
    }
}

fn resuming(path: &Path, max_sweeps: usize) -> Options<'static> {
    Options {
        resume: Some(path.to_owned()),
        ..Options::new(0.0, max_sweeps)
    }
}

#[test]
fn a_resumed_solve_ends_with_the_same_bits_on_any_pes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    for (problem, name) in [
        (
            noisy_problem::<f32>(130, 77, Features::default(), 4),
            "plain",
        ),
        (noisy_problem::<f32>(77, 130, ALL, 4), "all features"),
    ] {
        let straight = run_2d(&problem, 2, &Options::new(0.0, 90));
        for (before, after) in [(1, 3), (3, 1), (7, 2)] {
            // Stops at the limit, which is no multiple of the interval, and leaves a checkpoint there.
            run_2d(&problem, before, &saving(&path, 20, 47));
            run_2d(&problem, after, &resuming(&path, 90)).assert_same(&straight, name);
        }
        // A single sweep before, which is special with ghosts.
        run_2d(&problem, 3, &saving(&path, 1, 1));
        run_2d(&problem, 2, &resuming(&path, 90)).assert_same(&straight, name);
    }
    let line = Problem1d {
        points: 9000,
        left: 1.0f64,
        right: -2.0,
        norm: Norm::L2,
    };
    let straight = run_1d(&line, 1, &Options::new(0.0, 90));
    run_1d(&line, 3, &saving(&path, 13, 40));
    run_1d(&line, 2, &resuming(&path, 90)).assert_same(&straight, "line");
    // Nothing lies beside the checkpoint.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_resumed_solve_that_had_converged_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = noisy_problem::<f64>(40, 40, Features::default(), 8);
    let first = run_2d(&problem, 2, &saving(&path, 30, 60));
    let tolerance = first.history[59];
    let options = Options {
        resume: Some(path),
        ..Options::new(tolerance, 100)
    };
    let again = run_2d(&problem, 1, &options);
    assert!(again.converged);
    again.assert_same(
        &Run {
            converged: true,
            ..first
        },
        "converged",
    );
}

#[test]
fn an_interrupt_of_one_pe_stops_all_and_saves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = noisy_problem::<f32>(200, 100, Features::default(), 6);
    let flags = [const { AtomicBool::new(false) }; 3];
    let ends = spmd(3, |pe| {
        let options = Options {
            interrupt: Some(&flags[pe.my_pe()]),
            sweeps_per_pass: Some(8),
            ..saving(&path, 1000, 5000)
        };
        let solution = solve_2d(pe, &problem, &options, |progress| {
            if progress.sweeps == 40 && pe.my_pe() == 1 {
                flags[1].store(true, Ordering::Relaxed);
            }
        })
        .unwrap();
        (solution.sweeps, solution.interrupted, solution.converged)
    })
    .unwrap();
    assert_eq!(ends, [(48, true, false); 3]);
    let straight = run_2d(&problem, 1, &Options::new(0.0, 100));
    run_2d(&problem, 2, &resuming(&path, 100)).assert_same(&straight, "after the interrupt");
}

fn refusal(problem: &Problem2d<f32>, path: &Path) -> Vec<CheckpointError> {
    spmd(2, |pe| {
        match solve_2d(pe, problem, &resuming(path, 90), |_| {}) {
            Err(SolveError::Checkpoint(error)) => error,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted"),
        }
    })
    .unwrap()
}

#[test]
fn damaged_and_foreign_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = noisy_problem::<f32>(60, 50, ALL, 4);
    run_2d(&problem, 2, &saving(&path, 20, 20));
    let good = fs::read(&path).unwrap();

    let missing = folder.path().join("missing");
    assert!(
        refusal(&problem, &missing)
            .iter()
            .all(|e| matches!(e, CheckpointError::Io { action: "open", .. }))
    );
    for length in [0, 10, 63] {
        fs::write(&path, &good[..length]).unwrap();
        assert!(
            refusal(&problem, &path)
                .iter()
                .all(|e| matches!(e, CheckpointError::NotACheckpoint { .. }))
        );
    }
    for length in [64, 1000, good.len() - 1] {
        fs::write(&path, &good[..length]).unwrap();
        assert!(
            refusal(&problem, &path)
                .iter()
                .all(|e| matches!(e, CheckpointError::Length { .. })),
            "{length}"
        );
    }
    // A flipped bit anywhere: in every header word (0 magic, 1 version, 2 identity, …), a norm, the field, the
    // checksum.
    for at in
        (0..64)
            .step_by(8)
            .chain([64, 100, 300, good.len() / 2, good.len() - 5, good.len() - 1])
    {
        let mut bad = good.clone();
        bad[at] ^= 4;
        fs::write(&path, &bad).unwrap();
        for error in refusal(&problem, &path) {
            let right = match at / 8 {
                0 => matches!(error, CheckpointError::NotACheckpoint { .. }),
                1 => matches!(error, CheckpointError::Version { version: 5, .. }),
                3..=5 => matches!(error, CheckpointError::OtherGrid { .. }),
                6 => matches!(error, CheckpointError::Length { .. }),
                _ => matches!(error, CheckpointError::Damaged { .. }),
            };
            assert!(right, "byte {at}: {error}");
        }
    }
    fs::write(&path, &good).unwrap();
    let mut other = noisy_problem::<f32>(60, 50, ALL, 4);
    other.spacing = 0.31;
    assert!(
        refusal(&other, &path)
            .iter()
            .all(|e| matches!(e, CheckpointError::OtherProblem { .. }))
    );
    let other = noisy_problem::<f32>(
        60,
        50,
        Features {
            fixed: false,
            ..ALL
        },
        4,
    );
    assert!(
        refusal(&other, &path)
            .iter()
            .all(|e| matches!(e, CheckpointError::OtherProblem { .. }))
    );
    let other = noisy_problem::<f32>(50, 60, ALL, 4);
    assert!(
        refusal(&other, &path)
            .iter()
            .all(|e| matches!(e, CheckpointError::OtherGrid { .. }))
    );
    let line = Problem1d {
        points: 3000,
        left: 1.0f64,
        right: 2.0,
        norm: Norm::Rms,
    };
    let refused = spmd(1, |pe| {
        solve_1d(pe, &line, &resuming(&path, 9), |_| {}).is_err()
    })
    .unwrap();
    assert_eq!(refused, [true]);
    // And the good one still is.
    let straight = run_2d(&problem, 1, &Options::new(0.0, 33));
    run_2d(&problem, 2, &resuming(&path, 33)).assert_same(&straight, "the good one");
}

#[test]
fn what_claims_more_than_the_machine_holds_or_has_no_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let problem = noisy_problem::<f32>(60, 50, ALL, 4);
    run_2d(&problem, 2, &saving(&path, 20, 20));
    // The length fits: nearly all of the file is a hole, which takes no room on the disk.
    let sweeps = 1u64 << 36;
    let mut bytes = fs::read(&path).unwrap();
    let norms_before = 8 * 20;
    bytes[48..56].copy_from_slice(&sweeps.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(bytes.len() as u64 - norms_before + 8 * sweeps)
        .unwrap();
    for error in refusal(&problem, &path) {
        assert!(
            matches!(error, CheckpointError::Sweeps { sweeps: found, .. } if found == sweeps),
            "{error}"
        );
    }
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for endless in [&pipe, Path::new("/dev/zero"), folder.path()] {
        for error in refusal(&problem, endless) {
            assert!(matches!(error, CheckpointError::NotAFile { .. }), "{error}");
        }
    }
}

#[test]
fn a_checkpoint_that_can_not_be_written_is_told_and_the_solve_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let problem = noisy_problem::<f32>(60, 50, Features::default(), 4);
    let straight = run_2d(&problem, 1, &Options::new(0.0, 50));
    // A folder stands where the file should go.
    let path = folder.path().join("taken");
    fs::create_dir(&path).unwrap();
    let runs = spmd(2, |pe| {
        let mut told = 0;
        let solution = solve_2d(pe, &problem, &saving(&path, 20, 50), |progress| {
            told += usize::from(progress.checkpoint_failure.is_some());
        })
        .unwrap();
        assert!(told > 0);
        match (pe.my_pe(), &solution.checkpoint_failure) {
            (
                0,
                Some(CheckpointError::Io {
                    action: "create", ..
                }),
            )
            | (_, Some(CheckpointError::Elsewhere { .. })) => {}
            (pe, failure) => panic!("PE {pe}: {failure:?}"),
        }
        let field = solution.gather_all(pe).unwrap();
        Run {
            field,
            history: solution.history,
            converged: solution.converged,
        }
    })
    .unwrap();
    runs[0].assert_same(&straight, "without checkpoints");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left beside"
    );
}

/// A device is written as such: /dev/full refuses every byte, /dev/null takes all and stays what it is. The solve goes
/// on.
#[test]
fn checkpoints_may_go_to_devices() {
    let problem = noisy_problem::<f32>(200, 150, Features::default(), 4);
    let failures = |path: &Path| {
        let run = |pe: &Pe| {
            let solution = solve_2d(pe, &problem, &saving(path, 20, 50), |_| {}).unwrap();
            assert_eq!(solution.sweeps, 50);
            solution
                .checkpoint_failure
                .map(|failure| failure.to_string())
        };
        spmd(2, run).unwrap()
    };
    let full = failures(Path::new("/dev/full"));
    assert!(
        full[0]
            .as_ref()
            .is_some_and(|text| text.contains("No space left")),
        "{full:?}"
    );
    assert!(full[1].is_some());
    assert_eq!(failures(Path::new("/dev/null")), [None, None]);
    for device in ["/dev/full", "/dev/null"] {
        let kind = fs::symlink_metadata(device).unwrap().file_type();
        assert!(kind.is_char_device(), "{device}");
    }
}

/// A link stays, what it leads to is replaced; a file that happens to be called `.tmp` is not touched.
#[test]
fn checkpoints_touch_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("state"), b"the old one").unwrap();
    fs::write(at("victim"), b"precious").unwrap();
    std::os::unix::fs::symlink("state", at("link")).unwrap();
    std::os::unix::fs::symlink("victim", at("link.tmp")).unwrap();
    std::os::unix::fs::symlink("victim", at("state.tmp")).unwrap();
    let problem = noisy_problem::<f32>(200, 150, Features::default(), 4);
    let failures = spmd(2, |pe| {
        let solution = solve_2d(pe, &problem, &saving(&at("link"), 20, 50), |_| {}).unwrap();
        solution.checkpoint_failure.is_none()
    });
    assert_eq!(failures.unwrap(), [true, true]);
    assert!(fs::read(at("state")).unwrap().starts_with(b"CROSSWRP"));
    assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
    for link in ["link", "link.tmp", "state.tmp"] {
        assert!(at(link).is_symlink(), "{link}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
}

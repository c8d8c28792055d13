//! What becomes of a solve when one PE has no memory: tests.

use std::sync::Arc;

use crosswarp_shmem::{Pe, spmd};

use crate::field::storage::failing;
use crate::{
    Boundary, Cycles, Gradients, Method, Norm, Options, PeError, Problem1d, Problem2d, Problem3d,
    RowSource, Side, SolveError, Solver2d, solve_1d, solve_2d, solve_3d,
};

/// PEs, and the one that has no memory.
const PES: usize = 3;
const POOR: usize = 1;

/// Lets every field that the PE makes be one for which it has no memory, one after the other: all PEs end with an error,
/// and are in step afterwards.
fn all_end(name: &str, solve: impl Fn(&Pe) -> Result<Vec<f64>, SolveError> + Sync) {
    let usual = spmd(PES, |pe| solve(pe).expect("solves")).expect("a world");
    let mut fields = 0;
    loop {
        let ends = spmd(PES, |pe| {
            let poor = pe.my_pe() == POOR;
            failing::after(poor.then_some(fields));
            let first = solve(pe);
            failing::after(None);
            (first.err(), solve(pe).expect("solves"))
        });
        let ends = ends.expect("a world");
        if ends.iter().all(|(error, _)| error.is_none()) {
            // It had memory for all.
            assert!(fields > 0, "{name}");
            return;
        }
        for (me, (error, again)) in ends.iter().enumerate() {
            let right = match error {
                Some(SolveError::Memory(_)) => me == POOR,
                Some(SolveError::Pe(PeError::SetUpFailed { pe })) => me != POOR && *pe == POOR,
                _ => false,
            };
            assert!(right, "{name}, field {fields}, PE {me}: {error:?}");
            assert!(*again == usual[me], "{name}, field {fields}, PE {me}");
        }
        fields += 1;
    }
}

/// Few steps: what memory they take does not depend on their number.
fn by(method: Method) -> Options<'static> {
    Options {
        method,
        ..Options::new(1e-3, 8)
    }
}

fn methods() -> [Method; 4] {
    [
        Method::Multigrid(Cycles::default()),
        Method::ConjugateGradients(Cycles::default()),
        Method::PlainGradients,
        Method::Chebyshev,
    ]
}

/// With a right side, a mask and a coefficient.
fn plane() -> Problem2d<f64> {
    let [nx, ny] = [40, 130];
    let known: RowSource<u8> = Arc::new(|y, row| {
        for (x, byte) in row.iter_mut().enumerate() {
            *byte = u8::from(x % 7 == 0 && y % 5 == 0);
        }
    });
    Problem2d {
        source: Some(Arc::new(|y, row: &mut [f64]| row.fill((y % 3) as f64))),
        fixed: Some(known),
        coefficient: Some(Arc::new(|y, row: &mut [f64]| {
            row.fill(1.0 + (y % 4) as f64)
        })),
        left: Boundary::Neumann(vec![0.0; ny]),
        ..Problem2d::laplace(nx, ny)
    }
}

#[test]
fn on_planes() {
    for method in methods() {
        let (problem, name) = (plane(), format!("{method:?}"));
        let options = by(method);
        all_end(&name, |pe| {
            solve_2d(pe, &problem, &options, |_| {})?.gather_all(pe)
        });
    }
    // Ghosts, so that the field is given back in another one.
    let ring = Problem2d {
        source: Some(Arc::new(|y, row: &mut [f64]| row.fill((y % 3) as f64))),
        left: Boundary::Periodic,
        right: Boundary::Periodic,
        ..Problem2d::<f64>::laplace(41, 90)
    };
    let options = by(Method::Multigrid(Cycles::default()));
    all_end("ring", |pe| {
        solve_2d(pe, &ring, &options, |_| {})?.gather_all(pe)
    });
}

#[test]
fn with_levels_made_once() {
    let problem = plane();
    let limits = Gradients {
        tolerance: 1e-3,
        most: 4,
    };
    all_end("vectors", |pe| {
        let mut solver = Solver2d::new(pe, &problem, &Cycles::default())?;
        let points = solver.rows().len() * solver.columns().len();
        let (b, mut u) = (vec![1.0; points], vec![0.0; points]);
        let solved = solver.cg(&b, &mut u, limits, Solver2d::apply, Solver2d::precondition);
        solver.free()?;
        // Vectors are in parts; the history is the same everywhere.
        solved
    });
}

/// Large enough that each PE has planes of its own.
fn boxes() -> Problem3d<f64> {
    Problem3d {
        source: Some(Arc::new(|z, y, row: &mut [f64]| {
            row.fill(((z + y) % 3) as f64);
        })),
        ..Problem3d::laplace([9, 10, 42])
    }
}

fn box_ends(problem: &Problem3d<f64>, method: Method) {
    let (name, options) = (format!("{method:?}"), by(method));
    all_end(&name, |pe| {
        solve_3d(pe, problem, &options, |_| {})?.gather_all(pe)
    });
}

#[test]
fn in_boxes() {
    for method in methods() {
        box_ends(&boxes(), method);
    }
}

#[test]
fn in_boxes_of_points() {
    let points = Problem3d {
        coefficient: Some(Arc::new(|z, _, row: &mut [f64]| {
            row.fill(1.0 + (z % 4) as f64);
        })),
        sides: [[Side::Fixed; 2], [Side::Neumann(0.0); 2], [Side::Fixed; 2]],
        ..boxes()
    };
    for method in [Method::Multigrid(Cycles::default()), Method::PlainGradients] {
        box_ends(&points, method);
    }
}

#[test]
fn by_sweeps() {
    let options = Options::new(1e-3, 20);
    let line = Problem1d {
        points: 9000,
        left: 1.0,
        right: 0.0,
        norm: Norm::Rms,
    };
    all_end("line", |pe| {
        solve_1d(pe, &line, &options, |_| {})?.gather_all(pe)
    });
    let plane = Problem2d {
        top: Boundary::Fixed(vec![1.0; 40]),
        ..Problem2d::<f64>::laplace(40, 130)
    };
    all_end("plane", |pe| {
        solve_2d(pe, &plane, &options, |_| {})?.gather_all(pe)
    });
}

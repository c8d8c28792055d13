//! What becomes of a solve when one PE's GPU fails: tests.

use crosswarp_shmem::{Pe, spmd};

use super::plane::{Plane, once};
use super::space::{self, run_by};
use super::space_alone::Alone;
use super::steps::Ended;
use super::{Levels, Solver};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest_level::FinestLevel;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::space::level::Level;
use crate::engine::cpu::multigrid::space::line::Line;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Method, Options};
use crate::pes::agree::all_ready_by;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::Problem2d;
use crate::problem::space::Problem3d;
use crate::{solve_2d, solve_3d};

/// PEs, and the one whose GPU has no room.
const PES: usize = 3;
const POOR: usize = 1;

/// As levels are given to GPUs, where that fails on one PE.
fn give_to_gpus(reduction: &Reduction<'_>) -> Result<(), GpuError> {
    let mine = match reduction.pe().my_pe() {
        POOR => Err(GpuError::TooLargeForChip { cells: 9, most: 8 }),
        _ => Ok(()),
    };
    all_ready_by(reduction, mine)
}

/// The PE whose GPU fails says why, the others that it was this one, and all are in step afterwards.
fn assert_said(
    fails: impl Fn(&Pe) -> Result<(), SolveError> + Sync,
    solves: impl Fn(&Pe) -> Result<Vec<f64>, SolveError> + Sync,
) {
    let usual = spmd(PES, |pe| solves(pe).expect("solves")).expect("a world");
    let ends = spmd(PES, |pe| {
        let error = fails(pe).expect_err("a GPU fails");
        (error, solves(pe))
    });
    for (me, (error, again)) in ends.expect("a world").into_iter().enumerate() {
        let right = match error {
            SolveError::Gpu(GpuError::TooLargeForChip { cells: 9, .. }) => me == POOR,
            SolveError::Pe(PeError::SetUpFailed { pe }) => me != POOR && pe == POOR,
            _ => false,
        };
        assert!(right, "PE {me}: {error:?}");
        assert_eq!(again.expect("solves"), usual[me], "PE {me}");
    }
}

fn options() -> Options<'static> {
    Options {
        method: Method::PlainGradients,
        ..Options::new(1e-3, 8)
    }
}

/// A plane's finest level.
struct OfPlane(FinestLevel);

impl Levels for OfPlane {
    fn top(&self) -> &FinestLevel {
        &self.0
    }
    fn top_mut(&mut self) -> &mut FinestLevel {
        &mut self.0
    }
    fn count(&self) -> usize {
        0
    }
    fn solve(
        solver: &mut Solver<'_, Self>,
        _: &mut Field<f64>,
        _: Option<&Field<f64>>,
        _: &mut Ended,
        _: &Options<'_>,
        _: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        Ok(give_to_gpus(&solver.reduction)?)
    }
}

/// A box's.
struct OfBox(Alone);

impl space::Levels for OfBox {
    const DEPTH: usize = Alone::DEPTH;
    fn top(&self) -> &Level {
        self.0.top()
    }
    fn top_mut(&mut self) -> &mut Level {
        self.0.top_mut()
    }
    fn count(&self) -> usize {
        self.0.count()
    }
    fn leave_field(&mut self) {
        self.0.leave_field();
    }
    fn shapes(lines: &[Line; 3], finest: &Shape) -> Vec<Shape> {
        Alone::shapes(lines, finest)
    }
    fn new<F: Real>(made: space::Made<'_, '_, F>) -> Result<OfBox, SolveError> {
        Alone::new(made).map(OfBox)
    }
    fn solve<F: Real>(
        solver: &mut space::Solver<'_, F, Self>,
        _: &mut Ended,
        _: &Options<'_>,
        _: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        Ok(give_to_gpus(&solver.reduction)?)
    }
}

#[test]
fn on_planes() {
    let (problem, options) = (Problem2d::<f64>::laplace(40, 130), options());
    assert_said(
        |pe| {
            let plane = Plane::with(
                pe,
                &problem,
                None,
                None,
                |_| Vec::new(),
                |finest, _, _| {
                    let top = FinestLevel::new(finest, 0).map_err(SolveError::Memory);
                    top.map(OfPlane)
                },
            )?;
            once(plane, &problem, &options, |_| {}).map(drop)
        },
        |pe| solve_2d(pe, &problem, &options, |_| {})?.gather_all(pe),
    );
}

#[test]
fn in_boxes() {
    let (problem, options) = (Problem3d::<f64>::laplace([9, 10, 40]), options());
    assert_said(
        |pe| run_by::<f64, OfBox>(pe, &problem, &options, |_| {}).map(drop),
        |pe| solve_3d(pe, &problem, &options, |_| {})?.gather_all(pe),
    );
}

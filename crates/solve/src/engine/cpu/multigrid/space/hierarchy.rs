//! All levels, and cycles through them; as `cycle.rs` of planes.

use std::io;

use super::finest_level::Workspace;
use super::half_transfer::HalfRestriction;
use super::level::{DEPTH, Level};
use super::line::Line;
use super::operator::Operator;
use super::pass::Pass;
use super::points::{Points, STEPS};
use super::points_transfer::PointWeights;
use super::red_black::RedBlackPass;
use super::transfer::{Prolongation, Restriction, Transfer};
use crate::element::simd::{Isa, Work, on_unit};
use crate::engine::cpu::multigrid::dense::Dense;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::galerkin::computed_rows;
use crate::engine::cpu::multigrid::hierarchy::SetUpError;
use crate::engine::cpu::multigrid::shape::{Axis, Shape};
use crate::engine::cpu::multigrid::smoothing::{Colour, Smoothing, Step};
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cpu::multigrid::wavefront::Start;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::agree::all_ready_by;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;

/// Points of the coarsest level, at most, along each axis.
const COARSEST: usize = 5;
/// Planes of a correction that the finer level needs beyond its own.
pub(crate) const OF_CORRECTION: usize = 5;
/// How far relaxations of every second point go: the first after a correction, and others. In three dimensions somewhat beyond
/// the solution pays (I. Yavneh, *SIAM J. Sci. Comput.* 17, 1996, 180-192): these take 0.08 of the residual a cycle at 65 x 65 x
/// 65 points, ω = 1 everywhere 0.22, ω = 1.2 everywhere 0.09.
const OMEGAS: [f64; 2] = [1.45, 1.2];
/// The same where couplings differ from point to point, and only the finest level is relaxed so.
const OMEGAS_OF_POINTS: [f64; 2] = [1.3, 1.15];
/// Planes of the residual beyond the own ones that a restriction needs, and one more: see [`Pass`].
const TO_RESTRICT: usize = 2;

/// The levels, the finest one first.
pub(crate) struct Hierarchy {
    pub levels: Vec<Level>,
    isa: Isa,
    pub smoothing: SmoothingOf,
    pub dense: Dense,
    rows: [Vec<f64>; 2],
    /// For the finest level by itself.
    pub work: Workspace,
}

/// How levels are relaxed.
#[derive(Clone, Debug)]
pub(crate) struct SmoothingOf {
    /// In cycles, where points have colours,
    cycles: Smoothing,
    /// where they have none, and in preconditioners, which have to be symmetric.
    pub symmetric: Smoothing,
    /// Whether points of a level, each of one colour, have neighbours of the other one alone.
    two_colours: Vec<bool>,
}

impl SmoothingOf {
    fn new(levels: &[Level], symmetric: Smoothing) -> SmoothingOf {
        let of_points = levels[0].operator.points.is_some();
        let two_colours = |(at, level): (usize, &Level)| {
            // Couplings of points on coarse levels reach around corners.
            (at == 0 || !of_points) && level.operator.alternates()
        };
        let omegas = match of_points {
            true => OMEGAS_OF_POINTS,
            false => OMEGAS,
        };
        SmoothingOf {
            cycles: Smoothing::of_colours(&symmetric, omegas),
            symmetric,
            two_colours: levels.iter().enumerate().map(two_colours).collect(),
        }
    }

    /// Of all levels but the last, which is solved directly.
    pub fn of_relaxed(&self, symmetric: bool) -> impl Iterator<Item = &Smoothing> {
        (0..self.two_colours.len() - 1).map(move |at| self.of_level(at, symmetric))
    }

    /// Of level `at`, in cycles or, if `symmetric`, in a preconditioner.
    pub fn of_level(&self, at: usize, symmetric: bool) -> &Smoothing {
        match !symmetric && self.two_colours[at] {
            true => &self.cycles,
            false => &self.symmetric,
        }
    }
}

/// A pass over a level.
#[derive(Clone, Copy)]
struct Plan<'a> {
    start: Start,
    fresh: bool,
    steps: &'a [Step],
    /// Without steps: the colour whose equations hold.
    solved: Option<Colour>,
    margin: usize,
}

/// The shape of a level of these axes whose planes are dealt as `cuts` says.
pub(crate) fn finest_shape(
    lines: &[Line; 3],
    cuts: Vec<usize>,
    me: usize,
    fewest_cells: usize,
) -> Shape {
    Shape::finest(plane_of(lines), lines[2].axis, cuts, me, fewest_cells)
}

/// A plane, as if its points were columns.
fn plane_of(lines: &[Line; 3]) -> Axis {
    Axis {
        len: (lines[0].axis.len + 2) * lines[1].axis.len,
        wraps: false,
    }
}

impl Hierarchy {
    /// Makes the levels of the operator of `lines`. `singular`: constants are in its kernel.
    pub fn new(
        lines: [Line; 3],
        shape: Shape,
        singular: bool,
        smoothing: Smoothing,
    ) -> io::Result<Hierarchy> {
        let steps = smoothing.pre.len() + smoothing.post.len();
        let mut levels = Vec::new();
        let (mut lines, mut shape) = (lines, shape);
        let dense = loop {
            let small = lines.iter().all(|line| line.axis.len <= COARSEST);
            if small && !levels.is_empty() {
                let operator = Operator::new(lines, shape);
                let dense = operator.dense(singular);
                levels.push(Level::new(operator, None, steps)?);
                break dense;
            }
            let [(x, of_x), (y, of_y), (z, of_z)] = lines.each_ref().map(Line::coarser);
            let coarse = [x, y, z];
            let mut next = shape.coarser();
            next.x = plane_of(&coarse);
            let operator = Operator::new(lines, shape);
            let weights = Transfer::Lines([of_x, of_y, of_z]);
            levels.push(Level::new(operator, Some(weights), steps)?);
            (lines, shape) = (coarse, next);
        };
        Hierarchy::of(levels, smoothing, dense)
    }

    /// Makes the levels of an operator of points, by `threads`. Collective.
    pub fn of_points(
        lines: [Line; 3],
        points: Points,
        singular: bool,
        smoothing: Smoothing,
        threads: usize,
        rows: &mut LevelRows<'_>,
        reduction: &Reduction<'_>,
    ) -> Result<Hierarchy, SetUpError> {
        let steps = smoothing.pre.len() + smoothing.post.len();
        let mut levels = Vec::new();
        let (mut lines, mut points) = (lines, points);
        loop {
            let shape = points.shape.clone();
            let small = lines.iter().all(|line| line.axis.len <= COARSEST);
            let mut operator = Operator::new(lines.clone(), shape.clone());
            if small && !levels.is_empty() {
                let dense = points.dense(singular);
                operator.points = Some(points);
                let last = Level::new(operator, None, steps).and_then(|level| {
                    levels.push(level);
                    Hierarchy::of(levels, smoothing, dense)
                });
                return all_ready_by(reduction, last.map_err(SetUpError::from));
            }
            let coarse = lines.each_ref().map(|line| line.coarser().0);
            let mut next = shape.coarser();
            next.x = plane_of(&coarse);
            let room = || -> io::Result<_> {
                Ok((
                    Level::new(operator, None, steps)?,
                    PointWeights::new(&points, &lines, &coarse, &next, threads)?,
                    Points::new(&coarse, &next, STEPS.len(), DEPTH)?,
                ))
            };
            // Before what PEs do together, which none may miss for want of memory.
            let (mut level, mut weights, mut product) =
                all_ready_by(reduction, room().map_err(SetUpError::from))?;
            let planes = computed_rows(&shape, &next);
            weights.product(&points, planes, &mut product, threads);
            weights.complete();
            let fields = product.parts.iter_mut().chain([&mut product.excess]);
            for field in fields {
                if shape.spread && !next.spread {
                    rows.gather(&next, field)?;
                }
                rows.halo_of(&next, field, DEPTH)?;
            }
            product.complete(threads);
            level.operator.points = Some(points);
            level.weights = Some(Transfer::Points(weights));
            levels.push(level);
            (lines, points) = (coarse, product);
        }
    }

    fn of(levels: Vec<Level>, smoothing: Smoothing, dense: Dense) -> io::Result<Hierarchy> {
        let widest = levels[0].operator.stride();
        Ok(Hierarchy {
            rows: [vec![0.0; widest], vec![0.0; widest]],
            work: Workspace::new(&levels[0]),
            isa: Isa::widest(),
            smoothing: SmoothingOf::new(&levels, smoothing),
            levels,
            dense,
        })
    }

    /// Measures b − Au, and begins the first cycle, a full one or not. `sum` gets the squares of the residual.
    /// Collective.
    pub fn begin(
        &mut self,
        rows: &mut LevelRows<'_>,
        full: bool,
        sum: &mut LeafSums,
    ) -> Result<(), PeError> {
        let Smoothing { pre, .. } = self.smoothing_of(0, false);
        let plan = Plan {
            start: Start::Field,
            fresh: false,
            steps: &[],
            solved: None,
            margin: TO_RESTRICT,
        };
        self.pass(rows, 0, plan, true, Some(sum))?;
        let mut start = Start::Field;
        if full {
            let count = self.levels.len();
            for at in 1..count {
                self.complete_right_side(rows, at)?;
                if at + 1 < count {
                    self.restrict_right_side(at);
                }
            }
            self.solve_coarsest(rows)?;
            for at in (1..count - 1).rev() {
                self.cycle_below(rows, at, Start::Corrected, false)?;
            }
            start = Start::Corrected;
        }
        let plan = Plan {
            start,
            steps: &pre,
            ..plan
        };
        self.pass(rows, 0, plan, true, None)
    }

    /// Does over what the last call has restricted, of a field that it has left: [`go_on`](Self::go_on) goes on from there.
    /// `left_by_cycles`: whether cycles with the same relaxations have, and not another method; of a field that others have left
    /// the first correction takes part of the residual alone. Collective.
    pub fn resume(
        &mut self,
        rows: &mut LevelRows<'_>,
        left_by_cycles: bool,
    ) -> Result<(), PeError> {
        let solved = self.smoothing_of(0, false).solved_before();
        let plan = Plan {
            start: Start::Field,
            fresh: false,
            steps: &[],
            solved: solved.filter(|_| left_by_cycles),
            margin: TO_RESTRICT,
        };
        self.pass(rows, 0, plan, true, None)
    }

    /// Ends a cycle and begins the next one; as [`begin`](Self::begin). Collective.
    pub fn go_on(&mut self, rows: &mut LevelRows<'_>, sum: &mut LeafSums) -> Result<(), PeError> {
        self.cycle_below(rows, 1, Start::Zero, false)?;
        let Smoothing { pre, post } = self.smoothing_of(0, false);
        let plan = Plan {
            start: Start::Corrected,
            fresh: false,
            steps: &[&post[..], &pre[..]].concat(),
            solved: None,
            margin: TO_RESTRICT,
        };
        self.pass(rows, 0, plan, true, Some(sum))
    }

    /// One cycle from zero for the right side `r`, to the own planes of `z`; both have [`DEPTH`] planes around those.
    /// Collective.
    pub fn precondition(
        &mut self,
        rows: &mut LevelRows<'_>,
        z: &mut Field<f64>,
        r: &mut Field<f64>,
    ) -> Result<(), PeError> {
        let mut swap = |levels: &mut [Level]| {
            std::mem::swap(&mut levels[0].u, z);
            std::mem::swap(&mut levels[0].right_side, r);
        };
        swap(&mut self.levels);
        let done = self.cycle_from_zero(rows);
        swap(&mut self.levels);
        done
    }

    fn cycle_from_zero(&mut self, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        let smoothing = self.smoothing_of(0, true);
        let margin = smoothing.margin_down();
        let Smoothing { pre, post } = smoothing;
        let Level {
            operator,
            right_side,
            ..
        } = &mut self.levels[0];
        for z in operator.shape.own() {
            operator.beyond(right_side.row_mut(z));
        }
        rows.halo(&operator.shape, right_side, margin + pre.len())?;
        let down = Plan {
            start: Start::Zero,
            fresh: true,
            steps: &pre,
            solved: None,
            margin,
        };
        self.pass(rows, 0, down, true, None)?;
        self.cycle_below(rows, 1, Start::Zero, true)?;
        let up = Plan {
            start: Start::Corrected,
            fresh: false,
            steps: &post,
            solved: None,
            margin: 0,
        };
        self.pass(rows, 0, up, false, None)
    }

    /// A pass over level `at`. Who restricts from it starts from planes that are brought up to date.
    fn pass(
        &mut self,
        rows: &mut LevelRows<'_>,
        at: usize,
        plan: Plan<'_>,
        restrict: bool,
        sum: Option<&mut LeafSums>,
    ) -> Result<(), PeError> {
        let Plan {
            start,
            fresh,
            steps,
            solved,
            margin,
        } = plan;
        let solved = steps.last().map_or(solved, |last| last.colour);
        let [fine_row, coarse_row] = &mut self.rows;
        let (before, after) = self.levels.split_at_mut(at + 1);
        let (level, mut next) = (&mut before[at], after.first_mut());
        let operator = &level.operator;
        let shape = &operator.shape;
        if at == 0 && restrict && start != Start::Zero {
            let depth = margin + steps.len();
            rows.halo(shape, &mut level.u, depth)?;
        }
        if let (Some(solved), Some(kept), Some(next), Some(Transfer::Lines(weights))) =
            (solved, &mut level.halves, &mut next, &level.weights)
        {
            let work = RedBlackPass {
                operator,
                right_side: &level.right_side,
                u: &mut level.u,
                start,
                fresh,
                steps,
                solved,
                margin,
                kept,
                correction: (start == Start::Corrected).then_some((weights, &next.u)),
                row: coarse_row,
                restriction: restrict.then_some(HalfRestriction {
                    fine: operator,
                    weights,
                    computed: computed_rows(shape, &next.operator.shape),
                    right_side: &mut next.right_side,
                }),
                sum,
            };
            on_unit(self.isa, work);
            return Ok(());
        }
        let (prolongation, restriction) = match (&mut next, &level.weights) {
            (Some(next), Some(weights)) => {
                fine_row.resize(operator.stride(), 0.0);
                let prolongation = (start == Start::Corrected).then_some(Prolongation {
                    fine: operator,
                    weights,
                    coarse: &next.u,
                    row: coarse_row,
                });
                let restriction = restrict.then_some(Restriction {
                    fine: operator,
                    weights,
                    computed: computed_rows(shape, &next.operator.shape),
                    row: fine_row,
                    right_side: &mut next.right_side,
                });
                (prolongation, restriction)
            }
            _ => (None, None),
        };
        let work = Pass {
            equations: operator.with(Some(&level.right_side)),
            u: &mut level.u,
            start,
            fresh,
            steps,
            solved,
            margin,
            kept: &mut level.kept,
            prolongation,
            restriction,
            sum,
        };
        on_unit(self.isa, work);
        Ok(())
    }

    /// Restricts the right side of level `at`.
    fn restrict_right_side(&mut self, at: usize) {
        let (before, after) = self.levels.split_at_mut(at + 1);
        let (level, next) = (&before[at], &mut after[0]);
        let Some(weights) = &level.weights else {
            return;
        };
        let operator = &level.operator;
        self.rows[0].resize(operator.stride(), 0.0);
        on_unit(
            self.isa,
            RestrictAll {
                from: &level.right_side,
                by: Restriction {
                    fine: operator,
                    weights,
                    computed: computed_rows(&operator.shape, &next.operator.shape),
                    row: &mut self.rows[0],
                    right_side: &mut next.right_side,
                },
            },
        );
    }

    /// Makes the right side of level `at` complete as far as a cycle needs it. Collective.
    fn complete_right_side(&mut self, rows: &mut LevelRows<'_>, at: usize) -> Result<(), PeError> {
        let spread = self.levels[at - 1].operator.shape.spread;
        let level = &mut self.levels[at];
        let shape = &level.operator.shape;
        if spread && !shape.spread {
            rows.gather(shape, &mut level.right_side)?;
        }
        for z in shape.own() {
            level.operator.beyond(level.right_side.row_mut(z));
        }
        let smoothing = &self.smoothing.symmetric;
        let depth = smoothing.margin_down() + smoothing.pre.len();
        rows.halo(shape, &mut level.right_side, depth)
    }

    fn smoothing_of(&self, at: usize, symmetric: bool) -> Smoothing {
        self.smoothing.of_level(at, symmetric).clone()
    }

    /// One cycle for the levels from `first` on, from zero or, where the right side of `first` is complete already, from
    /// the solution of the next.
    fn cycle_below(
        &mut self,
        rows: &mut LevelRows<'_>,
        first: usize,
        start: Start,
        symmetric: bool,
    ) -> Result<(), PeError> {
        let count = self.levels.len();
        for at in first..count {
            let start = if at == first { start } else { Start::Zero };
            if start == Start::Zero {
                self.complete_right_side(rows, at)?;
            }
            if at + 1 == count {
                break;
            }
            let smoothing = self.smoothing_of(at, symmetric);
            let (pre, margin) = (&smoothing.pre, smoothing.margin_down());
            let plan = Plan {
                start,
                fresh: true,
                steps: pre,
                solved: None,
                margin,
            };
            self.pass(rows, at, plan, true, None)?;
        }
        self.solve_coarsest(rows)?;
        for at in (first..count - 1).rev() {
            let Smoothing { post, .. } = self.smoothing_of(at, symmetric);
            let plan = Plan {
                start: Start::Corrected,
                fresh: false,
                steps: &post,
                solved: None,
                margin: 0,
            };
            self.pass(rows, at, plan, false, None)?;
            let level = &mut self.levels[at];
            rows.halo(&level.operator.shape, &mut level.u, OF_CORRECTION)?;
        }
        Ok(())
    }

    /// Solves the coarsest level directly. Collective.
    fn solve_coarsest(&mut self, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        let last = self.levels.last_mut().expect("there is a level");
        let operator = &last.operator;
        let [nx, ny, nz] = operator.lines.each_ref().map(|line| line.axis.len);
        let stride = operator.stride();
        let mut values = Vec::with_capacity(nx * ny * nz);
        for z in 0..nz {
            let plane = last.right_side.row(z as isize);
            (0..ny).for_each(|y| values.extend_from_slice(&plane[y * stride + 1..][..nx]));
        }
        self.dense.solve(&mut values);
        for z in 0..nz {
            let plane = last.u.row_mut(z as isize);
            for (y, row) in values[z * nx * ny..][..nx * ny]
                .chunks_exact(nx)
                .enumerate()
            {
                plane[y * stride + 1..][..nx].copy_from_slice(row);
            }
            operator.beyond(plane);
        }
        rows.halo(&operator.shape, &mut last.u, OF_CORRECTION)
    }
}

/// Restricts a right side.
struct RestrictAll<'a> {
    from: &'a Field<f64>,
    by: Restriction<'a>,
}

impl Work for RestrictAll<'_> {
    #[inline(always)]
    fn run(self) {
        let RestrictAll { from, mut by } = self;
        let rows = 0..by.fine.lines[1].axis.coarser().len;
        for z in by.fine.shape.rows(1) {
            by.take(z, rows.clone(), 0, |z| from.row(z));
        }
    }
}

/// The shapes of the levels below the finest one, of `lines` and `shape`.
pub(crate) fn coarser_shapes(lines: &[Line; 3], shape: &Shape) -> Vec<Shape> {
    let (mut lines, mut shape) = (lines.clone(), shape.clone());
    let mut shapes = Vec::new();
    while shapes.is_empty() || lines.iter().any(|line| line.axis.len > COARSEST) {
        lines = lines.each_ref().map(|line| line.coarser().0);
        shape = shape.coarser();
        shape.x = plane_of(&lines);
        shapes.push(shape.clone());
    }
    shapes
}

/// The kinds of ends of three axes make constants solutions.
pub(crate) fn is_singular(ends: &[[End; 2]; 3]) -> bool {
    ends.as_flattened().iter().all(|&end| end != End::Fixed)
}

//! Solves of a plane whose source, first guess and field are arrays in the memory of the GPU that makes the cycles.

use std::time::{Duration, Instant};

use crosswarp_cuda::BufferRef;
use crosswarp_shmem::Pe;

use super::load::{Layout, flows, flows_across};
use super::plane::Plane;
use super::steps::Ended;
use super::{Given, Outcome, fewest_cells, incompatible};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cuda::multigrid::arrays::{Arrays, OfProblem};
use crate::engine::cuda::multigrid::equations::RightSide;
use crate::engine::cuda::multigrid::galerkin;
use crate::engine::cuda::multigrid::operator::{self, DeviceOperator, Operator};
use crate::engine::cuda::multigrid::{CyclesOf, GpuCycles};
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Cycles, First, Method, Options};
use crate::problem::scale::{Scale, largest_of};
use crate::problem::{Boundary, Problem2d};

/// Arrays in the memory of a GPU, with a value for each point of a grid, as the C order of (rows, columns), or of (planes, rows,
/// columns), has them.
///
/// Whoever has made them sees to it that they are complete when a solve begins: it does not wait for other streams.
#[derive(Clone, Copy, Debug)]
pub struct DeviceArrays<'a, F: Real> {
    /// The source; `None`: there is none.
    pub source: Option<BufferRef<'a, F>>,
    /// The first guess, with the values of fixed cells inside; `None`: zero.
    pub initial: Option<BufferRef<'a, F>>,
    /// Is written when the solve has ended; it may be one of the others.
    pub field: BufferRef<'a, F>,
}

impl<F: Real> DeviceArrays<'_, F> {
    /// What can solve from them, if the host need not: the GPU of `options`, and its cycles. `by_rows`: whether the problem
    /// delivers a source and a first guess itself.
    pub(super) fn solved_by<'o>(
        &self,
        pe: &Pe,
        by_rows: [bool; 2],
        options: &'o Options<'_>,
    ) -> Option<(&'o Gpu, &'o Cycles)> {
        let (Method::Multigrid(cycles) | Method::Automatic(cycles)) = &options.method else {
            return None;
        };
        let [source, initial] = by_rows;
        let needs_rows = (source && self.source.is_none()) || (initial && self.initial.is_none());
        let is_possible = !needs_rows && options.only_solves() && pe.n_pes() == 1;
        let gpu = options.gpu.as_ref().filter(|_| is_possible)?;
        Some((gpu, cycles))
    }

    /// Panics if an array has another length.
    pub(crate) fn assert_points(&self, points: usize) {
        for array in [self.source, self.initial, Some(self.field)]
            .iter()
            .flatten()
        {
            assert_eq!(array.len(), points, "an array has a value for each point");
        }
    }
}

impl<F: Real> DeviceOperator<'_, F> {
    /// Nothing: the problem says all.
    pub const NONE: Self = DeviceOperator {
        fixed: None,
        coefficient: None,
        reaction: None,
    };

    fn is_empty(&self) -> bool {
        self.fixed.is_none() && self.coefficient.is_none() && self.reaction.is_none()
    }

    /// Panics if an array has another length, or the problem has one of them, too.
    pub(crate) fn assert_points(&self, problem: &Problem2d<F>) {
        let own = [
            problem.fixed.is_some(),
            problem.coefficient.is_some(),
            problem.reaction.is_some(),
        ];
        let lengths = [
            self.fixed.map(|array| array.len()),
            self.coefficient.map(|array| array.len()),
            self.reaction.map(|array| array.len()),
        ];
        for (own, len) in own.into_iter().zip(lengths) {
            let Some(len) = len else { continue };
            assert!(!own, "the problem delivers by rows what an array has");
            assert_eq!(
                len,
                problem.nx * problem.ny,
                "an array has a value for each point"
            );
        }
    }

    /// What levels are made of; nothing where the host has to.
    fn made(
        &self,
        pe: &Pe,
        problem: &Problem2d<F>,
        gpu: &Gpu,
    ) -> Result<Option<Operator>, SolveError> {
        let layout = Layout::of(problem, pe, fewest_cells(Some(gpu)));
        let shape = &layout.shape;
        // What crosses a side counts where cells do not keep their value.
        let asks_for_mask = problem.sides().into_iter().any(flows_across) && self.fixed.is_some();
        // Couplings are of the host or of the GPU.
        let is_mixed = problem.coefficient.is_some() || problem.reaction.is_some();
        if !galerkin::is_possible([shape.x, shape.y]) || asks_for_mask || is_mixed {
            return Ok(None);
        }
        let of_problem = operator::OfPlane {
            size: [problem.nx, problem.ny],
            first: layout.first,
            shape,
            ends: layout.ends,
            spacings: problem.spacings(),
            mixed: std::array::from_fn(|side| match problem.sides()[side] {
                Boundary::Robin(mixed) => {
                    let along = 1 - side / 2;
                    let len = [shape.x.len, shape.y.len][along];
                    let at = |at: usize| mixed.at(at + layout.first[along]);
                    let ratio = |[a, b, _]: [f64; 3]| a / b;
                    Some((0..len).map(|place| ratio(at(place))).collect())
                }
                _ => None,
            }),
        };
        Ok(operator::make(gpu, &of_problem, self)?)
    }
}

/// See [`solve_2d_on_device`](crate::solve_2d_on_device).
pub(crate) fn run<F: Real>(
    pe: &Pe,
    problem: &Problem2d<F>,
    operator: &DeviceOperator<'_, F>,
    given: &DeviceArrays<'_, F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Option<Outcome<F>>, SolveError> {
    let by_rows = [problem.source.is_some(), problem.initial.is_some()];
    let Some((gpu, cycles)) = given.solved_by(pe, by_rows, options) else {
        return Ok(None);
    };
    let made = match operator.is_empty() {
        true => None,
        false => match operator.made(pe, problem, gpu)? {
            None => return Ok(None),
            made => made,
        },
    };
    let plane = Plane::new(pe, problem, cycles, Some(gpu), made)?;
    once(plane, problem, given, options, observer)
}

/// One solve, after which all is given back.
pub(super) fn once<F: Real>(
    mut plane: Plane<'_, Hierarchy<f32>>,
    problem: &Problem2d<F>,
    given: &DeviceArrays<'_, F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Option<Outcome<F>>, SolveError> {
    let outcome = plane.solve_arrays(problem, given, &mut None, options, observer);
    match outcome {
        Err(error) if error.is_of_one_pe() => Err(error),
        outcome => {
            plane.free()?;
            outcome
        }
    }
}

/// Levels in the memory of a GPU, kept from one solve of a problem to the next.
pub(crate) struct OnGpu<F: Real> {
    cycles: GpuCycles,
    arrays: Arrays<F>,
    /// The GPU's number.
    device: usize,
    first: First,
    /// Whether there is room for a right side: there is for one of a source, or of what crosses sides,
    has_right_side: bool,
    something_crosses: bool,
    /// which is at most so large.
    largest_flow: f64,
}

impl<F: Real> OnGpu<F> {
    fn serves(&self, gpu: &Gpu, first: First, has_source: bool) -> bool {
        self.device == gpu.device.ordinal()
            && self.first == first
            && self.has_right_side == (has_source || self.something_crosses)
    }
}

impl Plane<'_, Hierarchy<f32>> {
    /// As [`solve`](Self::solve), with arrays of the grid's size in the GPU's memory. `kept`: what the last solve has left
    /// there. `None`, and nothing has been written, where the host has to solve: see
    /// [`Solver2d::solve_on_device`](crate::Solver2d::solve_on_device).
    pub fn solve_arrays<F: Real>(
        &mut self,
        problem: &Problem2d<F>,
        given: &DeviceArrays<'_, F>,
        kept: &mut Option<OnGpu<F>>,
        options: &Options<'_>,
        mut observer: impl FnMut(&Progress<'_>),
    ) -> Result<Option<Outcome<F>>, SolveError> {
        let by_rows = [problem.source.is_some(), problem.initial.is_some()];
        let Some((gpu, by)) = given.solved_by(self.pe, by_rows, options) else {
            return Ok(None);
        };
        let now = Instant::now();
        self.solver.start = now.checked_sub(self.set_up).unwrap_or(now);
        let has_source = given.source.is_some();
        let mut on_gpu = match kept.take() {
            Some(on_gpu) if on_gpu.serves(gpu, by.first, has_source) => on_gpu,
            _ => self.on_gpu(problem, gpu, by.first, has_source)?,
        };
        let from = [given.source, given.initial];
        let largest = on_gpu.arrays.load(&mut on_gpu.cycles, from, 1.0)?;
        let scale = Scale::of(largest_of(largest, &[on_gpu.largest_flow]));
        let operator = self.operator.unwrap_or(Scale::NONE);
        // What is not finite the host says more of.
        if !largest.is_finite() || !scale.is_one_product() || !operator.is_one_product() {
            *kept = Some(on_gpu);
            return Ok(None);
        }
        if scale != Scale::NONE {
            let times = scale.down(1.0);
            on_gpu.arrays.load(&mut on_gpu.cycles, from, times)?;
        }
        self.solver.given = Given {
            scale,
            nx: problem.nx,
            ..Given::default()
        };
        let (on_gpu, ended) = self.cycles_of(on_gpu, options, &mut observer)?;
        let outcome = match ended {
            Some(ended) => {
                // Said once, of the first solution.
                self.set_up = Duration::ZERO;
                Some(self.written(&on_gpu, given.field, ended)?)
            }
            None => None,
        };
        *kept = Some(on_gpu);
        Ok(outcome)
    }

    /// Levels on `gpu`, with room for the field and, if there is something on it, the right side.
    fn on_gpu<F: Real>(
        &mut self,
        problem: &Problem2d<F>,
        gpu: &Gpu,
        first: First,
        has_source: bool,
    ) -> Result<OnGpu<F>, SolveError> {
        let solver = &mut self.solver;
        let (layout, finest) = (&solver.layout, solver.equations());
        let couplings = self.on_gpu.couplings.as_ref();
        let kappas = couplings.map(|couplings| &couplings.kappas);
        let (flows, largest_flow) = flows(problem, layout, finest, self.operator, kappas);
        let mut all = flows.iter().flatten().flatten();
        let something_crosses = all.any(|&flow| flow != 0.0);
        let has_right_side = has_source || something_crosses;
        let right_side = match has_right_side {
            true => RightSide::Room,
            false => RightSide::Zero,
        };
        let [h_x, h_y] = problem.spacings();
        let of_problem = OfProblem {
            size: [problem.nx, problem.ny],
            first: layout.first,
            sides: problem.sides().map(|side| match side {
                Boundary::Fixed(values) => Some(&values[..]),
                _ => None,
            }),
            flows: flows.each_ref().map(Option::as_deref),
            area: h_x * h_y,
            operator_scale: self.operator.unwrap_or(Scale::NONE).down(1.0),
        };
        let of = CyclesOf {
            u: None,
            right_side,
            on_gpu: std::mem::take(&mut self.on_gpu.equations),
            first: layout.first[1],
            full: first == First::Full,
            whole_gpu: true,
        };
        let cycles = GpuCycles::new(gpu, &mut solver.levels, &mut solver.rows, of)?;
        Ok(OnGpu {
            arrays: Arrays::new(&cycles, &of_problem)?,
            cycles,
            device: gpu.device.ordinal(),
            first,
            has_right_side,
            something_crosses,
            largest_flow,
        })
    }

    /// Makes cycles from what has been loaded. How they have ended, if not because they are slow.
    fn cycles_of<F: Real>(
        &mut self,
        on_gpu: OnGpu<F>,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(OnGpu<F>, Option<Ended>), SolveError> {
        let solver = &mut self.solver;
        let mut ended = Ended {
            on_gpu: true,
            only_cycles: true,
            ..Ended::default()
        };
        if solver.singular && on_gpu.has_right_side {
            let OnGpu { cycles, arrays, .. } = &on_gpu;
            let sums = arrays.weigh_right_side(cycles, &mut solver.rows)?;
            let [sum, size] = solver.total_of(sums, false)?.0;
            ended.projected = incompatible(sum, size, options)?;
            arrays.shift_right_side(cycles, sum / cells(&solver.layout))?;
        }
        ended.setup_seconds = solver.so_far();
        let nowhere = Field::lazy(0..0, solver.layout.shape.x.len);
        let mut nowhere = nowhere.map_err(SolveError::Memory)?;
        solver.gpu = Some(on_gpu.cycles);
        let begin = (on_gpu.first, true);
        solver.cycles(&mut nowhere, None, begin, &mut ended, options, observer)?;
        ended.seconds = solver.so_far();
        let on_gpu = OnGpu {
            cycles: solver.gpu.take().expect("cycles leave it where it is"),
            ..on_gpu
        };
        let solved = !ended.left_to_gradients;
        Ok((on_gpu, solved.then_some(ended)))
    }

    /// Writes the field.
    fn written<F: Real>(
        &mut self,
        OnGpu { cycles, arrays, .. }: &OnGpu<F>,
        field: BufferRef<'_, F>,
        ended: Ended,
    ) -> Result<Outcome<F>, SolveError> {
        let solver = &mut self.solver;
        let sum = cycles.square(&mut solver.rows)?;
        let norm = solver.total_of([sum], false)?.0[0].sqrt();
        let surplus = match solver.singular {
            true => {
                let sum = arrays.weigh_field(cycles, &mut solver.rows)?;
                solver.total_of([sum], false)?.0[0] / cells(&solver.layout)
            }
            false => 0.0,
        };
        let up = solver.given.scale.up(1.0);
        if !arrays.save(cycles, field, surplus, up)? {
            return Err(SolveError::OutOfRange { dtype: F::NAME });
        }
        Ok(self.outcome(ended, norm, None))
    }
}

/// The sum of the parts of all points that lie in the grid: exact, as the one by leaves.
fn cells(layout: &Layout) -> f64 {
    let along = |len: usize, ends: [End; 2]| {
        let mirrors = ends.iter().filter(|&&end| end == End::Mirror).count();
        len as f64 - 0.5 * mirrors as f64
    };
    along(layout.shape.x.len, layout.ends[0]) * along(layout.shape.y.len, layout.ends[1])
}

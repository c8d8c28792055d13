//! Solves of a plane whose source, first guess and field are arrays in the memory of the GPU that makes the cycles.

use std::time::{Duration, Instant};

use crosswarp_cuda::BufferRef;

use super::load::{Layout, flows};
use super::plane::Plane;
use super::steps::Ended;
use super::{Given, Outcome, incompatible};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cuda::multigrid::GpuCycles;
use crate::engine::cuda::multigrid::arrays::{self, Arrays, OfGrid};
use crate::engine::cuda::multigrid::equations::RightSide;
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{First, Method, Options};
use crate::problem::scale::{Scale, largest_of};
use crate::problem::{Boundary, Problem2d};

/// Arrays in the memory of a GPU, with a value for each point of a grid, row by row, in the C order of (rows, columns).
///
/// Whoever has made them sees to it that they are complete when a solve begins: it does not wait for other streams.
#[derive(Clone, Copy, Debug)]
pub struct DeviceArrays<'a, F: Real> {
    /// The source; `None`: there is none, or the problem's.
    pub source: Option<BufferRef<'a, F>>,
    /// The first guess, with the values of fixed cells inside; `None`: zero, or the problem's.
    pub initial: Option<BufferRef<'a, F>>,
    /// Is written when the solve has ended; it may be one of the others.
    pub field: BufferRef<'a, F>,
}

/// Levels in the memory of a GPU, kept from one solve to the next.
pub(super) struct OnGpu {
    cycles: GpuCycles,
    arrays: Arrays,
    made_for: MadeFor,
}

#[derive(Clone, Copy, PartialEq)]
struct MadeFor {
    /// The GPU's number.
    device: usize,
    first: First,
    has_right_side: bool,
}

/// Exponents of scales that one multiplication by a power of two makes.
const EXPONENTS: std::ops::RangeInclusive<i32> = -1000..=1000;

impl Plane<'_, Hierarchy<f32>> {
    /// As [`solve`](Self::solve), with arrays in the GPU's memory. `None`, and nothing has been written, where the host has to
    /// solve: see [`Solver2d::solve_on_device`](crate::Solver2d::solve_on_device).
    pub fn solve_arrays<F: Real>(
        &mut self,
        problem: &Problem2d<F>,
        given: &DeviceArrays<'_, F>,
        options: &Options<'_>,
        mut observer: impl FnMut(&Progress<'_>),
    ) -> Result<Option<Outcome<F>>, SolveError> {
        let points = problem.nx * problem.ny;
        let of_points = |array: &BufferRef<'_, F>| array.len() == points;
        assert!(
            given.source.iter().chain(&given.initial).all(of_points) && of_points(&given.field),
            "an array has a value for each point"
        );
        let (Method::Multigrid(by) | Method::Automatic(by)) = &options.method else {
            return Ok(None);
        };
        let kept = options.checkpoint.is_some() || options.resume.is_some();
        let by_rows = (problem.source.is_some() && given.source.is_none())
            || (problem.initial.is_some() && given.initial.is_none());
        let Some(gpu) = &options.gpu else {
            return Ok(None);
        };
        if kept || options.field_every.is_some() || by_rows || self.pe.n_pes() > 1 {
            return Ok(None);
        }
        let now = Instant::now();
        self.solver.start = now.checked_sub(self.set_up).unwrap_or(now);
        self.set_up = Duration::ZERO;
        let (flows, largest_flow) = {
            let solver = &self.solver;
            flows(problem, &solver.layout, solver.equations(), self.operator)
        };
        let something_flows = flows
            .iter()
            .flatten()
            .any(|side| side.iter().any(|&flow| flow != 0.0));
        let made_for = MadeFor {
            device: gpu.device.ordinal(),
            first: by.first,
            has_right_side: given.source.is_some() || something_flows,
        };
        let mut on_gpu = match self.on_gpu.take() {
            Some(on_gpu) if on_gpu.made_for == made_for => on_gpu,
            _ => self.on_gpu(problem, gpu, made_for)?,
        };
        let sides = problem.sides().map(|side| match side {
            Boundary::Fixed(values) => Some(&values[..]),
            _ => None,
        });
        let [h_x, h_y] = problem.spacings();
        let operator = self.operator.unwrap_or(Scale::NONE);
        let mut scale = Scale::NONE;
        // The size of what is loaded says how it is scaled.
        loop {
            let flows = flows.each_ref().map(|side| {
                let side = side.as_ref()?;
                Some(
                    side.iter()
                        .map(|&flow| scale.down(flow))
                        .collect::<Vec<_>>(),
                )
            });
            let from = arrays::Given {
                source: given.source,
                initial: given.initial,
                sides,
                flows: flows.each_ref().map(Option::as_deref),
                area: h_x * h_y,
                operator_scale: self.operator.map(|_| operator.down(1.0)),
                scale: scale.down(1.0),
            };
            let largest = on_gpu.arrays.load(&mut on_gpu.cycles, &from)?;
            if scale != Scale::NONE {
                break;
            }
            // What is not finite the host says more of.
            let largest = match largest.is_finite() {
                true => largest_of(largest, &[largest_flow]),
                false => f64::NAN,
            };
            let wanted = Scale::of(largest);
            let possible = [wanted, operator]
                .iter()
                .all(|of| EXPONENTS.contains(&of.exponent));
            if largest.is_nan() || !possible {
                self.on_gpu = Some(on_gpu);
                return Ok(None);
            }
            if wanted == Scale::NONE {
                break;
            }
            scale = wanted;
        }
        self.solver.given = Given {
            scale,
            nx: problem.nx,
            ..Given::default()
        };
        self.cycles_of_arrays(on_gpu, given, options, &mut observer)
    }

    /// Levels on `gpu`, with room for the field.
    fn on_gpu<F: Real>(
        &self,
        problem: &Problem2d<F>,
        gpu: &Gpu,
        made_for: MadeFor,
    ) -> Result<OnGpu, SolveError> {
        let solver = &self.solver;
        let right_side = match made_for.has_right_side {
            true => RightSide::Room,
            false => RightSide::Zero,
        };
        let [_, first] = solver.layout.first;
        let cycles = GpuCycles::new(
            gpu,
            &solver.levels,
            None,
            right_side,
            first,
            made_for.first == First::Full,
            true,
        )?;
        let grid = OfGrid {
            size: [problem.nx, problem.ny],
            first: solver.layout.first,
        };
        Ok(OnGpu {
            cycles,
            arrays: Arrays::new::<F>(&gpu.device, grid)?,
            made_for,
        })
    }

    /// Makes cycles from what has been loaded, and writes the field.
    fn cycles_of_arrays<F: Real>(
        &mut self,
        on_gpu: OnGpu,
        given: &DeviceArrays<'_, F>,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<Option<Outcome<F>>, SolveError> {
        let OnGpu {
            cycles,
            arrays,
            made_for,
        } = on_gpu;
        let solver = &mut self.solver;
        let mut ended = Ended {
            on_gpu: true,
            only_cycles: true,
            ..Ended::default()
        };
        let cells = cells(&solver.layout);
        if solver.singular && made_for.has_right_side {
            let sums = arrays.weigh_right_side(&cycles, &mut solver.rows)?;
            let [sum, size] = solver.total_of(sums, false)?.0;
            ended.projected = incompatible(sum, size, options)?;
            arrays.shift_right_side(&cycles, sum / cells)?;
        }
        solver.gpu = Some(cycles);
        ended.setup_seconds = solver.so_far();
        let mut nowhere =
            Field::lazy(0..0, solver.layout.shape.x.len).map_err(SolveError::Memory)?;
        let begin = (made_for.first, true);
        let solved = solver.cycles(&mut nowhere, None, begin, &mut ended, options, observer);
        solver.rows.gpus.leave_after(&solved);
        solved?;
        ended.seconds = solver.so_far();
        let cycles = solver.gpu.take().expect("nobody else has taken it");
        let mut outcome = None;
        if !ended.left_to_gradients {
            let sum = cycles.square(&mut solver.rows)?;
            let norm = solver.total_of([sum], false)?.0[0].sqrt();
            let surplus = match solver.singular {
                true => {
                    let sum = arrays.weigh_field(&cycles, &mut solver.rows)?;
                    solver.total_of([sum], false)?.0[0] / cells
                }
                false => 0.0,
            };
            let up = solver.given.scale.up(1.0);
            if !arrays.save(&cycles, given.field, surplus, up)? {
                return Err(SolveError::OutOfRange { dtype: F::NAME });
            }
            outcome = Some(self.outcome(ended, norm, None));
        }
        self.on_gpu = Some(OnGpu {
            cycles,
            arrays,
            made_for,
        });
        Ok(outcome)
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

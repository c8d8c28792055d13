//! Solves of a box whose source, first guess and field are arrays in the memory of the GPU that makes the cycles.

use std::time::Instant;

use crosswarp_shmem::Pe;

use super::arrays::DeviceArrays;
use super::space::{Levels, Made, Solver, outcome};
use super::space_load::Layout;
use super::steps::Ended;
use super::{Outcome, incompatible};
use crate::element::Real;
use crate::engine::cpu::multigrid::space::hierarchy::{Hierarchy, is_singular};
use crate::engine::cuda::multigrid::space::GpuBox;
use crate::engine::cuda::multigrid::space::arrays::Arrays;
use crate::exchange::level_rows::LevelRows;
use crate::field::checkpoint::Identity;
use crate::gpu::Gpu;
use crate::gpu::choice::Choice;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Cycles, Options};
use crate::pes::reduction::Reduction;
use crate::problem::scale::Scale;
use crate::problem::space::{Problem3d, Side};
use crate::stop::norms::{self, Totals};

/// See [`solve_3d_on_device`](crate::solve_3d_on_device). The problem has been checked.
pub(crate) fn run<F: Real>(
    pe: &Pe,
    problem: &Problem3d<F>,
    given: &DeviceArrays<'_, F>,
    options: &Options<'_>,
    observer: &mut impl FnMut(&Progress<'_>),
) -> Result<Option<Outcome<F>>, SolveError> {
    let by_rows = [problem.source.is_some(), problem.initial.is_some()];
    let by = given.solved_by(pe, by_rows, options);
    let Some((gpu, cycles)) = by.filter(|_| !problem.is_general()) else {
        return Ok(None);
    };
    GpuBox::check(problem.size)?;
    let reduction = Reduction::new(pe, norms::words::<f64>(4))?;
    let start = Instant::now();
    let Layout {
        ends,
        lines,
        partition,
        shape,
    } = Layout::of(pe, problem, options);
    let shapes = Hierarchy::shapes(&lines, &shape);
    let mut rows = LevelRows::new::<f64>(pe, &shape, &shapes, 1, Hierarchy::DEPTH)?;
    let singular = is_singular(&ends);
    let levels = <Hierarchy as Levels>::new(Made {
        problem,
        lines,
        ends,
        shape,
        points: None,
        scale: Scale::NONE,
        singular,
        method: &options.method,
        threads: 1,
        rows: &mut rows,
        reduction: &reduction,
    })?;
    let mut solver = Solver {
        problem,
        levels,
        gpu: None,
        rows,
        reduction,
        totals: Totals::default(),
        partition,
        singular,
        from_zero: false,
        scale: Scale::NONE,
        // Of checkpoints, which there are none of.
        identity: Identity::default(),
        start,
    };
    let outcome = solver.solve_arrays(gpu, given, cycles, options, observer);
    solver.rows.free()?;
    solver.reduction.free()?;
    outcome
}

impl<F: Real> Solver<'_, F, Hierarchy> {
    fn solve_arrays(
        &mut self,
        gpu: &Gpu,
        given: &DeviceArrays<'_, F>,
        cycles: &Cycles,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<Option<Outcome<F>>, SolveError> {
        let on_gpu = GpuBox::with_room(gpu, &self.levels, &[false])?;
        let slopes = self.problem.sides.map(|sides| {
            sides.map(|side| match side {
                Side::Neumann(slope) => Some(slope.to_f64()),
                _ => None,
            })
        });
        let slopes = [slopes[0], slopes[1], slopes[2]].concat();
        let slopes = slopes.try_into().expect("three axes have six ends");
        let arrays = Arrays::new::<F>(&on_gpu, slopes)?;
        let from = [given.source, given.initial];
        let mut loaded = arrays.load(&on_gpu, from, 1.0)?;
        let scale = Scale::of(loaded.largest);
        if !loaded.largest.is_finite() || !scale.is_one_product() {
            return Ok(None);
        }
        if scale != Scale::NONE {
            loaded = arrays.load(&on_gpu, from, scale.down(1.0))?;
        }
        (self.scale, self.from_zero) = (scale, loaded.is_zero);
        let mut ended = Ended {
            on_gpu: true,
            only_cycles: true,
            ..Ended::default()
        };
        if self.singular {
            let sums = arrays.weigh_right_side(&on_gpu, &mut self.rows)?;
            let ([sum, size], _) = self.total_of(sums, false)?;
            ended.projected = incompatible(sum, size, options)?;
            arrays.shift_right_side(&on_gpu, sum / self.volume())?;
        }
        ended.setup_seconds = self.so_far();
        self.gpu = Some(on_gpu);
        self.cycles((cycles.first, true), &mut ended, options, observer)?;
        ended.seconds = self.so_far();
        if ended.left_to_gradients {
            return Ok(None);
        }
        let floor = ended.relative_floor(self.field_norm()?);
        let on_gpu = self.gpu.take().expect("cycles leave it where it is");
        let surplus = match self.singular {
            true => {
                let sum = arrays.weigh_field(&on_gpu, &mut self.rows)?;
                let ([sum], _) = self.total_of([sum], false)?;
                sum / self.volume()
            }
            false => 0.0,
        };
        if !arrays.save(&on_gpu, given.field, surplus, scale.up(1.0))? {
            return Err(SolveError::OutOfRange { dtype: F::NAME });
        }
        let (levels, top) = (self.levels.count(), self.levels.top());
        let free = top.operator.count_free(top.operator.shape.own());
        Ok(Some(Outcome {
            floor,
            choice: Some(Choice::of_levels(levels)),
            ..outcome(ended, levels, free)
        }))
    }
}

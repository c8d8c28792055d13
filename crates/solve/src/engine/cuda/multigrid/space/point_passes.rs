//! Passes over levels of a box whose couplings differ from point to point: one kernel after the other, each of which has a
//! coupling or more to read for every point.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{ByValue, Device, Function, Launch, Stream};
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use super::level::{DeviceLevel, Plan};
use crate::engine::cpu::multigrid::smoothing::Step;
use crate::engine::cuda::kernels;
use crate::engine::cuda::multigrid::exchange;
use crate::engine::cuda::multigrid::pass_kernels::{colour_of, of_kernels};
use crate::exchange::level_rows::LevelRows;
use crate::gpu::box_arguments::BoxPass;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    COLUMN_THREADS, NO_COLOUR, START_CORRECTED, START_CORRECTION, START_FIELD, START_ZERO,
};

/// The kernels.
const RELAX: [&str; 2] = ["box_points_relax", "box_points_relax_finest"];
const RELAX_FROM_ZERO: &str = "box_points_relax_from_zero";
const RESIDUAL: [&str; 2] = ["box_points_residual", "box_points_residual_finest"];
const RESIDUAL_MEASURED: &str = "box_points_residual_measured";
const SQUARE: &str = "box_points_square";
const PROLONG: &str = "box_points_prolong";
const RESTRICT: &str = "box_points_restrict";
/// They are in one source.
pub(super) const KERNELS: [&str; 1] = [RESTRICT];

/// A kernel that looks at neighbours.
struct ForLevels {
    coarse: Function,
    finest: Function,
}

/// Those on a GPU.
pub(crate) struct PointKernels {
    relax: ForLevels,
    relax_from_zero: Function,
    residual: ForLevels,
    /// Of the finest level, and what is found is measured.
    residual_measured: Function,
    square: Function,
    prolong: Function,
    restrict: Function,
}

impl PointKernels {
    pub fn new(device: &Device) -> Result<PointKernels, GpuError> {
        let find = |name| kernels::find_plain(device, name);
        let for_levels = |[coarse, finest]: [_; 2]| -> Result<ForLevels, GpuError> {
            Ok(ForLevels {
                coarse: find(coarse)?,
                finest: find(finest)?,
            })
        };
        Ok(PointKernels {
            relax: for_levels(RELAX)?,
            relax_from_zero: find(RELAX_FROM_ZERO)?,
            residual: for_levels(RESIDUAL)?,
            residual_measured: find(RESIDUAL_MEASURED)?,
            square: find(SQUARE)?,
            prolong: find(PROLONG)?,
            restrict: find(RESTRICT)?,
        })
    }

    /// Sums the squares of the field times its diagonal.
    pub fn square(&self, stream: &Stream, level: &DeviceLevel) -> Result<(), GpuError> {
        launch_columns(stream, &self.square, LEAF_ROWS, level.arguments())
    }

    /// Restricts the right side of `level`.
    pub fn restrict_right_side(
        &self,
        stream: &Stream,
        level: &DeviceLevel,
    ) -> Result<(), GpuError> {
        let arguments = BoxPass {
            before: level.operator.right_side.address(),
            ..level.arguments()
        };
        self.restrict(stream, arguments)
    }

    fn restrict(&self, stream: &Stream, arguments: BoxPass) -> Result<(), GpuError> {
        let [across, rows, _] = arguments.coarse_size.map(|n| n as usize);
        let planes = (arguments.coarse_end - arguments.coarse_start) as usize;
        let blocks = across.div_ceil(COLUMN_THREADS) * rows * planes;
        launch(stream, &self.restrict, blocks, arguments)
    }
}

impl ForLevels {
    fn launch(
        &self,
        stream: &Stream,
        level: &DeviceLevel,
        arguments: BoxPass,
    ) -> Result<(), GpuError> {
        let points = level.operator.points.as_ref();
        let kernel = match points.is_some_and(|points| points.is_finest) {
            false => &self.coarse,
            true => &self.finest,
        };
        launch_columns(stream, kernel, 1, arguments)
    }
}

/// Launches a kernel that has a thread for each column of so many rows.
fn launch_columns(
    stream: &Stream,
    kernel: &Function,
    rows: usize,
    arguments: BoxPass,
) -> Result<(), GpuError> {
    let [nx, ny, _] = arguments.size.map(|n| n as usize);
    let planes = (arguments.plane_end - arguments.plane_start) as usize;
    let blocks = nx.div_ceil(COLUMN_THREADS) * ny.div_ceil(rows) * planes;
    launch(stream, kernel, blocks, arguments)
}

fn launch(
    stream: &Stream,
    kernel: &Function,
    blocks: usize,
    arguments: BoxPass,
) -> Result<(), GpuError> {
    let launch = Launch::new(kernel)
        .grid(blocks as u32)
        .block(COLUMN_THREADS as u32);
    // SAFETY: the parameter is a `box_pass` of a level of points, made by `DeviceLevel::new` with arrays of its extent, which
    // live until the stream has been waited for; blocks cover the planes of the launch; of what is read at other points
    // nothing is written.
    Ok(unsafe { launch.launch(stream, (ByValue(arguments),)) }?)
}

impl DeviceLevel {
    /// As [`pass`](Self::pass), of a level of points.
    pub fn pass_points(
        &mut self,
        stream: &Stream,
        rows: &mut LevelRows<'_>,
        kernels: &PointKernels,
        plan: &Plan<'_>,
        correction: u64,
    ) -> Result<(), GpuError> {
        let Plan {
            start,
            steps,
            measured,
            restrict,
            solved,
        } = *plan;
        let mut done = 0;
        match start {
            START_ZERO => {
                debug_assert!(steps[0].colour.is_none());
                let arguments = self.relaxing(steps[0]);
                launch_columns(stream, &kernels.relax_from_zero, 1, arguments)?;
                self.fields.swap(0, 1);
                done = 1;
            }
            START_CORRECTED | START_CORRECTION => {
                let arguments = BoxPass {
                    start,
                    correction,
                    ..self.arguments()
                };
                launch_columns(stream, &kernels.prolong, 1, arguments)?;
            }
            _ => debug_assert_eq!(start, START_FIELD),
        }
        let kept = self.residual.as_ref();
        let kept = kept.expect("it is a level of points").address();
        let measures = measured == Some(steps.len());
        if measured == Some(0) && !measures {
            exchange::halo(stream, rows, &self.shape, &self.fields[0], 1)?;
            let before = BoxPass {
                after: kept,
                colour: NO_COLOUR.into(),
                ..self.arguments()
            };
            launch_columns(stream, &kernels.residual_measured, LEAF_ROWS, before)?;
        }
        for &step in &steps[done..] {
            exchange::halo(stream, rows, &self.shape, &self.fields[0], 1)?;
            let arguments = self.relaxing(step);
            kernels.relax.launch(stream, self, arguments)?;
            self.fields.swap(0, 1);
        }
        if !measures && !restrict {
            return Ok(());
        }
        exchange::halo(stream, rows, &self.shape, &self.fields[0], 1)?;
        let residual = BoxPass {
            after: kept,
            colour: steps
                .last()
                .map_or(solved, |last| last.colour)
                .map_or(NO_COLOUR, of_kernels)
                .into(),
            ..self.arguments()
        };
        match measures {
            true => launch_columns(stream, &kernels.residual_measured, LEAF_ROWS, residual)?,
            false => kernels.residual.launch(stream, self, residual)?,
        }
        if restrict {
            let kept = self.residual.as_ref().expect("it is a level of points");
            exchange::halo(stream, rows, &self.shape, kept, 1)?;
            let arguments = BoxPass {
                before: residual.after,
                ..self.arguments()
            };
            kernels.restrict(stream, arguments)?;
        }
        Ok(())
    }

    /// From the field to where the next one comes.
    fn relaxing(&self, step: Step) -> BoxPass {
        BoxPass {
            after: self.fields[1].address(),
            omega: [step.omega, 0.0],
            colour: colour_of(&[step]).into(),
            ..self.arguments()
        }
    }
}

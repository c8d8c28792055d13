//! A level in the memory of a GPU.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{ByValue, Device, Function, Launch, Stream};

use super::exchange;
use super::storage::{DeviceField, Stored};
use crate::element::Real;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cuda::kernels;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    LevelPass, MOST_STEPS, PASS_THREADS, START_CORRECTED, START_FIELD,
};

/// Waves of blocks at most.
const MOST_WAVES: usize = 6;

/// A level's field, before and after a pass, and what its kernels are told.
pub(super) struct DeviceLevel<T: Real> {
    pub shape: Shape,
    fields: [DeviceField<T>; 2],
    /// What is the same in every launch.
    arguments: LevelPass,
    /// The kernels that there are, those for few passes and with most steps first.
    passes: Vec<Kernel>,
    /// Rows of a block are a multiple of it: whole leaves where something is measured.
    fewest_rows: usize,
}

/// A kernel that makes passes.
pub(super) struct Kernel {
    function: Function,
    steps: usize,
    /// What it is made for, if not for all.
    only: Option<Known>,
    /// Blocks that run at once.
    resident: usize,
}

/// What the compiler was told of a kernel: where it begins, what it measures, whether it restricts.
pub(super) type Known = (i32, Option<usize>, bool);

impl Kernel {
    /// The kernel `name`.
    pub fn new(
        device: &Device,
        name: &str,
        steps: usize,
        only: Option<Known>,
    ) -> Result<Kernel, GpuError> {
        let function = kernels::find_plain(device, name)?;
        let resident = Launch::new(&function)
            .block(PASS_THREADS as u32)
            .max_resident()?;
        Ok(Kernel {
            function,
            steps,
            only,
            resident: resident as usize,
        })
    }
}

/// A pass: see `Pass` of the CPU's.
pub(super) struct Plan<'a> {
    pub start: i32,
    /// ω of each step, over the diagonal where all couplings are 1.
    pub omegas: &'a [f64],
    /// The step before which the residual is measured.
    pub measured: Option<usize>,
    /// Whether the next level's right side is made.
    pub restrict: bool,
    pub up_scale: f64,
    pub down_scale: f64,
}

impl<T: Real> DeviceLevel<T> {
    /// A level of the extent in `arguments`, all zero.
    pub fn new(
        stream: &Stream,
        shape: &Shape,
        arguments: LevelPass,
        passes: Vec<Kernel>,
        fewest_rows: usize,
    ) -> Result<Self, GpuError> {
        let stored = Stored::of(shape);
        let field = || DeviceField::new(stream, shape.x.len, &stored);
        Ok(DeviceLevel {
            shape: shape.clone(),
            fields: [field()?, field()?],
            arguments,
            passes,
            fewest_rows,
        })
    }

    /// Where the field is now.
    pub fn field(&self) -> &DeviceField<T> {
        &self.fields[0]
    }

    /// What kernels beside passes are told.
    pub fn arguments(&self) -> LevelPass {
        LevelPass {
            before: self.fields[0].address(),
            after: self.fields[0].address(),
            ..self.arguments
        }
    }

    /// Gives the launches of `plan` to `stream`, with `correction` as the next level's field. Collective if the level is
    /// spread: each launch computes the own rows, from some more.
    pub fn pass(
        &mut self,
        stream: &Stream,
        rows: &mut LevelRows<'_>,
        plan: &Plan<'_>,
        correction: u64,
    ) -> Result<(), GpuError> {
        let (mut done, mut start) = (0, plan.start);
        loop {
            let left = &plan.omegas[done..];
            // What is measured before the first step of a launch could be measured after the last of the one before.
            let measured = plan.measured.and_then(|at| at.checked_sub(done));
            let fits = |kernel: &&Kernel| match kernel.only {
                None => kernel.steps <= left.len(),
                Some(only) => {
                    kernel.steps == left.len() && only == (start, measured, plan.restrict)
                }
            };
            let kernel = self
                .passes
                .iter()
                .find(fits)
                .expect("there is a pass of no steps, or of one");
            let steps = kernel.steps;
            let last = steps == left.len();
            let measured = measured.filter(|&at| at < steps || (last && at == steps));
            let changes = steps > 0 || start != START_FIELD;
            let mut omega = [0.0; MOST_STEPS];
            omega[..steps].copy_from_slice(&left[..steps]);
            // As `pass.cuh` has it.
            let width = 2 * PASS_THREADS - 2 * (steps + 2).next_multiple_of(2);
            let strips = (self.arguments.nx as usize).div_ceil(width);
            let height = self.rows_of_a_block(strips, steps, kernel.resident);
            if start == START_FIELD || start == START_CORRECTED {
                exchange::halo(stream, rows, &self.shape, &self.fields[0], steps + 2)?;
            }
            let arguments = LevelPass {
                before: self.fields[0].address(),
                after: if changes { self.fields[1].address() } else { 0 },
                correction,
                coarse_right_side: if plan.restrict && last {
                    self.arguments.coarse_right_side
                } else {
                    0
                },
                up_scale: plan.up_scale,
                down_scale: plan.down_scale,
                omega,
                start,
                measured: measured.map_or(-1, |at| at as i32),
                rows: height as i32,
                ..self.arguments
            };
            let blocks = (
                strips as u32,
                self.shape.own().len().div_ceil(height) as u32,
            );
            let launch = Launch::new(&kernel.function)
                .grid(blocks)
                .block(PASS_THREADS as u32);
            // SAFETY: the parameter is a `level_pass` of this type, made by `new` with arrays of its extent, which live
            // until the stream has been waited for; what is read is not what is written.
            unsafe { launch.launch(stream, (ByValue(arguments),)) }?;
            if changes {
                self.fields.swap(0, 1);
            }
            done += steps;
            start = START_FIELD;
            if last {
                return Ok(());
            }
        }
    }

    /// Takes the rows of `field`.
    pub fn upload(&self, stream: &Stream, field: &Field<T>) -> Result<(), GpuError> {
        self.fields[0].upload(stream, field)
    }

    /// Rows of a block: those with which waves of `resident` blocks, all of them at once, go through the fewest rows.
    /// The margins of a block are computed twice.
    fn rows_of_a_block(&self, strips: usize, steps: usize, resident: usize) -> usize {
        let ny = self.shape.own().len();
        let rows_in = |waves: usize| {
            let parts = (waves * resident / strips).max(1);
            ny.div_ceil(parts).next_multiple_of(self.fewest_rows)
        };
        // Rows before and behind, and what the last step is behind the first.
        let beyond = 4 * (steps + 2);
        let cost = |&waves: &usize| {
            let blocks = strips * ny.div_ceil(rows_in(waves));
            blocks.div_ceil(resident) * (rows_in(waves) + beyond)
        };
        rows_in((1..=MOST_WAVES).min_by_key(cost).unwrap_or(1))
    }
}

//! A level in the memory of a GPU.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{ByValue, Device, Launch, Stream};
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use super::exchange;
use super::pass_kernels::{Blocks, Kind, Loaded, PassKernel, colour_of, of_kernels, place_of};
use super::storage::{DeviceField, Stored};
use crate::element::Real;
use crate::engine::cpu::multigrid::shape::{HALO, Shape};
use crate::engine::cpu::multigrid::smoothing::{Colour, Step};
use crate::engine::cuda::arena::Arena;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    FINEST_TILE_COLUMNS, FINEST_TILE_ROWS, LevelPass, MOST_STEPS, PASS_THREADS, START_CORRECTED,
    START_FIELD, TILE_ROWS, TILE_THREADS, TILE_WIDE, VARIED_COARSE_ROWS,
};

/// Waves of blocks at most.
const MOST_WAVES: usize = 3;

/// What memory is read in, in bytes.
const SECTOR: usize = 32;

/// A level's field, before and after a pass, and what its kernels are told.
pub(super) struct DeviceLevel<T: Real> {
    pub shape: Shape,
    fields: [DeviceField<T>; 2],
    /// What is the same in every launch.
    arguments: LevelPass,
    passes: Vec<Loaded>,
    /// Rows of a block are a multiple of it: whole leaves where something is measured.
    fewest_rows: usize,
    /// Whether the field is known to be still +0, but in the first and last rows of the level.
    is_zero: bool,
}

/// A pass: see `Pass` of the CPU's.
pub(super) struct Plan<'a> {
    pub start: i32,
    /// With ω over the diagonal where all couplings are 1; if one step has a colour, colours take turns.
    pub steps: &'a [Step],
    /// Where there are no steps: the colour that has been relaxed last, whose equations hold.
    pub solved: Option<Colour>,
    /// The step before which the residual is measured; as many as there are steps: after the last.
    pub measured: Option<usize>,
    /// Whether the next level's right side is made.
    pub restrict: bool,
    pub up_scale: f64,
    pub down_scale: f64,
}

impl<T: Real> DeviceLevel<T> {
    /// A level of the extent in `arguments`, all zero, with what launches its passes.
    pub fn new(
        arena: &Arena,
        shape: &Shape,
        arguments: LevelPass,
        passes: &[PassKernel],
        fewest_rows: usize,
    ) -> Result<Self, GpuError> {
        let stored = Stored::of(shape);
        let field = || DeviceField::new(arena, shape.x.len, &stored);
        let mut level = DeviceLevel {
            shape: shape.clone(),
            fields: [field()?, field()?],
            arguments,
            passes: Vec::new(),
            fewest_rows,
            is_zero: false,
        };
        level.load(arena.stream().device(), passes)?;
        Ok(level)
    }

    /// Where the field is now.
    pub fn field(&self) -> &DeviceField<T> {
        &self.fields[0]
    }

    /// The field has been written; `is_zero`: it is known to be +0 but in the first and last rows.
    pub fn set_zero(&mut self, is_zero: bool) {
        self.is_zero = is_zero;
    }

    /// Whether the field is known to be +0 but in the first and last rows.
    pub fn is_zero(&self) -> bool {
        self.is_zero
    }

    /// What kernels beside passes are told.
    pub fn arguments(&self) -> LevelPass {
        LevelPass {
            before: self.fields[0].address(),
            after: self.fields[0].address(),
            ..self.arguments
        }
    }

    /// The same with room for another field to go to by turns: for levels that no passes are made of.
    pub fn arguments_of_two(&self) -> LevelPass {
        LevelPass {
            before: self.fields[1].address(),
            ..self.arguments()
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
            let left = &plan.steps[done..];
            let measured = plan.measured.and_then(|at| at.checked_sub(done));
            let kernels = self.passes.iter().map(|loaded| loaded.kernel);
            let colour = match plan.solved {
                Some(last) if plan.steps.is_empty() => of_kernels(last.other()),
                _ => colour_of(left),
            };
            let known = (
                start,
                measured,
                plan.restrict,
                Kind::of(&self.arguments).colour_known(colour),
            );
            let place = place_of(kernels, left.len(), known);
            let Loaded {
                kernel,
                function,
                shared,
                resident,
            } = &self.passes[place];
            let steps = kernel.steps;
            let last = steps == left.len();
            let measured = measured.filter(|&at| at < steps || (last && at == steps));
            let changes = steps > 0 || start != START_FIELD;
            let mut omega = [0.0; MOST_STEPS];
            for (omega, step) in omega.iter_mut().zip(&left[..steps]) {
                *omega = step.omega;
            }
            let (strips, bands, height) = match kernel.blocks {
                Blocks::Strips => self.strips(steps, *resident),
                Blocks::Tiles => self.tiles(TILE_THREADS / TILE_WIDE * TILE_ROWS, plan.restrict),
                Blocks::VariedCoarseTiles => self.tiles(VARIED_COARSE_ROWS, plan.restrict),
                Blocks::FinestTiles | Blocks::MaskTiles | Blocks::VaryingTiles => {
                    self.finest_tiles()
                }
            };
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
                is_zero: i32::from(self.is_zero),
                colour,
                ..self.arguments
            };
            let launch = Launch::new(function)
                .grid((strips as u32, bands as u32))
                .block(kernel.threads())
                .shared(*shared);
            // SAFETY: the parameter is a `level_pass` of this type, made by `new` with arrays of its extent, which live
            // until the stream has been waited for; what is read is not what is written.
            unsafe { launch.launch(stream, (ByValue(arguments),)) }?;
            if changes {
                self.fields.swap(0, 1);
                self.is_zero = false;
            }
            done += steps;
            start = START_FIELD;
            if last {
                return Ok(());
            }
        }
    }

    /// Takes `field` for its own, and gives back what it had.
    pub fn replace_field(&mut self, field: DeviceField<T>) -> DeviceField<T> {
        self.is_zero = false;
        std::mem::replace(&mut self.fields[0], field)
    }

    /// What passes take as the right side from now on, by its address.
    pub fn set_right_side(&mut self, address: u64) {
        self.arguments.right_side = address;
    }

    /// Makes passes by these kernels from now on.
    pub fn load(&mut self, device: &Device, passes: &[PassKernel]) -> Result<(), GpuError> {
        let loaded = passes
            .iter()
            .map(|&kernel| Loaded::new::<T>(device, kernel));
        self.passes = loaded.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Takes the rows of `field`, whose halos are up to date, for the one here, which is all zero yet.
    pub fn upload(&mut self, stream: &Stream, field: &Field<T>) -> Result<(), GpuError> {
        let rows = Stored::of(&self.shape).around(HALO);
        let ends = [0, self.shape.y.len as isize - 1];
        let has_zeros = |row: &[T]| {
            let bytes: &[u8] = bytemuck::cast_slice(row);
            bytes.iter().fold(0, |all, byte| all | byte) == 0
        };
        let mut between = rows.clone().filter(|row| !ends.contains(row));
        self.is_zero = !self.shape.y.wraps && between.all(|row| has_zeros(field.row(row)));
        if !self.is_zero {
            return self.fields[0].upload(stream, field);
        }
        for end in ends.into_iter().filter(|end| rows.contains(end)) {
            self.fields[0].write(stream, end..end + 1, |row| field.row(row))?;
        }
        Ok(())
    }

    /// Strips, blocks of each, and rows of a block, as `pass.cuh` has them.
    fn strips(&self, steps: usize, resident: usize) -> (usize, usize, usize) {
        let side = (steps + 2).next_multiple_of(SECTOR / size_of::<T>());
        let strips = self.shape.x.len.div_ceil(2 * PASS_THREADS - 2 * side);
        let rows = self.rows_of_a_block(strips, steps, resident);
        (strips, self.shape.own().len().div_ceil(rows), rows)
    }

    /// Tiles of so many rows across and down, and their rows, as `tile.cuh` has them.
    fn tiles(&self, high: usize, restrict: bool) -> (usize, usize, usize) {
        let margin = if restrict { 4 } else { 2 };
        let [wide, high] = [TILE_WIDE, high].map(|all| all - 2 * margin);
        let own = self.shape.own();
        // The first begins with an even row.
        let rows = own.end - own.start / 2 * 2;
        (
            self.shape.x.len.div_ceil(wide),
            (rows as usize).div_ceil(high),
            high,
        )
    }

    /// The same as `finest_tile.cuh` has them.
    fn finest_tiles(&self) -> (usize, usize, usize) {
        let own = self.shape.own();
        // The first begins where a leaf does.
        let rows = own.end as usize - own.start as usize / LEAF_ROWS * LEAF_ROWS;
        (
            self.shape.x.len.div_ceil(FINEST_TILE_COLUMNS),
            rows.div_ceil(FINEST_TILE_ROWS),
            FINEST_TILE_ROWS,
        )
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
        // Twice the rows. Strips at the sides take longer, by half or so, and begin first: with several waves others go on
        // meanwhile.
        let cost = |&waves: &usize| {
            let blocks = strips * ny.div_ceil(rows_in(waves));
            (2 * blocks.div_ceil(resident) + 1) * (rows_in(waves) + beyond)
        };
        rows_in((1..=MOST_WAVES).min_by_key(cost).unwrap_or(1))
    }
}

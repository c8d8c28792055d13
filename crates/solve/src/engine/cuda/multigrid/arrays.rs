//! A plane's field and right side made of arrays in the memory of the GPU, and the other way.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{Buffer, BufferRef, ByValue, Device, Function, Launch, Stream};
use crosswarp_prim::Superaccumulator;

use super::GpuCycles;
use super::level::Kind;
use crate::element::Real;
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::kernels;
use crate::exchange::level_rows::LevelRows;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    LEVEL_THREADS, LevelArrays, WEIGHED_FIELD, WEIGHED_MAGNITUDES, WEIGHED_RIGHT_SIDE,
};

/// The kernels: the first two for each type of elements.
const LOAD: &str = "plane_load";
const SAVE: &str = "plane_save";
const WEIGH: &str = "plane_weigh";
const SHIFT: &str = "plane_shift";

/// Most blocks, about: so many keep a large GPU busy.
const MOST_BLOCKS: usize = 2048;

/// A grid, and where its level is in it.
#[derive(Clone, Copy)]
pub(crate) struct OfGrid {
    /// Columns and rows.
    pub size: [usize; 2],
    /// The level's first ones.
    pub first: [usize; 2],
}

/// What a solve is given.
pub(crate) struct Given<'a, F: Real> {
    pub source: Option<BufferRef<'a, F>>,
    pub initial: Option<BufferRef<'a, F>>,
    /// Left, right, top and bottom, by the grid's rows or columns, where values are given.
    pub sides: [Option<&'a [F]>; 4],
    /// What crosses them by the level's, where something does.
    pub flows: [Option<&'a [f64]>; 4],
    /// Of a cell.
    pub area: f64,
    /// By what the operator is multiplied, if it differs from point to point.
    pub operator_scale: Option<f64>,
    /// By what the problem is.
    pub scale: f64,
}

/// The kernels, with what they are told in all launches.
pub(crate) struct Arrays {
    load: Function,
    save: Function,
    weigh: Function,
    shift: Function,
    largest: Buffer<u64>,
    grid: OfGrid,
}

impl Arrays {
    pub fn new<F: Real>(device: &Device, grid: OfGrid) -> Result<Arrays, GpuError> {
        let names = [LOAD, SAVE].map(kernels::of_type::<F>);
        let [load, save] = names.each_ref().map(|name| &name[..]);
        kernels::compile_together(device, [load, save, WEIGH, SHIFT]);
        Ok(Arrays {
            load: kernels::find_plain(device, load)?,
            save: kernels::find_plain(device, save)?,
            weigh: kernels::find_plain(device, WEIGH)?,
            shift: kernels::find_plain(device, SHIFT)?,
            largest: Buffer::new(device, 1)?,
            grid,
        })
    }

    /// Makes the field and the right side of `cycles`, for a first guess and a source of the grid's size. The largest magnitude of
    /// both, which is not finite if something in them is not. Waits for the end.
    pub fn load<F: Real>(
        &self,
        cycles: &mut GpuCycles,
        given: &Given<'_, F>,
    ) -> Result<f64, GpuError> {
        let arena = Arena::new(&cycles.stream);
        let sides = copied(&arena, given.sides)?;
        let flows = copied(&arena, given.flows)?;
        let address = |array: Option<BufferRef<'_, F>>| array.map_or(0, |array| array.address());
        let arguments = LevelArrays {
            source: address(given.source),
            initial: address(given.initial),
            sides: sides.each_ref().map(address_of),
            flows: flows.each_ref().map(address_of),
            area: given.area,
            operator_scale: given.operator_scale.unwrap_or(1.0),
            scale: given.scale,
            ..self.of(cycles)
        };
        self.launch(&cycles.stream, &self.load, arguments)?;
        let rows_between_are_zero = |side: Option<&[F]>| {
            let between = side.map_or(&[][..], |values| &values[1..values.len() - 1]);
            between.iter().all(|value| value.to_f64().to_bits() == 0)
        };
        let [left, right, ..] = given.sides;
        cycles.finest.set_zero(
            given.initial.is_none()
                && !cycles.finest.shape.y.wraps
                && [left, right].into_iter().all(rows_between_are_zero),
        );
        Ok(f64::from_bits(self.read(&cycles.stream)?))
    }

    /// Writes the field less `surplus`, times `scale`, to an array of the grid's size. Whether all values have room in the type.
    /// Waits for the end.
    pub fn save<F: Real>(
        &self,
        cycles: &GpuCycles,
        field: BufferRef<'_, F>,
        surplus: f64,
        scale: f64,
    ) -> Result<bool, GpuError> {
        let arguments = LevelArrays {
            field: field.address(),
            surplus,
            scale,
            ..self.of(cycles)
        };
        self.launch(&cycles.stream, &self.save, arguments)?;
        Ok(self.read(&cycles.stream)? == 0)
    }

    /// Sums over the points of the right side, and of its magnitudes, each in the inner product in which the operator is symmetric.
    pub fn weigh_right_side(
        &self,
        cycles: &GpuCycles,
        rows: &mut LevelRows<'_>,
    ) -> Result<[Superaccumulator<f64>; 2], GpuError> {
        Ok([
            self.weigh(cycles, rows, WEIGHED_RIGHT_SIDE)?,
            self.weigh(cycles, rows, WEIGHED_MAGNITUDES)?,
        ])
    }

    /// The sum of the field over the points, by their parts of the grid.
    pub fn weigh_field(
        &self,
        cycles: &GpuCycles,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        self.weigh(cycles, rows, WEIGHED_FIELD)
    }

    fn weigh(
        &self,
        cycles: &GpuCycles,
        rows: &mut LevelRows<'_>,
        weighed: i32,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        let sums = cycles.sums.place();
        let arguments = LevelArrays {
            weighed,
            ..self.of(cycles)
        };
        let across = (arguments.nx as usize).div_ceil(LEVEL_THREADS);
        let launch = Launch::new(&self.weigh)
            .grid((across as u32, sums.leaf_bands as u32))
            .block(LEVEL_THREADS as u32);
        // SAFETY: the parameters are a `level_pass<double>` with room for the sums of the level, and a `level_arrays<double>` of it;
        // blocks cover the columns and bands of its leaves.
        unsafe { launch.launch(&cycles.stream, (ByValue(sums), ByValue(arguments))) }?;
        cycles.sums.publish(&cycles.stream, 1)?;
        cycles.sum(rows)
    }

    /// Takes `surplus` away from the right side at each point, times its part of the grid.
    pub fn shift_right_side(&self, cycles: &GpuCycles, surplus: f64) -> Result<(), GpuError> {
        let arguments = LevelArrays {
            surplus,
            ..self.of(cycles)
        };
        self.launch(&cycles.stream, &self.shift, arguments)
    }

    /// What is known of the level.
    fn of(&self, cycles: &GpuCycles) -> LevelArrays {
        let of_level = cycles.finest.arguments();
        LevelArrays {
            u: of_level.before,
            right_side: of_level.right_side,
            fixed: of_level.fixed,
            pitch: of_level.pitch,
            operator_scale: 1.0,
            scale: 1.0,
            largest: self.largest.address(),
            nx: of_level.nx,
            ny: of_level.ny,
            first: self.grid.first.map(|first| first as i32),
            grid_nx: self.grid.size[0] as i32,
            grid_ny: self.grid.size[1] as i32,
            varies: i32::from(Kind::of(&of_level) == Kind::Varying),
            ends: of_level.ends,
            ..bytemuck::Zeroable::zeroed()
        }
    }

    /// Launches a kernel whose threads have columns, and its blocks rows by turns, after `largest` has been made 0.
    fn launch(
        &self,
        stream: &Stream,
        kernel: &Function,
        arguments: LevelArrays,
    ) -> Result<(), GpuError> {
        stream.zero(&self.largest)?;
        let across = (arguments.grid_nx as usize).div_ceil(LEVEL_THREADS);
        let rows = (MOST_BLOCKS / across).clamp(1, arguments.grid_ny as usize);
        let launch = Launch::new(kernel)
            .grid((across as u32, rows as u32))
            .block(LEVEL_THREADS as u32);
        // SAFETY: the parameter is a `level_arrays` of the kernel's type: the level's arrays have its extent, and the caller's
        // that of the grid, as `Plane::solve_arrays` has seen; all live until the stream has been waited for.
        Ok(unsafe { launch.launch(stream, (ByValue(arguments),)) }?)
    }

    fn read(&self, stream: &Stream) -> Result<u64, GpuError> {
        let mut largest = [0];
        stream.read(&mut largest, &self.largest)?;
        Ok(largest[0])
    }
}

type Copies<T> = [Option<ArenaBuffer<T>>; 4];

fn copied<T: bytemuck::Pod>(
    arena: &Arena,
    sides: [Option<&[T]>; 4],
) -> Result<Copies<T>, GpuError> {
    let mut copies = [None, None, None, None];
    for (copy, side) in copies.iter_mut().zip(sides) {
        *copy = side.map(|values| arena.copied(values)).transpose()?;
    }
    Ok(copies)
}

fn address_of<T: bytemuck::Pod>(copy: &Option<ArenaBuffer<T>>) -> u64 {
    copy.as_ref().map_or(0, ArenaBuffer::address)
}

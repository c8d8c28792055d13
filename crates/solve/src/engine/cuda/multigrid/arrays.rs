//! A plane's field and right side made of arrays in the memory of the GPU, and the other way.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{Buffer, BufferRef, ByValue, Function, Stream};
use crosswarp_prim::Superaccumulator;

use super::GpuCycles;
use super::array_kernels::ArrayKernels;
use super::pass_kernels::Kind;
use crate::element::Real;
use crate::exchange::level_rows::LevelRows;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    LevelArrays, WEIGHED_FIELD, WEIGHED_MAGNITUDES, WEIGHED_RIGHT_SIDE,
};

const KERNELS: [&str; 4] = ["plane_load", "plane_save", "plane_weigh", "plane_shift"];

/// A problem's grid, and where its level is in it.
pub(crate) struct OfProblem<'a, F: Real> {
    /// Columns and rows.
    pub size: [usize; 2],
    /// The level's first ones.
    pub first: [usize; 2],
    /// Left, right, top and bottom, by the grid's rows or columns, where values are given.
    pub sides: [Option<&'a [F]>; 4],
    /// What crosses them by the level's, where something can.
    pub flows: [Option<&'a [f64]>; 4],
    /// Of a cell.
    pub area: f64,
    /// By what the operator is multiplied, if it differs from point to point.
    pub operator_scale: f64,
}

/// The kernels for arrays of `F`, with what they are told in all launches.
pub(crate) struct Arrays<F: Real> {
    kernels: ArrayKernels,
    /// What is the same in all launches, but for where the level has its field.
    arguments: LevelArrays,
    _sides: Copies<F>,
    _flows: Copies<f64>,
}

impl<F: Real> Arrays<F> {
    /// For the levels `cycles` of a problem.
    pub fn new(cycles: &GpuCycles, of: &OfProblem<'_, F>) -> Result<Self, GpuError> {
        let stream = &cycles.stream;
        let kernels = ArrayKernels::new::<F>(stream, KERNELS)?;
        let (sides, flows) = (copied(stream, of.sides)?, copied(stream, of.flows)?);
        let of_level = cycles.finest.arguments();
        Ok(Arrays {
            arguments: LevelArrays {
                sides: sides.each_ref().map(address_of),
                flows: flows.each_ref().map(address_of),
                right_side: of_level.right_side,
                fixed: of_level.fixed,
                pitch: of_level.pitch,
                area: of.area,
                operator_scale: of.operator_scale,
                words: kernels.words(),
                nx: of_level.nx,
                ny: of_level.ny,
                first: of.first.map(|first| first as i32),
                grid_nx: of.size[0] as i32,
                grid_ny: of.size[1] as i32,
                varies: i32::from(Kind::of(&of_level) == Kind::Varying),
                ends: of_level.ends,
                ..bytemuck::Zeroable::zeroed()
            },
            kernels,
            _sides: sides,
            _flows: flows,
        })
    }

    /// Makes the field and the right side of `cycles`, times `scale`, of a source and a first guess of the grid's size. The largest
    /// magnitude of both before they are scaled, without what crosses sides; it is not finite if something in them is not. Waits
    /// for the end.
    pub fn load(
        &self,
        cycles: &mut GpuCycles,
        [source, initial]: [Option<BufferRef<'_, F>>; 2],
        scale: f64,
    ) -> Result<f64, GpuError> {
        let address = |array: Option<BufferRef<'_, F>>| array.map_or(0, |array| array.address());
        let arguments = LevelArrays {
            source: address(source),
            initial: address(initial),
            scale,
            ..self.of(cycles)
        };
        self.launch(&cycles.stream, &self.kernels.load, arguments)?;
        let [largest, between] = self.kernels.read(&cycles.stream)?;
        let wraps = cycles.finest.shape.y.wraps;
        cycles.finest.set_zero(between == 0 && !wraps);
        Ok(f64::from_bits(largest))
    }

    /// Writes the field less `surplus`, times `scale`, to an array of the grid's size. Whether all values have room in the type.
    /// Waits for the end.
    pub fn save(
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
        self.launch(&cycles.stream, &self.kernels.save, arguments)?;
        let [has_no_room, _] = self.kernels.read(&cycles.stream)?;
        Ok(has_no_room == 0)
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
        let size = [arguments.nx as usize, sums.leaf_bands as usize];
        let arguments = (ByValue(sums), ByValue(arguments));
        let (stream, kernels) = (&cycles.stream, &self.kernels);
        // SAFETY: the parameters are a `level_pass<double>` with room for the sums of the level, and a `level_arrays<double>` of it;
        // blocks cover its columns and, by turns, its rows of leaves.
        unsafe { kernels.launch(stream, &kernels.weigh, size, arguments) }?;
        cycles.sums.publish(stream, 1)?;
        cycles.sum(rows)
    }

    /// Takes `surplus` away from the right side at each point, times its part of the grid.
    pub fn shift_right_side(&self, cycles: &GpuCycles, surplus: f64) -> Result<(), GpuError> {
        let arguments = LevelArrays {
            surplus,
            ..self.of(cycles)
        };
        self.launch(&cycles.stream, &self.kernels.shift, arguments)
    }

    /// With where the level has its field.
    fn of(&self, cycles: &GpuCycles) -> LevelArrays {
        LevelArrays {
            u: cycles.finest.field().address(),
            ..self.arguments
        }
    }

    fn launch(
        &self,
        stream: &Stream,
        kernel: &Function,
        arguments: LevelArrays,
    ) -> Result<(), GpuError> {
        let size = [arguments.grid_nx as usize, arguments.grid_ny as usize];
        // SAFETY: the parameter is a `level_arrays` of the kernel's type: the level's arrays have its extent, and the caller's
        // that of the grid, as `Solver2d::solve_on_device` has seen; all live until the stream has been waited for.
        unsafe {
            self.kernels
                .launch(stream, kernel, size, (ByValue(arguments),))
        }
    }
}

type Copies<T> = [Option<Buffer<T>>; 4];

fn copied<T: bytemuck::Pod>(
    stream: &Stream,
    sides: [Option<&[T]>; 4],
) -> Result<Copies<T>, GpuError> {
    let mut copies = [const { None }; 4];
    for (copy, side) in copies.iter_mut().zip(sides) {
        *copy = side
            .map(|values| Buffer::from_slice(stream, values))
            .transpose()?;
    }
    Ok(copies)
}

fn address_of<T: bytemuck::Pod>(copy: &Option<Buffer<T>>) -> u64 {
    copy.as_ref().map_or(0, Buffer::address)
}

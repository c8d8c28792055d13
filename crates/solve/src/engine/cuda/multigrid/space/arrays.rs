//! A box's field and right side made of arrays in the memory of the GPU, and the other way.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{BufferRef, ByValue, Function};
use crosswarp_prim::Superaccumulator;

use super::GpuBox;
use crate::element::Real;
use crate::engine::cuda::multigrid::array_kernels::ArrayKernels;
use crate::exchange::level_rows::LevelRows;
use crate::gpu::box_arguments::BoxArrays;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{WEIGHED_FIELD, WEIGHED_MAGNITUDES, WEIGHED_RIGHT_SIDE};

const KERNELS: [&str; 4] = ["box_load", "box_save", "box_weigh", "box_shift"];

/// The kernels, with what they are told in all launches.
pub(crate) struct Arrays {
    kernels: ArrayKernels,
    /// What is the same in all launches, but for where the level has its field.
    arguments: BoxArrays,
}

/// What was found of arrays.
pub(crate) struct Loaded {
    /// The largest magnitude of what counts; it is not finite if something is not.
    pub largest: f64,
    /// Whether the field is 0 everywhere, with a positive sign.
    pub is_zero: bool,
}

impl Arrays {
    /// For arrays of `F`. `slopes`: derivatives outwards at the first and the last x, y and z, where there are such.
    pub fn new<F: Real>(cycles: &GpuBox, slopes: [Option<f64>; 6]) -> Result<Arrays, GpuError> {
        let kernels = ArrayKernels::new::<F>(&cycles.stream, KERNELS)?;
        Ok(Arrays {
            arguments: BoxArrays {
                right_side: cycles.levels[0].operator.right_side.address(),
                words: kernels.words(),
                slopes: slopes.map(|slope| slope.unwrap_or(0.0)),
                crossed: slopes.map(|slope| slope.is_some().into()),
                ..bytemuck::Zeroable::zeroed()
            },
            kernels,
        })
    }

    /// Makes the field and the right side of `cycles`, times `scale`, of a source and a first guess of the box's size. What is
    /// found is that before they are scaled. Waits for the end.
    pub fn load<F: Real>(
        &self,
        cycles: &GpuBox,
        [source, initial]: [Option<BufferRef<'_, F>>; 2],
        scale: f64,
    ) -> Result<Loaded, GpuError> {
        let address = |array: Option<BufferRef<'_, F>>| array.map_or(0, |array| array.address());
        let arguments = BoxArrays {
            source: address(source),
            initial: address(initial),
            scale,
            ..self.of(cycles)
        };
        self.launch(cycles, &self.kernels.load, arguments)?;
        let [largest, bits] = self.kernels.read(&cycles.stream)?;
        Ok(Loaded {
            largest: f64::from_bits(largest),
            is_zero: bits == 0,
        })
    }

    /// Writes the field less `surplus`, times `scale`, to an array of the box's size. Whether all values have room in the type.
    /// Waits for the end.
    pub fn save<F: Real>(
        &self,
        cycles: &GpuBox,
        field: BufferRef<'_, F>,
        surplus: f64,
        scale: f64,
    ) -> Result<bool, GpuError> {
        let arguments = BoxArrays {
            field: field.address(),
            surplus,
            scale,
            ..self.of(cycles)
        };
        self.launch(cycles, &self.kernels.save, arguments)?;
        let [has_no_room, _] = self.kernels.read(&cycles.stream)?;
        Ok(has_no_room == 0)
    }

    /// Sums over the points of the right side, and of its magnitudes.
    pub fn weigh_right_side(
        &self,
        cycles: &GpuBox,
        rows: &mut LevelRows<'_>,
    ) -> Result<[Superaccumulator<f64>; 2], GpuError> {
        Ok([
            self.weigh(cycles, rows, WEIGHED_RIGHT_SIDE)?,
            self.weigh(cycles, rows, WEIGHED_MAGNITUDES)?,
        ])
    }

    /// The sum of the field over the points, by their volumes.
    pub fn weigh_field(
        &self,
        cycles: &GpuBox,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        self.weigh(cycles, rows, WEIGHED_FIELD)
    }

    fn weigh(
        &self,
        cycles: &GpuBox,
        rows: &mut LevelRows<'_>,
        weighed: i32,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        let arguments = BoxArrays {
            weighed: weighed.into(),
            ..self.of(cycles)
        };
        self.launch(cycles, &self.kernels.weigh, arguments)?;
        cycles.sums.publish(&cycles.stream, 1)?;
        cycles.sum(rows)
    }

    /// Takes `surplus` times its volume away from the right side at each point.
    pub fn shift_right_side(&self, cycles: &GpuBox, surplus: f64) -> Result<(), GpuError> {
        let arguments = BoxArrays {
            surplus,
            ..self.of(cycles)
        };
        self.launch(cycles, &self.kernels.shift, arguments)
    }

    /// With where the level has its field.
    fn of(&self, cycles: &GpuBox) -> BoxArrays {
        BoxArrays {
            u: cycles.levels[0].field().address(),
            ..self.arguments
        }
    }

    fn launch(
        &self,
        cycles: &GpuBox,
        kernel: &Function,
        arguments: BoxArrays,
    ) -> Result<(), GpuError> {
        let of_level = cycles.levels[0].arguments();
        let [nx, ny, nz] = of_level.size.map(|points| points as usize);
        let arguments = (ByValue(of_level), ByValue(arguments));
        // SAFETY: the parameters are the finest level's `box_pass`, with room for its sums, and a `box_arrays` of the kernel's
        // type: the level's arrays have its extent, and the caller's that of the box, as `solve_3d_on_device` has seen; all live
        // until the stream has been waited for. Rows have a column more on both sides, and blocks rows or leaves by turns.
        unsafe { (self.kernels).launch(&cycles.stream, kernel, [nx + 2, ny * nz], arguments) }
    }
}

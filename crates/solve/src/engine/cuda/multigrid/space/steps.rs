//! Steps on the finest level of a box, with others and without.

use crosswarp_cuda::Stream;

use super::level::DeviceOperator;
use super::{GpuBox, bands_of};
use crate::engine::cpu::multigrid::space::level::Level;
use crate::engine::cuda::arena::Arena;
use crate::engine::cuda::multigrid::steps::{GpuSteps, Made, Part};
use crate::gpu::Gpu;
use crate::gpu::box_arguments::BoxPass;
use crate::gpu::error::GpuError;

/// As `PlaneSteps`, of a box.
pub(crate) type BoxSteps = GpuSteps<BoxPass, DeviceOperator>;
/// As `PlaneGradients`, of a box.
pub(crate) type BoxGradients = GpuSteps<BoxPass, GpuBox>;

impl BoxSteps {
    /// Copies the level with its field and right side. The size has been
    /// [checked](GpuBox::check).
    pub fn of_box(gpu: &Gpu, level: &Level) -> Result<Self, GpuError> {
        let stream = Stream::new(&gpu.device)?;
        let arena = Arena::new(&stream);
        let on_device = DeviceOperator::new(&arena, level, None)?;
        on_device.load_right_side(&stream, level)?;
        let operator = &level.operator;
        let made = Made {
            arguments: on_device.arguments(),
            shape: operator.shape.clone(),
            leaves: (operator.lines[0].axis.len, 0..bands_of(operator)),
            inverse: 1.0,
            arena,
        };
        let field = made.field()?;
        let steps = made.room()?.with(on_device, field);
        steps.load(Part::U, &level.u)?;
        Ok(steps)
    }
}

impl BoxGradients {
    /// Goes on from the field of `levels`; gives them back if there is no room.
    pub(crate) fn of_levels(mut levels: GpuBox) -> Result<Self, Box<(GpuBox, GpuError)>> {
        let made = (|| {
            let finest = &levels.levels[0];
            let made = Made {
                arguments: finest.arguments(),
                shape: finest.shape.clone(),
                leaves: (finest.arguments().size[0] as usize, 0..levels.bands),
                inverse: 1.0,
                arena: Arena::new(&levels.stream),
            };
            Ok((made.field()?, made.room()?))
        })();
        let (z, room) = match made {
            Ok(made) => made,
            Err(error) => return Err(Box::new((levels, error))),
        };
        let finest = &mut levels.levels[0];
        finest.set_right_side(room.residual());
        let u = finest.replace_field(z);
        Ok(room.with(levels, u))
    }
}

//! Couplings of a level of a box that differ from point to point, in the memory of a GPU.

use std::ops::Range;

use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::space::level::Level;
use crate::engine::cpu::multigrid::space::points::{ALONG_AXES, Points, STEPS};
use crate::engine::cpu::multigrid::space::transfer::Transfer;
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::multigrid::storage::{DeviceField, Stored};
use crate::field::storage::Field;
use crate::gpu::box_arguments::{BOX_STEPS, BoxPoints, STEPS_ALONG_AXES};
use crate::gpu::error::GpuError;

const _: () = assert!(BOX_STEPS == STEPS.len() && STEPS_ALONG_AXES == ALONG_AXES);

/// The couplings of a level, and the weights to the next.
pub(super) struct DevicePoints {
    table: ArenaBuffer<BoxPoints>,
    /// Whether points are coupled along axes only.
    pub is_finest: bool,
    _fields: Vec<DeviceField<f64>>,
}

impl DevicePoints {
    /// Those of `level`, if it has some; `next`: the shape of the level below it.
    pub fn of(
        arena: &Arena,
        level: &Level,
        next: Option<&Shape>,
    ) -> Result<Option<DevicePoints>, GpuError> {
        let Some(points) = &level.operator.points else {
            return Ok(None);
        };
        let shape = &points.shape;
        let mut fields = Vec::new();
        let mut keep = |shape: &Shape, from: &Field<f64>, planes| -> Result<u64, GpuError> {
            let field = DeviceField::new(arena, shape.x.len, &Stored::of(shape))?;
            field.write_many(arena.stream(), planes, |z| from.row(z))?;
            let address = field.address();
            fields.push(field);
            Ok(address)
        };
        let mut table: BoxPoints = bytemuck::Zeroable::zeroed();
        let planes = stored_planes(points);
        for (address, part) in table.parts.iter_mut().zip(&points.parts) {
            *address = keep(shape, part, planes.clone())?;
        }
        table.excess = keep(shape, &points.excess, planes.clone())?;
        table.inverse = keep(shape, &points.inverse, planes)?;
        if let (Some(Transfer::Points(weights)), Some(next)) = (&level.weights, next) {
            let (weights, made) = weights.tables();
            // Where every PE has all planes, those beyond an end are the same as inside.
            let planes = match shape.spread {
                true => made,
                false => made.start.max(0)..made.end.min(next.y.len as isize),
            };
            for (address, from) in table.weights.iter_mut().zip(weights) {
                *address = keep(next, from, planes.clone())?;
            }
        }
        Ok(Some(DevicePoints {
            is_finest: points.parts.len() == STEPS_ALONG_AXES,
            table: arena.copied(&[table])?,
            _fields: fields,
        }))
    }

    /// Where kernels find them.
    pub fn address(&self) -> u64 {
        self.table.address()
    }
}

/// The planes of `points` that a kernel may read.
fn stored_planes(points: &Points) -> Range<isize> {
    let (stored, len) = (points.excess.rows(), points.shape.y.len as isize);
    // Where every PE has all planes, those beyond an end are the same as inside.
    match points.shape.spread && points.shape.y.wraps {
        true => stored,
        false => stored.start.max(0)..stored.end.min(len),
    }
}

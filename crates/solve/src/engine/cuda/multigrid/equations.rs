//! The equations of a plane's finest level in the memory of a GPU.

use std::ops::Range;

use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use super::storage::{DeviceField, DeviceRows, DeviceTable, Stored, pitch_of};
use crate::engine::cpu::multigrid::finest::{End, Finest, Mask};
use crate::engine::cuda::arena::Arena;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{END_FIXED, END_MIRROR, END_WRAP, LevelPass};

/// What equations have on the right.
#[derive(Clone, Copy)]
pub(crate) enum RightSide<'a> {
    Zero,
    Of(&'a Field<f64>),
    /// What comes later.
    Room,
}

impl<'a> From<Option<&'a Field<f64>>> for RightSide<'a> {
    fn from(field: Option<&'a Field<f64>>) -> RightSide<'a> {
        field.map_or(RightSide::Zero, RightSide::Of)
    }
}

/// What kernels are told of the level, and what they reach by it.
pub(crate) struct DeviceEquations {
    pub(super) arguments: LevelPass,
    /// Rows of leaves that this PE has.
    pub(super) bands: Range<usize>,
    _right_side: Option<DeviceField<f64>>,
    _fixed: Option<DeviceRows<u8>>,
    _coefficients: Option<[DeviceTable<f64>; 2]>,
}

impl DeviceEquations {
    /// Whether kernels can number the cells.
    pub fn check(finest: &Finest) -> Result<(), GpuError> {
        let longest = finest.shape.x.len.max(finest.shape.y.len);
        match longest > i32::MAX as usize - 4096 {
            true => Err(GpuError::TooLong { longest }),
            false => Ok(()),
        }
    }

    /// Copies them, of a size that has been [checked](Self::check), with the right side. `mask`: that of `finest`, if the host does not
    /// have it. `first`: row 0's number in the leaves.
    pub fn new(
        arena: &Arena,
        finest: &Finest,
        right_side: RightSide<'_>,
        mask: Option<DeviceRows<u8>>,
        first: usize,
    ) -> Result<DeviceEquations, GpuError> {
        let shape = &finest.shape;
        let nx = shape.x.len;
        let stored = Stored::of(shape);
        let right_side = match right_side {
            RightSide::Zero => None,
            RightSide::Room => Some(DeviceField::new(arena, nx, &stored)?),
            RightSide::Of(from) => {
                let field = DeviceField::new(arena, nx, &stored)?;
                field.upload(arena.stream(), from)?;
                Some(field)
            }
        };
        let fixed = match &finest.fixed {
            Some(Mask::Rows(from)) => {
                let rows = DeviceRows::new(arena, nx, &stored)?;
                rows.upload(arena.stream(), from)?;
                Some(rows)
            }
            Some(Mask::OnGpu) => Some(mask.expect("who has the mask gives it")),
            None => None,
        };
        let coefficients = finest
            .coefficients
            .as_ref()
            .map(|from| {
                let [parts, inverse] = from.tables();
                Ok::<_, GpuError>([
                    DeviceTable::new(arena, parts, shape.y, stored.own.clone())?,
                    DeviceTable::new(arena, inverse, shape.y, stored.own.clone())?,
                ])
            })
            .transpose()?;
        let own = shape.own();
        let bands = (own.start as usize + first) / LEAF_ROWS
            ..(own.end as usize + first).div_ceil(LEAF_ROWS);
        let [operator, inverse] = match &coefficients {
            Some(tables) => [tables[0].addresses(), tables[1].addresses()],
            None => [[0; 2]; 2],
        };
        let ends = finest.ends.as_flattened().iter().map(|&end| end_code(end));
        let arguments = LevelPass {
            right_side: right_side.as_ref().map_or(0, DeviceField::address),
            fixed: fixed.as_ref().map_or(0, DeviceRows::address),
            operator_index: operator[0],
            operator_rows: operator[1],
            inverse_index: inverse[0],
            inverse_rows: inverse[1],
            ends: ends
                .collect::<Vec<_>>()
                .try_into()
                .expect("two axes have four ends"),
            first: first as i32,
            first_band: bands.start as i32,
            pitch: pitch_of(nx) as i64,
            nx: nx as i32,
            ny: shape.y.len as i32,
            row_start: own.start as i32,
            row_end: own.end as i32,
            ..bytemuck::Zeroable::zeroed()
        };
        Ok(DeviceEquations {
            arguments,
            bands,
            _right_side: right_side,
            _fixed: fixed,
            _coefficients: coefficients,
        })
    }
}

fn end_code(end: End) -> i32 {
    match end {
        End::Fixed => END_FIXED,
        End::Mirror => END_MIRROR,
        End::Wrap => END_WRAP,
    }
}

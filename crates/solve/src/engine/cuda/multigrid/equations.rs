//! The equations of a plane's finest level in the memory of a GPU.

use std::ops::Range;

use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use super::storage::{DeviceField, DeviceRows, DeviceTable, Stored, pitch_of};
use crate::engine::cpu::multigrid::finest::{End, Finest, Held};
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

/// Of the only PE's finest level, what the host does not have.
#[derive(Default)]
pub(crate) struct EquationsOnGpu {
    /// Which cells keep their value: byte not 0.
    pub mask: Option<DeviceRows<u8>>,
    /// The couplings and the excess, and 1 / the diagonal.
    pub couplings: Option<[DeviceTable<f64>; 2]>,
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

    /// Copies them, of a size that has been [checked](Self::check), with the right side. `on_gpu`: what the host does not have of
    /// `finest`. `first`: row 0's number in the leaves.
    pub fn new(
        arena: &Arena,
        finest: &Finest,
        right_side: RightSide<'_>,
        on_gpu: EquationsOnGpu,
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
            Some(Held::Here(from)) => {
                let rows = DeviceRows::new(arena, nx, &stored)?;
                rows.upload(arena.stream(), from)?;
                Some(rows)
            }
            Some(Held::OnGpu) => Some(on_gpu.mask.expect("who has the mask gives it")),
            None => None,
        };
        let coefficients = match &finest.coefficients {
            Some(Held::Here(from)) => {
                let [parts, inverse] = from.tables();
                Some([
                    DeviceTable::new(arena, parts, shape.y, stored.own.clone())?,
                    DeviceTable::new(arena, inverse, shape.y, stored.own.clone())?,
                ])
            }
            Some(Held::OnGpu) => Some(on_gpu.couplings.expect("who has the couplings gives them")),
            None => None,
        };
        let own = shape.own();
        let bands = (own.start as usize + first) / LEAF_ROWS
            ..(own.end as usize + first).div_ceil(LEAF_ROWS);
        let [operator, inverse] = match &coefficients {
            Some(tables) => [tables[0].addresses(), tables[1].addresses()],
            None => [[0; 2]; 2],
        };
        let arguments = LevelPass {
            right_side: right_side.as_ref().map_or(0, DeviceField::address),
            fixed: fixed.as_ref().map_or(0, DeviceRows::address),
            operator_index: operator[0],
            operator_rows: operator[1],
            inverse_index: inverse[0],
            inverse_rows: inverse[1],
            ends: end_codes(finest.ends),
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

/// What kernels are told of the ends left, right, top and bottom.
pub(super) fn end_codes([[left, right], [top, bottom]]: [[End; 2]; 2]) -> [i32; 4] {
    [left, right, top, bottom].map(|end| match end {
        End::Fixed => END_FIXED,
        End::Mirror => END_MIRROR,
        End::Wrap => END_WRAP,
    })
}

//! A plane's operator made of arrays in the memory of the GPU.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{BufferRef, ByValue, Stream};

use super::array_kernels::launch_by_columns;
use super::equations::{EquationsOnGpu, end_codes};
use super::storage::{DeviceRows, DeviceTable, Stored, pitch_of};
use crate::element::Real;
use crate::engine::cpu::multigrid::coefficients::PARTS;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::kernels;
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::OperatorArrays;
use crate::problem::scale::Scale;

/// Arrays in the memory of a GPU that the operator of a plane is made of, in place of what the problem delivers by rows: as
/// [`DeviceArrays`](crate::DeviceArrays) with a value for each point.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOperator<'a, F: Real> {
    /// The cells that keep their value: byte ≠ 0.
    pub fixed: Option<BufferRef<'a, u8>>,
    /// κ, positive.
    pub coefficient: Option<BufferRef<'a, F>>,
    /// c, not negative.
    pub reaction: Option<BufferRef<'a, F>>,
}

/// A problem's grid, its level, and what else its operator is made of.
pub(crate) struct OfPlane<'a> {
    /// Columns and rows.
    pub size: [usize; 2],
    /// The level's first ones.
    pub first: [usize; 2],
    pub shape: &'a Shape,
    pub ends: [[End; 2]; 2],
    /// Of columns and of rows.
    pub spacings: [f64; 2],
    /// Of mixed sides, left, right, top and bottom, a/b by the level's rows or columns.
    pub mixed: [Option<Vec<f64>>; 4],
}

/// What has been made.
#[derive(Default)]
pub(crate) struct Operator {
    pub equations: EquationsOnGpu,
    /// With a mask: the cells that do not keep their value.
    pub free: Option<u64>,
    pub couplings: Option<Couplings>,
}

/// Where couplings differ.
pub(crate) struct Couplings {
    /// What they are held by.
    pub scale: Scale,
    /// Whether a factor c ties the field to a value.
    pub tied: bool,
    /// The coefficient along the sides left, right, top and bottom, by the level's rows or columns.
    pub kappas: [Vec<f64>; 4],
}

/// Makes the mask, and if there is a coefficient or a factor c the couplings. Nothing if one of these is not what it should be, or
/// larger or smaller than a multiplication by a power of two scales. Waits for the end.
pub(crate) fn make<F: Real>(
    gpu: &Gpu,
    of: &OfPlane<'_>,
    arrays: &DeviceOperator<'_, F>,
) -> Result<Option<Operator>, GpuError> {
    let stream = Stream::new(&gpu.device)?;
    let arena = Arena::new(&stream);
    let (nx, ny) = (of.shape.x.len, of.shape.y.len);
    let words = arena.zeroed::<u64>(2)?;
    let arguments = OperatorArrays {
        words: words.address(),
        pitch: pitch_of(nx) as i64,
        spacings: of.spacings,
        scale: 1.0,
        nx: nx as i32,
        ny: ny as i32,
        first: of.first.map(|first| first as i32),
        grid_nx: of.size[0] as i32,
        grid_ny: of.size[1] as i32,
        ends: end_codes(of.ends),
        ..bytemuck::Zeroable::zeroed()
    };
    let launch = |name: &str, arguments: OperatorArrays| -> Result<(), GpuError> {
        let kernel = kernels::find_plain(&gpu.device, name)?;
        // SAFETY: the parameter is an `operator_arrays` of the kernel's type, whose arrays have the extents of the grid and of the
        // level, and live until the stream has been waited for; blocks cover the columns and, by turns, the rows.
        unsafe { launch_by_columns(&stream, &kernel, [nx, ny], (ByValue(arguments),)) }
    };
    let address = |array: &Option<BufferRef<'_, F>>| array.map_or(0, |array| array.address());
    let mut made = Operator::default();
    if let Some(fixed) = arrays.fixed {
        let mask = DeviceRows::new(&arena, nx, &Stored::of(of.shape))?;
        let arguments = OperatorArrays {
            fixed: fixed.address(),
            mask: mask.address(),
            ..arguments
        };
        launch("operator_mask", arguments)?;
        let mut said = [0; 2];
        stream.read(&mut said, words.range(..))?;
        made.free = Some(said[0]);
        made.equations.mask = Some(mask);
    }
    if arrays.coefficient.is_none() && arrays.reaction.is_none() {
        return Ok(Some(made));
    }
    let arguments = OperatorArrays {
        coefficient: address(&arrays.coefficient),
        reaction: address(&arrays.reaction),
        ..arguments
    };
    stream.zero(words.range(..))?;
    launch(&kernels::of_type::<F>("operator_measure"), arguments)?;
    let mut said = [0; 2];
    stream.read(&mut said, words.range(..))?;
    let [h_x, h_y] = of.spacings;
    let largest = f64::from_bits(said[0]) * (h_x / h_y).max(h_y / h_x);
    let scale = Scale::of(largest);
    if !largest.is_finite() || !scale.is_one_product() {
        return Ok(None);
    }
    let table = |parts| DeviceTable::room(&arena, of.shape.y, nx, parts);
    let couplings = [table(PARTS)?, table(1)?];
    let lengths = [ny, ny, nx, nx];
    let mut kappas = Vec::new();
    let mut mixed = Vec::new();
    for (values, len) in of.mixed.iter().zip(lengths) {
        kappas.push(arena.buffer::<f64>(len)?);
        mixed.push(
            values
                .as_ref()
                .map(|values| arena.copied(values))
                .transpose()?,
        );
    }
    let addresses = |of: &[ArenaBuffer<f64>]| std::array::from_fn(|side| of[side].address());
    let [parts, inverse] = &couplings;
    let arguments = OperatorArrays {
        mixed: std::array::from_fn(|side| mixed[side].as_ref().map_or(0, ArenaBuffer::address)),
        kappas: addresses(&kappas),
        parts: parts.rows().address(),
        inverse: inverse.rows().address(),
        scale: scale.down(1.0),
        ..arguments
    };
    launch(&kernels::of_type::<F>("operator_couplings"), arguments)?;
    launch("operator_inverse", arguments)?;
    let read = |from: &ArenaBuffer<f64>| -> Result<Vec<f64>, GpuError> {
        let mut values = vec![0.0; from.len()];
        stream.read(&mut values, from.range(..))?;
        Ok(values)
    };
    let [left, right, top, bottom] = &kappas[..] else {
        unreachable!("a plane has four sides");
    };
    made.couplings = Some(Couplings {
        scale,
        tied: said[1] != 0,
        kappas: [read(left)?, read(right)?, read(top)?, read(bottom)?],
    });
    made.equations.couplings = Some(couplings);
    Ok(Some(made))
}

//! Voids of an array in the memory of the GPU that makes the cycles.

use std::sync::Arc;

use crosswarp_cuda::BufferRef;
use crosswarp_shmem::Pe;

use super::Outcome;
use super::arrays::{self, DeviceArrays, DeviceOperator};
use super::plane::Plane;
use crate::element::Real;
use crate::engine::cpu::multigrid::shape::Axis;
use crate::engine::cuda::multigrid::equations::EquationsOnGpu;
use crate::engine::cuda::multigrid::galerkin;
use crate::engine::cuda::multigrid::operator::Operator;
use crate::engine::cuda::multigrid::voids::{Voids, guess};
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;
use crate::problem::Problem2d;

/// An array with voids in the memory of a GPU, in the C order of (rows, columns).
///
/// Whoever has made it sees to it that it is complete when a solve begins: that does not wait for other streams.
#[derive(Clone, Copy, Debug)]
pub struct DeviceVoids<'a, F: Real> {
    /// The values; those of cells that are not known are never looked at, but for whether they are NaN or `nodata`.
    pub values: BufferRef<'a, F>,
    /// The known cells: byte ≠ 0; `None`: all whose value is not NaN.
    pub known: Option<BufferRef<'a, u8>>,
    /// Cells of this value are not known in any case.
    pub nodata: Option<F>,
    /// Gets the solution: another array than `values`. Where there is no solution it may hold anything.
    pub field: BufferRef<'a, F>,
}

/// See [`fill_on_device`](crate::fill_on_device).
pub(crate) fn run<F: Real>(
    pe: &Pe,
    [nx, ny]: [usize; 2],
    voids: &DeviceVoids<'_, F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Option<Outcome<F>>, SolveError> {
    let given = DeviceArrays {
        source: None,
        initial: Some(voids.field),
        field: voids.field,
    };
    let Some((gpu, cycles)) = given.solved_by(pe, [false; 2], options) else {
        return Ok(None);
    };
    let of_array = Voids {
        size: [nx, ny],
        values: voids.values,
        known: voids.known,
        nodata: voids.nodata,
    };
    let Some(known) = guess(gpu, &of_array, voids.field)? else {
        return Ok(None);
    };
    let axes = [nx, ny].map(|len| Axis { len, wraps: false });
    if !galerkin::is_possible(axes) {
        let bytes = known.on_host([nx, ny])?;
        let fixed = Arc::new(move |y: usize, row: &mut [u8]| {
            row.copy_from_slice(&bytes[y * nx..][..nx]);
        });
        let problem = Problem2d::natural(nx, ny, Some(fixed));
        return arrays::run(
            pe,
            &problem,
            &DeviceOperator::NONE,
            &given,
            options,
            observer,
        );
    }
    let problem = Problem2d::natural(nx, ny, None);
    let free = (nx * ny) as u64 - known.cells;
    let operator = Operator {
        equations: EquationsOnGpu {
            mask: Some(known.mask),
            couplings: None,
        },
        free: Some(free),
        couplings: None,
    };
    let plane = Plane::new(pe, &problem, cycles, Some(gpu), Some(operator))?;
    arrays::once(plane, &problem, &given, options, observer)
}

//! Voids of an array in the memory of the GPU that makes the cycles.

use std::sync::Arc;

use crosswarp_shmem::Pe;

use super::Outcome;
use super::arrays::{self, DeviceArrays};
use super::plane::Plane;
use crate::element::Real;
use crate::engine::cpu::multigrid::shape::Axis;
use crate::engine::cuda::multigrid::equations::EquationsOnGpu;
use crate::engine::cuda::multigrid::galerkin;
use crate::engine::cuda::multigrid::operator::Operator;
use crate::engine::cuda::multigrid::voids::{DeviceVoids, guess};
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;
use crate::problem::{Problem2d, RowSource};

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
    let Some(known) = guess(gpu, [nx, ny], voids)? else {
        return Ok(None);
    };
    let axes = [nx, ny].map(|len| Axis { len, wraps: false });
    let (fixed, operator) = match galerkin::is_possible(axes) {
        true => {
            let operator = Operator {
                free: Some((nx * ny) as u64 - known.cells),
                equations: EquationsOnGpu {
                    mask: Some(known.mask),
                    couplings: None,
                },
                couplings: None,
            };
            (None, Some(operator))
        }
        false => {
            let bytes = known.on_host([nx, ny])?;
            let row_of = move |y: usize, row: &mut [u8]| {
                row.copy_from_slice(&bytes[y * nx..][..nx]);
            };
            (Some(Arc::new(row_of) as RowSource<u8>), None)
        }
    };
    let problem = Problem2d::natural(nx, ny, fixed);
    let plane = Plane::new(pe, &problem, cycles, Some(gpu), operator)?;
    arrays::once(plane, &problem, &given, options, observer)
}

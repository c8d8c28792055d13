//! The GPU's bodies of the primitives.

mod histogram;
mod histogram_kernels;
mod pieces;
mod reduce;
mod transpose;
mod transpose_pe;

pub use histogram::{DeviceHistogram, HistogramWorkspace};
pub use pieces::{PIECE_BYTES, in_pieces};
pub use reduce::{DeviceReducer, ReduceWorkspace, Segments};
pub use transpose::{DeviceTransposeError, DeviceTransposer, TextbookTile};
pub use transpose_pe::WorldTransposer;

use crosswarp_cuda::Source;

const GROUPS: [&[Source<'static>]; 3] = [
    &[transpose::TRANSPOSE, transpose_pe::TRANSPOSE_PE],
    &histogram_kernels::SOURCES,
    reduce::KERNELS,
];

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &{
    const COUNT: usize = {
        let (mut count, mut group) = (0, 0);
        while group < GROUPS.len() {
            count += GROUPS[group].len();
            group += 1;
        }
        count
    };
    let mut all = [transpose::TRANSPOSE; COUNT];
    let (mut next, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut k = 0;
        while k < GROUPS[group].len() {
            all[next] = GROUPS[group][k];
            next += 1;
            k += 1;
        }
        group += 1;
    }
    all
};

//! The primitives on GPUs, by their public names, and the list of their kernels.

pub use crate::histogram::cuda::{DeviceHistogram, HistogramWorkspace};
pub use crate::pieces::{PIECE_BYTES, in_pieces};
pub use crate::reduce::cuda::{DeviceReducer, ReduceWorkspace, Segments};
pub use crate::transpose::cuda::{
    DeviceTransposeError, DeviceTransposer, TextbookTile, WorldTransposer,
};

use crosswarp_cuda::Source;

use crate::transpose::cuda::{TRANSPOSE, TRANSPOSE_PE};

const GROUPS: [&[Source<'static>]; 3] = [
    &[TRANSPOSE, TRANSPOSE_PE],
    &crate::histogram::cuda::SOURCES,
    crate::reduce::cuda::KERNELS,
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
    let mut all = [TRANSPOSE; COUNT];
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

//! The list of kernels.

use crosswarp_cuda::{Options, Source};

use crate::transpose::cuda::{MATRICES, NARROW, SQUARES, TEXTBOOK, WORLD};

const GROUPS: [&[Source<'static>]; 7] = [
    &MATRICES,
    &NARROW,
    &SQUARES,
    &[TEXTBOOK],
    &WORLD,
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
    let mut all = [TEXTBOOK; COUNT];
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

/// What is compiled for every operation of this crate on every type, but for reductions of segments; and all of
/// [`KERNELS`] as they are.
pub fn units() -> Vec<(Source<'static>, Options)> {
    let plain = KERNELS.iter().map(|&source| (source, Options::new()));
    plain.chain(crate::reduce::cuda::units()).collect()
}

//! Where GPU time goes: models that need no GPU, and measurements beside them.
//!
//! - [`models`]: how many blocks an SM holds, what stops more, and what would let one more in ([`models::occupancy`]);
//!   conflicts of accesses to shared memory ([`models::banks`]); lanes that idle ([`models::divergence`]); what
//!   bandwidth and arithmetic allow, and the bytes that must be in flight for it ([`models::roofline`]).
//! - [`ladder`]: the textbook's variants of five problems, measured beside the roof.
//! - [`measure`]: the harness behind every `crosswarp bench`, and Nsight Compute's figures beside the model's
//!   ([`measure::nsight`]).
//! - [`mod@bench`]: rows that stand beside peers.

pub mod bench;
pub mod ladder;
pub mod measure;
pub mod models;

use crosswarp_cuda::Source;

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &{
    const OTHERS: [Source<'static>; 2] = [measure::READ, bench::SHMEM];
    let mut all = [measure::READ; OTHERS.len() + ladder::SOURCES.len()];
    let mut k = 0;
    while k < all.len() {
        all[k] = if k < OTHERS.len() {
            OTHERS[k]
        } else {
            ladder::SOURCES[k - OTHERS.len()]
        };
        k += 1;
    }
    all
};

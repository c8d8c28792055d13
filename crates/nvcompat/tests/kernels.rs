//! The kernels behind the host's functions compile. Without NVRTC the test says that it was skipped.

use crosswarp_cuda::internal::compile_all;
use crosswarp_cuda::{Arch, Cache, Nvrtc, ON_STREAM, Options, Source, skip};
use crosswarp_nvshmem::kernels::units;

#[test]
fn every_unit_compiles() {
    if let Err(reason) = Nvrtc::get() {
        return skip::skip_gpu("every_unit_compiles", 1, reason);
    }
    let texts = units();
    let own = texts.iter().map(|(name, text)| Source::new(name, text));
    let units: Vec<_> = own
        .chain(ON_STREAM.iter().copied())
        .map(|source| (source, Options::new()))
        .collect();
    let cubins = compile_all(&Cache::of_user(), &units, &[Arch::new(9, 0)], &|_, _| ());
    let cubins = cubins.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cubins.len(), units.len());
}

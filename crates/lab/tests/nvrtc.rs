//! The lab's kernels compile for every architecture. Without NVRTC the test says by name that it was
//! skipped.

use crosswarp_cuda::{Arch, Cache, Nvrtc, Options, skip};
use crosswarp_lab::KERNELS;

#[test]
fn every_kernel_compiles_for_every_architecture_from_7_5() {
    let nvrtc = match Nvrtc::get() {
        Ok(nvrtc) => nvrtc,
        Err(reason) => {
            let test = "every_kernel_compiles_for_every_architecture_from_7_5";
            return skip::skip_gpu(test, 1, reason);
        }
    };
    let all_for = |arch: Arch| {
        for source in KERNELS {
            let compiled = Cache::of_user().compile(source, arch, &Options::new());
            compiled.unwrap_or_else(|error| panic!("{} for {arch}: {error}", source.name));
        }
    };
    std::thread::scope(|scope| {
        for arch in [75, 80, 89, 90, 100, 120].map(Arch::from_number) {
            if nvrtc.archs().contains(&arch) {
                scope.spawn(move || all_for(arch));
            } else {
                println!("skipped: {arch}: not known to this NVRTC");
            }
        }
    });
}

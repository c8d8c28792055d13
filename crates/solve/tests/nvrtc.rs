//! The solver's sources compile, and hold the kernels that they are listed with. Without NVRTC the test says that it was
//! skipped.

use std::collections::BTreeSet;

use crosswarp_cuda::{Arch, Nvrtc, kernel_table, skip};
use crosswarp_solve::internal::KERNELS;

#[test]
fn every_source_holds_the_kernels_that_it_is_listed_with() {
    if let Err(reason) = Nvrtc::get() {
        let test = "every_source_holds_the_kernels_that_it_is_listed_with";
        return skip::skip_gpu(test, 1, reason);
    }
    let rows = kernel_table(Arch::new(9, 0), KERNELS).unwrap_or_else(|error| panic!("{error}"));
    for source in KERNELS {
        let of_source = rows.iter().filter(|row| row.source == source.name);
        let compiled: BTreeSet<_> = of_source.map(|row| &row.resources.name[..]).collect();
        let listed: BTreeSet<_> = source.shapes.iter().map(|shape| shape.kernel).collect();
        assert_eq!(compiled, listed, "{}", source.name);
    }
    // What the shapes say is what blocks may have.
    for row in &rows {
        let most = row.resources.max_threads.unwrap_or(1024);
        assert!(row.threads <= most, "{row:?}");
    }
}

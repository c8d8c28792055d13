//! The sources hold the kernels that they are for. Without NVRTC a test that compiles says that it was skipped.

use std::collections::BTreeSet;

use crosswarp_cuda::{Arch, Nvrtc, kernel_table, skip};
use crosswarp_prim::internal::KERNELS;

#[test]
fn every_source_is_listed_once() {
    let names: BTreeSet<_> = KERNELS.iter().map(|source| source.name).collect();
    assert_eq!(names.len(), KERNELS.len());
    // What all packed counters share, and what they do not.
    for name in [
        "rows",
        "plan_u16_shift",
        "packed_u16_shift",
        "packed_fixed_u16_shift",
        "packed_f64_edges",
    ] {
        assert!(names.contains(&*format!("histogram/{name}.cu")), "{name}");
    }
    assert!(!names.contains("histogram/packed_fixed_i32_closed_shift.cu"));
}

#[test]
fn packed_counters_of_rules_that_move_no_keys_have_a_kernel_of_their_own() {
    if let Err(reason) = Nvrtc::get() {
        let test = "packed_counters_of_rules_that_move_no_keys_have_a_kernel_of_their_own";
        return skip::skip_gpu(test, 1, reason);
    }
    let sources: Vec<_> = KERNELS
        .iter()
        .copied()
        .filter(|source| {
            matches!(
                source.name,
                "histogram/packed_i32_shift.cu" | "histogram/packed_fixed_i32_shift.cu"
            )
        })
        .collect();
    let rows = kernel_table(Arch::new(9, 0), &sources).unwrap_or_else(|error| panic!("{error}"));
    let names: BTreeSet<_> = rows.iter().map(|row| &row.resources.name[..]).collect();
    let expected = [
        "histogram_packed_fixed_i32_shift",
        "histogram_packed_i32_shift",
    ];
    assert_eq!(names, expected.into_iter().collect());
}

#[test]
fn every_transposition_has_a_kernel_of_its_own_and_room_for_its_blocks() {
    if let Err(reason) = Nvrtc::get() {
        let test = "every_transposition_has_a_kernel_of_its_own_and_room_for_its_blocks";
        return skip::skip_gpu(test, 1, reason);
    }
    let sources: Vec<_> = KERNELS
        .iter()
        .copied()
        .filter(|source| source.name.starts_with("transpose/"))
        .collect();
    let rows = kernel_table(Arch::new(9, 0), &sources).unwrap_or_else(|error| panic!("{error}"));
    let mut all = BTreeSet::new();
    for source in &sources {
        let of_source = rows.iter().filter(|row| row.source == source.name);
        let compiled: BTreeSet<_> = of_source.map(|row| &row.resources.name[..]).collect();
        let listed: BTreeSet<_> = source.shapes.iter().map(|shape| shape.kernel).collect();
        assert_eq!(compiled, listed, "{}", source.name);
        for kernel in compiled {
            assert!(all.insert(kernel.to_owned()), "two of {kernel}");
        }
    }
    for element in [1, 2, 4, 8, 16] {
        for kind in [
            "",
            "_any",
            "_square",
            "_any_square",
            "_flat",
            "_tall",
            "_put",
        ] {
            assert!(all.contains(&format!("transpose{kind}_{element}")));
        }
    }
    // What the shapes say is what blocks may have.
    for row in &rows {
        let most = row.resources.max_threads.unwrap_or(1024);
        assert!(row.threads <= most, "{row:?}");
    }
}

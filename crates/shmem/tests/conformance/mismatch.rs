//! What one PE does differently, or what fails on one PE only, is an error on every PE, and the PEs are still in
//! step afterwards.

use crate::cases::Case;
use crosswarp_shmem::{AllocError, CollectiveError, CollectiveKind, Pe, ShareError, WorldKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{AsFd, AsRawFd};

pub const CASES: &[Case] = &[
    ("realloc against malloc", realloc_against_malloc),
    ("realloc of another object", realloc_of_another_object),
    ("a stranger's address", a_strangers_address),
    ("calloc overflows on one PE", calloc_overflows_on_one_pe),
    (
        "descriptors run out on one PE",
        descriptors_run_out_on_one_pe,
    ),
];

fn is_mismatch<T>(result: &Result<T, AllocError>) -> bool {
    matches!(
        result,
        Err(AllocError::Collective(CollectiveError::Mismatch { .. }))
    )
}

/// Whether this PE is the one that does something else than the others.
fn odd_one(pe: &Pe) -> bool {
    pe.my_pe() == pe.n_pes() - 1
}

fn realloc_against_malloc(pe: &Pe) {
    let raw = pe.raw();
    let object = raw.malloc(640, 1).unwrap();
    if pe.n_pes() > 1 {
        let result = match odd_one(pe) {
            true => raw.realloc(object, 4096),
            false => raw.malloc(4096, 1),
        };
        assert!(is_mismatch(&result), "{result:?}");
    }
    raw.free(object).unwrap();
}

fn realloc_of_another_object(pe: &Pe) {
    let raw = pe.raw();
    let objects = [raw.malloc(640, 1).unwrap(), raw.malloc(640, 1).unwrap()];
    if pe.n_pes() > 1 {
        let result = raw.realloc(objects[usize::from(odd_one(pe))], 4096);
        assert!(is_mismatch(&result), "{result:?}");
    }
    // Nothing has changed, so the same is free on every PE.
    let next = raw.malloc(640, 1).unwrap();
    pe.agree(0, (next.addr() - raw.heap().addr()) as u64)
        .unwrap();
    for object in [next, objects[0], objects[1]] {
        raw.free(object).unwrap();
    }
}

fn a_strangers_address(pe: &Pe) {
    let raw = pe.raw();
    let object = raw.malloc(640, 1).unwrap();
    let stranger = object.wrapping_add(8);
    let mine = if odd_one(pe) { stranger } else { object };
    for result in [raw.realloc(mine, 900).map(drop), raw.free(mine)] {
        match odd_one(pe) {
            true => assert!(
                matches!(result, Err(AllocError::NotAllocated { .. })),
                "{result:?}"
            ),
            false => assert!(is_mismatch(&result), "{result:?}"),
        }
    }
    raw.free(object).unwrap();
}

fn calloc_overflows_on_one_pe(pe: &Pe) {
    let raw = pe.raw();
    let n = if odd_one(pe) { usize::MAX } else { 10 };
    let result = raw.calloc(n, 64);
    if pe.n_pes() > 1 {
        assert!(is_mismatch(&result), "{result:?}");
    } else {
        assert!(
            matches!(result, Err(AllocError::TooLarge { .. })),
            "{result:?}"
        );
    }
    // Zeroed or not is part of the call.
    if pe.n_pes() > 1 {
        let result = match odd_one(pe) {
            true => raw.calloc(10, 64),
            false => {
                let object = raw.malloc(640, 1).unwrap();
                let met = pe.barrier();
                assert!(
                    matches!(met, Err(CollectiveError::Mismatch { theirs, .. })
                        if theirs.kind == CollectiveKind::Alloc),
                    "{met:?}"
                );
                Ok(object)
            }
        };
        assert_eq!(is_mismatch(&result), odd_one(pe), "{result:?}");
    }
}

fn descriptors_run_out_on_one_pe(pe: &Pe) {
    // The threads of a process have one limit; over hosts none are shared.
    if pe.kind() == WorldKind::Threads || pe.shared_team().n_pes() < pe.n_pes() {
        return;
    }
    let mine = std::io::stderr();
    let limit = getrlimit(Resource::Nofile);
    // None left at all, or one, for the duplicate of one's own.
    for left in 0..2 {
        if odd_one(pe) {
            let next = mine.as_fd().try_clone_to_owned().unwrap();
            let few = Rlimit {
                current: Some(next.as_raw_fd() as u64 + left),
                ..limit
            };
            drop(next);
            setrlimit(Resource::Nofile, few).unwrap();
        }
        let shared = pe.share_fd(mine.as_fd());
        setrlimit(Resource::Nofile, limit).unwrap();
        match shared {
            Ok(_) if left as usize == pe.n_pes() => {}
            Err(ShareError::Pass(error)) if left == 0 && odd_one(pe) => {
                assert_eq!(error.raw_os_error(), Some(24), "EMFILE");
            }
            // It got the message, but no descriptor.
            Err(ShareError::Empty { .. }) if left == 1 && odd_one(pe) => {}
            // The neighbours that should have got one from it, and all others.
            Err(ShareError::Pass(_) | ShareError::Peer { .. }) if !odd_one(pe) => {}
            other => panic!("PE {}, {left} left: {other:?}", pe.my_pe()),
        }
        // In step, and nothing is left in the sockets.
        let shared = pe.share_fd(mine.as_fd()).unwrap();
        assert_eq!(shared.len(), pe.n_pes());
    }
}

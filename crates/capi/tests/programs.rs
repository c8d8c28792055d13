//! C programs for every family of functions, each on 1, 2, 3, 4, 5 and 8 PEs, and as C++ on 2 and 5.
//!
//! They check values by the specification themselves and say on standard error what is wrong.

mod support;

use std::path::Path;
use support::{Language, PES, compile, launch, passes};

/// A program that is C11 and C++17 at once.
macro_rules! in_both {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use super::*;

            #[test]
            fn c() {
                passes(&compile(concat!(stringify!($name), ".c"), Language::C11, "so", &[]), &PES);
            }

            #[test]
            fn cxx() {
                passes(&compile(concat!(stringify!($name), ".c"), Language::Cxx17, "so", &[]), &[2, 5]);
            }
        }
    )*};
}
in_both!(
    rma, amo, nbi, signal, wait, reduce, collect, teams, contexts, locks, memory, old, setup,
    statics, threads, generics, ring, heat, isort, matmul, samplesort
);

/// Argument checks have nothing to say about right programs.
#[test]
fn checking_lets_right_programs_pass() {
    for name in [
        "rma", "amo", "nbi", "signal", "collect", "reduce", "teams", "old", "statics",
    ] {
        let program = compile(&format!("{name}.c"), Language::C11, "checked", &[]);
        let arguments = ["SHMEM_DEBUG=1", program.to_str().unwrap()];
        let outcome = launch(3, Path::new("env"), &arguments);
        assert_eq!(outcome.code(), 0, "{name}: {outcome:?}");
    }
}

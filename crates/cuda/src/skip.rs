//! Skipping a test, and when that is a failure.
//!
//! For the tests of every crate that runs on GPUs; they all depend on this one. No other program's concern, so it is
//! hidden from the documentation.

use std::fmt::Display;

/// Says that `test`, which needs NVRTC and `gpus` GPUs, is skipped. Fails where CROSSWARP_REQUIRE_GPU promises that
/// many.
pub fn skip_gpu(test: &str, gpus: usize, reason: impl Display) {
    let promised = std::env::var("CROSSWARP_REQUIRE_GPU").unwrap_or_default();
    let promised: usize = promised.parse().unwrap_or(0);
    assert!(
        promised < gpus.max(1),
        "{test} is skipped, but CROSSWARP_REQUIRE_GPU is {promised}: {reason}"
    );
    println!("skipped: {test}: {reason}");
}

/// Says that `test` is skipped because a tool is missing. Fails where CROSSWARP_REQUIRE_TOOLS is 1.
pub fn skip_tool(test: &str, reason: impl Display) {
    let required = std::env::var("CROSSWARP_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(
        !required,
        "{test} is skipped, but CROSSWARP_REQUIRE_TOOLS is 1: {reason}"
    );
    println!("skipped: {test}: {reason}");
}

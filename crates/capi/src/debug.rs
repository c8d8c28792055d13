//! What `SHMEM_DEBUG` asks for.

use std::sync::OnceLock;

/// Whether a variable is there and not empty.
pub(crate) fn set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Whether messages and argument checks are asked for.
pub(crate) fn enabled() -> bool {
    static DEBUG: OnceLock<bool> = OnceLock::new();
    *DEBUG.get_or_init(|| set("SHMEM_DEBUG") || set("SMA_DEBUG"))
}

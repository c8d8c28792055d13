//! How a program that breaks the rules ends: one line that names PE, function and argument, then an
//! abort, upon which the launcher ends the other PEs.

use crate::library_state::{self, Name};
use crosswarp_shmem::DeliveryError;
use std::fmt;
use std::io::Write;
use std::panic;

/// Ends the process because of what `name` was called with, or met.
#[cold]
#[inline(never)]
pub(crate) fn end(name: Name, what: fmt::Arguments<'_>) -> ! {
    say(format_args!("{name}: {what}"));
    std::process::abort();
}

/// From now on a panic, which here is misuse found below the C functions (a PE that does not exist, an
/// address that is not symmetric), ends the process with one line too.
pub(crate) fn watch_panics() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("internal error");
        // Some say themselves which PE they are.
        let own = library_state::any().map_or(String::new(), |pe| format!("PE {}: ", pe.my_pe()));
        let text = text.strip_prefix(&own).unwrap_or(text);
        say(format_args!(
            "{text} (SHMEM_DEBUG=1 names the function and the argument)"
        ));
        std::process::abort();
    }));
}

/// One line on standard error, in one piece: other PEs write there too.
pub(crate) fn say(what: fmt::Arguments<'_>) {
    let line = match library_state::any() {
        Some(pe) => format!("crosswarp: PE {}: {what}\n", pe.my_pe()),
        None => format!("crosswarp: {what}\n"),
    };
    // Nothing can be done about a closed one.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// What was put can not arrive any more: the process ends.
#[inline(always)]
pub(crate) fn delivered(name: Name, result: Result<(), DeliveryError>) {
    if let Err(error) = result {
        end(name, format_args!("{error}"));
    }
}

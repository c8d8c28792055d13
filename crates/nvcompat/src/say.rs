//! What the library says: a line on standard error.

use std::cell::Cell;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering};

/// This process's PE, or −1.
static PE: AtomicI32 = AtomicI32::new(-1);

thread_local! {
    /// This thread's PE, if it is one of its own.
    static OWN: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Which PE this process speaks for from now on.
pub(crate) fn speaks(pe: Option<usize>) {
    PE.store(pe.map_or(-1, |pe| pe as i32), Ordering::Relaxed);
}

/// Which PE this thread speaks for from now on.
pub(crate) fn thread_speaks(pe: Option<usize>) {
    OWN.set(pe);
}

/// One line, in one piece: other PEs write there too.
pub(crate) fn say(what: fmt::Arguments<'_>) {
    let of_process = || usize::try_from(PE.load(Ordering::Relaxed)).ok();
    let line = match OWN.get().or_else(of_process) {
        None => format!("crosswarp: {what}\n"),
        Some(pe) => format!("crosswarp: PE {pe}: {what}\n"),
    };
    // Nothing can be done about a closed one.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

//! What the library says: a line on standard error.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering};

/// This process's PE, or −1.
static PE: AtomicI32 = AtomicI32::new(-1);

/// Which PE speaks from now on.
pub(crate) fn speaks(pe: Option<usize>) {
    PE.store(pe.map_or(-1, |pe| pe as i32), Ordering::Relaxed);
}

/// One line, in one piece: other PEs write there too.
pub(crate) fn say(what: fmt::Arguments<'_>) {
    let line = match PE.load(Ordering::Relaxed) {
        -1 => format!("crosswarp: {what}\n"),
        pe => format!("crosswarp: PE {pe}: {what}\n"),
    };
    // Nothing can be done about a closed one.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

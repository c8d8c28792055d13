//! *Positions* number all symmetric bytes of a PE: heap offsets first, and from [`STATIC`] on the segments in the
//! order of registration. They mean the same on every PE. Messages name a byte by its position.

use std::fmt;
use std::sync::OnceLock;

/// Position of the first byte of the first segment. No heap is as large as half of all addresses.
pub(crate) const STATIC: usize = 1 << 46;

type Names = Box<dyn Fn(usize) -> Option<String> + Send + Sync>;
static NAMES: OnceLock<Names> = OnceLock::new();

/// Messages of this process name byte `offset` of the static data by `names(offset)` from now on.
pub(crate) fn name_static_data(names: impl Fn(usize) -> Option<String> + Send + Sync + 'static) {
    // The first to come: a process has one program's data to name.
    let _ = NAMES.set(Box::new(names));
}

/// The static variable at a position, if one has a name there.
pub(crate) fn static_name(position: usize) -> Option<String> {
    NAMES.get()?(position.checked_sub(STATIC)?)
}

/// A position in symmetric memory in words: what is there and where.
pub(crate) struct Place(pub(crate) &'static str, pub(crate) usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(what, position) = *self;
        match (position.checked_sub(STATIC), static_name(position)) {
            (None, _) => write!(f, "the {what} at heap offset {position}"),
            (Some(_), Some(name)) => write!(f, "the {what} '{name}'"),
            (Some(offset), None) => write!(f, "the {what} at byte {offset} of the static data"),
        }
    }
}

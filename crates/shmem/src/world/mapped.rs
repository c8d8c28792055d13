//! A world's memory as one process has it mapped.

use crate::memory::region::Region;
use crate::wait::waiter::Patience;
use crate::world::control::Control;
use crate::world::ring::Ring;

/// What the PEs of a world are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorldKind {
    /// Threads of this process.
    Threads,
    /// Processes of one host, started by the launcher.
    Processes,
}

/// A world as seen from one process: the control memory and every PE's heap, mapped.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) control: Control,
    pub(crate) heaps: Vec<Region>,
    pub(crate) heap_bytes: usize,
    pub(crate) kind: WorldKind,
    pub(crate) patience: Patience,
    /// Sockets to the neighbours; only worlds of processes have them.
    pub(crate) ring: Option<Ring>,
}

impl Mapped {
    /// Whether other processes share the memory.
    pub(crate) fn shared(&self) -> bool {
        self.kind == WorldKind::Processes
    }
}

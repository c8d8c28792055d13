//! A world's memory as one process has it mapped.

use crate::memory::region::Region;
use crate::transport::hosts::Hosts;
use crate::wait::waiter::Patience;
use crate::world::control::Control;
use crate::world::ring::Ring;
use std::ptr::NonNull;

/// What the PEs of a world are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorldKind {
    /// Threads of this process.
    Threads,
    /// Processes of one host, started by the launcher.
    Processes,
}

/// A world as seen from one process: the control memory of its host, and the heaps of the PEs there, mapped.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) control: Control,
    /// `None`: that of a PE on another host.
    pub(crate) heaps: Vec<Option<Region>>,
    pub(crate) heap_bytes: usize,
    pub(crate) hosts: Hosts,
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

    /// Where PE `pe` has the `bytes` bytes at `position` of its heap; `None` if it has no such or is on another host.
    pub(crate) fn place(&self, pe: usize, position: usize, bytes: usize) -> Option<NonNull<u8>> {
        let heap = self.heaps.get(pe)?.as_ref()?;
        let inside = position.checked_add(bytes)? <= self.heap_bytes;
        // SAFETY: within the mapping, or at its end.
        #[allow(unsafe_code)]
        inside.then(|| unsafe { heap.base().add(position) })
    }
}

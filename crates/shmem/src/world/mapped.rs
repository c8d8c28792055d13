//! A world's memory as one process has it mapped.

use crate::memory::region::Region;
use crate::transport::hosts::Hosts;
use crate::wait::waiter::Patience;
use crate::world::control::Control;
use crate::world::ring::Ring;
use rustix::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

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
    /// The socket to the launcher; only processes of worlds of several hosts need it.
    pub(crate) launcher: Option<OwnedFd>,
    /// Segments of this host's PEs, as its agent reaches them.
    pub(crate) parts: Mutex<Vec<Part>>,
}

/// A PE's part of a segment.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) pe: usize,
    pub(crate) position: usize,
    pub(crate) len: usize,
    pub(crate) base: NonNull<u8>,
    /// What keeps it mapped, unless its owner does.
    pub(crate) _region: Option<Region>,
}

// SAFETY: an address range that belongs to no thread; who reads or writes there argues for it.
#[allow(unsafe_code)]
unsafe impl Send for Part {}

impl Mapped {
    /// Whether other processes share the memory.
    pub(crate) fn shared(&self) -> bool {
        self.kind == WorldKind::Processes
    }

    /// Where PE `pe` has the `bytes` symmetric bytes at `position`; `None` if it has no such or is on another host.
    pub(crate) fn place(&self, pe: usize, position: usize, bytes: usize) -> Option<NonNull<u8>> {
        let heap = self.heaps.get(pe)?.as_ref()?;
        let inside = |start: usize, len: usize| {
            let offset = position.checked_sub(start)?;
            (offset.checked_add(bytes)? <= len).then_some(offset)
        };
        if let Some(offset) = inside(0, self.heap_bytes) {
            // SAFETY: within the mapping, or at its end.
            #[allow(unsafe_code)]
            return Some(unsafe { heap.base().add(offset) });
        }
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().filter(|part| part.pe == pe).find_map(|part| {
            let offset = inside(part.position, part.len)?;
            // SAFETY: within the part, or at its end.
            #[allow(unsafe_code)]
            Some(unsafe { part.base.add(offset) })
        })
    }

    /// Adds a segment of a PE of this host.
    pub(crate) fn add_part(&self, part: Part) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.push(part);
    }
}

//! Device worlds for the crates whose programs know addresses, and not this crate's objects: hidden from the
//! documentation.
#![allow(unsafe_code)] // Passes on copies by address.

use std::time::Duration;

use crosswarp_shmem::Pe;

use crate::driver::device::Device;
use crate::driver::stream::Stream;
use crate::layout::{RouteState, TeamState, WorldState};
use crate::pe::error::DeviceWorldError;
use crate::pe::heap::DeviceHeap;
use crate::pe::on_stream::routed::{Strided, Way};
use crate::pe::team::DeviceTeam;
use crate::pe::world::DeviceWorld;

/// Bytes of what kernels find in the variable of their module.
#[doc(hidden)]
pub const WORLD_BYTES: usize = size_of::<WorldState>();
/// Bytes of the way to PEs of other hosts, as kernels know it.
#[doc(hidden)]
pub const ROUTE_BYTES: usize = size_of::<RouteState>();
/// Bytes of a team as kernels know it.
#[doc(hidden)]
pub const TEAM_BYTES: usize = size_of::<TeamState>();

impl<'w> DeviceWorld<'w> {
    /// [`DeviceWorld::new`] with addresses for as much memory of the program's as GPUs have; see
    /// [`DeviceHeap::register`].
    #[doc(hidden)]
    pub fn with_room(
        pe: &'w Pe,
        device: Device,
        heap_limit: Option<usize>,
        wait_limit: Option<Duration>,
    ) -> Result<Self, DeviceWorldError> {
        let room = device.properties().memory;
        let heap = DeviceHeap::with_room(pe, device, heap_limit, room)?;
        Self::with_verbs(heap, wait_limit)
    }
}

impl DeviceWorld<'_> {
    /// What kernels find in the variable of their module.
    #[doc(hidden)]
    pub fn state_bytes(&self) -> [u8; WORLD_BYTES] {
        bytemuck::cast(self.state())
    }

    /// The way of kernels to PEs of other hosts; `None` in a world of one host.
    #[doc(hidden)]
    pub fn route_bytes(&self) -> Option<[u8; ROUTE_BYTES]> {
        self.route_state().map(bytemuck::cast)
    }

    /// Whether the memory of `pe`, which exists, is mapped here.
    #[doc(hidden)]
    pub fn maps(&self, pe: usize) -> bool {
        self.is_mapped(pe)
    }

    /// Copies, in stream order, `n` elements of `width` bytes between `local`, which this PE's GPU reaches, and what `pe`,
    /// of another host, has at `remote` of its heap: an offset, and bytes from one element to the next. `puts`: from here.
    ///
    /// # Safety
    /// They are at both places until the stream has come to it.
    #[doc(hidden)]
    pub unsafe fn copy_over_hosts(
        &self,
        stream: &Stream,
        puts: bool,
        local: (u64, usize),
        remote: (usize, usize),
        (n, width): (usize, usize),
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let way = if puts { Way::Put } else { Way::Get };
        if (local.1, remote.1) == (width, width) {
            // SAFETY: by the caller.
            return unsafe { self.routed_copy(stream, way, (local.0, remote.0), n * width, pe) };
        }
        let local: Strided = local;
        // SAFETY: by the caller.
        unsafe { self.routed_strided(stream, way, local, remote, (n, width), pe) }
    }

    /// Lets processes that share a GPU wait for one another in its kernels: they then go on only when the driver has
    /// changed from one process to the other, thousands of times slower than on GPUs of their own.
    #[doc(hidden)]
    pub fn let_processes_share_gpus(&mut self) {
        self.processes_may_share = true;
    }

    /// Two PEs that share a GPU, if any do; the same answer on every PE.
    #[doc(hidden)]
    pub fn two_on_a_gpu(&self) -> Option<(usize, usize)> {
        self.shared_gpu()
    }

    /// Bytes that a team of `size` PEs needs at [`DeviceTeam::at`].
    #[doc(hidden)]
    pub fn team_bytes(&self, size: usize) -> usize {
        DeviceTeam::bytes(size, self.multiprocessors())
    }
}

impl DeviceTeam {
    /// The team of `size` PEs from `start` on, `stride` apart, whose memory is at heap offset `place`, at a multiple of
    /// 128, the same on all its PEs: [`DeviceWorld::team_bytes`] zero bytes on each of them, which nothing else uses.
    /// `None` if this PE is not in it.
    #[doc(hidden)]
    pub fn at(
        heap: &DeviceHeap<'_>,
        (start, stride, size): (usize, usize, usize),
        place: usize,
    ) -> Option<Self> {
        Self::of_parts(heap, start, stride, size, place)
    }

    /// The team as kernels know it.
    #[doc(hidden)]
    pub fn state_bytes(&self) -> [u8; TEAM_BYTES] {
        bytemuck::cast(self.state())
    }
}

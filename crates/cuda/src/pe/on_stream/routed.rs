//! Copies from and to PEs of other hosts, by kernels that ask the thread beside them ([`crate::pe::route`]).
#![allow(unsafe_code)] // Launches kernels of this crate.

use crate::driver::stream::Stream;
use crate::pe::error::DeviceWorldError;
use crate::pe::world::DeviceWorld;

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From this PE.
    Put,
    /// To this PE.
    Get,
}

/// Elements at an address: the first one's, and bytes from one to the next.
pub(crate) type Strided = (u64, usize);

impl DeviceWorld<'_> {
    /// Copies `bytes` bytes between `local`, which this PE's GPU reaches, and what `pe`, of another host, has at `offset` of
    /// its heap.
    ///
    /// # Safety
    /// So many bytes are at both places until the stream has come to it.
    pub(crate) unsafe fn routed_copy(
        &self,
        stream: &Stream,
        way: Way,
        (local, offset): (u64, usize),
        bytes: usize,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        if bytes == 0 {
            return Ok(());
        }
        let (kernels, remote) = (
            self.kernels(),
            self.heap().address(offset, self.pe().my_pe()),
        );
        let routed = kernels
            .routed
            .as_ref()
            .expect("a world of several hosts has them");
        let args = (
            remote,
            local,
            bytes as u64,
            pe as i32,
            i32::from(way == Way::Put),
        );
        // SAFETY: the parameters are (void*, void*, u64, i32, i32); the memory is the caller's promise.
        unsafe { kernels.launch(&routed.copy, (1, 1), stream, args) }
    }

    /// The same with `n` elements of `width` bytes; the remote ones begin at an offset of the heap.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn routed_strided(
        &self,
        stream: &Stream,
        way: Way,
        (local, local_stride): Strided,
        (offset, remote_stride): (usize, usize),
        (n, width): (usize, usize),
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        if n == 0 || width == 0 {
            return Ok(());
        }
        let (kernels, remote) = (
            self.kernels(),
            self.heap().address(offset, self.pe().my_pe()),
        );
        let routed = kernels
            .routed
            .as_ref()
            .expect("a world of several hosts has them");
        let args = (
            remote,
            remote_stride as u64,
            local,
            local_stride as u64,
            width as u64,
            n as u64,
            pe as i32,
            i32::from(way == Way::Put),
        );
        // SAFETY: the parameters are (void*, u64, void*, u64, u64, u64, i32, i32); the memory is the caller's promise.
        unsafe { kernels.launch(&routed.strided, (1, 1), stream, args) }
    }

    /// Holds the stream's later work back until what this PE has put is there, also at PEs of other hosts, to which a put is
    /// on its way when the stream goes on. In a world of one host a stream's order is enough, and this does nothing.
    pub fn quiet_on_stream(&self, stream: &Stream) -> Result<(), DeviceWorldError> {
        if self.is_of_one_host() {
            return Ok(());
        }
        let kernels = self.kernels();
        let routed = kernels
            .routed
            .as_ref()
            .expect("a world of several hosts has them");
        // SAFETY: no parameters.
        unsafe { kernels.launch(&routed.quiet, (1, 1), stream, ()) }
    }
}

//! Signals by address.

use super::Raw;
use crate::transport::message::Op;

/// How a signal changes the signal word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalOp {
    /// The word becomes the given value.
    Set,
    /// The given value is added, wrapping.
    Add,
}

impl From<SignalOp> for Op {
    fn from(op: SignalOp) -> Self {
        match op {
            SignalOp::Set => Self::Set,
            SignalOp::Add => Self::Add,
        }
    }
}

/// Signals.
impl Raw<'_> {
    /// As [`Pe::put_signal`](crate::Pe::put_signal); `dest` and `signal` are symmetric.
    ///
    /// # Safety
    /// See the [module](super).
    #[inline]
    #[allow(clippy::too_many_arguments)] // those of the operation
    pub unsafe fn put_signal(
        self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
        signal: *mut u64,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) {
        // SAFETY: by the caller.
        unsafe {
            if self.endpoint.peer(pe).heap.is_mapped() {
                self.put(dest, source, bytes, pe);
                return self.signal(signal, value, op, pe);
            }
            if bytes > 0 {
                let _ = self.endpoint.locate_bytes(dest.addr(), bytes, pe);
            }
            let data = (self.endpoint.position(dest.addr()), source, bytes);
            self.endpoint
                .remote_put_signal(pe, data, self.remote_signal(signal, value, op, pe));
        }
    }

    /// As [`Pe::signal`](crate::Pe::signal).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline]
    pub unsafe fn signal(self, signal: *mut u64, value: u64, op: SignalOp, pe: usize) {
        if !self.endpoint.peer(pe).heap.is_mapped() {
            let signal = self.remote_signal(signal, value, op, pe);
            return self.endpoint.remote_signal(pe, signal);
        }
        // Atomic and at least Release, as argued in `Pe::signal`.
        // SAFETY: by the caller.
        unsafe {
            match op {
                SignalOp::Set => self.atomic_set(signal, value, pe),
                SignalOp::Add => {
                    self.atomic_fetch_add(signal, value, pe);
                }
            }
        }
    }

    /// A signal, for messages.
    fn remote_signal(
        self,
        signal: *mut u64,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> (usize, Op, u64) {
        let _ = self
            .endpoint
            .locate_bytes(signal.addr(), size_of::<u64>(), pe);
        (self.endpoint.position(signal.addr()), op.into(), value)
    }

    /// As [`Pe::signal_fetch`](crate::Pe::signal_fetch).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline]
    pub unsafe fn signal_fetch(self, signal: *const u64) -> u64 {
        // SAFETY: by the caller.
        unsafe { self.atomic_fetch(signal, self.endpoint.my_pe()) }
    }
}

//! A thread that serves a PE beside its program, such as the one that carries what the PE's GPU sends: it puts to PEs of
//! other hosts and reads what they put here.

use crate::transport::message::{Head, Kind, Op};
use crate::transport::remote::{DeliveryError, Wire};
use crate::wait::sync::Ordering;
use crate::world::mapped::Mapped;
use crate::world::membership::Membership;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A PE's way to the PEs of other hosts, which does not need the [`Pe`](crate::Pe): it keeps the world's memory mapped.
/// Positions are byte offsets in the symmetric heap of the host's memory.
pub struct Courier {
    world: Arc<Mapped>,
    wire: Arc<Wire>,
    me: usize,
}

impl Courier {
    pub(crate) fn new(world: Arc<Mapped>, wire: Arc<Wire>, me: usize) -> Self {
        Self { world, wire, me }
    }

    /// The PE it belongs to.
    pub fn my_pe(&self) -> usize {
        self.me
    }

    /// Whether `pe` is on another host. Panics if it does not exist.
    pub fn is_remote(&self, pe: usize) -> bool {
        self.world.hosts.of(pe) != self.world.hosts.of(self.me)
    }

    /// Who is still there.
    pub fn membership(&self) -> Membership {
        Membership::new(&self.world, self.me)
    }

    /// Stores `bytes` at `position` of `pe`, which is on another host, then sets the word at `signal` there: who sees the
    /// word (acquire) sees the bytes. All that this PE sent there before comes before.
    ///
    /// # Errors
    /// What has been sent may not arrive.
    pub fn put_signal(
        &self,
        pe: usize,
        (position, bytes): (usize, &[u8]),
        (signal, value): (usize, u64),
    ) -> Result<(), DeliveryError> {
        let head = Head {
            pe: pe as u32,
            position: position as u64,
            signal_or_stride: signal as u64,
            operand: value,
            ..Head::new(Kind::PutSignal).with_op(Op::Set)
        };
        self.wire.send(self.world.hosts.of(pe), head, bytes, true);
        self.wire
            .lost
            .get()
            .map_or(Ok(()), |lost| Err(lost.clone()))
    }

    /// The word at `position` of this PE. Acquire.
    ///
    /// # Panics
    /// If there is none.
    pub fn word(&self, position: usize) -> u64 {
        let at = self.at(position, size_of::<u64>()).cast::<AtomicU64>();
        assert!(at.is_aligned(), "a word at position {position}");
        // SAFETY: an aligned word of the heap, which stays mapped; other hosts' PEs change it with atomics.
        #[allow(unsafe_code)]
        unsafe { at.as_ref() }.load(Ordering::Acquire)
    }

    /// What is at `position` of this PE.
    ///
    /// # Panics
    /// If the heap has no such bytes.
    pub fn read(&self, position: usize, to: &mut [u8]) {
        let from = self.at(position, to.len());
        // SAFETY: so many bytes lie there; `to` is another buffer. Whoever writes them meanwhile does so without a word that
        // says that they are there, so what is read then is not used.
        #[allow(unsafe_code)]
        unsafe {
            crate::memory::copy::get_bytes(to.as_mut_ptr(), from.as_ptr(), to.len());
        }
    }

    /// Where this PE has the `bytes` bytes at `position`, as long as the courier lives. Other PEs may write there at any
    /// time.
    ///
    /// # Panics
    /// If the heap has no such bytes.
    pub fn at(&self, position: usize, bytes: usize) -> NonNull<u8> {
        let place = self.world.place(self.me, position, bytes);
        place.unwrap_or_else(|| panic!("{bytes} bytes at position {position} of the heap"))
    }
}

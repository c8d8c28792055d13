//! Making memory of a program symmetric.
#![allow(unsafe_code)] // passes a promise of the caller on

use crate::memory::position::STATIC;
use crate::memory::region::Region;
use crate::memory::segment::Segment;
use crate::team::call::Kind;
use crate::world::endpoint::Endpoint;
use crate::world::fds::ShareError;
use rustix::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

impl Endpoint {
    /// See [`Pe::register_segment`](crate::Pe::register_segment).
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn register_segment(
        &mut self,
        base: NonNull<u8>,
        len: usize,
        memory: BorrowedFd<'_>,
    ) -> Result<(), ShareError> {
        self.rendezvous(Kind::Agree, 0, len as u64)?;
        let me = self.my_pe();
        let mut parts = vec![Some(base); self.n_pes()].into_boxed_slice();
        let theirs = self.share_fd(memory)?;
        let mut map = || -> std::io::Result<Vec<Region>> {
            let mut regions = Vec::new();
            for (pe, theirs) in theirs.iter().enumerate().filter(|&(pe, _)| pe != me) {
                if (rustix::fs::fstat(theirs)?.st_size as usize) < len {
                    return Err(rustix::io::Errno::INVAL.into());
                }
                let region = Region::shared(theirs.as_fd(), len)?;
                parts[pe] = Some(region.base());
                regions.push(region);
            }
            Ok(regions)
        };
        let regions = map().map_err(ShareError::Pass);
        let world = self.world();
        let turn = world.turn(Kind::Share)?;
        let regions = self.all_or_none(&world, &turn, self.n_pes(), regions)?;
        drop(turn);
        let last = self.segments.all.last();
        let position = last.map_or(STATIC.max(self.heap_bytes()), |last| {
            last.position + last.len
        });
        if self.segments.all.is_empty() {
            for (peer, &part) in self.peers_mut().iter_mut().zip(&parts) {
                peer.segment = part;
            }
            self.segments.first_start = base.addr().get();
            self.segments.first_len = len;
        }
        self.segments.all.push(Segment {
            start: base.addr().get(),
            len,
            position,
            parts,
            _regions: regions,
        });
        Ok(())
    }
}

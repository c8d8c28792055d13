//! Making memory of a program symmetric.
#![allow(unsafe_code)] // passes a promise of the caller on

use crate::memory::position::STATIC;
use crate::memory::region::Region;
use crate::memory::segment::Segment;
use crate::team::collective_call::Kind;
use crate::world::endpoint::{Endpoint, Piece};
use crate::world::fds::ShareError;
use crate::world::lifeline::send_segment;
use crate::world::mapped::{Mapped, Part};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::time::Duration;

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
        let last = self.segments.all.last();
        let position = last.map_or(STATIC.max(self.heap_bytes()), |last| {
            last.position + last.len
        });
        let mut parts = vec![None; self.n_pes()].into_boxed_slice();
        parts[me] = Some(base);
        let neighbours = self.shared_team();
        // What fails here is told to all below.
        let theirs = self.share_fd_in(&neighbours, memory);
        let map = |theirs: Vec<OwnedFd>| -> Result<Vec<Region>, ShareError> {
            let mut regions = Vec::new();
            for (member, theirs) in theirs.iter().enumerate() {
                let pe = neighbours.world_pe(member);
                if pe == me {
                    continue;
                }
                let region = segment(theirs.as_fd(), len).map_err(ShareError::Pass)?;
                parts[pe] = Some(region.base());
                regions.push(region);
            }
            Ok(regions)
        };
        let regions = theirs.and_then(map).and_then(|regions| {
            // SAFETY: by the caller.
            unsafe { self.show_agent(base, (position, len), memory)? };
            Ok(regions)
        });
        let world = self.world();
        let turn = world.turn(Kind::Share)?;
        let regions = self.all_or_none(&world, &turn, self.n_pes(), regions)?;
        drop(turn);
        if self.segments.all.is_empty() {
            for (peer, &part) in self.peers_mut().iter_mut().zip(&parts) {
                peer.segment = Piece::new(part, len);
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

    /// Shows the agent of this host the segment of `len` bytes at `base`, so that PEs of other hosts can reach it.
    ///
    /// # Safety
    /// As [`register_segment`](Self::register_segment).
    unsafe fn show_agent(
        &self,
        base: NonNull<u8>,
        (position, len): (usize, usize),
        memory: BorrowedFd<'_>,
    ) -> Result<(), ShareError> {
        if self.remote.is_none() {
            return Ok(());
        }
        let me = self.my_pe();
        let Some(launcher) = self.launcher() else {
            // A thread of this process.
            self.add_part(Part {
                pe: me,
                position,
                len,
                base,
                _region: None,
            });
            return Ok(());
        };
        let (control, before) = (self.control().pe(me), self.segments.all.len() as u32);
        let sent = send_segment(launcher, me, position, len, memory);
        sent.map_err(|error| ShareError::Pass(error.into()))?;
        loop {
            match control.segments_mapped() {
                Some(mapped) if mapped > before => return Ok(()),
                Some(_) if self.control().ended_by().is_none() => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                _ => return Err(ShareError::Agent { me }),
            }
        }
    }
}

/// Maps the first `len` bytes of another PE's segment.
pub(crate) fn segment(memory: BorrowedFd<'_>, len: usize) -> std::io::Result<Region> {
    if (rustix::fs::fstat(memory)?.st_size as usize) < len {
        return Err(rustix::io::Errno::INVAL.into());
    }
    Ok(Region::shared(memory, len)?)
}

/// For the agent: maps the `len` bytes of `memory` that `pe` has at `position`, and tells the PE whether it could.
pub(crate) fn agent_maps(
    agent: &Mapped,
    pe: usize,
    (position, len): (usize, usize),
    memory: BorrowedFd<'_>,
) {
    let mapped = segment(memory, len).map(|region| {
        agent.add_part(Part {
            pe,
            position,
            len,
            base: region.base(),
            _region: Some(region),
        });
    });
    agent.control.pe(pe).set_segment_mapped(mapped.is_ok());
}

//! How arrivals travel between hosts.
//!
//! Every host keeps arrivals of all PEs, and PEs look at these alone. On each host one PE of the team, the *leader*, waits
//! for those of its host and sends their arrivals, with tags and payloads, to other hosts, whose agents write
//! them down. With more than two hosts they go by dissemination (Hensgen, Finkel and Manber, "Two algorithms for barrier
//! synchronization", 1988): in round k each leader sends all it knows to the host 2^k further and hears from the
//! host 2^k before, so that after the logarithm of their number all know all, and a leader talks to so many hosts only.

use crate::team::Team;
use crate::transport::message::Arrival;
use crate::world::control::TeamControl;
use crate::world::endpoint::Endpoint;
use std::ops::Range;

impl Team<'_> {
    /// This PE has come to rendezvous `epoch`. The leader of its host sends what is known on; others wake the leader.
    /// `wait` waits until a member has come.
    #[cold]
    pub(crate) fn arrive_elsewhere<E>(
        &self,
        epoch: u64,
        wait: impl Fn(usize, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let hosts = self.members_by_host();
        let mine = self.endpoint.hosts().of(self.world_pe(self.my_pe()));
        let Some(me) = hosts.iter().position(|(host, _)| *host == mine) else {
            return Ok(());
        };
        let locals = &hosts[me].1;
        if locals[0] != self.my_pe() {
            let leader = self.endpoint.peer(self.world_pe(locals[0]));
            (leader.control().parker).notify_arrival(self.endpoint.shared());
            return Ok(());
        }
        for &member in &locals[1..] {
            wait(member, epoch)?;
        }
        let n = hosts.len();
        let back = |steps: Range<usize>| steps.flat_map(|step| &hosts[(me + n - step) % n].1);
        let mut known = 1;
        while known < n {
            let further = known.min(n - known);
            let bundle = self.bundle(epoch, back(0..further).copied());
            let (to, _) = hosts[(me + known) % n];
            self.endpoint.remote_arrive(to, &bundle);
            if known + further < n {
                for &member in back(known..known + further) {
                    wait(member, epoch)?;
                }
            }
            known += further;
        }
        Ok(())
    }

    /// The hosts of the team's members, each with these.
    fn members_by_host(&self) -> Vec<(usize, Vec<usize>)> {
        let mut hosts: Vec<(usize, Vec<usize>)> = Vec::new();
        for member in 0..self.n_pes() {
            let host = self.endpoint.hosts().of(self.world_pe(member));
            match hosts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, members)) => members.push(member),
                None => hosts.push((host, vec![member])),
            }
        }
        hosts
    }

    /// The arrivals of `members`, which have come, for an agent.
    fn bundle(&self, epoch: u64, members: impl Iterator<Item = usize>) -> Vec<u8> {
        let mut bundle = Vec::new();
        for member in members {
            let (pe, control) = (self.world_pe(member), self.control(member));
            // SAFETY: this PE or one that it has seen arrive, and this PE does not come to the next rendezvous before.
            #[allow(unsafe_code)]
            unsafe {
                add(&mut bundle, (pe, self.index), control, epoch);
            }
        }
        bundle
    }
}

impl Endpoint {
    /// This PE's last arrival at each of its teams, for agents. What it sent of them may still be on its way by other
    /// hosts when it leaves; who waits for it must not hear that it has left before.
    ///
    /// # Safety
    /// No thread of this PE is in a collective.
    #[cold]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn last_arrivals(&self) -> Vec<u8> {
        let mut bundle = Vec::new();
        for index in self.team_indices().used() {
            let control = &self.control().pe(self.my_pe()).teams[index];
            let epoch = control.arrivals.epoch();
            if epoch > 0 {
                // SAFETY: this PE's own, which nobody writes now, by the caller.
                unsafe { add(&mut bundle, (self.my_pe(), index), control, epoch) };
            }
        }
        bundle
    }
}

/// Adds how `pe` arrived at rendezvous `epoch` of the team at `index`.
///
/// # Safety
/// The calling thread's PE is `pe`, or has seen it arrive; and it comes to the next rendezvous there only afterwards.
#[allow(unsafe_code)]
unsafe fn add(
    bundle: &mut Vec<u8>,
    (pe, index): (usize, usize),
    control: &TeamControl,
    epoch: u64,
) {
    // SAFETY: by the caller.
    let (tag, payload, in_slot) = unsafe { control.arrivals.shown(epoch) };
    let arrival = Arrival {
        pe: pe as u64,
        index: index as u64,
        epoch,
        tag: tag.tag,
        detail: tag.detail,
        in_slot: in_slot as u64,
        payload,
    };
    bundle.extend_from_slice(bytemuck::bytes_of(&arrival));
    // SAFETY: as above; a slot has room for what its PE said.
    let slot = unsafe { std::slice::from_raw_parts(control.slot(epoch), in_slot) };
    bundle.extend_from_slice(slot);
}

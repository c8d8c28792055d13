//! How arrivals travel between hosts.
//!
//! Every host keeps arrivals of all PEs, and PEs look at these alone. On each host one PE of the team, the *leader*, waits
//! for those of its host and sends their arrivals, with tags and payloads, to other hosts, whose agents write
//! them down. With more than two hosts they go by dissemination (Hensgen, Finkel and Manber, "Two algorithms for barrier
//! synchronization", 1988): in round k each leader sends all it knows to the host 2^k further and hears from the
//! host 2^k before, so that after the logarithm of their number all know all, and a leader talks to so many hosts only.

use crate::team::Team;
use crate::transport::message::Arrival;
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
            let control = self.control(member);
            // SAFETY: this PE or one that it has seen arrive, and this PE does not come to the next rendezvous before.
            #[allow(unsafe_code)]
            let (tag, payload, in_slot) = unsafe { control.arrivals.shown(epoch) };
            let arrival = Arrival {
                pe: self.world_pe(member) as u64,
                index: self.index as u64,
                epoch,
                tag: tag.tag,
                detail: tag.detail,
                in_slot: in_slot as u64,
                payload,
            };
            bundle.extend_from_slice(bytemuck::bytes_of(&arrival));
            // SAFETY: as above; a slot has room for what its PE said.
            #[allow(unsafe_code)]
            let slot = unsafe { std::slice::from_raw_parts(control.slot(epoch), in_slot) };
            bundle.extend_from_slice(slot);
        }
        bundle
    }
}

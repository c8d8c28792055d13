//! How PEs that make a team without a parent find one another: each invites all of the world, and takes as members those that
//! invite it under the same id.
//!
//! Access rules
//! 1. `words[from * WORDS ..]`, `read[from]` and `refused[from]` of every PE are written by PE `from` alone, under its lock
//!    of `invitations`.
//! 2. The id of an invitation is written last (Release), and read first (Acquire): who sees it sees the rest. The count of
//!    what has come is raised after it, so who waits for that does not miss one.
//! 3. PE `from` writes its next invitation when all members have said that they have read this one, or when one of them has
//!    refused it. Others do not read what is not under their id. An id that is used again is another one, by how often its
//!    members have used it.
//! 4. A member says that it has read the others' invitations, or that it refuses, never both. So either all members make the
//!    team or none does. A refusal is there until its PE refuses again.

use crosswarp_shmem::{AllocError, Cmp, Pe, SignalOp, Sym};
use std::collections::HashMap;

/// An invitation: the id, this PE's number in the team, the team's size, and the handles it has free.
const WORDS: usize = 4;

/// See the [module](self).
pub(crate) struct Invitations {
    words: Sym<u64>,
    /// Counts what has come: invitations, what was read, refusals.
    came: Sym<u64>,
    /// For each PE, the id under which it has last read the invitations of all members.
    read: Sym<u64>,
    /// For each PE, the id that it has last refused.
    refused: Sym<u64>,
    /// How often this PE has used an id.
    uses: HashMap<u64, u64>,
}

impl Invitations {
    pub(crate) fn new(pe: &Pe) -> Result<Self, AllocError> {
        Ok(Self {
            words: pe.alloc_zeroed(WORDS * pe.n_pes())?,
            came: pe.alloc_zeroed(1)?,
            read: pe.alloc_zeroed(pe.n_pes())?,
            refused: pe.alloc_zeroed(pe.n_pes())?,
            uses: HashMap::new(),
        })
    }

    /// Invites all PEs, and waits for those that invite under the same id: by number in the team, PE of the world and free
    /// handles.
    pub(crate) fn exchange(
        &mut self,
        pe: &Pe,
        mine: [u64; WORDS],
    ) -> Result<Vec<(usize, u64)>, String> {
        /// Ids are random; so are those that lie so far apart.
        const APART: u64 = 0x9e37_79b9_7f4a_7c15;
        let [id, place, size, free] = mine;
        let uses = self.uses.entry(id).or_insert(0);
        let id = id.wrapping_add(uses.wrapping_mul(APART)).max(1);
        *uses += 1;
        for to in 0..pe.n_pes() {
            self.invite(pe, [id, place, size, free], to);
        }
        let members = self.wait(pe, |this| this.members(pe, id, size));
        let members = members.inspect_err(|_| {
            // Others may know all members, and wait for this one.
            for to in 0..pe.n_pes() {
                self.say(pe, &self.refused, id, to);
            }
        })?;
        for &(member, _) in &members {
            self.say(pe, &self.read, id, member);
        }
        self.wait(pe, |this| {
            let said = |word: &Sym<u64>, pe_of: usize| pe.signal_fetch(word.at(pe_of)) == id;
            let mut members = members.iter().map(|&(member, _)| member);
            if members.clone().all(|member| said(&this.read, member)) {
                return Ok(Some(()));
            }
            match members.find(|&member| said(&this.refused, member)) {
                Some(member) => Err(refusal_of(member)),
                None => Ok(None),
            }
        })?;
        Ok(members)
    }

    fn invite(&self, pe: &Pe, words: [u64; WORDS], to: usize) {
        let own = pe.my_pe() * WORDS;
        pe.put(self.words.range(own + 1..own + WORDS), &words[1..], to);
        pe.signal(self.words.at(own), words[0], SignalOp::Set, to);
        pe.signal(self.came.at(0), 1, SignalOp::Add, to);
    }

    /// Tells PE `to` by this PE's word of `words` that it is about `id`.
    fn say(&self, pe: &Pe, words: &Sym<u64>, id: u64, to: usize) {
        pe.signal(words.at(pe.my_pe()), id, SignalOp::Set, to);
        pe.signal(self.came.at(0), 1, SignalOp::Add, to);
    }

    /// Looks whenever something has come, until there is what is looked for.
    fn wait<R>(
        &self,
        pe: &Pe,
        look: impl Fn(&Self) -> Result<Option<R>, String>,
    ) -> Result<R, String> {
        loop {
            let seen = pe.signal_fetch(self.came.at(0));
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            pe.signal_wait_until(self.came.at(0), Cmp::Ne, seen)
                .map_err(|error| error.to_string())?;
        }
    }

    /// The members that have invited under `id`, if all `size` have.
    fn members(&self, pe: &Pe, id: u64, size: u64) -> Result<Option<Vec<(usize, u64)>>, String> {
        let mut members = vec![None; size as usize];
        for from in 0..pe.n_pes() {
            if pe.signal_fetch(self.refused.at(from)) == id {
                return Err(refusal_of(from));
            }
            let at = from * WORDS;
            if pe.signal_fetch(self.words.at(at)) != id {
                continue;
            }
            let mut words = [id, 0, 0, 0];
            pe.read(&mut words[1..], self.words.range(at + 1..at + WORDS));
            if words[2] != size {
                let other = words[2];
                return Err(format!("PE {from} says {other} PEs, this one {size}"));
            }
            match members.get_mut(words[1] as usize) {
                Some(place @ None) => *place = Some((from, words[3])),
                _ => {
                    return Err(format!(
                        "two PEs, {from} one of them, are number {}",
                        words[1]
                    ));
                }
            }
        }
        Ok(members.into_iter().collect())
    }
}

fn refusal_of(pe: usize) -> String {
    format!("PE {pe} refuses, by what others say of the team")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswarp_shmem::ThreadWorld;
    use std::time::Duration;

    const ID: u64 = 5;
    /// What has not come by then never will.
    const WATCHDOG: Duration = Duration::from_secs(60);

    fn in_a_world(n: usize, body: impl Fn(&Pe, &mut Invitations) + Sync) {
        let world = ThreadWorld::new(n)
            .heap_bytes(1 << 20)
            .wait_timeout(WATCHDOG);
        let played = world.spmd(|pe| {
            let mut invitations = Invitations::new(pe).unwrap();
            pe.barrier().unwrap();
            body(pe, &mut invitations);
            pe.barrier().unwrap();
        });
        played.unwrap();
    }

    /// PE 2 invites PE 0 under another size, and PE 1 not at all. Of these two, `second` begins when `after` says that it may.
    fn one_sees_another_size(second: usize, after: impl Fn(&Pe, &Invitations) + Sync) {
        in_a_world(3, |pe, invitations| {
            let me = pe.my_pe();
            if me == 2 {
                invitations.invite(pe, [ID, 2, 3, 1], 0);
            }
            pe.barrier().unwrap();
            if me == second {
                after(pe, invitations);
            }
            if me < 2 {
                let failed = invitations.exchange(pe, [ID, me as u64, 2, 1]);
                let expected = match me {
                    0 => "PE 2 says 3 PEs, this one 2".to_owned(),
                    _ => refusal_of(0),
                };
                assert_eq!(failed.unwrap_err(), expected);
                // They go on, under another id and under the same.
                for id in [ID + 1, ID] {
                    let members = invitations.exchange(pe, [id, me as u64, 2, 1]);
                    assert_eq!(members.unwrap(), [(0, 1), (1, 1)]);
                }
            }
        });
    }

    #[test]
    fn who_waits_for_members_hears_of_a_refusal() {
        one_sees_another_size(0, |pe, invitations| {
            let word = invitations.words.at(WORDS);
            pe.signal_wait_until(word, Cmp::Eq, ID).unwrap();
        });
    }

    /// PE 0 may be at its next team.
    #[test]
    fn who_comes_later_hears_of_a_refusal() {
        one_sees_another_size(1, |pe, invitations| {
            let word = invitations.refused.at(0);
            pe.signal_wait_until(word, Cmp::Eq, ID).unwrap();
        });
    }

    #[test]
    fn who_knows_all_members_hears_of_a_refusal() {
        in_a_world(2, |pe, invitations| {
            if pe.my_pe() == 0 {
                invitations.invite(pe, [ID, 0, 2, 1], 1);
                let word = invitations.read.at(1);
                pe.signal_wait_until(word, Cmp::Eq, ID).unwrap();
                invitations.say(pe, &invitations.refused, ID, 1);
            } else {
                let failed = invitations.exchange(pe, [ID, 1, 2, 1]);
                assert_eq!(failed.unwrap_err(), refusal_of(0));
            }
        });
    }
}

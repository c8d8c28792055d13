//! How PEs that make a team without a parent find one another: each invites all of the world, and takes as members those that
//! invite it under the same id.
//!
//! Access rules
//! 1. `words[from * WORDS ..]` of every PE is written by PE `from` alone, under its lock of `invitations`.
//! 2. The id of an invitation is written last (Release), and read first (Acquire): who sees it sees the rest. The count of
//!    what has come is raised after it, so who waits for that does not miss one.
//! 3. PE `from` writes its next invitation when all members have said that they have read this one. Others do not read
//!    what is not under their id. An id that is used again is another one, by how often its members have used it.

use crosswarp_shmem::{AllocError, Cmp, Pe, SignalOp, Sym};
use std::collections::HashMap;

/// An invitation: the id, this PE's number in the team, the team's size, and the handles it has free.
const WORDS: usize = 4;

/// See the [module](self).
pub(crate) struct Invitations {
    words: Sym<u64>,
    /// Counts the invitations that have come.
    came: Sym<u64>,
    /// Counts how often one of this PE's was read by a member, and how often that will have been.
    read: Sym<u64>,
    reads: u64,
    /// How often this PE has used an id.
    uses: HashMap<u64, u64>,
}

impl Invitations {
    pub(crate) fn new(pe: &Pe) -> Result<Self, AllocError> {
        Ok(Self {
            words: pe.alloc_zeroed(WORDS * pe.n_pes())?,
            came: pe.alloc_zeroed(1)?,
            read: pe.alloc_zeroed(1)?,
            reads: 0,
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
        let [id, _, size, _] = mine;
        let uses = self.uses.entry(id).or_insert(0);
        let id = id.wrapping_add(uses.wrapping_mul(APART)).max(1);
        *uses += 1;
        let own = pe.my_pe() * WORDS;
        for to in 0..pe.n_pes() {
            pe.put(self.words.range(own + 1..own + WORDS), &mine[1..], to);
            pe.signal(self.words.at(own), id, SignalOp::Set, to);
            pe.signal(self.came.at(0), 1, SignalOp::Add, to);
        }
        let mut members = vec![None; size as usize];
        loop {
            let seen = pe.signal_fetch(self.came.at(0));
            for from in 0..pe.n_pes() {
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
                    Some(Some((known, _))) if *known == from => {}
                    _ => {
                        return Err(format!(
                            "two PEs, {from} one of them, are number {}",
                            words[1]
                        ));
                    }
                }
            }
            if let Some(all) = members.iter().copied().collect::<Option<Vec<_>>>() {
                for &(member, _) in &all {
                    pe.signal(self.read.at(0), 1, SignalOp::Add, member);
                }
                self.reads += size;
                pe.signal_wait_until(self.read.at(0), Cmp::Ge, self.reads)
                    .map_err(|error| error.to_string())?;
                return Ok(all);
            }
            pe.signal_wait_until(self.came.at(0), Cmp::Ne, seen)
                .map_err(|error| error.to_string())?;
        }
    }
}

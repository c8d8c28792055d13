//! Which PEs of a world run, have left or have failed.

use crate::world::control::PeState;
use crate::world::mapped::Mapped;
use std::sync::Arc;

/// Who of a world is still there, as one PE sees it. It keeps the world's memory mapped and does not need the
/// [`Pe`](crate::Pe), so a thread may look at it for as long as it likes.
#[derive(Clone, Debug)]
pub struct Membership {
    world: Arc<Mapped>,
    me: usize,
}

impl Membership {
    /// As PE `me` sees it.
    pub(crate) fn new(world: &Arc<Mapped>, me: usize) -> Self {
        Self {
            world: Arc::clone(world),
            me,
        }
    }

    /// Number of the PE that looks.
    pub fn my_pe(&self) -> usize {
        self.me
    }

    /// Number of PEs in the world.
    pub fn n_pes(&self) -> usize {
        self.world.control.n_pes()
    }

    /// A PE that has failed, and with it the world.
    pub fn failed(&self) -> Option<usize> {
        self.world.control.ended_by()
    }

    /// Whether `pe` has left the world in good order. Panics if it does not exist.
    pub fn has_left(&self, pe: usize) -> bool {
        self.world.control.pe(pe).state() == PeState::Finished
    }
}

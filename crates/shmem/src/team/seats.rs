//! Which seats of a PE are free.

use crate::team::shape::Shape;
use crate::world::control::SEAT_WORDS;
use std::collections::HashMap;

/// Seat of the world.
pub(crate) const WORLD: usize = 0;
/// Seat of the shared team.
pub(crate) const SHARED: usize = 1;

/// What a PE knows of its own seats.
#[derive(Debug)]
pub(crate) struct Seats {
    pub(crate) free: [u64; SEAT_WORDS],
    /// The largest epoch of any seat given back, after a team or instead of one.
    pub(crate) top: u64,
    /// Teams of active sets, which are never given back.
    pub(crate) active_sets: HashMap<Shape, usize>,
}

impl Default for Seats {
    fn default() -> Self {
        let mut free = [u64::MAX; SEAT_WORDS];
        free[0] &= !(1 << WORLD | 1 << SHARED);
        Self {
            free,
            top: 0,
            active_sets: HashMap::new(),
        }
    }
}

impl Seats {
    pub(crate) fn take(&mut self, seat: usize) -> bool {
        let (word, bit) = (&mut self.free[seat / 64], 1 << (seat % 64));
        let was_free = *word & bit != 0;
        *word &= !bit;
        was_free
    }

    pub(crate) fn give_back(&mut self, seat: usize, epoch: u64) {
        self.free[seat / 64] |= 1 << (seat % 64);
        self.top = self.top.max(epoch);
    }
}

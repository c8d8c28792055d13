//! Which team indices of a PE are free: those of its [`TeamControl`](crate::world::control::TeamControl)s.

use crate::team::shape::Shape;
use crate::world::control::INDEX_WORDS;
use std::collections::HashMap;

/// Index of the world.
pub(crate) const WORLD: usize = 0;
/// Index of the shared team.
pub(crate) const SHARED: usize = 1;

/// The free indices of one PE.
#[derive(Debug)]
pub(crate) struct TeamIndices {
    pub(crate) free: [u64; INDEX_WORDS],
    /// Those that have ever been taken.
    used: [u64; INDEX_WORDS],
    /// The largest epoch at any index given back, after a team or instead of one.
    pub(crate) top: u64,
    /// Teams of active sets, which are never given back.
    pub(crate) active_sets: HashMap<Shape, usize>,
}

impl Default for TeamIndices {
    fn default() -> Self {
        let mut free = [u64::MAX; INDEX_WORDS];
        free[0] &= !(1 << WORLD | 1 << SHARED);
        Self {
            free,
            used: free.map(|word| !word),
            top: 0,
            active_sets: HashMap::new(),
        }
    }
}

impl TeamIndices {
    pub(crate) fn take(&mut self, index: usize) -> bool {
        let (word, bit) = (&mut self.free[index / 64], 1 << (index % 64));
        let was_free = *word & bit != 0;
        *word &= !bit;
        self.used[index / 64] |= bit;
        was_free
    }

    /// Every index that a team has or had.
    pub(crate) fn used(&self) -> impl Iterator<Item = usize> {
        let indices = 0..64 * INDEX_WORDS;
        indices.filter(|index| self.used[index / 64] >> (index % 64) & 1 == 1)
    }

    pub(crate) fn give_back(&mut self, index: usize, epoch: u64) {
        self.free[index / 64] |= 1 << (index % 64);
        self.top = self.top.max(epoch);
    }
}

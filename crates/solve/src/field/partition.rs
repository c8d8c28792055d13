//! Which PE owns which part of the grid.

use std::ops::Range;

/// A grid of `total` rows (1-D: points) in leaves of `leaf` of them, dealt to PEs in order, as evenly as whole leaves
/// allow.
///
/// A last leaf of less than half a leaf goes with the one before it, so that nobody owns a sliver that would limit the
/// depth of the halos. PEs beyond the number of leaves own nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    total: usize,
    leaf: usize,
    shares: usize,
    active: usize,
}

impl Partition {
    /// Deals `total` rows to `n_pes` PEs.
    pub fn new(total: usize, leaf: usize, n_pes: usize) -> Partition {
        let shares = ((total + leaf - leaf / 2) / leaf).max(1);
        Partition {
            total,
            leaf,
            shares,
            active: n_pes.min(shares),
        }
    }

    /// All rows.
    pub fn total(&self) -> usize {
        self.total
    }

    /// PEs that own something: those numbered below this.
    pub fn active(&self) -> usize {
        self.active
    }

    /// The rows of `pe`.
    pub fn rows(&self, pe: usize) -> Range<usize> {
        if pe >= self.active {
            return self.total..self.total;
        }
        let start = |pe: usize| {
            if pe == self.active {
                self.total
            } else {
                pe * self.shares / self.active * self.leaf
            }
        };
        start(pe)..start(pe + 1)
    }

    /// The deepest halo that all neighbours can deliver from their own rows; `wrap`: the grid is periodic, with one
    /// ghost row at each end.
    pub fn max_depth(&self, wrap: bool) -> usize {
        if self.active == 1 {
            return usize::MAX;
        }
        (0..self.active)
            .map(|pe| {
                let at_end = pe == 0 || pe + 1 == self.active;
                // The ghost row, and the row it copies, are sent besides the halo.
                self.rows(pe).len() - if wrap && at_end { 2 } else { 0 }
            })
            .min()
            .unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_leaves_in_order_and_cover_the_grid() {
        for total in [3, 15, 16, 17, 23, 24, 31, 97, 128, 1000] {
            for n_pes in 1..12 {
                let partition = Partition::new(total, 16, n_pes);
                let mut next = 0;
                for pe in 0..n_pes {
                    let rows = partition.rows(pe);
                    if rows.is_empty() {
                        assert!(pe >= partition.active());
                        continue;
                    }
                    assert_eq!(rows.start, next);
                    assert_eq!(rows.start % 16, 0);
                    next = rows.end;
                }
                assert_eq!(next, total);
                assert!(
                    partition.max_depth(true) >= 6,
                    "{total} rows on {n_pes} PEs"
                );
            }
        }
    }

    #[test]
    fn a_sliver_goes_with_the_leaf_before() {
        assert_eq!(Partition::new(33, 16, 7).active(), 2);
        assert_eq!(Partition::new(33, 16, 2).rows(1), 16..33);
        assert_eq!(Partition::new(40, 16, 7).active(), 3);
    }
}

//! What travels to whom.

use std::ops::Range;

/// How many rows an exchange moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Across an edge inside the grid: the depth of the halo.
    pub inner: usize,
    /// Across the ends of a grid that wraps: the ghost row and the halo beyond it.
    pub wrapped: usize,
}

impl Rows {
    /// The halo of a pass of `depth` sweeps.
    pub(crate) fn halo(depth: usize) -> Rows {
        Rows {
            inner: depth,
            wrapped: depth + 1,
        }
    }

    /// The halo of the very first sweep, which leaves the ghosts as they were given.
    pub(crate) const FIRST: Rows = Rows {
        inner: 1,
        wrapped: 0,
    };
    /// The ghosts alone.
    pub(crate) const GHOSTS: Rows = Rows {
        inner: 0,
        wrapped: 1,
    };
}

/// The sides of a PE's rows: which buffer and which signal the neighbour on that side writes.
pub(super) const ABOVE: usize = 0;
/// As [`ABOVE`].
pub(super) const BELOW: usize = 1;

/// The other side.
pub(super) fn opposite(side: usize) -> usize {
    1 - side
}

/// What travels on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// The neighbour.
    pub pe: usize,
    /// Rows that go, and rows that come.
    pub count: usize,
    /// The first row that goes.
    pub send: isize,
    /// The first row that comes.
    pub receive: isize,
}

/// This PE's place among its neighbours.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The rows it owns.
    pub own: Range<usize>,
    /// Rows of the grid.
    pub total: usize,
    /// PEs that own rows; the first ones.
    pub active: usize,
    /// Whether the rows wrap around.
    pub wraps: bool,
}

impl Place {
    /// What PE `me`, which owns rows beside another that does, sends and receives [`ABOVE`] and [`BELOW`].
    pub(super) fn edges(&self, me: usize, rows: Rows) -> [Option<Edge>; 2] {
        let count = |wrapped: bool| if wrapped { rows.wrapped } else { rows.inner };
        let mut edges = [None; 2];
        if me > 0 || self.wraps {
            let (wrapped, start) = (me == 0, self.own.start as isize);
            // The row that the ghost below copies is row 1.
            let (send, end) = if wrapped { (1, 1) } else { (start, start) };
            edges[ABOVE] = Some(Edge {
                pe: (me + self.active - 1) % self.active,
                count: count(wrapped),
                send,
                receive: end - count(wrapped) as isize,
            });
        }
        if me + 1 < self.active || self.wraps {
            let wrapped = me + 1 == self.active;
            let end = if wrapped {
                self.total - 1
            } else {
                self.own.end
            };
            edges[BELOW] = Some(Edge {
                pe: (me + 1) % self.active,
                count: count(wrapped),
                send: end as isize - count(wrapped) as isize,
                receive: end as isize,
            });
        }
        edges
    }
}

/// The inner row (or column) that number `at` of a periodic grid of `total` is a copy of.
pub(crate) fn image(at: isize, total: usize) -> usize {
    1 + (at - 1).rem_euclid(total as isize - 2) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(pe: usize, count: usize, send: isize, receive: isize) -> Option<Edge> {
        Some(Edge {
            pe,
            count,
            send,
            receive,
        })
    }

    #[test]
    fn points_beyond_2_to_the_31_have_their_own_numbers() {
        // A line of 2 · 2³² points on two PEs.
        let cut = 1usize << 32;
        let at = cut as isize;
        let place = |own: Range<usize>| Place {
            own,
            total: 2 * cut,
            active: 2,
            wraps: false,
        };
        let rows = Rows::halo(64);
        let left = place(0..cut).edges(0, rows);
        assert_eq!(left, [None, edge(1, 64, at - 64, at)]);
        let right = place(cut..2 * cut).edges(1, rows);
        assert_eq!(right, [edge(0, 64, at, at - 64), None]);
    }

    #[test]
    fn ends_that_wrap_around_exchange_one_row_more() {
        let place = |own: Range<usize>| Place {
            own,
            total: 100,
            active: 2,
            wraps: true,
        };
        let rows = Rows::halo(6);
        let upper = place(0..48).edges(0, rows);
        assert_eq!(upper, [edge(1, 7, 1, -6), edge(1, 6, 42, 48)]);
        let lower = place(48..100).edges(1, rows);
        assert_eq!(lower, [edge(0, 6, 48, 42), edge(0, 7, 92, 99)]);
    }
}

//! The extent of a level, and how its rows are dealt to PEs.

use std::ops::Range;

/// Rows (and columns) around its own that a PE stores on every level.
pub(crate) const HALO: usize = 13;
/// A level is dealt to the PEs if each has so many rows of it, and all have a number of cells that depends on who computes;
/// else every PE computes all of it, which costs less than telling each other about it.
const FEWEST_ROWS: usize = 13;
const _: () = assert!(FEWEST_ROWS >= HALO);

/// One direction of a level: `len` points, which wrap around or not.
///
/// Points are numbered on beyond the ends of an axis that wraps: `len` is point 0 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub len: usize,
    pub wraps: bool,
}

impl Axis {
    /// The axis of every second point, the first among them.
    pub fn coarser(self) -> Axis {
        Axis {
            len: self.len.div_ceil(2),
            wraps: self.wraps,
        }
    }

    /// Whether all neighbours of points at even places are at odd ones.
    pub fn alternates(self) -> bool {
        self.len > 1 && (!self.wraps || self.len.is_multiple_of(2))
    }

    /// Whether there is a point `at`.
    pub fn has(self, at: isize) -> bool {
        self.wraps || (0..self.len as isize).contains(&at)
    }

    /// The points before and after point `at`; at an end of the axis the one on the other side, which is what a mirror
    /// shows, and what couplings of zero make nothing of.
    #[inline(always)]
    pub fn neighbours(self, at: isize) -> (isize, isize) {
        match (self.has(at - 1), self.has(at + 1)) {
            (true, true) => (at - 1, at + 1),
            (true, false) => (at - 1, at - 1),
            (false, true) => (at + 1, at + 1),
            (false, false) => (at, at),
        }
    }

    /// The point of this axis at coarse point `coarse`.
    pub fn fine_of(self, coarse: isize) -> isize {
        let of = self.coarser().len as isize;
        2 * coarse.rem_euclid(of) + self.len as isize * coarse.div_euclid(of)
    }

    /// Whether there is a point between coarse points `coarse` and `coarse` + 1.
    ///
    /// Where an axis of odd length wraps around, its last point and its first one are both coarse.
    pub fn has_between(self, coarse: isize) -> bool {
        let of = self.coarser();
        of.has(coarse) && 2 * coarse.rem_euclid(of.len as isize) + 1 < self.len as isize
    }

    /// The coarse point at or before point `fine`, and whether `fine` lies behind it.
    pub fn coarse_of(self, fine: isize) -> (isize, bool) {
        let (inside, turns) = (
            fine.rem_euclid(self.len as isize),
            fine.div_euclid(self.len as isize),
        );
        (
            inside / 2 + turns * self.coarser().len as isize,
            inside % 2 == 1,
        )
    }
}

/// A level: its two axes, and which rows are whose.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub x: Axis,
    pub y: Axis,
    /// Whether each PE computes its own rows only.
    pub spread: bool,
    /// The row at which each PE's part begins, and the end. Also of a level that is not spread: parts of it come from
    /// the PEs that compute the level above it.
    pub cuts: Vec<usize>,
    pub me: usize,
    /// Of levels that are spread.
    fewest_cells: usize,
}

impl Shape {
    /// The finest level, of PE `me`, where levels of so many cells are spread.
    pub fn finest(x: Axis, y: Axis, cuts: Vec<usize>, me: usize, fewest_cells: usize) -> Shape {
        let mut shape = Shape {
            x,
            y,
            spread: false,
            cuts,
            me,
            fewest_cells,
        };
        shape.spread = shape.is_worth_spreading();
        shape
    }

    fn is_worth_spreading(&self) -> bool {
        self.cuts.len() > 2
            && self
                .cuts
                .windows(2)
                .all(|cut| cut[1] - cut[0] >= FEWEST_ROWS)
            && self.x.len * self.y.len >= self.fewest_cells
    }

    /// The next coarser level: every second point of both axes. Its rows belong to those who have them here.
    pub fn coarser(&self) -> Shape {
        let mut shape = Shape {
            x: self.x.coarser(),
            y: self.y.coarser(),
            spread: false,
            cuts: self.cuts.iter().map(|cut| cut.div_ceil(2)).collect(),
            me: self.me,
            fewest_cells: self.fewest_cells,
        };
        shape.spread = self.spread && shape.is_worth_spreading();
        shape
    }

    /// Whether points coupled along the axes only, each of one colour, have neighbours of the other one alone.
    pub fn has_two_colours(&self) -> bool {
        self.x.alternates() && self.y.alternates()
    }

    /// The rows whose values this PE computes for all who need them.
    pub fn own(&self) -> Range<isize> {
        if self.spread {
            self.cuts[self.me] as isize..self.cuts[self.me + 1] as isize
        } else {
            0..self.y.len as isize
        }
    }

    /// The PEs that have the rows above and below the own ones of a level that is spread.
    pub fn neighbours(&self) -> [Option<usize>; 2] {
        let (pes, me) = (self.cuts.len() - 1, self.me);
        [
            (me > 0 || self.y.wraps).then(|| (me + pes - 1) % pes),
            (me + 1 < pes || self.y.wraps).then(|| (me + 1) % pes),
        ]
    }

    /// The own rows and `margin` more on both sides, as far as the grid goes.
    pub fn rows(&self, margin: usize) -> Range<isize> {
        let (own, margin) = (self.own(), margin as isize);
        let rows = own.start - margin..own.end + margin;
        if self.y.wraps {
            rows
        } else {
            rows.start.max(0)..rows.end.min(self.y.len as isize)
        }
    }

    /// The rows that are stored.
    pub fn stored(&self) -> Range<isize> {
        let (own, halo) = (self.own(), HALO as isize);
        own.start - halo..own.end + halo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_of_an_odd_length_do_not_alternate() {
        let alternates = |len, wraps| Axis { len, wraps }.alternates();
        assert!(alternates(2, false) && alternates(3, false) && alternates(2, true));
        assert!(!alternates(1, false) && !alternates(1, true) && !alternates(3, true));
    }

    #[test]
    fn coarse_points_and_those_between_are_all_points() {
        for len in 1..12 {
            for wraps in [false, true] {
                let axis = Axis { len, wraps };
                let coarse = axis.coarser().len as isize;
                let turns = if wraps { -1..2 } else { 0..1 };
                let mut points = Vec::new();
                for at in turns.start * coarse..turns.end * coarse {
                    let fine = axis.fine_of(at);
                    assert_eq!(axis.coarse_of(fine), (at, false));
                    points.push(fine);
                    if axis.has_between(at) {
                        assert_eq!(axis.coarse_of(fine + 1), (at, true));
                        points.push(fine + 1);
                    }
                }
                let len = len as isize;
                assert!(
                    points.into_iter().eq(turns.start * len..turns.end * len),
                    "{axis:?}"
                );
            }
        }
    }
}

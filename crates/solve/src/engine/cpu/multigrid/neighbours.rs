//! Places around a coarse point along an axis: 0 is the point itself, ±2 the coarse points beside it, ±1 what is between.

use super::shape::Axis;

/// Whether there are points between a coarse point and the ones before and after it.
#[derive(Clone, Copy)]
pub(super) struct Neighbours {
    pub before: bool,
    pub after: bool,
}

impl Neighbours {
    /// Of coarse point `coarse` of the fine axis `axis`.
    pub fn of(axis: Axis, coarse: isize) -> Neighbours {
        Neighbours {
            before: axis.has_between(coarse - 1),
            after: axis.has_between(coarse),
        }
    }

    /// The distance to place `place`: ±2 is the next coarse point, ±1 the one between, if there is one.
    #[inline(always)]
    pub fn step(self, place: isize) -> isize {
        match place {
            -2 if !self.before => -1,
            2 if !self.after => 1,
            place => place,
        }
    }

    /// The place of the neighbour of `place` in direction `by`.
    #[inline(always)]
    pub fn next(self, place: isize, by: isize) -> isize {
        match (place, by) {
            (0, 1) if !self.after => 2,
            (0, -1) if !self.before => -2,
            _ => place + by,
        }
    }
}

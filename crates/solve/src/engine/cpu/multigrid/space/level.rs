//! A level: its operator, its fields, and the way to the next.

use std::io;

use super::operator::Operator;
use super::pass::Kept;
use super::red_black;
use super::transfer::Transfer;
use crate::field::storage::Field;

/// Planes around its own that a PE stores on every level.
pub(crate) const DEPTH: usize = 12;

/// A level.
pub(crate) struct Level {
    pub operator: Operator,
    /// The field, or on coarse levels the correction.
    pub u: Field<f64>,
    pub right_side: Field<f64>,
    /// To the next level; none on the last.
    pub weights: Option<Transfer>,
    pub(super) kept: Kept,
    /// What passes in red-black order keep, where there are such.
    pub(super) halves: Option<red_black::Kept>,
}

impl Level {
    /// For passes of up to `steps` relaxations.
    pub(super) fn new(
        operator: Operator,
        weights: Option<Transfer>,
        steps: usize,
    ) -> io::Result<Level> {
        let (own, depth) = (operator.shape.own(), DEPTH as isize);
        let columns = operator.shape.x.len;
        let stored = own.start - depth..own.end + depth;
        let field = || Field::lazy(stored.clone(), columns);
        let colours = matches!(weights, Some(Transfer::Lines(_))) && operator.alternates();
        Ok(Level {
            u: field()?,
            right_side: field()?,
            kept: Kept::new(&operator, stored.clone(), steps)?,
            halves: colours
                .then(|| red_black::Kept::new(&operator, stored, steps))
                .transpose()?,
            operator,
            weights,
        })
    }

    /// Gives back the memory of all but the operator and the field.
    pub fn leave_field(&mut self) {
        // Where there is no room for nothing, it stays.
        if let Ok(nothing) = Field::lazy(0..0, 1) {
            self.right_side = nothing;
        }
    }
}

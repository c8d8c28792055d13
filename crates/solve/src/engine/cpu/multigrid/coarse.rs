//! A coarse level: an operator of nine points, the correction that is sought, and its right side.

use std::io;

use super::galerkin::{
    EAST, EXCESS, OperatorRow, OperatorRows, SOUTH, SOUTH_EAST, SOUTH_WEST, Transfer,
};
use super::rows::{Around, NinePoint, from_zero, nine_point};
use super::shape::{HALO, Shape};
use super::wavefront::{Kept, Relaxation};
use crate::element::Real;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// The operator: couplings and excess as in `galerkin.rs`, rounded to `T`.
pub(super) struct Operator<T> {
    pub shape: Shape,
    parts: [Field<T>; 5],
    /// 1 / (all couplings + excess); 0 for points that have no equation.
    inverse: Field<T>,
}

/// A level.
pub(super) struct Coarse<T> {
    pub operator: Operator<T>,
    /// The correction.
    pub u: Field<T>,
    /// What its equation has on the right.
    pub right_side: Field<T>,
    /// To the next level; none on the last.
    pub transfer: Option<Transfer<T>>,
    pub kept: Kept<T>,
}

impl<T: Real> Coarse<T> {
    /// All zero.
    pub fn new(shape: &Shape, steps: usize) -> io::Result<Coarse<T>> {
        let field = || Field::new(shape.stored(), shape.x.len);
        Ok(Coarse {
            operator: Operator {
                shape: shape.clone(),
                parts: [field()?, field()?, field()?, field()?, field()?],
                inverse: field()?,
            },
            u: field()?,
            right_side: field()?,
            transfer: None,
            kept: Kept::new(shape.x.len, steps),
        })
    }
}

impl<T: Real> Operator<T> {
    /// Takes a row that [`coarsen`](super::galerkin::coarsen) has made.
    pub fn set_row(&mut self, y: isize, row: &OperatorRow) {
        for (part, field) in self.parts.iter_mut().enumerate() {
            for (out, &value) in field.row_mut(y).iter_mut().zip(row.columns(part)) {
                *out = T::from_f64(value);
            }
        }
    }

    /// Completes the operator after all own rows, or with `gather` the cut's, have been set. Collective.
    pub fn complete(&mut self, rows: &mut LevelRows<'_>, gather: bool) -> Result<(), PeError> {
        let shape = &self.shape;
        for field in &mut self.parts {
            if gather {
                rows.gather(shape, field)?;
            }
            rows.halo(shape, field, HALO)?;
        }
        for y in shape.rows(HALO - 1) {
            let [above, here] = [y - 1, y].map(|y| NinePointRows::of(&self.parts, y));
            let n = shape.x.len;
            let (all, out) = (0..n + 2, self.inverse.with_padding_mut(y, 1));
            for at in all {
                // In the columns beyond the ends nothing is relaxed.
                if at == 0 || at == n + 1 {
                    out[at] = T::ZERO;
                    continue;
                }
                let part = |rows: &NinePointRows<'_, T>, part: usize, at: usize| {
                    rows.0[part][at].to_f64()
                };
                let couplings = [
                    part(&here, EAST, at),
                    part(&here, EAST, at - 1),
                    part(&here, SOUTH, at),
                    part(&above, SOUTH, at),
                    part(&here, SOUTH_EAST, at),
                    part(&above, SOUTH_EAST, at - 1),
                    part(&here, SOUTH_WEST, at),
                    part(&above, SOUTH_WEST, at + 1),
                ];
                let sum = |of: [f64; 8]| {
                    let pairs: [f64; 4] = std::array::from_fn(|k| of[2 * k] + of[2 * k + 1]);
                    (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
                };
                let diagonal = sum(couplings) + part(&here, EXCESS, at);
                // By Gershgorin no eigenvalue of D⁻¹A is above 2 then, also where couplings are negative.
                let bound = 0.5 * (diagonal + sum(couplings.map(f64::abs)));
                let diagonal = diagonal.max(bound);
                out[at] = if diagonal > 0.0 {
                    T::from_f64(1.0 / diagonal)
                } else {
                    T::ZERO
                };
            }
        }
        Ok(())
    }

    /// Adds a correction to row `y` (columns −1 to nx) where there is an equation: elsewhere a coarse point may stand for
    /// its neighbours alone.
    #[inline(always)]
    pub fn add(&self, y: isize, correction: &[T], row: &mut [T]) {
        let n = self.shape.x.len;
        let (correction, inverse) = (&correction[..n], &self.inverse.row(y)[..n]);
        for (x, value) in row[1..=n].iter_mut().enumerate() {
            *value = if inverse[x] != T::ZERO {
                *value + correction[x]
            } else {
                T::ZERO
            };
        }
        wrap_ends(&self.shape, row);
    }

    /// The operator with a right side, to relax with.
    pub fn with<'a>(&'a self, right_side: &'a Field<T>) -> WithRightSide<'a, T> {
        WithRightSide {
            operator: self,
            right_side,
        }
    }
}

/// The rows of all parts, columns −1 to nx.
struct NinePointRows<'a, T>([&'a [T]; 5]);

impl<'a, T: Real> NinePointRows<'a, T> {
    #[inline(always)]
    fn of(parts: &'a [Field<T>; 5], y: isize) -> Self {
        NinePointRows(parts.each_ref().map(|field| field.with_padding(y, 1)))
    }
}

impl<T: Real> OperatorRows for Operator<T> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn row(&self, y: isize, out: &mut OperatorRow) {
        for (part, field) in self.parts.iter().enumerate() {
            for (out, &value) in out.columns_mut(part).iter_mut().zip(field.row(y)) {
                *out = value.to_f64();
            }
        }
    }
}

/// An operator and a right side.
pub(super) struct WithRightSide<'a, T> {
    operator: &'a Operator<T>,
    right_side: &'a Field<T>,
}

impl<T: Real> WithRightSide<'_, T> {
    #[inline(always)]
    fn apply<const RELAX: bool>(&self, y: isize, around: Around<'_, T>, omega: T, out: &mut [T]) {
        let here = NinePointRows::of(&self.operator.parts, y).0;
        let above = NinePointRows::of(&self.operator.parts, y - 1).0;
        let operator = NinePoint {
            east: here[EAST],
            south: here[SOUTH],
            south_east: here[SOUTH_EAST],
            south_west: here[SOUTH_WEST],
            excess: here[EXCESS],
            inverse: self.operator.inverse.with_padding(y, 1),
            above: [above[SOUTH], above[SOUTH_EAST], above[SOUTH_WEST]],
        };
        let right_side = self.right_side.row(y);
        let inner = 1..out.len() - 1;
        nine_point::<T, RELAX>(&operator, around, right_side, omega, &mut out[inner]);
        wrap_ends(&self.operator.shape, out);
    }

}

/// Sets the columns beyond both ends of a row.
#[inline(always)]
fn wrap_ends<T: Real>(shape: &Shape, row: &mut [T]) {
    let n = shape.x.len;
    (row[0], row[n + 1]) = if shape.x.wraps {
        (row[n], row[1])
    } else {
        (T::ZERO, T::ZERO)
    };
}

impl<T: Real> Relaxation<T> for WithRightSide<'_, T> {
    #[inline(always)]
    fn relax(&self, y: isize, around: Around<'_, T>, omega: T, out: &mut [T]) {
        self.apply::<true>(y, around, omega, out);
    }

    #[inline(always)]
    fn relax_from_zero(&self, y: isize, omega: T, out: &mut [T]) {
        let inner = 1..out.len() - 1;
        let inverse = self.operator.inverse.row(y);
        from_zero(inverse, self.right_side.row(y), omega, &mut out[inner]);
        wrap_ends(&self.operator.shape, out);
    }

    #[inline(always)]
    fn residual(&self, y: isize, around: Around<'_, T>, out: &mut [T]) {
        self.apply::<false>(y, around, T::ZERO, out);
    }
}

//! Problems in three dimensions.

use std::sync::Arc;

use super::{MAX_CELLS, ProblemError};
use crate::element::Real;

/// Delivers a row of a grid: z, y, and the row's values, which come as zeros.
pub type PlaneSource<T> = Arc<dyn Fn(usize, usize, &mut [T]) + Send + Sync>;

/// What holds on one side of a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side<F> {
    /// The points of the side keep their initial values.
    Fixed,
    /// The derivative outwards, ∂u/∂n. The points are unknown.
    Neumann(F),
    /// `value`·u + `derivative`·∂u/∂n = `right`, ∂u/∂n outwards; `derivative` is not 0, and `value` / `derivative` is not
    /// negative. The points are unknown.
    Robin {
        /// a.
        value: F,
        /// b.
        derivative: F,
        /// g.
        right: F,
    },
    /// The grid wraps around: the first point comes after the last. There are no ghosts.
    Periodic,
}

/// Laplace's or Poisson's equation ∇²u = f on nx × ny × nz points, the outermost ones being the boundary.
///
/// With `coefficient` or `reaction`: ∇·(κ∇u) − cu = f, by finite volumes around the points; κ between two points is the
/// mean of theirs.
#[derive(Clone)]
pub struct Problem3d<F> {
    /// Points along x, y and z; at least 3 each.
    pub size: [usize; 3],
    /// The sides at the first and the last x, y and z. Two opposite ones are periodic, or none of them.
    pub sides: [[Side<F>; 2]; 3],
    /// The field before the first cycle, and the values of fixed sides; zero if absent.
    pub initial: Option<PlaneSource<F>>,
    /// f at every point.
    pub source: Option<PlaneSource<F>>,
    /// Points inside that keep their initial value: byte not 0.
    pub fixed: Option<PlaneSource<u8>>,
    /// κ at every point, positive; 1 if absent.
    pub coefficient: Option<PlaneSource<F>>,
    /// c at every point, not negative; 0 if absent.
    pub reaction: Option<PlaneSource<F>>,
    /// The distances of points along x, y and z.
    pub spacing: [f64; 3],
}

impl<F: Real> Problem3d<F> {
    /// Laplace's equation with zero on all sides and inside: the start for setting single fields.
    pub fn laplace(size: [usize; 3]) -> Problem3d<F> {
        Problem3d {
            size,
            sides: [[Side::Fixed; 2]; 3],
            initial: None,
            source: None,
            fixed: None,
            coefficient: None,
            reaction: None,
            spacing: [1.0; 3],
        }
    }

    /// Checks everything but the rows that the sources deliver (those are checked as they are loaded).
    ///
    /// Errors: a size below 3, a side that is periodic alone, a derivative that is not finite, a spacing that is not
    /// positive and finite.
    pub fn check(&self) -> Result<(), ProblemError> {
        let [nx, ny, nz] = self.size;
        if self.size.iter().any(|&n| n < 3) {
            return Err(ProblemError::TooSmallBox { nx, ny, nz });
        }
        let cells = nx.checked_mul(ny).and_then(|cells| cells.checked_mul(nz));
        if cells.is_none_or(|cells| cells > MAX_CELLS) {
            return Err(ProblemError::TooLargeBox { nx, ny, nz });
        }
        const NAMES: [[&str; 2]; 3] = [["left", "right"], ["top", "bottom"], ["front", "back"]];
        for (sides, names) in self.sides.iter().zip(NAMES) {
            let periodic = sides.map(|side| side == Side::Periodic);
            if periodic[0] != periodic[1] {
                let first = usize::from(periodic[1]);
                return Err(ProblemError::HalfPeriodic {
                    periodic: names[first],
                    fixed: names[1 - first],
                });
            }
            for (side, name) in sides.iter().zip(names) {
                let numbers = match *side {
                    Side::Neumann(slope) => [slope; 3],
                    Side::Robin {
                        value,
                        derivative,
                        right,
                    } => [value, derivative, right],
                    Side::Fixed | Side::Periodic => [F::ZERO; 3],
                };
                let numbers = numbers.map(|number| number.to_f64());
                if let Some(&value) = numbers.iter().find(|number| !number.is_finite()) {
                    return Err(ProblemError::Boundary {
                        side: name,
                        index: 0,
                        value,
                    });
                }
                let [a, b, _] = numbers;
                let possible = b != 0.0 && a / b >= 0.0 && (a / b).is_finite();
                if matches!(side, Side::Robin { .. }) && !possible {
                    return Err(ProblemError::Robin {
                        side: name,
                        index: 0,
                        a,
                        b,
                    });
                }
            }
        }
        for spacing in self.spacing {
            let cubed = spacing * spacing * spacing;
            if !(spacing > 0.0 && cubed > 0.0 && cubed.is_finite()) {
                return Err(ProblemError::Spacing { spacing });
            }
        }
        Ok(())
    }

    /// Whether couplings, or what is beyond them, differ from point to point.
    pub(crate) fn is_general(&self) -> bool {
        let mixed = |side: &Side<F>| matches!(side, Side::Robin { .. });
        self.fixed.is_some()
            || self.coefficient.is_some()
            || self.reaction.is_some()
            || self.sides.as_flattened().iter().any(mixed)
    }
}

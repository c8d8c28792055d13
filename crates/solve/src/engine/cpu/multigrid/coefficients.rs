//! The finest operator where it is not the same everywhere: a coefficient, a term cu, spacings that differ, or sides with
//! a mixed condition.
//!
//! Finite volumes around the points: for each point the flows to its neighbours and across the sides, integrated over its
//! part of the grid, which is a half on sides that are not fixed. So the operator is symmetric, and its couplings are
//! positive.

use super::operator_rows::{EAST, SOUTH};
use super::row_table::RowTable;
use super::rows::FivePoint;
use super::shape::Shape;

/// The excess, after [`EAST`] and [`SOUTH`].
const EXCESS: usize = 2;
pub(crate) const PARTS: usize = 3;

/// Couplings to the right and below, and the excess, by rows; see `galerkin.rs`.
pub(crate) struct Coefficients {
    parts: RowTable<f64>,
    inverse: RowTable<f64>,
    wraps: bool,
}

impl Coefficients {
    /// All zero, for the stored rows of `shape`.
    pub fn new(shape: &Shape) -> Coefficients {
        let table = |parts| RowTable::new(shape.stored(), shape.x.len, parts);
        Coefficients {
            parts: table(PARTS),
            inverse: table(1),
            wraps: shape.x.wraps,
        }
    }

    /// Sets row `y`, after the row above if that is stored: couplings to the east and to the south, and the excess.
    pub fn set_row(&mut self, y: isize, row: [&[f64]; PARTS]) {
        let nx = row[0].len();
        let mut packed = Vec::with_capacity(PARTS * (nx + 2));
        for part in row {
            let ends = if self.wraps {
                [part[nx - 1], part[0]]
            } else {
                [0.0; 2]
            };
            packed.push(ends[0]);
            packed.extend_from_slice(part);
            packed.push(ends[1]);
        }
        self.parts.set(y, &packed);
        let rows = self.row(y);
        let of_column = |x: usize| {
            if x == 0 || x > nx {
                return 0.0;
            }
            let couplings = (rows.east[x] + rows.east[x - 1]) + (rows.south[x] + rows.north[x]);
            let diagonal = couplings + rows.excess[x];
            if diagonal > 0.0 { 1.0 / diagonal } else { 0.0 }
        };
        let inverse: Vec<f64> = (0..nx + 2).map(of_column).collect();
        self.inverse.set(y, &inverse);
    }

    /// The couplings and the excess, and 1 / the diagonal.
    pub fn tables(&self) -> [&RowTable<f64>; 2] {
        [&self.parts, &self.inverse]
    }

    /// Row `y`.
    #[inline(always)]
    pub(super) fn row(&self, y: isize) -> FivePoint<'_> {
        let parts = self.parts.all::<PARTS>(y);
        FivePoint {
            east: parts[EAST],
            south: parts[SOUTH],
            excess: parts[EXCESS],
            inverse: self.inverse.whole(y),
            north: self.parts.part_above(y, SOUTH),
        }
    }

    /// Rows with the same number are the same, but for their couplings to the row above.
    pub fn identity(&self, y: isize) -> u64 {
        self.parts.identity(y).into()
    }

    /// The same of the row above row `y`; the number of rows of zeros if it is not stored.
    pub fn identity_above(&self, y: isize) -> u64 {
        self.parts.identity_above(y).into()
    }
}

//! A coarse level: an operator of nine points, the correction that is sought, and its right side.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

use super::blocks::{BLOCK, Blocks, RowBlocks, in_blocks};
use super::galerkin::{CoarseRow, Transfer};
use super::operator_rows::{
    EAST, EXCESS, OperatorRow, OperatorRows, PARTS, SOUTH, SOUTH_EAST, SOUTH_WEST, SplitRow,
};
use super::row_table::RowTable;
use super::rows::{
    Ahead, Around, NinePoint, SameCouplings, ask_for, from_zero_part, nine_point, nine_point_part,
    same_nine_point,
};
use super::shape::{HALO, Shape};
use super::wavefront::{Kept, Relaxation};
use super::written::Written;
use crate::element::Real;
use crate::element::simd::{Isa, Work, on_unit};
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// Levels of more points than this know which of them are alike. On others, of which a GPU waits for each one, to ask that costs
/// more than to look couplings up.
pub(crate) const ALIKE_ABOVE: usize = 1 << 19;
/// From which column and row on a level below a finest one without a mask and couplings has all points alike, and how many there
/// are behind them: sides, where points may lie unevenly, are felt two points away. A PE of a level that is dealt out has more
/// rows than these.
pub(super) const SAME_FROM: usize = 2;
pub(super) const SAME_TO: usize = 3;

/// The operator: couplings and excess as in `galerkin.rs`, rounded to `T`.
pub(crate) struct Operator<T> {
    pub shape: Shape,
    parts: RowTable<T>,
    /// 1 / (all couplings + excess); 0 for points that have no equation.
    inverse: RowTable<T>,
    /// Where all of that is the same.
    same: Option<Same<T>>,
    /// Where there are points that have equations.
    pub(super) blocks: Blocks,
    /// A row as it is stored.
    packed: Vec<T>,
}

/// The points of a level whose couplings are the same.
#[derive(Clone, Debug)]
pub(crate) struct Same<T> {
    pub couplings: SameCouplings<T>,
    pub columns: Range<usize>,
    pub rows: Range<usize>,
}

/// A level.
pub(crate) struct Coarse<T> {
    pub operator: Operator<T>,
    /// The correction.
    pub u: Field<T>,
    /// What its equation has on the right.
    pub right_side: Field<T>,
    /// To the next level; none on the last.
    pub transfer: Option<Transfer<T>>,
    pub(super) kept: Kept<T>,
}

impl<T: Real> Coarse<T> {
    /// All zero.
    pub fn new(shape: &Shape, steps: usize) -> io::Result<Coarse<T>> {
        let field = || Field::lazy(shape.stored(), shape.x.len);
        Ok(Coarse {
            operator: Operator {
                shape: shape.clone(),
                parts: RowTable::new(shape.stored(), shape.x.len, PARTS),
                inverse: RowTable::new(shape.stored(), shape.x.len, 1),
                same: None,
                blocks: Blocks::all(shape.x.len),
                packed: Vec::new(),
            },
            u: field()?,
            right_side: field()?,
            transfer: None,
            kept: Kept::new(shape.x.len, steps)?,
        })
    }
}

impl<T: Real> Operator<T> {
    /// Takes a row that [`coarsen`](super::galerkin::coarsen) has made.
    pub fn set_row(&mut self, y: isize, row: CoarseRow<'_>) {
        let row = match row {
            CoarseRow::New(row) => row,
            CoarseRow::SameAs(from) => return self.parts.copy(from, y),
        };
        let folded = self.folded(row);
        self.parts.set_written(y, &folded.written, |part| {
            let part = &folded.parts[part][..];
            let ends = match self.shape.x.wraps {
                true => [part[part.len() - 1], part[0]],
                false => [0.0; 2],
            };
            (part, ends)
        });
    }

    /// Takes row `y` as it is stored: all parts, with the columns on both sides.
    pub fn set_stored(&mut self, y: isize, row: &[T]) {
        self.parts.set(y, row);
    }

    /// The row without neighbours that are one and the same: on an axis of one point that wraps around, a point is no
    /// neighbour of itself, and its neighbours across are those along.
    fn folded<'r>(&self, row: &'r OperatorRow) -> Cow<'r, OperatorRow> {
        let [one_column, one_row] =
            [self.shape.x, self.shape.y].map(|axis| axis.wraps && axis.len == 1);
        if !one_column && !one_row {
            return Cow::Borrowed(row);
        }
        let mut row = row.clone();
        let n = self.shape.x.len;
        row.written.add(0..n);
        for x in 0..n {
            let corners = [row.parts[SOUTH_EAST][x], row.parts[SOUTH_WEST][(x + 1) % n]];
            let to = if one_row { EAST } else { SOUTH };
            row.parts[to][x] += corners[0] + corners[1];
        }
        row.parts[SOUTH_EAST].fill(0.0);
        row.parts[SOUTH_WEST].fill(0.0);
        if one_row {
            row.parts[SOUTH].fill(0.0);
        }
        if one_column {
            row.parts[EAST].fill(0.0);
        }
        Cow::Owned(row)
    }

    /// Completes the operator after all own rows, or with `gather` the cut's, have been set. Collective.
    ///
    /// `plain`: whether the points of the finest level differ by the sides alone; `masked`: whether some are fixed.
    pub fn complete(
        &mut self,
        rows: &mut LevelRows<'_>,
        gather: bool,
        plain: bool,
        masked: bool,
    ) -> Result<(), PeError> {
        if gather {
            rows.gather(&self.shape, &mut self.parts)?;
        }
        rows.halo_of(&self.shape, &mut self.parts, HALO)?;
        let (mut known, isa) = (HashMap::new(), Isa::widest());
        let mut written = Written::default();
        for y in self.shape.rows(HALO - 1) {
            let key = (self.parts.identity(y - 1), self.parts.identity(y));
            if let Some(&from) = known.get(&key) {
                self.inverse.copy(from, y);
                continue;
            }
            known.insert(key, y);
            self.packed.clear();
            self.packed.resize(self.shape.x.len + 2, T::ZERO);
            // What is coupled to a column is beside it.
            let nx = self.shape.x.len;
            written.clear(nx);
            for run in [y - 1, y]
                .map(|y| self.parts.written(y).runs())
                .into_iter()
                .flatten()
            {
                written.add(run.start.saturating_sub(1)..nx.min(run.end + 1));
                if self.shape.x.wraps {
                    written.add(0..1);
                    written.add(nx - 1..nx);
                }
            }
            let work = Inverses {
                written: &written,
                here: self.parts.all(y),
                above: self.parts.all(y - 1),
                out: &mut self.packed,
            };
            on_unit(isa, work);
            let (inverse, zero) = (&self.packed[1..=nx], [T::ZERO; 2]);
            self.inverse.set_written(y, &written, |_| (inverse, zero));
        }
        if plain {
            self.same = self.find_same();
        }
        if masked {
            self.blocks = self.find_blocks();
        }
        Ok(())
    }

    fn find_blocks(&self) -> Blocks {
        let rows = self.shape.rows(HALO);
        Blocks::around(rows, self.shape.x, |y, columns| {
            let mut tables = self.tables().into_iter();
            if !tables.any(|table| table.written(y).has_some(columns.clone())) {
                return false;
            }
            let columns = columns.start + 1..columns.end + 1;
            let any = |row: &[T]| {
                let any = |all: bool, value: &T| all | (*value != T::ZERO);
                row[columns.clone()].iter().fold(false, any)
            };
            any(self.inverse.whole(y)) || (0..PARTS).any(|part| any(self.parts.part(y, part)))
        })
    }

    /// Of a level below a finest one whose points differ by the sides alone.
    fn find_same(&self) -> Option<Same<T>> {
        if self.shape.x.len * self.shape.y.len <= ALIKE_ABOVE {
            return None;
        }
        let inside = |len: usize| SAME_FROM..len.saturating_sub(SAME_TO);
        let [columns, rows] = [self.shape.x, self.shape.y].map(|axis| inside(axis.len));
        let own = self.shape.own();
        let (x, y) = (columns.clone().next()?, own.start.max(rows.start as isize));
        if y >= own.end.min(rows.end as isize) {
            return None;
        }
        let at = |y: isize, part: usize, x: usize| self.parts.part(y, part)[x + 1];
        let (across, along) = (at(y, EAST, x), at(y, SOUTH, x));
        let corner = at(y, SOUTH_EAST, x);
        let same = [
            (at(y, EAST, x - 1), across),
            (at(y - 1, SOUTH, x), along),
            (at(y, SOUTH_WEST, x), corner),
            (at(y - 1, SOUTH_EAST, x - 1), corner),
            (at(y - 1, SOUTH_WEST, x + 1), corner),
            (at(y, EXCESS, x), T::ZERO),
        ];
        let couplings = SameCouplings {
            across,
            corner,
            along: along + (corner + corner),
            inverse: self.inverse.whole(y)[x + 1],
        };
        same.iter()
            .all(|(one, other)| one == other)
            .then_some(Same {
                couplings,
                columns,
                rows,
            })
    }

    /// The same for row `y`.
    #[inline(always)]
    fn same_in(&self, y: isize) -> Option<&Same<T>> {
        let same = self.same.as_ref()?;
        let y = match self.shape.y.wraps {
            true => y.rem_euclid(self.shape.y.len as isize),
            false => y,
        };
        same.rows.contains(&(y as usize)).then_some(same)
    }

    /// Where couplings are the same, if anywhere.
    pub fn same(&self) -> Option<&Same<T>> {
        self.same.as_ref()
    }

    /// The couplings and the excess, and 1 / the diagonal.
    pub fn tables(&self) -> [&RowTable<T>; 2] {
        [&self.parts, &self.inverse]
    }

    /// Adds a correction to row `y` (columns −1 to nx) where there is an equation: elsewhere a coarse point may stand for
    /// its neighbours alone.
    #[inline(always)]
    pub fn add(&self, y: isize, correction: &[T], row: &mut [T]) {
        let n = self.shape.x.len;
        let (inverse, out) = (self.inverse.whole(y), &mut row[1..=n]);
        in_blocks!(self.blocks.of(y), |start, n| {
            add_part(inverse, correction, out, start, n);
        });
        wrap_ends(&self.shape, row);
    }

    /// The operator with a right side, to relax with.
    pub(super) fn with<'a>(&'a self, right_side: &'a Field<T>) -> WithRightSide<'a, T> {
        WithRightSide {
            operator: self,
            right_side,
        }
    }
}

/// `n` columns of [`Operator::add`] from `start` on.
#[inline(always)]
fn add_part<T: Real>(inverse: &[T], correction: &[T], out: &mut [T], start: usize, n: usize) {
    let inverse = &inverse[start + 1..start + 1 + n];
    let (correction, out) = (&correction[start..start + n], &mut out[start..start + n]);
    for ((value, &correction), &inverse) in out.iter_mut().zip(correction).zip(inverse) {
        *value = if inverse != T::ZERO {
            *value + correction
        } else {
            T::ZERO
        };
    }
}

/// 1 / the diagonal of a row; columns from −1 to nx, of which the outermost are left as they are.
struct Inverses<'a, T> {
    /// The columns that are not zero.
    written: &'a Written,
    /// The parts of the row, and of the one above.
    here: [&'a [T]; PARTS],
    above: [&'a [T]; PARTS],
    out: &'a mut [T],
}

impl<'a, T: Real> Work for Inverses<'a, T> {
    #[inline(always)]
    fn run(self) {
        for run in self.written.runs() {
            // Column x is at x + 1.
            let before = |row: &'a [T]| &row[run.clone()];
            let at = |row: &'a [T]| &row[run.start + 1..run.end + 1];
            let after = |row: &'a [T]| &row[run.start + 2..run.end + 2];
            let [east, south, south_east, south_west, excess] = self.here.map(at);
            let west = before(self.here[EAST]);
            let north = at(self.above[SOUTH]);
            let north_west = before(self.above[SOUTH_EAST]);
            let north_east = after(self.above[SOUTH_WEST]);
            let out = &mut self.out[run.start + 1..run.end + 1];
            for x in 0..out.len() {
                let sum = |of: fn(f64) -> f64| {
                    let pair = |one: T, other: T| of(one.to_f64()) + of(other.to_f64());
                    (pair(east[x], west[x]) + pair(south[x], north[x]))
                        + (pair(south_east[x], north_west[x]) + pair(south_west[x], north_east[x]))
                };
                let diagonal = sum(|coupling| coupling) + excess[x].to_f64();
                // By Gershgorin no eigenvalue of D⁻¹A is above 2 then, also where couplings are negative.
                let bound = 0.5 * (diagonal + sum(f64::abs));
                let diagonal = diagonal.max(bound);
                let inverse = 1.0 / diagonal;
                out[x] = T::from_f64(if diagonal > 0.0 { inverse } else { 0.0 });
            }
        }
    }
}

impl<T: Real> OperatorRows for Operator<T> {
    const CORNERS: bool = true;

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn row(&self, y: isize, out: &mut SplitRow) {
        let parts = self.parts.all::<PARTS>(y);
        for columns in self.blocks.of(y).ranges() {
            let part = |part: usize| (part, &parts[part][1..][columns.clone()]);
            out.put(columns.start, &std::array::from_fn::<_, PARTS, _>(part));
        }
    }

    fn identity(&self, y: isize) -> u64 {
        self.parts.identity(y).into()
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
        let parts = &self.operator.parts;
        let (here, above) = (parts.all::<PARTS>(y), parts.all::<PARTS>(y - 1));
        let operator = NinePoint {
            east: here[EAST],
            south: here[SOUTH],
            south_east: here[SOUTH_EAST],
            south_west: here[SOUTH_WEST],
            excess: here[EXCESS],
            inverse: self.operator.inverse.whole(y),
            above: [above[SOUTH], above[SOUTH_EAST], above[SOUTH_WEST]],
        };
        let right_side = self.right_side.row(y);
        let inner = 1..out.len() - 1;
        let out_row = &mut out[inner];
        match self.operator.same_in(y) {
            None => {
                let blocks = self.operator.blocks.of(y);
                nine_point::<T, RELAX>(&operator, around, right_side, omega, out_row, blocks);
            }
            Some(same) => {
                same_nine_point::<T, RELAX>(same.couplings, around, right_side, omega, out_row);
                let n = out_row.len();
                for (start, end) in [(0, same.columns.start), (same.columns.end, n)] {
                    nine_point_part::<T, RELAX>(
                        &operator,
                        around,
                        right_side,
                        omega,
                        out_row,
                        start,
                        end - start,
                    );
                }
            }
        }
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
        let (inverse, right_side) = (self.operator.inverse.whole(y), self.right_side.row(y));
        let out_row = &mut out[1..=right_side.len()];
        in_blocks!(self.operator.blocks.of(y), |start, n| {
            from_zero_part(inverse, right_side, omega, out_row, start, n);
        });
        wrap_ends(&self.operator.shape, out);
    }

    #[inline(always)]
    fn residual(&self, y: isize, around: Around<'_, T>, out: &mut [T]) {
        if !self.operator.blocks.of(y).are_all() {
            out.fill(T::ZERO);
        }
        self.apply::<false>(y, around, T::ZERO, out);
    }

    #[inline(always)]
    fn copy(&self, y: isize, from: &[T], out: &mut [T]) {
        self.operator.blocks.copy(y, from, out);
    }

    fn ahead(&self, y: isize, u: Option<&[T]>) -> Ahead {
        let right_side = self.right_side.row(y);
        if let Some(blocks) = self.operator.blocks.ahead(y) {
            for row in [u, Some(right_side)].into_iter().flatten() {
                ask_for(row, blocks, 1);
            }
            for table in self.operator.tables() {
                for part in 0..table.parts() {
                    ask_for(&table.part(y, part)[1..], blocks, 1);
                }
            }
        }
        if !self.operator.blocks.of(y).are_all() {
            return Ahead::default();
        }
        Ahead::of([u, Some(right_side)], None)
    }
}

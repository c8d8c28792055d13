//! A row of points with those around it, and b − Au of it.

/// What of a row of points does not depend on the column.
#[derive(Clone, Copy)]
pub(in crate::engine) struct RowOf {
    pub across: f64,
    pub north: f64,
    pub south: f64,
    pub up: f64,
    pub down: f64,
    pub excess: f64,
}

/// What of a point depends on its column.
#[derive(Clone, Copy)]
pub(super) struct ColumnOf {
    pub before: f64,
    pub after: f64,
    pub excess: f64,
    pub mass: f64,
    pub free: f64,
}

/// A point's value, those around it, and its right side.
pub(super) struct Point {
    pub west: f64,
    pub centre: f64,
    pub east: f64,
    pub north: f64,
    pub south: f64,
    pub up: f64,
    pub down: f64,
    pub right_side: f64,
}

/// What a residual is made with.
pub(super) trait Couplings: Copy {
    /// b − Au at a point; 0 on fixed sides.
    fn residual(self, point: Point) -> f64;
}

impl Couplings for (RowOf, ColumnOf) {
    #[inline(always)]
    fn residual(self, point: Point) -> f64 {
        let (of, column) = self;
        let c = point.centre;
        let along = column.before * (point.west - c) + column.after * (point.east - c);
        let beside = (of.north * (point.north - c) + of.south * (point.south - c))
            + (of.up * (point.up - c) + of.down * (point.down - c));
        let sum = of.across * (along - column.excess * c) + column.mass * (beside - of.excess * c);
        (point.right_side + sum) * column.free
    }
}

/// The same power of two to all neighbours.
#[derive(Clone, Copy)]
pub(super) struct Even(f64);

impl Couplings for Even {
    #[inline(always)]
    fn residual(self, point: Point) -> f64 {
        let c = point.centre;
        let along = (point.west - c) + (point.east - c);
        let beside = ((point.north - c) + (point.south - c)) + ((point.up - c) + (point.down - c));
        point.right_side + self.0 * (along + beside)
    }
}

impl Even {
    /// If all that is multiplied by are powers of two, what is made is the same to the last bit, unless a value is infinite
    /// or a product leaves the range of normal numbers.
    pub fn of(row: RowOf, column: ColumnOf) -> Option<Even> {
        let (along, beside) = (row.across * column.before, column.mass * row.north);
        let same = column.before == column.after
            && [row.south, row.up, row.down] == [row.north; 3]
            && along == beside;
        let none = column.excess == 0.0 && row.excess == 0.0;
        let factors = [row.across, column.before, column.mass, row.north];
        (same && none && factors.into_iter().all(is_power_of_two)).then_some(Even(along))
    }

    pub fn coupling(self) -> f64 {
        self.0
    }
}

/// Whether `number` is a power of two, far from the ends of the range.
fn is_power_of_two(number: f64) -> bool {
    const MANTISSA: u64 = (1 << (f64::MANTISSA_DIGITS - 1)) - 1;
    (1e-30..1e30).contains(&number) && number.to_bits() & MANTISSA == 0
}

/// The columns that a relaxation changes.
pub(super) trait Columns: Copy {
    /// `new` at these, else `old`.
    fn choose(self, i: usize, old: f64, new: f64) -> f64;
}

#[derive(Clone, Copy)]
pub(super) struct AllColumns;

impl Columns for AllColumns {
    #[inline(always)]
    fn choose(self, _: usize, _: f64, new: f64) -> f64 {
        new
    }
}

/// Every second one.
#[derive(Clone, Copy)]
pub(super) struct EverySecond {
    pub odd: bool,
}

impl Columns for EverySecond {
    #[inline(always)]
    fn choose(self, i: usize, old: f64, new: f64) -> f64 {
        // By bits, of which the compiler makes vectors.
        let keep = ((i as u64 ^ u64::from(self.odd)) & 1).wrapping_neg();
        f64::from_bits((old.to_bits() & keep) | (new.to_bits() & !keep))
    }
}

/// Columns of a row of points and those around it.
pub(super) struct Row<'a> {
    pub west: &'a [f64],
    pub centre: &'a [f64],
    pub east: &'a [f64],
    pub north: &'a [f64],
    pub south: &'a [f64],
    pub up: &'a [f64],
    pub down: &'a [f64],
    pub right_side: &'a [f64],
}

impl<'a> Row<'a> {
    #[inline(always)]
    pub fn columns(&self, start: usize, len: usize) -> Row<'a> {
        let of = |row: &'a [f64]| &row[start..start + len];
        Row {
            west: of(self.west),
            centre: of(self.centre),
            east: of(self.east),
            north: of(self.north),
            south: of(self.south),
            up: of(self.up),
            down: of(self.down),
            right_side: of(self.right_side),
        }
    }

    /// The point in column `i`.
    #[inline(always)]
    pub fn point(&self, i: usize) -> Point {
        Point {
            west: self.west[i],
            centre: self.centre[i],
            east: self.east[i],
            north: self.north[i],
            south: self.south[i],
            up: self.up[i],
            down: self.down[i],
            right_side: self.right_side[i],
        }
    }

    /// Whether it is of `len` columns. The compiler then leaves no column out of its vectors to look whether it is there.
    #[inline(always)]
    fn is_of(&self, len: usize) -> bool {
        let Row {
            west,
            centre,
            east,
            north,
            south,
            up,
            down,
            right_side,
        } = self;
        [west, centre, east, north, south, up, down, right_side]
            .iter()
            .all(|row| row.len() == len)
    }

    /// b − Au to `out`, or with a gain u + `gain` (b − Au), of as many columns as these have.
    #[inline(always)]
    // Over the elements of what is made the compiler makes no vectors of these loops, which took twice as long.
    #[allow(clippy::needless_range_loop)]
    pub fn apply(&self, couplings: impl Couplings, gain: Option<f64>, out: &mut [f64]) {
        let len = self.centre.len();
        assert!(self.is_of(len));
        let out = &mut out[..len];
        match gain {
            Some(gain) => {
                for i in 0..len {
                    out[i] = self.centre[i] + gain * couplings.residual(self.point(i));
                }
            }
            None => {
                for i in 0..len {
                    out[i] = couplings.residual(self.point(i));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of points `h` apart, as [`Line`](super::super::line::Line) has them.
    fn of_spacing(h: f64) -> (RowOf, ColumnOf) {
        let beside = h * (1.0 / h);
        let row = RowOf {
            across: h * h,
            north: beside,
            south: beside,
            up: beside,
            down: beside,
            excess: 0.0,
        };
        let column = ColumnOf {
            before: 1.0 / h,
            after: 1.0 / h,
            excess: 0.0,
            mass: h,
            free: 1.0,
        };
        (row, column)
    }

    #[test]
    fn even_couplings_leave_every_bit() {
        let mut state = 7u64;
        // Zeros of both signs, too.
        let mut some = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            match state >> 60 {
                0..4 => 0.0,
                4..8 => -0.0,
                _ => (state >> 11) as f64 / 2f64.powi(53) - 0.5,
            }
        };
        for h in [1.0, 1.0 / 256.0, 0.25, 8.0] {
            let couplings = of_spacing(h);
            let even = Even::of(couplings.0, couplings.1).expect("powers of two");
            let rows: Vec<Vec<f64>> = (0..8).map(|_| (0..99).map(|_| some()).collect()).collect();
            let [west, centre, east, north, south, up, down, right_side] =
                std::array::from_fn(|k| &rows[k][..]);
            let row = Row {
                west,
                centre,
                east,
                north,
                south,
                up,
                down,
                right_side,
            };
            for i in 0..99 {
                let [found, expected] = [
                    even.residual(row.point(i)),
                    couplings.residual(row.point(i)),
                ];
                assert_eq!(found.to_bits(), expected.to_bits(), "{h}, column {i}");
            }
        }
    }

    #[test]
    fn other_couplings_are_not_even() {
        let none = |row, column| assert!(Even::of(row, column).is_none());
        let (row, column) = of_spacing(0.1);
        none(row, column);
        let (row, column) = of_spacing(0.5);
        none(RowOf { up: 2.0, ..row }, column);
        none(RowOf { excess: 1.0, ..row }, column);
        none(
            row,
            ColumnOf {
                before: 4.0,
                ..column
            },
        );
        none(
            row,
            ColumnOf {
                mass: 1.0,
                ..column
            },
        );
    }
}

//! Rows of a box with even and odd columns apart, and what the equations of a half say about them.
//!
//! Each half of a row is of one colour, and all points around a point are of the other one. Halves of one colour are kept
//! by themselves: a relaxation changes these, and reads those.

use std::io;
use std::ops::Range;

use super::line::Line;
use super::operator::Operator;
use super::row::{ColumnOf, Couplings, Even, Point, RowOf};
use crate::engine::cpu::multigrid::smoothing::Colour;
use crate::field::storage::Field;

/// Element 0 of a half has so many before it.
pub(super) const BEFORE: usize = 8;
/// Elements are computed so many at once: whole vectors of any unit.
const CHUNK: usize = 16;

/// Where halves are: of a band of rows of the last planes, those of one colour one after the other.
#[derive(Clone, Copy)]
pub(super) struct Places {
    /// Elements of a half, with those before and after it.
    pub stride: usize,
    /// Elements from a plane to the next.
    plane: usize,
    /// How many planes there are: those that are in use at once, no more, so that a cache has to hold no others.
    kept: isize,
    /// The first row that is there.
    pub first: usize,
}

impl Places {
    /// For the last `kept` planes of `rows` rows of `columns`.
    pub fn new(kept: usize, rows: usize, columns: &[HalfColumns; 2]) -> Places {
        let end = columns.iter().map(HalfColumns::end).fold(0, usize::max);
        // An odd number of cache lines, as in fields.
        let lines = (BEFORE + end + 1).div_ceil(8) | 1;
        let stride = 8 * lines;
        Places {
            stride,
            plane: rows * stride,
            kept: kept as isize,
            first: 0,
        }
    }

    /// Room for the halves of a colour.
    pub fn room(&self) -> io::Result<Field<f64>> {
        Field::lazy(0..1, self.kept as usize * self.plane)
    }

    /// Where plane `z` begins.
    #[inline(always)]
    pub fn plane(&self, z: isize) -> usize {
        z.rem_euclid(self.kept) as usize * self.plane
    }

    /// Where row `y` begins in a plane.
    #[inline(always)]
    pub fn row(&self, y: usize) -> usize {
        (y - self.first) * self.stride
    }
}

/// What decides which columns of row `y` of plane `z` have which colour. Axes that wrap around have an even length.
#[inline(always)]
pub(super) fn row_number(z: isize, y: usize) -> usize {
    (z & 1) as usize + y
}

/// The even and the odd columns of a row, of halves by colours.
#[inline(always)]
pub(super) fn by_columns<T>([red, black]: [T; 2], row: usize) -> [T; 2] {
    match Colour::Red.has_odd_columns(row) {
        true => [black, red],
        false => [red, black],
    }
}

/// Takes a row apart, which has a point more on both sides.
#[inline(always)]
pub(super) fn split(row: &[f64], [even, odd]: [&mut [f64]; 2]) {
    let pairs = row[1..].as_chunks::<2>().0;
    let n = pairs.len();
    let (even, odd) = (&mut even[BEFORE..][..n], &mut odd[BEFORE..][..n]);
    for i in 0..n {
        even[i] = pairs[i][0];
        odd[i] = pairs[i][1];
    }
}

/// Puts a row together; of the points beyond its ends only that after an odd number of columns.
#[inline(always)]
pub(super) fn join([even, odd]: [&[f64]; 2], row: &mut [f64]) {
    let pairs = row[1..].as_chunks_mut::<2>().0;
    let n = pairs.len();
    let (even, odd) = (&even[BEFORE..][..n], &odd[BEFORE..][..n]);
    for i in 0..n {
        pairs[i] = [even[i], odd[i]];
    }
}

/// The even or the odd columns of an operator.
pub(super) struct HalfColumns {
    /// How many there are.
    pub n: usize,
    pub odd: bool,
    /// Whether those beyond the ends are columns again.
    wraps: bool,
    /// The elements that are [the same](Operator::same).
    calm: Range<usize>,
    alike: ColumnOf,
    /// The other ones.
    others: Vec<(usize, ColumnOf)>,
    /// Those without an equation.
    pub held: Vec<usize>,
}

impl HalfColumns {
    pub fn new(operator: &Operator, odd: bool) -> HalfColumns {
        let (axis, p) = (operator.lines[0].axis, usize::from(odd));
        let element = |column: usize| (column + 1 - p) / 2;
        let same = &operator.same;
        HalfColumns {
            n: element(axis.len),
            odd,
            wraps: axis.wraps,
            calm: element(same.start)..element(same.end),
            // Times 1 is what it was.
            alike: ColumnOf {
                free: 1.0,
                ..operator.alike
            },
            others: operator
                .others
                .iter()
                .filter(|(column, _)| column % 2 == p)
                .map(|&(column, of)| (column / 2, of))
                .collect(),
            held: (0..element(axis.len))
                .filter(|i| !operator.lines[0].free[2 * i + p])
                .collect(),
        }
    }

    /// Where the first element is that counts for coarse points: the column before the first one does where the axis wraps.
    #[inline(always)]
    pub fn first(&self) -> usize {
        BEFORE - usize::from(self.wraps && self.odd)
    }

    /// Where the neighbour to the west of element 0 is among the other columns.
    #[inline(always)]
    pub fn west(&self) -> usize {
        BEFORE - usize::from(!self.odd)
    }

    /// Columns by elements.
    #[inline(always)]
    pub fn column(&self, element: usize) -> usize {
        2 * element + usize::from(self.odd)
    }

    /// Where the calm elements begin, and how many chunks they are, of which the last may have other ones, too.
    #[inline(always)]
    fn whole(&self) -> (usize, usize) {
        (self.calm.start, self.calm.len().div_ceil(CHUNK))
    }

    /// The element after those that are computed, and the one that is beyond the end.
    fn end(&self) -> usize {
        let (start, chunks) = self.whole();
        (self.n + 1).max(start + CHUNK * chunks)
    }

    /// Makes what is beyond the ends of `half` right, up to where elements are computed.
    #[inline(always)]
    pub fn beyond(&self, half: &mut [f64]) {
        let (first, end) = (BEFORE, BEFORE + self.n);
        for value in &mut half[end..BEFORE + self.end()] {
            *value = 0.0;
        }
        let [before, after] = match self.wraps {
            true => [half[end - 1], half[first]],
            false => [0.0; 2],
        };
        (half[first - 1], half[end]) = (before, after);
    }
}

/// What the rows of a level have in common, by their places along y and z.
pub(super) struct RowKinds {
    /// The first kind of each.
    of_row: Vec<usize>,
    /// The number of each.
    of_plane: Vec<usize>,
    kinds: Vec<RowKind>,
}

/// A kind of rows of points.
pub(super) struct RowKind {
    of: RowOf,
    /// Of the calm columns.
    even: Option<Even>,
    /// Whether it has equations.
    pub free: bool,
    /// Which one is 1 / the diagonal.
    inverse: usize,
}

impl RowKinds {
    pub fn new(operator: &Operator) -> RowKinds {
        let [_, y, z] = &operator.lines;
        // Which points of an axis are alike, and the first one of each kind.
        let kinds_of = |line: &Line| -> (Vec<usize>, Vec<usize>) {
            let mut first = Vec::new();
            let mut known = Vec::new();
            let of = (0..line.axis.len)
                .map(|i| {
                    let numbers = [
                        line.before(i),
                        line.coupling[i],
                        line.excess[i],
                        line.mass[i],
                    ];
                    let key = (numbers.map(f64::to_bits), line.free[i]);
                    known.iter().position(|it| *it == key).unwrap_or_else(|| {
                        known.push(key);
                        first.push(i);
                        known.len() - 1
                    })
                })
                .collect();
            (of, first)
        };
        let ((of_row, rows), (of_plane, planes)) = (kinds_of(y), kinds_of(z));
        let kind = |j: usize, k: usize| {
            let of = operator.row_of(j, k);
            RowKind {
                of,
                even: Even::of(of, operator.alike),
                free: y.free[j] && z.free[k],
                inverse: operator.inverses().1[k * y.axis.len + j],
            }
        };
        let each = rows
            .iter()
            .flat_map(|&j| planes.iter().map(move |&k| (j, k)));
        RowKinds {
            of_row: of_row.iter().map(|at| at * planes.len()).collect(),
            of_plane,
            kinds: each.map(|(j, k)| kind(j, k)).collect(),
        }
    }

    /// That of row `y` of a [plane](Self::plane).
    #[inline(always)]
    pub fn of(&self, plane: usize, y: usize) -> &RowKind {
        &self.kinds[self.of_row[y] + plane]
    }

    /// What [`of`](Self::of) takes for plane `z` of the grid.
    pub fn plane(&self, z: usize) -> usize {
        self.of_plane[z]
    }
}

/// The equations of half a row: all that its points are coupled to, from element 0 on.
pub(super) struct Equations<'a> {
    pub operator: &'a Operator,
    pub columns: &'a HalfColumns,
    pub kind: &'a RowKind,
    /// The neighbours to the west; those to the east are one further.
    pub beside: &'a [f64],
    pub north: &'a [f64],
    pub south: &'a [f64],
    pub up: &'a [f64],
    pub down: &'a [f64],
    pub right_side: &'a [f64],
}

impl<'a> Equations<'a> {
    /// Point `i`, whose value is `centre`.
    #[inline(always)]
    fn point(&self, i: usize, centre: f64) -> Point {
        Point {
            west: self.beside[i],
            centre,
            east: self.beside[i + 1],
            north: self.north[i],
            south: self.south[i],
            up: self.up[i],
            down: self.down[i],
            right_side: self.right_side[i],
        }
    }

    #[inline(always)]
    fn part(&self, start: usize, len: usize) -> Equations<'a> {
        Equations {
            beside: &self.beside[start..][..len + 1],
            north: &self.north[start..][..len],
            south: &self.south[start..][..len],
            up: &self.up[start..][..len],
            down: &self.down[start..][..len],
            right_side: &self.right_side[start..][..len],
            ..*self
        }
    }

    /// 1 / the diagonal by column.
    #[inline(always)]
    fn inverse(&self) -> &'a [f64] {
        &self.operator.inverses().0[self.kind.inverse]
    }

    /// u + ω D⁻¹ (b − Au) to `half`. `before` is room for some elements.
    #[inline(always)]
    pub fn relax(&self, omega: f64, half: &mut [f64], before: &mut Vec<f64>) {
        let (columns, inverse) = (self.columns, self.inverse());
        let own = &mut half[BEFORE..];
        // Whole chunks are computed: what that makes of other columns is made again.
        before.clear();
        before.extend(columns.others.iter().map(|&(i, _)| own[i]));
        let (start, chunks) = columns.whole();
        if chunks > 0 {
            let gain = omega * inverse[columns.column(start)];
            let of = self.part(start, CHUNK * chunks);
            let own = &mut own[start..];
            match self.kind.even {
                Some(even) => of.relax_chunks(chunks, even, gain, own),
                None => of.relax_chunks(chunks, (self.kind.of, columns.alike), gain, own),
            }
        }
        for (&(i, column), &c) in columns.others.iter().zip(&*before) {
            let r = (self.kind.of, column).residual(self.point(i, c));
            own[i] = c + (omega * inverse[columns.column(i)]) * r;
        }
    }

    #[inline(always)]
    // As in `Row::apply`.
    #[allow(clippy::needless_range_loop)]
    fn relax_chunks(&self, chunks: usize, couplings: impl Couplings, gain: f64, own: &mut [f64]) {
        let len = CHUNK * chunks;
        let own = &mut own[..len];
        let of = self.part(0, len);
        for i in 0..len {
            let c = own[i];
            own[i] = c + gain * couplings.residual(of.point(i, c));
        }
    }

    /// As [`relax`](Self::relax), of zero.
    #[inline(always)]
    pub fn relax_zero(&self, omega: f64, half: &mut [f64]) {
        let (columns, inverse) = (self.columns, self.inverse());
        let own = &mut half[BEFORE..][..columns.n];
        let (right_side, calm) = (&self.right_side[..columns.n], columns.calm.clone());
        if !calm.is_empty() {
            let gain = omega * inverse[columns.column(calm.start)];
            let own = &mut own[calm.clone()];
            for (own, &b) in own.iter_mut().zip(&right_side[calm]) {
                *own = gain * b;
            }
        }
        for &(i, _) in &columns.others {
            own[i] = (omega * inverse[columns.column(i)]) * right_side[i];
        }
    }

    /// b − Au of `half` to `residual`.
    #[inline(always)]
    pub fn residual(&self, half: &[f64], residual: &mut [f64]) {
        let columns = self.columns;
        let (own, residual) = (&half[BEFORE..], &mut residual[BEFORE..]);
        let (start, chunks) = columns.whole();
        if chunks > 0 {
            let of = self.part(start, CHUNK * chunks);
            let (own, out) = (&own[start..], &mut residual[start..]);
            match self.kind.even {
                Some(even) => of.residual_of_chunks(chunks, even, own, out),
                None => of.residual_of_chunks(chunks, (self.kind.of, columns.alike), own, out),
            }
        }
        for &(i, column) in &columns.others {
            residual[i] = (self.kind.of, column).residual(self.point(i, own[i]));
        }
    }

    #[inline(always)]
    fn residual_of_chunks(
        &self,
        chunks: usize,
        couplings: impl Couplings,
        own: &[f64],
        out: &mut [f64],
    ) {
        let len = CHUNK * chunks;
        let (own, out) = (&own[..len], &mut out[..len]);
        let of = self.part(0, len);
        for i in 0..len {
            out[i] = couplings.residual(of.point(i, own[i]));
        }
    }
}

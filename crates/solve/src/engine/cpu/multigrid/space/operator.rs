//! The operator of a level, and what passes need of it.

use std::collections::HashMap;
use std::ops::Range;

use super::around::Around;
use super::line::Line;
use super::points::Points;
use super::row::{AllColumns, ColumnOf, Columns, Couplings, Even, EverySecond, Row, RowOf};
use crate::element::simd::prefetch;
use crate::engine::cpu::multigrid::dense::Dense;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::smoothing::{Colour, Step};
use crate::engine::cpu::multigrid::written::LANES;
use crate::field::storage::Field;

/// Rows are asked for so many rows before they are needed.
const AHEAD: usize = 2;

/// The sum over the axes of the operator along one times the masses along the others.
pub(crate) struct Operator {
    /// Its rows are planes.
    pub shape: Shape,
    /// Along x, y and z.
    pub lines: [Line; 3],
    /// 1 where there is an equation, 0 on fixed sides.
    free: Vec<f64>,
    /// 1 / the diagonal by column, of a few kinds of rows.
    inverses: Vec<Vec<f64>>,
    /// Which of them is that of a row: by z and y.
    inverse_of: Vec<usize>,
    /// The columns that have the same neighbourhood as the one in the middle, and an equation.
    pub(super) same: Range<usize>,
    /// What is multiplied with at these.
    pub(super) alike: ColumnOf,
    /// The other columns.
    pub(super) others: Vec<(usize, ColumnOf)>,
    /// A row of zeros.
    nothing: Vec<f64>,
    /// What holds instead where couplings differ from point to point.
    pub points: Option<Points>,
}

impl Operator {
    /// Of three axes; `shape` deals planes.
    pub fn new(lines: [Line; 3], shape: Shape) -> Operator {
        let [x, y, z] = &lines;
        let number = |free: &bool| f64::from(u8::from(*free));
        let free: Vec<f64> = x.free.iter().map(number).collect();
        let (mut inverses, mut known) = (Vec::new(), HashMap::new());
        let mut inverse_of = Vec::with_capacity(y.axis.len * z.axis.len);
        for k in 0..z.axis.len {
            for j in 0..y.axis.len {
                // Diagonal: a times that along x, and b times the mass along x.
                let a = y.mass[j] * z.mass[k];
                let b = z.mass[k] * y.diagonal(j) + y.mass[j] * z.diagonal(k);
                let at = *known.entry((a.to_bits(), b.to_bits())).or_insert_with(|| {
                    let of_column = |i: usize| {
                        let diagonal = a * x.diagonal(i) + b * x.mass[i];
                        if x.free[i] && diagonal > 0.0 {
                            1.0 / diagonal
                        } else {
                            0.0
                        }
                    };
                    inverses.push((0..x.axis.len).map(of_column).collect());
                    inverses.len() - 1
                });
                inverse_of.push(at);
            }
        }
        let column = |i: usize| column_of(x, i);
        let same = same_columns(x);
        Operator {
            inverses,
            inverse_of,
            alike: column(same.start.min(x.axis.len - 1)),
            others: (0..same.start)
                .chain(same.end..x.axis.len)
                .map(|i| (i, column(i)))
                .collect(),
            same,
            free,
            nothing: vec![0.0; x.axis.len],
            points: None,
            shape,
            lines,
        }
    }

    /// Whether each point has neighbours along the axes of the other one of two colours alone.
    pub fn alternates(&self) -> bool {
        self.lines.iter().all(|line| line.axis.alternates())
    }

    /// Points from a row of a plane to the next.
    pub fn stride(&self) -> usize {
        self.lines[0].axis.len + 2
    }

    /// The plane's number, without turns around the grid.
    pub fn inside(&self, z: isize) -> usize {
        z.rem_euclid(self.lines[2].axis.len as isize) as usize
    }

    /// 1 for columns that have an equation, else 0, in row `y` of plane `z`; none if the row has none at all.
    #[inline(always)]
    pub fn free(&self, z: isize, y: usize) -> Option<&[f64]> {
        (self.lines[1].free[y] && self.lines[2].free[self.inside(z)]).then_some(&self.free)
    }

    /// Points that have an equation, in planes `planes`.
    pub fn count_free(&self, planes: Range<isize>) -> u64 {
        if let Some(points) = &self.points {
            return points.count_free(planes);
        }
        let count = |line: &Line| line.free.iter().filter(|&&free| free).count() as u64;
        let planes = planes
            .filter(|&z| self.lines[2].free[self.inside(z)])
            .count() as u64;
        planes * count(&self.lines[0]) * count(&self.lines[1])
    }

    /// 1 / the diagonal in row `y` of plane `z`, by column; of points without an equation any number or 0.
    #[inline(always)]
    pub fn inverse(&self, y: usize, z: isize) -> &[f64] {
        let [nx, ny] = [0, 1].map(|axis: usize| self.lines[axis].axis.len);
        match &self.points {
            Some(points) => &points.inverse.row(z)[points.at(0, y)..][..nx],
            None => &self.inverses[self.inverse_of[self.inside(z) * ny + y]][..nx],
        }
    }

    /// What of row `y` of plane `z` does not depend on the column, of an operator of lines.
    #[inline(always)]
    pub(in crate::engine) fn row_of(&self, y: usize, z: usize) -> RowOf {
        let [_, line_y, line_z] = &self.lines;
        let [mass_y, mass_z] = [line_y.mass[y], line_z.mass[z]];
        RowOf {
            across: mass_y * mass_z,
            north: mass_z * line_y.before(y),
            south: mass_z * line_y.coupling[y],
            up: mass_y * line_z.before(z),
            down: mass_y * line_z.coupling[z],
            excess: mass_z * line_y.excess[y] + mass_y * line_z.excess[z],
        }
    }

    /// The coupling of point (x, y, z) to all its neighbours, if it is [`Even`].
    pub(in crate::engine) fn even_coupling(&self, [x, y, z]: [usize; 3]) -> Option<f64> {
        Even::of(self.row_of(y, z), column_of(&self.lines[0], x)).map(Even::coupling)
    }

    /// All rows of 1 / the diagonal of an operator of lines, and which of them is that of a row of points: by z and y.
    pub fn inverses(&self) -> (&[Vec<f64>], &[usize]) {
        (&self.inverses, &self.inverse_of)
    }

    /// The columns of row `y` of plane `z` that have a colour.
    #[inline(always)]
    fn columns(&self, z: isize, y: usize, colour: Colour) -> EverySecond {
        let odd = colour.has_odd_columns(y + self.inside(z));
        EverySecond { odd }
    }

    /// Makes the points of a colour 0 in row `y` of plane `z` of a residual.
    #[inline(always)]
    pub fn leave_out(&self, z: isize, y: usize, colour: Colour, row: &mut [f64]) {
        let columns = self.columns(z, y, colour);
        for (i, value) in row[1..=self.lines[0].axis.len].iter_mut().enumerate() {
            *value = columns.choose(i, *value, 0.0);
        }
        self.beyond(row);
    }

    /// The volume of a point.
    pub fn mass(&self, x: usize, y: usize, z: isize) -> f64 {
        self.lines[0].mass[x] * self.mass_of_row(y, z)
    }

    /// The volume of a point by that of its column.
    pub fn mass_of_row(&self, y: usize, z: isize) -> f64 {
        self.lines[1].mass[y] * self.lines[2].mass[self.inside(z)]
    }

    /// The largest diagonal by volume, of points of `planes` that have an equation.
    pub fn largest_diagonal(&self, planes: Range<isize>) -> f64 {
        let (nx, ny) = (self.lines[0].axis.len, self.lines[1].axis.len);
        let mut largest = 0.0f64;
        for z in planes {
            for y in 0..ny {
                let inverse = self.inverse(y, z);
                let points = (0..nx).filter(|&x| inverse[x] > 0.0);
                largest = points.fold(largest, |largest, x| {
                    largest.max(1.0 / (inverse[x] * self.mass(x, y, z)))
                });
            }
        }
        largest
    }

    /// The diagonal of the finest level's operator, inside.
    pub fn diagonal_inside(&self) -> f64 {
        let [h_x, h_y, h_z] = self.lines.each_ref().map(|line| 1.0 / line.coupling[0]);
        2.0 * (h_y * h_z / h_x + h_x * h_z / h_y + h_x * h_y / h_z)
    }

    /// Completes the rows of a plane: the points beyond both ends.
    #[inline(always)]
    pub fn beyond(&self, plane: &mut [f64]) {
        let (n, wraps) = (self.lines[0].axis.len, self.lines[0].axis.wraps);
        for row in plane.chunks_exact_mut(n + 2) {
            (row[0], row[n + 1]) = if wraps { (row[n], row[1]) } else { (0.0, 0.0) };
        }
    }

    /// Asks for the row of `plane` that is needed soon after row `y`, if it comes before row `end`, to be brought into the
    /// cache: caches do not guess rows from plane to plane.
    #[inline(always)]
    pub fn prefetch_after(&self, plane: &[f64], y: usize, end: usize) {
        let (y, stride) = (y + AHEAD, self.stride());
        if y < end {
            prefetch(&plane[y * stride..][..stride]);
        }
    }

    /// With a right side b; none: zero.
    pub fn with<'a>(&'a self, right_side: Option<&'a Field<f64>>) -> WithRightSide<'a> {
        WithRightSide {
            operator: self,
            right_side,
        }
    }

    /// Factored, for direct solutions. `singular`: constants are in the kernel.
    pub fn dense(&self, singular: bool) -> Dense {
        if let Some(points) = &self.points {
            return points.dense(singular);
        }
        let [x, y, z] = &self.lines;
        let [nx, ny, nz] = [x, y, z].map(|line| line.axis.len);
        let n = nx * ny * nz;
        let at = |i: usize, j: usize, k: usize| (k * ny + j) * nx + i;
        let mut matrix = vec![0.0; n * n];
        let is_free = |i: usize, j: usize, k: usize| x.free[i] && y.free[j] && z.free[k];
        for k in 0..nz {
            for j in 0..ny {
                for i in 0..nx {
                    if !is_free(i, j, k) {
                        continue;
                    }
                    let here = at(i, j, k);
                    let weights = [
                        y.mass[j] * z.mass[k],
                        x.mass[i] * z.mass[k],
                        x.mass[i] * y.mass[j],
                    ];
                    let next = [
                        ((i + 1) % nx, j, k),
                        (i, (j + 1) % ny, k),
                        (i, j, (k + 1) % nz),
                    ];
                    let place = [i, j, k];
                    for (axis, line) in [x, y, z].into_iter().enumerate() {
                        let p = place[axis];
                        matrix[here * n + here] += weights[axis] * line.excess[p];
                        // To both sides: a coupling to a fixed point is on the diagonal alone.
                        if line.axis.len > 1 {
                            matrix[here * n + here] +=
                                weights[axis] * (line.coupling[p] + line.before(p));
                        }
                        let (a, b, c) = next[axis];
                        if is_free(a, b, c) && line.axis.len > 1 {
                            let there = at(a, b, c);
                            matrix[here * n + there] -= weights[axis] * line.coupling[p];
                            matrix[there * n + here] -= weights[axis] * line.coupling[p];
                        }
                    }
                }
            }
        }
        Dense::of_matrix(matrix, nx, singular)
    }
}

fn column_of(x: &Line, i: usize) -> ColumnOf {
    ColumnOf {
        before: x.before(i),
        after: x.coupling[i],
        excess: x.excess[i],
        mass: x.mass[i],
        free: f64::from(u8::from(x.free[i])),
    }
}

/// The columns around the middle one of an axis that are as that one.
fn same_columns(x: &Line) -> Range<usize> {
    let middle = x.axis.len / 2;
    let of = |i: usize| {
        let numbers = [x.before(i), x.coupling[i], x.excess[i], x.mass[i]];
        (numbers.map(f64::to_bits), x.free[i])
    };
    if !x.free[middle] {
        return 0..0;
    }
    let is_same = |i: &usize| of(*i) == of(middle);
    let before = (0..middle).rev().take_while(is_same).count();
    let after = (middle..x.axis.len).take_while(is_same).count();
    middle - before..middle + after
}

/// A row of an operator of lines, and what it is applied to.
struct LineRow<'a> {
    operator: &'a Operator,
    of: RowOf,
    row: Row<'a>,
    inverse: &'a [f64],
}

impl LineRow<'_> {
    /// b − Au to `out`, or with an ω u + ω D⁻¹ (b − Au); it has a point more on both sides.
    ///
    /// Most columns are the same: what they are multiplied by stays in registers.
    #[inline(always)]
    fn apply(&self, omega: Option<f64>, out: &mut [f64]) {
        let (of, same) = (self.of, &self.operator.same);
        let nx = self.inverse.len();
        let out = &mut out[1..nx + 1];
        if !same.is_empty() {
            // Whole vectors where there is room: what they make of other columns is made again below.
            let start = same.start;
            let len = same.len().next_multiple_of(LANES).min(nx - start);
            let row = self.row.columns(start, len);
            // Times 1 is what it was.
            let column = ColumnOf {
                free: 1.0,
                ..self.operator.alike
            };
            let gain = omega.map(|omega| omega * self.inverse[start]);
            let out = &mut out[start..start + len];
            match Even::of(of, column) {
                Some(even) => row.apply(even, gain, out),
                None => row.apply((of, column), gain, out),
            }
        }
        for &(i, column) in &self.operator.others {
            let r = (of, column).residual(self.row.point(i));
            out[i] = match omega {
                Some(omega) => self.row.centre[i] + (omega * self.inverse[i]) * r,
                None => r,
            };
        }
    }
}

/// An operator and a right side.
pub(crate) struct WithRightSide<'a> {
    pub operator: &'a Operator,
    right_side: Option<&'a Field<f64>>,
}

/// Rows are as long as the stride: they have the points beyond both ends.
impl WithRightSide<'_> {
    /// As [`Operator::prefetch_after`], for plane `z` of the right side.
    #[inline(always)]
    pub fn prefetch_after(&self, z: isize, y: usize, end: usize) {
        if let Some(right_side) = self.right_side {
            self.operator.prefetch_after(right_side.row(z), y, end);
        }
    }

    /// Row `y` of plane `z` of u, of which the points of `step` are u + ω D⁻¹ (b − Au) now. Operators of points alone have
    /// steps of one colour.
    #[inline(always)]
    pub fn relax_row(
        &self,
        z: isize,
        y: usize,
        around: Around<'_>,
        step: Step,
        relaxed: &mut [f64],
    ) {
        let (operator, omega) = (self.operator, step.omega);
        if let Some(points) = &operator.points {
            let b = self.right_side.map(|field| field.row(z));
            match step.colour.map(|colour| operator.columns(z, y, colour)) {
                None => points.relax_row(z, y, around, b, (AllColumns, omega), relaxed),
                Some(half) => points.relax_row(z, y, around, b, (half, omega), relaxed),
            }
        } else if let Some(row) = self.row(z, y, around) {
            debug_assert!(step.colour.is_none());
            row.apply(Some(omega), relaxed);
        } else {
            relaxed.copy_from_slice(around.row_of(y, operator.stride(), around.here));
        }
        operator.beyond(relaxed);
    }

    /// Row `y` of plane `z` of zero, of which all points are ω D⁻¹ b now.
    #[inline(always)]
    pub fn relax_row_from_zero(&self, z: isize, y: usize, step: Step, out: &mut [f64]) {
        debug_assert!(step.colour.is_none());
        let operator = self.operator;
        let held = operator.points.is_none() && operator.free(z, y).is_none();
        match self.right_side {
            Some(field) if !held => {
                let nx = operator.lines[0].axis.len;
                let b = &field.row(z)[y * operator.stride() + 1..][..nx];
                let inverse = operator.inverse(y, z);
                for ((out, &b), &inverse) in out[1..].iter_mut().zip(b).zip(inverse) {
                    *out = (step.omega * inverse) * b;
                }
            }
            _ => out.fill(0.0),
        }
        operator.beyond(out);
    }

    /// Row `y` of plane `z` of b − Au.
    #[inline(always)]
    pub fn residual_row(&self, z: isize, y: usize, around: Around<'_>, residual: &mut [f64]) {
        let operator = self.operator;
        if let Some(points) = &operator.points {
            let b = self.right_side.map(|field| field.row(z));
            points.residual_row(z, y, around, b, residual);
        } else if let Some(row) = self.row(z, y, around) {
            row.apply(None, residual);
        } else {
            residual.fill(0.0);
        }
        operator.beyond(residual);
    }

    /// Plane `z` of b − Au.
    #[inline(always)]
    pub fn residual(&self, z: isize, around: Around<'_>, out: &mut [f64]) {
        let stride = self.operator.stride();
        for (y, row) in out.chunks_exact_mut(stride).enumerate() {
            self.residual_row(z, y, around, row);
        }
    }

    /// Row `y` of plane `z` of an operator of lines; none if it has no equation.
    #[inline(always)]
    fn row<'r>(&'r self, z: isize, y: usize, around: Around<'r>) -> Option<LineRow<'r>> {
        let operator = self.operator;
        operator.free(z, y)?;
        let [x, line_y, _] = &operator.lines;
        let nx = x.axis.len;
        let k = operator.inside(z);
        let row_of = |y: usize, plane: &'r [f64]| around.row_of(y, operator.stride(), plane);
        let here = row_of(y, around.here);
        let (wraps, last) = (line_y.axis.wraps, line_y.axis.len - 1);
        let beside = |there: bool, to: usize| row_of(if there { to } else { y }, around.here);
        let north = beside(y > 0 || wraps, if y > 0 { y - 1 } else { last });
        let south = beside(y < last || wraps, if y < last { y + 1 } else { 0 });
        let (up, down) = (row_of(y, around.up), row_of(y, around.down));
        let of = operator.row_of(y, k);
        let inner = |row: &'r [f64]| &row[1..nx + 1];
        let row = Row {
            west: &here[..nx],
            centre: inner(here),
            east: &here[2..nx + 2],
            north: inner(north),
            south: inner(south),
            up: inner(up),
            down: inner(down),
            right_side: match self.right_side {
                Some(field) => &field.row(z)[y * operator.stride() + 1..][..nx],
                None => &operator.nothing,
            },
        };
        Some(LineRow {
            operator,
            of,
            row,
            inverse: operator.inverse(y, z),
        })
    }
}

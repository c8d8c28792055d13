//! The operator of a level, and what passes need of it.

use std::collections::HashMap;

use super::line::Line;
use super::points::Points;
use crate::engine::cpu::multigrid::dense::Dense;
use crate::engine::cpu::multigrid::rows::Around;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::wavefront::Relaxation;
use crate::field::storage::Field;

/// The sum over the axes of the operator along one times the masses along the others.
pub(crate) struct Operator {
    /// Its rows are planes.
    pub shape: Shape,
    /// Along x, y and z.
    pub lines: [Line; 3],
    /// By column: the coupling to the column before.
    before: Vec<f64>,
    /// 1 where there is an equation, 0 on fixed sides.
    free: Vec<f64>,
    /// 1 / the diagonal by column, of a few kinds of rows.
    inverses: Vec<Vec<f64>>,
    /// Which of them is that of a row: by z and y.
    inverse_of: Vec<usize>,
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
        Operator {
            before: (0..x.axis.len).map(|i| x.before(i)).collect(),
            free,
            inverses,
            inverse_of,
            points: None,
            shape,
            lines,
        }
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
    pub fn count_free(&self, planes: std::ops::Range<isize>) -> u64 {
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

    /// All rows of 1 / the diagonal of an operator of lines, and which of them is that of a row of points: by z and y.
    pub fn inverses(&self) -> (&[Vec<f64>], &[usize]) {
        (&self.inverses, &self.inverse_of)
    }

    /// The volume of a point.
    pub fn mass(&self, x: usize, y: usize, z: isize) -> f64 {
        self.lines[0].mass[x] * (self.lines[1].mass[y] * self.lines[2].mass[self.inside(z)])
    }

    /// The largest diagonal by volume, of points of `planes` that have an equation.
    pub fn largest_diagonal(&self, planes: std::ops::Range<isize>) -> f64 {
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

    /// Completes planes that have an element more on both sides.
    #[inline(always)]
    fn complete_planes(&self, relaxed: Option<&mut [f64]>, residual: Option<&mut [f64]>) {
        for plane in relaxed.into_iter().chain(residual) {
            let end = plane.len() - 1;
            self.beyond(&mut plane[1..end]);
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

/// What of a row of points does not depend on the column.
struct RowOf {
    across: f64,
    north: f64,
    south: f64,
    up: f64,
    down: f64,
    excess: f64,
}

/// A row of points and those around it, by column.
struct Row<'a> {
    of: RowOf,
    west: &'a [f64],
    centre: &'a [f64],
    east: &'a [f64],
    north: &'a [f64],
    south: &'a [f64],
    up: &'a [f64],
    down: &'a [f64],
    before: &'a [f64],
    after: &'a [f64],
    excess: &'a [f64],
    mass: &'a [f64],
    free: &'a [f64],
}

impl Row<'_> {
    /// b − Au at column `i`; 0 on fixed sides.
    #[inline(always)]
    fn residual(&self, i: usize, b: f64) -> f64 {
        let c = self.centre[i];
        let along = self.before[i] * (self.west[i] - c) + self.after[i] * (self.east[i] - c);
        let beside = (self.of.north * (self.north[i] - c) + self.of.south * (self.south[i] - c))
            + (self.of.up * (self.up[i] - c) + self.of.down * (self.down[i] - c));
        let sum = self.of.across * (along - self.excess[i] * c)
            + self.mass[i] * (beside - self.of.excess * c);
        (b + sum) * self.free[i]
    }
}

/// An operator and a right side.
pub(crate) struct WithRightSide<'a> {
    operator: &'a Operator,
    right_side: Option<&'a Field<f64>>,
}

impl WithRightSide<'_> {
    /// For plane `z`: the residual to `residual`, the relaxed plane to `relaxed`, where there are such.
    #[inline(always)]
    fn apply(
        &self,
        z: isize,
        around: Around<'_, f64>,
        omega: f64,
        mut relaxed: Option<&mut [f64]>,
        mut residual: Option<&mut [f64]>,
    ) {
        let operator = self.operator;
        if let Some(points) = &operator.points {
            let b = self.right_side.map(|field| field.row(z));
            let (relaxed_plane, residual_plane) = (relaxed.as_deref_mut(), residual.as_deref_mut());
            points.apply(z, around, b, omega, relaxed_plane, residual_plane);
            operator.complete_planes(relaxed, residual);
            return;
        }
        let [x, y, line_z] = &operator.lines;
        let (nx, ny, stride) = (x.axis.len, y.axis.len, operator.stride());
        let k = operator.inside(z);
        let b = self.right_side.map(|field| field.row(z));
        for j in 0..ny {
            // One element before the plane comes with it.
            let start = 1 + j * stride;
            let points = start..start + stride;
            let here = &around.here[points.clone()];
            if operator.free(z, j).is_none() {
                if let Some(relaxed) = &mut relaxed {
                    relaxed[points.clone()].copy_from_slice(here);
                }
                if let Some(residual) = &mut residual {
                    residual[points].fill(0.0);
                }
                continue;
            }
            let beside = |there: bool, to: usize| {
                let to = if there { to } else { j };
                &around.here[1 + to * stride..][..stride]
            };
            let (wraps, last) = (y.axis.wraps, ny - 1);
            let north = beside(j > 0 || wraps, if j > 0 { j - 1 } else { last });
            let south = beside(j < last || wraps, if j < last { j + 1 } else { 0 });
            let (up, down) = (&around.up[points.clone()], &around.down[points]);
            let [mass_y, mass_z] = [y.mass[j], line_z.mass[k]];
            let of = RowOf {
                across: mass_y * mass_z,
                north: mass_z * y.before(j),
                south: mass_z * y.coupling[j],
                up: mass_y * line_z.before(k),
                down: mass_y * line_z.coupling[k],
                excess: mass_z * y.excess[j] + mass_y * line_z.excess[k],
            };
            let inverse = &operator.inverses[operator.inverse_of[k * ny + j]][..nx];
            let [west, centre, east] = [&here[..nx], &here[1..nx + 1], &here[2..nx + 2]];
            let inner = |row| &(row as &[f64])[1..nx + 1];
            let (north, south, up, down) = (inner(north), inner(south), inner(up), inner(down));
            let (before, after) = (&operator.before[..nx], &x.coupling[..nx]);
            let (excess, mass, free) = (&x.excess[..nx], &x.mass[..nx], &operator.free[..nx]);
            let row = Row {
                of,
                west,
                centre,
                east,
                north,
                south,
                up,
                down,
                before,
                after,
                excess,
                mass,
                free,
            };
            let b = b.map(|plane| &plane[j * stride + 1..][..nx]);
            let inner = 1 + start..1 + start + nx;
            match (&mut relaxed, &mut residual) {
                (Some(relaxed), Some(residual)) => {
                    let (relaxed, residual) = (&mut relaxed[inner.clone()], &mut residual[inner]);
                    for i in 0..nx {
                        let r = row.residual(i, b.map_or(0.0, |b| b[i]));
                        residual[i] = r;
                        relaxed[i] = centre[i] + (omega * inverse[i]) * r;
                    }
                }
                (Some(relaxed), None) => {
                    let relaxed = &mut relaxed[inner];
                    match b {
                        Some(b) => {
                            for i in 0..nx {
                                relaxed[i] =
                                    centre[i] + (omega * inverse[i]) * row.residual(i, b[i]);
                            }
                        }
                        None => {
                            for i in 0..nx {
                                relaxed[i] =
                                    centre[i] + (omega * inverse[i]) * row.residual(i, 0.0);
                            }
                        }
                    }
                }
                (None, Some(residual)) => {
                    let residual = &mut residual[inner];
                    for i in 0..nx {
                        residual[i] = row.residual(i, b.map_or(0.0, |b| b[i]));
                    }
                }
                (None, None) => {}
            }
        }
        operator.complete_planes(relaxed, residual);
    }
}

impl Relaxation<f64> for WithRightSide<'_> {
    #[inline(always)]
    fn relax(&self, z: isize, around: Around<'_, f64>, omega: f64, out: &mut [f64]) {
        self.apply(z, around, omega, Some(out), None);
    }

    #[inline(always)]
    fn relax_and_residual(
        &self,
        z: isize,
        around: Around<'_, f64>,
        omega: f64,
        out: &mut [f64],
        residual: &mut [f64],
    ) {
        self.apply(z, around, omega, Some(out), Some(residual));
    }

    #[inline(always)]
    fn relax_from_zero(&self, z: isize, omega: f64, out: &mut [f64]) {
        let operator = self.operator;
        let (ny, stride) = (operator.lines[1].axis.len, operator.stride());
        out.fill(0.0);
        let Some(b) = self.right_side.map(|field| field.row(z)) else {
            return;
        };
        if let Some(points) = &operator.points {
            points.relax_from_zero(z, b, omega, out);
            operator.complete_planes(Some(out), None);
            return;
        }
        let k = operator.inside(z);
        for j in (0..ny).filter(|&j| operator.free(z, j).is_some()) {
            let inverse = &operator.inverses[operator.inverse_of[k * ny + j]];
            let b = &b[j * stride + 1..];
            let out = &mut out[1 + j * stride + 1..];
            for ((out, &b), &inverse) in out.iter_mut().zip(b).zip(inverse) {
                *out = (omega * inverse) * b;
            }
        }
        let end = out.len() - 1;
        operator.beyond(&mut out[1..end]);
    }

    #[inline(always)]
    fn residual(&self, z: isize, around: Around<'_, f64>, out: &mut [f64]) {
        self.apply(z, around, 0.0, None, Some(out));
    }

    /// Planes are long: the caches see by themselves what comes next.
    fn prefetch(&self, _: isize, _: Option<&[f64]>) {}
}

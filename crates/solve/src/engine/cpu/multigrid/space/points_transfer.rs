//! Interpolation that follows an operator of points.
//!
//! As `galerkin.rs` and `interpolation.rs` of planes: coarse points are every second one of all axes. A point between two
//! of them takes their values weighted by the couplings towards them, summed over the points across; one amid four takes
//! its neighbours' so that its equation holds once it is summed along the third axis; one amid eight so that its equation
//! holds. (Dendy, "Two multigrid methods for three-dimensional problems with discontinuous and anisotropic coefficients",
//! SIAM J. Sci. Stat. Comput. 8, 1987, 673-685.)

use std::io;
use std::ops::Range;

use super::line::Line;
use super::points::{Nearby, Points, STEPS, Step};
use super::side_by_side::{at_once, side_by_side};
use crate::engine::cpu::multigrid::neighbours::Neighbours;
use crate::engine::cpu::multigrid::shape::{Axis, Shape};
use crate::field::storage::Field;

/// Points between the coarse point (I, J, K) and the next ones: which axes they lie between coarse points of (bit 0: x),
/// and the first of their weights; there are 2, 4 or 8, of which number c is for the coarse point c's bits, among these
/// axes, away.
const FIRST: [usize; 8] = [0, 0, 2, 4, 8, 10, 14, 18];
const WEIGHTS: usize = 26;

/// Weights, by coarse planes; rows have a point more on both sides.
pub(crate) struct PointWeights {
    pub(super) fine: [Axis; 3],
    pub(super) coarse: [Axis; 3],
    weights: Vec<Field<f64>>,
    /// The coarse planes that have them.
    made: Range<isize>,
}

/// The bits of each corner at the axes of a kind, next to each other: the number of its weight.
const NUMBERS: [[usize; 8]; 8] = {
    let mut numbers = [[0; 8]; 8];
    let mut kind = 0;
    while kind < 8 {
        let mut corner = 0;
        while corner < 8 {
            let (mut place, mut axis) = (0, 0);
            while axis < 3 {
                if kind >> axis & 1 == 1 {
                    numbers[kind][corner] |= (corner >> axis & 1) << place;
                    place += 1;
                }
                axis += 1;
            }
            corner += 1;
        }
        kind += 1;
    }
    numbers
};

#[inline(always)]
fn number(kind: usize, corner: usize) -> usize {
    NUMBERS[kind][corner]
}

#[inline(always)]
fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.0 }
}

#[inline(always)]
fn share(part: f64, all: f64) -> f64 {
    if part > 0.0 { part / all } else { 0.0 }
}

/// All couplings of a point, by steps; the middle one is 0.
struct Star([[[f64; 3]; 3]; 3]);

impl Star {
    fn of(operator: &Nearby<'_>, point: [isize; 3]) -> Star {
        let mut star = Star([[[0.0; 3]; 3]; 3]);
        for (part, &step) in STEPS[..operator.parts()].iter().enumerate() {
            *star.at_mut(step) = operator.coupling(point, step, part, true);
            let back = step.map(|d| -d);
            *star.at_mut(back) = operator.coupling(point, step, part, false);
        }
        star
    }

    #[inline(always)]
    fn at(&self, [dx, dy, dz]: Step) -> f64 {
        self.0[(dz + 1) as usize][(dy + 1) as usize][(dx + 1) as usize]
    }

    #[inline(always)]
    fn at_mut(&mut self, [dx, dy, dz]: Step) -> &mut f64 {
        &mut self.0[(dz + 1) as usize][(dy + 1) as usize][(dx + 1) as usize]
    }

    /// The sum of those that go as `along` does on the axes of `kind`, whatever they do on the others; not below zero.
    fn sum(&self, kind: usize, along: Step) -> f64 {
        let range = |axis: usize| match kind >> axis & 1 {
            1 => along[axis]..=along[axis],
            _ => -1..=1,
        };
        let mut sum = 0.0;
        for dz in range(2) {
            for dy in range(1) {
                for dx in range(0) {
                    sum += self.at([dx, dy, dz]);
                }
            }
        }
        positive(sum)
    }
}

impl PointWeights {
    /// The weights between `operator` and the level of `lines` and `shape`, as far as its couplings reach, by `threads`.
    pub fn new(
        operator: &Points,
        fine: &[Line; 3],
        coarse: &[Line; 3],
        shape: &Shape,
        threads: usize,
    ) -> io::Result<PointWeights> {
        let stored = operator.excess.rows();
        let axes = [fine, coarse].map(|lines| lines.each_ref().map(|line| line.axis));
        let [fine, coarse] = axes;
        // Planes before and behind the points between coarse planes k and k + 1 are needed, and those of the next ones.
        let reaches = |k: &isize| {
            let at = fine[2].fine_of(*k);
            coarse[2].has(*k) && stored.contains(&(at - 2)) && stored.contains(&(at + 3))
        };
        let first = fine[2].coarse_of(stored.start).0;
        let last = fine[2].coarse_of(stored.end).0;
        let planes: Vec<isize> = (first..=last).filter(reaches).collect();
        let made = match (planes.first(), planes.last()) {
            (Some(&first), Some(&last)) => first..last + 1,
            _ => 0..0,
        };
        let field = || Field::lazy(made.clone(), shape.x.len);
        let mut weights = PointWeights {
            fine,
            coarse,
            weights: (0..WEIGHTS).map(|_| field()).collect::<Result<_, _>>()?,
            made: made.clone(),
        };
        // Points amid more coarse points take values of those amid fewer.
        for between in 1..=3 {
            let kinds = (1..8usize).filter(|kind| kind.count_ones() == between);
            let items: Vec<(usize, isize)> = kinds
                .flat_map(|kind| made.clone().map(move |k| (kind, k)))
                .collect();
            let bytes = (size_of::<f64>() * shape.x.len) << between;
            for some in items.chunks(at_once(threads, bytes)) {
                let planes = side_by_side(threads, some, |(kind, k)| {
                    weights.plane_of(operator, kind, k)
                });
                for (&(kind, k), corners) in some.iter().zip(planes) {
                    for (field, plane) in weights.weights[FIRST[kind]..].iter_mut().zip(corners) {
                        field.row_mut(k).copy_from_slice(&plane);
                    }
                }
            }
        }
        Ok(weights)
    }

    #[inline(always)]
    pub(super) fn at(&self, i: usize, j: usize) -> usize {
        j * (self.coarse[0].len + 2) + 1 + i
    }

    /// The coarse planes `k` − 1 to `k` + 1.
    pub(super) fn near(&self, k: isize) -> NearbyWeights<'_> {
        let row = |field: usize, k: isize| match self.made.contains(&k) {
            true => self.weights[field].row(k),
            false => &[],
        };
        NearbyWeights {
            of: self,
            first: k - 1,
            rows: [k - 1, k, k + 1].map(|k| std::array::from_fn(|field| row(field, k))),
        }
    }

    /// The weights of the points of `kind` in coarse plane `k`: a plane for each of their corners; none where there is no
    /// such point.
    fn plane_of(&self, operator: &Points, kind: usize, k: isize) -> Vec<Vec<f64>> {
        let [x, y, z] = self.fine;
        let odd = |axis: usize| (kind >> axis & 1) as isize;
        if odd(2) == 1 && !z.has_between(k) {
            return Vec::new();
        }
        let [columns, rows] = [0, 1].map(|axis: usize| self.coarse[axis].len);
        let mut planes = vec![vec![0.0; (columns + 2) * rows]; 1 << kind.count_ones()];
        let weights = self.near(k);
        let fine = z.fine_of(k) + odd(2);
        let operator = operator.near(fine - 1..fine + 2);
        for j in 0..rows as isize {
            if odd(1) == 1 && !y.has_between(j) {
                continue;
            }
            for i in 0..columns as isize {
                if odd(0) == 1 && !x.has_between(i) {
                    continue;
                }
                let point = [2 * i + odd(0), 2 * j + odd(1), fine];
                let star = Star::of(&operator, point);
                let excess = positive(operator.excess_of(point));
                weights.make_point(kind, [i, j, k], &star, excess, &mut planes);
            }
        }
        planes
    }

    /// Adds the correction of rows `rows` of plane `z` of the fine level to `plane`, where `inverse`, that of the diagonal,
    /// says that there is an equation: a coarse point on one that keeps its value may stand for its neighbours alone.
    #[inline(always)]
    pub fn prolong(
        &self,
        coarse: &Field<f64>,
        z: isize,
        rows: Range<usize>,
        inverse: &[f64],
        plane: &mut [f64],
    ) {
        let [x, _, axis] = self.fine;
        let (k, between) = axis.coarse_of(z);
        let stride = x.len + 2;
        for row in rows {
            let (j, down) = (row / 2, row % 2);
            let out = &mut plane[row * stride + 1..][..x.len];
            let inverse = &inverse[row * stride + 1..][..x.len];
            let held = |inverse: f64, sum: f64, out: f64| if inverse == 0.0 { out } else { sum };
            for parity in 0..2 {
                let kind = parity | down << 1 | usize::from(between) << 2;
                let columns = (x.len + 1 - parity) / 2;
                for corner in (0..8usize).filter(|corner| corner & !kind == 0) {
                    let [ci, cj, ck] = [corner & 1, corner >> 1 & 1, corner >> 2];
                    let Some(of) = self.coarse_row(j + cj) else {
                        continue;
                    };
                    let from = &coarse.row(k + ck as isize)[self.at(0, of) + ci..][..columns];
                    let out = out[parity..].iter_mut().step_by(2);
                    let out = out.zip(inverse[parity..].iter().step_by(2));
                    if kind == 0 {
                        for ((out, &inverse), &value) in out.zip(from) {
                            *out = held(inverse, *out + value, *out);
                        }
                        continue;
                    }
                    let weights = &self.weights[FIRST[kind] + number(kind, corner)];
                    let weights = &weights.row(k)[self.at(0, j)..][..columns];
                    for (((out, &inverse), &value), &weight) in out.zip(from).zip(weights) {
                        *out = held(inverse, *out + weight * value, *out);
                    }
                }
            }
        }
    }

    /// The coarse row `j`, which may be the one behind the last.
    #[inline(always)]
    fn coarse_row(&self, j: usize) -> Option<usize> {
        let axis = self.coarse[1];
        match j < axis.len {
            true => Some(j),
            false => axis.wraps.then(|| j - axis.len),
        }
    }

    /// Rows `rows` of the coarse plane `k` of the right side, of the residual's planes before, at and behind that plane, which
    /// begin with row `first`.
    #[inline(always)]
    pub fn restrict(
        &self,
        k: isize,
        rows: Range<usize>,
        first: usize,
        planes: [&[f64]; 3],
        out: &mut [f64],
    ) {
        let [x, y, _] = self.fine;
        let (stride, columns) = (x.len + 2, self.coarse[0].len);
        let along_z = Neighbours::of(self.fine[2], k);
        for j in rows {
            let along_y = Neighbours::of(self.fine[1], j as isize);
            let out = &mut out[self.at(0, j)..][..columns];
            out.fill(0.0);
            for pz in -1..=1isize {
                if (pz == -1 && !along_z.before) || (pz == 1 && !along_z.after) {
                    continue;
                }
                for py in -1..=1isize {
                    if (py == -1 && !along_y.before) || (py == 1 && !along_y.after) {
                        continue;
                    }
                    let row = (2 * j as isize + py).rem_euclid(y.len as isize) as usize;
                    let from = &planes[(pz + 1) as usize][(row - first) * stride..][..stride];
                    let (weight_row, weight_plane) = (
                        (j as isize + py.div_euclid(2)).rem_euclid(self.coarse[1].len as isize)
                            as usize,
                        k + pz.div_euclid(2),
                    );
                    for px in -1..=1isize {
                        let kind = (px & 1 | (py & 1) << 1 | (pz & 1) << 2) as usize;
                        let bit = |place: isize| usize::from(place == -1);
                        let corner = bit(px) | bit(py) << 1 | bit(pz) << 2;
                        // Column −1 of the residual and of weights stands for the last one of an axis that wraps around;
                        // the one behind the last has weight 0.
                        let from = from.iter().skip((1 + px) as usize).step_by(2);
                        if kind == 0 {
                            out.iter_mut()
                                .zip(from)
                                .for_each(|(out, &value)| *out += value);
                            continue;
                        }
                        let weights = &self.weights[FIRST[kind] + number(kind, corner)];
                        let start = self.at(0, weight_row).wrapping_add_signed(px.div_euclid(2));
                        let weights = &weights.row(weight_plane)[start..];
                        for ((out, &value), &weight) in out.iter_mut().zip(from).zip(weights) {
                            *out += weight * value;
                        }
                    }
                }
            }
        }
    }

    /// All weights, by kinds and corners, and the coarse planes that have them.
    pub(in crate::engine) fn tables(&self) -> (&[Field<f64>], Range<isize>) {
        (&self.weights, self.made.clone())
    }

    /// Copies the points beyond both ends of rows.
    pub fn complete(&mut self) {
        let (n, wraps) = (self.coarse[0].len, self.coarse[0].wraps);
        for field in &mut self.weights {
            for k in self.made.clone() {
                for row in field.row_mut(k).chunks_exact_mut(n + 2) {
                    (row[0], row[n + 1]) = if wraps { (row[n], row[1]) } else { (0.0, 0.0) };
                }
            }
        }
    }
}

/// The weights of three coarse planes.
pub(super) struct NearbyWeights<'a> {
    pub(super) of: &'a PointWeights,
    first: isize,
    /// By planes; empty where there is none.
    rows: [[&'a [f64]; WEIGHTS]; 3],
}

impl NearbyWeights<'_> {
    /// Where coarse point (i, j, k), which may lie beyond an end of the grid, has its weights: the plane, and the place in
    /// it; none if there is no such point.
    #[inline(always)]
    pub(super) fn place(&self, [i, j, k]: [isize; 3]) -> (usize, Option<usize>) {
        let inside = |at: isize, axis: Axis| match axis.wraps {
            true => Some(at.rem_euclid(axis.len as isize) as usize),
            false => (0..axis.len as isize).contains(&at).then_some(at as usize),
        };
        let [x, y, _] = self.of.coarse;
        let at = match (inside(i, x), inside(j, y)) {
            (Some(i), Some(j)) => Some(self.of.at(i, j)),
            _ => None,
        };
        ((k - self.first) as usize, at)
    }

    /// Weight `corner` of the point of `kind` there; 0 if there is none.
    #[inline(always)]
    pub(super) fn at(
        &self,
        kind: usize,
        (plane, at): (usize, Option<usize>),
        corner: usize,
    ) -> f64 {
        let row = self.rows[plane][FIRST[kind] + number(kind, corner)];
        at.and_then(|at| row.get(at)).copied().unwrap_or(0.0)
    }

    #[inline(always)]
    fn weight(&self, kind: usize, point: [isize; 3], corner: usize) -> f64 {
        self.at(kind, self.place(point), corner)
    }

    fn make_point(
        &self,
        kind: usize,
        base: [isize; 3],
        star: &Star,
        excess: f64,
        planes: &mut [Vec<f64>],
    ) {
        let steps = |axis: usize| if kind >> axis & 1 == 1 { -1..=1 } else { 0..=0 };
        // The sum of all couplings along the point's own axes.
        let mut all = 0.0;
        for dz in steps(2) {
            for dy in steps(1) {
                for dx in steps(0) {
                    if [dx, dy, dz] != [0; 3] {
                        all += star.sum(kind, [dx, dy, dz]);
                    }
                }
            }
        }
        all += part_of_excess(kind, star) * excess;
        for corner in (0..8usize).filter(|corner| corner & !kind == 0) {
            // Along each own axis one may go towards the corner, or stay: then the neighbour is a point amid fewer.
            let towards = |axis: usize| if corner >> axis & 1 == 1 { 1 } else { -1 };
            let mut part = 0.0;
            for stays in (0..kind).filter(|stays| stays & !kind == 0) {
                let mut step = [0; 3];
                let mut of = base;
                for axis in 0..3 {
                    if kind >> axis & 1 == 1 && stays >> axis & 1 == 0 {
                        step[axis] = towards(axis);
                        of[axis] += isize::from(corner >> axis & 1 == 1);
                    }
                }
                let coupling = star.sum(kind, step);
                if coupling == 0.0 {
                    continue;
                }
                part += match stays {
                    0 => coupling,
                    stays => coupling * self.weight(stays, of, corner & stays),
                };
            }
            let at = self.of.at(base[0] as usize, base[1] as usize);
            planes[number(kind, corner)][at] = share(part, all);
        }
    }
}

/// What part of a point's excess belongs to the axes of `kind`.
///
/// As that of planes: one of two opposite neighbours being fixed, the couplings to the two differ, and the excess belongs
/// to their axis; if no couplings differ it belongs to all.
fn part_of_excess(kind: usize, star: &Star) -> f64 {
    let pair = |axis: usize| {
        let along = |d: isize| {
            let mut step = [0; 3];
            step[axis] = d;
            star.sum(1 << axis, step)
        };
        [along(-1), along(1)]
    };
    let pairs: [[f64; 2]; 3] = std::array::from_fn(pair);
    let sum: f64 = pairs.as_flattened().iter().sum();
    let (mut own, mut other) = (0.0, 0.0);
    for (axis, pair) in pairs.into_iter().enumerate() {
        let difference = (pair[0] - pair[1]).abs();
        // Less is rounding.
        if difference > 1e-6 * sum {
            match kind >> axis & 1 {
                1 => own += difference,
                _ => other += difference,
            }
        }
    }
    if own + other > 0.0 {
        own / (own + other)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::hierarchy::finest_shape;
    use super::*;
    use crate::engine::cpu::multigrid::finest::End;

    type Matrix = Vec<Vec<f64>>;

    fn index(lines: &[Line; 3], [x, y, z]: [usize; 3]) -> usize {
        (z * lines[1].axis.len + y) * lines[0].axis.len + x
    }

    fn all_points(lines: &[Line; 3]) -> Vec<[usize; 3]> {
        let [nx, ny, nz] = lines.each_ref().map(|line| line.axis.len);
        let planes = (0..nz).flat_map(|z| (0..ny).map(move |y| (y, z)));
        planes
            .flat_map(|(y, z)| (0..nx).map(move |x| [x, y, z]))
            .collect()
    }

    /// The operator by the letter.
    fn dense(points: &Points, lines: &[Line; 3]) -> Matrix {
        let all = all_points(lines);
        let mut matrix = vec![vec![0.0; all.len()]; all.len()];
        for &place in &all {
            let [x, y, z] = place;
            let here = index(lines, place);
            matrix[here][here] += points.excess.row(z as isize)[points.at(x, y)];
            for (part, step) in points.parts.iter().zip(STEPS) {
                let coupling = part.row(z as isize)[points.at(x, y)];
                let to = |axis: usize| {
                    let len = lines[axis].axis.len as isize;
                    (place[axis] as isize + step[axis]).rem_euclid(len) as usize
                };
                let there = index(lines, [to(0), to(1), to(2)]);
                matrix[here][here] += coupling;
                matrix[there][there] += coupling;
                matrix[here][there] -= coupling;
                matrix[there][here] -= coupling;
            }
        }
        matrix
    }

    /// Fills the planes that are stored beyond the ends.
    fn wrap(points: &mut Points, len: isize) {
        if points.shape.y.wraps {
            let planes = points.excess.rows();
            for field in points.parts.iter_mut().chain([&mut points.excess]) {
                for z in planes.clone().filter(|z| !(0..len).contains(z)) {
                    field.copy_row(z.rem_euclid(len), z);
                }
            }
        }
        points.complete(2);
    }

    /// Checks the transfers and the coarse operator of `points`, and gives the latter.
    fn check(points: &Points, lines: &[Line; 3]) -> (Points, [Line; 3]) {
        let coarse = lines.each_ref().map(|line| line.coarser().0);
        let shape = finest_shape(&coarse, vec![0, coarse[2].axis.len], 0, 0);
        let mut weights = PointWeights::new(points, lines, &coarse, &shape, 2).unwrap();
        let depth = 12;
        let mut product = Points::new(&coarse, &shape, STEPS.len(), depth).unwrap();
        weights.product(points, shape.own(), &mut product, 2);
        weights.complete();
        wrap(&mut product, coarse[2].axis.len as isize);

        // P column by column, and R row by row.
        let (all, coarse_all) = (all_points(lines), all_points(&coarse));
        let stride = lines[0].axis.len + 2;
        let everywhere = vec![1.0; points.shape.x.len];
        let mut p = vec![vec![0.0; coarse_all.len()]; all.len()];
        let mut field = Field::<f64>::new(-2..shape.y.len as isize + 2, shape.x.len).unwrap();
        let len = shape.y.len as isize;
        for (column, &[x, y, z]) in coarse_all.iter().enumerate() {
            for k in -2..len + 2 {
                let row = field.row_mut(k);
                row.fill(0.0);
                let same = match shape.y.wraps {
                    true => k.rem_euclid(len) == z as isize,
                    false => k == z as isize,
                };
                if same {
                    row[product.at(x, y)] = 1.0;
                    let n = coarse[0].axis.len;
                    for row in row.chunks_exact_mut(n + 2) {
                        (row[0], row[n + 1]) = match coarse[0].axis.wraps {
                            true => (row[n], row[1]),
                            false => (0.0, 0.0),
                        };
                    }
                }
            }
            let mut plane = vec![0.0; points.shape.x.len];
            for &[x, y, z] in &all {
                plane.fill(0.0);
                weights.prolong(
                    &field,
                    z as isize,
                    0..lines[1].axis.len,
                    &everywhere,
                    &mut plane,
                );
                p[index(lines, [x, y, z])][column] = plane[y * stride + 1 + x];
            }
        }
        for &[x, y, z] in &all {
            let plane_of = |at: isize| {
                let mut plane = vec![0.0; points.shape.x.len];
                if at.rem_euclid(points.shape.y.len as isize) == z as isize {
                    plane[points.at(x, y)] = 1.0;
                    let n = lines[0].axis.len;
                    for row in plane.chunks_exact_mut(n + 2) {
                        (row[0], row[n + 1]) = match lines[0].axis.wraps {
                            true => (row[n], row[1]),
                            false => (0.0, 0.0),
                        };
                    }
                }
                plane
            };
            let mut out = vec![0.0; shape.x.len];
            for k in 0..len {
                let centre = lines[2].axis.fine_of(k);
                let planes = [centre - 1, centre, centre + 1].map(plane_of);
                let planes = planes.each_ref().map(Vec::as_slice);
                weights.restrict(k, 0..coarse[1].axis.len, 0, planes, &mut out);
                for &[i, j, _] in coarse_all.iter().filter(|place| place[2] == k as usize) {
                    let expected = p[index(lines, [x, y, z])][index(&coarse, [i, j, k as usize])];
                    let is = out[product.at(i, j)];
                    assert!((is - expected).abs() < 1e-15, "restriction {is} {expected}");
                }
            }
        }
        let a = dense(points, lines);
        let made = dense(&product, &coarse);
        for i in 0..coarse_all.len() {
            let ap: Vec<f64> = a
                .iter()
                .map(|row| row.iter().zip(&p).map(|(a, p)| a * p[i]).sum())
                .collect();
            for j in 0..coarse_all.len() {
                let should: f64 = ap.iter().zip(&p).map(|(ap, p)| ap * p[j]).sum();
                let is = made[i][j];
                let sizes = lines.each_ref().map(|line| line.axis);
                assert!(
                    (is - should).abs() < 1e-12,
                    "{sizes:?} {i} {j}: {is} {should}"
                );
            }
        }
        (product, coarse)
    }

    #[test]
    fn the_coarse_operator_is_the_product() {
        let mut seed = 1u64;
        let mut random = move || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as f64 / (1u64 << 31) as f64
        };
        for size in [[5, 4, 6], [7, 5, 3], [4, 6, 5], [3, 3, 9]] {
            for wraps in 0..8usize {
                for share in [0.0, 0.3] {
                    let lines: [Line; 3] = std::array::from_fn(|axis| {
                        let ends = match wraps >> axis & 1 {
                            1 => [End::Wrap; 2],
                            _ => [End::Mirror; 2],
                        };
                        Line::finest(size[axis], ends, 1.0)
                    });
                    let shape = finest_shape(&lines, vec![0, size[2]], 0, 0);
                    let mut points = Points::new(&lines, &shape, 3, 12).unwrap();
                    let all = all_points(&lines);
                    let fixed: Vec<bool> = all.iter().map(|_| random() < share).collect();
                    for &place in &all {
                        let here = index(&lines, place);
                        let [x, y, z] = place;
                        let slot = points.at(x, y);
                        for axis in 0..3 {
                            let mut to = place;
                            to[axis] = (to[axis] + 1) % size[axis];
                            let there = index(&lines, to);
                            let beyond = place[axis] + 1 == size[axis] && wraps >> axis & 1 == 0;
                            if !beyond && !fixed[here] && !fixed[there] {
                                let coupling = 0.1 + random();
                                points.parts[axis].row_mut(z as isize)[slot] = coupling;
                            }
                        }
                        if !fixed[here] && random() < 0.5 {
                            points.excess.row_mut(z as isize)[slot] = random();
                        }
                    }
                    wrap(&mut points, size[2] as isize);
                    let (coarse, lines) = check(&points, &lines);
                    check(&coarse, &lines);
                }
            }
        }
    }
}

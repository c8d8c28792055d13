//! Interpolation that follows the operator, and the coarse operator that goes with it.
//!
//! An operator is a graph: couplings between neighbouring points, and for each point an *excess*, what is on the
//! diagonal beyond the sum of its couplings. So (Au)ᵢ = Σⱼ aᵢⱼ(uᵢ − uⱼ) + xᵢuᵢ, and constants are in its kernel exactly
//! where the excess is zero, however the couplings are rounded.
//!
//! Black box multigrid (Dendy, J. Comput. Phys. 48, 1982, 366-386): coarse points are every second one of both axes. A
//! point between two coarse points on a line takes their values weighted by the couplings towards them, summed across
//! the line; a point amid four takes its neighbours' so that its own equation holds. The coarse operator is Pᵀ A P. So
//! fixed points (whose couplings have become excess of their neighbours), jumps of coefficients and sides of any kind
//! are seen on all levels, at any size. The excess of the coarse operator is Pᵀ A (P1), computed from differences, so
//! that it does not drown in rounding.
//!
//! Each number depends on the operator within two points around, in an order that is fixed: parts of levels on several
//! PEs have the bits of whole ones.

use std::ops::Range;

use super::shape::{Axis, Shape};
use crate::element::Real;
use crate::field::storage::Field;

/// Columns beyond both ends in the rows below.
const GHOSTS: isize = 4;

/// A row of an operator in `f64`.
#[derive(Clone, Default)]
pub(crate) struct OperatorRow {
    /// Couplings to the point to the right, below, below to the right, below to the left; the excess.
    parts: [Vec<f64>; 5],
}

/// The parts of [`OperatorRow`].
pub(crate) const EAST: usize = 0;
pub(crate) const SOUTH: usize = 1;
pub(crate) const SOUTH_EAST: usize = 2;
pub(crate) const SOUTH_WEST: usize = 3;
pub(crate) const EXCESS: usize = 4;

impl OperatorRow {
    /// All zero, for `nx` columns.
    pub fn reset(&mut self, nx: usize) {
        for part in &mut self.parts {
            part.clear();
            part.resize(nx + 2 * GHOSTS as usize, 0.0);
        }
    }

    /// Columns 0 … nx − 1 of a part.
    pub fn columns_mut(&mut self, part: usize) -> &mut [f64] {
        let ghosts = GHOSTS as usize;
        let len = self.parts[part].len();
        &mut self.parts[part][ghosts..len - ghosts]
    }

    /// As [`columns_mut`](Self::columns_mut).
    pub fn columns(&self, part: usize) -> &[f64] {
        let ghosts = GHOSTS as usize;
        &self.parts[part][ghosts..self.parts[part].len() - ghosts]
    }

    fn at(&self, part: usize, x: isize) -> f64 {
        self.parts[part][(x + GHOSTS) as usize]
    }

    fn wrap(&mut self, nx: usize) {
        for part in &mut self.parts {
            let nx = nx as isize;
            for x in (-GHOSTS..0).chain(nx..nx + GHOSTS) {
                part[(x + GHOSTS) as usize] = part[(x.rem_euclid(nx) + GHOSTS) as usize];
            }
        }
    }
}

/// An operator by rows.
pub(crate) trait OperatorRows {
    /// Its level.
    fn shape(&self) -> &Shape;
    /// Row `y`, which the grid has, own or near: `out` comes with zeros.
    fn row(&self, y: isize, out: &mut OperatorRow);
}

/// The last few rows.
struct Window<'a, O> {
    of: &'a O,
    rows: Vec<(isize, OperatorRow)>,
}

const WINDOW: isize = 8;

impl<'a, O: OperatorRows> Window<'a, O> {
    fn new(of: &'a O) -> Self {
        let none = (isize::MIN, OperatorRow::default());
        Window {
            of,
            rows: vec![none; WINDOW as usize],
        }
    }

    /// Sees to it that row `y` is there.
    fn need(&mut self, y: isize) {
        let shape = self.of.shape();
        let (at, row) = &mut self.rows[y.rem_euclid(WINDOW) as usize];
        if *at != y {
            *at = y;
            row.reset(shape.x.len);
            if shape.y.has(y) {
                self.of.row(y, row);
                if shape.x.wraps {
                    row.wrap(shape.x.len);
                }
            }
        }
    }

    fn row(&self, y: isize) -> &OperatorRow {
        let (at, row) = &self.rows[y.rem_euclid(WINDOW) as usize];
        debug_assert_eq!(*at, y);
        row
    }
}

/// The weights with which the points of coarse row J and of the row after it take coarse values; column I is at
/// I + 1, from −1 to the number of coarse columns.
#[derive(Clone, Default)]
struct WeightRow {
    /// The point to the right of (I, J): from (I, J) and (I + 1, J).
    right: [Vec<f64>; 2],
    /// The point below (I, J): from (I, J) and (I, J + 1).
    below: [Vec<f64>; 2],
    /// The point to the right of that: from (I, J), (I + 1, J), (I, J + 1), (I + 1, J + 1).
    amid: [Vec<f64>; 4],
}

/// As they are stored.
pub(crate) struct Transfer<T> {
    /// To the right, from the left and the right.
    pub right: [Field<T>; 2],
    /// Below, from above and below.
    pub below: [Field<T>; 2],
    /// Amid four: from above left, above right, below left, below right.
    pub amid: [Field<T>; 4],
}

/// Coarse rows around the own ones for which weights are stored.
pub(crate) const WEIGHT_MARGIN: usize = 3;

impl<T: Real> Transfer<T> {
    fn new(coarse: &Shape) -> std::io::Result<Transfer<T>> {
        let field = || Field::new(coarse.stored(), coarse.x.len);
        Ok(Transfer {
            right: [field()?, field()?],
            below: [field()?, field()?],
            amid: [field()?, field()?, field()?, field()?],
        })
    }
}

/// Part of a sum of parts and an excess; parts below zero, which coarse operators have here and there, count as none, so
/// that shares are at least 0 and come to 1 at most.
fn share(part: f64, all: f64) -> f64 {
    if part > 0.0 { part / all } else { 0.0 }
}

/// Makes the interpolation from `coarse` to the level of `fine` and the coarse operator. `take` gets each row of the
/// latter that this PE computes: those of its cut if `coarse` is not spread but `fine` is, else all of its own.
pub(crate) fn coarsen<T: Real, O: OperatorRows>(
    fine: &O,
    coarse: &Shape,
    mut take: impl FnMut(isize, &OperatorRow),
) -> std::io::Result<Transfer<T>> {
    let shape = fine.shape();
    let computed = computed_rows(shape, coarse);
    let margin = WEIGHT_MARGIN as isize;
    let with_weights = |j: isize| {
        shape.y.coarser().has(j)
            && (computed.start - margin..computed.end + margin).contains(&j)
    };
    let mut transfer = Transfer::new(coarse)?;
    let mut maker = Maker::new(fine, coarse.x.len);
    let mut out = OperatorRow::default();
    for j in computed.start - margin..computed.end + margin {
        if !with_weights(j) {
            continue;
        }
        maker.weights(j);
        store(&mut transfer, j, maker.at(j));
        if computed.contains(&j) {
            maker.weights(j - 1);
            maker.right_weights(j + 1);
            out.reset(coarse.x.len);
            maker.product(j, &mut out);
            take(j, &out);
        }
    }
    Ok(transfer)
}

/// The rows of `coarse` that come from what this PE has of the level `fine`.
pub(crate) fn computed_rows(fine: &Shape, coarse: &Shape) -> Range<isize> {
    if fine.spread {
        coarse.cuts[coarse.me] as isize..coarse.cuts[coarse.me + 1] as isize
    } else {
        coarse.own()
    }
}

fn store<T: Real>(transfer: &mut Transfer<T>, j: isize, from: &WeightRow) {
    let fields = [
        transfer.right.iter_mut().zip(&from.right),
        transfer.below.iter_mut().zip(&from.below),
    ];
    let amid = transfer.amid.iter_mut().zip(&from.amid);
    for (field, weights) in fields.into_iter().flatten().chain(amid) {
        let row = field.padded_row_mut(j);
        let first = crate::field::storage::PAD - 1;
        for (out, &weight) in row[first..].iter_mut().zip(weights) {
            *out = T::from_f64(weight);
        }
    }
}

/// Weights and products row by row.
struct Maker<'a, O> {
    window: Window<'a, O>,
    x: Axis,
    y: Axis,
    columns: isize,
    /// Of four coarse rows, and how much of them is there.
    weights: Vec<(isize, Made, WeightRow)>,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Made {
    Nothing,
    Right,
    All,
}

impl<'a, O: OperatorRows> Maker<'a, O> {
    fn new(fine: &'a O, columns: usize) -> Self {
        let shape = fine.shape();
        let none = (isize::MIN, Made::Nothing, WeightRow::default());
        Maker {
            x: shape.x,
            y: shape.y,
            window: Window::new(fine),
            columns: columns as isize,
            weights: vec![none; 4],
        }
    }

    fn at(&self, j: isize) -> &WeightRow {
        let (at, _, row) = &self.weights[j.rem_euclid(4) as usize];
        debug_assert_eq!(*at, j);
        row
    }

    /// Takes the row of weights `j` out, all zero if it was another.
    fn take(&mut self, j: isize) -> (Made, WeightRow) {
        let (at, made, row) = &mut self.weights[j.rem_euclid(4) as usize];
        let (mut made, mut row) = (*made, std::mem::take(row));
        if *at != j {
            made = Made::Nothing;
            let len = self.columns as usize + 2;
            let all = row.right.iter_mut().chain(&mut row.below);
            for weights in all.chain(&mut row.amid) {
                weights.clear();
                weights.resize(len, 0.0);
            }
        }
        (made, row)
    }

    fn put(&mut self, j: isize, made: Made, row: WeightRow) {
        self.weights[j.rem_euclid(4) as usize] = (j, made, row);
    }

    /// The coarse columns, those just outside included, that exist.
    fn columns(&self) -> impl Iterator<Item = (usize, isize)> + use<O> {
        let (x, coarse) = (self.x, self.x.coarser());
        (-1..=self.columns)
            .filter(move |&i| coarse.has(i))
            .map(move |i| ((i + 1) as usize, x.fine_of(i)))
    }

    /// The weights of points in coarse row `j` itself.
    fn right_weights(&mut self, j: isize) {
        let (made, mut row) = self.take(j);
        if made < Made::Right && self.y.coarser().has(j) {
            let y = self.y.fine_of(j);
            self.window.need(y - 1);
            self.window.need(y);
            let (above, here) = (self.window.row(y - 1), self.window.row(y));
            for (at, left) in self.columns() {
                if !self.x.has_between(at as isize - 1) {
                    continue;
                }
                let x = left + 1;
                let west = here.at(EAST, x - 1)
                    + (above.at(SOUTH_EAST, x - 1) + here.at(SOUTH_WEST, x));
                let east =
                    here.at(EAST, x) + (above.at(SOUTH_WEST, x + 1) + here.at(SOUTH_EAST, x));
                let all = (west.max(0.0) + east.max(0.0)) + here.at(EXCESS, x).max(0.0);
                row.right[0][at] = share(west, all);
                row.right[1][at] = share(east, all);
            }
        }
        self.put(j, made.max_of(Made::Right), row);
    }

    /// All weights of row `j`.
    fn weights(&mut self, j: isize) {
        self.right_weights(j);
        self.right_weights(j + 1);
        let (made, mut row) = self.take(j);
        if made < Made::All && self.y.has_between(j) {
            let y = self.y.fine_of(j) + 1;
            self.window.need(y - 1);
            self.window.need(y);
            let (above, here) = (self.window.row(y - 1), self.window.row(y));
            for (at, x) in self.columns() {
                let north = above.at(SOUTH, x)
                    + (above.at(SOUTH_EAST, x - 1) + above.at(SOUTH_WEST, x + 1));
                let south =
                    here.at(SOUTH, x) + (here.at(SOUTH_EAST, x) + here.at(SOUTH_WEST, x));
                let all = (north.max(0.0) + south.max(0.0)) + here.at(EXCESS, x).max(0.0);
                row.below[0][at] = share(north, all);
                row.below[1][at] = share(south, all);
            }
            let lower = self.at(j + 1);
            for (at, left) in self.columns() {
                // The last one has no neighbour here whose weights are known, and is nobody's.
                if !self.x.has_between(at as isize - 1) || at as isize > self.columns {
                    continue;
                }
                let x = left + 1;
                let (west, east) = (here.at(EAST, x - 1).max(0.0), here.at(EAST, x).max(0.0));
                let (north, south) = (above.at(SOUTH, x).max(0.0), here.at(SOUTH, x).max(0.0));
                let corners = [
                    above.at(SOUTH_EAST, x - 1),
                    above.at(SOUTH_WEST, x + 1),
                    here.at(SOUTH_WEST, x),
                    here.at(SOUTH_EAST, x),
                ]
                .map(|corner| corner.max(0.0));
                let all = ((west + east) + (north + south))
                    + ((corners[0] + corners[1]) + (corners[2] + corners[3]))
                    + here.at(EXCESS, x).max(0.0);
                for (corner, &direct) in corners.iter().enumerate() {
                    let (right, down) = (corner % 2, corner / 2);
                    let (across, along) = if down == 0 {
                        (north, &row.right)
                    } else {
                        (south, &lower.right)
                    };
                    let side = [west, east][right];
                    let part =
                        direct + (across * along[right][at] + side * row.below[down][at + right]);
                    row.amid[corner][at] = share(part, all);
                }
            }
        }
        self.put(j, made.max_of(Made::All), row);
    }

    /// Row `j` of Pᵀ A P.
    fn product(&mut self, j: isize, out: &mut OperatorRow) {
        // Fine rows −2 … 2 around coarse row j, where they are. Where there is none between two coarse rows, these are
        // neighbours.
        let centre = self.y.fine_of(j);
        let up = Neighbours::of(self.y, j);
        let first = centre - if up.before { 2 } else { 1 };
        let last = centre + if up.after { 2 } else { 1 };
        // The couplings upwards are in the row above; the topmost has none that matter.
        for y in first..=last {
            self.window.need(y);
        }
        let row_at = |down: isize| self.window.row(centre + up.step(down));
        let rows: [&OperatorRow; 5] = std::array::from_fn(|k| row_at(k as isize - 2));
        let weights = [self.at(j - 1), self.at(j), self.at(j + 1)];
        for i in 0..self.columns {
            let across = Neighbours::of(self.x, i);
            let point = Stencil {
                x: self.x.fine_of(i),
                i: (i + 1) as usize,
                rows: &rows,
                weights: &weights,
                across,
                up,
            };
            let parts = point.product();
            for (part, value) in parts.into_iter().enumerate() {
                out.columns_mut(part)[i as usize] = value;
            }
        }
    }
}

impl Made {
    fn max_of(self, other: Made) -> Made {
        if self < other { other } else { self }
    }
}

/// Whether there are points between a coarse point and the ones before and after it.
#[derive(Clone, Copy)]
struct Neighbours {
    before: bool,
    after: bool,
}

impl Neighbours {
    fn of(axis: Axis, coarse: isize) -> Neighbours {
        Neighbours {
            before: axis.has_between(coarse - 1),
            after: axis.has_between(coarse),
        }
    }

    /// The distance to place `place`: ±2 is the next coarse point, ±1 the one between, if there is one.
    fn step(self, place: isize) -> isize {
        match place {
            -2 if !self.before => -1,
            2 if !self.after => 1,
            place => place,
        }
    }

    /// The place of the neighbour of `place` in direction `by`.
    fn next(self, place: isize, by: isize) -> isize {
        match (place, by) {
            (0, 1) if !self.after => 2,
            (0, -1) if !self.before => -2,
            _ => place + by,
        }
    }
}

/// What the coarse row of one point is made of.
struct Stencil<'a> {
    x: isize,
    /// Its column among the weights.
    i: usize,
    /// Places −2 … 2.
    rows: &'a [&'a OperatorRow; 5],
    /// Coarse rows −1, 0, 1.
    weights: &'a [&'a WeightRow; 3],
    across: Neighbours,
    up: Neighbours,
}

impl Stencil<'_> {
    /// The weight with which the point at place (px, py) takes the value of the coarse point (ox, oy) away.
    #[inline(always)]
    fn weight(&self, px: isize, py: isize, ox: isize, oy: isize) -> f64 {
        // The coarse point before the place, and where the parent is from there.
        let (cx, cy) = (px.div_euclid(2), py.div_euclid(2));
        let (rx, ry) = ((ox - cx) as usize, (oy - cy) as usize);
        let at = (self.i as isize + cx) as usize;
        let row = self.weights[(cy + 1) as usize];
        match (px.rem_euclid(2), py.rem_euclid(2)) {
            (0, 0) => 1.0,
            (1, 0) => row.right[rx][at],
            (0, 1) => row.below[ry][at],
            _ => row.amid[2 * ry + rx][at],
        }
    }

    /// The coarse points that place `place` takes values of.
    #[inline(always)]
    fn parents(place: isize) -> std::ops::RangeInclusive<isize> {
        let first = place.div_euclid(2);
        first..=first + place.rem_euclid(2)
    }

    /// The interpolant of 1 at a place.
    #[inline(always)]
    fn of_one(&self, px: isize, py: isize) -> f64 {
        let mut sum = 0.0;
        for oy in Self::parents(py) {
            for ox in Self::parents(px) {
                sum += self.weight(px, py, ox, oy);
            }
        }
        sum
    }

    /// The coupling of the point at (px, py) to its neighbour in direction (dx, dy).
    #[inline(always)]
    fn coupling(&self, px: isize, py: isize, dx: isize, dy: isize) -> f64 {
        let x = self.x + self.across.step(px);
        let here = self.rows[(py + 2) as usize];
        let above = || self.rows[(self.up.next(py, -1) + 2) as usize];
        match (dx, dy) {
            (1, 0) => here.at(EAST, x),
            (-1, 0) => here.at(EAST, x - 1),
            (0, 1) => here.at(SOUTH, x),
            (1, 1) => here.at(SOUTH_EAST, x),
            (-1, 1) => here.at(SOUTH_WEST, x),
            (0, -1) => above().at(SOUTH, x),
            (-1, -1) => above().at(SOUTH_EAST, x - 1),
            _ => above().at(SOUTH_WEST, x + 1),
        }
    }

    fn product(&self) -> [f64; 5] {
        const AROUND: [(isize, isize); 8] = [
            (1, 0),
            (-1, 0),
            (0, 1),
            (0, -1),
            (1, 1),
            (-1, -1),
            (-1, 1),
            (1, -1),
        ];
        // East, south, south-east, south-west, in the order of the parts.
        const OFFSETS: [(isize, isize); 4] = [(1, 0), (0, 1), (1, 1), (-1, 1)];
        let mut parts = [0.0; 5];
        // What all couplings of the coarse point come to, as far as rounding is concerned.
        let mut size = 0.0;
        for py in -1..=1 {
            if (py == -1 && !self.up.before) || (py == 1 && !self.up.after) {
                continue;
            }
            for px in -1..=1 {
                if (px == -1 && !self.across.before) || (px == 1 && !self.across.after) {
                    continue;
                }
                let own = self.weight(px, py, 0, 0);
                if own == 0.0 {
                    continue;
                }
                let x = self.x + self.across.step(px);
                let excess = self.rows[(py + 2) as usize].at(EXCESS, x);
                let one = self.of_one(px, py);
                let (mut diagonal, mut of_one) = (excess, excess * one);
                for (dx, dy) in AROUND {
                    let coupling = self.coupling(px, py, dx, dy);
                    if coupling == 0.0 {
                        continue;
                    }
                    diagonal += coupling;
                    let (qx, qy) = (self.across.next(px, dx), self.up.next(py, dy));
                    of_one += coupling * (one - self.of_one(qx, qy));
                    for (part, (ox, oy)) in OFFSETS.into_iter().enumerate() {
                        if Self::parents(qx).contains(&ox) && Self::parents(qy).contains(&oy) {
                            parts[part] += own * coupling * self.weight(qx, qy, ox, oy);
                        }
                    }
                }
                for (part, (ox, oy)) in OFFSETS.into_iter().enumerate() {
                    if Self::parents(px).contains(&ox) && Self::parents(py).contains(&oy) {
                        parts[part] -= own * diagonal * self.weight(px, py, ox, oy);
                    }
                }
                parts[EXCESS] += own * of_one;
                size += own * diagonal;
            }
        }
        // What is left where all should cancel is rounding; a coupling made of it would tie what is not tied.
        for part in &mut parts {
            if part.abs() <= 1e-14 * size {
                *part = 0.0;
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::super::finest::{End, Finest};
    use super::*;

    /// An operator as rows in memory.
    struct Stored {
        shape: Shape,
        rows: Vec<OperatorRow>,
    }

    impl OperatorRows for Stored {
        fn shape(&self) -> &Shape {
            &self.shape
        }
        fn row(&self, y: isize, out: &mut OperatorRow) {
            let from = &self.rows[y.rem_euclid(self.shape.y.len as isize) as usize];
            for part in 0..5 {
                out.columns_mut(part).copy_from_slice(from.columns(part));
            }
        }
    }

    fn stored(of: &impl OperatorRows) -> Stored {
        let shape = of.shape().clone();
        let rows = (0..shape.y.len)
            .map(|y| {
                let mut row = OperatorRow::default();
                row.reset(shape.x.len);
                of.row(y as isize, &mut row);
                row
            })
            .collect();
        Stored { shape, rows }
    }

    type Matrix = Vec<Vec<f64>>;

    fn dense(of: &Stored) -> Matrix {
        let (nx, ny) = (of.shape.x.len, of.shape.y.len);
        let mut matrix = vec![vec![0.0; nx * ny]; nx * ny];
        for y in 0..ny {
            for x in 0..nx {
                let from = y * nx + x;
                matrix[from][from] += of.rows[y].columns(EXCESS)[x];
                for (part, dx, dy) in [
                    (EAST, 1, 0),
                    (SOUTH, 0, 1),
                    (SOUTH_EAST, 1, 1),
                    (SOUTH_WEST, nx - 1, 1),
                ] {
                    let to = (y + dy) % ny * nx + (x + dx) % nx;
                    let coupling = of.rows[y].columns(part)[x];
                    matrix[from][from] += coupling;
                    matrix[to][to] += coupling;
                    matrix[from][to] -= coupling;
                    matrix[to][from] -= coupling;
                }
            }
        }
        matrix
    }

    /// P, fine points by coarse points.
    fn interpolation(fine: &Shape, coarse: &Shape, transfer: &Transfer<f64>) -> Matrix {
        let mut p = vec![vec![0.0; coarse.x.len * coarse.y.len]; fine.x.len * fine.y.len];
        for y in 0..fine.y.len {
            for x in 0..fine.x.len {
                let (j, below) = fine.y.coarse_of(y as isize);
                let (i, right) = fine.x.coarse_of(x as isize);
                let mut set = |i: isize, j: isize, weight: f64| {
                    if !coarse.x.has(i) || !coarse.y.has(j) {
                        assert_eq!(weight, 0.0);
                        return;
                    }
                    let i = i.rem_euclid(coarse.x.len as isize) as usize;
                    let j = j.rem_euclid(coarse.y.len as isize) as usize;
                    p[y * fine.x.len + x][j * coarse.x.len + i] += weight;
                };
                let at = |field: &Field<f64>| field.row(j)[i as usize];
                match (right, below) {
                    (false, false) => set(i, j, 1.0),
                    (true, false) => (0..2).for_each(|k| {
                        set(i + k as isize, j, at(&transfer.right[k]));
                    }),
                    (false, true) => (0..2).for_each(|k| {
                        set(i, j + k as isize, at(&transfer.below[k]));
                    }),
                    (true, true) => (0..4).for_each(|k| {
                        let (di, dj) = (k as isize % 2, k as isize / 2);
                        set(i + di, j + dj, at(&transfer.amid[k]));
                    }),
                }
            }
        }
        p
    }

    fn check(fine: &Stored) -> Stored {
        let coarse = fine.shape.coarser();
        let mut rows = Vec::new();
        let transfer: Transfer<f64> = coarsen(fine, &coarse, |y, row| {
            assert_eq!(y, rows.len() as isize);
            rows.push(row.clone());
        })
        .unwrap();
        let made = Stored {
            shape: coarse.clone(),
            rows,
        };
        let (a, p) = (dense(fine), interpolation(&fine.shape, &coarse, &transfer));
        let points = coarse.x.len * coarse.y.len;
        let product: Matrix = (0..points)
            .map(|i| {
                (0..points)
                    .map(|j| {
                        let column: Vec<f64> = a
                            .iter()
                            .map(|row| row.iter().zip(&p).map(|(a, p)| a * p[j]).sum())
                            .collect();
                        column.iter().zip(&p).map(|(ap, p)| ap * p[i]).sum()
                    })
                    .collect()
            })
            .collect();
        let made_dense = dense(&made);
        for i in 0..points {
            for j in 0..points {
                let (is, should) = (made_dense[i][j], product[i][j]);
                // A point that keeps its value is a coarse point without an equation, but P is 1 there.
                assert!(
                    (is - should).abs() < 1e-12,
                    "{:?} ({i}, {j}): {is} {should}",
                    fine.shape
                );
            }
        }
        made
    }

    #[test]
    fn the_coarse_operator_is_the_product() {
        let mut seed = 1u64;
        for (nx, ny) in [(9, 7), (8, 10), (5, 12), (11, 6), (4, 4), (1, 9)] {
            for wraps in 0..4 {
                for share in [0, 2, 4, 9] {
                    let ends = |wraps: bool, at: usize| match (wraps, at) {
                        (true, _) => [End::Wrap; 2],
                        (false, 0) => [End::Fixed, End::Mirror],
                        (false, _) => [End::Mirror; 2],
                    };
                    let ends = [ends(wraps & 1 != 0, share % 2), ends(wraps & 2 != 0, share % 3)];
                    let axis = |len, ends: [End; 2]| Axis {
                        len,
                        wraps: ends[0] == End::Wrap,
                    };
                    let shape =
                        Shape::finest(axis(nx, ends[0]), axis(ny, ends[1]), vec![0, ny], 0);
                    let mut fixed: Field<u8> = Field::new(shape.stored(), nx).unwrap();
                    let mut row = vec![];
                    for _ in 0..nx * ny {
                        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        row.push(u8::from(share > 0 && (seed >> 33) % share as u64 == 0));
                    }
                    for y in shape.stored().filter(|&y| shape.y.has(y)) {
                        let from = y.rem_euclid(ny as isize) as usize * nx;
                        fixed.row_mut(y).copy_from_slice(&row[from..from + nx]);
                    }
                    let finest = Finest {
                        shape,
                        ends,
                        fixed: Some(fixed),
                    };
                    check(&check(&stored(&finest)));
                }
            }
        }
    }
}

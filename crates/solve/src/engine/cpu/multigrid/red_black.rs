//! Relaxations of one colour after the other, residuals and transfers in one pass through memory: of the finest level where
//! all couplings are 1 and no cell inside is fixed.
//!
//! A wavefront as in `wavefront.rs`, with two differences. A step changes points of one colour, of which none depends on
//! another one, so rows are changed in place. And rows are kept with even and odd columns apart, so that the points of a
//! colour and their neighbours lie side by side: all lanes of a vector are used, and what is not needed is not loaded.
//!
//! Points have neighbours of rows that are at other steps in the same column only. So all steps can take some columns
//! before they take the next ones, and what these need stays in the first-level cache.

use crosswarp_prim::leaf::LANES;

use super::finest::{End, Finest};
use super::half_rows::{Equations, OF_RIGHT_SIDE, Ring, every_second};
use super::hooks::{Prolongation, Restriction};
use super::interpolation::{AMID, BELOW, RIGHT, WEIGHTS};
use super::rows::Ahead;
use super::smoothing::{Colour, Step};
use super::sums::LeafSums;
use super::wavefront::AHEAD;
use crate::element::Real;
use crate::element::simd::Work;
use crate::field::storage::Field;

/// Elements of half a row that all steps take before the next ones.
const BLOCK: usize = 128;
/// Those of a leaf.
const LEAF: usize = LANES / 2;
const _: () = assert!(BLOCK.is_multiple_of(LEAF));
/// Steps of a pass, at most: three before and three after a correction.
const MOST_STEPS: usize = 6;

/// A pass over the finest level: corrected, relaxed, measured, and its residual restricted.
///
/// Which rows are right afterwards, see [`Pass`](super::wavefront::Pass).
pub(super) struct RedBlackPass<'a, T> {
    pub finest: &'a Finest,
    pub right_side: Option<&'a Field<f64>>,
    pub u: &'a mut Field<f64>,
    /// What is added to the field first, and with what it is multiplied.
    pub prolongation: Option<(Prolongation<'a, T>, f64)>,
    /// What each step relaxes; the first one of a field that is corrected with ω = 1.
    pub steps: &'a [Step],
    /// The colour whose equations hold afterwards: that of the last step.
    pub solved: Colour,
    /// Gets the squares of the residual, which is 0 at the points of `solved`.
    pub sum: Option<&'a mut LeafSums>,
    pub margin: usize,
    /// Where residuals go, and with what they are multiplied.
    pub restriction: Restriction<'a, T>,
    pub scale: f64,
    pub ring: Ring<'a>,
}

/// What is to be done when a row has been reached.
struct Todo<'a> {
    /// The row to be loaded,
    load: Option<isize>,
    /// the equations that each step relaxes, and its ω,
    relaxes: [Option<(Equations<'a>, f64)>; MOST_STEPS],
    /// those whose residual is restricted,
    residual: Option<HalfRow<'a>>,
    /// and the row that is done.
    store: Option<isize>,
}

/// Half `half` of row `y`.
struct HalfRow<'a> {
    y: isize,
    half: usize,
    equations: Equations<'a>,
}

impl<T: Real> Work for RedBlackPass<'_, T> {
    #[inline(always)]
    fn run(mut self) {
        let solves_first = self.steps.first().is_some_and(|step| step.omega == 1.0);
        debug_assert!(self.prolongation.is_none() || solves_first);
        let shape = &self.finest.shape;
        let first = shape.rows(self.margin + self.steps.len());
        let half = shape.x.len.div_ceil(2);
        // A remainder belongs to the last block: grids often have a column more than a power of two.
        let blocks = (half / BLOCK).max(1);
        let end = shape.rows(self.margin).end + self.delay(self.steps.len());
        for now in first.start..end {
            let mut ahead = Ahead::default();
            if first.contains(&(now + AHEAD)) {
                let right_side = self.right_side.map(|field| field.row(now + AHEAD));
                ahead = Ahead::of([Some(self.u.row(now + AHEAD)), right_side], None);
            }
            let at_a_time = ahead.at_a_time(blocks);
            let todo = self.todo(now);
            for block in 0..blocks {
                ahead.ask(block, at_a_time);
                let start = block * BLOCK;
                let n = if block + 1 < blocks {
                    BLOCK
                } else {
                    half - start
                };
                // The compiler knows how long a whole block is.
                if n == BLOCK {
                    self.block(&todo, start, BLOCK);
                } else {
                    self.block(&todo, start, n);
                }
            }
            self.complete_rows(now);
        }
    }
}

impl<'a, T: Real> RedBlackPass<'a, T> {
    /// How many rows step `step` is behind. Behind all steps are the residual and what is stored.
    #[inline(always)]
    fn delay(&self, step: usize) -> isize {
        step as isize + 1
    }

    #[inline(always)]
    fn is_loaded(&self, y: isize) -> bool {
        self.finest
            .shape
            .rows(self.margin + self.steps.len())
            .contains(&y)
    }

    /// Whether step `step` changes row `y`.
    #[inline(always)]
    fn changes(&self, step: usize, y: isize) -> bool {
        let margin = self.margin + self.steps.len() - step - 1;
        self.finest.shape.rows(margin).contains(&y) && !self.finest.row_is_fixed(y)
    }

    /// Whether the residual of row `y` is restricted.
    #[inline(always)]
    fn is_restricted(&self, y: isize) -> bool {
        self.finest.shape.rows(self.margin - 1).contains(&y)
    }

    #[inline(always)]
    fn colour(&self, step: usize) -> Colour {
        self.steps[step].colour.expect("all steps have a colour")
    }

    /// The half of row `y` that has a colour. A row beyond an end that wraps around stands for one of the same
    /// parity: else the grid would not have two colours.
    #[inline(always)]
    fn half_of(&self, y: isize, colour: Colour) -> usize {
        usize::from(colour.has_odd_columns((y & 1) as usize))
    }

    #[inline(always)]
    fn equations(&self, y: isize, half: usize) -> Equations<'a> {
        self.ring.equations(self.finest, y, half)
    }

    #[inline(always)]
    fn todo(&self, now: isize) -> Todo<'a> {
        let count = self.steps.len();
        let mut todo = Todo {
            load: self.is_loaded(now).then_some(now),
            relaxes: [None; MOST_STEPS],
            residual: None,
            store: None,
        };
        for step in 0..count {
            let y = now - self.delay(step);
            if self.changes(step, y) {
                let half = self.half_of(y, self.colour(step));
                todo.relaxes[step] = Some((self.equations(y, half), self.steps[step].omega));
            }
        }
        let y = now - self.delay(count);
        if self.finest.row_is_fixed(y) {
            return todo;
        }
        if self.is_restricted(y) {
            let half = self.half_of(y, self.solved.other());
            todo.residual = Some(HalfRow {
                y,
                half,
                equations: self.equations(y, half),
            });
        }
        todo.store = self
            .finest
            .shape
            .rows(self.margin)
            .contains(&y)
            .then_some(y);
        todo
    }

    /// All that is to be done to `n` elements of halves from `start` on. A row that is behind another one comes after it.
    #[inline(always)]
    fn block(&mut self, todo: &Todo<'_>, start: usize, n: usize) {
        if let Some(y) = todo.load {
            self.load(y, start, n);
        }
        let inverse = self.finest.inverse();
        for &(equations, omega) in todo.relaxes.iter().flatten() {
            if omega == 1.0 {
                equations.solve(inverse, start, n);
            } else {
                equations.relax(inverse, omega, start, n);
            }
        }
        if let Some(row) = &todo.residual {
            self.residual(row, start, n);
        }
        if let Some(y) = todo.store {
            self.store(y, start, n);
        }
    }

    /// What is left to do when all blocks have been done: ends of rows, and what takes whole rows.
    #[inline(always)]
    fn complete_rows(&mut self, now: isize) {
        if self.is_loaded(now) {
            self.complete(now, 0);
            self.complete(now, 1);
        }
        for step in 0..self.steps.len() {
            let y = now - self.delay(step);
            if self.changes(step, y) {
                self.complete(y, self.half_of(y, self.colour(step)));
            }
        }
        let y = now - self.delay(self.steps.len());
        if let Some(sum) = &mut self.sum
            && sum.has(y)
        {
            sum.end_row_of_halves(y);
        }
        if self.is_restricted(y) {
            let half = self.half_of(y, self.solved.other());
            self.complete_residual(y, half);
            // On coarse rows coarse points are the even columns.
            self.restriction.took_halves(y, (half == 0) == (y & 1 == 0));
        }
    }

    /// Loads row `y` of the field and the right side. Of a field that is corrected the half that the first step computes is left
    /// out.
    #[inline(always)]
    fn load(&mut self, y: isize, start: usize, n: usize) {
        let columns = 1 + 2 * start..1 + 2 * (start + n);
        let ring = self.ring;
        if let Some(right_side) = self.right_side {
            let from = &right_side.with_padding(y, 1)[columns.clone()];
            every_second(from, ring, y, OF_RIGHT_SIDE, start);
        }
        if self.prolongation.is_some() && !self.finest.row_is_fixed(y) {
            self.load_corrected(y, start, n);
            return;
        }
        let from = &self.u.with_padding(y, 1)[columns];
        every_second(from, ring, y, 0, start);
    }

    /// Loads half of row `y` of the field, with its correction.
    #[inline(always)]
    fn load_corrected(&mut self, y: isize, start: usize, n: usize) {
        let Some((prolongation, scale)) = &self.prolongation else {
            return;
        };
        let half = self.half_of(y, self.colour(0).other());
        let scale = *scale;
        let from = self.u.with_padding(y, 1)[1 + 2 * start..]
            .as_chunks::<2>()
            .0;
        let (from, out) = (&from[..n], &self.ring.half(y, half)[1 + start..][..n]);
        let (j, between) = prolongation.fine.y.coarse_of(y);
        let (row, coarse) = (prolongation.transfer.whole(j), prolongation.coarse);
        let upper = &coarse.with_padding(j, 1)[1 + start..][..n + 1];
        match (between, half == 1) {
            (false, false) => {
                for i in 0..n {
                    out[i].set(from[i][0] + upper[i].to_f64() * scale);
                }
            }
            (false, true) => {
                let (left, right) = (
                    weights(row, RIGHT[0], start, n),
                    weights(row, RIGHT[1], start, n),
                );
                for i in 0..n {
                    let correction = left[i] * upper[i] + right[i] * upper[i + 1];
                    out[i].set(from[i][1] + correction.to_f64() * scale);
                }
            }
            (true, false) => {
                let lower = &coarse.with_padding(j + 1, 1)[1 + start..][..n];
                let (above, below) = (
                    weights(row, BELOW[0], start, n),
                    weights(row, BELOW[1], start, n),
                );
                for i in 0..n {
                    let correction = above[i] * upper[i] + below[i] * lower[i];
                    out[i].set(from[i][0] + correction.to_f64() * scale);
                }
            }
            (true, true) => {
                let lower = &coarse.with_padding(j + 1, 1)[1 + start..][..n + 1];
                let (upper_left, upper_right) = (
                    weights(row, AMID[0], start, n),
                    weights(row, AMID[1], start, n),
                );
                let (lower_left, lower_right) = (
                    weights(row, AMID[2], start, n),
                    weights(row, AMID[3], start, n),
                );
                for i in 0..n {
                    let correction = (upper_left[i] * upper[i] + upper_right[i] * upper[i + 1])
                        + (lower_left[i] * lower[i] + lower_right[i] * lower[i + 1]);
                    out[i].set(from[i][1] + correction.to_f64() * scale);
                }
            }
        }
    }

    /// Half a row of the residual: what the restriction takes, and its squares.
    #[inline(always)]
    fn residual(&mut self, row: &HalfRow<'_>, start: usize, n: usize) {
        let mut at = start;
        while at < start + n {
            // As in `run`.
            if start + n - at >= LEAF {
                self.residual_of_leaf(row, at, LEAF);
            } else {
                self.residual_of_leaf(row, at, start + n - at);
            }
            at += LEAF;
        }
    }

    #[inline(always)]
    fn residual_of_leaf(&mut self, row: &HalfRow<'_>, start: usize, n: usize) {
        let HalfRow { y, half, equations } = *row;
        let (part, scale) = (self.finest.part(1, y), self.scale);
        let of = equations.part(start, n);
        let out = &mut self.restriction.row(y)[1 + start..][..n];
        let mut squares = [0.0; LEAF];
        for i in 0..n {
            let value = of.residual(i);
            squares[i] = value * value;
            out[i] = T::from_f64((value * part) * scale);
        }
        let Some(sum) = &mut self.sum else { return };
        if !sum.has(y) {
            return;
        }
        let nx = self.finest.shape.x.len;
        for (x, end) in [0, nx - 1].into_iter().zip(self.finest.ends[0]) {
            if end == End::Fixed && x % 2 == half && (start..start + n).contains(&(x / 2)) {
                squares[x / 2 - start] = 0.0;
            }
        }
        if nx % 2 == half && nx / 2 == start + n - 1 {
            // There is no odd column after the last even one.
            squares[n - 1] = 0.0;
        }
        sum.add_half(start / LEAF, half, &squares);
    }

    /// The ends of a half of the residual of row `y`, and the columns beyond them.
    #[inline(always)]
    fn complete_residual(&mut self, y: isize, half: usize) {
        let (finest, scale) = (self.finest, self.scale);
        let of = self.equations(y, half);
        let out = self.restriction.row(y);
        if finest.row_is_fixed(y) {
            out.fill(T::ZERO);
            return;
        }
        let nx = finest.shape.x.len;
        for (x, end) in [0, nx - 1].into_iter().zip(finest.ends[0]) {
            if x % 2 == half && end != End::Wrap {
                let value = match end {
                    End::Fixed => 0.0,
                    _ => (of.residual(x / 2) * finest.part(0, x as isize)) * finest.part(1, y),
                };
                out[1 + x / 2] = T::from_f64(value * scale);
            }
        }
        // Beyond other ends weights are 0.
        let [left, right] = finest.ends[0];
        out[0] = match left {
            End::Wrap if half == 1 => out[nx / 2],
            _ => T::ZERO,
        };
        if nx % 2 == half {
            out[1 + nx / 2] = match right {
                End::Wrap => out[1],
                _ => T::ZERO,
            };
        }
    }

    /// Writes row `y` to the field.
    #[inline(always)]
    fn store(&mut self, y: isize, start: usize, n: usize) {
        let even = &self.ring.half(y, 0)[1 + start..][..n];
        let odd = &self.ring.half(y, 1)[1 + start..][..n];
        // After a last even column there is padding.
        let out = &mut self.u.with_padding_mut(y, 1)[1 + 2 * start..][..2 * n];
        for (i, pair) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            *pair = [even[i].get(), odd[i].get()];
        }
    }

    /// The ends of half of row `y` of the field, which keep their value where they are fixed, and the columns beyond them.
    #[inline(always)]
    fn complete(&self, y: isize, half: usize) {
        let finest = self.finest;
        let (nx, row) = (finest.shape.x.len, self.u.row(y));
        let out = self.ring.half(y, half);
        for (x, end) in [0, nx - 1].into_iter().zip(finest.ends[0]) {
            if x % 2 == half && end == End::Fixed {
                out[1 + x / 2].set(row[x]);
            }
        }
        let [left, right] = finest.ends[0];
        if half == 1 {
            out[0].set(match left {
                End::Fixed => 0.0,
                End::Mirror => out[1].get(),
                End::Wrap => out[nx / 2].get(),
            });
        }
        if nx % 2 == half {
            let beyond = 1 + nx / 2;
            out[beyond].set(match right {
                End::Fixed => 0.0,
                End::Mirror => out[beyond - 1].get(),
                End::Wrap => out[1].get(),
            });
        }
    }
}

/// `n` weights of a row of them. Not a closure: the compiler would not make one of the vector unit's functions of it.
#[inline(always)]
fn weights<T>(row: &[T], part: usize, start: usize, n: usize) -> &[T] {
    let len = row.len() / WEIGHTS;
    &row[part * len + 1 + start..][..n]
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Blocks;
    use super::super::galerkin::{CoarseRow, coarsen, computed_rows};
    use super::super::half_rows::HalfRows;
    use super::super::shape::{Axis, Shape};
    use super::*;
    use crate::element::simd::{Isa, on_unit};

    /// Numbers of either sign that have all their digits.
    fn noise(y: isize, x: usize, seed: u64) -> f64 {
        let mut z = (y as u64) << 32 ^ (x as u64) << 3 ^ seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 11) as f64 / 2f64.powi(52) - 1.0
    }

    /// Noise, the same beyond an axis that wraps around.
    fn field<T: Real>(shape: &Shape, seed: u64) -> Field<T> {
        let (nx, ny) = (shape.x.len, shape.y.len as isize);
        let mut field = Field::new(shape.stored(), nx).unwrap();
        for y in shape.rows(super::super::shape::HALO) {
            let row = field.with_padding_mut(y, 1);
            for x in 0..nx {
                row[1 + x] = T::from_f64(noise(y.rem_euclid(ny), x, seed));
            }
            if shape.x.wraps {
                (row[0], row[nx + 1]) = (row[nx], row[1]);
            }
        }
        field
    }

    /// Point by point, as `wavefront.rs` would do it with rows that are whole.
    fn by_points(
        finest: &Finest,
        right_side: Option<&Field<f64>>,
        u: &mut [Vec<f64>],
        steps: &[Step],
    ) -> Vec<Vec<f64>> {
        let (nx, ny) = (finest.shape.x.len, finest.shape.y.len);
        let at = |u: &[Vec<f64>], x: isize, y: isize| -> f64 {
            let place = |at: isize, len: usize, wraps: bool| match (wraps, at) {
                (true, at) => at.rem_euclid(len as isize),
                (false, -1) => 1,
                (false, at) if at == len as isize => at - 2,
                (false, at) => at,
            };
            let (x, y) = (
                place(x, nx, finest.shape.x.wraps),
                place(y, ny, finest.shape.y.wraps),
            );
            u[y as usize][x as usize]
        };
        let parts = |u: &[Vec<f64>], x: usize, y: usize| {
            let b = right_side.map_or(0.0, |field| field.row(y as isize)[x]);
            let (x, y) = (x as isize, y as isize);
            let beside = [
                at(u, x + 1, y),
                at(u, x - 1, y),
                at(u, x, y + 1),
                at(u, x, y - 1),
            ];
            (b, beside)
        };
        let all = || (0..ny).flat_map(|y| (0..nx).map(move |x| (x, y)));
        let free = |&(x, y): &(usize, usize)| finest.has_equation(y as isize, x);
        let is = |colour: Colour, (x, y): (usize, usize)| colour.has_odd_columns(y) == (x % 2 == 1);
        let colour_of = |step: &Step| step.colour.expect("a colour");
        for step in steps {
            let colour = colour_of(step);
            for (x, y) in all().filter(free).filter(|&point| is(colour, point)) {
                let (b, [east, west, south, north]) = parts(u, x, y);
                let (before, solution) = (
                    u[y][x],
                    finest.inverse() * (((b + (east + west)) + north) + south),
                );
                u[y][x] = match step.omega {
                    1.0 => solution,
                    omega => before + omega * (solution - before),
                };
            }
        }
        let mut residual = vec![vec![0.0; nx]; ny];
        let last = colour_of(&steps[steps.len() - 1]);
        for (x, y) in all().filter(free).filter(|&point| !is(last, point)) {
            let (b, [east, west, south, north]) = parts(u, x, y);
            residual[y][x] = (((east + west) + (south + north)) - 4.0 * u[y][x]) + b;
        }
        residual
    }

    fn compare(ends: [[End; 2]; 2], nx: usize, ny: usize, corrected: bool, colours: &[Colour]) {
        let mut half_rows = HalfRows::new(nx, colours.len()).unwrap();
        // The second one finds what the first has left.
        for has_right_side in [true, false] {
            compare_by(
                ends,
                nx,
                ny,
                corrected,
                colours,
                has_right_side,
                &mut half_rows,
            );
        }
    }

    fn compare_by(
        ends: [[End; 2]; 2],
        nx: usize,
        ny: usize,
        corrected: bool,
        colours: &[Colour],
        has_right_side: bool,
        half_rows: &mut HalfRows,
    ) {
        let axis = |ends: [End; 2], len| Axis {
            len,
            wraps: ends[0] == End::Wrap,
        };
        let shape = Shape::finest(axis(ends[0], nx), axis(ends[1], ny), vec![0, ny], 0, 0);
        assert!(shape.has_two_colours());
        let finest = Finest::new(shape.clone(), ends, None);
        let coarse = shape.coarser();
        let transfer = coarsen::<f32, _>(Isa::widest(), &finest, &coarse, |_, _: CoarseRow<'_>| {});
        let right_side = has_right_side.then(|| field::<f64>(&shape, 1));
        let (mut u, correction) = (field::<f64>(&shape, 2), field::<f32>(&coarse, 3));
        let rows = || -> Field<f32> { Field::new(0..4, nx).unwrap() };
        let (mut residuals, mut spare) = (rows(), rows());
        let coarse_field = || -> Field<f32> { Field::new(coarse.stored(), coarse.x.len).unwrap() };
        let (mut found, mut expected) = (coarse_field(), coarse_field());
        let (up, down) = (0.75, 2.0);

        // What is expected.
        let mut points: Vec<Vec<f64>> = Vec::new();
        for y in 0..ny as isize {
            let mut row = u.with_padding(y, 1).to_vec();
            if corrected {
                let mut prolongation = Prolongation {
                    fine: &shape,
                    transfer: &transfer,
                    blocks: &finest.blocks,
                    coarse: &correction,
                    correction: &mut spare,
                };
                finest.add(y, prolongation.row(y), up, &mut row);
            }
            points.push(row[1..=nx].to_vec());
        }
        let steps: Vec<Step> = (0..)
            .zip(colours)
            .map(|(at, &colour)| Step {
                // The first does not go beyond the solution where the field is corrected, and the last nowhere.
                omega: if (at == 0 && corrected) || at + 1 == colours.len() {
                    1.0
                } else {
                    1.1
                },
                colour: Some(colour),
            })
            .collect();
        let by_point = by_points(&finest, right_side.as_ref(), &mut points, &steps);
        let mut sum = LeafSums::new(0..ny as isize, nx, 1);
        let all = Blocks::all(coarse.x.len);
        let mut restriction = Restriction {
            fine: &shape,
            transfer: &transfer,
            computed: computed_rows(&shape, &coarse),
            blocks: &all,
            residuals: &mut residuals,
            right_side: &mut expected,
        };
        for y in shape.rows(1) {
            let inside = y.rem_euclid(ny as isize) as usize;
            let mut row = vec![0.0; nx + 2];
            row[1..=nx].copy_from_slice(&by_point[inside]);
            sum.add_row(y, nx, |x| by_point[inside][x] * by_point[inside][x]);
            finest.beyond(&mut row);
            finest.symmetric(y, &mut row);
            for (out, value) in restriction.row(y).iter_mut().zip(&row) {
                *out = (value * down) as f32;
            }
            restriction.took(y);
        }

        // What is found.
        let mut found_sum = LeafSums::new(0..ny as isize, nx, 1);
        let mut residuals = rows();
        let prolongation = Prolongation {
            fine: &shape,
            transfer: &transfer,
            blocks: &finest.blocks,
            coarse: &correction,
            correction: &mut spare,
        };
        let work = RedBlackPass {
            finest: &finest,
            right_side: right_side.as_ref(),
            u: &mut u,
            prolongation: corrected.then_some((prolongation, up)),
            steps: &steps,
            solved: colours[colours.len() - 1],
            sum: Some(&mut found_sum),
            margin: 2,
            restriction: Restriction {
                fine: &shape,
                transfer: &transfer,
                computed: computed_rows(&shape, &coarse),
                blocks: &all,
                residuals: &mut residuals,
                right_side: &mut found,
            },
            scale: down,
            ring: half_rows.shared(right_side.is_some()),
        };
        on_unit(Isa::widest(), work);
        let what =
            format!("{ends:?}, {nx} x {ny}, corrected: {corrected}, {colours:?}, {has_right_side}");
        let bits = |row: &[f64]| row.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        for (y, expected) in points.iter().enumerate() {
            let found = bits(u.row(y as isize));
            assert_eq!(found, bits(expected), "row {y} of {what}");
        }
        for j in coarse.own() {
            let of =
                |field: &Field<f32>| field.row(j).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(of(&found), of(&expected), "coarse row {j} of {what}");
        }
        let total = |sum: LeafSums| sum.total().round().to_bits();
        assert_eq!(total(found_sum), total(sum), "squares of {what}");
    }

    #[test]
    fn a_pass_does_what_points_one_by_one_do() {
        use Colour::{Black, Red};
        use End::{Fixed, Mirror, Wrap};
        let lists: [&[Colour]; 5] = [
            &[Red, Black],
            &[Black, Red],
            &[Red],
            &[Red, Black, Red, Black],
            &[Red, Black, Red, Black, Red, Black],
        ];
        let ends = [
            [Fixed, Fixed],
            [Fixed, Mirror],
            [Mirror, Fixed],
            [Mirror, Mirror],
        ];
        // Rows of less than a block, of one and a bit, and of more than two, odd and even.
        for (at, (nx, ny)) in [
            (2, 2),
            (3, 5),
            (16, 17),
            (33, 40),
            (255, 6),
            (258, 9),
            (641, 7),
        ]
        .into_iter()
        .enumerate()
        {
            for (across, &x) in ends.iter().enumerate() {
                let y = ends[(across + at) % 4];
                for (k, colours) in lists.into_iter().enumerate() {
                    compare([x, y], nx, ny, (k + at) % 2 == 0, colours);
                }
            }
        }
        for (nx, ny) in [(12, 14), (258, 20), (514, 14)] {
            for colours in lists {
                compare([[Wrap; 2]; 2], nx, ny, true, colours);
                compare([[Wrap; 2], [Fixed, Mirror]], nx, ny + 1, true, colours);
                compare([[Mirror, Fixed], [Wrap; 2]], nx + 1, ny, false, colours);
            }
        }
    }
}

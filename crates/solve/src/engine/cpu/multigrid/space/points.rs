//! An operator whose couplings differ from point to point: of coefficients, masks and mixed sides, and what comes of them
//! on coarse levels.
//!
//! It is a graph, as that of planes (`galerkin.rs`): (Au)ᵢ = Σⱼ aᵢⱼ(uᵢ − uⱼ) + xᵢuᵢ, with couplings to up to 26 points
//! around. Points that keep their value are coupled to nothing: what their neighbours take of them is in these neighbours'
//! excess and right side.

use std::io;
use std::ops::Range;

use super::around::Around;
use super::line::Line;
use super::row::Columns;
use super::side_by_side::{at_once, side_by_side};
use crate::engine::cpu::multigrid::dense::Dense;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::field::storage::Field;

/// A step to a neighbouring point.
pub(crate) type Step = [isize; 3];

/// Half of the steps to the points around, those along an axis first: couplings are stored at the point that the step
/// starts from.
pub(crate) const STEPS: [Step; 13] = [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
    [1, 1, 0],
    [-1, 1, 0],
    [1, 0, 1],
    [-1, 0, 1],
    [0, 1, 1],
    [0, -1, 1],
    [1, 1, 1],
    [-1, 1, 1],
    [1, -1, 1],
    [-1, -1, 1],
];
/// Those of the finest level.
pub(crate) const ALONG_AXES: usize = 3;

/// Couplings, by planes. Rows of a plane have a point more on both sides.
pub(crate) struct Points {
    pub shape: Shape,
    /// Points of a row and rows of a plane.
    nx: usize,
    ny: usize,
    wraps: [bool; 2],
    /// For each of [`STEPS`], or only those along axes.
    pub parts: Vec<Field<f64>>,
    pub excess: Field<f64>,
    /// 1 / the diagonal; 0 where there is no equation.
    pub inverse: Field<f64>,
}

/// Some planes of couplings and excess.
pub(crate) struct Nearby<'a> {
    points: &'a Points,
    first: isize,
    /// By planes: each part, then the excess; empty where there is no plane.
    rows: Vec<&'a [f64]>,
}

impl Nearby<'_> {
    #[inline(always)]
    fn row(&self, z: isize, field: usize) -> &[f64] {
        let fields = self.points.parts.len() + 1;
        self.rows[(z - self.first) as usize * fields + field]
    }

    /// The coupling of the point at column `x`, row `y`, plane `z`, which may lie beyond an end of an axis that wraps, to
    /// the one a step away.
    #[inline(always)]
    pub fn coupling(&self, [x, y, z]: [isize; 3], step: Step, part: usize, forward: bool) -> f64 {
        let points = self.points;
        let [dx, dy, dz] = if forward { [0; 3] } else { step };
        let inside = |at: isize, len: usize, wraps: bool| match wraps {
            true => Some(at.rem_euclid(len as isize) as usize),
            false => (0..len as isize).contains(&at).then_some(at as usize),
        };
        let x = inside(x - dx, points.nx, points.wraps[0]);
        let y = inside(y - dy, points.ny, points.wraps[1]);
        let row = self.row(z - dz, part);
        match (x, y) {
            (Some(x), Some(y)) if !row.is_empty() => row[points.at(x, y)],
            _ => 0.0,
        }
    }

    /// The excess of a point, as [`coupling`](Self::coupling) has it.
    #[inline(always)]
    pub fn excess_of(&self, [x, y, z]: [isize; 3]) -> f64 {
        let points = self.points;
        let x = x.rem_euclid(points.nx as isize) as usize;
        let y = y.rem_euclid(points.ny as isize) as usize;
        self.row(z, points.parts.len())[points.at(x, y)]
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.points.parts.len()
    }
}

impl Points {
    /// All zero, for the planes `depth` around the own ones.
    pub fn new(lines: &[Line; 3], shape: &Shape, parts: usize, depth: usize) -> io::Result<Points> {
        let (own, depth) = (shape.own(), depth as isize);
        let field = || Field::lazy(own.start - depth..own.end + depth, shape.x.len);
        Ok(Points {
            shape: shape.clone(),
            nx: lines[0].axis.len,
            ny: lines[1].axis.len,
            wraps: [lines[0].axis.wraps, lines[1].axis.wraps],
            parts: (0..parts).map(|_| field()).collect::<Result<_, _>>()?,
            excess: field()?,
            inverse: field()?,
        })
    }

    fn stride(&self) -> usize {
        self.nx + 2
    }

    /// Where the point at column `x`, row `y` lies in a plane.
    #[inline(always)]
    pub fn at(&self, x: usize, y: usize) -> usize {
        y * self.stride() + 1 + x
    }

    /// Row `y` + `by`, where there is one.
    #[inline(always)]
    fn row_beside(&self, y: usize, by: isize) -> Option<usize> {
        let (to, ny) = (y as isize + by, self.ny as isize);
        match self.wraps[1] {
            true => Some(to.rem_euclid(ny) as usize),
            false => (0..ny).contains(&to).then_some(to as usize),
        }
    }

    /// The planes `planes`, as far as there are such and they are stored, to look things up in.
    pub fn near(&self, planes: Range<isize>) -> Nearby<'_> {
        fn row<'f>(points: &Points, field: &'f Field<f64>, z: isize) -> &'f [f64] {
            match points.shape.y.has(z) && field.rows().contains(&z) {
                true => field.row(z),
                false => &[],
            }
        }
        let fields = || self.parts.iter().chain([&self.excess]);
        Nearby {
            points: self,
            first: planes.start,
            rows: planes
                .flat_map(|z| fields().map(move |field| row(self, field, z)))
                .collect(),
        }
    }

    /// Copies the points beyond both ends of the rows of plane `z`.
    fn beyond(&mut self, z: isize) {
        let (n, wraps) = (self.nx, self.wraps[0]);
        for field in &mut self.parts {
            for row in field.row_mut(z).chunks_exact_mut(n + 2) {
                (row[0], row[n + 1]) = if wraps { (row[n], row[1]) } else { (0.0, 0.0) };
            }
        }
    }

    /// Completes the planes, by `threads`: couplings and excess are set.
    pub fn complete(&mut self, threads: usize) {
        let planes = self.excess.rows();
        let has = |z: &isize| self.shape.y.has(*z);
        let planes: Vec<isize> = planes.filter(has).collect();
        for &z in &planes {
            self.beyond(z);
        }
        let bytes = size_of::<f64>() * self.shape.x.len;
        for some in planes.chunks(at_once(threads, bytes)) {
            let made = side_by_side(threads, some, |z| self.inverse_of(z));
            for (&z, made) in some.iter().zip(made) {
                self.inverse.row_mut(z).copy_from_slice(&made);
            }
        }
    }

    /// 1 / the diagonal in plane `z`.
    fn inverse_of(&self, z: isize) -> Vec<f64> {
        let mut diagonal = self.excess.row(z).to_vec();
        for y in 0..self.ny {
            let here = self.at(0, y);
            self.for_each_step(z, y, |couplings, _| {
                for (sum, coupling) in diagonal[here..here + self.nx].iter_mut().zip(couplings) {
                    *sum += coupling;
                }
            });
        }
        for value in &mut diagonal {
            *value = if *value > 0.0 { 1.0 / *value } else { 0.0 };
        }
        diagonal
    }

    /// Gives the couplings of row `y` of plane `z` to each of the points around that are there, with how these are
    /// reached: the step, and the row of its plane.
    #[inline(always)]
    fn for_each_step(&self, z: isize, y: usize, mut take: impl FnMut(&[f64], (Step, usize))) {
        for (part, &step) in self.parts.iter().zip(&STEPS) {
            let [dx, dy, dz] = step;
            if let (Some(to), true) = (self.row_beside(y, dy), self.shape.y.has(z + dz)) {
                take(&part.row(z)[self.at(0, y)..][..self.nx], (step, to));
            }
            if let (Some(to), true) = (self.row_beside(y, -dy), self.shape.y.has(z - dz))
                && part.rows().contains(&(z - dz))
            {
                let from = self.at(0, to).wrapping_add_signed(-dx);
                take(&part.row(z - dz)[from..][..self.nx], ([-dx, -dy, -dz], to));
            }
        }
    }

    /// b − Au in row `y` of plane `z`, but for the points beyond its ends.
    #[inline(always)]
    pub(super) fn residual_row(
        &self,
        z: isize,
        y: usize,
        around: Around<'_>,
        b: Option<&[f64]>,
        out: &mut [f64],
    ) {
        let (here, nx) = (self.at(0, y), self.nx);
        let centre = &around.row_of(y, self.stride(), around.here)[1..nx + 1];
        let excess = &self.excess.row(z)[here..][..nx];
        let out = &mut out[1..nx + 1];
        match b {
            Some(b) => {
                let b = &b[here..][..nx];
                for i in 0..nx {
                    out[i] = b[i] - excess[i] * centre[i];
                }
            }
            None => {
                for i in 0..nx {
                    out[i] = -(excess[i] * centre[i]);
                }
            }
        }
        self.for_each_step(z, y, |couplings, ([dx, _, dz], to)| {
            let plane = match dz {
                -1 => around.up,
                0 => around.here,
                _ => around.down,
            };
            let from = 1usize.wrapping_add_signed(dx);
            let there = &around.row_of(to, self.stride(), plane)[from..][..nx];
            for i in 0..nx {
                out[i] += couplings[i] * (there[i] - centre[i]);
            }
        });
    }

    /// u + ω D⁻¹ (b − Au) in row `y` of plane `z`, but for the points beyond its ends.
    #[inline(always)]
    pub(super) fn relax_row(
        &self,
        z: isize,
        y: usize,
        around: Around<'_>,
        b: Option<&[f64]>,
        (columns, omega): (impl Columns, f64),
        out: &mut [f64],
    ) {
        self.residual_row(z, y, around, b, out);
        let nx = self.nx;
        let inverse = &self.inverse.row(z)[self.at(0, y)..][..nx];
        let centre = &around.row_of(y, self.stride(), around.here)[1..nx + 1];
        let out = &mut out[1..nx + 1];
        for i in 0..nx {
            let after = centre[i] + (omega * inverse[i]) * out[i];
            out[i] = columns.choose(i, centre[i], after);
        }
    }

    /// Points that have an equation, in planes `planes`.
    pub fn count_free(&self, planes: Range<isize>) -> u64 {
        let free = |z: isize| {
            let plane = self.inverse.row(z);
            let inner = (0..self.ny).flat_map(|y| &plane[self.at(0, y)..][..self.nx]);
            inner.filter(|&&inverse| inverse != 0.0).count() as u64
        };
        planes.map(free).sum()
    }

    /// Factored, for direct solutions. `singular`: constants are in the kernel. Of a level that is not spread.
    pub fn dense(&self, singular: bool) -> Dense {
        let (nx, ny, nz) = (self.nx, self.ny, self.shape.y.len);
        let n = nx * ny * nz;
        let at = |x: usize, y: usize, z: usize| (z * ny + y) * nx + x;
        let mut matrix = vec![0.0; n * n];
        for z in 0..nz {
            for y in 0..ny {
                for x in 0..nx {
                    let here = at(x, y, z);
                    matrix[here * n + here] += self.excess.row(z as isize)[self.at(x, y)];
                    for (part, [dx, dy, dz]) in self.parts.iter().zip(STEPS) {
                        let coupling = part.row(z as isize)[self.at(x, y)];
                        // Couplings that leave the grid are zero, or go around it.
                        let to = |at: usize, by: isize, len: usize| {
                            (at as isize + by).rem_euclid(len as isize) as usize
                        };
                        let there = at(to(x, dx, nx), to(y, dy, ny), to(z, dz, nz));
                        if coupling != 0.0 && there != here {
                            matrix[here * n + here] += coupling;
                            matrix[there * n + there] += coupling;
                            matrix[here * n + there] -= coupling;
                            matrix[there * n + here] -= coupling;
                        }
                    }
                }
            }
        }
        Dense::of_matrix(matrix, nx, singular)
    }
}

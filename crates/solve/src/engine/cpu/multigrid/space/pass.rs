//! Several relaxations and a residual in one pass through memory, as `wavefront.rs` makes them of planes: of all points,
//! or of operators of points, of points of one colour after the other. Operators of lines relax colours in
//! `red_black.rs`.
//!
//! A wavefront runs through the planes: when step 1 has reached plane z, step 2 is one plane behind, and so on. The planes
//! that this keeps of each step are more than a cache holds, so the pass is made for some rows of all planes after the
//! others. In such a *band* each step is a row behind the step before, too: it needs no row of the bands to come, and of
//! the band before it only the last two rows of each plane, which are stored until then. What comes out does not depend on
//! any of that: each row of a step is made of the same rows of the step before.

use std::io;
use std::ops::Range;

use super::around::Around;
use super::operator::{Operator, WithRightSide};
use super::transfer::{Prolongation, Restriction, add_square_row};
use crate::element::simd::Work;
use crate::engine::cpu::multigrid::smoothing::{Colour, Step};
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cpu::multigrid::wavefront::Start;
use crate::field::storage::Field;

/// Planes that are kept of a step.
const KEPT: isize = 3;
/// Rows of a step that the next one needs of the band before.
const EDGE: usize = 2;
/// Rows of a leaf of sums: bands are whole leaves where they are measured.
const LEAF: usize = 16;
/// More rows than the last step can be behind.
const LARGEST_LAG: usize = 8;
/// Bytes that all that a band keeps should fit in: most of the cache of a core.
const CACHE: usize = 640 << 10;

/// The rows of a band, as one step has them.
#[derive(Clone)]
struct Rows {
    /// The first one that is there.
    first: usize,
    /// Those that the step makes.
    made: Range<usize>,
    /// Whether a band comes after this one.
    more: bool,
}

/// How the rows of planes are dealt to bands.
#[derive(Clone, Copy)]
struct Bands {
    /// Rows of a plane.
    ny: usize,
    /// Rows of a band.
    height: usize,
}

impl Bands {
    /// For passes that keep `steps` steps.
    fn new(operator: &Operator, steps: usize) -> Bands {
        let axis = operator.lines[1].axis;
        // All steps but the last, and of field, right side and residual as many planes as they are apart.
        let planes = KEPT as usize * steps.saturating_sub(1) + 2 * (steps + 2) + KEPT as usize;
        let row = planes * operator.stride() * size_of::<f64>();
        let height = (CACHE / row / LEAF).max(1) * LEAF;
        Bands {
            ny: axis.len,
            // The last row and the first one of a plane are neighbours where the axis wraps around.
            height: if axis.wraps { axis.len } else { height },
        }
    }

    /// Rows that are there of a band, at most.
    fn rows(self) -> usize {
        self.ny.min(self.height + LARGEST_LAG + EDGE)
    }

    /// The last rows of bands, which are whole leaves of the residual that is `lag` rows behind.
    fn ends(self, lag: usize) -> impl Iterator<Item = usize> {
        let ends = (1..).map(move |band| band * self.height + lag);
        let ny = self.ny;
        ends.take_while(move |&end| end < ny).chain([ny])
    }

    /// The rows of band `band` of the step that is `lag` rows behind.
    fn of(self, band: &Range<usize>, lag: usize) -> Rows {
        let start = band.start.saturating_sub(lag);
        let more = band.end < self.ny;
        Rows {
            first: start.saturating_sub(EDGE),
            made: start..if more { band.end - lag } else { self.ny },
            more,
        }
    }
}

/// What is kept of a step.
struct Planes {
    stride: usize,
    /// The rows of a band of some planes.
    ring: Field<f64>,
    /// The last rows of the band before, by planes.
    edges: Field<f64>,
}

impl Planes {
    /// Room for plane `z`, which begins with row `rows.first`: the rows of the band before are there.
    #[inline(always)]
    fn begin(&mut self, z: isize, rows: &Rows) -> &mut [f64] {
        let plane = self.ring.row_mut(z.rem_euclid(KEPT));
        let there = (rows.made.start - rows.first) * self.stride;
        plane[..there].copy_from_slice(&self.edges.row(z)[..there]);
        plane
    }

    /// Keeps of plane `z`, which has been made, what the next band needs.
    #[inline(always)]
    fn end(&mut self, z: isize, rows: &Rows) {
        if rows.more {
            let end = (rows.made.end - rows.first) * self.stride;
            let last = end - EDGE * self.stride..end;
            let plane = self.ring.row(z.rem_euclid(KEPT));
            self.edges.row_mut(z)[..EDGE * self.stride].copy_from_slice(&plane[last]);
        }
    }

    #[inline(always)]
    fn plane(&self, z: isize) -> &[f64] {
        self.ring.row(z.rem_euclid(KEPT))
    }

    /// The planes around plane `z`, which begin with row `first`.
    #[inline(always)]
    fn around(&self, (up, down): (isize, isize), z: isize, first: usize) -> Around<'_> {
        Around {
            first,
            up: self.plane(up),
            here: self.plane(z),
            down: self.plane(down),
        }
    }
}

/// What passes keep of their steps.
pub(super) struct Kept {
    bands: Bands,
    steps: Vec<Planes>,
    residual: Planes,
}

impl Kept {
    /// For passes of up to `steps` relaxations of a level that has `planes` stored.
    pub fn new(operator: &Operator, planes: Range<isize>, steps: usize) -> io::Result<Kept> {
        let (bands, stride) = (Bands::new(operator, steps), operator.stride());
        let step = || -> io::Result<Planes> {
            Ok(Planes {
                stride,
                ring: Field::lazy(0..KEPT, bands.rows() * stride)?,
                edges: Field::lazy(planes.clone(), EDGE * stride)?,
            })
        };
        Ok(Kept {
            bands,
            // The last of several steps writes to the field itself.
            steps: (0..steps.saturating_sub(1).max(1))
                .map(|_| step())
                .collect::<Result<_, _>>()?,
            residual: step()?,
        })
    }
}

/// Several relaxations in one pass.
///
/// It relaxes `u` by `steps` in turn. Afterwards `u` is right in the own planes and `margin` more, if it (unless
/// it starts from zero) and the right side were `steps.len()` more than that. The residual is restricted of `margin` − 1
/// planes more than the own ones.
/// Where `solved` have been relaxed last, and with an ω of 1, their residual counts as 0.
pub(super) struct Pass<'a> {
    pub equations: WithRightSide<'a>,
    pub u: &'a mut Field<f64>,
    pub start: Start,
    /// Whether the field begins with the correction alone.
    pub fresh: bool,
    pub steps: &'a [Step],
    /// The colour whose equations hold after the steps.
    pub solved: Option<Colour>,
    pub margin: usize,
    pub kept: &'a mut Kept,
    /// None where nothing is corrected.
    pub prolongation: Option<Prolongation<'a>>,
    pub restriction: Option<Restriction<'a>>,
    /// Gets the squares of the residual that is restricted, in the own planes.
    pub sum: Option<&'a mut LeafSums>,
}

impl Work for Pass<'_> {
    #[inline(always)]
    fn run(mut self) {
        let bands = self.kept.bands;
        let mut start = 0;
        for end in bands.ends(self.steps.len() + 1) {
            self.band(&(start..end));
            start = end;
        }
    }
}

impl Pass<'_> {
    #[inline(always)]
    fn band(&mut self, band: &Range<usize>) {
        let operator = self.equations.operator;
        let shape = &operator.shape;
        let (count, margin) = (self.steps.len(), self.margin);
        let planes_after = |step: usize| shape.rows(margin + count - step);
        let (first, last) = (planes_after(0), planes_after(count));
        let wanted = match self.restriction {
            Some(_) => shape.rows(margin - 1),
            None => 0..0,
        };
        for now in first.start..last.end + count as isize + 2 {
            if self.start == Start::Corrected && first.contains(&now) {
                self.correct(now, self.kept.bands.of(band, 0).made);
            }
            for step in 0..count {
                let z = now - step as isize - 1;
                if planes_after(step + 1).contains(&z) {
                    self.relax(band, step, z);
                }
            }
            let z = now - count as isize - 1;
            if count == 1 && last.contains(&z) {
                // A plane later than it was made: the plane after it needed the old one.
                self.settle(band, z);
            }
            if wanted.contains(&z) {
                self.residual(band, z);
            }
        }
    }

    #[inline(always)]
    fn correct(&mut self, z: isize, rows: Range<usize>) {
        let stride = self.equations.operator.stride();
        let plane = self.u.row_mut(z);
        if self.fresh {
            plane[rows.start * stride..rows.end * stride].fill(0.0);
        }
        if let Some(prolongation) = &mut self.prolongation {
            prolongation.add(z, rows, plane);
        }
    }

    #[inline(always)]
    fn relax(&mut self, band: &Range<usize>, step: usize, z: isize) {
        let (equations, relaxation) = (&self.equations, self.steps[step]);
        let operator = equations.operator;
        let (stride, bands) = (operator.stride(), self.kept.bands);
        let neighbours = operator.shape.y.neighbours(z);
        let rows = bands.of(band, step + 1);
        let (before, rest) = self.kept.steps.split_at_mut(step);
        let in_field = step > 0 && step + 1 == self.steps.len();
        // The last step writes to the field itself: nothing needs what is there any more.
        let (out, around, first) = match before.last() {
            None => {
                let out = rest[0].begin(z, &rows);
                let around = around(self.u, neighbours, z);
                (out, around, rows.first)
            }
            Some(before) => {
                let around = before.around(neighbours, z, bands.of(band, step).first);
                match in_field {
                    true => (self.u.row_mut(z), around, 0),
                    false => (rest[0].begin(z, &rows), around, rows.first),
                }
            }
        };
        for y in rows.made.clone() {
            if step == 0 {
                equations.prefetch_after(z, y, rows.made.end);
            }
            let out = &mut out[(y - first) * stride..][..stride];
            if self.start == Start::Zero && step == 0 {
                equations.relax_row_from_zero(z, y, relaxation, out);
            } else {
                equations.relax_row(z, y, around, relaxation, out);
            }
        }
        if !in_field {
            rest[0].end(z, &rows);
        }
    }

    /// Brings plane `z` of the only step to the field.
    #[inline(always)]
    fn settle(&mut self, band: &Range<usize>, z: isize) {
        let (stride, bands) = (self.equations.operator.stride(), self.kept.bands);
        let (rows, made) = (bands.of(band, 2).made, bands.of(band, 1));
        let from = &self.kept.steps[0].plane(z)[(rows.start - made.first) * stride..];
        let len = rows.len() * stride;
        self.u.row_mut(z)[rows.start * stride..][..len].copy_from_slice(&from[..len]);
    }

    #[inline(always)]
    fn residual(&mut self, band: &Range<usize>, z: isize) {
        let equations = &self.equations;
        let operator = equations.operator;
        let (stride, bands, count) = (operator.stride(), self.kept.bands, self.steps.len());
        let neighbours = operator.shape.y.neighbours(z);
        let rows = bands.of(band, count + 1);
        let around = match count {
            1 => self.kept.steps[0].around(neighbours, z, bands.of(band, 1).first),
            _ => around(self.u, neighbours, z),
        };
        let mut sum = match &mut self.sum {
            Some(sum) if operator.shape.own().contains(&z) => Some(sum),
            _ => None,
        };
        let step = &mut self.kept.residual;
        let plane = step.begin(z, &rows);
        for y in rows.made.clone() {
            let out = &mut plane[(y - rows.first) * stride..][..stride];
            equations.residual_row(z, y, around, out);
            if let Some(solved) = self.solved {
                operator.leave_out(z, y, solved, out);
            }
            if let Some(sum) = &mut sum {
                add_square_row(sum, y, out);
            }
        }
        step.end(z, &rows);
        if let Some(restriction) = &mut self.restriction {
            let axis = operator.lines[1].axis;
            // Coarse rows whose fine rows are all there.
            let end = match rows.more {
                true => rows.made.end / 2,
                false => axis.coarser().len,
            };
            let plane = |z: isize| self.kept.residual.plane(z);
            restriction.take(z, rows.made.start / 2..end, rows.first, plane);
        }
    }
}

/// Plane `z` of a field and its neighbours.
#[inline(always)]
pub(super) fn around(u: &Field<f64>, (up, down): (isize, isize), z: isize) -> Around<'_> {
    Around {
        first: 0,
        up: u.row(up),
        here: u.row(z),
        down: u.row(down),
    }
}

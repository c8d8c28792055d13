//! Relaxations of one colour after the other, residuals and transfers in one pass through memory, of operators of lines;
//! as `red_black.rs` of planes.
//!
//! A wavefront as in `pass.rs`, with two differences. A step changes points of one colour, of which none depends on another
//! one, so points are changed in place: step s is s planes behind, and in a band of rows s rows. The next band finds what
//! it needs of this one in the field. And rows are kept with their colours apart (`half_rows.rs`), so that a step computes
//! its own points alone.

use std::io;
use std::ops::Range;

use super::half_rows::{
    BEFORE, Equations, HalfColumns, Places, RowKinds, by_columns, join, row_number, split,
};
use super::half_transfer::{HalfRestriction, Residual, add_correction};
use super::line::Weights;
use super::operator::Operator;
use super::transfer::CoarsePlanes;
use crate::element::simd::{LINE, Work, prefetch_to_second_level};
use crate::engine::cpu::multigrid::smoothing::{Colour, Step};
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cpu::multigrid::wavefront::Start;
use crate::field::storage::Field;

/// Steps of a pass, at most: three before and three after a correction.
const MOST_STEPS: usize = 6;
/// Rows of a leaf of sums: bands are whole leaves of the residual.
const LEAF: usize = 16;
/// Bytes that all that a band keeps should fit in: a core's part of its caches. Steps take plane after plane, so they find
/// in the third level what the second has no room for, while rows that two bands load cost memory bandwidth.
const CACHE: usize = 2 << 20;

/// What passes keep of the rows of a band.
pub(super) struct Kept {
    columns: [HalfColumns; 2],
    kinds: RowKinds,
    /// Of the field and the right side.
    places: Places,
    of_residual: Places,
    /// By colours: the field, and the right side.
    u: [Field<f64>; 2],
    right_side: [Field<f64>; 2],
    residual: Field<f64>,
    /// The last rows of the residual of the band before, by planes.
    edges: Field<f64>,
    /// Sums for coarse rows.
    sums: Field<f64>,
    /// Rows of the residual in a band.
    height: usize,
    /// Some elements.
    some: Vec<f64>,
}

impl Kept {
    /// For passes of up to `steps` relaxations of a level that has `planes` stored.
    pub fn new(operator: &Operator, planes: Range<isize>, steps: usize) -> io::Result<Kept> {
        // Of field, right side and residual, so many planes as are in use at once.
        let row = ((steps + 3) + (steps + 2) + 2) * operator.stride() * size_of::<f64>();
        let height = ((CACHE / row).saturating_sub(steps + 2) / LEAF).max(1) * LEAF;
        Kept::of_height(operator, planes, steps, height)
    }

    /// As [`new`](Self::new), for bands of `height` rows of the residual: whole leaves.
    fn of_height(
        operator: &Operator,
        planes: Range<isize>,
        steps: usize,
        height: usize,
    ) -> io::Result<Kept> {
        let y = operator.lines[1].axis;
        // The last row and the first one of a plane are neighbours where the axis wraps around.
        let height = if y.wraps { y.len } else { height };
        let rows = y.len.min(height + steps + 2);
        let columns = [false, true].map(|odd| HalfColumns::new(operator, odd));
        let places = Places::new(steps + 3, rows, &columns);
        let of_residual = Places::new(2, rows, &columns);
        Ok(Kept {
            columns,
            kinds: RowKinds::new(operator),
            u: [places.room()?, places.room()?],
            right_side: [places.room()?, places.room()?],
            residual: of_residual.room()?,
            edges: Field::lazy(planes, places.stride)?,
            sums: Field::lazy(0..rows.div_ceil(2) as isize + 1, 2 * places.stride)?,
            height,
            some: Vec::new(),
            places,
            of_residual,
        })
    }
}

/// A pass over a level: corrected, relaxed, measured, and its residual restricted.
///
/// The equations of the points that were relaxed last hold, if the last ω is 1, as it is where a residual follows: their
/// residual counts as 0.
///
/// What is right afterwards, see [`Pass`](super::pass::Pass).
pub(super) struct RedBlackPass<'a> {
    pub operator: &'a Operator,
    pub right_side: &'a Field<f64>,
    pub u: &'a mut Field<f64>,
    pub start: Start,
    /// Whether the field begins with the correction alone.
    pub fresh: bool,
    /// All of them have a colour. None: the field is one that such a pass has left.
    pub steps: &'a [Step],
    /// The colour that was relaxed last.
    pub solved: Colour,
    pub margin: usize,
    pub kept: &'a mut Kept,
    /// The weights to the next level, and its field; None where nothing is corrected.
    pub correction: Option<(&'a [Weights; 3], &'a Field<f64>)>,
    /// A coarse row.
    pub row: &'a mut Vec<f64>,
    pub restriction: Option<HalfRestriction<'a>>,
    /// Gets the squares of the residual that is restricted, in the own planes.
    pub sum: Option<&'a mut LeafSums>,
}

/// A band of rows.
struct Band {
    /// The rows that come from the field as the band before has left them, and the new ones.
    first: usize,
    new: Range<usize>,
    /// Rows of the residual.
    residual: Range<usize>,
    /// Whether another band comes after it.
    more: bool,
}

/// What is to be done to rows of a plane: a relaxation, or the residual.
struct Task {
    /// By how many rows it is behind.
    behind: usize,
    omega: f64,
    colour: Colour,
    /// Whether the field is zero.
    zero: bool,
    z: isize,
    /// Where the plane and those around it are,
    here: usize,
    up: usize,
    down: usize,
    /// See [`RowKinds::plane`].
    kinds: usize,
}

/// The rings in use.
struct Rings<'a> {
    u: [&'a mut [f64]; 2],
    right_side: [&'a mut [f64]; 2],
    residual: &'a mut [f64],
}

/// What tasks need of a level.
#[derive(Clone, Copy)]
struct Level<'a> {
    operator: &'a Operator,
    columns: &'a [HalfColumns; 2],
    kinds: &'a RowKinds,
    places: &'a Places,
}

impl Band {
    /// The rows of what is so many rows behind.
    #[inline(always)]
    fn rows(&self, behind: usize, ny: usize) -> Range<usize> {
        let end = if self.more { self.new.end - behind } else { ny };
        self.new.start.saturating_sub(behind)..end
    }
}

impl Work for RedBlackPass<'_> {
    #[inline(always)]
    fn run(mut self) {
        let (ny, lag) = (self.operator.lines[1].axis.len, self.steps.len() + 1);
        let mut start = 0;
        while start < ny {
            let end = (start.saturating_sub(lag) + self.kept.height + lag).min(ny);
            let more = end < ny;
            let band = Band {
                first: start.saturating_sub(lag + 1),
                new: start..end,
                residual: start.saturating_sub(lag)..if more { end - lag } else { ny },
                more,
            };
            self.band(&band);
            start = end;
        }
    }
}

impl RedBlackPass<'_> {
    #[inline(always)]
    fn band(&mut self, band: &Band) {
        let Kept {
            columns,
            kinds,
            places,
            of_residual,
            u,
            right_side,
            residual,
            edges,
            sums,
            some,
            ..
        } = &mut *self.kept;
        (places.first, of_residual.first) = (band.first, band.first);
        let level = Level {
            operator: self.operator,
            columns,
            kinds,
            places,
        };
        let mut rings = Rings {
            u: u.each_mut().map(|halves| halves.row_mut(0)),
            right_side: right_side.each_mut().map(|halves| halves.row_mut(0)),
            residual: residual.row_mut(0),
        };
        let shape = &self.operator.shape;
        let (count, ny) = (self.steps.len(), self.operator.lines[1].axis.len);
        // The planes that have been relaxed by so many steps.
        let planes = |steps: usize| shape.rows(self.margin + count - steps);
        let loaded = planes(0);
        let wanted = match self.restriction {
            Some(_) => shape.rows(self.margin - 1),
            None => 0..0,
        };
        let with_field = self.start != Start::Zero && !self.fresh;
        // Of the points whose equations do not hold.
        let colour = self.solved.other();
        for now in loaded.start..loaded.end + count as isize + 1 {
            let mut tasks: [Option<Task>; MOST_STEPS] = [const { None }; MOST_STEPS];
            for (at, (&step, task)) in self.steps.iter().zip(&mut tasks).enumerate() {
                let z = now - at as isize - 1;
                if planes(at + 1).contains(&z) {
                    *task = Some(Task {
                        zero: at == 0 && self.start == Start::Zero,
                        colour: step.colour.expect("all steps have a colour"),
                        omega: step.omega,
                        ..level.task(z, at + 1)
                    });
                }
            }
            let relaxed = now - count as isize;
            let measured = relaxed - 1;
            let measure = wanted.contains(&measured).then(|| Task {
                colour,
                ..level.task(measured, count + 1)
            });
            let load = loaded.contains(&now).then(|| Load {
                z: now,
                here: places.plane(now),
                kinds: kinds.plane(self.operator.inside(now)),
                field: with_field,
                correction: self.correction.map(|(weights, coarse)| {
                    (
                        CoarsePlanes::of(self.operator, weights, coarse, now),
                        &weights[0],
                    )
                }),
            });
            if let Some(load) = &load {
                for y in band.first..band.new.end {
                    let fields = [&*self.u, self.right_side];
                    level.load(load, y, y < band.new.start, fields, self.row, &mut rings);
                }
            }
            let stride = self.operator.stride();
            let of = |field: &Field<f64>| {
                if !loaded.contains(&(now + 1)) {
                    return 0..0;
                }
                let rows = &field.row(now + 1)[band.first * stride..band.new.end * stride];
                let start = rows.as_ptr().addr();
                start..start + size_of_val(rows)
            };
            let mut ahead = Ahead {
                ranges: [
                    of(self.right_side),
                    if with_field { of(self.u) } else { 0..0 },
                ],
                at_a_time: (stride * size_of::<f64>() * (band.new.end - band.first))
                    .div_ceil(LINE * (count * band.new.len()).max(1)),
            };
            for task in tasks.iter().flatten() {
                for y in band.rows(task.behind, ny) {
                    ahead.ask();
                    level.relax(task, y, &mut rings, some);
                }
            }
            if loaded.contains(&relaxed) {
                let here = places.plane(relaxed);
                // Not all steps have taken the last rows yet, where there are more.
                for y in band.new.start.saturating_sub(count)..band.new.end {
                    level.store(relaxed, here, y, &rings, self.u);
                }
            }
            if let Some(task) = &measure {
                let own = shape.own().contains(&measured);
                let plane = of_residual.plane(measured);
                let row = |y: usize| {
                    plane + of_residual.row(y)..plane + of_residual.row(y) + of_residual.stride
                };
                if let Some(before) = band.residual.start.checked_sub(1) {
                    rings.residual[row(before)].copy_from_slice(edges.row(measured));
                }
                for y in band.residual.clone() {
                    let sum = match &mut self.sum {
                        Some(sum) if own => Some(&mut **sum),
                        _ => None,
                    };
                    level.residual(task, y, sum, row(y), &mut rings);
                }
                if band.more {
                    let last = &rings.residual[row(band.residual.end - 1)];
                    edges.row_mut(measured).copy_from_slice(last);
                }
                if let Some(restriction) = &mut self.restriction {
                    // Coarse rows whose fine rows are all there.
                    let end = match band.more {
                        true => band.residual.end / 2,
                        false => ny.div_ceil(2),
                    };
                    let residual = Residual {
                        colour,
                        halves: rings.residual,
                        places: of_residual,
                        plane,
                    };
                    restriction.take(
                        measured,
                        band.residual.start / 2..end,
                        residual,
                        columns,
                        sums,
                    );
                }
            }
        }
    }
}

/// What the next plane is loaded from. It is asked for during the relaxations, which leave the memory nothing to do.
struct Ahead {
    /// Addresses that have not been asked for yet.
    ranges: [Range<usize>; 2],
    /// Lines of the cache.
    at_a_time: usize,
}

impl Ahead {
    /// Asks for the next lines of each range.
    #[inline(always)]
    fn ask(&mut self) {
        for range in &mut self.ranges {
            let end = range.end.min(range.start + LINE * self.at_a_time);
            for line in (range.start..end).step_by(LINE) {
                prefetch_to_second_level(line);
            }
            range.start = end;
        }
    }
}

/// What is to be loaded.
struct Load<'a> {
    z: isize,
    here: usize,
    kinds: usize,
    /// Whether the field is loaded, too: else it begins with zeros.
    field: bool,
    correction: Option<(CoarsePlanes<'a>, &'a Weights)>,
}

impl Level<'_> {
    #[inline(always)]
    fn task(&self, z: isize, behind: usize) -> Task {
        let (up, down) = self.operator.shape.y.neighbours(z);
        Task {
            behind,
            omega: 0.0,
            colour: Colour::Red,
            zero: false,
            z,
            here: self.places.plane(z),
            up: self.places.plane(up),
            down: self.places.plane(down),
            kinds: self.kinds.plane(self.operator.inside(z)),
        }
    }

    /// Loads row `y` of a plane of field and right side; `begun`: some steps have taken it already.
    #[inline(always)]
    fn load(
        &self,
        load: &Load<'_>,
        y: usize,
        begun: bool,
        [u, right_side]: [&Field<f64>; 2],
        coarse_row: &mut [f64],
        rings: &mut Rings<'_>,
    ) {
        let stride = self.operator.stride();
        let (row, place) = (y * stride..(y + 1) * stride, load.here + self.places.row(y));
        let number = row_number(load.z, y);
        let place = place..place + self.places.stride;
        let halves = rings
            .right_side
            .each_mut()
            .map(|ring| &mut ring[place.clone()]);
        split(
            &right_side.row(load.z)[row.clone()],
            by_columns(halves, number),
        );
        let halves = rings.u.each_mut().map(|ring| &mut ring[place.clone()]);
        let [even, odd] = by_columns(halves, number);
        if begun || load.field {
            split(&u.row(load.z)[row], [even, odd]);
        } else {
            even.fill(0.0);
            odd.fill(0.0);
        }
        if let Some((coarse, weights)) = &load.correction
            && !begun
            && self.kinds.of(load.kinds, y).free
        {
            let row = coarse.row(y, coarse_row);
            add_correction(row, weights, self.columns, [even, odd]);
        }
        self.columns[0].beyond(even);
        self.columns[1].beyond(odd);
    }

    /// Half of row `y` of the plane of `task`.
    #[inline(always)]
    fn half(&self, task: &Task, colour: Colour, y: usize) -> &HalfColumns {
        &self.columns[usize::from(colour.has_odd_columns(row_number(task.z, y)))]
    }

    /// The equations of half of row `y`; none if there are none. `other`: halves of the other colour.
    #[inline(always)]
    fn equations<'r>(
        &'r self,
        task: &Task,
        y: usize,
        columns: &'r HalfColumns,
        other: &'r [f64],
        right_side: &'r [f64],
    ) -> Option<Equations<'r>> {
        let kind = self.kinds.of(task.kinds, y);
        if !kind.free {
            return None;
        }
        let Places { stride, .. } = *self.places;
        let axis = self.operator.lines[1].axis;
        let (row, last, wraps) = (self.places.row(y), axis.len - 1, axis.wraps);
        // At an end of the axis the row on the other side, as `Axis::neighbours` says.
        let north = match y {
            0 if wraps => self.places.row(last),
            0 => row + stride,
            _ => row - stride,
        };
        let south = match y {
            y if y < last => row + stride,
            _ if wraps => self.places.row(0),
            _ => row - stride,
        };
        let of = |plane: usize, row: usize| &other[plane + row + BEFORE..][..stride - BEFORE];
        Some(Equations {
            operator: self.operator,
            columns,
            kind,
            beside: &other[task.here + row + columns.west()..][..stride - BEFORE],
            north: of(task.here, north),
            south: of(task.here, south),
            up: of(task.up, row),
            down: of(task.down, row),
            right_side: &right_side[task.here + row + BEFORE..][..stride - BEFORE],
        })
    }

    /// Relaxes row `y`.
    #[inline(always)]
    fn relax(&self, task: &Task, y: usize, rings: &mut Rings<'_>, some: &mut Vec<f64>) {
        let colour = task.colour;
        let [red, black] = &mut rings.u;
        let (own, other) = match colour {
            Colour::Red => (red, &**black),
            Colour::Black => (black, &**red),
        };
        let columns = self.half(task, colour, y);
        let right_side = &*rings.right_side[colour as usize];
        let Some(equations) = self.equations(task, y, columns, other, right_side) else {
            return;
        };
        let stride = self.places.stride;
        let half = &mut own[task.here + self.places.row(y)..][..stride];
        match task.zero {
            true => equations.relax_zero(task.omega, half),
            false => equations.relax(task.omega, half, some),
        }
        columns.beyond(half);
    }

    /// Half of row `y` of the residual, which goes to `place`, and its squares.
    #[inline(always)]
    fn residual(
        &self,
        task: &Task,
        y: usize,
        sum: Option<&mut LeafSums>,
        place: Range<usize>,
        rings: &mut Rings<'_>,
    ) {
        let (colour, stride) = (task.colour, self.places.stride);
        let [red, black] = &rings.u;
        let (own, other) = match colour {
            Colour::Red => (&**red, &**black),
            Colour::Black => (&**black, &**red),
        };
        let out = &mut rings.residual[place];
        let columns = self.half(task, colour, y);
        let right_side = &*rings.right_side[colour as usize];
        match self.equations(task, y, columns, other, right_side) {
            Some(equations) => {
                let half = &own[task.here + self.places.row(y)..][..stride];
                equations.residual(half, out);
                columns.beyond(out);
            }
            None => out.fill(0.0),
        }
        let Some(sum) = sum else { return };
        let values = &out[BEFORE..][..columns.n];
        sum.add_squares_of_half(y as isize, usize::from(columns.odd), values);
        sum.end_row_of_halves(y as isize);
    }

    /// Writes row `y` of plane `z` to the field.
    #[inline(always)]
    fn store(&self, z: isize, here: usize, y: usize, rings: &Rings<'_>, u: &mut Field<f64>) {
        let stride = self.operator.stride();
        let row = &mut u.row_mut(z)[y * stride..][..stride];
        let place = here + self.places.row(y);
        let [red, black] = &rings.u;
        let halves = [red, black].map(|ring| &ring[place..][..self.places.stride]);
        join(by_columns(halves, row_number(z, y)), row);
        self.operator.beyond(row);
    }
}

#[cfg(test)]
mod tests;

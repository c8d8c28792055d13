use super::super::hierarchy::finest_shape;
use super::super::level::DEPTH;
use super::super::line::Line;
use super::super::row::{ColumnOf, Couplings, Point};
use super::super::transfer::{Prolongation, Transfer};
use super::*;
use crate::element::simd::{Isa, on_unit};
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::galerkin::computed_rows;
use crate::engine::cpu::multigrid::shape::Shape;

/// Numbers of either sign that have all their digits.
fn noise(place: usize, seed: u64) -> f64 {
    let mut z = (place as u64) << 3 ^ seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 11) as f64 / 2f64.powi(52) - 1.0
}

/// Zeros of either sign are the same: on a fixed side both come of zero times something.
fn bits(value: f64) -> u64 {
    (value + 0.0).to_bits()
}

/// Values of all points of a grid.
#[derive(Clone)]
struct Grid<'a> {
    lines: &'a [Line; 3],
    values: Vec<f64>,
}

impl<'a> Grid<'a> {
    fn new(lines: &'a [Line; 3], value: impl Fn(usize) -> f64) -> Grid<'a> {
        let count = lines.iter().map(|line| line.axis.len).product();
        Grid {
            lines,
            values: (0..count).map(value).collect(),
        }
    }

    fn place(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.lines[1].axis.len + y) * self.lines[0].axis.len + x
    }

    fn all(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let [nx, ny, nz] = self.lines.each_ref().map(|line| line.axis.len);
        let rows = (0..nz).flat_map(move |z| (0..ny).map(move |y| (y, z)));
        rows.flat_map(move |(y, z)| (0..nx).map(move |x| [x, y, z]))
    }

    /// The neighbour of a point; 0 beyond a side.
    fn beside(&self, point: [usize; 3], axis: usize, by: isize) -> f64 {
        let line = self.lines[axis].axis;
        let to = point[axis] as isize + by;
        if !line.has(to) {
            return 0.0;
        }
        let mut place = point;
        place[axis] = to.rem_euclid(line.len as isize) as usize;
        self.values[self.place(place)]
    }

    /// b − Au at a point, and 1 / the diagonal; none without an equation.
    fn residual(&self, b: f64, operator: &Operator, point: [usize; 3]) -> Option<(f64, f64)> {
        let [x, y, z] = point;
        if self
            .lines
            .iter()
            .zip(point)
            .any(|(line, at)| !line.free[at])
        {
            return None;
        }
        let line = &self.lines[0];
        let column = ColumnOf {
            before: line.before(x),
            after: line.coupling[x],
            excess: line.excess[x],
            mass: line.mass[x],
            free: 1.0,
        };
        let of = Point {
            west: self.beside(point, 0, -1),
            centre: self.values[self.place(point)],
            east: self.beside(point, 0, 1),
            north: self.beside(point, 1, -1),
            south: self.beside(point, 1, 1),
            up: self.beside(point, 2, -1),
            down: self.beside(point, 2, 1),
            right_side: b,
        };
        let r = (operator.row_of(y, z), column).residual(of);
        Some((r, operator.inverse(y, z as isize)[x]))
    }

    /// As a level stores it: with the planes around those of `shape`, and the points beyond both ends of rows.
    fn stored(&self, shape: &Shape) -> Field<f64> {
        let [nx, ny, nz] = self.lines.each_ref().map(|line| line.axis.len);
        let (own, depth) = (shape.own(), DEPTH as isize);
        let mut field = Field::new(own.start - depth..own.end + depth, (nx + 2) * ny).unwrap();
        for z in field.rows().filter(|&z| shape.y.has(z)) {
            let inside = z.rem_euclid(nz as isize) as usize;
            for (y, row) in field.row_mut(z).chunks_exact_mut(nx + 2).enumerate() {
                let start = self.place([0, y, inside]);
                row[1..=nx].copy_from_slice(&self.values[start..start + nx]);
                if self.lines[0].axis.wraps {
                    (row[0], row[nx + 1]) = (row[nx], row[1]);
                }
            }
        }
        field
    }

    /// The points that have a colour.
    fn of_colour(&self, colour: Colour) -> impl Iterator<Item = [usize; 3]> + use<> {
        self.all()
            .filter(move |[x, y, z]| colour.has_odd_columns(y + z) == (x % 2 == 1))
    }

    /// Relaxes point by point, and gives the residual afterwards: 0 at the points that are relaxed last.
    fn relax(
        &mut self,
        b: &Grid<'_>,
        operator: &Operator,
        zero: bool,
        steps: &[Step],
        solved: Colour,
    ) -> Grid<'a> {
        let mut residual = Grid::new(self.lines, |_| 0.0);
        for (at, &Step { omega, colour }) in steps.iter().enumerate() {
            let zero = zero && at == 0;
            for point in self.of_colour(colour.unwrap()) {
                let at = self.place(point);
                let Some((r, inverse)) = self.residual(b.values[at], operator, point) else {
                    continue;
                };
                match zero {
                    true => self.values[at] = (omega * inverse) * b.values[at],
                    false => self.values[at] += (omega * inverse) * r,
                }
            }
        }
        for point in self.of_colour(solved.other()) {
            let at = self.place(point);
            let r = self.residual(b.values[at], operator, point);
            residual.values[at] = r.map_or(0.0, |(r, _)| r);
        }
        residual
    }

    /// The sum for coarse point `point`.
    fn restricted(&self, weights: &[Weights; 3], [i, j, k]: [usize; 3]) -> f64 {
        // Where points are, and with what they count.
        let around = |axis: usize, at: usize| -> [Option<(usize, f64)>; 3] {
            let (line, weights) = (self.lines[axis].axis, &weights[axis]);
            let before = line.has_between(at as isize - 1).then(|| match at {
                0 => (line.len - 1, weights.right[weights.right.len() - 1]),
                _ => (2 * at - 1, weights.right[at - 1]),
            });
            let after = line.has_between(at as isize);
            [
                before,
                Some((2 * at, 1.0)),
                after.then(|| (2 * at + 1, weights.left[at])),
            ]
        };
        let column = |x: usize| {
            let mut sum = 0.0;
            for (z, down) in around(2, k).into_iter().flatten() {
                for (y, across) in around(1, j).into_iter().flatten() {
                    let weight = across * down;
                    if weight != 0.0 {
                        sum += weight * self.values[self.place([x, y, z])];
                    }
                }
            }
            sum
        };
        let [before, _, after] = around(0, i);
        let term =
            |beside: Option<(usize, f64)>| beside.map_or(0.0, |(x, weight)| weight * column(x));
        column(2 * i) + (term(before) + term(after))
    }
}

/// What a pass begins with.
#[derive(Clone, Copy, Debug)]
struct Begin {
    start: Start,
    fresh: bool,
}

fn compare(lines: &[Line; 3], cuts: &[usize], begin: Begin, colours: &[Colour], height: usize) {
    let sizes = lines
        .each_ref()
        .map(|line| (line.axis.len, line.axis.wraps));
    let what = format!("{sizes:?}, {cuts:?}, {begin:?}, {colours:?}, bands of {height}");
    let [(x, of_x), (y, of_y), (z, of_z)] = lines.each_ref().map(Line::coarser);
    let (coarse_lines, weights) = ([x, y, z], [of_x, of_y, of_z]);
    let nz = lines[2].axis.len;
    let b = Grid::new(lines, |place| noise(place, 1));
    let u = Grid::new(lines, |place| noise(place, 2));
    let correction = Grid::new(&coarse_lines, |place| noise(place, 3));

    // Point by point, of the whole grid.
    let alone = finest_shape(lines, vec![0, nz], 0, 0);
    let operator = Operator::new(lines.clone(), alone.clone());
    let coarse_alone = finest_shape(&coarse_lines, vec![0, nz.div_ceil(2)], 0, 0);
    let mut expected = u.clone();
    if begin.start == Start::Zero || begin.fresh {
        expected.values.fill(0.0);
    }
    if begin.start == Start::Corrected {
        let mut field = expected.stored(&alone);
        let transfer = Transfer::Lines(weights.clone());
        let (nx, ny) = (lines[0].axis.len, lines[1].axis.len);
        let mut prolongation = Prolongation {
            fine: &operator,
            weights: &transfer,
            coarse: &correction.stored(&coarse_alone),
            row: &mut vec![0.0; nx + 2],
        };
        for z in 0..nz {
            let plane = field.row_mut(z as isize);
            prolongation.add(z as isize, 0..ny, plane);
            for y in 0..ny {
                let start = expected.place([0, y, z]);
                expected.values[start..start + nx]
                    .copy_from_slice(&plane[y * (nx + 2) + 1..][..nx]);
            }
        }
    }
    let step = |at: usize| Step {
        omega: if at + 1 == colours.len() { 1.0 } else { 1.2 },
        colour: Some(colours[at]),
    };
    let steps: Vec<Step> = (0..colours.len()).map(step).collect();
    let solved = colours.last().map_or(Colour::Black, |&last| last);
    let residual = expected.relax(&b, &operator, begin.start == Start::Zero, &steps, solved);

    let mut total = None;
    for me in 0..cuts.len() - 1 {
        let shape = finest_shape(lines, cuts.to_vec(), me, 0);
        let mut coarse = finest_shape(
            &coarse_lines,
            cuts.iter().map(|cut| cut.div_ceil(2)).collect(),
            me,
            0,
        );
        coarse.spread = false;
        let operator = Operator::new(lines.clone(), shape.clone());
        let (mut field, right_side) = (u.stored(&shape), b.stored(&shape));
        let mut found = Grid::new(&coarse_lines, |_| 0.0).stored(&coarse);
        let computed = computed_rows(&shape, &coarse);
        let correction = correction.stored(&coarse);
        let (margin, [nx, ny]) = (2, [0, 1].map(|axis: usize| lines[axis].axis.len));
        let mut kept = Kept::of_height(&operator, field.rows(), steps.len(), height).unwrap();
        let mut sum = LeafSums::new(0..ny as isize, nx, 0);
        let work = RedBlackPass {
            operator: &operator,
            right_side: &right_side,
            u: &mut field,
            start: begin.start,
            fresh: begin.fresh,
            steps: &steps,
            solved,
            margin,
            kept: &mut kept,
            correction: (begin.start == Start::Corrected).then_some((&weights, &correction)),
            row: &mut vec![0.0; nx + 2],
            restriction: Some(HalfRestriction {
                fine: &operator,
                weights: &weights,
                computed: computed.clone(),
                right_side: &mut found,
            }),
            sum: Some(&mut sum),
        };
        on_unit(Isa::widest(), work);

        for z in shape.rows(margin) {
            let inside = z.rem_euclid(nz as isize) as usize;
            for y in 0..ny {
                for x in 0..nx {
                    let (found, at) = (field.row(z)[y * (nx + 2) + 1 + x], [x, y, inside]);
                    let expected = expected.values[expected.place(at)];
                    assert_eq!(bits(found), bits(expected), "{at:?} of {me}, {what}");
                }
            }
        }
        let [coarse_nx, coarse_ny, _] = coarse_lines.each_ref().map(|line| line.axis.len);
        for k in computed {
            for j in 0..coarse_ny {
                for i in 0..coarse_nx {
                    let found = found.row(k)[j * (coarse_nx + 2) + 1 + i];
                    let expected = residual.restricted(&weights, [i, j, k as usize]);
                    let at = [i, j, k as usize];
                    assert_eq!(bits(found), bits(expected), "coarse {at:?} of {me}, {what}");
                }
            }
        }
        let sum = sum.total();
        match &mut total {
            None => total = Some(sum),
            Some(total) => total.merge(&sum),
        }
    }
    let mut sum = LeafSums::new(0..lines[1].axis.len as isize, lines[0].axis.len, 0);
    for z in 0..nz {
        for y in 0..lines[1].axis.len {
            sum.add_row(y as isize, lines[0].axis.len, |x| {
                let value = residual.values[residual.place([x, y, z])];
                value * value
            });
        }
    }
    let found = total.expect("there is a PE").round();
    assert_eq!(bits(found), bits(sum.total().round()), "squares of {what}");
}

fn lines(sizes: [usize; 3], ends: [[End; 2]; 3], h: f64) -> [Line; 3] {
    std::array::from_fn(|axis| Line::finest(sizes[axis], ends[axis], h))
}

#[test]
fn a_pass_does_what_points_one_by_one_do() {
    use Colour::{Black, Red};
    use End::{Fixed, Mirror, Wrap};
    let lists: [&[Colour]; 6] = [
        &[],
        &[Red, Black],
        &[Black],
        &[Black, Red, Black, Red],
        &[Black, Red],
        &[Red, Black, Red, Black, Red, Black],
    ];
    let begins = [
        (Start::Zero, true),
        (Start::Field, false),
        (Start::Corrected, false),
        (Start::Corrected, true),
    ]
    .map(|(start, fresh)| Begin { start, fresh });
    let ends = [
        [Fixed, Fixed],
        [Fixed, Mirror],
        [Mirror, Fixed],
        [Mirror, Mirror],
    ];
    // Rows of less than a chunk, of one, and of more; some of one band.
    let sizes = [
        [2, 2, 3],
        [3, 40, 5],
        [33, 41, 7],
        [40, 24, 6],
        [65, 54, 4],
        [130, 5, 5],
    ];
    let mut number = 0;
    for size in sizes {
        for list in lists {
            for begin in begins {
                if list.is_empty() && begin.start != Start::Field {
                    continue;
                }
                number += 1;
                let [x, y, z] = [number, number / 4, number / 3].map(|at| ends[at % 4]);
                // Even couplings, and others.
                let h = [0.125, 0.3][number % 2];
                let fine = lines(size, [x, y, z], h);
                compare(&fine, &[0, size[2]], begin, list, 16);
                let coarse = fine.each_ref().map(|line| line.coarser().0);
                if coarse.iter().all(|line| line.axis.alternates()) {
                    compare(&coarse, &[0, coarse[2].axis.len], begin, list, 16);
                }
            }
        }
    }
    for (at, begin) in begins.into_iter().enumerate() {
        for list in lists {
            if list.is_empty() && begin.start != Start::Field {
                continue;
            }
            let some = ends[at];
            for all in [
                [[Wrap; 2]; 3],
                [[Wrap; 2], some, some],
                [some, [Wrap; 2], some],
                [some, some, [Wrap; 2]],
            ] {
                let fine = lines([34, 36, 28], all, 0.25);
                for cuts in [&[0, 28][..], &[0, 14, 28]] {
                    compare(&fine, cuts, begin, list, 16);
                }
            }
            let fine = lines([17, 38, 41], [some, ends[3 - at], some], 0.25);
            compare(&fine, &[0, 14, 28, 41], begin, list, 16);
        }
    }
}

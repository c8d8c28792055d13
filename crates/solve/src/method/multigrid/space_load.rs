//! A problem in a box as multigrid holds it: field, right side, and operator.

use std::io;

use crosswarp_shmem::Pe;

use super::fewest_cells;
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::space::hierarchy::finest_shape;
use crate::engine::cpu::multigrid::space::level::{DEPTH, Level};
use crate::engine::cpu::multigrid::space::line::Line;
use crate::engine::cpu::multigrid::space::points::{ALONG_AXES, Points};
use crate::engine::cpu::multigrid::space::side_by_side::{at_once, side_by_side};
use crate::field::partition::Partition;
use crate::method::options::Options;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::ProblemError;
use crate::problem::scale::{Scale, are_finite, largest_magnitude, largest_of};
use crate::problem::space::{PlaneSource, Problem3d, Side};

/// What can be wrong at a point, in the order of their codes.
const WRONG: [[&str; 2]; 4] = [
    ["value", "finite"],
    ["source", "finite"],
    ["coefficient", "positive and finite"],
    ["factor c", "zero, or positive and finite"],
];
const VALUE: u64 = 0;
const SOURCE: u64 = 1;
const COEFFICIENT: u64 = 2;
const REACTION: u64 = 3;
const KINDS: u64 = WRONG.len() as u64;

/// The first bad point of the whole grid, on every PE alike.
pub(super) fn first_bad(
    reduction: &Reduction<'_>,
    mine: u64,
    [nx, ny, _]: [usize; 3],
) -> Result<Option<ProblemError>, PeError> {
    let code = reduction.min(mine)?;
    let point = (code / KINDS) as usize;
    let [what, must] = WRONG[(code % KINDS) as usize];
    Ok((code != u64::MAX).then_some(ProblemError::Point {
        what,
        must,
        x: point % nx,
        y: point / nx % ny,
        z: point / nx / ny,
    }))
}

/// How a box is dealt to PEs.
pub(super) struct Layout {
    pub ends: [[End; 2]; 3],
    pub lines: [Line; 3],
    pub partition: Partition,
    pub shape: Shape,
}

impl Layout {
    pub fn of<F: Real>(pe: &Pe, problem: &Problem3d<F>, options: &Options<'_>) -> Layout {
        let ends = problem.sides.map(|sides| {
            sides.map(|side| match side {
                Side::Fixed => End::Fixed,
                Side::Neumann(_) | Side::Robin { .. } => End::Mirror,
                Side::Periodic => End::Wrap,
            })
        });
        let lines: [Line; 3] = std::array::from_fn(|axis| {
            Line::finest(problem.size[axis], ends[axis], problem.spacing[axis])
        });
        let [.., nz] = problem.size;
        let partition = Partition::new(nz, 1, pe.n_pes());
        let cuts = (0..=pe.n_pes())
            .map(|pe| match pe {
                0 => 0,
                pe => partition.rows(pe - 1).end,
            })
            .collect();
        let fewest = fewest_cells(options.gpu.as_ref());
        Layout {
            shape: finest_shape(&lines, cuts, pe.my_pe(), fewest),
            ends,
            lines,
            partition,
        }
    }
}

/// What was read of a problem: the first bad point's number and what is wrong with it.
pub(super) struct Read {
    pub bad: u64,
    pub largest: f64,
    /// Whether the field is 0 in the own planes, with a positive sign.
    pub zero: bool,
}

/// What the operator is made of has been looked at.
pub(super) struct Sizes {
    pub bad: u64,
    /// The largest coupling.
    pub largest: f64,
    /// Whether anything but fixed points ties the field to a value.
    pub tied: bool,
}

/// Looks at coefficient, factor c and mixed sides, in the own planes.
pub(super) fn sizes<F: Real>(problem: &Problem3d<F>, shape: &Shape) -> Sizes {
    let [nx, ny, nz] = problem.size;
    let [h_x, h_y, h_z] = problem.spacing;
    let ratio = (h_y * h_z / h_x).max(h_x * h_z / h_y).max(h_x * h_y / h_z);
    let mut sizes = Sizes {
        bad: u64::MAX,
        largest: match problem.coefficient {
            Some(_) => 0.0,
            None => ratio,
        },
        tied: problem
            .sides
            .as_flattened()
            .iter()
            .any(|side| matches!(side, Side::Robin { value, .. } if value.to_f64() != 0.0)),
    };
    let mut row = vec![F::ZERO; nx];
    for z in shape.own().map(|z| z.rem_euclid(nz as isize) as usize) {
        for y in 0..ny {
            let point = |x: usize| ((z * ny + y) * nx + x) as u64;
            let mut look = |of: &Option<PlaneSource<F>>, kind, fits: fn(f64) -> bool| {
                row.fill(F::ZERO);
                let of = of.as_ref()?;
                of(z, y, &mut row);
                let wrong = row.iter().position(|value| !fits(value.to_f64()));
                if let Some(x) = wrong {
                    sizes.bad = sizes.bad.min(KINDS * point(x) + kind);
                }
                Some(largest_of(F::ZERO, &row).to_f64())
            };
            let positive = |value: f64| value > 0.0 && value.is_finite();
            let largest = look(&problem.coefficient, COEFFICIENT, positive);
            let reaction = look(&problem.reaction, REACTION, |value: f64| {
                value >= 0.0 && value.is_finite()
            });
            sizes.largest = sizes.largest.max(ratio * largest.unwrap_or(0.0));
            sizes.tied |= reaction.is_some_and(|largest| largest > 0.0);
        }
    }
    sizes
}

/// Coefficient and fixed points around a plane.
struct Window<'a, F> {
    problem: &'a Problem3d<F>,
    lines: &'a [Line; 3],
    operator: Scale,
    /// Planes and what they hold, by number.
    planes: [(Option<usize>, Vec<f64>, Vec<bool>); 3],
    row: Vec<F>,
}

/// A neighbour along an axis.
struct Neighbour {
    place: [usize; 3],
    coupling: f64,
    fixed: bool,
    /// The axis, if the neighbour comes after the point.
    after: Option<usize>,
}

impl<'a, F: Real> Window<'a, F> {
    fn new(problem: &'a Problem3d<F>, lines: &'a [Line; 3], operator: Scale) -> Self {
        Window {
            problem,
            lines,
            operator,
            planes: [const { (None, Vec::new(), Vec::new()) }; 3],
            row: vec![F::ZERO; problem.size[0]],
        }
    }

    /// Reads the planes `wanted`, if they are not there.
    fn need(&mut self, wanted: [usize; 3]) {
        for z in wanted {
            let there = |(number, ..): &(Option<usize>, _, _)| *number == Some(z);
            if self.planes.iter().any(there) {
                continue;
            }
            let idle = |(number, ..): &(Option<usize>, _, _)| {
                !number.is_some_and(|number| wanted.contains(&number))
            };
            let slot = self.planes.iter().position(idle);
            self.read(z, slot.expect("one of three planes is not wanted"));
        }
    }

    fn read(&mut self, z: usize, slot: usize) {
        let [nx, ny, _] = self.problem.size;
        let (number, kappa, fixed) = &mut self.planes[slot];
        *number = Some(z);
        kappa.clear();
        fixed.clear();
        let [x, line_y, line_z] = self.lines;
        let mut bytes = vec![0u8; nx];
        for y in 0..ny {
            match &self.problem.coefficient {
                Some(coefficient) => {
                    self.row.fill(F::ZERO);
                    coefficient(z, y, &mut self.row);
                    let values = self.row.iter().map(|value| value.to_f64());
                    kappa.extend(values.map(|value| self.operator.down(value)));
                }
                None => kappa.resize(kappa.len() + nx, self.operator.down(1.0)),
            }
            bytes.fill(0);
            if let Some(mask) = &self.problem.fixed {
                mask(z, y, &mut bytes);
            }
            let side = !line_y.free[y] || !line_z.free[z];
            fixed.extend((0..nx).map(|i| side || !x.free[i] || bytes[i] != 0));
        }
    }

    /// Makes the planes around plane `z` ready.
    fn centre(&mut self, z: usize) {
        let nz = self.problem.size[2];
        self.need([(z + nz - 1) % nz, z, (z + 1) % nz]);
    }

    fn at(&self, [x, y, z]: [usize; 3]) -> (f64, bool) {
        let [nx, ..] = self.problem.size;
        let mut planes = self.planes.iter();
        let (_, kappa, fixed) = planes
            .find(|(number, ..)| *number == Some(z))
            .expect("the plane has been read");
        (kappa[y * nx + x], fixed[y * nx + x])
    }

    /// The neighbours of a point along the axes, before and after it, that it is coupled to.
    fn neighbours(&self, place: [usize; 3], mut take: impl FnMut(Neighbour)) {
        let (here, _) = self.at(place);
        for axis in 0..3 {
            let [one, other] = [(axis + 1) % 3, (axis + 2) % 3];
            let [mass_one, mass_other] =
                [one, other].map(|across| self.lines[across].mass[place[across]]);
            let line = &self.lines[axis];
            let len = line.axis.len;
            for after in [false, true] {
                let (at, step) = (place[axis], if after { 1 } else { len - 1 });
                let coupling = if after {
                    line.coupling[at]
                } else {
                    line.before(at)
                };
                if coupling == 0.0 {
                    continue;
                }
                let mut there = place;
                there[axis] = (at + step) % len;
                let (kappa, fixed) = self.at(there);
                take(Neighbour {
                    place: there,
                    coupling: (0.5 * here + 0.5 * kappa) * (mass_one * mass_other) * coupling,
                    fixed,
                    after: after.then_some(axis),
                });
            }
        }
    }
}

/// The planes of a level that are stored and that the grid has, with their numbers in it.
fn planes(shape: &Shape, stored: std::ops::Range<isize>) -> impl Iterator<Item = (isize, usize)> {
    let (axis, len) = (shape.y, shape.y.len as isize);
    let there = stored.filter(move |&z| axis.has(z));
    there.map(move |z| (z, z.rem_euclid(len) as usize))
}

/// Planes that a thread makes one after the other, at most: it reads those beside them, too.
const RUN: usize = 8;

/// The operator, times 2^−e as `scale` says, made by `threads`.
pub(super) fn points<F: Real>(
    problem: &Problem3d<F>,
    lines: &[Line; 3],
    shape: &Shape,
    scale: Scale,
    threads: usize,
) -> io::Result<Points> {
    let mut points = Points::new(lines, shape, ALONG_AXES, DEPTH)?;
    let all: Vec<(isize, usize)> = planes(shape, points.excess.rows()).collect();
    let window = || Window::new(problem, lines, scale);
    if threads < 2 {
        let mut window = window();
        for (at, z) in all {
            take_plane(&mut points, at, &window.couplings(z));
        }
    } else {
        let bytes = size_of::<f64>() * shape.x.len * (ALONG_AXES + 1);
        let run = (at_once(threads, bytes) / threads).clamp(1, RUN);
        for some in all.chunks(run * threads) {
            let runs: Vec<&[(isize, usize)]> = some.chunks(run).collect();
            let made = side_by_side(threads, &runs, |run| {
                let mut window = window();
                let made = run.iter().map(|&(_, z)| window.couplings(z));
                made.collect::<Vec<_>>()
            });
            for (&(at, _), plane) in some.iter().zip(made.iter().flatten()) {
                take_plane(&mut points, at, plane);
            }
        }
    }
    points.complete(threads);
    Ok(points)
}

/// Couplings along the axes and excess of the points of a plane.
type Couplings = [Vec<f64>; ALONG_AXES + 1];

fn take_plane(points: &mut Points, at: isize, plane: &Couplings) {
    let fields = points.parts.iter_mut().chain([&mut points.excess]);
    for (field, values) in fields.zip(plane) {
        field.row_mut(at).copy_from_slice(values);
    }
}

impl<F: Real> Window<'_, F> {
    /// Those of plane `z`; rows have a point more on both sides.
    fn couplings(&mut self, z: usize) -> Couplings {
        let problem = self.problem;
        let [nx, ny, nz] = problem.size;
        self.centre(z);
        let mut made: Couplings = std::array::from_fn(|_| vec![0.0; (nx + 2) * ny]);
        let mut row = vec![F::ZERO; nx];
        for y in 0..ny {
            row.fill(F::ZERO);
            if let Some(reaction) = &problem.reaction {
                reaction(z, y, &mut row);
            }
            for (x, reaction) in row.iter().enumerate() {
                let place = [x, y, z];
                let (kappa, fixed) = self.at(place);
                if fixed {
                    continue;
                }
                let mass = [0, 1, 2].map(|axis| self.lines[axis].mass[place[axis]]);
                let volume = mass[0] * (mass[1] * mass[2]);
                let mut excess = self.operator.down(reaction.to_f64()) * volume;
                for axis in 0..3 {
                    let ends = problem.sides[axis].iter().zip([0, [nx, ny, nz][axis] - 1]);
                    for (side, end) in ends {
                        if let (
                            Side::Robin {
                                value, derivative, ..
                            },
                            true,
                        ) = (side, place[axis] == end)
                        {
                            let area = volume / mass[axis];
                            excess += kappa * (value.to_f64() / derivative.to_f64()) * area;
                        }
                    }
                }
                let slot = y * (nx + 2) + 1 + x;
                self.neighbours(place, |neighbour| {
                    if neighbour.fixed {
                        excess += neighbour.coupling;
                    } else if let Some(axis) = neighbour.after {
                        made[axis][slot] = neighbour.coupling;
                    }
                });
                made[ALONG_AXES][slot] = excess;
            }
        }
        made
    }
}

/// Fills the finest level's field and right side: the planes that this PE stores, times 2^−e as `scale` says, and the
/// right side as the `operator`.
pub(super) fn load<F: Real>(
    problem: &Problem3d<F>,
    level: &mut Level,
    scale: Scale,
    operator: Scale,
) -> Read {
    let of = &level.operator;
    let [nx, ny, nz] = problem.size;
    let stride = of.stride();
    let mut read = Read {
        bad: u64::MAX,
        largest: 0.0,
        zero: true,
    };
    let mut row = vec![F::ZERO; nx];
    let own = of.shape.own();
    let lines = of.lines.clone();
    let crossed = (problem.sides.as_flattened().iter())
        .any(|side| matches!(side, Side::Neumann(_) | Side::Robin { .. }));
    let mut window = Window::new(problem, &lines, operator);
    for (at, z) in planes(&of.shape, level.u.rows()) {
        let mine = own.contains(&at);
        if of.points.is_some() {
            window.need([z; 3]);
        }
        for y in 0..ny {
            let point = |x: usize| KINDS * ((z * ny + y) * nx + x) as u64;
            // Without initial values the field stays what it was made as.
            if let Some(initial) = &problem.initial {
                row.fill(F::ZERO);
                initial(z, y, &mut row);
                if mine {
                    let wrong = row.iter().position(|value| !value.to_f64().is_finite());
                    read.bad = read.bad.min(wrong.map_or(u64::MAX, |x| point(x) + VALUE));
                    read.largest = read.largest.max(largest_of(F::ZERO, &row).to_f64());
                }
                let out = &mut level.u.row_mut(at)[y * stride + 1..][..nx];
                let mut bits = 0;
                for (out, &value) in out.iter_mut().zip(&row) {
                    *out = scale.down(value.to_f64());
                    bits |= out.to_bits();
                }
                read.zero &= !mine || bits == 0;
            }
            let b = &mut level.right_side.row_mut(at)[y * stride + 1..][..nx];
            b.fill(0.0);
            let Some(free) = of.free(at, y) else {
                continue;
            };
            let kappa_and_fixed = |x: usize| match of.points {
                Some(_) => window.at([x, y, z]),
                None => (1.0, false),
            };
            let has_equation = |x: &usize| free[*x] != 0.0 && !kappa_and_fixed(*x).1;
            // −f and the flows across the sides, integrated over the point's part of the grid.
            if let Some(source) = &problem.source {
                row.fill(F::ZERO);
                source(z, y, &mut row);
                let mass = of.mass_of_row(y, at);
                for (x, b) in b.iter_mut().enumerate() {
                    let product = (lines[0].mass[x] * mass) * row[x].to_f64();
                    *b = if free[x] != 0.0 { product } else { 0.0 };
                }
                if of.points.is_some() {
                    for x in (0..nx).filter(|x| !has_equation(x)) {
                        b[x] = 0.0;
                    }
                }
                operator.all_down(b);
                if mine && !are_finite(b) {
                    let wrong = b.iter().position(|product| !product.is_finite());
                    read.bad = read.bad.min(wrong.map_or(u64::MAX, |x| point(x) + SOURCE));
                }
                read.largest = read.largest.max(largest_magnitude(b.iter().copied()));
                scale.all_down(b);
                for b in &mut *b {
                    *b = -*b;
                }
                // Where there is no equation, 0 without a sign.
                for x in (0..nx).filter(|x| !has_equation(x)) {
                    b[x] = 0.0;
                }
            }
            let last = [nx - 1, ny - 1, nz - 1];
            if !crossed {
                continue;
            }
            // Inside a plane and between the last ones, only the ends of a row are at sides.
            let inside = (1..last[1]).contains(&y) && (1..last[2]).contains(&z);
            let step = if inside { last[0].max(1) } else { 1 };
            for x in (0..nx).step_by(step).filter(has_equation) {
                let place = [x, y, z];
                let (kappa, _) = kappa_and_fixed(x);
                for axis in 0..3 {
                    for (side, end) in problem.sides[axis].iter().zip([0, last[axis]]) {
                        let slope = match side {
                            Side::Neumann(slope) => slope.to_f64(),
                            Side::Robin {
                                derivative, right, ..
                            } => right.to_f64() / derivative.to_f64(),
                            Side::Fixed | Side::Periodic => continue,
                        };
                        if place[axis] == end {
                            let area = of.mass(x, y, at) / of.lines[axis].mass[end];
                            let flow = kappa * (area * slope);
                            read.largest = read.largest.max(flow.abs());
                            b[x] += scale.down(flow);
                        }
                    }
                }
            }
        }
        if problem.initial.is_some() {
            of.beyond(level.u.row_mut(at));
        }
    }
    if of.points.is_some() {
        add_fixed(level, &mut window);
    }
    read
}

/// Adds to the right side what points take of neighbours that keep their values: the operator has these couplings in the
/// excess.
fn add_fixed<F: Real>(level: &mut Level, window: &mut Window<'_, F>) {
    let [nx, ny, nz] = window.problem.size;
    let of = &level.operator;
    let stride = of.stride();
    let stored = level.u.rows();
    for (at, z) in planes(&of.shape, stored.clone()) {
        window.centre(z);
        for y in 0..ny {
            for x in 0..nx {
                let place = [x, y, z];
                if window.at(place).1 {
                    continue;
                }
                let mut sum = 0.0;
                window.neighbours(place, |neighbour| {
                    let [to_x, to_y, to_z] = neighbour.place;
                    // The plane as it is stored, near this one.
                    let far = to_z as isize - z as isize;
                    let by = if far.unsigned_abs() + 1 == nz {
                        -far.signum()
                    } else {
                        far
                    };
                    if neighbour.fixed && stored.contains(&(at + by)) {
                        let u = level.u.row(at + by)[to_y * stride + 1 + to_x];
                        sum += neighbour.coupling * u;
                    }
                });
                level.right_side.row_mut(at)[y * stride + 1 + x] += sum;
            }
        }
    }
}

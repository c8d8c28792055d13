//! A problem as multigrid holds it: the level of its unknowns, field, right side, and operator.

use std::io;

use crosswarp_prim::leaf::ROWS as LEAF_ROWS;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::element::simd::Isa;
use crate::engine::cpu::multigrid::coefficients::Coefficients;
use crate::engine::cpu::multigrid::finest::{End, Finest, Held};
use crate::engine::cpu::multigrid::shape::{Axis, Shape};
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::field::partition::Partition;
use crate::field::storage::Field;
use crate::problem::scale::{Scale, largest_magnitude};
use crate::problem::{Boundary, Problem2d, ProblemError, Robin};

/// The level of a problem's unknowns, and where it lies in the problem's grid.
pub(super) struct Layout {
    pub shape: Shape,
    pub ends: [[End; 2]; 2],
    /// The problem's column and row of the level's first ones: 1 where ghosts come first.
    pub first: [usize; 2],
    pub partition: Partition,
}

impl Layout {
    pub fn of<F>(problem: &Problem2d<F>, pe: &Pe, fewest_cells: usize) -> Layout {
        let end = |side: &Boundary<F>| match side {
            Boundary::Fixed(_) => End::Fixed,
            Boundary::Neumann(_) | Boundary::Robin(_) => End::Mirror,
            Boundary::Periodic => End::Wrap,
        };
        let ends = [
            [end(&problem.left), end(&problem.right)],
            [end(&problem.top), end(&problem.bottom)],
        ];
        let axis = |points: usize, ends: [End; 2]| {
            let wraps = ends[0] == End::Wrap;
            Axis {
                len: points - if wraps { 2 } else { 0 },
                wraps,
            }
        };
        let (x, y) = (axis(problem.nx, ends[0]), axis(problem.ny, ends[1]));
        let first = [usize::from(x.wraps), usize::from(y.wraps)];
        let partition = Partition::new(problem.ny, LEAF_ROWS, pe.n_pes());
        let cuts = (0..=pe.n_pes())
            .map(|pe| {
                let row = match pe {
                    0 => 0,
                    pe => partition.rows(pe - 1).end,
                };
                row.saturating_sub(first[1]).min(y.len)
            })
            .collect();
        Layout {
            shape: Shape::finest(x, y, cuts, pe.my_pe(), fewest_cells),
            ends,
            first,
            partition,
        }
    }

    pub fn sums(&self) -> LeafSums {
        LeafSums::new(self.shape.own(), self.shape.x.len, self.first[1] as isize)
    }
}

/// What was read of a problem.
pub(super) struct Loaded {
    pub u: Field<f64>,
    pub right_side: Option<Field<f64>>,
    pub bad: Option<ProblemError>,
    pub largest: f64,
}

/// Reads which cells of the rows that this PE stores are fixed.
pub(super) fn fixed<F: Real>(
    problem: &Problem2d<F>,
    layout: &Layout,
) -> io::Result<Option<Held<Field<u8>>>> {
    let Some(deliver) = &problem.fixed else {
        return Ok(None);
    };
    let shape = &layout.shape;
    let [first_x, first_y] = layout.first;
    let mut fixed = Field::lazy(shape.stored(), shape.x.len)?;
    let mut row = vec![0u8; problem.nx];
    for at in shape.stored().filter(|&at| shape.y.has(at)) {
        row.fill(0);
        deliver(
            at.rem_euclid(shape.y.len as isize) as usize + first_y,
            &mut row,
        );
        fixed
            .row_mut(at)
            .copy_from_slice(&row[first_x..][..shape.x.len]);
    }
    Ok(Some(Held::Here(fixed)))
}

/// Reads the rows that this PE stores, times 2^−e as `scale` says. `operator`: its exponent, where it is not the same
/// everywhere. `kept`: a right side of before, whose memory may be used again.
pub(super) fn load<F: Real>(
    problem: &Problem2d<F>,
    layout: &Layout,
    finest: &Finest,
    scale: Scale,
    operator: Option<Scale>,
    kept: Option<Field<f64>>,
) -> io::Result<Loaded> {
    let shape = &layout.shape;
    let [first_x, first_y] = layout.first;
    let (nx, len) = (problem.nx, shape.x.len);
    let columns = first_x..first_x + len;
    let own = shape.own();
    let mut u = finest.field()?;
    // Where nothing flows across the sides, as with a derivative of 0, and there is no source, b is 0 and need not be read.
    let has_right_side = problem.source.is_some() || problem.sides().into_iter().any(flows_across);
    let mut right_side = match (has_right_side, kept) {
        (false, _) => None,
        (true, Some(kept)) => Some(kept),
        (true, None) => Some(finest.field()?),
    };
    let mut row = vec![F::ZERO; nx];
    let mut kappa = Kappa::new(problem, layout);
    let (mut bad, mut largest) = (None, 0.0f64);
    let [h_x, h_y] = problem.spacings();
    let isa = Isa::widest();
    for at in shape.stored().filter(|&at| shape.y.has(at)) {
        let inside = at.rem_euclid(shape.y.len as isize) as usize;
        let y = inside + first_y;
        let mine = own.contains(&at);
        row.fill(F::ZERO);
        problem.initial_row(y, &mut row);
        // Where nothing is given but sides, all between them is zero, as it is in a new field.
        let given = match problem.initial.is_some() || y == 0 || y + 1 == problem.ny {
            true => [0..len, len..len],
            false => [0..1, len - 1..len],
        };
        for given in given {
            let values = &row[columns.clone()][given.clone()];
            // A new field has zeros, and a write would make a page of them.
            if values.iter().all(|value| value.to_f64().to_bits() == 0) {
                continue;
            }
            let out = &mut u.row_mut(at)[given.clone()];
            for (out, &value) in out.iter_mut().zip(values) {
                *out = value.to_f64();
            }
            if mine {
                let size = largest_magnitude(out.iter().copied());
                if size.is_finite() {
                    largest = largest.max(size);
                } else if bad.is_none() {
                    let wrong = out.iter().position(|value| !value.is_finite());
                    let x = |x| given.start + x + first_x;
                    bad = wrong.map(|at| ProblemError::Value { x: x(at), y });
                }
            }
            scale.all_down(out);
        }
        let Some(right_side) = &mut right_side else {
            continue;
        };
        let b = right_side.row_mut(at);
        // Integrals over the points' parts of the grid, or with couplings of 1 what they are times 1 / part.
        let part = |x: usize| operator.map_or(1.0, |_| finest.part_of(x, at));
        let times = |value: f64| operator.map_or(value, |operator| operator.down(value));
        if let Some(source) = &problem.source {
            row.fill(F::ZERO);
            source(y, &mut row);
            let area = h_x * h_y;
            for (out, &value) in b.iter_mut().zip(&row[columns.clone()]) {
                *out = area * value.to_f64();
            }
            if operator.is_some() {
                for (x, out) in b.iter_mut().enumerate() {
                    *out = times(*out) * part(x);
                }
            }
            if mine {
                let size = finest.largest_where_equations(isa, at, b);
                if size.is_finite() {
                    largest = largest.max(size);
                } else if bad.is_none() {
                    let wrong = |&x: &usize| finest.has_equation(at, x) && !b[x].is_finite();
                    let x = (0..len).find(wrong);
                    bad = x.map(|x| ProblemError::Source { x: x + first_x, y });
                }
            }
            scale.all_down(b);
            b.iter_mut().for_each(|out| *out = -*out);
        } else {
            b.fill(0.0);
        }
        kappa.read(at);
        let crossing = Crossing {
            problem,
            finest,
            operator,
        };
        let mut flow =
            |out: &mut f64, across: usize, x: usize, side: &Boundary<F>, at_side: usize| {
                let flow = crossing.at(side, at_side, across, [x as isize, at], kappa.here[x]);
                let Some(flow) = flow else { return };
                if mine && finest.has_equation(at, x) {
                    largest = largest.max(flow.abs());
                }
                *out += scale.down(flow);
            };
        for (side, x) in [(&problem.left, 0), (&problem.right, len - 1)] {
            flow(&mut b[x], 1, x, side, y);
        }
        for (side, side_at) in [(&problem.top, 0), (&problem.bottom, shape.y.len - 1)] {
            if inside == side_at {
                for (x, out) in b.iter_mut().enumerate() {
                    flow(out, 0, x, side, x + first_x);
                }
            }
        }
    }
    Ok(Loaded {
        u,
        right_side,
        bad,
        largest,
    })
}

/// What crosses sides.
struct Crossing<'a, F> {
    problem: &'a Problem2d<F>,
    finest: &'a Finest,
    operator: Option<Scale>,
}

impl<F: Real> Crossing<'_, F> {
    /// What crosses `side` at its point `at_side`, column and row [x, y] of the level, as the equation has it on the right;
    /// nothing where the side is none that something crosses. `along`: the axis that runs along the side, 0 that of columns;
    /// `kappa`: the coefficient there.
    fn at(
        &self,
        side: &Boundary<F>,
        at_side: usize,
        along: usize,
        [x, y]: [isize; 2],
        kappa: f64,
    ) -> Option<f64> {
        let of_operator = |flow: f64| {
            let times = self.operator.map_or(flow, |operator| operator.down(flow));
            times * self.finest.edge(along, x as usize, y) * self.problem.spacings()[along]
        };
        match (side, self.operator) {
            // A derivative g outwards: the mirror image is 2hg larger than the cell inside.
            (Boundary::Neumann(g), None) => Some(2.0 * self.problem.spacing * g[at_side].to_f64()),
            (Boundary::Neumann(g), Some(_)) => Some(of_operator(kappa * g[at_side].to_f64())),
            (Boundary::Robin(mixed), _) => {
                let [_, b, g] = mixed.at(at_side);
                Some(of_operator(kappa * (g / b)))
            }
            _ => None,
        }
    }
}

/// What crosses the sides left, right, top and bottom, by the level's rows or columns, where something can, and the largest
/// magnitude of it where there are equations; of a PE that has all rows. `kappas`: the coefficient along these sides, if the problem
/// has none itself.
pub(super) fn flows<F: Real>(
    problem: &Problem2d<F>,
    layout: &Layout,
    finest: &Finest,
    operator: Option<Scale>,
    kappas: Option<&[Vec<f64>; 4]>,
) -> ([Option<Vec<f64>>; 4], f64) {
    let crossing = Crossing {
        problem,
        finest,
        operator,
    };
    let len = [layout.shape.x.len, layout.shape.y.len];
    let mut kappa = Kappa::new(problem, layout);
    let mut read = None;
    let mut largest = 0.0f64;
    let mut flows = [const { None }; 4];
    for (number, (side, flows)) in problem.sides().into_iter().zip(&mut flows).enumerate() {
        // The axis that the side is an end of, and the one that runs along it.
        let (of, along, is_last) = (number / 2, 1 - number / 2, number % 2 == 1);
        for at in 0..len[along] {
            let mut place = [0; 2];
            (place[of], place[along]) = (usize::from(is_last) * (len[of] - 1), at);
            let [x, y] = place;
            if kappas.is_none() && read.replace(y) != Some(y) {
                kappa.read(y as isize);
            }
            let kappa = kappas.map_or(kappa.here[x], |kappas| kappas[number][at]);
            let place = place.map(|at| at as isize);
            let at_side = at + layout.first[along];
            let Some(flow) = crossing.at(side, at_side, along, place, kappa) else {
                break;
            };
            // Where nothing flows a mask that a GPU has is not asked for.
            if flow != 0.0 && finest.has_equation(y as isize, x) {
                largest = largest.max(flow.abs());
            }
            flows.get_or_insert_with(Vec::new).push(flow);
        }
    }
    (flows, largest)
}

/// Rows of the coefficient.
struct Kappa<'a, F> {
    problem: &'a Problem2d<F>,
    layout: &'a Layout,
    row: Vec<F>,
    /// The row that was read last.
    here: Vec<f64>,
}

impl<'a, F: Real> Kappa<'a, F> {
    fn new(problem: &'a Problem2d<F>, layout: &'a Layout) -> Self {
        Kappa {
            problem,
            layout,
            row: vec![F::ZERO; problem.nx],
            here: vec![1.0; layout.shape.x.len],
        }
    }

    /// Reads row `at` of the level.
    fn read(&mut self, at: isize) {
        if let Some(coefficient) = &self.problem.coefficient {
            deliver(
                coefficient.as_ref(),
                self.layout,
                at,
                &mut self.row,
                &mut self.here,
            );
        }
    }
}

/// Row `at` of the level of what `source` delivers.
fn deliver<F: Real>(
    source: &dyn Fn(usize, &mut [F]),
    layout: &Layout,
    at: isize,
    row: &mut [F],
    out: &mut [f64],
) {
    let [first_x, first_y] = layout.first;
    row.fill(F::ZERO);
    source(
        at.rem_euclid(layout.shape.y.len as isize) as usize + first_y,
        row,
    );
    for (out, value) in out.iter_mut().zip(&row[first_x..]) {
        *out = value.to_f64();
    }
}

/// What the operator is made of has been looked at.
pub(super) struct Sizes {
    pub bad: Option<ProblemError>,
    /// The largest coupling.
    pub largest: f64,
    /// Whether anything but fixed cells ties the field to a value.
    pub tied: bool,
}

/// Whether a mixed side ties the field to a value.
pub(super) fn is_tied_by_sides<F: Real>(problem: &Problem2d<F>) -> bool {
    let ties = |side: &Boundary<F>| match side {
        Boundary::Robin(mixed) => mixed.value.iter().any(|a| a.to_f64() != 0.0),
        _ => false,
    };
    problem.sides().into_iter().any(ties)
}

/// Whether something crosses a side.
pub(super) fn flows_across<F: Real>(side: &Boundary<F>) -> bool {
    match side {
        Boundary::Neumann(g) | Boundary::Robin(Robin { right: g, .. }) => {
            g.iter().any(|&g| g.to_f64() != 0.0)
        }
        Boundary::Fixed(_) | Boundary::Periodic => false,
    }
}

/// Looks at the coefficient and what ties the field to a value, in the own rows.
pub(super) fn sizes<F: Real>(problem: &Problem2d<F>, layout: &Layout) -> Sizes {
    let [first_x, first_y] = layout.first;
    let [h_x, h_y] = problem.spacings();
    let ratio = (h_x / h_y).max(h_y / h_x);
    let mut sizes = Sizes {
        bad: None,
        largest: if problem.coefficient.is_some() {
            0.0
        } else {
            ratio
        },
        tied: is_tied_by_sides(problem),
    };
    let mut row = vec![F::ZERO; problem.nx];
    let mut values = vec![0.0; layout.shape.x.len];
    for at in layout.shape.own() {
        let y = at as usize + first_y;
        if let Some(coefficient) = &problem.coefficient {
            deliver(coefficient.as_ref(), layout, at, &mut row, &mut values);
            let wrong = values
                .iter()
                .position(|&value| !(value > 0.0 && value.is_finite()));
            if let (Some(x), None) = (wrong, &sizes.bad) {
                sizes.bad = Some(ProblemError::Coefficient {
                    x: x + first_x,
                    y,
                    value: values[x],
                });
            }
            let largest = values.iter().copied().fold(0.0, f64::max);
            sizes.largest = sizes.largest.max(largest * ratio);
        }
        if let Some(reaction) = &problem.reaction {
            deliver(reaction.as_ref(), layout, at, &mut row, &mut values);
            let wrong = values
                .iter()
                .position(|&value| !(value >= 0.0 && value.is_finite()));
            if let (Some(x), None) = (wrong, &sizes.bad) {
                sizes.bad = Some(ProblemError::Reaction {
                    x: x + first_x,
                    y,
                    value: values[x],
                });
            }
            sizes.tied |= values.iter().any(|&value| value > 0.0);
        }
    }
    sizes
}

/// The operator, times 2^−e as `scale` says.
pub(super) fn coefficients<F: Real>(
    problem: &Problem2d<F>,
    layout: &Layout,
    finest: &Finest,
    scale: Scale,
) -> Coefficients {
    let shape = &layout.shape;
    let [h_x, h_y] = problem.spacings();
    let len = shape.x.len;
    let mut out = Coefficients::new(shape);
    let mut kappa = Kappa::new(problem, layout);
    let mut next = Kappa::new(problem, layout);
    let mut row = vec![F::ZERO; problem.nx];
    let mut reaction = vec![0.0; len];
    let [mut east, mut south, mut excess] = [(); 3].map(|()| vec![0.0; len]);
    // A point that is its own neighbour around the grid is not coupled.
    let coupled = |axis: Axis, at: isize| axis.has(at + 1) && !(axis.wraps && axis.len == 1);
    for at in shape.stored().filter(|&at| shape.y.has(at)) {
        kappa.read(at);
        let below = coupled(shape.y, at);
        if below {
            next.read(at + 1);
        }
        if let Some(source) = &problem.reaction {
            deliver(source.as_ref(), layout, at, &mut row, &mut reaction);
        }
        for x in 0..len {
            let here = kappa.here[x];
            east[x] = if coupled(shape.x, x as isize) {
                let face = between(here, kappa.here[(x + 1) % len]);
                scale.down(face) * (h_y / h_x) * finest.edge(1, x, at)
            } else {
                0.0
            };
            south[x] = if below {
                scale.down(between(here, next.here[x])) * (h_x / h_y) * finest.edge(0, x, at)
            } else {
                0.0
            };
            excess[x] = scale.down(reaction[x]) * (h_x * h_y) * finest.part_of(x, at);
        }
        let inside = at.rem_euclid(shape.y.len as isize) as usize;
        let mut mix = |across: usize, x: usize, side: &Boundary<F>, at_side: usize| {
            if let Boundary::Robin(mixed) = side {
                let [a, b, _] = mixed.at(at_side);
                excess[x] += scale.down(kappa.here[x] * (a / b))
                    * finest.edge(across, x, at)
                    * [h_x, h_y][across];
            }
        };
        let [first_x, first_y] = layout.first;
        for (side, x) in [(&problem.left, 0), (&problem.right, len - 1)] {
            mix(1, x, side, inside + first_y);
        }
        for (side, side_at) in [(&problem.top, 0), (&problem.bottom, shape.y.len - 1)] {
            if inside == side_at {
                (0..len).for_each(|x| mix(0, x, side, x + first_x));
            }
        }
        out.set_row(at, [&east, &south, &excess]);
    }
    out
}

/// The coefficient between two points.
fn between(one: f64, other: f64) -> f64 {
    0.5 * one + 0.5 * other
}

//! A box: its files opened, the values of its sides.

use std::path::Path;
use std::sync::Arc;

use crosswarp::solve::{PlaneSource, Problem3d, Real, Side as GridSide};

use super::error::LoadError;
use super::values::{formula_row, narrowed};
use crate::input::boundary::{Boundary, Side, Values};
use crate::input::formula::Point;
use crate::input::spacing::Spacing;
use crate::problem::Space;
use crate::problem::field::{Field, Volume};

const SIDES: [[Side; 2]; 3] = [
    [Side::Left, Side::Right],
    [Side::Top, Side::Bottom],
    [Side::Front, Side::Back],
];

/// Opens what `space` needs.
pub fn problem<F: Real>(space: &Space) -> Result<Problem3d<F>, LoadError> {
    let longest = space.size.iter().max().map_or(1, |n| n - 1);
    let spacing = space
        .spacing
        .unwrap_or_else(|| Spacing::same(1.0 / longest as f64));
    let inside = |values: &Option<Values>| {
        let values = values.as_ref();
        values
            .map(|values| rows_of(values, space.size, spacing))
            .transpose()
    };
    let mut sides = [[GridSide::Fixed; 2]; 3];
    let mut given = [const { [const { None::<Vec<F>> }; 2] }; 3];
    for axis in 0..3 {
        for end in 0..2 {
            let side = SIDES[axis][end];
            sides[axis][end] = match &space.sides[axis][end] {
                Boundary::Periodic => GridSide::Periodic,
                Boundary::Fixed(values) => {
                    given[axis][end] = Some(face(values, (axis, end), space.size, spacing)?);
                    GridSide::Fixed
                }
                Boundary::Neumann(Values::Constant(slope)) => GridSide::Neumann(narrowed(*slope)?),
                Boundary::Neumann(_) => {
                    return Err(LoadError::BoxSide {
                        side: side.name(),
                        problem: "its derivative must be a number",
                    });
                }
                Boundary::Robin(mixed) => {
                    let [
                        Values::Constant(a),
                        Values::Constant(b),
                        Values::Constant(g),
                    ] = &**mixed
                    else {
                        return Err(LoadError::BoxSide {
                            side: side.name(),
                            problem: "A, B and G of robin:A,B,G must be numbers",
                        });
                    };
                    GridSide::Robin {
                        value: narrowed(*a)?,
                        derivative: narrowed(*b)?,
                        right: narrowed(*g)?,
                    }
                }
            };
        }
    }
    let mut initial = inside(&space.initial)?;
    let mut fixed = None;
    if let Some(table) = &space.fixed {
        let mask = mask(&table.mask, space.size)?;
        let values = rows_of(&table.values, space.size, spacing)?;
        initial = Some(overlaid(initial, Arc::clone(&mask), values));
        fixed = Some(mask);
    }
    Ok(Problem3d {
        sides,
        initial: Some(with_faces(initial, given, space.size)),
        fixed,
        source: inside(&space.source)?,
        coefficient: inside(&space.coefficient)?,
        reaction: inside(&space.reaction)?,
        spacing: [spacing.x, spacing.y, spacing.z],
        ..Problem3d::laplace(space.size)
    })
}

/// The values of a side, row by row: rows are planes of the box, of the front and back its rows.
fn face<F: Real>(
    values: &Values,
    (axis, end): (usize, usize),
    size: [usize; 3],
    spacing: Spacing,
) -> Result<Vec<F>, LoadError> {
    let (across, down) = match axis {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    };
    let (columns, rows) = (size[across], size[down]);
    match values {
        Values::Constant(value) => Ok(vec![narrowed(*value)?; columns * rows]),
        Values::Formula(formula) => {
            let mut place = [0; 3];
            place[axis] = end * (size[axis] - 1);
            let points = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
            let value = |(column, row)| {
                let mut place = place;
                (place[across], place[down]) = (column, row);
                let [column, row, plane] = place;
                narrowed(formula.at(Point {
                    column,
                    row,
                    plane,
                    spacing,
                })?)
            };
            points.map(value).collect()
        }
        Values::File(path) => {
            let source = Field::open_sized(path, (columns, rows))?
                .decode(None)?
                .rows();
            let mut all = vec![F::ZERO; columns * rows];
            for (row, cells) in all.chunks_exact_mut(columns).enumerate() {
                source(row, cells);
            }
            Ok(all)
        }
    }
}

/// `inside`, or zero, with the values of the fixed sides; those of left and right go before those of top and bottom.
fn with_faces<F: Real>(
    inside: Option<PlaneSource<F>>,
    [of_x, of_y, of_z]: [[Option<Vec<F>>; 2]; 3],
    [nx, ny, nz]: [usize; 3],
) -> PlaneSource<F> {
    Arc::new(move |z, y, row| {
        if let Some(inside) = &inside {
            inside(z, y, row);
        }
        for (values, at) in of_z.iter().zip([0, nz - 1]) {
            if let (Some(values), true) = (values, z == at) {
                row.copy_from_slice(&values[y * nx..][..nx]);
            }
        }
        for (values, at) in of_y.iter().zip([0, ny - 1]) {
            if let (Some(values), true) = (values, y == at) {
                row.copy_from_slice(&values[z * nx..][..nx]);
            }
        }
        for (values, at) in of_x.iter().zip([0, nx - 1]) {
            if let Some(values) = values {
                row[at] = values[z * ny + y];
            }
        }
    })
}

/// The rows of a box; a formula without a finite value gives NaN, which the solve refuses with its place.
fn rows_of<F: Real>(
    values: &Values,
    size: [usize; 3],
    spacing: Spacing,
) -> Result<PlaneSource<F>, LoadError> {
    Ok(match values {
        Values::Constant(value) => {
            let value = narrowed::<F>(*value)?;
            Arc::new(move |_, _, row| row.fill(value))
        }
        Values::Formula(formula) => {
            let formula = formula.clone();
            Arc::new(move |z, y, row| formula_row(&formula, (y, z), spacing, row))
        }
        Values::File(path) => volume(path, size)?,
    })
}

fn volume<F: Real>(path: &Path, size: [usize; 3]) -> Result<PlaneSource<F>, LoadError> {
    let volume = Volume::open(path, size)?;
    Ok(Arc::new(move |z, y, row| {
        let mut numbers = vec![0.0; row.len()];
        volume.row(z, y, &mut numbers);
        for (cell, number) in row.iter_mut().zip(numbers) {
            *cell = F::from_f64(number);
        }
    }))
}

/// 1 where the number in the file is not 0.
fn mask(path: &Path, size: [usize; 3]) -> Result<PlaneSource<u8>, LoadError> {
    let volume = Volume::open(path, size)?;
    Ok(Arc::new(move |z, y, row| {
        let mut numbers = vec![0.0; row.len()];
        volume.row(z, y, &mut numbers);
        for (cell, number) in row.iter_mut().zip(numbers) {
            *cell = u8::from(number != 0.0);
        }
    }))
}

/// `values` where `mask` is not 0, else `inside` or zero.
fn overlaid<F: Real>(
    inside: Option<PlaneSource<F>>,
    mask: PlaneSource<u8>,
    values: PlaneSource<F>,
) -> PlaneSource<F> {
    Arc::new(move |z, y, row| {
        if let Some(inside) = &inside {
            inside(z, y, row);
        }
        let (mut fixed, mut given) = (vec![0; row.len()], vec![F::ZERO; row.len()]);
        mask(z, y, &mut fixed);
        values(z, y, &mut given);
        for ((cell, fixed), given) in row.iter_mut().zip(fixed).zip(given) {
            if fixed != 0 {
                *cell = given;
            }
        }
    })
}

//! From a problem as asked for to one that can be solved: files opened, formulas evaluated.

pub mod error;
mod space;
mod values;

use std::sync::Arc;

use crosswarp::solve::{
    Boundary as GridBoundary, Norm, Problem1d, Problem2d, Problem3d, ProblemError as GridError,
    Real, Robin, RowSource,
};

use self::error::LoadError;
use self::values::{formula_row, narrowed};
use crate::format::grouped;
use crate::input::boundary::{Boundary, Side, Values};
use crate::input::formula::Point;
use crate::input::npy::{Dtype, NpyMap};
use crate::input::spacing::Spacing;
use crate::input::stopping::Rim;
use crate::input::tiff::GeoTags;
use crate::problem::field::{self, Cells, Field, Format, mask};
use crate::problem::method::{Method, OneLevel};
use crate::problem::{Plane, Problem};

/// A problem that can be solved.
pub enum Grid<F> {
    /// Points on a line.
    Line(Problem1d<F>),
    /// A plane.
    Plane {
        /// The problem.
        problem: Box<Problem2d<F>>,
        /// Of a fill.
        fill: Option<Filled>,
    },
    /// A box.
    Space(Box<Problem3d<F>>),
}

/// What only a fill has.
pub struct Filled {
    /// 1 where a cell was given.
    pub given: RowSource<u8>,
    /// The rim.
    pub rim: Rim,
}

impl<F: Real> Grid<F> {
    /// Points; columns and rows; columns, rows and planes.
    pub fn size(&self) -> Vec<usize> {
        match self {
            Self::Line(problem) => vec![problem.points],
            Self::Plane { problem, .. } => vec![problem.nx, problem.ny],
            Self::Space(problem) => problem.size.to_vec(),
        }
    }

    /// The size in words.
    pub fn size_text(&self) -> String {
        let size: Vec<String> = self.size().iter().map(|&n| grouped(n as u64)).collect();
        let what = if size.len() == 1 { "points" } else { "cells" };
        format!("{} {what}", size.join(" x "))
    }

    /// Cells that a sweep updates.
    pub fn inner_cells(&self) -> u64 {
        self.size().iter().map(|&n| n as u64 - 2).product()
    }
}

/// Opens what `problem` needs to be solved by `method`.
///
/// # Errors
/// A file that is not what it should be, a formula without a finite value on a side, a
/// problem that makes no sense.
pub fn load<F: Real>(problem: &Problem, method: &Method) -> Result<Grid<F>, LoadError> {
    let (norm, usual_rim) = match method {
        Method::Jacobi { norm, .. } => (*norm, Rim::Interpolated),
        // The residual has one norm.
        Method::Multigrid { .. } | Method::OneLevel { .. } => (Norm::L2, Rim::Natural),
    };
    match problem {
        Problem::Line(line) => {
            check_memory::<F>(line.points as u128, method, false)?;
            let (left, right) = (narrowed(line.left)?, narrowed(line.right)?);
            let problem = Problem1d {
                points: line.points,
                left,
                right,
                norm,
            };
            problem.check()?;
            Ok(Grid::Line(problem))
        }
        Problem::Nvidia { nx, ny } => {
            check_size::<F>((*nx, *ny), method)?;
            let problem = Problem2d {
                norm,
                ..Problem2d::nvidia(*nx, *ny)
            };
            problem.check()?;
            Ok(Grid::Plane {
                problem: Box::new(problem),
                fill: None,
            })
        }
        Problem::Plane(plane) => {
            check_size::<F>((plane.nx, plane.ny), method)?;
            let problem = Problem2d {
                norm,
                ..plane_problem(plane)?
            };
            problem.check()?;
            Ok(Grid::Plane {
                problem: Box::new(problem),
                fill: None,
            })
        }
        Problem::Space(space) => {
            let [nx, ny, nz] = space.size;
            if space.size.iter().any(|&n| n < 3) {
                return Err(GridError::TooSmallBox { nx, ny, nz }.into());
            }
            let points = (nx as u128 * ny as u128).saturating_mul(nz as u128);
            check_memory::<F>(points, method, true)?;
            let problem = space::problem(space)?;
            problem.check()?;
            Ok(Grid::Space(Box::new(problem)))
        }
        Problem::Fill {
            values,
            known,
            nodata,
            rim: named,
        } => {
            let rim = named.unwrap_or(usual_rim);
            let field = Field::open(values)?;
            let (nx, ny) = field.size();
            check_memory::<F>(nx as u128 * ny as u128, method, false)?;
            let mask = known
                .as_ref()
                .map(|path| mask(path, (nx, ny)))
                .transpose()?;
            let cells = field.decode(*nodata)?;
            let (values, mask) = (cells.rows::<F>(), known_cells(&cells, mask));
            let fill = match rim {
                Rim::Natural => Problem2d::fill_natural,
                Rim::Interpolated => Problem2d::fill,
            };
            let problem = fill(nx, ny, values, Arc::clone(&mask))?;
            Ok(Grid::Plane {
                problem: Box::new(Problem2d { norm, ..problem }),
                fill: Some(Filled { given: mask, rim }),
            })
        }
    }
}

/// Which cells are known: those of `mask`, or without one those that are numbers; never void ones.
fn known_cells(cells: &Cells, mask: Option<RowSource<u8>>) -> RowSource<u8> {
    let Some(mask) = mask else {
        return cells.known();
    };
    if !cells.has_void_value() {
        return mask;
    }
    let not_void = cells.known_or_nan();
    Arc::new(move |y, row| {
        let mut there = vec![0; row.len()];
        not_void(y, &mut there);
        mask(y, row);
        row.iter_mut()
            .zip(there)
            .for_each(|(known, there)| *known &= there);
    })
}

/// Refuses a plane without an inner cell, which may have a side of any length, and one that does not fit.
fn check_size<F>((nx, ny): (usize, usize), method: &Method) -> Result<(), LoadError> {
    if nx < 3 || ny < 3 {
        return Err(GridError::TooSmall { nx, ny }.into());
    }
    check_memory::<F>(nx as u128 * ny as u128, method, false)
}

/// Refuses a problem that the machine cannot hold, as far as the method's memory is known, before anything is
/// allocated: the system would promise the memory and then end the process.
fn check_memory<F>(cells: u128, method: &Method, space: bool) -> Result<(), LoadError> {
    let (bytes, what) = match method {
        Method::Jacobi { .. } => (2 * size_of::<F>(), "two copies of the field"),
        // The field, the right side, an eighth of both for each next level, and what is handed out.
        Method::Multigrid { .. } if space => (18 + size_of::<F>(), "the field and its levels"),
        Method::OneLevel {
            by: OneLevel::Gradients,
            ..
        } => (32 + size_of::<F>(), "the field and three more"),
        Method::OneLevel {
            by: OneLevel::Chebyshev,
            ..
        } => (16 + size_of::<F>(), "the field and its step"),
        // The least: what comes with masks and sources is not counted.
        Method::Multigrid { .. } => (32 + size_of::<F>(), "the field and its levels"),
    };
    const GIB: f64 = (1u64 << 30) as f64;
    let needed = cells as f64 * bytes as f64 / GIB;
    let memory = rustix::system::sysinfo();
    let units = memory.totalram as f64 + memory.totalswap as f64;
    let present = units * f64::from(memory.mem_unit) / GIB;
    if needed > present {
        return Err(LoadError::Memory {
            cells,
            needed,
            what,
            present,
        });
    }
    Ok(())
}

/// Where the files of `problem` say that it lies: the values to fill, or of a plane the first of its files that says so.
///
/// # Errors
/// A file that is not what it should be.
pub fn geo_tags(problem: &Problem) -> Result<GeoTags, LoadError> {
    let files = match problem {
        Problem::Fill { values, .. } => vec![values],
        Problem::Plane(plane) => {
            let fixed = plane.fixed.as_ref().map(|fixed| &fixed.values);
            let all = [plane.initial.as_ref(), fixed, plane.source.as_ref()];
            let files = all.into_iter().flatten().filter_map(Values::file);
            files.collect()
        }
        Problem::Line(_) | Problem::Nvidia { .. } | Problem::Space(_) => Vec::new(),
    };
    match files.iter().find(|path| Format::of(path) == Format::Tiff) {
        Some(path) => Ok(field::geo_tags(path)?),
        None => Ok(GeoTags::default()),
    }
}

fn plane_problem<F: Real>(plane: &Plane) -> Result<Problem2d<F>, LoadError> {
    let (nx, ny) = (plane.nx, plane.ny);
    let spacing = plane
        .spacing
        .unwrap_or_else(|| Spacing::same(1.0 / (nx.max(ny).saturating_sub(1).max(1)) as f64));
    let side = |boundary: &Boundary, side: Side| {
        let along = |values| profile(values, side, (nx, ny), spacing);
        Ok::<_, LoadError>(match boundary {
            Boundary::Periodic => GridBoundary::Periodic,
            Boundary::Fixed(values) => GridBoundary::Fixed(along(values)?),
            Boundary::Neumann(values) => GridBoundary::Neumann(along(values)?),
            Boundary::Robin(mixed) => {
                let [value, derivative, right] = &**mixed;
                GridBoundary::Robin(Robin {
                    value: along(value)?,
                    derivative: along(derivative)?,
                    right: along(right)?,
                })
            }
        })
    };
    let rows = |values: &Option<Values>| {
        values
            .as_ref()
            .map(|v| rows_of(v, (nx, ny), spacing))
            .transpose()
    };
    let mut initial = rows(&plane.initial)?;
    let mut fixed = None;
    if let Some(table) = &plane.fixed {
        let mask = mask(&table.mask, (nx, ny))?;
        initial = Some(overlaid(
            initial,
            Arc::clone(&mask),
            rows_of(&table.values, (nx, ny), spacing)?,
        ));
        fixed = Some(mask);
    }
    Ok(Problem2d {
        left: side(&plane.left, Side::Left)?,
        right: side(&plane.right, Side::Right)?,
        top: side(&plane.top, Side::Top)?,
        bottom: side(&plane.bottom, Side::Bottom)?,
        initial,
        fixed,
        source: rows(&plane.source)?,
        coefficient: rows(&plane.coefficient)?,
        reaction: rows(&plane.reaction)?,
        spacing: spacing.x,
        row_spacing: spacing.differ().then_some(spacing.y),
        nx,
        ny,
        norm: Norm::Rms,
    })
}

/// The values along one side.
fn profile<F: Real>(
    values: &Values,
    side: Side,
    (nx, ny): (usize, usize),
    spacing: Spacing,
) -> Result<Vec<F>, LoadError> {
    let length = if matches!(side, Side::Left | Side::Right) {
        ny
    } else {
        nx
    };
    match values {
        Values::Constant(value) => Ok(vec![narrowed(*value)?; length]),
        Values::Formula(formula) => {
            formula.check_of_plane()?;
            let points = (0..length).map(|k| match side {
                Side::Left => (0, k),
                Side::Right => (nx - 1, k),
                Side::Top => (k, 0),
                _ => (k, ny - 1),
            });
            points
                .map(|(column, row)| {
                    narrowed(formula.at(Point {
                        column,
                        row,
                        plane: 0,
                        spacing,
                    })?)
                })
                .collect()
        }
        Values::File(path) if Format::of(path) == Format::Tiff => {
            Err(LoadError::PlaneForSide(path.clone()))
        }
        Values::File(path) => {
            let map = NpyMap::open(path)?;
            if map.shape().0 != [length] {
                return Err(map
                    .wrong_shape(format!("({length},) for the {} side", side.name()))
                    .into());
            }
            (0..length).map(|k| element(&map, k)).collect()
        }
    }
}

/// Element `k` of a file of f32 or f64.
fn element<F: Real>(map: &NpyMap, k: usize) -> Result<F, LoadError> {
    Ok(match map.dtype() {
        Dtype::F32 => F::from_f64(f64::from(map.elements::<f32>()?[k])),
        Dtype::F64 => narrowed(map.elements::<f64>()?[k])?,
        _ => return Err(map.wrong_dtype("f32 or f64").into()),
    })
}

/// The rows of a plane; a formula without a finite value gives NaN, which the solve refuses with its place.
fn rows_of<F: Real>(
    values: &Values,
    size: (usize, usize),
    spacing: Spacing,
) -> Result<RowSource<F>, LoadError> {
    Ok(match values {
        Values::Constant(value) => {
            let value = narrowed::<F>(*value)?;
            Arc::new(move |_, row| row.fill(value))
        }
        Values::Formula(formula) => {
            formula.check_of_plane()?;
            let formula = formula.clone();
            Arc::new(move |y, row| formula_row(&formula, (y, 0), spacing, row))
        }
        Values::File(path) => Field::open_sized(path, size)?.decode(None)?.rows(),
    })
}

/// `base`, or zero, with `values` where `mask` is not 0.
fn overlaid<F: Real>(
    base: Option<RowSource<F>>,
    mask: RowSource<u8>,
    values: RowSource<F>,
) -> RowSource<F> {
    Arc::new(move |y, row| {
        let mut base_row = vec![F::ZERO; row.len()];
        let mut masked = vec![0; row.len()];
        if let Some(base) = &base {
            base(y, &mut base_row);
        }
        mask(y, &mut masked);
        values(y, row);
        for ((cell, base), masked) in row.iter_mut().zip(base_row).zip(masked) {
            if masked == 0 {
                *cell = base;
            }
        }
    })
}

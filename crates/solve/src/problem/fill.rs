//! Filling voids: unknown cells of a grid solved from the known ones.

use std::sync::Arc;

use crate::element::Real;
use crate::problem::{Boundary, MAX_CELLS, Norm, Problem2d, ProblemError, RowSource};

impl<F: Real> Problem2d<F> {
    /// Laplace's equation for the cells of `values` whose byte in `known` is 0; the others keep their value.
    ///
    /// Unknown cells on the rim are set beforehand, linearly along the rim between the nearest known rim cells (which
    /// is Laplace's equation on the rim). The first guess inside is linear along each row between the nearest known
    /// cells (rim cells all count as known then). Values of unknown cells are never looked at and may be NaN.
    ///
    /// All rows are read once here, and each PE's rows again in the solve.
    ///
    /// Errors: sizes below 3 or too large, a known value that is not finite, no known rim cell.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use crosswarp_solve::Problem2d;
    ///
    /// // A ramp with a hole in the middle.
    /// let values = Arc::new(|y: usize, row: &mut [f64]| {
    ///     row.iter_mut().enumerate().for_each(|(x, value)| *value = (x + y) as f64);
    ///     if y == 2 { row[2] = f64::NAN }
    /// });
    /// let known = Arc::new(|y: usize, row: &mut [u8]| {
    ///     row.fill(1);
    ///     if y == 2 { row[2] = 0 }
    /// });
    /// let problem = Problem2d::fill(5, 5, values, known).unwrap();
    /// let mut row = [0.0; 5];
    /// problem.initial.unwrap()(2, &mut row);
    /// assert_eq!(row, [2.0, 3.0, 4.0, 5.0, 6.0]);
    /// ```
    pub fn fill(
        nx: usize,
        ny: usize,
        values: RowSource<F>,
        known: RowSource<u8>,
    ) -> Result<Problem2d<F>, ProblemError> {
        check_size(nx, ny)?;
        // The rim in one turn from the upper left corner: right, down, left, up.
        let mut rim = vec![None; 2 * (nx + ny) - 4];
        for_each_known((nx, ny), &values, &known, |x, y, value| {
            if let Some(at) = rim_index(x, y, nx, ny) {
                rim[at] = Some(value);
            }
        })?;
        let rim = Arc::new(interpolate_ring(&rim).ok_or(ProblemError::NothingKnown)?);
        let side = |cell: &dyn Fn(usize) -> (usize, usize), len: usize| {
            Boundary::Fixed(
                (0..len)
                    .filter_map(|i| {
                        let (x, y) = cell(i);
                        rim_index(x, y, nx, ny).map(|at| rim[at])
                    })
                    .collect(),
            )
        };
        let (left, right) = (side(&|y| (0, y), ny), side(&|y| (nx - 1, y), ny));
        let (top, bottom) = (side(&|x| (x, 0), nx), side(&|x| (x, ny - 1), nx));
        let initial: RowSource<F> = {
            let known = known.clone();
            Arc::new(move |y, row: &mut [F]| {
                let mut row_known = vec![0u8; row.len()];
                values(y, row);
                known(y, &mut row_known);
                for x in 0..row.len() {
                    if let Some(at) = rim_index(x, y, nx, ny) {
                        row[x] = rim[at];
                        row_known[x] = 1;
                    }
                }
                interpolate_row(row, &row_known);
            })
        };
        Ok(Problem2d {
            nx,
            ny,
            left,
            right,
            top,
            bottom,
            initial: Some(initial),
            fixed: Some(known),
            norm: Norm::Rms,
            ..Problem2d::laplace(nx, ny)
        })
    }

    /// As [`fill`](Self::fill), with a natural rim: the derivative across each side is zero
    /// ([`Boundary::Neumann`]), and rim cells are known or unknown as all others are. For
    /// [`Method::Multigrid`](crate::Method::Multigrid).
    ///
    /// The first guess is linear along each row between known cells and constant beyond the outermost ones; a row
    /// without a known cell lies linearly between the nearest rows that have one, or is a copy of the nearest.
    ///
    /// Errors: sizes below 3 or too large, a known value that is not finite, no known cell.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use crosswarp_solve::Problem2d;
    ///
    /// // Only the middle column is known.
    /// let values = Arc::new(|y: usize, row: &mut [f64]| row[2] = y as f64);
    /// let known = Arc::new(|_, row: &mut [u8]| row[2] = 1);
    /// let problem = Problem2d::fill_natural(5, 5, values, known).unwrap();
    /// let mut row = [0.0; 5];
    /// problem.initial.unwrap()(3, &mut row);
    /// assert_eq!(row, [3.0; 5]);
    /// ```
    pub fn fill_natural(
        nx: usize,
        ny: usize,
        values: RowSource<F>,
        known: RowSource<u8>,
    ) -> Result<Problem2d<F>, ProblemError> {
        check_size(nx, ny)?;
        // The rows that have a known cell, in order.
        let mut rows: Vec<usize> = Vec::new();
        for_each_known((nx, ny), &values, &known, |_, y, _| {
            if rows.last() != Some(&y) {
                rows.push(y);
            }
        })?;
        if rows.is_empty() {
            return Err(ProblemError::NoKnownCell);
        }
        let guess_of = {
            let known = known.clone();
            move |y: usize, row: &mut [F]| {
                let mut row_known = vec![0u8; row.len()];
                values(y, row);
                known(y, &mut row_known);
                extend_row(row, &row_known);
            }
        };
        let initial: RowSource<F> = Arc::new(move |y, row: &mut [F]| {
            let at = rows.partition_point(|&with| with < y);
            match (at.checked_sub(1).map(|before| rows[before]), rows.get(at)) {
                (_, Some(&own)) if own == y => guess_of(y, row),
                (Some(above), Some(&below)) => {
                    guess_of(above, row);
                    let mut row_below = vec![F::ZERO; row.len()];
                    guess_of(below, &mut row_below);
                    for (cell, &other) in row.iter_mut().zip(&row_below) {
                        *cell = between(*cell, other, y - above, below - above);
                    }
                }
                (Some(nearest), None) => guess_of(nearest, row),
                (None, Some(&nearest)) => guess_of(nearest, row),
                (None, None) => unreachable!("there is a row with a known cell"),
            }
        });
        Ok(Problem2d {
            initial: Some(initial),
            ..Problem2d::natural(nx, ny, Some(known))
        })
    }

    /// Laplace's equation without flow across the sides, for the cells whose byte in `known` is 0; `None`: for all.
    pub(crate) fn natural(nx: usize, ny: usize, known: Option<RowSource<u8>>) -> Problem2d<F> {
        let side = |cells| Boundary::Neumann(vec![F::ZERO; cells]);
        Problem2d {
            left: side(ny),
            right: side(ny),
            top: side(nx),
            bottom: side(nx),
            fixed: known,
            ..Problem2d::laplace(nx, ny)
        }
    }
}

fn check_size(nx: usize, ny: usize) -> Result<(), ProblemError> {
    if nx < 3 || ny < 3 {
        return Err(ProblemError::TooSmall { nx, ny });
    }
    if nx.checked_mul(ny).is_none_or(|cells| cells > MAX_CELLS) {
        return Err(ProblemError::TooLarge { nx, ny });
    }
    Ok(())
}

/// Hands every known cell to `take`, row by row, or says which is not finite.
fn for_each_known<F: Real>(
    (nx, ny): (usize, usize),
    values: &RowSource<F>,
    known: &RowSource<u8>,
    mut take: impl FnMut(usize, usize, F),
) -> Result<(), ProblemError> {
    let mut row = vec![F::ZERO; nx];
    let mut row_known = vec![0u8; nx];
    for y in 0..ny {
        row.fill(F::ZERO);
        row_known.fill(0);
        values(y, &mut row);
        known(y, &mut row_known);
        for x in (0..nx).filter(|&x| row_known[x] != 0) {
            if !row[x].to_f64().is_finite() {
                return Err(ProblemError::Value { x, y });
            }
            take(x, y, row[x]);
        }
    }
    Ok(())
}

/// Position of a cell on the rim, clockwise from the upper left corner; `None` inside.
fn rim_index(x: usize, y: usize, nx: usize, ny: usize) -> Option<usize> {
    if y == 0 {
        Some(x)
    } else if x == nx - 1 {
        Some(nx - 1 + y)
    } else if y == ny - 1 {
        Some(2 * nx + ny - 3 - x)
    } else if x == 0 {
        Some(2 * (nx + ny) - 4 - y)
    } else {
        None
    }
}

/// The value a fraction `step / steps` of the way from `from` to `to`; exact if both are equal.
fn between<F: Real>(from: F, to: F, step: usize, steps: usize) -> F {
    let (from, to) = (from.to_f64(), to.to_f64());
    F::from_f64(from + (to - from) * (step as f64 / steps as f64))
}

/// Fills the gaps of a closed ring linearly; `None` if nothing is known.
fn interpolate_ring<F: Real>(ring: &[Option<F>]) -> Option<Vec<F>> {
    let start = ring.iter().position(Option::is_some)?;
    let mut filled = vec![F::ZERO; ring.len()];
    let mut last = (0, ring[start]?);
    filled[start] = last.1;
    for distance in 1..=ring.len() {
        let Some(value) = ring[(start + distance) % ring.len()] else {
            continue;
        };
        for step in last.0 + 1..=distance {
            filled[(start + step) % ring.len()] =
                between(last.1, value, step - last.0, distance - last.0);
        }
        // The known value itself, whatever rounding made of it.
        filled[(start + distance) % ring.len()] = value;
        last = (distance, value);
    }
    Some(filled)
}

/// Fills the unknown cells between known ones linearly; the first and the last cell must be known.
fn interpolate_row<F: Real>(row: &mut [F], known: &[u8]) {
    let mut last = 0;
    for x in 1..row.len() {
        if known[x] != 0 {
            for gap in last + 1..x {
                row[gap] = between(row[last], row[x], gap - last, x - last);
            }
            last = x;
        }
    }
}

/// Fills the unknown cells linearly between known ones and constantly beyond them; at least one must be known.
fn extend_row<F: Real>(row: &mut [F], known: &[u8]) {
    let mut last: Option<usize> = None;
    for x in (0..row.len()).filter(|&x| known[x] != 0) {
        match last {
            None => {
                let value = row[x];
                row[..x].fill(value);
            }
            Some(last) => {
                for gap in last + 1..x {
                    row[gap] = between(row[last], row[x], gap - last, x - last);
                }
            }
        }
        last = Some(x);
    }
    if let Some(last) = last {
        let value = row[last];
        row[last + 1..].fill(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_natural_guess_reaches_every_cell() {
        let (nx, ny) = (5, 7);
        // Known: (1, 1) = 10, (3, 1) = 20 and (2, 5) = 50; everything else is NaN.
        let given = |x: usize, y: usize| match (x, y) {
            (1, 1) => 10.0,
            (3, 1) => 20.0,
            (2, 5) => 50.0,
            _ => f64::NAN,
        };
        let values: RowSource<f64> =
            Arc::new(move |y, row| (0..nx).for_each(|x| row[x] = given(x, y)));
        let known: RowSource<u8> =
            Arc::new(move |y, row| (0..nx).for_each(|x| row[x] = u8::from(!given(x, y).is_nan())));
        let problem = Problem2d::fill_natural(nx, ny, values, known).unwrap();
        let guess = problem.initial.unwrap();
        let row = |y| {
            let mut row = [0.0; 5];
            guess(y, &mut row);
            row
        };
        assert_eq!(row(1), [10.0, 10.0, 15.0, 20.0, 20.0]);
        assert_eq!(row(0), row(1));
        assert_eq!(row(3), [30.0, 30.0, 32.5, 35.0, 35.0]);
        assert_eq!(row(5), [50.0; 5]);
        assert_eq!(row(6), [50.0; 5]);
    }

    #[test]
    fn a_grid_without_a_known_cell_is_refused() {
        let values: RowSource<f32> = Arc::new(|_, row| row.fill(1.0));
        let known: RowSource<u8> = Arc::new(|_, row| row.fill(0));
        assert_eq!(
            Problem2d::fill_natural(4, 5, values, known).err(),
            Some(ProblemError::NoKnownCell)
        );
    }

    #[test]
    fn the_rim_is_one_closed_turn() {
        let (nx, ny) = (5, 4);
        let mut seen = vec![0; 2 * (nx + ny) - 4];
        for y in 0..ny {
            for x in 0..nx {
                match rim_index(x, y, nx, ny) {
                    Some(at) => seen[at] += 1,
                    None => assert!((1..nx - 1).contains(&x) && (1..ny - 1).contains(&y)),
                }
            }
        }
        assert!(seen.iter().all(|&times| times == 1));
        assert_eq!(rim_index(4, 1, nx, ny), Some(5));
        assert_eq!(rim_index(0, 1, nx, ny), Some(13));
    }

    #[test]
    fn rings_are_filled_around_the_end() {
        let ring = [None, Some(2.0f64), None, Some(4.0), None, None];
        assert_eq!(
            interpolate_ring(&ring),
            Some(vec![2.5, 2.0, 3.0, 4.0, 3.5, 3.0])
        );
        assert_eq!(
            interpolate_ring(&[None, Some(7.0f32), None]),
            Some(vec![7.0; 3])
        );
        assert_eq!(interpolate_ring::<f32>(&[None; 4]), None);
    }

    #[test]
    fn a_known_value_that_is_not_finite_is_named() {
        let values: RowSource<f32> =
            Arc::new(|y, row| row.fill(if y == 3 { f32::NAN } else { 1.0 }));
        let known: RowSource<u8> = Arc::new(|_, row| row.fill(1));
        assert_eq!(
            Problem2d::fill(4, 5, values, known).err(),
            Some(ProblemError::Value { x: 0, y: 3 })
        );
    }

    #[test]
    fn sizes_whose_product_wraps_are_refused() {
        let row: RowSource<f32> = Arc::new(|_, _| unreachable!("nothing is read"));
        let known: RowSource<u8> = Arc::new(|_, _| unreachable!("nothing is read"));
        let (nx, ny) = (1 << 40, usize::MAX);
        assert_eq!(
            Problem2d::fill(nx, ny, row, known).err(),
            Some(ProblemError::TooLarge { nx, ny })
        );
    }

    #[test]
    fn a_rim_without_a_known_cell_is_refused() {
        let values: RowSource<f32> = Arc::new(|_, row| row.fill(1.0));
        let known: RowSource<u8> = Arc::new(|y, row| row[1] = u8::from(y == 1));
        assert_eq!(
            Problem2d::fill(4, 5, values, known).err(),
            Some(ProblemError::NothingKnown)
        );
    }
}

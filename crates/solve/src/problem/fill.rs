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
        if nx < 3 || ny < 3 {
            return Err(ProblemError::TooSmall { nx, ny });
        }
        if nx.checked_mul(ny).is_none_or(|cells| cells > MAX_CELLS) {
            return Err(ProblemError::TooLarge { nx, ny });
        }
        // The rim in one turn from the upper left corner: right, down, left, up.
        let mut rim = vec![None; 2 * (nx + ny) - 4];
        let mut row = vec![F::ZERO; nx];
        let mut row_known = vec![0u8; nx];
        for y in 0..ny {
            row.fill(F::ZERO);
            row_known.fill(0);
            values(y, &mut row);
            known(y, &mut row_known);
            for x in 0..nx {
                if row_known[x] == 0 {
                    continue;
                }
                if !row[x].to_f64().is_finite() {
                    return Err(ProblemError::Value { x, y });
                }
                if let Some(at) = rim_index(x, y, nx, ny) {
                    rim[at] = Some(row[x]);
                }
            }
        }
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
            source: None,
            spacing: 1.0,
            norm: Norm::Rms,
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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

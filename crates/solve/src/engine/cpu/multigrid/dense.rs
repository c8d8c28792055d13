//! The coarsest level, solved directly.

use super::operator_rows::{EAST, EXCESS, OperatorRows, SOUTH, SOUTH_EAST, SOUTH_WEST, SplitRow};

/// A Cholesky factor L of the operator, row by row, with the reciprocals of its diagonal, in a fixed order of operations.
pub(crate) struct Dense {
    nx: usize,
    factor: Vec<f64>,
    /// Points that have an equation.
    active: Vec<bool>,
}

impl Dense {
    /// Factors the operator. `singular`: constants are in its kernel; what is solved then has mean zero.
    pub fn new(operator: &impl OperatorRows, singular: bool) -> Dense {
        let shape = operator.shape();
        let (nx, ny) = (shape.x.len, shape.y.len);
        let n = nx * ny;
        let mut matrix = vec![0.0; n * n];
        let mut row = SplitRow::default();
        for y in 0..ny {
            row.clear(nx);
            operator.row(y as isize, &mut row);
            let at = |part: usize, x: usize| {
                let [value] = row.at(part, x as isize);
                value
            };
            for x in 0..nx {
                let from = y * nx + x;
                matrix[from * n + from] += at(EXCESS, x);
                for (part, dx, dy) in [
                    (EAST, 1, 0),
                    (SOUTH, 0, 1),
                    (SOUTH_EAST, 1, 1),
                    (SOUTH_WEST, -1, 1),
                ] {
                    let coupling = at(part, x);
                    if coupling == 0.0 {
                        continue;
                    }
                    // A coupling that leaves the grid wraps around: others are zero.
                    let to_x = (x as isize + dx).rem_euclid(nx as isize) as usize;
                    let to = (y + dy) % ny * nx + to_x;
                    matrix[from * n + from] += coupling;
                    matrix[to * n + to] += coupling;
                    matrix[from * n + to] -= coupling;
                    matrix[to * n + from] -= coupling;
                }
            }
        }
        Dense::of_matrix(matrix, nx, singular)
    }

    /// Factors a symmetric matrix, row by row, of a level of `nx` columns. Points without an equation have a row of zeros.
    pub fn of_matrix(mut matrix: Vec<f64>, nx: usize, singular: bool) -> Dense {
        let n = matrix.len().isqrt();
        let active: Vec<bool> = (0..n).map(|i| matrix[i * n + i] > 0.0).collect();
        let count = active.iter().filter(|&&active| active).count();
        if singular && count > 0 {
            let mean = (0..n).map(|i| matrix[i * n + i]).sum::<f64>() / (count * count) as f64;
            for i in (0..n).filter(|&i| active[i]) {
                for j in (0..n).filter(|&j| active[j]) {
                    matrix[i * n + j] += mean;
                }
            }
        }
        for i in (0..n).filter(|&i| !active[i]) {
            matrix[i * n + i] = 1.0;
        }
        for i in 0..n {
            for j in 0..=i {
                let mut sum = matrix[i * n + j];
                for k in 0..j {
                    sum -= matrix[i * n + k] * matrix[j * n + k];
                }
                matrix[i * n + j] = if i > j {
                    sum / matrix[j * n + j]
                } else if sum > 0.0 {
                    sum.sqrt()
                } else {
                    // Only where rounding has eaten all there was: what this point would add is left out.
                    f64::INFINITY
                };
            }
        }
        // Multiplied by in solves: divisions take longer.
        for i in 0..n {
            matrix[i * n + i] = 1.0 / matrix[i * n + i];
        }
        Dense {
            nx,
            factor: matrix,
            active,
        }
    }

    /// Solves for `values`, row-major, in place.
    pub fn solve(&self, values: &mut [f64]) {
        let n = values.len();
        let at = |i: usize, j: usize| self.factor[i * n + j];
        for i in 0..n {
            let first = if self.active[i] { values[i] } else { 0.0 };
            let known = (0..i).zip(&*values);
            let sum = known.fold(first, |sum, (j, value)| sum - at(i, j) * value);
            values[i] = sum * at(i, i);
        }
        for i in (0..n).rev() {
            // From the last on, as they become known where each point is a thread's.
            let known = (i + 1..n).zip(&values[i + 1..]).rev();
            let sum = known.fold(values[i], |sum, (j, value)| sum - at(j, i) * value);
            values[i] = sum * at(i, i);
        }
    }

    /// L, row by row, with the reciprocals of its diagonal.
    pub fn factor(&self) -> &[f64] {
        &self.factor
    }

    /// Which points have an equation.
    pub fn active(&self) -> &[bool] {
        &self.active
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        self.nx
    }

    /// Points.
    pub fn points(&self) -> usize {
        self.active.len()
    }
}

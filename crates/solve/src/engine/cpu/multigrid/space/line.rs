//! An axis of a level.

use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::shape::Axis;

/// The operator −d²/dx² along an axis, integrated over the points' parts of it, and the lengths of these.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub axis: Axis,
    /// To the next point; of the last one to the first where the axis wraps around.
    pub coupling: Vec<f64>,
    /// To a fixed point that is not one of these.
    pub excess: Vec<f64>,
    pub mass: Vec<f64>,
    /// Whether points of these have an equation.
    pub free: Vec<bool>,
}

/// How the point after coarse point j takes the values of j and of j + 1.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    pub left: Vec<f64>,
    pub right: Vec<f64>,
}

impl Line {
    /// An axis of `len` points, `h` apart.
    pub fn finest(len: usize, ends: [End; 2], h: f64) -> Line {
        let axis = Axis {
            len,
            wraps: ends[0] == End::Wrap,
        };
        let next = |i: usize| axis.has(i as isize + 1) && !(axis.wraps && len == 1);
        let end =
            |i: usize, kind: End| (i == 0 && ends[0] == kind) || (i + 1 == len && ends[1] == kind);
        Line {
            axis,
            coupling: (0..len)
                .map(|i| if next(i) { 1.0 / h } else { 0.0 })
                .collect(),
            excess: vec![0.0; len],
            mass: (0..len)
                .map(|i| if end(i, End::Mirror) { 0.5 * h } else { h })
                .collect(),
            free: (0..len).map(|i| !end(i, End::Fixed)).collect(),
        }
    }

    /// Every second point, the first among them.
    pub fn coarser(&self) -> (Line, Weights) {
        let axis = self.axis.coarser();
        let len = axis.len;
        let at = |j: usize| 2 * j;
        let mut coarse = Line {
            axis,
            coupling: vec![0.0; len],
            excess: (0..len).map(|j| self.excess[at(j)]).collect(),
            mass: (0..len).map(|j| self.mass[at(j)]).collect(),
            free: (0..len).map(|j| self.free[at(j)]).collect(),
        };
        let mut weights = Weights {
            left: vec![0.0; len],
            right: vec![0.0; len],
        };
        for j in 0..len {
            let next = (j + 1) % len;
            if !self.axis.has_between(j as isize) {
                // Neighbours as they were: where an axis of odd length wraps around.
                if len > 1 {
                    coarse.coupling[j] = self.coupling[at(j)];
                }
                continue;
            }
            let between = at(j) + 1;
            let [left, right, excess] = [
                self.coupling[at(j)],
                self.coupling[between],
                self.excess[between],
            ];
            if !self.free[between] {
                coarse.excess[j] += left;
                coarse.excess[next] += right;
                continue;
            }
            let all = left + right + excess;
            let [to_left, to_right] = [left / all, right / all];
            (weights.left[j], weights.right[j]) = (to_left, to_right);
            if len > 1 {
                coarse.coupling[j] = to_left * right;
            }
            coarse.excess[j] += to_left * excess;
            coarse.mass[j] += to_left * self.mass[between];
            // After the last point of an axis that ends there is none.
            coarse.excess[next] += to_right * excess;
            coarse.mass[next] += to_right * self.mass[between];
        }
        (coarse, weights)
    }

    /// The coupling of point `i` to the one before it.
    pub fn before(&self, i: usize) -> f64 {
        let before = i.checked_sub(1).unwrap_or(self.axis.len - 1);
        self.coupling[before]
    }

    /// All couplings of point `i` and its excess.
    pub fn diagonal(&self, i: usize) -> f64 {
        (self.before(i) + self.coupling[i]) + self.excess[i]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PᵀAP by the letter.
    #[test]
    fn the_coarse_operator_is_the_product() {
        for ends in [
            [End::Fixed, End::Fixed],
            [End::Fixed, End::Mirror],
            [End::Mirror, End::Fixed],
            [End::Mirror, End::Mirror],
            [End::Wrap, End::Wrap],
        ] {
            for len in 3..12 {
                let mut fine = Line::finest(len, ends, 0.25);
                while fine.axis.len > 2 {
                    let (coarse, weights) = fine.coarser();
                    let (n, m) = (fine.axis.len, coarse.axis.len);
                    let mut matrix = vec![vec![0.0; n]; n];
                    for i in 0..n {
                        matrix[i][i] += fine.excess[i];
                        let (next, coupling) = ((i + 1) % n, fine.coupling[i]);
                        matrix[i][i] += coupling;
                        matrix[next][next] += coupling;
                        matrix[i][next] -= coupling;
                        matrix[next][i] -= coupling;
                    }
                    let mut p = vec![vec![0.0; m]; n];
                    for j in 0..m {
                        p[2 * j][j] += f64::from(u8::from(fine.free[2 * j]));
                        if fine.axis.has_between(j as isize) {
                            p[2 * j + 1][j] += weights.left[j];
                            p[2 * j + 1][(j + 1) % m] += weights.right[j];
                        }
                    }
                    let product = |a: usize, b: usize| -> f64 {
                        (0..n)
                            .flat_map(|i| (0..n).map(move |k| (i, k)))
                            .map(|(i, k)| p[i][a] * matrix[i][k] * p[k][b])
                            .sum()
                    };
                    for a in (0..m).filter(|&a| coarse.free[a]) {
                        let mut expected = coarse.diagonal(a);
                        if m == 1 {
                            expected = coarse.excess[a];
                        }
                        assert!(
                            (product(a, a) - expected).abs() < 1e-12,
                            "{ends:?} {len} {n} {a}"
                        );
                        let mass: f64 = (0..n).map(|i| p[i][a] * fine.mass[i]).sum();
                        assert!((mass - coarse.mass[a]).abs() < 1e-12);
                    }
                    fine = coarse;
                }
            }
        }
    }
}

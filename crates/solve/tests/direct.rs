//! Multigrid's fields against solutions that are proven to be right to far less than is asked for.
//!
//! A direct solver of 346,200 unknowns has no place here, but its error can be bounded without one. Let A be the
//! operator of five points where cells are unknown: its diagonal is positive, all else is not, and every unknown cell is
//! connected with a known one, so A⁻¹ has no negative element. Let w be such that Aw ≥ ½ everywhere. Then a field whose
//! residual is nowhere more than R differs from the solution by 2Rw at most, since A(2Rw ± e) ≥ R ± r ≥ 0. So a
//! reference whose residual is that of rounding, and any w of which Aw is seen to be ½ or more, both by the letter, are
//! as good as a direct solution.

mod cycles;
mod jacksboro;

use std::sync::Arc;

use crosswarp_solve::{Problem2d, Real, RowSource};
use cycles::{Solved, by_cell, mask, noise, solve, solve_cg};
use jacksboro::Tile;

/// Everything that a fill with a natural rim is.
struct Filled {
    nx: usize,
    known: Vec<bool>,
    values: Vec<f64>,
}

impl Filled {
    fn ny(&self) -> usize {
        self.known.len() / self.nx
    }

    fn problem<F: Real>(&self) -> Problem2d<F> {
        let nx = self.nx;
        let rows = |values: Vec<f64>| by_cell::<F>(move |x, y| values[y * nx + x]);
        let known: Vec<bool> = self.known.clone();
        let known: RowSource<u8> = mask(move |x, y| known[y * nx + x]).unwrap();
        Problem2d::fill_natural(nx, self.ny(), rows(self.values.clone()), known).unwrap()
    }

    /// 4u − (its neighbours) of an unknown cell, the rim being a mirror; the neighbours are summed in pairs.
    fn operator(&self, u: &[f64], x: usize, y: usize) -> f64 {
        let (nx, ny) = (self.nx, self.ny());
        let at = |x: usize, y: usize| u[y * nx + x];
        let [left, right] = [x.checked_sub(1).unwrap_or(1), (x + 1) % nx];
        let [up, down] = [y.checked_sub(1).unwrap_or(1), (y + 1) % ny];
        let right = if right == 0 { nx - 2 } else { right };
        let down = if down == 0 { ny - 2 } else { down };
        let here = at(x, y);
        // Differences of neighbours are exact or nearly so: what is rounded is small.
        (here - at(left, y)) + (here - at(right, y)) + (here - at(x, up)) + (here - at(x, down))
    }

    fn unknown(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = 0..self.known.len();
        all.filter(|&k| !self.known[k])
            .map(|k| (k % self.nx, k / self.nx))
    }

    /// A field, and by how much it differs from the solution at most anywhere.
    fn reference(&self) -> (Vec<f64>, f64) {
        // As far as rounding allows.
        let solved = solve(&self.problem::<f64>(), 1e-15, 1);
        let field = solved.field;
        for (k, &value) in field.iter().enumerate() {
            assert!(!self.known[k] || value == self.values[k]);
        }
        let residuals = self
            .unknown()
            .map(|(x, y)| self.operator(&field, x, y).abs());
        let residual = residuals.fold(0.0, f64::max);
        // Aw = 1, about.
        let none = Filled {
            nx: self.nx,
            known: self.known.clone(),
            values: vec![0.0; self.known.len()],
        };
        let w = Problem2d {
            source: Some(by_cell(|_, _| -1.0)),
            spacing: 1.0,
            ..none.problem::<f64>()
        };
        let w = solve(&w, 1e-6, 1).field;
        let least = self.unknown().map(|(x, y)| self.operator(&w, x, y));
        assert!(least.fold(f64::INFINITY, f64::min) >= 0.5);
        let largest = w.iter().copied().fold(0.0, f64::max);
        assert!(w.iter().all(|&w| w >= 0.0));
        (field, 2.0 * residual * largest)
    }

    /// The cycles to 1e-8, and the largest difference from the solution.
    fn solved<F: Real>(&self, reference: &(Vec<f64>, f64)) -> (usize, f64) {
        self.compared(solve(&self.problem::<F>(), 1e-8, 1), reference)
    }

    fn compared<F: Real>(&self, solved: Solved<F>, reference: &(Vec<f64>, f64)) -> (usize, f64) {
        assert!(solved.converged, "{:?}", solved.history);
        let pairs = solved.field.iter().zip(&reference.0);
        let differences = pairs.map(|(one, other)| (one.to_f64() - other).abs());
        let worst = differences.fold(0.0, f64::max);
        (solved.history.len(), worst + reference.1)
    }
}

#[test]
fn jacksboro_comes_out_to_a_hundredth_of_a_millimetre() {
    let Tile { nx, values, known } = jacksboro::tile();
    let fill = Filled { nx, known, values };
    let reference = fill.reference();
    assert!(reference.1 < 1e-7, "{}", reference.1);
    let (cycles, error) = fill.solved::<f64>(&reference);
    assert!(cycles <= 9 && error <= 1e-5, "{cycles} cycles, {error} m");
    let (cycles, error) = fill.solved::<f32>(&reference);
    assert!(cycles <= 9 && error <= 1e-3, "{cycles} cycles, {error} m");
}

/// A smooth field with hills and valleys, in metres, say.
fn hills(x: usize, y: usize) -> f64 {
    let (x, y) = (x as f64, y as f64);
    150.0 * ((0.011 * x).sin() + (0.013 * y).cos()) + 60.0 * (0.03 * x + 0.021 * y).sin()
}

/// Discs of different sizes, about half of the plane.
fn blobs(x: usize, y: usize) -> bool {
    let near = |cell: usize| {
        let (column, row) = (x / cell, y / cell);
        let place = noise(column, row, 11);
        let centre = |at: usize, shift: u64| (at * cell) as f64 + (shift % cell as u64) as f64;
        let (px, py) = (centre(column, place), centre(row, place >> 20));
        let radius = (cell / 3) as f64;
        (x as f64 - px).powi(2) + (y as f64 - py).powi(2) <= radius * radius
    };
    near(31) || near(83)
}

#[test]
fn masks_of_every_kind_come_out_as_a_direct_solution() {
    let (nx, ny) = (577, 600);
    type Known = Arc<dyn Fn(usize, usize) -> bool>;
    let cases: [(&str, usize, Known); 6] = [
        (
            "contour lines",
            10,
            Arc::new(|x, y| {
                let step = |x, y| (hills(x, y) / 25.0).floor();
                step(x, y) != step(x + 1, y) || step(x, y) != step(x, y + 1)
            }),
        ),
        (
            "5 % known",
            10,
            Arc::new(|x, y| noise(x, y, 7).is_multiple_of(20)),
        ),
        (
            "0.5 % known",
            12,
            Arc::new(|x, y| noise(x, y, 7).is_multiple_of(200)),
        ),
        (
            "serpentine",
            10,
            // A corridor six cells wide, with walls of one that leave a gap at one end.
            Arc::new(|x, y| y % 7 == 6 && if y / 7 % 2 == 0 { x < 577 - 7 } else { x >= 7 }),
        ),
        (
            "one large hole",
            10,
            Arc::new(|x, y| {
                (x as f64 - 288.0).powi(2) + (y as f64 - 300.0).powi(2) > 200.0f64.powi(2)
            }),
        ),
        ("blobs", 10, Arc::new(blobs)),
    ];
    for (name, most, is_known) in cases {
        let cells = || (0..nx * ny).map(|k| (k % nx, k / nx));
        let fill = Filled {
            nx,
            known: cells().map(|(x, y)| is_known(x, y)).collect(),
            values: cells().map(|(x, y)| hills(x, y)).collect(),
        };
        let reference = fill.reference();
        assert!(reference.1 < 1e-6, "{name}: {}", reference.1);
        // A residual of 1e-8 of its first size leaves more of smooth errors the farther known cells lie apart.
        let (cycles, error) = fill.solved::<f64>(&reference);
        assert!(
            cycles <= most && error <= 5e-4,
            "{name}: {cycles} cycles, {error} m"
        );
        let by_cg = solve_cg(&fill.problem::<f64>(), 1e-8, 1);
        let (steps, error) = fill.compared(by_cg, &reference);
        assert!(
            steps <= 9 && error <= 1e-4,
            "{name}: {steps} steps, {error} m"
        );
    }
}

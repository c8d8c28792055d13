//! A bound from below of the eigenvalues of D⁻¹A, from where cells are fixed: nothing is measured.
//!
//! For any field, the couplings along a row give at least λ times the sum of its squares, λ being the least eigenvalue of
//! that row alone: of the longest run of cells between two fixed ones, 4 sin²(π / 2(n + 1)) for n cells, or between one and a
//! mirror, 4 sin²(π / 4n). The same holds for columns. So the sum of the two, divided by the diagonal, is a bound. A row or
//! column without a fixed cell gives nothing.

use std::f64::consts::PI;

use super::load::Layout;
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::{End, Finest};
use crate::method::error::SolveError;
use crate::pes::reduction::Reduction;
use crate::problem::{Problem2d, ProblemError};

/// The bound; of a singular problem, of the eigenvalues other than 0. Collective.
pub(super) fn least_eigenvalue<F: Real>(
    problem: &Problem2d<F>,
    finest: &Finest,
    layout: &Layout,
    singular: bool,
    reduction: &Reduction<'_>,
) -> Result<f64, SolveError> {
    let extremes = finest.extremes();
    // None is negative, so their bits are ordered as they are, but for the sign of −0.
    let least = |value: f64| reduction.min(value.abs().to_bits()).map(f64::from_bits);
    let [across, down] = [least(extremes.across)?, least(extremes.down)?];
    let excess = least(extremes.excess)?;
    let diagonal = reduction.largest(extremes.diagonal)?;
    let axes = [layout.shape.x.len, layout.shape.y.len];
    let bound = if singular {
        // The smallest but 0 is of a wave along one of the axes.
        let wave = |axis: usize, coupling: f64| match (layout.ends[axis][0], axes[axis]) {
            (_, 1) => f64::INFINITY,
            (End::Wrap, n) => coupling * of_angle(PI / n as f64),
            (_, n) => coupling * of_angle(PI / (2 * (n - 1)) as f64),
        };
        wave(0, across).min(wave(1, down)) / diagonal
    } else {
        let [rows, columns] = runs(problem, layout);
        (across * rows + down * columns + excess) / diagonal
    };
    // Each PE has read the same.
    if bound > 0.0 {
        Ok(bound.min(1.0))
    } else {
        Err(ProblemError::NoBound.into())
    }
}

/// 4 sin²(angle), or a little less: its series ends here from above and from below in turn, and no library's sine decides
/// on the bits of a solve.
pub(super) fn of_angle(angle: f64) -> f64 {
    let square = angle * angle;
    4.0 * (square * (1.0 - square / 3.0))
}

/// The least eigenvalues of a row and of a column alone.
fn runs<F: Real>(problem: &Problem2d<F>, layout: &Layout) -> [f64; 2] {
    let [ends_x, ends_y] = layout.ends;
    let (nx, ny) = (layout.shape.x.len, layout.shape.y.len);
    let [first_x, first_y] = layout.first;
    let mut least = [f64::INFINITY; 2];
    let mut columns = vec![Run::default(); nx];
    let mut row = vec![0u8; problem.nx];
    let mut line = vec![false; nx];
    let on_side = |ends: [End; 2], at: usize, n: usize| {
        (at == 0 && ends[0] == End::Fixed) || (at + 1 == n && ends[1] == End::Fixed)
    };
    for y in 0..ny {
        if let Some(deliver) = &problem.fixed {
            row.fill(0);
            deliver(y + first_y, &mut row);
        }
        let side = on_side(ends_y, y, ny);
        let mut across = Run::default();
        for (x, fixed) in line.iter_mut().enumerate() {
            *fixed = side || on_side(ends_x, x, nx) || row[x + first_x] != 0;
            across.take(*fixed, ends_x, &mut least[0]);
            columns[x].take(*fixed, ends_y, &mut least[1]);
        }
        across.end(ends_x, &mut least[0]);
    }
    for column in columns {
        column.end(ends_y, &mut least[1]);
    }
    // Where all is fixed nothing is asked for.
    least.map(|least| if least.is_finite() { least } else { 0.0 })
}

/// The cells since the last fixed one of a line.
#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    cells: usize,
    /// Those before the first fixed one, once that has come.
    leading: Option<usize>,
}

impl Run {
    /// Takes the next cell. `least`: of the eigenvalues so far.
    pub fn take(&mut self, fixed: bool, ends: [End; 2], least: &mut f64) {
        if !fixed {
            self.cells += 1;
            return;
        }
        match (self.leading, ends[0]) {
            (Some(_), _) => between(self.cells, least),
            // Those of a ring go on at its end.
            (None, End::Wrap) => {}
            (None, _) => from_mirror(self.cells, least),
        }
        self.leading.get_or_insert(self.cells);
        self.cells = 0;
    }

    /// Ends the line.
    pub fn end(self, ends: [End; 2], least: &mut f64) {
        match (self.leading, ends[1]) {
            (None, _) if self.cells > 0 => *least = 0.0,
            (None, _) => {}
            (Some(leading), End::Wrap) => between(leading + self.cells, least),
            (Some(_), _) => from_mirror(self.cells, least),
        }
    }
}

/// `cells` between two fixed ones.
fn between(cells: usize, least: &mut f64) {
    if cells > 0 {
        *least = least.min(of_angle(PI / (2 * (cells + 1)) as f64));
    }
}

/// `cells` between a fixed one and a mirror, on which the last lies.
fn from_mirror(cells: usize, least: &mut f64) {
    if cells > 0 {
        *least = least.min(of_angle(PI / (4 * cells) as f64));
    }
}

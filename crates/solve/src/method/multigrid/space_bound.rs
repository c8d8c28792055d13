//! A bound from below of the eigenvalues of D⁻¹A in a box, as `least_eigenvalue.rs` has it on a plane.
//!
//! Here the diagonal and the terms in u are taken by the volume of a point, and κ as the smallest of all points. What a line
//! of points along an axis gives is λ times the sum of its squares by length, λ being its least eigenvalue alone divided by
//! the square of the distance of points; so the bound is (κ (λ_x + λ_y + λ_z) + c) / d, d being the largest diagonal by
//! volume.

use std::f64::consts::PI;

use super::least_eigenvalue::{Run, of_angle};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::space::operator::Operator;
use crate::method::error::SolveError;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::ProblemError;
use crate::problem::scale::Scale;
use crate::problem::space::{PlaneSource, Problem3d};

/// The bound; of a singular problem, of the eigenvalues other than 0. `scale`: how the operator is held. Collective.
pub(super) fn least_eigenvalue<F: Real>(
    problem: &Problem3d<F>,
    operator: &Operator,
    ends: [[End; 2]; 3],
    singular: bool,
    scale: Scale,
    reduction: &Reduction<'_>,
) -> Result<f64, SolveError> {
    let own = operator.shape.own();
    let planes = || own.clone().map(|z| operator.inside(z));
    let least = |of: &Option<PlaneSource<F>>, default: f64| -> Result<f64, PeError> {
        let Some(of) = of else { return Ok(default) };
        let [nx, ny, _] = problem.size;
        let mut row = vec![F::ZERO; nx];
        let mut least = f64::INFINITY;
        for z in planes() {
            for y in 0..ny {
                row.fill(F::ZERO);
                of(z, y, &mut row);
                least = row
                    .iter()
                    .fold(least, |least, value| least.min(value.to_f64()));
            }
        }
        // Neither is negative, so their bits are ordered as they are, but for the sign of −0.
        reduction.min(least.abs().to_bits()).map(f64::from_bits)
    };
    let coefficient = scale.down(least(&problem.coefficient, 1.0)?);
    let reaction = scale.down(least(&problem.reaction, 0.0)?);
    let of_lines = if singular {
        // The smallest but 0 is of a wave along one of the axes.
        (0..3).fold(f64::INFINITY, |least, axis| {
            let n = problem.size[axis];
            let of_line = match ends[axis][0] {
                End::Wrap => of_angle(PI / n as f64),
                _ => of_angle(PI / (2 * (n - 1)) as f64),
            };
            least.min(by_length(of_line, problem.spacing[axis]))
        })
    } else {
        let of_axes = runs(problem, ends);
        let of = |axis: usize| by_length(of_axes[axis], problem.spacing[axis]);
        of(0) + of(1) + of(2)
    };
    let diagonal = operator.largest_diagonal(own);
    let diagonal = reduction.largest(diagonal)?;
    let bound = (coefficient * of_lines + reaction) / diagonal;
    // Each PE has read the same.
    if bound > 0.0 {
        Ok(bound.min(1.0))
    } else {
        Err(ProblemError::NoBound.into())
    }
}

fn by_length(of_line: f64, h: f64) -> f64 {
    of_line / (h * h)
}

/// The least eigenvalues of a line of points along each axis alone.
fn runs<F: Real>(problem: &Problem3d<F>, ends: [[End; 2]; 3]) -> [f64; 3] {
    let size = problem.size;
    let [nx, ny, nz] = size;
    let on_side = |axis: usize, at: usize| {
        let [first, last] = ends[axis];
        (at == 0 && first == End::Fixed) || (at + 1 == size[axis] && last == End::Fixed)
    };
    let Some(deliver) = &problem.fixed else {
        // All lines that are not on a side are alike.
        return [0, 1, 2].map(|axis: usize| {
            let (mut run, mut least) = (Run::default(), f64::INFINITY);
            (0..size[axis]).for_each(|at| run.take(on_side(axis, at), ends[axis], &mut least));
            run.end(ends[axis], &mut least);
            least
        });
    };
    let mut least = [f64::INFINITY; 3];
    let mut down = vec![Run::default(); nx * ny];
    let mut row = vec![0u8; nx];
    for z in 0..nz {
        let mut columns = vec![Run::default(); nx];
        for y in 0..ny {
            row.fill(0);
            deliver(z, y, &mut row);
            let side = on_side(1, y) || on_side(2, z);
            let mut across = Run::default();
            for (x, byte) in row.iter().enumerate() {
                let fixed = side || on_side(0, x) || *byte != 0;
                across.take(fixed, ends[0], &mut least[0]);
                columns[x].take(fixed, ends[1], &mut least[1]);
                down[y * nx + x].take(fixed, ends[2], &mut least[2]);
            }
            across.end(ends[0], &mut least[0]);
        }
        columns
            .into_iter()
            .for_each(|column| column.end(ends[1], &mut least[1]));
    }
    down.into_iter()
        .for_each(|line| line.end(ends[2], &mut least[2]));
    // Where all is fixed nothing is asked for.
    least.map(|least| if least.is_finite() { least } else { 0.0 })
}

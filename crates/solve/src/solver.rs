//! A solver whose levels are made once.

use std::ops::Range;

use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::multigrid::arrays::{DeviceArrays, OnGpu};
use crate::method::multigrid::plane::Plane;
use crate::method::options::{Cycles, Options, OptionsError};
use crate::problem::{Problem2d, RowSource};
use crate::solution::Solution;
use crate::solve::compiled;

/// A problem on a plane whose multigrid levels are made once, for many solves, as a preconditioner, or both.
///
/// [`solve_2d`](crate::solve_2d) is one of these, used once: fields, residuals and cycles have the same bits.
///
/// # Vectors
/// [`apply`](Self::apply), [`precondition`](Self::precondition), [`dot`](Self::dot) and [`cg`](Self::cg) take vectors in
/// `f64`, row by row: the points of [`rows`](Self::rows) × [`columns`](Self::columns). Ghosts of periodic sides are not
/// among them. Where the grid is so small that every PE computes all of it, every PE holds all of a vector.
///
/// A holds what the equations are once integrated over the part of the grid around each point, so it is symmetric:
/// (Au) = Σ coupling · (u − neighbour) + ∫c · u, couplings being κ times the length of the face by the distance. Where a
/// cell keeps its value, A is 1, and so is the preconditioner.
///
/// # Collective
/// All PEs call each function in the same order, with the same arguments but for their parts of vectors.
///
/// ```
/// use crosswarp_solve::{Cycles, Gradients, Options, Method, Problem2d, Solver2d};
/// use std::sync::Arc;
///
/// let problem = Problem2d::<f64> { spacing: 1.0 / 32.0, ..Problem2d::laplace(33, 33) };
/// let cycles = Cycles::default();
/// let options = Options { method: Method::Multigrid(cycles.clone()), ..Options::new(1e-10, 50) };
/// crosswarp_shmem::spmd(2, |pe| {
///     let mut solver = Solver2d::new(pe, &problem, &cycles).unwrap();
///     for strength in [-1.0, -2.0] {
///         let source = Arc::new(move |_, row: &mut [f64]| row.fill(strength));
///         let solution = solver.solve(Some(source), None, &options, |_| {}).unwrap();
///         assert!(solution.converged);
///     }
///     // The same by conjugate gradients: h² everywhere on the right, 0 on the sides.
///     let inside = |y: usize, x: usize| (1..32).contains(&y) && (1..32).contains(&x);
///     let points = solver.rows().flat_map(|y| (0..33).map(move |x| (y, x)));
///     let b: Vec<f64> = points.map(|(y, x)| if inside(y, x) { 1.0 / 1024.0 } else { 0.0 }).collect();
///     let mut u = vec![0.0; b.len()];
///     let limits = Gradients { tolerance: 1e-10, most: 20 };
///     let history = solver.cg(&b, &mut u, limits, Solver2d::apply, Solver2d::precondition).unwrap();
///     assert!(history.len() < 12 && history.last().unwrap() <= &1e-10);
///     solver.free().unwrap();
/// })
/// .unwrap();
/// ```
pub struct Solver2d<'p, F: Real> {
    plane: Plane<'p, Hierarchy<f32>>,
    problem: Problem2d<F>,
    /// What the last solve has left on a GPU.
    on_gpu: Option<OnGpu<F>>,
}

/// When conjugate gradients end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradients {
    /// At a residual of at most this, relative to that of the first guess.
    pub tolerance: f64,
    /// After so many steps in any case.
    pub most: usize,
}

impl<'p, F: Real> Solver2d<'p, F> {
    /// Makes the levels of `problem`: of its size, kinds of sides, spacings, fixed cells, coefficient and reaction. Collective.
    ///
    /// Errors: a problem or options that make no sense, no memory, a PE that is gone.
    pub fn new(
        pe: &'p Pe,
        problem: &Problem2d<F>,
        cycles: &Cycles,
    ) -> Result<Solver2d<'p, F>, SolveError> {
        problem.check()?;
        cycles.check()?;
        Ok(Solver2d {
            plane: (compiled().levels)(pe, problem, cycles)?,
            problem: problem.clone(),
            on_gpu: None,
        })
    }

    /// Solves with another source or first guess, `None` being that of the problem. Collective.
    ///
    /// `initial` has the values of fixed cells inside, too; those of sides are the problem's. Relaxations are those that
    /// the levels were made with; the rest of `options` is as for [`solve_2d`](crate::solve_2d). The first solution's
    /// seconds count the levels.
    ///
    /// Errors: values that are not finite, options that make no sense, Jacobi sweeps, no memory, a PE that is gone.
    pub fn solve(
        &mut self,
        source: Option<RowSource<F>>,
        initial: Option<RowSource<F>>,
        options: &Options<'_>,
        mut observer: impl FnMut(&Progress<'_>),
    ) -> Result<Solution<F>, SolveError> {
        options.check()?;
        if options.method.cycles().is_none() {
            return Err(OptionsError::NotOfLevels.into());
        }
        let of = &self.problem;
        let problem = Problem2d {
            source: source.or_else(|| of.source.clone()),
            initial: initial.or_else(|| of.initial.clone()),
            ..of.clone()
        };
        let outcome = (compiled().by_levels)(&mut self.plane, &problem, options, &mut observer)?;
        Ok(Solution::of_cycles(outcome))
    }

    /// Solves as [`solve`](Self::solve), from arrays in the memory of the GPU of `options` and into one: none of them comes to the
    /// host. Field, norms and number of cycles have the same bits. The levels stay on the GPU for the next solve. The call waits
    /// for the end of its work, not for that of other streams before it.
    ///
    /// `None`, and the field is not written, where [`solve`](Self::solve) has to be asked, with the arrays on the host: for values
    /// that are not finite (it says which), conjugate gradients from the start or because cycles are slow
    /// ([`Method::Automatic`](crate::Method::Automatic)), sizes beyond 2^±1000, checkpoints, pictures on the way, more than one
    /// PE, and a source or first guess that the problem delivers by rows.
    ///
    /// Errors: as of [`solve`](Self::solve). Panics if an array has not as many elements as the grid has points.
    pub fn solve_on_device(
        &mut self,
        arrays: &DeviceArrays<'_, F>,
        options: &Options<'_>,
        mut observer: impl FnMut(&Progress<'_>),
    ) -> Result<Option<Solution<F>>, SolveError> {
        options.check()?;
        arrays.assert_points(self.problem.nx * self.problem.ny);
        let outcome = (compiled().arrays_by_levels)(
            &mut self.plane,
            &self.problem,
            arrays,
            &mut self.on_gpu,
            options,
            &mut observer,
        )?;
        Ok(outcome.map(Solution::of_cycles))
    }

    /// The rows of the grid that this PE holds of a vector.
    pub fn rows(&self) -> Range<usize> {
        let [rows, _] = self.plane.points();
        rows
    }

    /// The columns of the grid that a vector has.
    pub fn columns(&self) -> Range<usize> {
        let [_, columns] = self.plane.points();
        columns
    }

    /// `out` = A `u`. Collective.
    ///
    /// Errors: no memory, a PE that is gone. Panics if a vector has another length.
    pub fn apply(&mut self, u: &[f64], out: &mut [f64]) -> Result<(), SolveError> {
        self.check([u, out]);
        self.plane.apply(u, out)
    }

    /// `z` = what one V-cycle from zero makes of `r`: about A⁻¹ `r`, and symmetric and positive as conjugate gradients
    /// need it, but for the rounding of cycles in `f32`, if it relaxes as often before a correction as after it. Collective.
    ///
    /// Errors: no memory, a PE that is gone. Panics if a vector has another length.
    pub fn precondition(&mut self, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        self.check([r, z]);
        self.plane.precondition(r, z)
    }

    /// Σ `a` · `b` over all points, the same bits for any number of PEs. Collective.
    ///
    /// Errors: a PE that is gone. Panics if a vector has another length.
    pub fn dot(&mut self, a: &[f64], b: &[f64]) -> Result<f64, SolveError> {
        self.check([a, b]);
        Ok(self.plane.dot(a, b)?)
    }

    /// Makes `u`, the first guess, the solution of `operator` u = `b` by conjugate gradients, which use `preconditioner` in
    /// each step; gives the norm of the residual after each step, relative to the first. Collective.
    ///
    /// Both get this solver, a vector, and the vector to write. They are [`apply`](Self::apply) and
    /// [`precondition`](Self::precondition), or anything symmetric and positive. The method is the flexible one: the
    /// preconditioner need not be quite the same in each step. Dots are sums that do not depend on the PEs.
    ///
    /// It ends when the residual is small, after `limits.most` steps, or when a step has no direction to go: where the
    /// last norm is above the tolerance the caller sees it.
    ///
    /// Errors: those of the two functions; a norm that is not finite. Panics if a vector has another length.
    pub fn cg(
        &mut self,
        b: &[f64],
        u: &mut [f64],
        limits: Gradients,
        mut operator: impl FnMut(&mut Self, &[f64], &mut [f64]) -> Result<(), SolveError>,
        mut preconditioner: impl FnMut(&mut Self, &[f64], &mut [f64]) -> Result<(), SolveError>,
    ) -> Result<Vec<f64>, SolveError> {
        self.check([b, u]);
        let [mut r, mut z, mut p, mut q] = [(); 4].map(|()| vec![0.0; b.len()]);
        operator(self, u, &mut q)?;
        for ((r, b), q) in r.iter_mut().zip(b).zip(&q) {
            *r = b - q;
        }
        let first = self.dot(&r, &r)?.sqrt();
        let mut history = Vec::new();
        if first == 0.0 {
            return Ok(history);
        }
        let (mut alpha, mut inner) = (0.0, 1.0);
        while history.len() < limits.most {
            preconditioner(self, &r, &mut z)?;
            // β = −α ⟨z, q⟩ / ⟨z, r⟩ of the step before.
            let beta = match history.len() {
                0 => 0.0,
                _ => -alpha * self.dot(&z, &q)? / inner,
            };
            for (p, z) in p.iter_mut().zip(&z) {
                *p = z + beta * *p;
            }
            inner = self.dot(&z, &r)?;
            operator(self, &p, &mut q)?;
            let curvature = self.dot(&p, &q)?;
            if curvature <= 0.0 {
                break;
            }
            alpha = self.dot(&p, &r)? / curvature;
            for ((u, r), (p, q)) in u.iter_mut().zip(&mut r).zip(p.iter().zip(&q)) {
                *u += alpha * p;
                *r -= alpha * q;
            }
            let norm = self.dot(&r, &r)?.sqrt();
            history.push(norm / first);
            if !norm.is_finite() {
                return Err(SolveError::NotFinite {
                    steps: "cycle",
                    step: history.len(),
                    norm,
                    pe: self.plane.not_finite_on(),
                });
            }
            if norm <= limits.tolerance * first {
                break;
            }
        }
        Ok(history)
    }

    /// Gives the symmetric memory back. Collective.
    ///
    /// Errors: a PE that is gone.
    pub fn free(self) -> Result<(), SolveError> {
        Ok(self.plane.free()?)
    }

    fn check(&self, vectors: [&[f64]; 2]) {
        let points = self.rows().len() * self.columns().len();
        for vector in vectors {
            assert_eq!(vector.len(), points, "a vector has a value for each point");
        }
    }
}

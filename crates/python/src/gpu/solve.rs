//! Solves whose arrays lie on a GPU.

use std::sync::atomic::AtomicBool;

use crosswarp::cuda::Pod;
use crosswarp::prim::Scalar;
use crosswarp::solve::{
    DeviceArrays, DeviceOperator, DeviceVoids, Problem2d, Problem3d, Progress, Real, Solution,
    SolveError, Solver2d, fill_on_device, solve_2d_on_device, solve_3d_on_device,
};
use crosswarp::{Pe, spmd};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Failure;
use crate::gpu::elements;
use crate::gpu::queue::Place;
use crate::run::guarded;
use crate::solve::{How, Kept, Plane, Report, Space, options, solved_if_possible};

/// Where arrays of all points are.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub struct OnDevice {
    place: Place,
    source: Option<usize>,
    initial: Option<usize>,
    /// Of planes: what the operator is made of.
    fixed: Option<usize>,
    coefficient: Option<usize>,
    reaction: Option<usize>,
    field: usize,
}

/// Waits for what has been given to the stream of `place`.
fn wait_for(place: &Place) -> Result<(), Failure> {
    place.with(place.gpu()?, |stream| Ok(stream.synchronize()?))
}

/// What is said of a solution, if there is one.
fn report_of<F: Real>(solution: Option<Solution<F>>) -> Result<Option<Report>, Failure> {
    match solution {
        Some(solution) if solution.interrupted => Err(Failure::Stopped),
        solution => Ok(solution.map(Report::of)),
    }
}

impl OnDevice {
    /// Waits for what has been given to their stream, and solves by `solve`. Nothing if the host has to.
    fn solve_by<F: Real + Pod>(
        &self,
        points: usize,
        solve: impl FnOnce(&DeviceArrays<'_, F>) -> Result<Option<Solution<F>>, SolveError>,
    ) -> Result<Option<Report>, Failure> {
        wait_for(&self.place)?;
        // SAFETY: rules 1 and 2: nothing that was given to the stream uses them any more, and the solve waits for its end.
        let array = |address| unsafe { elements::<F>(address, points) };
        let arrays = DeviceArrays {
            source: self.source.map(array).transpose()?,
            initial: self.initial.map(array).transpose()?,
            field: array(self.field)?,
        };
        report_of(solve(&arrays)?)
    }

    /// What the operator of a plane of so many points is made of.
    fn operator<F: Real + Pod>(&self, points: usize) -> Result<DeviceOperator<'_, F>, Failure> {
        // SAFETY: as in `solve_by`.
        let array = |address| unsafe { elements::<F>(address, points) };
        // SAFETY: as above.
        let bytes = |address| unsafe { elements::<u8>(address, points) };
        Ok(DeviceOperator {
            fixed: self.fixed.map(bytes).transpose()?,
            coefficient: self.coefficient.map(array).transpose()?,
            reaction: self.reaction.map(array).transpose()?,
        })
    }

    /// Solves the problem of `solver`, of so many points.
    pub fn solve<F: Real + Pod>(
        &self,
        solver: &mut Solver2d<'_, F>,
        points: usize,
        how: &How,
        stop: &AtomicBool,
        see: impl FnMut(&Progress<'_>),
    ) -> Result<Option<Report>, Failure> {
        self.solve_by(points, |arrays| {
            solver.solve_on_device(arrays, &options(how, stop), see)
        })
    }
}

/// Solves on a plane of `size` columns and rows in float32 or else float64; nothing if the host has to.
#[pyfunction]
fn plane_on_device<'py>(
    py: Python<'py>,
    size: [usize; 2],
    problem: Plane<'py>,
    how: How,
    single: bool,
    arrays: OnDevice,
    kept: Kept,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    guarded(move || {
        let [nx, ny] = size;
        let mut kept = kept;
        kept.extend(problem.kept());
        match single {
            true => plane_of(py, problem.problem::<f32>(nx, ny)?, how, arrays, kept),
            false => plane_of(py, problem.problem::<f64>(nx, ny)?, how, arrays, kept),
        }
    })
}

fn plane_of<F: Real + Scalar>(
    py: Python<'_>,
    problem: Problem2d<F>,
    how: How,
    arrays: OnDevice,
    kept: Kept,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    solved_if_possible(py, how, kept, move |how, watch| {
        alone(|pe| {
            let points = problem.nx * problem.ny;
            let operator = arrays.operator(points)?;
            arrays.solve_by(points, |arrays| {
                let see = |seen: &Progress<'_>| watch.see_first(seen);
                let options = options(how, watch.stop);
                solve_2d_on_device(pe, &problem, &operator, arrays, &options, see)
            })
        })
    })
}

/// As [`plane_on_device`], in a box.
#[pyfunction]
fn space_on_device<'py>(
    py: Python<'py>,
    problem: Space<'py>,
    how: How,
    single: bool,
    arrays: OnDevice,
    kept: Kept,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    guarded(move || {
        let mut kept = kept;
        kept.extend(problem.kept());
        match single {
            true => space_of(py, problem.problem::<f32>()?, how, arrays, kept),
            false => space_of(py, problem.problem::<f64>()?, how, arrays, kept),
        }
    })
}

fn space_of<F: Real + Scalar>(
    py: Python<'_>,
    problem: Problem3d<F>,
    how: How,
    arrays: OnDevice,
    kept: Kept,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    solved_if_possible(py, how, kept, move |how, watch| {
        let points = problem.size.iter().product();
        alone(|pe| {
            arrays.solve_by(points, |arrays| {
                let see = |seen: &Progress<'_>| watch.see_first(seen);
                solve_3d_on_device(pe, &problem, arrays, &options(how, watch.stop), see)
            })
        })
    })
}

/// Where an array with voids is, and what is made of it.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub struct VoidsOnDevice {
    place: Place,
    values: usize,
    known: Option<usize>,
    nodata: Option<f64>,
    field: usize,
}

/// Fills the voids of an array of `size` columns and rows of float32 or else float64; nothing if the host has to.
#[pyfunction]
fn voids_on_device(
    py: Python<'_>,
    size: [usize; 2],
    how: How,
    single: bool,
    array: VoidsOnDevice,
    kept: Kept,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    guarded(move || match single {
        true => voids_of::<f32>(py, size, how, array, kept),
        false => voids_of::<f64>(py, size, how, array, kept),
    })
}

fn voids_of<F: Real + Scalar>(
    py: Python<'_>,
    size: [usize; 2],
    how: How,
    array: VoidsOnDevice,
    kept: Kept,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    solved_if_possible(py, how, kept, move |how, watch| {
        let [nx, ny] = size;
        alone(|pe| {
            wait_for(&array.place)?;
            // SAFETY: as in `solve_by`.
            let voids = unsafe {
                let known = array.known.map(|known| elements::<u8>(known, nx * ny));
                DeviceVoids {
                    values: elements::<F>(array.values, nx * ny)?,
                    known: known.transpose()?,
                    nodata: array.nodata.map(F::from_f64),
                    field: elements(array.field, nx * ny)?,
                }
            };
            let see = |seen: &Progress<'_>| watch.see_first(seen);
            let options = options(how, watch.stop);
            report_of(fill_on_device(pe, size, &voids, &options, see)?)
        })
    })
}

/// Does `work` in a world of one PE.
fn alone(
    work: impl Fn(&Pe) -> Result<Option<Report>, Failure> + Sync,
) -> Result<Option<Report>, Failure> {
    let reports = spmd(1, work).map_err(|error| Failure::World(error.to_string()))?;
    reports.into_iter().next().unwrap_or(Ok(None))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plane_on_device, module)?)?;
    module.add_function(wrap_pyfunction!(voids_on_device, module)?)?;
    module.add_function(wrap_pyfunction!(space_on_device, module)?)
}

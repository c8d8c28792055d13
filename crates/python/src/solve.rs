//! Solves, on a world of threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crosswarp::prim::{DType, Scalar};
use crosswarp::solve::{
    Boundary, Norm, Options, Problem1d, Problem2d, Progress, Real, RowSource, Solution, SolveError,
    solve_1d, solve_2d,
};
use crosswarp::{Pe, spmd};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::error::Failure;
use crate::run::{long, threads};

/// How often a progress callback is called, at most: it stops all PEs.
const OFTEN: Duration = Duration::from_millis(50);

/// How to solve, and who is told.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct How {
    tolerance: f64,
    max_sweeps: usize,
    sweeps_per_pass: Option<usize>,
    l2: bool,
    threads: usize,
    progress: Option<Py<PyAny>>,
}

/// What is said of a solution beside its field.
struct Report {
    sweeps: usize,
    converged: bool,
    history: Vec<f64>,
    seconds: f64,
}

/// A plane's problem; arrays are of the output's type and shape, sides of one row or column. A side that is `None` is
/// periodic.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Plane<'py> {
    left: Option<Bound<'py, PyAny>>,
    right: Option<Bound<'py, PyAny>>,
    top: Option<Bound<'py, PyAny>>,
    bottom: Option<Bound<'py, PyAny>>,
    initial: Option<Bound<'py, PyAny>>,
    fixed: Option<Bound<'py, PyAny>>,
    source: Option<Bound<'py, PyAny>>,
    spacing: f64,
}

/// Solves on a plane of `nx` columns into `output`.
#[pyfunction]
fn plane<'py>(
    py: Python<'py>,
    nx: usize,
    problem: Plane<'py>,
    how: How,
    output: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let output = Array::output(output)?;
    match output.kind.dtype {
        DType::F32 => plane_of::<f32>(py, nx, &problem, &how, output),
        _ => plane_of::<f64>(py, nx, &problem, &how, output),
    }
}

fn plane_of<'py, F: Real + Scalar>(
    py: Python<'py>,
    nx: usize,
    plane: &Plane<'py>,
    how: &How,
    output: Array,
) -> PyResult<Bound<'py, PyDict>> {
    let side = |values: &Option<Bound<'py, PyAny>>| -> PyResult<Boundary<F>> {
        Ok(match values {
            None => Boundary::Periodic,
            Some(values) => Boundary::Fixed(Array::prepared(values)?.slice::<F>().to_vec()),
        })
    };
    let problem = Problem2d {
        nx,
        ny: output.len / nx.max(1),
        left: side(&plane.left)?,
        right: side(&plane.right)?,
        top: side(&plane.top)?,
        bottom: side(&plane.bottom)?,
        initial: plane.initial.as_ref().map(rows::<F>).transpose()?,
        fixed: plane.fixed.as_ref().map(rows::<u8>).transpose()?,
        source: plane.source.as_ref().map(rows::<F>).transpose()?,
        spacing: plane.spacing,
        norm: norm(how),
    };
    solved(py, how, |watch| {
        in_world(how.threads, output, |pe| {
            solve_2d(pe, &problem, &options(how, watch.stop), |seen| {
                watch.see(pe, seen)
            })
        })
    })
}

/// Fills the cells of `values` whose byte in `known` is 0, into `output`; all three have `nx` columns.
#[pyfunction]
fn fill<'py>(
    py: Python<'py>,
    nx: usize,
    values: &Bound<'py, PyAny>,
    known: &Bound<'py, PyAny>,
    how: How,
    output: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let output = Array::output(output)?;
    match output.kind.dtype {
        DType::F32 => fill_of::<f32>(py, nx, values, known, &how, output),
        _ => fill_of::<f64>(py, nx, values, known, &how, output),
    }
}

fn fill_of<'py, F: Real + Scalar>(
    py: Python<'py>,
    nx: usize,
    values: &Bound<'py, PyAny>,
    known: &Bound<'py, PyAny>,
    how: &How,
    output: Array,
) -> PyResult<Bound<'py, PyDict>> {
    let ny = output.len / nx.max(1);
    let problem = Problem2d::<F>::fill(nx, ny, rows(values)?, rows(known)?)
        .map_err(|error| Failure::from(SolveError::from(error)))?;
    let problem = Problem2d {
        norm: norm(how),
        ..problem
    };
    solved(py, how, |watch| {
        in_world(how.threads, output, |pe| {
            solve_2d(pe, &problem, &options(how, watch.stop), |seen| {
                watch.see(pe, seen)
            })
        })
    })
}

/// Solves on a line between two values into `output`.
#[pyfunction]
fn line<'py>(
    py: Python<'py>,
    left: f64,
    right: f64,
    how: How,
    output: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let output = Array::output(output)?;
    match output.kind.dtype {
        DType::F32 => line_of::<f32>(py, [left, right], &how, output),
        _ => line_of::<f64>(py, [left, right], &how, output),
    }
}

fn line_of<'py, F: Real + Scalar>(
    py: Python<'py>,
    [left, right]: [f64; 2],
    how: &How,
    output: Array,
) -> PyResult<Bound<'py, PyDict>> {
    let problem = Problem1d {
        points: output.len,
        left: F::from_f64(left),
        right: F::from_f64(right),
        norm: norm(how),
    };
    solved(py, how, |watch| {
        in_world(how.threads, output, |pe| {
            solve_1d(pe, &problem, &options(how, watch.stop), |seen| {
                watch.see(pe, seen)
            })
        })
    })
}

/// Rows of an array, as the solver asks for them.
fn rows<T: Scalar>(array: &Bound<'_, PyAny>) -> Result<RowSource<T>, Failure> {
    let array = Array::prepared(array)?;
    Ok(Arc::new(move |y, row: &mut [T]| {
        let len = row.len();
        row.copy_from_slice(&array.slice::<T>()[y * len..(y + 1) * len]);
    }))
}

fn norm(how: &How) -> Norm {
    if how.l2 { Norm::L2 } else { Norm::Rms }
}

fn options<'a>(how: &How, stop: &'a AtomicBool) -> Options<'a> {
    Options {
        sweeps_per_pass: how.sweeps_per_pass,
        interrupt: Some(stop),
        ..Options::new(how.tolerance, how.max_sweeps)
    }
}

/// Solves on a world of threads; PE 0 writes the field.
fn in_world<F: Real + Scalar>(
    asked: usize,
    output: Array,
    solve: impl Fn(&Pe) -> Result<Solution<F>, SolveError> + Sync,
) -> Result<Report, Failure> {
    let reports = spmd(threads(asked), |pe| {
        let solution = solve(pe)?;
        if solution.interrupted {
            return Err(Failure::Stopped);
        }
        let mut at = 0;
        let taken = solution.gather(pe, |values| {
            for &value in values {
                output.write(at, value.into());
                at += 1;
            }
            Ok::<(), std::convert::Infallible>(())
        })?;
        let Ok(()) = taken;
        Ok(Report {
            sweeps: solution.sweeps,
            converged: solution.converged,
            history: solution.history,
            seconds: solution.seconds,
        })
    });
    let reports = reports.map_err(|error| Failure::World(error.to_string()))?;
    let first = reports.into_iter().next();
    first.unwrap_or_else(|| Err(Failure::Internal("a world without PEs".into())))
}

/// Watches a solve: tells Python how far it is, and stops it when Python says so.
struct Watch<'a> {
    stop: &'a AtomicBool,
    progress: Option<&'a Py<PyAny>>,
    last: Mutex<Instant>,
    /// What the callback raised.
    raised: &'a Mutex<Option<PyErr>>,
}

impl Watch<'_> {
    /// Called on each PE after each pass.
    fn see(&self, pe: &Pe, seen: &Progress<'_>) {
        let (Some(progress), 0) = (self.progress, pe.my_pe()) else {
            return;
        };
        let (Ok(mut last), Some(&change)) = (self.last.lock(), seen.norms.last()) else {
            return;
        };
        if last.elapsed() < OFTEN || self.stop.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = Python::attach(|py| progress.call1(py, (seen.sweeps, change))) {
            if let Ok(mut raised) = self.raised.lock() {
                raised.get_or_insert(error);
            }
            self.stop.store(true, Ordering::Relaxed);
        }
        *last = Instant::now();
    }
}

/// Solves without the interpreter's lock, and gives a report to Python.
fn solved<'py>(
    py: Python<'py>,
    how: &How,
    solve: impl FnOnce(&Watch<'_>) -> Result<Report, Failure> + Send,
) -> PyResult<Bound<'py, PyDict>> {
    let raised = Mutex::new(None);
    let result = long(py, |stop| {
        solve(&Watch {
            stop,
            progress: how.progress.as_ref(),
            last: Mutex::new(Instant::now()),
            raised: &raised,
        })
    });
    if let Some(error) = raised.into_inner().ok().flatten() {
        return Err(error);
    }
    let report = result?;
    if let (Some(progress), Some(change)) = (&how.progress, report.history.last()) {
        progress.call1(py, (report.sweeps, change))?;
    }
    let said = PyDict::new(py);
    said.set_item("sweeps", report.sweeps)?;
    said.set_item("converged", report.converged)?;
    said.set_item("history", PyArray1::from_vec(py, report.history))?;
    said.set_item("seconds", report.seconds)?;
    Ok(said)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plane, module)?)?;
    module.add_function(wrap_pyfunction!(fill, module)?)?;
    module.add_function(wrap_pyfunction!(line, module)?)
}

//! Solves, on a world of threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crosswarp::cuda::Device;
use crosswarp::prim::{DType, Scalar};
use crosswarp::solve::{
    Boundary, Cycles, First, Gpu, Method, Norm, Options, PlaneSource, Problem1d, Problem2d,
    Problem3d, Progress, Real, Robin, RowSource, Side as Face, Solution, SolveError, Strategy,
    solve_1d, solve_2d, solve_3d,
};
use crosswarp::{Pe, spmd};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::error::Failure;
use crate::run::{guarded, on_its_own, threads};

/// How often a progress callback is called, at most: it stops all PEs.
const OFTEN: Duration = Duration::from_millis(50);

/// How to solve, and who is told.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct How {
    /// "jacobi", "mg", "mgcg", "cg", "chebyshev" or "auto": "mg" that changes over to "mgcg" where cycles are slow.
    method: String,
    /// Of a sweep's change, or of the relative residual.
    tolerance: f64,
    /// Most sweeps, or cycles.
    most: usize,
    /// Relaxations of a cycle.
    smooth: (usize, usize),
    sweeps_per_pass: Option<usize>,
    l2: bool,
    /// Whether an incompatible source is made compatible.
    project_source: bool,
    pub threads: usize,
    progress: Option<Py<PyAny>>,
    /// The number of the GPU that makes sweeps, cycles and steps, and not the processor.
    gpu: Option<usize>,
}

impl How {
    pub fn cycles(&self) -> Cycles {
        let (pre, post) = self.smooth;
        Cycles {
            first: First::Full,
            pre,
            post,
        }
    }

    /// The GPU, if one is asked for.
    fn device(&self) -> Result<Option<Device>, Failure> {
        Ok(self.gpu.map(Device::get).transpose()?)
    }

    /// PEs of the world: on a GPU one.
    pub fn pes(&self) -> Result<usize, Failure> {
        Ok(match self.device()? {
            Some(_) => 1,
            None => threads(self.threads),
        })
    }

    fn method(&self) -> Method {
        let cycles = self.cycles();
        match self.method.as_str() {
            "auto" => Method::Automatic(cycles),
            "mg" => Method::Multigrid(cycles),
            "mgcg" => Method::ConjugateGradients(cycles),
            "cg" => Method::PlainGradients,
            "chebyshev" => Method::Chebyshev,
            _ => Method::Jacobi,
        }
    }
}

/// What is said of a solution beside its field.
pub struct Report {
    steps: usize,
    converged: bool,
    floor_reached: bool,
    floor: Option<f64>,
    projected: Option<f64>,
    levels: Option<usize>,
    gradients: bool,
    history: Vec<f64>,
    seconds: f64,
}

/// A side: "fixed" or "neumann" with one number a point, "robin" with three, first all a, then all b, then all g, or
/// "periodic" with none.
type Side<'py> = (String, Option<Bound<'py, PyAny>>);

/// A plane's problem; arrays are of the output's type and shape, sides of one row or column.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Plane<'py> {
    left: Side<'py>,
    right: Side<'py>,
    top: Side<'py>,
    bottom: Side<'py>,
    initial: Option<Bound<'py, PyAny>>,
    fixed: Option<Bound<'py, PyAny>>,
    source: Option<Bound<'py, PyAny>>,
    coefficient: Option<Bound<'py, PyAny>>,
    reaction: Option<Bound<'py, PyAny>>,
    spacing: f64,
    row_spacing: Option<f64>,
}

impl<'py> Plane<'py> {
    /// The arrays, to be kept alive.
    pub fn kept(&self) -> Kept {
        let sides = [&self.left.1, &self.right.1, &self.top.1, &self.bottom.1];
        let planes = [
            &self.initial,
            &self.fixed,
            &self.source,
            &self.coefficient,
            &self.reaction,
        ];
        let arrays = sides.into_iter().chain(planes).flatten();
        arrays.map(|array| array.clone().unbind()).collect()
    }

    /// The problem, of `nx` × `ny` points.
    pub fn problem<F: Real + Scalar>(&self, nx: usize, ny: usize) -> PyResult<Problem2d<F>> {
        let side = |(kind, values): &Side<'py>| -> PyResult<Boundary<F>> {
            let Some(values) = values else {
                return Ok(Boundary::Periodic);
            };
            let values = Array::prepared(values)?.slice::<F>().to_vec();
            Ok(match kind.as_str() {
                "neumann" => Boundary::Neumann(values),
                "robin" => {
                    let points = values.len() / 3;
                    let part = |at: usize| values[at * points..(at + 1) * points].to_vec();
                    Boundary::Robin(Robin {
                        value: part(0),
                        derivative: part(1),
                        right: part(2),
                    })
                }
                _ => Boundary::Fixed(values),
            })
        };
        Ok(Problem2d {
            nx,
            ny,
            left: side(&self.left)?,
            right: side(&self.right)?,
            top: side(&self.top)?,
            bottom: side(&self.bottom)?,
            initial: given::<F>(&self.initial)?,
            fixed: given::<u8>(&self.fixed)?,
            source: given::<F>(&self.source)?,
            coefficient: given::<F>(&self.coefficient)?,
            reaction: given::<F>(&self.reaction)?,
            spacing: self.spacing,
            row_spacing: self.row_spacing,
            ..Problem2d::laplace(0, 0)
        })
    }
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
    guarded(move || {
        let field = Array::output(output)?;
        let mut kept = problem.kept();
        kept.push(output.clone().unbind());
        match field.kind.dtype {
            DType::F32 => plane_of::<f32>(py, nx, &problem, how, field, kept),
            _ => plane_of::<f64>(py, nx, &problem, how, field, kept),
        }
    })
}

fn plane_of<'py, F: Real + Scalar>(
    py: Python<'py>,
    nx: usize,
    plane: &Plane<'py>,
    how: How,
    output: Array,
    kept: Kept,
) -> PyResult<Bound<'py, PyDict>> {
    let problem = Problem2d {
        norm: norm(&how),
        ..plane.problem::<F>(nx, output.len / nx.max(1))?
    };
    solved(py, how, kept, move |how, watch| {
        fits::<F>(how, output)?;
        in_world(how, output, |pe| {
            solve_2d(pe, &problem, &options(how, watch.stop), |seen| {
                watch.see(pe, seen)
            })
        })
    })
}

/// A box's problem; arrays are of the output's type and shape.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Space<'py> {
    /// Columns, rows and planes.
    pub size: [usize; 3],
    /// "fixed" or "periodic", "neumann" with the derivative outwards, or "robin" with a, b and g.
    sides: [[(String, Vec<f64>); 2]; 3],
    /// The first guess, with the values of fixed sides and points.
    initial: Option<Bound<'py, PyAny>>,
    fixed: Option<Bound<'py, PyAny>>,
    source: Option<Bound<'py, PyAny>>,
    coefficient: Option<Bound<'py, PyAny>>,
    reaction: Option<Bound<'py, PyAny>>,
    spacing: [f64; 3],
}

/// Solves in a box into `output`.
#[pyfunction]
fn space<'py>(
    py: Python<'py>,
    problem: Space<'py>,
    how: How,
    output: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    guarded(move || {
        let field = Array::output(output)?;
        let mut kept = problem.kept();
        kept.push(output.clone().unbind());
        match field.kind.dtype {
            DType::F32 => space_of::<f32>(py, &problem, how, field, kept),
            _ => space_of::<f64>(py, &problem, how, field, kept),
        }
    })
}

impl<'py> Space<'py> {
    /// The arrays, to be kept alive.
    pub fn kept(&self) -> Kept {
        let arrays = [
            &self.initial,
            &self.fixed,
            &self.source,
            &self.coefficient,
            &self.reaction,
        ];
        let arrays = arrays.into_iter().flatten();
        arrays.map(|array| array.clone().unbind()).collect()
    }

    /// The problem.
    pub fn problem<F: Real + Scalar>(&self) -> Result<Problem3d<F>, Failure> {
        let [nx, ny, _] = self.size;
        fn rows<T: Scalar>(array: Array, nx: usize, ny: usize) -> PlaneSource<T> {
            Arc::new(move |z, y, row: &mut [T]| {
                row.copy_from_slice(&array.slice::<T>()[(z * ny + y) * nx..][..nx]);
            })
        }
        let given = |array: &Option<Bound<'py, PyAny>>| -> Result<_, Failure> {
            let array = array.as_ref().map(Array::prepared).transpose()?;
            Ok(array.map(|array| rows::<F>(array, nx, ny)))
        };
        let fixed = self.fixed.as_ref().map(Array::prepared).transpose()?;
        Ok(Problem3d {
            sides: self.sides.each_ref().map(|sides| {
                sides.each_ref().map(|(kind, numbers)| {
                    let numbers: Vec<F> =
                        numbers.iter().map(|&number| F::from_f64(number)).collect();
                    match (kind.as_str(), &numbers[..]) {
                        ("periodic", _) => Face::Periodic,
                        ("neumann", &[slope]) => Face::Neumann(slope),
                        ("robin", &[value, derivative, right]) => Face::Robin {
                            value,
                            derivative,
                            right,
                        },
                        _ => Face::Fixed,
                    }
                })
            }),
            initial: given(&self.initial)?,
            fixed: fixed.map(|array| rows(array, nx, ny)),
            source: given(&self.source)?,
            coefficient: given(&self.coefficient)?,
            reaction: given(&self.reaction)?,
            spacing: self.spacing,
            ..Problem3d::laplace(self.size)
        })
    }
}

fn space_of<'py, F: Real + Scalar>(
    py: Python<'py>,
    space: &Space<'py>,
    how: How,
    output: Array,
    kept: Kept,
) -> PyResult<Bound<'py, PyDict>> {
    let problem = space.problem::<F>()?;
    solved(py, how, kept, move |how, watch| {
        fits::<F>(how, output)?;
        in_world(how, output, |pe| {
            solve_3d(pe, &problem, &options(how, watch.stop), |seen| {
                watch.see(pe, seen)
            })
        })
    })
}

/// Fills the cells of `values` whose byte in `known` is 0, into `output`; all three have `nx` columns. `natural`: the
/// rim is solved as everything else.
#[pyfunction]
fn fill<'py>(
    py: Python<'py>,
    nx: usize,
    values: &Bound<'py, PyAny>,
    known: &Bound<'py, PyAny>,
    natural: bool,
    how: How,
    output: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    guarded(move || {
        let field = Array::output(output)?;
        let kept = [output, values, known].map(|array| array.clone().unbind());
        let given = (Array::prepared(values)?, Array::prepared(known)?);
        let kept = kept.into();
        match field.kind.dtype {
            DType::F32 => fill_of::<f32>(py, nx, given, natural, how, field, kept),
            _ => fill_of::<f64>(py, nx, given, natural, how, field, kept),
        }
    })
}

fn fill_of<F: Real + Scalar>(
    py: Python<'_>,
    nx: usize,
    (values, known): (Array, Array),
    natural: bool,
    how: How,
    output: Array,
    kept: Kept,
) -> PyResult<Bound<'_, PyDict>> {
    solved(py, how, kept, move |how, watch| {
        fits::<F>(how, output)?;
        let fill = match natural {
            true => Problem2d::<F>::fill_natural,
            false => Problem2d::<F>::fill,
        };
        let problem = fill(nx, output.len / nx.max(1), rows(values), rows(known));
        let problem = Problem2d {
            norm: norm(how),
            ..problem.map_err(SolveError::from)?
        };
        in_world(how, output, |pe| {
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
    guarded(move || {
        let field = Array::output(output)?;
        let kept = vec![output.clone().unbind()];
        match field.kind.dtype {
            DType::F32 => line_of::<f32>(py, [left, right], how, field, kept),
            _ => line_of::<f64>(py, [left, right], how, field, kept),
        }
    })
}

fn line_of<F: Real + Scalar>(
    py: Python<'_>,
    [left, right]: [f64; 2],
    how: How,
    output: Array,
    kept: Kept,
) -> PyResult<Bound<'_, PyDict>> {
    let problem = Problem1d {
        points: output.len,
        left: F::from_f64(left),
        right: F::from_f64(right),
        norm: norm(&how),
    };
    solved(py, how, kept, move |how, watch| {
        fits::<F>(how, output)?;
        in_world(how, output, |pe| {
            solve_1d(pe, &problem, &options(how, watch.stop), |seen| {
                watch.see(pe, seen)
            })
        })
    })
}

/// Refuses a problem that the machine cannot hold, before memory is taken: the system would promise it and then end
/// the process.
fn fits<F>(how: &How, field: Array) -> Result<(), Failure> {
    const GIB: f64 = (1u64 << 30) as f64;
    let bytes = match how.method() {
        Method::Jacobi => 2 * size_of::<F>(),
        // The least: what comes with masks and sources is not counted.
        _ => 32 + size_of::<F>(),
    };
    let needed = field.len as f64 * bytes as f64 / GIB;
    let memory = rustix::system::sysinfo();
    let units = memory.totalram as f64 + memory.totalswap as f64;
    let present = units * f64::from(memory.mem_unit) / GIB;
    if needed > present {
        return Err(Failure::Memory(format!(
            "{} points need {needed:.1} GiB, this machine has {present:.1} GiB",
            field.len
        )));
    }
    Ok(())
}

/// Rows of an array, as the solver asks for them.
pub fn rows<T: Scalar>(array: Array) -> RowSource<T> {
    Arc::new(move |y, row: &mut [T]| {
        let len = row.len();
        row.copy_from_slice(&array.slice::<T>()[y * len..(y + 1) * len]);
    })
}

fn given<T: Scalar>(array: &Option<Bound<'_, PyAny>>) -> Result<Option<RowSource<T>>, Failure> {
    let array = array.as_ref().map(Array::prepared).transpose()?;
    Ok(array.map(rows))
}

fn norm(how: &How) -> Norm {
    if how.l2 { Norm::L2 } else { Norm::Rms }
}

pub fn options<'a>(how: &How, stop: &'a AtomicBool) -> Options<'a> {
    Options {
        gpu: how.device().ok().flatten().map(|device| Gpu {
            device,
            strategy: Strategy::Auto,
        }),
        sweeps_per_pass: how.sweeps_per_pass,
        interrupt: Some(stop),
        method: how.method(),
        project_source: how.project_source,
        ..Options::new(how.tolerance, how.most)
    }
}

/// Solves on a world of threads; PE 0 writes the field.
fn in_world<F: Real + Scalar>(
    how: &How,
    output: Array,
    solve: impl Fn(&Pe) -> Result<Solution<F>, SolveError> + Sync,
) -> Result<Report, Failure> {
    let reports = spmd(how.pes()?, |pe| report(pe, solve(pe)?, output));
    let reports = reports.map_err(|error| Failure::World(error.to_string()))?;
    let first = reports.into_iter().next();
    first.unwrap_or_else(|| Err(Failure::Internal("a world without PEs".into())))
}

/// Writes the field, on PE 0, and says the rest.
pub fn report<F: Real + Scalar>(
    pe: &Pe,
    solution: Solution<F>,
    output: Array,
) -> Result<Report, Failure> {
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
    Ok(Report::of(solution))
}

/// Watches a solve: tells Python how far it is, and stops it when Python says so.
pub struct Watch<'a> {
    pub stop: &'a AtomicBool,
    progress: Option<&'a Py<PyAny>>,
    last: Mutex<Instant>,
    /// What the callback raised.
    raised: &'a Mutex<Option<PyErr>>,
}

impl Watch<'_> {
    /// Called on each PE after each pass.
    pub fn see(&self, pe: &Pe, seen: &Progress<'_>) {
        if pe.my_pe() == 0 {
            self.see_first(seen);
        }
    }

    /// Called on PE 0.
    pub fn see_first(&self, seen: &Progress<'_>) {
        let Some(progress) = self.progress else {
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

/// The arrays that a solve works on, which it keeps alive.
pub type Kept = Vec<Py<PyAny>>;

/// Solves without the interpreter's lock, and gives a report to Python.
fn solved(
    py: Python<'_>,
    how: How,
    kept: Kept,
    solve: impl FnOnce(&How, &Watch<'_>) -> Result<Report, Failure> + Send + 'static,
) -> PyResult<Bound<'_, PyDict>> {
    let said = solved_if_possible(py, how, kept, |how, watch| solve(how, watch).map(Some))?;
    said.ok_or_else(|| Failure::Internal("a solve without a report".into()).into())
}

/// The same of a solve that may find that it is not possible this way.
pub fn solved_if_possible(
    py: Python<'_>,
    how: How,
    kept: Kept,
    solve: impl FnOnce(&How, &Watch<'_>) -> Result<Option<Report>, Failure> + Send + 'static,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let raised = Arc::new(Mutex::new(None));
    let how = Arc::new(how);
    let (its_raised, its_how) = (raised.clone(), how.clone());
    let result = on_its_own(py, kept, move |stop| {
        let watch = Watch {
            stop,
            progress: its_how.progress.as_ref(),
            last: Mutex::new(Instant::now()),
            raised: &its_raised,
        };
        solve(&its_how, &watch)
    });
    if let Some(error) = raised.lock().ok().and_then(|mut raised| raised.take()) {
        return Err(error);
    }
    let Some(report) = result? else {
        return Ok(None);
    };
    if let (Some(progress), Some(change)) = (&how.progress, report.history.last()) {
        progress.call1(py, (report.steps, change))?;
    }
    report.into_python(py).map(Some)
}

impl Report {
    /// What a solution says.
    pub fn of<F: Real>(solution: Solution<F>) -> Report {
        Report {
            steps: solution.sweeps,
            floor_reached: solution.floor_reached,
            floor: solution.floor,
            projected: solution.projected,
            levels: solution.levels,
            gradients: solution.gradients_from.is_some(),
            converged: solution.converged,
            history: solution.history,
            seconds: solution.seconds,
        }
    }

    pub fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let report = self;
        let said = PyDict::new(py);
        said.set_item("steps", report.steps)?;
        said.set_item("floor_reached", report.floor_reached)?;
        said.set_item("floor", report.floor)?;
        said.set_item("projected", report.projected)?;
        said.set_item("levels", report.levels)?;
        said.set_item("gradients", report.gradients)?;
        said.set_item("converged", report.converged)?;
        said.set_item("history", PyArray1::from_vec(py, report.history))?;
        said.set_item("seconds", report.seconds)?;
        Ok(said)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plane, module)?)?;
    module.add_function(wrap_pyfunction!(space, module)?)?;
    module.add_function(wrap_pyfunction!(fill, module)?)?;
    module.add_function(wrap_pyfunction!(line, module)?)
}

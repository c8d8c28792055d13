//! `crosswarp solve`.

mod field_files;
pub mod problem;
mod report;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use crosswarp::shmem::Pe;
use crosswarp::solve::{
    Checkpointing, Cycles, FieldView, First, Gpu, Method as Steps, Norm, Options, Progress as Pass,
    Real, Solution, solve_1d, solve_2d, solve_3d,
};

use self::field_files::{FieldHead, FieldOutputs, OutputFiles, paths};
use self::problem::Asked;
use self::report::{NotTaken, SolveDetails, SolveReport};
use super::error::{CommandError, NOT_CONVERGED};
use crate::args::solve::SolveArgs;
use crate::console;
use crate::console::interrupt::Interrupt;
use crate::console::progress::{self, Progress};
use crate::defaults::CHECKPOINT_EVERY;
use crate::drawing::norms::{self, PlotTexts};
use crate::format::{counted, general};
use crate::input::choice::name_of;
use crate::input::npy::Dtype;
use crate::input::numerics::{FieldType, NORMS};
use crate::input::slice::Cut;
use crate::input::spacing::Spacing;
use crate::input::stopping::CycleName;
use crate::input::tiff::GeoTags;
use crate::output::csv;
use crate::output::json::Run;
use crate::output::staged::StagedFile;
use crate::problem::Problem;
use crate::problem::field::{self, Format};
use crate::problem::load::error::LoadError;
use crate::problem::load::{self, Grid};
use crate::problem::method::{Method, OneLevel, Outer};
use crate::problem::template;
use crate::world::backend::Backend;
use crate::world::pes::{in_world_of, kind_name};

/// A solve with everything decided.
struct Job<'a> {
    args: &'a SolveArgs,
    problem: &'a Problem,
    /// Of a fill: the number type of its values.
    values_dtype: Option<Dtype>,
    method: Method,
    options: Options<'a>,
    interrupt: &'a Interrupt,
    backend: Backend,
    /// Taken by PE 0.
    files: Mutex<OutputFiles>,
    /// Where a field as TIFF lies.
    tags: GeoTags,
}

/// Solves the problem that `args` name; the exit code.
pub fn solve(args: &SolveArgs) -> Result<i32, CommandError> {
    if args.template {
        let Some(text) = template::of(&args.problem) else {
            return Err(CommandError::Usage(format!(
                "there is no template of {}; laplace1d, laplace2d, laplace3d and fill have one",
                args.problem
            )));
        };
        console::line(text.trim_end())?;
        return Ok(0);
    }
    let Asked {
        problem,
        dtype,
        method,
        project_source,
    } = problem::from_args(args)?;
    OutputFiles::check(args)?;
    if let Some(fault) = args.look.fault() {
        return Err(CommandError::Usage(fault));
    }
    let values_dtype = match &problem {
        Problem::Fill { values, .. } => Some(field::file_dtype(values).map_err(LoadError::from)?),
        _ => None,
    };
    let dtype = match (dtype, values_dtype) {
        (Some(dtype), _) => dtype,
        // f32 does not hold every integer of 32 bits.
        (None, Some(Dtype::F64 | Dtype::I32 | Dtype::U32)) => FieldType::F64,
        _ => FieldType::F32,
    };
    let backend = match method {
        Method::Jacobi { .. } => Backend::choose(&args.backend)?,
        Method::Multigrid { .. } | Method::OneLevel { .. } => {
            Backend::choose_when_asked(&args.backend)?
        }
    };
    if let (Some(strategy), Backend::Cpu { no_gpu }) = (args.strategy, &backend) {
        let reason = no_gpu.as_deref().unwrap_or("--backend cpu uses none");
        return Err(CommandError::Usage(format!(
            "--strategy {strategy} is a way of using GPUs: {reason}"
        )));
    }
    let interrupt = Interrupt::install().map_err(CommandError::Signals)?;
    let options = Options {
        tolerance: match method {
            Method::Jacobi { tolerance, .. } => tolerance,
            Method::Multigrid { residual, .. } | Method::OneLevel { residual, .. } => residual,
        },
        max_sweeps: saturating(match method {
            Method::Jacobi { max_sweeps, .. } | Method::OneLevel { max_sweeps, .. } => max_sweeps,
            Method::Multigrid { max_cycles, .. } => max_cycles,
        }),
        method: match method {
            Method::Jacobi { .. } => Steps::Jacobi,
            Method::OneLevel { by, .. } => match by {
                OneLevel::Gradients => Steps::PlainGradients,
                OneLevel::Chebyshev => Steps::Chebyshev,
            },
            Method::Multigrid {
                smooth,
                cycle,
                outer,
                ..
            } => {
                let cycles = Cycles {
                    first: match cycle {
                        CycleName::V => First::V,
                        CycleName::F => First::Full,
                    },
                    pre: smooth.pre.into(),
                    post: smooth.post.into(),
                };
                match outer {
                    Outer::Automatic => Steps::Automatic(cycles),
                    Outer::None => Steps::Multigrid(cycles),
                    Outer::Gradients => Steps::ConjugateGradients(cycles),
                }
            }
        },
        sweeps_per_pass: args.sweeps_per_pass.map(|sweeps| sweeps as usize),
        checkpoint: args.checkpoint.clone().map(|path| Checkpointing {
            path,
            every: saturating(args.checkpoint_every.unwrap_or(match method {
                Method::Jacobi { .. } | Method::OneLevel { .. } => CHECKPOINT_EVERY.sweeps,
                Method::Multigrid { .. } => CHECKPOINT_EVERY.cycles,
            })),
        }),
        resume: args.resume.clone(),
        project_source,
        field_every: args.frames.map(saturating).and_then(NonZeroUsize::new),
        interrupt: Some(interrupt.flag()),
        gpu: None,
    };
    if args.frames.is_some()
        && [&args.output, &args.png, &args.vti]
            .iter()
            .all(|path| path.is_none())
    {
        return Err(CommandError::Usage(
            "--frames writes the field more often: -o, --png or --vti says where".to_owned(),
        ));
    }
    // Only one PE writes, and what it cannot write is said before anything is computed.
    let (files, tags) = if console::is_follower() {
        (OutputFiles::default(), GeoTags::default())
    } else {
        let tiff = args.output.as_deref().map(Format::of) == Some(Format::Tiff);
        let what = match problem {
            Problem::Line(_) => Some("a line"),
            Problem::Space(_) => Some("a box"),
            _ => None,
        };
        if let (true, Some(what)) = (tiff, what) {
            return Err(CommandError::Usage(format!(
                "{what} cannot be written as TIFF, which is a plane; -o FIELD.npy can"
            )));
        }
        let tags = match tiff {
            true => load::geo_tags(&problem)?,
            false => GeoTags::default(),
        };
        (OutputFiles::open(args, tags.clone())?, tags)
    };
    let job = Job {
        args,
        problem: &problem,
        values_dtype,
        method,
        options,
        interrupt,
        backend,
        files: Mutex::new(files),
        tags,
    };
    match dtype {
        FieldType::F32 => job.run::<f32>("f32", Dtype::F32),
        FieldType::F64 => job.run::<f64>("f64", Dtype::F64),
    }
}

fn saturating(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl Job<'_> {
    fn run<F: Real + Into<f64>>(
        &self,
        name: &'static str,
        dtype: Dtype,
    ) -> Result<i32, CommandError> {
        let grid = load::load::<F>(self.problem, &self.method)?;
        let cut = self.cut(&grid)?;
        let asked = self.args.backend.pes;
        let default = match (self.method, &self.backend) {
            (Method::Multigrid { .. }, Backend::Cuda(_)) => 1,
            (_, backend) => backend.default_pes(),
        };
        let n_pes = asked.map_or(default, |pes| pes as usize);
        in_world_of(asked, n_pes, |pe| {
            let solution = self.sweep(pe, &grid, dtype, cut)?;
            if solution.interrupted {
                return self.interrupted(pe, &solution);
            }
            self.deliver(pe, &grid, solution, name, dtype, cut)
        })
    }

    /// Of a box: the plane that is drawn.
    fn cut<F: Real>(&self, grid: &Grid<F>) -> Result<Option<Cut>, CommandError> {
        let Grid::Space(problem) = grid else {
            return Ok(None);
        };
        let middle = Cut {
            axis: 2,
            at: problem.size[2] / 2,
        };
        let cut = self
            .args
            .slice
            .map_or(Ok(middle), |slice| slice.cut(problem.size, problem.spacing));
        let cut = cut.map_err(|error| CommandError::Usage(error.to_string()))?;
        Ok(Some(cut))
    }

    /// Makes the sweeps or cycles; PE 0 shows the progress.
    fn sweep<F: Real + Into<f64>>(
        &self,
        pe: &Pe,
        grid: &Grid<F>,
        dtype: Dtype,
        cut: Option<Cut>,
    ) -> Result<Solution<F>, CommandError> {
        let lead = pe.my_pe() == 0;
        let asked = self.args.report_every;
        let sweeps = |every: u64| progress::Steps::Sweeps {
            every: asked.unwrap_or(every),
            asked: asked.is_some(),
        };
        let steps = match (self.method, grid) {
            (Method::Multigrid { .. }, _) => progress::Steps::Cycles {
                every: asked.unwrap_or(1),
            },
            (Method::OneLevel { .. }, _) => progress::Steps::Residuals {
                every: asked.unwrap_or(10),
                asked: asked.is_some(),
            },
            (_, Grid::Line(_)) => sweeps(10),
            (_, Grid::Plane { .. } | Grid::Space(_)) => sweeps(100),
        };
        let mut progress = (lead && !self.args.json && !self.args.quiet)
            .then(|| Progress::new(steps, self.options.max_sweeps as u64, grid.inner_cells()));
        let mut closed = None;
        let mut warned = false;
        let observer = |pass: &Pass| {
            if let Some(progress) = progress.as_mut().filter(|_| closed.is_none())
                && let Err(error) = progress.pass(pass.sweeps as u64, pass.norms)
            {
                // Nobody reads any more: end as after Ctrl-C.
                closed = Some(error.into());
                self.interrupt.raise();
            }
            if let Some(field) = pass.field {
                let head = self.head(grid, dtype, pass.sweeps, cut);
                let written = self.frame::<F>(pe, field, head, pass.sweeps);
                if let Err(error) = written {
                    closed.get_or_insert(error);
                    self.interrupt.raise();
                }
            }
            if let (Some(failure), false, true) = (pass.checkpoint_failure, warned, lead) {
                warned = true;
                console::complain(format_args!("{failure}; the solve goes on"));
            }
        };
        let options = Options {
            gpu: self.backend.device(pe).map(|device| Gpu {
                device,
                strategy: self.args.strategy.unwrap_or_default(),
            }),
            ..self.options.clone()
        };
        let solution = match grid {
            Grid::Line(problem) => solve_1d(pe, problem, &options, observer),
            Grid::Plane { problem, .. } => solve_2d(pe, problem, &options, observer),
            Grid::Space(problem) => solve_3d(pe, problem, &options, observer),
        };
        if let Some(progress) = &progress {
            progress.finish();
        }
        match closed {
            Some(error) => Err(error),
            None => Ok(solution?),
        }
    }

    /// Writes the field after `steps` steps. Collective.
    fn frame<F: Real + Into<f64>>(
        &self,
        pe: &Pe,
        field: FieldView<'_>,
        head: FieldHead,
        steps: usize,
    ) -> Result<(), CommandError> {
        let mut outputs = match pe.my_pe() {
            0 => Some(FieldOutputs::of_frame(self.args, steps, &self.tags, head)),
            _ => None,
        };
        let mut cells = Vec::new();
        // Every PE takes part, also when PE 0 already knows that it cannot write.
        let taken = field.gather(pe, |values| match &mut outputs {
            Some(Ok(outputs)) => {
                cells.clear();
                cells.extend(values.iter().map(|&value| F::from_f64(value)));
                outputs.put(&cells)
            }
            _ => Ok(()),
        })?;
        taken?;
        if let Some(outputs) = outputs {
            outputs?.finish()?;
        }
        Ok(())
    }

    /// Ends a solve that was stopped: the checkpoint is written already.
    fn interrupted<F: Real>(&self, pe: &Pe, solution: &Solution<F>) -> Result<i32, CommandError> {
        if pe.my_pe() != 0 {
            return Ok(0);
        }
        let steps = self.steps_made(solution.sweeps);
        match (&self.args.checkpoint, &solution.checkpoint_failure) {
            (_, Some(failure)) => {
                console::complain(format_args!("interrupted after {steps}; {failure}"))
            }
            (Some(path), None) => console::complain(format_args!(
                "interrupted after {steps}; go on with --resume {}",
                path.display()
            )),
            (None, None) => console::complain(format_args!("interrupted after {steps}")),
        }
        Ok(128
            + self
                .interrupt
                .signal()
                .unwrap_or(signal_hook::consts::SIGINT))
    }

    fn steps_made(&self, count: usize) -> String {
        match self.method {
            Method::Jacobi { .. } | Method::OneLevel { .. } => counted(count as u64, "sweep"),
            Method::Multigrid { .. } => counted(count as u64, "cycle"),
        }
    }

    /// Gathers the field, writes the files and prints the result.
    fn deliver<F: Real + Into<f64>>(
        &self,
        pe: &Pe,
        grid: &Grid<F>,
        solution: Solution<F>,
        name: &'static str,
        dtype: Dtype,
        cut: Option<Cut>,
    ) -> Result<i32, CommandError> {
        let lead = pe.my_pe() == 0;
        let wanted = [&self.args.output, &self.args.png, &self.args.vti]
            .iter()
            .any(|path| path.is_some());
        let OutputFiles {
            field,
            png,
            vti,
            plot,
            history,
        } = if lead {
            std::mem::take(&mut *self.files.lock().expect("only PE 0 locks it"))
        } else {
            OutputFiles::default()
        };
        let head = self.head(grid, dtype, solution.sweeps, cut);
        let title = head.title.clone();
        let mut outputs = FieldOutputs::start(field, png, vti, lead && self.args.json, head);
        if wanted || self.args.json {
            // Every PE takes part, also when PE 0 already knows that it cannot write.
            let taken = solution.gather(pe, |cells| match &mut outputs {
                Ok(outputs) => outputs.put(cells),
                Err(_) => Ok(()),
            })?;
            taken?;
        }
        if !lead {
            return Ok(0);
        }
        let hash = outputs?.finish()?;
        let norms = &solution.history;
        let by_jacobi = matches!(self.method, Method::Jacobi { .. });
        let in_cycles = matches!(self.method, Method::Multigrid { .. });
        let remaining_error = report::remaining_error(norms).filter(|_| by_jacobi);
        if let Some(file) = plot {
            let title = match remaining_error {
                Some(error) if self.args.look.title.is_none() => {
                    format!("{title}, {} from the solution", general(error, 2))
                }
                _ => title,
            };
            self.plot(file, &title, norms)?;
        }
        // Sweeps of Jacobi count from 0; a residual of number 0 would be that of the first guess.
        let (heading, first) = match self.method {
            Method::Jacobi { .. } => ("sweep,norm", 0),
            Method::Multigrid { .. } => ("cycle,relative_residual", 1),
            Method::OneLevel { .. } => ("sweep,relative_residual", 1),
        };
        let with_history = history.is_some();
        if let Some(file) = history {
            csv::write_norms(file, heading, first, norms)?;
        }
        let choice = solution.choice.clone();
        let steps = Some(solution.sweeps as u64);
        let report = SolveReport {
            problem: self.problem.name(),
            dtype: name,
            values_dtype: self.values_dtype.map(Dtype::name),
            backend: self.backend.name(),
            run: Run {
                pes: pe.n_pes(),
                world: kind_name(pe),
                seconds: solution.seconds,
                bytes_per_second: None,
            },
            method: match solution.gradients_from {
                Some(_) => "mgcg",
                None => self.method.name(),
            },
            sweeps: steps.filter(|_| !in_cycles),
            cycles: steps.filter(|_| in_cycles),
            converged: solution.converged,
            norm: norms.last().copied().filter(|_| by_jacobi),
            remaining_error_estimate: remaining_error,
            relative_residual: (!by_jacobi).then_some(solution.norm),
            convergence_factor: report::convergence_factor(norms).filter(|_| !by_jacobi),
            levels: solution.levels,
            setup_seconds: (!by_jacobi).then_some(solution.setup_seconds),
            floor_reached: solution.floor_reached,
            floor: solution.floor,
            effective_limit: (!by_jacobi).then(|| {
                let least = 2.0 * solution.floor.unwrap_or_default();
                self.options.tolerance.max(least)
            }),
            projected: solution.projected,
            history: with_history.then(|| (first..).zip(norms.iter().copied()).collect()),
            field_sha256: hash.unwrap_or_default(),
            cell_updates_per_second: rate(solution.cell_updates, solution.seconds),
            strategy: choice.as_ref().map(|choice| choice.taken),
            not_taken: choice
                .into_iter()
                .flat_map(|choice| choice.declined)
                .map(|declined| NotTaken {
                    strategy: declined.strategy.name(),
                    reason: declined.reason,
                })
                .collect(),
        };
        if self.args.json {
            console::line(report.to_json())?;
        } else if !self.args.quiet {
            let details = SolveDetails {
                size: grid.size_text(),
                machine: self.backend.describe(),
                tolerance: self.options.tolerance,
                norm: match self.method {
                    Method::Jacobi { norm, .. } => name_of(NORMS, norm),
                    Method::Multigrid { .. } | Method::OneLevel { .. } => "l2",
                },
                mg_can: matches!(grid, Grid::Plane { .. }),
                how: match self.method {
                    Method::Jacobi { .. } => {
                        format!(
                            "{} per pass",
                            counted(solution.sweeps_per_pass as u64, "sweep")
                        )
                    }
                    Method::Multigrid { smooth, .. } => {
                        let around = match solution.gradients_from {
                            None => String::new(),
                            Some(0) => "conjugate gradients, ".to_owned(),
                            Some(cycle) => {
                                format!("conjugate gradients after cycle {cycle}, ")
                            }
                        };
                        format!("{around}V({},{})", smooth.pre, smooth.post)
                    }
                    Method::OneLevel { by, .. } => match by {
                        OneLevel::Gradients => "conjugate gradients".to_owned(),
                        OneLevel::Chebyshev => "Chebyshev's iteration".to_owned(),
                    },
                },
                rim: match grid {
                    Grid::Plane { fill, .. } => fill.as_ref().map(|fill| fill.rim.name()),
                    Grid::Line(_) | Grid::Space(_) => None,
                },
                files: paths(self.args)
                    .into_iter()
                    .flatten()
                    .map(|path| console::escaped(&console::name(path).to_string(), &[]))
                    .collect(),
            };
            console::line(report.summary(&details))?;
        }
        // Nobody has asked for more than rounding allows.
        let good_enough = solution.floor_reached
            && matches!(
                self.method,
                Method::Multigrid { stated: false, .. } | Method::OneLevel { stated: false, .. }
            );
        Ok(if solution.converged || good_enough {
            0
        } else {
            NOT_CONVERGED
        })
    }

    fn head<F: Real>(
        &self,
        grid: &Grid<F>,
        dtype: Dtype,
        sweeps: usize,
        cut: Option<Cut>,
    ) -> FieldHead {
        let what = match self.problem {
            Problem::Fill { values, .. } => {
                format!(
                    "{} filled",
                    values.file_stem().unwrap_or_default().to_string_lossy()
                )
            }
            Problem::Plane(plane) if plane.source.is_some() => "Poisson".to_owned(),
            Problem::Space(space) if space.source.is_some() => "Poisson".to_owned(),
            _ => "Laplace".to_owned(),
        };
        let given = match grid {
            Grid::Plane { fill, .. } => fill.as_ref().map(|fill| Arc::clone(&fill.given)),
            Grid::Line(_) | Grid::Space(_) => None,
        };
        let slice = cut.map_or_else(String::new, |Cut { axis, at }| {
            format!(", {} = {at}", ["column", "row", "plane"][axis])
        });
        FieldHead {
            title: self.args.look.title.clone().unwrap_or_else(|| {
                let (size, steps) = (grid.size_text(), self.steps_made(sweeps));
                format!("{what}, {size}, {steps}{slice}")
            }),
            dtype,
            size: grid.size(),
            cut,
            spacing: match grid {
                Grid::Plane { problem, .. } => Spacing {
                    x: problem.spacing,
                    y: problem.row_spacing.unwrap_or(problem.spacing),
                    z: problem.spacing,
                },
                Grid::Space(problem) => {
                    let [x, y, z] = problem.spacing;
                    Spacing { x, y, z }
                }
                Grid::Line(_) => Spacing::same(1.0),
            },
            spacing_given: match self.problem {
                Problem::Plane(plane) => plane.spacing.is_some(),
                Problem::Space(space) => space.spacing.is_some(),
                _ => false,
            },
            look: self.args.look.clone(),
            // What an end does travels one point a sweep; a few more show where it has not come yet.
            reach: sweeps + sweeps / 8 + 4,
            given,
        }
    }

    fn plot(&self, file: StagedFile, title: &str, history: &[f64]) -> Result<(), CommandError> {
        let (step, norm) = match self.method {
            Method::Jacobi { norm: Norm::L2, .. } => ("sweep", "l2 norm of the change in a sweep"),
            Method::Jacobi {
                norm: Norm::Rms, ..
            } => ("sweep", "rms change in a sweep"),
            Method::Multigrid { .. } => ("cycle", "relative residual"),
            Method::OneLevel { .. } => ("sweep", "relative residual"),
        };
        // Before the first step the residual is all there is.
        let start: &[f64] = match self.method {
            Method::Jacobi { .. } => &[],
            Method::Multigrid { .. } | Method::OneLevel { .. } => &[1.0],
        };
        let norms = [start, history].concat();
        let texts = PlotTexts { title, step, norm };
        let chart = norms::chart(&texts, &norms, self.options.tolerance);
        Ok(chart.write_svg(file)?)
    }
}

fn rate(updates: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        updates as f64 / seconds
    } else {
        0.0
    }
}

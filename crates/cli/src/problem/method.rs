//! Which method solves a problem: said, or told from the options that only one of them has.

use crosswarp::solve::Norm;

use crate::defaults;
use crate::input::numerics::FieldType;
use crate::input::stopping::{CycleName, MethodName, Smoothing};
use crate::problem::Problem;

/// A method that can be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Jacobi sweeps.
    Jacobi,
    /// Multigrid.
    Multigrid,
    /// Conjugate gradients or Chebyshev's iteration, which know the grid itself only.
    OneLevel,
}

/// What sweeps have, that look at the change.
pub const SWEEPS: &[Kind] = &[Kind::Jacobi];
/// What all that go over the grid once in each step have.
pub const COUNTED: &[Kind] = &[Kind::Jacobi, Kind::OneLevel];
/// What cycles have.
pub const CYCLES: &[Kind] = &[Kind::Multigrid];
/// What all that look at the residual have.
pub const RESIDUALS: &[Kind] = &[Kind::Multigrid, Kind::OneLevel];
/// What a checkpoint of methods without cycles is of.
pub const STEPS: &[Kind] = &[Kind::OneLevel];

impl Kind {
    fn in_words(self) -> &'static str {
        match self {
            Self::Jacobi => "Jacobi sweeps",
            Self::Multigrid => "multigrid",
            Self::OneLevel => "cg and chebyshev",
        }
    }
}

/// An option or a setting that not all methods have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tied {
    /// Its name, as the user wrote it.
    pub name: &'static str,
    /// The methods; where nothing else decides, the first.
    pub to: &'static [Kind],
}

impl Tied {
    /// Those of `options` that are given, as name, whether given, methods.
    pub fn of(options: &[(&'static str, bool, &'static [Kind])]) -> Vec<Self> {
        let given = options.iter().filter(|(_, given, _)| *given);
        given.map(|&(name, _, to)| Self { name, to }).collect()
    }
}

/// What one place says of number type, method and stopping: the command line, or a problem file.
#[derive(Debug, Default)]
pub struct Given {
    /// Number type of the field.
    pub dtype: Option<FieldType>,
    /// The method's name.
    pub method: Option<MethodName>,
    /// Norm of the change at which to stop.
    pub tolerance: Option<f64>,
    /// Most sweeps.
    pub max_sweeps: Option<u64>,
    /// Which norm.
    pub norm: Option<Norm>,
    /// Relative residual at which to stop.
    pub residual: Option<f64>,
    /// Most cycles.
    pub max_cycles: Option<u64>,
    /// Relaxations of a cycle.
    pub smooth: Option<Smoothing>,
    /// What the first cycle is.
    pub cycle: Option<CycleName>,
    /// Whether an incompatible source is made compatible.
    pub project_source: bool,
    /// What only some methods have, of all that is said in this place.
    pub tied: Vec<Tied>,
}

/// What does not go together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Contradiction {
    /// An option of one method, and another method.
    #[error("{} belongs to {}: it does not go with {method}", tied.name, tied.to[0].in_words())]
    WithMethod {
        /// The option.
        tied: Tied,
        /// How the method was chosen.
        method: &'static str,
    },
    /// Options of two methods.
    #[error(
        "{} belongs to {} and {} to {}: they do not go together",
        one.name, one.to[0].in_words(), other.name, other.to[0].in_words()
    )]
    WithOption {
        /// The one.
        one: Tied,
        /// The other.
        other: Tied,
    },
    /// A limit by two names.
    #[error("{one} and {other} are the same limit: give one of them")]
    Twice {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A limit twice.
    #[error("{0} is given twice")]
    Repeated(&'static str),
    /// A problem that multigrid does not solve.
    #[error("laplace1d is solved by Jacobi sweeps: it does not go with {0}")]
    Line(&'static str),
    /// A problem that sweeps do not solve.
    #[error("laplace3d is not solved by sweeps of Jacobi: it does not go with {0}")]
    Space(&'static str),
}

impl Given {
    /// The method that this place decides on, if it does, and what says so. `method` is how it writes a method.
    fn decides(
        &self,
        method: fn(MethodName) -> &'static str,
    ) -> Result<Option<(Kind, &'static str)>, Contradiction> {
        let said = self.method.and_then(|name| {
            let kind = match name {
                MethodName::Jacobi => Kind::Jacobi,
                MethodName::Mg | MethodName::Mgcg => Kind::Multigrid,
                MethodName::Cg | MethodName::Chebyshev => Kind::OneLevel,
                MethodName::Auto => return None,
            };
            Some((kind, method(name)))
        });
        if let Some((kind, method)) = said {
            let other = self.tied.iter().find(|tied| !tied.to.contains(&kind));
            return match other {
                Some(&tied) => Err(Contradiction::WithMethod { tied, method }),
                None => Ok(Some((kind, method))),
            };
        }
        let Some(&one) = self.tied.first() else {
            return Ok(None);
        };
        let kind = one.to[0];
        match self.tied.iter().find(|tied| !tied.to.contains(&kind)) {
            Some(&other) => Err(Contradiction::WithOption { one, other }),
            None => Ok(Some((kind, one.name))),
        }
    }
}

/// What refuses a choice: the command line, or the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The command line.
    Line(Contradiction),
    /// The file.
    File(Contradiction),
}

/// What is around multigrid cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outer {
    /// Nothing as long as cycles are fast, then conjugate gradients.
    Automatic,
    /// Nothing.
    None,
    /// Conjugate gradients.
    Gradients,
}

/// A method that knows the grid itself only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OneLevel {
    /// Conjugate gradients.
    Gradients,
    /// Chebyshev's iteration.
    Chebyshev,
}

/// How a problem is to be solved.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Method {
    /// Jacobi sweeps.
    Jacobi {
        /// Norm of a sweep's change at which to stop.
        tolerance: f64,
        /// Most sweeps.
        max_sweeps: u64,
        /// Which norm.
        norm: Norm,
    },
    /// Multigrid cycles.
    Multigrid {
        /// Relative residual at which to stop.
        residual: f64,
        /// Whether that was asked for.
        stated: bool,
        /// Most cycles.
        max_cycles: u64,
        /// Relaxations of a cycle.
        smooth: Smoothing,
        /// What the first cycle is.
        cycle: CycleName,
        /// What is around them.
        outer: Outer,
    },
    /// Steps over the grid itself.
    OneLevel {
        /// Relative residual at which to stop.
        residual: f64,
        /// Whether that was asked for.
        stated: bool,
        /// Most steps.
        max_sweeps: u64,
        /// Which.
        by: OneLevel,
    },
}

impl Method {
    /// The name in options and results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Jacobi { .. } => "jacobi",
            Self::Multigrid {
                outer: Outer::Gradients,
                ..
            } => "mgcg",
            Self::Multigrid { .. } => "mg",
            Self::OneLevel {
                by: OneLevel::Gradients,
                ..
            } => "cg",
            Self::OneLevel {
                by: OneLevel::Chebyshev,
                ..
            } => "chebyshev",
        }
    }

    /// How to solve `problem` where the command line says `line` and its file, if there is one, says `file`.
    ///
    /// What the command line says wins: where it decides on a method, what the file says of another does not matter.
    pub fn decide(problem: &Problem, line: &Given, file: &Given) -> Result<Self, Refusal> {
        let by_line = line.decides(|name| match name {
            MethodName::Auto => "--method auto",
            MethodName::Jacobi => "--method jacobi",
            MethodName::Mg => "--method mg",
            MethodName::Mgcg => "--method mgcg",
            MethodName::Cg => "--method cg",
            MethodName::Chebyshev => "--method chebyshev",
        });
        let by_line = by_line.map_err(Refusal::Line)?;
        let by_file = file.decides(|name| match name {
            MethodName::Auto => "method = \"auto\"",
            MethodName::Jacobi => "method = \"jacobi\"",
            MethodName::Mg => "method = \"mg\"",
            MethodName::Mgcg => "method = \"mgcg\"",
            MethodName::Cg => "method = \"cg\"",
            MethodName::Chebyshev => "method = \"chebyshev\"",
        });
        let by_file = by_file.map_err(Refusal::File)?;
        let jacobi_by_itself = matches!(problem, Problem::Line(_) | Problem::Nvidia { .. });
        let (kind, because) = match (by_line, by_file) {
            (Some((kind, because)), _) => (kind, Ok(because)),
            (None, Some((kind, because))) => (kind, Err(because)),
            (None, None) if jacobi_by_itself => (Kind::Jacobi, Ok("")),
            (None, None) => (Kind::Multigrid, Ok("")),
        };
        if kind != Kind::Jacobi && matches!(problem, Problem::Line(_)) {
            return Err(match because {
                Ok(because) => Refusal::Line(Contradiction::Line(because)),
                Err(because) => Refusal::File(Contradiction::Line(because)),
            });
        }
        if kind == Kind::Jacobi && matches!(problem, Problem::Space(_)) {
            return Err(match because {
                Ok(because) => Refusal::Line(Contradiction::Space(because)),
                Err(because) => Refusal::File(Contradiction::Space(because)),
            });
        }
        let stopping = problem.defaults();
        let method = match kind {
            Kind::Jacobi => Self::Jacobi {
                tolerance: or(line.tolerance, file.tolerance, stopping.tolerance),
                max_sweeps: or(line.max_sweeps, file.max_sweeps, stopping.max_sweeps),
                norm: or(line.norm, file.norm, stopping.norm),
            },
            Kind::Multigrid => Self::Multigrid {
                residual: or(line.residual, file.residual, defaults::RELATIVE_RESIDUAL),
                stated: line.residual.or(file.residual).is_some(),
                max_cycles: or(line.max_cycles, file.max_cycles, defaults::MAX_CYCLES),
                smooth: or(line.smooth, file.smooth, defaults::SMOOTHING),
                cycle: or(line.cycle, file.cycle, CycleName::default()),
                outer: match line.method.or(file.method) {
                    Some(MethodName::Mgcg) => Outer::Gradients,
                    Some(MethodName::Mg) => Outer::None,
                    _ => Outer::Automatic,
                },
            },
            Kind::OneLevel => Self::OneLevel {
                residual: or(line.residual, file.residual, defaults::RELATIVE_RESIDUAL),
                stated: line.residual.or(file.residual).is_some(),
                max_sweeps: or(line.max_sweeps, file.max_sweeps, stopping.max_sweeps),
                by: match line.method.or(file.method) {
                    Some(MethodName::Chebyshev) => OneLevel::Chebyshev,
                    _ => OneLevel::Gradients,
                },
            },
        };
        Ok(method)
    }
}

fn or<T>(line: Option<T>, file: Option<T>, default: T) -> T {
    line.or(file).unwrap_or(default)
}

/// The one of two names of a limit that was given.
pub fn either<T: Copy>(
    one: (&'static str, Option<T>),
    other: (&'static str, Option<T>),
) -> Result<Option<T>, Contradiction> {
    match (one.1, other.1) {
        (Some(_), Some(_)) => Err(Contradiction::Twice {
            one: one.0,
            other: other.0,
        }),
        (given, None) | (None, given) => Ok(given),
    }
}

//! The problem that the command line names.

use std::path::Path;

use crate::args::solve::{Preset, SolveArgs};
use crate::defaults;
use crate::input::boundary::{Boundary, Side, Values};
use crate::input::formula::Formula;
use crate::problem::file::{self, ProblemFileError};
use crate::problem::{Line, Plane, Problem, Stopping};

/// Why the command line does not make a problem.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// Not a problem's name.
    #[error("'{0}' is not a problem; laplace1d, laplace2d, fill and FILE.toml are")]
    Unknown(String),
    /// An argument of another problem.
    #[error("{argument} does not apply to {problem}")]
    NotApplicable {
        /// The argument.
        argument: &'static str,
        /// The problem.
        problem: String,
    },
    /// A file that is needed.
    #[error("fill needs {0} FILE")]
    Missing(&'static str),
    /// A side named twice.
    #[error("the {0} boundary is given twice")]
    TwiceBoundary(&'static str),
    /// The problem file.
    #[error(transparent)]
    File(#[from] ProblemFileError),
}

/// The problem that the command line names, and what it says about stopping; flags win over a file.
pub fn from_args(args: &SolveArgs) -> Result<(Problem, Stopping), ProblemError> {
    let mut stopping = Stopping::default();
    let problem = match args.problem.as_str() {
        "laplace1d" => {
            refuse(args, &[Group::Plane, Group::Fill])?;
            let (left, right) = (
                args.left.unwrap_or(defaults::LEFT),
                args.right.unwrap_or(defaults::RIGHT),
            );
            Problem::Line(Line {
                points: args.points.unwrap_or(defaults::POINTS),
                left,
                right,
            })
        }
        "laplace2d" => {
            refuse(args, &[Group::Line, Group::Fill])?;
            match args.preset {
                Some(Preset::Nvidia) => Problem::Nvidia {
                    nx: args.nx.unwrap_or(defaults::PRESET_SIDE),
                    ny: args.ny.unwrap_or(defaults::PRESET_SIDE),
                },
                None => Problem::Plane(Box::new(plane(args)?)),
            }
        }
        "fill" => {
            refuse(args, &[Group::Line, Group::Plane])?;
            let values = args
                .values
                .clone()
                .ok_or(ProblemError::Missing("--values"))?;
            let known = args.known.clone().ok_or(ProblemError::Missing("--known"))?;
            Problem::Fill { values, known }
        }
        path if Path::new(path).extension().is_some_and(|e| e == "toml") => {
            refuse(args, &[Group::Line, Group::Plane, Group::Fill])?;
            let (problem, from_file) = file::read(Path::new(path))?;
            stopping = from_file;
            problem
        }
        other => return Err(ProblemError::Unknown(other.to_owned())),
    };
    Ok((
        problem,
        Stopping {
            dtype: args.dtype.or(stopping.dtype),
            tolerance: args.tolerance.or(stopping.tolerance),
            max_sweeps: args.max_sweeps.or(stopping.max_sweeps),
            norm: args.norm.or(stopping.norm),
        },
    ))
}

/// Arguments that belong together.
#[derive(Clone, Copy)]
enum Group {
    Line,
    Plane,
    Fill,
}

fn refuse(args: &SolveArgs, groups: &[Group]) -> Result<(), ProblemError> {
    for group in groups {
        let given: &[(&'static str, bool)] = &match group {
            Group::Line => [
                ("--points", args.points.is_some()),
                ("--left", args.left.is_some()),
                ("--right", args.right.is_some()),
                ("", false),
            ],
            Group::Plane => [
                ("--nx", args.nx.is_some()),
                ("--ny", args.ny.is_some()),
                ("--preset", args.preset.is_some()),
                ("--boundary", !args.boundary.is_empty()),
            ],
            Group::Fill => [
                ("--values", args.values.is_some()),
                ("--known", args.known.is_some()),
                ("", false),
                ("", false),
            ],
        };
        if let Some((argument, _)) = given.iter().find(|(_, given)| *given) {
            return Err(ProblemError::NotApplicable {
                argument,
                problem: args.problem.clone(),
            });
        }
    }
    Ok(())
}

fn plane(args: &SolveArgs) -> Result<Plane, ProblemError> {
    let zero = || Boundary::Fixed(Values::Constant(0.0));
    let mut plane = Plane {
        nx: args.nx.unwrap_or(defaults::PLANE_SIDE),
        ny: args.ny.unwrap_or(defaults::PLANE_SIDE),
        spacing: None,
        left: zero(),
        right: zero(),
        top: zero(),
        bottom: zero(),
        initial: None,
        source: None,
        fixed: None,
    };
    if args.boundary.is_empty() {
        let arches = |text| Formula::parse(text).map(|f| Boundary::Fixed(Values::Formula(f)));
        plane.top = arches("sin(pi*x)").expect("a formula of ours");
        // Subtracted, for a corner of +0: the field's hash has the sign of a zero in it.
        plane.right = arches("0 - sin(2*pi*y)").expect("a formula of ours");
    }
    let mut named = Vec::new();
    for side in &args.boundary {
        if named.contains(&side.side) {
            return Err(ProblemError::TwiceBoundary(side.side.name()));
        }
        named.push(side.side);
        let place = match side.side {
            Side::Left => &mut plane.left,
            Side::Right => &mut plane.right,
            Side::Top => &mut plane.top,
            Side::Bottom => &mut plane.bottom,
        };
        *place = side.boundary.clone();
    }
    Ok(plane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use crosswarp::solve::Norm;

    fn problem(line: &str) -> Result<(Problem, Stopping), ProblemError> {
        let words = ["crosswarp", "solve"].into_iter().chain(line.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Solve(args) => from_args(&args),
            _ => unreachable!("the first word is solve"),
        }
    }

    #[test]
    fn the_seed_problem_is_the_default() {
        let (found, _) = problem("laplace1d").unwrap();
        assert!(matches!(
            found,
            Problem::Line(Line {
                points: 4_194_304,
                left: 5.0,
                right: 10.0
            })
        ));
        assert_eq!(found.defaults().tolerance, 1e-4);
    }

    #[test]
    fn arguments_of_other_problems_are_refused() {
        for (line, expected) in [
            ("laplace1d --nx 5", "--nx does not apply to laplace1d"),
            (
                "laplace2d --points 5",
                "--points does not apply to laplace2d",
            ),
            ("fill --boundary top=1", "--boundary does not apply to fill"),
            ("x.toml --known a", "--known does not apply to x.toml"),
            ("fill --values a", "fill needs --known FILE"),
            (
                "laplace3d",
                "'laplace3d' is not a problem; laplace1d, laplace2d, fill and FILE.toml are",
            ),
            (
                "laplace2d --boundary top=1 --boundary top=2",
                "the top boundary is given twice",
            ),
        ] {
            assert_eq!(problem(line).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn named_sides_replace_the_default_arches() {
        let (Problem::Plane(plane), stopping) =
            problem("laplace2d --boundary left=1 --norm l2").unwrap()
        else {
            panic!()
        };
        assert!(matches!(plane.left, Boundary::Fixed(Values::Constant(v)) if v == 1.0));
        assert!(matches!(plane.top, Boundary::Fixed(Values::Constant(v)) if v == 0.0));
        assert_eq!(stopping.norm, Some(Norm::L2));
    }
}

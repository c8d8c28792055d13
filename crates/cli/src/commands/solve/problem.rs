//! The problem that the command line names.

use std::path::Path;

use crosswarp::solve::{CheckpointKind, checkpoint_kind};

use crate::args::solve::{Preset, SolveArgs};
use crate::defaults;
use crate::input::boundary::{Boundary, Side, SideBoundary, Values};
use crate::input::formula::Formula;
use crate::input::numerics::FieldType;
use crate::input::spacing::{Distances, Spacing};
use crate::input::stopping::{MethodName, Rim, StopRule};
use crate::problem::file::{self, ProblemFileError};
use crate::problem::method::{
    COUNTED, CYCLES, Contradiction, Given, Method, RESIDUALS, Refusal, STEPS, SWEEPS, Tied, either,
};
use crate::problem::{Line, Plane, Problem, Space};

/// Why the command line does not make a problem.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// Not a problem's name.
    #[error("'{0}' is not a problem; laplace1d, laplace2d, laplace3d, fill and FILE.toml are")]
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
    /// A side that a plane does not have.
    #[error("the {0} side is one of laplace3d; laplace2d has left, right, top and bottom")]
    NoSuchSide(&'static str),
    /// Another number of distances.
    #[error("--spacing {0}")]
    Distances(&'static str),
    /// Options that do not go together.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The problem file.
    #[error(transparent)]
    File(#[from] ProblemFileError),
}

/// A problem, and how it is to be solved.
#[derive(Debug)]
pub struct Asked {
    /// What to solve.
    pub problem: Problem,
    /// Number type of the field, if it was said.
    pub dtype: Option<FieldType>,
    /// How.
    pub method: Method,
    /// Whether an incompatible source is made compatible.
    pub project_source: bool,
}

/// The problem that the command line names, and how it is to be solved; flags win over a file.
pub fn from_args(args: &SolveArgs) -> Result<Asked, ProblemError> {
    let mut by_file = Given::default();
    let problem = match args.problem.as_str() {
        "laplace1d" => {
            refuse(
                args,
                &[
                    Group::Grid,
                    Group::Projected,
                    Group::Plane,
                    Group::Space,
                    Group::Fill,
                ],
            )?;
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
            refuse(args, &[Group::Line, Group::Space, Group::Fill])?;
            match args.preset {
                Some(Preset::Nvidia) => Problem::Nvidia {
                    nx: args.nx.unwrap_or(defaults::PRESET_SIDE),
                    ny: args.ny.unwrap_or(defaults::PRESET_SIDE),
                },
                None => Problem::Plane(Box::new(plane(args)?)),
            }
        }
        "laplace3d" => {
            refuse(args, &[Group::Line, Group::Plane, Group::Fill])?;
            Problem::Space(Box::new(space(args)?))
        }
        "fill" => {
            let others = [
                Group::Line,
                Group::Grid,
                Group::Projected,
                Group::Plane,
                Group::Space,
            ];
            refuse(args, &others)?;
            let values = args
                .values
                .clone()
                .ok_or(ProblemError::Missing("--values"))?;
            Problem::Fill {
                values,
                known: args.known.clone(),
                nodata: args.nodata,
                rim: args.rim,
            }
        }
        path if Path::new(path).extension().is_some_and(|e| e == "toml") => {
            let mut others = vec![Group::Line, Group::Grid, Group::Plane, Group::Fill];
            if args.nz.is_some() {
                others.push(Group::Space);
            }
            refuse(args, &others)?;
            let (problem, given) = file::read(Path::new(path))?;
            // Something is known of a fill.
            if matches!(problem, Problem::Fill { .. }) {
                refuse(args, &[Group::Projected])?;
            }
            // What is drawn of a box is not said in its file.
            if !matches!(problem, Problem::Space(_)) {
                refuse(args, &[Group::Space])?;
            }
            by_file = given;
            problem
        }
        other => return Err(ProblemError::Unknown(other.to_owned())),
    };
    let by_line = given(args)?;
    let method = Method::decide(&problem, &by_line, &by_file).map_err(|refusal| match refusal {
        Refusal::Line(contradiction) => ProblemError::Contradiction(contradiction),
        Refusal::File(contradiction) => ProblemError::File(ProblemFileError::Contradiction {
            path: (&args.problem).into(),
            contradiction,
        }),
    })?;
    Ok(Asked {
        problem,
        dtype: by_line.dtype.or(by_file.dtype),
        project_source: by_line.project_source || by_file.project_source,
        method,
    })
}

/// What the command line says of method and stopping.
fn given(args: &SolveArgs) -> Result<Given, Contradiction> {
    let (mut residual, mut change, mut sweeps) = (None, None, None);
    for &rule in &args.stop {
        let (name, twice) = match rule {
            StopRule::Residual(limit) => ("--stop residual", residual.replace(limit).is_some()),
            StopRule::Change(limit) => ("--stop change", change.replace(limit).is_some()),
            StopRule::Sweeps(limit) => ("--stop sweeps", sweeps.replace(limit).is_some()),
        };
        if twice {
            return Err(Contradiction::Repeated(name));
        }
    }
    let relative = args.relative_tolerance;
    // A file that is no checkpoint is refused when it is read.
    let kind = args.resume.as_deref().map(checkpoint_kind);
    let resumed = kind.and_then(Result::ok);
    let of_resumed = match resumed {
        None | Some(CheckpointKind::Sweeps) => SWEEPS,
        Some(CheckpointKind::Cycles) => CYCLES,
        Some(CheckpointKind::Chebyshev | CheckpointKind::Gradients) => STEPS,
    };
    let said = args.method.filter(|&method| method != MethodName::Auto);
    let method = said.or(match resumed {
        Some(CheckpointKind::Chebyshev) => Some(MethodName::Chebyshev),
        Some(CheckpointKind::Gradients) => Some(MethodName::Cg),
        _ => args.method,
    });
    let tied = Tied::of(&[
        ("--tolerance", args.tolerance.is_some(), SWEEPS),
        ("--stop change", change.is_some(), SWEEPS),
        ("--max-sweeps", args.max_sweeps.is_some(), COUNTED),
        ("--stop sweeps", sweeps.is_some(), COUNTED),
        ("--norm", args.norm.is_some(), SWEEPS),
        ("--resume", resumed.is_some(), of_resumed),
        ("--sweeps-per-pass", args.sweeps_per_pass.is_some(), SWEEPS),
        ("--strategy", args.strategy.is_some(), SWEEPS),
        ("--relative-tolerance", relative.is_some(), RESIDUALS),
        ("--stop residual", residual.is_some(), RESIDUALS),
        ("--max-cycles", args.max_cycles.is_some(), CYCLES),
        ("--smooth", args.smooth.is_some(), CYCLES),
        ("--cycle", args.cycle.is_some(), CYCLES),
        ("--coefficient", args.coefficient.is_some(), RESIDUALS),
        ("--reaction", args.reaction.is_some(), RESIDUALS),
        ("--project-source", args.project_source, RESIDUALS),
        (
            "--spacing",
            args.spacing
                .and_then(Distances::of_plane)
                .is_some_and(Spacing::differ),
            RESIDUALS,
        ),
        ("--rim natural", args.rim == Some(Rim::Natural), RESIDUALS),
    ]);
    Ok(Given {
        dtype: args.dtype,
        method,
        tolerance: either(("--tolerance", args.tolerance), ("--stop change", change))?,
        max_sweeps: either(("--max-sweeps", args.max_sweeps), ("--stop sweeps", sweeps))?,
        norm: args.norm,
        residual: either(
            ("--relative-tolerance", relative),
            ("--stop residual", residual),
        )?,
        max_cycles: args.max_cycles,
        smooth: args.smooth,
        cycle: args.cycle,
        project_source: args.project_source,
        tied,
    })
}

/// Arguments that belong together.
#[derive(Clone, Copy)]
enum Group {
    Line,
    /// Of planes and boxes.
    Grid,
    /// Of the same, and of their files.
    Projected,
    Plane,
    Space,
    Fill,
}

fn refuse(args: &SolveArgs, groups: &[Group]) -> Result<(), ProblemError> {
    for group in groups {
        let given: &[(&'static str, bool)] = match group {
            Group::Line => &[
                ("--points", args.points.is_some()),
                ("--left", args.left.is_some()),
                ("--right", args.right.is_some()),
            ],
            Group::Grid => &[
                ("--nx", args.nx.is_some()),
                ("--ny", args.ny.is_some()),
                ("--boundary", !args.boundary.is_empty()),
                ("--spacing", args.spacing.is_some()),
                ("--source", args.source.is_some()),
                ("--coefficient", args.coefficient.is_some()),
                ("--reaction", args.reaction.is_some()),
            ],
            Group::Projected => &[("--project-source", args.project_source)],
            Group::Space => &[
                ("--nz", args.nz.is_some()),
                ("--slice", args.slice.is_some()),
            ],
            Group::Plane => &[("--preset", args.preset.is_some())],
            Group::Fill => &[
                ("--values", args.values.is_some()),
                ("--known", args.known.is_some()),
                ("--nodata", args.nodata.is_some()),
                ("--rim", args.rim.is_some()),
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

fn zero() -> Boundary {
    Boundary::Fixed(Values::Constant(0.0))
}

fn arches(text: &str) -> Boundary {
    Boundary::Fixed(Values::Formula(
        Formula::parse(text).expect("a formula of ours"),
    ))
}

/// The boundaries that are given, each side at most once.
fn sides(args: &SolveArgs) -> Result<&[SideBoundary], ProblemError> {
    for (at, one) in args.boundary.iter().enumerate() {
        if args.boundary[..at]
            .iter()
            .any(|before| before.side == one.side)
        {
            return Err(ProblemError::TwiceBoundary(one.side.name()));
        }
    }
    Ok(&args.boundary)
}

fn space(args: &SolveArgs) -> Result<Space, ProblemError> {
    let spacing = args.spacing.map(|given| {
        let of_box = given.of_box();
        of_box.ok_or(ProblemError::Distances(
            "HX,HY is of a plane; laplace3d needs H or HX,HY,HZ",
        ))
    });
    let size = [args.nx, args.ny, args.nz].map(|n| n.unwrap_or(defaults::BOX_SIDE));
    let mut space = Space {
        size,
        spacing: spacing.transpose()?,
        sides: [(); 3].map(|()| [(); 2].map(|()| zero())),
        initial: None,
        source: args.source.clone(),
        coefficient: args.coefficient.clone(),
        reaction: args.reaction.clone(),
        fixed: None,
    };
    if args.boundary.is_empty() && args.source.is_none() {
        space.sides[2][0] = arches("sin(pi*x)*sin(pi*y)");
    }
    for side in sides(args)? {
        let (axis, end) = match side.side {
            Side::Left => (0, 0),
            Side::Right => (0, 1),
            Side::Top => (1, 0),
            Side::Bottom => (1, 1),
            Side::Front => (2, 0),
            Side::Back => (2, 1),
        };
        space.sides[axis][end] = side.boundary.clone();
    }
    Ok(space)
}

fn plane(args: &SolveArgs) -> Result<Plane, ProblemError> {
    let spacing = args.spacing.map(|given| {
        let of_plane = given.of_plane();
        of_plane.ok_or(ProblemError::Distances(
            "HX,HY,HZ is of a box; laplace2d needs H or HX,HY",
        ))
    });
    let mut plane = Plane {
        nx: args.nx.unwrap_or(defaults::PLANE_SIDE),
        ny: args.ny.unwrap_or(defaults::PLANE_SIDE),
        spacing: spacing.transpose()?,
        left: zero(),
        right: zero(),
        top: zero(),
        bottom: zero(),
        initial: None,
        source: args.source.clone(),
        coefficient: args.coefficient.clone(),
        reaction: args.reaction.clone(),
        fixed: None,
    };
    if args.boundary.is_empty() {
        plane.top = arches("sin(pi*x)");
        // Subtracted, for a corner of +0: the field's hash has the sign of a zero in it.
        plane.right = arches("0 - sin(2*pi*y)");
    }
    for side in sides(args)? {
        let place = match side.side {
            Side::Left => &mut plane.left,
            Side::Right => &mut plane.right,
            Side::Top => &mut plane.top,
            Side::Bottom => &mut plane.bottom,
            other => return Err(ProblemError::NoSuchSide(other.name())),
        };
        *place = side.boundary.clone();
    }
    Ok(plane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::input::stopping::CycleName;
    use crate::problem::method::Outer;
    use clap::Parser;
    use crosswarp::solve::Norm;

    fn problem(line: &str) -> Result<Asked, ProblemError> {
        let words = ["crosswarp", "solve"].into_iter().chain(line.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Solve(args) => from_args(&args),
            _ => unreachable!("the first word is solve"),
        }
    }

    #[test]
    fn the_seed_problem_is_the_default() {
        let found = problem("laplace1d").unwrap();
        assert!(matches!(
            found.problem,
            Problem::Line(Line {
                points: 4_194_304,
                left: 5.0,
                right: 10.0
            })
        ));
        assert_eq!(
            found.method,
            Method::Jacobi {
                tolerance: 1e-4,
                max_sweeps: 1_000_000,
                norm: Norm::Rms
            }
        );
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
            ("fill --known a", "fill needs --values FILE"),
            (
                "laplace2d --rim natural",
                "--rim does not apply to laplace2d",
            ),
            (
                "laplace4d",
                "'laplace4d' is not a problem; laplace1d, laplace2d, laplace3d, fill and FILE.toml are",
            ),
            ("laplace2d --nz 5", "--nz does not apply to laplace2d"),
            (
                "laplace2d --png f --slice z=1",
                "--slice does not apply to laplace2d",
            ),
            (
                "fill --values a --coefficient 2",
                "--coefficient does not apply to fill",
            ),
            (
                "laplace2d --boundary front=1",
                "the front side is one of laplace3d; laplace2d has left, right, top and bottom",
            ),
            (
                "laplace2d --spacing 1,2,3",
                "--spacing HX,HY,HZ is of a box; laplace2d needs H or HX,HY",
            ),
            (
                "laplace3d --spacing 1,2",
                "--spacing HX,HY is of a plane; laplace3d needs H or HX,HY,HZ",
            ),
            (
                "laplace3d --boundary back=1 --boundary back=2",
                "the back boundary is given twice",
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
        let asked = problem("laplace2d --boundary left=1").unwrap();
        let Problem::Plane(plane) = asked.problem else {
            panic!()
        };
        assert!(matches!(plane.left, Boundary::Fixed(Values::Constant(v)) if v == 1.0));
        assert!(matches!(plane.top, Boundary::Fixed(Values::Constant(v)) if v == 0.0));
    }

    #[test]
    fn the_options_decide_on_the_method() {
        for (line, method) in [
            ("laplace1d", "jacobi"),
            ("laplace2d", "mg"),
            ("laplace2d --preset nvidia", "jacobi"),
            ("laplace2d --preset nvidia --method mg", "mg"),
            ("fill --values a", "mg"),
            ("fill --values a --rim interpolated", "mg"),
            ("fill --values a --tolerance 1e-4", "jacobi"),
            ("laplace2d --method jacobi", "jacobi"),
            ("laplace2d --method auto --norm l2", "jacobi"),
            ("laplace2d --stop change=1e-3 --stop sweeps=7", "jacobi"),
            ("laplace2d --max-sweeps 5", "jacobi"),
            ("laplace2d --checkpoint c", "mg"),
            ("laplace2d --sweeps-per-pass 3", "jacobi"),
            ("laplace2d --strategy sweep", "jacobi"),
            ("laplace2d --backend cuda", "mg"),
            ("laplace2d --preset nvidia --backend cuda", "jacobi"),
            ("laplace2d --tolerance 1 --backend cuda", "jacobi"),
            ("laplace3d --backend cuda", "mg"),
            ("fill --values a --backend cuda", "mg"),
            ("laplace1d --device 0", "jacobi"),
            ("laplace2d --backend cpu", "mg"),
            ("laplace2d --device 0", "mg"),
            ("laplace2d --method mg --backend cuda", "mg"),
            ("laplace3d --method mg --backend cuda", "mg"),
            ("laplace2d --method mgcg --backend cuda", "mgcg"),
            ("laplace2d --method cg --backend cuda", "cg"),
            ("laplace3d --method chebyshev --device 0", "chebyshev"),
            ("laplace3d --method mg --device 0", "mg"),
            ("laplace2d --method mg --device 0", "mg"),
            ("laplace2d --method cg", "cg"),
            ("laplace3d --method cg", "cg"),
            ("laplace3d --method mgcg", "mgcg"),
            ("laplace3d --method chebyshev --max-sweeps 7", "chebyshev"),
            (
                "laplace2d --method chebyshev --stop residual=1 --max-sweeps 7 --reaction 1",
                "chebyshev",
            ),
            ("laplace2d --smooth 1,1", "mg"),
            ("laplace2d --cycle v", "mg"),
            ("laplace2d --coefficient 1+x", "mg"),
            ("laplace2d --spacing 1,2", "mg"),
            ("laplace2d --spacing 1,1 --tolerance 1", "jacobi"),
        ] {
            assert_eq!(problem(line).unwrap().method.name(), method, "{line}");
        }
    }

    #[test]
    fn options_of_two_methods_are_refused() {
        for (line, expected) in [
            (
                "laplace2d --method mg --stop change=1e-4",
                "--stop change belongs to Jacobi sweeps: it does not go with --method mg",
            ),
            (
                "laplace2d --method jacobi --stop residual=1e-4",
                "--stop residual belongs to multigrid: it does not go with --method jacobi",
            ),
            (
                "laplace2d --method chebyshev --max-cycles 3",
                "--max-cycles belongs to multigrid: it does not go with --method chebyshev",
            ),
            (
                "laplace1d --method cg",
                "laplace1d is solved by Jacobi sweeps: it does not go with --method cg",
            ),
            (
                "laplace3d --method jacobi",
                "laplace3d is not solved by sweeps of Jacobi: it does not go with --method jacobi",
            ),
            (
                "laplace2d --norm l2 --smooth 2,2",
                "--norm belongs to Jacobi sweeps and --smooth to multigrid: they do not go together",
            ),
            (
                "laplace2d --tolerance 1 --spacing 1,2",
                "--tolerance belongs to Jacobi sweeps and --spacing to multigrid: they do not go together",
            ),
            (
                "fill --values a --rim natural --method jacobi",
                "--rim natural belongs to multigrid: it does not go with --method jacobi",
            ),
            (
                "laplace1d --method mg",
                "laplace1d is solved by Jacobi sweeps: it does not go with --method mg",
            ),
            (
                "laplace3d --tolerance 1e-4",
                "laplace3d is not solved by sweeps of Jacobi: it does not go with --tolerance",
            ),
            (
                "laplace1d --max-cycles 3",
                "laplace1d is solved by Jacobi sweeps: it does not go with --max-cycles",
            ),
            (
                "laplace2d --tolerance 1 --stop change=1",
                "--tolerance and --stop change are the same limit: give one of them",
            ),
            (
                "laplace2d --stop residual=1 --stop residual=2",
                "--stop residual is given twice",
            ),
        ] {
            assert_eq!(problem(line).unwrap_err().to_string(), expected, "{line}");
        }
    }

    #[test]
    fn what_the_command_line_decides_wins_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        let with = |keys: &str, options: &str| {
            std::fs::write(&path, format!("kind = 'fill'\nvalues = 'v.npy'\n{keys}")).unwrap();
            problem(&format!("{}{options}", path.display()))
        };
        let jacobi = |tolerance, max_sweeps| Method::Jacobi {
            tolerance,
            max_sweeps,
            norm: Norm::Rms,
        };
        let multigrid = |residual, max_cycles| Method::Multigrid {
            residual,
            stated: true,
            max_cycles,
            smooth: defaults::SMOOTHING,
            cycle: CycleName::F,
            outer: Outer::Automatic,
        };
        for (keys, options, method) in [
            ("tolerance = 0.5", "", jacobi(0.5, 1_000_000)),
            ("tolerance = 0.5", " --stop sweeps=3", jacobi(0.5, 3)),
            (
                "tolerance = 0.5",
                " --stop residual=0.1",
                multigrid(0.1, 100),
            ),
            ("stop = { residual = 0.2 }", "", multigrid(0.2, 100)),
            (
                "relative_tolerance = 0.2",
                " --max-cycles 7",
                multigrid(0.2, 7),
            ),
            (
                "method = 'mg'\nstop = { residual = 0.2 }",
                " --tolerance 0.3",
                jacobi(0.3, 1_000_000),
            ),
        ] {
            assert_eq!(
                with(keys, options).unwrap().method,
                method,
                "{keys}{options}"
            );
        }
        let error = with("method = 'mg'\ntolerance = 1", "")
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with(
                "p.toml: tolerance belongs to Jacobi sweeps: it does not go with method = \"mg\""
            ),
            "{error}"
        );
    }
}

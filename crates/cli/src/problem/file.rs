//! Problem files (TOML).
//!
//! `kind` names the problem; the other keys are those of the command line, and for a
//! plane also a source, an initial field, fixed cells and the spacing. Paths are taken
//! from the file's folder.

use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crosswarp::solve::Norm;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::input::boundary::{Boundary, Values};
use crate::input::files;
use crate::input::numerics::{self, FieldType};
use crate::input::spacing::{OfBox, OfPlane, Spacing};
use crate::input::stopping::{CycleName, MethodName, Rim, Smoothing};
use crate::problem::method::{
    COUNTED, CYCLES, Contradiction, Given, RESIDUALS, SWEEPS, Tied, either,
};
use crate::problem::{Fixed, Line, Plane, Problem, Space};

/// A problem file that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum ProblemFileError {
    /// It cannot be read.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is not a problem.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Keys that do not go together.
    #[error("{}: {contradiction}", path.display())]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        contradiction: Contradiction,
    },
}

#[derive(Deserialize)]
struct Head {
    kind: Kind,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Laplace1d,
    Laplace2d,
    Laplace3d,
    Fill,
}

/// A table of a problem: its own keys, and those of every problem (serde cannot both flatten and refuse unknown keys).
macro_rules! problem_table {
    ($name:ident { $($key:ident: $type:ty,)* }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            #[serde(rename = "kind")]
            _kind: Kind,
            $($key: $type,)*
            dtype: Option<FieldType>,
            method: Option<MethodName>,
            #[serde(default)]
            stop: StopTable,
            tolerance: Option<f64>,
            max_sweeps: Option<u64>,
            #[serde(default, deserialize_with = "numerics::norm")]
            norm: Option<Norm>,
            relative_tolerance: Option<f64>,
            max_cycles: Option<NonZeroU64>,
            smooth: Option<Smoothing>,
            cycle: Option<CycleName>,
        }

        impl $name {
            fn given(&self) -> Result<Given, Contradiction> {
                let Self { dtype, method, tolerance, max_sweeps, norm, smooth, cycle, .. } = *self;
                let StopTable { residual, change, sweeps } = self.stop;
                let relative = self.relative_tolerance;
                Ok(Given {
                    dtype,
                    method,
                    tolerance: either(("tolerance", tolerance), ("stop.change", change))?,
                    max_sweeps: either(("max_sweeps", max_sweeps), ("stop.sweeps", sweeps))?,
                    norm,
                    residual: either(("relative_tolerance", relative), ("stop.residual", residual))?,
                    max_cycles: self.max_cycles.map(NonZeroU64::get),
                    smooth,
                    cycle,
                    project_source: false,
                    tied: Tied::of(&[
                        ("tolerance", tolerance.is_some(), SWEEPS),
                        ("stop.change", change.is_some(), SWEEPS),
                        ("max_sweeps", max_sweeps.is_some(), COUNTED),
                        ("stop.sweeps", sweeps.is_some(), COUNTED),
                        ("norm", norm.is_some(), SWEEPS),
                        ("relative_tolerance", relative.is_some(), RESIDUALS),
                        ("stop.residual", residual.is_some(), RESIDUALS),
                        ("max_cycles", self.max_cycles.is_some(), CYCLES),
                        ("smooth", smooth.is_some(), CYCLES),
                        ("cycle", cycle.is_some(), CYCLES),
                    ]),
                })
            }
        }
    };
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(deny_unknown_fields)]
struct StopTable {
    residual: Option<f64>,
    change: Option<f64>,
    sweeps: Option<u64>,
}

problem_table!(LineFile {
    points: usize,
    left: f64,
    right: f64,
});

problem_table!(PlaneFile {
    nx: usize,
    ny: usize,
    spacing: Option<OfPlane>,
    boundary: BoundaryTable,
    initial: Option<Values>,
    source: Option<Values>,
    coefficient: Option<Values>,
    reaction: Option<Values>,
    project_source: Option<bool>,
    fixed: Option<FixedTable>,
});

problem_table!(SpaceFile {
    nx: usize,
    ny: usize,
    nz: usize,
    spacing: Option<OfBox>,
    boundary: BoxTable,
    initial: Option<Values>,
    source: Option<Values>,
    coefficient: Option<Values>,
    reaction: Option<Values>,
    project_source: Option<bool>,
    fixed: Option<FixedTable>,
});

problem_table!(FillFile {
    values: PathBuf,
    known: Option<PathBuf>,
    nodata: Option<f64>,
    rim: Option<Rim>,
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundaryTable {
    left: Boundary,
    right: Boundary,
    top: Boundary,
    bottom: Boundary,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoxTable {
    left: Boundary,
    right: Boundary,
    top: Boundary,
    bottom: Boundary,
    front: Boundary,
    back: Boundary,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixedTable {
    mask: PathBuf,
    values: Values,
}

impl FixedTable {
    fn relative_to(self, folder: &Path) -> Fixed {
        Fixed {
            mask: folder.join(self.mask),
            values: self.values.relative_to(folder),
        }
    }
}

/// Reads a problem file: the problem, and what the file says of method and stopping.
///
/// # Errors
/// [`ProblemFileError`] with the line.
pub fn read(path: &Path) -> Result<(Problem, Given), ProblemFileError> {
    let text = files::read_text(path, files::PROBLEM).map_err(|source| ProblemFileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let parsed = parse(&text, folder).map_err(|error| ProblemFileError::Invalid {
        path: path.to_owned(),
        line: line_of(&text, error.span()),
        message: with_nearest(error.message().replace('\n', "; ")),
    });
    let (problem, given) = parsed?;
    match given {
        Ok(given) => Ok((problem, given)),
        Err(contradiction) => Err(ProblemFileError::Contradiction {
            path: path.to_owned(),
            contradiction,
        }),
    }
}

type Parsed = (Problem, Result<Given, Contradiction>);

fn parse(text: &str, folder: &Path) -> Result<Parsed, toml::de::Error> {
    fn whole<T: DeserializeOwned>(text: &str) -> Result<T, toml::de::Error> {
        toml::from_str(text)
    }
    Ok(match whole::<Head>(text)?.kind {
        Kind::Laplace1d => {
            let file: LineFile = whole(text)?;
            let given = file.given();
            let LineFile {
                points,
                left,
                right,
                ..
            } = file;
            let line = Line {
                points,
                left,
                right,
            };
            (Problem::Line(line), given)
        }
        Kind::Laplace2d => {
            let file: PlaneFile = whole(text)?;
            let mut given = file.given();
            if let Ok(given) = &mut given {
                let project = file.project_source == Some(true);
                given.project_source = project;
                given.tied.extend(Tied::of(&[
                    ("project_source", project, RESIDUALS),
                    ("coefficient", file.coefficient.is_some(), RESIDUALS),
                    ("reaction", file.reaction.is_some(), RESIDUALS),
                    (
                        "spacing",
                        distances(file.spacing).is_some_and(Spacing::differ),
                        RESIDUALS,
                    ),
                ]));
            }
            (Problem::Plane(Box::new(plane(file, folder))), given)
        }
        Kind::Laplace3d => {
            let file: SpaceFile = whole(text)?;
            let mut given = file.given();
            if let Ok(given) = &mut given {
                given.project_source = file.project_source == Some(true);
            }
            (Problem::Space(Box::new(space(file, folder))), given)
        }
        Kind::Fill => {
            let file: FillFile = whole(text)?;
            let mut given = file.given();
            if let Ok(given) = &mut given {
                given.tied.extend(Tied::of(&[(
                    "rim = \"natural\"",
                    file.rim == Some(Rim::Natural),
                    RESIDUALS,
                )]));
            }
            let problem = Problem::Fill {
                values: folder.join(file.values),
                known: file.known.map(|path| folder.join(path)),
                nodata: file.nodata,
                rim: file.rim,
            };
            (problem, given)
        }
    })
}

fn distances(given: Option<OfPlane>) -> Option<Spacing> {
    given.map(|OfPlane(spacing)| spacing)
}

fn space(file: SpaceFile, folder: &Path) -> Space {
    let side = |boundary: Boundary| boundary.relative_to(folder);
    let inside = |values: Option<Values>| values.map(|values| values.relative_to(folder));
    let BoxTable {
        left,
        right,
        top,
        bottom,
        front,
        back,
    } = file.boundary;
    Space {
        size: [file.nx, file.ny, file.nz],
        spacing: file.spacing.map(|OfBox(spacing)| spacing),
        sides: [[left, right], [top, bottom], [front, back]].map(|pair| pair.map(side)),
        initial: inside(file.initial),
        source: inside(file.source),
        coefficient: inside(file.coefficient),
        reaction: inside(file.reaction),
        fixed: file.fixed.map(|table| table.relative_to(folder)),
    }
}

fn plane(file: PlaneFile, folder: &Path) -> Plane {
    let side = |boundary: Boundary| boundary.relative_to(folder);
    let inside = |values: Option<Values>| values.map(|values| values.relative_to(folder));
    Plane {
        nx: file.nx,
        ny: file.ny,
        spacing: distances(file.spacing),
        left: side(file.boundary.left),
        right: side(file.boundary.right),
        top: side(file.boundary.top),
        bottom: side(file.boundary.bottom),
        initial: inside(file.initial),
        source: inside(file.source),
        coefficient: inside(file.coefficient),
        reaction: inside(file.reaction),
        fixed: file.fixed.map(|table| table.relative_to(folder)),
    }
}

/// A message of an unknown key or name, with the right one that is most like it, if one is.
fn with_nearest(message: String) -> String {
    // "unknown field `a`, expected one of `b`, `c`"
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = names.next().filter(|_| message.starts_with("unknown "));
    let nearest = unknown.and_then(|unknown| {
        let distances = names.map(|name| (distance(unknown, name), name));
        let nearest = distances.min()?;
        (3 * nearest.0 <= unknown.chars().count()).then_some(nearest.1)
    });
    match nearest {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message,
    }
}

/// How many letters must be changed, put in or taken out to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, letter) in from.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], done + 1);
        for (k, other) in to.iter().enumerate() {
            let changed = before + usize::from(letter != *other);
            before = row[k + 1];
            row[k + 1] = changed.min(before + 1).min(row[k] + 1);
        }
    }
    row[to.len()]
}

/// The line, from 1, where `span` begins.
fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start).min(text.len());
    1 + text.as_bytes()[..start]
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let error = read(file.path()).unwrap_err().to_string();
        error
            .strip_prefix(&file.path().display().to_string())
            .unwrap()
            .to_owned()
    }

    #[test]
    fn a_plane_with_everything() {
        let text = "kind = 'laplace2d'\nnx = 10\nny = 20\nspacing = 0.5\ninitial = 'x'\nsource = -2\n\
            tolerance = 1e-3\nmax_sweeps = 5\nnorm = 'l2'\ndtype = 'f64'\n\
            [boundary]\nleft = 'periodic'\nright = 'periodic'\ntop = 'sin(x)'\nbottom = 'b.npy'\n\
            [fixed]\nmask = 'm.npy'\nvalues = 1\n";
        let (problem, given) = parse(text, Path::new("/data")).unwrap();
        let given = given.unwrap();
        let Problem::Plane(plane) = problem else {
            panic!()
        };
        assert_eq!(
            (plane.nx, plane.ny, plane.spacing),
            (10, 20, Some(Spacing::same(0.5)))
        );
        assert!(matches!(plane.left, Boundary::Periodic));
        assert!(
            matches!(&plane.bottom, Boundary::Fixed(Values::File(p)) if p == Path::new("/data/b.npy"))
        );
        assert!(matches!(plane.source, Some(Values::Constant(v)) if v == -2.0));
        assert_eq!(plane.fixed.unwrap().mask, Path::new("/data/m.npy"));
        assert_eq!(given.max_sweeps, Some(5));
        assert_eq!(given.dtype, Some(FieldType::F64));
        assert_eq!(given.norm, Some(Norm::L2));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("nx = 3", ":1: missing field `kind`"),
            (
                "kind = 'heat'",
                ":1: unknown variant `heat`, expected one of `laplace1d`, `laplace2d`, `laplace3d`, `fill`",
            ),
            (
                "kind = 'laplace1d'\npoints = 5\nleft = 0\nright = 0\nnx = 3",
                ":5: unknown field `nx`, expected one of",
            ),
            (
                "kind = 'laplace1d'\npoints = 5\nleft = 0\nright = 0\nnorm = 'l1'",
                ":5: unknown variant `l1`, expected `l2` or `rms`",
            ),
            (
                "kind = 'laplace1d'\npoints = -5",
                ":2: invalid value: integer `-5`, expected usize",
            ),
            (
                "kind = 'fill'\nknown = 'v.npy'",
                ":1: missing field `values`",
            ),
            (
                "kind = 'fill'\nvalues = 'v.npy'\nmethod = 'sor'",
                ":3: unknown variant `sor`, expected one of `auto`, `jacobi`, `mg`",
            ),
            (
                "kind = 'fill'\nvalues = 'v.npy'\nstop = { error = 1 }",
                ":3: unknown field `error`, expected one of `residual`, `change`, `sweeps`",
            ),
            (
                "kind = 'fill'\nvalues = 'v.npy'\nmax_cycles = 0",
                ":3: invalid value: integer `0`, expected a nonzero u64",
            ),
            (
                "kind = 'fill'\nvalues = 'v.npy'\nstop = { change = 1e-3 }\ntolerance = 1",
                ": tolerance and stop.change are the same limit: give one of them",
            ),
            (
                "kind = 'fill'\nvalues = ",
                ":2: string values must be quoted",
            ),
            (
                "kind = 'laplace2d'\nnx = 3\nny = 3\n[boundary]\nleft = 1\nright = 'sin('\ntop = 1\nbottom = 1",
                ":6: formula 'sin('",
            ),
            (
                "kind = 'laplace2d'\nnx = 3\nny = 3\n[boundary]\nleft = 1\nright = inf\ntop = 1\nbottom = 1",
                ":6: inf is not a finite number",
            ),
            (
                "kind = 'laplace2d'\nnx = 3\nny = 3\n[boundary]\nleft = 1\nright = [1]\ntop = 1\nbottom = 1",
                ":6: expected a number, a formula, or the name of an NPY or TIFF file",
            ),
        ] {
            let got = message(text);
            assert!(
                got.starts_with(expected) && !got.contains('\n'),
                "{text:?}: {got}"
            );
        }
        let missing = read(Path::new("/nonexistent.toml"))
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("/nonexistent.toml: cannot read: No such file"),
            "{missing}"
        );
    }

    #[test]
    fn a_slip_of_the_pen_is_told() {
        for (text, ending) in [
            ("kind = 'fil'", "; did you mean `fill`?"),
            (
                "kind = 'fill'\nvalues = 'v.npy'\ntoleranse = 1",
                "; did you mean `tolerance`?",
            ),
            (
                "kind = 'fill'\nvalues = 'v.npy'\nstop = { residul = 1 }",
                "; did you mean `residual`?",
            ),
        ] {
            let got = message(text);
            assert!(got.ends_with(ending), "{got}");
        }
        assert!(!message("kind = 'heat'").contains("did you mean"));
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }

    #[test]
    fn the_examples_are_problems() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let files = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let files: Vec<_> = files
            .filter(|path| path.extension().is_some_and(|e| e == "toml"))
            .collect();
        assert!(files.len() >= 4);
        for file in files {
            read(&file).unwrap();
        }
    }
}

//! The arguments of `crosswarp solve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use crosswarp::solve::{Norm, Strategy};

use super::backend::BackendArgs;
use crate::defaults::{self, by_problem};
use crate::drawing::look::Look;
use crate::input::boundary::{SideBoundary, Values};
use crate::input::choice::{name_of, one_of};
use crate::input::numerics::{FieldType, NORMS};
use crate::input::slice::Slice;
use crate::input::spacing::Distances;
use crate::input::stopping::{CycleName, MethodName, Rim, Smoothing, StopRule};

const SOLVE_AFTER: &str = "\
Problems:
  laplace1d  points between two fixed ends, zero inside
  laplace2d  a plane with a boundary on each side, zero inside
  laplace3d  a box with a boundary on each of its six sides, zero inside; by all but jacobi
  fill       unknown cells of a field solved from the known ones
  FILE.toml  any of these, with a source, an initial field, fixed cells (see examples/)

Methods:
  mg         cycles of multigrid, until the residual, relative to that of the first guess, is at
             most --stop residual=X: this is the solution
  mgcg       conjugate gradients with such a cycle in each step, until the same
  jacobi     Jacobi sweeps, until the norm of a sweep's change is at most
             --stop change=X; how far the solution still is, is estimated
  cg         conjugate gradients without cycles, and chebyshev, Chebyshev's iteration: planes and
             boxes, until the residual is as small as for mg, in sweeps that grow with the grid
  auto       jacobi for laplace1d, presets, and where an option of Jacobi sweeps is given
             (--tolerance, --max-sweeps, --norm, --sweeps-per-pass, --strategy, --resume of a
             checkpoint of sweeps); else mg, and mgcg where cycles are slow
All run on CPUs, or with --backend cuda on one GPU or --pes N, and give the same bits.

Boundaries (--boundary SIDE=KIND, SIDE one of left, right, top, bottom; of laplace3d also front
and back):
  top=1.5            a constant
  top='sin(pi*x)'    a formula: x = column * spacing, y = row * spacing, i = column, j = row;
                     row 0 is the top; of laplace3d also z = plane * spacing, k = plane,
                     plane 0 being the front
  top=profile.npy    one value a point; of laplace3d of shape (nz, ny) on the left and right,
                     (nz, nx) at the top and bottom, (ny, nx) in front and at the back
  top=neumann:0      the derivative outwards: a constant, a formula or an NPY file (laplace3d: a
                     constant); not by jacobi
  top=robin:1,0.5,x  1 u + 0.5 du/dn = x, du/dn outwards; each as for neumann; not by jacobi
  top=periodic       wraps around (then the opposite side too)

Formulas, in f64, of operators, functions, numbers (1e-4), pi, e and TAU; tightest first:
  ^                  a power, from the right: 2^3^2 is 2^(3^2); 2^-1 is 2^(-1)
  - +                signs: -x^2 is -(x^2), 2*-x is 2*(-x)
  * /   then   + -   from the left
  sqrt cbrt abs signum floor ceil round trunc fract exp ln (= log) log2 log10 sin cos tan asin
  acos atan sinh cosh tanh asinh acosh atanh; of two: atan2 hypot min max pow

Examples:
  crosswarp solve laplace1d --points 1000000 --left 5 --right 10 --tolerance 1e-5
  crosswarp solve laplace2d --nx 400 --ny 300 --boundary top='sin(pi*x)' --png field.png
  crosswarp solve laplace2d --boundary left=1 --boundary top=neumann:0 --stop residual=1e-10
  crosswarp solve laplace2d --coefficient 'exp(2*sin(9*x))' --source -1 --boundary top=0
  crosswarp solve laplace2d --preset nvidia --nx 1024 --ny 1024 --max-sweeps 1000 --json
  crosswarp solve laplace3d --nx 129 --ny 129 --nz 129 --source -1 -o u.npy --png middle.png
  crosswarp solve fill --values dem.npy --nodata -9999 -o filled.npy --png filled.png
  crosswarp solve fill --values dem.tif -o filled.tif
  crosswarp solve examples/heated_plate.toml --checkpoint plate.ckpt --checkpoint-every 5000";

/// Arguments of `solve`.
#[derive(Args, Debug)]
#[command(after_help = SOLVE_AFTER)]
pub struct SolveArgs {
    /// laplace1d, laplace2d, laplace3d, fill, or a problem file (FILE.toml)
    #[arg(value_name = "PROBLEM", value_hint = ValueHint::FilePath)]
    pub problem: String,

    /// Print a problem file of PROBLEM to start from, with every key, and do nothing else
    #[arg(long)]
    pub template: bool,

    #[arg(long, value_name = "N", help_heading = "laplace1d",
        help = format!("Number of points [default: {}]", defaults::POINTS))]
    pub points: Option<usize>,
    #[arg(
        long,
        value_name = "VALUE",
        allow_hyphen_values = true,
        help_heading = "laplace1d",
        help = format!("Value of the left end [default: {}]", defaults::LEFT)
    )]
    pub left: Option<f64>,
    #[arg(
        long,
        value_name = "VALUE",
        allow_hyphen_values = true,
        help_heading = "laplace1d",
        help = format!("Value of the right end [default: {}]", defaults::RIGHT)
    )]
    pub right: Option<f64>,

    #[arg(long, value_name = "N", help_heading = "laplace2d", help = plane_side("Columns"))]
    pub nx: Option<usize>,
    #[arg(long, value_name = "N", help_heading = "laplace2d", help = plane_side("Rows"))]
    pub ny: Option<usize>,
    #[arg(long, value_name = "N", help_heading = "laplace3d",
        help = format!("Planes, beside --nx and --ny [default of all: {}]", defaults::BOX_SIDE))]
    pub nz: Option<usize>,
    /// The plane that --png shows: x=, y= or z= a place, i=, j= or k= a number [default: the middle one of z]
    #[arg(
        long,
        value_name = "AXIS=VALUE",
        requires = "png",
        help_heading = "laplace3d"
    )]
    pub slice: Option<Slice>,
    /// A published problem instead of boundaries
    #[arg(
        long,
        value_enum,
        help_heading = "laplace2d",
        conflicts_with = "boundary"
    )]
    pub preset: Option<Preset>,
    /// Boundary of one side; sides not named are 0 [default: sine arches; laplace3d with --source: 0]
    #[arg(long, value_name = "SIDE=KIND", help_heading = "laplace2d")]
    pub boundary: Vec<SideBoundary>,
    /// f of div(kappa grad u) - c u = f: a constant, a formula or an NPY file [default: 0]
    #[arg(
        long,
        value_name = "VALUES",
        allow_hyphen_values = true,
        conflicts_with = "preset",
        help_heading = "laplace2d"
    )]
    pub source: Option<Values>,
    /// kappa, positive; not by jacobi [default: 1]
    #[arg(
        long,
        value_name = "VALUES",
        conflicts_with = "preset",
        help_heading = "laplace2d"
    )]
    pub coefficient: Option<Values>,
    /// c, not negative; not by jacobi [default: 0]
    #[arg(
        long,
        value_name = "VALUES",
        conflicts_with = "preset",
        help_heading = "laplace2d"
    )]
    pub reaction: Option<Values>,
    /// Where sources and derivatives must cancel: take what is left of them away from the source
    #[arg(long, conflicts_with = "preset", help_heading = "laplace2d")]
    pub project_source: bool,
    /// Distance of points; if that of rows is another, not by jacobi [default: the longest side is 1]
    #[arg(
        long,
        value_name = "H | HX,HY[,HZ]",
        conflicts_with = "preset",
        help_heading = "laplace2d"
    )]
    pub spacing: Option<Distances>,

    /// Field with unknown cells: NPY, GeoTIFF of one band, or greyscale PNG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "fill")]
    pub values: Option<PathBuf>,
    /// Which cells are known: NPY (u8, bool; not 0), GeoTIFF (not 0) or PNG (not black) [default: all but NaN]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "fill")]
    pub known: Option<PathBuf>,
    /// Cells of this value are unknown, as those of a GeoTIFF's void value are anyway
    #[arg(
        long,
        value_name = "VALUE",
        allow_hyphen_values = true,
        help_heading = "fill"
    )]
    pub nodata: Option<f64>,
    /// What holds at the rim of the grid [default: natural; jacobi: interpolated]
    #[arg(long, value_enum, help_heading = "fill")]
    pub rim: Option<Rim>,

    /// Number type of the field [default: f32; fill of f64, i32 or u32 values: f64]
    #[arg(long, value_enum, help_heading = "Method")]
    pub dtype: Option<FieldType>,
    /// What makes the field better step by step [default: auto]
    #[arg(long, value_enum, help_heading = "Method")]
    pub method: Option<MethodName>,
    #[arg(long, value_name = "KIND=VALUE", help_heading = "Method", help = format!(
        "When to stop: residual=X, change=X (as --tolerance) or sweeps=N (as --max-sweeps); can be \
         repeated [default: of all but jacobi residual={:e}]",
        defaults::RELATIVE_RESIDUAL
    ))]
    pub stop: Vec<StopRule>,
    /// As --stop residual=X
    #[arg(long, value_name = "X", help_heading = "Method")]
    pub relative_tolerance: Option<f64>,
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Method",
        help = format!("mg: end after this many cycles in any case [default: {}]", defaults::MAX_CYCLES))]
    pub max_cycles: Option<u64>,
    #[arg(long, value_name = "PRE,POST", help_heading = "Method", help = format!(
        "mg: relaxations of a level before and after its correction, 1 to 3 each [default: {},{}]",
        defaults::SMOOTHING.pre, defaults::SMOOTHING.post
    ))]
    pub smooth: Option<Smoothing>,
    /// mg: what the first cycle is [default: f]
    #[arg(long, value_enum, help_heading = "Method")]
    pub cycle: Option<CycleName>,
    #[arg(long, value_name = "NORM", help_heading = "Method", help = format!(
        "jacobi: stop when the norm of a sweep's change is at most this [default: {}]",
        by_problem(|of| of.tolerance, |tolerance| format!("{tolerance:e}"))
    ))]
    pub tolerance: Option<f64>,
    #[arg(long, value_name = "N", help_heading = "Method", help = format!(
        "jacobi, cg, chebyshev: end after this many sweeps in any case [default: {}]",
        by_problem(|of| of.max_sweeps, u64::to_string)
    ))]
    pub max_sweeps: Option<u64>,
    #[arg(long, value_parser = one_of(NORMS), help_heading = "Method", help = format!(
        "jacobi: norm of a sweep's change: l2 = sqrt(sum of squares), rms = l2 / sqrt(cells) [default: {}]",
        by_problem(|of| of.norm, |norm| name_of(NORMS, *norm).to_owned())
    ))]
    pub norm: Option<Norm>,
    /// Where and on how many PEs.
    #[command(flatten, next_help_heading = "Method")]
    pub backend: BackendArgs,
    /// How sweeps are launched on GPUs and halos exchanged: auto, sweep, host-exchange,
    /// device-put, persistent [default: auto]; the result is the same
    #[arg(long, value_name = "NAME", help_heading = "Method")]
    pub strategy: Option<Strategy>,
    /// Sweeps per pass through memory [default: chosen for the machine]; the result is the same
    #[arg(
        long,
        alias = "block",
        value_name = "T",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        help_heading = "Method"
    )]
    pub sweeps_per_pass: Option<u32>,

    /// Print one JSON object and nothing else
    #[arg(long, help_heading = "Outputs")]
    pub json: bool,
    /// Print nothing but what is wrong
    #[arg(short, long, conflicts_with_all = ["json", "report_every"], help_heading = "Outputs")]
    pub quiet: bool,
    /// Print the norm of every N-th sweep, or the residual of every N-th cycle [default: some twenty lines in all, each
    /// cycle]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Outputs")]
    pub report_every: Option<u64>,
    /// Write the field as NPY, or GeoTIFF (.tif) that lies where the values do; - is standard output, here and below
    #[arg(short, long, value_name = "FIELD", value_parser = super::pictures::field, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub output: Option<PathBuf>,
    /// Write a picture of the field, of a box one of a plane (--slice)
    #[arg(long, value_name = "PICTURE.png", value_parser = super::pictures::png, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub png: Option<PathBuf>,
    #[command(flatten)]
    pub look: Look,
    /// Write a log plot of the norms, or of the relative residuals
    #[arg(long, value_name = "PLOT.svg", value_parser = super::pictures::svg, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub plot: Option<PathBuf>,
    /// Write every sweep's norm, or every cycle's relative residual, as CSV, and have them in --json, too
    #[arg(long, value_name = "NORMS.csv", value_parser = super::pictures::csv, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub history: Option<PathBuf>,
    /// Write the field as VTK image data, for ParaView; row 0 is at the top, plane 0 in front
    #[arg(long, value_name = "FIELD.vti", value_parser = super::pictures::vti, value_hint = ValueHint::FilePath, help_heading = "Outputs")]
    pub vti: Option<PathBuf>,

    /// Also write the field (-o, --png, --vti) after every N sweeps or cycles, as NAME-000100.npy and so on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Outputs")]
    pub frames: Option<u64>,

    /// Keep a checkpoint in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Checkpoints")]
    pub checkpoint: Option<PathBuf>,
    #[arg(long, value_name = "K", requires = "checkpoint",
        value_parser = clap::value_parser!(u64).range(1..), help_heading = "Checkpoints",
        help = format!("Sweeps or cycles between checkpoints [default: {} sweeps, {} cycles]",
            defaults::CHECKPOINT_EVERY.sweeps, defaults::CHECKPOINT_EVERY.cycles))]
    pub checkpoint_every: Option<u64>,
    /// Go on from a checkpoint of the same problem
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Checkpoints")]
    pub resume: Option<PathBuf>,
}

/// The help of one side of a plane.
fn plane_side(what: &str) -> String {
    let (side, preset) = (defaults::PLANE_SIDE, defaults::PRESET_SIDE);
    format!("{what} [default: {side}; preset: {preset}]")
}

/// Published problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Preset {
    /// The Jacobi problem of NVIDIA's multi-gpu-programming-models
    Nvidia,
}

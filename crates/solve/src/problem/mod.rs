//! What is to be solved, checked once.

mod fill;
pub(crate) mod scale;
pub(crate) mod space;

use std::f64::consts::PI;
use std::ops::Range;
use std::sync::Arc;

use crate::element::Real;

/// Delivers one row of a grid: called with the row's number y and a slice of nx elements, all zero, to fill.
///
/// Every PE calls it for its own rows only, so a file can be read in parts. It must be a pure function of y.
pub type RowSource<T> = Arc<dyn Fn(usize, &mut [T]) + Send + Sync>;

/// How the differences of a sweep, new − old over all cells, become one number.
///
/// Differences are squared in the type of the field. Problems whose largest magnitude lies outside 2^−30 … 2^30 are
/// scaled by a power of two for that, so that squares do not overflow, and underflow only where a difference is below
/// 2^−63 (`f64`: 2^−511) of the largest magnitude; below 2^−74 (2^−537) it counts as none. Inside that range, read 1
/// for the largest magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// sqrt(Σ (new − old)²).
    L2,
    /// sqrt(Σ (new − old)² / N), N = all points of the grid, boundaries included.
    Rms,
}

impl Norm {
    /// The norm of a sweep whose squares sum to `sum` over a grid of `count` points.
    ///
    /// `sum` is the exact sum of the leaves rounded once to `f64`; division and root are one `f64` operation each, for
    /// `f32` fields too.
    pub(crate) fn of(self, sum: f64, count: usize) -> f64 {
        match self {
            Norm::L2 => sum.sqrt(),
            Norm::Rms => (sum / count as f64).sqrt(),
        }
        .abs()
    }
}

/// Laplace's equation on a line: `points` points, the first and the last fixed, the others zero at first.
///
/// A sweep is new = ½·(left + right) at all inner points.
#[derive(Clone, Copy, Debug)]
pub struct Problem1d<F> {
    /// Points N, ends included; at least 3.
    pub points: usize,
    /// Value of point 0.
    pub left: F,
    /// Value of point N − 1.
    pub right: F,
    /// The norm of a sweep.
    pub norm: Norm,
}

impl<F: Real> Problem1d<F> {
    /// Checks sizes and values.
    ///
    /// Errors: fewer than 3 points, an end that is not finite.
    pub fn check(&self) -> Result<(), ProblemError> {
        if self.points < 3 {
            return Err(ProblemError::TooFewPoints {
                points: self.points,
            });
        }
        if self.points > MAX_CELLS {
            return Err(ProblemError::TooLarge {
                nx: self.points,
                ny: 1,
            });
        }
        for (side, value) in [("left", self.left), ("right", self.right)] {
            let value = value.to_f64();
            if !value.is_finite() {
                return Err(ProblemError::Boundary {
                    side,
                    index: 0,
                    value,
                });
            }
        }
        Ok(())
    }
}

/// What holds on one side of a 2-D grid.
#[derive(Clone, Debug)]
pub enum Boundary<F> {
    /// The cells of the side keep these values: ny of them on the left and right (by y), nx on the top and bottom
    /// (by x). At a corner the left and right columns win.
    Fixed(Vec<F>),
    /// The derivative outwards, ∂u/∂n, at these cells; as many as for `Fixed`. The cells are unknown. Not for Jacobi
    /// sweeps.
    Neumann(Vec<F>),
    /// A mixed condition at these cells, which are unknown. Not for Jacobi sweeps.
    Robin(Robin<F>),
    /// The grid wraps around. The side's cells are ghosts: after every sweep they become copies of the cells next to
    /// the opposite side, first whole rows (row 0 of row ny − 2, row ny − 1 of row 1, their ends included), then
    /// whole columns likewise. The first sweep reads them as given by `initial`.
    Periodic,
}

/// a·u + b·∂u/∂n = g on a side, ∂u/∂n outwards; each as many as for [`Boundary::Fixed`]. b is not 0, and a/b is not
/// negative.
#[derive(Clone, Debug)]
pub struct Robin<F> {
    /// a.
    pub value: Vec<F>,
    /// b.
    pub derivative: Vec<F>,
    /// g.
    pub right: Vec<F>,
}

impl<F: Real> Robin<F> {
    /// a, b and g of a cell.
    pub(crate) fn at(&self, index: usize) -> [f64; 3] {
        [&self.value, &self.derivative, &self.right].map(|of| of[index].to_f64())
    }
}

/// Laplace's or Poisson's equation ∇²u = f on nx × ny points, the outermost ring being the boundary.
///
/// A sweep is new = ¼·(((right + left) + down) + up) at all inner cells that are not fixed, down being row y + 1; with
/// a source new = ¼·((((right + left) + down) + up) − h²f), h² and h²·f being rounded to `F` once.
///
/// With `coefficient` or `reaction`: ∇·(κ∇u) − cu = f, by finite volumes around the points; κ between two points is the
/// mean of theirs. Those, a `row_spacing` of its own and mixed conditions are not for Jacobi sweeps.
#[derive(Clone)]
pub struct Problem2d<F> {
    /// Columns; at least 3.
    pub nx: usize,
    /// Rows; at least 3.
    pub ny: usize,
    /// Column 0.
    pub left: Boundary<F>,
    /// Column nx − 1; periodic if and only if `left` is.
    pub right: Boundary<F>,
    /// Row 0.
    pub top: Boundary<F>,
    /// Row ny − 1; periodic if and only if `top` is.
    pub bottom: Boundary<F>,
    /// The field before the first sweep, and the values of fixed cells; zero if absent. Fixed sides overrule it.
    pub initial: Option<RowSource<F>>,
    /// Cells that keep their initial value: those whose byte is not 0.
    pub fixed: Option<RowSource<u8>>,
    /// f at every cell.
    pub source: Option<RowSource<F>>,
    /// κ at every cell, positive; 1 if absent.
    pub coefficient: Option<RowSource<F>>,
    /// c at every cell, not negative; 0 if absent.
    pub reaction: Option<RowSource<F>>,
    /// h, the distance of two points; matters only with a source, a derivative, or one of the above.
    pub spacing: f64,
    /// The distance of two rows, if it is another one.
    pub row_spacing: Option<f64>,
    /// The norm of a sweep.
    pub norm: Norm,
}

/// Cells above which index arithmetic is refused.
pub(crate) const MAX_CELLS: usize = 1 << 48;

impl<F: Real> Problem2d<F> {
    /// Laplace's equation with zero on all sides and inside: the start for setting single fields.
    pub fn laplace(nx: usize, ny: usize) -> Problem2d<F> {
        let zeros = |len| Boundary::Fixed(vec![F::ZERO; len]);
        Problem2d {
            nx,
            ny,
            left: zeros(ny),
            right: zeros(ny),
            top: zeros(nx),
            bottom: zeros(nx),
            initial: None,
            fixed: None,
            source: None,
            coefficient: None,
            reaction: None,
            spacing: 1.0,
            row_spacing: None,
            norm: Norm::Rms,
        }
    }

    /// The problem of NVIDIA's multi-gpu-programming-models: left and right columns sin(2π·y/(ny − 1)), everything else
    /// zero, periodic in y, norm not divided by the number of cells.
    ///
    /// The sine is computed in `f64` with π to full precision and rounded to `F` (NVIDIA's programs round π to `f32`
    /// first, which moves some boundary values by their last bits).
    pub fn nvidia(nx: usize, ny: usize) -> Problem2d<F> {
        let last = ny.saturating_sub(1).max(1) as f64;
        let wave: Vec<F> = (0..ny)
            .map(|y| F::from_f64((2.0 * PI * y as f64 / last).sin()))
            .collect();
        Problem2d {
            left: Boundary::Fixed(wave.clone()),
            right: Boundary::Fixed(wave),
            top: Boundary::Periodic,
            bottom: Boundary::Periodic,
            norm: Norm::L2,
            ..Problem2d::laplace(nx, ny)
        }
    }

    /// Whether the columns wrap around.
    pub(crate) fn wrap_x(&self) -> bool {
        matches!(self.left, Boundary::Periodic)
    }

    /// Whether the rows wrap around.
    pub(crate) fn wrap_y(&self) -> bool {
        matches!(self.top, Boundary::Periodic)
    }

    /// Checks everything but the rows that the sources deliver (those are checked as they are loaded).
    ///
    /// Errors: a size below 3, a profile of the wrong length or with a value that is not finite, a side that is
    /// periodic alone, a spacing that is not positive and finite.
    pub fn check(&self) -> Result<(), ProblemError> {
        let (nx, ny) = (self.nx, self.ny);
        if nx < 3 || ny < 3 {
            return Err(ProblemError::TooSmall { nx, ny });
        }
        if nx.checked_mul(ny).is_none_or(|cells| cells > MAX_CELLS) {
            return Err(ProblemError::TooLarge { nx, ny });
        }
        for (one, other, names) in [
            (&self.left, &self.right, ("left", "right")),
            (&self.top, &self.bottom, ("top", "bottom")),
        ] {
            match (one, other) {
                (Boundary::Periodic, Boundary::Periodic) => {}
                (Boundary::Periodic, _) => {
                    return Err(ProblemError::HalfPeriodic {
                        periodic: names.0,
                        fixed: names.1,
                    });
                }
                (_, Boundary::Periodic) => {
                    return Err(ProblemError::HalfPeriodic {
                        periodic: names.1,
                        fixed: names.0,
                    });
                }
                _ => {}
            }
        }
        for (side, boundary, expected) in [
            ("left", &self.left, ny),
            ("right", &self.right, ny),
            ("top", &self.top, nx),
            ("bottom", &self.bottom, nx),
        ] {
            let profiles = match boundary {
                Boundary::Fixed(profile) | Boundary::Neumann(profile) => vec![profile],
                Boundary::Robin(mixed) => vec![&mixed.value, &mixed.derivative, &mixed.right],
                Boundary::Periodic => continue,
            };
            for profile in profiles {
                if profile.len() != expected {
                    return Err(ProblemError::ProfileLength {
                        side,
                        length: profile.len(),
                        expected,
                    });
                }
                for (index, value) in profile.iter().enumerate() {
                    let value = value.to_f64();
                    if !value.is_finite() {
                        return Err(ProblemError::Boundary { side, index, value });
                    }
                }
            }
            if let Boundary::Robin(mixed) = boundary {
                for index in 0..expected {
                    let [a, b, _] = mixed.at(index);
                    if !(b != 0.0 && a / b >= 0.0 && (a / b).is_finite()) {
                        return Err(ProblemError::Robin { side, index, a, b });
                    }
                }
            }
        }
        for spacing in self.spacings() {
            let squared = F::from_f64(spacing * spacing).to_f64();
            if !(spacing > 0.0 && squared > 0.0 && squared.is_finite()) {
                return Err(ProblemError::Spacing { spacing });
            }
        }
        Ok(())
    }

    /// Whether Jacobi sweeps can be made.
    pub(crate) fn check_for_jacobi(&self) -> Result<(), ProblemError> {
        for (side, boundary) in [
            ("left", &self.left),
            ("right", &self.right),
            ("top", &self.top),
            ("bottom", &self.bottom),
        ] {
            if matches!(boundary, Boundary::Neumann(_) | Boundary::Robin(_)) {
                return Err(ProblemError::NotForJacobi { side });
            }
        }
        for (what, given) in [
            ("a coefficient", self.coefficient.is_some()),
            ("a term cu", self.reaction.is_some()),
            ("two spacings", self.spacings()[0] != self.spacings()[1]),
        ] {
            if given {
                return Err(ProblemError::OnlyMultigrid { what });
            }
        }
        Ok(())
    }

    /// The distances of two columns and of two rows.
    pub(crate) fn spacings(&self) -> [f64; 2] {
        [self.spacing, self.row_spacing.unwrap_or(self.spacing)]
    }

    /// Left, right, top, bottom.
    pub(crate) fn sides(&self) -> [&Boundary<F>; 4] {
        [&self.left, &self.right, &self.top, &self.bottom]
    }

    /// Whether the operator is something else than the five points with sides that are fixed, have a derivative, or wrap
    /// around.
    pub(crate) fn is_general(&self) -> bool {
        let [h_x, h_y] = self.spacings();
        self.coefficient.is_some()
            || self.reaction.is_some()
            || h_x != h_y
            || self
                .sides()
                .iter()
                .any(|side| matches!(side, Boundary::Robin(_)))
    }

    /// Row y of the field before the first sweep, sides included. `row` must be zero.
    pub(crate) fn initial_row(&self, y: usize, row: &mut [F]) {
        if let Some(initial) = &self.initial {
            initial(y, row);
        }
        for (side, at) in [(&self.top, 0), (&self.bottom, self.ny - 1)] {
            if let (Boundary::Fixed(profile), true) = (side, y == at) {
                row.copy_from_slice(profile);
            }
        }
        for (side, x) in [(&self.left, 0), (&self.right, self.nx - 1)] {
            if let Boundary::Fixed(profile) = side {
                row[x] = profile[y];
            }
        }
    }

    /// The cells a sweep may change.
    pub(crate) fn inner(&self) -> (Range<usize>, Range<usize>) {
        (1..self.nx - 1, 1..self.ny - 1)
    }
}

/// A problem that makes no sense, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProblemError {
    /// Fewer than three points on a line.
    #[error("{points} points: a line needs at least 3, two ends and one between")]
    TooFewPoints {
        /// The number given.
        points: usize,
    },
    /// A grid without inner cells.
    #[error("a grid of {nx} x {ny} points has no inner cell: both sizes must be at least 3")]
    TooSmall {
        /// Columns.
        nx: usize,
        /// Rows.
        ny: usize,
    },
    /// More cells than can be numbered.
    #[error("a grid of {nx} x {ny} points is too large")]
    TooLarge {
        /// Columns.
        nx: usize,
        /// Rows.
        ny: usize,
    },
    /// A box without inner points.
    #[error("a grid of {nx} x {ny} x {nz} points has no inner point: all sizes must be at least 3")]
    TooSmallBox {
        /// Points along x.
        nx: usize,
        /// Points along y.
        ny: usize,
        /// Points along z.
        nz: usize,
    },
    /// More points than can be numbered.
    #[error("a grid of {nx} x {ny} x {nz} points is too large")]
    TooLargeBox {
        /// Points along x.
        nx: usize,
        /// Points along y.
        ny: usize,
        /// Points along z.
        nz: usize,
    },
    /// A point's value, or its source times its volume, that is NaN or infinite; a coefficient that is not positive; a
    /// factor c of the term cu that is negative.
    #[error("the {what} at x = {x}, y = {y}, z = {z} (point numbers) is not {must}")]
    Point {
        /// value, source, coefficient or factor c.
        what: &'static str,
        /// What it must be.
        must: &'static str,
        /// Point along x.
        x: usize,
        /// Along y.
        y: usize,
        /// Along z.
        z: usize,
    },
    /// Only one of two opposite sides is periodic.
    #[error(
        "the {periodic} side is periodic but the {fixed} side is not: opposite sides wrap around together"
    )]
    HalfPeriodic {
        /// The periodic side.
        periodic: &'static str,
        /// The other.
        fixed: &'static str,
    },
    /// A profile that does not fit its side.
    #[error("the {side} boundary has {length} values, but that side has {expected} cells")]
    ProfileLength {
        /// Which side.
        side: &'static str,
        /// Values given.
        length: usize,
        /// Cells of the side.
        expected: usize,
    },
    /// A boundary value that is NaN or infinite.
    #[error("value {index} of the {side} boundary is {value}: boundary values must be finite")]
    Boundary {
        /// Which side.
        side: &'static str,
        /// Position along the side.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A spacing that is not a positive number, or whose square leaves the type's range.
    #[error("a grid spacing of {spacing}: it must be positive and finite, and so must its square")]
    Spacing {
        /// The spacing.
        spacing: f64,
    },
    /// An initial value, or a fixed cell's value, that is NaN or infinite.
    #[error("the value at column {x}, row {y} is not finite, or leaves the range of the type")]
    Value {
        /// Column.
        x: usize,
        /// Row.
        y: usize,
    },
    /// A source term that is NaN or infinite, or is so once multiplied by h².
    #[error(
        "the source term at column {x}, row {y} is not finite or leaves the range of the type times h²"
    )]
    Source {
        /// Column.
        x: usize,
        /// Row.
        y: usize,
    },
    /// A coefficient that is not a positive number.
    #[error("the coefficient at column {x}, row {y} is {value}: it must be positive and finite")]
    Coefficient {
        /// Column.
        x: usize,
        /// Row.
        y: usize,
        /// As given.
        value: f64,
    },
    /// A factor c of the term cu that is negative or not a number.
    #[error(
        "the factor of u at column {x}, row {y} is {value}: it must be finite and not negative"
    )]
    Reaction {
        /// Column.
        x: usize,
        /// Row.
        y: usize,
        /// As given.
        value: f64,
    },
    /// A mixed condition that ties the field to nothing, or the wrong way.
    #[error(
        "value {index} of the {side} boundary is {a} u + {b} du/dn: the second factor must not be 0, and \
         their ratio not negative"
    )]
    Robin {
        /// Which side.
        side: &'static str,
        /// Position along the side.
        index: usize,
        /// The factor of u.
        a: f64,
        /// The factor of the derivative.
        b: f64,
    },
    /// What only multigrid can have.
    #[error("Jacobi sweeps can not have {what}: take multigrid")]
    OnlyMultigrid {
        /// What.
        what: &'static str,
    },
    /// A side that the method can't have.
    #[error(
        "the {side} side has a derivative given, which Jacobi sweeps can't have: take multigrid"
    )]
    NotForJacobi {
        /// Which side.
        side: &'static str,
    },
    /// A problem that no field solves.
    #[error(
        "no field solves this: without any fixed value, sources and derivatives must cancel, and {relative:e} of them is left"
    )]
    Incompatible {
        /// Their sum, relative to the sum of their sizes.
        relative: f64,
    },
    /// Nothing that bounds the eigenvalues from below.
    #[error(
        "Chebyshev's iteration needs a fixed cell in every line along some axis that is to be solved: take conjugate gradients or multigrid"
    )]
    NoBound,
    /// A mask that leaves nothing to solve.
    #[error("the mask fixes every inner cell: there is nothing to solve")]
    NothingFree,
    /// A fill without any known cell.
    #[error("no cell of the grid is known: at least one must be")]
    NoKnownCell,
    /// A fill whose rim holds no known cell.
    #[error("no cell on the rim of the grid is known: at least one must be")]
    NothingKnown,
}

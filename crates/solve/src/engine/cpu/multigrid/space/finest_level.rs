//! What can be done on the finest level of a box without any other: residuals, their norms, products, and steps; as
//! `finest_level.rs` of planes.

use std::io;

use super::around::Around;
use super::level::Level;
use super::line::Line;
use super::operator::Operator;
use super::pass;
use super::points::Points;
use super::transfer::add_squares;
use crate::element::simd::{Isa, Work, on_unit};
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// Planes around its own that a PE needs of a field.
pub(crate) const DEPTH: usize = 1;

/// The finest level, made alone: of the operator of `lines`, or where there are `points` of theirs.
pub(crate) fn alone(lines: [Line; 3], shape: Shape, points: Option<Points>) -> io::Result<Level> {
    let mut operator = Operator::new(lines, shape);
    operator.points = points;
    Level::new(operator, None, 0)
}

/// What works on a level: the vector unit, and a plane to work in.
pub(crate) struct Workspace {
    isa: Isa,
    plane: Vec<f64>,
}

impl Workspace {
    /// For `level`.
    pub fn new(level: &Level) -> Workspace {
        Workspace {
            isa: Isa::widest(),
            plane: vec![0.0; level.operator.shape.x.len],
        }
    }

    /// The squares of the residual, and those of the field times the diagonal. Collective.
    pub fn measure(
        &mut self,
        level: &mut Level,
        rows: &mut LevelRows<'_>,
        [of_residual, of_field]: &mut [LeafSums; 2],
    ) -> Result<(), PeError> {
        level.update(rows)?;
        let Level {
            operator,
            u,
            right_side,
            ..
        } = level;
        residuals(
            self.isa,
            operator,
            u,
            Some(right_side),
            &mut self.plane,
            |z, residual| {
                add_squares(of_residual, operator, residual);
                add_field(of_field, operator, z, u.row(z));
            },
        );
        Ok(())
    }

    /// b − Au in the own planes of `out`. Collective.
    pub fn residual(
        &mut self,
        level: &mut Level,
        rows: &mut LevelRows<'_>,
        out: &mut Field<f64>,
    ) -> Result<(), PeError> {
        level.update(rows)?;
        let Level {
            operator,
            u,
            right_side,
            ..
        } = level;
        residuals(
            self.isa,
            operator,
            u,
            Some(right_side),
            &mut self.plane,
            |z, residual| {
                out.row_mut(z).copy_from_slice(residual);
            },
        );
        Ok(())
    }

    /// −Ap in the own planes of `out`, and −⟨p, Ap⟩ to `sum`. Collective.
    pub fn negative_product(
        &mut self,
        level: &Level,
        rows: &mut LevelRows<'_>,
        p: &mut Field<f64>,
        out: &mut Field<f64>,
        sum: &mut LeafSums,
    ) -> Result<(), PeError> {
        let operator = &level.operator;
        update(operator, rows, p)?;
        residuals(
            self.isa,
            operator,
            p,
            None,
            &mut self.plane,
            |z, residual| {
                add_products(sum, operator, p.row(z), residual);
                out.row_mut(z).copy_from_slice(residual);
            },
        );
        Ok(())
    }

    /// A step of Chebyshev's iteration: u += d, r = b − Au, d = `keep` d + `gain` D⁻¹r, in one pass through memory.
    ///
    /// The field has been [updated](Level::update) before the first step. `sums` are as of [`measure`](Self::measure).
    /// Collective.
    pub fn chebyshev_step(
        &mut self,
        level: &mut Level,
        rows: &mut LevelRows<'_>,
        d: &mut Field<f64>,
        [keep, gain]: [f64; 2],
        sums: &mut [LeafSums; 2],
    ) -> Result<(), PeError> {
        rows.halo(&level.operator.shape, d, DEPTH)?;
        let Level {
            operator,
            u,
            right_side,
            ..
        } = level;
        let work = ChebyshevStep {
            operator,
            right_side,
            plane: &mut self.plane,
            u,
            d,
            keep,
            gain,
            sums,
        };
        on_unit(self.isa, work);
        Ok(())
    }

    /// A step of conjugate gradients: u += `alpha` p, r += `alpha` q. `sums` are as of [`measure`](Self::measure).
    pub fn descend(
        &mut self,
        level: &mut Level,
        r: &mut Field<f64>,
        p: &Field<f64>,
        q: &Field<f64>,
        alpha: f64,
        sums: &mut [LeafSums; 2],
    ) {
        let Level { operator, u, .. } = level;
        let work = Descent {
            operator,
            u,
            r,
            p,
            q,
            alpha,
            sums,
        };
        on_unit(self.isa, work);
    }
}

impl Level {
    /// Σ (du)² over the own planes, d being the diagonal, of an operator of lines everywhere what it is inside.
    pub fn add_field(&self, sum: &mut LeafSums) {
        for z in self.operator.shape.own() {
            add_field(sum, &self.operator, z, self.u.row(z));
        }
    }

    /// A field beside that of the level, with so many planes around the own ones.
    pub fn field(&self, depth: usize) -> io::Result<Field<f64>> {
        let (own, depth) = (self.operator.shape.own(), depth as isize);
        Field::new(
            own.start - depth..own.end + depth,
            self.operator.shape.x.len,
        )
    }

    /// Makes the planes around the own ones of the field what they are where they are computed. Collective.
    pub fn update(&mut self, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        update(&self.operator, rows, &mut self.u)
    }

    /// ⟨a, b⟩, to `sum`.
    pub fn product(&self, a: &Field<f64>, b: &Field<f64>, sum: &mut LeafSums) {
        for z in self.operator.shape.own() {
            add_products(sum, &self.operator, a.row(z), b.row(z));
        }
    }
}

fn update(
    operator: &Operator,
    rows: &mut LevelRows<'_>,
    field: &mut Field<f64>,
) -> Result<(), PeError> {
    rows.halo(&operator.shape, field, DEPTH)?;
    for z in operator.shape.rows(DEPTH) {
        operator.beyond(field.row_mut(z));
    }
    Ok(())
}

/// Adds the squares of plane `z` of a field times the diagonal, of an operator of lines everywhere what it is inside.
#[inline(always)]
pub(super) fn add_field(sum: &mut LeafSums, operator: &Operator, z: isize, plane: &[f64]) {
    let (nx, stride) = (operator.lines[0].axis.len, operator.stride());
    let everywhere = operator.diagonal_inside();
    for y in 0..operator.lines[1].axis.len {
        let row = &plane[y * stride + 1..][..nx];
        match &operator.points {
            None => sum.add_row(y as isize, nx, |x| {
                let value = everywhere * row[x];
                value * value
            }),
            Some(points) => {
                let inverse = &points.inverse.row(z)[y * stride + 1..][..nx];
                sum.add_row(y as isize, nx, |x| {
                    let value = match inverse[x] {
                        0.0 => 0.0,
                        inverse => row[x] / inverse,
                    };
                    value * value
                });
            }
        }
    }
}

#[inline(always)]
fn add_products(sum: &mut LeafSums, operator: &Operator, a: &[f64], b: &[f64]) {
    let (nx, stride) = (operator.lines[0].axis.len, operator.stride());
    for y in 0..operator.lines[1].axis.len {
        let start = y * stride + 1;
        let (a, b) = (&a[start..][..nx], &b[start..][..nx]);
        sum.add_row(y as isize, nx, |x| a[x] * b[x]);
    }
}

/// Gives b − Au of the own planes to `take`; without a right side b is 0.
fn residuals(
    isa: Isa,
    operator: &Operator,
    u: &Field<f64>,
    right_side: Option<&Field<f64>>,
    plane: &mut [f64],
    take: impl FnMut(isize, &[f64]),
) {
    on_unit(
        isa,
        Residuals {
            operator,
            u,
            right_side,
            plane,
            take,
        },
    );
}

/// The planes around plane `z`.
#[inline(always)]
fn around<'a>(operator: &Operator, u: &'a Field<f64>, z: isize) -> Around<'a> {
    pass::around(u, operator.shape.y.neighbours(z), z)
}

struct Residuals<'a, T> {
    operator: &'a Operator,
    u: &'a Field<f64>,
    right_side: Option<&'a Field<f64>>,
    plane: &'a mut [f64],
    take: T,
}

impl<T: FnMut(isize, &[f64])> Work for Residuals<'_, T> {
    #[inline(always)]
    fn run(mut self) {
        let equations = self.operator.with(self.right_side);
        for z in self.operator.shape.own() {
            equations.residual(z, around(self.operator, self.u, z), self.plane);
            (self.take)(z, self.plane);
        }
    }
}

struct ChebyshevStep<'a> {
    operator: &'a Operator,
    right_side: &'a Field<f64>,
    plane: &'a mut [f64],
    u: &'a mut Field<f64>,
    d: &'a mut Field<f64>,
    keep: f64,
    gain: f64,
    sums: &'a mut [LeafSums; 2],
}

impl ChebyshevStep<'_> {
    /// u += d in plane `z`.
    #[inline(always)]
    fn go(&mut self, z: isize) {
        let u = self.u.row_mut(z);
        for (u, &d) in u.iter_mut().zip(self.d.row(z)) {
            *u += d;
        }
        self.operator.beyond(u);
    }
}

impl Work for ChebyshevStep<'_> {
    #[inline(always)]
    fn run(mut self) {
        let operator = self.operator;
        let shape = &operator.shape;
        let (own, near) = (shape.own(), shape.rows(DEPTH));
        let (nx, ny) = (operator.lines[0].axis.len, operator.lines[1].axis.len);
        let stride = operator.stride();
        let equations = operator.with(Some(self.right_side));
        for z in near.start..(own.start + 1).min(near.end) {
            self.go(z);
        }
        for z in own {
            if near.contains(&(z + 1)) {
                self.go(z + 1);
            }
            equations.residual(z, around(operator, self.u, z), self.plane);
            let residual = &*self.plane;
            let [of_residual, of_field] = &mut *self.sums;
            add_squares(of_residual, operator, residual);
            add_field(of_field, operator, z, self.u.row(z));
            let d = self.d.row_mut(z);
            for y in 0..ny {
                let start = y * stride + 1;
                let (d, residual) = (&mut d[start..][..nx], &residual[start..][..nx]);
                let inverse = operator.inverse(y, z);
                for ((d, &residual), &inverse) in d.iter_mut().zip(residual).zip(inverse) {
                    *d = self.keep * *d + (self.gain * inverse) * residual;
                }
            }
        }
    }
}

struct Descent<'a> {
    operator: &'a Operator,
    u: &'a mut Field<f64>,
    r: &'a mut Field<f64>,
    p: &'a Field<f64>,
    q: &'a Field<f64>,
    alpha: f64,
    sums: &'a mut [LeafSums; 2],
}

impl Work for Descent<'_> {
    #[inline(always)]
    fn run(self) {
        let [of_residual, of_field] = self.sums;
        for z in self.operator.shape.own() {
            let (u, r) = (self.u.row_mut(z), self.r.row_mut(z));
            for (u, &p) in u.iter_mut().zip(self.p.row(z)) {
                *u += self.alpha * p;
            }
            for (r, &q) in r.iter_mut().zip(self.q.row(z)) {
                *r += self.alpha * q;
            }
            add_squares(of_residual, self.operator, r);
            add_field(of_field, self.operator, z, u);
        }
    }
}

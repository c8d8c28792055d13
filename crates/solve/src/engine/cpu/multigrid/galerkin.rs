//! Interpolation that follows the operator, and the coarse operator that goes with it.
//!
//! An operator is a graph: couplings between neighbouring points, and for each point an *excess*, what is on the
//! diagonal beyond the sum of its couplings. So (Au)ᵢ = Σⱼ aᵢⱼ(uᵢ − uⱼ) + xᵢuᵢ, and constants are in its kernel exactly
//! where the excess is zero, however the couplings are rounded.
//!
//! Black box multigrid (Dendy, J. Comput. Phys. 48, 1982, 366-386): coarse points are every second one of both axes. A
//! point between two coarse points on a line takes their values weighted by the couplings towards them, summed across
//! the line; a point amid four takes its neighbours' so that its own equation holds. The coarse operator is Pᵀ A P. So
//! fixed points (whose couplings have become excess of their neighbours), jumps of coefficients and sides of any kind
//! are seen on all levels, at any size. The excess of the coarse operator is Pᵀ A (P1), computed from differences, so
//! that it does not drown in rounding.
//!
//! Each number depends on the operator within two points around, in an order that is fixed: parts of levels on several
//! PEs have the bits of whole ones.

use std::collections::HashMap;
use std::ops::Range;

use super::galerkin_product::Nearby;
use super::interpolation::{Maker, WEIGHTS, any_of};
use super::neighbours::Neighbours;
use super::operator_rows::{OperatorRow, OperatorRows};
use super::row_table::RowTable;
use super::shape::Shape;
use crate::element::Real;
use crate::element::simd::Isa;

/// A coarse row of the product.
pub(crate) enum CoarseRow<'a> {
    /// As given.
    New(&'a OperatorRow),
    /// The same as that of another row, which was new.
    SameAs(isize),
}

/// The interpolation from a level to the finer one: rows of weights by coarse row.
pub(crate) type Transfer<T> = RowTable<T>;

/// Coarse rows around the own ones for which weights are stored.
pub(crate) const WEIGHT_MARGIN: usize = 5;

/// The rows of `coarse` that come from what this PE has of the level `fine`.
pub(crate) fn computed_rows(fine: &Shape, coarse: &Shape) -> Range<isize> {
    if fine.spread {
        coarse.cuts[coarse.me] as isize..coarse.cuts[coarse.me + 1] as isize
    } else {
        coarse.own()
    }
}

/// Makes the interpolation from `coarse` to the level of `fine` and the coarse operator. `take` gets each row of the
/// latter that this PE computes: those of its cut if `coarse` is not spread but `fine` is, else all of its own.
pub(crate) fn coarsen<T: Real, O: OperatorRows>(
    isa: Isa,
    fine: &O,
    coarse: &Shape,
    mut take: impl FnMut(isize, CoarseRow<'_>),
) -> Transfer<T> {
    let shape = fine.shape();
    let computed = computed_rows(shape, coarse);
    let margin = WEIGHT_MARGIN as isize;
    let mut transfer = Transfer::new(coarse.stored(), coarse.x.len, WEIGHTS);
    let mut maker = Maker::new(isa, fine, coarse.x.len);
    let (mut weights, mut products) = (HashMap::new(), HashMap::new());
    let mut out = OperatorRow::default();
    // All that the weights, or the product, of a row depend on.
    let key = |j: isize, before: isize| {
        let centre = shape.y.fine_of(j);
        let rows = (centre - before..=centre + 2).map(|y| {
            if shape.y.has(y) {
                fine.identity(y)
            } else {
                u64::MAX
            }
        });
        let around = [
            shape.y.has_between(j - 1),
            shape.y.has_between(j),
            coarse.y.has(j - 1),
            coarse.y.has(j + 1),
        ];
        (rows.collect::<Vec<_>>(), around)
    };
    for j in computed.start - margin..computed.end + margin {
        if !coarse.y.has(j) {
            continue;
        }
        match weights.get(&key(j, 1)) {
            Some(&from) => transfer.copy(from, j),
            None => {
                maker.weights(j);
                maker.store(j, &mut transfer);
                weights.insert(key(j, 1), j);
            }
        }
        if !computed.contains(&j) {
            continue;
        }
        match products.get(&key(j, 3)) {
            Some(&from) => take(j, CoarseRow::SameAs(from)),
            None => {
                out.reset(coarse.x.len);
                maker.product(j, &mut out);
                take(j, CoarseRow::New(&out));
                products.insert(key(j, 3), j);
            }
        }
    }
    transfer
}

impl<O: OperatorRows> Maker<'_, O> {
    /// Row `j` of Pᵀ A P.
    fn product(&mut self, j: isize, out: &mut OperatorRow) {
        self.weights(j - 1);
        self.weights(j);
        self.right_weights(j + 1);
        // Fine rows −2 … 2 around coarse row j, where they are. Where there is none between two coarse rows, these are
        // neighbours.
        let centre = self.y.fine_of(j);
        let along = Neighbours::of(self.y, j);
        for place in -2..=2 {
            self.window.need(centre + along.step(place));
        }
        let mut any = std::mem::take(&mut self.any);
        let rows = std::array::from_fn(|k| self.window.row(centre + along.step(k as isize - 2)));
        any_of(&mut any, &rows);
        let nearby = Nearby {
            rows,
            weights: [self.at(j - 1), self.at(j), self.at(j + 1)],
            x: self.x,
            y: self.y,
            j,
            corners: O::CORNERS,
            any: &any,
        };
        nearby.product(self.isa, out);
        self.any = any;
    }
}

#[cfg(test)]
mod tests {
    use super::super::finest::{End, Finest, Held};
    use super::super::interpolation::{AMID, BELOW, RIGHT};
    use super::super::operator_rows::{EAST, EXCESS, SOUTH, SOUTH_EAST, SOUTH_WEST, SplitRow};
    use super::*;
    use crate::engine::cpu::multigrid::shape::Axis;
    use crate::field::storage::Field;

    /// An operator as rows in memory.
    struct Stored {
        shape: Shape,
        rows: Vec<OperatorRow>,
    }

    impl OperatorRows for Stored {
        const CORNERS: bool = true;

        fn shape(&self) -> &Shape {
            &self.shape
        }
        fn row(&self, y: isize, out: &mut SplitRow) {
            let from = &self.rows[y.rem_euclid(self.shape.y.len as isize) as usize];
            let parts: Vec<(usize, &[f64])> =
                from.parts.iter().map(Vec::as_slice).enumerate().collect();
            out.put(0, &parts);
        }
        fn identity(&self, y: isize) -> u64 {
            y.rem_euclid(self.shape.y.len as isize) as u64
        }
    }

    fn stored(of: &impl OperatorRows) -> Stored {
        let shape = of.shape().clone();
        let rows = (0..shape.y.len)
            .map(|y| {
                let mut split = SplitRow::default();
                split.clear(shape.x.len);
                of.row(y as isize, &mut split);
                let mut row = OperatorRow::default();
                row.reset(shape.x.len);
                for (part, out) in row.parts.iter_mut().enumerate() {
                    for (x, out) in out.iter_mut().enumerate() {
                        [*out] = split.at(part, x as isize);
                    }
                }
                row
            })
            .collect();
        Stored { shape, rows }
    }

    type Matrix = Vec<Vec<f64>>;

    fn dense(of: &Stored) -> Matrix {
        let (nx, ny) = (of.shape.x.len, of.shape.y.len);
        let mut matrix = vec![vec![0.0; nx * ny]; nx * ny];
        for y in 0..ny {
            for x in 0..nx {
                let from = y * nx + x;
                matrix[from][from] += of.rows[y].parts[EXCESS][x];
                for (part, dx, dy) in [
                    (EAST, 1, 0),
                    (SOUTH, 0, 1),
                    (SOUTH_EAST, 1, 1),
                    (SOUTH_WEST, nx - 1, 1),
                ] {
                    let to = (y + dy) % ny * nx + (x + dx) % nx;
                    let coupling = of.rows[y].parts[part][x];
                    matrix[from][from] += coupling;
                    matrix[to][to] += coupling;
                    matrix[from][to] -= coupling;
                    matrix[to][from] -= coupling;
                }
            }
        }
        matrix
    }

    /// P, fine points by coarse points.
    fn interpolation(fine: &Shape, coarse: &Shape, transfer: &Transfer<f64>) -> Matrix {
        let mut p = vec![vec![0.0; coarse.x.len * coarse.y.len]; fine.x.len * fine.y.len];
        for y in 0..fine.y.len {
            for x in 0..fine.x.len {
                let (j, below) = fine.y.coarse_of(y as isize);
                let (i, right) = fine.x.coarse_of(x as isize);
                let mut set = |i: isize, j: isize, weight: f64| {
                    if !coarse.x.has(i) || !coarse.y.has(j) {
                        assert_eq!(weight, 0.0);
                        return;
                    }
                    let i = i.rem_euclid(coarse.x.len as isize) as usize;
                    let j = j.rem_euclid(coarse.y.len as isize) as usize;
                    p[y * fine.x.len + x][j * coarse.x.len + i] += weight;
                };
                let at = |part: usize| transfer.part(j, part)[i as usize + 1];
                match (right, below) {
                    (false, false) => set(i, j, 1.0),
                    (true, false) => (0..2).for_each(|k| {
                        set(i + k as isize, j, at(RIGHT[k]));
                    }),
                    (false, true) => (0..2).for_each(|k| {
                        set(i, j + k as isize, at(BELOW[k]));
                    }),
                    (true, true) => (0..4).for_each(|k| {
                        let (di, dj) = (k as isize % 2, k as isize / 2);
                        set(i + di, j + dj, at(AMID[k]));
                    }),
                }
            }
        }
        p
    }

    fn check(fine: &Stored) -> Stored {
        let coarse = fine.shape.coarser();
        let on = |isa: Isa| {
            let mut rows: Vec<OperatorRow> = Vec::new();
            let transfer: Transfer<f64> = coarsen(isa, fine, &coarse, |y, row| {
                assert_eq!(y, rows.len() as isize);
                rows.push(match row {
                    CoarseRow::New(row) => row.clone(),
                    CoarseRow::SameAs(y) => rows[y as usize].clone(),
                });
            });
            (rows, transfer)
        };
        let (rows, transfer) = on(Isa::widest());
        for isa in Isa::available() {
            let same = on(isa).0.iter().zip(&rows).all(|(a, b)| a.parts == b.parts);
            assert!(same, "{isa:?} differs");
        }
        let made = Stored {
            shape: coarse.clone(),
            rows,
        };
        let (a, p) = (dense(fine), interpolation(&fine.shape, &coarse, &transfer));
        let points = coarse.x.len * coarse.y.len;
        let product: Matrix = (0..points)
            .map(|i| {
                (0..points)
                    .map(|j| {
                        let column: Vec<f64> = a
                            .iter()
                            .map(|row| row.iter().zip(&p).map(|(a, p)| a * p[j]).sum())
                            .collect();
                        column.iter().zip(&p).map(|(ap, p)| ap * p[i]).sum()
                    })
                    .collect()
            })
            .collect();
        let made_dense = dense(&made);
        for i in 0..points {
            for j in 0..points {
                let (is, should) = (made_dense[i][j], product[i][j]);
                // A point that keeps its value is a coarse point without an equation, but P is 1 there.
                assert!(
                    (is - should).abs() < 1e-12,
                    "{:?} ({i}, {j}): {is} {should}",
                    fine.shape
                );
            }
        }
        made
    }

    #[test]
    fn points_far_from_the_sides_are_alike() {
        use super::super::coarse::{SAME_FROM, SAME_TO};
        let kinds = [
            [End::Fixed; 2],
            [End::Mirror; 2],
            [End::Fixed, End::Mirror],
            [End::Mirror, End::Fixed],
            [End::Wrap; 2],
        ];
        for (at, (nx, ny)) in [(33, 64), (50, 47), (66, 97), (35, 60), (100, 127)]
            .into_iter()
            .enumerate()
        {
            for (across, &x) in kinds.iter().enumerate() {
                let ends = [x, kinds[(across + at) % kinds.len()]];
                let axis = |len, ends: [End; 2]| Axis {
                    len,
                    wraps: ends[0] == End::Wrap,
                };
                let shape = Shape::finest(axis(nx, ends[0]), axis(ny, ends[1]), vec![0, ny], 0, 0);
                let finest = Finest::new(shape, ends, None);
                let mut fine = stored(&finest);
                while fine.shape.x.len.min(fine.shape.y.len) > 8 {
                    let coarse = fine.shape.coarser();
                    let mut rows: Vec<OperatorRow> = Vec::new();
                    coarsen::<f32, _>(Isa::widest(), &fine, &coarse, |_, row| {
                        rows.push(match row {
                            CoarseRow::New(row) => row.clone(),
                            CoarseRow::SameAs(y) => rows[y as usize].clone(),
                        });
                    });
                    // As levels store them, of which the next ones are made.
                    for part in rows.iter_mut().flat_map(|row| &mut row.parts) {
                        part.iter_mut()
                            .for_each(|value| *value = f64::from(*value as f32));
                    }
                    let last = [coarse.x.len, coarse.y.len].map(|len| len.saturating_sub(SAME_TO));
                    let at = |part: usize, x: usize, y: usize| rows[y].parts[part][x];
                    let [east, south, corner] =
                        [EAST, SOUTH, SOUTH_EAST].map(|part| at(part, SAME_FROM, SAME_FROM));
                    for y in SAME_FROM..last[1] {
                        for x in SAME_FROM..last[0] {
                            let found = [
                                [at(EAST, x - 1, y), at(EAST, x, y)],
                                [at(SOUTH, x, y - 1), at(SOUTH, x, y)],
                                [at(SOUTH_EAST, x - 1, y - 1), at(SOUTH_EAST, x, y)],
                                [at(SOUTH_WEST, x + 1, y - 1), at(SOUTH_WEST, x, y)],
                                [at(EXCESS, x, y); 2],
                            ];
                            let expected = [east, south, corner, corner, 0.0].map(|of| [of; 2]);
                            let what = format!("({x}, {y}) of {coarse:?}, {ends:?}, {nx} x {ny}");
                            assert_eq!(found, expected, "{what}");
                        }
                    }
                    fine = Stored {
                        shape: coarse,
                        rows,
                    };
                }
            }
        }
    }

    #[test]
    fn the_coarse_operator_is_the_product() {
        let mut seed = 1u64;
        for (nx, ny) in [(9, 7), (8, 10), (5, 12), (11, 6), (4, 4), (1, 9)] {
            for wraps in 0..4 {
                for share in [0, 2, 4, 9] {
                    let ends = |wraps: bool, at: usize| match (wraps, at) {
                        (true, _) => [End::Wrap; 2],
                        (false, 0) => [End::Fixed, End::Mirror],
                        (false, _) => [End::Mirror; 2],
                    };
                    let ends = [
                        ends(wraps & 1 != 0, share % 2),
                        ends(wraps & 2 != 0, share % 3),
                    ];
                    let axis = |len, ends: [End; 2]| Axis {
                        len,
                        wraps: ends[0] == End::Wrap,
                    };
                    let shape =
                        Shape::finest(axis(nx, ends[0]), axis(ny, ends[1]), vec![0, ny], 0, 0);
                    let mut fixed: Field<u8> = Field::new(shape.stored(), nx).unwrap();
                    let mut row = vec![];
                    for _ in 0..nx * ny {
                        seed = seed
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(1442695040888963407);
                        row.push(u8::from(
                            share > 0 && (seed >> 33).is_multiple_of(share as u64),
                        ));
                    }
                    for y in shape.stored().filter(|&y| shape.y.has(y)) {
                        let from = y.rem_euclid(ny as isize) as usize * nx;
                        fixed.row_mut(y).copy_from_slice(&row[from..from + nx]);
                    }
                    let finest = Finest::new(shape, ends, Some(Held::Here(fixed)));
                    check(&check(&stored(&finest)));
                }
            }
        }
    }
}

//! A PE's band of a 2-D grid.

use std::io;
use std::ops::Range;

use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use crate::element::Real;
use crate::element::simd::Isa;
use crate::engine::cpu::MAX_DEPTH;
use crate::engine::cpu::plane_pass::{self, Band, Workspace};
use crate::engine::slab::{Advance, Passes, Slab};
use crate::exchange::put_signal::PutSignal;
use crate::exchange::{HaloExchange, Rows, image};
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::field::storage::{Field, PAD};
use crate::pes::error::PeError;
use crate::problem::scale::{Scale, largest_of, scale_up};
use crate::problem::{Problem2d, ProblemError};

/// Rows of one PE with halos above and below.
pub(crate) struct CpuPlane<F> {
    partition: Partition,
    own: Range<usize>,
    nx: usize,
    wrap_x: bool,
    wrap_y: bool,
    isa: Option<Isa>,
    before: Field<F>,
    after: Field<F>,
    fixed: Option<Field<u8>>,
    source: Option<Field<F>>,
    work: Workspace<F>,
}

/// What loading found besides the field.
pub(crate) struct Loaded {
    /// The first bad cell of the own rows in row-major order.
    pub bad: Option<ProblemError>,
    /// Own cells that a sweep may change.
    pub free: u64,
    /// The largest magnitude of what was given: the field before the first sweep, and h²f.
    pub largest: f64,
}

impl<F: Real> CpuPlane<F> {
    /// Allocates the band of PE `pe` of `n_pes`. `isa`: what its passes use; none, and half the memory, for a band that
    /// only holds what is computed elsewhere.
    pub(crate) fn new(
        problem: &Problem2d<F>,
        pe: usize,
        n_pes: usize,
        isa: Option<Isa>,
    ) -> io::Result<CpuPlane<F>> {
        let partition = Partition::new(problem.ny, LEAF_ROWS, n_pes);
        let own = partition.rows(pe);
        let (start, end) = (own.start as isize, own.end as isize);
        let stored = if own.is_empty() {
            start..end
        } else {
            start - MAX_DEPTH as isize..end + MAX_DEPTH as isize
        };
        let nx = problem.nx;
        fn field<T: bytemuck::Pod>(rows: &Range<isize>, nx: usize) -> io::Result<Field<T>> {
            Field::new(rows.clone(), nx)
        }
        Ok(CpuPlane {
            before: field(&stored, nx)?,
            after: field(if isa.is_some() { &stored } else { &(0..0) }, nx)?,
            fixed: problem
                .fixed
                .is_some()
                .then(|| field(&stored, nx))
                .transpose()?,
            source: problem
                .source
                .is_some()
                .then(|| field(&stored, nx))
                .transpose()?,
            work: Workspace::new()?,
            wrap_x: problem.wrap_x(),
            wrap_y: problem.wrap_y(),
            nx,
            partition,
            own,
            isa,
        })
    }

    /// Loads field, mask and source of the own rows, and the last two of the halo rows as well, which never change.
    /// They are held as `scale` says.
    pub(crate) fn load(&mut self, problem: &Problem2d<F>, scale: Scale) -> Loaded {
        let mut loaded = Loaded {
            bad: None,
            free: 0,
            largest: 0.0,
        };
        if self.own.is_empty() {
            return loaded;
        }
        let ny = problem.ny;
        let (columns, rows) = problem.inner();
        for y in self.own.clone() {
            let row = self.before.row_mut(y as isize);
            row.fill(F::ZERO);
            problem.initial_row(y, row);
            if let (Some(x), None) = (
                row.iter().position(|value| !value.to_f64().is_finite()),
                &loaded.bad,
            ) {
                loaded.bad = Some(ProblemError::Value { x, y });
            }
            loaded.largest = loaded.largest.max(largest_of(F::ZERO, row).to_f64());
            if scale != Scale::NONE {
                row.iter_mut()
                    .for_each(|value| *value = scale.element_down(*value));
            }
        }
        for y in self.before.rows() {
            // Rows of a wrapped halo, and ghosts, take the mask and source of the row they are copies of.
            let from = if self.wrap_y {
                image(y, ny)
            } else if (0..ny as isize).contains(&y) {
                y as usize
            } else {
                continue;
            };
            if let (Some(fixed), Some(deliver)) = (&mut self.fixed, &problem.fixed) {
                fixed.row_mut(y).fill(0);
                deliver(from, fixed.row_mut(y));
                if self.wrap_x {
                    wrap_row(fixed.padded_row_mut(y), self.nx);
                }
            }
            if let (Some(source), Some(deliver)) = (&mut self.source, &problem.source) {
                let squared = F::from_f64(problem.spacing * problem.spacing);
                let row = source.row_mut(y);
                row.fill(F::ZERO);
                deliver(from, row);
                // Only inner cells are ever used; rows of halos are somebody else's to complain about.
                let inner_row =
                    rows.contains(&from) && from as isize == y && self.own.contains(&from);
                for (x, value) in row.iter_mut().enumerate() {
                    let given = *value;
                    // In `f64`, where that of two `f32` is exact.
                    let product = given.to_f64() * squared.to_f64();
                    *value = if scale == Scale::NONE {
                        given * squared
                    } else {
                        F::from_f64(scale.down(product))
                    };
                    if !(inner_row && columns.contains(&x)) {
                        continue;
                    }
                    if !(given * squared).to_f64().is_finite() && loaded.bad.is_none() {
                        loaded.bad = Some(ProblemError::Source { x, y: from });
                    }
                    loaded.largest = loaded.largest.max(product.abs());
                }
                if self.wrap_x {
                    wrap_row(source.padded_row_mut(y), self.nx);
                }
            }
        }
        for y in self.own.clone().filter(|y| rows.contains(y)) {
            loaded.free += match &self.fixed {
                Some(fixed) => fixed.row(y as isize)[columns.clone()]
                    .iter()
                    .filter(|&&byte| byte == 0)
                    .count() as u64,
                None => columns.len() as u64,
            };
        }
        loaded
    }

    /// Makes of the own rows, held as `scale` says, what they are. Whether all cells have room in the type.
    pub(crate) fn unscale(&mut self, scale: Scale) -> bool {
        let rows = self.own.clone();
        rows.fold(true, |fits, y| {
            scale_up(self.before.row_mut(y as isize), scale) & fits
        })
    }

    /// Row `y` of the own rows.
    pub(crate) fn row(&self, y: usize) -> &[F] {
        assert!(
            self.own.contains(&y),
            "row {y} is not among this PE's rows {:?}",
            self.own
        );
        self.before.row(y as isize)
    }

    /// The field.
    pub(crate) fn before(&self) -> &Field<F> {
        &self.before
    }

    /// The mask and the source (times h²), if any, halos included.
    pub(crate) fn given_fields(&self) -> (Option<&Field<u8>>, Option<&Field<F>>) {
        (self.fixed.as_ref(), self.source.as_ref())
    }

    /// Overwrites row `y` of the own rows.
    pub(crate) fn overwrite(&mut self, y: isize, row: &[F]) {
        self.before.row_mut(y).copy_from_slice(row);
    }

    /// The mask and the source (times h²) of row `y`, if any.
    pub(crate) fn givens(&self, y: usize) -> (Option<&[u8]>, Option<&[F]>) {
        let y = y as isize;
        (
            self.fixed.as_ref().map(|field| field.row(y)),
            self.source.as_ref().map(|field| field.row(y)),
        )
    }

    fn wrap_columns(&mut self, rows: Range<isize>) {
        if self.wrap_x {
            for y in rows {
                wrap_row(self.before.padded_row_mut(y), self.nx);
            }
        }
    }
}

/// Makes the ghost columns and the padding beyond them copies of the inner columns.
fn wrap_row<T: Copy>(padded: &mut [T], nx: usize) {
    for at in (0..=PAD).chain(PAD + nx - 1..padded.len()) {
        padded[at] = padded[PAD + image(at as isize - PAD as isize, nx)];
    }
}

impl<F: Real> LocalRows<F> for CpuPlane<F> {
    type Error = PeError;

    fn partition(&self) -> &Partition {
        &self.partition
    }

    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn row_len(&self) -> usize {
        self.nx
    }

    fn wraps(&self) -> bool {
        self.wrap_y
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), PeError> {
        for y in rows {
            out.extend_from_slice(self.before.row(y as isize));
        }
        Ok(())
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), PeError> {
        for (y, row) in (first..).zip(values.chunks_exact(self.nx)) {
            self.before.row_mut(y).copy_from_slice(row);
            self.wrap_columns(y..y + 1);
        }
        Ok(())
    }
}

impl<F: Real> Slab<F> for CpuPlane<F> {
    fn starts_singly(&self) -> bool {
        self.wrap_x || self.wrap_y
    }

    fn default_depth(&self) -> usize {
        // Measured at 256² to 8192²: never slower than shallower passes.
        MAX_DEPTH
    }

    fn depth_limit(&self) -> usize {
        MAX_DEPTH
    }

    fn advance(&mut self, _singly: bool) -> Advance<'_, F, PeError> {
        Advance::Passes(self)
    }
}

impl<F: Real> Passes<F> for CpuPlane<F> {
    type Error = PeError;

    fn exchange(
        &mut self,
        through_hosts: &mut PutSignal<'_, F>,
        rows: Rows,
    ) -> Result<(), PeError> {
        through_hosts.exchange(self, rows)
    }

    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), PeError> {
        if self.own.is_empty() {
            return Ok(());
        }
        let band = Band {
            nx: self.nx,
            ny: self.partition.total(),
            rows: self.own.clone(),
            wrap_x: self.wrap_x,
            wrap_y: self.wrap_y,
            before: &self.before,
            fixed: self.fixed.as_ref(),
            source: self.source.as_ref(),
        };
        let isa = self.isa.expect("made for passes");
        plane_pass::pass(isa, &band, &mut self.after, &mut self.work, norms);
        Ok(())
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.before, &mut self.after);
        self.wrap_columns(self.own.start as isize..self.own.end as isize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::RowSource;
    use std::sync::Arc;

    /// Fields and sums of a pass on every vector unit of this machine.
    fn check<F: Real>(nx: usize, ny: usize, depth: usize) {
        let noise = |x: usize, y: usize| ((x * 7919 + y * 104_729) % 1013) as f64 / 1013.0 - 0.4;
        let field: RowSource<F> = Arc::new(move |y, row: &mut [F]| {
            row.iter_mut()
                .enumerate()
                .for_each(|(x, value)| *value = F::from_f64(noise(x, y)));
        });
        let mask: RowSource<u8> = Arc::new(|y, row| {
            row.iter_mut()
                .enumerate()
                .for_each(|(x, byte)| *byte = (x * y % 5 / 4 * 0x80) as u8)
        });
        for features in 0..4 {
            let problem = Problem2d {
                initial: Some(field.clone()),
                fixed: (features & 1 != 0).then(|| mask.clone()),
                source: (features & 2 != 0).then(|| field.clone()),
                ..Problem2d::laplace(nx, ny)
            };
            let run = |isa: Isa| {
                let mut slab = CpuPlane::new(&problem, 0, 1, Some(isa)).unwrap();
                assert!(slab.load(&problem, Scale::NONE).bad.is_none());
                let mut sums = vec![Superaccumulator::<F>::new(); depth];
                slab.pass(&mut sums).unwrap();
                slab.accept();
                let bits: Vec<u64> = (0..ny)
                    .flat_map(|y| slab.row(y).iter().map(|v| v.to_bits64()))
                    .collect();
                (bits, sums)
            };
            let units = Isa::available();
            let plain = run(*units.last().unwrap());
            for isa in units {
                assert!(
                    run(isa) == plain,
                    "{isa:?} differs from plain code, features {features}, depth {depth}"
                );
            }
        }
    }

    #[test]
    fn all_vector_units_give_the_same_bits() {
        for depth in [1, 2, 15, 16, 17, 32] {
            check::<f32>(1037, 53, depth);
            check::<f64>(523, 37, depth);
        }
    }
}

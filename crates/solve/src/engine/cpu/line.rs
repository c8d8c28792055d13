//! A PE's part of the line.

use std::io;
use std::ops::Range;

use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::LEAF;

use crate::element::Real;
use crate::element::simd::Isa;
use crate::engine::cpu::MAX_DEPTH;
use crate::engine::cpu::line_pass::{self, Segment, Workspace};
use crate::engine::slab::{Advance, Passes, Slab};
use crate::exchange::put_signal::PutSignal;
use crate::exchange::{HaloExchange, Rows};
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::field::storage::{Field, PAD};
use crate::pes::error::PeError;
use crate::problem::Problem1d;
use crate::problem::scale::{Scale, scale_up};

/// Points of one PE. The halos lie in the padding of the one row.
pub(crate) struct CpuLine<F> {
    partition: Partition,
    own: Range<usize>,
    isa: Isa,
    before: Field<F>,
    after: Field<F>,
    work: Workspace<F>,
}

impl<F: Real> CpuLine<F> {
    /// The points of PE `pe` of `n_pes`: the ends as given, zero between.
    pub(crate) fn new(
        problem: &Problem1d<F>,
        pe: usize,
        n_pes: usize,
        isa: Isa,
    ) -> io::Result<CpuLine<F>> {
        let partition = Partition::new(problem.points, LEAF, n_pes);
        let own = partition.rows(pe);
        let field = || Field::new(0..1, own.len());
        let mut slab = CpuLine {
            before: field()?,
            after: field()?,
            work: Workspace::new()?,
            partition,
            own,
            isa,
        };
        for (point, value) in [(0, problem.left), (problem.points - 1, problem.right)] {
            if slab.own.contains(&point) {
                slab.before.row_mut(0)[point - slab.own.start] = value;
            }
        }
        Ok(slab)
    }

    /// Makes of the own points, held as `scale` says, what they are. Whether all have room in the type.
    pub(crate) fn unscale(&mut self, scale: Scale) -> bool {
        scale_up(self.before.row_mut(0), scale)
    }

    /// The own points.
    pub(crate) fn values(&self) -> &[F] {
        self.before.row(0)
    }
}

impl<F: Real> LocalRows<F> for CpuLine<F> {
    type Error = PeError;

    fn partition(&self) -> &Partition {
        &self.partition
    }

    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn row_len(&self) -> usize {
        1
    }

    fn wraps(&self) -> bool {
        false
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), PeError> {
        out.extend_from_slice(
            &self.before.row(0)[rows.start - self.own.start..rows.end - self.own.start],
        );
        Ok(())
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), PeError> {
        let start = (first - self.own.start as isize + PAD as isize) as usize;
        self.before.padded_row_mut(0)[start..start + values.len()].copy_from_slice(values);
        Ok(())
    }
}

impl<F: Real> Slab<F> for CpuLine<F> {
    fn starts_singly(&self) -> bool {
        false
    }

    fn default_depth(&self) -> usize {
        // From 12 to 20 sweeps a pass are equally fast in memory; fewer are computed twice at the stop than with 32.
        16
    }

    fn depth_limit(&self) -> usize {
        MAX_DEPTH
    }

    fn advance(&mut self, _singly: bool) -> Advance<'_, F, PeError> {
        Advance::Passes(self)
    }
}

impl<F: Real> Passes<F> for CpuLine<F> {
    type Error = PeError;

    fn exchange(
        &mut self,
        through_hosts: &mut PutSignal<'_, F>,
        rows: Rows,
    ) -> Result<(), PeError> {
        through_hosts.exchange(self, rows)
    }

    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), PeError> {
        let segment = Segment {
            points: self.partition.total(),
            own: self.own.clone(),
            before: &self.before,
        };
        line_pass::pass(self.isa, &segment, &mut self.after, &mut self.work, norms);
        Ok(())
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.before, &mut self.after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Norm;

    fn check<F: Real>(depth: usize) {
        let problem = Problem1d {
            points: 9001,
            left: F::from_f64(0.7),
            right: F::from_f64(-3.1),
            norm: Norm::Rms,
        };
        let run = |isa: Isa| {
            let mut slab = CpuLine::new(&problem, 0, 1, isa).unwrap();
            let noise: Vec<F> = (1..9000)
                .map(|i| F::from_f64((i * 7919 % 1013) as f64 / 1013.0))
                .collect();
            slab.unpack(1, &noise).unwrap();
            let mut sums = vec![Superaccumulator::<F>::new(); depth];
            slab.pass(&mut sums).unwrap();
            slab.accept();
            (
                slab.values()
                    .iter()
                    .map(|value| value.to_bits64())
                    .collect::<Vec<_>>(),
                sums,
            )
        };
        let units = Isa::available();
        let plain = run(*units.last().unwrap());
        for isa in units {
            assert!(
                run(isa) == plain,
                "{isa:?} differs from plain code, depth {depth}"
            );
        }
    }

    #[test]
    fn all_vector_units_give_the_same_bits() {
        for depth in [1, 2, 16, 17, 32] {
            check::<f32>(depth);
            check::<f64>(depth);
        }
    }
}

//! All levels, and a cycle through them.

use std::io;

use super::coarse::Coarse;
use super::dense::Dense;
use super::finest::Finest;
use super::finest_level::FinestLevel;
use super::galerkin::{CoarseRow, Transfer, coarsen};
use super::interpolation::WEIGHTS;
use super::shape::Shape;
use super::smoothing::Smoothing;
use crate::element::Real;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::pes::agree::all_ready_by;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;

/// Points of the coarsest level, at most, along each axis.
const COARSEST: usize = 8;

/// The levels below the finest one, and how they are reached. `T` is the type of corrections.
pub(crate) struct Hierarchy<T> {
    pub top: FinestLevel,
    /// Of the finest level in cycles,
    pub smoothing: Smoothing,
    /// in those that are preconditioners, which have to be symmetric,
    pub symmetric_smoothing: Smoothing,
    /// and of the others.
    pub coarse_smoothing: Smoothing,
    pub transfer: Transfer<T>,
    pub levels: Vec<Coarse<T>>,
    pub dense: Dense,
    /// The first level whose operator and weights have been made here. Those before it are a GPU's to make, and all zero but for the
    /// last one's operator.
    made_from: usize,
    singular: bool,
    pub(super) spare: Spare<T>,
    /// Corrections times 2^`exponent` are for the field.
    pub(super) exponent: i32,
}

/// Rows of the finest level in the type of corrections.
pub(super) struct Spare<T> {
    pub residuals: Field<T>,
    pub correction: Field<T>,
}

/// The levels below `finest`.
pub(crate) fn coarser_shapes(finest: &Shape) -> Vec<Shape> {
    let mut shapes = vec![finest.coarser()];
    while let Some(last) = shapes.last()
        && (last.x.len > COARSEST || last.y.len > COARSEST)
    {
        shapes.push(last.coarser());
    }
    shapes
}

impl<T: Real> Hierarchy<T> {
    /// Room for the levels, which are all zero: [`make`](Self::make) makes them. Collective.
    ///
    /// `singular`: constants are in the kernel of the operator.
    pub fn new(
        finest: Finest,
        shapes: &[Shape],
        singular: bool,
        [smoothing, symmetric_smoothing, coarse_smoothing]: [Smoothing; 3],
        reduction: &Reduction<'_>,
    ) -> Result<Hierarchy<T>, SetUpError> {
        let steps = smoothing.pre.len() + smoothing.post.len();
        let coarse_steps = coarse_smoothing.pre.len().max(coarse_smoothing.post.len());
        let nx = finest.shape.x.len;
        let room = || -> io::Result<_> {
            let level = |shape| Coarse::new(shape, coarse_steps);
            let levels: Vec<Coarse<T>> = shapes.iter().map(level).collect::<Result<_, _>>()?;
            let spare = Spare {
                residuals: Field::new(0..4, nx)?,
                correction: Field::new(0..1, nx)?,
            };
            Ok((FinestLevel::new(finest, steps)?, levels, spare))
        };
        // Before what PEs do together, which none may miss for want of memory.
        let (top, levels, spare) = all_ready_by(reduction, room().map_err(SetUpError::from))?;
        let coarse = &levels.first().expect("there is a coarse level").operator;
        Ok(Hierarchy {
            spare,
            transfer: Transfer::new(coarse.shape.stored(), coarse.shape.x.len, WEIGHTS),
            top,
            smoothing,
            symmetric_smoothing,
            coarse_smoothing,
            made_from: levels.len(),
            levels,
            dense: Dense::of_matrix(Vec::new(), 0, singular),
            singular,
            exponent: 0,
        })
    }

    /// Makes the levels from `first` on of the one before, which has its operator, and the factor of the last. Collective.
    pub fn make(&mut self, first: usize, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        let (finest, isa) = (&self.top.equations, self.top.isa);
        for at in first..self.levels.len() {
            let (before, rest) = self.levels.split_at_mut(at);
            let (from, level) = (before.last_mut(), &mut rest[0]);
            let spread = from
                .as_ref()
                .map_or(finest.shape.spread, |from| from.operator.shape.spread);
            let shape = level.operator.shape.clone();
            let operator = &mut level.operator;
            let take = |y: isize, row: CoarseRow<'_>| operator.set_row(y, row);
            match from {
                None => self.transfer = coarsen(isa, finest, &shape, take),
                Some(from) => from.transfer = Some(coarsen(isa, &from.operator, &shape, take)),
            }
            let gather = spread && !shape.spread;
            level
                .operator
                .complete(rows, gather, finest.is_plain(), finest.fixed.is_some())?;
        }
        let last = self.levels.last().expect("there is a coarse level");
        self.dense = Dense::new(&last.operator, self.singular);
        self.made_from = first;
        Ok(())
    }

    /// Makes the levels that have been left to a GPU. Collective.
    pub fn make_all(&mut self, rows: &mut LevelRows<'_>) -> Result<(), PeError> {
        match self.made_from {
            0 => Ok(()),
            _ => self.make(0, rows),
        }
    }

    /// The first level that is made.
    pub fn made_from(&self) -> usize {
        self.made_from
    }
}

/// What can go wrong while the levels are made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetUpError {
    /// No memory.
    #[error(transparent)]
    Memory(#[from] io::Error),
    /// The PEs can not go on together.
    #[error(transparent)]
    Pe(#[from] PeError),
}

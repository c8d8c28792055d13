//! All levels, and a cycle through them.

use std::io;

use super::coarse::Coarse;
use super::dense::Dense;
use super::finest::Finest;
use super::finest_level::FinestLevel;
use super::galerkin::{CoarseRow, Transfer, coarsen};
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
    /// Makes the levels. Collective.
    ///
    /// `singular`: constants are in the kernel of the operator.
    pub fn new(
        finest: Finest,
        shapes: &[Shape],
        singular: bool,
        [smoothing, symmetric_smoothing, coarse_smoothing]: [Smoothing; 3],
        rows: &mut LevelRows<'_>,
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
        let (top, mut levels, spare) = all_ready_by(reduction, room().map_err(SetUpError::from))?;
        let mut transfer = None;
        let (finest, isa) = (&top.equations, top.isa);
        let masked = finest.fixed.is_some();
        let plain = !masked && finest.coefficients.is_none();
        for (at, shape) in shapes.iter().enumerate() {
            let (before, rest) = levels.split_at_mut(at);
            let (from, level) = (before.last_mut(), &mut rest[0]);
            let spread = from
                .as_ref()
                .map_or(finest.shape.spread, |from| from.operator.shape.spread);
            let operator = &mut level.operator;
            let take = |y: isize, row: CoarseRow<'_>| operator.set_row(y, row);
            match from {
                None => transfer = Some(coarsen(isa, finest, shape, take)),
                Some(from) => from.transfer = Some(coarsen(isa, &from.operator, shape, take)),
            }
            level
                .operator
                .complete(rows, spread && !shape.spread, [plain, masked])?;
        }
        let last = levels.last().expect("there is a coarse level");
        let dense = Dense::new(&last.operator, singular);
        Ok(Hierarchy {
            spare,
            transfer: transfer.expect("there is a coarse level"),
            top,
            smoothing,
            symmetric_smoothing,
            coarse_smoothing,
            levels,
            dense,
            exponent: 0,
        })
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

//! The field between two steps of a solve, for its observer.

use std::fmt;

use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::field::gather;
use crate::field::rows::LocalRows;
use crate::method::error::SolveError;
use crate::problem::scale::Scale;

/// The field between two steps of a solve; see [`Progress::field`](crate::Progress::field).
#[derive(Clone, Copy)]
pub struct FieldView<'a> {
    rows: &'a dyn Whole,
}

impl<'a> FieldView<'a> {
    pub(crate) fn of(rows: &'a impl Whole) -> FieldView<'a> {
        FieldView { rows }
    }

    /// Hands the whole field, row-major, to `take` on PE 0, in pieces of whole rows, in order. Values of `f32` are exact.
    ///
    /// Collective, and only while the observer runs. When `take` fails it is not called again.
    ///
    /// Errors: outer, the world's; inner (on PE 0 only), what `take` returned.
    pub fn gather<E>(
        &self,
        pe: &Pe,
        mut take: impl FnMut(&[f64]) -> Result<(), E>,
    ) -> Result<Result<(), E>, SolveError> {
        let mut outcome = Ok(());
        self.rows.gather(pe, &mut |values| {
            if outcome.is_ok() {
                outcome = take(values);
            }
        })?;
        Ok(outcome)
    }
}

impl fmt::Debug for FieldView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldView").finish_non_exhaustive()
    }
}

/// A distributed field of any type.
pub(crate) trait Whole {
    fn gather(&self, pe: &Pe, take: &mut dyn FnMut(&[f64])) -> Result<(), SolveError>;
}

/// Rows that are held as `scale` says.
pub(crate) struct Scaled<'a, F, R> {
    rows: &'a R,
    scale: Scale,
    element: std::marker::PhantomData<F>,
}

impl<'a, F, R> Scaled<'a, F, R> {
    pub(crate) fn new(rows: &'a R, scale: Scale) -> Scaled<'a, F, R> {
        Scaled {
            rows,
            scale,
            element: std::marker::PhantomData,
        }
    }
}

impl<F: Real, R: LocalRows<F>> Whole for Scaled<'_, F, R>
where
    SolveError: From<R::Error>,
{
    fn gather(&self, pe: &Pe, take: &mut dyn FnMut(&[f64])) -> Result<(), SolveError> {
        let mut piece = Vec::new();
        let Ok(()) = gather::stream(pe, self.rows, |values| {
            piece.clear();
            let held = values.iter().map(|value| self.scale.up(value.to_f64()));
            piece.extend(held);
            take(&piece);
            Ok::<(), std::convert::Infallible>(())
        })?;
        Ok(())
    }
}

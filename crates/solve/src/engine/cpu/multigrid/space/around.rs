//! What a row of a plane is computed from.

/// Planes around a plane, which begin with row `first`.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub first: usize,
    pub up: &'a [f64],
    pub here: &'a [f64],
    pub down: &'a [f64],
}

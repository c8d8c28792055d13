//! What a row of a plane is computed from.

/// Planes around a plane, which begin with row `first`.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub first: usize,
    pub up: &'a [f64],
    pub here: &'a [f64],
    pub down: &'a [f64],
}

impl Around<'_> {
    /// Row `y` of one of the planes, whose rows are `stride` long.
    #[inline(always)]
    pub fn row_of<'r>(&self, y: usize, stride: usize, plane: &'r [f64]) -> &'r [f64] {
        &plane[(y - self.first) * stride..][..stride]
    }
}

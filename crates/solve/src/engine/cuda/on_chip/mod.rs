//! Fields that stay in registers and shared memory from the first sweep to the last.

pub(crate) mod line;
pub(crate) mod placement;
pub(crate) mod plane;

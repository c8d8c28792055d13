//! Sweeps on processors.

pub(crate) mod line;
mod line_pass;
pub(crate) mod plane;
mod plane_pass;
mod plane_rows;

//! Multigrid in three dimensions, for boxes without fixed cells inside.
//!
//! The operator is a sum of products of one operator and two masses along the axes, on every level: along each axis the
//! coarse operator is PᵀAP of linear interpolation, and the mass Pᵀm. So sizes of any kind need no special case, and an
//! operator is a few numbers a point of an *axis*.
//!
//! A row of a field here is a plane of the grid: rows of points one after the other, with a point more at both ends.

pub(crate) mod hierarchy;
pub(crate) mod line;
mod operator;
mod transfer;

//! Multigrid in three dimensions.
//!
//! Without fixed cells inside, coefficients and mixed sides the operator is a sum of products of one operator and two
//! masses along the axes, on every level: along each axis the coarse operator is PᵀAP of linear interpolation, and the
//! mass Pᵀm (`operator.rs`, `line.rs`). So sizes of any kind need no special case, and an operator is a few numbers a
//! point of an *axis*. Else it has couplings for each point (`points.rs`, `points_transfer.rs`,
//! `points_product.rs`).
//!
//! A row of a field here is a plane of the grid: rows of points one after the other, with a point more at both ends.

mod around;
pub(crate) mod finest_level;
mod half_rows;
mod half_transfer;
pub(crate) mod hierarchy;
pub(crate) mod level;
pub(crate) mod line;
pub(crate) mod operator;
mod pass;
pub(crate) mod points;
mod points_product;
mod points_transfer;
mod red_black;
mod row;
pub(crate) mod side_by_side;
pub(crate) mod transfer;

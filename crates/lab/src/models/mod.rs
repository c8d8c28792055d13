//! Models of where GPU time goes. They know numbers only and need no GPU.

pub mod banks;
pub mod divergence;
pub mod index_expression;
pub mod occupancy;
pub mod roofline;

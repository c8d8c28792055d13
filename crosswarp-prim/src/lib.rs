//! Reductions whose result bits depend only on the values and their index: not on threads, PEs,
//! the split between them, or the width of the machine's vectors.
//!
//! The construction of a sum ([`leaf`], [`Superaccumulator`]):
//! 1. A *leaf* is 2048 consecutive elements by global index. Its 128 lanes (index mod 128) each add
//!    their 16 elements in order, starting from −0.0, and are then combined by halving. This is the
//!    only place where rounding happens while adding, and its order is fixed.
//! 2. Leaf sums are added *exactly* into an integer [`Superaccumulator`]. Integer addition
//!    commutes, so the parts of an array may be worked on anywhere and meet in any order.
//! 3. The exact total is rounded once, to nearest even.

mod element;
mod error;
mod exchange;
mod extremum;
mod float;
mod integer;
pub mod leaf;
mod leaves;
mod reducer;
mod round;
mod simd;
mod superaccumulator;
mod value;

pub use element::Element;
pub use error::ReduceError;
pub use float::Float;
pub use reducer::Reducer;
pub use simd::Simd;
pub use superaccumulator::Superaccumulator;
pub use value::{DType, Op, Scalar, UnknownOp, Value};

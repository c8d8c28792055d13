//! Reductions: the CPU's body and the GPU's, and what both give to the other PEs of a team.

pub(crate) mod cuda;
mod element;
mod error;
mod exchange;
mod extremum;
mod floats;
mod from_source;
mod integer_total;
mod integers;
mod op;
mod part;
mod partial;
mod reducer;
mod rows;

pub use element::Element;
pub use error::ReduceError;
pub use extremum::first_extremum;
pub use op::{Op, UnknownOp};
pub use reducer::Reducer;
pub use rows::Rows;

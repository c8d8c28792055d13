//! The harness behind every `crosswarp bench`: warm-up, repetition, medians with their spread, buffers
//! that rotate so that no cache helps, and rows of JSON with the machine and the version.
//!
//! ```
//! use crosswarp_lab::measure::{Machine, Plan, Row, host};
//! let values = vec![1.0f32; 1 << 16];
//! let plan = Plan::quick();
//! let time = host(&plan, |_| {
//!     std::hint::black_box(std::hint::black_box(&values).iter().sum::<f32>());
//!     Ok::<_, std::convert::Infallible>(())
//! })
//! .unwrap();
//! let row = Row::new("sum", time).with("dtype", "f32").with("elements", values.len()).bytes(1 << 18);
//! println!("{}", row.json(&Machine::of_host()));
//! ```

mod cache_flush;
mod compare;
mod inputs;
mod machine;
pub mod nsight;
mod plan;
mod row;
mod run;
mod timing;

pub use cache_flush::CacheFlush;
pub(crate) use cache_flush::READ;
pub use compare::{Change, Comparison, ReadError, Rows, compare};
pub use inputs::{RotatingBuffers, cold_bytes};
pub use machine::Machine;
pub use plan::Plan;
pub use row::{Row, SCHEMA};
pub use run::{fixed_runs, host, in_graph, on_stream};
pub use timing::Timing;

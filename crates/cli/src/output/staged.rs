//! Output files, as checkpoints are written too.

pub use crosswarp::solve::internal::{OutputError, StagedFile};

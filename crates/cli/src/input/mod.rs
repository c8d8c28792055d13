//! What a user's files and texts say.

pub mod boundary;
pub mod choice;
pub mod files;
pub mod formula;
pub mod kernel_file;
pub mod npy;
pub mod numerics;
pub mod png;
pub mod range;
pub mod slice;
pub mod spacing;
pub mod stopping;
pub mod tiff;

//! The `crosswarp` command.
mod expression;
mod general;
mod history;
mod npy;
mod staged;
mod vti;
fn main() {}

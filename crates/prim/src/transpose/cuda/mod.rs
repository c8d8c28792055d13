//! Transpositions on one GPU and over those of several PEs.

mod arguments;
mod device_transposer;
mod textbook;
mod tile_shapes;
mod world_transposer;

pub use device_transposer::{DeviceTransposeError, DeviceTransposer};
pub(crate) use device_transposer::{MATRICES, NARROW, SQUARES};
pub(crate) use textbook::TEXTBOOK;
pub use textbook::{TextbookTile, TextbookTransposer};
pub(crate) use world_transposer::WORLD;
pub use world_transposer::WorldTransposer;

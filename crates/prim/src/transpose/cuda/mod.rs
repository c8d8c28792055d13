//! Transpositions on one GPU and over those of several PEs.

mod arguments;
mod device_transposer;
mod tile_shapes;
mod world_transposer;

pub(crate) use device_transposer::TRANSPOSE;
pub use device_transposer::{DeviceTransposeError, DeviceTransposer, TextbookTile};
pub(crate) use world_transposer::TRANSPOSE_WORLD;
pub use world_transposer::WorldTransposer;

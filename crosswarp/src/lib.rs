//! Crosswarp.
pub use crosswarp_prim as prim;
pub use crosswarp_shmem as shmem;
pub use crosswarp_solve as solve;

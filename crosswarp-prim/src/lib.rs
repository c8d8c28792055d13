//! crosswarp-prim

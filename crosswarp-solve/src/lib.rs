//! crosswarp-solve

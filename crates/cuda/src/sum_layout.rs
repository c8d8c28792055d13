//! The numbers that reproducible sums have in common on the host and in kernels: the header `sum_layout.cuh` is made
//! from them. Hidden from the documentation: they are for crosswarp-prim and crosswarp-solve.

crate::shared_structures! {
    pub(crate) const HEADER = "// What reproducible sums have in common on the host and in kernels.
// Made from src/sum_layout.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp {

", "}  // namespace crosswarp\n";

    numbers {
        /// Rows of a leaf.
        pub LEAF_ROWS: usize = "leaf_rows": "int" = 16;
        /// Elements of a row of a leaf, and sums that are combined by halving.
        pub LEAF_LANES: usize = "leaf_lanes": "int" = 128;
        /// Limbs of an accumulator of `f32`: 32 bits each of 277, and one more for the carries out of the top.
        pub LIMBS_F32: usize = "limbs_f32": "int" = 10;
        /// The same, `f64`: of 2098 bits.
        pub LIMBS_F64: usize = "limbs_f64": "int" = 67;
        /// Limbs of an accumulator of what is computed from `f32` in `f64`: multiples of 2^-298 up to 2^267, and sums
        /// of many.
        pub LIMBS_WIDE: usize = "limbs_wide": "int" = 20;
        /// How many of these lie below those of `f32`.
        pub LIMBS_BELOW: usize = "limbs_below": "int" = 5;
        /// Words behind the limbs in memory: values other than -0, NaNs, +infinity, -infinity.
        pub TRACKERS: usize = "trackers": "int" = 4;
        /// Of a leaf of squares in `f32`: below two to this it may have lost bits that matter,
        pub LOST_BELOW_EXPONENT: i32 = "lost_below_exponent": "int" = -100;
        /// if an element is below two to this, so that its square may be subnormal.
        pub NORMAL_SQUARE_EXPONENT: i32 = "normal_square_exponent": "int" = -63;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crate::internal::assert_copy(folder, "device/sum_layout.cuh", super::HEADER);
    }
}

//! What the kernels of multigrid in boxes are launched with: the header `multigrid/box_arguments.cuh` is made from it.

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = "// What the kernels of multigrid in boxes are launched with.
// Made from src/gpu/box_arguments.rs, which is to be changed instead.
#pragma once
#include \"multigrid/arguments.cuh\"

namespace crosswarp {

", "}  // namespace crosswarp\n";

    numbers {
        /// Columns of a block's tile: a warp has them.
        pub(crate) TILE_X: usize = "box_tile_x": "int" = 32;
        /// Rows of a thread, an even number.
        pub(crate) THREAD_ROWS: usize = "box_thread_rows": "int" = 4;
        /// Most relaxations of a launch.
        pub(crate) MOST_STEPS: usize = "box_most_steps": "int" = 2;
        /// Planes of the residual that are kept: three for the next level's right side, and the one that is made meanwhile.
        pub(crate) RESIDUAL_PLANES: usize = "box_residual_planes": "int" = 4;
        /// Numbers of each column that a block keeps.
        pub(crate) COLUMN_NUMBERS: usize = "box_column_numbers": "int" = 8;
        /// The same where a lane has two columns.
        pub(crate) PAIR_NUMBERS: usize = "box_pair_numbers": "int" = 8;
        /// Threads of a block of other kernels.
        pub(crate) BOX_THREADS: usize = "box_threads": "int" = 128;
        /// Coarse columns of a warp that restricts right sides,
        pub(crate) RESTRICTING_COLUMNS: usize = "box_restricting_columns": "int" = 31;
        /// and coarse rows of a thread.
        pub(crate) RESTRICTING_ROWS: usize = "box_restricting_rows": "int" = 4;
        /// Most points of the coarsest level that a lane solves for.
        pub(crate) COARSEST_OF_LANE: usize = "box_coarsest_of_lane": "int" = 4;
        /// Half of the points around a point,
        pub(crate) BOX_STEPS: usize = "box_steps": "int" = 13;
        /// and of those along axes, which alone are coupled to it on the finest level.
        pub(crate) STEPS_ALONG_AXES: usize = "box_steps_along_axes": "int" = 3;
        /// Weights of the points between coarse ones.
        pub(crate) POINT_WEIGHTS: usize = "box_point_weights": "int" = 26;
    }

    /// Couplings of a level that differ from point to point, in planes as those of fields.
    pub(crate) BoxPoints = "box_points", align 8, size 328, with "": {
        /// To the points a step away: on the finest level those along axes only.
        0 pub parts: [u64; BOX_STEPS] = "const double*"["box_steps"],
        104 pub excess: u64 = "const double*",
        /// 1 / the diagonal; 0 where there is no equation.
        112 pub inverse: u64 = "const double*",
        /// Of points between those of the next level, in its planes.
        120 pub weights: [u64; POINT_WEIGHTS] = "const double*"["box_point_weights"],
    }

    /// A pass over a level of a box, or another kernel's work on it. Planes of fields have `plane` elements, of which each
    /// row has one more before its first point and one behind its last; addresses are those of plane 0, which need not be
    /// stored where a PE has some planes only.
    pub(crate) BoxPass = "box_pass", align 8, size 392, with "": {
        /// The field before; unused where a pass begins with zero or the correction alone.
        0 pub before: u64 = "const double*",
        /// The field after, another array; null if nothing is relaxed.
        8 pub after: u64 = "double*",
        16 pub right_side: u64 = "const double*",
        /// The next level's field.
        24 pub correction: u64 = "const double*",
        /// The next level's right side; null if the residual is not wanted.
        32 pub coarse_right_side: u64 = "double*",
        /// Gets sums of squares over the rows of each leaf, by columns, from the first of the planes that this PE computes.
        40 pub sums: u64 = "double*",
        /// Along x, y and z: couplings to the points before, then to those after, excess, mass, and 1 where there is an
        /// equation, else 0.
        48 pub lines: [u64; 3] = "const double*"[3],
        /// The weights of the next level's points in what lies behind them, then in what lies before the next.
        72 pub weights: [u64; 3] = "const double*"[3],
        /// Which row of 1 / the diagonal that of a row of points is, by z and y; then these rows.
        96 pub inverse_of: u64 = "const u32*",
        104 pub inverses: u64 = "const double*",
        112 pub plane: i64 = "i64",
        120 pub coarse_plane: i64 = "i64",
        128 pub sum_pitch: i64 = "i64",
        /// ω of each step.
        136 pub omega: [f64; MOST_STEPS] = "double"["box_most_steps"],
        /// What the field is multiplied by before it is squared.
        152 pub diagonal: f64 = "double",
        /// Of the coarsest level: its factor L, by rows, above the diagonal Lᵀ, and whether points have an equation.
        160 pub factor: u64 = "const double*",
        168 pub active: u64 = "const u8*",
        176 pub size: [i32; 3] = "i32"[3],
        188 pub coarse_size: [i32; 3] = "i32"[3],
        /// Whether the axes wrap around.
        200 pub wraps: [i32; 3] = "i32"[3],
        212 pub start: i32 = "i32",
        /// The step before which the residual is measured; −1: it is not.
        216 pub measured: i32 = "i32",
        /// Planes of a block.
        220 pub planes: i32 = "i32",
        /// The planes that this PE computes; arrays have these and some more.
        224 pub plane_start: i32 = "i32",
        228 pub plane_end: i32 = "i32",
        /// The coarse planes that this PE computes.
        232 pub coarse_start: i32 = "i32",
        236 pub coarse_end: i32 = "i32",
        /// Columns, rows and planes of which all couplings are the same, with others on both sides: where they begin and end.
        240 pub calm: [i32; 6] = "i32"[6],
        /// What of a row of these does not depend on the column: across, to the row before, behind, the plane before, behind,
        /// excess.
        264 pub calm_row: [f64; 6] = "double"[6],
        /// Along each axis, the weights of the coarse points before and behind one of these that lies between two.
        312 pub calm_weights: [f64; 6] = "double"[6],
        /// The coupling of all these to all neighbours, if all factors are powers of two; else 0.
        360 pub even_coupling: f64 = "double",
        /// 1 / the diagonal of all these.
        368 pub calm_inverse: f64 = "double",
        /// Null: the operator is one of lines.
        376 pub points: u64 = "const box_points*",
        /// The colour that the first relaxation changes, or `no_colour`; colours take turns. A pass without relaxations: that of
        /// the next one, if the equations of the other colour hold. Kernels of operators of points: the colour that is relaxed,
        /// or whose equations hold.
        384 pub colour: i64 = "i64",
    }

    /// Arrays of the caller's, of all points of a box, and the finest level. `F`: the type of their elements.
    pub(crate) BoxArrays = "box_arrays", template "template <class F>" "<float>", align 8, size 144, with "": {
        /// Null: there is none.
        0 pub source: u64 = "const F*",
        /// Null: zero.
        8 pub initial: u64 = "const F*",
        16 pub field: u64 = "F*",
        /// The level's field.
        24 pub u: u64 = "double*",
        /// Null: zero.
        32 pub right_side: u64 = "double*",
        /// Gets the largest magnitude, by its bits, and whether a value of the field is not +0; where the field is written, ones if
        /// a value has no room.
        40 pub words: u64 = "u64*",
        /// Derivatives outwards at the first and the last x, y and z,
        48 pub slopes: [f64; 6] = "double"[6],
        /// not 0 where there are such.
        96 pub crossed: [i32; 6] = "i32"[6],
        /// What the problem is multiplied by, or when it is written what the field is.
        120 pub scale: f64 = "double",
        /// What is taken away.
        128 pub surplus: f64 = "double",
        /// What is summed.
        136 pub weighed: i64 = "i64",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(
            folder,
            "kernels/multigrid/box_arguments.cuh",
            super::HEADER,
        );
    }
}

//! What the kernels of multigrid are launched with: the header `multigrid/arguments.cuh` is made from it.

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = "// What the kernels of multigrid are launched with.
// Made from src/gpu/level_arguments.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp {

", "}  // namespace crosswarp\n";

    numbers {
        /// Threads of a block of a pass.
        pub(crate) PASS_THREADS: usize = "level_pass_threads": "int" = 128;
        /// Threads of a block of a pass by tiles,
        pub(crate) TILE_THREADS: usize = "level_tile_threads": "int" = 256;
        /// columns of a tile,
        pub(crate) TILE_WIDE: usize = "level_tile_wide": "int" = 64;
        /// and rows of a thread.
        pub(crate) TILE_ROWS: usize = "level_tile_rows": "int" = 8;
        /// Own columns of a tile of the finest level,
        pub(crate) FINEST_TILE_COLUMNS: usize = "finest_tile_columns": "int" = 52;
        /// and rows.
        pub(crate) FINEST_TILE_ROWS: usize = "finest_tile_rows": "int" = 48;
        /// Threads of a block that has a tile of the same size with a mask,
        pub(crate) MASK_TILE_THREADS: usize = "mask_tile_threads": "int" = 512;
        /// and its shared memory in bytes;
        pub(crate) MASK_TILE_SHARED: u32 = "mask_tile_shared": "int" = 34848;
        /// of one with couplings that differ,
        pub(crate) VARYING_TILE_THREADS: usize = "varying_tile_threads": "int" = 1024;
        /// and that.
        pub(crate) VARYING_TILE_SHARED: u32 = "varying_tile_shared": "int" = 68128;
        /// Threads of a block that has a tile of a coarse level whose points differ,
        pub(crate) VARIED_COARSE_THREADS: usize = "varied_coarse_threads": "int" = 1024;
        /// and rows of the tile.
        pub(crate) VARIED_COARSE_ROWS: usize = "varied_coarse_rows": "int" = 64;
        /// Threads of a block of other kernels.
        pub(crate) LEVEL_THREADS: usize = "level_threads": "int" = 256;
        /// Rows of a block that restricts a right side.
        pub(crate) RESTRICTED_ROWS: usize = "restricted_rows": "int" = 32;
        /// Threads of a block where each has a column of some rows: few, so that few lie beyond the last column.
        pub(crate) COLUMN_THREADS: usize = "column_threads": "int" = 64;
        /// Threads of a block that makes a level of the finer one,
        pub(crate) GALERKIN_THREADS: usize = "galerkin_threads": "int" = 128;
        /// and its columns: each thread has a point.
        pub(crate) GALERKIN_COLUMNS: usize = "galerkin_columns": "int" = 32;
        /// Threads of a block of an exchange,
        pub(crate) LEVEL_EXCHANGE_THREADS: usize = "level_exchange_threads": "int" = 256;
        /// and most PEs that it sends to.
        pub(crate) MOST_EDGES: usize = "most_edges": "int" = 7;
        /// Relaxations change all points,
        pub(crate) NO_COLOUR: i32 = "no_colour": "int" = -1;
        /// those with an even sum of column and row, in boxes and plane,
        pub(crate) RED: i32 = "red": "int" = 0;
        /// or those with an odd one.
        pub(crate) BLACK: i32 = "black": "int" = 1;
        /// Most relaxations of a launch.
        pub(crate) MOST_STEPS: usize = "most_steps": "int" = 4;
        /// Threads of a block of the launch that has the small levels,
        pub(crate) SMALL_THREADS: usize = "small_threads": "int" = 512;
        /// most points of the first level that one block has,
        pub(crate) SMALL_POINTS: usize = "small_points": "int" = 1100;
        /// and shared memory of that block, in bytes: every architecture has it.
        pub(crate) SMALL_SHARED: u32 = "small_shared": "int" = 63488;
        /// Most relaxations before or after a correction.
        pub(crate) MOST_RELAXATIONS: usize = "most_relaxations": "int" = 3;
        /// Most points of the coarsest level.
        pub(crate) COARSEST_POINTS: usize = "coarsest_points": "int" = 64;
        /// Copies of a sum's words, so that not all leaves add to the same ones.
        pub(crate) SUM_COPIES: usize = "sum_copies": "int" = 32;
        /// What holds at an end of an axis: cells keep their value,
        pub(crate) END_FIXED: i32 = "end_fixed": "int" = 0;
        /// the field is the same on both sides of them,
        pub(crate) END_MIRROR: i32 = "end_mirror": "int" = 1;
        /// they are neighbours of those at the other end,
        pub(crate) END_WRAP: i32 = "end_wrap": "int" = 2;
        /// or, on a coarse level, nothing is beyond them.
        pub(crate) END_OPEN: i32 = "end_open": "int" = 3;
        /// A pass begins with zero,
        pub(crate) START_ZERO: i32 = "start_zero": "int" = 0;
        /// with the field,
        pub(crate) START_FIELD: i32 = "start_field": "int" = 1;
        /// with the corrected field,
        pub(crate) START_CORRECTED: i32 = "start_corrected": "int" = 2;
        /// or with the correction alone.
        pub(crate) START_CORRECTION: i32 = "start_correction": "int" = 3;
        /// Summed are the right side,
        pub(crate) WEIGHED_RIGHT_SIDE: i32 = "weighed_right_side": "int" = 0;
        /// its magnitudes,
        pub(crate) WEIGHED_MAGNITUDES: i32 = "weighed_magnitudes": "int" = 1;
        /// or the field.
        pub(crate) WEIGHED_FIELD: i32 = "weighed_field": "int" = 2;
    }

    /// A pass over a level, or another kernel's work on it. `F`: the type of its field. Rows of fields have `pitch`
    /// elements; addresses are those of row 0, which need not be stored where a PE has some rows only. Rows of tables are reached by an index, from row −1 on, and have all parts one after the other, each with
    /// a column more on both sides.
    pub(crate) LevelPass = "level_pass", template "template <class F>" "<float>", align 8, size 328, with "": {
        /// The field before; unused where a pass begins with zero or the correction alone.
        0 pub before: u64 = "const F*",
        /// The field after, another array; null if nothing is relaxed or corrected.
        8 pub after: u64 = "F*",
        /// Null: zero.
        16 pub right_side: u64 = "const F*",
        /// Cells that keep their value: byte not 0; null if none.
        24 pub fixed: u64 = "const u8*",
        /// Couplings and excess; null where all couplings are 1.
        32 pub operator_index: u64 = "const u32*",
        40 pub operator_rows: u64 = "const F*",
        /// 1 / the diagonal.
        48 pub inverse_index: u64 = "const u32*",
        56 pub inverse_rows: u64 = "const F*",
        /// The next level's field.
        64 pub correction: u64 = "const float*",
        /// Weights between the levels, by rows of the next.
        72 pub transfer_index: u64 = "const u32*",
        80 pub transfer_rows: u64 = "const float*",
        /// The next level's right side; null if the residual is not wanted.
        88 pub coarse_right_side: u64 = "float*",
        /// Gets sums of squares of the residual over the rows of each leaf, by columns.
        96 pub sums: u64 = "double*",
        104 pub pitch: i64 = "i64",
        112 pub coarse_pitch: i64 = "i64",
        120 pub sum_pitch: i64 = "i64",
        /// What corrections and residuals are multiplied by.
        128 pub up_scale: f64 = "double",
        136 pub down_scale: f64 = "double",
        /// ω of each step; over the diagonal where all couplings are 1.
        144 pub omega: [f64; MOST_STEPS] = "double"["most_steps"],
        176 pub nx: i32 = "i32",
        180 pub ny: i32 = "i32",
        184 pub coarse_nx: i32 = "i32",
        188 pub coarse_ny: i32 = "i32",
        /// Left, right, top, bottom.
        192 pub ends: [i32; 4] = "i32"[4],
        208 pub start: i32 = "i32",
        /// The step before which the residual is measured; −1: it is not.
        212 pub measured: i32 = "i32",
        /// Rows of a block; of the finest level a multiple of 16.
        216 pub rows: i32 = "i32",
        /// Row 0's number in the leaves.
        220 pub first: i32 = "i32",
        /// For the coarsest level: its factor, by rows, and whether points have an equation.
        224 pub factor: u64 = "const double*",
        232 pub active: u64 = "const u8*",
        /// `sum_copies` sums; then where the host finds the sum of them.
        240 pub words: u64 = "u64*",
        248 pub total: u64 = "u64*",
        /// Rows of leaves that this PE has.
        256 pub leaf_bands: i32 = "i32",
        /// Rows of which all couplings and weights are the same.
        260 pub calm_start: i32 = "i32",
        264 pub calm_end: i32 = "i32",
        /// The rows that this PE computes; arrays have these and some more.
        268 pub row_start: i32 = "i32",
        272 pub row_end: i32 = "i32",
        /// The row of leaves that the first of them is in.
        276 pub first_band: i32 = "i32",
        /// From sums of one kind to those of the next.
        280 pub sum_kind: i64 = "i64",
        /// Not 0: the field is +0 but in the first and last rows; then most blocks do not read it.
        288 pub is_zero: i32 = "i32",
        /// The colour that the first relaxation changes; colours take turns. Without relaxations: that the next one would.
        292 pub colour: i32 = "i32",
        /// On a coarse level, where all points are alike: the coupling across and to corners, that along and to two corners, 1 /
        /// the diagonal.
        296 pub same_couplings: [f32; 4] = "float"[4],
        /// These columns and rows, from one to before another; none where both are 0.
        312 pub same_columns: [i32; 2] = "i32"[2],
        320 pub same_rows: [i32; 2] = "i32"[2],
    }

    /// Arrays of the caller's, of all points of a grid, and the finest level of a plane. `F`: the type of their elements.
    pub(crate) LevelArrays = "level_arrays", template "template <class F>" "<float>", align 8, size 208, with "": {
        /// Null: there is none.
        0 pub source: u64 = "const F*",
        /// Null: zero.
        8 pub initial: u64 = "const F*",
        16 pub field: u64 = "F*",
        /// Values of the sides left, right, top, bottom by the grid's rows or columns; null where they are not given.
        24 pub sides: [u64; 4] = "const F*"[4],
        /// What crosses these sides by the level's rows or columns; null where nothing can.
        56 pub flows: [u64; 4] = "const double*"[4],
        /// The level's field.
        88 pub u: u64 = "double*",
        /// Null: zero.
        96 pub right_side: u64 = "double*",
        /// As in `level_pass`.
        104 pub fixed: u64 = "const u8*",
        112 pub pitch: i64 = "i64",
        /// Of a cell.
        120 pub area: f64 = "double",
        /// What the operator is multiplied by, where it differs from point to point.
        128 pub operator_scale: f64 = "double",
        /// What the problem is multiplied by, or when it is written what the field is.
        136 pub scale: f64 = "double",
        /// What is taken away.
        144 pub surplus: f64 = "double",
        /// Gets the largest magnitude, by its bits, and whether a value between the first and the last row is not +0; where the
        /// field is written, ones if a value has no room.
        152 pub words: u64 = "u64*",
        /// Of the level,
        160 pub nx: i32 = "i32",
        164 pub ny: i32 = "i32",
        /// whose first column and row have these numbers in the grid.
        168 pub first: [i32; 2] = "i32"[2],
        176 pub grid_nx: i32 = "i32",
        180 pub grid_ny: i32 = "i32",
        /// As in `level_pass`.
        184 pub ends: [i32; 4] = "i32"[4],
        /// Not 0: the operator differs from point to point.
        200 pub varies: i32 = "i32",
        /// What is summed.
        204 pub weighed: i32 = "i32",
    }

    /// An array with voids, and what is made of it: `nx` columns and `ny` rows one after the other. `F`: the type of its elements.
    pub(crate) ArrayWithVoids = "array_with_voids", template "template <class F>" "<float>", align 8, size 80, with "": {
        0 pub values: u64 = "const F*",
        /// Byte not 0: known; null: what is not NaN is.
        8 pub known: u64 = "const u8*",
        /// Gets a value for each cell, known ones as they are.
        16 pub guess: u64 = "F*",
        /// Gets 1 for each known cell, else 0, by rows of `pitch` elements,
        24 pub kept: u64 = "u8*",
        /// and for each row whether one of its cells is known.
        32 pub rows: u64 = "u8*",
        /// By rows without a known cell: the nearest rows before and behind that have one, or −1.
        40 pub nearest: u64 = "const i32*",
        /// To the first the number of known cells is added; the second becomes not 0 if the value of one is not finite.
        48 pub words: u64 = "u64*",
        /// Cells of this value are not known; NaN: none.
        56 pub nodata: f64 = "double",
        64 pub pitch: i64 = "i64",
        72 pub nx: i32 = "i32",
        76 pub ny: i32 = "i32",
    }

    /// What an operator of a plane is made of, and where. `F`: the type of arrays of all points of a grid.
    pub(crate) OperatorArrays = "operator_arrays", template "template <class F>" "<float>", align 8, size 192, with "": {
        /// Byte not 0: the cell keeps its value.
        0 pub fixed: u64 = "const u8*",
        /// Null: 1.
        8 pub coefficient: u64 = "const F*",
        /// Null: 0.
        16 pub reaction: u64 = "const F*",
        /// Of a mixed side a/b by the level's rows or columns: left, right, top, bottom; else null.
        24 pub mixed: [u64; 4] = "const double*"[4],
        /// Where the coefficient along these sides goes, by the same; null: nowhere.
        56 pub kappas: [u64; 4] = "double*"[4],
        /// The level's: as in `level_pass`, by rows of `pitch` elements.
        88 pub mask: u64 = "u8*",
        /// Rows of the couplings' table and of 1 / the diagonal, from one of zeros on.
        96 pub parts: u64 = "double*",
        104 pub inverse: u64 = "double*",
        /// Gets a count, or the largest coefficient by its bits and whether something ties the field to a value.
        112 pub words: u64 = "u64*",
        120 pub pitch: i64 = "i64",
        /// Of columns and of rows.
        128 pub spacings: [f64; 2] = "double"[2],
        /// What couplings are multiplied by: a power of two.
        144 pub scale: f64 = "double",
        /// Of the level,
        152 pub nx: i32 = "i32",
        156 pub ny: i32 = "i32",
        /// whose first column and row have these numbers in the grid.
        160 pub first: [i32; 2] = "i32"[2],
        168 pub grid_nx: i32 = "i32",
        172 pub grid_ny: i32 = "i32",
        /// As in `level_pass`.
        176 pub ends: [i32; 4] = "i32"[4],
    }

    /// A step on the finest level beside passes. What fields and weights are is said of each step in `finest_steps.cuh`.
    pub(crate) FinestStep = "finest_step", align 8, size 56, with "": {
        0 pub u: u64 = "double*",
        8 pub r: u64 = "double*",
        16 pub p: u64 = "double*",
        24 pub q: u64 = "double*",
        32 pub weights: [f64; 2] = "double"[2],
        /// From sums of one kind to those of the next.
        48 pub sum_kind: i64 = "i64",
    }

    /// The relaxations of a cycle: ω of each.
    pub(crate) Relaxations = "relaxations", align 8, size 56, with "": {
        0 pub pre: [f64; MOST_RELAXATIONS] = "double"["most_relaxations"],
        24 pub post: [f64; MOST_RELAXATIONS] = "double"["most_relaxations"],
        48 pub pre_count: i32 = "i32",
        52 pub post_count: i32 = "i32",
    }

    /// Rows that travel between two PEs.
    pub(crate) LevelEdge = "level_edge", align 8, size 32, with "": {
        /// The other PE.
        0 pub pe: i32 = "i32",
        /// Which signal says that they have come.
        4 pub signal: i32 = "i32",
        /// A multiple of 16, as both addresses are.
        8 pub bytes: i64 = "i64",
        /// Where they are, or will be, in this PE's memory.
        16 pub rows: u64 = "u64",
        /// Symmetric: where they are put.
        24 pub buffer: u64 = "u64",
    }

    /// An exchange of rows.
    pub(crate) LevelExchange = "level_exchange_of", align 8, size 472, with "": {
        /// Symmetric: blocks that have sent, added up over all exchanges of a kind.
        0 pub signals: u64 = "u64*",
        /// What a signal is when all of this exchange have sent.
        8 pub sent: u64 = "u64",
        16 pub sends: i32 = "i32",
        20 pub receives: i32 = "i32",
        24 pub send: [LevelEdge; MOST_EDGES] = "level_edge"["most_edges"],
        248 pub receive: [LevelEdge; MOST_EDGES] = "level_edge"["most_edges"],
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(
            folder,
            "kernels/multigrid/arguments.cuh",
            super::HEADER,
        );
    }
}

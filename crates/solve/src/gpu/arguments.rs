//! What the kernels of solves are launched with: the header `jacobi/arguments.cuh` is made from it.

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = "// What the kernels are launched with.
// Made from src/gpu/arguments.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp {

", "}  // namespace crosswarp\n";

    numbers {
        /// Columns of padding before column 0 of a plane and, at least, behind the last tile.
        pub(crate) PAD: usize = "pad": "int" = 16;
        /// Digits of a threshold, at least the limbs of any accumulator.
        pub(crate) DIGITS: usize = "threshold_digits": "int" = 68;
        /// Sorts of strips of a band, at most.
        pub(crate) STRIP_KINDS: usize = "strip_kinds": "int" = 20;
        /// Columns of a plane that a lane has in a pass.
        pub(crate) LANE_COLUMNS: usize = "lane_columns": "int" = 4;
        /// Most sweeps of a pass over an `f32` plane without mask and source.
        pub(crate) PASS_DEPTH_PLAIN_F32: usize = "pass_depth_plain_f32": "int" = 6;
        /// The same over large ones of `f64`.
        pub(crate) PASS_DEPTH_LARGE_F64: usize = "pass_depth_large_f64": "int" = 6;
        /// The same over `f32` planes with a source.
        pub(crate) PASS_DEPTH_SOURCE_F32: usize = "pass_depth_source_f32": "int" = 4;
        /// Most sweeps of a pass over other planes.
        pub(crate) PASS_DEPTH: usize = "pass_depth": "int" = 5;
        /// Rows of a pass under way from memory, or just read: twice as many as are unrolled.
        pub(crate) WAVEFRONT_RING: usize = "wavefront_ring": "int" = 6;
        /// Points on each side of a line that a pass needs, and most sweeps of it.
        pub(crate) LINE_PASS_HALO: usize = "line_pass_halo": "int" = 64;
        /// Threads of a block of a pass over an `f32` line.
        pub(crate) LINE_PASS_THREADS_F32: u32 = "line_pass_threads_f32": "int" = 512;
        /// The same, `f64`.
        pub(crate) LINE_PASS_THREADS_F64: u32 = "line_pass_threads_f64": "int" = 256;
        /// Points of the halo of a line on the chip, on each side: most sweeps until it has to be renewed.
        pub(crate) LINE_TILE_HALO: usize = "line_tile_halo": "int" = 32;
        /// Sets of edges and of words that runs of a line use in turn, pass by pass.
        pub(crate) LINE_SETS: usize = "line_sets": "int" = 3;
        /// Columns of a lane in narrow units of a plane on the chip.
        pub(crate) NARROW_UNIT_COLUMNS: usize = "narrow_unit_columns": "int" = 1;
        /// In wide ones, `f32`.
        pub(crate) WIDE_UNIT_COLUMNS_F32: usize = "wide_unit_columns_f32": "int" = 4;
        /// The same, `f64`.
        pub(crate) WIDE_UNIT_COLUMNS_F64: usize = "wide_unit_columns_f64": "int" = 2;
        /// Most warps of a block that holds a tile of a plane.
        pub(crate) TILE_WARPS: usize = "tile_warps": "int" = 16;
        /// Generations of packets that slots are for.
        pub(crate) PACKET_RING: usize = "packet_ring": "int" = 4;
        /// Sweeps of an `f32` plane whose norms are decided on together.
        pub(crate) CHUNK_SWEEPS_F32: usize = "chunk_sweeps_f32": "int" = 64;
        /// The same, `f64`.
        pub(crate) CHUNK_SWEEPS_F64: usize = "chunk_sweeps_f64": "int" = 32;
        /// Dynamic shared memory of the kernels of tiles of an `f32` plane, in bytes.
        pub(crate) PLANE_TILE_SHARED_F32: u32 = "plane_tile_shared_f32": "int" = 81920;
        /// The same, `f64`.
        pub(crate) PLANE_TILE_SHARED_F64: u32 = "plane_tile_shared_f64": "int" = 98304;
        /// Dynamic shared memory of the kernels with deep halos, in bytes.
        pub(crate) DEEP_HALO_SHARED: u32 = "deep_halo_shared": "int" = 49152;
        /// Cells of a deep halo of an `f32` plane, and sweeps from one exchange to the next.
        pub(crate) DEEP_HALO_DEPTH_F32: usize = "deep_halo_depth_f32": "int" = 8;
        /// The same, `f64`.
        pub(crate) DEEP_HALO_DEPTH_F64: usize = "deep_halo_depth_f64": "int" = 4;
        /// Warps of a block of one leaf with a deep halo, `f32`.
        pub(crate) DEEP_HALO_WARPS_ONE_F32: usize = "deep_halo_warps_one_f32": "int" = 12;
        /// Of two leaves, `f32`.
        pub(crate) DEEP_HALO_WARPS_TWO_F32: usize = "deep_halo_warps_two_f32": "int" = 8;
        /// Of one leaf, `f64`.
        pub(crate) DEEP_HALO_WARPS_ONE_F64: usize = "deep_halo_warps_one_f64": "int" = 10;
        /// Threads of a block of the kernels that make one sweep.
        pub(crate) SWEEP_THREADS: u32 = "sweep_threads": "int" = 128;
        /// Threads of a block of what is done between passes.
        pub(crate) BETWEEN_PASSES_THREADS: u32 = "between_passes_threads": "int" = 256;
        /// Threads of a block of the exchange of halos.
        pub(crate) EXCHANGE_THREADS: u32 = "exchange_threads": "int" = 256;
    }

    /// A PE's band of a plane. Rows and columns carry their numbers in the whole grid. Every array has `pitch` elements
    /// per row and `pad` columns before column 0; row `first` is the first that is stored. The padding, and the rows
    /// beyond `own`, are halos.
    pub(crate) Band = "band", template "template <class F>" "<float>", align 8, size 80, with "
    __device__ i64 at(i32 x, i32 y) const { return (i64)(y - first) * pitch + x; }
": {
        /// Address of row `first`, column 0.
        0 pub before: u64 = "const F*",
        8 pub after: u64 = "F*",
        /// Cells that keep their value: byte not 0; null if none.
        16 pub fixed: u64 = "const u8*",
        /// h²·f; null if none.
        24 pub source: u64 = "const F*",
        /// One superaccumulator per sweep.
        32 pub words: u64 = "u64*",
        40 pub pitch: i64 = "i64",
        48 pub nx: i32 = "i32",
        52 pub ny: i32 = "i32",
        56 pub first: i32 = "i32",
        60 pub own_start: i32 = "i32",
        64 pub own_end: i32 = "i32",
        /// Whether the outermost columns and rows are ghosts instead of fixed.
        68 pub wrap_x: i32 = "i32",
        72 pub wrap_y: i32 = "i32",
        76 pub padding: u32 = "u32",
    }

    /// A PE's part of a line.
    pub(crate) Segment = "segment", template "template <class F>" "<float>", align 8, size 48, with "": {
        /// Address of point `own_start`; halos left and right of the own points.
        0 pub before: u64 = "const F*",
        8 pub after: u64 = "F*",
        /// One superaccumulator per sweep.
        16 pub words: u64 = "u64*",
        24 pub points: i64 = "i64",
        32 pub own_start: i64 = "i64",
        40 pub own_end: i64 = "i64",
    }

    /// Strips as wide as the leaves that a group of `warps` warps owns: `across` of them, `step` columns from one to
    /// the next, from column `x` on, in the rows start … end − 1, cut into pieces of `rows` rows, a multiple of 16.
    /// Their blocks begin with `first_block`.
    pub(crate) StripsOf = "strips_of", align 4, size 32, with "": {
        0 pub first_block: i32 = "i32",
        4 pub warps: i32 = "i32",
        8 pub x: i32 = "i32",
        12 pub across: i32 = "i32",
        16 pub step: i32 = "i32",
        20 pub rows: i32 = "i32",
        24 pub start: i32 = "i32",
        28 pub end: i32 = "i32",
    }

    /// How a band is cut, in the order of blocks.
    pub(crate) Strips = "strips",
    align 8, size 656, with "": {
        /// Unused ones begin behind the grid.
        0 pub of: [StripsOf; STRIP_KINDS] = "strips_of"["strip_kinds"],
        /// Rows that neighbours wait for are made by the blocks before this one; each of their warps then adds 1 to
        /// `made`.
        640 pub counted_blocks: i32 = "i32",
        644 pub padding: u32 = "u32",
        /// Null if no blocks are counted.
        648 pub made: u64 = "u64*",
    }

    /// What an exchange does on one side.
    pub(crate) EdgeParameters = "edge", align 8, size 24, with "": {
        /// The neighbour; −1: none.
        0 pub pe: i32 = "i32",
        /// Rows that travel each way.
        4 pub count: i32 = "i32",
        /// The first row that goes; of a line a row is a point, so there may be more than 2³¹.
        8 pub send: i64 = "i64",
        /// The first row that comes.
        16 pub receive: i64 = "i64",
    }

    /// An exchange of halos.
    pub(crate) ExchangeParameters = "exchange", template "template <class F>" "<float>", align 8, size 120, with "": {
        /// Address of row `first`, column 0.
        0 pub field: u64 = "F*",
        /// Symmetric; two of [above, below] of `part` elements.
        8 pub buffers: u64 = "F*",
        /// Symmetric. Above, below: blocks that have sent, added up over all exchanges. Then: this PE's warps that have
        /// made rows for neighbours, added up over all passes.
        16 pub signals: u64 = "u64*",
        24 pub pitch: i64 = "i64",
        32 pub part: i64 = "i64",
        40 pub number: u64 = "u64",
        /// Warps that have made the rows that go.
        48 pub made: u64 = "u64",
        56 pub first: i64 = "i64",
        /// Elements of a row that travel, a multiple of 128.
        64 pub columns: i32 = "i32",
        68 pub padding: i32 = "i32",
        /// Above, below.
        72 pub edges: [EdgeParameters; 2] = "edge"[2],
    }

    /// What a run that decides on the stop adds up, and where.
    pub(crate) StopDecision = "stop_decision_run",
    template "template <class F>" "<float>", align 8, size 336, with "": {
        /// Of this PE: [sweeps][words], zero at first.
        0 pub words: u64 = "u64*",
        /// Of this PE: [chunks], zero at first.
        8 pub tickets: u64 = "u32*",
        /// Symmetric: [chunks][PEs][chunk_sweeps × words].
        16 pub parts: u64 = "u64*",
        /// Symmetric: [PEs], chunks that each has sent since the solve began.
        24 pub arrived: u64 = "u64*",
        /// For the host: [sweeps][words].
        32 pub totals: u64 = "u64*",
        /// For the host: 1 + the first sweep that meets the threshold; 0: none.
        40 pub stop: u64 = "u64*",
        /// Chunks before this run.
        48 pub before: u64 = "u64",
        /// That have parts; the first ones.
        56 pub pes: i32 = "i32",
        /// Whether an infinite sum meets the threshold.
        60 pub infinite: i32 = "i32",
        /// The largest finite sum that does, in base 2³² from the lowest.
        64 pub digits: [u32; DIGITS] = "u32"["threshold_digits"],
    }

    /// A run of sweeps over a plane in registers, with edges that travel after every sweep.
    pub(crate) TileRun = "tile_run", template "template <class F>" "<float>", align 8, size 496, with "": {
        0 pub plane: Band = "band<F>",
        /// Symmetric: packets of rows, [ring][2 max_bands][units][32 lanes].
        80 pub rows: u64 = "u64*",
        /// Packets of columns, [ring][max_bands][units][left, right][16].
        88 pub columns: u64 = "u64*",
        /// Packets of a generation.
        96 pub row_stride: u32 = "u32",
        100 pub column_stride: u32 = "u32",
        /// Bands of 16 rows of the PE with most.
        104 pub max_bands: i32 = "i32",
        /// Of this PE: rows of units, and units in each.
        108 pub bands: i32 = "i32",
        112 pub units: i32 = "i32",
        /// Of a block.
        116 pub tile_bands: i32 = "i32",
        120 pub tile_units: i32 = "i32",
        /// The PEs there, −1: none.
        124 pub above: i32 = "i32",
        128 pub below: i32 = "i32",
        /// Of the first edges.
        132 pub generation: u32 = "u32",
        136 pub sweeps: i32 = "i32",
        /// Whether sweeps are decided on; else all are made.
        140 pub decides: i32 = "i32",
        /// As `after`: the field before chunk c, in c % 2; not before chunk 0.
        144 pub kept: [u64; 2] = "F*"[2],
        160 pub norms: StopDecision = "stop_decision_run<F>",
    }

    /// A run of sweeps over a plane in registers, with deep halos.
    pub(crate) DeepHaloRun = "deep_halo_run", template "template <class F>" "<float>", align 8, size 488, with "": {
        0 pub plane: Band = "band<F>",
        /// Of 16 rows, of this PE.
        80 pub bands: i32 = "i32",
        /// The PEs there.
        84 pub above: i32 = "i32",
        88 pub below: i32 = "i32",
        /// Of the first packets.
        92 pub generation: u32 = "u32",
        96 pub sweeps: i32 = "i32",
        /// Whether sweeps are decided on; else all are made.
        100 pub decides: i32 = "i32",
        /// As `after`: the field before chunk c, in c % 2; not before chunk 0.
        104 pub kept: [u64; 2] = "F*"[2],
        120 pub norms: StopDecision = "stop_decision_run<F>",
        /// Symmetric: [ring][leaves + 2][field_rows][128]: strips of columns, the first and the last beyond the grid's
        /// ends.
        456 pub packets: u64 = "u64*",
        /// Packets of a generation.
        464 pub slot: u64 = "u64",
        /// T + rows of the PE with most + T.
        472 pub field_rows: i32 = "i32",
        /// In each band of this PE.
        476 pub leaves: i32 = "i32",
        /// Of the PE above.
        480 pub above_rows: i32 = "i32",
        484 pub padding: i32 = "i32",
    }

    /// A run of passes over a line in registers.
    pub(crate) LineRun = "line_run", template "template <class F>" "<float>", align 8, size 400, with "": {
        /// Address of point `own_start`, with 32 points of halo on each side.
        0 pub before: u64 = "const F*",
        8 pub after: u64 = "F*",
        /// Symmetric; [line_sets][2 + warps][2][32]: from the PE on the left, on the right, of the warps.
        16 pub edges: u64 = "F*",
        /// Symmetric; [line_sets][PEs][32][words of an accumulator].
        24 pub slots: u64 = "u64*",
        /// Symmetric; one for each PE.
        32 pub signals: u64 = "u64*",
        40 pub arrived: u64 = "u64*",
        /// Of the host: the sum of every sweep of this launch.
        48 pub sums: u64 = "u64*",
        /// Of the host: sweeps made, passes.
        56 pub result: u64 = "u64*",
        64 pub points: i64 = "i64",
        72 pub own_start: i64 = "i64",
        80 pub own_end: i64 = "i64",
        /// Number of the first pass.
        88 pub first_pass: u64 = "u64",
        /// The PEs there; −1: none.
        96 pub left: i32 = "i32",
        100 pub right: i32 = "i32",
        /// Sweeps of the launch and of a pass, at least 1.
        104 pub most: i32 = "i32",
        108 pub depth: i32 = "i32",
        /// Sweeps before the launch.
        112 pub done: i32 = "i32",
        /// Base-2 logarithm of the largest sum that meets the tolerance, in units of the lowest limb.
        116 pub log_threshold: f32 = "float",
        120 pub allows_infinity: i32 = "i32",
        /// That sum, as digits like the limbs.
        124 pub threshold: [u32; DIGITS] = "u32"["threshold_digits"],
        396 pub padding: u32 = "u32",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(
            folder,
            "kernels/jacobi/arguments.cuh",
            super::HEADER,
        );
    }
}

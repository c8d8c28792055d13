//! The sources of the kernels.
//!
//! A solve launches one of the large kernels, or a few, and compiling one takes about a second. So each is a source of
//! its own: a line that names the macro of a header which makes it. Sources of several kernels are those that together
//! take as long.

use crosswarp_cuda::{Shape, Source};
use crosswarp_prim::leaf::LEAF;

use crate::engine::cuda::temporal::strips::{PassKind, PassShape};
use crate::gpu::arguments::{
    self, BETWEEN_PASSES_THREADS, DEEP_HALO_SHARED, DEEP_HALO_WARPS_ONE_F32,
    DEEP_HALO_WARPS_ONE_F64, DEEP_HALO_WARPS_TWO_F32, EXCHANGE_THREADS, LINE_PASS_THREADS_F32,
    LINE_PASS_THREADS_F64, PLANE_TILE_SHARED_F32, PLANE_TILE_SHARED_F64, SWEEP_THREADS, TILE_WARPS,
};
use crate::gpu::box_arguments::{
    self, BOX_THREADS, COLUMN_NUMBERS, PAIR_NUMBERS, RESIDUAL_PLANES, THREAD_ROWS, TILE_X,
};
use crate::gpu::level_arguments::{
    self, COLUMN_THREADS, GALERKIN_THREADS, LEVEL_EXCHANGE_THREADS, LEVEL_THREADS,
    MASK_TILE_SHARED, MASK_TILE_THREADS, PASS_THREADS, SMALL_SHARED, SMALL_THREADS, TILE_THREADS,
    VARIED_COARSE_THREADS, VARYING_TILE_SHARED, VARYING_TILE_THREADS,
};

/// Header `name` of `kernels/`.
macro_rules! header {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../kernels/", $name)))
    };
}

const HEADERS: &[(&str, &str)] = &[
    header!("async_copy.cuh"),
    ("jacobi/arguments.cuh", arguments::HEADER),
    header!("jacobi/exchange/device_put.cuh"),
    header!("jacobi/ghosts.cuh"),
    header!("jacobi/line.cuh"),
    header!("jacobi/on_chip/choose.cuh"),
    header!("jacobi/on_chip/deep_halo.cuh"),
    header!("jacobi/on_chip/line.cuh"),
    header!("jacobi/on_chip/line_tile.cuh"),
    header!("jacobi/on_chip/norm_warps.cuh"),
    header!("jacobi/on_chip/packet_wait.cuh"),
    header!("jacobi/on_chip/packets.cuh"),
    header!("jacobi/on_chip/plane_tile.cuh"),
    header!("jacobi/on_chip/stop_decision.cuh"),
    header!("jacobi/on_chip/unit_neighbours.cuh"),
    header!("jacobi/one_sweep/sweep.cuh"),
    header!("jacobi/plane.cuh"),
    header!("jacobi/temporal/line_pass.cuh"),
    header!("jacobi/temporal/pass.cuh"),
    header!("jacobi/temporal/wavefront.cuh"),
    header!("mbarrier.cuh"),
];

const LEVEL_HEADERS: &[(&str, &str)] = &[
    header!("async_copy.cuh"),
    header!("mbarrier.cuh"),
    ("multigrid/arguments.cuh", level_arguments::HEADER),
    ("multigrid/box_arguments.cuh", box_arguments::HEADER),
    header!("multigrid/box_pass.cuh"),
    header!("multigrid/box_points.cuh"),
    header!("multigrid/box_red_black.cuh"),
    header!("multigrid/finest_steps.cuh"),
    header!("multigrid/finest_tile.cuh"),
    header!("multigrid/five_point.cuh"),
    header!("multigrid/galerkin.cuh"),
    header!("multigrid/magnitude.cuh"),
    header!("multigrid/neighbours.cuh"),
    header!("multigrid/nine_point.cuh"),
    header!("multigrid/pass.cuh"),
    header!("multigrid/pass_kinds.cuh"),
    header!("multigrid/right_side.cuh"),
    header!("multigrid/small_levels.cuh"),
    header!("multigrid/tile.cuh"),
    header!("multigrid/transfer.cuh"),
    header!("multigrid/varied_coarse_tile.cuh"),
    header!("multigrid/varied_tile.cuh"),
];

/// The file `name` of `kernels/`, and the threads of its kernels' blocks.
macro_rules! file {
    ($headers:ident, $name:literal, $($kernel:literal: $threads:expr $(; $shared:expr)?),+) => {
        Source::new($name, include_str!(concat!("../../../kernels/", $name)))
            .with_headers($headers)
            .with_shapes(&[$(Shape {
                kernel: $kernel,
                threads: $threads as u32,
                dynamic_shared: 0 $(+ $shared)?,
            }),+])
    };
}

/// The one kernel that the macro `$make` makes of its name and `$of`: after the folder and the headers with what it is
/// made of. Behind it the threads and the dynamic shared memory of a block.
macro_rules! kernel {
    (
        $headers:ident, $folder:literal $($header:literal)+:
        $make:literal $kernel:literal $of:expr, $threads:expr, $shared:expr
    ) => {
        Source::new(
            concat!($folder, "/", $kernel, ".cu"),
            concat!(
                $("#include \"", $folder, "/", $header, "\"\n",)+
                $make, "(", $kernel, ", ", $of, ")\n"
            ),
        )
        .with_headers($headers)
        .with_shapes(&[Shape {
            kernel: $kernel,
            threads: $threads as u32,
            dynamic_shared: $shared as u32,
        }])
    };
}

macro_rules! exchange {
    ($kernel:literal, $of:literal) => {
        kernel!(
            HEADERS, "jacobi" "exchange/device_put.cuh":
            "CROSSWARP_EXCHANGE" $kernel $of, EXCHANGE_THREADS, 0
        )
    };
}

/// Passes over a plane, with what they take where blocks have 8 warps.
macro_rules! pass {
    ($kernel:literal, $type:ty, $kind:ident, $of:literal) => {
        kernel!(
            HEADERS, "jacobi" "temporal/pass.cuh":
            "CROSSWARP_PASS" $kernel $of, 256, PassShape::of::<$type>(PassKind::$kind).shared(8)
        )
    };
}

macro_rules! line_pass {
    ($kernel:literal, $of:literal, $threads:expr) => {
        kernel!(HEADERS, "jacobi" "temporal/line_pass.cuh": "CROSSWARP_LINE_PASS" $kernel $of, $threads, 0)
    };
}

/// Whole solves on a line, with 8 warps a block, that save a leaf each.
macro_rules! run_line {
    ($kernel:literal, $type:ty, $of:literal) => {
        kernel!(
            HEADERS, "jacobi" "on_chip/line.cuh":
            "CROSSWARP_RUN_LINE" $kernel $of, 256, 8 * LEAF * size_of::<$type>()
        )
    };
}

macro_rules! plane_tile {
    ($kernel:literal, $of:literal, $shared:expr) => {
        kernel!(
            HEADERS, "jacobi" "on_chip/plane_tile.cuh":
            "CROSSWARP_PLANE_TILE" $kernel $of, 32 * TILE_WARPS, $shared
        )
    };
}

macro_rules! deep_halo {
    ($kernel:literal, $of:literal, $warps:expr) => {
        kernel!(
            HEADERS, "jacobi" "on_chip/deep_halo.cuh":
            "CROSSWARP_DEEP_HALO" $kernel $of, 32 * $warps, DEEP_HALO_SHARED
        )
    };
}

/// Dynamic shared memory of passes over levels of planes with `steps` relaxations of numbers of `size` bytes: as
/// `strip_rows` of `pass.cuh`.
pub(crate) const fn level_pass_shared(steps: usize, corners: bool, size: usize) -> usize {
    let ring = if corners { 4 } else { 2 };
    let row = PASS_THREADS + 2;
    let (steps, residuals) = ((steps + 1) * ring * row * size, 4 * row * size_of::<f32>());
    2 * (steps + residuals + (4 + 8) * PASS_THREADS * size)
}

/// Passes over the finest level.
macro_rules! finest {
    ($kernel:literal, $varying:literal, $steps:literal, $of:literal) => {
        kernel!(
            LEVEL_HEADERS, "multigrid" "five_point.cuh" "pass.cuh":
            "CROSSWARP_LEVEL_PASS" $kernel concat!("double, cw::five_point<", $varying, ">, ", $steps, $of), PASS_THREADS,
            level_pass_shared($steps, false, size_of::<f64>())
        )
    };
}

/// Passes over other levels.
macro_rules! coarse {
    ($kernel:literal, $steps:literal, $of:literal) => {
        kernel!(
            LEVEL_HEADERS, "multigrid" "nine_point.cuh" "pass.cuh":
            "CROSSWARP_LEVEL_PASS" $kernel concat!("float, cw::nine_point, ", $steps, $of), PASS_THREADS,
            level_pass_shared($steps, true, size_of::<f32>())
        )
    };
}

/// Dynamic shared memory of passes over levels of boxes with `steps` relaxations, where a residual may follow: as
/// `box_pass.cuh` has it.
pub(crate) const fn box_pass_shared(warps: usize, steps: usize, then: bool) -> usize {
    let rows = warps * THREAD_ROWS;
    // Of the right side a plane for each step and the residual, of fields before each step two, of what is measured two;
    // rows of residuals are `residual_pitch` elements apart.
    let of_tile = match then {
        true => (steps + 1) * 3 + 2,
        false => (steps + 1) + steps * 2,
    };
    let residual = match then {
        true => RESIDUAL_PLANES * rows * (TILE_X + (TILE_X - (steps + 3) / 2 * 4) / 4),
        false => 0,
    };
    ((of_tile * rows + COLUMN_NUMBERS) * TILE_X + residual) * size_of::<f64>()
}

/// The same of passes in red-black order: as `box_red_black.cuh` has it. `reads`: whether they begin with the field; `then`:
/// whether a residual follows.
pub(crate) const fn box_red_black_shared(warps: usize, reads: bool, then: bool) -> usize {
    // Of a colour, and what shifts it to other banks.
    let plane = warps * THREAD_ROWS * TILE_X + TILE_X / 4;
    let (slots, edges) = if then { (5, 3) } else { (3, 2) };
    let planes = 2 * (slots + reads as usize) * plane;
    // Of 8 bytes, too.
    let barriers = 2 * warps;
    // Of 4 bytes each.
    let facts = warps * TILE_X / 2;
    (barriers + facts + 2 * PAIR_NUMBERS * TILE_X + planes + 2 * edges * warps * 2 * TILE_X)
        * size_of::<f64>()
}

/// Shared memory of a block on an A100, the least of the GPUs that have enough.
const SHARED_OF_A100: usize = 163 << 10;

/// Passes over levels of boxes: `warps` have a tile, others beside them make what is left to be made of it.
macro_rules! box_pass {
    ($kernel:literal, $warps:literal + $helpers:literal, $steps:literal, $then:literal, $of:literal) => {
        kernel!(
            LEVEL_HEADERS, "multigrid" "box_pass.cuh":
            "CROSSWARP_BOX_PASS" $kernel concat!($warps, ", ", $helpers, ", ", $steps, $of), TILE_X * ($warps + $helpers),
            {
                const BYTES: usize = box_pass_shared($warps, $steps, $then);
                const { assert!(BYTES <= SHARED_OF_A100) };
                BYTES
            }
        )
    };
}

/// Passes in red-black order: whether they begin with the field, and a residual follows; what they do.
macro_rules! box_red_black {
    ($kernel:literal, $warps:literal + $helpers:literal, $reads:literal, $then:literal, $of:literal) => {
        kernel!(
            LEVEL_HEADERS, "multigrid" "box_red_black.cuh":
            "CROSSWARP_BOX_RED_BLACK" $kernel concat!($warps, ", ", $helpers, $of), TILE_X * ($warps + $helpers),
            {
                const BYTES: usize = box_red_black_shared($warps, $reads, $then);
                const { assert!(BYTES <= SHARED_OF_A100) };
                BYTES
            }
        )
    };
}

/// Every source of this crate that holds kernels.
#[rustfmt::skip] // A table.
pub const KERNELS: &[Source<'static>] = &[
    file!(
        HEADERS, "jacobi/one_sweep/sweep.cu",
        "sweep_plane_f32": SWEEP_THREADS, "sweep_plane_f64": SWEEP_THREADS,
        "sweep_line_f32": SWEEP_THREADS, "sweep_line_f64": SWEEP_THREADS
    ),
    file!(
        HEADERS, "jacobi/between_passes.cu",
        "wrap_rows_f32": BETWEEN_PASSES_THREADS, "wrap_rows_f64": BETWEEN_PASSES_THREADS,
        "wrap_columns_f32": BETWEEN_PASSES_THREADS, "wrap_columns_f64": BETWEEN_PASSES_THREADS,
        "publish_sums": BETWEEN_PASSES_THREADS
    ),
    exchange!("exchange_halos_f32", "float"),
    exchange!("exchange_halos_f64", "double"),
    line_pass!("pass_line_f32", "float, cw::line_pass_threads_f32 / 32", LINE_PASS_THREADS_F32),
    line_pass!("pass_line_f64", "double, cw::line_pass_threads_f64 / 32", LINE_PASS_THREADS_F64),
    run_line!("run_line_f32", f32, "float, 16"),
    run_line!("run_line_f64", f64, "double, 8"),
    // Sweeps in flight, columns of a lane, warps of an SM, mask, source. Of `f32` six sweeps in flight take all registers
    // of an SM. 1000 sweeps of 16384² on an H200: 0.113 s; five sweeps in flight 0.122; eight columns a lane and half the
    // warps 0.117 (fewer columns are computed twice, but latencies show).
    pass!("pass_plain_f32", f32, Plain, "float, cw::pass_depth_plain_f32, cw::lane_columns, 16, false, false"),
    pass!("pass_fixed_f32", f32, Mask, "float, cw::pass_depth, cw::lane_columns, 16, true, false"),
    pass!("pass_source_f32", f32, Source, "float, cw::pass_depth_source_f32, cw::lane_columns, 16, false, true"),
    pass!("pass_both_f32", f32, Source, "float, cw::pass_depth_source_f32, cw::lane_columns, 16, true, true"),
    pass!("pass_plain_f64", f64, Plain, "double, cw::pass_depth, cw::lane_columns, 8, false, false"),
    pass!("pass_large_f64", f64, Large, "double, cw::pass_depth_large_f64, cw::lane_columns, 8, false, false"),
    pass!("pass_fixed_f64", f64, Mask, "double, cw::pass_depth, cw::lane_columns, 8, true, false"),
    pass!("pass_source_f64", f64, Source, "double, cw::pass_depth, cw::lane_columns, 8, false, true"),
    pass!("pass_both_f64", f64, Source, "double, cw::pass_depth, cw::lane_columns, 8, true, true"),
    // Bytes, columns of a lane, source.
    plane_tile!(
        "run_tiles_narrow_f32",
        "cw::plane_tile_shared_f32, float, cw::narrow_unit_columns, false", PLANE_TILE_SHARED_F32
    ),
    plane_tile!(
        "run_tiles_wide_f32",
        "cw::plane_tile_shared_f32, float, cw::wide_unit_columns_f32, false", PLANE_TILE_SHARED_F32
    ),
    plane_tile!(
        "run_tiles_narrow_source_f32",
        "cw::plane_tile_shared_f32, float, cw::narrow_unit_columns, true", PLANE_TILE_SHARED_F32
    ),
    plane_tile!(
        "run_tiles_wide_source_f32",
        "cw::plane_tile_shared_f32, float, cw::wide_unit_columns_f32, true", PLANE_TILE_SHARED_F32
    ),
    plane_tile!(
        "run_tiles_narrow_f64",
        "cw::plane_tile_shared_f64, double, cw::narrow_unit_columns, false", PLANE_TILE_SHARED_F64
    ),
    plane_tile!(
        "run_tiles_wide_f64",
        "cw::plane_tile_shared_f64, double, cw::wide_unit_columns_f64, false", PLANE_TILE_SHARED_F64
    ),
    plane_tile!(
        "run_tiles_narrow_source_f64",
        "cw::plane_tile_shared_f64, double, cw::narrow_unit_columns, true", PLANE_TILE_SHARED_F64
    ),
    plane_tile!(
        "run_tiles_wide_source_f64",
        "cw::plane_tile_shared_f64, double, cw::wide_unit_columns_f64, true", PLANE_TILE_SHARED_F64
    ),
    // Warps, columns of a lane, depth, leaves of a block, warps that add up norms, rows of packets under way, source.
    deep_halo!(
        "run_deep_halo_one_f32",
        "cw::deep_halo_warps_one_f32, float, 1, cw::deep_halo_depth_f32, 1, 4, 16, false", DEEP_HALO_WARPS_ONE_F32
    ),
    deep_halo!(
        "run_deep_halo_one_source_f32",
        "cw::deep_halo_warps_one_f32, float, 1, cw::deep_halo_depth_f32, 1, 4, 16, true", DEEP_HALO_WARPS_ONE_F32
    ),
    deep_halo!(
        "run_deep_halo_two_f32",
        "cw::deep_halo_warps_two_f32, float, 2, cw::deep_halo_depth_f32, 2, 2, 16, false", DEEP_HALO_WARPS_TWO_F32
    ),
    deep_halo!(
        "run_deep_halo_two_source_f32",
        "cw::deep_halo_warps_two_f32, float, 2, cw::deep_halo_depth_f32, 2, 2, 16, true", DEEP_HALO_WARPS_TWO_F32
    ),
    deep_halo!(
        "run_deep_halo_one_f64",
        "cw::deep_halo_warps_one_f64, double, 1, cw::deep_halo_depth_f64, 1, 4, 24, false", DEEP_HALO_WARPS_ONE_F64
    ),
    deep_halo!(
        "run_deep_halo_one_source_f64",
        "cw::deep_halo_warps_one_f64, double, 1, cw::deep_halo_depth_f64, 1, 4, 24, true", DEEP_HALO_WARPS_ONE_F64
    ),
    // `2_2`: all that is between two corrections, with two relaxations after and before; `begun`: what full multigrid goes
    // on with.
    finest!("finest_plain_0", false, 0, ""),
    finest!("finest_plain_1", false, 1, ""),
    finest!("finest_plain_2", false, 2, ""),
    finest!("finest_plain_2_2", false, 4, ", cw::as_known<cw::start_corrected, 4, true, cw::red>"),
    finest!("finest_plain_begun_2", false, 2, ", cw::as_known<cw::start_corrected, -1, true, cw::red>"),
    // Where couplings differ from place to place.
    finest!("finest_varying_0", true, 0, ""),
    finest!("finest_varying_1", true, 1, ""),
    finest!("finest_varying_2", true, 2, ""),
    finest!("finest_varying_2_2", true, 4, ", cw::as_known<cw::start_corrected, 4, true>"),
    coarse!("coarse_1", 1, ""),
    coarse!("coarse_2", 2, ""),
    // Two relaxations from zero, and down; the correction, and two; the correction alone, two, and down.
    coarse!("coarse_down_2", 2, ", cw::as_known<cw::start_zero, -1, true>"),
    coarse!("coarse_up_2", 2, ", cw::as_known<cw::start_corrected, -1, false>"),
    coarse!("coarse_begun_2", 2, ", cw::as_known<cw::start_correction, -1, true>"),
    // The same by tiles.
    file!(
        LEVEL_HEADERS, "multigrid/tiles.cu",
        "tile_down_2": TILE_THREADS, "tile_up_2": TILE_THREADS, "tile_begun_2": TILE_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/finest_tiles.cu",
        "finest_tile_2_2": TILE_THREADS, "finest_tile_begun_2": TILE_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/varied_coarse_tiles.cu",
        "varied_coarse_down_2": VARIED_COARSE_THREADS, "varied_coarse_up_2": VARIED_COARSE_THREADS,
        "varied_coarse_begun_2": VARIED_COARSE_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/mask_tiles.cu",
        "mask_tile_2_2": MASK_TILE_THREADS; MASK_TILE_SHARED,
        "mask_tile_begun_2": MASK_TILE_THREADS; MASK_TILE_SHARED
    ),
    file!(
        LEVEL_HEADERS, "multigrid/varying_tiles.cu",
        "varying_tile_2_2": VARYING_TILE_THREADS; VARYING_TILE_SHARED,
        "varying_tile_begun_2": VARYING_TILE_THREADS; VARYING_TILE_SHARED
    ),
    file!(
        LEVEL_HEADERS, "multigrid/galerkin.cu",
        "galerkin_masked": GALERKIN_THREADS, "galerkin_varying": GALERKIN_THREADS, "galerkin_coarse": GALERKIN_THREADS,
        "galerkin_inverse": GALERKIN_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/levels.cu",
        "level_begin": LEVEL_THREADS, "level_restrict_right_side": LEVEL_THREADS, "level_square": LEVEL_THREADS,
        "level_add_leaves": LEVEL_THREADS, "level_publish_sum": LEVEL_THREADS
    ),
    // Relaxations; whether a residual follows. Without relaxations the field is measured, and down.
    box_pass!("box_0", 9 + 0, 0, true, ", cw::as_known<cw::start_field, 0, true>"),
    box_pass!("box_1", 10 + 2, 1, true, ""),
    box_pass!("box_2", 10 + 2, 2, true, ""),
    // Two relaxations from zero, and down; the correction, and two.
    box_pass!("box_down_2", 10 + 2, 2, true, ", cw::as_known<cw::start_zero, -1, true>"),
    box_pass!("box_up_2", 12 + 0, 2, false, ", cw::as_known<cw::start_corrected, -1, false>"),
    // Red and black points: from zero, and down; the correction, and these; these, measured, and down; the correction to zero,
    // these, and down. The same where axes wrap around.
    box_red_black!("box_red_black_down", 12 + 0, false, true, ", cw::start_zero, false, true, false"),
    box_red_black!("box_red_black_up", 12 + 0, true, false, ", cw::start_corrected, false, false, false"),
    box_red_black!("box_red_black_between", 10 + 2, true, true, ", cw::start_field, true, true, false"),
    box_red_black!("box_red_black_begun", 12 + 0, false, true, ", cw::start_correction, false, true, false"),
    box_red_black!("box_red_black_around_down", 12 + 0, false, true, ", cw::start_zero, false, true, true"),
    box_red_black!("box_red_black_around_up", 12 + 0, true, false, ", cw::start_corrected, false, false, true"),
    box_red_black!("box_red_black_around_between", 10 + 2, true, true, ", cw::start_field, true, true, true"),
    box_red_black!("box_red_black_around_begun", 12 + 0, false, true, ", cw::start_correction, false, true, true"),
    file!(
        LEVEL_HEADERS, "multigrid/plane_arrays.cu",
        "plane_load_f32": LEVEL_THREADS, "plane_load_f64": LEVEL_THREADS, "plane_save_f32": LEVEL_THREADS,
        "plane_save_f64": LEVEL_THREADS, "plane_weigh": LEVEL_THREADS, "plane_shift": LEVEL_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/plane_voids.cu",
        "voids_rows_f32": LEVEL_THREADS, "voids_rows_f64": LEVEL_THREADS, "voids_between_f32": LEVEL_THREADS,
        "voids_between_f64": LEVEL_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/plane_operator.cu",
        "operator_mask": LEVEL_THREADS, "operator_measure_f32": LEVEL_THREADS, "operator_measure_f64": LEVEL_THREADS,
        "operator_couplings_f32": LEVEL_THREADS, "operator_couplings_f64": LEVEL_THREADS, "operator_inverse": LEVEL_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/box_arrays.cu",
        "box_load_f32": LEVEL_THREADS, "box_load_f64": LEVEL_THREADS, "box_save_f32": LEVEL_THREADS,
        "box_save_f64": LEVEL_THREADS, "box_weigh": LEVEL_THREADS, "box_shift": LEVEL_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/box_levels.cu",
        "box_restrict_right_side": BOX_THREADS, "box_square": BOX_THREADS, "box_solve_coarsest": 32
    ),
    file!(
        LEVEL_HEADERS, "multigrid/plane_steps.cu",
        "plane_measure": COLUMN_THREADS, "plane_residual": COLUMN_THREADS, "plane_curve": COLUMN_THREADS,
        "plane_multiply": COLUMN_THREADS, "plane_descend": COLUMN_THREADS, "plane_turn": COLUMN_THREADS,
        "plane_chebyshev": COLUMN_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/box_steps.cu",
        "box_measure": COLUMN_THREADS, "box_residual": COLUMN_THREADS, "box_curve": COLUMN_THREADS,
        "box_multiply": COLUMN_THREADS, "box_descend": COLUMN_THREADS, "box_turn": COLUMN_THREADS,
        "box_chebyshev": COLUMN_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/points_steps.cu",
        "points_measure": COLUMN_THREADS, "points_residual": COLUMN_THREADS, "points_curve": COLUMN_THREADS,
        "points_multiply": COLUMN_THREADS, "points_descend": COLUMN_THREADS, "points_turn": COLUMN_THREADS,
        "points_chebyshev": COLUMN_THREADS
    ),
    file!(
        LEVEL_HEADERS, "multigrid/box_points.cu",
        "box_points_relax": COLUMN_THREADS, "box_points_relax_from_zero": COLUMN_THREADS,
        "box_points_residual": COLUMN_THREADS, "box_points_square": COLUMN_THREADS, "box_points_prolong": COLUMN_THREADS,
        "box_points_restrict": COLUMN_THREADS, "box_points_relax_finest": COLUMN_THREADS,
        "box_points_residual_finest": COLUMN_THREADS, "box_points_residual_measured": COLUMN_THREADS
    ),
    file!(LEVEL_HEADERS, "multigrid/exchange.cu", "level_exchange": LEVEL_EXCHANGE_THREADS),
    file!(LEVEL_HEADERS, "multigrid/small_levels.cu", "level_cycle_small": SMALL_THREADS; SMALL_SHARED),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What may hold several kernels: together they are compiled as fast as one of the others.
    const OF_SEVERAL: [&str; 18] = [
        "jacobi/one_sweep/sweep.cu",
        "jacobi/between_passes.cu",
        "multigrid/galerkin.cu",
        "multigrid/varied_coarse_tiles.cu",
        "multigrid/mask_tiles.cu",
        "multigrid/varying_tiles.cu",
        "multigrid/levels.cu",
        "multigrid/tiles.cu",
        "multigrid/finest_tiles.cu",
        "multigrid/plane_arrays.cu",
        "multigrid/plane_voids.cu",
        "multigrid/plane_operator.cu",
        "multigrid/box_arrays.cu",
        "multigrid/box_levels.cu",
        "multigrid/plane_steps.cu",
        "multigrid/box_steps.cu",
        "multigrid/points_steps.cu",
        "multigrid/box_points.cu",
    ];

    #[test]
    fn a_solve_compiles_no_large_kernel_that_it_does_not_launch() {
        let mut kernels = BTreeSet::new();
        let mut names = BTreeSet::new();
        for source in KERNELS {
            assert!(names.insert(source.name), "{} is there twice", source.name);
            for shape in source.shapes {
                assert!(kernels.insert(shape.kernel), "two of {}", shape.kernel);
            }
            let several = OF_SEVERAL.contains(&source.name);
            assert_eq!(source.shapes.len() > 1, several, "{}", source.name);
        }
    }
}

//! The sources of the kernels, and finding one.

use crosswarp_cuda::{Cache, Device, Function, Module, Options, Shape, Source};

use crate::element::Real;
use crate::engine::cuda::temporal::strips::PassShape;
use crate::gpu::arguments::{
    self, BETWEEN_PASSES_THREADS, DEEP_HALO_SHARED, DEEP_HALO_WARPS_ONE_F32,
    DEEP_HALO_WARPS_ONE_F64, DEEP_HALO_WARPS_TWO_F32, EXCHANGE_THREADS, LINE_PASS_THREADS_F32,
    LINE_PASS_THREADS_F64, PLANE_TILE_SHARED_F32, PLANE_TILE_SHARED_F64, SWEEP_THREADS, TILE_WARPS,
};
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments;

/// Header `name` of `kernels/jacobi/`, by its path from `kernels/`.
macro_rules! header {
    ($name:literal) => {
        (
            concat!("jacobi/", $name),
            include_str!(concat!("../../../kernels/jacobi/", $name)),
        )
    };
}

const HEADERS: &[(&str, &str)] = &[
    ("jacobi/arguments.cuh", arguments::HEADER),
    header!("exchange/device_put.cuh"),
    header!("ghosts.cuh"),
    header!("line.cuh"),
    header!("mbarrier.cuh"),
    header!("on_chip/choose.cuh"),
    header!("on_chip/deep_halo.cuh"),
    header!("on_chip/line.cuh"),
    header!("on_chip/line_tile.cuh"),
    header!("on_chip/norm_warps.cuh"),
    header!("on_chip/packet_wait.cuh"),
    header!("on_chip/packets.cuh"),
    header!("on_chip/plane_tile.cuh"),
    header!("on_chip/stop_decision.cuh"),
    header!("on_chip/unit_neighbours.cuh"),
    header!("one_sweep/sweep.cuh"),
    header!("plane.cuh"),
    header!("temporal/async_copy.cuh"),
    header!("temporal/line_pass.cuh"),
    header!("temporal/pass.cuh"),
    header!("temporal/wavefront.cuh"),
];

/// The source `name` of `kernels/jacobi/`, with all headers.
macro_rules! source {
    ($name:literal) => {
        Source::new(
            concat!("jacobi/", $name),
            include_str!(concat!("../../../kernels/jacobi/", $name)),
        )
        .with_headers(HEADERS)
    };
}

/// Kernels of passes, with what they take where blocks have 8 warps.
macro_rules! pass_shapes {
    ($float:ty, $plain:literal: $($kernel:literal),*) => {
        &[$(Shape {
            kernel: $kernel,
            threads: 256,
            dynamic_shared: PassShape::of::<$float>($plain).shared(8),
        }),*]
    };
}

macro_rules! shapes {
    ($($kernel:literal: $threads:expr),*) => {
        &[$(Shape { kernel: $kernel, threads: $threads, dynamic_shared: 0 }),*]
    };
}

const SWEEP: Source<'static> = source!("one_sweep/sweep.cu").with_shapes(shapes!(
    "sweep_plane_f32": SWEEP_THREADS, "sweep_plane_f64": SWEEP_THREADS,
    "sweep_line_f32": SWEEP_THREADS, "sweep_line_f64": SWEEP_THREADS
));
const BETWEEN_PASSES: Source<'static> = source!("between_passes.cu").with_shapes(shapes!(
    "wrap_rows_f32": BETWEEN_PASSES_THREADS, "wrap_rows_f64": BETWEEN_PASSES_THREADS,
    "wrap_columns_f32": BETWEEN_PASSES_THREADS, "wrap_columns_f64": BETWEEN_PASSES_THREADS,
    "publish_sums": BETWEEN_PASSES_THREADS
));
const PASS_F32: Source<'static> =
    source!("temporal/pass_f32.cu").with_shapes(pass_shapes!(f32, true: "pass_plain_f32"));
const PASS_F64: Source<'static> =
    source!("temporal/pass_f64.cu").with_shapes(pass_shapes!(f64, true: "pass_plain_f64"));
const PASS_MASK_SOURCE_F32: Source<'static> = source!("temporal/pass_mask_source_f32.cu")
    .with_shapes(pass_shapes!(f32, false: "pass_fixed_f32", "pass_source_f32", "pass_both_f32"));
const PASS_MASK_SOURCE_F64: Source<'static> = source!("temporal/pass_mask_source_f64.cu")
    .with_shapes(pass_shapes!(f64, false: "pass_fixed_f64", "pass_source_f64", "pass_both_f64"));

const LINE_PASS: Source<'static> = source!("temporal/line_pass.cu").with_shapes(
    shapes!("pass_line_f32": LINE_PASS_THREADS_F32, "pass_line_f64": LINE_PASS_THREADS_F64),
);

const RUN_LINE: Source<'static> = source!("on_chip/line.cu").with_shapes(&[
    Shape {
        kernel: "run_line_f32",
        threads: 256,
        dynamic_shared: 131_072,
    },
    Shape {
        kernel: "run_line_f64",
        threads: 256,
        dynamic_shared: 131_072,
    },
]);

const EXCHANGE: Source<'static> = source!("exchange/device_put.cu").with_shapes(
    shapes!("exchange_halos_f32": EXCHANGE_THREADS, "exchange_halos_f64": EXCHANGE_THREADS),
);

macro_rules! plane_tile_shapes {
    ($shared:expr, $($kernel:literal),*) => {
        &[$(Shape { kernel: $kernel, threads: 32 * TILE_WARPS as u32, dynamic_shared: $shared }),*]
    };
}
const PLANE_TILE_F32: Source<'static> =
    source!("on_chip/plane_tile_f32.cu").with_shapes(plane_tile_shapes!(
        PLANE_TILE_SHARED_F32,
        "run_tiles_narrow_f32",
        "run_tiles_wide_f32",
        "run_tiles_narrow_source_f32",
        "run_tiles_wide_source_f32"
    ));
const PLANE_TILE_F64: Source<'static> =
    source!("on_chip/plane_tile_f64.cu").with_shapes(plane_tile_shapes!(
        PLANE_TILE_SHARED_F64,
        "run_tiles_narrow_f64",
        "run_tiles_wide_f64",
        "run_tiles_narrow_source_f64",
        "run_tiles_wide_source_f64"
    ));

macro_rules! deep_halo_shapes {
    ($($kernel:literal: $warps:expr),*) => {
        &[$(Shape { kernel: $kernel, threads: 32 * $warps as u32, dynamic_shared: DEEP_HALO_SHARED }),*]
    };
}
const DEEP_HALO_F32: Source<'static> =
    source!("on_chip/deep_halo_f32.cu").with_shapes(deep_halo_shapes!(
        "run_deep_halo_one_f32": DEEP_HALO_WARPS_ONE_F32,
        "run_deep_halo_one_source_f32": DEEP_HALO_WARPS_ONE_F32,
        "run_deep_halo_two_f32": DEEP_HALO_WARPS_TWO_F32,
        "run_deep_halo_two_source_f32": DEEP_HALO_WARPS_TWO_F32
    ));
const DEEP_HALO_F64: Source<'static> =
    source!("on_chip/deep_halo_f64.cu").with_shapes(deep_halo_shapes!(
        "run_deep_halo_one_f64": DEEP_HALO_WARPS_ONE_F64,
        "run_deep_halo_one_source_f64": DEEP_HALO_WARPS_ONE_F64
    ));

/// Header `name` of `kernels/multigrid/`.
macro_rules! level_header {
    ($name:literal) => {
        (
            concat!("multigrid/", $name),
            include_str!(concat!("../../../kernels/multigrid/", $name)),
        )
    };
}

const LEVEL_HEADERS: &[(&str, &str)] = &[
    ("multigrid/arguments.cuh", level_arguments::HEADER),
    level_header!("five_point.cuh"),
    level_header!("neighbours.cuh"),
    level_header!("nine_point.cuh"),
    level_header!("pass.cuh"),
    level_header!("small_levels.cuh"),
    level_header!("transfer.cuh"),
];

/// The source `name` of `kernels/multigrid/`, with all headers.
macro_rules! level_source {
    ($name:literal) => {
        Source::new(
            concat!("multigrid/", $name),
            include_str!(concat!("../../../kernels/multigrid/", $name)),
        )
        .with_headers(LEVEL_HEADERS)
    };
}

const PASS_THREADS: u32 = level_arguments::PASS_THREADS as u32;
const LEVEL_THREADS: u32 = level_arguments::LEVEL_THREADS as u32;
const FINEST_PLAIN: Source<'static> = level_source!("finest_plain.cu").with_shapes(shapes!(
    "finest_plain_0": PASS_THREADS, "finest_plain_1": PASS_THREADS,
    "finest_plain_2": PASS_THREADS, "finest_plain_2_2": PASS_THREADS
));
const FINEST_VARYING: Source<'static> = level_source!("finest_varying.cu").with_shapes(shapes!(
    "finest_varying_0": PASS_THREADS, "finest_varying_1": PASS_THREADS,
    "finest_varying_2": PASS_THREADS, "finest_varying_2_2": PASS_THREADS
));
const COARSE: Source<'static> = level_source!("coarse.cu").with_shapes(shapes!(
    "coarse_1": PASS_THREADS, "coarse_2": PASS_THREADS,
    "coarse_down_2": PASS_THREADS, "coarse_up_2": PASS_THREADS
));
const LEVELS: Source<'static> = level_source!("levels.cu").with_shapes(shapes!(
    "level_restrict_right_side": LEVEL_THREADS, "level_square": LEVEL_THREADS,
    "level_add_leaves": LEVEL_THREADS, "level_publish_sum": LEVEL_THREADS
));
const SMALL_LEVELS: Source<'static> = level_source!("small_levels.cu").with_shapes(&[Shape {
    kernel: "level_cycle_small",
    threads: level_arguments::SMALL_THREADS as u32,
    dynamic_shared: level_arguments::SMALL_SHARED,
}]);

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &[
    SWEEP,
    BETWEEN_PASSES,
    EXCHANGE,
    LINE_PASS,
    RUN_LINE,
    PASS_F32,
    PASS_F64,
    PASS_MASK_SOURCE_F32,
    PASS_MASK_SOURCE_F64,
    PLANE_TILE_F32,
    PLANE_TILE_F64,
    DEEP_HALO_F32,
    DEEP_HALO_F64,
    FINEST_PLAIN,
    FINEST_VARYING,
    COARSE,
    LEVELS,
    SMALL_LEVELS,
];

/// The kernel `name` for fields of `F`, and the threads of its block.
pub(crate) fn find<F: Real>(device: &Device, name: &str) -> Result<(Function, u32), GpuError> {
    find_named(device, &format!("{name}_{}", F::NAME))
}

/// A kernel that is the same for all fields.
pub(crate) fn find_plain(device: &Device, name: &str) -> Result<Function, GpuError> {
    Ok(find_named(device, name)?.0)
}

/// Compiles the sources of these kernels side by side and leaves the code in the user's cache, from which finding the
/// kernels takes it. Does nothing where there is no cache; what fails is told when the kernel is looked for.
pub(crate) fn compile_together(device: &Device, names: &[&str]) {
    let cache = Cache::of_user();
    if cache.folder().is_none() {
        return;
    }
    let has = |source: &&Source<'_>| {
        let mut shapes = source.shapes.iter();
        shapes.any(|shape| names.contains(&shape.kernel))
    };
    std::thread::scope(|scope| {
        for source in KERNELS.iter().filter(has) {
            let (cache, arch) = (&cache, device.arch());
            scope.spawn(move || _ = cache.compile(source, arch, &Options::new()));
        }
    });
}

fn find_named(device: &Device, name: &str) -> Result<(Function, u32), GpuError> {
    let (source, shape) = KERNELS
        .iter()
        .find_map(|source| {
            let shape = source.shapes.iter().find(|shape| shape.kernel == name);
            shape.map(|shape| (source, shape))
        })
        .unwrap_or_else(|| panic!("no source has a kernel {name}"));
    let module = Module::compile(device, source).map_err(crosswarp_cuda::Error::from)?;
    let function = module.function(name).map_err(crosswarp_cuda::Error::from)?;
    Ok((function, shape.threads))
}

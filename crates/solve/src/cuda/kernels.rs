//! The sources of the kernels, and finding one.

use crosswarp_cuda::{Device, Function, Module, Shape, Source};

use crate::cuda::strips::PassShape;
use crate::driver::SolveError;
use crate::real::Real;

const HEADERS: &[(&str, &str)] = &[
    (
        "async_copy.cuh",
        include_str!("../../kernels/async_copy.cuh"),
    ),
    ("choose.cuh", include_str!("../../kernels/choose.cuh")),
    ("deep.cuh", include_str!("../../kernels/deep.cuh")),
    ("exchange.cuh", include_str!("../../kernels/exchange.cuh")),
    ("line.cuh", include_str!("../../kernels/line.cuh")),
    (
        "line_march.cuh",
        include_str!("../../kernels/line_march.cuh"),
    ),
    ("line_pass.cuh", include_str!("../../kernels/line_pass.cuh")),
    ("line_tile.cuh", include_str!("../../kernels/line_tile.cuh")),
    ("mbarrier.cuh", include_str!("../../kernels/mbarrier.cuh")),
    (
        "norm_warps.cuh",
        include_str!("../../kernels/norm_warps.cuh"),
    ),
    (
        "packet_wait.cuh",
        include_str!("../../kernels/packet_wait.cuh"),
    ),
    ("packets.cuh", include_str!("../../kernels/packets.cuh")),
    ("pass.cuh", include_str!("../../kernels/pass.cuh")),
    ("plane.cuh", include_str!("../../kernels/plane.cuh")),
    ("resident.cuh", include_str!("../../kernels/resident.cuh")),
    ("sweep.cuh", include_str!("../../kernels/sweep.cuh")),
    (
        "unit_place.cuh",
        include_str!("../../kernels/unit_place.cuh"),
    ),
    ("verdict.cuh", include_str!("../../kernels/verdict.cuh")),
    ("wavefront.cuh", include_str!("../../kernels/wavefront.cuh")),
    ("wrap.cuh", include_str!("../../kernels/wrap.cuh")),
];

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
    ($($kernel:literal: $threads:literal),*) => {
        &[$(Shape { kernel: $kernel, threads: $threads, dynamic_shared: 0 }),*]
    };
}

const SWEEP: Source<'static> = Source::new("sweep.cu", include_str!("../../kernels/sweep.cu"))
    .with_headers(HEADERS)
    .with_shapes(shapes!(
        "sweep_plane_f32": 128, "sweep_plane_f64": 128, "sweep_line_f32": 128, "sweep_line_f64": 128,
        "wrap_rows_f32": 256, "wrap_rows_f64": 256, "wrap_columns_f32": 256, "wrap_columns_f64": 256,
        "publish": 256
    ));
const PASS_F32: Source<'static> =
    Source::new("pass_f32.cu", include_str!("../../kernels/pass_f32.cu"))
        .with_headers(HEADERS)
        .with_shapes(pass_shapes!(f32, true: "pass_plain_f32"));
const PASS_F64: Source<'static> =
    Source::new("pass_f64.cu", include_str!("../../kernels/pass_f64.cu"))
        .with_headers(HEADERS)
        .with_shapes(pass_shapes!(f64, true: "pass_plain_f64"));
const PASS_GIVEN_F32: Source<'static> = Source::new(
    "pass_given_f32.cu",
    include_str!("../../kernels/pass_given_f32.cu"),
)
.with_headers(HEADERS)
.with_shapes(pass_shapes!(f32, false: "pass_fixed_f32", "pass_source_f32", "pass_both_f32"));
const PASS_GIVEN_F64: Source<'static> = Source::new(
    "pass_given_f64.cu",
    include_str!("../../kernels/pass_given_f64.cu"),
)
.with_headers(HEADERS)
.with_shapes(pass_shapes!(f64, false: "pass_fixed_f64", "pass_source_f64", "pass_both_f64"));

const LINE_PASS: Source<'static> =
    Source::new("line_pass.cu", include_str!("../../kernels/line_pass.cu"))
        .with_headers(HEADERS)
        .with_shapes(shapes!("pass_line_f32": 512, "pass_line_f64": 256));

const LINE_MARCH: Source<'static> =
    Source::new("line_march.cu", include_str!("../../kernels/line_march.cu"))
        .with_headers(HEADERS)
        .with_shapes(&[
            Shape {
                kernel: "march_line_f32",
                threads: 256,
                dynamic_shared: 131_072,
            },
            Shape {
                kernel: "march_line_f64",
                threads: 256,
                dynamic_shared: 131_072,
            },
        ]);

const EXCHANGE: Source<'static> =
    Source::new("exchange.cu", include_str!("../../kernels/exchange.cu"))
        .with_headers(HEADERS)
        .with_shapes(shapes!("exchange_halos_f32": 256, "exchange_halos_f64": 256));

/// Dynamic shared memory of the kernels of a plane on the chip: `crosswarp::resident::scratch`, in bytes.
pub(crate) const RESIDENT_SHARED_F32: u32 = 80 << 10;
/// The same for `f64`.
pub(crate) const RESIDENT_SHARED_F64: u32 = 96 << 10;

macro_rules! resident_shapes {
    ($shared:expr, $($kernel:literal),*) => {
        &[$(Shape { kernel: $kernel, threads: 512, dynamic_shared: $shared }),*]
    };
}
const RESIDENT_F32: Source<'static> = Source::new(
    "resident_f32.cu",
    include_str!("../../kernels/resident_f32.cu"),
)
.with_headers(HEADERS)
.with_shapes(resident_shapes!(
    RESIDENT_SHARED_F32,
    "resident_narrow_f32",
    "resident_wide_f32",
    "resident_narrow_source_f32",
    "resident_wide_source_f32"
));
const RESIDENT_F64: Source<'static> = Source::new(
    "resident_f64.cu",
    include_str!("../../kernels/resident_f64.cu"),
)
.with_headers(HEADERS)
.with_shapes(resident_shapes!(
    RESIDENT_SHARED_F64,
    "resident_narrow_f64",
    "resident_wide_f64",
    "resident_narrow_source_f64",
    "resident_wide_source_f64"
));

/// Dynamic shared memory of the kernels with deep edges: `crosswarp::deep::scratch`, in bytes.
pub(crate) const DEEP_SHARED: u32 = 48 << 10;

macro_rules! deep_shapes {
    ($($kernel:literal: $threads:literal),*) => {
        &[$(Shape { kernel: $kernel, threads: $threads, dynamic_shared: DEEP_SHARED }),*]
    };
}
const DEEP_F32: Source<'static> =
    Source::new("deep_f32.cu", include_str!("../../kernels/deep_f32.cu"))
        .with_headers(HEADERS)
        .with_shapes(deep_shapes!(
            "deep_one_f32": 384, "deep_one_source_f32": 384,
            "deep_two_f32": 256, "deep_two_source_f32": 256
        ));
const DEEP_F64: Source<'static> =
    Source::new("deep_f64.cu", include_str!("../../kernels/deep_f64.cu"))
        .with_headers(HEADERS)
        .with_shapes(deep_shapes!("deep_one_f64": 320, "deep_one_source_f64": 320));

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &[
    SWEEP,
    EXCHANGE,
    LINE_PASS,
    LINE_MARCH,
    PASS_F32,
    PASS_F64,
    PASS_GIVEN_F32,
    PASS_GIVEN_F64,
    RESIDENT_F32,
    RESIDENT_F64,
    DEEP_F32,
    DEEP_F64,
];

/// The kernel `name` for fields of `F`, and the threads of its block.
pub(crate) fn find<F: Real>(device: &Device, name: &str) -> Result<(Function, u32), SolveError> {
    find_named(device, &format!("{name}_{}", F::NAME))
}

/// A kernel that is the same for all fields.
pub(crate) fn find_plain(device: &Device, name: &str) -> Result<Function, SolveError> {
    Ok(find_named(device, name)?.0)
}

fn find_named(device: &Device, name: &str) -> Result<(Function, u32), SolveError> {
    let (source, shape) = KERNELS
        .iter()
        .find_map(|source| {
            let shape = source.shapes.iter().find(|shape| shape.kernel == name);
            shape.map(|shape| (source, shape))
        })
        .unwrap_or_else(|| panic!("no source has a kernel {name}"));
    let module = Module::compile(device, source)?;
    let function = module.function(name).map_err(crosswarp_cuda::Error::from)?;
    Ok((function, shape.threads))
}

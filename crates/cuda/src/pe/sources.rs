//! The sources of the stream-ordered verbs' kernels.
//!
//! A world needs them all, and they take half a minute to compile, in a world of several hosts a minute. So they are many
//! sources, which are compiled side by side.

use crate::compile::source::{Shape, Source};

/// Threads of a block of the barriers: two warps, which do two things at once.
pub(super) const MEETING: u32 = 64;

const HEADERS: &[(&str, &str)] = &[
    (
        "on_stream/kernels.cuh",
        include_str!("../../kernels/on_stream/kernels.cuh"),
    ),
    (
        "on_stream/by_blocks.cuh",
        include_str!("../../kernels/on_stream/by_blocks.cuh"),
    ),
];

const fn shape(kernel: &str, threads: u32) -> Shape<'_> {
    Shape {
        kernel,
        threads,
        dynamic_shared: 0,
    }
}

/// What a collective does, in terms of `ON_BLOCK`, `ON_UNITS` and `ON_GRID`.
macro_rules! call {
    ("ON_GRID", "reduce") => {
        "cw::reduce_by_blocks(dest, source, n, any_op{root}, t, state, words)"
    };
    ("ON_GRID", $name:literal) => {
        concat!(
            "cw::",
            $name,
            "_by_blocks(dest, source, n, root, t, state, words)"
        )
    };
    ("ON_BLOCK", "broadcast") => {
        "cw::broadcast(dest, source, n, root, t, scope)"
    };
    ("ON_UNITS", "reduce") => {
        "cw::reduce_by_units(dest, source, n, any_op{root}, t, words)"
    };
    ("ON_BLOCK", $name:literal) => {
        concat!("cw::", $name, "(dest, source, n, t, scope)")
    };
}

/// The kernels that `ON_BLOCK`, `ON_UNITS` or `ON_GRID` makes of a collective, for each of the types.
macro_rules! lines {
    ($on:tt, $name:tt, $($type:literal)+) => {
        concat!($($on, "(", $name, ", ", $type, ", ", call!($on, $name), ")\n"),+)
    };
}

/// A source for each of the collectives' lines.
macro_rules! sources {
    ($($file:literal: $on:tt, $name:tt, $($type:literal)+;)+) => {
        const SOURCES: &[Source<'static>] = &[
            Source::new(
                "on_stream/points.cu",
                include_str!("../../kernels/on_stream/points.cu"),
            )
            .with_headers(HEADERS)
            .with_shapes(POINTS),
            $(Source::new(
                concat!("on_stream/", $file, ".cu"),
                concat!(
                    "#include \"on_stream/kernels.cuh\"\n",
                    lines!($on, $name, $($type)+)
                ),
            )
            .with_headers(HEADERS),)+
            Source::new(
                "on_stream/routed.cu",
                include_str!("../../kernels/on_stream/routed.cu"),
            )
            .with_headers(HEADERS),
        ];
    };
}

/// The kernels of the stream-ordered verbs, in a world of several hosts.
pub(crate) const OVER_HOSTS: &[Source<'static>] = SOURCES;

/// The kernels of the stream-ordered verbs, in a world of one host: all but the last, which reach PEs of other hosts.
pub const ON_STREAM: &[Source<'static>] = SOURCES.split_at(SOURCES.len() - 1).0;

const POINTS: &[Shape<'_>] = &[
    shape("signal", 1),
    shape("signal_wait", 1),
    shape("barrier", MEETING),
    shape("sync", MEETING),
    shape("nothing", MEETING),
];

sources! {
    "broadcast_block": "ON_BLOCK", "broadcast", "u8" "u32" "u64";
    "broadcast_grid": "ON_GRID", "broadcast", "u8";
    "fcollect_block": "ON_BLOCK", "fcollect", "u8" "u32" "u64";
    "fcollect_grid": "ON_GRID", "fcollect", "u8";
    "alltoall_block": "ON_BLOCK", "alltoall", "u8" "u32" "u64";
    "alltoall_grid": "ON_GRID", "alltoall", "u8";
    "reduce_block_i32": "ON_UNITS", "reduce", "i32";
    "reduce_grid_i32": "ON_GRID", "reduce", "i32";
    "reduce_block_u32": "ON_UNITS", "reduce", "u32";
    "reduce_grid_u32": "ON_GRID", "reduce", "u32";
    "reduce_block_i64": "ON_UNITS", "reduce", "i64";
    "reduce_grid_i64": "ON_GRID", "reduce", "i64";
    "reduce_block_u64": "ON_UNITS", "reduce", "u64";
    "reduce_grid_u64": "ON_GRID", "reduce", "u64";
    "reduce_block_float": "ON_UNITS", "reduce", "float";
    "reduce_grid_float": "ON_GRID", "reduce", "float";
    "reduce_block_double": "ON_UNITS", "reduce", "double";
    "reduce_grid_double": "ON_GRID", "reduce", "double";
}

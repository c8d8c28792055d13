//! Which kernel serves a reduction, and how it is launched.

use crosswarp_cuda::{Device, Function, Launch, Module, Options, Shape, Source};

use crate::reduce::cuda::arguments::{
    self, EXACT_F64_THREADS, Finish, MOST_COMBINED_BLOCKS, THREADS, WALK_LOADS,
};
use crate::reduce::cuda::columns::{HALF, WIDE};
use crate::reduce::cuda::segments::SMALL;
use crate::sum::leaf::LEAF;
use crate::{DType, Op, ReduceError};

impl Finish {
    /// What makes the result of `op`.
    pub fn of(op: Op) -> Self {
        match op {
            Op::Mean => Self::Mean,
            Op::Norm2 => Self::Norm,
            Op::Argmin | Op::Argmax => Self::Index,
            _ => Self::Value,
        }
    }
}

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../../kernels/", $name))
    };
}

const HEADERS: &[(&str, &str)] = &[
    ("reduce/arguments.cuh", arguments::HEADER),
    (
        "reduce/doubtful_leaf.cuh",
        text!("reduce/doubtful_leaf.cuh"),
    ),
    ("reduce/extremum.cuh", text!("reduce/extremum.cuh")),
    ("reduce/result.cuh", text!("reduce/result.cuh")),
    ("reduce/integer.cuh", text!("reduce/integer.cuh")),
    ("reduce/warp_leaf.cuh", text!("reduce/warp_leaf.cuh")),
    (
        "reduce/block_combine.cuh",
        text!("reduce/block_combine.cuh"),
    ),
    ("reduce/segments.cuh", text!("reduce/segments.cuh")),
    ("reduce/short_rows.cuh", text!("reduce/short_rows.cuh")),
    ("reduce/columns.cuh", text!("reduce/columns.cuh")),
    ("reduce/sum.cuh", text!("reduce/sum.cuh")),
    ("reduce/sum_of_two.cuh", text!("reduce/sum_of_two.cuh")),
    ("reduce/last_block.cuh", text!("reduce/last_block.cuh")),
    ("reduce/vector_load.cuh", text!("reduce/vector_load.cuh")),
];

const fn shape(kernel: &'static str) -> Shape<'static> {
    Shape {
        kernel,
        threads: THREADS,
        dynamic_shared: 0,
    }
}
const fn source(name: &'static str, text: &'static str) -> Source<'static> {
    Source::new(name, text)
        .with_headers(HEADERS)
        .with_shapes(const { &[shape("reduce")] })
}

const SUM: Source<'static> = source("reduce/sum.cu", text!("reduce/sum.cu"));
const fn segments(name: &'static str, text: &'static str) -> Source<'static> {
    Source::new(name, text).with_headers(HEADERS).with_shapes(
        const {
            &[
                shape("short_segments"),
                shape("long_segments"),
                shape("short_rows"),
            ]
        },
    )
}

const SEGMENTS: Source<'static> = segments("reduce/segments.cu", text!("reduce/segments.cu"))
    .with_shapes(&[
        shape("short_segments"),
        shape("long_segments"),
        shape("short_rows"),
        shape(SMALL),
    ]);
const SEGMENTS_INTEGER: Source<'static> = segments(
    "reduce/segments_integer.cu",
    text!("reduce/segments_integer.cu"),
);
const SEGMENTS_EXTREMUM: Source<'static> = segments(
    "reduce/segments_extremum.cu",
    text!("reduce/segments_extremum.cu"),
);

const fn columns(name: &'static str, text: &'static str) -> Source<'static> {
    Source::new(name, text)
        .with_headers(HEADERS)
        .with_shapes(const { &[shape("reduce_columns"), shape("reduce_columns_at_once")] })
}

const COLUMNS: Source<'static> = columns("reduce/columns.cu", text!("reduce/columns.cu"))
    .with_shapes(&[
        shape("reduce_columns"),
        shape("reduce_columns_at_once"),
        shape(WIDE),
        shape(HALF),
    ]);
const COLUMNS_INTEGER: Source<'static> = columns(
    "reduce/columns_integer.cu",
    text!("reduce/columns_integer.cu"),
);
const COLUMNS_EXTREMUM: Source<'static> = columns(
    "reduce/columns_extremum.cu",
    text!("reduce/columns_extremum.cu"),
);
const EXACT: Source<'static> = source("reduce/exact_sum.cu", text!("reduce/exact_sum.cu"));
const PRODUCT: Source<'static> = source("reduce/product.cu", text!("reduce/product.cu"));
const INTEGER: Source<'static> = source("reduce/integer.cu", text!("reduce/integer.cu"));
const INTEGER_PRODUCT: Source<'static> = source(
    "reduce/integer_product.cu",
    text!("reduce/integer_product.cu"),
);
const EXTREMUM: Source<'static> = source("reduce/extremum.cu", text!("reduce/extremum.cu"));

/// Every source of this crate that holds kernels, each for the type it names if none is asked for.
pub const KERNELS: &[Source<'static>] = &[
    SUM,
    SEGMENTS,
    SEGMENTS_INTEGER,
    SEGMENTS_EXTREMUM,
    COLUMNS,
    COLUMNS_INTEGER,
    COLUMNS_EXTREMUM,
    EXACT,
    PRODUCT,
    INTEGER,
    INTEGER_PRODUCT,
    EXTREMUM,
];

/// What is compiled for every operation on every type, each once.
pub(crate) fn units() -> Vec<(Source<'static>, Options)> {
    let mut units = Vec::new();
    for &dtype in DType::ALL {
        for &op in Op::ALL {
            let unit = Key::new(op, dtype).source();
            if !units.contains(&unit) {
                units.push(unit);
            }
        }
    }
    units
}

/// The kernel of an operation on a type: many operations share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    body: Body,
    dtype: DType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Body {
    /// Sums of leaves, or of integers, of a term.
    Sum(Term),
    Exact,
    Product,
    /// Of integers.
    WrappingProduct,
    Extremum {
        max: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Term {
    Value,
    Square,
    Product,
}

impl Key {
    pub fn new(op: Op, dtype: DType) -> Self {
        let body = match op {
            Op::ExactSum if dtype.is_float() => Body::Exact,
            Op::Sum | Op::ExactSum | Op::Mean => Body::Sum(Term::Value),
            Op::Norm2 => Body::Sum(Term::Square),
            Op::Dot => Body::Sum(Term::Product),
            Op::Prod if dtype.is_float() => Body::Product,
            Op::Prod => Body::WrappingProduct,
            Op::Min | Op::Argmin => Body::Extremum { max: false },
            Op::Max | Op::Argmax => Body::Extremum { max: true },
        };
        Self { body, dtype }
    }

    /// What to compile.
    pub fn source(self) -> (Source<'static>, Options) {
        let options = Options::new().define("ELEMENT", format_args!("element_{}", self.dtype));
        match self.body {
            Body::Sum(term) => {
                let source = if self.dtype.is_float() { SUM } else { INTEGER };
                let term = match term {
                    Term::Value => "value_term",
                    Term::Square => "square_term",
                    Term::Product => "product_term",
                };
                (source, options.define("TERM", term))
            }
            Body::Exact => (EXACT, options),
            Body::Product => (PRODUCT, options),
            Body::WrappingProduct => (INTEGER_PRODUCT, options),
            Body::Extremum { max } => (EXTREMUM, options.define("MAXIMUM", u8::from(max))),
        }
    }

    /// What to compile for segments; nothing for products, and for exact sums of floats.
    pub fn segment_source(self) -> Option<(Source<'static>, Options)> {
        let source = match self.body {
            Body::Sum(_) if self.dtype.is_float() => SEGMENTS,
            Body::Sum(_) => SEGMENTS_INTEGER,
            Body::Extremum { .. } => SEGMENTS_EXTREMUM,
            Body::Exact | Body::Product | Body::WrappingProduct => return None,
        };
        Some((source, self.source().1))
    }

    /// What to compile for columns; nothing for the same.
    pub fn column_source(self) -> Option<(Source<'static>, Options)> {
        let source = match self.body {
            Body::Sum(_) if self.dtype.is_float() => COLUMNS,
            Body::Sum(_) => COLUMNS_INTEGER,
            Body::Extremum { .. } => COLUMNS_EXTREMUM,
            Body::Exact | Body::Product | Body::WrappingProduct => return None,
        };
        Some((source, self.source().1))
    }

    /// Whether warps work on leaves; else every thread on 16 bytes at a time.
    fn has_leaves(self) -> bool {
        self.dtype.is_float() && matches!(self.body, Body::Sum(_) | Body::Product)
    }

    /// Whether the products of leaves need memory: `ReduceWorkspace::products`.
    pub fn needs_products(self) -> bool {
        self.body == Body::Product
    }

    /// Threads of a block.
    fn threads(self) -> u32 {
        if self.body == Body::Exact && self.dtype.size() == 8 {
            EXACT_F64_THREADS
        } else {
            THREADS
        }
    }

    /// Elements that one warp works on at a time.
    fn unit(self) -> u64 {
        let size = self.dtype.size() as u64;
        if self.has_leaves() {
            // One leaf, of 2-byte elements two.
            LEAF as u64 * if size == 2 { 2 } else { 1 }
        } else {
            // So many times 16 bytes a lane.
            WALK_LOADS * 32 * 16 / size
        }
    }
}

/// A loaded kernel.
pub(crate) struct Program {
    key: Key,
    function: Function,
    multiprocessors: u64,
    /// Blocks of the most threads that are resident on a multiprocessor.
    blocks: u64,
}

impl Program {
    pub fn key(&self) -> Key {
        self.key
    }

    pub fn load(device: &Device, key: Key) -> Result<Self, ReduceError> {
        let (source, options) = key.source();
        Self::compile(device, key, &source, &options)
    }

    /// The sum of what `expression` makes of each element, of a floating-point type.
    pub fn of_expression(
        device: &Device,
        dtype: DType,
        expression: &str,
    ) -> Result<Self, ReduceError> {
        let options = Options::new()
            .define("ELEMENT", format_args!("element_{dtype}"))
            .define("TERM", "expression_term")
            .define("EXPRESSION", expression);
        Self::compile(device, Key::new(Op::Sum, dtype), &SUM, &options)
    }

    fn compile(
        device: &Device,
        key: Key,
        source: &Source<'static>,
        options: &Options,
    ) -> Result<Self, ReduceError> {
        let module =
            Module::compile_with(device, source, options).map_err(crosswarp_cuda::Error::from)?;
        let function = module
            .function("reduce")
            .map_err(crosswarp_cuda::Error::from)?;
        let blocks = function
            .blocks_per_multiprocessor(key.threads(), 0)
            .map_err(crosswarp_cuda::Error::from)?;
        Ok(Self {
            key,
            multiprocessors: device.properties().multiprocessors.max(1).into(),
            blocks: u64::from(blocks.max(1)),
            function,
        })
    }

    /// The launch for `n` elements: (blocks, threads) depend on `n` alone.
    ///
    /// Figures: H200, `f32`, from memory, in a graph.
    pub fn launch(&self, n: u64) -> Launch<'_> {
        let units = n.div_ceil(self.key.unit()).max(1);
        let warps = u64::from(self.key.threads() / 32);
        let per_block = |blocks: u64| units.div_ceil(blocks).min(warps);
        let (blocks, warps) = if units <= ONE_BLOCK.min(warps) {
            (1, units)
        } else if units <= 2 * self.multiprocessors && !self.key.has_leaves() {
            (units, 1)
        } else if units <= self.multiprocessors * warps {
            // A block on each multiprocessor, as few warps as it takes.
            let blocks = units.min(self.multiprocessors);
            (blocks, per_block(blocks))
        } else {
            let resident = self.multiprocessors * self.blocks;
            // Blocks that come after others even out what multiprocessors differ in: 2^26 f32 in 61.7 µs
            // instead of 61.9, 2^28 f16 in 119.5 instead of 119.9.
            let rounds = match (self.key.has_leaves(), self.key.dtype.size()) {
                (true, size) if units >= 4 * resident * warps => 8 / size as u64,
                _ => 1,
            };
            ((resident * rounds).min(MOST_COMBINED_BLOCKS), warps)
        };
        Launch::new(&self.function)
            .grid(blocks as u32)
            .block(32 * warps as u32)
            .overlapping()
    }

    /// Bytes of its first unit that each warp brings to the second-level cache while the launch before is still
    /// running: `crosswarp::start_early`.
    pub fn ahead(&self, n: u64) -> u64 {
        let unit = self.key.unit() * self.key.dtype.size() as u64;
        let resident = self.multiprocessors * self.blocks * u64::from(self.key.threads() / 32);
        let warps = n.div_ceil(self.key.unit()).clamp(1, resident);
        (AHEAD_BYTES / warps).min(unit).next_multiple_of(16)
    }
}

/// Bytes that all warps together bring ahead: what memory delivers while one launch ends and the next begins.
/// More would be in the way of the launch before, less leaves memory idle. 2^16 f32: 2.1 µs instead of 2.5;
/// 2^24 f32: 17.6 µs without, 17.3 with 2 or 4 MB, 17.5 with 8; 2^22 f16: 4.8 without, 4.5 with 4 MB, 4.6 with 8,
/// 5.0 with 16.
const AHEAD_BYTES: u64 = 4 << 20;

/// Most units that one block takes: a second one costs 0.4 µs or more for combining the blocks. 2^14 f32: 1.6 µs in one
/// block, 2.0 in 8; f64: 2.1 and 2.5.
const ONE_BLOCK: u64 = 8;

#[cfg(test)]
mod tests {
    use crosswarp_cuda::{Arch, Cache, Nvrtc};

    use super::*;

    #[test]
    fn operations_share_kernels_where_they_can() {
        let kernels = |dtype| {
            let mut keys: Vec<_> = Op::ALL.iter().map(|&op| Key::new(op, dtype)).collect();
            keys.sort_by_key(|key| format!("{key:?}"));
            keys.dedup();
            keys.len()
        };
        assert_eq!((kernels(DType::F32), kernels(DType::I32)), (7, 6));
        assert_eq!(Finish::of(Op::Argmax), Finish::Index);
    }

    /// All of them, not only those of [`KERNELS`]: two minutes, unless the cache has them.
    #[test]
    #[ignore = "slow without a warm cache"]
    fn every_kernel_compiles_for_every_type() {
        if let Err(reason) = Nvrtc::get() {
            crosswarp_cuda::skip::skip_gpu("every_kernel_compiles_for_every_type", 1, reason);
            return;
        }
        for &dtype in DType::ALL {
            for &op in Op::ALL {
                let key = Key::new(op, dtype);
                let others = key.segment_source().into_iter().chain(key.column_source());
                for (source, options) in [key.source()].into_iter().chain(others) {
                    let cubin = Cache::of_user().compile(&source, Arch::new(9, 0), &options);
                    cubin.unwrap_or_else(|error| panic!("{op} of {dtype}: {error}"));
                }
            }
        }
    }
}

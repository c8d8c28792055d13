//! The sources of the histograms' kernels: one for each type of samples, rule and way of counting, so that only what is
//! used is compiled.

use crosswarp_cuda::Source;

use crate::DType;

const HEADERS: &[(&str, &str)] = &[
    ("histogram/arguments.cuh", super::arguments::HEADER),
    ("histogram/edge_bins.cuh", crate::histogram::edges::HEADER),
    ("histogram/even_bins.cuh", crate::histogram::even::HEADER),
    (
        "histogram/kernels.cuh",
        include_str!("../../../kernels/histogram/kernels.cuh"),
    ),
    (
        "histogram/bins.cuh",
        include_str!("../../../kernels/histogram/bins.cuh"),
    ),
    (
        "histogram/packed_counters.cuh",
        include_str!("../../../kernels/histogram/packed_counters.cuh"),
    ),
    (
        "histogram/hot_bins.cuh",
        include_str!("../../../kernels/histogram/hot_bins.cuh"),
    ),
    (
        "histogram/sampling.cuh",
        include_str!("../../../kernels/histogram/sampling.cuh"),
    ),
    (
        "histogram/bin_groups.cuh",
        include_str!("../../../kernels/histogram/bin_groups.cuh"),
    ),
];

/// The kernels for one type of samples and one rule.
pub(super) struct Kernels {
    dtype: DType,
    rule: &'static str,
    /// What their names end with.
    pub suffix: &'static str,
    /// `shared`.
    pub shared: Source<'static>,
    /// `global`.
    pub global: Source<'static>,
    /// `weigh_shared` and `weigh_global`.
    pub weigh: Source<'static>,
    /// What counts in words of several counters, with [`ROWS`]. (The narrow types have too few values to need it, but
    /// for `u16`, one value a bin or several.)
    pub packed: Option<Packed>,
}

/// The kernels for more bins than `shared` can hold. `packed` takes the compiler longest of all, so it has a source of its
/// own.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    /// `plan`.
    pub plan: Source<'static>,
    /// `packed`.
    pub packed: Source<'static>,
    /// `packed_fixed`, the same for rules that could move keys but do not, which saves two instructions a sample.
    fixed: Option<Source<'static>>,
}

impl Packed {
    /// The source of what counts by a rule that moves keys, or that does not, and what its kernel is called.
    pub fn counting(&self, moves_keys: bool) -> (Source<'static>, &'static str) {
        match self.fixed {
            Some(fixed) if !moves_keys => (fixed, "packed_fixed"),
            _ => (self.packed, "packed"),
        }
    }
}

/// The source of that name with the kernels that the macro of `kernels.cuh` makes.
macro_rules! source {
    ($name:expr, $($made:literal),+) => {
        Source::new(
            $name,
            concat!(
                "#include \"histogram/kernels.cuh\"\n",
                "using namespace cw::histogram;\nusing cw::u32;\nusing cw::u64;\n",
                $($made,)+
                "\n",
            ),
        )
        .with_headers(HEADERS)
    };
}

/// `histogram_rows`, which adds up what `packed` has left, of any type and rule.
pub(super) const ROWS: Source<'static> = source!("histogram/rows.cu", "HISTOGRAM_ROWS");

/// The source `$file` for one type and one rule.
macro_rules! of_rule {
    ($make:literal, $file:literal, $suffix:literal, $type:literal, $class:literal) => {
        source!(
            concat!("histogram/", $file, "_", $suffix, ".cu"),
            $make,
            "(",
            $type,
            ", ",
            $class,
            ", ",
            $suffix,
            ")"
        )
    };
}

macro_rules! kernels {
    ($dtype:ident, $rule:literal, $suffix:literal, $type:literal, $class:literal) => {
        kernels!(@packed None, $dtype, $rule, $suffix, $type, $class)
    };
    ($dtype:ident, $rule:literal, $suffix:literal, $type:literal, $class:literal, packed) => {
        kernels!(@fixed None, $dtype, $rule, $suffix, $type, $class)
    };
    ($dtype:ident, $rule:literal, $suffix:literal, $type:literal, $class:literal, packed or $fixed:literal) => {
        kernels!(
            @fixed Some(of_rule!("HISTOGRAM_PACKED_FIXED", "packed_fixed", $suffix, $type, $fixed)),
            $dtype, $rule, $suffix, $type, $class
        )
    };
    (@fixed $without:expr, $dtype:ident, $rule:literal, $suffix:literal, $type:literal, $class:literal) => {
        kernels!(
            @packed Some(Packed {
                plan: of_rule!("HISTOGRAM_PLAN", "plan", $suffix, $type, $class),
                packed: of_rule!("HISTOGRAM_PACKED", "packed", $suffix, $type, $class),
                fixed: $without,
            }),
            $dtype, $rule, $suffix, $type, $class
        )
    };
    (@packed $packed:expr, $dtype:ident, $rule:literal, $suffix:literal, $type:literal, $class:literal) => {
        Kernels {
            dtype: DType::$dtype,
            rule: $rule,
            suffix: $suffix,
            shared: of_rule!("HISTOGRAM_SHARED", "shared", $suffix, $type, $class),
            global: of_rule!("HISTOGRAM_GLOBAL", "global", $suffix, $type, $class),
            weigh: of_rule!("HISTOGRAM_WEIGH", "weigh", $suffix, $type, $class),
            packed: $packed,
        }
    };
}

const ALL: [Kernels; 22] = [
    kernels!(U8, "shift", "u8_shift", "cw::u8", "even_shift"),
    kernels!(U8, "multiply", "u8_multiply", "cw::u8", "even_multiply"),
    kernels!(
        U8,
        "closed_shift",
        "u8_closed_shift",
        "cw::u8",
        "closed_shift"
    ),
    kernels!(
        U8,
        "closed_multiply",
        "u8_closed_multiply",
        "cw::u8",
        "closed_multiply"
    ),
    kernels!(U8, "spread", "u8_spread", "cw::u8", "even_spread"),
    kernels!(U8, "edges", "u8_edges", "cw::u8", "edges<cw::i32>"),
    kernels!(U16, "shift", "u16_shift", "cw::u16", "even_shift", packed or "fixed_shift"),
    kernels!(
        U16,
        "multiply",
        "u16_multiply",
        "cw::u16",
        "even_multiply",
        packed or "fixed_multiply"
    ),
    kernels!(
        U16,
        "closed_shift",
        "u16_closed_shift",
        "cw::u16",
        "closed_shift",
        packed
    ),
    kernels!(
        U16,
        "closed_multiply",
        "u16_closed_multiply",
        "cw::u16",
        "closed_multiply",
        packed
    ),
    kernels!(U16, "spread", "u16_spread", "cw::u16", "even_spread"),
    kernels!(U16, "edges", "u16_edges", "cw::u16", "edges<cw::i32>"),
    kernels!(I32, "shift", "i32_shift", "cw::i32", "even_shift", packed or "fixed_shift"),
    kernels!(
        I32,
        "multiply",
        "i32_multiply",
        "cw::i32",
        "even_multiply",
        packed or "fixed_multiply"
    ),
    kernels!(
        I32,
        "closed_shift",
        "i32_closed_shift",
        "cw::i32",
        "closed_shift",
        packed
    ),
    kernels!(
        I32,
        "closed_multiply",
        "i32_closed_multiply",
        "cw::i32",
        "closed_multiply",
        packed
    ),
    kernels!(I32, "spread", "i32_spread", "cw::i32", "even_spread"),
    kernels!(
        I32,
        "edges",
        "i32_edges",
        "cw::i32",
        "edges<cw::i32>",
        packed
    ),
    kernels!(
        F32,
        "even",
        "f32_even",
        "float",
        "even_float<float>",
        packed
    ),
    kernels!(F32, "edges", "f32_edges", "float", "edges<float>", packed),
    kernels!(
        F64,
        "even",
        "f64_even",
        "double",
        "even_float<double>",
        packed
    ),
    kernels!(F64, "edges", "f64_edges", "double", "edges<double>", packed),
];

/// The kernels for samples of type `dtype` and the rule of that name.
pub(super) fn kernels_of(dtype: DType, rule: &str) -> &'static Kernels {
    const KERNELS: &[Kernels] = &ALL;
    KERNELS
        .iter()
        .find(|kernels| kernels.dtype == dtype && kernels.rule == rule)
        .expect("every type of samples has kernels for each of its rules")
}

/// Every source of the histograms' kernels.
pub(crate) const SOURCES: [Source<'static>; count()] = {
    let mut sources = [ROWS; count()];
    let (mut k, mut next) = (0, 1);
    while k < ALL.len() {
        sources[next] = ALL[k].shared;
        sources[next + 1] = ALL[k].global;
        sources[next + 2] = ALL[k].weigh;
        next += 3;
        if let Some(packed) = ALL[k].packed {
            sources[next] = packed.plan;
            sources[next + 1] = packed.packed;
            next += 2;
            if let Some(fixed) = packed.fixed {
                sources[next] = fixed;
                next += 1;
            }
        }
        k += 1;
    }
    sources
};

const fn count() -> usize {
    let (mut k, mut count) = (0, 1);
    while k < ALL.len() {
        count += 3;
        if let Some(packed) = ALL[k].packed {
            count += 2 + packed.fixed.is_some() as usize;
        }
        k += 1;
    }
    count
}

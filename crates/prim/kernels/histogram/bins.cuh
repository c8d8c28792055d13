// Which bin a sample belongs to: the rules of src/histogram/{even,edges}.rs again, operation by operation, so
// that CPU and GPU agree on every sample. Parameters are computed on the host and passed by value.
//
// `bin(x)` is the bin, or a number that is not below `bins` if the sample is dropped.
#pragma once
#include "base.cuh"
#include "histogram/edge_bins.cuh"
#include "histogram/even_bins.cuh"

namespace crosswarp {
namespace histogram {

constexpr u32 dropped = ~0u;

// How far a key is above `low`. A key below wraps to beyond every distance inside: all distances fit 32
// bits.
__device__ inline u32 distance(i32 key, i32 low) {
    return static_cast<u32>(key) - static_cast<u32>(low);
}

// An integer rule first moves keys to the nearer of `from` and `to`: the ends of the range where samples
// outside are clamped, else the limits of the type.
template <class Rule> struct moving : Rule {
    static constexpr bool moves = true;
    static constexpr bool has_tables = false;
    using fixed = Rule;
    __device__ u32 bin(i32 x) const { return Rule::bin(max(this->from, min(x, this->to))); }
};

// The upper end counts as the integer before it. Keys are counted on from `after`, the integer behind it, where
// it is the last of all; and so is the rule's `low`.
template <class Rule> struct closing : closed_parameters<Rule> {
    static constexpr bool moves = false;
    static constexpr bool has_tables = false;
    using key = i32;
    __device__ u32 bin(i32 x) const {
        // min(x - after, ~1), which the compiler would take apart into three instructions.
        u32 past = __viaddmin_u32(static_cast<u32>(x), 0u - static_cast<u32>(this->after), ~1u);
        return this->rule.bin(static_cast<i32>(past));
    }
};

// Integers, 2^shift values a bin.
struct fixed_shift : shift_parameters {
    static constexpr bool moves = false;
    static constexpr bool has_tables = false;
    using key = i32;
    __device__ u32 bin(i32 x) const { return distance(x, low) >> shift; }
};

// Integers, fewer bins than values: distance · bins / width is distance · factor / 2^64.
struct fixed_multiply : multiply_parameters {
    static constexpr bool moves = false;
    static constexpr bool has_tables = false;
    using key = i32;
    __device__ u32 bin(i32 x) const {
        u32 d = distance(x, low);
        u64 upper = static_cast<u64>(factor_high) * d + __umulhi(factor_low, d);
        return static_cast<u32>(upper >> 32);
    }
};

// Integers, more bins than the range is wide.
struct fixed_spread : spread_parameters {
    static constexpr bool moves = false;
    static constexpr bool has_tables = false;
    using key = i32;
    __device__ u32 bin(i32 x) const {
        u32 d = distance(x, low);
        u64 upper = static_cast<u64>(factor_high) * d + __umulhi(factor_low, d);
        // At the upper end the sum is `bins`. (Not in the choice below, which would load the rule for each sample.)
        u32 bin = min(d * per_value + static_cast<u32>(upper >> 32), bins - 1);
        return d <= last ? bin : dropped;
    }
};

using even_shift = moving<fixed_shift>;
using even_multiply = moving<fixed_multiply>;
using even_spread = moving<fixed_spread>;
using closed_shift = closing<fixed_shift>;
using closed_multiply = closing<fixed_multiply>;

// Floating point: trunc((x - low) · scale), each operation rounded once, in the type of the samples.
template <class F> struct even_float : even_float_parameters<F> {
    static constexpr bool moves = false;
    static constexpr bool has_tables = false;
    using key = F;
    __device__ u32 bin(F x) const {
        // The conversion saturates: negative to 0, large to the greatest.
        u32 b = min(static_cast<u32>((x - this->low) * this->scale), this->bins - 1);
        return this->from <= x && x <= this->to ? b : dropped;
    }
};

// An integer that ascends with the key: all of it, or its upper half.
__device__ inline u32 ordered(i32 x) { return static_cast<u32>(x) ^ 0x80000000u; }
__device__ inline u32 ordered_bits(u32 bits) {
    return bits ^ (static_cast<u32>(static_cast<i32>(bits) >> 31) | 0x80000000u);
}
// The sums make -0 to 0, which is equal.
__device__ inline u32 ordered(float x) { return ordered_bits(__float_as_uint(x + 0.0f)); }
__device__ inline u32 ordered(double x) { return ordered_bits(static_cast<u32>(__double2hiint(x + 0.0))); }

// Bin k is [edge[k], edge[k + 1]), the last one has its upper edge, too. Edges that no key can reach (i32: 2^31) are
// left out, so there may be fewer than bins + 1. See src/histogram/edges.rs for the cells.
template <class K> struct edges : edges_parameters<K> {
    static constexpr bool moves = false;
    static constexpr bool has_tables = true;
    using key = K;
    using edges_parameters<K>::edge;
    using edges_parameters<K>::cell;
    using edges_parameters<K>::count;
    using edges_parameters<K>::cells;

    __device__ u32 bin(K x) const {
        u32 c;
        if (this->factor) {
            c = __umulhi(max(ordered(x), this->base) - this->base, this->factor);
        } else {
            c = static_cast<u32>((x - this->low) * this->scale);
        }
        u32 entry = cell[min(c, cells - 1)];
        u32 below = entry & ((1u << edge_bits) - 1), n = entry >> edge_bits;
        if (n == many_edges) n = count - below;
        while (n > 0) {
            u32 half = n / 2;
            bool up = edge[below + half] <= x;
            below = up ? below + half + 1 : below;
            n = up ? n - half - 1 : half;
        }
        return this->from <= x && x <= this->to ? min(max(below, 1u), this->bins) - 1 : dropped;
    }

    // The tables take this much memory; the edges come first.
    __device__ u32 table_bytes() const { return count * sizeof(K) + cells * 4; }
    // The same rule with its tables in shared memory from `to` on. The threads of the block have to synchronise
    // before they use it.
    __device__ edges staged(void* to) const {
        edges mine = *this;
        K* edge_to = static_cast<K*>(to);
        u32* cell_to = reinterpret_cast<u32*>(edge_to + count);
        for (u32 i = threadIdx.x; i < count; i += blockDim.x) edge_to[i] = edge[i];
        for (u32 i = threadIdx.x; i < cells; i += blockDim.x) cell_to[i] = cell[i];
        mine.edge = edge_to;
        mine.cell = cell_to;
        return mine;
    }
};

template <class Rule> __device__ inline u32 bins_of(const Rule& rule) { return rule.bins; }
template <class Rule> __device__ inline u32 bins_of(const closing<Rule>& closed) { return closed.rule.bins; }

// A rule whose search is not worth its place in the code of kernels that count in many ways.
template <class Rule> struct called_rule : Rule {
    __device__ __noinline__ u32 bin(typename Rule::key x) const { return Rule::bin(x); }
};

// Sixteen bytes of samples.
template <class T> struct vector_of {
    static constexpr int size = 16 / sizeof(T);
    T sample[size];
};

// Samples are read once: past the first-level cache.
template <class T> __device__ inline vector_of<T> load_vector(const T* from) {
    uint4 bits;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(from));
    vector_of<T> v;
    memcpy(&v, &bits, 16);
    return v;
}

// An array cut for 16-byte loads: samples before the first 16-byte boundary and after the last whole
// vector are `loose`.
template <class T> struct cut {
    const T* samples;
    u64 n;
    u32 head;
    u64 vectors;
    __device__ cut(const T* samples, u64 n) : samples(samples), n(n) {
        u32 past = static_cast<u32>(reinterpret_cast<u64>(samples) % 16 / sizeof(T));
        u32 ahead = past ? vector_of<T>::size - past : 0;
        head = n < ahead ? static_cast<u32>(n) : ahead;
        vectors = (n - head) / vector_of<T>::size;
    }
    __device__ const T* vector(u64 i) const { return samples + head + i * vector_of<T>::size; }
    __device__ u32 loose() const { return static_cast<u32>(n - vectors * vector_of<T>::size); }
    __device__ T loose_sample(u32 i) const {
        return samples[i < head ? i : vectors * vector_of<T>::size + i];
    }
};

}  // namespace histogram
}  // namespace crosswarp

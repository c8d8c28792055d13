// The leaf of a reproducible sum, on half a warp or a whole one.
//
// leaf.cuh says what a leaf is; here its elements are loaded and added, spread over the lanes of a warp.
//
// A lane loads 16 bytes at a time. With 4-byte elements a row of 128 is one load of a warp; with 2-byte
// elements it is one of half a warp, so that a warp computes two leaves at once; with 8-byte elements
// it is two.
#pragma once
#include "superaccumulator.cuh"
#include "leaf.cuh"

namespace crosswarp {

// Element types: how 16 bytes of them become values of the type in which leaves are formed.
struct element_f32 {
    using storage = u32;
    using format = format32;
    static __device__ float widen(u32 bits) { return __uint_as_float(bits); }
    static __device__ void unpack(uint4 v, float (&x)[4]) {
        x[0] = widen(v.x), x[1] = widen(v.y), x[2] = widen(v.z), x[3] = widen(v.w);
    }
};
struct element_f64 {
    using storage = u64;
    using format = format64;
    static __device__ double widen(u64 bits) { return __longlong_as_double(bits); }
    static __device__ void unpack(uint4 v, double (&x)[2]) {
        x[0] = widen(v.x | u64(v.y) << 32), x[1] = widen(v.z | u64(v.w) << 32);
    }
};
struct element_f16 {
    using storage = u16;
    using format = format32;
    static __device__ float widen(u16 bits) {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    static __device__ void unpack(uint4 v, float (&x)[8]) {
        const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = widen(u16(word[i / 2] >> 16 * (i % 2)));
    }
};
struct element_bf16 {
    using storage = u16;
    using format = format32;
    static __device__ float widen(u16 bits) { return __uint_as_float(u32(bits) << 16); }
    static __device__ void unpack(uint4 v, float (&x)[8]) {
        const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            x[2 * i] = __uint_as_float(word[i] << 16);
            x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
        }
    }
};

// What loads so many bytes at once.
template <int bytes> struct load_of_bytes { using type = u8; };
template <> struct load_of_bytes<2> { using type = u16; };
template <> struct load_of_bytes<4> { using type = u32; };
template <> struct load_of_bytes<8> { using type = uint2; };
template <> struct load_of_bytes<16> { using type = uint4; };

// 16 bytes, read once and not again: past the first-level cache. Volatile, so that the loads of a leaf
// stay together, before the first use.
__device__ inline uint4 load16(const void* from) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
    return v;
}

// The same if `there`; else `v` stays as it is. Without a branch.
__device__ inline void load16_if(bool there, uint4& v, const void* from) {
    asm volatile("{\n"
        ".reg .pred there;\n"
        "setp.ne.u32 there, %5, 0;\n"
        "@there ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];\n"
        "}"
        : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(from), "r"(u32(there)));
}

// 16 bytes of elements, from any address that is aligned to an element. `aligned`: to 16 bytes.
template <class Storage, bool aligned> __device__ inline uint4 load_elements(const Storage* from) {
    if (aligned) return load16(from);
    constexpr int n = 16 / sizeof(Storage);
    Storage part[n];
#pragma unroll
    for (int i = 0; i < n; ++i) part[i] = __ldg(from + i);
    uint4 v;
    memcpy(&v, part, sizeof(v));
    return v;
}

// Whether inputs of which the second counts if there are `two` can be loaded 16 bytes at a time from their beginnings on.
template <bool two> __device__ inline bool are_aligned(const void* x, const void* y) {
    return (reinterpret_cast<u64>(x) | (two ? reinterpret_cast<u64>(y) : 0)) % 16 == 0;
}

// Which lanes form a leaf together, and which leaf lanes each of them holds.
template <class E> struct leaf_layout {
    static constexpr int width = 16 / sizeof(typename E::storage);        // elements of a load
    static constexpr int lanes = width >= 4 ? leaf_lanes / width : 32;    // lanes of a leaf
    static constexpr int leaves = 32 / lanes;                             // leaves of a warp
    static constexpr int loads = leaf_lanes / (width * lanes);            // loads of a row
    static constexpr int values = width * loads;                          // leaf lanes of a lane
};

// Leaf lanes combined by halving: lane l of a leaf holds in `x` the leaf lanes width·l + c, and with
// two loads a row 64 + that. The leaf's value, in each of its lanes.
template <class L, class T, class Op> __device__ inline T combine_leaf_lanes(T (&x)[L::values], Op op) {
    if (L::loads == 2) {
#pragma unroll
        for (int c = 0; c < L::width; ++c) x[c] = op(x[c], x[c + L::width]);
    }
    return halve_side_by_side<L::width, L::lanes>(x, op);
}

// What a leaf makes of its elements: the term that an element x of the first input, and y of the second,
// gives, and how terms combine.
// `wide`: the same without rounding, of f32 inputs. `squares`: terms that are too small for f32 are computed again,
// because a root brings them back.
struct value_term {
    static constexpr int inputs = 1;
    static constexpr bool squares = false;
    template <class T> static __device__ T of(T x, T) { return x; }
    static __device__ double wide(float x, float) { return x; }
};
struct square_term {
    static constexpr int inputs = 1;
    static constexpr bool squares = true;
    template <class T> static __device__ T of(T x, T) { return x * x; }
    static __device__ double wide(float x, float) { return double(x) * double(x); }
};
struct product_term {
    static constexpr int inputs = 2;
    static constexpr bool squares = false;
    template <class T> static __device__ T of(T x, T y) { return x * y; }
    static __device__ double wide(float x, float y) { return double(x) * double(y); }
};
#ifdef EXPRESSION
// What the user wrote, of the element `x`.
struct expression_term {
    static constexpr int inputs = 1;
    static constexpr bool squares = false;
    template <class T> static __device__ T of(T x, T) { return T(EXPRESSION); }
    // Its values are f32.
    static __device__ double wide(float x, float y) { return of(x, y); }
};
#endif

// Leaves that a warp computes: `L::leaves` of them side by side, called a unit.
//
// If one input is not `aligned` to 16 bytes, its elements are loaded from the first 16 bytes on that are: lane l of a
// leaf then holds the leaf lanes width·l + c + s, where s is how many elements lie before these 16 bytes, and halving
// combines the same ones, as they are all as far apart as before. What does not fit are the leaf lanes 0 to s − 1: the
// last lane of the leaf holds them, and begins them with these s elements.
template <class E, class Term, class Op, bool aligned> struct warp_leaves {
    using L = leaf_layout<E>;
    using T = typename E::format::type;
    using S = typename E::storage;
    static constexpr u64 unit = u64(leaf_elements) * L::leaves;
    static constexpr bool two = Term::inputs == 2;
    static constexpr int loads = leaf_rows * L::loads;  // of each input
    // Loads of each input that are in flight: all of one, half of each of two inputs. (With half a leaf of f64, and
    // so twice the warps on an SM, 2^18 elements took 3.7 µs instead of 3.2, 2^22 11.4 instead of 10.8.)
    static constexpr int flight = two ? loads / 2 : loads;
    static constexpr int stride = L::width * L::lanes;  // elements from one load of a lane to its next

    const S* x;
    const S* y;

    // The inputs' first elements.
    __device__ warp_leaves(const void* x, const void* y)
        : x(static_cast<const S*>(x)), y(static_cast<const S*>(y)) {}

    static constexpr bool shifted = !aligned && !two;
    // Elements before the first 16 bytes that are loaded together.
    __device__ int ahead() const {
        return shifted ? int(-reinterpret_cast<u64>(x) / sizeof(S) % L::width) : 0;
    }

    // Where this lane's part of unit `u` begins.
    __device__ u64 first(u64 u) const {
        u32 lane = warp::lane();
        u32 leaf = L::leaves == 1 ? 0 : lane / L::lanes;
        return u * unit + leaf * leaf_elements + lane % L::lanes * L::width + ahead();
    }

    // A load of whole 16 bytes, or nothing if they are not `there`.
    template <bool whole> static __device__ void load_if(bool there, uint4& v, const S* from) {
        if (whole) {
            v = load_elements<S, aligned>(from);
        } else if (aligned || shifted) {
            v = uint4();
            load16_if(there, v, from);
        } else {
            v = there ? load_elements<S, false>(from) : uint4();
        }
    }

    // A unit of inputs of n elements, in which this lane's part begins with element `at`; leaf i's value in
    // the lanes of leaf i. `whole`: it ends with element n or before; else elements that are not there are left
    // out, which is the same as taking in the identity.
    template <bool whole> __device__ T value(u64 at, u64 n) const {
        T sum[L::values];
#pragma unroll
        for (int c = 0; c < L::values; ++c) sum[c] = Op::template identity<T>();
        // Elements from there to the end of the leaf that are there.
        const u32 column = warp::lane() % L::lanes * L::width + ahead();
        const u64 of_leaf = leaf_elements - column;
        if (shifted && column + L::width > leaf_lanes / L::loads) {
            // The last lane of the leaf.
            constexpr int last = L::values - L::width;
            const u64 begin = at - column;
#pragma unroll
            for (int c = 1; c < L::width; ++c) {
                const int k = c - (L::width - ahead());
                if (k < 0 || begin + k >= n) continue;
                const T p = E::widen(__ldg(x + begin + k));
                sum[last + c] = Op()(sum[last + c], Term::of(p, p));
            }
        }
        const int left = at < n ? int(min(n - at, of_leaf)) : 0;
        auto there = [&](int load) { return whole || left >= load * stride + L::width; };
        // The load that would reach beyond the end, element by element; it comes last in its lanes.
        const int partial = left / stride, rest = left % stride < L::width ? left % stride : 0;
        S tail_x[L::width], tail_y[L::width];
        if (!whole) {
#pragma unroll
            for (int c = 0; c < L::width; ++c) {
                if (c >= rest) continue;
                tail_x[c] = __ldg(x + at + partial * stride + c);
                if (two) tail_y[c] = __ldg(y + at + partial * stride + c);
            }
        }
        uint4 a[flight], b[two ? flight : 1];
        auto load = [&](int k) {
            load_if<whole>(there(k), a[k % flight], x + at + k * stride);
            if (two) load_if<whole>(there(k), b[k % flight], y + at + k * stride);
        };
#pragma unroll
        for (int k = 0; k < flight; ++k) load(k);
#pragma unroll
        for (int k = 0; k < loads; ++k) {
            T p[L::width], q[L::width];
            E::unpack(a[k % flight], p);
            if (two) E::unpack(b[k % flight], q);
#pragma unroll
            for (int c = 0; c < L::width; ++c) {
                T& lane = sum[k % L::loads * L::width + c];
                T next = Op()(lane, Term::of(p[c], two ? q[c] : p[c]));
                if (there(k)) lane = next;
            }
            if (k + flight < loads) load(k + flight);
        }
        if (!whole && rest) {
#pragma unroll
            for (int c = 0; c < L::width; ++c) {
                T p = E::widen(tail_x[c]), q = two ? E::widen(tail_y[c]) : p;
#pragma unroll
                for (int i = 0; i < L::loads; ++i) {
                    T& lane = sum[i * L::width + c];
                    if (c < rest && partial % L::loads == i) lane = Op()(lane, Term::of(p, q));
                }
            }
        }
        return combine_leaf_lanes<L>(sum, Op());
    }

    // Hands the values of the units of inputs of n elements that fall to this warp to `use`: unit
    // `from`, from + step, …; `at`: first(from).
    template <class Use> __device__ void run(u64 n, u64 from, u64 at, u64 step, Use use) const {
        // Shifted, the last load of a whole unit reaches beyond it.
        const u64 whole = shifted ? 0 : n / unit, all = shifted ? (n + unit - 1) / unit : whole + (n % unit != 0);
        u64 u = from;
        for (; u < whole; u += step, at += step * unit) use(u, value<true>(at, n));
        for (; u < all; u += step, at += step * unit) use(u, value<false>(at, n));
    }
};

// `run` of leaves that begin anywhere, in the way that fits where they do.
template <class E, class Term, class Op, class Use>
__device__ inline void run_leaves(const warp_leaves<E, Term, Op, false>& leaves, u64 n, u64 from, u64 at, u64 step,
                                  Use use) {
    if (are_aligned<Term::inputs == 2>(leaves.x, leaves.y)) {
        warp_leaves<E, Term, Op, true>(leaves.x, leaves.y).run(n, from, at, step, use);
    } else {
        leaves.run(n, from, at, step, use);
    }
}

}  // namespace crosswarp

// Loops of a grid, or of a warp, over elements whose order does not matter: 16 bytes a thread at a time, several in
// flight.
#pragma once
#include "reduce/arguments.cuh"
#include "reduce/warp_leaf.cuh"

namespace crosswarp {

// Integer types by the names they have in Rust, with the type their sums are formed in, and whether
// they are signed.
template <class T, class Wide, bool is_signed> struct integer_element {
    using storage = T;
    using wide = Wide;
    static constexpr bool is_float = false;
    static constexpr bool has_sign = is_signed;
};
struct element_i8 : integer_element<signed char, i64, true> {};
struct element_i16 : integer_element<short, i64, true> {};
struct element_i32 : integer_element<int, i64, true> {};
struct element_i64 : integer_element<i64, i64, true> {};
struct element_u8 : integer_element<u8, u64, false> {};
struct element_u16 : integer_element<u16, u64, false> {};
struct element_u32 : integer_element<u32, u64, false> {};
struct element_u64 : integer_element<u64, u64, false> {};

// Number of the first unit of this warp: neighbouring units go to different blocks, so that few units use many
// SMs.
__device__ inline u64 first_unit() { return u64(threadIdx.x / 32) * gridDim.x + blockIdx.x; }

// Loads of a lane that are in flight; those of a warp are a unit, which lies in one piece.
template <bool two> constexpr int walk_flight = two ? walk_loads / 2 : walk_loads;
template <bool two> constexpr int walk_unit_bytes = walk_flight<two> * 32 * 16;

// Gives this thread's elements of inputs of n elements to `use(x, y, first)`: arrays of 16 bytes of elements, of which the
// first has the index `first`; and what is before and after whole 16 bytes element by element to `rest(x, y, index)`. Each
// thread goes through the indices upwards. `y` is null if there is one input.
//
// `aligned`: `are_aligned` of the inputs. (Small sums of i32 gained 30 ns when it was known before the launch waited.)
// Misaligned inputs are rare, so their code is kept short: of one the elements before the first multiple of 16 go to `rest`,
// of `two` the 16 bytes are loaded element by element.
template <bool two, class S, class Use, class Rest>
__device__ inline void walk(bool aligned, const S* x, const S* y, u64 n, Use use, Rest rest) {
    constexpr int width = 16 / sizeof(S);
    constexpr int flight = walk_flight<two>;
    constexpr int unit = 32 * flight;
    const u64 warps = u64(gridDim.x) * (blockDim.x / 32);
    const int lane = warp::lane();
    u64 u = first_unit(), head = 0;
    auto give = [&](uint4 a, uint4 b, u64 v) {
        S p[width], q[width];
        memcpy(p, &a, 16);
        memcpy(q, &b, 16);
        use(p, q, head + v * width);
    };
    if (aligned) {
        const u64 whole = n / width / unit;
        for (; u < whole; u += warps) {
            const u64 v = u * unit + lane;
            uint4 a[flight], b[flight];
#pragma unroll
            for (int i = 0; i < flight; ++i) {
                a[i] = load16(x + (v + 32 * i) * width);
                if (two) b[i] = load16(y + (v + 32 * i) * width);
            }
#pragma unroll
            for (int i = 0; i < flight; ++i) give(a[i], two ? b[i] : a[i], v + 32 * i);
        }
        if (u != whole || n % (unit * width) == 0) return;
    } else if (!two) {
        head = min(-reinterpret_cast<u64>(x) % 16 / sizeof(S), n);
        if (u == 0 && lane < head) rest(x[lane], x[lane], u64(lane));
        x += head;
        n -= head;
    }
    // Units of which any 16 bytes need not be there: the last, and all of what is not aligned.
    const u64 vectors = n / width, whole = vectors / unit;
#pragma unroll 1
    for (;; u += warps) {
        if (u > whole) return;
        const u64 v = u * unit + lane;
        uint4 a[flight], b[flight];
        if (!two || aligned) {
#pragma unroll
            for (int i = 0; i < flight; ++i) {
                if (v + 32 * i >= vectors) continue;
                a[i] = load16(x + (v + 32 * i) * width);
                if (two) b[i] = load16(y + (v + 32 * i) * width);
            }
        } else {
#pragma unroll
            for (int i = 0; i < flight; ++i) {
                if (v + 32 * i >= vectors) continue;
                a[i] = load_elements<S, false>(x + (v + 32 * i) * width);
                b[i] = load_elements<S, false>(y + (v + 32 * i) * width);
            }
        }
#pragma unroll
        for (int i = 0; i < flight; ++i) {
            if (v + 32 * i < vectors) give(a[i], two ? b[i] : a[i], v + 32 * i);
        }
        if (u == whole) break;
    }
    const u64 k = vectors * width + lane;
    if (k < n) rest(x[k], two ? y[k] : x[k], head + k);
}

// The same by one warp; it loads two inputs 16 bytes at a time if they have the same address modulo 16.
template <class S, bool two, class Use, class Rest>
__device__ inline void warp_walk(const S* x, const S* y, u64 n, Use use, Rest rest) {
    constexpr int width = 16 / sizeof(S);
    constexpr int flight = walk_flight<two>;
    const int lane = warp::lane();
    const u64 x_address = reinterpret_cast<u64>(x), y_address = reinterpret_cast<u64>(y);
    // Elements before the first 16 bytes to load; all, if the inputs are out of step.
    u64 head = min((16 - x_address % 16) % 16 / sizeof(S), n);
    if (two && (x_address ^ y_address) % 16) head = n;
    for (u64 k = lane; k < head; k += 32) rest(x[k], two ? y[k] : x[k], k);
    const u64 vectors = (n - head) / width;
    for (u64 v = lane; v < vectors; v += 32 * flight) {
        uint4 a[flight], b[flight];
#pragma unroll
        for (int i = 0; i < flight; ++i) {
            if (v + 32 * i >= vectors) continue;
            a[i] = load16(x + head + (v + 32 * i) * width);
            if (two) b[i] = load16(y + head + (v + 32 * i) * width);
        }
#pragma unroll
        for (int i = 0; i < flight; ++i) {
            if (v + 32 * i >= vectors) continue;
            S p[width], q[width];
            memcpy(p, &a[i], 16);
            memcpy(q, two ? &b[i] : &a[i], 16);
            use(p, q, head + (v + 32 * i) * width);
        }
    }
    u64 k = head + vectors * width + lane;
    if (k < n) rest(x[k], two ? y[k] : x[k], k);
}

}  // namespace crosswarp

// What the kernels of the verbs that the host gives to streams (src/pe/on_stream) have in common: one kernel each, for
// any team.
//
// `_block` kernels serve payloads that travel in slots; their whole work is one block's, but reductions of some kilobytes
// have several. `_grid` kernels share the payload among their blocks. All are started with so few blocks that they are
// resident, as many on every PE; `state` and `words` are the team's. They have one parameter list, so that the host launches
// them alike. Bytes are moved as the widest units that sizes and places allow; the large kernels find them themselves.
#pragma once
#include "on_stream/by_blocks.cuh"

using cw::i32;
using cw::i64;
using cw::u16;
using cw::u32;
using cw::u64;
using cw::u8;
using cw::detail::vec16;

// At most 128 registers: two blocks per SM, whichever they are, so that grids of one block per SM of
// different PEs or streams fit beside each other.
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(cw::stream_threads, 2) name

// `call` in terms of t, dest, source, n, root and scope, or for a grid state and words, which are scratches where blocks
// send in units. The host has chosen by size; knowing
// it, the compiler leaves the other half of the collective out.
#define PARAMETERS(T) (cw::team t, cw::grid_state * state, u64 * words, T * dest, const T* source, u64 n, i32 root)
#define ON_BLOCK(name, T, call)                                             \
    KERNEL(name##_block_##T) PARAMETERS(T) {                                \
        cw::block scope;                                                    \
        if (n == 0 || !cw::detail::is_small<T>(n)) __builtin_unreachable(); \
        call;                                                               \
    }
// The same by as many blocks as the payload has parts that travel so.
#define ON_UNITS(name, T, call)              \
    KERNEL(name##_block_##T) PARAMETERS(T) { \
        if (n == 0) __builtin_unreachable(); \
        call;                                \
    }
#define ON_GRID(name, T, call)                                   \
    KERNEL(name##_grid_##T) PARAMETERS(T) {                      \
        if (cw::detail::is_small<T>(n)) __builtin_unreachable(); \
        call;                                                    \
    }

// The operation as a parameter: one kernel per type instead of seven, which would take seven times as long
// to compile. All threads take the same branch, and memory and links set the pace.
struct any_op {
    i32 code;
    template <class T> __device__ T operator()(T a, T b) const {
        switch (code) {
            case cw::sum_op::code: return cw::sum_op()(a, b);
            case cw::prod_op::code: return cw::prod_op()(a, b);
            case cw::min_op::code: return cw::min_op()(a, b);
            case cw::max_op::code: return cw::max_op()(a, b);
        }
        if constexpr (static_cast<T>(0.5) == 0) {  // integers
            switch (code) {
                case cw::and_op::code: return cw::and_op()(a, b);
                case cw::or_op::code: return cw::or_op()(a, b);
                case cw::xor_op::code: return cw::xor_op()(a, b);
            }
        }
        return a;
    }
};

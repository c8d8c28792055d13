// The verbs that the host gives to streams (src/pe/on_stream): one kernel each, for any team.
//
// `_block` kernels serve payloads that travel in slots; their whole work is one block's. `_grid` kernels
// are started with so few blocks that all are resident, and share the payload among them; `state` is the team's.
// Both have one parameter list, so that the host launches them alike. Bytes are moved as the widest
// units that sizes and places allow; the large kernels find them themselves.
#include "pe.cuh"

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

KERNEL(signal)(u64* flag, u64 value, i32 add, i32 pe) {
    cw::signal(flag, value, add ? cw::signal_op::add : cw::signal_op::set, pe);
}

KERNEL(signal_wait)(const u64* flag, i32 how, u64 value) {
    cw::signal_wait_until(flag, static_cast<cw::cmp>(how), value);
}

KERNEL(barrier)(cw::team t) { cw::barrier<cw::warp>(t); }
KERNEL(sync)(cw::team t) { cw::sync<cw::warp>(t); }
// A collective of no elements, which the host names: only the rendezvous, in which PEs see that all have none.
KERNEL(nothing)(cw::team t, u64 collective) { cw::detail::meet(t, cw::warp(), collective); }

// dest[i * dest_stride] = source[i * source_stride], i < n: elements of `units` Ts, strides in Ts. Either
// side may be another PE's memory, or page-locked memory of the host.
#define STRIDED(T)                                                                                 \
    KERNEL(strided_##T)(T* dest, u64 dest_stride, const T* source, u64 source_stride, u64 n, u64 units) { \
        u64 step = (u64)gridDim.x * blockDim.x;                                                    \
        for (u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x; k < n * units; k += step) {       \
            u64 i = units == 1 ? k : k / units, part = k - i * units;                              \
            dest[i * dest_stride + part] = cw::detail::load_fresh(source + i * source_stride + part); \
        }                                                                                          \
    }
STRIDED(u8)
STRIDED(u16)
STRIDED(u32)
STRIDED(u64)
STRIDED(vec16)

// `call` in terms of t, dest, source, n, root and scope. The host has chosen by size; knowing it, the
// compiler leaves the other half of the collective out.
#define ON_BLOCK(name, T, call)                                                                         \
    KERNEL(name##_block_##T)(cw::team t, cw::grid_state*, T* dest, const T* source, u64 n, i32 root) {  \
        cw::block scope;                                                                                \
        if (n == 0 || !cw::detail::is_small<T>(n)) __builtin_unreachable();                             \
        call;                                                                                           \
    }
#define ON_GRID(name, T, call)                                                                               \
    KERNEL(name##_grid_##T)(cw::team t, cw::grid_state* state, T* dest, const T* source, u64 n, i32 root) {  \
        cw::grid grid(state);                                                                                \
        cw::grid_threads scope(grid);                                                                        \
        if (cw::detail::is_small<T>(n)) __builtin_unreachable();                                             \
        call;                                                                                                \
    }
#define MOVES(name, call)      \
    ON_BLOCK(name, u8, call)   \
    ON_BLOCK(name, u32, call)  \
    ON_BLOCK(name, u64, call)  \
    ON_GRID(name, u8, call)

MOVES(broadcast, cw::broadcast(dest, source, n, root, t, scope))
MOVES(fcollect, cw::fcollect(dest, source, n, t, scope))
MOVES(alltoall, cw::alltoall(dest, source, n, t, scope))

// The operation as a parameter: one kernel per type instead of seven, which would take half a minute
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

#define REDUCES(T)                                                               \
    ON_BLOCK(reduce, T, cw::reduce(dest, source, n, any_op{root}, t, scope))     \
    ON_GRID(reduce, T, cw::reduce(dest, source, n, any_op{root}, t, scope))

REDUCES(i32)
REDUCES(u32)
REDUCES(i64)
REDUCES(u64)
REDUCES(float)
REDUCES(double)


#ifdef CROSSWARP_ROUTED
// Puts and gets of PEs of other hosts.
KERNEL(routed_copy)(void* remote, void* local, u64 bytes, i32 pe, i32 puts) {
    if (puts) {
        cw::detail::route_put(remote, local, bytes, pe, cw::thread());
    } else {
        cw::detail::route_get(local, remote, bytes, pe, cw::thread());
    }
}
KERNEL(routed_strided)(void* remote, u64 remote_stride, void* local, u64 local_stride, u64 width, u64 n, i32 pe, i32 puts) {
    const auto op = puts ? cw::route_op::put_strided : cw::route_op::get_strided;
    cw::detail::route_strided(op, reinterpret_cast<u64>(local), local_stride, remote, remote_stride, width, n, pe,
                              cw::thread());
}
KERNEL(routed_quiet)() { cw::quiet(); }
// Executes the inbox of atomic operations, if no other kernel does.
KERNEL(execute_inbox)() { cw::detail::serve_inbox(); }
#endif

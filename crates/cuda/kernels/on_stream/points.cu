// Signals, rendezvous and strided copies.
#include "on_stream/kernels.cuh"

KERNEL(signal)(u64* flag, u64 value, i32 add, i32 pe) {
    cw::signal(flag, value, add ? cw::signal_op::add : cw::signal_op::set, pe);
}

KERNEL(signal_wait)(const u64* flag, i32 how, u64 value) {
    cw::signal_wait_until(flag, static_cast<cw::cmp>(how), value);
}

// Meets the others of the team, as `meet`. While the first warp fences, the second one loads the rendezvous's number, which
// takes as long; of more PEs than threads of a warp both fence.
__device__ inline void meet_others(const cw::team& t, u64 collective) {
    using namespace cw::detail;
    const cw::block scope;
    __shared__ u64 number;
    const bool loads = threadIdx.x >= 32;
    if (threadIdx.x == 32) number = load_relaxed(&scratch_of(t)->generation) + 1;
    // Who tells a PE of it fences itself. Race prevented: the PE must not see that before what the stream's earlier work
    // stored.
    if (!loads || t.size > 32) cw::fence();
    scope.sync();
    if (t.size > 1) exchange_arrivals(t, scope, rendezvous{number, collective});
}

KERNEL(barrier)(cw::team t) {
#ifdef CROSSWARP_ROUTED
    if (threadIdx.x == 0) cw::detail::route_quiet();
    __syncthreads();
#endif
    meet_others(t, cw::detail::collective(cw::detail::kind::barrier, 0));
}
KERNEL(sync)(cw::team t) { meet_others(t, cw::detail::collective(cw::detail::kind::sync, 0)); }
// A collective of no elements, which the host names: only the rendezvous, in which PEs see that all have none.
KERNEL(nothing)(cw::team t, u64 collective) { meet_others(t, collective); }

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

// Signals, rendezvous and strided copies.
#include "on_stream/kernels.cuh"

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

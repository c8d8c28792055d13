// What the host does with single words of symmetric memory, in stream order: one kernel each, where the stream itself
// does not write the word. Addresses are those of this
// PE's part, unless said otherwise.
#include "pe.cuh"

using cw::i32;
using cw::i64;
using cw::u16;
using cw::u32;
using cw::u64;
using cw::u8;

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(256) name

struct alignas(16) two_words {
    u64 word[2];
};

// The low bytes of `value` to the word at `at` on `pe`: one store.
KERNEL(store)(u64 at, u64 value, i32 bytes, i32 pe) {
    switch (bytes) {
        case 1: cw::p(reinterpret_cast<u8*>(at), (u8)value, pe); break;
        case 2: cw::p(reinterpret_cast<u16*>(at), (u16)value, pe); break;
        case 4: cw::p(reinterpret_cast<u32*>(at), (u32)value, pe); break;
        default: cw::p(reinterpret_cast<u64*>(at), value, pe);
    }
}

KERNEL(signal)(u64* at, u64 value, i32 add, i32 pe) {
    cw::signal(at, value, add ? cw::signal_op::add : cw::signal_op::set, pe);
}

// `bytes` from `source`, in this PE's part, to `dest` on `pe`, and the signal behind them. One block: its one release
// orders what all its threads have put.
extern "C" __global__ void __launch_bounds__(512)
    put_signal(u8* dest, const u8* source, u64 bytes, u64* at, u64 value, i32 add, i32 pe) {
    cw::put_signal(dest, source, bytes, at, value, add ? cw::signal_op::add : cw::signal_op::set, pe, cw::block());
}

template <class T> __device__ T seen(u64 at) {
    if constexpr (sizeof(T) == 2) {
        u16 bits;
        asm volatile("ld.acquire.sys.global.u16 %0, [%1];" : "=h"(bits) : "l"(at) : "memory");
        return (T)bits;
    } else {
        using W = cw::detail::carrier_of<T>;
        return (T)cw::detail::load_acquire(reinterpret_cast<const W*>(at));
    }
}

// Waits until the word compares with `than` as NVSHMEM numbers comparisons. No wait of this kind can say that it was in
// vain, so the kernel then ends by a trap, as one of the program's would.
template <class T> __device__ void wait_for(u64 at, i32 how, T than) {
    const bool came = cw::spin(
        [=] {
            const T value = seen<T>(at);
            switch (how) {
                case 0: return value == than;
                case 1: return value != than;
                case 2: return value > than;
                case 3: return value <= than;
                case 4: return value < than;
                default: return value >= than;
            }
        },
        cw::wait_value, cw::anyone, reinterpret_cast<const void*>(at), (u64)than, [=] { return (u64)seen<T>(at); });
    if (!came) __trap();
}

// `type`: the word's bytes, negative if it is signed.
__device__ void wait_for(u64 at, i32 type, i32 how, u64 than) {
    switch (type) {
        case -2: wait_for<short>(at, how, (short)than); break;
        case 2: wait_for<u16>(at, how, (u16)than); break;
        case -4: wait_for<i32>(at, how, (i32)than); break;
        case 4: wait_for<u32>(at, how, (u32)than); break;
        case -8: wait_for<i64>(at, how, (i64)than); break;
        default: wait_for<u64>(at, how, than);
    }
}

KERNEL(wait)(u64 at, i32 type, i32 how, u64 than) { wait_for(at, type, how, than); }

// All of `n` words but those whose `status` is not 0; `than` are the bytes of what each is compared with, in memory of
// the program's, or with `same` all with that.
KERNEL(wait_all)(u64 at, u64 n, u64 status, i32 type, i32 how, u64 than, i32 same) {
    const i32 bytes = type < 0 ? -type : type;
    for (u64 i = 0; i < n; ++i) {
        if (status != 0 && reinterpret_cast<const int*>(status)[i] != 0) continue;
        u64 value = than;
        if (!same) {
            const u64 from = than + i * bytes;
            value = bytes == 2   ? *reinterpret_cast<const u16*>(from)
                    : bytes == 4 ? *reinterpret_cast<const u32*>(from)
                                 : *reinterpret_cast<const u64*>(from);
        }
        wait_for(at + i * bytes, type, how, value);
    }
}

// dest[i * dest_stride] = source[i * source_stride], i < n, for elements of T; either side may be another PE's.
template <class T> __device__ void strided_copy(u64 dest, i64 dest_stride, u64 source, i64 source_stride, u64 n) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
        reinterpret_cast<T*>(dest)[(i64)i * dest_stride] =
            cw::load_volatile(reinterpret_cast<const T*>(source) + (i64)i * source_stride);
    }
}
KERNEL(strided)(u64 dest, i64 dest_stride, u64 source, i64 source_stride, u64 n, i32 bytes) {
    switch (bytes) {
        case 1: strided_copy<u8>(dest, dest_stride, source, source_stride, n); break;
        case 2: strided_copy<u16>(dest, dest_stride, source, source_stride, n); break;
        case 4: strided_copy<u32>(dest, dest_stride, source, source_stride, n); break;
        case 8: strided_copy<u64>(dest, dest_stride, source, source_stride, n); break;
        default: strided_copy<two_words>(dest, dest_stride, source, source_stride, n);
    }
}

// One atomic operation on the word at `at` on `pe`; what was there before goes to `out`.
enum what { fetch, set, swap, compare_swap, add, bit_and, bit_or, bit_xor };
template <class T> __device__ T atomic(T* at, i32 op, T value, T cond, i32 pe) {
    switch (op) {
        case set: cw::atomic_set(at, value, pe); return value;
        case swap: return cw::atomic_swap(at, value, pe);
        case compare_swap: return cw::atomic_compare_swap(at, cond, value, pe);
        case add: return cw::atomic_fetch_add(at, value, pe);
        case bit_and: return cw::atomic_fetch_and(at, value, pe);
        case bit_or: return cw::atomic_fetch_or(at, value, pe);
        case bit_xor: return cw::atomic_fetch_xor(at, value, pe);
        default: return cw::atomic_fetch(at, pe);
    }
}
KERNEL(atomic_word)(u64 at, i32 bytes, i32 op, u64 value, u64 cond, i32 pe, u64* out) {
    *out = bytes == 4 ? atomic(reinterpret_cast<u32*>(at), op, (u32)value, (u32)cond, pe)
                      : atomic(reinterpret_cast<u64*>(at), op, value, cond, pe);
}

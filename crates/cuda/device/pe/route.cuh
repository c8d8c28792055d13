// PEs of other hosts, whose memory is not mapped: what a verb does to it is an entry of a ring in host memory, which a
// thread of this PE's process takes, carries to the other host and has done there. In a world of one host nothing of
// this is compiled.
//
// Functions are called and not inlined: a trip to another host takes longer than any call, and kernels stay small.
//
// Entries are taken in the order of their numbers and done in that order at each PE. So puts before a fence are done
// before puts after it, and a signal after its data. A thread that puts makes what it puts from visible to the host first.
#pragma once
#include "pe/wait.cuh"

#ifdef CROSSWARP_ROUTED
namespace crosswarp {

namespace detail {

__device__ inline u64 load_far(const u64* at) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
__device__ inline void store_far(u64* at, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

// What an entry says; what an operation has no use for is 0. Without initialisers of its own: C++11, of programs for NVSHMEM,
// takes no list of values then.
struct route_entry {
    route_op op;
    int pe;
    u64 local;                        // address in memory that this GPU reaches
    u64 offset;                       // in the heap of `pe`
    u64 n;                            // bytes, or elements
    u64 local_stride, remote_stride;  // bytes
    u64 operand, expected;
    u64 element;                      // bytes of one, of strided operations
    u32 width;                        // logarithm of the bytes of a word
    atomic_op change;
};

// Waits until `word` in host memory is `least` at least.
__device__ inline __noinline__ bool wait_far(const u64* word, u64 least, int pe) {
    u64 seen = 0;
    return spin([&] { return (seen = load_far(word)) >= least; }, wait_remote, pe, at<u8>(0), least,
                [&] { return seen; });
}

// Gives an entry to the host; its number.
__device__ inline __noinline__ u64 issue(const route_entry& entry) {
    const route_state& route = crosswarp_route;
    const u64 number = atomicAdd(route.issued, 1ull);
    if (number >= load_volatile(route.taken_seen) + route_entries) {
        wait_far(route.taken, number + 1 - route_entries, entry.pe);
        atomicMax(route.taken_seen, load_far(route.taken));
    }
    const bool strided = entry.op == route_op::put_strided || entry.op == route_op::get_strided;
    const u64 operand = strided ? entry.local_stride : entry.operand;
    const u64 expected = strided ? entry.remote_stride : entry.expected;
    const u64 word[route_words] = {
        (u64)entry.op | (u64)entry.change << route_atomic_bit | (u64)entry.width << route_width_bit |
            operand >> 63 << route_operand_bit | expected >> 63 << route_expected_bit | (u64)entry.pe << route_pe_bit,
        entry.local, entry.offset, entry.n, operand, expected, entry.element, 0};
    u64* at = route.ring + number % route_entries * route_words;
    const u64 round = ~(number / route_entries) & 1;
#pragma unroll
    for (int i = 0; i < route_words; ++i) store_far(at + i, word[i] << 1 | round);
    return number;
}

__device__ inline u64 offset_of(const void* local) { return reinterpret_cast<u64>(local) - crosswarp_world.heap; }

// What this thread wrote, and what it knows that others did, is visible to the host.
__device__ inline void show_host() { __threadfence_system(); }

__device__ inline void wait_taken(u64 number, int pe) { wait_far(crosswarp_route.taken, number + 1, pe); }
__device__ inline void wait_completed(u64 number, int pe) { wait_far(crosswarp_route.completed, number + 1, pe); }

// The value that entry `number` fetches.
__device__ inline __noinline__ u64 take_fetched(u64 number, int pe) {
    u64* place = crosswarp_route.fetched + number % route_entries * 2;
    if (!wait_far(place, number + 1, pe)) return 0;
    const u64 value = load_far(place + 1);
    store_far(place, 0);
    return value;
}

// All entries so far of this PE are complete.
__device__ inline __noinline__ void route_quiet() {
    // In a world of one host there are none.
    if (crosswarp_route.issued == nullptr) return;
    const u64 issued = load_volatile(crosswarp_route.issued);
    wait_far(crosswarp_route.completed, issued, everyone);
}

template <int Bytes> constexpr u32 log_of = Bytes == 8 ? 3 : Bytes == 4 ? 2 : Bytes == 2 ? 1 : 0;

__device__ inline __noinline__ void word_by_host(u64 offset, u64 value, u32 width, int pe) {
    route_entry entry = {route_op::word, pe};
    entry.offset = offset;
    entry.operand = value;
    entry.width = width;
    issue(entry);
}
__device__ inline __noinline__ u64 fetch_by_host(u64 offset, u32 width, int pe) {
    route_entry entry = {route_op::fetch, pe};
    entry.offset = offset;
    entry.width = width;
    return take_fetched(issue(entry), pe);
}

template <class T> __device__ inline void route_p(T* dest, const T& value, int pe) {
    using U = unit_of<T>;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / sizeof(U)); ++i) {
        U part;
        memcpy(&part, reinterpret_cast<const char*>(&value) + i * sizeof(U), sizeof(U));
        word_by_host(offset_of(dest) + i * sizeof(U), part, log_of<sizeof(U)>, pe);
    }
}

template <class T> __device__ inline T route_g(const T* source, int pe) {
    using U = unit_of<T>;
    T value;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / sizeof(U)); ++i) {
        const U part = (U)fetch_by_host(offset_of(source) + i * sizeof(U), log_of<sizeof(U)>, pe);
        memcpy(reinterpret_cast<char*>(&value) + i * sizeof(U), &part, sizeof(U));
    }
    return value;
}

__device__ inline __noinline__ void put_by_host(void* dest, const void* source, u64 bytes, int pe) {
    show_host();
    route_entry entry = {route_op::put, pe};
    entry.local = reinterpret_cast<u64>(source);
    entry.offset = offset_of(dest);
    entry.n = bytes;
    wait_taken(issue(entry), pe);
}
template <class Scope>
__device__ inline void route_put(void* dest, const void* source, u64 bytes, int pe, const Scope& scope) {
    if (scope.rank() == 0 && bytes != 0) put_by_host(dest, source, bytes, pe);
}

__device__ inline __noinline__ void get_by_host(void* dest, const void* source, u64 bytes, int pe) {
    // What was written to `dest` before must not come after.
    show_host();
    route_entry entry = {route_op::get, pe};
    entry.local = reinterpret_cast<u64>(dest);
    entry.offset = offset_of(source);
    entry.n = bytes;
    wait_completed(issue(entry), pe);
}
template <class Scope>
__device__ inline void route_get(void* dest, const void* source, u64 bytes, int pe, const Scope& scope) {
    if (scope.rank() == 0 && bytes != 0) get_by_host(dest, source, bytes, pe);
}

// `n` elements of `width` bytes, strides in bytes.
__device__ inline __noinline__ void strided_by_host(route_op op, u64 local, u64 local_stride, const void* remote,
                                                    u64 remote_stride, u64 width, u64 n, int pe) {
    if (width > route_body) {
        for (u64 i = 0; i < n; ++i) {
            void* here = reinterpret_cast<void*>(local + i * local_stride);
            void* there = reinterpret_cast<void*>(reinterpret_cast<u64>(remote) + i * remote_stride);
            op == route_op::put_strided ? put_by_host(there, here, width, pe) : get_by_host(here, there, width, pe);
        }
        return;
    }
    show_host();
    route_entry entry = {op, pe};
    entry.local = local;
    entry.offset = offset_of(remote);
    entry.n = n;
    entry.local_stride = local_stride;
    entry.remote_stride = remote_stride;
    entry.element = width;
    const u64 number = issue(entry);
    op == route_op::put_strided ? wait_taken(number, pe) : wait_completed(number, pe);
}
template <class Scope>
__device__ inline void route_strided(route_op op, u64 local, u64 local_stride, const void* remote, u64 remote_stride,
                                     u64 width, u64 n, int pe, const Scope& scope) {
    if (scope.rank() == 0 && n != 0 && width != 0) {
        strided_by_host(op, local, local_stride, remote, remote_stride, width, n, pe);
    }
}

// Changes the word at `offset`; returns what was there if `fetches`.
__device__ inline __noinline__ u64 change_by_host(u64 offset, atomic_op change, u64 operand, u64 expected, u32 width,
                                                  bool fetches, int pe) {
    route_entry entry = {fetches ? route_op::atomic_fetch : route_op::atomic, pe};
    entry.offset = offset;
    entry.operand = operand;
    entry.expected = expected;
    entry.width = width;
    entry.change = change;
    const u64 number = issue(entry);
    return fetches ? take_fetched(number, pe) : 0;
}
template <class T> __device__ inline void route_change(T* dest, atomic_op change, u64 operand, int pe) {
    change_by_host(offset_of(dest), change, operand, 0, log_of<sizeof(T)>, false, pe);
}
template <class T>
__device__ inline u64 route_fetch_change(T* dest, atomic_op change, u64 operand, int pe, u64 expected = 0) {
    return change_by_host(offset_of(dest), change, operand, expected, log_of<sizeof(T)>, true, pe);
}

}  // namespace detail
}  // namespace crosswarp
#endif

// Put, get and ordering between PEs, from one thread, a warp or a block.
//
//     cw::p(flag, 1, peer);                                  // one element, any thread
//     cw::put<cw::block>(dest, source, n, peer);             // all threads of the block take part
//
// `dest` and `source` on the remote side are addresses in *my* symmetric heap that stand for the same
// object on `pe`. All threads of the scope must call with the same arguments. Puts are ordinary stores
// to the peer's mapped memory: they may arrive in any order until a `fence`, `quiet`, signal or barrier.
// Blocking and non-blocking forms do the same; the non-blocking ones promise less.
#pragma once
#include "pe/route.cuh"

namespace crosswarp {

// Puts before it are delivered before puts and signals after it, for every PE that looks (acquires).
// fence.acq_rel is cumulative: after a block-wide sync, one thread's fence covers the block's puts.
__device__ inline void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// All puts and atomics before it are complete: visible to every PE. Sequentially consistent, so that
// two PEs that each put, quiet and get can not both miss the other's put.
__device__ inline void quiet() {
#ifdef CROSSWARP_ROUTED
    detail::route_quiet();
#endif
    asm volatile("fence.sc.sys;" ::: "memory");
}

namespace detail {

struct alignas(vector_bytes) vec16 {
    u32 word[4];
};

// Loads that see other PEs' stores: past the first-level cache.
__device__ inline vec16 load_fresh(const vec16* from) {
    vec16 v;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(from) : "memory");
    return v;
}
template <class T> __device__ inline T load_fresh(const T* from) { return load_volatile(from); }

template <class W, bool Fresh> __device__ inline W load(const W* from) {
    if constexpr (Fresh) {
        return load_fresh(from);
    } else {
        return *from;
    }
}

// How the threads of a scope share out `n` items when each works on `flight` at a time: a warp's lanes
// side by side, its items next to one another (few pages and cache lines at once, however large the
// scope is), the warps one behind the other. Scopes that are no whole warps go side by side as a whole.
template <int flight, class Scope> struct shares {
    u64 first, near, far;  // this thread's first item, the way to its next, and to its next `flight`

    explicit __device__ shares(const Scope& scope) {
        u64 rank = scope.rank(), size = scope.size();
        bool whole_warps = size % 32 == 0;
        near = whole_warps ? 32 : size;
        first = whole_warps ? (rank & ~31ull) * flight + (rank & 31) : rank;
        far = size * flight;
    }
};

#ifdef CROSSWARP_FEW_REGISTERS
// Loads from another PE take longest, and a block has many threads.
template <class Scope, bool Fresh> constexpr int words_in_flight = 4;
template <> constexpr int words_in_flight<block, false> = 2;

// The words from `from` to before `end`, to where is `away` bytes further.
template <int flight, int near, class W, bool Fresh>
__device__ inline void copy_strides(const W* from, const W* end, ptrdiff_t away, u32 far) {
    auto to = [&](const W* at) { return reinterpret_cast<W*>(reinterpret_cast<u64>(at) + away); };
#pragma unroll 1
    for (; from + (flight - 1) * near < end; from += far) {
        W word[flight];
#pragma unroll
        for (int j = 0; j < flight; ++j) word[j] = load<W, Fresh>(from + j * near);
#pragma unroll
        for (int j = 0; j < flight; ++j) to(from)[j * near] = word[j];
    }
    // Of the last round only some words exist; if the first does, the next round's lies beyond the end. Two in flight,
    // where there are two: a second way to another PE and back would take as long as the first.
    if constexpr (flight > 2) {
#pragma unroll 1
        for (; from + near < end; from += 2 * near) {
            const W word = load<W, Fresh>(from), next = load<W, Fresh>(from + near);
            *to(from) = word;
            *to(from + near) = next;
        }
    }
#pragma unroll 1
    for (; from < end; from += near) *to(from) = load<W, Fresh>(from);
}

// Copies `n` words for programs whose kernels have whatever size they like: in few registers, for those are the kernel's
// (with more than 32, an SM has room for one block of 1024 threads only). Fewer words are in flight than below, at
// distances that the compiler knows.
template <class W, bool Fresh, class Scope>
__device__ inline void copy_words(W* to, const W* from, u64 n, const Scope& scope) {
    constexpr int flight = words_in_flight<Scope, Fresh>;
    const ptrdiff_t away = reinterpret_cast<u64>(to) - reinterpret_cast<u64>(from);
    const u32 rank = scope.rank(), size = scope.size();
    if (size == 1) return copy_strides<flight, 1, W, Fresh>(from, from + n, away, flight);
    // No more words than threads: one for each, all in flight at once.
    if (size % 32 == 0 && n > size) {
        const u32 first = rank / 32 * (32 * flight) + rank % 32;
        return copy_strides<flight, 32, W, Fresh>(from + first, from + n, away, flight * size);
    }
#pragma unroll 1
    for (u64 i = rank; i < n; i += size) to[i] = load<W, Fresh>(from + i);
}
#else
// Copies `n` words, eight words a thread in flight.
template <class W, bool Fresh, class Scope>
__device__ inline void copy_words(W* to, const W* from, u64 n, const Scope& scope) {
    constexpr int flight = 8;
    const shares<flight, Scope> mine(scope);
    u64 i = mine.first;
    for (; i + (flight - 1) * mine.near < n; i += mine.far) {
        W word[flight];
#pragma unroll
        for (int j = 0; j < flight; ++j) word[j] = load<W, Fresh>(from + i + j * mine.near);
#pragma unroll
        for (int j = 0; j < flight; ++j) to[i + j * mine.near] = word[j];
    }
    // The last round, where only some of this thread's items exist. (If its first does, the round after
    // would lie beyond the end.)
    for (int j = 0; j < flight; ++j) {
        if (i + j * mine.near < n) to[i + j * mine.near] = load<W, Fresh>(from + i + j * mine.near);
    }
}
#endif

// Copies bytes with the widest accesses the alignment allows, never narrower than U, to which both
// sides are aligned. Fresh: see other PEs' stores.
template <class U, bool Fresh, class Scope>
__device__ inline void copy_wide(u64 t, u64 f, u64 bytes, const Scope& scope) {
    if (((t ^ f) & 15) == 0 && bytes >= 16) {
        // A head up to the boundary, 16-byte words, a tail.
        u64 head = (16 - (t & 15)) & 15;
        if (head > bytes) head = bytes;
        u64 words = (bytes - head) / 16, tail = (bytes - head) % 16;
        if (head) copy_words<U, Fresh>((U*)t, (const U*)f, head / sizeof(U), scope);
        u64 done = head + 16 * words;
        if (tail) copy_words<U, Fresh>((U*)(t + done), (const U*)(f + done), tail / sizeof(U), scope);
        copy_words<vec16, Fresh>((vec16*)(t + head), (const vec16*)(f + head), words, scope);
    } else if (((t | f | bytes) & 7) == 0) {
        copy_words<u64, Fresh>((u64*)t, (const u64*)f, bytes / 8, scope);
    } else if (((t | f | bytes) & 3) == 0) {
        copy_words<u32, Fresh>((u32*)t, (const u32*)f, bytes / 4, scope);
#ifdef CROSSWARP_ROUTED
    } else if (sizeof(U) == 1 && ((t | f | bytes) & 1) == 0) {
        // Reductions over hosts put elements of any type as bytes.
        copy_words<u16, Fresh>((u16*)t, (const u16*)f, bytes / 2, scope);
#endif
    } else {
        copy_words<U, Fresh>((U*)t, (const U*)f, bytes / sizeof(U), scope);
    }
}

// The same. Up to a word for each thread goes at once: with as little as can be to find out before it is under way.
template <class U, bool Fresh, class Scope>
__device__ inline void copy(void* to, const void* from, u64 bytes, const Scope& scope) {
    const u64 t = reinterpret_cast<u64>(to), f = reinterpret_cast<u64>(from);
    using W = typename unit_of_bytes<(sizeof(U) < 4 ? 4 : (int)sizeof(U))>::type;
    if (bytes > sizeof(W) * scope.size() || ((t | f | bytes) & (sizeof(W) - 1)) != 0) {
        return copy_wide<U, Fresh>(t, f, bytes, scope);
    }
    const u64 at = sizeof(W) * scope.rank();
    if (at < bytes) *reinterpret_cast<W*>(t + at) = load<W, Fresh>(reinterpret_cast<const W*>(f + at));
}

}  // namespace detail

// Stores one value at `dest` on `pe`. Any thread.
template <class T> __device__ inline void p(T* dest, same_t<T> value, int pe) {
    CROSSWARP_ROUTE(pe, route_p(dest, value, pe));
    *ptr(dest, pe) = value;
}

// Loads one value from `source` on `pe`. Any thread.
template <class T> __device__ inline T g(const T* source, int pe) {
    CROSSWARP_ROUTE(pe, route_g(source, pe));
    return detail::load_fresh(ptr(source, pe));
}

// Copies `n` elements from `source` (any memory of mine) to `dest` on `pe`. When it returns, the
// calling thread's part has been issued; the other threads' too after `Scope().sync()`.
template <class Scope = thread, class T>
__device__ inline void put(T* dest, const T* source, u64 n, int pe, const Scope& scope = Scope()) {
    CROSSWARP_ROUTE(pe, route_put(dest, source, n * sizeof(T), pe, scope));
    detail::copy<unit_of<T>, false>(ptr(dest, pe), source, n * sizeof(T), scope);
}

// Copies `n` elements from `source` on `pe` to `dest` (any memory of mine). When it returns, the
// calling thread's part has arrived; the other threads' too after `Scope().sync()`.
template <class Scope = thread, class T>
__device__ inline void get(T* dest, const T* source, u64 n, int pe, const Scope& scope = Scope()) {
    CROSSWARP_ROUTE(pe, route_get(dest, source, n * sizeof(T), pe, scope));
    detail::copy<unit_of<T>, true>(dest, ptr(source, pe), n * sizeof(T), scope);
}

namespace detail {

// `get` in less code, for more than a word for each thread (fewer are right, too, and slower).
template <class Scope, class T>
__device__ inline void get_much(T* dest, const T* source, u64 n, int pe, const Scope& scope) {
    CROSSWARP_ROUTE(pe, route_get(dest, source, n * sizeof(T), pe, scope));
    copy_wide<unit_of<T>, true>(reinterpret_cast<u64>(dest), reinterpret_cast<u64>(ptr(source, pe)), n * sizeof(T), scope);
}

}  // namespace detail

template <class Scope = thread, class T>
__device__ inline void put_nbi(T* dest, const T* source, u64 n, int pe, const Scope& scope = Scope()) {
    put(dest, source, n, pe, scope);
}
template <class Scope = thread, class T>
__device__ inline void get_nbi(T* dest, const T* source, u64 n, int pe, const Scope& scope = Scope()) {
    get(dest, source, n, pe, scope);
}

// dest[i * dest_stride] on `pe` = source[i * source_stride], i < n; strides in elements.
template <class Scope = thread, class T>
__device__ inline void iput(T* dest, u64 dest_stride, const T* source, u64 source_stride, u64 n, int pe,
                            const Scope& scope = Scope()) {
    CROSSWARP_ROUTE(pe, route_strided(route_op::put_strided, reinterpret_cast<u64>(source), source_stride * sizeof(T), dest,
                                      dest_stride * sizeof(T), sizeof(T), n, pe, scope));
    T* to = ptr(dest, pe);
    for (u64 i = scope.rank(); i < n; i += scope.size()) to[i * dest_stride] = source[i * source_stride];
}

// dest[i * dest_stride] = source[i * source_stride] on `pe`, i < n; strides in elements.
template <class Scope = thread, class T>
__device__ inline void iget(T* dest, u64 dest_stride, const T* source, u64 source_stride, u64 n, int pe,
                            const Scope& scope = Scope()) {
    CROSSWARP_ROUTE(pe, route_strided(route_op::get_strided, reinterpret_cast<u64>(dest), dest_stride * sizeof(T), source,
                                      source_stride * sizeof(T), sizeof(T), n, pe, scope));
    const T* from = ptr(source, pe);
    for (u64 i = scope.rank(); i < n; i += scope.size()) {
        dest[i * dest_stride] = detail::load_fresh(from + i * source_stride);
    }
}

}  // namespace crosswarp

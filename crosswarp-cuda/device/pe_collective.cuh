// Collectives over a team of PEs, from one thread, a warp, a block, or a whole cooperative grid.
//
//     float total;                                     // symmetric: dest and source
//     cw::reduce<cw::block>(dest, source, n, cw::sum_op());
//
// All PEs of the team call the same collective with the same sizes, each from one scope; all threads
// of the scope call. Before any PE calls, `dest` must be ready on all (as OpenSHMEM has it): peers may
// store into it at once. On return the result is complete on this PE and visible to the scope, and the
// source may be reused. They return false if a wait ran out of time. Floating sums are taken in PE order: every PE gets the same bits.
//
// Small payloads are one-shot: each PE stores to every peer's slot, data and generation together in
// one 16-byte store (single-copy atomic for .b128), so that no flag, fence or acknowledgement follows.
// Large ones move in 16-byte vectors by all threads of the scope between two meetings.
//
// Generations count the team's meetings. They only grow, so nothing is ever reset: a slot of set g % 2
// is written again at the earliest in meeting g + 2, which a PE enters only after every PE has entered
// meeting g + 1, that is, has left meeting g and read its slots.
#pragma once
#include "grid.cuh"
#include "pe_signal.cuh"

namespace crosswarp {

// Payload of one PE that travels in slots, in bytes.
constexpr int small_bytes = 2048;
constexpr int small_units = small_bytes / 8;

// Each PE's scratch for one team, in its symmetric heap, zero at first:
// this header, then `size` arrival words, then two sets of `size` × `small_units` units of 16 bytes.
struct alignas(128) team_scratch {
    u64 generation;  // meetings so far; written by this PE only
    u64 pad[15];
};

// All threads of a cooperative grid as one scope.
class grid_threads {
  public:
    explicit __device__ grid_threads(const grid& g) : grid_(g) {}
    __device__ int rank() const { return grid_.rank() * block().size() + block().rank(); }
    __device__ int size() const { return grid_.size() * block().size(); }
    __device__ void sync() const { grid_.sync(); }

  private:
    const grid& grid_;
};

namespace detail {

__device__ inline team_scratch* scratch_of(const team& t) { return at<team_scratch>(t.scratch); }
__device__ inline u64* arrivals_of(const team& t) {
    return reinterpret_cast<u64*>(scratch_of(t) + 1);
}
// Slots that team member `from` fills here, for meeting `generation`.
__device__ inline vec16* slots_of(const team& t, u64 generation, int from) {
    u64 first = reinterpret_cast<u64>(arrivals_of(t)) + ((8 * t.size + 127) & ~127);
    u64 index = ((generation & 1) * t.size + from) * small_units;
    return reinterpret_cast<vec16*>(first) + index;
}

// The number of the meeting about to be held. Every thread of the scope reads it before any thread
// ends the meeting, for ending comes after a `sync` of the scope.
__device__ inline u64 next_generation(const team& t) {
    return *const_cast<volatile u64*>(&scratch_of(t)->generation) + 1;
}

// Ends a meeting: all threads of the scope have what they waited for.
template <class Scope>
__device__ inline bool end_meeting(const team& t, u64 generation, const Scope& scope, bool came) {
    scope.sync();
    if (scope.rank() == 0) *const_cast<volatile u64*>(&scratch_of(t)->generation) = generation;
    // The new generation must be there before anyone of the scope begins another meeting.
    scope.sync();
    return came && !given_up();
}

// Arrival words all around. Fenced: what the scope wrote before is visible to every PE after.
template <bool Fenced, class Scope> __device__ inline bool meet(const team& t, const Scope& scope) {
    u64 generation = next_generation(t);
    // Other threads' stores come before this thread's fence.
    scope.sync();
    u64* mine = arrivals_of(t) + t.me;
    u64* arrivals = arrivals_of(t);
    if (Fenced && scope.rank() < t.size) fence();
    for (int r = scope.rank(); r < t.size; r += scope.size()) {
        store_relaxed(ptr(mine, t.pe(r)), generation);
    }
    bool came = true;
    for (int r = scope.rank(); r < t.size; r += scope.size()) {
        const u64* word = arrivals + r;
        auto seen = [=] { return load_relaxed(word); };
        came &= spin([=] { return load_relaxed(word) >= generation; }, 2, t.pe(r), word, generation, seen);
    }
    // Pairs with the peers' fences: their stores before theirs are visible after this one.
    if (Fenced && scope.rank() < t.size) fence();
    return end_meeting(t, generation, scope, came);
}

// One payload unit: 8 bytes of data and the generation, stored and loaded as one.
__device__ inline void store_unit(vec16* at, u64 data, u64 generation) {
    asm volatile(
        "{ .reg .b128 unit; mov.b128 unit, {%1, %2}; st.relaxed.sys.global.b128 [%0], unit; }" ::"l"(at),
        "l"(data), "l"(generation) : "memory");
}
__device__ inline void load_unit(const vec16* at, u64& data, u64& generation) {
    asm volatile("{ .reg .b128 unit; ld.relaxed.sys.global.b128 unit, [%2]; mov.b128 {%0, %1}, unit; }"
                 : "=l"(data), "=l"(generation) : "l"(at) : "memory");
}
__device__ inline bool wait_unit(const vec16* at, u64 generation, int peer, u64& data) {
    u64 seen = 0;
    return spin([&] { load_unit(at, data, seen); return seen == generation; }, 2, peer, at, generation,
                [&] { return seen; });
}

// Elements of a unit, and moving them in and out of one.
template <class T> constexpr int per_unit = 8 / sizeof(T);
template <class T> __device__ inline u64 pack(const T* from, u64 first, u64 n) {
    T element[per_unit<T>] = {};
#pragma unroll
    for (int i = 0; i < per_unit<T>; ++i) {
        if (first + i < n) element[i] = load_fresh(from + first + i);
    }
    u64 data;
    memcpy(&data, element, 8);
    return data;
}
template <class T> __device__ inline void unpack(T* to, u64 first, u64 n, u64 data) {
    T element[per_unit<T>];
    memcpy(element, &data, 8);
#pragma unroll
    for (int i = 0; i < per_unit<T>; ++i) {
        if (first + i < n) to[first + i] = element[i];
    }
}
template <class T> __device__ inline int units(u64 n) { return (n + per_unit<T> - 1) / per_unit<T>; }
template <class T> __device__ inline bool is_small(u64 n) {
    return sizeof(T) <= 8 && n * sizeof(T) <= small_bytes;
}

// Unit `u` of what goes to rank `r` is `data(r, u)`, the same number of units to everyone.
template <class Scope, class Data>
__device__ inline void send_units(const team& t, u64 generation, int n, const Scope& scope, Data data) {
    vec16* mine = slots_of(t, generation, t.me);
    for (int i = scope.rank(); i < n * t.size; i += scope.size()) {
        int r = i / n, u = i - r * n;
        store_unit(ptr(mine + u, t.pe(r)), data(r, u), generation);
    }
}

}  // namespace detail

// Waits for all PEs of the team. Orders no puts: it synchronises control. What this scope's threads
// stored in its own memory before is visible to the others after.
template <class Scope = thread>
__device__ inline bool sync(const team& t = world(), const Scope& scope = Scope()) {
    return detail::meet<true>(t, scope);
}

// Completes the scope's puts and waits for all PEs of the team.
template <class Scope = thread>
__device__ inline bool barrier(const team& t = world(), const Scope& scope = Scope()) {
    return detail::meet<true>(t, scope);
}

// `n` elements of `source` on rank `root` to `dest` on every PE, the root included.
template <class Scope = thread, class T>
__device__ inline bool broadcast(T* dest, const T* source, u64 n, int root, const team& t = world(),
                                 const Scope& scope = Scope()) {
    if (detail::is_small<T>(n)) {
        if constexpr (sizeof(T) <= 8) {
            u64 generation = detail::next_generation(t);
            int units = detail::units<T>(n);
            // Everyone sends at least one unit: that is how the root learns that its slots were read.
            int sends = t.me == root ? (units ? units : 1) : 1;
            detail::send_units(t, generation, sends, scope, [=](int, int u) {
                return t.me == root && u < units ? detail::pack(source, (u64)u * detail::per_unit<T>, n) : 0;
            });
            bool came = true;
            for (int i = scope.rank(); i < t.size + units; i += scope.size()) {
                int from = i < t.size ? i : root, u = i < t.size ? 0 : i - t.size;
                u64 data;
                came &= detail::wait_unit(detail::slots_of(t, generation, from) + u, generation, t.pe(from), data);
                if (i >= t.size) detail::unpack(dest, (u64)u * detail::per_unit<T>, n, data);
            }
            return detail::end_meeting(t, generation, scope, came);
        }
    }
    // Each PE pulls for itself: the root's links then carry each byte once per peer, side by side.
    bool came = detail::meet<true>(t, scope);
    get(dest, source, n, t.pe(root), scope);
    return detail::meet<true>(t, scope) && came;
}

// The `n` elements of every PE's `source`, in rank order, to `dest` (n × size) on every PE.
template <class Scope = thread, class T>
__device__ inline bool fcollect(T* dest, const T* source, u64 n, const team& t = world(),
                                const Scope& scope = Scope()) {
    if (detail::is_small<T>(n)) {
        if constexpr (sizeof(T) <= 8) {
            u64 generation = detail::next_generation(t);
            int units = detail::units<T>(n);
            if (units == 0) return detail::meet<true>(t, scope);
            detail::send_units(t, generation, units, scope, [=](int, int u) {
                return detail::pack(source, (u64)u * detail::per_unit<T>, n);
            });
            bool came = true;
            for (int i = scope.rank(); i < units * t.size; i += scope.size()) {
                int r = i / units, u = i - r * units;
                u64 data;
                came &= detail::wait_unit(detail::slots_of(t, generation, r) + u, generation, t.pe(r), data);
                detail::unpack(dest + r * n, (u64)u * detail::per_unit<T>, n, data);
            }
            return detail::end_meeting(t, generation, scope, came);
        }
    }
    // Push, beginning behind me, so that the links fill evenly; the barrier completes it.
    for (int i = 1; i <= t.size; ++i) {
        int r = (t.me + i) % t.size;
        put(dest + t.me * n, source, n, t.pe(r), scope);
    }
    return detail::meet<true>(t, scope);
}

// Block `j` (n elements) of rank `i`'s `source` to block `i` of rank `j`'s `dest`.
template <class Scope = thread, class T>
__device__ inline bool alltoall(T* dest, const T* source, u64 n, const team& t = world(),
                                const Scope& scope = Scope()) {
    if (detail::is_small<T>(n)) {
        if constexpr (sizeof(T) <= 8) {
            u64 generation = detail::next_generation(t);
            int units = detail::units<T>(n);
            if (units == 0) return detail::meet<true>(t, scope);
            detail::send_units(t, generation, units, scope, [=](int r, int u) {
                return detail::pack(source + r * n, (u64)u * detail::per_unit<T>, n);
            });
            bool came = true;
            for (int i = scope.rank(); i < units * t.size; i += scope.size()) {
                int r = i / units, u = i - r * units;
                u64 data;
                came &= detail::wait_unit(detail::slots_of(t, generation, r) + u, generation, t.pe(r), data);
                detail::unpack(dest + r * n, (u64)u * detail::per_unit<T>, n, data);
            }
            return detail::end_meeting(t, generation, scope, came);
        }
    }
    for (int i = 1; i <= t.size; ++i) {
        int r = (t.me + i) % t.size;
        put(dest + t.me * n, source + r * n, n, t.pe(r), scope);
    }
    return detail::meet<true>(t, scope);
}

namespace detail {

// dest[i] for i in first..last = the PEs' source[i] combined in rank order, stored at every rank in
// `to_first..to_last`.
template <class T, class Op, class Scope>
__device__ inline void reduce_span(T* dest, const T* source, u64 first, u64 last, u64 shift, Op op,
                                   const team& t, bool everywhere, const Scope& scope) {
    constexpr int per = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    bool aligned = (((u64)(source + first) | (u64)(dest + first - shift)) & 15) == 0;
    u64 vectors = aligned ? (last - first) / per : 0;
    for (u64 v = scope.rank(); v < vectors; v += scope.size()) {
        u64 i = first + v * per;
        T total[per];
        vec16 word = load_fresh(reinterpret_cast<const vec16*>(ptr(source + i, t.pe(0))));
        memcpy(total, &word, sizeof(word));
        for (int r = 1; r < t.size; ++r) {
            T next[per];
            word = load_fresh(reinterpret_cast<const vec16*>(ptr(source + i, t.pe(r))));
            memcpy(next, &word, sizeof(word));
#pragma unroll
            for (int k = 0; k < per; ++k) total[k] = op(total[k], next[k]);
        }
        memcpy(&word, total, sizeof(word));
        vec16* to = reinterpret_cast<vec16*>(dest + i - shift);
        if (!everywhere) {
            *to = word;
        } else {
            for (int r = 0; r < t.size; ++r) *ptr(to, t.pe((t.me + r) % t.size)) = word;
        }
    }
    for (u64 i = first + vectors * per + scope.rank(); i < last; i += scope.size()) {
        T total = load_fresh(ptr(source + i, t.pe(0)));
        for (int r = 1; r < t.size; ++r) total = op(total, load_fresh(ptr(source + i, t.pe(r))));
        if (!everywhere) {
            dest[i - shift] = total;
        } else {
            for (int r = 0; r < t.size; ++r) p(dest + i - shift, total, t.pe((t.me + r) % t.size));
        }
    }
}

}  // namespace detail

// The `n` elements of all PEs' `source` combined element by element in rank order, in `dest` on every
// PE. `dest` and `source` may be the same.
template <class Scope = thread, class T, class Op>
__device__ inline bool reduce(T* dest, const T* source, u64 n, Op op, const team& t = world(),
                              const Scope& scope = Scope()) {
    if (detail::is_small<T>(n)) {
        if constexpr (sizeof(T) <= 8) {
            u64 generation = detail::next_generation(t);
            int units = detail::units<T>(n);
            if (units == 0) return detail::meet<true>(t, scope);
            detail::send_units(t, generation, units, scope, [=](int, int u) {
                return detail::pack(source, (u64)u * detail::per_unit<T>, n);
            });
            bool came = true;
            // In place: every thread must have sent its elements before any thread overwrites them.
            scope.sync();
            for (int u = scope.rank(); u < units; u += scope.size()) {
                T total[detail::per_unit<T>], next[detail::per_unit<T>];
                u64 data;
                for (int r = 0; r < t.size; ++r) {
                    came &= detail::wait_unit(detail::slots_of(t, generation, r) + u, generation, t.pe(r), data);
                    memcpy(next, &data, 8);
#pragma unroll
                    for (int k = 0; k < detail::per_unit<T>; ++k) {
                        total[k] = r == 0 ? next[k] : op(total[k], next[k]);
                    }
                }
                memcpy(&data, total, 8);
                detail::unpack(dest, (u64)u * detail::per_unit<T>, n, data);
            }
            return detail::end_meeting(t, generation, scope, came);
        }
    }
    // Two-shot: each PE combines its share for everyone. Of every share only its PE reads sources and
    // writes destinations, so dest == source is safe.
    bool came = detail::meet<true>(t, scope);
    constexpr u64 per = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    u64 share = ((n + t.size - 1) / t.size + per - 1) / per * per;
    u64 first = share * t.me < n ? share * t.me : n;
    u64 last = first + share < n ? first + share : n;
    detail::reduce_span(dest, source, first, last, 0, op, t, true, scope);
    return detail::meet<true>(t, scope) && came;
}

// Block `r` (n elements) of the PEs' `source` (n × size) combined in rank order, in `dest` of rank r.
template <class Scope = thread, class T, class Op>
__device__ inline bool reducescatter(T* dest, const T* source, u64 n, Op op, const team& t = world(),
                                     const Scope& scope = Scope()) {
    bool came = detail::meet<true>(t, scope);
    u64 first = n * t.me;
    detail::reduce_span(dest, source, first, first + n, first, op, t, false, scope);
    return detail::meet<true>(t, scope) && came;
}

template <class Scope = thread, class T>
__device__ inline bool sum(T* dest, const T* source, u64 n, const team& t = world(), const Scope& s = Scope()) {
    return reduce(dest, source, n, sum_op(), t, s);
}
template <class Scope = thread, class T>
__device__ inline bool prod(T* dest, const T* source, u64 n, const team& t = world(), const Scope& s = Scope()) {
    return reduce(dest, source, n, prod_op(), t, s);
}
template <class Scope = thread, class T>
__device__ inline bool min(T* dest, const T* source, u64 n, const team& t = world(), const Scope& s = Scope()) {
    return reduce(dest, source, n, min_op(), t, s);
}
template <class Scope = thread, class T>
__device__ inline bool max(T* dest, const T* source, u64 n, const team& t = world(), const Scope& s = Scope()) {
    return reduce(dest, source, n, max_op(), t, s);
}

}  // namespace crosswarp

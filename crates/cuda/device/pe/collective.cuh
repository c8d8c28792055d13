// Collectives over a team of PEs, from one thread, a warp, a block, or a whole cooperative grid.
//
//     cw::reduce<cw::block>(dest, source, n, cw::sum_op());   // dest and source are symmetric
//
// All PEs of the team call the same collective with the same sizes, each from one scope; all threads
// of the scope call. PEs that do not are told apart: each wait for another PE that came to the rendezvous with another
// collective, size, root, operation or type ends, and every host gets an error (a large payload may have moved then,
// and the team is out of step).  Before any PE calls, `dest` must be ready on all (as OpenSHMEM has it): peers may
// store into it at once. On return the result is complete on this PE and visible to the scope, and the
// source may be reused. They return false if a wait ran out of time. Floating sums are taken in PE
// order: every PE gets the same bits.
//
// Small payloads are one-shot: each PE stores to every peer's slot, data and generation together in
// one 16-byte store (single-copy atomic for .b128), so that no flag, fence or acknowledgement follows.
// Large ones move in 16-byte vectors by all threads of the scope between two rendezvous.
#pragma once
#include "pe/reduce_by_puts.cuh"
#include "pe/units.cuh"

namespace crosswarp {

// From how many bytes on an array is combined through slots, by stores alone; measured: below, two more
// trips of the links cost more than is gained.
constexpr u64 staged_min_bytes = 16 << 20;

namespace detail {

// A collective of one PE, which hears from nobody: a copy, of what other threads of the scope may have just written.
template <class T, class Scope> __device__ inline bool copy_alone(T* dest, const T* source, u64 n, const Scope& scope) {
    scope.sync();
    if (dest != source) copy<unit_of<T>, false>(dest, source, n * sizeof(T), scope);
    scope.sync();
    return true;
}

// From how many bytes on a broadcast by a grid is pulled in shares. One more rendezvous takes less then than the root's
// links take for the array once more: 3 us, 1 MiB at 400 GB/s.
constexpr u64 shared_min_bytes = 1 << 20;

// Whether the PEs of a broadcast pull shares. The same answer on every PE: symmetric addresses are equally aligned.
__device__ inline bool is_shared(const void* dest, const void* source, u64 bytes, const team& t) {
    const bool aligned = ((reinterpret_cast<u64>(dest) | reinterpret_cast<u64>(source)) & 15) == 0;
    return t.size > 2 && bytes >= shared_min_bytes && aligned;
}

// A broadcast's bytes, between two rendezvous: each PE but the root loads its share from the root and stores it on all of
// these. So each array leaves the root once, and none of the others' links carries more in either direction; and who
// loads knows when it has what it asked for, where a put would need a fence before it could be passed on.
template <class Scope>
__device__ inline void pull_shares(u8* dest, const u8* source, u64 bytes, int root, const team& t, const Scope& scope) {
    if (t.me == root) {
        if (dest != source) copy<u8, false>(dest, source, bytes, scope);
        return;
    }
    // Whole lines, but for the last share.
    const u64 each = ((bytes + t.size - 2) / (t.size - 1) + 127) & ~127ull;
    const u64 before = each * (t.me < root ? t.me : t.me - 1), begin = before < bytes ? before : bytes;
    const u64 end = bytes - begin < each ? bytes : begin + each;
    constexpr int flight = 4;
    const vec16* const from = reinterpret_cast<const vec16*>(ptr(source + begin, t.pe(root)));
    vec16* const to = reinterpret_cast<vec16*>(dest + begin);
    const u64 vectors = (end - begin) / sizeof(vec16);
    const shares<flight, Scope> mine(scope);
    for (u64 i = mine.first; i < vectors; i += mine.far) {
        vec16 words[flight];
#pragma unroll
        for (int j = 0; j < flight; ++j) {
            if (i + j * mine.near < vectors) words[j] = load_fresh(from + i + j * mine.near);
        }
        for (int k = 0; k < t.size; ++k) {
            const int r = (t.me + k) % t.size;
            if (r == root) continue;
            vec16* const there = ptr(to, t.pe(r)) + i;
#pragma unroll
            for (int j = 0; j < flight; ++j) {
                if (i + j * mine.near < vectors) there[j * mine.near] = words[j];
            }
        }
    }
    for (u64 i = begin + vectors * sizeof(vec16) + scope.rank(); i < end; i += scope.size()) {
        const u8 value = load_fresh(ptr(source + i, t.pe(root)));
        for (int r = 0; r < t.size; ++r) {
            if (r != root) *ptr(dest + i, t.pe(r)) = value;
        }
    }
}

}  // namespace detail

// Waits for all PEs of the team. What the scope's threads stored in memory before is visible to every PE
// after. (The fence that this takes completes their puts too; OpenSHMEM does not promise that.)
template <class Scope = thread>
__device__ inline bool sync(const team& t = world(), const Scope& scope = Scope()) {
    return detail::meet(t, scope, detail::collective(detail::kind::sync, 0));
}

// Completes the scope's puts and waits for all PEs of the team.
template <class Scope = thread>
__device__ inline bool barrier(const team& t = world(), const Scope& scope = Scope()) {
#ifdef CROSSWARP_ROUTED
    // The rendezvous completes what goes to mapped memory alone.
    scope.sync();
    if (scope.rank() == 0) detail::route_quiet();
#endif
    return detail::meet(t, scope, detail::collective(detail::kind::barrier, 0));
}

// `n` elements of `source` on rank `root` to `dest` on every PE, the root included.
template <class Scope = thread, class T>
__device__ inline bool broadcast(T* dest, const T* source, u64 n, int root, const team& t = world(),
                                 const Scope& scope = Scope()) {
    if (t.size == 1) return detail::copy_alone(dest, source, n, scope);
    const u64 mine = detail::collective(detail::kind::broadcast, n * sizeof(T), root);
    if constexpr (detail::fits_units<T>) {
        if (detail::is_small<T>(n) && !detail::routed(t)) {
            const detail::opening begins = detail::begin_rendezvous(t, scope, mine);
            // Everyone sends at least one unit: that is how the root learns that its slots were read.
            const int units = n > 0 ? detail::units<T>(n) : 1;
            const bool sends = t.me == root;
            const auto data = [=](int u) {
                if (!sends) return (u64)0;
                const u64 data = detail::pack(source, (u64)u * detail::per_unit<T>, n);
                // Where it is already, it need not come back from a slot.
                if (dest != source) detail::unpack(dest, (u64)u * detail::per_unit<T>, n, data);
                return data;
            };
            const detail::rendezvous m =
                detail::send_to_all<detail::root_units_sent>(t, begins, sends ? units : 1, scope, data);
            detail::count_rendezvous(t, m, scope);
            detail::take_from_root(t, m, root, sends ? 0 : units, scope, [=](int u, u64 data) {
                detail::unpack(dest, (u64)u * detail::per_unit<T>, n, data);
            });
            return detail::end_rendezvous(t, scope);
        }
    }
    if constexpr (detail::is_grid<Scope>) {
        if (detail::is_shared(dest, source, n * sizeof(T), t) && !detail::routed(t)) {
            detail::meet(t, scope, mine);
            u8* const to = reinterpret_cast<u8*>(dest);
            detail::pull_shares(to, reinterpret_cast<const u8*>(source), n * sizeof(T), root, t, scope);
            return detail::meet(t, scope, mine);
        }
        // The root's grid fills its links by itself; the barrier completes the puts: one rendezvous, where
        // pulling would take two.
        if (t.me == root) {
            for (int i = 1; i <= t.size; ++i) put(dest, source, n, t.pe((root + i) % t.size), scope);
        }
    } else {
        // Each PE pulls for itself: several blocks move more than the root's alone.
        detail::meet(t, scope, mine);
        detail::get_much(dest, source, n, t.pe(root), scope);
    }
    return detail::meet(t, scope, mine);
}

// The `n` elements of every PE's `source`, in rank order, to `dest` (n × size) on every PE.
template <class Scope = thread, class T>
__device__ inline bool fcollect(T* dest, const T* source, u64 n, const team& t = world(),
                                const Scope& scope = Scope()) {
    if (t.size == 1) return detail::copy_alone(dest, source, n, scope);
    const u64 mine = detail::collective(detail::kind::fcollect, n * sizeof(T));
    if constexpr (detail::fits_units<T>) {
        if (n > 0 && detail::is_small<T>(n) && !detail::routed(t)) {
            const detail::opening begins = detail::begin_rendezvous(t, scope, mine);
            int units = detail::units<T>(n);
            const detail::rendezvous m = detail::send_to_all(t, begins, units, scope, [=](int u) {
                return detail::pack(source, (u64)u * detail::per_unit<T>, n);
            });
            detail::count_rendezvous(t, m, scope);
            detail::take_units(
                t, m, units * t.size, scope,
                [=](int i, int& from, int& u) { from = i / units, u = i % units; },
                [=](int i, u64 data) {
                    detail::unpack(dest + i / units * n, (u64)(i % units) * detail::per_unit<T>, n, data);
                });
            return detail::end_rendezvous(t, scope);
        }
    }
    // Push, beginning behind me, so that the links fill evenly; the barrier completes it.
    for (int i = 1; i <= t.size; ++i) put(dest + t.me * n, source, n, t.pe((t.me + i) % t.size), scope);
    return detail::meet(t, scope, mine);
}

// Block `j` (n elements) of rank `i`'s `source` to block `i` of rank `j`'s `dest`.
template <class Scope = thread, class T>
__device__ inline bool alltoall(T* dest, const T* source, u64 n, const team& t = world(),
                                const Scope& scope = Scope()) {
    if (t.size == 1) return detail::copy_alone(dest, source, n, scope);
    const u64 mine = detail::collective(detail::kind::alltoall, n * sizeof(T));
    if constexpr (detail::fits_units<T>) {
        if (n > 0 && detail::is_small<T>(n) && !detail::routed(t)) {
            const detail::opening begins = detail::begin_rendezvous(t, scope, mine);
            int units = detail::units<T>(n);
            const detail::rendezvous m = detail::send_to_each(t, begins, units, scope, [=](int u, int r) {
                return detail::pack(source + r * n, (u64)u * detail::per_unit<T>, n);
            });
            detail::count_rendezvous(t, m, scope);
            detail::take_units(
                t, m, units * t.size, scope,
                [=](int i, int& from, int& u) { from = i / units, u = i % units; },
                [=](int i, u64 data) {
                    detail::unpack(dest + i / units * n, (u64)(i % units) * detail::per_unit<T>, n, data);
                });
            return detail::end_rendezvous(t, scope);
        }
    }
    for (int i = 1; i <= t.size; ++i) {
        int r = (t.me + i) % t.size;
        put(dest + t.me * n, source + r * n, n, t.pe(r), scope);
    }
    return detail::meet(t, scope, mine);
}

namespace detail {

// Whether a grid combines an array through slots. The same answer on every PE: symmetric addresses are equally aligned.
template <class T> __device__ inline bool is_staged(const T* dest, const T* source, u64 n, const team& t) {
    const bool aligned = (((u64)dest | (u64)source) & 15) == 0;
    return 16 % sizeof(T) == 0 && t.stage != 0 && aligned && n * sizeof(T) >= staged_min_bytes;
}

// Ranks whose loads a thread has under way at once.
#ifdef CROSSWARP_FEW_REGISTERS
constexpr int ranks_in_flight = 1;
#else
constexpr int ranks_in_flight = 4;
#endif

// One element of a reduction: the PEs' values in rank order.
template <class T, class Op>
__device__ inline T reduce_element(const T* source, Op op, const team& t) {
    T total = load_fresh(ptr(source, t.pe(0)));
    for (int r = 1; r < t.size; ++r) total = op(total, load_fresh(ptr(source, t.pe(r))));
    return total;
}

// dest[i - shift] for i in first..last = the PEs' source[i] combined in rank order; on every PE of the
// team if `everywhere`, else on this one.
template <class T, class Op, class Scope>
__device__ inline void reduce_span(T* dest, const T* source, u64 first, u64 last, u64 shift, Op op,
                                   const team& t, bool everywhere, const Scope& scope) {
    u64 done = first;
    if constexpr (16 % sizeof(T) == 0) {
        constexpr int per = 16 / sizeof(T);
        bool aligned = (((u64)(source + first) | (u64)(dest + first - shift)) & 15) == 0;
        u64 vectors = aligned ? (last - first) / per : 0;
        const vec16* from = reinterpret_cast<const vec16*>(source + first);
        vec16* to = reinterpret_cast<vec16*>(dest + first - shift);
        for (u64 v = scope.rank(); v < vectors; v += scope.size()) {
            T total[per];
            for (int r = 0; r < t.size; r += ranks_in_flight) {
                vec16 words[ranks_in_flight];
#pragma unroll
                for (int k = 0; k < ranks_in_flight; ++k) {
                    if (r + k < t.size) words[k] = load_fresh(ptr(from + v, t.pe(r + k)));
                }
#pragma unroll
                for (int k = 0; k < ranks_in_flight; ++k) {
                    if (r + k >= t.size) break;
                    T value[per];
                    memcpy(value, &words[k], 16);
#pragma unroll
                    for (int j = 0; j < per; ++j) total[j] = r + k == 0 ? value[j] : op(total[j], value[j]);
                }
            }
            vec16 word;
            memcpy(&word, total, 16);
            for (int i = 0; i < (everywhere ? t.size : 1); ++i) {
                *ptr(to + v, t.pe(everywhere ? (t.me + i) % t.size : t.me)) = word;
            }
        }
        done += vectors * per;
    }
    for (u64 i = done + scope.rank(); i < last; i += scope.size()) {
        T total = reduce_element(source + i, op, t);
        for (int k = 0; k < (everywhere ? t.size : 1); ++k) {
            p(dest + i - shift, total, t.pe(everywhere ? (t.me + k) % t.size : t.me));
        }
    }
}

// `reduce` of a small payload in units, in the rendezvous of the collective `mine`.
template <class T, class Op, class Scope>
__device__ inline bool reduce_units(T* dest, const T* source, u64 n, Op op, const team& t, const Scope& scope, u64 mine) {
    constexpr int per = per_unit<T>;
    const opening begins = begin_rendezvous(t, scope, mine);
    const int count = units<T>(n);
    const rendezvous m =
        send_to_all(t, begins, count, scope, [=](int u) { return pack(source, (u64)u * per, n); });
    count_rendezvous(t, m, scope);
    // Race prevented in place: a unit may be sent to different PEs by different threads, and none
    // of them may find it already overwritten with the result.
    if (dest == source) scope.sync();
    // A thread takes all ranks' copies of its units, in order.
    int own = count > scope.rank() ? (count - 1 - scope.rank()) / scope.size() + 1 : 0;
    T total[per];
    // Rank and unit of the next to name and of the next to take, counted along: divisions would
    // cost one thread alone more than the loads.
    int name_r = 0, name_u = scope.rank(), r = 0, u = scope.rank();
    take_units(
        t, m, own * t.size, thread(),
        [&](int, int& from, int& unit) {
            from = name_r, unit = name_u;
            if (++name_r == t.size) name_r = 0, name_u += scope.size();
        },
        [&](int, u64 data) {
            T value[per];
            memcpy(value, &data, 8);
#pragma unroll
            for (int k = 0; k < per; ++k) total[k] = r == 0 ? value[k] : op(total[k], value[k]);
            if (++r < t.size) return;
            memcpy(&data, total, 8);
            unpack(dest, (u64)u * per, n, data);
            r = 0, u += scope.size();
        });
    return end_rendezvous(t, scope);
}

}  // namespace detail

// The `n` elements of all PEs' `source` combined element by element in rank order, in `dest` on every
// PE. `dest` and `source` may be the same.
template <class Scope = thread, class T, class Op>
__device__ inline bool reduce(T* dest, const T* source, u64 n, Op op, const team& t = world(),
                              const Scope& scope = Scope()) {
    if (t.size == 1) return detail::copy_alone(dest, source, n, scope);
    const u64 mine = detail::collective(detail::kind::reduce, n * sizeof(T), detail::combines<T>(op, 0));
    if constexpr (detail::fits_units<T>) {
        if (n > 0 && detail::is_small<T>(n) && !detail::routed(t)) {
            return detail::reduce_units(dest, source, n, op, t, scope, mine);
        }
    }
#ifdef CROSSWARP_ROUTED
    if (detail::routed(t)) return detail::reduce_by_puts(dest, source, n, 0, op, t, scope, mine);
#endif
    // Two-shot: each PE combines its share for everyone. Of every share only its PE reads sources and
    // writes destinations, so dest == source is safe.
    if constexpr (16 % sizeof(T) == 0 && detail::is_grid<Scope>) {
        if (detail::is_staged(dest, source, n, t)) {
            const detail::stage here(t);
            for (int r = scope.rank(); r < t.size; r += scope.size()) {
                detail::store_relaxed(ptr(here.grids() + t.me, t.pe(r)), (u64)scope.blocks().size());
            }
            detail::meet(t, scope, mine);
            constexpr u64 per = 16 / sizeof(T);
            u64 vectors = n / per, generation = load_volatile(&detail::scratch_of(t)->generation);
            detail::reduce_staged<T>(reinterpret_cast<detail::vec16*>(dest),
                                     reinterpret_cast<const detail::vec16*>(source),
                                     (vectors + t.size - 1) / t.size, vectors, op, t, generation,
                                     scope.blocks(), block());
            // Less than a vector.
            if (t.me == 0) detail::reduce_span(dest, source, vectors * per, n, 0, op, t, true, scope);
            return detail::meet(t, scope, mine);
        }
    }
    detail::meet(t, scope, mine);
    constexpr u64 per = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    u64 share = ((n + t.size - 1) / t.size + per - 1) / per * per;
    u64 first = share * t.me < n ? share * t.me : n;
    u64 last = first + share < n ? first + share : n;
    detail::reduce_span(dest, source, first, last, 0, op, t, true, scope);
    return detail::meet(t, scope, mine);
}

// Block `r` (n elements) of the PEs' `source` (n × size) combined in rank order, in `dest` of rank r.
template <class Scope = thread, class T, class Op>
__device__ inline bool reducescatter(T* dest, const T* source, u64 n, Op op, const team& t = world(),
                                     const Scope& scope = Scope()) {
    const u64 mine = detail::collective(detail::kind::reducescatter, n * sizeof(T), detail::combines<T>(op, 0));
#ifdef CROSSWARP_ROUTED
    if (detail::routed(t)) return detail::reduce_by_puts(dest, source, n, n, op, t, scope, mine);
#endif
    detail::meet(t, scope, mine);
    u64 first = n * t.me;
    detail::reduce_span(dest, source, first, first + n, first, op, t, false, scope);
    return detail::meet(t, scope, mine);
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

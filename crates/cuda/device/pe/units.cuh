// Small payloads of collectives, in units of 16 bytes: data and the rendezvous's number together, by one store.
#pragma once
#include "pe/rendezvous.cuh"

namespace crosswarp {

namespace detail {

// Units that a thread sends, or waits for, at a time. Fewer take fewer registers, see `copy_words`; functions of these
// collectives that are called and not inlined took 250 with the larger numbers. That of a broadcast, which combines nothing,
// takes 64 with three awaited, so that blocks of 1024 threads can call it.
#ifdef CROSSWARP_FEW_REGISTERS
constexpr int units_sent = 2, root_units_sent = 4, units_awaited = 1, root_units_awaited = 3;
#else
constexpr int units_sent = 4, root_units_sent = 4, units_awaited = 8, root_units_awaited = 8;
#endif

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
// Whether elements of T fill a unit evenly, and `n` of them the slots at most.
template <class T> constexpr bool fits_units = 8 % sizeof(T) == 0;
template <class T> __device__ inline bool is_small(u64 n) { return n * sizeof(T) <= small_bytes; }

// Stores unit `u` of `data(u, r)` to PE `r`, `units` to each, by a thread for every one.
template <class Scope, class Data>
__device__ inline rendezvous send_at_once(const team& t, const opening& begins, int units, const Scope& scope,
                                          Data data) {
    const int i = scope.rank(), r = i / units, u = i - r * units;
    const bool sends = i < units * t.size;
    const u64 unit = sends ? data(u, r) : 0;
    const rendezvous m = begins.begun();
    if (sends) store_unit(ptr(slots_of(t, m.number, t.me) + u, t.pe(r)), unit, m.word());
    return m;
}

// Stores unit `u` of `data(u, r)` to PE `r`, `units` to each, in the rendezvous that begins.
template <class Scope, class Data>
__device__ inline rendezvous send_to_each(const team& t, const opening& begins, int units, const Scope& scope,
                                          Data data) {
    if (units * t.size <= scope.size()) return send_at_once(t, begins, units, scope, data);
    const rendezvous m = begins.begun();
    for (int i = scope.rank(); i < units * t.size; i += scope.size()) {
        const int r = i / units, u = i - r * units;
        store_unit(ptr(slots_of(t, m.number, t.me) + u, t.pe(r)), data(u, r), m.word());
    }
    return m;
}

// Stores unit `u` of `data(u)` to every PE, in the rendezvous that begins.
template <int batch = units_sent, class Scope, class Data>
__device__ inline rendezvous send_to_all(const team& t, const opening& begins, int units, const Scope& scope,
                                         Data data) {
    if (units * t.size <= scope.size()) {
        return send_at_once(t, begins, units, scope, [&](int u, int) { return data(u); });
    }
    const rendezvous m = begins.begun();
    vec16* mine = slots_of(t, m.number, t.me);
    const u64 word = m.word();
    // `batch` units' loads are under way before the first is stored.
    for (int u = scope.rank(); u < units; u += batch * scope.size()) {
        u64 unit[batch];
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (u + k * scope.size() < units) unit[k] = data(u + k * scope.size());
        }
        for (int r = 0; r < t.size; ++r) {
            vec16* to = ptr(mine + u, t.pe(r));
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (u + k * scope.size() < units) store_unit(to + k * scope.size(), unit[k], word);
            }
        }
    }
    return m;
}

// Whether a unit of rank `r` is missing because that one is there for another collective, which is then reported.
__device__ inline bool is_missing_for_another(const team& t, const rendezvous& m, const vec16* unit, int r) {
    // In this order: who has arrived at this or a later rendezvous has sent before what it had to send in this
    // one, and acquire makes that visible.
    u64 arrival = load_acquire(arrivals_of(t) + r);
    u64 data, word, first;
    load_unit(unit, data, word);
    load_unit(slots_of(t, m.number, r), data, first);
    bool met = (arrival & number_mask) >= m.number && word != m.word();
    if (!met && !m.differs(first)) return false;
    m.report_mismatch(t.pe(r), unit, met ? arrival : first);
    return true;
}

// Who a wait for some of `batch` units is for. It checks one that is missing, each time the next, so that the
// code for this stays small.
template <int batch> struct senders_of {
    const team& t;
    const rendezvous& m;
    const vec16* const (&place)[batch];
    const u32& missing;
    u32 turn;

    __device__ const vec16* unit() const {
        u32 later = missing >> turn << turn, k = __ffs(later != 0 ? later : missing) - 1;
        const vec16* at = place[0];
#pragma unroll
        for (int i = 1; i < batch; ++i) {
            if (i == k) at = place[i];
        }
        return at;
    }
    // The slots of this rendezvous lie side by side in the order of ranks.
    __device__ int rank() const { return (int)((u64)(unit() - slots_of(t, m.number, 0)) / (u64)small_units); }
    __device__ int name() const { return t.pe(rank()); }
    __device__ int gone() {
        int pe = gone_for_peer(name());
        if (pe < 0) turn = (turn + 1) % batch;
        return pe;
    }
    __device__ bool mismatch() const { return is_missing_for_another(t, m, unit(), rank()); }
};

// Takes `count` units, the threads of the scope side by side: waits for the one that `at(i)` names (a
// sender's rank and a unit's number), then hands it to `take(i, data)`. Each thread calls both for its
// own, once each and in order. Several loads are under way at a time, or each would cost a trip to the second-level
// cache.
template <class Scope, class At, class Take>
__device__ inline void take_units(const team& t, const rendezvous& m, int count, const Scope& scope, At at, Take take) {
    constexpr int batch = units_awaited;
    const u64 expected = m.word();
    for (int first = scope.rank(); first < count; first += batch * scope.size()) {
        const vec16* place[batch];
        u64 data[batch];
        int n = 0;
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            int i = first + k * scope.size();
            if (i < count) {
                int from, unit;
                at(i, from, unit);
                place[k] = slots_of(t, m.number, from) + unit;
                n = k + 1;
            } else {
                place[k] = nullptr;
            }
        }
        u32 missing = (1u << n) - 1;
        u64 last_seen = 0;
        auto done = [&] {
            u64 seen[batch];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (missing >> k & 1) load_unit(place[k], data[k], seen[k]);
            }
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (missing >> k & 1) {
                    if (seen[k] == expected) missing &= ~(1u << k);
                    last_seen = seen[k];
                }
            }
            return missing == 0;
        };
        const senders_of<batch> senders = {t, m, place, missing, 0};
        if (!spin_for(done, wait_rendezvous, senders, place[0], m.number, [&] { return last_seen & number_mask; }))
            return;
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (k < n) take(first + k * scope.size(), data[k]);
        }
    }
}

// Ranks other than `me` and `root`, of which there are two less than of all, or one where they are the same.
__device__ inline int beside(int i, int me, int root) {
    const int low = root < me ? root : me, high = root < me ? me : root;
    if (i >= low) ++i;
    return low != high && i >= high ? i + 1 : i;
}

// Who a thread of a broadcast waits for: the root, for units of a row, or another rank, for its first one. It checks them
// in turns.
struct root_and_other {
    const team& t;
    const rendezvous& m;
    const vec16* const& row;  // the first unit that may be missing
    const int& apart;         // to the next
    const int root, other;
    const u32 other_bit;
    const u32& missing;
    bool turn;

    __device__ bool is_other() const { return (missing & other_bit) != 0 && (turn || missing == other_bit); }
    __device__ int rank() const { return is_other() ? other : root; }
    __device__ int name() const { return t.pe(rank()); }
    __device__ int gone() {
        const int pe = gone_for_peer(name());
        if (pe < 0) turn = !turn;
        return pe;
    }
    __device__ bool mismatch() const {
        const vec16* unit = is_other() ? slots_of(t, m.number, other) : row + (__ffs(missing) - 1) * apart;
        return is_missing_for_another(t, m, unit, rank());
    }
};

// Takes `units` units of the root's, the threads of the scope side by side, and waits for the first unit of each rank but
// this one and the root: as `take_units`, but a thread knows where its units lie by one pointer. A unit of another rank is
// awaited together with those of the root, for each trip to the second-level cache takes long.
template <class Scope, class Take>
__device__ inline void take_from_root(const team& t, const rendezvous& m, int root, int units, const Scope& scope,
                                      Take take) {
    constexpr int batch = root_units_awaited;
    constexpr u32 other_bit = 1u << batch;
    const u64 expected = m.word();
    const int apart = scope.size(), others = t.size - (root == t.me ? 1 : 2);
    const vec16* const from = slots_of(t, m.number, root);
    for (int first = scope.rank(), i = first; first < units || i < others; first += batch * apart, i += apart) {
        const vec16* row = from + first;
        const int other = i < others ? beside(i, t.me, root) : root;
        u64 data[batch];
        u32 missing = i < others ? other_bit : 0;
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (first + k * apart < units) missing |= 1u << k;
        }
        u64 last_seen = 0;
        auto done = [&] {
            u64 seen[batch], seen_of_other = 0, nothing;
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (missing >> k & 1) load_unit(row + k * apart, data[k], seen[k]);
            }
            if (missing & other_bit) load_unit(slots_of(t, m.number, other), nothing, seen_of_other);
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (missing >> k & 1) {
                    if (seen[k] == expected) missing &= ~(1u << k);
                    last_seen = seen[k];
                }
            }
            if (missing & other_bit) {
                if (seen_of_other == expected) missing &= ~other_bit;
                last_seen = seen_of_other;
            }
            return missing == 0;
        };
        const root_and_other senders = {t, m, row, apart, root, other, other_bit, missing, false};
        if (!spin_for(done, wait_rendezvous, senders, row, m.number, [&] { return last_seen & number_mask; })) return;
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            if (first + k * apart < units) take(first + k * apart, data[k]);
        }
    }
}

}  // namespace detail

}  // namespace crosswarp

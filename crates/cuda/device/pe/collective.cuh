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
//
// Generations count the team's rendezvous. They only grow, so nothing is ever reset: a slot of set g % 2
// is written again at the earliest in rendezvous g + 2, which a PE enters only after every PE has entered
// rendezvous g + 1, that is, has left rendezvous g and read its slots. What a PE sends in a rendezvous carries,
// above its number, a mark of the collective (`mark_of`), which the others compare with their own.
#pragma once
#include "pe/staged.cuh"

namespace crosswarp {

// Slots of one PE for one rendezvous.
constexpr int small_units = small_bytes / unit_bytes;

// All threads of a cooperative grid as one scope.
class grid_threads {
  public:
    explicit __device__ grid_threads(const grid& g) : grid_(g) {}
    __device__ int rank() const { return grid_.rank() * block().size() + block().rank(); }
    __device__ int size() const { return grid_.size() * block().size(); }
    __device__ void sync() const { grid_.sync(); }
    __device__ const grid& blocks() const { return grid_; }

  private:
    const grid& grid_;
};

// From how many bytes on an array is combined through slots, by stores alone; measured: below, two more
// trips of the links cost more than is gained.
constexpr u64 staged_min_bytes = 16 << 20;

namespace detail {

// Units that a thread sends, or waits for, at a time. Fewer take fewer registers, see `copy_words`; functions of these
// collectives that are called and not inlined took 250 with the larger numbers. That of a broadcast, which combines nothing,
// takes 64 with three awaited, so that blocks of 1024 threads can call it.
#ifdef CROSSWARP_FEW_REGISTERS
constexpr int units_sent = 2, root_units_sent = 4, units_awaited = 1, root_units_awaited = 3;
#else
constexpr int units_sent = 4, root_units_sent = 4, units_awaited = 8, root_units_awaited = 8;
#endif

template <class Scope> constexpr bool is_grid = false;
template <> constexpr bool is_grid<grid_threads> = true;

__device__ inline team_scratch* scratch_of(const team& t) { return at<team_scratch>(t.scratch); }
__device__ inline u64* arrivals_of(const team& t) {
    return reinterpret_cast<u64*>(scratch_of(t) + 1);
}
// Slots that team member `from` fills here, for rendezvous `generation`.
__device__ inline vec16* slots_of(const team& t, u64 generation, int from) {
    u64 first = reinterpret_cast<u64>(arrivals_of(t)) + ((8 * t.size + 127) & ~127);
    u64 index = ((generation & 1) * t.size + from) * small_units;
    return reinterpret_cast<vec16*>(first) + index;
}

// A rendezvous's number takes so many bits of a word; the rest marks the collective. (At a rendezvous a microsecond the
// numbers last for nine years.)
constexpr int number_bits = 48;
constexpr u64 number_mask = (1ull << number_bits) - 1;

// Whether PEs of the team are on other hosts; its payloads then travel by puts and not in units.
#ifdef CROSSWARP_ROUTED
__device__ inline __noinline__ bool routed(const team& t) {
    for (int r = 0; r < t.size; ++r) {
        if (!mapped(t.pe(r))) return true;
    }
    return false;
}
#else
__device__ inline bool routed(const team&) { return false; }
#endif

// What a PE calls, in a word.
__device__ inline u64 collective(kind what, u64 bytes, u32 detail = 0) {
    constexpr u32 details = (1u << (collective_kind_bit - collective_detail_bit)) - 1;
    constexpr u64 sizes = (1ull << collective_detail_bit) - 1;
    return (u64)what << collective_kind_bit | (u64)(detail & details) << collective_detail_bit | (bytes & sizes);
}
// Operation and type of a reduction; operations without a `code` are one.
template <class T, class Op> __device__ inline auto combines(const Op& op, int) -> decltype((u32)op.code) {
    return ((u32)op.code + 1) << reduce_op_bit | type_code<T>;
}
template <class T, class Op> __device__ inline u32 combines(const Op&, long) { return type_code<T>; }

// 16 bits of a collective, above a rendezvous's number. Those that differ in the lowest 16 bits of their size alone
// always differ here; of others one in 65,536 pairs does not.
__device__ inline u64 mark_of(u64 collective) {
    u64 upper = (collective >> 16) * 0x9e3779b97f4a7c15ull >> 48;
    return (collective ^ upper) << number_bits;
}

// The words of a rendezvous whose number is `generation`, of `mine`, as `collective` says it.
struct rendezvous {
    u64 number, mine;
    // What this PE sends and expects.
    __device__ u64 word() const { return number | mark_of(mine); }
    // Whether a word that came is of this rendezvous, but of another collective.
    __device__ bool differs(u64 word) const { return (word & number_mask) == number && word != this->word(); }
    // Reports the PE that did something else.
    __device__ void report_mismatch(int pe, const void* at, u64 seen) const {
        give_up(wait_mismatch, pe, at, mine, seen);
    }
};

// A rendezvous that begins: the number of the one before, whose load may still be under way. What needs no number comes
// before `begun`, so that it is under way at the same time.
struct opening {
    u64 before, mine;
    __device__ rendezvous begun() const { return {before + 1, mine}; }
};

// The scope's sync at the beginning. ptxas (13.0, sm_90) drops a `__syncwarp` behind another one of the same mask, also
// where that one ends a function that was called and not inlined; but lanes that came to the first in turns leave it in
// turns. Races prevented: a lane must not read the number behind the first lane's new one (it was a rendezvous ahead),
// nor the first lane send before the others have stored. So the compiler gets a mask that it can't know to be the same.
template <class Scope> __device__ inline void sync_anew(const Scope& scope) { scope.sync(); }
__device__ inline void sync_anew(const warp& scope) { __syncwarp(scope.mask() & ~(u32)(n_pes() >> 31)); }

// Begins a rendezvous. What the scope's threads stored before is ordered before what they do after.
// `count_rendezvous` follows when everything has been sent.
template <class Scope> __device__ inline opening begin_rendezvous(const team& t, const Scope& scope, u64 mine) {
    const opening begins = {load_relaxed(&scratch_of(t)->generation), mine};
    sync_anew(scope);
    return begins;
}

// Leaves the rendezvous's number for the next one, before `end_rendezvous`, whose sync puts it before the next
// one's reading; all have read the old one before the sync of `begin_rendezvous`. (Stored there, it would
// hold up what is sent; stored at the end, the next one's reading.)
template <class Scope> __device__ inline void count_rendezvous(const team& t, const rendezvous& m, const Scope& scope) {
    if (scope.rank() == 0) store_relaxed(&scratch_of(t)->generation, m.number);
}

// Ends a rendezvous: all threads of the scope have what they waited for. All get the same answer.
template <class Scope> __device__ inline bool end_rendezvous(const team& t, const Scope& scope) {
    scope.sync();
    if (crosswarp_world.timeout_ns == 0) return true;
    // One thread looks, so that a wait that gives up elsewhere meanwhile does not split the scope.
    if (scope.rank() == 0) store_relaxed(&scratch_of(t)->came_about, (u64)!given_up());
    scope.sync();
    return load_relaxed(&scratch_of(t)->came_about) != 0;
}

// One payload unit, see below.
__device__ inline void load_unit(const vec16* at, u64& data, u64& generation);

// Who a wait for an arrival is for.
struct arrival_of {
    const team& t;
    const rendezvous& m;
    int rank;
    __device__ int name() const { return t.pe(rank); }
    __device__ int gone() const { return gone_pe(name()); }
    // Its arrival may be that of another collective; or a unit of this rendezvous shows that the PE sends its payload
    // in slots, and so no arrival.
    __device__ bool mismatch() const {
        u64 data, word = load_acquire(arrivals_of(t) + rank);
        if (!m.differs(word)) {
            // It may have come since it was last looked for.
            if (routed(t)) return false;
            load_unit(slots_of(t, m.number, rank), data, word);
            if ((word & number_mask) != m.number) return false;
        }
        m.report_mismatch(name(), arrivals_of(t) + rank, word);
        return true;
    }
};

// A thread's rank, for loops over the first `n` ranks (n > 0): in a warp that has some of these, the other threads do
// what the last of them does. A warp whose threads part at a fence and at a wait takes longer (5 % of a barrier).
template <class Scope> __device__ inline int rank_beside(int n, const Scope& scope) {
    const int rank = scope.rank();
    return scope.size() > 1 && rank < ((n + 31) & ~31) ? min(rank, n - 1) : rank;
}

// Stores a word of this PE's on `pe`.
__device__ inline void send_word(u64* at, u64 value, int pe) {
    CROSSWARP_ROUTE(pe, route_p(at, value, pe));
    store_relaxed(ptr(at, pe), value);
}

// Whether a collective goes on after its first rendezvous. One that has waited in vain must not tell the others of its
// next rendezvous: who has not looked yet would take that for the first one, and miss what was wrong with it.
__device__ inline bool goes_on() { return !given_up(); }

// Arrival words all around: what the scope wrote before is visible to every PE after. `mine`: the collective that
// this is a rendezvous of. `tells`: see `goes_on`.
template <class Scope>
__device__ inline CROSSWARP_CALLED bool meet(const team& t, const Scope& scope, u64 mine, bool tells = true) {
    if (t.size == 1) {
        // Nobody to meet; what the scope's threads stored is visible to all that hear of it.
        scope.sync();
        if (scope.rank() == 0) fence();
        scope.sync();
        return true;
    }
    // The fence below waits for the number's load in any case.
    const rendezvous m = begin_rendezvous(t, scope, mine).begun();
    const u64 generation = m.number, sent = m.word();
    u64* arrivals = arrivals_of(t);
    // The scope's sync in `begin_rendezvous` put the other threads' stores before this thread's fence,
    // which is cumulative. Race prevented: a peer must not see the arrival before those stores.
    const int beside = rank_beside(t.size, scope);
    if (beside < t.size) fence();
    for (int r = scope.rank(); r < t.size; r += scope.size()) {
        if (tells) send_word(arrivals + t.me, sent, t.pe(r));
    }
    count_rendezvous(t, m, scope);
    for (int r = beside; r < t.size; r += scope.size()) {
        const u64* word = arrivals + r;
        u64 seen = 0;
        // Acquire pairs with the peer's fence; the scope's sync in `end_rendezvous` hands it on. A peer that is at a
        // later rendezvous met this one; one that is here for another collective is found by `arrival_of::mismatch`.
        auto came = [&] { return (seen = load_acquire(word)) == sent || (seen & number_mask) > generation; };
        spin_for(came, wait_rendezvous, arrival_of{t, m, r}, word, generation, [&] { return seen & number_mask; });
    }
    return end_rendezvous(t, scope);
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
        int pe = gone_pe(name());
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
        const int pe = gone_pe(name());
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

// A collective of one PE, which hears from nobody: a copy, of what other threads of the scope may have just written.
template <class T, class Scope> __device__ inline bool copy_alone(T* dest, const T* source, u64 n, const Scope& scope) {
    scope.sync();
    if (dest != source) copy<unit_of<T>, false>(dest, source, n * sizeof(T), scope);
    scope.sync();
    return true;
}

// From how many bytes on a broadcast by a grid is pulled in shares. One more rendezvous takes less then than the root's links
// take for the array once more: 3 us, 1 MiB at 400 GB/s.
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
    bool goes_on = true;
    if constexpr (detail::is_grid<Scope>) {
        if (detail::is_shared(dest, source, n * sizeof(T), t) && !detail::routed(t)) {
            detail::meet(t, scope, mine);
            goes_on = detail::goes_on();
            u8* const to = reinterpret_cast<u8*>(dest);
            if (goes_on) detail::pull_shares(to, reinterpret_cast<const u8*>(source), n * sizeof(T), root, t, scope);
            return detail::meet(t, scope, mine, goes_on);
        }
        // The root's grid fills its links by itself; the barrier completes the puts: one rendezvous, where
        // pulling would take two.
        if (t.me == root) {
            for (int i = 1; i <= t.size; ++i) put(dest, source, n, t.pe((root + i) % t.size), scope);
        }
    } else {
        // Each PE pulls for itself: several blocks move more than the root's alone.
        detail::meet(t, scope, mine);
        goes_on = detail::goes_on();
        detail::get_much(dest, source, n, t.pe(root), scope);
    }
    return detail::meet(t, scope, mine, goes_on);
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

#ifdef CROSSWARP_ROUTED
// Room for what every rank puts here in a rendezvous, for pieces of a longer array: the slots, or those for large
// reductions where the team has them. There are two sets of either; one is written again after the next rendezvous,
// which a PE enters when it has read it.
struct put_room {
    const team& t;
    const bool large;
    static_assert(staged_sets == 2, "a set for each of two rendezvous");

    __device__ put_room(const team& t, u64 bytes) : t(t), large(t.stage != 0 && bytes > small_units * sizeof(vec16)) {}
    // Vectors of one rank in a set.
    __device__ u64 vectors() const { return large ? t.stage_blocks * staged_vectors : small_units; }
    __device__ const vec16* of(u64 number, int rank) const {
        return large ? stage(t).slot(rank, 0, 0) + (number & 1) * vectors() : slots_of(t, number, rank);
    }
};

// What the ranks put in a rendezvous: rank r gets the bytes of an array from `of(r)` on, `count` or as many as there are.
struct put_parts {
    u64 first, step, count, end;

    __device__ u64 of(int rank) const { return first + step * rank < end ? first + step * rank : end; }
    __device__ u64 bytes(int rank) const { return end - of(rank) < count ? end - of(rank) : count; }
};

// Puts to every other rank its part of `source`, into its room, and meets it.
//
// Not inlined, and in bytes, as all beside the operation: a reduction for each type and operation has it.
template <class Scope>
__device__ inline __noinline__ bool put_around(const put_room& room, u64 number, const u8* source, const put_parts& parts,
                                               const Scope& scope, u64 mine) {
    const team& t = room.t;
    // Race prevented: the first thread must not put before the others have stored `source`.
    sync_anew(scope);
    for (int i = 1; i < t.size; ++i) {
        const int r = (t.me + i) % t.size;
        u8* to = reinterpret_cast<u8*>(const_cast<vec16*>(room.of(number, t.me)));
        put(to, source + parts.of(r), parts.bytes(r), t.pe(r), scope);
    }
    return meet(t, scope, mine);
}

// Puts `bytes` bytes at `here` to the same place of every other rank.
template <class Scope>
__device__ inline __noinline__ void put_to_all(u8* here, u64 bytes, const team& t, const Scope& scope) {
    for (int i = 1; i < t.size; ++i) put(here, here, bytes, t.pe((t.me + i) % t.size), scope);
}

// dest[i] = the PEs' source[i] combined in rank order, i < n, where PEs are on other hosts: piece by piece each puts its
// values into the others' room. `apart`: elements from the block of one rank to the next's, 0 if all combine the same.
//
// Where all combine the same and the room is large, every rank combines a share of each piece, which it puts to all. So
// each PE sends and gets twice the array, however many there are.
template <class T, class Op, class Scope>
__device__ inline bool reduce_by_puts(T* dest, const T* source, u64 n, u64 apart, Op op, const team& t, const Scope& scope,
                                      u64 mine) {
    const put_room room(t, n * sizeof(T));
    const bool shared = room.large && apart == 0;
    static_assert(sizeof(T) <= small_units * sizeof(vec16), "an element does not fit into a piece");
    const u64 most = room.vectors() * sizeof(vec16) / sizeof(T);
    u64 first = 0;
    do {
        u64 count = shared ? (n - first + t.size - 1) / t.size : n - first;
        if (count > most) count = most;
        const u64 end = shared ? n : first + count + apart * (t.size - 1);
        const put_parts parts = {first * sizeof(T), (shared ? count : apart) * sizeof(T), count * sizeof(T),
                                 end * sizeof(T)};
        const u64 number = load_relaxed(&scratch_of(t)->generation) + 1;
        // Race prevented where `dest` is `source`: a rank puts its share of the sums here when it has met this PE, which
        // has read its own values of that share by then.
        if (!put_around(room, number, reinterpret_cast<const u8*>(source), parts, scope, mine)) return false;
        // This PE's part, and where it goes.
        const u64 part = parts.of(t.me) / sizeof(T), own = parts.bytes(t.me) / sizeof(T);
        T* to = dest + (shared ? part : first);
        for (u64 i = scope.rank(); i < own; i += scope.size()) {
            auto value = [&](int r) {
                const T* from = r == t.me ? source + part : reinterpret_cast<const T*>(room.of(number, r));
                return load_fresh(from + i);
            };
            T total = value(0);
            for (int r = 1; r < t.size; ++r) total = op(total, value(r));
            to[i] = total;
        }
        // Race prevented: as above, for `to`.
        sync_anew(scope);
        if (shared) put_to_all(reinterpret_cast<u8*>(to), own * sizeof(T), t, scope);
        first += shared ? count * t.size : count;
    } while (first < n);
    return !shared || meet(t, scope, mine);
}
#endif

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
            constexpr int per = detail::per_unit<T>;
            const detail::opening begins = detail::begin_rendezvous(t, scope, mine);
            int units = detail::units<T>(n);
            const detail::rendezvous m = detail::send_to_all(
                t, begins, units, scope, [=](int u) { return detail::pack(source, (u64)u * per, n); });
            detail::count_rendezvous(t, m, scope);
            // Race prevented in place: a unit may be sent to different PEs by different threads, and none
            // of them may find it already overwritten with the result.
            if (dest == source) scope.sync();
            // A thread takes all ranks' copies of its units, in order.
            int own = units > scope.rank() ? (units - 1 - scope.rank()) / scope.size() + 1 : 0;
            T total[per];
            // Rank and unit of the next to name and of the next to take, counted along: divisions would
            // cost one thread alone more than the loads.
            int name_r = 0, name_u = scope.rank(), r = 0, u = scope.rank();
            detail::take_units(
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
                    detail::unpack(dest, (u64)u * per, n, data);
                    r = 0, u += scope.size();
                });
            return detail::end_rendezvous(t, scope);
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
            const bool goes_on = detail::goes_on();
            constexpr u64 per = 16 / sizeof(T);
            u64 vectors = n / per, generation = load_volatile(&detail::scratch_of(t)->generation);
            detail::reduce_staged<T>(reinterpret_cast<detail::vec16*>(dest),
                                     reinterpret_cast<const detail::vec16*>(source),
                                     (vectors + t.size - 1) / t.size, vectors, op, t, generation,
                                     scope.blocks(), block());
            // Less than a vector.
            if (t.me == 0) detail::reduce_span(dest, source, vectors * per, n, 0, op, t, true, scope);
            return detail::meet(t, scope, mine, goes_on);
        }
    }
    detail::meet(t, scope, mine);
    const bool goes_on = detail::goes_on();
    constexpr u64 per = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    u64 share = ((n + t.size - 1) / t.size + per - 1) / per * per;
    u64 first = share * t.me < n ? share * t.me : n;
    u64 last = first + share < n ? first + share : n;
    detail::reduce_span(dest, source, first, last, 0, op, t, true, scope);
    return detail::meet(t, scope, mine, goes_on);
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
    const bool goes_on = detail::goes_on();
    u64 first = n * t.me;
    detail::reduce_span(dest, source, first, first + n, first, op, t, false, scope);
    return detail::meet(t, scope, mine, goes_on);
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

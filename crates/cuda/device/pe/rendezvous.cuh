// How the PEs of a team meet in collectives, from one thread, a warp, a block, or a whole cooperative grid.
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

namespace detail {

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

// Bytes of a scratch with all that belongs to it, as in src/pe/team.rs.
__device__ inline u64 scratch_bytes(const team& t) {
    return sizeof(team_scratch) + ((8 * t.size + 127) & ~127) + 2ull * t.size * small_units * sizeof(vec16);
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

// Who a wait for an arrival is for.
struct arrival_of {
    const team& t;
    const rendezvous& m;
    int rank;
    __device__ int name() const { return t.pe(rank); }
    __device__ int gone() const { return gone_for_peer(name()); }
    // Whether it is there for another collective: its arrival may be that of one; or a unit of this rendezvous shows that
    // the PE sends its payload in slots, and so no arrival. `word`: what shows it.
    __device__ bool differs(u64& word) const {
        word = load_acquire(arrivals_of(t) + rank);
        if (m.differs(word)) return true;
        // It may have come since it was last looked for.
        if (routed(t)) return false;
        u64 data;
        load_unit(slots_of(t, m.number, rank), data, word);
        return (word & number_mask) == m.number;
    }
    __device__ bool mismatch() const {
        u64 word;
        if (!differs(word)) return false;
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

// Tells all that this PE is at `m`, and waits until they are: the rest of `meet`. Each thread that tells a PE
// has fenced before.
template <class Scope> __device__ inline bool exchange_arrivals(const team& t, const Scope& scope, const rendezvous& m) {
    const u64 generation = m.number, sent = m.word();
    u64* arrivals = arrivals_of(t);
    const int beside = rank_beside(t.size, scope);
    for (int r = scope.rank(); r < t.size; r += scope.size()) {
        send_word(arrivals + t.me, sent, t.pe(r));
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

// Arrival words all around: what the scope wrote before is visible to every PE after. `mine`: the collective that
// this is a rendezvous of.
template <class Scope> __device__ inline CROSSWARP_CALLED bool meet(const team& t, const Scope& scope, u64 mine) {
    if (t.size == 1) {
        // Nobody to meet; what the scope's threads stored is visible to all that hear of it.
        scope.sync();
        if (scope.rank() == 0) fence();
        scope.sync();
        return true;
    }
    // The fence below waits for the number's load in any case.
    const rendezvous m = begin_rendezvous(t, scope, mine).begun();
    // The scope's sync in `begin_rendezvous` put the other threads' stores before this thread's fence,
    // which is cumulative. Race prevented: a peer must not see the arrival before those stores.
    if (rank_beside(t.size, scope) < t.size) fence();
    return exchange_arrivals(t, scope, m);
}

}  // namespace detail

}  // namespace crosswarp

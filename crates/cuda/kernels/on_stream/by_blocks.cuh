// Collectives by a grid whose blocks do not wait for one another: block b of every PE moves what block b of the others
// does, and meets these alone. A grid that meets the other PEs as one (pe/collective.cuh) syncs two or three times around
// each rendezvous, which is most of what payloads of up to a megabyte take.
//
// All PEs start the same number of blocks, all of them resident. Block 0 meets by the words of the team, so that PEs that
// call different collectives are told apart as they are elsewhere, and the others end with it; each of these has words of
// its own (`peer_blocks`), which only grow.
#pragma once
#include "pe.cuh"

namespace crosswarp {

namespace detail {

// Bytes, or elements, from `first` on.
struct part {
    u64 first, count;
};

// A block, and where it meets those of its number.
struct peer_blocks {
    const team& t;
    const u64 mine;  // the collective
    const int b;
    u64* number;    // of its last rendezvous
    u64* arrivals;  // a word for each rank, which that one writes

    __device__ peer_blocks(const team& t, u64* words, u64 mine) : t(t), mine(mine), b(blockIdx.x) {
        u64* own = words + (u64)b * (t.size + 1);
        number = b == 0 ? &scratch_of(t)->generation : own;
        arrivals = b == 0 ? arrivals_of(t) : own + 1;
    }

    // What of `n` is this block's: parts are multiples of `unit`. Where there is little, later blocks have nothing.
    __device__ part of(u64 n, u64 unit) const {
        const u64 each = ((n + gridDim.x - 1) / gridDim.x + unit - 1) / unit * unit;
        const u64 first = each * b < n ? each * b : n;
        return {first, n - first < each ? n - first : each};
    }

    // The next rendezvous. No thread leaves it for the one after before all have called this.
    __device__ rendezvous next() const { return {load_relaxed(number) + 1, mine}; }

    // Tells rank `r` that this block is at `m`. Race prevented by the fence: the rank must not see that before what the
    // block's threads stored, which the block's sync has put before this thread's fence (it is cumulative).
    __device__ void tell(const rendezvous& m, int r) const {
        fence();
        store_relaxed(ptr(arrivals + t.me, t.pe(r)), m.word());
    }

    // Waits until rank `r` is at `m`; whether it is there for another collective. Acquire pairs with its fence; a sync of
    // the block hands it on.
    __device__ bool await_other(const rendezvous& m, int r) const {
        const u64* word = arrivals + r;
        u64 seen = 0;
        auto came = [&] { return (seen = load_acquire(word)) == m.word() || (seen & number_mask) > m.number; };
        auto number_seen = [&] { return seen & number_mask; };
        if (b != 0) {
            // One that is there for another collective is block 0's to find, which ends this wait, too.
            spin_for(came, wait_rendezvous, waits_for{t.pe(r)}, word, m.number, number_seen);
            return false;
        }
        const arrival_of who = {t, m, r};
        u64 other;
        // Also where another thread has reported another rank, which ends this wait.
        return !spin_for(came, wait_rendezvous, who, word, m.number, number_seen) && who.differs(other);
    }

    // Meets the blocks of this number at `m`. What each stored before is visible to all after. False in block 0 if a rank is
    // there for another collective. The block then does not tell the others of its next rendezvous (`tells`): who has not
    // looked yet would take that for this one, and miss what is wrong with it.
    __device__ bool meet(const rendezvous& m, bool tells = true) const {
        const block threads;
        // Races prevented: as in `tell`; and a thread must not read the number behind the new one.
        threads.sync();
        const int rank = threads.rank();
        for (int r = rank; tells && r < t.size; r += threads.size()) tell(m, r);
        if (rank == 0) store_relaxed(number, m.number);
        bool other = false;
        for (int r = rank; r < t.size; r += threads.size()) other |= await_other(m, r);
        // A sync of the block, in which all its threads get the same answer.
        return __syncthreads_or(other) == 0;
    }
};

// `n` bytes each, as in pe/collective.cuh.

__device__ inline void fcollect_of_blocks(u8* dest, const u8* source, u64 n, const team& t, u64* words) {
    const peer_blocks here(t, words, collective(kind::fcollect, n));
    const part own = here.of(n, 128);
    if (own.count == 0 && here.b != 0) return;
    // Beginning behind me, so that the links fill evenly.
    for (int i = 1; i <= t.size; ++i) {
        put(dest + t.me * n + own.first, source + own.first, own.count, t.pe((t.me + i) % t.size), block());
    }
    here.meet(here.next());
}

__device__ inline void alltoall_of_blocks(u8* dest, const u8* source, u64 n, const team& t, u64* words) {
    const peer_blocks here(t, words, collective(kind::alltoall, n));
    const part own = here.of(n, 128);
    if (own.count == 0 && here.b != 0) return;
    for (int i = 1; i <= t.size; ++i) {
        const int r = (t.me + i) % t.size;
        put(dest + t.me * n + own.first, source + r * n + own.first, own.count, t.pe(r), block());
    }
    here.meet(here.next());
}

__device__ inline void broadcast_of_blocks(u8* dest, const u8* source, u64 n, int root, const team& t, u64* words) {
    const peer_blocks here(t, words, collective(kind::broadcast, n, root));
    const part own = here.of(n, 128);
    if (own.count == 0 && here.b != 0) return;
    if (is_shared(dest, source, n, t)) {
        const bool tells = here.meet(here.next());
        if (tells) pull_shares(dest + own.first, source + own.first, own.count, root, t, block());
        here.meet(here.next(), tells);
        return;
    }
    if (t.me == root) {
        for (int i = 1; i <= t.size; ++i) {
            put(dest + own.first, source + own.first, own.count, t.pe((root + i) % t.size), block());
        }
    }
    here.meet(here.next());
}

template <class T, class Op>
__device__ inline void reduce_of_blocks(T* dest, const T* source, u64 n, Op op, const team& t, u64* words) {
    const peer_blocks here(t, words, collective(kind::reduce, n * sizeof(T), combines<T>(op, 0)));
    constexpr u64 unit = 128 / sizeof(T);
    // Each PE combines its share for all, as in `reduce`.
    const u64 share = ((n + t.size - 1) / t.size + unit - 1) / unit * unit;
    const part own = here.of(share, unit);
    if (own.count == 0 && here.b != 0) return;
    const bool tells = here.meet(here.next());
    auto bound = [=](u64 at) { return at < n ? at : n; };
    const u64 first = bound(share * t.me + own.first), last = bound(share * t.me + own.first + own.count);
    if (tells) reduce_span(dest, source, first, last, 0, op, t, true, block());
    here.meet(here.next(), tells);
}

}  // namespace detail

// The collectives of a whole grid; `n` as in pe/collective.cuh, bytes where elements are. `state` is the grid's and
// `words` are those of its blocks, both the team's. Where PEs are on other hosts, the grid meets them as one.

template <class Blocks, class Whole>
__device__ inline void by_blocks(const team& t, grid_state* state, bool as_one, Blocks of_blocks, Whole whole) {
    if (t.size > 1 && !as_one && !detail::routed(t)) return of_blocks();
    const grid blocks(state);
    whole(grid_threads(blocks));
}

__device__ inline void broadcast_by_blocks(u8* dest, const u8* source, u64 n, int root, const team& t, grid_state* state,
                                          u64* words) {
    by_blocks(
        t, state, false, [&] { detail::broadcast_of_blocks(dest, source, n, root, t, words); },
        [&](const grid_threads& scope) { broadcast(dest, source, n, root, t, scope); });
}
__device__ inline void fcollect_by_blocks(u8* dest, const u8* source, u64 n, int, const team& t, grid_state* state,
                                         u64* words) {
    by_blocks(
        t, state, false, [&] { detail::fcollect_of_blocks(dest, source, n, t, words); },
        [&](const grid_threads& scope) { fcollect(dest, source, n, t, scope); });
}
__device__ inline void alltoall_by_blocks(u8* dest, const u8* source, u64 n, int, const team& t, grid_state* state,
                                         u64* words) {
    by_blocks(
        t, state, false, [&] { detail::alltoall_of_blocks(dest, source, n, t, words); },
        [&](const grid_threads& scope) { alltoall(dest, source, n, t, scope); });
}

// `reduce` of some kilobytes: each block takes a part in units, as small as one block alone does of a payload, so nobody
// waits twice. All but block 0, which meets as the team does everywhere, have a `team_scratch` of their own, one after the
// other from `scratches` on.
template <class T, class Op>
__device__ inline void reduce_by_units(T* dest, const T* source, u64 n, Op op, const team& t, u64* scratches) {
    const block scope;
    const u64 mine = detail::collective(detail::kind::reduce, n * sizeof(T), detail::combines<T>(op, 0));
#ifdef CROSSWARP_ROUTED
    if (detail::routed(t)) {
        detail::reduce_by_puts(dest, source, n, 0, op, t, scope, mine);
        return;
    }
#endif
    constexpr u64 part = small_bytes / sizeof(T);
    const u64 first = blockIdx.x * part, count = n - first < part ? n - first : part;
    if (t.size == 1) {
        detail::copy_alone(dest + first, source + first, count, scope);
        return;
    }
    team own = t;
    if (blockIdx.x > 0) {
        const u64 first_scratch = reinterpret_cast<u64>(scratches) - crosswarp_world.heap;
        own.scratch = first_scratch + (blockIdx.x - 1) * detail::scratch_bytes(t);
    }
    detail::reduce_units(dest + first, source + first, count, op, own, scope, mine);
}

template <class T, class Op>
__device__ inline void reduce_by_blocks(T* dest, const T* source, u64 n, Op op, const team& t, grid_state* state,
                                       u64* words) {
    by_blocks(
        t, state, detail::is_staged(dest, source, n, t), [&] { detail::reduce_of_blocks(dest, source, n, op, t, words); },
        [&](const grid_threads& scope) { reduce(dest, source, n, op, t, scope); });
}

}  // namespace crosswarp

// Collectives by a grid whose blocks do not wait for one another: block b of every PE moves what block b of the others
// does, and meets these alone. A grid that meets the other PEs as one (pe/collective.cuh) syncs two or three times around
// each rendezvous, which is most of what payloads of up to a megabyte take.
//
// All PEs start the same number of blocks, all of them resident. Block 0 meets by the words of the team, so that PEs that
// call different collectives are told apart as they are elsewhere, and the others end with it; each of these has words of
// its own (`pair`), which only grow.
#pragma once
#include "pe.cuh"

namespace crosswarp {

// From how many bytes on the other PEs pass a broadcast on to one another, so that each byte leaves the root once.
// Below, a further trip of the links costs more than that saves.
constexpr u64 passed_on_min_bytes = 512 << 10;
// What the root sends to a PE at a time, to be passed on while it sends the next.
constexpr u64 passed_on_bytes = 8 << 10;

namespace detail {

// Bytes, or elements, from `first` on.
struct part {
    u64 first, count;
};

// A block, and where it meets those of its number.
struct pair {
    const team& t;
    const u64 mine;  // the collective
    const int b;
    u64* number;    // of its last rendezvous
    u64* arrivals;  // a word for each rank, which that one writes

    __device__ pair(const team& t, u64* words, u64 mine) : t(t), mine(mine), b(blockIdx.x) {
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
    __device__ rendezvous next(u64 after = 1) const { return {load_relaxed(number) + after, mine}; }

    // Tells rank `r` that this block is at `m`. Race prevented by the fence: the rank must not see that before what the
    // block's threads stored, which the block's sync has put before this thread's fence (it is cumulative).
    __device__ void tell(const rendezvous& m, int r) const {
        fence();
        store_relaxed(ptr(arrivals + t.me, t.pe(r)), m.word());
    }

    // Waits until rank `r` is at `m`. Acquire pairs with its fence; a sync of the block hands it on.
    __device__ void await(const rendezvous& m, int r) const {
        const u64* word = arrivals + r;
        u64 seen = 0;
        auto came = [&] { return (seen = load_acquire(word)) == m.word() || (seen & number_mask) > m.number; };
        auto number_seen = [&] { return seen & number_mask; };
        if (b == 0) {
            spin_for(came, wait_rendezvous, arrival_of{t, m, r}, word, m.number, number_seen);
        } else {
            // One that is there for another collective is block 0's to find, which ends this wait, too.
            spin_for(came, wait_rendezvous, waits_for{t.pe(r)}, word, m.number, number_seen);
        }
    }

    // Meets the blocks of this number at `m`. What each stored before is visible to all after.
    __device__ void meet(const rendezvous& m) const {
        const block threads;
        // Races prevented: as in `tell`; and a thread must not read the number behind the new one.
        threads.sync();
        const int rank = threads.rank();
        for (int r = rank; r < t.size; r += threads.size()) tell(m, r);
        if (rank == 0) store_relaxed(number, m.number);
        for (int r = rank; r < t.size; r += threads.size()) await(m, r);
        threads.sync();
    }
};

// `n` bytes each, as in pe/collective.cuh.

__device__ inline void fcollect_paired(u8* dest, const u8* source, u64 n, const team& t, u64* words) {
    const pair here(t, words, collective(kind::fcollect, n));
    const part own = here.of(n, 128);
    if (own.count == 0 && here.b != 0) return;
    // Beginning behind me, so that the links fill evenly.
    for (int i = 1; i <= t.size; ++i) {
        put(dest + t.me * n + own.first, source + own.first, own.count, t.pe((t.me + i) % t.size), block());
    }
    here.meet(here.next());
}

__device__ inline void alltoall_paired(u8* dest, const u8* source, u64 n, const team& t, u64* words) {
    const pair here(t, words, collective(kind::alltoall, n));
    const part own = here.of(n, 128);
    if (own.count == 0 && here.b != 0) return;
    for (int i = 1; i <= t.size; ++i) {
        const int r = (t.me + i) % t.size;
        put(dest + t.me * n + own.first, source + r * n + own.first, own.count, t.pe(r), block());
    }
    here.meet(here.next());
}

// The root sends each of the others a piece in turn, which these pass on to one another.
__device__ inline void pass_on(u8* dest, const u8* source, const part& own, int root, const pair& here) {
    const team& t = here.t;
    const block threads;
    const int others = t.size - 1;
    const u64 at_a_time = passed_on_bytes * others;
    const u64 rounds = (own.count + at_a_time - 1) / at_a_time;
    // The piece that the `k`th of the others gets in a round.
    auto piece = [&](u64 round, int k) {
        const u64 first = round * at_a_time + k * passed_on_bytes;
        const u64 left = first < own.count ? own.count - first : 0;
        return part{own.first + first, left < passed_on_bytes ? left : passed_on_bytes};
    };
    auto other = [=](int k) { return k < root ? k : k + 1; };
    const rendezvous first = here.next();
    const int me = t.me < root ? t.me : t.me - 1;
    for (u64 round = 0; round < rounds; ++round) {
        const rendezvous m = {first.number + round, here.mine};
        if (t.me == root) {
            for (int k = 0; k < others; ++k) {
                const part p = piece(round, k);
                put(dest + p.first, source + p.first, p.count, t.pe(other(k)), threads);
            }
            threads.sync();
            for (int k = threads.rank(); k < others; k += threads.size()) here.tell(m, other(k));
        } else {
            if (threads.rank() == 0) here.await(m, root);
            threads.sync();
            const part p = piece(round, me);
            for (int i = 1; i < others; ++i) {
                put(dest + p.first, dest + p.first, p.count, t.pe(other((me + i) % others)), threads);
            }
        }
    }
    if (t.me == root && dest != source) put(dest + own.first, source + own.first, own.count, t.pe(root), threads);
    here.meet({first.number + rounds, here.mine});
}

__device__ inline void broadcast_paired(u8* dest, const u8* source, u64 n, int root, const team& t, u64* words) {
    const pair here(t, words, collective(kind::broadcast, n, root));
    const part own = here.of(n, 128);
    if (own.count == 0 && here.b != 0) return;
    if (t.size > 2 && n >= passed_on_min_bytes) return pass_on(dest, source, own, root, here);
    if (t.me == root) {
        for (int i = 1; i <= t.size; ++i) {
            put(dest + own.first, source + own.first, own.count, t.pe((root + i) % t.size), block());
        }
    }
    here.meet(here.next());
}

template <class T, class Op>
__device__ inline void reduce_paired(T* dest, const T* source, u64 n, Op op, const team& t, u64* words) {
    const pair here(t, words, collective(kind::reduce, n * sizeof(T), combines<T>(op, 0)));
    constexpr u64 unit = 128 / sizeof(T);
    // Each PE combines its share for all, as in `reduce`.
    const u64 share = ((n + t.size - 1) / t.size + unit - 1) / unit * unit;
    const part own = here.of(share, unit);
    if (own.count == 0 && here.b != 0) return;
    here.meet(here.next());
    auto bound = [=](u64 at) { return at < n ? at : n; };
    const u64 first = bound(share * t.me + own.first), last = bound(share * t.me + own.first + own.count);
    reduce_span(dest, source, first, last, 0, op, t, true, block());
    here.meet(here.next());
}

}  // namespace detail

// The collectives of a whole grid; `n` as in pe/collective.cuh, bytes where elements are. `state` is the grid's and
// `words` are those of its blocks, both the team's. Where PEs are on other hosts, the grid meets them as one.

template <class Paired, class Whole>
__device__ inline void by_pairs(const team& t, grid_state* state, bool as_one, Paired paired, Whole whole) {
    if (t.size > 1 && !as_one && !detail::routed(t)) return paired();
    const grid blocks(state);
    whole(grid_threads(blocks));
}

__device__ inline void broadcast_by_pairs(u8* dest, const u8* source, u64 n, int root, const team& t, grid_state* state,
                                          u64* words) {
    by_pairs(
        t, state, false, [&] { detail::broadcast_paired(dest, source, n, root, t, words); },
        [&](const grid_threads& scope) { broadcast(dest, source, n, root, t, scope); });
}
__device__ inline void fcollect_by_pairs(u8* dest, const u8* source, u64 n, int, const team& t, grid_state* state,
                                         u64* words) {
    by_pairs(
        t, state, false, [&] { detail::fcollect_paired(dest, source, n, t, words); },
        [&](const grid_threads& scope) { fcollect(dest, source, n, t, scope); });
}
__device__ inline void alltoall_by_pairs(u8* dest, const u8* source, u64 n, int, const team& t, grid_state* state,
                                         u64* words) {
    by_pairs(
        t, state, false, [&] { detail::alltoall_paired(dest, source, n, t, words); },
        [&](const grid_threads& scope) { alltoall(dest, source, n, t, scope); });
}
template <class T, class Op>
__device__ inline void reduce_by_pairs(T* dest, const T* source, u64 n, Op op, const team& t, grid_state* state,
                                       u64* words) {
    by_pairs(
        t, state, detail::is_staged(dest, source, n, t), [&] { detail::reduce_paired(dest, source, n, op, t, words); },
        [&](const grid_threads& scope) { reduce(dest, source, n, op, t, scope); });
}

}  // namespace crosswarp

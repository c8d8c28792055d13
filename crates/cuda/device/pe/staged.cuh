// The all-reduce of large arrays by a whole grid, which moves everything by stores: links that carry
// loads and stores at once, or loads alone, move less (bench/results/README.md, bench/schemes/all_reduce.cu).
//
// Every PE combines its share of the array for all. The shares are cut into pieces, and block b of every
// PE works on the same pieces. For each, it stores its PE's values into slots of the PE whose share it
// is; combines, in PE order, what the other PEs' blocks b have stored into its own slots; and stores the
// result on all. Two sets of slots keep the stores of one piece and the sums of the one before under way
// together, so nobody waits for a trip of the links.
//
// Words, each written by one PE with values that only grow (rendezvous number, then pieces):
//   arrived[b][from]   how many pieces block b of PE `from` has stored here
//   taken[b][by]       how many of my block b's pieces PE `by` has taken from its slots
// Both wrap around; of two, the later one is less than half of their range ahead (`reached`).
#pragma once
#include "grid.cuh"
#include "pe/signal.cuh"

namespace crosswarp {

namespace detail {

struct stage {
    u64 base;    // of this PE
    u64 blocks;  // most that can take part
    u64 size;    // PEs of the team

    explicit __device__ stage(const team& t)
        : base(crosswarp_world.heap + t.stage), blocks(t.stage_blocks), size(t.size) {}

    // How many blocks each PE has; written before the rendezvous that begins the reduction.
    __device__ u64* grids() const { return reinterpret_cast<u64*>(base); }
    __device__ u64* arrived(u64 block) const { return grids() + size + block * size; }
    __device__ u64* taken(u64 block) const { return arrived(blocks) + block * size; }
    __device__ vec16* slot(u64 from, u64 block, u64 set) const {
        u64 first = (reinterpret_cast<u64>(taken(blocks)) + 127) & ~127ull;
        return reinterpret_cast<vec16*>(first) + ((from * blocks + block) * staged_sets + set) * staged_vectors;
    }
};

// Bits for the pieces of one reduction, below the rendezvous's number: 512 GiB a block.
constexpr int piece_bits = 24;
__device__ inline bool reached(u64 seen, u64 wanted) { return (i64)(seen - wanted) >= 0; }

// dest[i] = the PEs' source[i] combined in rank order, on every PE, for the first `vectors` vectors of
// the array: shares of `share` vectors, one per PE. After a rendezvous numbered `generation`, which every
// PE's `grids` word preceded, and before another. All threads of every block call.
template <class T, class Op, class Threads>
__device__ inline void reduce_staged(vec16* dest, const vec16* source, u64 share, u64 vectors, Op op,
                                     const team& t, u64 generation, const grid& g, const Threads& threads) {
    constexpr int per = 16 / sizeof(T);
    const stage here(t);
    u64 blocks = here.blocks;
    for (int r = 0; r < t.size; ++r) {
        u64 theirs = load_relaxed(here.grids() + r);
        if (theirs < blocks) blocks = theirs;
    }
    const u64 b = g.rank();
    if (b >= blocks) return;
    const int me = t.me;
    auto share_of = [=](int r) {
        u64 first = share * r;
        return first >= vectors ? (u64)0 : (vectors - first < share ? vectors - first : share);
    };
    // The first share is the longest; of it this block has `pieces`.
    u64 all = (share_of(0) + staged_vectors - 1) / staged_vectors;
    u64 pieces = all > b ? (all - b - 1) / blocks + 1 : 0;
    const u64 counted = generation << piece_bits;
    u64* arrived = here.arrived(b);
    u64* taken = here.taken(b);
    // Where this block's piece `c` begins, and how long it is in a share of `of` vectors.
    auto begins = [=](u64 c) { return (b + c * blocks) * staged_vectors; };
    auto length = [=](u64 c, u64 of) {
        u64 first = begins(c);
        return (int)(first >= of ? 0 : (of - first < staged_vectors ? of - first : staged_vectors));
    };
    for (u64 c = 0; c <= pieces; ++c) {
        const bool sends = c < pieces, takes = c > 0;
        for (int r = threads.rank(); r < t.size; r += threads.size()) {
            if (r == me) continue;
            // The slot must be free again; acquire pairs with the fence of who took the piece.
            if (sends && c >= staged_sets) {
                u64 enough = counted + c - staged_sets + 1;
                spin([=] { return reached(load_acquire(taken + r), enough); }, wait_rendezvous, t.pe(r), taken + r,
                     enough, [=] { return load_relaxed(taken + r); });
            }
            // Acquire pairs with the sender's fence; the block's sync hands it on.
            if (takes) {
                spin([=] { return reached(load_acquire(arrived + r), counted + c); }, wait_rendezvous, t.pe(r),
                     arrived + r, counted + c, [=] { return load_relaxed(arrived + r); });
            }
        }
        threads.sync();
        // This many PEs' loads are under way at once.
        constexpr int batch = 4;
        for (int first = 1; sends && first < t.size; first += batch) {
            const vec16* from[batch];
            vec16* to[batch];
            int n[batch];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                // Beginning behind me, so that the links fill evenly.
                int r = (me + first + k) % t.size;
                n[k] = first + k < t.size ? length(c, share_of(r)) : 0;
                from[k] = source + share * r + begins(c);
                to[k] = ptr(here.slot(me, b, c % staged_sets), t.pe(r));
            }
            for (int i = threads.rank(); i < staged_vectors; i += threads.size()) {
                vec16 word[batch];
#pragma unroll
                for (int k = 0; k < batch; ++k) {
                    if (i < n[k]) word[k] = load_fresh(from[k] + i);
                }
#pragma unroll
                for (int k = 0; k < batch; ++k) {
                    if (i < n[k]) to[k][i] = word[k];
                }
            }
        }
        if (takes) {
            const u64 d = c - 1, at = share * me + begins(d);
            const int n = length(d, share_of(me));
            const vec16* slots = here.slot(0, b, d % staged_sets);
            const u64 apart = here.slot(1, b, d % staged_sets) - slots;
            for (int i = threads.rank(); i < n; i += threads.size()) {
                T total[per];
                for (int first = 0; first < t.size; first += batch) {
                    vec16 word[batch];
#pragma unroll
                    for (int k = 0; k < batch; ++k) {
                        int r = first + k;
                        if (r < t.size) word[k] = load_fresh(r == me ? source + at + i : slots + r * apart + i);
                    }
#pragma unroll
                    for (int k = 0; k < batch; ++k) {
                        if (first + k >= t.size) break;
                        T value[per];
                        memcpy(value, &word[k], 16);
#pragma unroll
                        for (int j = 0; j < per; ++j)
                            total[j] = first + k == 0 ? value[j] : op(total[j], value[j]);
                    }
                }
                vec16 word;
                memcpy(&word, total, 16);
                for (int k = 0; k < t.size; ++k) *ptr(dest + at + i, t.pe((me + k) % t.size)) = word;
            }
        }
        threads.sync();
        for (int r = threads.rank(); r < t.size; r += threads.size()) {
            if (r == me) continue;
            // Races prevented: a peer must not see the count before this block's stores, nor reuse a slot
            // before this block's loads from it. The sync above puts both before this thread's fence,
            // which is cumulative.
            fence();
            if (sends) store_relaxed(ptr(arrived + me, t.pe(r)), counted + c + 1);
            if (takes) store_relaxed(ptr(taken + me, t.pe(r)), counted + c);
        }
    }
}

}  // namespace detail
}  // namespace crosswarp

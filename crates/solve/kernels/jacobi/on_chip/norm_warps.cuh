// Warps of a block that add up the norms of what its other warps sweep, and decide whether to stop, so that nobody
// waits for that but at the end of a chunk for the decision on the chunk before.
#pragma once
#include "mbarrier.cuh"
#include "jacobi/plane.cuh"
#include "jacobi/on_chip/stop_decision.cuh"

namespace crosswarp {

// The last `Norms` warps of a block. The others leave the sums of `T` sweeps of up to `Leaves` leaves at once: an
// exchange's.
template <class F, int T, int Leaves, int Norms> class norm_warps {
    using decision = stop_decision<F, Norms>;
    static constexpr int chunk = chunk_sweeps<F>;
    static_assert(chunk % T == 0, "exchanges do not straddle chunks");

  public:
    // Exchanges whose sums wait for being added up, at most.
    static constexpr int backlog = 4;

    struct alignas(16) scratch {
        F sums[backlog][T][Leaves][leaf_columns];
        F leaf[chunk][Leaves];
        typename decision::scratch norms;
        mbarrier added[backlog];  // phase p: sums of exchange p × backlog + index have been added up
        mbarrier decided;         // phase p: on chunk p
        u32 stops;   // whether that meets the threshold, or a wait was in vain
        u32 failed;  // whether a wait was in vain; nothing follows from it but to leave
        u32 failed_before;  // the same when an exchange's sums were there, so that all these warps see the same
    };

    // The whole block, before a barrier.
    static __device__ __forceinline__ void prepare(scratch& s) {
        constexpr int all = backlog * T * Leaves * leaf_columns;
        for (int i = threadIdx.x; i < all; i += blockDim.x) (&s.sums[0][0][0][0])[i] = F(0);
        for (int i = threadIdx.x; i < chunk * Leaves; i += blockDim.x) (&s.leaf[0][0])[i] = F(0);
        if (threadIdx.x < backlog) s.added[threadIdx.x].init(32 * Norms);
        if (threadIdx.x == 0) {
            s.decided.init(1);
            s.failed = 0;
        }
    }

    // By the others: waits until sums of an exchange can be left: those that were in their place have been added up,
    // and the barrier orders the reads before. False if a wait was in vain, after which nobody may add up any more. The
    // whole warp calls, and gets the same.
    static __device__ __forceinline__ bool has_room(const scratch& s, u32 exchange) {
        return exchange < backlog || comes(s, s.added[exchange % backlog], exchange / backlog - 1);
    }
    // By the others: says that the sums of an exchange are there, and goes on. The barrier is not used again before
    // these warps have passed it: `has_room`.
    static __device__ __forceinline__ void arrive(u32 exchange) {
        asm volatile("bar.arrive %0, %1;" ::"r"(2 + exchange % backlog), "r"(blockDim.x) : "memory");
    }
    // By the others: waits for the decision on the chunk before `number`. All of a block see the same: the next is made
    // only after all have left sums behind it. The whole warp calls, and gets the same.
    static __device__ __forceinline__ bool goes_on(const scratch& s, int number) {
        return comes(s, s.decided, number - 1) && !s.stops;
    }
    // By the others: a wait was in vain.
    static __device__ __forceinline__ void fail(scratch& s) { store(s.failed, 1); }

    // By these warps, of a run that decides on the stop. `leaves`: of this block.
    template <class Run> static __device__ __forceinline__ void run(const Run& a, scratch& s, int leaves) {
        const last_warps<Norms> us;
        // In the middle of a chunk the others' words of the one before have come, and who waits for the decision at its
        // end finds it.
        constexpr int middle = chunk / 2 / T * T;
        bool reports = blockIdx.x == 0;
        u32 exchange = 0;
#pragma unroll 1
        for (int first = 0; first < a.sweeps; first += chunk) {
            int number = first / chunk, left = a.sweeps - first, count = left < chunk ? left : chunk;
            int met = -1;
#pragma unroll 1
            for (int i = 0; i < count; i += T, ++exchange) {
                // The sums are there.
                asm volatile("bar.sync %0, %1;" ::"r"(2 + exchange % backlog), "r"(blockDim.x) : "memory");
                if (us.rank() == 0) s.failed_before = load(s.failed);
                combine(s, us, exchange, i, count - i < T ? count - i : T, leaves);
                s.added[exchange % backlog].arrive();
                us.sync();
                if (s.failed_before) return;
                bool last = i + T >= count;
                if (number > 0 && (i == middle || (last && i < middle))) {
                    met = decision::decide(a.norms, s.norms, number - 1, chunk, reports);
                    if (us.rank() == 0) {
                        if (met == -2) fail(s);
                        s.stops = met != -1;
                        s.decided.arrive();
                    }
                }
            }
            if (met != -1) return;
            if (a.bands > 0) decision::add_chunk(a.norms, s.norms, number, count, s.leaf);
        }
        int last = (a.sweeps - 1) / chunk;
        decision::decide(a.norms, s.norms, last, a.sweeps - last * chunk, reports);
    }

  private:
    // Waits until a phase is over; false if a wait was in vain. Decided by the whole warp: if lanes left one by one,
    // the others would wait for them at the next shuffle.
    static __device__ __forceinline__ bool comes(const scratch& s, const mbarrier& barrier, u32 phase) {
        constexpr u32 all = 0xffffffffu;
        while (!__all_sync(all, barrier.over(phase))) {
            if (__any_sync(all, load(s.failed))) return false;
        }
        return true;
    }
    static __device__ u32 load(const u32& word) { return *(const volatile u32*)&word; }
    static __device__ void store(u32& word, u32 value) { *(volatile u32*)&word = value; }

    // Combines the columns of the leaves of `count` sweeps, from sweep `first` of the chunk on, in the order of the
    // contract.
    static __device__ __forceinline__ void combine(scratch& s, const last_warps<Norms>& us, u32 exchange, int first,
                                                   int count, int leaves) {
        int lane = us.rank() % 32;
#pragma unroll 2
        for (int i = us.rank() / 32; i < count * leaves; i += Norms) {
            int sweep = i / leaves, leaf = i % leaves;
            const F* columns = s.sums[exchange % backlog][sweep][leaf];
            F total = halve_quarters(columns[lane], columns[lane + 32], columns[lane + 64], columns[lane + 96]);
            if (lane == 0) s.leaf[first + sweep][leaf] = total;
        }
    }
};

}  // namespace crosswarp

// Norms that all PEs add up inside of a kernel, and the decision whether to stop. The host side is
// `engine::cuda::on_chip::plane::StopDecision`.
//
// The stop is decided on in chunks of sweeps. Every block adds its leaves of a chunk to the words of its PE; the last
// block to do so sends them to all PEs. A chunk later, when they have long come, every block of every PE adds up the
// same words, compares the sums as integers with the same threshold, and so comes to the same decision at the same
// sweep: the kernels stop together without asking one another.
//
// Why no part is overwritten before it was read: runs use two sets of parts in turn. A PE sends parts of run k + 2
// when it has ended run k + 1, at whose end it had waited for all PEs' parts of that run; so all had begun it, and
// had read those of run k. (A run that stops early waits for less, and a PE without rows sends nothing that could be
// waited for: the hosts of all PEs synchronise between runs, and no run but the next begins before.)
#pragma once
#include "superaccumulator.cuh"
#include "jacobi/arguments.cuh"
#include "pe.cuh"

namespace crosswarp {

// Sweeps of a chunk.
template <class F> constexpr int chunk_sweeps = sizeof(F) == 4 ? chunk_sweeps_f32 : chunk_sweeps_f64;

// The last `Warps` warps of a block, which meet at a barrier of their own.
template <int Warps> class last_warps {
  public:
    __device__ int rank() const { return threadIdx.x - (blockDim.x - 32 * Warps); }
    __device__ int size() const { return 32 * Warps; }
    __device__ void sync() const { asm volatile("bar.sync 1, %0;" ::"n"(32 * Warps) : "memory"); }
};
template <int Warps> struct those_of_block {
    using type = last_warps<Warps>;
};
template <> struct those_of_block<0> {
    using type = block;
};

// Macros, because a number that comes from a function is held in a register: the kernel of wide units spilled more for
// it and was 5 % slower at 4096² on four GPUs.
#define MY_RANK (Warps ? threadIdx.x - (blockDim.x - 32u * Warps) : threadIdx.x)
#define OUR_SIZE (Warps ? 32u * Warps : blockDim.x)

// `Warps`: the last ones of a block, which do it for the others; 0: the whole block does.
template <class F, int Warps = 0> class stop_decision {
    static constexpr int words = float_format<F>::words, limbs = words - trackers, sweeps = chunk_sweeps<F>;

  public:
    struct scratch {
        u64 words[sweeps][stop_decision::words];
        i32 first;  // sweep of the chunk that meets the threshold
        u32 last_block;
        u32 failed;
    };

    // Adds the block's leaf sums of the `count` sweeps of a chunk, `leaf[sweep][Leaves]` in shared memory, and sends
    // the PE's words if this block is the last to add. All of the threads.
    template <int Leaves>
    static __device__ __forceinline__ void add_chunk(const stop_decision_run<F>& v, scratch& s, int chunk, int count,
                                                   const F (*leaf)[Leaves]) {
        u64* sums = &s.words[0][0];
        for (int i = MY_RANK; i < count * words; i += OUR_SIZE) sums[i] = 0;
        sync();
        for (int i = MY_RANK; i < count * Leaves; i += OUR_SIZE) {
            u64* to = s.words[i / Leaves];
            accumulate(leaf[i / Leaves][i % Leaves], [=](int k, u64 amount) {
                if (amount != 0) atomicAdd(to + k, amount);
            });
        }
        sync();
        u64* mine = v.words + (u64)chunk * sweeps * words;
        for (int i = MY_RANK; i < count * words; i += OUR_SIZE) {
            if (sums[i] != 0) atomicAdd(mine + i, sums[i]);
        }
        sync();
        if (MY_RANK == 0) {
            // Race prevented: the last block must not miss words of the others. The barrier orders the block's
            // additions before this thread's fence, which is cumulative; the last one's fence behind its ticket
            // pairs with theirs before.
            __threadfence();
            s.last_block = atomicAdd(v.tickets + chunk, 1) + 1 == gridDim.x;
            __threadfence();
        }
        sync();
        if (s.last_block) {
            typename those_of_block<Warps>::type b;
            for (int pe = 0; pe < n_pes(); ++pe) put(part(v, chunk, my_pe()), mine, count * words, pe, b);
            b.sync();
            // Release, after the whole block's puts: who sees the number sees the words.
            for (int pe = b.rank(); pe < n_pes(); pe += b.size()) {
                signal(v.arrived + my_pe(), v.before + chunk + 1, signal_op::set, pe);
            }
        }
    }

    // Which of the `count` sweeps of a chunk is the first to meet the threshold, −1 if none; −2 if a wait was in vain.
    // All of the threads; `reports`: writes the sums for the host.
    static __device__ __forceinline__ int decide(const stop_decision_run<F>& v, scratch& s, int chunk, int count,
                                                 bool reports) {
        sync();
        if (MY_RANK == 0) {
            s.first = sweeps;
            s.failed = 0;
        }
        sync();
        for (int pe = MY_RANK; pe < v.pes; pe += OUR_SIZE) {
            // Acquire by some threads, passed on to the others by the barrier.
            if (!signal_wait_until(v.arrived + pe, cmp::ge, v.before + chunk + 1, pe)) s.failed = 1;
        }
        // The lanes wait each for itself; `bar.sync` wants whole warps.
        __syncwarp();
        sync();
        if (s.failed) return -2;
        constexpr int flight = 8;  // words of a thread under way
        for (int first = MY_RANK; first < count * words; first += flight * OUR_SIZE) {
            u64 sum[flight] = {};
            for (int pe = 0; pe < v.pes; ++pe) {
                const u64* from = part(v, chunk, pe);
#pragma unroll
                for (int k = 0; k < flight; ++k) {
                    int i = first + k * OUR_SIZE;
                    if (i < count * words) sum[k] += load_volatile(from + i);
                }
            }
#pragma unroll
            for (int k = 0; k < flight; ++k) {
                int i = first + k * OUR_SIZE;
                if (i >= count * words) break;
                (&s.words[0][0])[i] = sum[k];
                if (reports) v.totals[(u64)chunk * sweeps * words + i] = sum[k];
            }
        }
        sync();
        for (int i = MY_RANK; i < count; i += OUR_SIZE) {
            if (meets(v, s.words[i])) atomicMin(&s.first, i);
        }
        sync();
        int first = s.first;
        if (first == sweeps) return -1;
        if (reports && MY_RANK == 0) *v.stop = (u64)chunk * sweeps + first + 1;
        return first;
    }

  private:
    static __device__ void sync() { typename those_of_block<Warps>::type().sync(); }

    static __device__ u64* part(const stop_decision_run<F>& v, int chunk, int pe) {
        return v.parts + ((u64)chunk * n_pes() + pe) * (sweeps * words);
    }

    static __device__ bool meets(const stop_decision_run<F>& v, const u64* sum) {
        if (sum[limbs + 1] != 0) return false;  // NaN
        if (sum[limbs + 2] != 0) return v.infinite;
        u64 carry = 0;
        bool most = true;
#pragma unroll 1
        for (int i = 0; i < limbs; ++i) {
            u64 low = (sum[i] & 0xffffffffull) + carry;
            u32 digit = (u32)low;
            carry = (sum[i] >> 32) + (low >> 32);
            most = digit == v.digits[i] ? most : digit < v.digits[i];
        }
        return most && carry == 0;
    }
};

#undef MY_RANK
#undef OUR_SIZE

}  // namespace crosswarp

// A whole solve on a line in one kernel: every warp keeps its leaf in registers from the first sweep to the last.
// The host side is `engine::cuda::on_chip::line`.
//
// The sweeps go in passes of up to 32. After each pass comes a barrier of all blocks of all PEs: every warp leaves its
// outermost points for its neighbours, every block adds its norms to the PE's words; then all know the sums of the
// pass's sweeps, take the same decision, and take in their halos. If a sweep inside the pass met the tolerance, the
// pass is made again from its input with as many sweeps as were needed; the input waits in shared memory.
//
// What is shared, and who touches it when. Passes are numbered from 0 over all launches; `parity` is number mod 3.
// 1. `edges[parity]`: a warp writes its own two and its PE's first and last warp the neighbour PE's, before the
//    barrier of the pass; read after it, for the next pass, and again if that is repeated. Written next two barriers
//    later, before which every reader has come to the barrier between.
// 2. `slots[parity][pe]`: the words of a PE. A PE's own are added to by its blocks before the barrier, and read after
//    it. Block 0 clears them after the next barrier, to which all readers have come; the next additions follow the
//    barrier after that. Another PE's are overwritten by that PE's block 0 before it signals.
// 3. `arrived` counts this PE's blocks, `signals[pe]` is the number of barriers another PE has come to. They only grow.
// Order: a block's stores and atomics, its barrier, its first thread's release at `arrived`; block 0's acquire of it,
// its copies to the other PEs, its signals (release at system scope, which is cumulative); acquire by each block's
// first thread, its barrier, its loads past the first-level cache.
#pragma once
#include "jacobi/arguments.cuh"
#include "jacobi/on_chip/line_tile.cuh"
#include "pe.cuh"

namespace crosswarp {

// Sweeps from one barrier to the next.
constexpr int run_depth = line_tile_halo;

template <class F, int Warps> class line_until_stopped {
    using tile = line_tile<F>;
    using format = float_format<F>;
    static constexpr int words = format::words, limbs = words - trackers;
    // Half a limb, so that a block's leaves need no carry, and atomics of 32 bits do.
    static constexpr int pieces = 2 * limbs + trackers;

  public:
    struct scratch {
        F totals[run_depth][Warps];
        u32 pieces[run_depth][line_until_stopped::pieces];
        u64 words[run_depth][line_until_stopped::words];
        // Sweeps of the pass that were needed; sweeps of the next pass, 0: none; whether it is likely to be the last.
        int needed, next;
        bool likely;
    };
    // Dynamic shared memory: the leaves at the beginning of a pass.
    static constexpr int saved_bytes = tile::chunks * Warps * 32 * 16;

    // Blocks have up to `Warps` warps.
    static __device__ __forceinline__ void run(const line_run<F>& m, scratch& s, uint4* saved) {
        // From lane 0: so the compiler knows that the whole warp is together, and guards no shuffle.
        const int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), lane = threadIdx.x & 31;
        const int number = blockIdx.x * (blockDim.x / 32) + warp;
        const i64 first = m.own_start + (i64)number * leaf_points;
        const bool mine = first < m.own_end, alone = n_pes() <= 1;
        const F* from = m.before + (first - m.own_start);
        F* to = m.after + (first - m.own_start);
        saved += threadIdx.x;

        tile t(first, m.points);
        if (mine) t.load(from);
        // The number of the pass, and of the one at whose barrier the halos of its input came.
        u64 pass = m.first_pass, input = pass;
        if (!alone) {
            // Halos from other PEs are not in memory.
            if (mine) leave_edges(m, t, pass, number);
            arrive(m, s, pass, 0);
            if (!await_all(m, s, pass++, 0)) return;
        }
        int made = 0, depth = ::min(m.depth, m.most);
        // Whether the pass is likely to be the last; whether it is made again.
        bool likely = depth == m.most, again = false;
#pragma unroll 1
        for (;; ++pass) {
            if (mine) {
                if (alone && made == 0) {
                    bool there = first + leaf_points + lane < m.own_end + line_tile_halo;
                    t.set_halos(from[lane - line_tile_halo], there ? from[leaf_points + lane] : F(0));
                } else {
                    take_halos(m, t, input, number);
                }
                t.advance(depth, [&](int sweep, F total) { s.totals[sweep][warp] = total; });
            }
            if (again) {
                if (mine) t.store(to);
                made += depth;
                break;
            }
            for (int i = threadIdx.x; i < run_depth * pieces; i += blockDim.x) (&s.pieces[0][0])[i] = 0;
            __syncthreads();
            if (mine) {
                leave_edges(m, t, pass, number);
                if (lane < depth) add(s.pieces[lane], s.totals[lane][warp]);
            }
            arrive(m, s, pass, depth);
            // Perhaps these were the last sweeps: the points are on their way while blocks wait.
            if (mine && likely) t.store(to);
            if (!await_all(m, s, pass, depth)) return;
            decide(m, s, made, depth);
            if (blockIdx.x == 0) {
                if (threadIdx.x == 0) m.result[1] = pass + 1 - m.first_pass;
                for (int i = threadIdx.x; i < s.needed * words; i += blockDim.x) {
                    m.sums[made * words + i] = (&s.words[0][0])[i];
                }
            }
            if (s.needed < depth) {
                // From the input of the pass.
                if (mine && made == 0) t.load(from);
                if (mine && made != 0) t.restore(saved, blockDim.x);
                depth = s.needed;
                again = true;
                continue;
            }
            made += depth;
            if (s.next == 0) {
                if (mine && !likely) t.store(to);
                break;
            }
            depth = s.next;
            likely = s.likely || made + depth == m.most;
            input = pass;
            if (mine) t.save(saved, blockDim.x);
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) m.result[0] = made;
    }

  private:
    // Slot 0 is from the PE on the left, slot 1 from the one on the right, slot 2 + w from warp w.
    static __device__ F* edge(const line_run<F>& m, u64 pass, int slot) {
        const u64 slots = 2 + gridDim.x * (blockDim.x / 32);
        return m.edges + (pass % line_sets * slots + slot) * 2 * line_tile_halo;
    }
    static __device__ bool is_last(const line_run<F>& m, int number) {
        return m.own_start + (i64)(number + 1) * leaf_points >= m.own_end;
    }

    static __device__ __forceinline__ void leave_edges(const line_run<F>& m, const tile& t, u64 pass, int number) {
        F* edges = edge(m, pass, 2 + number);
        t.edges(edges, edges + line_tile_halo);
        // All PEs have as many blocks and warps, so their slots lie where mine do.
        if (number == 0 && m.left >= 0) {
            edges = ptr(edge(m, pass, 1), m.left);
            t.edges(edges, edges + line_tile_halo);
        }
        if (is_last(m, number) && m.right >= 0) {
            edges = ptr(edge(m, pass, 0), m.right);
            t.edges(edges, edges + line_tile_halo);
        }
    }
    // The halos that came at the barrier of `pass`.
    static __device__ __forceinline__ void take_halos(const line_run<F>& m, tile& t, u64 pass, int number) {
        const int lane = threadIdx.x & 31;
        const F* left = edge(m, pass, number == 0 ? 0 : 1 + number) + line_tile_halo;
        const F* right = edge(m, pass, is_last(m, number) ? 1 : 3 + number);
        t.set_halos(load_volatile(left + lane), load_volatile(right + lane));
    }

    // Adds a leaf's sum to the pieces of a sweep.
    static __device__ void add(u32* to, F total) {
        accumulate(total, [=](int i, u64 amount) {
            if (i >= limbs) {
                atomicAdd(to + limbs + i, (u32)amount);
                return;
            }
            u32 low = amount & 0xffff, high = (u32)(amount >> 16);
            if (low != 0) atomicAdd(to + 2 * i, low);
            if (high != 0) atomicAdd(to + 2 * i + 1, high);
        });
    }

    static __device__ int me() { return n_pes() > 0 ? my_pe() : 0; }
    static __device__ int pes() { return n_pes() > 0 ? n_pes() : 1; }
    // The words of `pe`.
    static __device__ u64* slot(const line_run<F>& m, u64 pass, int pe) {
        return m.slots + (pass % line_sets * pes() + pe) * (run_depth * words);
    }

    // Adds this block's sums to its PE's and arrives at the barrier.
    static __device__ __forceinline__ void arrive(const line_run<F>& m, const scratch& s, u64 pass, int depth) {
        u64* to = slot(m, pass, me());
        __syncthreads();
        for (int i = threadIdx.x; i < depth * words; i += blockDim.x) {
            const u32* from = s.pieces[i / words];
            int word = i % words;
            u64 amount = word < limbs ? from[2 * word] + ((u64)from[2 * word + 1] << 16) : from[limbs + word];
            if (amount != 0) atomicAdd(to + i, amount);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(m.arrived) : "memory");
        }
    }

    // Waits until all blocks of all PEs have arrived, and gets the sums. False if a wait was given up.
    static __device__ __forceinline__ bool await_all(const line_run<F>& m, scratch& s, u64 pass, int depth) {
        const u64 passes = pass + 1;
        bool there = true;
        auto wait_here = [&] {
            const u64 expected = passes * gridDim.x;
            u64 seen;
            auto look = [&] {
                asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(m.arrived) : "memory");
                return seen >= expected;
            };
            return spin(look, wait_value, me(), m.arrived, expected, [&] { return seen; });
        };
        if (blockIdx.x == 0 && pes() > 1) {
            if (threadIdx.x == 0) there = wait_here();
            if (!__syncthreads_and(there)) return false;
            const u64* from = slot(m, pass, me());
            for (int pe = 0; pe < pes(); ++pe) {
                if (pe == me()) continue;
                u64* to = ptr(slot(m, pass, me()), pe);
                for (int i = threadIdx.x; i < depth * words; i += blockDim.x) to[i] = load_volatile(from + i);
            }
            __syncthreads();
            for (int pe = threadIdx.x; pe < pes(); pe += blockDim.x) {
                if (pe != me()) signal(m.signals + me(), passes, signal_op::set, pe);
            }
        } else if (threadIdx.x == 0) {
            there = wait_here();
        }
        for (int pe = threadIdx.x; pe < pes(); pe += blockDim.x) {
            if (pe != me()) there &= signal_wait_until(m.signals + pe, cmp::ge, passes, pe);
        }
        if (!__syncthreads_and(there)) return false;
        for (int i = threadIdx.x; i < depth * words; i += blockDim.x) {
            u64 total = 0;
            for (int pe = 0; pe < pes(); ++pe) total += load_volatile(slot(m, pass, pe) + i);
            (&s.words[0][0])[i] = total;
        }
        // The words of the barrier before, which all have left.
        if (blockIdx.x == 0) {
            u64* old = slot(m, pass + 2, me());
            for (int i = threadIdx.x; i < run_depth * words; i += blockDim.x) old[i] = 0;
        }
        __syncthreads();
        return true;
    }

    // Fills in `needed`, `next` and `likely`: the same in all blocks.
    static __device__ __forceinline__ void decide(const line_run<F>& m, scratch& s, int made, int depth) {
        if (threadIdx.x < 32) {
            const int sweep = threadIdx.x;
            bool meets = false;
            float log = 0;
            if (sweep < depth) {
                const u64* limb = s.words[sweep];
                u64 carry = 0;
                u32 high = 0, low = 0, below = 0;
                int top = 0;
                bool more = false;
#pragma unroll 1
                for (int i = 0; i < limbs; ++i) {
                    carry += limb[i];
                    u32 digit = (u32)carry;
                    carry >>= 32;
                    if (digit != m.threshold[i]) more = digit > m.threshold[i];
                    if (digit != 0) {
                        high = digit;
                        low = below;
                        top = i;
                    }
                    below = digit;
                }
                log = 32.0f * top + __log2f((float)high + 0x1p-32f * (float)low);
                bool infinite = limb[limbs + 2] != 0, nan = limb[limbs + 1] != 0;
                meets = !nan && (infinite ? m.allows_infinity != 0 : !more);
            }
            const u32 met = __ballot_sync(~0u, meets);
            // If the sums fall by the same power of the number of sweeps as in the second half of this pass, the
            // stop is so far away.
            const int half = depth / 2 - 1;
            float early = __shfl_sync(~0u, log, half < 0 ? 0 : half), late = __shfl_sync(~0u, log, depth - 1);
            const int left = m.most - made - depth;
            int next = ::min(left, m.depth);
            bool likely = false;
            if (depth >= 4) {
                float now = (float)(m.done + made + depth), then = (float)(m.done + made + half + 1);
                float power = (early - late) / __log2f(now / then);
                float total = now * exp2f((late - m.log_threshold) / power);
                float wanted = ceilf(total - now);
                if (left > 0 && power > 0 && wanted <= (float)next) {
                    next = ::max(1, (int)wanted);
                    likely = true;
                }
            }
            if (threadIdx.x == 0) {
                s.needed = met != 0 ? __ffs(met) : depth;
                s.next = met != 0 ? 0 : next;
                s.likely = likely;
            }
        }
        __syncthreads();
    }
};

// A kernel of whole solves. With `warps` warps there are as many leaves a block as fit into the registers, and a second
// time into shared memory.
#define CROSSWARP_RUN_LINE(name, F, warps)                                                \
    extern "C" __global__ void __launch_bounds__(32 * warps, 1) name(cw::line_run<F> m) { \
        using run = cw::line_until_stopped<F, warps>;                                     \
        __shared__ run::scratch scratch;                                                  \
        extern __shared__ uint4 saved[];                                                  \
        run::run(m, scratch, saved);                                                      \
    }

}  // namespace crosswarp

// The warp level: the verbs on the lanes of one warp, by shuffles.
//
//     cw::warp w;                         // all lanes of this warp that exist
//     float total = w.sum(x);             // valid in every lane
//     float left = w.get(x, w.rank() - 1) // a neighbour's value (any lane of the group)
//
// Every lane of the group must call, with the group's lanes converged or not: each verb names the
// lanes it waits for. Memory ordering: `sync` orders memory among the group's lanes; the other verbs
// exchange registers and order nothing.
#pragma once
#include "base.cuh"

namespace crosswarp {

class warp {
  public:
    // All lanes of this warp that exist: the last warp of a block may be partial.
    __device__ warp() {
        u32 threads = blockDim.x * blockDim.y * blockDim.z;
        u32 first = linear_thread() & ~31u;
        u32 lanes = threads - first;
        mask_ = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    }

    // The lanes that are converged here, e.g. those that took a branch.
    static __device__ warp active() { return warp(__activemask()); }

    // Exactly the lanes of `mask`, all of which must make the same group.
    explicit __device__ warp(u32 mask) : mask_(mask) {}

    __device__ u32 mask() const { return mask_; }
    __device__ int size() const { return __popc(mask_); }
    // This lane's number among the group's lanes.
    __device__ int rank() const { return __popc(mask_ & ((1u << lane()) - 1)); }

    __device__ void sync() const { __syncwarp(mask_); }

    // The value of the lane of rank `from`. Undefined if there is no such rank.
    template <class T> __device__ T get(T value, int from) const {
        int source = mask_ == 0xffffffffu ? from : nth_lane(from);
        u32 mask = mask_;
        return by_words(value, [=](u32 word) { return __shfl_sync(mask, word, source); });
    }

    // The value of the lane of rank `root`, in every lane.
    template <class T> __device__ T broadcast(T value, int root) const { return get(value, root); }

    // All values combined, in every lane: a fixed tree for a whole warp, rank order for a part.
    template <class T, class Op> __device__ T reduce(T value, Op op) const {
        if (mask_ == 0xffffffffu) {
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) {
                T other = by_words(value, [=](u32 word) {
                    return __shfl_xor_sync(0xffffffffu, word, distance);
                });
                // Both partners compute lower ∘ upper, so all lanes get the same bits.
                bool upper = lane() & distance;
                value = upper ? op(other, value) : op(value, other);
            }
            return value;
        }
        T total = get(value, 0);
        for (int i = 1, n = size(); i < n; ++i) total = op(total, get(value, i));
        return total;
    }

    template <class T> __device__ T sum(T value) const { return reduce(value, sum_op()); }
    template <class T> __device__ T min(T value) const { return reduce(value, min_op()); }
    template <class T> __device__ T max(T value) const { return reduce(value, max_op()); }

    static __device__ u32 lane() {
        u32 lane;
        asm("mov.u32 %0, %%laneid;" : "=r"(lane));
        return lane;
    }

    static __device__ u32 linear_thread() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }

  private:
    // The lane number of rank `n`.
    __device__ int nth_lane(int n) const {
        u32 rest = mask_;
        for (int i = 0; i < n; ++i) rest &= rest - 1;
        return __ffs(rest) - 1;
    }

    u32 mask_;
};

}  // namespace crosswarp

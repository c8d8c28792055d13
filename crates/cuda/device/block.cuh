// The block level: the verbs on the threads of one block, through shared memory.
//
//     cw::block b;
//     float total = b.sum(x);   // valid in every thread
//
// Every thread of the block must call, in the same order. Results are valid in every thread. Each
// verb takes 32 elements of static shared memory per type and orders memory as `sync` does.
#pragma once
#include "warp.cuh"

namespace crosswarp {

class block {
  public:
    __device__ int rank() const { return warp::linear_thread(); }
    __device__ int size() const { return blockDim.x * blockDim.y * blockDim.z; }

    // Orders memory among the block's threads.
    __device__ void sync() const { __syncthreads(); }

    // The neighbour's value: shared memory is one address space, so these are plain accesses, to be
    // ordered with `sync`.
    template <class T> __device__ T get(const T* shared) const {
        return load_volatile(shared);
    }
    template <class T> __device__ void put(T* shared, T value) const { *shared = value; }

    // The value of thread `root`, in every thread.
    template <class T> __device__ T broadcast(T value, int root) const {
        __shared__ T slot;
        if (rank() == root) slot = value;
        sync();
        T result = slot;
        // The slot may be written again only when everyone has read it.
        sync();
        return result;
    }

    // All values combined, in every thread; the tree depends on the block's size alone.
    template <class T, class Op> __device__ T reduce(T value, Op op) const {
        __shared__ T of_warp[32];
        value = warp().reduce(value, op);
        int warps = (size() + 31) / 32;
        if (warps == 1) {
            sync();
            return value;
        }
        if (warp::lane() == 0) of_warp[rank() / 32] = value;
        sync();
        // Every warp combines the warps' values for itself: no second trip for the result.
        T total = of_warp[0];
        for (int i = 1; i < warps; ++i) total = op(total, of_warp[i]);
        sync();
        return total;
    }

    template <class T> __device__ T sum(T value) const { return reduce(value, sum_op()); }
    template <class T> __device__ T min(T value) const { return reduce(value, min_op()); }
    template <class T> __device__ T max(T value) const { return reduce(value, max_op()); }
};

}  // namespace crosswarp

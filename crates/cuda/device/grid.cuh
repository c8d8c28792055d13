// The grid level: the verbs on the blocks of one cooperative launch, through global memory.
//
//     extern "C" __global__ void kernel(cw::grid_state* state, ...) {
//         cw::grid g(state);
//         float total = g.sum(x);
//
// One `grid` object per kernel: it knows which of two sets of slots comes next.
// All blocks must be running at once (a cooperative launch checks that). `rank` and `size` count
// blocks. Every thread of every block must call, in the same order; results are valid in every thread.
//
// `state` is `grid_state_bytes(blocks)` bytes of global memory, zero before its first use, used by one
// running grid at a time; it need not be zeroed again.
#pragma once
#include "block.cuh"
#include "layout.cuh"

namespace crosswarp {

class grid {
  public:
    explicit __device__ grid(grid_state* state) : state_(state), uses_(0) {}

    __device__ int rank() const { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
    __device__ int size() const { return gridDim.x * gridDim.y * gridDim.z; }

    // Orders memory among all threads of the grid.
    __device__ void sync() const {
        __syncthreads();
        if (warp::linear_thread() == 0) {
            // One block adds what turns the count over into bit 31, so the counter never needs a
            // reset: all others add 1. (The scheme of the CUDA cooperative groups' grid barrier.)
            u32 add = rank() == 0 ? 0x80000000u - (size() - 1) : 1;
            u32 before, now;
            // Release: what this block wrote (the block barrier above orders its other threads before
            // this one, and release is cumulative) is visible to whoever sees the count.
            asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;"
                         : "=r"(before) : "l"(&state_->arrived), "r"(add) : "memory");
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                             : "=r"(now) : "l"(&state_->arrived) : "memory");
            } while (((before ^ now) & 0x80000000u) == 0);
        }
        __syncthreads();
    }

    // The value that block `root`'s thread 0 passed, in every thread. T: at most 16 bytes.
    template <class T> __device__ T broadcast(T value, int root) {
        T* slot = slots<T>();
        if (rank() == root && warp::linear_thread() == 0) *slot = value;
        sync();
        return load(slot);
    }

    // The values of all threads combined, in every thread: blocks in rank order. T: at most 16 bytes.
    template <class T, class Op> __device__ T reduce(T value, Op op) {
        char* slot = reinterpret_cast<char*>(slots<T>());
        value = block().reduce(value, op);
        if (warp::linear_thread() == 0) *reinterpret_cast<T*>(slot + vector_bytes * rank()) = value;
        sync();
        // Threads read the slots side by side; the tree over them depends on the launch's shape alone,
        // so all blocks get the same bits.
        present<T> mine = {T(), false};
        for (int i = warp::linear_thread(); i < size(); i += block().size()) {
            mine = either(op)(mine, present<T>{load(reinterpret_cast<T*>(slot + vector_bytes * i)), true});
        }
        return block().reduce(mine, either(op)).value;
    }

    template <class T> __device__ T sum(T value) { return reduce(value, sum_op()); }
    template <class T> __device__ T min(T value) { return reduce(value, min_op()); }
    template <class T> __device__ T max(T value) { return reduce(value, max_op()); }

  private:
    // A value that some threads do not have, and an operation on such values.
    template <class T> struct present {
        T value;
        bool there;
    };
    template <class Op> struct either_op {
        Op op;
        template <class T> __device__ present<T> operator()(present<T> a, present<T> b) const {
            if (!a.there) return b;
            if (!b.there) return a;
            return {op(a.value, b.value), true};
        }
    };
    template <class Op> static __device__ either_op<Op> either(Op op) { return {op}; }

    // Two sets, used in turn: a set is written again only after a `sync` that follows its reading.
    template <class T> __device__ T* slots() {
        static_assert(sizeof(T) <= vector_bytes, "a grid slot has 16 bytes");
        char* first = reinterpret_cast<char*>(state_ + 1);
        return reinterpret_cast<T*>(first + vector_bytes * size() * (uses_++ % grid_sets));
    }
    // Past the first-level cache, which other blocks' stores do not reach.
    template <class T> static __device__ T load(const T* slot) {
        return load_volatile(slot);
    }

    grid_state* state_;
    u32 uses_;
};

}  // namespace crosswarp

// The cluster level: the verbs on the blocks of one thread-block cluster, through distributed shared
// memory. Compute capability 9.0 and later.
//
//     __shared__ int mine;
//     cw::cluster c;
//     int neighbour = c.get(&mine, (c.rank() + 1) % c.size());
//
// `rank` and `size` count blocks. `sync`, `reduce` and `broadcast`: every thread of every block of the
// cluster must call, in the same order; results are valid in every thread. `get` and `put` may be
// called by any thread; the peer's block must be running: `sync` once before the first access and
// once after the last (a block that has ended has no shared memory).
#pragma once
#include "block.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

namespace crosswarp {

class cluster {
  public:
    __device__ int rank() const {
        u32 rank;
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        return rank;
    }
    __device__ int size() const {
        u32 size;
        asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
        return size;
    }

    // Orders memory, shared and global, among the cluster's threads: arrive has release and wait has
    // acquire semantics at cluster scope.
    __device__ void sync() const {
        arrive();
        wait();
    }

    // Where block `peer` keeps what this block keeps at `shared` (a generic address).
    template <class T> __device__ T* map(T* shared, int peer) const {
        u64 mapped;
        asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"((u64)shared), "r"(peer));
        return reinterpret_cast<T*>(mapped);
    }
    template <class T> __device__ T get(const T* shared, int peer) const {
        return load_volatile(map(const_cast<T*>(shared), peer));
    }
    template <class T> __device__ void put(T* shared, T value, int peer) const {
        *map(shared, peer) = value;
    }

    // The value that block `root`'s thread 0 passed, in every thread.
    template <class T> __device__ T broadcast(T value, int root) const {
        __shared__ T slot;
        // A block that has not begun has no shared memory, and nobody may write the slot again before everyone has
        // read it.
        sync();
        if (rank() == root && block().rank() == 0) {
            for (int peer = 0; peer < size(); ++peer) put(&slot, value, peer);
        }
        sync();
        return slot;
    }

    // The values of all threads combined, in every thread: blocks in rank order.
    template <class T, class Op> __device__ T reduce(T value, Op op) const {
        __shared__ T of_block[16];
        // As in `broadcast`; the blocks reduce meanwhile.
        arrive();
        value = block().reduce(value, op);
        wait();
        // Thread i of each block tells block i, so the puts go out side by side.
        for (int peer = block().rank(); peer < size(); peer += block().size()) {
            put(&of_block[rank()], value, peer);
        }
        sync();
        T total = of_block[0];
        for (int i = 1; i < size(); ++i) total = op(total, of_block[i]);
        return total;
    }

    template <class T> __device__ T sum(T value) const { return reduce(value, sum_op()); }
    template <class T> __device__ T min(T value) const { return reduce(value, min_op()); }
    template <class T> __device__ T max(T value) const { return reduce(value, max_op()); }

  private:
    // The halves of `sync`. Not .aligned: the lanes of a warp may come here apart.
    __device__ void arrive() const { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
    __device__ void wait() const { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
};

}  // namespace crosswarp

#endif

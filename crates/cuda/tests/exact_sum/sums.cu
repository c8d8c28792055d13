// Sums of an array at each level: exact ones and ordinary ones. Each kernel adds up x[0 … n − 1] and writes the bits
// that all threads have: exact[0] and ordinary[0]; where two threads differ, it counts in `differ`.
#include "pe/exact_sum.cuh"
#include "pe.cuh"

using namespace cw;

namespace {

// What thread `me` of `threads` adds up, exactly and in order. Whole warps, so that all lanes call `add`.
template <class T> struct part {
    exact_accumulator<T> exact;
    T ordinary;

    __device__ part(const T* x, u64 n, u64 me, u64 threads) : ordinary(T(-0.0)) {
        for (u64 first = me - warp::lane(); first < n; first += threads) {
            const u64 i = first + warp::lane();
            const T value = i < n ? x[i] : T(-0.0);
            exact.add(value);
            ordinary += value;
        }
    }
};

// A NaN's payload is the hardware's, and not promised of ordinary sums.
template <class T> __device__ u64 bits_of(T value) { return float_format<T>::to_bits(value); }

// `first`: one thread of the level. Everyone compares with what it wrote.
template <class T, class Level>
__device__ void report(Level& level, bool first, T exact, T ordinary, u64* out, u32* differ) {
    if (first) {
        out[0] = bits_of(exact);
        out[1] = bits_of(ordinary);
    }
    level.sync();
    if (bits_of(exact) != load_volatile(out) || bits_of(ordinary) != load_volatile(out + 1)) atomicAdd(differ, 1);
}

template <class T> __device__ void of_warp(const T* x, u64 n, u64* out, u32* differ) {
    part<T> mine(x, n, warp::lane(), 32);
    warp w;
    report(w, w.rank() == 0, mine.exact.value(), w.sum(mine.ordinary), out, differ);
    // One value per thread.
    if (n <= 32) {
        T value = w.rank() < n ? x[w.rank()] : T(-0.0);
        if (bits_of(exact_sum(w, value)) != load_volatile(out)) atomicAdd(differ, 1);
    }
}

template <class T> __device__ void of_block(const T* x, u64 n, u64* out, u32* differ) {
    block b;
    part<T> mine(x, n, b.rank(), b.size());
    exact_combine(b, mine.exact);
    report(b, b.rank() == 0, mine.exact.value(), b.sum(mine.ordinary), out, differ);
    if (n <= b.size()) {
        T value = b.rank() < n ? x[b.rank()] : T(-0.0);
        if (bits_of(exact_sum(b, value)) != load_volatile(out)) atomicAdd(differ, 1);
    }
}

template <class T> __device__ void of_grid(const T* x, u64 n, u64* out, grid_state* state, u64* words, u32* differ) {
    grid g(state);
    const u64 me = u64(g.rank()) * block().size() + block().rank(), threads = u64(g.size()) * block().size();
    part<T> mine(x, n, me, threads);
    exact_combine(g, mine.exact, words);
    const T sum = mine.exact.value();
    report(g, me == 0, sum, g.sum(mine.ordinary), out, differ);
    // At once again, of words that other blocks still clean up: as many ones as there are threads.
    if (exact_sum(g, T(1), words) != T(threads)) atomicAdd(differ, 1);
}

// This PE's part is x[0 … n − 1]. `symmetric`: words, then this PE's ordinary sum.
template <class T> __device__ void of_pes(const T* x, u64 n, u64* out, u64* symmetric, u32* differ) {
    block b;
    part<T> mine(x, n, b.rank(), b.size());
    exact_combine(b, mine.exact);
    if (!exact_combine<block>(mine.exact, symmetric)) atomicAdd(differ, 1);
    T* ordinary = reinterpret_cast<T*>(symmetric + exact_sum_words);
    const T of_block = b.sum(mine.ordinary);
    if (b.rank() == 0) *ordinary = of_block;
    b.sync();
    if (!sum<block>(ordinary, ordinary, 1)) atomicAdd(differ, 1);
    report(b, b.rank() == 0, mine.exact.value(), load_volatile(ordinary), out, differ);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
template <class T> __device__ void of_cluster(const T* x, u64 n, u64* out, u32* differ) {
    cluster c;
    const u64 me = u64(c.rank()) * block().size() + block().rank(), threads = u64(c.size()) * block().size();
    part<T> mine(x, n, me, threads);
    exact_combine(c, mine.exact);
    const T sum = mine.exact.value();
    report(c, me == 0, sum, c.sum(mine.ordinary), out, differ);
    if (exact_sum(c, T(1)) != T(threads)) atomicAdd(differ, 1);
}
#endif

}  // namespace

#define SUMS(T)                                                                                                     \
    extern "C" __global__ void warp_##T(const T* x, u64 n, u64* out, u32* differ) { of_warp(x, n, out, differ); }   \
    extern "C" __global__ void block_##T(const T* x, u64 n, u64* out, u32* differ) { of_block(x, n, out, differ); } \
    extern "C" __global__ void grid_##T(const T* x, u64 n, u64* out, grid_state* state, u64* words, u32* differ) {  \
        of_grid(x, n, out, state, words, differ);                                                                   \
    }                                                                                                               \
    extern "C" __global__ void pes_##T(const T* x, u64 n, u64* out, u64* symmetric, u32* differ) {                  \
        of_pes(x, n, out, symmetric, differ);                                                                       \
    }
SUMS(float)
SUMS(double)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void cluster_float(const float* x, u64 n, u64* out, u32* differ) {
    of_cluster(x, n, out, differ);
}
extern "C" __global__ void cluster_double(const double* x, u64 n, u64* out, u32* differ) {
    of_cluster(x, n, out, differ);
}
#endif

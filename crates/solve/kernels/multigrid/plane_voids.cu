// The first guess of an array with voids: along each row between its known cells, and between rows where a row has none. Operations
// as in `problem/fill.rs`.
#include "multigrid/arguments.cuh"
#include "multigrid/magnitude.cuh"

namespace crosswarp {

constexpr int void_warps = level_threads / 32;

// The value a fraction step / steps of the way.
template <class F> __device__ __forceinline__ F between(F from, F to, int step, int steps) {
    const double start = double(from), end = double(to);
    return F(start + (end - start) * (double(step) / double(steps)));
}

template <class F> __device__ __forceinline__ bool is_known(const array_with_voids<F>& g, i64 at, F value) {
    const bool known = g.known ? g.known[at] != 0 : !isnan(value);
    return known && !(value == F(g.nodata));
}

// The largest `column` of the threads up to this one, or of those from it on the smallest; and of all threads in `all`. All threads
// of the block call it.
template <bool from_the_right> __device__ __forceinline__ int nearest_column(int column, int& all) {
    __shared__ int of_warp[void_warps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto nearer = [](int a, int b) { return from_the_right ? min(a, b) : max(a, b); };
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const int other = from_the_right ? __shfl_down_sync(0xffffffffu, column, lanes) : __shfl_up_sync(0xffffffffu, column, lanes);
        if (from_the_right ? lane + lanes < 32 : lane >= lanes) column = nearer(column, other);
    }
    // The block's calls before have been read.
    __syncthreads();
    if (lane == (from_the_right ? 0 : 31)) of_warp[warp] = column;
    __syncthreads();
    all = of_warp[0];
    for (int other = 0; other < void_warps; ++other) {
        if (from_the_right ? other > warp : other < warp) column = nearer(column, of_warp[other]);
        all = nearer(all, of_warp[other]);
    }
    return column;
}

// Rows with a known cell; blocks have rows by turns. Of an unknown cell the guess first holds the column of the last known one before
// it.
template <class F> __device__ __forceinline__ void fill_rows(const array_with_voids<F>& g) {
    bool finite = true;
    u64 count = 0;
    for (int y = blockIdx.x; y < g.ny; y += gridDim.x) {
        const i64 row = (i64)y * g.nx;
        u8* kept = g.kept + y * g.pitch;
        int before = -1, all;
        for (int first = 0; first < g.nx; first += level_threads) {
            const int x = first + int(threadIdx.x);
            const bool there = x < g.nx;
            const F value = there ? g.values[row + x] : F(0);
            const bool known = there && is_known(g, row + x, value);
            finite &= !known || isfinite(value);
            count += known;
            const int last = max(before, nearest_column<false>(known ? x : -1, all));
            before = max(before, all);
            if (!there) continue;
            kept[x] = known;
            if (known) g.guess[row + x] = value;
            else *reinterpret_cast<int*>(g.guess + row + x) = last;
        }
        if (threadIdx.x == 0) g.rows[y] = before >= 0;
        if (before < 0) continue;
        int behind = g.nx;
        for (int first = (g.nx - 1) / level_threads * level_threads; first >= 0; first -= level_threads) {
            const int x = first + int(threadIdx.x);
            const bool there = x < g.nx, known = there && kept[x];
            const int next = min(behind, nearest_column<true>(known ? x : g.nx, all));
            behind = min(behind, all);
            if (!there || known) continue;
            const int last = *reinterpret_cast<const int*>(g.guess + row + x);
            const F value = g.values[row + (last < 0 ? next : last)];
            const bool inside = last >= 0 && next < g.nx;
            g.guess[row + x] = inside ? between(value, g.values[row + next], x - last, next - last) : value;
        }
    }
    add_counts(count, g.words);
    if (!finite) atomicMax(g.words + 1, 1ull);
}

// The other rows. Threads have columns, blocks rows by turns.
template <class F> __device__ __forceinline__ void fill_between(const array_with_voids<F>& g) {
    const int x = int(blockIdx.x) * level_threads + int(threadIdx.x);
    for (int y = blockIdx.y; y < g.ny && x < g.nx; y += gridDim.y) {
        if (g.rows[y]) continue;
        const int above = g.nearest[2 * y], below = g.nearest[2 * y + 1];
        const F one = g.guess[(i64)(above < 0 ? below : above) * g.nx + x];
        const bool inside = above >= 0 && below >= 0;
        g.guess[(i64)y * g.nx + x] = inside ? between(one, g.guess[(i64)below * g.nx + x], y - above, below - above) : one;
    }
}

}  // namespace crosswarp

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(cw::level_threads) voids_##name
KERNEL(rows_f32)(const __grid_constant__ cw::array_with_voids<float> g) { cw::fill_rows(g); }
KERNEL(rows_f64)(const __grid_constant__ cw::array_with_voids<double> g) { cw::fill_rows(g); }
KERNEL(between_f32)(const __grid_constant__ cw::array_with_voids<float> g) { cw::fill_between(g); }
KERNEL(between_f64)(const __grid_constant__ cw::array_with_voids<double> g) { cw::fill_between(g); }

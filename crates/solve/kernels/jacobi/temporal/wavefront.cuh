// Several sweeps in one pass over memory: a warp streams down a strip of columns with `T` sweeps in flight.
//
// In step n the warp takes in row y0 + n of the field before the pass (level 0) and computes row y0 + n − t of the
// field after t sweeps (level t), t = 1 … T, from the two rows of level t − 1 it has kept and the one it has
// just made. A lane holds `K` neighbouring columns of every row in registers; columns of the lanes beside
// it come by shuffle. No other warp is waited for in a step: the strip has at least T columns more on each side than it
// owns, and every level is right for one column less.
//
// Each level's squared differences are added per column in row order, a register per column and level;
// every 16 rows they make a leaf of the norm. A leaf is 128 columns wide, and what a warp owns is no multiple of that.
// So warps side by side make a *warp group*: they leave their columns' sums in shared memory, and once all have, each
// combines some of the group's leaves.
#pragma once
#include "async_copy.cuh"
#include "superaccumulator.cuh"
#include "mbarrier.cuh"
#include "jacobi/plane.cuh"

namespace crosswarp {

// 16 bytes of values, moved at once.
template <class F> struct alignas(16) chunk {
    static constexpr int size = 16 / sizeof(F);
    F values[size];
};

template <class F, int T, int K> struct wavefront_shape {
    static_assert(T >= 1 && T <= 8, "combine() has places for 8 levels");
    static_assert(K % chunk<F>::size == 0, "lanes begin on 16 bytes");
    // Whole lanes on each side that are not owned.
    static constexpr int halo_lanes = (T + K - 1) / K, halo = K * halo_lanes;
    static constexpr int columns = 32 * K, own = columns - 2 * halo;
    static_assert(halo <= pad, "the halo is stored");
    // Whole leaves that a warp group owns.
    __host__ __device__ static constexpr int leaves(int warps) { return own * warps / leaf_columns; }
    // Distance of two levels' sums in shared memory: eight lanes that read at once read different banks.
    __host__ __device__ static constexpr int sums_pitch(int warps) { return leaves(warps) * leaf_columns + 16; }
    // What a block of so many warps has in shared memory.
    template <int Warps> struct alignas(16) scratch {
        static_assert(2 * sums_pitch(Warps / 2) <= sums_pitch(Warps) && 4 * sums_pitch(Warps / 4) <= sums_pitch(Warps),
                      "smaller groups have room where a large one has");
        F rows[Warps][wavefront_ring][columns];
        // For each warp group the sums of two leaves, one above the other: while the upper one is combined, the lower
        // begins.
        F sums[2 * T * sums_pitch(Warps)];
        u64 words[Warps][T][float_format<F>::words];
        // Of each warp group: phase l is over when all lanes of its warps have left their sums of leaf l there.
        mbarrier left[Warps];
    };
};

// What a warp of a group does. The same in all lanes, and the compiler should know: see `pass`.
struct strip {
    i32 group, warp, warps;  // the group's first warp in the block; this one in the group; how many they are
    i32 x, y0, y1;          // the group's first column; its rows. Both begin on a leaf.
};

template <class F, int T, int K, int Warps, bool Fixed, bool Source> class wavefront {
    using shape = wavefront_shape<F, T, K>;
    using scratch = typename shape::template scratch<Warps>;
    static constexpr u32 all = 0xffffffffu;
    static constexpr int chunks = K / chunk<F>::size;
    // Rows of level 0 that are on their way when a step begins.
    static constexpr int ahead = wavefront_ring - 1;

    const band<F>& g_;
    scratch& s_;
    const strip at_;
    const int lane_, depth_;
    // This warp's first owned column, and how many rows it owns.
    const int x0_, rows_;
    // Level t's rows n − t − 2 and n − t − 1 of step n.
    F up_[T][K], centre_[T][K];
    F sum_[T][K];
    // Bit t of element c: whether column c's cell in row n − t keeps its value.
    u32 held_[Fixed ? K : 1];
    // Whether some of the warp's columns are.
    bool any_outer_;
    // Whether this lane's columns are owned.
    bool owns_;
    // The ring of rows; where in it the next three are.
    char* ring_;
    u32 slot_;
    // This lane's parts of the next row to fetch and of row n − T to put out, and where its sums go.
    const char* fetching_;
    char* putting_;
    chunk<F>* leaving_;

  public:
    // Makes `depth` ≤ T sweeps.
    __device__ __forceinline__ wavefront(const band<F>& g, scratch& s, strip at, int depth)
        : g_(g), s_(s), at_(at), lane_(threadIdx.x & 31), depth_(depth), x0_(at.x + at.warp * shape::own),
          rows_(at.y1 - at.y0) {
#pragma unroll
        for (int t = 0; t < T; ++t) {
#pragma unroll
            for (int c = 0; c < K; ++c) up_[t][c] = centre_[t][c] = sum_[t][c] = F(0);
        }
#pragma unroll
        for (int c = 0; c < (Fixed ? K : 1); ++c) held_[c] = 0;
        any_outer_ = x0_ - shape::halo <= 0 || x0_ - shape::halo + shape::columns >= g.nx;
        // Behind the group's leaves the last warp owns nothing.
        int own = min(shape::own, shape::leaves(at.warps) * leaf_columns - at.warp * shape::own);
        int mine = (lane_ - shape::halo_lanes) * K;
        owns_ = mine >= 0 && mine < own;
        ring_ = (char*)s.rows[at.group + at.warp];
        slot_ = 0;
        fetching_ = (const char*)(g.before + g.at(x0_ - shape::halo, at.y0 - T)) + 16 * lane_;
        putting_ = (char*)(g.after + g.at(column(0), at.y0 - 2 * T));
        leaving_ = (chunk<F>*)(group_sums(0, 0) + at.warp * shape::own + mine);
        u64* words = &s.words[at.group + at.warp][0][0];
        for (int i = lane_; i < T * float_format<F>::words; i += 32) words[i] = 0;
        __syncwarp();
    }

    // All sweeps of the strip, and their words added to the band's.
    __device__ __forceinline__ void run() {
        // Three steps at a time; up to two more than needed do no harm.
        const int leaves = (rows_ + leaf_rows - 1) / leaf_rows, last = leaves * leaf_rows + T;
        // In the first and last rows of a grid, some levels' rows are fixed or do not count.
        const int first_plain = depth_ < T ? last : T + 1 - at_.y0, last_plain = min(last, g_.ny - 3 - at_.y0);
#pragma unroll
        for (int row = 0; row < ahead; ++row) fetch(row);
        int n = -T;
#pragma unroll 1
        while (n < last) {
            if (n < first_plain || n >= last_plain) {
                steps<true, true>(n);
            } else if (any_outer_ && !g_.wrap_x) {
#pragma unroll 1
                do steps<false, true>(n);
                while (n < last_plain);
            } else {
#pragma unroll 1
                do steps<false, false>(n);
                while (n < last_plain);
            }
        }
        combine(leaves);
        copy_wait<0>();
        __syncwarp();
        const u64* words = &s_.words[at_.group + at_.warp][0][0];
        for (int i = lane_; i < T * float_format<F>::words; i += 32) {
            if (words[i] != 0) atomicAdd(g_.words + i, words[i]);
        }
    }

  private:
    __device__ int column(int c) const { return x0_ - shape::halo + lane_ * K + c; }

    // Whether column c does not count, because it is fixed, a ghost or outside of the grid.
    __device__ bool outer(int c) const { return (u32)(column(c) - 1) >= (u32)(g_.nx - 2); }

    // Three steps, after which every row is back in its registers. More code would not stay in the instruction cache.
    template <bool Rows, bool Columns> __device__ __forceinline__ void steps(int& n) {
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            step<Rows, Columns>(i, n);
            // In the first T steps of a leaf the levels end the leaf above.
            if ((u32)n % leaf_rows < T) leave((u32)n % leaf_rows, n / leaf_rows);
            ++n;
        }
        slot_ ^= 3 * row_bytes;
        // Late in the next leaf the other warps have most likely left theirs.
        if ((u32)n % leaf_rows >= leaf_rows - 3 && n > leaf_rows) combine(n / leaf_rows);
    }

    static constexpr u32 row_bytes = shape::columns * sizeof(F);

    // The ring's row `row` from the three next on; negative: before them.
    __device__ __forceinline__ chunk<F>* ring_row(int row) const {
        static_assert(wavefront_ring == 6, "row 3 is row −3");
        return (chunk<F>*)(ring_ + (row >= 0 && row < 3 ? slot_ : slot_ ^ 3 * row_bytes) + (row + 6) % 3 * row_bytes);
    }

    // Starts the next row of level 0 on its way to `row` of the ring, lanes side by side.
    __device__ __forceinline__ void fetch(int row) {
#pragma unroll
        for (int i = 0; i < chunks; ++i) copy_async(ring_row(row) + 32 * i + lane_, fetching_ + 512 * i);
        copy_commit();
        fetching_ += g_.pitch * sizeof(F);
    }

    // Step n, number i of three. Rows: some levels' rows are fixed or do not count. Columns: some columns are fixed.
    template <bool Rows, bool Columns> __device__ __forceinline__ void step(int i, int n) {
        F left[T], right[T];
#pragma unroll
        for (int t = 0; t < T; ++t) {
            left[t] = __shfl_up_sync(all, centre_[t][K - 1], 1);
            right[t] = __shfl_down_sync(all, centre_[t][0], 1);
        }
        // The row has arrived when all but the last ahead − 1 have. If a lane reads what others have copied, for all
        // only after a barrier, which is also what lets the row of the step before be copied over.
        copy_wait<ahead - 1>();
        if constexpr (chunks > 1) __syncwarp();
        F in[K];
#pragma unroll
        for (int c = 0; c < K; c += chunk<F>::size) {
            chunk<F> part = ring_row(i)[lane_ * chunks + c / chunk<F>::size];
#pragma unroll
            for (int j = 0; j < chunk<F>::size; ++j) in[c + j] = part.values[j];
        }
        fetch(i - 1);
        if constexpr (Fixed) {
            const u8* fixed = g_.fixed + g_.at(column(0), at_.y0 + n);
#pragma unroll
            for (int c = 0; c < K; ++c) held_[c] = held_[c] << 1 | (u32)(fixed[c] != 0);
        }
#pragma unroll
        for (int t = 0; t < T; ++t) {
            F* up = up_[t];
            F* centre = centre_[t];
            int y = at_.y0 + n - t - 1;
            bool moves = true, counts = true;
            if constexpr (Rows) {
                bool inner = y >= 1 && y <= g_.ny - 2;
                moves = (inner || g_.wrap_y) && t < depth_;
                counts = inner && n - t - 1 < rows_;
            }
            F made[K];
#pragma unroll
            for (int c = 0; c < K; ++c) {
                F l = c == 0 ? left[t] : centre[c - 1];
                F r = c == K - 1 ? right[t] : centre[c + 1];
                F total = ((r + l) + in[c]) + up[c];
                if constexpr (Source) total = total - source(y, c);
                F now = F(0.25) * total;
                if constexpr (Rows) now = moves ? now : centre[c];
                if constexpr (Columns) now = outer(c) & !g_.wrap_x ? centre[c] : now;
                if constexpr (Fixed) now = (held_[c] >> (t + 1) & 1) ? centre[c] : now;
                F difference = now - centre[c];
                F square = difference * difference;
                if constexpr (Rows) {
                    if (counts) sum_[t][c] += square;
                } else {
                    sum_[t][c] += square;
                }
                made[c] = now;
            }
#pragma unroll
            for (int c = 0; c < K; ++c) {
                up[c] = centre[c];
                centre[c] = in[c];
                in[c] = made[c];
            }
        }
        put_out(in, n - T);
    }

    __device__ F source(int y, int c) const {
        return y >= g_.first ? g_.source[g_.at(column(c), y)] : F(0);
    }

    // Writes the next row, number `row` of the strip's, if it is owned.
    __device__ __forceinline__ void put_out(const F (&values)[K], int row) {
        if (owns_ && (u32)row < (u32)rows_) put((chunk<F>*)putting_, values);
        putting_ += g_.pitch * sizeof(F);
    }

    __device__ __forceinline__ static void put(chunk<F>* to, const F (&values)[K]) {
#pragma unroll
        for (int c = 0; c < K; c += chunk<F>::size) {
            chunk<F> part;
#pragma unroll
            for (int j = 0; j < chunk<F>::size; ++j) part.values[j] = values[c + j];
            to[c / chunk<F>::size] = part;
        }
    }

    __device__ __forceinline__ int groups_before() const { return at_.group / at_.warps; }

    // The sums of all the group's columns of level t + 1 in leaf `leaf`.
    __device__ __forceinline__ F* group_sums(int leaf, int t) const {
        return s_.sums + (groups_before() * 2 * T + (leaf & 1) * T + t) * shape::sums_pitch(at_.warps);
    }

    // Leaves the column sums of level `level` + 1, which are those of leaf `leaf` − 1, and begins anew.
    //
    // This overwrites leaf − 3's. All warps have combined their share of it: this warp has waited in `combine` until
    // they had left leaf − 2, which each does after that. The barrier orders their reads before, as it does their
    // stores.
    __device__ __forceinline__ void leave(int level, int leaf) {
#pragma unroll
        for (int t = 0; t < T; ++t) {
            if (t != level) continue;
            if (any_outer_) {
#pragma unroll
                for (int c = 0; c < K; ++c) sum_[t][c] = outer(c) ? F(0) : sum_[t][c];
            }
            if (owns_) {
                put(leaving_ + ((leaf & 1) * T + t) * (shape::sums_pitch(at_.warps) / chunk<F>::size), sum_[t]);
            }
#pragma unroll
            for (int c = 0; c < K; ++c) sum_[t][c] = F(-0.0);
        }
        // Before leaf 0 there is none.
        if (level == T - 1 && leaf > 0) s_.left[groups_before()].arrive();
    }

    // Waits until the group's warps have left the sums of leaf `leaf` − 1; combines this warp's share of its leaves, of
    // all levels, and adds them to the words. Four lanes a leaf.
    __device__ __forceinline__ void combine(int leaf) {
        // No warp is further on than the next phase: it is over only when this warp has left its sums of it, too.
        const mbarrier& left = s_.left[groups_before()];
        while (!__all_sync(all, left.over(leaf - 1))) {
        }
        int t = lane_ / 4, part = lane_ % 4;
#pragma unroll 1
        for (int i = at_.warp; i < shape::leaves(at_.warps); i += at_.warps) {
            F total[4];
            halved<8>(total, group_sums(leaf, t < T ? t : 0) + i * leaf_columns + 4 * part);
            F sum = halve_side_by_side<4, 4>(total);
            if (part == 0 && t < T) {
                u64* words = s_.words[at_.group + at_.warp][t];
                accumulate(sum, [=](int i, u64 amount) { words[i] += amount; });
            }
        }
    }

    // Four neighbouring columns, and those 16, 32, … further on (N in all), added by halving.
    template <int N> __device__ static void halved(F (&total)[4], const F* from) {
        if constexpr (N == 1) {
#pragma unroll
            for (int c = 0; c < 4; c += chunk<F>::size) {
                chunk<F> part = *(const chunk<F>*)(from + c);
#pragma unroll
                for (int j = 0; j < chunk<F>::size; ++j) total[c + j] = part.values[j];
            }
        } else {
            F right[4];
            halved<N / 2>(total, from);
            halved<N / 2>(right, from + leaf_columns / N);
#pragma unroll
            for (int c = 0; c < 4; ++c) total[c] = total[c] + right[c];
        }
    }
};

}  // namespace crosswarp

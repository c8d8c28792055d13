// Several sweeps in one pass over memory: a warp streams down a strip of columns with `T` sweeps in flight.
//
// In step r the warp takes in row r of the field before the pass (level 0) and computes row r − t of the
// field after t sweeps (level t), t = 1 … T, from the two rows of level t − 1 it has kept and the one it has
// just made. A lane holds `K` neighbouring columns of every row in registers; columns of the lanes beside
// it come by shuffle. No other warp is waited for: the strip has 16 columns more on each side than it owns,
// and every level is right for one column less.
//
// Each level's squared differences are added per column in row order, a register per column and level;
// every 16 rows they make a leaf of the norm.
#pragma once
#include "async_copy.cuh"
#include "plane.cuh"
#include "superaccumulator.cuh"

namespace crosswarp {

template <class F, int T, int K> struct wavefront_shape {
    static_assert(T >= 1 && T <= 10, "levels end their leaves in different steps of a leaf's first ones");
    // The first steps of a leaf, in which the levels end the leaf above; three times as many remain or a
    // multiple of three: in three steps every row of a level has been in each of its places.
    static constexpr int first_steps = T <= 4 ? 4 : T <= 7 ? 7 : 10;
    static constexpr int columns = 32 * K, own = columns - 2 * pad, leaves = own / leaf_columns;
    static_assert(own % leaf_columns == 0, "whole leaves");
    // Rows under way from memory.
    static constexpr int ring = 4;
    // Distance of the levels' sums in shared memory: lanes of different leaves read different banks.
    static constexpr int sums_pitch = leaf_columns + 8;

    // What a warp needs in shared memory.
    struct alignas(16) scratch {
        F rows[ring][columns];
        F out[columns];
        F sums[T * leaves][sums_pitch];
        u64 words[T][float_format<F>::words];
    };
};

template <class F, int T, int K, bool Fixed, bool Source> class wavefront {
    using shape = wavefront_shape<F, T, K>;
    using scratch = typename shape::scratch;
    static constexpr u32 all = 0xffffffffu;

    const band<F>& g_;
    scratch& s_;
    const int lane_, x0_, y0_, y1_, depth_;
    // Level t's rows r − t − 2 and r − t − 1 of step r.
    F up_[T][K], centre_[T][K];
    F sum_[T][K];
    // Bit t of element c: whether column c's cell in row r − t keeps its value.
    u32 held_[Fixed ? K : 1];
    // Whether column c is fixed.
    bool held_column_[K];
    // This lane's parts of the next row to fetch and to put out.
    const char* fetching_;
    char* putting_;

  public:
    // Owns columns x0 … x0 + own − 1 and rows y0 … y1 − 1; both start on a leaf. Makes `depth` ≤ T sweeps.
    __device__ __forceinline__ wavefront(const band<F>& g, scratch& s, int x0, int y0, int y1, int depth)
        : g_(g), s_(s), lane_(threadIdx.x & 31), x0_(x0), y0_(y0), y1_(y1), depth_(depth) {
#pragma unroll
        for (int t = 0; t < T; ++t) {
#pragma unroll
            for (int c = 0; c < K; ++c) up_[t][c] = centre_[t][c] = sum_[t][c] = F(0);
        }
#pragma unroll
        for (int c = 0; c < (Fixed ? K : 1); ++c) held_[c] = 0;
#pragma unroll
        for (int c = 0; c < K; ++c) held_column_[c] = !g.wrap_x && (column(c) <= 0 || column(c) >= g.nx - 1);
        fetching_ = (const char*)(g.before + g.at(x0 - pad, y0 - T)) + 16 * lane_;
        putting_ = (char*)(g.after + g.at(x0, y0)) + 16 * lane_;
        for (int i = lane_; i < T * float_format<F>::words; i += 32) (&s_.words[0][0])[i] = 0;
        __syncwarp();
    }

    // All sweeps of the strip, and their words added to the band's.
    __device__ __forceinline__ void run() {
        int r = y0_ - T;
#pragma unroll
        for (int ahead = 0; ahead < shape::ring - 1; ++ahead) fetch(r + ahead);
        bool fixed_column = false;
#pragma unroll
        for (int c = 0; c < K; ++c) fixed_column |= held_column_[c];
        fixed_column = __any_sync(all, fixed_column);
        // In the first and last rows of a grid, some levels' rows are fixed or do not count.
        auto special = [&](int row) { return row <= T || row + leaf_rows > g_.ny || depth_ < T; };
#pragma unroll 1
        for (; r < y0_; ++r) {
            if (special(y0_ - T)) {
                step<true, true>(r, false);
            } else if (fixed_column) {
                step<false, true>(r, false);
            } else {
                step<false, false>(r, false);
            }
        }
#pragma unroll 1
        for (;; r += leaf_rows) {
            if (special(r)) {
                leaf<true, true>(r);
            } else if (fixed_column) {
                leaf<false, true>(r);
            } else {
                leaf<false, false>(r);
            }
            if (r >= y1_) break;
        }
        copy_wait<0>();
        __syncwarp();
        for (int i = lane_; i < T * float_format<F>::words; i += 32) {
            u64 word = (&s_.words[0][0])[i];
            if (word != 0) atomicAdd(g_.words + i, word);
        }
    }

  private:
    __device__ int column(int c) const { return x0_ - pad + lane_ * K + c; }

    // The 16 steps from row r on. In the first T the levels end the leaf above; after the strip's last
    // leaf there are only these.
    template <bool Rows, bool Columns> __device__ __forceinline__ void leaf(int r) {
#pragma unroll
        for (int i = 0; i < shape::first_steps; ++i) {
            // Step i puts out row r + i − T.
            bool puts = i < T ? r > y0_ && (!Rows || r + i - T < y1_) : r + i - T < y1_;
            step<Rows, Columns>(r + i, puts);
            if (i < T) dump(i);
        }
        if (r > y0_) combine();
        if (r >= y1_) return;
#pragma unroll 3
        for (int i = shape::first_steps; i < leaf_rows; ++i) step<Rows, Columns>(r + i, !Rows || r + i - T < y1_);
    }

    // Starts row y of level 0, the next one, on its way.
    __device__ __forceinline__ void fetch(int y) {
        char* to = (char*)s_.rows[(u32)y % shape::ring] + 16 * lane_;
        constexpr int chunks = shape::columns * sizeof(F) / 16;
#pragma unroll
        for (int i = 0; i < chunks; i += 32) {
            if (i + 32 <= chunks || i + lane_ < chunks) copy_async(to + 16 * i, fetching_ + 16 * i);
        }
        copy_commit();
        fetching_ += g_.pitch * sizeof(F);
    }

    // Rows: some levels' rows are fixed or do not count. Columns: some columns are fixed. Puts out row r − T if
    // it is owned.
    template <bool Rows, bool Columns> __device__ __forceinline__ void step(int r, bool puts) {
        // Row r has arrived when all but the last ring − 2 copies have; for all lanes after the barrier,
        // which is also what lets the row of the step before and the row put out in it be overwritten.
        copy_wait<shape::ring - 2>();
        __syncwarp();
        fetch(r + shape::ring - 1);
        F in[K];
        const F* row = s_.rows[(u32)r % shape::ring] + lane_ * K;
#pragma unroll
        for (int c = 0; c < K; ++c) in[c] = row[c];
        if constexpr (Fixed) {
            const u8* fixed = g_.fixed + g_.at(column(0), r);
#pragma unroll
            for (int c = 0; c < K; ++c) held_[c] = held_[c] << 1 | (u32)(fixed[c] != 0);
        }
#pragma unroll
        for (int t = 0; t < T; ++t) {
            F* up = up_[t];
            F* centre = centre_[t];
            int y = r - t - 1;
            bool moves = true, counts = true;
            if constexpr (Rows) {
                bool inner = y >= 1 && y <= g_.ny - 2;
                moves = (inner || g_.wrap_y) && t < depth_;
                counts = inner && y < y1_;
            }
            F left = __shfl_up_sync(all, centre[K - 1], 1);
            F right = __shfl_down_sync(all, centre[0], 1);
            F made[K];
#pragma unroll
            for (int c = 0; c < K; ++c) {
                F l = c == 0 ? left : centre[c - 1];
                F rr = c == K - 1 ? right : centre[c + 1];
                F total = ((rr + l) + in[c]) + up[c];
                if constexpr (Source) total = total - source(y, c);
                F now = F(0.25) * total;
                if constexpr (Rows) now = moves ? now : centre[c];
                if constexpr (Columns) now = held_column_[c] ? centre[c] : now;
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
        if (puts) put_out(in);
    }

    __device__ F source(int y, int c) const {
        return y >= g_.first ? g_.source[g_.at(column(c), y)] : F(0);
    }

    // Writes the owned columns of the next row: through shared memory, so that lanes write side by side.
    __device__ __forceinline__ void put_out(const F (&values)[K]) {
#pragma unroll
        for (int c = 0; c < K; ++c) s_.out[lane_ * K + c] = values[c];
        __syncwarp();
        constexpr int chunks = shape::own * sizeof(F) / 16;
        const uint4* from = (const uint4*)(s_.out + pad);
#pragma unroll
        for (int i = 0; i < chunks; i += 32) *(uint4*)(putting_ + 16 * i) = from[i + lane_];
        putting_ += g_.pitch * sizeof(F);
    }

    // Leaves the column sums of level t + 1 in shared memory and begins anew.
    __device__ __forceinline__ void dump(int t) {
#pragma unroll
        for (int c = 0; c < K; ++c) {
            int x = column(c), mine = x - x0_;
            if (mine >= 0 && mine < shape::own) {
                bool counts = x >= 1 && x <= g_.nx - 2;
                s_.sums[t * shape::leaves + mine / leaf_columns][mine % leaf_columns] = counts ? sum_[t][c] : F(0);
            }
            sum_[t][c] = F(-0.0);
        }
    }

    // Combines the columns of all levels' leaves and adds the leaves to the words. Eight lanes a leaf.
    __device__ __forceinline__ void combine() {
        __syncwarp();
#pragma unroll 1
        for (int first = 0; first < T * shape::leaves; first += 4) {
            int leaf = first + lane_ / 8, part = lane_ % 8;
            bool there = leaf < T * shape::leaves;
            F total = there ? halved<16>(s_.sums[leaf], part) : F(0);
            total = total + __shfl_xor_sync(all, total, 4);
            total = total + __shfl_xor_sync(all, total, 2);
            total = total + __shfl_xor_sync(all, total, 1);
            // One leaf of a level at a time: they have the level's words in common.
#pragma unroll
            for (int turn = 0; turn < shape::leaves; ++turn) {
                if (there && part == 0 && leaf % shape::leaves == turn) {
                    u64* words = s_.words[leaf / shape::leaves];
                    accumulate(total, [=](int i, u64 amount) { words[i] += amount; });
                }
                __syncwarp();
            }
        }
    }

    // The columns j, j + 128 / N, j + 2 · 128 / N, … (N of them) added by halving.
    template <int N> __device__ static F halved(const F* sums, int j) {
        if constexpr (N == 1) {
            return sums[j];
        } else {
            return halved<N / 2>(sums, j) + halved<N / 2>(sums, j + leaf_columns / N);
        }
    }
};

}  // namespace crosswarp

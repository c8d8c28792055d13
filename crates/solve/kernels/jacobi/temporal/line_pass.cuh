// Many sweeps of the line in one pass over memory: a warp holds its points, and 64 more on each side, in
// registers.
//
// A leaf lies across `lanes` lanes: row r (of 16) and column c of a lane are point 128 r + W l + c of it, so
// that a lane adds up its columns of the norm in the leaf's own order. The last of a row is the neighbour of
// the first of the next. With W = 8 a warp has two leaves, with W = 4 one.
#pragma once
#include "jacobi/line.cuh"

namespace crosswarp {

template <class F, int W, int Warps> class line_pass {
    static constexpr u32 all = 0xffffffffu;
    static constexpr int rows = leaf_points / leaf_columns;
    static constexpr int lanes = leaf_columns / W, leaves = 32 / lanes;
    static constexpr int word_count = float_format<F>::words;

  public:
    struct scratch {
        F sums[line_pass_halo][Warps * leaves];
        u64 words[line_pass_halo][word_count];
    };

    static __device__ __forceinline__ void run(const segment<F>& g, scratch& s, int depth) {
        int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
        i64 first = g.own_start + ((i64)blockIdx.x * Warps + warp) * (leaves * leaf_points);
        for (int i = threadIdx.x; i < line_pass_halo * word_count; i += 32 * Warps) (&s.words[0][0])[i] = 0;
        for (int i = threadIdx.x; i < line_pass_halo * Warps * leaves; i += 32 * Warps) (&s.sums[0][0])[i] = F(0);
        __syncthreads();
        if (first < g.own_end) {
            // A fixed point that is not the warp's first or last takes a look at every point.
            bool ends_inside = first + leaves * leaf_points + line_pass_halo >= g.points &&
                               first + leaves * leaf_points != g.points;
            if (ends_inside) {
                line_pass(g, s, first, warp, lane).template advance<true>(depth);
            } else {
                line_pass(g, s, first, warp, lane).template advance<false>(depth);
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < depth * Warps * leaves; i += 32 * Warps) {
            int sweep = i / (Warps * leaves);
            u64* to = s.words[sweep];
            accumulate(s.sums[sweep][i % (Warps * leaves)], [=](int k, u64 amount) {
                if (amount != 0) atomicAdd(to + k, amount);
            });
        }
        __syncthreads();
        for (int i = threadIdx.x; i < depth * word_count; i += 32 * Warps) {
            u64 word = (&s.words[0][0])[i];
            if (word != 0) atomicAdd(g.words + i, word);
        }
    }

  private:
    const segment<F>& g_;
    scratch& s_;
    const int lane_, warp_, column_;
    // The first point of this lane's leaf, and whether it is this PE's.
    const i64 leaf_;
    const bool mine_;
    // The lanes beside this one, around the leaf.
    const int before_, behind_;
    const bool head_, tail_;
    // Points up to and from these, in the leaf's numbering, are fixed or lie beyond the line.
    const int line_start_, line_end_;
    // Of the halos a lane has two neighbouring points.
    const i64 left_point_, right_point_;
    const bool first_fixed_, last_fixed_;
    F u_[rows][W], left_halo_[2], right_halo_[2];

    __device__ bool fixed(int x) const { return x <= line_start_ || x >= line_end_; }

    __device__ __forceinline__ line_pass(const segment<F>& g, scratch& s, i64 first, int warp, int lane)
        : g_(g), s_(s), lane_(lane), warp_(warp), column_(lane % lanes), leaf_(first + lane / lanes * leaf_points),
          mine_(leaf_ < g.own_end), before_((lane & ~(lanes - 1)) | ((lane - 1) & (lanes - 1))),
          behind_((lane & ~(lanes - 1)) | ((lane + 1) & (lanes - 1))), head_(column_ == 0),
          tail_(column_ == lanes - 1), line_start_((int)max(-leaf_, (i64)-leaf_points * 4)),
          line_end_((int)min(g.points - 1 - leaf_, (i64)leaf_points * 4)),
          left_point_(first - line_pass_halo + 2 * lane), right_point_(first + leaves * leaf_points + 2 * lane),
          first_fixed_(lane == 0 && fixed(0)), last_fixed_(lane == 31 && fixed(leaf_points - 1)) {
        const F* from = g.before + (leaf_ - g.own_start) + column_ * W;
        const i64 stored = g.own_end + line_pass_halo - leaf_ - column_ * W;
#pragma unroll
        for (int r = 0; r < rows; ++r) load(u_[r], from + r * leaf_columns, stored - r * leaf_columns);
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            left_halo_[c] = g.before[left_point_ + c - g.own_start];
            bool there = right_point_ + c < g.own_end + line_pass_halo;
            right_halo_[c] = there ? g.before[right_point_ + c - g.own_start] : F(0);
        }
    }

    // Care: points 0 and N − 1 may be anywhere; else only the warp's first and last point may be fixed.
    template <bool Care> __device__ __forceinline__ void advance(int depth) {
        int sweep = 0;
        if constexpr (!Care) {
            // Forwards and back: every point then moves by one register and returns, without copies.
#pragma unroll 1
            for (; sweep + 1 < depth; sweep += 2) {
                advance_once<false, false>(sweep);
                advance_once<false, true>(sweep + 1);
            }
        }
#pragma unroll 1
        for (; sweep < depth; ++sweep) advance_once<Care, false>(sweep);
        if (mine_) {
            F* to = g_.after + (leaf_ - g_.own_start) + column_ * W;
            const i64 own = g_.own_end - leaf_ - column_ * W;
#pragma unroll
            for (int r = 0; r < rows; ++r) store(to + r * leaf_columns, u_[r], own - r * leaf_columns);
        }
    }

    template <bool Care, bool Backwards> __device__ __forceinline__ void advance_once(int sweep) {
        // What comes from beyond: for the head_ of each leaf_ the point before_ it, for the tail_ the one behind_.
        F give_left = lane_ == 31 ? left_halo_[1] : u_[rows - 1][W - 1];
        F give_right = lane_ == 0 ? right_halo_[0] : u_[0][0];
        F from_left = __shfl_sync(all, give_left, (lane_ - 1) & 31);
        F from_right = __shfl_sync(all, give_right, (lane_ + 1) & 31);
        F old_first = u_[0][0], old_last = u_[rows - 1][W - 1];
        {
            // The halos, two points a lane_.
            F first_own = __shfl_sync(all, old_first, 0), last_own = __shfl_sync(all, old_last, 31);
            F l0 = __shfl_up_sync(all, left_halo_[1], 1), l1 = __shfl_down_sync(all, left_halo_[0], 1);
            F r0 = __shfl_up_sync(all, right_halo_[1], 1), r1 = __shfl_down_sync(all, right_halo_[0], 1);
            l1 = lane_ == 31 ? first_own : l1;
            r0 = lane_ == 0 ? last_own : r0;
            F a = F(0.5) * (l0 + left_halo_[1]), b = F(0.5) * (left_halo_[0] + l1);
            F c = F(0.5) * (r0 + right_halo_[1]), d = F(0.5) * (right_halo_[0] + r1);
            if constexpr (Care) {
                a = fixed((int)(left_point_ - leaf_)) ? left_halo_[0] : a;
                b = fixed((int)(left_point_ + 1 - leaf_)) ? left_halo_[1] : b;
                c = fixed((int)(right_point_ - leaf_)) ? right_halo_[0] : c;
                d = fixed((int)(right_point_ + 1 - leaf_)) ? right_halo_[1] : d;
            }
            left_halo_[0] = a;
            left_halo_[1] = b;
            right_halo_[0] = c;
            right_halo_[1] = d;
        }
        F sum[W];
#pragma unroll
        for (int c = 0; c < W; ++c) sum[c] = F(-0.0);
        // Rotated within the leaf_: the head_ gets its row's last point, the next row's neighbour; the tail_ its
        // row's first point, the row before_'s neighbour.
        F over = from_left;
        F next_first = __shfl_sync(all, u_[0][0], behind_);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            F this_first = next_first;
            F last = __shfl_sync(all, u_[r][W - 1], before_);
            F left = head_ ? over : last;
            over = last;
            next_first = r + 1 < rows ? __shfl_sync(all, u_[r + 1 < rows ? r + 1 : r][0], behind_) : from_right;
            F right = tail_ ? next_first : this_first;
            // The neighbour that has moved on already, as it was.
            F passed = Backwards ? right : left;
#pragma unroll
            for (int i = 0; i < W; ++i) {
                const int c = Backwards ? W - 1 - i : i;
                F old = u_[r][c];
                F ahead = Backwards ? (c > 0 ? u_[r][c > 0 ? c - 1 : 0] : left)
                                          : (c + 1 < W ? u_[r][c + 1 < W ? c + 1 : c] : right);
                F now = F(0.5) * (passed + ahead);
                if constexpr (Care) {
                    now = fixed(r * leaf_columns + column_ * W + c) ? old : now;
                } else {
                    if (r == 0 && c == 0) now = first_fixed_ ? old : now;
                    if (r == rows - 1 && c == W - 1) now = last_fixed_ ? old : now;
                }
                F difference = now - old;
                F square = difference * difference;
                sum[c] = sum[c] + square;
                u_[r][c] = now;
                passed = old;
            }
        }
        F total = halve_handing_over(sum, lane_);
        if (column_ == 0 && mine_) s_.sums[sweep][warp_ * leaves + lane_ / lanes] = total;
    }

    // W neighbouring points, `left` of which exist.
    static __device__ __forceinline__ void load(F (&to)[W], const F* from, i64 left) {
        constexpr int per = 16 / sizeof(F);
        if (left >= W) {
#pragma unroll
            for (int c = 0; c < W; c += per) {
                uint4 part = *(const uint4*)(from + c);
                memcpy(&to[c], &part, 16);
            }
        } else {
#pragma unroll
            for (int c = 0; c < W; ++c) to[c] = c < left ? from[c] : F(0);
        }
    }
    static __device__ __forceinline__ void store(F* to, const F (&from)[W], i64 left) {
        constexpr int per = 16 / sizeof(F);
        if (left >= W) {
#pragma unroll
            for (int c = 0; c < W; c += per) {
                uint4 part;
                memcpy(&part, &from[c], 16);
                *(uint4*)(to + c) = part;
            }
        } else {
#pragma unroll
            for (int c = 0; c < W; ++c) {
                if (c < left) to[c] = from[c];
            }
        }
    }
};

// A kernel of passes. Four columns a lane: eight, with half the shuffles but two instead of four warps a scheduler, are
// slower: 82 against 74 us for 57 sweeps of 4,194,304 points on an H200.
#define CROSSWARP_LINE_PASS(name, F, warps)                                                           \
    extern "C" __global__ void __launch_bounds__(32 * (warps), 1) name(cw::segment<F> g, int depth) { \
        using pass = cw::line_pass<F, 4, warps>;                                                      \
        __shared__ pass::scratch scratch;                                                             \
        pass::run(g, scratch, depth);                                                                 \
    }

}  // namespace crosswarp

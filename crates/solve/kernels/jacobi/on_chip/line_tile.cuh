// A leaf of the line in the registers of one warp, advanced by many sweeps, with a halo of 32 points on each side,
// which is right for one point less in every sweep.
//
// Row r (of 16) and column c (of 4) of lane l are point 128 r + 4 l + c of the leaf, so that a lane adds up its
// columns of the norm in the leaf's own order. The last point of a row is the neighbour of the first of the next.
// (Eight columns and two leaves a warp need half the shuffles, but the loop then is 20 KB of code, and two warps a
// scheduler: as fast a sweep, measured on an H200, and 7 µs more until all the code has been fetched.)
//
// *Scaled* sweeps hold v = 2^t·u after t sweeps: v' = left + right needs no product with ½, and the difference
// v' − 2v is one fused operation whose only rounding is the subtraction's. Every value is the unscaled one times a
// power of two, and so is every rounding, as long as nothing overflows and no unscaled sum, difference or square is
// so small that it would have lost bits. `scalable` says when that is certain.
//
// Rows *at rest* have one value all over, in them and in the rows beside them, between which no sweep of a pass makes
// a difference: nothing is done for them.
#pragma once
#include "jacobi/line.cuh"

namespace crosswarp {

// When sweeps may be scaled: T of them if all values are multiples of 2^(T − small) and at most 2^large.
// After t sweeps a field of multiples of 2^−m has multiples of 2^−(m+t); so has a difference, and its square is
// normal if m + t <= small. Squares of differences scaled by 2^T, 2048 of them, stay finite.
template <class F> struct line_scaling;
template <> struct line_scaling<float> {
    static constexpr int small = 63, large = 24, precision = 24, bias = 127;
    // 2^exponent, for exponents of normal numbers.
    static __device__ float power(int exponent) { return __uint_as_float((u32)(exponent + bias) << 23); }
    static __device__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
};
template <> struct line_scaling<double> {
    static constexpr int small = 511, large = 400, precision = 53, bias = 1023;
    static __device__ double power(int exponent) { return __longlong_as_double((i64)(exponent + bias) << 52); }
    static __device__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
};

template <class F> class line_tile {
    static constexpr u32 all = 0xffffffffu;
    static constexpr int width = 4, rows = leaf_points / leaf_columns;
    static constexpr int per = 16 / sizeof(F);
    // If all that change are so many rows side by side, as where a front comes in from the leaf's end, the others are
    // left out. One warp alone is as fast as its code is short.
    static constexpr int few = 2;
    using scaling = line_scaling<F>;

  public:
    // 16-byte words of a lane's points.
    static constexpr int chunks = rows * width / per;

    // The leaf that begins with point `first` of a line of `total` points.
    __device__ __forceinline__ line_tile(i64 first, i64 total) : lane_(threadIdx.x & 31) {
        // Far away is as good as nowhere.
        int end = (int)::min(total - 1 - first, (i64)leaf_points * 2);
        end_ = end - lane_ * width;
        halo_end_ = end - leaf_points - lane_;
        first_fixed_ = first == 0 && lane_ == 0;
        last_fixed_ = end == leaf_points - 1 && lane_ == 31;
        ends_inside_ = end < leaf_points + line_tile_halo && end != leaf_points - 1;
    }

    // Takes the points from memory, or brings them there; also what lies behind the line's end, which must be 0.
    __device__ __forceinline__ void load(const F* at) {
#pragma unroll
        for (int i = 0; i < chunks; ++i) set(i, *(const uint4*)(at + place(i)));
    }
    __device__ __forceinline__ void store(F* at) const {
#pragma unroll
        for (int i = 0; i < chunks; ++i) *(uint4*)(at + place(i)) = chunk(i);
    }
    // The points as they are, `chunks` words of a lane `stride` apart, and back.
    __device__ __forceinline__ void save(uint4* to, int stride) const {
#pragma unroll
        for (int i = 0; i < chunks; ++i) to[i * stride] = chunk(i);
    }
    __device__ __forceinline__ void restore(const uint4* from, int stride) {
#pragma unroll
        for (int i = 0; i < chunks; ++i) set(i, from[i * stride]);
    }

    // This lane's points of the halos: 32 − lane before the first point, lane behind the last.
    __device__ __forceinline__ void set_halos(F left, F right) {
        left_halo_ = left;
        right_halo_ = right;
    }
    // The outermost 32 points on the left and on the right to `left` and `right`, aligned to 16 bytes.
    __device__ __forceinline__ void edges(F* left, F* right) const {
        constexpr int of = line_tile_halo / width;
#pragma unroll
        for (int i = 0; i < width / per; ++i) {
            if (lane_ < of) *(uint4*)(left + lane_ * width + i * per) = chunk(i);
            if (lane_ >= 32 - of) {
                *(uint4*)(right + (lane_ - 32 + of) * width + i * per) = chunk(chunks - width / per + i);
            }
        }
    }

    // Makes `sweeps` sweeps, at least 1 and at most 32; calls `put(sweep, total)` with the sum of squares of each, on
    // lane 0. The whole warp calls.
    template <class Put> __device__ __forceinline__ void advance(int sweeps, Put put) {
        const u32 moving = __shfl_sync(all, rows_that_move(), 0);
        if (moving == 0) {
            if (lane_ == 0) {
                for (int sweep = 0; sweep < sweeps; ++sweep) put(sweep, F(0));
            }
        } else if (!ends_inside_ && 31 - __clz(moving) - (__ffs(moving) - 1) < few) {
            sweep_few_rows(::min(__ffs(moving) - 1, rows - few), sweeps, put);
        } else if (ends_inside_) {
            sweep_all<false, true>(sweeps, put);
        } else if (scalable(sweeps)) {
            sweep_all<true, false>(sweeps, put);
            const F back = scaling::power(-sweeps);
#pragma unroll
            for (int r = 0; r < rows; ++r) {
#pragma unroll
                for (int c = 0; c < width; ++c) u_[r][c] *= back;
            }
        } else {
            sweep_all<false, false>(sweeps, put);
        }
    }

  private:
    const int lane_;
    // Points from these on, counted from this lane's first point of the leaf or of the right halo, keep their values.
    int end_, halo_end_;
    bool first_fixed_, last_fixed_;
    // The line ends in the leaf or its halo, and not with the leaf.
    bool ends_inside_;
    F u_[rows][width], left_halo_, right_halo_;

    __device__ int place(int i) const { return i * per / width * leaf_columns + lane_ * width + i * per % width; }
    __device__ __forceinline__ uint4 chunk(int i) const {
        uint4 word;
        memcpy(&word, &u_[i * per / width][i * per % width], 16);
        return word;
    }
    __device__ __forceinline__ void set(int i, uint4 word) { memcpy(&u_[i * per / width][i * per % width], &word, 16); }

    // Calls `look` with all of this lane's points, those of the halos included.
    template <class Look> __device__ __forceinline__ void each(Look look) const {
        look(left_halo_);
        look(right_halo_);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
#pragma unroll
            for (int c = 0; c < width; ++c) look(u_[r][c]);
        }
    }

    // The rows that may change within 32 sweeps, a bit each. The others and what is beside them have one value.
    __device__ __forceinline__ u32 rows_that_move() const {
        using bits = typename float_format<F>::bits;
        const F value = __shfl_sync(all, u_[rows / 2][0], 0);
        bits wanted;
        memcpy(&wanted, &value, sizeof(F));
        auto differs = [&](F other) {
            bits seen;
            memcpy(&seen, &other, sizeof(F));
            return seen != wanted;
        };
        // Row r is bit r + 1, the halos are beside.
        u32 other = (u32)differs(left_halo_) | (u32)differs(right_halo_) << (rows + 1);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            bool any = false;
#pragma unroll
            for (int c = 0; c < width; ++c) any |= differs(u_[r][c]);
            other |= (u32)any << (r + 1);
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) other |= __shfl_xor_sync(all, other, distance);
        constexpr u32 every = (1u << rows) - 1;
        // Twice the value must be finite, or it does not stay.
        const F twice = value + value;
        return twice - twice == F(0) ? (other | other >> 1 | other >> 2) & every : every;
    }

    __device__ __forceinline__ bool scalable(int sweeps) const {
        // Multiples of 2^unit are wanted. Adding and taking away `round` leaves those of 2^(unit + 1) as they are, if
        // the sum stays in its binade; larger numbers, from `least` on, have no smaller digits.
        const int unit = sweeps - scaling::small;
        const F round = F(1.5) * scaling::power(unit + scaling::precision);
        const F least = scaling::power(unit + scaling::precision - 1), most = scaling::power(scaling::large);
        bool good = true;
        each([&](F value) {
            F size = value < F(0) ? -value : value;
            good &= size >= least ? size <= most : (value + round) - round == value;
        });
        return __all_sync(all, good);
    }

    template <bool Scaled, bool Care, class Put> __device__ __forceinline__ void sweep_all(int sweeps, Put put) {
        int sweep = 0;
        // Forwards and back: every point then moves by one register and returns, without copies.
#pragma unroll 1
        for (; sweep + 1 < sweeps; sweep += 2) {
            once<Scaled, Care, false>(sweep, put);
            once<Scaled, Care, true>(sweep + 1, put);
        }
        if (sweep < sweeps) once<Scaled, Care, false>(sweep, put);
    }
    // The same where only the `few` rows from `first` on change: a disturbance between points at rest. They are moved
    // together: jumping over the code of the others takes longer than the others would.
    template <class Put> __device__ __forceinline__ void sweep_few_rows(int first, int sweeps, Put put) {
        F u[few][width];
        edge_values at;
        at.begins = first == 0;
        at.ends = first == rows - few;
        at.rest = at.begins ? u_[rows - 1][0] : u_[0][0];
#pragma unroll
        for (int i = 0; i < few; ++i) {
#pragma unroll
            for (int r = i; r <= rows - few + i; ++r) {
#pragma unroll
                for (int c = 0; c < width; ++c) u[i][c] = r == first + i || r == i ? u_[r][c] : u[i][c];
            }
        }
#pragma unroll 1
        for (int sweep = 0; sweep < sweeps; sweep += 2) {
            F sum[2][width] = {};
            sweep_rows<false, false, false>(u, at, sum[0]);
            if (sweep + 1 < sweeps) sweep_rows<false, false, false>(u, at, sum[1]);
            // Both at once: a combination is a chain of shuffles that leaves most slots empty.
            F total[2] = {halve_handing_over(sum[0], lane_), halve_handing_over(sum[1], lane_)};
            if (lane_ == 0) {
                put(sweep, total[0]);
                if (sweep + 1 < sweeps) put(sweep + 1, total[1]);
            }
        }
#pragma unroll
        for (int i = 0; i < few; ++i) {
#pragma unroll
            for (int r = i; r <= rows - few + i; ++r) {
#pragma unroll
                for (int c = 0; c < width; ++c) u_[r][c] = r == first + i ? u[i][c] : u_[r][c];
            }
        }
    }

    template <bool Scaled, bool Care, bool Backwards, class Put>
    __device__ __forceinline__ void once(int sweep, Put put) {
        F total = sweep_once<Scaled, Care, Backwards>();
        if (lane_ == 0) put(sweep, Scaled ? total * scaling::power(-2 * (sweep + 1)) : total);
    }

    // A point's next value; what a point that is held is.
    template <bool Scaled> static __device__ __forceinline__ F next(F left, F right) {
        return Scaled ? left + right : F(0.5) * (left + right);
    }
    template <bool Scaled> static __device__ __forceinline__ F kept(F old) { return Scaled ? F(2) * old : old; }

    // One sweep of the halos, beside the leaf's first and last point.
    template <bool Scaled, bool Care> __device__ __forceinline__ void move_halos(F first, F last) {
        const bool head = lane_ == 0, tail = lane_ == 31;
        F l0 = __shfl_up_sync(all, left_halo_, 1);
        F l1 = __shfl_sync(all, head ? first : left_halo_, (lane_ + 1) & 31);
        F r0 = __shfl_sync(all, tail ? last : right_halo_, (lane_ - 1) & 31);
        F r1 = __shfl_down_sync(all, right_halo_, 1);
        left_halo_ = next<Scaled>(l0, l1);
        F right = next<Scaled>(r0, r1);
        if constexpr (Care) right = halo_end_ <= 0 ? kept<Scaled>(right_halo_) : right;
        right_halo_ = right;
    }

    // What is above and below some rows of the leaf: its halos where they begin or end with it, else points at rest.
    struct edge_values {
        bool begins, ends;
        F rest;
    };

    // One sweep; returns the leaf's sum of squares.
    template <bool Scaled, bool Care, bool Backwards> __device__ __forceinline__ F sweep_once() {
        F sum[width];
#pragma unroll
        for (int c = 0; c < width; ++c) sum[c] = F(-0.0);
        sweep_rows<Scaled, Care, Backwards>(u_, edge_values{true, true, F(0)}, sum);
        return halve_handing_over(sum, lane_);
    }

    // One sweep of `Count` rows, all of the leaf's or some of them, and of the halos; adds to this lane's column sums.
    template <bool Scaled, bool Care, bool Backwards, int Count>
    __device__ __forceinline__ void sweep_rows(F (&u)[Count][width], const edge_values& at, F (&sum)[width]) {
        const bool head = lane_ == 0, tail = lane_ == 31;
        const int before = (lane_ - 1) & 31, behind = (lane_ + 1) & 31;
        // What comes from beyond the rows, for the head and for the tail; and the halos.
        F first = u[0][0], last = u[Count - 1][width - 1];
        F from_left = __shfl_sync(all, left_halo_, 31), from_right = __shfl_sync(all, right_halo_, 0);
        from_left = at.begins ? from_left : at.rest;
        from_right = at.ends ? from_right : at.rest;
        move_halos<Scaled, Care>(at.begins ? first : at.rest, at.ends ? last : at.rest);
        const bool first_fixed = first_fixed_ && at.begins, last_fixed = last_fixed_ && at.ends;
        // The last points and the first ones of rows, turned by a lane: the head gets its row's last point, the next
        // row's neighbour; the tail its row's first point, the row before's neighbour.
        F over = from_left;
        F next_first = __shfl_sync(all, first, behind);
#pragma unroll
        for (int r = 0; r < Count; ++r) {
            F this_first = next_first;
            F last_of_row = __shfl_sync(all, u[r][width - 1], before);
            F left = head ? over : last_of_row;
            over = last_of_row;
            next_first = r + 1 < Count ? __shfl_sync(all, u[r + 1 < Count ? r + 1 : r][0], behind) : from_right;
            F right = tail ? next_first : this_first;
            // The neighbour that has moved on already, as it was.
            F passed = Backwards ? right : left;
#pragma unroll
            for (int i = 0; i < width; ++i) {
                const int c = Backwards ? width - 1 - i : i;
                F old = u[r][c];
                F ahead = Backwards ? (c > 0 ? u[r][c > 0 ? c - 1 : 0] : left)
                                    : (c + 1 < width ? u[r][c + 1 < width ? c + 1 : c] : right);
                F now = next<Scaled>(passed, ahead);
                if constexpr (Care) now = r * leaf_columns + c >= end_ ? kept<Scaled>(old) : now;
                if (r == 0 && c == 0) now = first_fixed ? kept<Scaled>(old) : now;
                if (!Care && r == Count - 1 && c == width - 1) now = last_fixed ? kept<Scaled>(old) : now;
                F difference = Scaled ? scaling::fused(F(-2), old, now) : now - old;
                F square = difference * difference;
                sum[c] = sum[c] + square;
                u[r][c] = now;
                passed = old;
            }
        }
    }
};

}  // namespace crosswarp

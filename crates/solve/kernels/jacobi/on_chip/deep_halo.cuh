// Many sweeps of a plane that stays on the chip, `T` of them from one exchange to the next: for planes with few cells
// an SM, whose sweeps would else be mostly waiting. The host side is `engine::cuda::on_chip::plane`.
//
// A warp owns the 16 rows of a leaf and a part of its columns, and holds them in registers with `T` rows and columns
// more on every side. Every sweep leaves what is right one cell narrower, and after T sweeps the own cells are still
// right; no other warp is asked meanwhile. Then all leave their own cells as packets in the packet field of their PE,
// those within T of its edges in the neighbour's as well, and take from their PE's what they do not own.
//
// Cells beyond the end of a grid that wraps around, its ghosts among them, are copies of inner cells; they are advanced
// as those are, and stay copies. What keeps its value is held wherever it is copied.
//
// Other warps add up the norms and decide, so that nobody waits for that but at the end of a chunk for the decision on
// the chunk before.
//
// Why no packet is overwritten before it was read: generations go in a ring of four. Inside of a run a warp leaves
// generation g + 4 after it has taken g + 3 of all whose cells it copies, who left that after they had taken g + 2 of
// theirs, who left that after they had taken g + 1. Who copies a warp's cells is one whose cells it copies or, where
// the grid wraps around (its last leaf may be low or narrow), one whose cells such a one copies. A run begins with
// leaving and ends with it, and so may be one step ahead of that; but when it begins, all PEs have ended the run before
// the last, since their hosts synchronise between runs.
#pragma once
#include "jacobi/arguments.cuh"
#include "jacobi/on_chip/norm_warps.cuh"
#include "jacobi/on_chip/packet_wait.cuh"
#include "jacobi/on_chip/packets.cuh"
#include "jacobi/plane.cuh"

namespace crosswarp {

// `Leaves`: most of a block; `Norms`: warps that add up norms; `Flight`: rows of packets under way.
template <class F, int K, int T, int Leaves, int Norms, int Flight, bool Source> class deep_halo {
    static constexpr u32 all = 0xffffffffu;
    static constexpr int width = 32 * K, rows = leaf_rows + 2 * T;
    static constexpr int parts = (leaf_columns + width - 2 * T - 1) / (width - 2 * T);
    // Columns that a warp owns; the last part has what is left.
    static constexpr int own = (leaf_columns / parts + 3) / 4 * 4, last_own = leaf_columns - (parts - 1) * own;
    static_assert(own + 2 * T <= width && last_own >= T, "others' cells are those of the next part");
    static_assert(T % 4 == 0 && T < leaf_rows && rows <= 32 && rows * K <= 64 && rows % Flight == 0,
                  "rows and cells are bits of words");
    static constexpr int chunk = chunk_sweeps<F>;
    static_assert(chunk % T == 0, "exchanges do not straddle chunks");
    static constexpr int halves = packets_of<F>;
    static constexpr int pitch = leaf_columns * halves;
    using norm_group = norm_warps<F, T, Leaves, Norms>;

    // Where own rows go besides this PE's packet field: to the PEs above (0) and below (1).
    struct rows_beyond {
        u64* to[2];   // own row 0 of the first strip
        u32 rows[2];  // bit r: own row r goes there
    };

  public:
    static constexpr int warps = Leaves * parts + Norms;
    struct alignas(16) scratch {
        typename norm_group::scratch norms;
        rows_beyond out[Leaves * parts];
    };

    static __device__ __forceinline__ void run(const deep_halo_run<F>& a, scratch& s) {
        norm_group::prepare(s.norms);
        __syncthreads();
        if (threadIdx.x / 32 < blockDim.x / 32 - Norms) {
            deep_halo unit(a, s);
            unit.sweeps();
        } else if (a.decides) {
            norm_group::run(a, s.norms, leaves());
        }
    }

  private:
    // What is special about a warp's cells: nothing; held columns, and the grid's first or last row; anything.
    enum kind : int { plain, sides, any };

    const deep_halo_run<F>& a_;
    scratch& s_;
    const int warp_, lane_;
    int x0_, y0_, own_columns_, own_rows_, kind_;
    bool there_, dead_;
    bool sends_;        // this lane, all its columns
    bool beyond_;       // this warp, to other PEs or around the grid's end
    bool around_;       // this warp, in x
    bool top_, bottom_; // whether the first (last) own row is the grid's
    u32 need_;          // bit r: this lane's columns of row r come in packets
    u32 counted_;       // bit r: own row r counts in the norm
    u32 held_columns_;  // bit c
    u64 held_;          // bit r K + c
    u64* at_;           // this lane's columns of row 0, in generation 0's slot
    F u_[rows][K];

    __device__ __forceinline__ int x() const { return x0_ - T + lane_ * K; }
    __device__ __forceinline__ u64 ring(u32 generation) const { return generation % packet_ring * a_.slot; }
    // Column x of row 0 of the packet field.
    __device__ __forceinline__ i64 strip(int x) const {
        int beside = x + leaf_columns;
        return (i64)(beside / leaf_columns) * a_.field_rows * pitch + beside % leaf_columns * halves;
    }
    __device__ static int leaves() { return (blockDim.x / 32 - Norms) / parts; }
    // The same value, unknown to the compiler: what follows from it for every row is no use in registers.
    template <class V> static __device__ __forceinline__ V opaque(V value) {
        if constexpr (sizeof(V) == 8) {
            asm volatile("" : "+l"(value));
        } else {
            asm volatile("" : "+r"(value));
        }
        return value;
    }

    __device__ __forceinline__ deep_halo(const deep_halo_run<F>& a, scratch& s)
        : a_(a), s_(s), warp_(threadIdx.x / 32), lane_(threadIdx.x & 31), dead_(false), need_(0), counted_(0),
          held_columns_(0), held_(0) {
        const band<F>& g = a.plane;
        int leaf = blockIdx.x * leaves() + warp_ / parts, part = warp_ % parts;
        int band = leaf / a.leaves;
        x0_ = leaf % a.leaves * leaf_columns + part * own;
        y0_ = g.own_start + band * leaf_rows;
        own_columns_ = part < parts - 1 ? own : last_own;
        there_ = band < a.bands && x0_ < g.nx;
        own_rows_ = !there_ ? 0 : g.own_end - y0_ < leaf_rows ? g.own_end - y0_ : leaf_rows;
        top_ = y0_ == 0;
        bottom_ = y0_ + leaf_rows == g.ny;

        int at = x();
        bool mine = at >= x0_ && at + K <= x0_ + own_columns_;
        // Of a grid that wraps around, columns from nx on come from the other side.
        sends_ = there_ && mine && (!g.wrap_x || at + K <= g.nx);
        // Of one that does not, the owner of the last columns sends whole lanes.
        int left = g.wrap_x ? -T : 0, right = g.wrap_x ? g.nx + T : g.nx;
        bool asks = there_ && at >= x0_ - T && at < x0_ + own_columns_ + T && at >= left && at < right;
        int top = g.wrap_y ? y0_ - T : 0, bottom = g.wrap_y ? y0_ + rows : g.ny;
        int masked = given_column();
#pragma unroll
        for (int c = 0; c < K; ++c) {
            if (!g.wrap_x && (at + c <= 0 || at + c >= g.nx - 1)) held_columns_ |= 1u << c;
        }
        bool none = true, simple = true;
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            int y = y0_ - T + r;
            bool inside = y >= top && y < bottom && y < y0_ + own_rows_ + T;
            bool own_row = r >= T && r < T + own_rows_;
            if (asks && inside && !(own_row && sends_)) need_ |= 1u << r;
            constexpr u32 every = (1u << K) - 1;
            u32 held = held_columns_;
            if (!g.wrap_y && (y <= 0 || y >= g.ny - 1)) held = every;
            if (g.fixed && inside && there_) {
#pragma unroll
                for (int c = 0; c < K; ++c) held |= (u32)(g.fixed[g.at(masked + c, y)] != 0) << c;
            }
            bool end = !g.wrap_y && ((top_ && r <= T) || (bottom_ && r >= T + leaf_rows - 1));
            none &= held == 0;
            simple &= held == (end ? every : held_columns_);
            held_ |= (u64)held << (r * K);
            if (own_row && y >= 1 && y <= g.ny - 2) counted_ |= 1u << (r - T);
#pragma unroll
            for (int c = 0; c < K; ++c) u_[r][c] = own_row && mine ? g.before[g.at(at + c, y)] : F(0);
        }
        none &= counted_ == 0xffffu;
        simple &= (counted_ | (top_ ? 1u : 0) | (bottom_ ? 0x8000u : 0)) == 0xffffu;
        kind_ = __all_sync(all, none) ? plain : __all_sync(all, simple) ? sides : any;
        at_ = a.packets + strip(at) + (i64)(y0_ - g.own_start) * pitch;

        // The rows that lie within T of the PE's first or last; ghosts are not sent, but what the halo beyond them
        // copies.
        bool first = g.own_start == 0, last = g.own_end == g.ny;
        int start = g.own_start + (first && g.wrap_y ? 2 : 0), end = g.own_end - (last && g.wrap_y ? 2 : 0);
        u32 up = 0, down = 0;
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) {
            int y = y0_ + r;
            if (r >= own_rows_) break;
            if ((!first || g.wrap_y) && y >= start && y < start + T) up |= 1u << r;
            if ((!last || g.wrap_y) && y < end && y >= end - T) down |= 1u << r;
        }
        around_ = there_ && g.wrap_x && (x0_ < 2 + T + 1 || x0_ + own_columns_ > g.nx - 2 - T);
        beyond_ = up != 0 || down != 0 || around_;
        if (lane_ == 0) {
            s.out[warp_].to[0] = ptr(a.packets + (i64)(T + a.above_rows + (y0_ - start)) * pitch, a.above);
            s.out[warp_].to[1] = ptr(a.packets + (i64)(y0_ - (end - T)) * pitch, a.below);
            s.out[warp_].rows[0] = up;
            s.out[warp_].rows[1] = down;
        }
        __syncwarp();
    }

    // A column of mask and source that is stored: what lies further right is not needed.
    __device__ __forceinline__ int given_column() const {
        int last = a_.plane.nx + pad - K;
        return x() < last ? x() : last;
    }

    // The sweeps, up to the chunk behind the one that meets the threshold, and the field after them if all are made.
    __device__ __forceinline__ void sweeps() {
        int done = 0;
#pragma unroll 1
        for (u32 exchange = 0;; ++exchange) {
            // Also behind the last sweep, so that generations do not depend on where a run ends.
            send(a_.generation + exchange);
            int number = (done + chunk - 1) / chunk - 1;  // of the chunk that has just ended, if one has
            bool ends = done % chunk == 0 || done == a_.sweeps;
            if (a_.decides && ends && number > 0 && !norm_group::goes_on(s_.norms, number)) return;
            if (done == a_.sweeps) break;
            number = done / chunk;
            if (a_.decides && done % chunk == 0 && number > 0) put_out(a_.kept[number % 2]);
            receive(a_.generation + exchange);
            if (a_.decides && !norm_group::has_room(s_.norms, exchange)) return;
            int count = a_.sweeps - done < T ? a_.sweeps - done : T;
            if (there_) {
                F* sums = &s_.norms.sums[exchange % norm_group::backlog][0][warp_ / parts]
                                        [warp_ % parts * own + lane_ * K - T];
                if (kind_ == plain) {
                    advance<plain>(sums, count);
                } else if (kind_ == sides) {
                    advance<sides>(sums, count);
                } else {
                    advance<any>(sums, count);
                }
            }
            if (a_.decides) norm_group::arrive(exchange);
            done += count;
        }
        put_out(a_.plane.after);
    }

    // The later a sweep, the fewer rows around the own ones are still needed.
    template <kind Kind> __device__ __forceinline__ void advance(F* sums, int count) {
#pragma unroll 1
        for (int t = 0; t < T / 2 && t < count; ++t) sweep<0, Kind>(sums + t * (Leaves * leaf_columns));
#pragma unroll 1
        for (int t = T / 2; t < count; ++t) sweep<T / 2, Kind>(sums + t * (Leaves * leaf_columns));
    }

    // A sweep of all rows but the first and last 1 + Skip.
    template <int Skip, kind Kind> __device__ __forceinline__ void sweep(F* sums) {
        F up[K], sum[K];
        // 64 conditions are no use in registers.
        u64 held = opaque(held_);
        u32 counted = opaque(counted_);
        bool fixed_end = !a_.plane.wrap_y;
#pragma unroll
        for (int c = 0; c < K; ++c) {
            up[c] = u_[Skip][c];
            sum[c] = F(0);
        }
#pragma unroll
        for (int r = 1 + Skip; r < rows - 1 - Skip; ++r) {
            F left = __shfl_up_sync(all, u_[r][K - 1], 1);
            F right = __shfl_down_sync(all, u_[r][0], 1);
            F made[K];
#pragma unroll
            for (int c = 0; c < K; ++c) {
                F l = c == 0 ? left : u_[r][c - 1];
                F rr = c == K - 1 ? right : u_[r][c + 1];
                F total = ((rr + l) + u_[r + 1][c]) + up[c];
                if constexpr (Source) total = total - a_.plane.source[a_.plane.at(given_column() + c, y0_ - T + r)];
                made[c] = F(0.25) * total;
                if constexpr (Kind == sides) {
                    made[c] = (held_columns_ >> c & 1) ? u_[r][c] : made[c];
                    // Behind a row that is held nothing matters.
                    if (r == T) made[c] = top_ && fixed_end ? u_[r][c] : made[c];
                    if (r == T + leaf_rows - 1) made[c] = bottom_ && fixed_end ? u_[r][c] : made[c];
                } else if constexpr (Kind == any) {
                    made[c] = (held >> (r * K + c) & 1) ? u_[r][c] : made[c];
                }
            }
#pragma unroll
            for (int c = 0; c < K; ++c) {
                if (r >= T && r < T + leaf_rows) {
                    F difference = made[c] - u_[r][c];
                    F square = difference * difference;
                    if constexpr (Kind == sides) {
                        if (r == T) square = top_ ? F(0) : square;
                        if (r == T + leaf_rows - 1) square = bottom_ ? F(0) : square;
                    } else if constexpr (Kind == any) {
                        square = (counted >> (r - T) & 1) ? square : F(0);
                    }
                    sum[c] = r == T ? square : sum[c] + square;
                }
                up[c] = u_[r][c];
                u_[r][c] = made[c];
            }
        }
        if (x() >= x0_ && x() < x0_ + own_columns_) {
#pragma unroll
            for (int c = 0; c < K; ++c) sums[c] = x() + c >= 1 && x() + c <= a_.plane.nx - 2 ? sum[c] : F(0);
        }
    }

    // Leaves the own cells where the neighbours find them.
    __device__ __forceinline__ void send(u32 generation) {
        if (!there_ || dead_) return;
        if (beyond_) send_beyond(generation);
        u64* to = at_ + ring(generation) + T * pitch;
        auto leave = [&](int r) {
            u64 packet[halves * K];
#pragma unroll
            for (int c = 0; c < K; ++c) pack(u_[T + r][c], generation, packet + c * halves);
            store_packets(to + r * pitch, packet);
        };
        if (sends_ && own_rows_ == leaf_rows) {
#pragma unroll
            for (int r = 0; r < leaf_rows; ++r) leave(r);
        } else if (sends_) {
#pragma unroll
            for (int r = 0; r < leaf_rows; ++r) {
                if (r < own_rows_) leave(r);
            }
        }
    }

    // To the PEs above and below, and around the end of the grid in x.
    __device__ __forceinline__ void send_beyond(u32 generation) {
        const rows_beyond& out = s_.out[warp_];
#pragma unroll 1
        for (int side = -1; side < 2; ++side) {
            u32 there = side >= 0 ? out.rows[side] : around_ ? (1u << own_rows_) - 1 : 0;
            if (there == 0) continue;
            u64* to = side < 0 ? a_.packets + (i64)(T + y0_ - a_.plane.own_start) * pitch : out.to[side];
            to += ring(generation);
            if (sends_ && side >= 0) send_rows<0, K>(to + strip(x()), there, generation);
            if (around_) send_around(to, there, generation);
        }
    }
    // Columns from C on of the own rows `there`.
    template <int C, int N> __device__ __forceinline__ void send_rows(u64* to, u32 there, u32 generation) const {
        to = opaque(to);
        generation = opaque(generation);
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) {
            u64 packet[halves * N];
#pragma unroll
            for (int c = 0; c < N; ++c) pack(u_[T + r][C + c], generation, packet + c * halves);
            if (there >> r & 1) store_packets(to + r * pitch, packet);
        }
    }
    // Columns that are copied beyond the other side, and the last one if it shares its lane with such copies. `to`: row
    // 0 of the first strip.
    template <int C = 0> __device__ __forceinline__ void send_around(u64* to, u32 there, u32 generation) const {
        int at = x() + C, period = a_.plane.nx - 2;
        if (at >= x0_ && at < x0_ + own_columns_ && at < a_.plane.nx) {
            if (!sends_) send_rows<C, 1>(to + strip(at), there, generation);
            // One more than T, so that lanes are complete.
            if (at >= 2 && at < 2 + T + 1) send_rows<C, 1>(to + strip(at + period), there, generation);
            if (at >= period - T && at < period) send_rows<C, 1>(to + strip(at - period), there, generation);
        }
        if constexpr (C + 1 < K) send_around<C + 1>(to, there, generation);
    }

    // Takes the cells that others own.
    __device__ __forceinline__ void receive(u32 generation) {
        if (!there_ || dead_) return;
        const u64* from = at_ + ring(generation);
        u32 need = opaque(need_);
        // What is not needed is there; all that is needed is asked for in every look.
        auto look = [&] {
            u32 any = 0;
#pragma unroll
            for (int first = 0; first < rows; first += Flight) {
                u64 packet[Flight][halves * K];
#pragma unroll
                for (int r = 0; r < Flight; ++r) {
#pragma unroll
                    for (int c = 0; c < K; ++c) pack(u_[first + r][c], generation, packet[r] + c * halves);
                    load_packets_if(need & 1u << (first + r), from + (first + r) * pitch, packet[r]);
                }
#pragma unroll
                for (int r = 0; r < Flight; ++r) {
                    any |= of_other_generation(packet[r], generation);
#pragma unroll
                    for (int c = 0; c < K; ++c) u_[first + r][c] = unpack<F>(packet[r] + c * halves);
                }
            }
            return (bool)__all_sync(all, any == 0);
        };
        auto missing = [&] {
            int lane = __ffs(__ballot_sync(all, need != 0)) - 1;
            u64 word = reinterpret_cast<u64>(from + (__ffs(need) - 1) * pitch);
            return reinterpret_cast<const u64*>(__shfl_sync(all, word, lane & 31));
        };
        if (!wait_for_packets(look, missing, generation)) {
            // Sends nothing any more, so that those who wait for it fail as well.
            dead_ = true;
            if (lane_ == 0) norm_group::fail(s_.norms);
        }
    }

    // Writes the own cells.
    __device__ __forceinline__ void put_out(F* to) const {
        if (!there_ || x() < x0_ || x() >= x0_ + own_columns_) return;
        i64 pitch = opaque(a_.plane.pitch);
        int there = opaque(own_rows_);
        to += a_.plane.at(x(), y0_);
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) {
            if (r >= there) break;
#pragma unroll
            for (int c = 0; c < K; ++c) to[c] = u_[T + r][c];
            to += pitch;
        }
    }

};

// A kernel for blocks of `block_warps` warps; behind the type the other arguments of the template.
#define CROSSWARP_DEEP_HALO(name, block_warps, F, ...)                                          \
    extern "C" __global__ void __launch_bounds__(cw::deep_halo<F, __VA_ARGS__>::warps * 32, 1)  \
        name(const __grid_constant__ cw::deep_halo_run<F> run) {                                \
        using unit = cw::deep_halo<F, __VA_ARGS__>;                                             \
        extern __shared__ __align__(16) unsigned char shared[];                                 \
        static_assert(unit::warps == block_warps, "what the host launches");                    \
        static_assert(sizeof(unit::scratch) <= cw::deep_halo_shared, "what the host asks for"); \
        unit::run(run, *reinterpret_cast<unit::scratch*>(shared));                              \
    }

}  // namespace crosswarp

// Many sweeps of a plane that stays on the chip: every warp holds a unit of 16 rows × 32 K columns in registers
// for the whole run. The host side is `engine::cuda::on_chip::plane`.
//
// A block is a tile of units. After every sweep units show each other their edges: inside of a tile in shared
// memory, between one barrier of the block and the next; between tiles, of this PE or of two, in packets that
// carry the number of the sweep beside the value, so that no flag, fence or grid barrier follows. The outermost
// rows are computed and sent first, and travel while the rest is computed.
//
// Packets' generations count the edges sent since the solve began, in a ring of four slots. Why no slot is overwritten
// before it was read: a unit sends generation g + 4 after it has received g + 3 of all its neighbours, who sent that
// after they had received g + 2 of theirs, and so on: everyone up to three units away has received g. Whoever reads a
// unit's slots is its neighbour, or, where the grid wraps around, at most a neighbour's neighbour, since the ends of
// the grid exchange in both directions.
//
// Cells that keep their value (ends of the grid, the mask, what lies beyond the grid) are bits of a lane. Ghosts
// of a grid that wraps around are such cells, too: they are overwritten by what the other end sends.
#pragma once
#include "jacobi/on_chip/choose.cuh"
#include "jacobi/on_chip/packet_wait.cuh"
#include "jacobi/on_chip/unit_neighbours.cuh"

namespace crosswarp {

template <class F, int K, bool Source> class plane_tile : unit_neighbours<F, 32 * K> {
    using place = unit_neighbours<F, 32 * K>;
    using links = unit_links;
    using decision = stop_decision<F>;
    using place::a_, place::band_, place::column_, place::there_, place::warp_;
    using place::ghost_columns, place::ghost_rows, place::x0, place::y0;
    using place::column_ring, place::row_ring;
    static constexpr u32 all = 0xffffffffu;
    static constexpr int width = 32 * K, parts = leaf_columns / width, leaves = tile_warps / parts;
    static constexpr int chunk = chunk_sweeps<F>, group = 8;
    static_assert(chunk % group == 0, "groups do not straddle chunks");
    static constexpr int halves = packets_of<F>;

    static constexpr u32 every_column = (1u << K) - 1;

    // What a lane moves at once in shared memory.
    static constexpr int at_once = 16 / sizeof(F);
    struct alignas(16) four {
        F value[at_once];
    };

    // A lane's columns of a row, moved as one.
    struct alignas(sizeof(F) * K) columns_of_lane {
        F value[K];
    };
    static __device__ __forceinline__ void load_row(F (&to)[K], const F* from) {
        columns_of_lane all_of_them = *reinterpret_cast<const columns_of_lane*>(from);
#pragma unroll
        for (int c = 0; c < K; ++c) to[c] = all_of_them.value[c];
    }
    static __device__ __forceinline__ void store_row(F* to, const F (&from)[K]) {
        columns_of_lane all_of_them;
#pragma unroll
        for (int c = 0; c < K; ++c) all_of_them.value[c] = from[c];
        *reinterpret_cast<columns_of_lane*>(to) = all_of_them;
    }

  public:
    struct edges {
        F row[2][width];          // the first and the last
        F column[2][leaf_rows];   // left, right
    };
    struct alignas(16) scratch {
        edges edge[2][tile_warps];
        F sums[2][tile_warps][width];
        F outside[tile_warps][2][leaf_rows];  // columns that came in packets
        F leaf[chunk][leaves];
        links link[tile_warps];
        typename decision::scratch norms;
        // Whether a wait was in vain in a group of sweeps, to be seen in the next: so all warps see the same.
        u32 failed[2];
    };

    static __device__ __forceinline__ void run(const tile_run<F>& a, scratch& s) {
        if (threadIdx.x < 2) s.failed[threadIdx.x] = 0;
        for (int i = threadIdx.x; i < chunk * leaves; i += blockDim.x) (&s.leaf[0][0])[i] = F(0);
        plane_tile unit(a, s);
        unit.sweeps();
    }

  private:
    scratch& s_;
    const int lane_;
    bool held_any_;
    // Which links there are; `beside_link` is that of this lane's half of the warp.
    static constexpr u32 above_link = 1, below_link = 2, column_links = 4, beside_link = 8, send_links = 16,
                         first_ghost_link = 32, ghost_links = 64, has_ghosts = 128;
    u32 links_;
    // Where in shared memory, in elements, the column beside this unit is that this lane's half looks at: of even
    // sweeps, and how much further of odd ones.
    i32 beside_, beside_odd_;
    u64 held_;  // bit r K + c
    F u_[leaf_rows][K];

    __device__ __forceinline__ plane_tile(const tile_run<F>& a, scratch& s)
        // The warp's number from lane 0: so the compiler knows that the whole warp is together, and guards no shuffle.
        : place(a, __shfl_sync(all, (int)threadIdx.x / 32, 0)), s_(s), lane_(threadIdx.x & 31), held_(0) {
        const band<F>& g = a.plane;
        int x = x0() + lane_ * K;
        u32 columns = 0;
#pragma unroll
        for (int c = 0; c < K; ++c) columns |= (u32)(x + c <= 0 || x + c >= g.nx - 1) << c;
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) {
            int y = y0() + r;
            u32 held = columns;
            if (there_ && y < g.own_end) {
                load_row(u_[r], g.before + g.at(x, y));
                if (g.fixed) held |= fixed_of(g.fixed + g.at(x, y));
            } else {
#pragma unroll
                for (int c = 0; c < K; ++c) u_[r][c] = F(0);
                held = every_column;
            }
            if (y <= 0 || y >= g.ny - 1) held = every_column;
            held_ |= (u64)held << (r * K);
        }
        held_any_ = __any_sync(all, held_ != 0);
        if (lane_ == 0) s.link[warp_] = there_ ? place::links() : links{};
        __syncwarp();
        const links& l = s.link[warp_];
        links_ = (l.receive_row[0] ? above_link : 0) | (l.receive_row[1] ? below_link : 0) |
                 (l.receive_column[0] || l.receive_column[1] ? column_links : 0) |
                 (l.receive_column[lane_ / 16] ? beside_link : 0) |
                 (l.send_column[0] || l.send_column[1] ? send_links : 0) |
                 (l.send_ghost_row[0] ? first_ghost_link : 0) |
                 (l.send_ghost_row[1] || l.send_ghost_column[0] || l.send_ghost_column[1] ? ghost_links : 0) |
                 (there_ && (ghost_rows() || ghost_columns()) ? has_ghosts : 0);
        auto element = [&](const F* at) { return (i32)(at - reinterpret_cast<const F*>(&s)); };
        beside_ = element(column_beside(0, lane_ / 16));
        beside_odd_ = element(column_beside(1, lane_ / 16)) - beside_;
    }

    // Bit c: column c keeps its value.
    static __device__ __forceinline__ u32 fixed_of(const u8* from) {
        struct alignas(K) bytes {
            u8 fixed[K];
        };
        bytes b = *reinterpret_cast<const bytes*>(from);
        u32 held = 0;
#pragma unroll
        for (int c = 0; c < K; ++c) held |= (u32)(b.fixed[c] != 0) << c;
        return held;
    }

    // The sweeps, up to the chunk behind the one that meets the threshold, and the field after them if all are made.
    __device__ __forceinline__ void sweeps() {
        show_columns(0, a_.generation);
        show_row(0, 0, a_.generation, u_[0]);
        show_row(1, 0, a_.generation, u_[leaf_rows - 1]);
        send_first_ghosts(a_.generation);
        send_ghosts(a_.generation);
        bool reports = blockIdx.x == 0;
        int first = 0, count = 0;
#pragma unroll 1
        for (; first < a_.sweeps; first += chunk) {
            int number = first / chunk;
            if (a_.decides && number > 0) put_out(a_.kept[number % 2]);
            count = a_.sweeps - first < chunk ? a_.sweeps - first : chunk;
#pragma unroll 1
            for (int i = 0; i < count; ++i) {
                // The edges in shared memory are complete, and the others' of the sweep before have been read.
                __syncthreads();
                if (i % group == 0 && failed((first + i) / group % 2)) return;
                if (there_) {
                    if (held_any_) {
                        once<true>(first + i, i > 0);
                    } else {
                        once<false>(first + i, i > 0);
                    }
                }
            }
            __syncthreads();
            combine(first + count - 1);
            __syncthreads();
            if (failed(0) || failed(1)) return;
            if (a_.decides) {
                if (a_.bands > 0) decision::add_chunk(a_.norms, s_.norms, number, count, s_.leaf);
                // A sweep of the chunk before that meets it, or a wait in vain.
                if (number > 0 && decision::decide(a_.norms, s_.norms, number - 1, chunk, reports) != -1) return;
            }
        }
        if (links_ & has_ghosts) {
            F above[K], below[K];
            receive<true>(a_.sweeps, false, above, below);
        }
        put_out(a_.plane.after);
        if (a_.decides) decision::decide(a_.norms, s_.norms, (first - 1) / chunk, count, reports);
    }

    __device__ bool failed(int parity) const { return *(volatile const u32*)&s_.failed[parity]; }

    // Writes the unit.
    __device__ __forceinline__ void put_out(F* to) const {
        if (!there_) return;
        int x = x0() + lane_ * K;
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) {
            if (y0() + r < a_.plane.own_end) store_row(to + a_.plane.at(x, y0() + r), u_[r]);
        }
    }

    template <bool Held> __device__ __forceinline__ void once(int sweep, bool combines) {
        u32 generation = a_.generation + sweep;
        int now = sweep & 1, next = now ^ 1;
        F up[K], below[K], sum[K];
        receive<Held>(sweep, combines, up, below);
        // The column left of lane 0, the column right of lane 31.
        F beside[leaf_rows];
        const F* elements = reinterpret_cast<const F*>(&s_);
        const four* column = reinterpret_cast<const four*>(elements + beside_ + now * beside_odd_);
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) beside[r] = column[r / at_once].value[r % at_once];
        // The compiler must not keep what follows from it from sweep to sweep: 64 conditions are no use in registers.
        if constexpr (Held) asm volatile("" : "+l"(held_));
        F last[K];
        row<Held>(leaf_rows - 1, u_[leaf_rows - 2], below, beside, last);
        show_row(1, next, generation + 1, last);
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) {
            F made[K];
            if (r + 1 < leaf_rows) {
                row<Held>(r, up, u_[r + 1], beside, made);
            } else {
#pragma unroll
                for (int c = 0; c < K; ++c) made[c] = last[c];
            }
#pragma unroll
            for (int c = 0; c < K; ++c) {
                F difference = made[c] - u_[r][c];
                F square = difference * difference;
                sum[c] = r == 0 ? square : sum[c] + square;
                up[c] = u_[r][c];
                u_[r][c] = made[c];
            }
            if (r == 0) show_row(0, next, generation + 1, u_[0]);
            if (r == 1) send_first_ghosts(generation + 1);
        }
        show_columns(next, generation + 1);
        send_ghosts(generation + 1);
        store_row(&s_.sums[now][warp_][lane_ * K], sum);
    }

    // Row r after a sweep, from the rows above and below it before.
    template <bool Held>
    __device__ __forceinline__ void row(int r, const F (&up)[K], const F (&down)[K], const F (&beside)[leaf_rows],
                                        F (&made)[K]) const {
        F left = __shfl_up_sync(all, u_[r][K - 1], 1);
        F right = __shfl_down_sync(all, u_[r][0], 1);
        left = lane_ == 0 ? beside[r] : left;
        right = lane_ == 31 ? beside[r] : right;
        F source[K];
        if constexpr (Source) load_row(source, a_.plane.source + a_.plane.at(x0() + lane_ * K, y0() + r));
#pragma unroll
        for (int c = 0; c < K; ++c) {
            F l = c == 0 ? left : u_[r][c - 1];
            F rr = c == K - 1 ? right : u_[r][c + 1];
            F total = ((rr + l) + down[c]) + up[c];
            if constexpr (Source) total = total - source[c];
            made[c] = F(0.25) * total;
            if constexpr (Held) made[c] = (held_ >> (r * K + c) & 1) ? u_[r][c] : made[c];
        }
    }

    // Leaves the first (0) or last (1) row where the neighbour finds it.
    __device__ __forceinline__ void show_row(int which, int parity, u32 generation, const F (&values)[K]) {
        store_row(s_.edge[parity][warp_].row[which] + lane_ * K, values);
        u64* out = s_.link[warp_].send_row[which];
        if (out) send_row(out, generation, values);
    }
    __device__ __forceinline__ void send_row(u64* out, u32 generation, const F (&values)[K]) const {
        u64 packet[halves * K];
#pragma unroll
        for (int c = 0; c < K; ++c) pack(values[c], generation, packet + c * halves);
        store_packets(out + row_ring(generation) + lane_ * (K * halves), packet);
    }

    // Leaves the outermost columns where the neighbours find them.
    __device__ __forceinline__ void show_columns(int parity, u32 generation) {
        if (lane_ != 0 && lane_ != 31) return;
        int side = lane_ / 16;
        F column[leaf_rows];
#pragma unroll
        for (int r = 0; r < leaf_rows; ++r) column[r] = K == 1 ? u_[r][0] : choose(side == 0, u_[r][0], u_[r][K - 1]);
        four* to = reinterpret_cast<four*>(s_.edge[parity][warp_].column[side]);
#pragma unroll
        for (int r = 0; r < leaf_rows; r += at_once) {
            four values;
#pragma unroll
            for (int i = 0; i < at_once; ++i) values.value[i] = column[r + i];
            to[r / at_once] = values;
        }
        if (!(links_ & send_links)) return;
        u64* out = s_.link[warp_].send_column[side];
        if (!out) return;
        out += column_ring(generation);
#pragma unroll
        for (int r = 0; r < leaf_rows; r += 2) {
            u64 packet[2 * halves];
            pack(column[r], generation, packet);
            pack(column[r + 1], generation, packet + halves);
            store_packets(out + r * halves, packet);
        }
    }
    static __device__ __forceinline__ void send_value(u64* to, u32 generation, F value) {
        u64 packet[halves];
        pack(value, generation, packet);
        store_packets(to, packet);
    }

    // Sends row 1, which the ghosts at the bottom copy.
    __device__ __forceinline__ void send_first_ghosts(u32 generation) const {
        if (!(links_ & first_ghost_link)) return;
        const links& l = s_.link[warp_];
        send_row(l.send_ghost_row[0], generation, u_[1]);
        if (l.send_ghost_row[2]) send_row(l.send_ghost_row[2], generation, u_[1]);
    }

    // Sends the rest of what ghosts at the other ends copy.
    __device__ __forceinline__ void send_ghosts(u32 generation) const {
        if (!(links_ & ghost_links)) return;
        const links& l = s_.link[warp_];
        if (u64* out = l.send_ghost_row[1]) {
            int at = a_.plane.ny - 2 - y0();
            if (at == leaf_rows - 2) {
                send_row(out, generation, u_[leaf_rows - 2]);
            } else {
                F values[K];
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    values[c] = u_[0][c];
#pragma unroll
                    for (int r = 1; r < leaf_rows; ++r) values[c] = choose(r == at, u_[r][c], values[c]);
                }
                send_row(out, generation, values);
            }
        }
#pragma unroll 1
        for (int i = 0; i < 3; ++i) {
            u64* out = l.send_ghost_column[i];
            if (!out) continue;
            int at = (i == 1 ? a_.plane.nx - 2 : 1) - x0();
#pragma unroll
            for (int r = 0; r < leaf_rows; ++r) {
                F value = u_[r][0];
#pragma unroll
                for (int c = 1; c < K; ++c) value = choose(at % K == c, u_[r][c], value);
                if (lane_ == at / K) send_value(out + column_ring(generation) + r * halves, generation, value);
            }
        }
    }

    // The rows above and below this unit, wherever they come from, and what ghosts copy. Columns that came in
    // packets are in `outside` afterwards. While packets are on their way, the sweep before is combined.
    template <bool Held>
    __device__ __forceinline__ void receive(int sweep, bool combines, F (&above)[K], F (&below)[K]) {
#pragma unroll
        for (int c = 0; c < K; ++c) above[c] = below[c] = F(0);
        int parity = sweep & 1;
        if (!(links_ & above_link) && warp_ >= a_.tile_units) {
            load_row(above, s_.edge[parity][warp_ - a_.tile_units].row[1] + lane_ * K);
        }
        if (!(links_ & below_link) && warp_ + a_.tile_units < blockDim.x / 32) {
            load_row(below, s_.edge[parity][warp_ + a_.tile_units].row[0] + lane_ * K);
        }
        if (links_ & (above_link | below_link | column_links)) {
            u32 generation = a_.generation + sweep;
            const links& l = s_.link[warp_];
            u64 a[halves * K], b[halves * K], beside[halves];
            const u64* from_above = l.receive_row[0] + row_ring(generation) + lane_ * (K * halves);
            const u64* from_below = l.receive_row[1] + row_ring(generation) + lane_ * (K * halves);
            const u64* from_beside = l.receive_column[lane_ / 16] + column_ring(generation) + lane_ % 16 * halves;
            // What does not come is there.
#pragma unroll
            for (int i = 0; i < halves * K; ++i) a[i] = b[i] = (u64)generation << 32;
#pragma unroll
            for (int i = 0; i < halves; ++i) beside[i] = (u64)generation << 32;
            auto ask = [&] {
                if (links_ & above_link) load_packets(from_above, a);
                if (links_ & below_link) load_packets(from_below, b);
                if (links_ & beside_link) load_packets(from_beside, beside);
            };
            auto come = [&] {
                u32 any = of_other_generation(a, generation) | of_other_generation(b, generation) |
                          of_other_generation(beside, generation);
                return (bool)__all_sync(all, any == 0);
            };
            ask();
            if (combines) combine(sweep - 1);
            if (!come()) {
                // Of lane 0, which may have no column of its own where lane 31 has one.
                const u64* column = l.receive_column[l.receive_column[0] ? 0 : 1] + column_ring(generation);
                const u64* word = links_ & above_link ? from_above : links_ & below_link ? from_below : column;
                wait(
                    [&] {
                        ask();
                        return come();
                    },
                    word, generation, sweep);
            }
            if (links_ & above_link) {
#pragma unroll
                for (int c = 0; c < K; ++c) above[c] = unpack<F>(a + c * halves);
            }
            if (links_ & below_link) {
#pragma unroll
                for (int c = 0; c < K; ++c) below[c] = unpack<F>(b + c * halves);
            }
            if (links_ & column_links) {
                s_.outside[warp_][lane_ / 16][lane_ % 16] = unpack<F>(beside);
                __syncwarp();
            }
        } else if (combines) {
            combine(sweep - 1);
        }
        if constexpr (Held) {
            if (links_ & has_ghosts) copy_ghosts(above, below);
        }
    }

    template <class Look> __device__ __forceinline__ void wait(Look look, const u64* word, u32 generation, int sweep) {
        if (wait_for_packets(look, [=] { return word; }, generation)) return;
        if (lane_ == 0) *(volatile u32*)&s_.failed[(sweep / group + 1) % 2] = 1;
    }

    // The neighbours' column beside this unit's first (0) or last (1).
    __device__ __forceinline__ const F* column_beside(int parity, int side) const {
        if (s_.link[warp_].receive_column[side]) return s_.outside[warp_][side];
        int neighbour = warp_ % a_.tile_units + (side == 0 ? -1 : 1);
        bool inside = neighbour >= 0 && neighbour < a_.tile_units;
        return s_.edge[parity][inside ? warp_ - warp_ % a_.tile_units + neighbour : warp_].column[1 - side];
    }

    // Overwrites this unit's ghosts by what has come.
    __device__ __forceinline__ void copy_ghosts(const F (&above)[K], const F (&below)[K]) {
        const band<F>& g = a_.plane;
        if (g.wrap_y) {
            int bottom = g.ny - 1 - y0();
            if (y0() == 0) set_row(0, above);
            if (bottom == leaf_rows - 1) {
                set_row(leaf_rows - 1, below);
            } else if (bottom >= 0 && bottom < leaf_rows) {
#pragma unroll
                for (int r = 0; r < leaf_rows; ++r) {
#pragma unroll
                    for (int c = 0; c < K; ++c) u_[r][c] = choose(r == bottom, below[c], u_[r][c]);
                }
            }
        }
        if (g.wrap_x && ghost_columns()) {
            // Where they are in this unit, if they are.
            int left = -x0(), right = g.nx - 1 - x0();
#pragma unroll
            for (int r = 0; r < leaf_rows; ++r) {
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    F value = u_[r][c];
                    value = choose(lane_ * K + c == left, s_.outside[warp_][0][r], value);
                    u_[r][c] = choose(lane_ * K + c == right, s_.outside[warp_][1][r], value);
                }
            }
        }
    }
    __device__ __forceinline__ void set_row(int r, const F (&values)[K]) {
#pragma unroll
        for (int c = 0; c < K; ++c) u_[r][c] = values[c];
    }

    // Combines the columns of a sweep's leaf in the order of the contract.
    __device__ __forceinline__ void combine(int sweep) {
        if (warp_ % parts != 0 || !there_) return;
        // The units of a leaf are side by side, and so are their sums.
        const F* columns = s_.sums[sweep & 1][warp_];
        F total = halve_quarters(columns[lane_], columns[lane_ + 32], columns[lane_ + 64], columns[lane_ + 96]);
        if (lane_ == 0) s_.leaf[sweep % chunk][warp_ / parts] = total;
    }
};

// A kernel of units of 32 `columns` columns, for blocks that have `bytes` of shared memory.
#define CROSSWARP_PLANE_TILE(name, bytes, F, columns, source)                    \
    extern "C" __global__ void __launch_bounds__(32 * cw::tile_warps, 1)         \
        name(const __grid_constant__ cw::tile_run<F> run) {                      \
        extern __shared__ __align__(16) unsigned char shared[];                  \
        using unit = cw::plane_tile<F, columns, source>;                         \
        static_assert(sizeof(unit::scratch) <= bytes, "what the host asks for"); \
        unit::run(run, *reinterpret_cast<unit::scratch*>(shared));               \
    }

}  // namespace crosswarp

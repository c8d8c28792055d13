// Two relaxations of a level of a box in red-black order, and what comes before and after them, in one pass through memory.
//
// As `box_pass.cuh`, a block has a tile of columns of points along z and walks through the planes: red points are relaxed a
// plane behind the field that is read, black ones a plane behind these, and the residual follows another plane behind. A step
// computes the points of its colour alone. A lane has two columns, an even one and the odd one behind it, so one of its two
// points in a row is red. All neighbours of this one are black: one along x is the thread's own, the other that of a lane
// beside; planes and rows around are the thread's own but for those beyond its rows, which are in shared memory.
//
// Right sides come to shared memory by copies that are waited for an iteration later. The residual takes their place, and an
// iteration later squares are added and the next level's right side is made of it. It is that of red points: the equations of
// black ones hold, for the last relaxation before it has ω = 1. Operations as in `space/row.rs` and `space/transfer.rs`, in the
// same order.
#pragma once
#include "async_copy.cuh"
#include "mbarrier.cuh"
#include "multigrid/box_pass.cuh"

namespace crosswarp {

// What a block keeps of its columns: these numbers, 1 / the diagonal in calm rows, and, two of a lane, the weights with which its
// odd column takes the correction of its coarse column and the next, and its coarse column the residual of the odd columns around.
enum pair_number { pair_inverse = line_free + 1, pair_correction, pair_residual, pair_numbers };
static_assert(pair_numbers == box_pair_numbers, "shared memory of a block");

// Point `at` of an axis, or, if that does not wrap around, the last that is there. A function of its own, as few planes lie
// across the ends of an axis.
__device__ __noinline__ inline int point_of(const box_pass& g, int axis, int at) {
    return g.wraps[axis] ? wrapped(at, g.size[axis]) : min(max(at, 0), g.size[axis] - 1);
}
// Of the next level, and if the axis does not wrap around the number itself.
__device__ __noinline__ inline int coarse_point_of(const box_pass& g, int axis, int at) {
    return g.wraps[axis] ? wrapped(at, g.coarse_size[axis]) : at;
}

// What is known of the points of an iteration: nothing; that rows and planes with equations are calm; that all rows and columns
// have equations, too, all couplings are even, and none of them lies beyond an end.
enum points_known { any_points, calm_points, even_points };

// What a thread knows of its points. In shared memory: registers do not suffice, and of a register the compiler would keep every
// bit that is asked for in one more.
struct pair_facts {
    // By row, of the two columns that the thread writes, whether they are this block's; of coarse rows, whether they are this
    // block's to write, and whether they are there.
    u32 own : 2 * box_thread_rows;
    u32 own_coarse : box_thread_rows / 2;
    u32 coarse_there : box_thread_rows / 2 + 1;
    // By row, whether it keeps its values, and whether it is there.
    u32 held : box_thread_rows;
    u32 row_there : box_thread_rows;
    // By column, whether it is there, and has equations; of the columns that the thread reads, whether they are there.
    u32 there : 2;
    u32 free : 2;
    u32 reads_column : 2;
};
static_assert(sizeof(pair_facts) == sizeof(u32), "read at once");

// A thread's part of a block's way through the planes. `warps` have a tile, `helpers` beside them add squares. `may_wrap`: axes
// of even lengths may wrap around; where none does, code for them would take registers.
template <int warps, int helpers, int start, bool measures, bool restricts, bool may_wrap> struct red_black_walk {
    static constexpr int lanes = 32, per = box_thread_rows, high = warps * per;
    static constexpr bool then = measures || restricts, corrects = start >= start_corrected;
    static constexpr bool reads = start == start_field || start == start_corrected;
    // Points around its own ones that a pass reads, and an even number of these that a tile has on each side. There is no
    // lane behind the last, so that its odd column is not corrected: then there are two columns more.
    static constexpr int margin = 2 + (restricts ? 2 : then ? 1 : 0), side = (margin + 1) / 2 * 2;
    static constexpr int own_x = 2 * lanes - 2 * side - (corrects ? 2 : 0);
    static constexpr int own_y = measures ? (high - 2 * side) / leaf_rows * leaf_rows : high - 2 * side;
    // Planes of right sides: one that is read, those of both steps, of the residual, and the one that is made something of.
    static constexpr int slots = then ? 5 : 3;
    // Elements of a plane's points of a colour, some of them not used, so that points of both colours lie in different banks; of
    // the rows of a plane that others read.
    static constexpr int half = high * lanes + lanes / 4, rim = warps * 2 * lanes;
    // Whether a warp waits for those beside it alone, not for the whole block. Where squares are added all wait for all.
    static constexpr bool waits_for_neighbours = !measures;
    static_assert(measures || helpers == 0, "helpers meet the whole block");

    const box_pass& g;
    // Numbers of the columns; planes of right sides, of which red points come first; the plane of the field that is read; the
    // first and last rows of warps, of the points that steps and the residual find around theirs, by parity of planes.
    double *const columns, *const slot_memory, *const field_memory, *const rims;
    // Of each warp, two that take turns: phases are its iterations.
    mbarrier* const made;
    // The thread's facts.
    volatile u32* const known_facts;
    const int lane, warp, first;
    // The even column of the thread and its first row, in the level.
    const int x, y;
    // The planes of the block, and those that it begins and ends with.
    const int z0, z1, top, bottom;
    // Where axes may wrap around: the two columns that the thread reads, and its first row; of an axis that does not the number
    // itself, there or not.
    int read_columns[2], first_row;
    // Whether something is, or is not, so; whether all rows that have equations are calm, and all couplings even; whether
    // these are all, the rows around them are calm, too, and none lies beyond an end. The same for the whole warp.
    bool exceptions, calm_rows, even, all_even;
    // Where the thread's first row begins in plane `now` of this level; where its coarse column lies in its first coarse row.
    i64 at;
    int coarse_at;
    // Where the planes of right sides are: the one that is read, and those before it.
    int slot[slots];
    // Of the planes before the newest, what later ones need: black points before their step in two, by their parity, red ones
    // before theirs in one; red ones after it in two, and black ones.
    double black_0[2][per] = {}, red_0[per] = {}, red_1[2][per] = {}, black_2[2][per] = {};
    // What was asked for of the correction: of coarse rows, in the coarse plane there, or before, and behind.
    double next_c[per / 2 + 1][2] = {};
    // Sums for two coarse rows: of the even column, and of the odd one.
    double sums[per / 2][2] = {};

    __device__ __forceinline__ red_black_walk(const box_pass& g, double* memory)
        : g(g), columns(memory), slot_memory(columns + pair_numbers * 2 * lanes), field_memory(slot_memory + slots * 2 * half),
          rims(field_memory + (reads ? 2 * half : 0)),
          made(reinterpret_cast<mbarrier*>(rims + (then ? 3 : 2) * 2 * rim)),
          known_facts(reinterpret_cast<u32*>(made + 2 * warps) + threadIdx.x), lane(threadIdx.x % lanes),
          warp(threadIdx.x / lanes),
          first(warp * per), x(int(blockIdx.x) * own_x - side + 2 * lane), y(int(blockIdx.y) * own_y - side + first),
          z0(g.plane_start + int(blockIdx.z) * g.planes), z1(min(z0 + g.planes, g.plane_end)),
          top(wraps(2) ? z0 - margin : max(z0 - margin, 0)), bottom(wraps(2) ? z1 + margin : min(z1 + margin, nz())) {
        u32 own = 0, own_coarse = 0, coarse_there = 0, held = 0, row_there = 0, there = 0, free = 0, reads_column = 0;
        bool alike = true;
        u32 own_column = 0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const bool is_there = has(0, x + c);
            const bool is_free = is_there && line_number(g, 0, line_free, column(c)) != 0.0;
            there |= u32(is_there) << c;
            free |= u32(is_free) << c;
            alike = alike && (!is_free || is_calm(0, column(c)));
            const int read = lane + c * lanes, write = write_column() + c * lanes, begin = x - 2 * lane;
            if (has(0, begin + read)) reads_column |= 1u << c;
            if (may_wrap) read_columns[c] = point(0, begin + read);
            if (write >= side && write < side + own_x && begin + write < nx()) own_column |= 1u << c;
        }
        calm_rows = calm_from(1) < calm_to(1);
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const bool is_there = has(1, y + k);
            row_there |= u32(is_there) << k;
            if (!is_there || line_number(g, 1, line_free, row(k)) == 0.0) held |= 1u << k;
            const bool own_row = first + k >= side && first + k < side + own_y && y + k < ny();
            if (own_row) own |= own_column << 2 * k;
            const int from_side = lane - side / 2;
            if (k % 2 == 0 && own_row && from_side >= 0 && from_side < own_x / 2 && x < nx()) own_coarse |= 1u << k / 2;
            calm_rows = calm_rows && ((held >> k & 1) || is_calm(1, row(k)));
        }
        exceptions = __any_sync(0xffffffffu, held != 0 || there != 3 || free != 3);
        even = __all_sync(0xffffffffu, calm_rows && alike && g.even_coupling != 0.0);
        all_even = even && !exceptions && is_calm(1, y - 1) && is_calm(1, y + per);
        const int begin = x - 2 * lane;
        if (wraps(0)) all_even = all_even && begin >= 0 && begin + 2 * lanes <= nx();
#pragma unroll
        for (int i = 0; i <= per / 2; ++i) {
            const int row = (y >> 1) + i;
            if (wraps(1) || (row >= 0 && row < g.coarse_size[1])) coarse_there |= u32(has(0, x)) << i;
        }
        if (may_wrap) first_row = wraps(1) ? row(0) : y;
        at = (top - 1) * g.plane + (i64)y * stride() + (x - 2 * lane + 1);
        coarse_at = (may_wrap ? first_row >> 1 : y >> 1) * coarse_stride() + ((wraps(0) ? column(0) : x) >> 1) + 1;
#pragma unroll
        for (int s = 0; s < slots; ++s) slot[s] = (slots - s) % slots * 2 * half;
        // Those beside them that have no part of the tile have no facts.
        if (warp < warps) {
            const pair_facts all = {own, own_coarse, coarse_there, held, row_there, there, free, reads_column};
            u32 bits;
            memcpy(&bits, &all, sizeof bits);
            *known_facts = bits;
        }
        keep_numbers();
    }

    // What the thread knows of its points, read from shared memory; if all are even nothing is asked for.
    template <points_known known = any_points> __device__ __forceinline__ pair_facts facts() const {
        pair_facts all = {};
        if (known != even_points) {
            const u32 bits = *known_facts;
            memcpy(&all, &bits, sizeof bits);
        }
        return all;
    }
    __device__ __forceinline__ int nx() const { return g.size[0]; }
    __device__ __forceinline__ int ny() const { return g.size[1]; }
    __device__ __forceinline__ int nz() const { return g.size[2]; }
    __device__ __forceinline__ int stride() const { return nx() + 2; }
    __device__ __forceinline__ int coarse_stride() const { return g.coarse_size[0] + 2; }
    // A tile may lie across the ends of an axis that wraps around. Beyond an end colours go on, as its length is even.
    __device__ __forceinline__ bool wraps(int axis) const { return may_wrap && g.wraps[axis]; }
    __device__ __forceinline__ bool has(int axis, int at) const { return wraps(axis) || (at >= 0 && at < g.size[axis]); }
    // Point `at` of an axis, or the last that is there.
    __device__ __forceinline__ int point(int axis, int at) const {
        return may_wrap ? point_of(g, axis, at) : min(max(at, 0), g.size[axis] - 1);
    }
    // The thread's column c, and its row k.
    __device__ __forceinline__ int column(int c) const { return point(0, x + c); }
    __device__ __forceinline__ int row(int k) const { return point(1, y + k); }
    // Planes of this level and the next; if they do not wrap around the number itself, there or not.
    __device__ __forceinline__ int plane_of(int z) const { return wraps(2) ? point_of(g, 2, z) : z; }
    __device__ __forceinline__ int coarse_plane_of(int j) const { return wraps(2) ? coarse_point_of(g, 2, j) : j; }
    // The row behind row `at` of the level, or of the next one, of `rows`.
    __device__ __forceinline__ int row_behind(int at, int rows) const { return wraps(1) && at + 1 == rows ? 0 : at + 1; }
    // Of the first half of a tile's columns, the one that the thread writes; of the other half the same.
    __device__ __forceinline__ int write_column() const { return lane < lanes / 2 ? 2 * lane : 2 * lane - lanes + 1; }
    __device__ __forceinline__ int calm_from(int axis) const { return g.calm[2 * axis]; }
    __device__ __forceinline__ int calm_to(int axis) const { return g.calm[2 * axis + 1]; }
    __device__ __forceinline__ bool is_calm(int axis, int at) const { return at >= calm_from(axis) && at < calm_to(axis); }
    __device__ __forceinline__ bool is_calm_around(int axis, int at) const {
        return is_calm(axis, 2 * at - 1) && is_calm(axis, 2 * at + 1);
    }
    __device__ __forceinline__ bool plane_free(int z) const { return line_number(g, 2, line_free, plane_of(z)) != 0.0; }
    __device__ __forceinline__ bool is_calm_plane(int z) const { return is_calm(2, plane_of(z)); }
    // Step s makes a plane less on each side than the one before.
    __device__ __forceinline__ bool reaches(int s, int z) const {
        if (wraps(2)) return z >= top + s && z < bottom - s;
        return z >= max(z0 - margin + s, 0) && z < min(z1 + margin - s, nz());
    }
    // A number of the thread's column c.
    __device__ __forceinline__ double& number(int which, int c) const { return columns[(which * 2 + c) * lanes + lane]; }
    // Takes down what `number` says. The first warp; the others see it behind the first `__syncthreads`.
    __device__ __forceinline__ void keep_numbers() const {
        if (warp > 0) return;
        const i64 kind = calm_from(2) < calm_to(2) ? read(g.inverse_of + ((i64)calm_from(2) * ny() + calm_from(1))) : 0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
#pragma unroll
            for (int part = 0; part <= line_free; ++part) number(part, c) = line_number(g, 0, part, column(c));
            number(pair_inverse, c) = read(g.inverses + (kind * nx() + column(c)));
        }
        if (!corrects && !restricts) return;
        const int j = column(0) >> 1, n = g.coarse_size[0];
        double around[2];
        weights_beside(g, j, around);
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            number(pair_correction, c) = read(g.weights[0] + c * n + j);
            number(pair_residual, c) = around[c];
        }
    }

    // Asks for plane `now` of the right side, and for the next of the field.
    template <points_known known> __device__ __forceinline__ void ask(int now) {
        auto copy = [&](double* to, const double* field, int z) {
            to = opaque(to + first * lanes + lane / 2);
            const int even_rows = ((lane + z) & 1) * half;
            double *const even_to = to + even_rows, *const odd_to = to + (half - even_rows);
            const pair_facts of = facts<known>();
            const bool left = known == even_points || (of.reads_column & 1), right = known == even_points || (of.reads_column & 2);
            constexpr bool straight = known == even_points || !may_wrap;
            const double* from = field + (straight ? at + (z - now) * g.plane + lane : 0);
            int row_of_level = 0, right_column = lanes;
            if constexpr (!straight) {
                const i64 plane = known == any_points ? plane_of(z) : z;
                row_of_level = first_row;
                right_column = read_columns[1] - read_columns[0];
                from += plane * g.plane + (i64)first_row * stride() + read_columns[0] + 1;
            }
#pragma unroll
            for (int k = 0; k < per; ++k) {
                double* row = (k % 2 == 0 ? even_to : odd_to) + k * lanes;
                if (known == even_points || (of.row_there >> k & 1)) {
                    if (left) copy_async<8>(row, from);
                    if (right) copy_async<8>(row + lanes / 2, from + right_column);
                }
                from += stride();
                if constexpr (!straight) {
                    row_of_level = row_behind(row_of_level, ny());
                    if (wraps(1) && row_of_level == 0) from -= (i64)ny() * stride();
                }
            }
        };
        // The first step reaches no plane behind these.
        if (known != any_points || (now >= top && now < (wraps(2) ? bottom : min(z1 + margin, nz() + 1)) - 1)) {
            copy(slot_memory + slot[0], g.right_side, now);
        }
        if (reads && (known != any_points || now + 1 < bottom)) {
            copy(field_memory, g.before, now + 1);
        }
        copy_commit();
    }
    // Asks for what `correct_calm` takes for plane z. Behind the last coarse plane there is none, and nothing is made of what
    // is read.
    template <points_known known> __device__ __forceinline__ void ask_correction(int z) {
        const int j = known == any_points ? coarse_plane_of(z >> 1) : z >> 1;
        const double* from = opaque(g.correction + (j * g.coarse_plane + coarse_at));
        i64 next = known == even_points || j + 1 < g.coarse_size[2] ? g.coarse_plane : 0;
        if (known == any_points && wraps(2) && next == 0) next = -j * g.coarse_plane;
        const double* behind = from + next;
        int row = may_wrap ? first_row >> 1 : 0;
        const u32 coarse_there = facts<known>().coarse_there;
#pragma unroll
        for (int i = 0; i <= per / 2; ++i) {
            if (known == even_points || (coarse_there >> i & 1)) {
                next_c[i][0] = read_now(from);
                if (z & 1) next_c[i][1] = read_now(behind);
            }
            from += coarse_stride();
            behind += coarse_stride();
            if (known != even_points && may_wrap) {
                row = row_behind(row, g.coarse_size[1]);
                if (wraps(1) && row == 0) {
                    from -= (i64)g.coarse_size[1] * coarse_stride();
                    behind -= (i64)g.coarse_size[1] * coarse_stride();
                }
            }
        }
    }
    // Adds the correction of plane z, of parity `odd`.
    template <int odd, points_known known>
    __device__ __forceinline__ void correct(int z, double (&red)[per], double (&black)[per]) const {
        double by[per];
        const pair_facts of = facts<known>();
        if (known != any_points || (calm_rows && is_calm_plane(z))) {
            correct_calm<per>(g, odd != 0, next_c, by);
        } else {
            if (!plane_free(z)) return;
#pragma unroll
            for (int k = 0; k < per; ++k) by[k] = of.held >> k & 1 ? 0.0 : box_correction(g, column(0) >> 1, row(k), plane_of(z));
        }
        const double left = known == even_points ? g.calm_weights[0] : number(pair_correction, 0);
        const double right = known == even_points ? g.calm_weights[1] : number(pair_correction, 1);
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const double next = __shfl_down_sync(0xffffffffu, by[k], 1);
            double between = left * by[k] + right * next;
            if (known != even_points && exceptions) {
                if (!(of.free & 1)) by[k] = 0.0 * by[k];
                if (!(of.free & 2)) between = 0.0 * between;
                if (of.held >> k & 1) continue;
            }
            if ((k + odd) % 2 == 0) {
                red[k] += by[k];
                black[k] += between;
            } else {
                black[k] += by[k];
                red[k] += between;
            }
        }
    }

    // The first and the last row of the points of plane parity `parity` that step s + 1 finds around its own.
    __device__ __forceinline__ void show(int s, int parity, const double (&values)[per]) const {
        double* to = rims + (2 * s + parity) * rim + warp * 2 * lanes + lane;
        to[0] = values[0];
        to[lanes] = values[per - 1];
    }

    // b − Au at the thread's points of a colour in plane z, and u + ω D⁻¹ (b − Au) to `after`; iterations are of parity `odd`.
    // `c`: the points; those of the other colour in the same plane, the one before, the one behind; what others `show`.
    template <int odd, points_known known, bool relaxes>
    __device__ __forceinline__ void step(int s, int z, double omega, const double (&c)[per], const double (&beside)[per],
                                         const double (&up)[per], const double (&down)[per], const double* right_side,
                                         double (&found)[per], double (&after)[per]) const {
        const pair_facts about = facts<known>();
        const double* shown = rims + (2 * s + (z & 1)) * rim + lane;
        const double north_of_all = shown[(2 * max(warp - 1, 0) + 1) * lanes];
        const double south_of_all = shown[2 * min(warp + 1, warps - 1) * lanes];
        const bool calm = known != any_points || (calm_rows && is_calm_plane(z)), alike = known == even_points || (even && calm);
        const bool plane_held = !calm && !plane_free(z);
        double gains[2];
        if (alike) {
            gains[0] = gains[1] = omega * g.calm_inverse;
        } else {
#pragma unroll
            for (int q = 0; q < 2; ++q) gains[q] = omega * number(pair_inverse, q);
        }
        double others[per];
#pragma unroll
        for (int k = 0; k < per; ++k) {
            others[k] = (k + odd) % 2 == 0 ? __shfl_down_sync(0xffffffffu, beside[k], 1)
                                           : __shfl_up_sync(0xffffffffu, beside[k], 1);
        }
        if (alike) {
#pragma unroll
            for (int k = 0; k < per; ++k) {
                const double north = k > 0 ? beside[k > 0 ? k - 1 : 0] : north_of_all;
                const double south = k < per - 1 ? beside[k < per - 1 ? k + 1 : k] : south_of_all;
                const double along = (beside[k] - c[k]) + (others[k] - c[k]);
                const double around = ((north - c[k]) + (south - c[k])) + ((up[k] - c[k]) + (down[k] - c[k]));
                found[k] = right_side[k * lanes] + g.even_coupling * (along + around);
            }
        } else {
#pragma unroll
            for (int k = 0; k < per; ++k) {
                const int q = (k + odd + 1) % 2;
                double north = k > 0 ? beside[k > 0 ? k - 1 : 0] : north_of_all;
                double south = k < per - 1 ? beside[k < per - 1 ? k + 1 : k] : south_of_all;
                double over = up[k], under = down[k];
                box_row of = {g.calm_row[0], g.calm_row[1], g.calm_row[2], g.calm_row[3], g.calm_row[4], g.calm_row[5]};
                // The same for the whole warp.
                if (!calm && !plane_held && !(about.held >> k & 1)) {
                    const box_couplings at = couplings_at(g, column(q), row(k), plane_of(z));
                    of = at.row;
                    gains[q] = omega * at.inverse;
                    // At an end of the grid the one on the other side, which couplings of zero make nothing of.
                    if (y + k == 0 && !wraps(1)) north = c[k];
                    if (y + k == ny() - 1 && !wraps(1)) south = c[k];
                    const bool no_up = z == 0 && !wraps(2), no_down = z == nz() - 1 && !wraps(2);
                    over = no_up ? (no_down ? c[k] : down[k]) : up[k];
                    under = no_down ? (no_up ? c[k] : up[k]) : down[k];
                }
                const double west = q == 0 ? others[k] : beside[k], east = q == 0 ? beside[k] : others[k];
                const double along = number(line_before, q) * (west - c[k]) + number(line_after, q) * (east - c[k]);
                const double around = (of.north * (north - c[k]) + of.south * (south - c[k])) +
                                      (of.up * (over - c[k]) + of.down * (under - c[k]));
                const double sum = of.across * (along - number(line_excess, q) * c[k]) +
                                   number(line_mass, q) * (around - of.excess * c[k]);
                found[k] = right_side[k * lanes] + sum;
                if (!calm) {
                    // Each point has its own.
                    if (!(about.free >> q & 1)) found[k] = found[k] * 0.0;
                    if constexpr (relaxes) after[k] = c[k] + gains[q] * found[k];
                }
            }
            if (!calm) return settle<odd, relaxes>(plane_held ? (1u << per) - 1 : about.held, c, found, after);
        }
        if (known != even_points && exceptions) {
#pragma unroll
            for (int k = 0; k < per; ++k) {
                if (!(about.free >> (k + odd + 1) % 2 & 1)) found[k] = found[k] * 0.0;
            }
        }
        if constexpr (relaxes) {
#pragma unroll
            for (int k = 0; k < per; ++k) after[k] = c[k] + gains[(k + odd + 1) % 2] * found[k];
        }
        if (known != even_points && exceptions) settle<odd, relaxes>(about.held, c, found, after);
    }
    // Rows that keep their values, and columns that are not there.
    template <int odd, bool relaxes>
    __device__ __forceinline__ void settle(u32 keep, const double (&c)[per], double (&found)[per], double (&after)[per]) const {
        const u32 there = facts().there;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const bool is_there = there >> (k + odd + 1) % 2 & 1;
            if ((keep >> k & 1) || !is_there) {
                found[k] = 0.0;
                if constexpr (relaxes) after[k] = is_there ? c[k] : 0.0;
            }
        }
    }
    // The first step, from zero.
    template <int odd, points_known known>
    __device__ __forceinline__ void step_from_zero(int z, const double* right_side, double (&after)[per]) const {
        if constexpr (known == even_points) {
#pragma unroll
            for (int k = 0; k < per; ++k) after[k] = (g.omega[0] * g.calm_inverse) * right_side[k * lanes];
            return;
        }
        const bool calm = known != any_points || (calm_rows && is_calm_plane(z));
        const bool plane_held = !calm && !plane_free(z);
        const pair_facts of = facts();
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const int q = (k + odd + 1) % 2;
            after[k] = 0.0;
            // The same for the whole warp.
            if (plane_held || (of.held >> k & 1)) continue;
            const double inverse = calm ? number(pair_inverse, q) : couplings_at(g, column(q), row(k), plane_of(z)).inverse;
            if (of.there >> q & 1) after[k] = (g.omega[0] * inverse) * right_side[k * lanes];
        }
    }

    // Writes plane now − 2, of parity `odd`, of the field after.
    template <int odd>
    __device__ __forceinline__ void put(const double (&red)[per], const double (&black)[per]) const {
        double* to = g.after + (at - 2 * g.plane + write_column());
        const bool first_half = lane < lanes / 2;
        const u32 own = facts().own;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const bool red_first = (k + odd) % 2 == 0;
            const double a = red_first ? red[k] : black[k], b = red_first ? black[k] : red[k];
            // Half a row in each: neighbouring lanes write neighbouring columns.
            const double other = __shfl_xor_sync(0xffffffffu, first_half ? b : a, lanes / 2);
            if (own >> 2 * k & 1) to[0] = first_half ? a : other;
            if (own >> 2 * k & 2) to[lanes] = first_half ? other : b;
            to += stride();
        }
    }

    // The weights of three rows, or planes, in coarse point j of an axis.
    __device__ __forceinline__ void weights_of(int axis, int j, double (&weights)[3]) const {
        if (is_calm_around(axis, j)) {
            weights[0] = g.calm_weights[2 * axis + 1];
            weights[1] = 1.0;
            weights[2] = g.calm_weights[2 * axis];
        } else {
            weights_around(g, axis, j, weights);
        }
    }
    // Takes plane z, of parity `odd`, of the residual for the next level's right side, and writes that where it is complete.
    template <int odd, points_known known> __device__ __forceinline__ void restrict_plane(int z, const double* residual) {
        if (z < z0 - 1 || z > z1 || !has(2, z)) return;
        double values[per + 1];
        residual += first * lanes + lane;
#pragma unroll
        for (int k = -1; k < per; ++k) {
            // Above the tile there is nothing, and nothing of that is needed.
            values[k + 1] = residual[(k < 0 && warp == 0 ? 0 : k) * lanes];
        }
        auto add = [&](double weight_of_plane) {
            int row = may_wrap ? first_row >> 1 : y >> 1;
#pragma unroll
            for (int i = 0; i < per / 2; ++i) {
                double rows[3] = {g.calm_weights[3], 1.0, g.calm_weights[2]};
                if constexpr (known != even_points) {
                    // Of rows that are not there nothing is needed.
                    if (row >= 0 && row < g.coarse_size[1]) weights_of(1, row, rows);
                    row = row_behind(row, g.coarse_size[1]);
                }
                // In column c those rows that have its red point; what is 0 changes no sum.
#pragma unroll
                for (int a = 0; a < 3; ++a) sums[i][(a + odd + 1) % 2] += rows[a] * weight_of_plane * values[2 * i + a];
            }
        };
        // The plane before the first of a block, or behind its last, adds to others alone.
        const int j = z >> 1;
        double planes[3];
        weights_of(2, known == any_points ? coarse_plane_of(j) : j, planes);
        add(planes[1 + odd]);
        if (odd || (z + 1 == nz() && !wraps(2))) write_coarse(j);
        if constexpr (odd == 1) {
#pragma unroll
            for (int i = 0; i < per / 2; ++i) sums[i][0] = sums[i][1] = 0.0;
            if (z + 1 == nz() && !wraps(2)) return;
            weights_of(2, known == any_points ? coarse_plane_of(j + 1) : j + 1, planes);
            add(planes[0]);
        }
    }
    __device__ __forceinline__ void write_coarse(int j) const {
        const u32 mine = 2 * j >= z0 && 2 * j < z1 ? facts().own_coarse : 0;
        double* to = g.coarse_right_side + (j * g.coarse_plane + coarse_at);
#pragma unroll
        for (int i = 0; i < per / 2; ++i) {
            const double before = __shfl_up_sync(0xffffffffu, sums[i][1], 1);
            const double value = sums[i][0] + (number(pair_residual, 0) * before + number(pair_residual, 1) * sums[i][1]);
            if (mine >> i & 1) to[i * coarse_stride()] = value;
        }
    }

    // Adds up the squares of plane z's residual over the rows of each leaf.
    __device__ __forceinline__ void add_squares(int z, const double* residual) const {
        if (z < z0 || z >= z1) return;
        constexpr int bands = own_y / leaf_rows, threads = (helpers > 0 ? helpers : warps) * lanes;
        const int all = (ny() + leaf_rows - 1) / leaf_rows;
        for (int t = int(threadIdx.x) - (helpers > 0 ? warps * lanes : 0); t < bands * own_x; t += threads) {
            // Even columns before odd ones, whose points lie beside each other.
            const int band = t / own_x, i = t % own_x, at = i < own_x / 2 ? 2 * i : 2 * i - own_x + 1;
            const int of_column = int(blockIdx.x) * own_x + at;
            const int of_level = int(blockIdx.y) * bands + band, rows = min(leaf_rows, ny() - of_level * leaf_rows);
            if (of_column >= nx() || rows <= 0) continue;
            // The column's red points are in every second row. What is 0 changes no sum.
            const int odd = (at + z) & 1;
            const double* red = residual + (side + band * leaf_rows + odd) * lanes + (side + at) / 2;
            double sum = 0.0;
            if (rows == leaf_rows) {
#pragma unroll
                for (int i = 0; i < leaf_rows; i += 2) sum += red[i * lanes] * red[i * lanes];
            } else {
                for (int i = 0; i < rows - odd; i += 2) sum += red[i * lanes] * red[i * lanes];
            }
            g.sums[((i64)(z - g.plane_start) * all + of_level) * g.sum_pitch + of_column] = sum;
        }
    }

    // All that is done in iteration `now`, of parity `odd`.
    template <int odd, points_known known> __device__ __forceinline__ void go(int now) {
        // Fields of planes are kept by their parity.
        constexpr int here = odd, other = 1 - odd;
        copy_wait<0>();
        // What the warp's lanes have copied is there.
        __syncwarp();
        double red[per], black[per];
        const double* field = field_memory + first * lanes + lane;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            red[k] = reads ? field[k * lanes] : 0.0;
            black[k] = reads ? field[half + k * lanes] : 0.0;
        }
        if (corrects && (known != any_points || now < bottom)) correct<odd, known>(now, red, black);
        if (known != even_points && exceptions) {
            const u32 there = facts().there;
#pragma unroll
            for (int k = 0; k < per; ++k) {
                if (!(there >> (k + odd) % 2 & 1)) red[k] = 0.0;
                if (!(there >> (k + odd + 1) % 2 & 1)) black[k] = 0.0;
            }
        }
        wait_for_neighbours(now);
        // The next plane takes the place of what all lanes have read.
        __syncwarp();
        ask<known>(now);
        if (corrects && (known != any_points || now + 1 < bottom)) ask_correction<known>(now + 1);
        if (start != start_zero) show(0, here, black);
        double* const own = slot_memory + first * lanes + lane;
        double found[per], after[per];
        if (known != any_points || reaches(1, now - 1)) {
            if (start == start_zero) {
                step_from_zero<odd, known>(now - 1, own + slot[1], after);
            } else {
                step<odd, known, true>(0, now - 1, g.omega[0], red_0, black_0[other], black_0[here], black, own + slot[1], found,
                                       after);
            }
        } else {
            keep(red_0, after);
        }
        show(1, other, after);
        double black_after[per];
        if (known != any_points || reaches(2, now - 2)) {
            step<odd, known, true>(1, now - 2, g.omega[1], black_0[here], red_1[here], red_1[other], after, own + slot[2] + half,
                                   found, black_after);
        } else {
            keep(black_0[here], black_after);
        }
        if (now - 2 >= z0 && now - 2 < z1) put<odd>(red_1[here], black_after);
        if constexpr (then) {
            show(2, here, black_after);
            if (known != any_points || reaches(3, now - 3)) {
                double none[per];
                step<odd, known, false>(2, now - 3, 0.0, red_1[other], black_2[other], black_2[here], black_after, own + slot[3],
                                        found, none);
            } else {
                clear(found);
            }
#pragma unroll
            for (int k = 0; k < per; ++k) own[slot[3] + k * lanes] = found[k];
            if (restricts) restrict_plane<odd, known>(now - 4, slot_memory + slot[4]);
            if (measures && helpers == 0) add_squares(now - 4, slot_memory + slot[4]);
        }
        keep(after, red_1[other]);
        keep(black_after, black_2[here]);
        keep(black, black_0[here]);
        keep(red, red_0);
        const int oldest = slot[slots - 1];
#pragma unroll
        for (int s = slots - 1; s > 0; --s) slot[s] = slot[s - 1];
        slot[0] = oldest;
        at += g.plane;
        if constexpr (waits_for_neighbours) {
            const int done = now - top;
            made[2 * warp + (done & 1)].arrive();
        } else {
            meet();
        }
    }
    static __device__ __forceinline__ void keep(const double (&from)[per], double (&to)[per]) {
#pragma unroll
        for (int k = 0; k < per; ++k) to[k] = from[k];
    }
    static __device__ __forceinline__ void clear(double (&to)[per]) {
#pragma unroll
        for (int k = 0; k < per; ++k) to[k] = 0.0;
    }
    // Before iteration `now` shows anything, or asks for what takes the place of a residual: the warps above and below have
    // made the iteration before, and so have read what was there, and shown what this one reads. They can be an iteration
    // ahead, so there are two barriers.
    __device__ __forceinline__ void wait_for_neighbours(int now) const {
        const int done = now - top - 1;
        if (!waits_for_neighbours || done < 0) return;
        auto wait = [&](int of) {
            while (!made[2 * of + (done & 1)].over(done >> 1)) {}
        };
        if (warp > 0) wait(warp - 1);
        if (warp < warps - 1) wait(warp + 1);
    }
    // What an iteration shows, and its residual, others read in the next ones. Warps come to the same barrier from different
    // loops, as many times.
    __device__ __forceinline__ void meet() const { asm volatile("bar.sync 0;" ::: "memory"); }

    __device__ __forceinline__ int end() const { return z1 + (then ? 5 : 2); }
    // All planes from `now` to `to`.
    template <points_known known> __device__ __forceinline__ void go_on(int& now, int to) {
#pragma unroll 1
        while (now < to) {
            if ((now & 1) == 0) {
                go<0, known>(now);
                if (++now == to) break;
            }
            go<1, known>(now);
            ++now;
        }
    }
    // What a warp that has part of the tile does.
    __device__ __forceinline__ void walk() {
        if (corrects) ask_correction<any_points>(top);
        // Of the field alone: the first plane of the right side comes with the first iteration.
        ask<any_points>(top - 1);
        at += g.plane;
        // By one thread in a loop: racecheck takes what a predicate leaves out for done.
        if (waits_for_neighbours && threadIdx.x == 0) {
#pragma unroll 1
            for (int i = 0; i < 2 * warps; ++i) made[i].init(lanes);
        }
        // The columns' numbers are there, and the barriers.
        __syncthreads();
        // Where all planes under way are calm, and the next one, and the coarse ones around it, lie behind each other. What a step
        // makes before it reaches its first plane, of whatever is in memory, nobody asks for.
        const int ends = wraps(2) ? 1 : 0, from = max(top, calm_from(2) + 3 + ends);
        const int to = calm_rows ? min(bottom, calm_to(2) - ends) - 1 : 0;
        int now = top;
#pragma unroll 1
        while (now < end()) {
            if (now < from || now >= to) {
                if ((now & 1) == 0) {
                    go<0, any_points>(now);
                } else {
                    go<1, any_points>(now);
                }
                ++now;
            } else if (all_even) {
                go_on<even_points>(now, to);
            } else {
                go_on<calm_points>(now, to);
            }
        }
    }
    // What one beside these does.
    __device__ __forceinline__ void help() const {
        __syncthreads();
        int at = 1 % slots;
        for (int now = top; now < end(); ++now) {
            if (measures) add_squares(now - 4, slot_memory + at * 2 * half);
            at = at + 1 == slots ? 0 : at + 1;
            meet();
        }
    }
};

// A kernel of such passes: warps of a block that have its tile, others, where it starts, whether it measures, and restricts, and
// whether axes may wrap around.
#define CROSSWARP_BOX_RED_BLACK(name, warps, helpers, ...)                                             \
    extern "C" __global__ void __launch_bounds__(32 * (warps + helpers), 1)                            \
        name(const __grid_constant__ cw::box_pass g) {                                                 \
        extern __shared__ double memory[];                                                             \
        cw::red_black_walk<warps, helpers, __VA_ARGS__> walk(g, memory);                               \
        if (helpers > 0 && threadIdx.x >= warps * 32) {                                                \
            walk.help();                                                                               \
        } else {                                                                                       \
            walk.walk();                                                                               \
        }                                                                                              \
    }

}  // namespace crosswarp

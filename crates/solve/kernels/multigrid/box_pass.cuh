// Several relaxations of a level of a box, and what comes before and after them, in one pass through memory.
//
// A block has a tile of columns of points along z, a lane one of them times a few rows, and walks through the planes. When
// the first step has reached plane z, the second is a plane behind, and so on; after the last step comes the residual, and
// behind that the next level's right side. Two planes before each step are in shared memory: the one that neighbours read,
// and the one that is written. Of the plane before these a thread keeps its own points. Points that neighbouring blocks
// have are computed again at the margins of a tile; what comes out is the same as in passes over the whole level, one after
// the other (`wavefront.rs`). Operations as in `space/operator.rs` and `space/transfer.rs`, in the same order.
//
// Most rows and planes are the same, and far from the sides (`calm`): there couplings stay in registers.
//
// Source of the idea: as of `pass.cuh`; planes that stream by: Micikevicius, "3D finite difference computation on GPUs using
// CUDA", GPGPU-2, 2009.
#pragma once
#include "multigrid/box_arguments.cuh"
#include "multigrid/pass_kinds.cuh"
#include "multigrid/transfer.cuh"
#include "sum_layout.cuh"

namespace crosswarp {

constexpr int box_tile_y = box_pass_warps * box_thread_rows;
constexpr int box_pass_threads = box_pass_warps * box_tile_x;

// Of the lines of a level.
enum box_line { line_before, line_after, line_excess, line_mass, line_free, line_parts };

// What of a row of points does not depend on the column.
struct box_row {
    double across, north, south, up, down, excess;
};

// The same with 1 / the diagonal of one of its points.
struct box_couplings {
    box_row row;
    double inverse;
};

// Whether `number` is a power of two, far from the ends of the range.
__device__ inline bool is_power_of_two(double number) {
    return number >= 1e-30 && number < 1e30 && (__double_as_longlong(number) & ((1ll << 52) - 1)) == 0;
}

// A number of point `at` of an axis.
__device__ __forceinline__ double line_number(const box_pass& g, int axis, int part, int at) {
    return read(g.lines[axis] + part * g.size[axis] + at);
}

// Of point (x, y, z). A function of its own, as the next one: near the ends there is little to do, and much code would be.
__device__ __noinline__ inline box_couplings couplings_at(const box_pass& g, int x, int y, int z) {
    const double y_mass = line_number(g, 1, line_mass, y), z_mass = line_number(g, 2, line_mass, z);
    const i64 kind = read(g.inverse_of + ((i64)z * g.size[1] + y));
    return {{y_mass * z_mass,
             z_mass * line_number(g, 1, line_before, y),
             z_mass * line_number(g, 1, line_after, y),
             y_mass * line_number(g, 2, line_before, z),
             y_mass * line_number(g, 2, line_after, z),
             z_mass * line_number(g, 1, line_excess, y) + y_mass * line_number(g, 2, line_excess, z)},
            read(g.inverses + (kind * g.size[0] + x))};
}

// What coarse column `coarse` gives row y of plane z; none (−1) gives nothing.
__device__ __noinline__ inline double box_correction(const box_pass& g, int coarse, int y, int z) {
    // The coarse points that point `at` takes from, and their weights.
    auto parents = [&](int axis, int at, int (&places)[2], double (&weights)[2]) {
        const int n = g.coarse_size[axis], j = at >> 1;
        places[0] = j;
        places[1] = j + 1 < n ? j + 1 : g.wraps[axis] ? 0 : j;
        weights[0] = at & 1 ? read(g.weights[axis] + j) : 1.0;
        weights[1] = at & 1 ? read(g.weights[axis] + n + j) : 0.0;
    };
    int rows[2], planes[2];
    double across[2], down[2];
    parents(1, y, rows, across);
    parents(2, z, planes, down);
    double sum = 0.0;
#pragma unroll
    for (int a = 0; a < 2; ++a) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const double weight = across[a] * down[c];
            if (weight == 0.0 || coarse < 0) continue;
            sum += weight * read(g.correction + (planes[c] * g.coarse_plane + rows[a] * (g.coarse_size[0] + 2) + coarse + 1));
        }
    }
    return sum;
}

// The weights in coarse point `at` of the points before it, at it and behind it, along an axis.
__device__ __forceinline__ void weights_around(const box_pass& g, int axis, int at, double (&out)[3]) {
    const int n = g.size[axis], coarse = g.coarse_size[axis];
    const double* weights = g.weights[axis];
    const bool before = at > 0 || (g.wraps[axis] && !(n & 1));
    out[0] = before ? read(weights + coarse + (at > 0 ? at : coarse) - 1) : 0.0;
    out[1] = 1.0;
    out[2] = 2 * at + 1 < n ? read(weights + at) : 0.0;
}
// Those of the columns before and behind: what is not there is 0.
__device__ __forceinline__ void weights_beside(const box_pass& g, int at, double (&out)[2]) {
    out[0] = read(g.weights[0] + g.coarse_size[0] + (at > 0 ? at : g.coarse_size[0]) - 1);
    out[1] = read(g.weights[0] + at);
}

// The next level's right side at a point, with the weights of what is around it. `at(x, y, z)`: the residual of a point of
// this level, by its distance. Rows and planes with weight 0 are not asked for.
template <class At>
__device__ __forceinline__ double box_restrict(const double (&columns)[2], const double (&rows)[3], const double (&planes)[3],
                                               At at) {
    double sum[3];
#pragma unroll
    for (int x = 0; x < 3; ++x) {
        sum[x] = 0.0;
#pragma unroll
        for (int y = 0; y < 3; ++y) {
#pragma unroll
            for (int z = 0; z < 3; ++z) {
                const double weight = rows[y] * planes[z];
                if (weight != 0.0) sum[x] += weight * at(x - 1, y - 1, z - 1);
            }
        }
    }
    return sum[1] + (columns[0] * sum[0] + columns[1] * sum[2]);
}

// A thread's part of a block's way through the planes.
template <int steps, class Work> struct box_walk {
    static constexpr int wide = box_tile_x, high = box_tile_y, per = box_thread_rows;

    const box_pass& g;
    const int nx, ny, nz, stride;
    const bool wrap_x, wrap_y, wrap_z;
    const int start, measured;
    const bool restricts, then, measures_early, measures_late;
    // Planes, and points on each side of the own ones; an even number of these.
    const int margin, side;
    const int own_x, rows_left, own_y;
    // Planes before each step, by parity; the residual, by planes; what is measured: see `box_pass_shared`.
    double *const memory, *const residuals, *const squares;
    // The thread's column, its first row, in the tile and in the level.
    const int lane, first, x, y;
    const bool there;
    const int column;
    // The planes of the block, and those that it begins and ends with.
    const int z0, z1, top, bottom;
    // By row: whether it keeps its values, has no row before it, or behind it, is this block's to write, and where it is.
    u32 held = 0, no_north = 0, no_south = 0, own = 0;
    int row[per];
    // Along x; in what lies between coarse columns, with the weights of those.
    double x_before, x_after, x_excess, x_mass, to_left = 0.0, to_right = 0.0;
    bool x_free, between, calm_rows;
    // Of the coarse point that the thread restricts to, if there is one: where its residuals and its value lie.
    bool restricts_one = false;
    int residual_at = 0, coarse_at = 0;
    double coarse_columns[2]{}, coarse_rows[3]{};
    // The coarse column that this one, or the one before it, takes from; none: −1.
    int taken;
    box_couplings calm_here{};
    // Where those to all neighbours are the same power of two, for the whole warp: that power; else 0.
    double calm_coupling = 0.0;
    double calm_left = 0.0, calm_right = 0.0;
    // The own points of the plane before the two in memory, for each step; those of the plane that a step just wrote.
    double above[steps + 1][per], fresh[steps + 1][per];
    // Where the newest plane begins; the right side of the one before it, and of those before that; what was asked for of
    // the next.
    i64 newest = 0;
    double b[steps + 1][per], next_b[per], next_u[per];

    __device__ __forceinline__ box_walk(const box_pass& g, double* memory)
        : g(g), nx(g.size[0]), ny(g.size[1]), nz(g.size[2]), stride(nx + 2),
          wrap_x(g.wraps[0]), wrap_y(g.wraps[1]), wrap_z(g.wraps[2]),
          start(Work::start(g)), measured(Work::measured(g)), restricts(Work::restricts(g)),
          then(restricts || measured == steps), measures_early(steps > 0 && measured == 0),
          measures_late(measured >= 0 && !measures_early),
          margin(steps + (restricts ? 2 : then ? 1 : 0)), side((margin + 1) / 2 * 2),
          own_x(wide - 2 * side), rows_left(high - 2 * side),
          own_y(measured >= 0 ? rows_left / leaf_rows * leaf_rows : rows_left),
          memory(memory), residuals(memory + (steps + 1) * 2 * high * wide),
          squares(residuals + box_residual_planes * (high - (steps + 2) / 2 * 4 + 1) * wide),
          lane(threadIdx.x % wide), first(threadIdx.x / wide * per),
          x(int(blockIdx.x) * own_x - side + lane), y(int(blockIdx.y) * own_y - side + first),
          there(wrap_x || (x >= 0 && x < nx)), column(wrap_x ? wrapped(x, nx) : min(max(x, 0), nx - 1)),
          z0(g.plane_start + int(blockIdx.z) * g.planes), z1(min(z0 + g.planes, g.plane_end)),
          top(wrap_z ? z0 - margin : max(z0 - margin, 0)), bottom(wrap_z ? z1 + margin : min(z1 + margin, nz)) {
        const bool own_column = lane >= side && lane < side + own_x && x < nx;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const int at = y + k;
            row[k] = wrap_y ? wrapped(at, ny) : min(max(at, 0), ny - 1);
            const bool beyond = !wrap_y && (at < 0 || at >= ny);
            if (beyond || of(1, line_free, row[k]) == 0.0) held |= 1u << k;
            if (!wrap_y && at <= 0) no_north |= 1u << k;
            if (!wrap_y && at >= ny - 1) no_south |= 1u << k;
            if (own_column && first + k >= side && first + k < side + own_y && at < ny) own |= 1u << k;
        }
        x_before = of(0, line_before, column);
        x_after = of(0, line_after, column);
        x_excess = of(0, line_excess, column);
        x_mass = of(0, line_mass, column);
        x_free = of(0, line_free, column) != 0.0;
        between = column & 1;
        if (between && start >= start_corrected) {
            to_left = read(g.weights[0] + (column >> 1));
            to_right = read(g.weights[0] + g.coarse_size[0] + (column >> 1));
        }
        const int behind = (column + 1) >> 1;
        taken = behind < g.coarse_size[0] ? behind : wrap_x ? 0 : -1;
        calm_rows = g.calm_planes[0] < g.calm_planes[1] && y >= g.calm_rows[0] && y + per <= g.calm_rows[1];
        if (calm_rows) {
            calm_here = couplings_at(g, column, row[0], g.calm_planes[0]);
            if (start >= start_corrected) {
                // Those of a row between two coarse ones.
                calm_left = read(g.weights[1] + (row[0] >> 1));
                calm_right = read(g.weights[1] + g.coarse_size[1] + (row[0] >> 1));
            }
        }
        // As `Even::of` of `space/row.rs`.
        const box_row& of_row = calm_here.row;
        const double along = of_row.across * x_before, beside = x_mass * of_row.north;
        const bool same = x_before == x_after && of_row.south == of_row.north && of_row.up == of_row.north &&
                          of_row.down == of_row.north && along == beside;
        const bool even = calm_rows && same && x_excess == 0.0 && of_row.excess == 0.0 && is_power_of_two(of_row.across) &&
                          is_power_of_two(x_before) && is_power_of_two(x_mass) && is_power_of_two(of_row.north);
        if (__all_sync(0xffffffffu, even && x_free && there)) calm_coupling = along;
        if (restricts) {
            static_assert(box_tile_x * box_tile_y / 4 <= box_pass_threads, "a thread for each coarse point of a tile");
            const int at_x = threadIdx.x % (own_x / 2), at_y = threadIdx.x / (own_x / 2);
            const int i = int(blockIdx.x) * (own_x / 2) + at_x, j = int(blockIdx.y) * (own_y / 2) + at_y;
            restricts_one = at_y < own_y / 2 && i < g.coarse_size[0] && j < g.coarse_size[1];
            if (restricts_one) {
                weights_beside(g, i, coarse_columns);
                weights_around(g, 1, j, coarse_rows);
            }
            // Rows are kept from the one before the own ones on.
            residual_at = (2 * at_y + 1) * wide + side + 2 * at_x;
            coarse_at = j * (g.coarse_size[0] + 2) + i + 1;
        }
#pragma unroll
        for (int s = 0; s <= steps; ++s) {
#pragma unroll
            for (int k = 0; k < per; ++k) above[s][k] = fresh[s][k] = b[s][k] = 0.0;
        }
#pragma unroll
        for (int k = 0; k < per; ++k) next_b[k] = next_u[k] = 0.0;
    }

    __device__ __forceinline__ double of(int axis, int part, int at) const { return line_number(g, axis, part, at); }
    __device__ __forceinline__ bool plane_free(int z) const { return of(2, line_free, z) != 0.0; }
    __device__ __forceinline__ bool is_calm(int z) const {
        return calm_rows && z >= g.calm_planes[0] && z < g.calm_planes[1];
    }
    // Where the point of row k lies in a plane. Calm rows come one after the other.
    template <bool calm> __device__ __forceinline__ int offset(int k) const {
        return (calm ? row[0] + k : row[k]) * stride + column + 1;
    }
    // A step more each, which planes there are a step less on both sides.
    __device__ __forceinline__ bool reaches(int s, int z) const {
        return wrap_z ? z >= top + s && z < bottom - s : z >= max(z0 - margin + s, 0) && z < min(z1 + margin - s, nz);
    }
    __device__ __forceinline__ int plane_of(int z) const { return wrap_z ? wrapped(z, nz) : z; }
    // The thread's first point of plane z before step s + 1.
    __device__ __forceinline__ double* before_step(int s, int z) const {
        return memory + ((2 * s + (z & 1)) * high + first) * wide + lane;
    }
    __device__ __forceinline__ double* residual_plane(int z) const {
        return residuals + (z + 2 * box_residual_planes) % box_residual_planes * (rows_left + 1) * wide;
    }

    // What the first step finds in plane z, to `fresh`.
    template <bool calm> __device__ __forceinline__ void begin(int z) {
        const int inside = calm ? z : plane_of(z);
        if (start == start_correction) {
#pragma unroll
            for (int k = 0; k < per; ++k) fresh[0][k] = 0.0;
        } else {
#pragma unroll
            for (int k = 0; k < per; ++k) fresh[0][k] = next_u[k];
        }
        if (start >= start_corrected) {
            double by[per];
            if constexpr (calm) {
                correct_calm(z, by);
            } else {
                const bool plane_held = !plane_free(inside);
#pragma unroll
                for (int k = 0; k < per; ++k) {
                    // The same for the whole warp.
                    if (plane_held || (held >> k & 1)) continue;
                    by[k] = box_correction(g, taken, row[k], inside);
                    const double before = __shfl_up_sync(0xffffffffu, by[k], 1);
                    // The lane before has the coarse column before, if there is such a lane.
                    if (between) by[k] = to_left * (lane > 0 ? before : box_correction(g, column >> 1, row[k], inside)) + to_right * by[k];
                    fresh[0][k] += x_free ? by[k] : 0.0 * by[k];
                }
            }
            if constexpr (calm) {
#pragma unroll
                for (int k = 0; k < per; ++k) {
                    double before = __shfl_up_sync(0xffffffffu, by[k], 1);
                    if (between && lane == 0) before = box_correction(g, column >> 1, row[k], z);
                    if (between) by[k] = to_left * before + to_right * by[k];
                    if (!x_free) by[k] = 0.0 * by[k];
                    fresh[0][k] += by[k];
                }
            }
        }
#pragma unroll
        for (int k = 0; k < per; ++k) fresh[0][k] = there ? fresh[0][k] : 0.0;
    }
    // As `box_correction`, of all rows, the first of which is a coarse one's.
    __device__ __forceinline__ void correct_calm(int z, double (&by)[per]) const {
        static_assert(per % 2 == 0, "pairs of rows");
        const int j = z >> 1, under = j + 1 < g.coarse_size[2] ? j + 1 : 0;
        const bool deep = z & 1, some = taken >= 0;
        const double* const upper = g.correction + (j * g.coarse_plane + max(taken, 0) + 1);
        const double* const lower = g.correction + (under * g.coarse_plane + max(taken, 0) + 1);
        const double left = deep ? read(g.weights[2] + j) : 1.0, right = deep ? read(g.weights[2] + g.coarse_size[2] + j) : 0.0;
        double above[2]{}, below[2];
#pragma unroll
        for (int i = 0; i <= per / 2; ++i) {
            const int at = (row[0] >> 1) + i, offset = (at < g.coarse_size[1] ? at : 0) * (g.coarse_size[0] + 2);
            below[0] = some ? read(upper + offset) : 0.0;
            below[1] = some && deep ? read(lower + offset) : 0.0;
            if (i > 0) {
                double sum = 0.0 + calm_left * left * above[0];
                if (deep) sum += calm_left * right * above[1];
                sum += calm_right * left * below[0];
                if (deep) sum += calm_right * right * below[1];
                by[2 * i - 1] = sum;
            }
            if (i < per / 2) {
                double sum = 0.0 + left * below[0];
                if (deep) sum += right * below[1];
                by[2 * i] = sum;
            }
            above[0] = below[0];
            above[1] = below[1];
        }
    }

    // Asks for plane z of the field, and the one before it of the right side: half a plane before they are needed.
    template <bool calm> __device__ __forceinline__ void ask(int z) {
        if (z < bottom && (start == start_field || start == start_corrected)) {
            const double* from = g.before + (calm && z < nz ? newest + g.plane : plane_of(z) * g.plane);
#pragma unroll
            for (int k = 0; k < per; ++k) next_u[k] = read(from + offset<calm>(k));
        }
        if (z > top && z <= bottom) {
            const double* from = g.right_side + (calm ? newest : plane_of(z - 1) * g.plane);
#pragma unroll
            for (int k = 0; k < per; ++k) next_b[k] = read(from + offset<calm>(k));
        }
    }

    __device__ __forceinline__ void write(int s, int z) {
        double* to = before_step(s, z);
#pragma unroll
        for (int k = 0; k < per; ++k) to[k * wide] = fresh[s][k];
    }

    // b − Au of plane z before step s + 1, which goes along it by ω and leaves `fresh`, if it is one that `relaxes`. The
    // plane behind is `fresh` of step s. `calm`: the plane, and those around it, are all the same, far from the ends.
    template <bool calm, int s, bool relaxes>
    __device__ __forceinline__ void step(int z, const double (&b)[per], double omega, double (&residual)[per]) {
        const double* from = before_step(s, z);
        const int inside = calm ? 0 : plane_of(z);
        const bool no_up = !calm && !wrap_z && z == 0, no_down = !calm && !wrap_z && z == nz - 1;
        const bool plane_held = !calm && !plane_free(inside);
        const int west = lane > 0 ? -1 : 0, east = lane < wide - 1 ? 1 : 0;
        double here[per];
#pragma unroll
        for (int k = 0; k < per; ++k) here[k] = from[k * wide];
        if (calm && calm_coupling != 0.0) {
            const double gain = omega * calm_here.inverse;
            const double north_of_all = first > 0 ? from[-wide] : here[0];
            const double south_of_all = first < high - per ? from[per * wide] : here[per - 1];
#pragma unroll
            for (int k = 0; k < per; ++k) {
                const double c = here[k];
                const double north = k > 0 ? here[k > 0 ? k - 1 : 0] : north_of_all;
                const double south = k < per - 1 ? here[k < per - 1 ? k + 1 : k] : south_of_all;
                const double along = (from[k * wide + west] - c) + (from[k * wide + east] - c);
                const double beside = ((north - c) + (south - c)) + ((above[s][k] - c) + (fresh[s][k] - c));
                const double found = b[k] + calm_coupling * (along + beside);
                residual[k] = found;
                if constexpr (relaxes) fresh[s + 1][k] = c + gain * found;
                above[s][k] = c;
            }
            return;
        }
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const double c = here[k];
            // At the ends of a tile there are margins that nobody needs.
            double north = k > 0 ? here[k > 0 ? k - 1 : 0] : first > 0 ? from[-wide] : c;
            double south = k < per - 1 ? here[k < per - 1 ? k + 1 : k] : first < high - per ? from[per * wide] : c;
            double up = above[s][k], down = fresh[s][k];
            box_couplings at = calm_here;
            if constexpr (!calm) {
                // At an end of the grid the one on the other side, which couplings of zero make nothing of.
                if (no_north >> k & 1) north = c;
                if (no_south >> k & 1) south = c;
                const double over = up, under = down;
                up = no_up ? (no_down ? c : under) : over;
                down = no_down ? (no_up ? c : over) : under;
                if (!is_calm(z)) at = couplings_at(g, column, row[k], inside);
            }
            const box_row& of = at.row;
            const double along = x_before * (from[k * wide + west] - c) + x_after * (from[k * wide + east] - c);
            const double beside = (of.north * (north - c) + of.south * (south - c)) + (of.up * (up - c) + of.down * (down - c));
            const double sum = of.across * (along - x_excess * c) + x_mass * (beside - of.excess * c);
            double found = b[k] + sum;
            if (!x_free) found = found * 0.0;
            double after = c + (omega * at.inverse) * found;
            if (!calm && (plane_held || (held >> k & 1))) {
                found = 0.0;
                after = c;
            }
            residual[k] = there ? found : 0.0;
            if constexpr (relaxes) fresh[s + 1][k] = there ? after : 0.0;
            above[s][k] = c;
        }
    }
    // Where a step does not reach plane z.
    __device__ __forceinline__ void pass_by(int s, int z) {
        const double* from = before_step(s, z);
#pragma unroll
        for (int k = 0; k < per; ++k) above[s][k] = from[k * wide];
    }

    __device__ __forceinline__ void keep_to_measure(int z, const double (&residual)[per]) const {
        if (z < z0 || z >= z1) return;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const int at = first + k - side;
            if (at >= 0 && at < own_y) squares[at * wide + lane] = residual[k];
        }
    }
    // Adds up the squares of what was kept of plane z, over the rows of each leaf.
    __device__ __forceinline__ void add_squares(int z) const {
        if (z < z0 || z >= z1) return;
        const int bands = own_y / leaf_rows, all = (ny + leaf_rows - 1) / leaf_rows;
        for (int t = threadIdx.x; t < bands * own_x; t += box_pass_threads) {
            const int band = t / own_x, at = t % own_x, column = int(blockIdx.x) * own_x + at;
            const int of_level = int(blockIdx.y) * bands + band, rows = min(leaf_rows, ny - of_level * leaf_rows);
            if (column >= nx || rows <= 0) continue;
            const double* from = squares + band * leaf_rows * wide + side + at;
            double sum = -0.0;
            if (rows == leaf_rows) {
#pragma unroll
                for (int i = 0; i < leaf_rows; ++i) sum += from[i * wide] * from[i * wide];
            } else {
                for (int i = 0; i < rows; ++i) sum += from[i * wide] * from[i * wide];
            }
            g.sums[((i64)(z - g.plane_start) * all + of_level) * g.sum_pitch + column] = sum;
        }
    }
    // The next level's right side, where the residual's planes were complete with plane `done`.
    __device__ __forceinline__ void restrict_behind(int done) const {
        const int j = done >> 1;
        if (2 * j < z0 || 2 * j >= z1 || (done & 1) != int(2 * j + 1 < nz)) return;
        if (!restricts_one) return;
        const double* planes[3] = {residual_plane(2 * j - 1), residual_plane(2 * j), residual_plane(2 * j + 1)};
        double weights[3];
        weights_around(g, 2, j, weights);
        auto at = [&](int x, int y, int z) { return planes[z + 1][residual_at + y * wide + x]; };
        g.coarse_right_side[j * g.coarse_plane + coarse_at] = box_restrict(coarse_columns, coarse_rows, weights, at);
    }

    // Step s of plane now − s.
    template <bool calm, int s> __device__ __forceinline__ void relax(int now) {
        const int z = now - s;
        if (!calm && !reaches(s, z)) return pass_by(s - 1, z);
        if (s == 1 && start == start_zero) {
            const int inside = calm ? 0 : plane_of(z);
            const bool plane_held = !calm && !plane_free(inside);
#pragma unroll
            for (int k = 0; k < per; ++k) {
                const bool keeps = !calm && (plane_held || (held >> k & 1));
                const double inverse = calm || is_calm(z) ? calm_here.inverse : couplings_at(g, column, row[k], inside).inverse;
                fresh[s][k] = keeps || !there ? 0.0 : (g.omega[0] * inverse) * b[0][k];
            }
        } else {
            double residual[per];
            step<calm, s - 1, true>(z, b[s - 1], g.omega[s - 1], residual);
            if (measured == s - 1) keep_to_measure(z, residual);
        }
        if (s < steps || then) write(s, z);
        if (s == steps && z >= z0 && z < z1) {
            double* to = g.after + (newest - s * g.plane);
#pragma unroll
            for (int k = 0; k < per; ++k) {
                if (own >> k & 1) to[offset<calm>(k)] = fresh[s][k];
            }
        }
    }

    // Up to where all have read what was kept of the plane before.
    template <bool calm> __device__ __forceinline__ void first_half(int now) {
#pragma unroll
        for (int s = steps; s > 0; --s) {
#pragma unroll
            for (int k = 0; k < per; ++k) b[s][k] = b[s - 1][k];
        }
#pragma unroll
        for (int k = 0; k < per; ++k) b[0][k] = next_b[k];
        if (start != start_zero && (calm || now < bottom)) {
            begin<calm>(now);
            write(0, now);
        }
        if constexpr (steps >= 1) relax<calm, 1>(now);
    }
    template <bool calm> __device__ __forceinline__ void second_half(int now) {
        ask<calm>(now + 1);
        if constexpr (steps >= 2) relax<calm, 2>(now);
        if (!then) return;
        const int z = now - steps - 1;
        if (!calm && !reaches(steps + 1, z)) return pass_by(steps, z);
        double residual[per];
        step<calm, steps, false>(z, b[steps], 0.0, residual);
        if (measured == steps) keep_to_measure(z, residual);
        if (!restricts) return;
        double* to = residual_plane(z) + lane;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const int at = first + k - side + 1;
            if (at >= 0 && at <= own_y) to[at * wide] = residual[k];
        }
    }
};

template <int steps, class Work = as_launched> __device__ __forceinline__ void run_box_pass(const box_pass& g) {
    extern __shared__ double memory[];
    box_walk<steps, Work> walk(g, memory);
    walk.template ask<false>(walk.top);
    // Where all planes under way are calm, and every step reaches its own.
    const int calm_from = max(max(walk.top, walk.z0 - walk.margin) + steps + 1, g.calm_planes[0]) + steps + 1;
    const int calm_to = min(walk.bottom, g.calm_planes[1]);
    for (int now = walk.top; now < walk.z1 + steps + 3; ++now) {
        const bool calm = walk.calm_rows && now >= calm_from && now < calm_to;
        walk.newest = now * g.plane;
        if (walk.measures_late) walk.add_squares(now - walk.measured - 2);
        if (walk.restricts) walk.restrict_behind(now - steps - 2);
        if (calm) {
            walk.template first_half<true>(now);
        } else {
            walk.template first_half<false>(now);
        }
        // Between what reads the residuals, or squares, that were kept and what writes them.
        if (walk.measured >= 0 || walk.restricts) __syncthreads();
        if (walk.measures_early) walk.add_squares(now - 1);
        if (calm) {
            walk.template second_half<true>(now);
        } else {
            walk.template second_half<false>(now);
        }
        // Each step has read its planes of before, and written its new one.
        __syncthreads();
    }
}

// A kernel of passes over levels of boxes; behind it the arguments of `run_box_pass`.
#define CROSSWARP_BOX_PASS(name, ...)                                     \
    extern "C" __global__ void __launch_bounds__(cw::box_pass_threads, 1) \
        name(const __grid_constant__ cw::box_pass g) {                    \
        cw::run_box_pass<__VA_ARGS__>(g);                                 \
    }

}  // namespace crosswarp

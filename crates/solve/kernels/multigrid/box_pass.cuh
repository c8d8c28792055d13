// Several relaxations of a level of a box, and what comes before and after them, in one pass through memory.
//
// A block has a tile of columns of points along z, a lane one of them times a few rows, and walks through the planes. When
// the first step has reached plane z, the second is a plane behind, and so on; after the last step comes the residual, and
// behind that the next level's right side. Two planes before each step are in shared memory: the one that neighbours read,
// and the one that is written. Of the plane before these a thread keeps its own points, in shared memory those of the right
// side. Warps beside those that have the tile restrict and add squares, in most kernels. Points that neighbouring blocks
// have are computed again at the margins of a tile; what comes out is the same as in passes over the whole level, one after
// the other (`wavefront.rs`). Operations as in `space/row.rs` and `space/transfer.rs`, in the same order.
//
// Most rows and planes are the same, and far from the sides (`calm`): their couplings are the launch's arguments. Where those
// to all neighbours are the same power of two, too (`even`), a point's sum takes one product.
//
// Source of the idea: as of `pass.cuh`; planes that stream by: Micikevicius, "3D finite difference computation on GPUs using
// CUDA", GPGPU-2, 2009.
#pragma once
#include "multigrid/box_arguments.cuh"
#include "multigrid/pass_kinds.cuh"
#include "multigrid/transfer.cuh"
#include "sum_layout.cuh"

namespace crosswarp {

// Of the lines of a level.
enum box_line { line_before, line_after, line_excess, line_mass, line_free };
// What a block keeps of its columns: these numbers, 1 / the diagonal in calm rows, and the weights of the coarse columns
// before and behind.
enum box_column { column_inverse = line_free + 1, column_left, column_right, column_numbers };
static_assert(column_numbers == box_column_numbers, "shared memory of a block");

// What of a row of points does not depend on the column.
struct box_row {
    double across, north, south, up, down, excess;
};

// The same with 1 / the diagonal of one of its points.
struct box_couplings {
    box_row row;
    double inverse;
};

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

// As `box_correction` of a calm plane, of `per` calm rows, the first of which is a coarse one's; `deep`: of a plane between two
// coarse ones. `values`: of coarse rows, in the coarse plane there, or before, and behind.
template <int per>
__device__ __forceinline__ void correct_calm(const box_pass& g, bool deep, const double (&values)[per / 2 + 1][2],
                                             double (&by)[per]) {
    static_assert(per % 2 == 0, "pairs of rows");
    const double* rows = g.calm_weights + 2;
    const double left = deep ? g.calm_weights[4] : 1.0, right = g.calm_weights[5];
#pragma unroll
    for (int i = 0; i < per / 2; ++i) {
        const double(&upper)[2] = values[i], (&lower)[2] = values[i + 1];
        by[2 * i] = 0.0 + left * upper[0];
        if (deep) by[2 * i] += right * upper[1];
        double sum = 0.0 + rows[0] * left * upper[0];
        if (deep) sum += rows[0] * right * upper[1];
        sum += rows[1] * left * lower[0];
        if (deep) sum += rows[1] * right * lower[1];
        by[2 * i + 1] = sum;
    }
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
// this level, by its distance. Rows and planes with weight 0 are not asked for; `all`: there are none, so that nothing waits
// for a comparison.
template <bool all = false, class At>
__device__ __forceinline__ double box_restrict(const double (&columns)[2], const double (&rows)[3], const double (&planes)[3],
                                               At at) {
    double sum[3];
#pragma unroll
    for (int x = 0; x < 3; ++x) {
        sum[x] = 0.0;
#pragma unroll
        for (int z = 0; z < 3; ++z) {
#pragma unroll
            for (int y = 0; y < 3; ++y) {
                const double weight = rows[y] * planes[z];
                if (all || weight != 0.0) sum[x] += weight * at(x - 1, y - 1, z - 1);
            }
        }
    }
    return sum[1] + (columns[0] * sum[0] + columns[1] * sum[2]);
}

// Where a thread finds its first row, the same in the columns beside it, and the rows before and behind its own: in the planes
// in memory. At the ends of a tile there are margins that nobody needs.
struct box_around {
    double* own;
    const double *west, *east, *north, *south;
};

// An address that the compiler knows nothing about, so that an element's takes one instruction.
template <class T> __device__ __forceinline__ T* opaque(T* at) {
    asm("" : "+l"(at));
    return at;
}

// Reads what is needed later, and does not leave it to the compiler when.
__device__ __forceinline__ double read_now(const double* at) {
    double value;
    asm volatile("ld.global.f64 %0, [%1];" : "=d"(value) : "l"(at) : "memory");
    return value;
}

// A thread's part of a block's way through the planes.
// `warps` have a tile, `helpers` make of their planes what is left to be made; if there are none, the warps do that, too.
template <int warps, int helpers, int steps, class Work> struct box_walk {
    static constexpr int wide = box_tile_x, per = box_thread_rows, high = warps * per;
    // Elements from a row of the residual to the next: so that lanes which restrict to the end of a coarse row, and those that
    // go on with the next one, read different banks of memory.
    static constexpr int residual_pitch = wide + (wide - (steps + 3) / 2 * 4) / 4;
    static constexpr int finishing = wide * (helpers > 0 ? helpers : warps);

    const box_pass& g;
    const int nx, ny, nz, stride;
    const bool wrap_x, wrap_y, wrap_z;
    const int start, measured;
    const bool restricts, then;
    // Planes, and points on each side of the own ones; an even number of these.
    const int margin, side;
    const int own_x, own_y;
    // Numbers of the columns; the right side, of which a thread keeps its own points; planes before each step, by parity; the
    // residual, by planes; what is measured: see `box_pass_shared`.
    double *const columns, *const right_sides, *const memory, *const residuals, *const squares;
    // The thread's column, its first row, in the tile and in the level.
    const int lane, first, x, y;
    const bool there;
    const int column;
    // That the first step relaxes.
    const int colour;
    // The planes of the block, and those that it begins and ends with.
    const int z0, z1, top, bottom;
    // By row: whether it keeps its values, has no row before it, or behind it, is this block's to write, and where the
    // thread's point of it lies in a plane.
    u32 held = 0, no_north = 0, no_south = 0, own = 0;
    u32 at_row[per];
    bool x_free, between, calm_rows, even;
    // The coarse column that this one, or the one before it, takes from; none: −1. Where the column's point lies in a plane of
    // the next level, in its rows from that of the thread's first row, or before it, on.
    int taken;
    u32 coarse_row[per / 2 + 1];
    // The own points of the plane before the two in memory, for each step; those of the plane that a step just wrote.
    double above[steps + 1][per], fresh[steps + 1][per];
    // Where the right side of the plane before the newest begins among `right_sides`, and of those before that; what was asked
    // for of the next.
    int b[steps + 1];
    double next_b[per], next_u[per];
    // And of the coarse rows, the first of which is that of the thread's first row, in the coarse plane there, or before it,
    // and behind it.
    double next_c[per / 2 + 1][2];

    __device__ __forceinline__ box_walk(const box_pass& g, double* memory)
        : g(g), nx(g.size[0]), ny(g.size[1]), nz(g.size[2]), stride(nx + 2),
          wrap_x(g.wraps[0]), wrap_y(g.wraps[1]), wrap_z(g.wraps[2]),
          start(Work::start(g)), measured(Work::measured(g)), restricts(Work::restricts(g)),
          then(restricts || measured == steps),
          margin(steps + (restricts ? 2 : then ? 1 : 0)), side((margin + 1) / 2 * 2),
          own_x(wide - 2 * side),
          own_y(measured >= 0 ? (high - 2 * side) / leaf_rows * leaf_rows : high - 2 * side),
          columns(memory), right_sides(memory + column_numbers * wide),
          memory(right_sides + (steps + 1) * high * wide), residuals(this->memory + (steps + 1) * 2 * high * wide),
          squares(residuals + box_residual_planes * high * residual_pitch),
          lane(threadIdx.x % wide), first(threadIdx.x / wide * per),
          x(int(blockIdx.x) * own_x - side + lane), y(int(blockIdx.y) * own_y - side + first),
          there(wrap_x || (x >= 0 && x < nx)), column(wrap_x ? wrapped(x, nx) : min(max(x, 0), nx - 1)),
          colour(int(g.colour)),
          z0(g.plane_start + int(blockIdx.z) * g.planes), z1(min(z0 + g.planes, g.plane_end)),
          top(wrap_z ? z0 - margin : max(z0 - margin, 0)), bottom(wrap_z ? z1 + margin : min(z1 + margin, nz)) {
        const bool own_column = lane >= side && lane < side + own_x && x < nx;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const int at = y + k;
            at_row[k] = row(k) * stride + column + 1;
            const bool beyond = !wrap_y && (at < 0 || at >= ny);
            if (beyond || of(1, line_free, row(k)) == 0.0) held |= 1u << k;
            if (!wrap_y && at <= 0) no_north |= 1u << k;
            if (!wrap_y && at >= ny - 1) no_south |= 1u << k;
            if (own_column && first + k >= side && first + k < side + own_y && at < ny) own |= 1u << k;
        }
        x_free = of(0, line_free, column) != 0.0;
        between = column & 1;
        keep_numbers();
        const int behind = (column + 1) >> 1;
        taken = behind < g.coarse_size[0] ? behind : wrap_x ? 0 : -1;
#pragma unroll
        for (int i = 0; i <= per / 2; ++i) {
            const int at = (y >> 1) + i;
            coarse_row[i] = (at < g.coarse_size[1] ? max(at, 0) : 0) * (g.coarse_size[0] + 2) + max(taken, 0) + 1;
        }
        calm_rows = calm_from(1) < calm_to(1);
#pragma unroll
        for (int k = 0; k < per; ++k) calm_rows = calm_rows && ((held >> k & 1) || is_calm(1, y + k));
        // Lane 0 has no lane before it that has its coarse column.
        const bool alike = there && is_calm(0, column) && !(between && lane == 0);
        even = __all_sync(0xffffffffu, calm_rows && alike && g.even_coupling != 0.0);
#pragma unroll
        for (int s = 0; s <= steps; ++s) {
#pragma unroll
            for (int k = 0; k < per; ++k) above[s][k] = fresh[s][k] = 0.0;
            b[s] = (s * high + first) * wide + lane;
        }
#pragma unroll
        for (int k = 0; k < per; ++k) next_b[k] = next_u[k] = 0.0;
#pragma unroll
        for (int i = 0; i <= per / 2; ++i) next_c[i][0] = next_c[i][1] = 0.0;
    }

    __device__ __forceinline__ double of(int axis, int part, int at) const { return line_number(g, axis, part, at); }
    __device__ __forceinline__ bool plane_free(int z) const { return of(2, line_free, z) != 0.0; }
    __device__ __forceinline__ int calm_from(int axis) const { return g.calm[2 * axis]; }
    __device__ __forceinline__ int calm_to(int axis) const { return g.calm[2 * axis + 1]; }
    __device__ __forceinline__ bool is_calm(int axis, int at) const { return at >= calm_from(axis) && at < calm_to(axis); }
    // Whether the points before and behind coarse point `at` are.
    __device__ __forceinline__ bool is_calm_around(int axis, int at) const {
        return is_calm(axis, 2 * at - 1) && is_calm(axis, 2 * at + 1);
    }
    // A number of the thread's column.
    __device__ __forceinline__ double number(int which) const { return columns[which * wide + lane]; }
    // Takes down what `number` says. The first warp; the others see it behind the first `__syncthreads`.
    __device__ __forceinline__ void keep_numbers() {
        if (first > 0) return;
#pragma unroll
        for (int part = 0; part <= line_free; ++part) columns[part * wide + lane] = of(0, part, column);
        const i64 kind = calm_from(2) < calm_to(2) ? read(g.inverse_of + ((i64)calm_from(2) * ny + calm_from(1))) : 0;
        columns[column_inverse * wide + lane] = read(g.inverses + (kind * nx + column));
        if (start < start_corrected) return;
        const int j = column >> 1;
        columns[column_left * wide + lane] = between ? read(g.weights[0] + j) : 0.0;
        columns[column_right * wide + lane] = between ? read(g.weights[0] + g.coarse_size[0] + j) : 0.0;
    }
    // Of a calm row.
    __device__ __forceinline__ box_row calm_row() const {
        return {g.calm_row[0], g.calm_row[1], g.calm_row[2], g.calm_row[3], g.calm_row[4], g.calm_row[5]};
    }
    __device__ __forceinline__ int row(int k) const { return wrap_y ? wrapped(y + k, ny) : min(max(y + k, 0), ny - 1); }
    // A step more each, which planes there are a step less on both sides.
    __device__ __forceinline__ bool reaches(int s, int z) const {
        return wrap_z ? z >= top + s && z < bottom - s : z >= max(z0 - margin + s, 0) && z < min(z1 + margin - s, nz);
    }
    __device__ __forceinline__ int plane_of(int z) const { return wrap_z ? wrapped(z, nz) : z; }
    // Whether step s + 1 relaxes the thread's point k of plane z. `at`: z + s.
    __device__ __forceinline__ bool has_colour(int k, int at) const {
        return colour < 0 || !((x + y + colour + k + at) & 1);
    }
    // The thread's first point of plane z before step s + 1.
    __device__ __forceinline__ double* before_step(int s, int z) const {
        return memory + ((2 * s + (z & 1)) * high + first) * wide + lane;
    }
    __device__ __forceinline__ double* residual_plane(int z) const {
        static_assert((box_residual_planes & (box_residual_planes - 1)) == 0, "a plane's number modulo that of planes");
        return residuals + (z & (box_residual_planes - 1)) * high * residual_pitch;
    }

    // What the first step finds in plane z, to `fresh`.
    __device__ __forceinline__ void begin(int z) {
        const int inside = plane_of(z);
        start_with_field();
        if (start >= start_corrected) {
            const bool plane_held = !plane_free(inside);
#pragma unroll
            for (int k = 0; k < per; ++k) {
                // The same for the whole warp.
                if (plane_held || (held >> k & 1)) continue;
                double by = box_correction(g, taken, row(k), inside);
                double before = __shfl_up_sync(0xffffffffu, by, 1);
                // The lane before has the coarse column before, if there is such a lane.
                if (between && lane == 0) before = box_correction(g, column >> 1, row(k), inside);
                if (between) by = number(column_left) * before + number(column_right) * by;
                fresh[0][k] += x_free ? by : 0.0 * by;
            }
        }
#pragma unroll
        for (int k = 0; k < per; ++k) fresh[0][k] = there ? fresh[0][k] : 0.0;
    }
    __device__ __forceinline__ void start_with_field() {
#pragma unroll
        for (int k = 0; k < per; ++k) fresh[0][k] = start == start_correction ? 0.0 : next_u[k];
    }
    // The same in a calm plane, of rows that are calm or held.
    template <bool even> __device__ __forceinline__ void begin_calm(int z) {
        start_with_field();
        if (start >= start_corrected) add_correction<even>(z);
        if constexpr (!even) {
#pragma unroll
            for (int k = 0; k < per; ++k) fresh[0][k] = there ? fresh[0][k] : 0.0;
        }
    }
    template <bool even> __device__ __forceinline__ void add_correction(int z) {
        double by[per];
        correct_calm<per>(g, z & 1, next_c, by);
#pragma unroll
        for (int k = 0; k < per; ++k) {
            double before = __shfl_up_sync(0xffffffffu, by[k], 1);
            if (!even && between && lane == 0) before = box_correction(g, column >> 1, row(k), z);
            const double left = even ? g.calm_weights[0] : number(column_left);
            const double right = even ? g.calm_weights[1] : number(column_right);
            if (between) by[k] = left * before + right * by[k];
            if (!even && !x_free) by[k] = 0.0 * by[k];
            if (!(held >> k & 1)) fresh[0][k] += by[k];
        }
    }
    // Asks for what `correct_calm` takes for plane z, of parity `odd`, of a warp whose columns are all calm.
    template <int odd> __device__ __forceinline__ void ask_correction_calm(int z) {
        const double* level = opaque(g.correction + (z >> 1) * g.coarse_plane);
#pragma unroll
        for (int i = 0; i <= per / 2; ++i) next_c[i][0] = read_now(level + coarse_row[i]);
        if constexpr (odd) {
            level = opaque(level + g.coarse_plane);
#pragma unroll
            for (int i = 0; i <= per / 2; ++i) next_c[i][1] = read_now(level + coarse_row[i]);
        }
    }
    // Asks for what `correct_calm` takes for plane z.
    __device__ __forceinline__ void ask_correction(int z) {
        if (!calm_rows || z < 0 || z >= nz || taken < 0) return;
        // Behind the last there is none, and nothing is made of what is read.
        const int j = z >> 1, under = j + 1 < g.coarse_size[2] ? j + 1 : wrap_z ? 0 : j;
        const double* from = g.correction;
#pragma unroll
        for (int i = 0; i <= per / 2; ++i) {
            next_c[i][0] = read(from + (j * g.coarse_plane + coarse_row[i]));
            if (z & 1) next_c[i][1] = read(from + (under * g.coarse_plane + coarse_row[i]));
        }
    }

    // Asks for plane z of the field, and of the correction, and the one before it of the right side: half a plane before they
    // are needed.
    __device__ __forceinline__ void ask(int z) {
        if (start >= start_corrected && z < bottom) ask_correction(z);
        if (z < bottom && (start == start_field || start == start_corrected)) {
            const double* from = g.before + plane_of(z) * g.plane;
#pragma unroll
            for (int k = 0; k < per; ++k) next_u[k] = read(from + at_row[k]);
        }
        if (z > top && z <= bottom) {
            const double* from = g.right_side + plane_of(z - 1) * g.plane;
#pragma unroll
            for (int k = 0; k < per; ++k) next_b[k] = read(from + at_row[k]);
        }
    }

    __device__ __forceinline__ void write(int s, int z) { write_to(before_step(s, z), s); }
    __device__ __forceinline__ void write_to(double* to, int s) const {
#pragma unroll
        for (int k = 0; k < per; ++k) to[k * wide] = fresh[s][k];
    }

    // b − Au of plane z before step s + 1, which goes along it by ω and leaves `fresh`, if it is one that `relaxes`. The
    // plane behind is `fresh` of step s.
    template <int s, bool relaxes>
    __device__ __forceinline__ void step(int z, double omega, double (&residual)[per]) {
        const double* from = before_step(s, z);
        const int inside = plane_of(z);
        const bool no_up = !wrap_z && z == 0, no_down = !wrap_z && z == nz - 1;
        const bool plane_held = !plane_free(inside);
        const int west = lane > 0 ? -1 : 0, east = lane < wide - 1 ? 1 : 0;
        double here[per];
#pragma unroll
        for (int k = 0; k < per; ++k) here[k] = from[k * wide];
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const double c = here[k];
            // At the ends of a tile there are margins that nobody needs.
            double north = k > 0 ? here[k > 0 ? k - 1 : 0] : first > 0 ? from[-wide] : c;
            double south = k < per - 1 ? here[k < per - 1 ? k + 1 : k] : first < high - per ? from[per * wide] : c;
            double up = above[s][k], down = fresh[s][k];
            // At an end of the grid the one on the other side, which couplings of zero make nothing of.
            if (no_north >> k & 1) north = c;
            if (no_south >> k & 1) south = c;
            const double over = up, under = down;
            up = no_up ? (no_down ? c : under) : over;
            down = no_down ? (no_up ? c : over) : under;
            const bool keeps = plane_held || (held >> k & 1);
            box_couplings at = {calm_row(), number(column_inverse)};
            // The same for the whole warp.
            if (!keeps && !(calm_rows && is_calm(2, z))) at = couplings_at(g, column, row(k), inside);
            double found = right_side_of<s>(k) + sum_around(at.row, c, from[k * wide + west], from[k * wide + east], north, south, up, down);
            if (!x_free) found = found * 0.0;
            double after = has_colour(k, z + s) ? c + (omega * at.inverse) * found : c;
            if (keeps) {
                found = 0.0;
                after = c;
            }
            residual[k] = there ? found : 0.0;
            if constexpr (relaxes) fresh[s + 1][k] = there ? after : 0.0;
            above[s][k] = c;
        }
    }
    // −Au at a point.
    __device__ __forceinline__ double sum_around(const box_row& of, double c, double west, double east, double north,
                                                 double south, double up, double down) const {
        const double along = number(line_before) * (west - c) + number(line_after) * (east - c);
        const double beside = (of.north * (north - c) + of.south * (south - c)) + (of.up * (up - c) + of.down * (down - c));
        return of.across * (along - number(line_excess) * c) + number(line_mass) * (beside - of.excess * c);
    }
    // `step` in a calm plane, of rows that are calm or held. `at`: where the plane begins in memory. `odd`: the parity of the
    // plane s + 1 planes on.
    template <bool even, int odd, int s, bool relaxes>
    __device__ __forceinline__ void step_calm(const box_around& from, int at, double omega, double (&residual)[per]) {
        const double gain = omega * (even ? g.calm_inverse : number(column_inverse));
        double here[per], west[per], east[per];
#pragma unroll
        for (int k = 0; k < per; ++k) {
            here[k] = from.own[at + k * wide];
            west[k] = from.west[at + k * wide];
            east[k] = from.east[at + k * wide];
        }
        const double north_of_all = from.north[at], south_of_all = from.south[at];
#pragma unroll
        for (int k = 0; k < per; ++k) {
            const double c = here[k], up = above[s][k], down = fresh[s][k];
            const double north = k > 0 ? here[k > 0 ? k - 1 : 0] : north_of_all;
            const double south = k < per - 1 ? here[k < per - 1 ? k + 1 : k] : south_of_all;
            double found;
            if constexpr (even) {
                const double along = (west[k] - c) + (east[k] - c);
                const double beside = ((north - c) + (south - c)) + ((up - c) + (down - c));
                found = right_side_of<s>(k) + g.even_coupling * (along + beside);
            } else {
                found = right_side_of<s>(k) + sum_around(calm_row(), c, west[k], east[k], north, south, up, down);
                if (!x_free) found = found * 0.0;
            }
            residual[k] = even || there ? found : 0.0;
            if constexpr (relaxes) fresh[s + 1][k] = even || there ? (has_colour(k, odd - 1) ? c + gain * found : c) : 0.0;
            above[s][k] = c;
        }
        // The same for the whole warp.
        if (held == 0) return;
        // A jump, and not a choice for each row in all warps.
        asm volatile("");
#pragma unroll
        for (int k = 0; k < per; ++k) {
            if (!(held >> k & 1)) continue;
            residual[k] = 0.0;
            if constexpr (relaxes) fresh[s + 1][k] = even || there ? here[k] : 0.0;
        }
    }
    // The equations of the points that were relaxed last hold, where they are of one colour. `at`: z + `steps` − 1.
    __device__ __forceinline__ void leave_out_solved(int at, double (&residual)[per]) const {
        if (colour < 0) return;
#pragma unroll
        for (int k = 0; k < per; ++k) {
            if (has_colour(k, at)) residual[k] = 0.0;
        }
    }
    // Where a step does not reach plane z.
    __device__ __forceinline__ void pass_by(int s, int z) {
        const double* from = before_step(s, z);
#pragma unroll
        for (int k = 0; k < per; ++k) above[s][k] = from[k * wide];
    }

    // Also of rows and planes that are not the block's own, which nobody reads: so there is nothing to decide.
    __device__ __forceinline__ void keep_to_measure(int z, const double (&residual)[per]) const {
#pragma unroll
        for (int k = 0; k < per; ++k) squares_of(z)[(first + k) * wide + lane] = residual[k];
    }
    // Likewise; even columns first, then odd ones, as they are read.
    __device__ __forceinline__ void keep_residual(int z, const double (&residual)[per]) const {
        double* to = residual_plane(z) + first * residual_pitch + lane / 2 + (lane & 1) * (wide / 2);
#pragma unroll
        for (int k = 0; k < per; ++k) to[k * residual_pitch] = residual[k];
    }
    // What is measured of plane z.
    __device__ __forceinline__ double* squares_of(int z) const { return squares + (z & 1) * high * wide; }
    // Adds up the squares of what was kept of plane z, over the rows of each leaf.
    __device__ __forceinline__ void add_squares(int z) const {
        if (z < z0 || z >= z1) return;
        const int bands = own_y / leaf_rows, all = (ny + leaf_rows - 1) / leaf_rows;
        // Without helpers, not the first warps: some of these restrict, too, and share their scheduler with more warps.
        const int begin = helpers > 0 ? finisher() : (finisher() + finishing - 64) % finishing;
        for (int t = begin; t < bands * own_x; t += finishing) {
            const int band = t / own_x, at = t % own_x, column = int(blockIdx.x) * own_x + at;
            const int of_level = int(blockIdx.y) * bands + band, rows = min(leaf_rows, ny - of_level * leaf_rows);
            if (column >= nx || rows <= 0) continue;
            const double* from = squares_of(z) + (side + band * leaf_rows) * wide + side + at;
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
        const double* planes[3] = {residual_plane(2 * j - 1), residual_plane(2 * j), residual_plane(2 * j + 1)};
        const int wide_of_coarse = own_x / 2, high_of_coarse = own_y / 2;
        for (int t = finisher(); t < wide_of_coarse * high_of_coarse; t += finishing) {
            const int at_x = t % wide_of_coarse, at_y = t / wide_of_coarse;
            const int x = int(blockIdx.x) * wide_of_coarse + at_x, y = int(blockIdx.y) * high_of_coarse + at_y;
            if (x >= g.coarse_size[0] || y >= g.coarse_size[1]) continue;
            const int begin = (side + 2 * at_y) * residual_pitch + side / 2 + at_x;
            auto at = [&](int x, int y, int z) {
                return planes[z + 1][begin + y * residual_pitch + (x == 0 ? 0 : wide / 2 - (x < 0))];
            };
            double* to = g.coarse_right_side + (j * g.coarse_plane + y * (g.coarse_size[0] + 2) + x + 1);
            const double* calm = g.calm_weights;
            double columns[2] = {calm[1], calm[0]};
            if (!is_calm_around(0, x)) weights_beside(g, x, columns);
            if (is_calm_around(1, y) && is_calm_around(2, j)) {
                const double rows[3] = {calm[3], 1.0, calm[2]}, planes[3] = {calm[5], 1.0, calm[4]};
                *to = box_restrict<true>(columns, rows, planes, at);
            } else {
                double rows[3], planes[3];
                weights_around(g, 1, y, rows);
                weights_around(g, 2, j, planes);
                *to = box_restrict(columns, rows, planes, at);
            }
        }
    }
    // The thread's number among those that finish.
    __device__ __forceinline__ int finisher() const { return int(threadIdx.x) - (helpers > 0 ? warps * wide : 0); }

    // Step s of plane now − s.
    template <int s> __device__ __forceinline__ void relax(int now) {
        const int z = now - s;
        if (!reaches(s, z)) return pass_by(s - 1, z);
        if (s == 1 && start == start_zero) {
            const int inside = plane_of(z);
            const bool plane_held = !plane_free(inside);
#pragma unroll
            for (int k = 0; k < per; ++k) {
                fresh[s][k] = 0.0;
                // The same for the whole warp.
                if (plane_held || (held >> k & 1)) continue;
                const bool calm = calm_rows && is_calm(2, z);
                const double inverse = calm ? number(column_inverse) : couplings_at(g, column, row(k), inside).inverse;
                if (there && has_colour(k, z)) fresh[s][k] = (g.omega[0] * inverse) * right_side_of<0>(k);
            }
        } else {
            double residual[per];
            step<s - 1, true>(z, g.omega[s - 1], residual);
            if (measured == s - 1) keep_to_measure(z, residual);
        }
        if (s < steps || then) write(s, z);
        if (s == steps && z >= z0 && z < z1) put(g.after + plane_of(z) * g.plane);
    }
    // Writes the own points of the last step's new plane.
    __device__ __forceinline__ void put(double* to) const {
        to = opaque(to);
#pragma unroll
        for (int k = 0; k < per; ++k) {
            if (own >> k & 1) to[at_row[k]] = fresh[steps][k];
        }
    }
    // The right sides that are known move to the next step; the oldest gives its place to the newest.
    __device__ __forceinline__ void pass_on() {
        const int oldest = b[steps];
#pragma unroll
        for (int s = steps; s > 0; --s) b[s] = b[s - 1];
        b[0] = oldest;
#pragma unroll
        for (int k = 0; k < per; ++k) right_sides[oldest + k * wide] = next_b[k];
    }
    // Of the thread's point k, for step s + 1.
    template <int s> __device__ __forceinline__ double right_side_of(int k) const { return right_sides[b[s] + k * wide]; }

    // What is done of plane `now`, and of those behind it with the steps behind the first.
    __device__ __forceinline__ void go(int now) {
        if (helpers == 0) finish(now);
        pass_on();
        if (start != start_zero && now < bottom) {
            begin(now);
            write(0, now);
        }
        if constexpr (steps >= 1) relax<1>(now);
        ask(now + 1);
        if constexpr (steps >= 2) relax<2>(now);
        const int z = now - steps - 1;
        if (then && !reaches(steps + 1, z)) {
            pass_by(steps, z);
        } else if (then) {
            double residual[per];
            step<steps, false>(z, 0.0, residual);
            leave_out_solved(z + steps - 1, residual);
            if (measured == steps) keep_to_measure(z, residual);
            if (restricts) keep_residual(z, residual);
        }
        meet();
    }
    // Makes what the planes before have left to be made.
    __device__ __forceinline__ void finish(int now) const {
        if (measured >= 0) add_squares(now - measured - 2);
        if (restricts) restrict_behind(now - steps - 2);
    }
    // Each step has read its planes of before, and written its new one; what was kept of the residual is there, and what was
    // kept of the plane before has been read. Warps come to the same barrier from different loops, as many times.
    __device__ __forceinline__ void meet() const { asm volatile("bar.sync 0;" ::: "memory"); }

    // The same of a calm plane of parity `odd`, which begins with element `plane`, where all planes under way are calm, too,
    // if they are reached. `from`: the first of the planes before step 1.
    template <bool even, int odd> __device__ __forceinline__ void go_calm(int now, const box_around& from, i64 plane) {
        constexpr int plane_size = high * wide;
        if (helpers == 0) finish(now);
        pass_on();
        auto write_now = [&](int s, int parity) { write_to(from.own + (2 * s + parity) * plane_size, s); };
        double residual[per];
        if (start != start_zero) {
            begin_calm<even>(now);
            write_now(0, odd);
        }
        if constexpr (steps >= 1) {
            if (start == start_zero) {
                const double gain = g.omega[0] * (even ? g.calm_inverse : number(column_inverse));
#pragma unroll
                for (int k = 0; k < per; ++k) {
                    const bool stays = (held >> k & 1) || (!even && !there) || !has_colour(k, odd - 1);
                    fresh[1][k] = stays ? 0.0 : gain * right_side_of<0>(k);
                }
            } else {
                step_calm<even, odd, 0, true>(from, (1 - odd) * plane_size, g.omega[0], residual);
                if (measured == 0) keep_to_measure(now - 1, residual);
            }
            if (1 < steps || then) write_now(1, 1 - odd);
            if (steps == 1 && now - 1 >= z0 && now - 1 < z1) put(g.after + (plane - g.plane));
        }
        if (start >= start_corrected && even) ask_correction_calm<1 - odd>(now + 1);
        if (start >= start_corrected && !even) ask_correction(now + 1);
        const double *u = opaque(g.before + (plane + g.plane)), *right_side = opaque(g.right_side + plane);
#pragma unroll
        for (int k = 0; k < per; ++k) {
            if (start == start_field || start == start_corrected) next_u[k] = read_now(u + at_row[k]);
            next_b[k] = read_now(right_side + at_row[k]);
        }
        // The compiler would ask behind the steps, just before it is needed.
        __syncwarp();
        if constexpr (steps >= 2) {
            step_calm<even, odd, 1, true>(from, (2 + odd) * plane_size, g.omega[1], residual);
            if (measured == 1) keep_to_measure(now - 2, residual);
            if (then) write_now(2, odd);
            if (now - 2 >= z0 && now - 2 < z1) put(g.after + (plane - 2 * g.plane));
        }
        if (then) {
            constexpr int parity = (odd + steps + 1) % 2;
            step_calm<even, odd, steps, false>(from, (2 * steps + parity) * plane_size, 0.0, residual);
            const int z = now - steps - 1;
            leave_out_solved(odd - 2, residual);
            if (measured == steps) keep_to_measure(z, residual);
            if (restricts) keep_residual(z, residual);
        }
        meet();
    }
    // All planes from `now` to `end`, of these. `even`: the warp's columns are, too.
    template <bool even> __device__ __forceinline__ void go_calm(int& now, int end) {
        static_assert(steps <= 2, "go_calm has two");
        double* const own = memory + first * wide + lane;
        const box_around from = {own, own - (lane > 0), own + (lane < wide - 1), first > 0 ? own - wide : own,
                                 own + (first < high - per ? per : per - 1) * wide};
        i64 plane = now * g.plane;
#pragma unroll 1
        while (now < end) {
            if ((now & 1) == 0) {
                go_calm<even, 0>(now, from, plane);
                plane += g.plane;
                if (++now == end) break;
            }
            go_calm<even, 1>(now, from, plane);
            plane += g.plane;
            ++now;
        }
    }
};

template <int warps, int helpers, int steps, class Work = as_launched>
__device__ __forceinline__ void run_box_pass(const box_pass& g) {
    extern __shared__ double memory[];
    box_walk<warps, helpers, steps, Work> walk(g, memory);
    const bool helps = helpers > 0 && threadIdx.x >= warps * box_tile_x;
    if (!helps) walk.ask(walk.top);
    // What the first warp has kept of the columns is there.
    __syncthreads();
    if (helps) {
        for (int now = walk.top; now < walk.z1 + steps + 3; ++now) {
            walk.finish(now);
            walk.meet();
        }
        return;
    }
    // Where all planes under way are calm, and the next one is there. What a step makes before it reaches its first plane, of
    // whatever is in memory, nobody asks for.
    const int calm_from = max(walk.top, walk.calm_from(2) + steps + 1);
    const int calm_to = walk.calm_rows ? min(walk.bottom, walk.calm_to(2)) - 1 : 0, end = walk.z1 + steps + 3;
    int now = walk.top;
#pragma unroll 1
    while (now < end) {
        if (now < calm_from || now >= calm_to) {
            walk.go(now);
            ++now;
        } else if (walk.even) {
            walk.template go_calm<true>(now, calm_to);
        } else {
            walk.template go_calm<false>(now, calm_to);
        }
    }
}

// A kernel of passes over levels of boxes by so many warps a block, and helpers; behind them the other arguments of
// `run_box_pass`. Of blocks of few warps there are two at a time, where they fit (182 KiB of shared memory for those of
// `box_0`), so that one goes on while the other meets.
#define CROSSWARP_BOX_PASS(name, warps, helpers, ...)                                                  \
    extern "C" __global__ void __launch_bounds__(cw::box_tile_x*(warps + helpers), warps < 10 ? 2 : 1) \
        name(const __grid_constant__ cw::box_pass g) {                                                 \
        cw::run_box_pass<warps, helpers, __VA_ARGS__>(g);                                              \
    }

}  // namespace crosswarp

// A level made of the finer one: interpolation that follows the operator, and the coarse operator. Operations as in
// `interpolation.rs`, `galerkin_product.rs`, `finest_rows.rs` and `coarse.rs`, in the same order. No axis of odd length wraps around.
#pragma once
#include "multigrid/five_point.cuh"
#include "multigrid/nine_point.cuh"

namespace crosswarp {

// Coarse rows of a block.
constexpr int galerkin_rows = galerkin_threads / galerkin_columns;

// What is around these: of the finer level from 3 columns and rows before the first of them on, of weights from one before on.
constexpr int window_columns = 2 * galerkin_columns + 5, window_rows = 2 * galerkin_rows + 4;
constexpr int weight_columns = galerkin_columns + 2, weight_rows = galerkin_rows + 2;

// The parts of an operator, as `operator_rows.rs` numbers them.
enum operator_part {
    to_east = nine_point::east,
    to_south = nine_point::south,
    to_south_east = nine_point::south_east,
    to_south_west = nine_point::south_west,
    of_excess = nine_point::excess
};

// Behind the weights what interpolants of 1 are.
enum interpolant { one_right = weights, one_below, one_amid, interpolants };

// Makes `at` a point of an axis of `len` points; whether there is one.
__device__ __forceinline__ bool is_point(int& at, int len, bool wraps) {
    if (wraps) at += at < 0 ? len : at >= len ? -len : 0;
    return at >= 0 && at < len;
}

// The finest level's operator, of points that have equations.
template <bool varying> struct finest_operator {
    using number = double;
    static constexpr bool corners = false;
    static constexpr int parts = 3;
    const level_pass<double>& g;

    // What a point is for its neighbours: it has an equation, it keeps its value, or there is none.
    enum kind { is_free, is_fixed, is_none };
    __device__ kind kind_of(int x, int y) const {
        if (!is_point(x, g.nx, g.ends[0] == end_wrap) || !is_point(y, g.ny, g.ends[2] == end_wrap)) return is_none;
        return five_point<varying>(g, x, true).keeps(y) ? is_fixed : is_free;
    }
    __device__ static double tie(kind of, double coupling) { return of == is_fixed ? coupling : 0.0; }

    // East, south and the excess of the point at column x, row y, which need not be there.
    __device__ void load(int x, int y, double (&out)[parts]) const {
        const kind here = kind_of(x, y);
        out[0] = out[1] = out[2] = 0.0;
        if (here != is_free) return;
        const kind east = kind_of(x + 1, y), west = kind_of(x - 1, y), south = kind_of(x, y + 1), north = kind_of(x, y - 1);
        is_point(x, g.nx, g.ends[0] == end_wrap);
        is_point(y, g.ny, g.ends[2] == end_wrap);
        double to[4], excess = 0.0;
        if constexpr (varying) {
            using numbers = five_point<true>;
            const row_table<double, numbers::parts> table{g.operator_index, g.operator_rows, g.nx};
            const double *row = table.row(y) + x + 1, *above = table.row(y - 1) + x + 1;
            const int part = g.nx + 2;
            to[0] = read(row + numbers::east * part), to[1] = read(row + numbers::east * part - 1);
            to[2] = read(row + numbers::south * part), to[3] = read(above + numbers::south * part);
            excess = read(row + numbers::excess * part);
        } else {
            to[0] = to[1] = part_along(y, g.ny, g.ends[2], g.ends[3]);
            to[2] = to[3] = part_along(x, g.nx, g.ends[0], g.ends[1]);
        }
        out[0] = east == is_free ? to[0] : 0.0;
        out[1] = south == is_free ? to[2] : 0.0;
        const double across = excess + tie(east, to[0]) + tie(west, to[1]);
        out[2] = across + tie(south, to[2]) + tie(north, to[3]);
    }
};

// That of another level.
struct coarse_operator {
    using number = float;
    static constexpr bool corners = true;
    static constexpr int parts = nine_point::parts;
    const level_pass<float>& g;

    __device__ void load(int x, int y, float (&out)[parts]) const {
        const bool there = is_point(x, g.nx, g.ends[0] == end_wrap) && is_point(y, g.ny, g.ends[2] == end_wrap);
        const row_table<float, parts> table{g.operator_index, g.operator_rows, g.nx};
        const float* row = there ? table.row(y) + x + 1 : nullptr;
        for (int part = 0; part < parts; ++part) out[part] = there ? read(row + part * (g.nx + 2)) : 0.f;
    }
};

// Part of a sum of parts and an excess; parts below zero count as none.
__device__ __forceinline__ double share_of(double part, double all) { return part > 0.0 ? part / all : 0.0; }
__device__ __forceinline__ double positive(double value) { return value > 0.0 ? value : 0.0; }

// What couplings along a line are shares of: see `shares` in `interpolation.rs`.
__device__ __forceinline__ double all_along(double one, double other, double beside_one, double beside_other, double excess) {
    const double sum = (one + other) + (beside_one + beside_other);
    auto difference = [sum](double a, double b) {
        const double difference = fabs(a - b);
        return difference > 1e-6 * sum ? difference : 0.0;
    };
    const double own = difference(one, other), beside = difference(beside_one, beside_other);
    const double part = own + beside > 0.0 ? own / (own + beside) : 1.0;
    return (one + other) + part * positive(excess);
}

// Whether points at place (x, y) take values of the coarse point (i, j).
__device__ constexpr bool has_parent(int x, int y, int i, int j) {
    return (i == (x >> 1) || i == (x >> 1) + (x & 1)) && (j == (y >> 1) || j == (y >> 1) + (y & 1));
}

template <class Fine> struct galerkin_block {
    using number = typename Fine::number;
    number window[Fine::parts][window_rows][window_columns];
    double weight[interpolants][weight_rows][weight_columns];

    // What is around a coarse point: places count from it, in points of the finer level.
    struct coarse_point {
        const galerkin_block& block;
        // Of weights, and of the window.
        const int i, j, column, row;
        double own, one, diagonal, of_one;
        double parts[4], excess, size;

        __device__ coarse_point(const galerkin_block& block, int i, int j)
            : block(block), i(i + 1), j(j + 1), column(2 * i + 3), row(2 * j + 3), parts{}, excess(0.0), size(0.0) {}

        template <int part> __device__ double value(int x, int y) const {
            if constexpr (part == of_excess) return block.window[Fine::parts - 1][row + y][column + x];
            else return block.window[part][row + y][column + x];
        }
        // The couplings of the point at a place to its neighbour in direction (dx, dy).
        template <int x, int y, int dx, int dy> __device__ double coupling() const {
            if constexpr (dy == 0) return value<to_east>(dx > 0 ? x : x - 1, y);
            else if constexpr (dx == 0) return value<to_south>(x, dy > 0 ? y : y - 1);
            else if constexpr (dx == dy) return value<to_south_east>(dx > 0 ? x : x - 1, dy > 0 ? y : y - 1);
            else return value<to_south_west>(dx < 0 ? x : x + 1, dy > 0 ? y : y - 1);
        }
        template <int part, int x, int y> __device__ double stored() const {
            return block.weight[part][j + (y >> 1)][i + (x >> 1)];
        }
        // The weight with which the point at (x, y) takes the value of the coarse point (of_i, of_j).
        template <int x, int y, int of_i, int of_j> __device__ double weight() const {
            constexpr int right = of_i - (x >> 1), below = of_j - (y >> 1);
            if constexpr ((x & 1) && (y & 1)) return stored<amid_0 + 2 * below + right, x, y>();
            else if constexpr (x & 1) return stored<right_0 + right, x, y>();
            else if constexpr (y & 1) return stored<below_0 + below, x, y>();
            else return 1.0;
        }
        template <int x, int y> __device__ double interpolant_of_one() const {
            if constexpr ((x & 1) && (y & 1)) return stored<one_amid, x, y>();
            else if constexpr (x & 1) return stored<one_right, x, y>();
            else if constexpr (y & 1) return stored<one_below, x, y>();
            else return 1.0;
        }
        template <int part, int of_i, int of_j, int x, int y> __device__ void add_to(double what) {
            if constexpr (has_parent(x, y, of_i, of_j)) parts[part] = parts[part] + what * weight<x, y, of_i, of_j>();
        }
        template <int part, int of_i, int of_j, int x, int y> __device__ void take_from(double what) {
            if constexpr (has_parent(x, y, of_i, of_j)) parts[part] = parts[part] - what * weight<x, y, of_i, of_j>();
        }
        // Adds what the coupling of the point at (x, y) in direction (dx, dy) contributes.
        template <int x, int y, int dx, int dy> __device__ void towards() {
            const double along = coupling<x, y, dx, dy>();
            constexpr int there_x = x + dx, there_y = y + dy;
            diagonal = diagonal + along;
            of_one = of_one + along * (one - interpolant_of_one<there_x, there_y>());
            const double by = own * along;
            add_to<to_east, 1, 0, there_x, there_y>(by);
            add_to<to_south, 0, 1, there_x, there_y>(by);
            add_to<to_south_east, 1, 1, there_x, there_y>(by);
            add_to<to_south_west, -1, 1, there_x, there_y>(by);
        }
        // Adds what the point at a place contributes.
        template <int x, int y> __device__ void add() {
            const double ties = value<of_excess>(x, y);
            own = weight<x, y, 0, 0>();
            one = interpolant_of_one<x, y>();
            diagonal = ties;
            of_one = ties * one;
            towards<x, y, 1, 0>();
            towards<x, y, -1, 0>();
            towards<x, y, 0, 1>();
            towards<x, y, 0, -1>();
            if constexpr (Fine::corners) {
                towards<x, y, 1, 1>();
                towards<x, y, -1, -1>();
                towards<x, y, -1, 1>();
                towards<x, y, 1, -1>();
            }
            const double by = own * diagonal;
            take_from<to_east, 1, 0, x, y>(by);
            take_from<to_south, 0, 1, x, y>(by);
            take_from<to_south_east, 1, 1, x, y>(by);
            take_from<to_south_west, -1, 1, x, y>(by);
            excess = excess + own * of_one;
            size = size + by;
        }
        __device__ void add_all() {
            add<-1, -1>();
            add<0, -1>();
            add<1, -1>();
            add<-1, 0>();
            add<0, 0>();
            add<1, 0>();
            add<-1, 1>();
            add<0, 1>();
            add<1, 1>();
        }
        // What is left where all should cancel is rounding.
        __device__ float rounded(double part) const { return fabs(part) <= 1e-14 * size ? 0.f : float(part); }
    };

    // Part `part` at a column and row of the window.
    __device__ double at(int part, int column, int row) const {
        if (part == of_excess) return window[Fine::parts - 1][row][column];
        return Fine::corners || part < to_south_east ? window[part < Fine::parts ? part : 0][row][column] : 0.0;
    }

    // Sets two weights along a line, of the point at a column and row of the window.
    __device__ void set_along(int first, int of_one, int i, int j, int column, int row, bool across) {
        const double north_west = at(to_south_east, column - 1, row - 1), north_east = at(to_south_west, column + 1, row - 1);
        const double south_west = at(to_south_west, column, row), south_east = at(to_south_east, column, row);
        const double west = positive(at(to_east, column - 1, row) + (north_west + south_west));
        const double east = positive(at(to_east, column, row) + (north_east + south_east));
        const double north = positive(at(to_south, column, row - 1) + (north_west + north_east));
        const double south = positive(at(to_south, column, row) + (south_west + south_east));
        const double excess = at(of_excess, column, row);
        const double before = across ? west : north, after = across ? east : south;
        const double all = across ? all_along(west, east, north, south, excess) : all_along(north, south, west, east, excess);
        const double shares[2] = {share_of(before, all), share_of(after, all)};
        weight[first][j][i] = shares[0];
        weight[first + 1][j][i] = shares[1];
        weight[of_one][j][i] = shares[0] + shares[1];
    }

    // Sets the weights of the point amid four coarse ones, of which those beside it are known.
    __device__ void set_amid(int i, int j, int column, int row) {
        const double sides[2] = {positive(at(to_east, column - 1, row)), positive(at(to_east, column, row))};
        const double across[2] = {positive(at(to_south, column, row - 1)), positive(at(to_south, column, row))};
        const double corners[4] = {
            positive(at(to_south_east, column - 1, row - 1)), positive(at(to_south_west, column + 1, row - 1)),
            positive(at(to_south_west, column, row)), positive(at(to_south_east, column, row))};
        const double all = ((sides[0] + sides[1]) + (across[0] + across[1])) +
                           ((corners[0] + corners[1]) + (corners[2] + corners[3])) + positive(at(of_excess, column, row));
        double one = 0.0;
#pragma unroll
        for (int corner = 0; corner < 4; ++corner) {
            const int right = corner % 2, down = corner / 2;
            const double part = corners[corner] + (across[down] * weight[right_0 + right][j + down][i] +
                                                   sides[right] * weight[below_0 + down][j][i + right]);
            const double share = share_of(part, all);
            weight[amid_0 + corner][j][i] = share;
            one += share;
        }
        weight[one_amid][j][i] = one;
    }
};

// Sets column `i` of a part of `columns` columns, and those beyond both ends.
template <class F> __device__ __forceinline__ void set_column(F* part, int i, int columns, bool wraps, F value) {
    part[i + 1] = value;
    if (i == 0) part[columns + 1] = wraps ? value : F(0);
    if (i == columns - 1) part[0] = wraps ? value : F(0);
}

// Makes the rows of the weights between the level `g` and the next, and those of the next one's operator. Row 0 of these tables,
// which is zero, stays.
template <class Fine, class Level>
__device__ __forceinline__ void make_coarse(const Level& g, float* transfer_rows, float* operator_rows) {
    __shared__ galerkin_block<Fine> block;
    const Fine fine{g};
    const bool wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    const int first_i = int(blockIdx.x) * galerkin_columns, first_j = int(blockIdx.y) * galerkin_rows;
    for (int at = threadIdx.x; at < window_rows * window_columns; at += galerkin_threads) {
        const int column = at % window_columns, row = at / window_columns;
        typename Fine::number parts[Fine::parts];
        fine.load(2 * first_i - 3 + column, 2 * first_j - 3 + row, parts);
        for (int part = 0; part < Fine::parts; ++part) block.window[part][row][column] = parts[part];
    }
    __syncthreads();
    // Points beside coarse ones, and then those amid four.
    for (int at = threadIdx.x; at < weight_rows * weight_columns; at += galerkin_threads) {
        const int i = at % weight_columns, j = at / weight_columns;
        int coarse_i = first_i - 1 + i, coarse_j = first_j - 1 + j;
        const bool has_i = is_point(coarse_i, g.coarse_nx, wrap_x), has_j = is_point(coarse_j, g.coarse_ny, wrap_y);
        for (int part = 0; part < interpolants; ++part) block.weight[part][j][i] = 0.0;
        if (!has_i || !has_j) continue;
        // The last points of the window have no weights across or below: no product has these.
        if (2 * coarse_i + 1 < g.nx && i < weight_columns - 1)
            block.set_along(right_0, one_right, i, j, 2 * i + 2, 2 * j + 1, true);
        if (2 * coarse_j + 1 < g.ny && j < weight_rows - 1)
            block.set_along(below_0, one_below, i, j, 2 * i + 1, 2 * j + 2, false);
    }
    __syncthreads();
    for (int at = threadIdx.x; at < (weight_rows - 1) * (weight_columns - 1); at += galerkin_threads) {
        const int i = at % (weight_columns - 1), j = at / (weight_columns - 1);
        int coarse_i = first_i - 1 + i, coarse_j = first_j - 1 + j;
        const bool there = is_point(coarse_i, g.coarse_nx, wrap_x) && is_point(coarse_j, g.coarse_ny, wrap_y);
        if (there && 2 * coarse_i + 1 < g.nx && 2 * coarse_j + 1 < g.ny) block.set_amid(i, j, 2 * i + 2, 2 * j + 2);
    }
    __syncthreads();
    const int i = threadIdx.x % galerkin_columns, j = threadIdx.x / galerkin_columns;
    const int coarse_i = first_i + i, coarse_j = first_j + j;
    if (coarse_i >= g.coarse_nx || coarse_j >= g.coarse_ny) return;
    const int part_length = g.coarse_nx + 2;
    auto set = [&](float* rows, int parts, int part, float value) {
        float* row = rows + ((i64)(coarse_j + 1) * parts + part) * part_length;
        set_column(row, coarse_i, g.coarse_nx, wrap_x, value);
    };
    for (int part = 0; part < weights; ++part) set(transfer_rows, weights, part, float(block.weight[part][j + 1][i + 1]));
    typename galerkin_block<Fine>::coarse_point point(block, i, j);
    point.add_all();
    for (int part = 0; part < 4; ++part) set(operator_rows, nine_point::parts, part, point.rounded(point.parts[part]));
    set(operator_rows, nine_point::parts, of_excess, point.rounded(point.excess));
}

// Makes the rows of 1 / the diagonal of the level `g`.
__device__ __forceinline__ void make_inverse(const level_pass<float>& g, float* inverse_rows) {
    const int at = int(blockIdx.x) * galerkin_threads + int(threadIdx.x), y = blockIdx.y;
    if (at >= g.nx) return;
    nine_point::couplings of;
    of.load(g, y, at);
    auto sum = [&of](auto each) {
        auto pair = [each](float one, float other) { return each(double(one)) + each(double(other)); };
        return (pair(of.to_east, of.to_west) + pair(of.to_south, of.to_north)) +
               (pair(of.to_south_east, of.to_north_west) + pair(of.to_south_west, of.to_north_east));
    };
    const double diagonal = sum([](double coupling) { return coupling; }) + double(of.excess_of);
    // By Gershgorin no eigenvalue of D⁻¹A is above 2 then, also where couplings are negative.
    const double bound = 0.5 * (diagonal + sum([](double coupling) { return fabs(coupling); }));
    const double largest = fmax(diagonal, bound);
    const float inverse = largest > 0.0 ? float(1.0 / largest) : 0.f;
    set_column(inverse_rows + (i64)(y + 1) * (g.nx + 2), at, g.nx, false, inverse);
}

}  // namespace crosswarp

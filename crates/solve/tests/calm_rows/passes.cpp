// Passes over levels of planes on the host: every block of a launch by itself, its threads as contexts that change places at
// barriers. Runs each pass with its calm rows, and with no row called calm, by strips and where there are such by tiles; all
// must write the same bits.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

using std::max;
using std::min;
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct index3 {
    int x, y, z;
};
static index3 threadIdx, blockIdx, gridDim, blockDim;
template <class T> T __ldg(const T* from) { return *from; }
template <class To, class From> To bits_as(From from) {
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }

// The threads of a block, in turn up to the next barrier.
constexpr int most_threads = 256, stack_bytes = 256 << 10;
static int block_threads;
static ucontext_t scheduler, threads[most_threads];
static bool ended[most_threads];
static std::function<void()> block_work;
static void __syncthreads() { swapcontext(&threads[threadIdx.x], &scheduler); }
static void run_thread() {
    block_work();
    ended[threadIdx.x] = true;
}
static void run_block() {
    static std::vector<char> stacks(size_t(most_threads) * stack_bytes);
    for (int i = 0; i < block_threads; ++i) {
        ended[i] = false;
        getcontext(&threads[i]);
        threads[i].uc_stack.ss_sp = stacks.data() + size_t(i) * stack_bytes;
        threads[i].uc_stack.ss_size = stack_bytes;
        threads[i].uc_link = &scheduler;
        makecontext(&threads[i], run_thread, 0);
    }
    for (bool all = false; !all;) {
        all = true;
        for (int i = 0; i < block_threads; ++i) {
            if (ended[i]) continue;
            threadIdx = {i, 0, 0};
            swapcontext(&scheduler, &threads[i]);
            all = all && ended[i];
        }
    }
}

#include "multigrid/five_point.cuh"
#include "multigrid/nine_point.cuh"
#include "multigrid/pass.cuh"
// What the lane before has, who asks at the same time.
static float asked[most_threads];
inline float __shfl_up_sync(unsigned, float value, int by) {
    asked[threadIdx.x] = value;
    __syncthreads();
    const float found = threadIdx.x % 32 < by ? value : asked[threadIdx.x - by];
    __syncthreads();
    return found;
}
#include "multigrid/right_side.cuh"
// What a block shares with a size that is known; what has none is `memory`.
#undef __shared__
#define __shared__ static
#include "multigrid/tile.cuh"

namespace crosswarp {
float4 memory[4096];
}
using namespace crosswarp;
static_assert(level_pass_threads <= most_threads && level_tile_threads <= most_threads, "threads of a block");

static std::mt19937 noise_state(7);
template <class F> std::vector<F> noise(size_t count) {
    std::vector<F> all(count);
    for (F& x : all) x = F(int(noise_state() % 20001) - 10000) / F(10000);
    return all;
}

struct pass_case {
    int nx, ny;
    // Rows of a block, and the run of rows that are alike.
    int rows, alike_start, alike_end;
    int start, measured;
    bool restricts, has_right_side, wraps_y;
    // The end at the left.
    int left;
    // That is relaxed first, of the finest level.
    int colour = no_colour;
    // The rows that a PE has of them; of none other than these and four more on both sides anything is known.
    int row_start = 0, row_end = ny;
    // Whether points of these rows that are alike are so in all columns but the first and the last ones.
    bool alike_points = false;
};

static int failures = 0, cases = 0;

template <class Equation, int steps> void compare(const pass_case& c) {
    using F = typename Equation::number;
    constexpr bool corners = Equation::corners;
    const size_t pitch = (c.nx + 3) / 4 * 4, coarse_nx = (c.nx + 1) / 2, coarse_ny = (c.ny + 1) / 2;
    const size_t coarse_pitch = (coarse_nx + 3) / 4 * 4;
    auto before = noise<F>(pitch * c.ny), right_side = noise<F>(pitch * c.ny);
    for (size_t i = 0; i < before.size(); ++i) {
        const int y = i / pitch;
        if (y < c.row_start - 4 || y >= c.row_end + 4) before[i] = right_side[i] = NAN;
    }
    const auto correction = noise<float>(coarse_pitch * coarse_ny);
    // Rows of tables: the first is that of the rows that are alike. The diagonal is another one where the row above is.
    constexpr int kinds = 5;
    const auto couplings = noise<F>(kinds * 5 * (c.nx + 2));
    auto inverses = noise<F>(kinds * (c.nx + 2));
    const auto transfers = noise<float>(kinds * 8 * (coarse_nx + 2));
    // Some points have no equation.
    for (F& x : inverses) x = x < F(-0.9) ? F(0) : (x < 0 ? -x : x) + F(0.1);
    if (c.alike_points) {
        for (int x = 2; x < c.nx - 3; ++x) inverses[x + 1] = F(0.375);
    }
    std::vector<u32> of_row(c.ny + 2), of_inverse(c.ny + 2), of_coarse(coarse_ny + 2);
    auto alike = [&](int y) { return y >= c.alike_start && y < c.alike_end; };
    for (int y = -1; y <= c.ny; ++y) {
        const u32 other = 1 + (y & 3);
        of_row[y + 1] = alike(y) ? 0 : other;
        of_inverse[y + 1] = alike(y) && alike(y - 1) ? 0 : other;
    }
    for (int j = -1; j <= int(coarse_ny); ++j) of_coarse[j + 1] = alike(2 * j) ? 0 : 1 + (j & 3);
    const int calm_start = c.alike_start + (c.alike_start & 1);

    // By strips, without and with calm rows, and by tiles likewise.
    const int ways = corners && steps == 2 ? 4 : 2;
    std::vector<F> after[4];
    std::vector<float> coarse[4];
    std::vector<double> sums[4];
    for (int way = 0; way < ways; ++way) {
        const bool calm = way % 2, tiles = way >= 2;
        after[way].resize(pitch * c.ny);
        coarse[way].resize(coarse_pitch * coarse_ny);
        sums[way].resize((c.ny / leaf_rows + 1) * pitch);
        level_pass<F> g{};
        g.colour = c.colour;
        g.before = before.data();
        g.after = after[way].data();
        g.right_side = c.has_right_side ? right_side.data() : nullptr;
        if (corners) {
            g.operator_index = of_row.data() + 1;
            g.operator_rows = couplings.data();
            g.inverse_index = of_inverse.data() + 1;
            g.inverse_rows = inverses.data();
        }
        g.correction = correction.data();
        g.transfer_index = of_coarse.data() + 1;
        g.transfer_rows = transfers.data();
        g.coarse_right_side = c.restricts ? coarse[way].data() : nullptr;
        g.sums = sums[way].data();
        g.pitch = g.sum_pitch = pitch;
        g.coarse_pitch = coarse_pitch;
        g.up_scale = 2.0;
        g.down_scale = 0.5;
        for (int i = 0; i < most_steps; ++i) g.omega[i] = 0.1 + 0.03 * i;
        g.nx = c.nx;
        g.ny = c.ny;
        g.coarse_nx = coarse_nx;
        g.coarse_ny = coarse_ny;
        g.ends[0] = corners ? end_open : c.left;
        g.ends[1] = corners ? end_open : end_fixed;
        g.ends[2] = g.ends[3] = c.wraps_y ? end_wrap : corners ? end_open : end_fixed;
        g.start = c.start;
        g.measured = c.measured;
        g.rows = c.rows;
        g.calm_start = calm ? calm_start : 0;
        g.calm_end = calm ? c.alike_end : 0;
        if (c.alike_points) {
            const float couplings[4] = {0.3f, 0.11f, 0.7f, 0.375f};
            std::copy(couplings, couplings + 4, g.same_couplings);
            g.same_columns[0] = 2;
            g.same_columns[1] = c.nx - 3;
            g.same_rows[0] = calm_start + 2;
            g.same_rows[1] = c.alike_end;
            if (calm) g.calm_start = g.same_rows[0];
        }
        g.row_start = c.row_start;
        g.row_end = c.row_end;
        const int sector = 32 / sizeof(F), side = (steps + 2 + sector - 1) / sector * sector;
        int wide = 2 * level_pass_threads - 2 * side, high = c.rows, first = c.row_start;
        block_threads = level_pass_threads;
        block_work = [&] { run_pass<Equation, steps>(g); };
        if constexpr (corners) {
            if (tiles) {
                const int margin = tile_margin(c.restricts);
                wide = level_tile_wide - 2 * margin;
                high = tile_high - 2 * margin;
                first = c.row_start & -2;
                block_threads = level_tile_threads;
                block_work = [&] {
                    if (c.start == start_zero) return run_tile_pass<start_zero, true>(g);
                    if (c.start == start_corrected) return run_tile_pass<start_corrected, false>(g);
                    run_tile_pass<start_correction, true>(g);
                };
            }
        }
        gridDim = {(c.nx + wide - 1) / wide, (c.row_end - first + high - 1) / high, 1};
        blockDim = {block_threads, 1, 1};
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
                // Large values where nothing has been written yet.
                memset(memory, 0x7f, sizeof memory);
                run_block();
            }
        }
        // What lies behind the columns means nothing.
        for (size_t i = 0; i < after[way].size(); ++i) {
            if (i % pitch >= size_t(c.nx)) after[way][i] = F(0);
        }
    }
    ++cases;
    auto check = [&](const char* what, const auto& all, size_t pitch, int way) {
        using T = typename std::decay<decltype(all[0][0])>::type;
        for (size_t i = 0; i < all[0].size(); ++i) {
            if (std::isfinite(all[0][i]) && memcmp(&all[0][i], &all[way][i], sizeof(T)) == 0) continue;
            ++failures;
            printf("%s of %d columns x %d rows at row %zu, column %zu: %.17g, way %d %.17g\n", what, c.nx, c.ny, i / pitch,
                   i % pitch, double(all[0][i]), way, double(all[way][i]));
            printf("    corners %d, steps %d, %d rows a block, rows %d to %d alike,", corners, steps, c.rows, c.alike_start,
                   c.alike_end);
            printf(" start %d, measured %d, restricts %d, right side %d, wraps %d, colour %d\n", c.start, c.measured,
                   c.restricts, c.has_right_side, c.wraps_y, c.colour);
            return;
        }
    };
    for (int way = 1; way < ways; ++way) {
        check("field", after, pitch, way);
        check("next level's right side", coarse, coarse_pitch, way);
        check("sums", sums, pitch, way);
    }
}

// The right side of the next level: from one that nothing is told about, and of a finest level's field that is zero but in the first
// and last rows, whose pass makes the same.
template <class F> void compare_right_sides(int nx, int ny, bool calm, bool wraps, int row_start, int row_end) {
    constexpr bool finest = sizeof(F) == sizeof(double);
    const size_t pitch = (nx + 3) / 4 * 4, coarse_nx = (nx + 1) / 2, coarse_ny = (ny + 1) / 2;
    const size_t coarse_pitch = (coarse_nx + 3) / 4 * 4;
    auto before = noise<F>(pitch * ny), right_side = noise<F>(pitch * ny), none = std::vector<F>(pitch * ny);
    for (size_t i = 0; i < before.size(); ++i) {
        const int y = i / pitch;
        if (y > 0 && y < ny - 1) before[i] = F(0);
        if (y < row_start - 1 || y > row_end) right_side[i] = NAN;
    }
    const auto transfers = noise<float>(3 * 8 * (coarse_nx + 2));
    std::vector<u32> of_coarse(coarse_ny + 2);
    for (int j = -1; j <= int(coarse_ny); ++j) of_coarse[j + 1] = calm && j > 0 && j < int(coarse_ny) - 1 ? 0 : 1 + (j & 1);
    std::vector<float> expected(coarse_pitch * coarse_ny), found = expected;
    std::vector<double> expected_sums((ny / leaf_rows + 1) * pitch), found_sums = expected_sums;
    level_pass<F> g{};
    g.colour = no_colour;
    g.before = before.data();
    g.right_side = right_side.data();
    g.transfer_index = of_coarse.data() + 1;
    g.transfer_rows = transfers.data();
    g.pitch = g.sum_pitch = pitch;
    g.coarse_pitch = coarse_pitch;
    g.down_scale = 0.5;
    g.nx = nx;
    g.ny = ny;
    g.coarse_nx = coarse_nx;
    g.coarse_ny = coarse_ny;
    for (int k = 0; k < 4; ++k) g.ends[k] = finest ? end_fixed : wraps ? end_wrap : end_open;
    g.start = start_field;
    g.measured = 0;
    g.rows = 16;
    g.row_start = row_start;
    g.row_end = row_end;
    g.calm_start = calm ? 2 : 0;
    g.calm_end = calm ? 2 * int(coarse_ny) - 2 : 0;
    auto launch = [&](int threads, int wide, int high, int first, auto work) {
        block_threads = threads;
        block_work = work;
        gridDim = {(nx + wide - 1) / wide, (row_end - first + high - 1) / high, 1};
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) run_block();
        }
    };
    g.coarse_right_side = expected.data();
    g.sums = expected_sums.data();
    if constexpr (finest) {
        auto one_by_one = g;
        one_by_one.calm_start = one_by_one.calm_end = 0;
        launch(level_pass_threads, 2 * level_pass_threads - 8, 16, row_start,
               [&] { run_pass<five_point<false>, 0>(one_by_one); });
    } else {
        const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
        auto at = [&](int x, int y) {
            if (wraps) x = wrapped(x, nx), y = wrapped(y, ny);
            return x < 0 || x >= nx ? 0.f : right_side[y * pitch + x];
        };
        for (int j = (row_start + 1) / 2; j < (row_end + 1) / 2; ++j) {
            const int up = j > 0 || (wraps && !(ny & 1)) ? 2 * j - 1 : 2 * j, down = 2 * j + 1 < ny ? 2 * j + 1 : 2 * j;
            for (int i = 0; i < int(coarse_nx); ++i) {
                auto row = [&](int y, float (&out)[3]) {
                    for (int k = 0; k < 3; ++k) out[k] = at(2 * i - 1 + k, y);
                };
                float over[3], here[3], under[3];
                row(up, over), row(2 * j, here), row(down, under);
                expected[j * coarse_pitch + i] = restrict_to(transfer, i, j, over, here, under);
            }
        }
    }
    g.coarse_right_side = found.data();
    g.sums = found_sums.data();
    launch(level_threads, 2 * level_threads, restricted_rows, row_start - row_start % leaf_rows,
           [&] { restrict_right_side(g); });
    ++cases;
    auto same = [](const auto& one, const auto& other) {
        for (size_t i = 0; i < one.size(); ++i) {
            if (!std::isfinite(one[i]) || memcmp(&one[i], &other[i], sizeof one[i])) return false;
        }
        return true;
    };
    if (same(expected, found) && same(expected_sums, found_sums)) return;
    ++failures;
    printf("right side below %d columns x %d rows, %d to %d: calm %d, wraps %d, finest %d\n", nx, ny, row_start, row_end, calm,
           wraps, finest);
}

int main() {
    auto passes = [](pass_case c) {
        auto with = [&](int start, int measured, bool restricts, bool has_right_side = true) {
            c.start = start;
            c.measured = measured;
            c.restricts = restricts;
            c.has_right_side = has_right_side;
            return c;
        };
        for (int rows : {2, 4}) {
            c.rows = rows;
            for (bool alike_points : {false, true}) {
                if (alike_points && (rows == 2 || c.alike_end < 6)) continue;
                c.alike_points = alike_points;
                if (!alike_points) {
                    compare<nine_point, 1>(with(start_zero, -1, true));
                    compare<nine_point, 1>(with(start_corrected, -1, false));
                    compare<nine_point, 1>(with(start_correction, -1, true));
                }
                compare<nine_point, 2>(with(start_zero, -1, true));
                compare<nine_point, 2>(with(start_corrected, -1, false));
                compare<nine_point, 2>(with(start_correction, -1, true));
            }
            c.alike_points = false;
        }
        // What is measured is so over whole leaves.
        if (c.row_end - c.row_start < c.ny) return;
        c.rows = 16;
        for (int colour : {no_colour, red, black}) {
            c.colour = colour;
            compare<five_point<false>, 0>(with(start_field, colour == no_colour ? 0 : -1, true));
            compare<five_point<false>, 1>(with(start_corrected, -1, true));
            compare<five_point<false>, 2>(with(start_corrected, 1, true));
            compare<five_point<false>, 2>(with(start_corrected, -1, true, false));
            compare<five_point<false>, 2>(with(start_corrected, 2, true));
            compare<five_point<false>, 4>(with(start_corrected, 2, true));
            compare<five_point<false>, 4>(with(start_corrected, 4, true));
        }
    };
    for (int start : {2, 21}) {
        for (int end : {36, 39, 48}) {
            passes({.nx = 33, .ny = 49, .alike_start = start, .alike_end = end, .wraps_y = false, .left = end_fixed});
        }
    }
    passes({.nx = 33, .ny = 49, .alike_start = 2, .alike_end = 48, .wraps_y = true, .left = end_fixed});
    // Strips without a side.
    passes({.nx = 1100, .ny = 49, .alike_start = 2, .alike_end = 47, .wraps_y = false, .left = end_mirror});
    // Tiles of which all rows are alike.
    for (int start : {2, 21}) {
        for (int end : {80, 112}) {
            passes({.nx = 131, .ny = 113, .alike_start = start, .alike_end = end, .wraps_y = false, .left = end_fixed});
        }
    }
    passes({.nx = 131, .ny = 112, .alike_start = 2, .alike_end = 111, .wraps_y = true, .left = end_fixed});
    // Of a PE that has some of the rows, from an even one and from an odd one on.
    for (int start : {14, 13}) {
        pass_case some{.nx = 70, .ny = 113, .alike_start = 2, .alike_end = 112, .wraps_y = false, .left = end_fixed};
        some.row_start = start;
        some.row_end = 84 + start % 2;
        passes(some);
    }
    // Levels that are smaller than the margins.
    for (int n : {1, 2, 3, 6}) {
        passes({.nx = n, .ny = 7 - n, .alike_start = 0, .alike_end = 0, .wraps_y = false, .left = end_fixed});
    }
    for (bool calm : {false, true}) {
        compare_right_sides<float>(300, 70, calm, true, 0, 70);
        for (int ny : {3, 4, 101}) {
            compare_right_sides<float>(ny < 5 ? 5 : 521, ny, calm, false, 0, ny);
            compare_right_sides<double>(ny < 5 ? 6 : 520, ny, calm, false, 0, ny);
        }
        compare_right_sides<float>(300, 200, calm, false, 33, 100);
        compare_right_sides<double>(300, 200, calm, false, 32, 96);
    }
    printf("%d passes\n", cases);
    return failures != 0;
}

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
            compare<nine_point, 1>(with(start_zero, -1, true));
            compare<nine_point, 1>(with(start_corrected, -1, false));
            compare<nine_point, 1>(with(start_correction, -1, true));
            compare<nine_point, 2>(with(start_zero, -1, true));
            compare<nine_point, 2>(with(start_corrected, -1, false));
            compare<nine_point, 2>(with(start_correction, -1, true));
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
    printf("%d passes\n", cases);
    return failures != 0;
}

// Several relaxations, and what comes before and after them, in one pass through memory.
//
// A block has a strip of columns, a thread two of them, and walks down its rows. When the first step has reached row y,
// the second is a row behind (two, where corners matter), and so on; after the last step comes the residual, and behind
// that the next level's right side. Own columns' values are in registers, and for the neighbours' sake in shared memory, of
// which each step needs two rows (or four): the one that neighbours read and the one that is written. So there is one
// barrier a row. Columns and rows that neighbouring blocks have are computed again at the margins of a strip; what comes
// out is the same as in passes over the whole level, one after the other (`wavefront.rs`).
//
// Most rows of a level without a mask are the same, and far from the sides (`calm`): there couplings and weights stay in
// registers, nothing is asked for twice, and some rows are made one after the other without a loop, so that the compiler
// knows which registers and which shared memory each row has.
//
// Source of the idea: temporal blocking by streaming in one dimension and overlapped tiles in the other, as in Rawat et
// al., "Effective resource management for enhancing performance of 2D and 3D stencils on GPUs", GPGPU 2016.
#pragma once
#include "async_copy.cuh"
#include "multigrid/neighbours.cuh"
#include "multigrid/pass_kinds.cuh"
#include "sum_layout.cuh"

namespace crosswarp {

__device__ inline void prefetch(const void* at) {
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
#endif
}

// What a block has in shared memory, as much as `level_pass_shared` says: rows of a strip before each step, and of the
// residual, even columns and odd ones. Those of thread t are at t + 1.
template <class Equation, int steps> struct strip_rows {
    using F = typename Equation::number;
    static constexpr int lag = Equation::corners ? 2 : 1, ring = 2 * lag;
    F evens[steps + 1][ring][level_pass_threads + 2], odds[steps + 1][ring][level_pass_threads + 2];
    float even_residuals[4][level_pass_threads + 2], odd_residuals[4][level_pass_threads + 2];
    // Rows of the field as it was, and of the right side, where all is calm: each thread has its own columns.
    pair_of<F> fields[4][level_pass_threads], right_sides[8][level_pass_threads];
};

// `at_edge`: whether the strip has columns at or beyond a side.
template <class Equation, int steps, class Work, bool at_edge>
__device__ __forceinline__ void run_strip(const level_pass<typename Equation::number>& g,
                                          strip_rows<Equation, steps>& rows, int strip, int band) {
    using F = typename Equation::number;
    using pair = pair_of<F>;
    constexpr int lag = strip_rows<Equation, steps>::lag, ring = 2 * lag, threads = level_pass_threads;
    // Calm rows are made so many at a time, so that the compiler knows where each is kept: a multiple of `ring`.
    constexpr int unrolled = 4;
    // Per step a row and a column on both sides are spent, and for the residual and the next level's right side another
    // one each. Strips begin where a sector of 32 bytes does: a copy that straddles sectors moves more of them.
    constexpr int sector = 32 / int(sizeof(F)), margin = steps + 2, side = (margin + sector - 1) / sector * sector;
    auto& evens = rows.evens;
    auto& odds = rows.odds;
    auto& even_residuals = rows.even_residuals;
    auto& odd_residuals = rows.odd_residuals;
    const int t = threadIdx.x + 1;
    const bool wrap_x = g.ends[0] == end_wrap, wrap_y = g.ends[2] == end_wrap;
    const int column = strip * (2 * threads - 2 * side) - side + 2 * int(threadIdx.x);
    auto exists = [&](int column) { return wrap_x || (column >= 0 && column < g.nx); };
    auto inside = [&](int column) { return wrap_x ? wrapped(column, g.nx) : min(max(column, 0), g.nx - 1); };
    const Equation first(g, inside(column), exists(column)), second(g, inside(column + 1), exists(column + 1));
    const bool own = int(threadIdx.x) >= side / 2 && int(threadIdx.x) < threads - side / 2 && column < g.nx;
    const bool own_second = own && column + 1 < g.nx;

    const int y0 = g.row_start + band * g.rows, y1 = min(y0 + g.rows, g.row_end);
    const int own_rows = own ? y1 - y0 : 0;
    auto within = [](int row, int from, int count) { return unsigned(row - from) < unsigned(count); };
    const int start = Work::start(g), measured = Work::measured(g);
    const bool restricts = Work::restricts(g);
    // Corners couple points of a colour. The compiler may know that of calm rows; with a mask, where no row is calm, it may
    // be another one.
    const int colour = Equation::corners ? no_colour : Work::colour(g);
    const int colour_of_any = Equation::corners ? no_colour : g.colour;
    // Whether step s + 1 relaxes points of this sum of column and row.
    auto has_colour = [&](int sum, int s) { return colour_of_any < 0 || !((sum + s + colour_of_any) & 1); };
    // What it does to them.
    auto kind_of = [&](int colour, int s) {
        return colour < 0 ? along_residual : Work::solves(g, s, steps) ? to_solution : beyond_solution;
    };
    // Whole leaves, which may begin before the rows of a block do, and end before these.
    const int measure0 = max(y0 - (y0 + g.first) % leaf_rows, g.row_start);
    const int measure1 = y1 == g.row_end ? y1 : y1 - (y1 + g.first) % leaf_rows;
    pair_of<double> sum{-0.0, -0.0};
    auto measure = [&](int y, F one, F other) {
        if (!within(y, measure0, max(measure1 - measure0, 0))) return;
        sum.a += double(one) * double(one);
        sum.b += double(other) * double(other);
        if ((y + g.first + 1) % leaf_rows == 0 || y + 1 == g.ny) {
            double* to = g.sums + (y + g.first) / leaf_rows * g.sum_pitch + column;
            if (own) to[0] = sum.a;
            if (own_second) to[1] = sum.b;
            sum = {-0.0, -0.0};
        }
    };

    // The own columns before each step: the newest row, and those above it.
    pair mine[steps + 1][lag + 2];
#pragma unroll
    for (int s = 0; s <= steps; ++s) {
#pragma unroll
        for (int k = 0; k < lag + 2; ++k) mine[s][k] = {F(0), F(0)};
    }
    for (int i = threadIdx.x; i < (steps + 1) * ring * (threads + 2); i += threads) {
        (&evens[0][0][0])[i] = F(0);
        (&odds[0][0][0])[i] = F(0);
    }
    for (int i = threadIdx.x; i < 4 * (threads + 2); i += threads) {
        (&even_residuals[0][0])[i] = 0.f;
        (&odd_residuals[0][0])[i] = 0.f;
    }
    __syncthreads();

    // Both columns before step s around row y, with the columns beside them: three rows; without corners the middle one.
    auto around = [&](int s, int y, bool top, bool bottom, pair (&u)[3], F (&west)[3], F (&east)[3]) {
        u[1] = mine[s][lag];
        const pair below = mine[s][lag - 1], above = mine[s][lag + 1];
        u[0] = top ? (bottom ? u[1] : below) : above;
        u[2] = bottom ? (top ? u[1] : above) : below;
        const int at = y & (ring - 1);
        west[1] = odds[s][at][t - 1];
        east[1] = evens[s][at][t + 1];
        if constexpr (Equation::corners) {
            const int over = (top ? (bottom ? y : y + 1) : y - 1) & (ring - 1);
            const int under = (bottom ? (top ? y : y - 1) : y + 1) & (ring - 1);
            west[0] = odds[s][over][t - 1];
            east[0] = evens[s][over][t + 1];
            west[2] = odds[s][under][t - 1];
            east[2] = evens[s][under][t + 1];
        } else {
            west[0] = west[2] = east[0] = east[2] = F(0);
        }
    };
    // `to_west`, `to_east`: what neighbours read, of the first column and of the second.
    auto keep = [&](int s, int row, const pair& value, bool to_west = true, bool to_east = true) {
        mine[s][0] = value;
        if (to_west) evens[s][row & (ring - 1)][t] = value.a;
        if (to_east) odds[s][row & (ring - 1)][t] = value.b;
    };
    auto keep_residuals = [&](int row, float one, float other, bool of_first = true, bool of_second = true) {
        if (of_first) even_residuals[row & 3][t] = one;
        if (of_second) odd_residuals[row & 3][t] = other;
    };
    // The three residuals at a fine row around a coarse column.
    auto residuals_at = [&](int row, float (&out)[3]) {
        out[0] = odd_residuals[row & 3][t - 1];
        out[1] = even_residuals[row & 3][t];
        out[2] = odd_residuals[row & 3][t];
    };

    const transfer_table transfer{g.transfer_index, g.transfer_rows, g.coarse_nx};
    const coarse_values coarse{g.correction, g.coarse_pitch, g.coarse_nx, g.coarse_ny, wrap_x, wrap_y};
    const int top = wrap_y ? y0 - margin : max(y0 - margin, 0);
    const int bottom = wrap_y ? y1 + margin : min(y1 + margin, g.ny);
    // A step more each, which rows there are a step less on both sides.
    auto reaches = [&](int s, int y) {
        return wrap_y ? y >= top + s && y < bottom - s : y >= max(y0 - margin + s, 0) && y < min(y1 + margin - s, g.ny);
    };

    // Where nothing but the values differs from row to row.
    constexpr int depth = (steps + 1) * lag;
    const bool calm_columns = Equation::has_calm_rows && !(at_edge && wrap_x) && !g.fixed &&
                              (restricts || start >= start_corrected);
    // A column that is a side, or beyond one, keeps its value or zero.
    auto hold = [&](const Equation& at, F here, stepped<F>& made) {
        if (!at.there) made = {F(0), F(0)};
        if (at.held) made = {F(0), here};
    };
    // Weights are those of two coarse rows; couplings those of two rows. Rows before `top` and from `bottom` on are not
    // loaded and hold anything: own rows do not depend on them. So a block that begins in calm rows may begin a few rows
    // early, and one of which all rows are calm may end a few late.
    const int calm_first = max(4, g.calm_start + 5), calm_end = min(g.ny - 1, g.calm_end), end = y1 + 2 + depth;
    const int calm_to = bottom <= calm_end ? end + 2 * unrolled : calm_end;
    const bool begins_calm = calm_columns && top >= calm_first + unrolled && (top & -unrolled) + 2 * unrolled <= calm_to;
    const int begin = begins_calm ? top & -unrolled : top, calm_from = begins_calm ? begin : calm_first + depth;
    // What columns beyond the sides read is not used.
    const int nearest = min(max(column, 0), int(g.pitch) - 2), coarse_column = min(max(column, 0) >> 1, g.coarse_nx - 1);
    // Passes of more steps read it even so: they begin with the first field after a resume only.
    const bool reads = (start == start_field || start == start_corrected) && (steps > 2 || !g.is_zero);

    int now = begin;
    auto next_row = [&] {
#pragma unroll
        for (int s = 0; s <= steps; ++s) {
#pragma unroll
            for (int k = lag + 1; k > 0; --k) mine[s][k] = mine[s][k - 1];
        }
    };
    // Rows from `now` on, a multiple of `unrolled`, as long as all is calm.
    auto run_calm_rows = [&](auto held) {
        // `now` may be outside the rows that are calm, or whose tables are stored.
        const int calm_row = min(max(now, top + 1), bottom - 1);
        held.load(g, calm_row, min(max(column, 0), g.nx - 1));
        transfer_of_pair held_transfer;
        held_transfer.load(transfer, calm_row >> 1, coarse_column);
        // In shared memory are this row of the field and the next three, and of the right side the rows from what the last
        // step needs to what the first one does three rows ahead. Rows that are not stored are not asked for.
        constexpr int early = 3;
        static_assert(early + steps * lag < 8, "rows of the right side");
        auto address = [&](const F* array, int row) { return array + (row * g.pitch + nearest); };
        const int stored_end = min(bottom, g.ny);
        auto ask = [&](pair* to, const F* from, int row) {
            if (within(row, top, stored_end - top)) copy_async<sizeof(pair)>(to, from);
        };
        for (int row = now; row < now + early; ++row) {
            if (reads) ask(&rows.fields[row & 3][threadIdx.x], address(g.before, row), row);
        }
        if (g.right_side) {
            for (int row = now - depth; row < now + early - lag; ++row) {
                ask(&rows.right_sides[row & 7][threadIdx.x], address(g.right_side, row), row);
            }
        } else {
            for (int k = 0; k < 8; ++k) rows.right_sides[k][threadIdx.x] = {F(0), F(0)};
        }
        copy_commit();
        // In the loop a row's copies have two groups behind them; these have none.
        copy_wait<0>();
        // The places of the four rows of right sides from `now` on, and of those before or behind them.
        pair *b_here = &rows.right_sides[now & 4][threadIdx.x], *b_around = &rows.right_sides[~now & 4][threadIdx.x];
        auto right_side_at = [&](int row) { return (row & 4 ? b_around : b_here) + (row & 3) * threads; };
        // Where the next row of each array is.
        const F *field_from = address(g.before, now + early), *b_from = address(g.right_side, now + early - lag);
        F* after_to = g.after + ((now - steps * lag) * g.pitch + nearest);
        // Coarse rows at and below a row and the one below these.
        const int coarse_last = min(((bottom - 1) >> 1) + 1, g.coarse_ny - 1);
        auto coarse_at = [&](int j) -> pair_of<float> {
            const float* from = g.correction + min(max(j, top >> 1), coarse_last) * g.coarse_pitch + coarse_column;
            return {read(from), !at_edge || coarse_column + 1 < g.coarse_nx ? read(from + 1) : 0.f};
        };
        pair_of<float> coarse_here{0.f, 0.f}, coarse_under{0.f, 0.f}, coarse_next{0.f, 0.f};
        if (start >= start_corrected) {
            coarse_under = coarse_at(now >> 1);
            coarse_next = coarse_at((now >> 1) + 1);
        }
        // What neighbours have of the columns beside, before each step: with corners of three rows.
        F wests[steps + 1][3], easts[steps + 1][3];
#pragma unroll
        for (int s = 0; s <= steps; ++s) {
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const int row = now - (s + 1) * lag - 2 + k;
                wests[s][k] = Equation::corners && k > 0 ? odds[s][row & (ring - 1)][t - 1] : F(0);
                easts[s][k] = Equation::corners && k > 0 ? evens[s][row & (ring - 1)][t + 1] : F(0);
            }
        }

        for (; now < end && now + unrolled <= calm_to; now += unrolled) {
#pragma unroll
            for (int r = 0; r < unrolled; ++r) {
                // The place of a row so many behind: what the compiler knows.
                auto slot = [&](int behind) { return (r - behind) & (ring - 1); };
                next_row();
                // All steps of an iteration relax the same column of a thread, each of another row: from row to row, and from
                // step to step, it changes. So this is the column that neighbours need; both where something is measured.
                const bool all = colour < 0;
                const bool is_first = all || ((r - 1 + colour) & 1) == 0, is_second = all || !is_first;
                // What is measured before a step is that of all points.
                auto measures_all = [&](int s) { return measured == s && s < steps; };
                auto keep_step = [&](int s, int row, const pair& value) {
                    keep(s, row, value, is_first || measures_all(s), is_second || measures_all(s));
                };
                if (reads) {
                    ask(&rows.fields[(r + early) & 3][threadIdx.x], field_from, now + r + early);
                    field_from += g.pitch;
                }
                if (g.right_side) {
                    ask(right_side_at(r + early - lag), b_from, now + r + early - lag);
                    b_from += g.pitch;
                }
                copy_commit();
                copy_wait<early>();
                if (start != start_zero) {
                    pair value = reads ? rows.fields[r & 3][threadIdx.x] : pair{F(0), F(0)};
                    if (start >= start_corrected) {
                        if (!(r & 1)) {
                            coarse_here = coarse_under;
                            coarse_under = coarse_next;
                            coarse_next = coarse_at(((now + r) >> 1) + 2);
                            // To be in the L2 cache when it is asked for. Of rows that are copied, which are larger,
                            // asking twice costs more than it saves.
                            constexpr int far = 6;
                            if (now + r + far < stored_end) {
                                prefetch(g.correction + ((now + r + far) >> 1) * g.coarse_pitch + coarse_column);
                            }
                        }
                        const pair base = value;
                        value = held.corrected(g, value, held_transfer.prolong(coarse_here, coarse_under, r));
                        if (at_edge && first.held) value.a = base.a;
                        if (at_edge && second.held) value.b = base.b;
                    }
                    if (at_edge) value = {first.there ? value.a : F(0), second.there ? value.b : F(0)};
                    keep_step(0, slot(0), value);
                    if (steps == 0 && g.after && within(now + r, y0, own_rows)) {
                        *reinterpret_cast<pair*>(after_to) = value;
                    }
                }
                stepped<F> one, other;
                // Step s + 1 of the first column, the second or both.
                auto step = [&](int s, double omega, step_kind kind, bool of_first, bool of_second) {
                    const int behind = (s + 1) * lag;
                    pair u[3] = {mine[s][lag + 1], mine[s][lag], mine[s][lag - 1]};
                    constexpr int newest = Equation::corners ? 2 : 1;
                    if (Equation::corners) {
#pragma unroll
                        for (int k = 0; k < 2; ++k) {
                            wests[s][k] = wests[s][k + 1];
                            easts[s][k] = easts[s][k + 1];
                        }
                    }
                    wests[s][newest] = odds[s][slot(behind - newest + 1)][t - 1];
                    easts[s][newest] = evens[s][slot(behind - newest + 1)][t + 1];
                    F west[3] = {wests[s][0], wests[s][1], wests[s][2]}, east[3] = {easts[s][0], easts[s][1], easts[s][2]};
                    if (at_edge) {
                        if (first.mirrors_west) west[1] = u[1].b;
                        if (second.mirrors_east) east[1] = u[1].a;
                        // The second column is beyond the side then.
                        if (first.mirrors_east) u[1].b = west[1];
                    }
                    held.step(g, omega, *right_side_at(r - behind), u, west, east, one, other, of_first, of_second, kind);
                    if (at_edge) {
                        hold(first, u[1].a, one);
                        hold(second, u[1].b, other);
                    }
                };
#pragma unroll
                for (int s = 1; s <= steps; ++s) {
                    const int row = now + r - s * lag;
                    pair value;
                    if (s == 1 && start == start_zero) {
                        value = held.from_zero(g, g.omega[0], *right_side_at(r - lag));
                        if (at_edge && (first.held || !first.there)) value.a = F(0);
                        if (at_edge && (second.held || !second.there)) value.b = F(0);
                    } else {
                        const bool measures = measured == s - 1;
                        step(s - 1, g.omega[s - 1], kind_of(colour, s - 1), is_first || measures, is_second || measures);
                        const pair before = mine[s - 1][lag];
                        value = {is_first ? one.after : before.a, is_second ? other.after : before.b};
                        if (measures) measure(row, one.residual, other.residual);
                    }
                    keep_step(s, slot(s * lag), value);
                    if (s == steps && within(row, y0, own_rows)) *reinterpret_cast<pair*>(after_to) = value;
                }
                after_to += g.pitch;
                if (restricts || measured == steps) {
                    // What has been relaxed last has no residual, and its places in shared memory hold zero.
                    step(steps, 0.0, along_residual, is_first, is_second);
                    if (measured == steps) {
                        measure(now + r - depth, is_first ? one.residual : F(0), is_second ? other.residual : F(0));
                    }
                    pair_of<float> found{0.f, 0.f};
                    if (at_edge) {
                        const int row = now + r - depth;
                        if (is_first) found.a = first.to_restrict(one.residual, row);
                        if (is_second) found.b = second.to_restrict(other.residual, row);
                    } else {
                        if (is_first) found.a = held.to_restrict(g, one.residual);
                        if (is_second) found.b = held.to_restrict(g, other.residual);
                    }
                    keep_residuals(r - depth, found.a, found.b, is_first, is_second);
                    const int done = now + r - depth - 1;
                    if (restricts && ((r - depth - 1) & 1) && within(done - 1, y0, own_rows)) {
                        float up[3], mid[3], down[3];
                        residuals_at(r - depth - 3, up);
                        residuals_at(r - depth - 2, mid);
                        residuals_at(r - depth - 1, down);
                        // After black relaxations half of them are zero.
                        const bool of_red = colour >= 0 && ((colour + steps - 1) & 1) == black;
                        g.coarse_right_side[(done >> 1) * g.coarse_pitch + coarse_column] =
                            of_red ? held_transfer.restrict_red(up, mid, down) : held_transfer.restrict_to(up, mid, down);
                    }
                }
                __syncthreads();
            }
            pair* swapped = b_here;
            b_here = b_around;
            b_around = swapped;
        }
        // None is left under way when the block ends.
        copy_wait<0>();
    };

    while (now < end) {
        if constexpr (Equation::has_calm_rows) {
            if (calm_columns && (now & (unrolled - 1)) == 0 && now >= calm_from && now + unrolled <= calm_to) {
                if constexpr (at_edge) {
                    run_calm_rows(typename Equation::edge_rows{});
                } else if constexpr (Equation::has_same_rows) {
                    if (g.same_rows[1]) {
                        run_calm_rows(typename Equation::same_rows{});
                    } else {
                        run_calm_rows(typename Equation::calm_rows{});
                    }
                } else {
                    run_calm_rows(typename Equation::calm_rows{});
                }
                continue;
            }
        }
        next_row();
        // Anywhere else: each column by itself.
        auto index_of = [&](int row) { return wrap_y ? wrapped(row, g.ny) : row; };
        auto there = [](const Equation& at, F value) { return at.there ? value : F(0); };
        auto store = [&](int y, const pair& value) {
            F* to = g.after + y * g.pitch + column;
            if (own) to[0] = value.a;
            if (own_second) to[1] = value.b;
        };
        if (start != start_zero && now < bottom) {
            const int y = index_of(now);
            auto begun = [&](const Equation& at) {
                F value = start == start_correction ? F(0) : read(g.before + (y * g.pitch + at.x));
                if (start >= start_corrected) value = at.corrected(value, prolong(transfer, coarse, at.x, y), y);
                return there(at, value);
            };
            const pair value{begun(first), begun(second)};
            keep(0, now, value);
            if (steps == 0 && g.after && now >= y0 && now < y1) store(y, value);
        }
        // Step s + 1 of both columns of row y.
        auto both = [&](int s, int row, int y, double omega, step_kind kind, stepped<F>& one, stepped<F>& other) {
            pair u[3];
            F west[3], east[3];
            around(s, row, !wrap_y && y == 0, !wrap_y && y == g.ny - 1, u, west, east);
            const F before = first.mirrors_west ? (g.nx > 1 ? u[1].b : u[1].a) : west[1];
            const F between = first.mirrors_east ? (g.nx > 1 ? west[1] : u[1].a) : u[1].b;
            const F behind = second.mirrors_east ? u[1].a : east[1];
            one = first.step({west[0], u[0].a, u[0].b, before, u[1].a, between, west[2], u[2].a, u[2].b}, y, omega, kind);
            other = second.step({u[0].a, u[0].b, east[0], u[1].a, u[1].b, behind, u[2].a, u[2].b, east[2]}, y, omega, kind);
        };
        stepped<F> one, other;
#pragma unroll
        for (int s = 1; s <= steps; ++s) {
            const int row = now - s * lag;
            if (!reaches(s, row)) continue;
            const int y = index_of(row);
            pair value;
            if (s == 1 && start == start_zero) {
                value = {first.from_zero(y, g.omega[0]), second.from_zero(y, g.omega[0])};
            } else {
                both(s - 1, row, y, g.omega[s - 1], kind_of(colour_of_any, s - 1), one, other);
                const pair before = mine[s - 1][lag];
                auto relaxes = [&](const Equation& at) { return has_colour(at.x + y, s - 1); };
                value = {relaxes(first) ? one.after : before.a, relaxes(second) ? other.after : before.b};
                if (measured == s - 1) measure(row, one.residual, other.residual);
            }
            value = {there(first, value.a), there(second, value.b)};
            keep(s, row, value);
            if (s == steps && row >= y0 && row < y1) store(y, value);
        }
        // The residual, a row after the last step.
        const int row = now - depth;
        if ((restricts || measured == steps) && reaches(steps + 1, row)) {
            const int y = index_of(row);
            both(steps, row, y, 0.0, along_residual, one, other);
            // What has been relaxed last has no residual.
            auto left = [&](const Equation& at, F residual) {
                const bool none = colour_of_any >= 0 && has_colour(at.x + y, steps - 1);
                return none ? F(0) : residual;
            };
            const F of_first = left(first, one.residual), of_second = left(second, other.residual);
            if (measured == steps) measure(row, of_first, of_second);
            auto to_restrict = [&](const Equation& at, F residual) { return at.there ? at.to_restrict(residual, y) : 0.f; };
            keep_residuals(row, to_restrict(first, of_first), to_restrict(second, of_second));
        }
        // The next level's right side, where the residual's rows were complete a row ago.
        const int done = row - 1, j = done >> 1;
        const bool between = 2 * j + 1 < g.ny;
        if (restricts && 2 * j >= y0 && 2 * j < y1 && (done & 1) == int(between) && own) {
            float up[3], mid[3], down[3];
            residuals_at(2 * j, mid);
            residuals_at(j > 0 || (wrap_y && !(g.ny & 1)) ? 2 * j - 1 : 2 * j, up);
            residuals_at(between ? 2 * j + 1 : 2 * j, down);
            const int i = column >> 1;
            g.coarse_right_side[j * g.coarse_pitch + i] = restrict_to(transfer, i, j, up, mid, down);
        }
        __syncthreads();
        ++now;
    }
}

template <class Equation, int steps, class Work = as_launched>
__device__ __forceinline__ void run_pass(const level_pass<typename Equation::number>& g) {
    extern __shared__ float4 memory[];
    using all_rows = strip_rows<Equation, steps>;
    constexpr size_t row = level_pass_threads + 2, size = sizeof(typename Equation::number);
    constexpr size_t shared = 2 * ((steps + 1) * all_rows::ring * row * size + 4 * row * sizeof(float) +
                                   (4 + 8) * level_pass_threads * size);
    static_assert(sizeof(all_rows) == shared, "as `level_pass_shared` of sources.rs has it");
    auto& rows = *reinterpret_cast<all_rows*>(memory);
    // The last strip may be narrower than the margins of the one before it. Strips at the sides take longer, so they begin
    // before the others: else few blocks would be left to wait for at the end.
    const int strips = gridDim.x, sides = min(strips, 3), number = blockIdx.y * strips + blockIdx.x;
    const int others = number - sides * int(gridDim.y);
    if (others < 0) {
        const int from_end = number % sides;
        run_strip<Equation, steps, Work, true>(g, rows, from_end == 0 ? 0 : strips - from_end, number / sides);
    } else {
        run_strip<Equation, steps, Work, false>(g, rows, 1 + others % (strips - sides), others / (strips - sides));
    }
}

// A kernel of passes over levels of `F`; behind it the arguments of `run_pass`.
#define CROSSWARP_LEVEL_PASS(name, F, ...)                                  \
    extern "C" __global__ void __launch_bounds__(cw::level_pass_threads, 4) \
        name(const __grid_constant__ cw::level_pass<F> g) {                 \
        cw::run_pass<__VA_ARGS__>(g);                                       \
    }

}  // namespace crosswarp

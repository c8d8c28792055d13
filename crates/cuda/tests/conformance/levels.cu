// The levels below the PE, and a grid as a scope of PEs' collectives.
#include "cluster.cuh"
#include "specials.cuh"

// Every verb against the same thing done serially. Blocks of 113 threads have a partial warp.
extern "C" __global__ void levels(grid_state* state, u32* errors) {
    warp w;
    int lane = warp::lane(), lanes = w.size();
    expect(w.rank() == lane, errors, 200);
    expect(w.sum(lane) == lanes * (lanes - 1) / 2, errors, 201);
    expect(w.max((double)lane) == lanes - 1, errors, 202);
    expect(w.min((u64)lane + 3) == 3, errors, 203);
    expect(w.broadcast(lane, lanes - 1) == lanes - 1, errors, 204);
    expect(w.get(lane * 2, (lane + 1) % lanes) == (lane + 1) % lanes * 2, errors, 205);
    if (lane % 3 == 1) {
        warp part = warp::active();
        int n = part.size();
        expect(part.sum(1) == n, errors, 206);
        expect(part.get(lane, 0) == 1, errors, 207);
        expect(part.broadcast(lane, n - 1) == 1 + 3 * (n - 1), errors, 208);
    }
    __syncwarp(w.mask());

    block b;
    int me = b.rank(), size = b.size();
    expect(b.sum(me) == size * (size - 1) / 2, errors, 210);
    expect(b.max((float)me) == size - 1, errors, 211);
    expect(b.min((i64)me - 5) == -5, errors, 212);
    expect(b.broadcast(me * 10, 7) == 70, errors, 213);
    __shared__ int cell;
    if (me == 0) b.put(&cell, 42);
    b.sync();
    expect(b.get(&cell) == 42, errors, 214);
    b.sync();

    grid g(state);
    int blocks = g.size();
    for (int round = 0; round < 5; ++round) {
        expect(g.sum(me + round) == blocks * (size * (size - 1) / 2 + size * round), errors, 220);
        expect(g.max(g.rank()) == blocks - 1, errors, 221);
        expect(g.broadcast((double)(g.rank() + round), blocks - 1) == blocks - 1 + round, errors, 222);
        g.sync();
    }
}

namespace {

// Minimum and maximum of a group whose last of `n` members holds y, and the others x.
template <class T, class Group>
__device__ void extremes_of(Group& group, int member, int n, T x, T y, u32* errors, u32 place) {
    T mine = member == n - 1 ? y : x;
    if (n == 1) x = y;
    expect(is_extreme(group.min(mine), x, y, false), errors, place);
    expect(is_extreme(group.max(mine), x, y, true), errors, place + 1);
}

template <class T> __device__ void extremes_levels(grid_state* state, u32* errors) {
    warp w;
    block b;
    grid g(state);
    for (int pair = 0; pair < pairs; ++pair) {
        T x = special<T>(pair / specials), y = special<T>(pair % specials);
        extremes_of(w, w.rank(), w.size(), x, y, errors, 300);
        extremes_of(b, b.rank(), b.size(), x, y, errors, 310);
        extremes_of(g, g.rank(), g.size(), x, y, errors, 320);
    }
}

}  // namespace

#define EXTREMES_LEVELS(T)                                                            \
    extern "C" __global__ void extremes_levels_##T(grid_state* state, u32* errors) { \
        extremes_levels<T>(state, errors);                                            \
    }
EXTREMES_LEVELS(float)
EXTREMES_LEVELS(double)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void cluster_level(u32* errors) {
    cluster c;
    block b;
    int me = c.rank(), n = c.size(), threads = b.size();
    __shared__ int cell, arrived;
    if (b.rank() == 0) {
        cell = 100 + me;
        arrived = -1;
    }
    c.sync();
    expect(c.get(&cell, (me + 1) % n) == 100 + (me + 1) % n, errors, 230);
    if (b.rank() == 0) c.put(&arrived, me, (me + 1) % n);
    c.sync();
    expect(arrived == (me + n - 1) % n, errors, 231);
    expect(c.sum(1) == n * threads, errors, 232);
    expect(c.max(me * 1000 + b.rank()) == (n - 1) * 1000 + threads - 1, errors, 233);
    expect(c.min((double)me) == 0, errors, 234);
    expect(c.broadcast(me * 3, n - 1) == (n - 1) * 3, errors, 235);
    for (int pair = 0; pair < pairs; ++pair) {
        int x = pair / specials, y = pair % specials;
        extremes_of(c, me, n, special<float>(x), special<float>(y), errors, 340);
        extremes_of(c, me, n, special<double>(x), special<double>(y), errors, 350);
    }
    c.sync();
}
#endif

// A whole cooperative grid as one scope.
extern "C" __global__ void collectives_grid(float* a, float* b, u64 n, grid_state* state, u32* errors) {
    grid g(state);
    grid_threads s(g);
    fill(a, n, my_pe(), s);
    expect(sum(b, a, n, world(), s), errors, 240);
    for (u64 i = s.rank(); i < n; i += s.size()) {
        float total = 0;
        for (int pe = 0; pe < n_pes(); ++pe) total += value<float>(pe, i);
        expect(*(volatile float*)(b + i) == total, errors, 241);
    }
    barrier(world(), s);
    expect(broadcast(b, a, n, n_pes() - 1, world(), s), errors, 242);
    check(b, n, n_pes() - 1, errors, 243, s);
    barrier(world(), s);
}

// The ladder of Jacobi sweeps in one dimension: next[i] = (u[i-1] + u[i+1]) / 2 between two fixed ends, and
// the sum of squared changes of every sweep.
#include "grid.cuh"

using cw::u32;

static __device__ u32 my_element() { return blockIdx.x * blockDim.x + threadIdx.x; }

// One point: its squared change, 0 for the ends.
static __device__ float relax(const float* u, float* next, u32 n, u32 i) {
    if (i == 0 || i >= n - 1) {
        if (i < n) next[i] = u[i];
        return 0.0f;
    }
    float value = 0.5f * (u[i - 1] + u[i + 1]), change = value - u[i];
    next[i] = value;
    return change * change;
}

// A launch a sweep, an atomic a point.
extern "C" __global__ void per_point(const float* u, float* next, u32 n, float* norm) {
    u32 i = my_element();
    float square = relax(u, next, n, i);
    if (i < n) atomicAdd(norm, square);
}

// A launch a sweep, an atomic a block.
extern "C" __global__ void per_block(const float* u, float* next, u32 n, float* norm) {
    float square = cw::block().sum(relax(u, next, n, my_element()));
    if (threadIdx.x == 0) atomicAdd(norm, square);
}

// One launch for all sweeps: the grid stays and meets at a barrier after each.
extern "C" __global__ void persistent(float* u, float* next, u32 n, float* norms, u32 sweeps, cw::grid_state* state) {
    cw::grid grid(state);
    for (u32 s = 0; s < sweeps; ++s) {
        float square = 0;
        for (u32 i = my_element(); i < n; i += gridDim.x * blockDim.x) square += relax(u, next, n, i);
        square = cw::block().sum(square);
        if (threadIdx.x == 0) atomicAdd(&norms[s], square);
        grid.sync();
        float* old = u;
        u = next, next = old;
    }
}

// The same with the field in registers: each thread keeps 32 neighbouring points for the whole run, so
// memory is read and written once. Neighbouring threads pass their edge points through shared memory,
// neighbouring blocks through `edges`, two sets of two points a block, used in turn.
extern "C" __global__ void __launch_bounds__(1024, 1)
    persistent_registers(float* u, u32 n, float* norms, u32 sweeps, float* edges, cw::grid_state* state) {
    constexpr u32 OWN = 32, THREADS = 1024;
    __shared__ float firsts[THREADS + 1], lasts[THREADS + 1];  // lasts[t] is of thread t - 1
    cw::grid grid(state);
    u32 t = threadIdx.x, base = my_element() * OWN;
    float v[OWN];
#pragma unroll
    for (u32 k = 0; k < OWN; ++k) v[k] = base + k < n ? u[base + k] : 0.0f;
    // The points beside the block's; u does not change before the end.
    if (t == 0) lasts[0] = base > 0 && base <= n ? u[base - 1] : 0.0f;
    if (t == THREADS - 1) firsts[THREADS] = base + OWN < n ? u[base + OWN] : 0.0f;
    for (u32 s = 0; s < sweeps; ++s) {
        firsts[t] = v[0];
        lasts[t + 1] = v[OWN - 1];
        __syncthreads();
        float left = lasts[t], right = firsts[t + 1], square = 0;
#pragma unroll
        for (u32 k = 0; k < OWN; ++k) {
            u32 i = base + k;
            float old = v[k], next = k + 1 < OWN ? v[k + 1] : right;
            if (i > 0 && i < n - 1) v[k] = 0.5f * (left + next);
            float change = v[k] - old;
            square += change * change;
            left = old;
        }
        square = cw::block().sum(square);
        if (t == 0) atomicAdd(&norms[s], square);
        float* mine = edges + (s & 1) * 2 * gridDim.x + 2 * blockIdx.x;
        if (t == 0) mine[0] = v[0];
        if (t == THREADS - 1) mine[1] = v[OWN - 1];
        grid.sync();
        // These are overwritten in two sweeps, after a barrier that follows this read.
        if (t == 0 && blockIdx.x > 0) lasts[0] = cw::load_volatile(mine - 1);
        if (t == THREADS - 1 && blockIdx.x + 1 < gridDim.x) firsts[THREADS] = cw::load_volatile(mine + 2);
    }
#pragma unroll
    for (u32 k = 0; k < OWN; ++k) {
        if (base + k < n) u[base + k] = v[k];
    }
}

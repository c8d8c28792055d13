// Laplace solves by NVSHMEM as its users write them, for comparison: one launch a sweep; the kernel puts the rows at
// its edge to the neighbours element by element; a barrier on the stream ends the sweep; the norm, one atomic a
// block and a reduction on the stream, is read by the host one sweep late.
//
//     jacobi_nvshmem [pes] [side...]      JSON lines in the form of README.md; us: of a sweep (the line: of a solve)
//
// The same problems as `jacobi_sweep.cu` and `crosswarp bench jacobi`.
#include <cmath>

#include "nvshmem_pes.h"

constexpr int threads_x = 32, threads_y = 32;

__device__ float block_sum(float value) {
    __shared__ float of_warp[32];
    int thread = threadIdx.x + blockDim.x * threadIdx.y, warps = blockDim.x * blockDim.y / 32;
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
    if (thread % 32 == 0) of_warp[thread / 32] = value;
    __syncthreads();
    value = thread < warps ? of_warp[thread] : 0;
    if (thread < 32) {
        for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
    }
    return value;
}

// This PE has `rows` rows of n cells with a halo row above and below (row 0 and row rows + 1); `above` and `below`
// are the neighbours, −1 at the fixed ends of a line. All symmetric.
__global__ void sweep(const float* a, float* b, float* sum, int n, int rows, int above, int below, int rows_above, int line) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    float square = 0;
    size_t i = (size_t)y * n + x;
    bool inner = y <= rows && (line ? x < n : x > 0 && x < n - 1);
    if (inner) {
        float now;
        if (line) {
            // A row is n points of the line; the ends of the whole line are fixed.
            bool fixed = (above < 0 && y == 1 && x == 0) || (below < 0 && y == rows && x == n - 1);
            now = fixed ? a[i] : 0.5f * (a[i - 1] + a[i + 1]);
        } else {
            now = 0.25f * (a[i + 1] + a[i - 1] + a[i + n] + a[i - n]);
        }
        float difference = now - a[i];
        b[i] = now;
        square = difference * difference;
        // Of the line only the outermost points are needed.
        if (above >= 0 && y == 1 && (!line || x == 0)) {
            nvshmem_float_p(b + (line ? (size_t)(rows_above + 1) * n : (size_t)(rows_above + 1) * n + x), now, above);
        }
        if (below >= 0 && y == rows && (!line || x == n - 1)) nvshmem_float_p(b + x, now, below);
    }
    square = block_sum(square);
    if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(sum, square);
}

struct problem {
    const char* what;
    size_t bytes;
    int n, rows;  // of a row; rows of all PEs
    bool line;
    int most;
    double tolerance, points;
};

int rows_of(const problem& p, int pe, int pes) { return p.rows * (pe + 1) / pes - p.rows * pe / pes; }

void measure(const problem& p, int me, int pes) {
    int rows = rows_of(p, me, pes), largest = (p.rows + pes - 1) / pes;
    // Planes wrap around at the top and the bottom.
    int above = p.line ? me - 1 : (me + pes - 1) % pes, below = p.line ? (me + 1 < pes ? me + 1 : -1) : (me + 1) % pes;
    size_t cells = (size_t)(largest + 2) * p.n;
    float* field[2];
    for (float*& f : field) f = static_cast<float*>(nvshmem_malloc(cells * sizeof(float)));
    // Two of each: sweep t + 1 adds to the other while the host still waits for that of t.
    float *sums = static_cast<float*>(nvshmem_malloc(4 * sizeof(float))), *host;
    if (!field[0] || !field[1] || !sums) {
        fprintf(stderr, "jacobi_nvshmem: PE %d has no symmetric memory\n", me);
        fail();
    }
    CHECK_CUDA(cudaMallocHost(&host, 2 * sizeof(float)));
    std::vector<float> start(cells, 0.0f);
    int first = p.rows * me / pes;
    if (p.line) {
        if (me == 0) start[p.n] = 5;
        if (me == pes - 1) start[(size_t)rows * p.n + p.n - 1] = 10;
    } else {
        for (int y = 0; y < rows + 2; ++y) {
            int row = (first + y - 1 + p.rows) % p.rows;
            start[(size_t)y * p.n] = start[(size_t)y * p.n + p.n - 1] = std::sin(2 * M_PI * row / (p.rows + 1));
        }
    }
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaEvent_t begin, end, read[2];
    for (cudaEvent_t* event : {&begin, &end, &read[0], &read[1]}) CHECK_CUDA(cudaEventCreate(event));
    dim3 threads(threads_x, threads_y);
    dim3 blocks((p.n + threads_x - 1) / threads_x, (rows + threads_y - 1) / threads_y);
    std::vector<double> times;
    int done = 0;
    for (int i = 0; i < 4; ++i) {
        for (float* f : field) CHECK_CUDA(cudaMemcpy(f, start.data(), cells * sizeof(float), cudaMemcpyHostToDevice));
        nvshmem_barrier_all();
        CHECK_CUDA(cudaEventRecord(begin, stream));
        bool stop = false;
        for (done = 0; done < p.most && !stop; ++done) {
            int half = done % 2;
            CHECK_CUDA(cudaMemsetAsync(sums + half, 0, sizeof(float), stream));
            sweep<<<blocks, threads, 0, stream>>>(field[half], field[1 - half], sums + half, p.n, rows, above, below,
                                                  above >= 0 ? rows_of(p, above, pes) : 0, p.line);
            CHECK_CUDA(cudaGetLastError());
            nvshmemx_barrier_all_on_stream(stream);
            nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, sums + 2 + half, sums + half, 1, stream);
            CHECK_CUDA(cudaMemcpyAsync(host + half, sums + 2 + half, sizeof(float), cudaMemcpyDeviceToHost, stream));
            CHECK_CUDA(cudaEventRecord(read[half], stream));
            if (done > 0) {
                CHECK_CUDA(cudaEventSynchronize(read[1 - half]));
                stop = std::sqrt(host[1 - half] / p.points) <= p.tolerance;
            }
        }
        CHECK_CUDA(cudaEventRecord(end, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        float ms;
        CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (i > 0) times.push_back(ms * 1e3 / (p.line ? 1 : done));
    }
    definition row = {p.what, pes, p.bytes, "grid", int(blocks.x * blocks.y), threads_x * threads_y, done};
    if (me == 0) print_row("nvshmem", nvshmem_version().c_str(), row, times, 0);
    nvshmem_barrier_all();
    nvshmem_free(sums);
    nvshmem_free(field[1]);
    nvshmem_free(field[0]);
    CHECK_CUDA(cudaFreeHost(host));
    CHECK_CUDA(cudaStreamDestroy(stream));
}

int main(int argc, char** argv) {
    std::vector<int> sides;
    for (int i = 2; i < argc; ++i) sides.push_back(atoi(argv[i]));
    if (sides.empty()) sides = {1024, 4096, 16384};
    // Two fields of the largest plane, its halos, and room for the allocator.
    size_t side = *std::max_element(sides.begin(), sides.end());
    setenv("NVSHMEM_SYMMETRIC_SIZE", std::to_string(std::max<size_t>(side * side * 12, 256 << 20)).c_str(), 0);
    return run_pes(argc > 1 ? atoi(argv[1]) : 0, [&](int me, int pes) {
        measure({"line_4194304", 4194304 * sizeof(float), 1024, 4096, true, 1000, 1e-4, 4194304}, me, pes);
        for (int n : sides) {
            std::string what = "plane_" + std::to_string(n);
            // The ghost rows of the preset are the halos of the first and the last PE.
            measure({what.c_str(), (size_t)n * n * sizeof(float), n, n - 2, false, 1000, 0, 1}, me, pes);
        }
        nvshmem_barrier_all();
        return 0;
    });
}

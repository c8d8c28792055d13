// The scheme of most CUDA tutorials, for comparison: one launch a sweep, every block reduces its squared
// differences and adds them to one float with one atomic; the host reads the norm of every sweep.
//
//     jacobi_sweep [side...]      JSON lines in the form of README.md; us: of a sweep (the line: of a solve)
//
// The same problems as `crosswarp bench jacobi`: the line of 4,194,304 points to an rms change of 1e-4, and the
// preset of NVIDIA's multi-gpu-programming-models on square planes, 1000 sweeps, norm of every sweep.
#include <cmath>

#include "measure.h"

constexpr int threads_x = 32, threads_y = 32;

// The sum of `value` over the block, in thread 0.
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

__global__ void sweep_line(const float* a, float* b, float* sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float square = 0;
    if (i > 0 && i < n - 1) {
        float now = 0.5f * (a[i - 1] + a[i + 1]), difference = now - a[i];
        b[i] = now;
        square = difference * difference;
    }
    square = block_sum(square);
    if (threadIdx.x == 0) atomicAdd(sum, square);
}

__global__ void sweep_plane(const float* a, float* b, float* sum, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float square = 0;
    if (x > 0 && x < n - 1 && y > 0 && y < n - 1) {
        size_t i = (size_t)y * n + x;
        float now = 0.25f * (a[i + 1] + a[i - 1] + a[i + n] + a[i - n]), difference = now - a[i];
        b[i] = now;
        square = difference * difference;
        // Rows wrap around.
        if (y == 1) b[(size_t)(n - 1) * n + x] = now;
        if (y == n - 2) b[x] = now;
    }
    square = block_sum(square);
    if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(sum, square);
}

template <class Sweep> int solve(float* sum, float* host_sum, int most, double tolerance, double points, Sweep sweep) {
    for (int done = 1; done <= most; ++done) {
        CHECK_CUDA(cudaMemsetAsync(sum, 0, sizeof(float)));
        sweep();
        CHECK_CUDA(cudaMemcpyAsync(host_sum, sum, sizeof(float), cudaMemcpyDeviceToHost));
        CHECK_CUDA(cudaStreamSynchronize(nullptr));
        if (std::sqrt(*host_sum / points) <= tolerance) return done;
    }
    return most;
}

// `start` fills the fields, `run` solves and returns the sweeps.
template <class Start, class Run> void measure(const char* what, size_t bytes, bool whole, Start start, Run run) {
    cudaEvent_t begin, end;
    CHECK_CUDA(cudaEventCreate(&begin));
    CHECK_CUDA(cudaEventCreate(&end));
    std::vector<double> times;
    int sweeps = 0;
    for (int i = 0; i < 4; ++i) {
        start();
        CHECK_CUDA(cudaEventRecord(begin));
        sweeps = run();
        CHECK_CUDA(cudaEventRecord(end));
        CHECK_CUDA(cudaEventSynchronize(end));
        float ms;
        CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (i > 0) times.push_back(ms * 1e3 / (whole ? 1 : sweeps));
    }
    print_row("sweep", "1", {what, 1, bytes, "grid", 0, 1024, sweeps}, times, 0);
}

int main(int count, char** arguments) {
    float *sum, *host_sum;
    CHECK_CUDA(cudaMalloc(&sum, sizeof(float)));
    CHECK_CUDA(cudaMallocHost(&host_sum, sizeof(float)));
    {
        int n = 4194304;
        float *a, *b;
        CHECK_CUDA(cudaMalloc(&a, n * sizeof(float)));
        CHECK_CUDA(cudaMalloc(&b, n * sizeof(float)));
        auto start = [&] {
            float ends[] = {5, 10};
            for (float* field : {a, b}) {
                CHECK_CUDA(cudaMemset(field, 0, n * sizeof(float)));
                CHECK_CUDA(cudaMemcpy(field, ends, sizeof(float), cudaMemcpyHostToDevice));
                CHECK_CUDA(cudaMemcpy(field + n - 1, ends + 1, sizeof(float), cudaMemcpyHostToDevice));
            }
        };
        measure("line_4194304", n * sizeof(float), true, start, [&] {
            return solve(sum, host_sum, 1000, 1e-4, n, [&] {
                sweep_line<<<n / 1024, 1024>>>(a, b, sum, n);
                std::swap(a, b);
            });
        });
        CHECK_CUDA(cudaFree(a));
        CHECK_CUDA(cudaFree(b));
    }
    std::vector<int> sides;
    for (int i = 1; i < count; ++i) sides.push_back(atoi(arguments[i]));
    if (sides.empty()) sides = {1024, 4096, 16384};
    for (int n : sides) {
        float *a, *b;
        size_t bytes = (size_t)n * n * sizeof(float);
        CHECK_CUDA(cudaMalloc(&a, bytes));
        CHECK_CUDA(cudaMalloc(&b, bytes));
        std::vector<float> column(n);
        for (int y = 0; y < n; ++y) column[y] = std::sin(2 * M_PI * y / (n - 1));
        auto start = [&] {
            for (float* field : {a, b}) {
                CHECK_CUDA(cudaMemset(field, 0, bytes));
                for (int x : {0, n - 1}) {
                    CHECK_CUDA(cudaMemcpy2D(field + x, n * sizeof(float), column.data(), sizeof(float), sizeof(float), n,
                                            cudaMemcpyHostToDevice));
                }
            }
        };
        char what[32];
        snprintf(what, sizeof what, "plane_%d", n);
        measure(what, bytes, false, start, [&] {
            return solve(sum, host_sum, 1000, 0, 1, [&] {
                dim3 threads(threads_x, threads_y), blocks((n + threads_x - 1) / threads_x, (n + threads_y - 1) / threads_y);
                sweep_plane<<<blocks, threads>>>(a, b, sum, n);
                std::swap(a, b);
            });
        });
        CHECK_CUDA(cudaFree(a));
        CHECK_CUDA(cudaFree(b));
    }
}

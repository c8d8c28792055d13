// Ways of adding up a large array of each GPU, for all GPUs: loads, stores, both at once, and stores by way of slots.
// One process, 2, 4 or 8 GPUs that can access one another. See README.md.
//
//     all_reduce [GPUS]
//
// Every GPU p combines share p of the array for all. Blocks b of all GPUs work on the same elements, so a block only
// ever waits for the blocks of its own number.
#include "scheme.h"

constexpr int most_gpus = 8, most_blocks = 264;
constexpr unsigned long long patience_ns = 2'000'000'000;

using u32 = unsigned;

enum class way {
    only_push,  // all-to-all: stores
    only_pull,  // all-to-all: loads
    mixed,      // loads from all, sum, stores on all
    pull_push,  // the loads of all of a block's elements, then the stores
    pull_pull,  // the loads of all of them, then loads of the other GPUs' sums
    staged,     // stores into slots, sum there, stores of the sums
};

// Of one GPU, all in its memory. Words of flags are written by one GPU each, with values that only grow.
struct gpu_memory {
    float4 *source, *dest;
    float4* slot;           // [from][block][set][piece]
    u32 *met, *arrived, *taken;  // [block][GPU]
    u32* gave_up;
};

struct world {
    gpu_memory gpu[most_gpus];
};

struct task {
    int me;
    size_t share;  // vectors of 16 bytes
    int piece;     // vectors, of `staged`
    int sets, behind;
    int iterations;
};

__device__ inline void set_flag(u32* flag, u32 value) {
    asm volatile("st.relaxed.sys.u32 [%0], %1;" :: "l"(flag), "r"(value) : "memory");
}
__device__ inline u32 read_flag(const u32* flag) {
    u32 value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

template <int N> struct block_of {
    const world& w;
    const task& t;
    // Numbers of meetings and of pieces in earlier iterations.
    u32 meetings = 0, pieces = 0;

    __device__ block_of(const world& w, const task& t) : w(w), t(t) {}
    __device__ const gpu_memory& mine() const { return w.gpu[t.me]; }
    __device__ u32* at(u32* flags, int gpu) const { return flags + blockIdx.x * N + gpu; }

    // What all threads have stored is visible to who reads `value` in the flags of the other GPUs.
    __device__ void tell(u32* gpu_memory::*flags, u32 value) const {
        __syncthreads();
        if (threadIdx.x < N && threadIdx.x != t.me) {
            __threadfence_system();
            set_flag(at(w.gpu[threadIdx.x].*flags, t.me), value);
        }
    }
    // Waits until the other GPUs have told at least `value`.
    __device__ void hear(u32* gpu_memory::*flags, u32 value) const {
        if (threadIdx.x < N && threadIdx.x != t.me) {
            const u32* flag = at(mine().*flags, threadIdx.x);
            const unsigned long long start = now();
            while (static_cast<int>(read_flag(flag) - value) < 0) {
                if (*static_cast<volatile u32*>(mine().gave_up)) break;
                if (now() - start > patience_ns) atomicExch(mine().gave_up, 1u);
            }
        }
        __syncthreads();
    }
    __device__ void meet() {
        tell(&gpu_memory::met, ++meetings);
        hear(&gpu_memory::met, meetings);
    }

    // Runs `load` and then `store` for each of this block's vectors of a share, several in flight.
    template <int IN_FLIGHT, class Load, class Store>
    __device__ void each(size_t vectors, size_t first, size_t step, Load load, Store store) const {
        size_t i = first;
        for (; i + (IN_FLIGHT - 1) * step < vectors; i += IN_FLIGHT * step) {
            decltype(load(i)) v[IN_FLIGHT];
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) v[k] = load(i + k * step);
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) store(i + k * step, v[k]);
        }
        for (; i < vectors; i += step) store(i, load(i));
    }
    template <int IN_FLIGHT, class Load, class Store> __device__ void each(Load load, Store store) const {
        const size_t step = size_t(gridDim.x) * blockDim.x;
        each<IN_FLIGHT>(t.share, size_t(blockIdx.x) * blockDim.x + threadIdx.x, step, load, store);
    }

    struct values {
        float4 of[N];
    };
    static __device__ float4 sum(const values& v) {
        float4 s = v.of[0];
#pragma unroll
        for (int q = 1; q < N; ++q) {
            s = make_float4(s.x + v.of[q].x, s.y + v.of[q].y, s.z + v.of[q].z, s.w + v.of[q].w);
        }
        return s;
    }
    __device__ values pull(size_t i) const {
        values v;
#pragma unroll
        for (int q = 0; q < N; ++q) v.of[q] = __ldcg(w.gpu[q].source + t.me * t.share + i);
        return v;
    }

    __device__ void combine_in_place() const {
        float4* to = mine().dest + t.me * t.share;
        each<8 / N>([&](size_t i) { return pull(i); }, [&](size_t i, const values& v) { to[i] = sum(v); });
        __syncthreads();
    }

    // Piece `k` of this block's: which vectors of a share.
    __device__ size_t piece_begin(u32 k) const { return (size_t(k) * gridDim.x + blockIdx.x) * t.piece; }
    __device__ u32 pieces_here() const {
        const size_t all = (t.share + t.piece - 1) / t.piece;
        return static_cast<u32>(all > blockIdx.x ? (all - blockIdx.x - 1) / gridDim.x + 1 : 0);
    }
    __device__ float4* slot(int on, int from, u32 k) const {
        return w.gpu[on].slot + ((size_t(from) * most_blocks + blockIdx.x) * t.sets + k % t.sets) * t.piece;
    }

    __device__ void staged() {
        const u32 count = pieces_here();
        auto length = [&](u32 k) {
            const size_t left = t.share - piece_begin(k);
            return left < t.piece ? left : size_t(t.piece);
        };
        for (u32 k = 0; k < count + t.behind; ++k) {
            if (k < count) {
                // The slots are free once the piece that was in them has been taken.
                if (pieces + k >= t.sets) hear(&gpu_memory::taken, pieces + k + 1 - t.sets);
#pragma unroll
                for (int d = 1; d < N; ++d) {
                    const int q = (t.me + d) % N;
                    const float4* from = mine().source + q * t.share + piece_begin(k);
                    float4* to = slot(q, t.me, pieces + k);
                    each<4>(length(k), threadIdx.x, blockDim.x, [&](size_t i) { return __ldcg(from + i); },
                            [&](size_t i, float4 v) { to[i] = v; });
                }
                tell(&gpu_memory::arrived, pieces + k + 1);
            }
            if (k >= t.behind) {
                const u32 j = k - t.behind;
                hear(&gpu_memory::arrived, pieces + j + 1);
                const size_t begin = t.me * t.share + piece_begin(j);
                each<8 / N>(
                    length(j), threadIdx.x, blockDim.x,
                    [&](size_t i) {
                        values v;
#pragma unroll
                        for (int q = 0; q < N; ++q) {
                            v.of[q] = __ldcg(q == t.me ? mine().source + begin + i : slot(t.me, q, pieces + j) + i);
                        }
                        return v;
                    },
                    [&](size_t i, const values& v) {
                        const float4 s = sum(v);
#pragma unroll
                        for (int q = 0; q < N; ++q) w.gpu[q].dest[begin + i] = s;
                    });
                tell(&gpu_memory::taken, pieces + j + 1);
            }
        }
        pieces += count;
    }

    template <way HOW> __device__ void once() {
        const size_t own = t.me * t.share;
        switch (HOW) {
        case way::only_push:
            for (int d = 0; d < N; ++d) {
                const int q = (t.me + d) % N;
                float4* to = w.gpu[q].dest + own;
                each<8>([&](size_t i) { return __ldcg(mine().source + q * t.share + i); },
                        [&](size_t i, float4 v) { to[i] = v; });
            }
            break;
        case way::only_pull:
            for (int d = 0; d < N; ++d) {
                const int q = (t.me + d) % N;
                float4* to = mine().dest + q * t.share;
                each<8>([&](size_t i) { return __ldcg(w.gpu[q].source + own + i); },
                        [&](size_t i, float4 v) { to[i] = v; });
            }
            break;
        case way::mixed:
            each<8 / N>([&](size_t i) { return pull(i); },
                        [&](size_t i, const values& v) {
                            const float4 s = sum(v);
#pragma unroll
                            for (int q = 0; q < N; ++q) w.gpu[q].dest[own + i] = s;
                        });
            break;
        case way::pull_push:
            combine_in_place();
            for (int d = 1; d < N; ++d) {
                float4* to = w.gpu[(t.me + d) % N].dest + own;
                each<8>([&](size_t i) { return __ldcg(mine().dest + own + i); },
                        [&](size_t i, float4 v) { to[i] = v; });
            }
            break;
        case way::pull_pull:
            combine_in_place();
            meet();
            for (int d = 1; d < N; ++d) {
                const int q = (t.me + d) % N;
                float4* to = mine().dest + q * t.share;
                each<8>([&](size_t i) { return __ldcg(w.gpu[q].dest + q * t.share + i); },
                        [&](size_t i, float4 v) { to[i] = v; });
            }
            break;
        case way::staged: staged(); break;
        }
        // The result is whole on every GPU, and nobody changes it before all have it.
        meet();
    }
};

template <int N, int THREADS, way HOW>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS) all_reduce(const __grid_constant__ world w,
                                                                      const __grid_constant__ task t) {
    block_of<N> block(w, t);
    block.meet();
    for (int k = 0; k < t.iterations; ++k) block.template once<HOW>();
}

__host__ __device__ inline float value_of(int gpu, size_t i) { return float((gpu + 1) * int(i % 1021 + 1)); }

__global__ void fill(float* source, int gpu, size_t n) {
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        source[i] = value_of(gpu, i);
    }
}

// Counts wrong elements of the result of GPU `me` of `gpus`: sums, or what an all-to-all brings. All are whole numbers
// that a float can hold.
__global__ void count_wrong(const float* dest, int me, int gpus, size_t share, bool sums, u32* wrong) {
    const size_t n = share * gpus;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        float expected = 0;
        if (sums) {
            for (int q = 0; q < gpus; ++q) expected += value_of(q, i);
        } else {
            expected = value_of(static_cast<int>(i / share), me * share + i % share);
        }
        if (dest[i] != expected) atomicAdd(wrong, 1u);
    }
}

template <int N, way HOW> const void* kernel_of(int threads) {
    return threads > 512 ? reinterpret_cast<const void*>(all_reduce<N, 1024, HOW>)
                         : reinterpret_cast<const void*>(all_reduce<N, 512, HOW>);
}
template <int N> const void* kernel_of(way how, int threads) {
    switch (how) {
    case way::only_push: return kernel_of<N, way::only_push>(threads);
    case way::only_pull: return kernel_of<N, way::only_pull>(threads);
    case way::mixed: return kernel_of<N, way::mixed>(threads);
    case way::pull_push: return kernel_of<N, way::pull_push>(threads);
    case way::pull_pull: return kernel_of<N, way::pull_pull>(threads);
    default: return kernel_of<N, way::staged>(threads);
    }
}

struct scheme {
    const char* name;
    way how;
    int piece_kib, sets, behind;
};
struct launch_shape {
    int blocks, threads;
};

struct bench {
    int gpus;
    world w = {};
    cudaStream_t stream[most_gpus];
    cudaEvent_t start, end;
    size_t flag_bytes = size_t(most_blocks) * most_gpus * sizeof(u32);

    const void* kernel(way how, int threads) const {
        if (gpus == 2) return kernel_of<2>(how, threads);
        return gpus == 4 ? kernel_of<4>(how, threads) : kernel_of<8>(how, threads);
    }

    template <class Work> void on_all(Work work) {
        for (int g = 0; g < gpus; ++g) {
            CHECK(cudaSetDevice(g));
            work(g);
        }
    }

    void prepare(size_t most_bytes) {
        on_all([&](int g) {
            for (int q = 0; q < gpus; ++q) {
                if (q != g) CHECK(cudaDeviceEnablePeerAccess(q, 0));
            }
            gpu_memory& m = w.gpu[g];
            CHECK(cudaMalloc(&m.source, most_bytes));
            CHECK(cudaMalloc(&m.dest, most_bytes));
            // The largest product of sets and piece below is 4 × 32 KiB.
            CHECK(cudaMalloc(&m.slot, size_t(gpus) * most_blocks * (128 << 10)));
            CHECK(cudaMalloc(&m.met, flag_bytes));
            CHECK(cudaMalloc(&m.arrived, flag_bytes));
            CHECK(cudaMalloc(&m.taken, flag_bytes));
            CHECK(cudaMalloc(&m.gave_up, 2 * sizeof(u32)));
            CHECK(cudaStreamCreateWithFlags(&stream[g], cudaStreamNonBlocking));
            // Kernels that wait for one another must not be loaded while others run.
            cudaFuncAttributes attributes;
            for (way how : {way::only_push, way::only_pull, way::mixed, way::pull_push, way::pull_pull, way::staged}) {
                for (int threads : {512, 1024}) CHECK(cudaFuncGetAttributes(&attributes, kernel(how, threads)));
            }
            fill<<<1024, 256, 0, stream[g]>>>(reinterpret_cast<float*>(m.source), g, most_bytes / sizeof(float));
            CHECK(cudaGetLastError());
            CHECK(cudaStreamSynchronize(stream[g]));
        });
        CHECK(cudaSetDevice(0));
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&end));
    }

    double run(way how, const task& each, const launch_shape& shape) {
        on_all([&](int g) {
            const gpu_memory& m = w.gpu[g];
            for (u32* flags : {m.met, m.arrived, m.taken}) CHECK(cudaMemset(flags, 0, flag_bytes));
            CHECK(cudaMemset(m.gave_up, 0, 2 * sizeof(u32)));
            CHECK(cudaDeviceSynchronize());
        });
        // GPU 0 last: its kernel begins when the others wait for it.
        for (int g = gpus - 1; g >= 0; --g) {
            CHECK(cudaSetDevice(g));
            task t = each;
            t.me = g;
            void* arguments[] = {&w, &t};
            if (g == 0) CHECK(cudaEventRecord(start, stream[0]));
            CHECK(cudaLaunchKernel(kernel(how, shape.threads), dim3(shape.blocks), dim3(shape.threads), arguments, 0,
                                   stream[g]));
        }
        CHECK(cudaEventRecord(end, stream[0]));
        on_all([&](int g) {
            CHECK(cudaStreamSynchronize(stream[g]));
            u32 gave_up;
            CHECK(cudaMemcpy(&gave_up, w.gpu[g].gave_up, sizeof(u32), cudaMemcpyDeviceToHost));
            require(!gave_up, "GPU %d waited in vain", g);
        });
        float ms;
        CHECK(cudaEventElapsedTime(&ms, start, end));
        return ms * 1e3 / each.iterations;
    }

    void row(const scheme& s, const launch_shape& shape, size_t bytes) {
        int at_once = 0, processors = 0;
        CHECK(cudaSetDevice(0));
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel(s.how, shape.threads), shape.threads, 0));
        CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
        require(shape.blocks <= most_blocks, "%d blocks", shape.blocks);
        if (at_once * processors < shape.blocks) {
            std::fprintf(stderr, "left out: %d blocks of %d threads do not run at once here\n", shape.blocks,
                         shape.threads);
            return;
        }
        task t = {};
        t.share = bytes / sizeof(float4) / gpus;
        t.piece = s.piece_kib * 1024 / int(sizeof(float4));
        t.sets = s.sets;
        t.behind = s.behind;
        t.iterations = bytes >= size_t(256) << 20 ? 3 : 50;
        on_all([&](int g) {
            CHECK(cudaMemset(w.gpu[g].dest, 0, bytes));
            CHECK(cudaDeviceSynchronize());
        });
        run(s.how, t, shape);
        const bool sums = s.how != way::only_push && s.how != way::only_pull;
        on_all([&](int g) {
            u32* wrong = w.gpu[g].gave_up + 1;
            CHECK(cudaMemset(wrong, 0, sizeof(u32)));
            CHECK(cudaDeviceSynchronize());
            const float* dest = reinterpret_cast<const float*>(w.gpu[g].dest);
            count_wrong<<<1024, 256, 0, stream[g]>>>(dest, g, gpus, t.share * 4, sums, wrong);
            CHECK(cudaGetLastError());
            CHECK(cudaStreamSynchronize(stream[g]));
            u32 found;
            CHECK(cudaMemcpy(&found, wrong, sizeof(u32), cudaMemcpyDeviceToHost));
            require(found == 0, "%s: GPU %d has %u wrong elements", s.name, g, found);
        });
        std::vector<double> times;
        for (int r = 0; r < 5; ++r) times.push_back(run(s.how, t, shape));
        const spread time(times);
        const double moved = double(t.share) * sizeof(float4) * (gpus - 1) * (sums ? 2 : 1);
        print_row("all_reduce", &time,
                  "\"way\":\"%s\",\"piece_kib\":%d,\"sets\":%d,\"behind\":%d,\"gpus\":%d,\"bytes\":%zu,\"blocks\":%d,"
                  "\"threads\":%d,\"bytes_per_second\":%.5g",
                  s.name, s.piece_kib, s.sets, s.behind, gpus, t.share * sizeof(float4) * gpus, shape.blocks,
                  shape.threads, moved / time.median * 1e6);
    }
};

int main(int argc, char** argv) {
    int gpus;
    CHECK(cudaGetDeviceCount(&gpus));
    if (argc > 1) gpus = std::min(gpus, std::atoi(argv[1]));
    gpus = gpus >= 8 ? 8 : gpus >= 4 ? 4 : gpus >= 2 ? 2 : 1;
    for (int k = 0; k < gpus * gpus; ++k) {
        int access = k / gpus == k % gpus;
        if (!access) CHECK(cudaDeviceCanAccessPeer(&access, k / gpus, k % gpus));
        if (!access) gpus = 1;
    }
    if (gpus < 2) {
        std::fprintf(stderr, "two GPUs that can access one another are needed\n");
        return 3;
    }
    const size_t large = size_t(1) << 30;
    bench b{gpus};
    b.prepare(large);
    const scheme push{"only_push", way::only_push, 0, 0, 0}, pull{"only_pull", way::only_pull, 0, 0, 0},
        mixed{"mixed", way::mixed, 0, 0, 0}, pull_push{"pull_push", way::pull_push, 0, 0, 0},
        pull_pull{"pull_pull", way::pull_pull, 0, 0, 0}, staged8{"staged", way::staged, 8, 2, 1},
        staged8_4{"staged", way::staged, 8, 4, 2}, staged16{"staged", way::staged, 16, 2, 1},
        staged16_4{"staged", way::staged, 16, 4, 2}, staged32{"staged", way::staged, 32, 2, 1},
        staged32_4{"staged", way::staged, 32, 4, 2}, staged64{"staged", way::staged, 64, 2, 1};
    for (const scheme& s : {push, pull}) {
        for (int blocks : {132, 264}) b.row(s, {blocks, 512}, large);
    }
    for (int threads : {512, 1024}) {
        for (const scheme& s : {mixed, pull_push, pull_pull}) b.row(s, {132, threads}, large);
    }
    for (const scheme& s : {staged8, staged8_4, staged16, staged16_4, staged32_4}) b.row(s, {264, 512}, large);
    for (const scheme& s : {staged16, staged16_4, staged32, staged32_4, staged64}) b.row(s, {132, 1024}, large);
    b.row(staged16, {132, 512}, large);
    b.row(staged64, {66, 1024}, large);
    for (int log2 : {20, 22, 24, 26}) {
        for (const scheme& s : {mixed, pull_push, staged16_4, staged8_4}) b.row(s, {132, 512}, size_t(1) << log2);
    }
}

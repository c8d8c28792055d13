// NVSHMEM's calls in kernels and in stream order, compiled unmodified against either of two libraries that have its
// interface: NVIDIA's, and Crosswarp's (crosswarp install --nvshmem). Each row checks its values on every PE.
//
//     calls [pes]        one PE per GPU, all GPUs if not said; one JSON object per line

#include <sched.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include "../nvshmem_pes.h"

// ---- What is called. All take the same arguments ------------------------------------------------------
//
// dest, source, flags: symmetric. bytes: as in the row. base: iterations that earlier launches of the row have made, for
// the values of ping-pongs, which only grow.
//
// How long a word takes depends on where in memory it lies, by a tenth of what it takes. So each iteration has another one.

#define KERNEL(name) \
    __global__ void name(int* dest, const int* source, uint64_t* flags, size_t bytes, int iterations, uint64_t base)
#define ONE_SENDS \
    if (nvshmem_my_pe() != 0) return
#define TWO_TALK                    \
    const int me = nvshmem_my_pe(); \
    if (me > 1) return

constexpr size_t line = 128;
// Of an array.
constexpr size_t largest = size_t(16) << 20;
// The flag of an iteration.
constexpr int flag_lines = 64;
__host__ __device__ uint64_t* nth(uint64_t* flags, uint64_t i) { return flags + i % flag_lines * (line / sizeof(uint64_t)); }
// The next place of `window` bytes, which is more than a first-level cache keeps (one of the two libraries reads through
// it); `array` itself in the last iteration.
constexpr size_t window = size_t(4) << 20;
template <class T> __device__ T* further(T* array, int left, size_t bytes) {
    const size_t step = (bytes + line - 1) / line * line;
    return array + (size_t)left * step % window / sizeof(int);
}

// The last value is that of the source.
KERNEL(p_thread) {
    ONE_SENDS;
    for (int i = iterations; i-- > 0;) {
        nvshmem_int_p(further(dest, i, bytes), source[0] + i, 1);
        nvshmem_quiet();
    }
}
// Each asks where the last answer says, as far as a compiler knows.
KERNEL(g_thread) {
    ONE_SENDS;
    int value = 0;
    const int nothing = (int)(base >> 40);
    for (int i = iterations; i-- > 0;) value = nvshmem_int_g(further(source, i, bytes) + (value & nothing), 1);
    dest[0] = value;
}

#define PUTS(scope)                                                             \
    KERNEL(put_##scope) {                                                       \
        ONE_SENDS;                                                              \
        for (int i = 0; i < iterations; ++i) {                                  \
            nvshmemx_int_put_nbi_##scope(dest, source, bytes / sizeof(int), 1); \
            __syncthreads();                                                    \
            if (threadIdx.x == 0) nvshmem_quiet();                              \
            __syncthreads();                                                    \
        }                                                                       \
    }                                                                           \
    KERNEL(get_##scope) {                                                       \
        ONE_SENDS;                                                              \
        for (int i = iterations; i-- > 0;) {                                    \
            const int* from = further(source, i, bytes);                        \
            nvshmemx_int_get_##scope(dest, from, bytes / sizeof(int), 1);       \
            __syncthreads();                                                    \
        }                                                                       \
    }
PUTS(warp)
PUTS(block)

// Every block moves its own part; blocks do not meet between iterations; all completes before the kernel ends. Each
// iteration has another part of the arrays, for a block's part of one alone fits into a first-level cache; the last one has
// their beginning.
#define BANDWIDTH(name, move)                                                            \
    KERNEL(name) {                                                                       \
        ONE_SENDS;                                                                       \
        const size_t n = bytes / sizeof(int), part = n / gridDim.x;                      \
        for (int i = iterations; i-- > 0;) {                                             \
            const size_t first = i % (largest / bytes) * n + blockIdx.x * part;          \
            move;                                                                        \
            __syncthreads();                                                             \
        }                                                                                \
        __syncthreads();                                                                 \
        if (threadIdx.x == 0) nvshmem_quiet();                                           \
    }
#define EVERY_ELEMENT for (size_t k = first + threadIdx.x; k < first + part; k += blockDim.x)
BANDWIDTH(bandwidth_p, EVERY_ELEMENT nvshmem_int_p(dest + k, source[k], 1))
BANDWIDTH(bandwidth_g, EVERY_ELEMENT dest[k] = nvshmem_int_g(source + k, 1))
BANDWIDTH(bandwidth_put, nvshmemx_int_put_nbi_block(dest + first, source + first, part, 1))
BANDWIDTH(bandwidth_get, nvshmemx_int_get_nbi_block(dest + first, source + first, part, 1))

KERNEL(signal_pingpong) {
    TWO_TALK;
    for (uint64_t value = base + 1; value <= base + iterations; ++value) {
        uint64_t* flag = nth(flags, value);
        if (me == 1) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, value);
        nvshmemx_signal_op(flag, value, NVSHMEM_SIGNAL_SET, 1 - me);
        if (me == 0) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, value);
    }
}
#define PUT_SIGNAL_PINGPONG(scope)                                                                                    \
    KERNEL(put_signal_pingpong_##scope) {                                                                             \
        TWO_TALK;                                                                                                     \
        for (uint64_t value = base + 1; value <= base + iterations; ++value) {                                        \
            uint64_t* flag = nth(flags, value);                                                                       \
            if (me == 1 && threadIdx.x == 0) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, value);                  \
            __syncthreads();                                                                                          \
            nvshmemx_int_put_signal_##scope(dest, source, bytes / sizeof(int), flag, value, NVSHMEM_SIGNAL_SET, 1 - me); \
            if (me == 0 && threadIdx.x == 0) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, value);                  \
            __syncthreads();                                                                                          \
        }                                                                                                             \
    }
PUT_SIGNAL_PINGPONG(warp)
PUT_SIGNAL_PINGPONG(block)

// Collectives, back to back.
#define COLLECTIVE(name, call)                                   \
    KERNEL(name) {                                               \
        const size_t n = bytes / sizeof(int);                    \
        const size_t n_each = n / nvshmem_n_pes();               \
        (void)n, (void)n_each;                                   \
        for (int i = 0; i < iterations; ++i) { call; }           \
    }
#define ALL NVSHMEM_TEAM_WORLD
COLLECTIVE(barrier_thread, nvshmem_barrier_all())
COLLECTIVE(barrier_warp, nvshmemx_barrier_all_warp())
COLLECTIVE(barrier_block, nvshmemx_barrier_all_block())
COLLECTIVE(sync_thread, nvshmem_sync_all())
COLLECTIVE(sync_warp, nvshmemx_sync_all_warp())
COLLECTIVE(sync_block, nvshmemx_sync_all_block())
COLLECTIVE(sum_int_thread, nvshmem_int_sum_reduce(ALL, dest, source, n))
COLLECTIVE(sum_int_warp, nvshmemx_int_sum_reduce_warp(ALL, dest, source, n))
COLLECTIVE(sum_int_block, nvshmemx_int_sum_reduce_block(ALL, dest, source, n))
COLLECTIVE(sum_float_warp, nvshmemx_float_sum_reduce_warp(ALL, (float*)dest, (const float*)source, n))
COLLECTIVE(sum_float_block, nvshmemx_float_sum_reduce_block(ALL, (float*)dest, (const float*)source, n))
COLLECTIVE(broadcast_warp, nvshmemx_int_broadcast_warp(ALL, dest, source, n, 0))
COLLECTIVE(broadcast_block, nvshmemx_int_broadcast_block(ALL, dest, source, n, 0))
COLLECTIVE(fcollect_warp, nvshmemx_int_fcollect_warp(ALL, dest, source, n_each))
COLLECTIVE(fcollect_block, nvshmemx_int_fcollect_block(ALL, dest, source, n_each))
COLLECTIVE(alltoall_warp, nvshmemx_int_alltoall_warp(ALL, dest, source, n_each))
COLLECTIVE(alltoall_block, nvshmemx_int_alltoall_block(ALL, dest, source, n_each))

// The host's calls: the first stands for all, by `each`, of an iteration.
#define ON_STREAM(name, each)                                                                                   \
    static void name(int* dest, const int* source, uint64_t* flags, size_t bytes, int iterations, uint64_t base, \
                     cudaStream_t stream) {                                                                     \
        const int me = nvshmem_my_pe();                                                                         \
        const size_t n = bytes / sizeof(int), n_each = n / nvshmem_n_pes();                                     \
        (void)me, (void)n, (void)n_each;                                                                        \
        for (uint64_t value = base + 1; value <= base + iterations; ++value) {                                  \
            uint64_t* flag = nth(flags, value);                                                                 \
            (void)flag;                                                                                         \
            each;                                                                                               \
        }                                                                                                       \
    }
ON_STREAM(stream_p, if (me == 0) nvshmemx_int_p_on_stream(dest, (int)(1000 + value - base), 1, stream))
ON_STREAM(stream_put, if (me == 0) nvshmemx_int_put_on_stream(dest, source, n, 1, stream))
ON_STREAM(stream_get, if (me == 0) nvshmemx_int_get_on_stream(dest, source, n, 1, stream))
ON_STREAM(stream_signal_pingpong, {
    if (me == 1) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, value, stream);
    if (me <= 1) nvshmemx_signal_op_on_stream(flag, value, NVSHMEM_SIGNAL_SET, 1 - me, stream);
    if (me == 0) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, value, stream);
})
ON_STREAM(stream_put_signal_pingpong, {
    if (me == 1) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, value, stream);
    if (me <= 1) nvshmemx_int_put_signal_on_stream(dest, source, n, flag, value, NVSHMEM_SIGNAL_SET, 1 - me, stream);
    if (me == 0) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, value, stream);
})
ON_STREAM(stream_barrier, nvshmemx_barrier_all_on_stream(stream))
ON_STREAM(stream_sync, nvshmemx_sync_all_on_stream(stream))
ON_STREAM(stream_sum_int, nvshmemx_int_sum_reduce_on_stream(ALL, dest, source, n, stream))
ON_STREAM(stream_sum_float, nvshmemx_float_sum_reduce_on_stream(ALL, (float*)dest, (const float*)source, n, stream))
ON_STREAM(stream_broadcast, nvshmemx_int_broadcast_on_stream(ALL, dest, source, n, 0, stream))
ON_STREAM(stream_fcollect, nvshmemx_int_fcollect_on_stream(ALL, dest, source, n_each, stream))
ON_STREAM(stream_alltoall, nvshmemx_int_alltoall_on_stream(ALL, dest, source, n_each, stream))

// ---- Rows -----------------------------------------------------------------------------------------------

using host_call = void (*)(int*, const int*, uint64_t*, size_t, int, uint64_t, cudaStream_t);

// What `dest` holds after a row.
enum class result { nothing, last_of_stream, from_pe0, from_pe1, sum, sum_of_floats, fcollect, alltoall, broadcast };

struct row {
    const char* what;
    int pes;
    size_t bytes;
    const char* scope;
    int blocks, threads, iterations;
    const void* kernel;  // null: `call`
    host_call call;
    result expected;
};

constexpr int counted = 5;

int int_value(int pe, size_t i) { return (int)((1000003u * pe + 7919u * (uint32_t)i) & 0xffffff); }
// Positive, so that a sum's bound is relative to itself.
float float_value(int pe, size_t i) { return 0.1f + 0.001f * (float)((i * 31 + 17 * pe) % 1000); }

std::vector<row> rows(int pes) {
    std::vector<row> all;
    const size_t kib = 1 << 10, mib = 1 << 20;
    auto kernel = [&](const char* what, int of, size_t bytes, const char* scope, int blocks, int threads, int iterations,
                      const void* kernel, result expected) {
        all.push_back({what, of, bytes, scope, blocks, threads, iterations, kernel, nullptr, expected});
    };
    auto stream = [&](const char* what, int of, size_t bytes, int iterations, host_call call, result expected) {
        all.push_back({what, of, bytes, "stream", 0, 0, iterations, nullptr, call, expected});
    };
    // A collective's bytes are split evenly among the PEs.
    auto split = [&](size_t bytes) {
        const size_t unit = sizeof(int) * pes;
        return std::max(unit, bytes / unit * unit);
    };
#define K(name) reinterpret_cast<const void*>(name)
    kernel("p", 2, 4, "thread", 1, 1, 1000, K(p_thread), result::from_pe0);
    kernel("g", 2, 4, "thread", 1, 1, 1000, K(g_thread), result::from_pe1);
    for (size_t bytes : {size_t(8), kib, 64 * kib}) {
        const int iterations = bytes > kib ? 100 : 1000;
        kernel("put", 2, bytes, "warp", 1, 32, iterations, K(put_warp), result::from_pe0);
        kernel("put", 2, bytes, "block", 1, 256, iterations, K(put_block), result::from_pe0);
        kernel("get", 2, bytes, "warp", 1, 32, iterations, K(get_warp), result::from_pe1);
        kernel("get", 2, bytes, "block", 1, 256, iterations, K(get_block), result::from_pe1);
    }
    kernel("p, every element", 2, 4 * mib, "thread", 32, 256, 50, K(bandwidth_p), result::from_pe0);
    kernel("g, every element", 2, 4 * mib, "thread", 32, 256, 50, K(bandwidth_g), result::from_pe1);
    kernel("put, 32 blocks", 2, 4 * mib, "block", 32, 256, 100, K(bandwidth_put), result::from_pe0);
    kernel("get, 32 blocks", 2, 4 * mib, "block", 32, 256, 100, K(bandwidth_get), result::from_pe1);
    kernel("signal there and back", 2, 8, "thread", 1, 1, 1000, K(signal_pingpong), result::nothing);
    for (size_t bytes : {size_t(8), 8 * kib}) {
        kernel("put_signal there and back", 2, bytes, "warp", 1, 32, 500, K(put_signal_pingpong_warp), result::from_pe0);
        kernel("put_signal there and back", 2, bytes, "block", 1, 256, 500, K(put_signal_pingpong_block), result::from_pe0);
    }

    kernel("barrier_all", pes, 0, "thread", 1, 1, 1000, K(barrier_thread), result::nothing);
    kernel("barrier_all", pes, 0, "warp", 1, 32, 1000, K(barrier_warp), result::nothing);
    kernel("barrier_all", pes, 0, "block", 1, 256, 1000, K(barrier_block), result::nothing);
    kernel("sync_all", pes, 0, "thread", 1, 1, 1000, K(sync_thread), result::nothing);
    kernel("sync_all", pes, 0, "warp", 1, 32, 1000, K(sync_warp), result::nothing);
    kernel("sync_all", pes, 0, "block", 1, 256, 1000, K(sync_block), result::nothing);
    kernel("int_sum_reduce", pes, 4, "thread", 1, 1, 500, K(sum_int_thread), result::sum);
    for (size_t bytes : {size_t(16), kib, 64 * kib, mib}) {
        const int iterations = bytes > 64 * kib ? 20 : bytes > kib ? 50 : 500;
        // A warp is not given what takes it milliseconds.
        if (bytes <= kib) {
            kernel("int_sum_reduce", pes, bytes, "warp", 1, 32, iterations, K(sum_int_warp), result::sum);
            kernel("float_sum_reduce", pes, bytes, "warp", 1, 32, iterations, K(sum_float_warp), result::sum_of_floats);
        }
        kernel("int_sum_reduce", pes, bytes, "block", 1, 256, iterations, K(sum_int_block), result::sum);
        kernel("float_sum_reduce", pes, bytes, "block", 1, 256, iterations, K(sum_float_block), result::sum_of_floats);
    }
    for (size_t wanted : {size_t(32), kib, 128 * kib, mib}) {
        const size_t bytes = split(wanted);
        const int iterations = wanted > 128 * kib ? 20 : wanted > kib ? 100 : 500;
        if (wanted <= kib) {
            kernel("broadcast", pes, bytes, "warp", 1, 32, iterations, K(broadcast_warp), result::broadcast);
            kernel("fcollect", pes, bytes, "warp", 1, 32, iterations, K(fcollect_warp), result::fcollect);
            kernel("alltoall", pes, bytes, "warp", 1, 32, iterations, K(alltoall_warp), result::alltoall);
        }
        kernel("broadcast", pes, bytes, "block", 1, 256, iterations, K(broadcast_block), result::broadcast);
        kernel("fcollect", pes, bytes, "block", 1, 256, iterations, K(fcollect_block), result::fcollect);
        kernel("alltoall", pes, bytes, "block", 1, 256, iterations, K(alltoall_block), result::alltoall);
    }
#undef K

    stream("p", 2, 4, 500, stream_p, result::last_of_stream);
    for (size_t bytes : {size_t(8), 64 * kib, 16 * mib}) {
        const int iterations = bytes > 64 * kib ? 50 : 500;
        stream("put", 2, bytes, iterations, stream_put, result::from_pe0);
        stream("get", 2, bytes, iterations, stream_get, result::from_pe1);
    }
    stream("signal there and back", 2, 8, 200, stream_signal_pingpong, result::nothing);
    stream("put_signal there and back", 2, 8, 200, stream_put_signal_pingpong, result::from_pe0);
    stream("put_signal there and back", 2, 64 * kib, 200, stream_put_signal_pingpong, result::from_pe0);
    stream("barrier_all", pes, 0, 500, stream_barrier, result::nothing);
    stream("sync_all", pes, 0, 500, stream_sync, result::nothing);
    for (size_t bytes : {size_t(16), 64 * kib, 16 * mib}) {
        const int iterations = bytes > 64 * kib ? 10 : 200;
        stream("int_sum_reduce", pes, bytes, iterations, stream_sum_int, result::sum);
        stream("float_sum_reduce", pes, bytes, iterations, stream_sum_float, result::sum_of_floats);
    }
    for (size_t wanted : {size_t(32), 64 * kib, 16 * mib}) {
        const size_t bytes = split(wanted);
        const int iterations = wanted > 64 * kib ? 20 : 200;
        stream("broadcast", pes, bytes, iterations, stream_broadcast, result::broadcast);
        stream("fcollect", pes, bytes, iterations, stream_fcollect, result::fcollect);
        stream("alltoall", pes, bytes, iterations, stream_alltoall, result::alltoall);
    }
    return all;
}

// ---- Values -----------------------------------------------------------------------------------------------

// What `dest[i]` of `me` must be; false where the row says nothing about it.
bool expected_int(const row& r, int me, int pes, size_t i, int& value) {
    const size_t n_each = r.bytes / sizeof(int) / pes;
    switch (r.expected) {
        case result::last_of_stream: value = 1000 + r.iterations; return me == 1;
        case result::from_pe0: value = int_value(0, i); return me == 1;
        case result::from_pe1: value = int_value(1, i); return me == 0;
        case result::broadcast: value = int_value(0, i); return true;
        case result::fcollect: value = int_value(int(i / n_each), i % n_each); return true;
        case result::alltoall: value = int_value(int(i / n_each), me * n_each + i % n_each); return true;
        case result::sum:
            value = 0;
            for (int pe = 0; pe < pes; ++pe) value += int_value(pe, i);
            return true;
        default: return false;
    }
}

// Ends the program on a wrong value; else a fingerprint of what the row says about this PE's `dest`.
uint64_t check(const row& r, const int* dest, int me, int pes) {
    std::vector<int> seen(r.bytes / sizeof(int));
    CHECK_CUDA(cudaMemcpy(seen.data(), dest, seen.size() * sizeof(int), cudaMemcpyDeviceToHost));
    uint64_t print = 14695981039346656037u;
    for (size_t i = 0; i < seen.size(); ++i) {
        int value;
        if (r.expected == result::sum_of_floats) {
            double exact = 0;
            for (int pe = 0; pe < pes; ++pe) exact += float_value(pe, i);
            float got;
            memcpy(&got, &seen[i], sizeof(got));
            // pes - 1 roundings, each of at most half a unit in the last place.
            if (!(std::fabs(got - exact) <= (pes - 1) * 6e-8 * exact)) {
                fprintf(stderr, "%s, %s, %zu bytes: PE %d element %zu is %.9g, not %.9g\n", r.what, r.scope, r.bytes, me,
                        i, got, exact);
                fail();
            }
        } else if (expected_int(r, me, pes, i, value)) {
            if (seen[i] != value) {
                fprintf(stderr, "%s, %s, %zu bytes: PE %d element %zu is %d, not %d\n", r.what, r.scope, r.bytes, me, i,
                        seen[i], value);
                fail();
            }
        } else {
            continue;
        }
        print = (print ^ (uint32_t)seen[i]) * 1099511628211u;
    }
    return print;
}

// ---- One PE -------------------------------------------------------------------------------------------------

const char* library() {
    char name[NVSHMEM_MAX_NAME_LEN];
    nvshmem_info_get_name(name);
    return strncmp(name, "Crosswarp", 9) == 0 ? "crosswarp" : "nvshmem";
}

struct memory {
    int *ints, *floats, *dest;
    uint64_t* flags;
    unsigned long long *print, *prints;
};

void measure(const row& r, const memory& m, cudaStream_t stream, int me, int pes) {
    int* dest = m.dest;
    const int* source = r.expected == result::sum_of_floats ? m.floats : m.ints;
    uint64_t* flags = m.flags;
    CHECK_CUDA(cudaMemset(dest, 0, std::max(r.bytes, sizeof(int))));
    CHECK_CUDA(cudaMemset(flags, 0, flag_lines * line));
    CHECK_CUDA(cudaDeviceSynchronize());
    cudaEvent_t begin, end;
    CHECK_CUDA(cudaEventCreate(&begin));
    CHECK_CUDA(cudaEventCreate(&end));
    size_t bytes = r.bytes;
    int iterations = r.iterations;
    uint64_t base = 0;
    void* arguments[] = {&dest, &source, &flags, &bytes, &iterations, &base};
    std::vector<double> times;
    for (int repetition = -warmups; repetition < counted; ++repetition) {
        nvshmem_barrier_all();
        CHECK_CUDA(cudaEventRecord(begin, stream));
        if (r.kernel != nullptr) {
            int status = nvshmemx_collective_launch(r.kernel, dim3(r.blocks), dim3(r.threads), arguments, 0, stream);
            if (status != 0) {
                fprintf(stderr, "collective launch of %s, %s, failed: %d\n", r.what, r.scope, status);
                fail();
            }
        } else {
            r.call(dest, source, flags, bytes, iterations, base, stream);
        }
        CHECK_CUDA(cudaEventRecord(end, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        float ms;
        CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (repetition >= 0) times.push_back(1000.0 * ms / iterations);
        base += iterations;
    }
    nvshmem_barrier_all();
    // Everybody's fingerprint goes to PE 0.
    unsigned long long print = check(r, dest, me, pes);
    CHECK_CUDA(cudaMemcpy(m.print, &print, sizeof(print), cudaMemcpyHostToDevice));
    nvshmem_barrier_all();
    nvshmemx_ulonglong_fcollect_on_stream(ALL, m.prints, m.print, 1, stream);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    std::vector<unsigned long long> prints(pes);
    CHECK_CUDA(cudaMemcpy(prints.data(), m.prints, pes * sizeof(print), cudaMemcpyDeviceToHost));
    nvshmem_barrier_all();
    if (me == 0) {
        std::sort(times.begin(), times.end());
        unsigned long long values = 0;
        for (unsigned long long one : prints) values = values * 31 + one;
        printf("{\"impl\":\"%s\",\"version\":\"%s\",\"what\":\"%s\",\"pes\":%d,\"bytes\":%zu,\"scope\":\"%s\",\"blocks\":%d,"
               "\"threads\":%d,\"iterations\":%d,\"repetitions\":%d,\"us\":%.3f,\"us_min\":%.3f,\"us_max\":%.3f,"
               "\"exact\":%s,\"values\":\"%016llx\"}\n",
               library(), nvshmem_version().c_str(), r.what, r.pes, r.bytes, r.scope, r.blocks, r.threads, r.iterations,
               counted, times[counted / 2], times.front(), times.back(),
               r.expected == result::sum_of_floats ? "false" : "true", values);
        fflush(stdout);
    }
    CHECK_CUDA(cudaEventDestroy(begin));
    CHECK_CUDA(cudaEventDestroy(end));
}

// How long the host takes to give a call to a stream depends on the core it is on. Each PE's thread keeps to a
// few of its own, the same in every run; threads of the library go where they like.
void keep_to_own_cpus(int pe, int pes) {
    cpu_set_t all, own;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
    const int share = CPU_COUNT(&all) / pes;
    CPU_ZERO(&own);
    for (int cpu = 0, place = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &all)) continue;
        if (place / std::max(share, 1) == pe && place % std::max(share, 1) < 4) CPU_SET(cpu, &own);
        ++place;
    }
    if (share > 0) sched_setaffinity(0, sizeof(own), &own);
}

int run_pe(int me, int pes) {
    keep_to_own_cpus(me, pes);
    memory m;
    m.ints = (int*)nvshmem_malloc(largest);
    m.floats = (int*)nvshmem_malloc(largest);
    m.dest = (int*)nvshmem_malloc(largest);
    m.flags = (uint64_t*)nvshmem_calloc(flag_lines, line);
    m.print = (unsigned long long*)nvshmem_calloc(1, 8);
    m.prints = (unsigned long long*)nvshmem_calloc(pes, 8);
    if (!m.ints || !m.floats || !m.dest || !m.flags || !m.print || !m.prints) {
        fprintf(stderr, "PE %d has no symmetric memory\n", me);
        return 1;
    }
    std::vector<int> ints(largest / sizeof(int));
    std::vector<float> floats(largest / sizeof(float));
    for (size_t i = 0; i < ints.size(); ++i) {
        ints[i] = int_value(me, i);
        floats[i] = float_value(me, i);
    }
    CHECK_CUDA(cudaMemcpy(m.ints, ints.data(), largest, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(m.floats, floats.data(), largest, cudaMemcpyHostToDevice));
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (me == 0 && nvshmem_ptr(m.dest, 1) == nullptr) {
        fprintf(stderr, "GPU 1's memory is not mapped on GPU 0: no NVLink or peer access\n");
        return 1;
    }
    for (const row& r : rows(pes)) measure(r, m, stream, me, pes);
    nvshmem_barrier_all();
    for (void* one : {(void*)m.prints, (void*)m.print, (void*)m.flags, (void*)m.dest, (void*)m.floats, (void*)m.ints}) {
        nvshmem_free(one);
    }
    return 0;
}

int main(int argc, char** argv) { return run_pes(argc > 1 ? atoi(argv[1]) : 0, run_pe); }

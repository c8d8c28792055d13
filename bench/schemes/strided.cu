// Strided copies of n elements, by the driver's two-dimensional copy (a row an element) and by a kernel: within one
// GPU, to a second one, and between the host and a GPU. See README.md.
//
//     strided [GPUS]     1: only within one GPU and with the host
#include <cstring>

#include "scheme.h"

template <class T>
__global__ void copy(T* dest, size_t dest_stride, const T* source, size_t source_stride, size_t n) {
    const size_t step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        dest[i * dest_stride] = source[i * source_stride];
    }
}

struct element16 {
    unsigned word[4];
};
unsigned first_word(unsigned x) { return x; }
unsigned first_word(const element16& x) { return x.word[0]; }

struct shape {
    size_t n, dest_stride, source_stride;
};

template <class T>
struct bench {
    shape s;
    int last;  // the GPU that copies go to: the second, if there is one
    cudaStream_t stream;
    std::vector<T> numbers, found;

    size_t source_bytes() const { return s.n * s.source_stride * sizeof(T); }
    size_t dest_bytes() const { return s.n * s.dest_stride * sizeof(T); }

    void by_driver(T* dest, const T* source) const {
        CHECK(cudaMemcpy2DAsync(dest, s.dest_stride * sizeof(T), source, s.source_stride * sizeof(T), sizeof(T), s.n,
                                cudaMemcpyDefault, stream));
    }
    void by_kernel(T* dest, const T* source) const {
        const int blocks = static_cast<int>(std::min<size_t>((s.n + 255) / 256, 1024));
        copy<<<blocks, 256, 0, stream>>>(dest, s.dest_stride, source, s.source_stride, s.n);
    }

    // Times both ways from `source` to `dest`, wherever they are, and checks what has arrived.
    void row(const char* from, const char* to, T* dest, const T* source, bool driver, bool kernel) {
        for (int way = 0; way < 2; ++way) {
            if (!(way == 0 ? driver : kernel)) continue;
            std::memset(found.data(), 0xff, dest_bytes());
            CHECK(cudaMemcpy(dest, found.data(), dest_bytes(), cudaMemcpyDefault));
            const spread time = time_calls(stream, 5, 3, [&] {
                way == 0 ? by_driver(dest, source) : by_kernel(dest, source);
            });
            CHECK(cudaMemcpy(found.data(), dest, dest_bytes(), cudaMemcpyDefault));
            for (size_t i = 0; i < found.size(); ++i) {
                const bool written = i % s.dest_stride == 0;
                const unsigned wanted = written ? first_word(numbers[i / s.dest_stride * s.source_stride]) : ~0u;
                require(first_word(found[i]) == wanted, "%s to %s: element %zu is wrong", from, to, i);
            }
            print_row("strided", &time,
                      "\"way\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"elements\":%zu,\"bytes\":%zu,\"dest_stride\":%zu,"
                      "\"source_stride\":%zu",
                      way == 0 ? "memcpy2D" : "kernel", from, to, s.n, sizeof(T), s.dest_stride, s.source_stride);
        }
    }

    void run() {
        numbers.resize(s.n * s.source_stride);
        found.resize(s.n * s.dest_stride);
        for (size_t i = 0; i < numbers.size(); ++i) {
            const unsigned k = static_cast<unsigned>(i);
            std::memcpy(&numbers[i], &k, sizeof(k));
        }
        T *source, *own, *peer, *peer_source;
        CHECK(cudaSetDevice(last));
        CHECK(cudaMalloc(&peer, dest_bytes()));
        CHECK(cudaMalloc(&peer_source, source_bytes()));
        CHECK(cudaSetDevice(0));
        CHECK(cudaMalloc(&source, source_bytes()));
        CHECK(cudaMalloc(&own, dest_bytes()));
        for (T* to : {source, peer_source}) CHECK(cudaMemcpy(to, numbers.data(), source_bytes(), cudaMemcpyDefault));
        row("own", "own", own, source, true, true);
        const char* far = last ? "peer" : "own";
        if (last) row("own", "peer", peer, source, true, true);
        // To and from the host with few unused elements between: what is staged in the library has none.
        if (s.source_stride < 16 && s.dest_stride < 16) {
            T *pinned_source, *pinned_dest;
            CHECK(cudaMallocHost(&pinned_source, source_bytes()));
            CHECK(cudaMallocHost(&pinned_dest, dest_bytes()));
            std::memcpy(pinned_source, numbers.data(), source_bytes());
            row("pageable", far, peer, numbers.data(), true, false);
            row("pinned", far, peer, pinned_source, true, true);
            std::vector<T> host(s.n * s.dest_stride);
            row(far, "pageable", host.data(), peer_source, true, false);
            row(far, "pinned", pinned_dest, peer_source, false, true);
            CHECK(cudaFreeHost(pinned_source));
            CHECK(cudaFreeHost(pinned_dest));
        }
        for (T* memory : {source, own, peer, peer_source}) CHECK(cudaFree(memory));
    }
};

int main(int argc, char** argv) {
    int gpus;
    CHECK(cudaGetDeviceCount(&gpus));
    if (argc > 1) gpus = std::min(gpus, std::atoi(argv[1]));
    int access = 0;
    if (gpus > 1) CHECK(cudaDeviceCanAccessPeer(&access, 0, 1));
    if (access) CHECK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaSetDevice(0));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const shape& s : {shape{1000, 2, 3}, shape{100000, 2, 1}, shape{1000000, 2, 3}, shape{1000000, 1, 64},
                           shape{1000000, 64, 1}}) {
        bench<unsigned>{s, access, stream, {}, {}}.run();
    }
    bench<element16>{{100000, 4, 4}, access, stream, {}, {}}.run();
}

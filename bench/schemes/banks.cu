// Cycles of one load of shared memory by one warp, for patterns of addresses, beside the requests that the model of
// `crosswarp banks` counts. See README.md.
#include <set>

#include "scheme.h"

constexpr int loads = 8000, words = 4096, repetitions = 5;

// Lane l chases a pointer at element index[l] of WORDS words: every word holds its own address.
template <int WORDS>
__global__ void chase(const int* index, long long* cycles, int* wrong) {
    __shared__ __align__(16) unsigned word[words];
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(word));
    for (int k = threadIdx.x; k < words; k += 32) word[k] = base + k * 4;
    __syncwarp();
    const unsigned begin = base + index[threadIdx.x] * WORDS * 4;
    unsigned at = begin, rest[3] = {};
    const long long start = clock64();
#pragma unroll 16
    for (int k = 0; k < loads; ++k) {
        if constexpr (WORDS == 1) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at) :: "memory");
        if constexpr (WORDS == 2) {
            asm volatile("ld.shared.v2.u32 {%0, %1}, [%0];" : "+r"(at), "=r"(rest[0]) :: "memory");
        }
        if constexpr (WORDS == 4) {
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%0];"
                         : "+r"(at), "=r"(rest[0]), "=r"(rest[1]), "=r"(rest[2]) :: "memory");
        }
    }
    const long long end = clock64();
    if (threadIdx.x == 0) *cycles = end - start;
    bool right = at == begin;
    for (int k = 1; k < WORDS; ++k) right &= rest[k - 1] == begin + k * 4;
    if (!right) atomicAdd(wrong, 1);
}

// A phase serves as many lanes as want 128 bytes, twice as many where each wants the same as its neighbour; it takes as
// many requests as there are different words in one bank.
int requests(const int (&index)[32], int width) {
    bool alike = width > 1;
    for (int l = 0; l < 32; l += 2) alike &= index[l] == index[l + 1];
    const int lanes = 32 / width * (alike ? 2 : 1);
    int sum = 0;
    for (int first = 0; first < 32; first += lanes) {
        std::set<int> bank[32];
        for (int l = first; l < first + lanes; ++l) {
            for (int k = 0; k < width; ++k) bank[(index[l] * width + k) % 32].insert(index[l] * width + k);
        }
        size_t most = 0;
        for (const auto& wanted : bank) most = std::max(most, wanted.size());
        sum += static_cast<int>(most);
    }
    return sum;
}

struct pattern {
    int width;  // words
    const char* name;
    int (*index)(int lane);
};

const pattern patterns[] = {
    {1, "lane", [](int l) { return l; }},
    {1, "2*lane", [](int l) { return 2 * l; }},
    {1, "4*lane", [](int l) { return 4 * l; }},
    {1, "32*lane", [](int l) { return 32 * l; }},
    {1, "33*lane", [](int l) { return 33 * l; }},
    {1, "0", [](int) { return 0; }},
    {1, "lane%2*32", [](int l) { return l % 2 * 32; }},
    {1, "lane/2", [](int l) { return l / 2; }},
    {2, "lane", [](int l) { return l; }},
    {2, "2*lane", [](int l) { return 2 * l; }},
    {2, "16*lane", [](int l) { return 16 * l; }},
    {2, "0", [](int) { return 0; }},
    {2, "lane/2", [](int l) { return l / 2; }},
    {2, "lane%16", [](int l) { return l % 16; }},
    {2, "lane%16+16*(lane/16)*2", [](int l) { return l % 16 + 16 * (l / 16) * 2; }},
    {2, "lane^1", [](int l) { return l ^ 1; }},
    {2, "lane/4", [](int l) { return l / 4; }},
    {4, "lane", [](int l) { return l; }},
    {4, "8*lane", [](int l) { return 8 * l; }},
    {4, "9*lane", [](int l) { return 9 * l; }},
    {4, "0", [](int) { return 0; }},
    {4, "lane%8", [](int l) { return l % 8; }},
    {4, "lane/2", [](int l) { return l / 2; }},
    {4, "lane/4", [](int l) { return l / 4; }},
    {4, "lane/8", [](int l) { return l / 8; }},
    {4, "2*lane", [](int l) { return 2 * l; }},
    {4, "lane%16", [](int l) { return l % 16; }},
};

int main() {
    int *index, *wrong;
    long long* cycles;
    CHECK(cudaMalloc(&index, 32 * sizeof(int)));
    CHECK(cudaMalloc(&cycles, sizeof(long long)));
    CHECK(cudaMalloc(&wrong, sizeof(int)));
    CHECK(cudaMemset(wrong, 0, sizeof(int)));
    for (const pattern& p : patterns) {
        int host[32];
        for (int l = 0; l < 32; ++l) host[l] = p.index(l);
        CHECK(cudaMemcpy(index, host, sizeof(host), cudaMemcpyHostToDevice));
        std::vector<double> times;
        for (int r = 0; r <= repetitions; ++r) {
            if (p.width == 1) chase<1><<<1, 32>>>(index, cycles, wrong);
            if (p.width == 2) chase<2><<<1, 32>>>(index, cycles, wrong);
            if (p.width == 4) chase<4><<<1, 32>>>(index, cycles, wrong);
            CHECK(cudaGetLastError());
            long long taken;
            CHECK(cudaMemcpy(&taken, cycles, sizeof(taken), cudaMemcpyDeviceToHost));
            // The first one fetches the code.
            if (r > 0) times.push_back(double(taken) / loads);
        }
        int bad;
        CHECK(cudaMemcpy(&bad, wrong, sizeof(bad), cudaMemcpyDeviceToHost));
        require(bad == 0, "%d bytes, %s: %d lanes loaded something else", p.width * 4, p.name, bad);
        print_row("banks", nullptr, "\"bytes\":%d,\"index\":\"%s\",\"requests\":%d,\"cycles\":%.2f", p.width * 4,
                  p.name, requests(host, p.width), spread(times).median);
    }
}

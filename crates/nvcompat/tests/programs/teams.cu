// Teams that work at the same time: rows of two PEs, of which every other sums in its stream while its neighbours gather or
// broadcast, and columns that sum across both. Up to more than a MiB, with a tail of no whole 16 bytes.
#include "check.h"

static int value(int pe, size_t i) { return pe * 1000003 + (int)(i % 9973) * 7; }

int main() {
    begin();
    const int me = nvshmem_my_pe();
    nvshmem_team_t row = NVSHMEM_TEAM_INVALID, column = NVSHMEM_TEAM_INVALID;
    CHECK_EQ(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &row, nullptr, 0, &column), 0);
    auto members = [](nvshmem_team_t team) {
        std::vector<int> pes;
        for (int i = 0; i < nvshmem_team_n_pes(team); ++i)
            pes.push_back(nvshmem_team_translate_pe(team, i, NVSHMEM_TEAM_WORLD));
        return pes;
    };
    const std::vector<int> in_row = members(row), in_column = members(column);
    auto sum = [](const std::vector<int> &pes, size_t i) {
        int all = 0;
        for (int pe : pes) all += value(pe, i);
        return all;
    };

    // Each round has memory of its own, so nothing keeps one team from being rounds ahead of another.
    const std::vector<size_t> sizes = {1, 4096, 1000, 16384, 300001};
    const int repeats = 4;
    size_t total = 0;
    for (size_t n : sizes) total += n * repeats;
    std::vector<int> values(total);
    for (size_t i = 0; i < total; ++i) values[i] = value(me, i);
    int *source = (int *)nvshmem_malloc(total * sizeof(int)), *of_row = (int *)nvshmem_malloc(2 * total * sizeof(int));
    int *of_column = (int *)nvshmem_malloc(total * sizeof(int));
    CUDA(cudaMemcpy(source, values.data(), total * sizeof(int), cudaMemcpyHostToDevice));
    meet_with_copies();

    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    const bool sums = me / 2 % 2 == 0;
    const int root = (int)in_row.size() - 1;
    size_t at = 0;
    for (int repeat = 0; repeat < repeats; ++repeat)
        for (size_t n : sizes) {
            int *dest = of_row + 2 * at;
            if (sums) {
                CHECK_EQ(nvshmemx_int_sum_reduce_on_stream(row, dest, source + at, n, stream), 0);
            } else if (repeat % 2 == 0) {
                CHECK_EQ(nvshmemx_int_fcollect_on_stream(row, dest, source + at, n, stream), 0);
            } else {
                CHECK_EQ(nvshmemx_int_broadcast_on_stream(row, dest, source + at, n, root, stream), 0);
            }
            CHECK_EQ(nvshmemx_int_sum_reduce_on_stream(column, of_column + at, source + at, n, stream), 0);
            at += n;
        }
    CUDA(cudaStreamSynchronize(stream));

    const auto rows = host(of_row, 2 * total), columns = host(of_column, total);
    at = 0;
    for (int repeat = 0; repeat < repeats; ++repeat)
        for (size_t n : sizes) {
            for (size_t i = 0; i < n; ++i) {
                CHECK_EQ(columns[at + i], sum(in_column, at + i));
                const int *dest = rows.data() + 2 * at;
                if (sums) {
                    CHECK_EQ(dest[i], sum(in_row, at + i));
                } else if (repeat % 2 == 1) {
                    CHECK_EQ(dest[i], value(in_row[root], at + i));
                } else {
                    for (size_t k = 0; k < in_row.size(); ++k) CHECK_EQ(dest[k * n + i], value(in_row[k], at + i));
                }
            }
            at += n;
        }
    return end("teams");
}

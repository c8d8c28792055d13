// A world by unique id, as programs with a launcher of their own make one; then a second one with other numbers.
// RANK, WORLD_SIZE and ID_FILE say who this is and where the id is.
#include "check.h"
#include <unistd.h>
#include <string>

__global__ void sum(int *dest, const int *source) {
    nvshmemx_int_sum_reduce_warp(NVSHMEM_TEAM_WORLD, dest, source, 1);
}

static void world(int rank, int n, const std::string &file) {
    nvshmemx_uniqueid_t id, mine = NVSHMEMX_UNIQUEID_INITIALIZER;
    // Everyone makes one; rank 0's counts.
    CHECK_EQ(nvshmemx_get_uniqueid(&mine), 0);
    if (rank == 0) {
        FILE *out = fopen((file + ".new").c_str(), "wb");
        fwrite(&mine, sizeof(mine), 1, out);
        fclose(out);
        rename((file + ".new").c_str(), file.c_str());
    }
    FILE *in;
    while (!(in = fopen(file.c_str(), "rb"))) usleep(1000);
    CHECK_EQ(fread(&id, sizeof(id), 1, in), 1);
    fclose(in);
    nvshmemx_init_attr_t attributes;  // as others leave it
    memset(&attributes, 0xa5, sizeof(attributes));
    CHECK_EQ(nvshmemx_set_attr_uniqueid_args(rank, n, &id, &attributes), 0);
    CHECK_EQ(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), 0);
    CHECK_EQ(nvshmem_my_pe(), rank);
    CHECK_EQ(nvshmem_n_pes(), n);
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(rank % devices));
    int *source = (int *)nvshmem_malloc(4), *dest = (int *)nvshmem_malloc(4);
    const int value = 5 + rank;
    CUDA(cudaMemcpy(source, &value, 4, cudaMemcpyHostToDevice));
    meet_with_copies();
    sum<<<1, 32>>>(dest, source);
    CUDA(cudaDeviceSynchronize());
    CHECK_EQ(host(dest, 1)[0], 5 * n + n * (n - 1) / 2);
    nvshmem_finalize();
    CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
}

int main() {
    const int rank = atoi(getenv("RANK")), n = atoi(getenv("WORLD_SIZE"));
    const std::string file = getenv("ID_FILE");
    world(rank, n, file + ".first");
    // The ranks the other way round.
    world(n - 1 - rank, n, file + ".second");
    printf("%s unique_id, PE %d of %d\n", failures == 0 ? "PASS" : "FAIL", rank, n);
    return failures != 0;
}

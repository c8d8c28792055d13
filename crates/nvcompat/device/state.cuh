// Programs' kernels have whatever size they like.
#define CROSSWARP_FEW_REGISTERS
// The variable in which kernels find their world. Layout number 1: the library that writes another has another name for
// the functions that units register with.
struct alignas(8) nvshmem_cw_state {
    crosswarp::world_state world;
    // By `nvshmem_team_t`; size 0: no team of this PE's.
    const crosswarp::team* teams;
    int n_teams;
    int pad;
    unsigned long long reserved;
};
static_assert(sizeof(nvshmem_cw_state) == 128, "size of nvshmem_cw_state");
extern "C" {
NVSHMEM_CW_VARIABLE nvshmem_cw_state nvshmem_cw_state_1;
}
#define CROSSWARP_WORLD nvshmem_cw_state_1.world

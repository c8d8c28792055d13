// Programs' kernels have whatever size they like.
#define CROSSWARP_FEW_REGISTERS
// Units for several hosts have the way to those in it, too.
#ifdef NVSHMEM_CW_HOSTS
#define CROSSWARP_ROUTED
#endif
// The variable in which kernels find their world. Layout number 1: the library that writes another has another name for
// the functions that units register with. Of units for several hosts it is larger, by which the linker and the library
// tell them from others.
struct alignas(8) nvshmem_cw_state {
    crosswarp::world_state world;
    // By `nvshmem_team_t`; size 0: no team of this PE's.
    const crosswarp::team* teams;
    int n_teams;
    int pad;
    // What of a heap is memory, changed by the host as memory comes and goes: see `is_memory`. Null: not said.
    const unsigned long long* memory;
#ifdef NVSHMEM_CW_HOSTS
    crosswarp::route_state route;
    unsigned long long reserved_behind[3];
#endif
};
static_assert(sizeof(nvshmem_cw_state) == 8 * NVSHMEM_CW_STATE_WORDS, "size of nvshmem_cw_state");
extern "C" {
NVSHMEM_CW_VARIABLE nvshmem_cw_state nvshmem_cw_state_1;
}
#define CROSSWARP_WORLD nvshmem_cw_state_1.world
#define CROSSWARP_WORLD_ROUTE nvshmem_cw_state_1.route

// A PE inside a kernel: who I am, and where the others' memory is.
//
// The host writes `crosswarp_world` into every module it loads. All heaps of the world are mapped side
// by side in this PE's address space, `stride` bytes apart in PE order, so a peer's copy of a symmetric
// object is one multiply and one add away and needs no table.
#pragma once
#include "block.cuh"
#include "layout.cuh"

namespace crosswarp {

// One thread alone, as a scope of the verbs below beside `warp` and `block`.
class thread {
  public:
    __device__ int rank() const { return 0; }
    __device__ int size() const { return 1; }
    __device__ void sync() const {}
};

}  // namespace crosswarp

#ifdef CROSSWARP_WORLD
// Who includes this keeps the world, and the way to PEs of other hosts, in variables of its own.
#define crosswarp_world CROSSWARP_WORLD
#define crosswarp_route CROSSWARP_WORLD_ROUTE
#else
// The host sees by this name which of the two a module was compiled for.
#ifdef CROSSWARP_ROUTED
#define crosswarp_world crosswarp_world_of_hosts
#endif
extern "C" {
// One for a module: with relocatable device code (`nvcc -rdc=true`) every unit defines it and the linker keeps one.
#ifdef __CUDACC_RDC__
inline
#endif
    __constant__ crosswarp::world_state crosswarp_world;

#ifdef CROSSWARP_ROUTED
#ifdef __CUDACC_RDC__
inline
#endif
    __constant__ crosswarp::route_state crosswarp_route;
#endif
}
#endif

namespace crosswarp {

__device__ inline int my_pe() { return crosswarp_world.my_pe; }
__device__ inline int n_pes() { return crosswarp_world.n_pes; }
__device__ inline const team& world() { return crosswarp_world.all; }

namespace detail {
// Whether the memory of `pe` is mapped here. In a world of one host all is, and nothing looks. With the macro
// CROSSWARP_ROUTED, which the host defines for a world of several, the verbs have PEs of other hosts reached by way of
// their hosts (pe/route.cuh).
#ifdef CROSSWARP_ROUTED
__device__ inline bool mapped(int pe) { return crosswarp_route.mapped == nullptr || crosswarp_route.mapped[pe] != 0; }
#define CROSSWARP_ROUTE(pe, call)              \
    if (!::crosswarp::detail::mapped(pe)) {    \
        using namespace ::crosswarp::detail;   \
        return call;                           \
    }
// Of functions that are called there, not inlined: that halves the time of compilation, and a trip to another host takes
// longer than a call.
#define CROSSWARP_CALLED __noinline__
#else
#define CROSSWARP_ROUTE(pe, call)
#define CROSSWARP_CALLED
#endif

// The pointer to an address in a heap. The compiler learns that it is none of shared or local memory, and takes the
// instructions for global memory instead of those that find out.
template <class T> __device__ inline T* in_global_memory(u64 address) {
    return static_cast<T*>(__cvta_global_to_generic(address));
}
}  // namespace detail

// Where `pe` keeps what this PE keeps at `local` (an address in my symmetric heap); null if `pe` is on another host.
template <class T> __device__ inline T* ptr(T* local, int pe) {
#ifdef CROSSWARP_ROUTED
    if (!detail::mapped(pe)) return nullptr;
#endif
    i64 away = (i64)(pe - my_pe()) * (i64)crosswarp_world.stride;
    return detail::in_global_memory<T>(reinterpret_cast<u64>(local) + away);
}

// The address on this PE of a heap offset.
template <class T> __device__ inline T* at(u64 offset) {
    return detail::in_global_memory<T>(crosswarp_world.heap + offset);
}

}  // namespace crosswarp

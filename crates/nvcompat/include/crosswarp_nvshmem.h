/* Programs written for NVSHMEM, over Crosswarp. Made from one table; not affiliated with NVIDIA.
 *
 * Every header of NVSHMEM's that programs include leads here. Nothing else is needed for kernels: no device library, and
 * no relocatable device code, though both modes work. Define NVSHMEM_HOSTLIB_ONLY before the first include to leave
 * kernels out, and NVSHMEM_CW_HOSTS, in all units of a program, to have kernels reach PEs of other hosts. Words beginning
 * with nvshmem_cw_ or NVSHMEM_CW_ are this implementation's own.
 */
#ifndef NVSHMEM_CW_HEADER
#define NVSHMEM_CW_HEADER

#ifdef __CUDACC_RTC__
/* Without the toolkit's headers, which may not be there. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long ptrdiff_t;
#else
#include <stddef.h>
#include <stdint.h>
#include <cuda_runtime.h>
#endif
#include "non_abi/nvshmem_version.h"

/* Programs count on the original's header, which wants relocatable device code, to bring atomic references and what comes
 * with them (cuda::std::swap). It wants C++17, and takes two fifths of a unit's compilation, which units that are not for
 * the original are spared. */
#if defined(__CUDACC_RDC__) && !defined(NVSHMEM_HOSTLIB_ONLY) && __cplusplus >= 201703L && defined(__has_include)
#if __has_include(<cuda/atomic>)
#include <cuda/atomic>
#define NVSHMEM_CW_LIBCUDACXX
#endif
#endif

/* half and bfloat16 are the toolkit's. */
#if defined(__cplusplus) && defined(__has_include)
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define NVSHMEM_CW_HALF
#endif
#endif

/* The version of the specification that names and meanings follow, and the name. */
#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_MAX_NAME_LEN 256
#define NVSHMEM_VENDOR_STRING "Crosswarp: runs programs written for NVSHMEM"

enum {
    NVSHMEM_CMP_EQ = 0,
    NVSHMEM_CMP_NE = 1,
    NVSHMEM_CMP_GT = 2,
    NVSHMEM_CMP_LE = 3,
    NVSHMEM_CMP_LT = 4,
    NVSHMEM_CMP_GE = 5
};
enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };
enum { NVSHMEM_THREAD_SINGLE = 0, NVSHMEM_THREAD_FUNNELED = 1, NVSHMEM_THREAD_SERIALIZED = 2, NVSHMEM_THREAD_MULTIPLE = 3 };

typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;
enum {
    NVSHMEM_TEAM_INVALID = -1,
    NVSHMEM_TEAM_WORLD = 0,
    NVSHMEM_TEAM_SHARED = 1,
    NVSHMEMX_TEAM_NODE = 2,
    NVSHMEMX_TEAM_SAME_MYPE_NODE = 3
};
#define NVSHMEM_TEAM_NUM_CONTEXTS 1

/* What nvshmemx_init_status returns. */
enum {
    NVSHMEM_STATUS_NOT_INITIALIZED = 0,
    NVSHMEM_STATUS_IS_BOOTSTRAPPED = 1,
    NVSHMEM_STATUS_IS_INITIALIZED = 2,
    NVSHMEM_STATUS_LIMITED_MPG = 3,
    NVSHMEM_STATUS_FULL_MPG = 4
};
/* What functions that return a status return; 0 is success. */
enum {
    NVSHMEMX_SUCCESS = 0,
    NVSHMEMX_ERROR_INVALID_VALUE = 1,
    NVSHMEMX_ERROR_OUT_OF_MEMORY = 2,
    NVSHMEMX_ERROR_NOT_SUPPORTED = 3,
    NVSHMEMX_ERROR_SYMMETRY = 4,
    NVSHMEMX_ERROR_GPU_NOT_SELECTED = 5,
    NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED = 6,
    NVSHMEMX_ERROR_INTERNAL = 7
};
/* Flags of nvshmemx_init_attr. */
enum { NVSHMEMX_INIT_WITH_MPI_COMM = 2, NVSHMEMX_INIT_WITH_SHMEM = 4, NVSHMEMX_INIT_WITH_UNIQUEID = 8 };

/* Names a world; what is in it is the library's. Bytes may be copied and sent as they are. */
typedef struct {
    int version;
    char bytes[124];
} nvshmemx_uniqueid_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER { 1, { 0 } }

/* How a world comes about: a communicator, or what nvshmemx_set_attr_uniqueid_args sets. */
typedef struct {
    int version;
    void *mpi_comm;
    nvshmemx_uniqueid_t uniqueid;
    int rank;
    int n_pes;
} nvshmemx_init_attr_t;
#define NVSHMEMX_INIT_ATTR_INITIALIZER { 1, 0, NVSHMEMX_UNIQUEID_INITIALIZER, 0, 0 }

/* Names a team that its PEs make without a parent. */
typedef uint64_t nvshmemx_team_uniqueid_t;
typedef struct {
    int version;
    int num_contexts;
    nvshmemx_team_uniqueid_t uniqueid;
} nvshmem_team_config_t;
#define NVSHMEM_TEAM_CONFIG_INITIALIZER { 1, 0, 0 }
/* Which members of a configuration are looked at. */
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS 1L
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID 2L

/* Queue pairs: handles mean nothing here, for PEs reach each other's memory directly. */
typedef int nvshmemx_qp_handle_t;
typedef enum {
    NVSHMEMX_QP_HOST = 0,
    NVSHMEMX_QP_DEFAULT = 1,
    NVSHMEMX_QP_ANY = 2,
    NVSHMEMX_QP_ALL = 3
} nvshmemx_qp_handle_index_t;
enum { NVSHMEMX_PE_ANY = -1, NVSHMEMX_PE_ALL = -2 };

#ifdef __cplusplus
#define NVSHMEM_CW_C extern "C"
#else
#define NVSHMEM_CW_C extern
#endif

#if (defined(__CUDACC__) || defined(__CUDACC_RTC__)) && !defined(NVSHMEM_HOSTLIB_ONLY)
#define NVSHMEM_CW_WITH_KERNELS
#endif

/* ==== Tiles. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#include "crosswarp_nvshmem_tile.h"
#define NVSHMEM_CW_WITH_TILES
#endif

/* ==== The host. */
#ifndef __CUDACC_RTC__

typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;

#define NVSHMEM_CW_HOST NVSHMEM_CW_C
@HOST@
/* A variable of the program, in which kernels find their world, by its address on the current device. The 1 is the number
 * of the variable's layout: a library that writes another does not have these functions, and the loader says so. */
NVSHMEM_CW_C void nvshmem_cw_register_1(void *(*address)(void));
/* The same of a unit for several hosts, whose variable is larger. */
NVSHMEM_CW_C void nvshmem_cw_register_of_hosts_1(void *(*address)(void));
NVSHMEM_CW_C void nvshmem_cw_unregister_1(void *(*address)(void));
/* Runs body(argument) on n_pes threads, each of which is a PE of one world: there nvshmem_init joins it, and all functions
 * of the host are that PE's. A process has one world at a time. Kernels of the program's own units are on a GPU for each
 * PE; PEs that share one wait for others in streams of their own that do not wait for the default stream. Stacks are as
 * large as main's. 0, or a status, with a line. */
NVSHMEM_CW_C int nvshmem_cw_spmd(int n_pes, void (*body)(void *), void *argument);
/* Brings the library up to where kernels can be launched; 0 if it is. */
NVSHMEM_CW_C int nvshmem_cw_prepare_1(void);
/* The smallest value of all PEs. */
NVSHMEM_CW_C long nvshmem_cw_smallest_1(long value);

/* The most blocks that can run at once here, of all PEs. */
static inline int nvshmemx_collective_launch_query_gridsize(const void *func, dim3 blockDims, void **args,
                                                            size_t sharedMem, int *gridsize) {
    int device = 0, processors = 0, per_processor = 0;
    (void)args;
    *gridsize = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, func, (int)(blockDims.x * blockDims.y * blockDims.z),
                                                      sharedMem) != cudaSuccess)
        return NVSHMEMX_ERROR_INTERNAL;
    *gridsize = processors * per_processor;
    return NVSHMEMX_SUCCESS;
}

/* Launches kernels that wait for one another, on all PEs or on none. Collective. */
static inline int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims, void **args, size_t sharedMem,
                                             cudaStream_t stream) {
    int most = 0, chosen = 0, status = nvshmem_cw_prepare_1();
    if (status != 0) return status;
    status = nvshmemx_collective_launch_query_gridsize(func, blockDims, args, sharedMem, &most);
    chosen = gridDims.x == 0 || gridDims.y == 0 || gridDims.z == 0;
    if (status == NVSHMEMX_SUCCESS && (most == 0 || (!chosen && (double)gridDims.x * gridDims.y * gridDims.z > most)))
        status = NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED;
    if (nvshmem_cw_smallest_1(status == NVSHMEMX_SUCCESS ? most : -1) < 0)
        return status != NVSHMEMX_SUCCESS ? status : NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED;
    if (chosen) {
        gridDims.x = (unsigned)most;
        gridDims.y = gridDims.z = 1;
    }
    return cudaLaunchCooperativeKernel(func, gridDims, blockDims, args, sharedMem, stream) == cudaSuccess
               ? NVSHMEMX_SUCCESS
               : NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED;
}
#endif

/* ==== Names of the host and of kernels. In kernels they are defined below. */
#if !defined(__CUDA_ARCH__) && !defined(__CUDACC_RTC__) || !defined(NVSHMEM_CW_WITH_KERNELS)
#ifdef NVSHMEM_CW_WITH_KERNELS
#define NVSHMEM_CW_BOTH extern "C" __host__ __device__
#else
#define NVSHMEM_CW_BOTH NVSHMEM_CW_C
#endif
@BOTH@
#endif

/* ==== Kernels. */
#ifdef NVSHMEM_CW_WITH_KERNELS

/* C++11 and 14 have what is used here of later ones, with a warning each. */
#if defined(__clang__) && !defined(__NVCC__)
#define NVSHMEM_CW_CLANG
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++17-extensions"
#else
#pragma nv_diagnostic push
#pragma nv_diag_suppress 2912, 3033, 3450
#endif
#if defined(__GNUC__) && !defined(__CUDA_ARCH__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wc++17-extensions"
#endif

/* One for a module: with relocatable device code every unit defines it and the linker keeps one. */
#ifdef __CUDACC_RDC__
#define NVSHMEM_CW_VARIABLE __attribute__((visibility("hidden"))) inline __constant__
#else
#define NVSHMEM_CW_VARIABLE __constant__
#endif

#ifdef NVSHMEM_CW_HOSTS
#define NVSHMEM_CW_STATE_WORDS 32
#define NVSHMEM_CW_REGISTER nvshmem_cw_register_of_hosts_1
#else
#define NVSHMEM_CW_STATE_WORDS 16
#define NVSHMEM_CW_REGISTER nvshmem_cw_register_1
#endif

#if defined(__CUDA_ARCH__) || defined(__CUDACC_RTC__)

#include "crosswarp_nvshmem_device.cuh"

#define NVSHMEM_CW_DEFINE extern "C" __device__ inline
#define NVSHMEM_CW_DEFINE_BOTH extern "C" __host__ __device__ inline
struct nvshmem_cw_unit8 { unsigned char bits; };
struct nvshmem_cw_unit16 { unsigned short bits; };
struct nvshmem_cw_unit32 { unsigned int bits; };
struct nvshmem_cw_unit64 { unsigned long long bits; };
struct alignas(16) nvshmem_cw_unit128 { unsigned long long bits[2]; };
@DEFINITIONS@
#else

#define NVSHMEM_CW_KERNELS extern "C" __device__
@KERNELS@
/* As large as in kernels; who they are is none of the host's concern. */
struct alignas(8) nvshmem_cw_state { unsigned long long words[NVSHMEM_CW_STATE_WORDS]; };
extern "C" {
NVSHMEM_CW_VARIABLE nvshmem_cw_state nvshmem_cw_state_1;
}

namespace {
/* Tells the library of this unit's variable. The address is taken here, as another unit may have another CUDA runtime. */
struct nvshmem_cw_registrar {
    static void *address() {
        void *at = nullptr;
        return cudaGetSymbolAddress(&at, nvshmem_cw_state_1) == cudaSuccess ? at : nullptr;
    }
    nvshmem_cw_registrar() { NVSHMEM_CW_REGISTER(address); }
    ~nvshmem_cw_registrar() { nvshmem_cw_unregister_1(address); }
};
__attribute__((used)) nvshmem_cw_registrar nvshmem_cw_registrar_of_this_unit;
}  // namespace

#endif

/* ==== Tiles in kernels. */
#ifdef NVSHMEM_CW_WITH_TILES
namespace nvshmemx {
#if defined(__CUDA_ARCH__) || defined(__CUDACC_RTC__)
#define NVSHMEM_CW_TILE_DOES(...) { __VA_ARGS__ }
#else
#define NVSHMEM_CW_TILE_DOES(...) ;
#endif
/* Of a scope, whose threads all call. `flags` mean nothing. Where start_coord and boundary are shapes, an element is there
 * if its place from start_coord on is before boundary in every dimension; of an empty structure's type, all are. Non-zero,
 * and nothing is moved, for a PE or team that does not exist, for a destination that is smaller, for tiles of 2^31 elements
 * (words, where an element is of several), and for rows of 4 GiB. */
#define NVSHMEM_CW_TILE_FUNCTIONS(FORM, SCOPE)                                                                          \
    template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>                                  \
    __device__ int tile_put##FORM(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe,    \
                                  uint64_t flags)                                                                       \
    NVSHMEM_CW_TILE_DOES(static_assert(                                                                                 \
        algo == tile_algo_t::PEER_PUSH_NBI || algo == tile_algo_t::REMOTE_PUSH_NBI, "a put pushes");                    \
        return crosswarp_nvshmem::tile_put<crosswarp_nvshmem::SCOPE>(src, dst, start_coord, boundary, pe);)             \
    template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>                                  \
    __device__ int tile_get##FORM(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe,    \
                                  uint64_t flags)                                                                       \
    NVSHMEM_CW_TILE_DOES(static_assert(                                                                                 \
        algo == tile_algo_t::PEER_PULL_NBI || algo == tile_algo_t::REMOTE_PULL_NBI, "a get pulls");                     \
        return crosswarp_nvshmem::tile_get<crosswarp_nvshmem::SCOPE>(src, dst, start_coord, boundary, pe);)             \
    template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>                             \
    __device__ int tile_allgather##FORM(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord,   \
                                        tuple_t boundary, uint64_t flags)                                               \
    NVSHMEM_CW_TILE_DOES(                                                                                               \
        static_assert(algo == tile_coll_algo_t::NVLS_ONE_SHOT_PUSH_NBI, "a gathering pushes");                          \
        return crosswarp_nvshmem::tile_allgather<crosswarp_nvshmem::SCOPE>(team, src, dst, start_coord, boundary);)     \
    template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>                             \
    __device__ int tile_broadcast##FORM(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord,   \
                                        tuple_t boundary, uint64_t flags)                                               \
    NVSHMEM_CW_TILE_DOES(                                                                                               \
        static_assert(algo == tile_coll_algo_t::NVLS_ONE_SHOT_PUSH_NBI, "a broadcast pushes");                          \
        return crosswarp_nvshmem::tile_broadcast<crosswarp_nvshmem::SCOPE>(team, src, dst, start_coord, boundary);)     \
    template <tile_coll_algo_t algo> __device__ int tile_collective_wait##FORM(nvshmem_team_t team, uint64_t flags)     \
    NVSHMEM_CW_TILE_DOES(return crosswarp_nvshmem::barrier<crosswarp_nvshmem::SCOPE>(team);)
NVSHMEM_CW_TILE_FUNCTIONS(, thread)
NVSHMEM_CW_TILE_FUNCTIONS(_warp, warp)
NVSHMEM_CW_TILE_FUNCTIONS(_warpgroup, warpgroup)
NVSHMEM_CW_TILE_FUNCTIONS(_block, block)
#undef NVSHMEM_CW_TILE_FUNCTIONS
#undef NVSHMEM_CW_TILE_DOES
}  // namespace nvshmemx
#endif

#if defined(__GNUC__) && !defined(__CUDA_ARCH__)
#pragma GCC diagnostic pop
#endif
#ifdef NVSHMEM_CW_CLANG
#pragma clang diagnostic pop
#else
#pragma nv_diagnostic pop
#endif
#endif

#endif

/* The release of NVSHMEM whose names and meanings these headers have. */
#ifndef NVSHMEM_CW_VERSION
#define NVSHMEM_CW_VERSION
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 5
#define NVSHMEM_VENDOR_PACKAGE_VERSION 0
#endif

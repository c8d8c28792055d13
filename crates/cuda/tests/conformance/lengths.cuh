// The lengths that collectives are tried with.
#pragma once
#include "common.cuh"

namespace {

// Calls body(n) for payloads that travel in slots and for larger ones, if n elements for every PE and one more fit into
// `bytes`.
template <class T, class Body> __device__ void for_lengths(u64 bytes, Body body) {
#ifdef ONE_TYPE_PER_SCOPE
    const u64 lengths[] = {0, 5, small_bytes / sizeof(T) + 1};
#else
    const u64 lengths[] = {0, 1, 2, 5, 31, small_bytes / sizeof(T), small_bytes / sizeof(T) + 1, 3001};
#endif
    for (u64 n : lengths) {
        if ((n * n_pes() + 1) * sizeof(T) <= bytes) body(n);
    }
}

}  // namespace

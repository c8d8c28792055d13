// Waiting for packets, a whole warp.
#pragma once
#include "pe.cuh"

namespace crosswarp {

// As `spin`: looks until everything has come, the time is up, or the host says that a PE is gone. `missing()` is the
// address of a packet that was asked for, to report.
template <class Look, class Missing>
__device__ __forceinline__ bool wait_for_packets(Look look, Missing missing, u32 generation) {
    u64 limit = crosswarp_world.timeout_ns, start = 0;
    for (u32 looks = 1; !look(); ++looks) {
        // The clock and the flags are slow to read.
        if (looks % 256 != 0) continue;
        const u64* word = missing();
        bool over = false;
        if ((threadIdx.x & 31) == 0) {
            if (start == 0) start = nanoseconds();
            over = given_up();
            // A solve takes every PE to its end.
            int gone = looks % 16384 == 0 ? gone_for_peer(everyone) : -1;
            if (!over && (gone >= 0 || (limit != 0 && nanoseconds() - start > limit))) {
                give_up(wait_value, everyone, word, generation, load_volatile(word) >> 32, gone);
                over = true;
            }
        }
        if (__shfl_sync(0xffffffffu, over, 0)) return false;
    }
    return true;
}

}  // namespace crosswarp

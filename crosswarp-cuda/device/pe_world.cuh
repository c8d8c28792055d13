// A PE inside a kernel: who I am, where the others' memory is, and how to wait.
//
// The host writes `crosswarp_world` into every module it loads. All heaps of the world are mapped side
// by side in this PE's address space, `stride` bytes apart in PE order, so a peer's copy of a symmetric
// object is one multiply and one add away and needs no table.
#pragma once
#include "block.cuh"

namespace crosswarp {

// One thread alone, as a scope of the verbs below beside `warp` and `block`.
class thread {
  public:
    __device__ int rank() const { return 0; }
    __device__ int size() const { return 1; }
    __device__ void sync() const {}
};

// What a kernel leaves behind when a wait runs out of time. In memory the host can read.
struct wait_record {
    u32 state;  // 0: none, 1: being written, 2: complete, 3: none, but the host says that waits shall give up
    u32 what;   // 1: signal or value, 2: meeting of a team
    i32 pe;     // the PE that waited
    i32 peer;   // the PE waited for, -1 if anyone
    u64 offset;    // heap offset of the word
    u64 expected;
    u64 seen;
};

// A set of PEs that meet: `start`, `start + stride`, … (`size` of them). `scratch` is the heap offset
// of the team's `team_scratch`, the same on all its PEs; `stage` that of the slots of `stage_blocks`
// blocks for large reductions (pe_staged.cuh), 0 if the team has none.
struct team {
    i32 me;
    i32 size;
    i32 start;
    i32 stride;
    u64 scratch;
    u64 stage;
    u64 stage_blocks;

    __device__ int pe(int rank) const { return start + rank * stride; }
};

struct world_state {
    i32 my_pe;
    i32 n_pes;
    u64 heap;
    u64 stride;
    u64 heap_bytes;
    u64 timeout_ns;  // 0: no limit
    wait_record* record;  // in host memory
    u32* gave_up;         // in this GPU's memory: 1 after a wait of this PE ran out of time
    team all;
};

}  // namespace crosswarp

extern "C" {
// One for a module: with relocatable device code (`nvcc -rdc=true`) every unit defines it and the linker keeps one.
#ifdef __CUDACC_RDC__
inline
#endif
    __constant__ crosswarp::world_state crosswarp_world;
}

namespace crosswarp {

__device__ inline int my_pe() { return crosswarp_world.my_pe; }
__device__ inline int n_pes() { return crosswarp_world.n_pes; }
__device__ inline const team& world() { return crosswarp_world.all; }

// Where `pe` keeps what this PE keeps at `local` (an address in my symmetric heap).
template <class T> __device__ inline T* ptr(T* local, int pe) {
    i64 away = (i64)(pe - my_pe()) * (i64)crosswarp_world.stride;
    return reinterpret_cast<T*>(reinterpret_cast<u64>(local) + away);
}

// The address on this PE of a heap offset.
template <class T> __device__ inline T* at(u64 offset) {
    return reinterpret_cast<T*>(crosswarp_world.heap + offset);
}

__device__ inline u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Whether a wait on this PE was given up since the host last asked; then the rest need not try.
__device__ inline bool given_up() {
    return crosswarp_world.gave_up != nullptr && load_volatile(crosswarp_world.gave_up) != 0;
}

// Says what was waited for; the first to give up is the one reported.
__device__ inline void give_up(u32 what, int peer, const void* word, u64 expected, u64 seen) {
    wait_record* record = crosswarp_world.record;
    *const_cast<volatile u32*>(crosswarp_world.gave_up) = 1;
    if (atomicCAS_system(&record->state, 0u, 1u) != 0 && atomicCAS_system(&record->state, 3u, 1u) != 3) return;
    record->what = what;
    record->pe = my_pe();
    record->peer = peer;
    record->offset = reinterpret_cast<u64>(word) - crosswarp_world.heap;
    record->expected = expected;
    record->seen = seen;
    // The host reads the record when it sees state 2.
    __threadfence_system();
    *const_cast<volatile u32*>(&record->state) = 2;
}

// Spins until `look()`; false if the world's time limit passed first, or the host says that another PE is gone.
// `seen()` is what to report.
template <class Look, class Seen>
__device__ inline bool spin(Look look, u32 what, int peer, const void* word, u64 expected, Seen seen) {
    if (look()) return true;
    // Without a world nobody could tell.
    if (crosswarp_world.record == nullptr) {
        while (!look()) {}
        return true;
    }
    u64 limit = crosswarp_world.timeout_ns;
    u64 start = limit == 0 ? 0 : nanoseconds();
    // The clock and the flag are slow to read; a limit is at least microseconds.
    for (u32 looks = 1; !look(); ++looks) {
        if (looks % 256 != 0) continue;
        if (given_up()) return false;
        // The record is far away; a look at it now and then is soon enough.
        bool told = looks % 16384 == 0 && load_volatile(&crosswarp_world.record->state) == 3;
        if (told || (limit != 0 && nanoseconds() - start > limit)) {
            give_up(what, peer, word, expected, seen());
            return false;
        }
    }
    return true;
}

}  // namespace crosswarp

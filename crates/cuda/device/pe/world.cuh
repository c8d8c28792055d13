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

// What a kernel leaves behind when a wait ends in vain. In memory the host can read.
struct wait_record {
    u32 state;  // 0: none, 2: complete
    u32 what;   // 1: value, 2: rendezvous of a team, 3: a PE came to the rendezvous with another collective
    i32 pe;     // the PE that waited
    i32 peer;   // the PE waited for, or `anyone` or `everyone`
    u64 offset;    // heap offset of the word
    u64 expected;  // of 2: the rendezvous's number; of 3: this PE's collective (detail::collective)
    u64 seen;
    i32 gone;   // the PE that failed or left, so that the wait was hopeless; -1: it ran out of time
    i32 pad;
};

// What a wait may be for beside one PE: a value that anyone may write, so it is hopeless only when all others are
// gone; or something that takes every PE of the world.
constexpr int anyone = -1, everyone = -2;

// A set of PEs that meet: `start`, `start + stride`, … (`size` of them). `scratch` is the heap offset
// of the team's `team_scratch`, the same on all its PEs; `stage` that of the slots of `stage_blocks`
// blocks for large reductions (pe/staged.cuh), 0 if the team has none.
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
    u32* gave_up;         // in this GPU's memory: 1 after a wait of this PE ended in vain
    const u32* gone;      // in host memory, see `gone_peer`
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

// The PE because of which a wait for `peer` is hopeless, or -1. The host writes, for whoever looks now and then
// (it is far away): gone[0] not 0 if any PE is gone; gone[1] 1 + the PE that ends all waits, because it failed or
// because this PE takes its world down; gone[2 + i] not 0 if PE i has left, and what it sent has arrived.
__device__ inline int gone_peer(int peer) {
    const u32* gone = crosswarp_world.gone;
    if (gone == nullptr || load_volatile(gone) == 0) return -1;
    u32 end = load_volatile(gone + 1);
    if (end != 0) return (int)end - 1;
    if (peer >= 0) return load_volatile(gone + 2 + peer) != 0 ? peer : -1;
    int first = -1, left = 0;
    for (int pe = 0; pe < n_pes(); ++pe) {
        if (load_volatile(gone + 2 + pe) == 0) continue;
        if (first < 0) first = pe;
        ++left;
    }
    return peer == everyone || left >= n_pes() - 1 ? first : -1;
}

// Says what was waited for; the first to give up is the one reported.
__device__ inline void give_up(u32 what, int peer, const void* word, u64 expected, u64 seen, int gone = -1) {
    // Not by the record itself: it is in host memory, where a GPU's atomics need not be atomic.
    if (atomicExch(crosswarp_world.gave_up, 1u) != 0) return;
    wait_record* record = crosswarp_world.record;
    record->what = what;
    record->pe = my_pe();
    record->peer = peer;
    record->offset = reinterpret_cast<u64>(word) - crosswarp_world.heap;
    record->expected = expected;
    record->seen = seen;
    record->gone = gone;
    // The host reads the record when it sees state 2.
    __threadfence_system();
    *const_cast<volatile u32*>(&record->state) = 2;
}

namespace detail {

// Who a wait is for, and what else ends it: one PE, `anyone` or `everyone`.
struct waits_for {
    int peer;
    __device__ int name() const { return peer; }
    __device__ int gone() const { return gone_peer(peer); }
    // Whether something came that shows that the wait can not end; it is then reported.
    __device__ bool mismatch() const { return false; }
};

// As `spin` below; `who` is like `waits_for`.
template <class Look, class Who, class Seen>
__device__ inline bool spin_for(Look look, u32 what, Who who, const void* word, u64 expected, Seen seen) {
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
        // The list is far away; a look at it now and then is soon enough.
        bool far = looks % 16384 == 0;
        if (far && who.mismatch()) return false;
        int gone = far ? who.gone() : -1;
        // What the PE that is gone sent before may have come meanwhile.
        if (gone >= 0 && look()) return true;
        if (gone >= 0 || (limit != 0 && nanoseconds() - start > limit)) {
            give_up(what, who.name(), word, expected, seen(), gone);
            return false;
        }
    }
    return true;
}

}  // namespace detail

// Spins until `look()`; false if the world's time limit passed first, or the host says that `peer` (a PE, `anyone` or
// `everyone`) is gone. `seen()` is what to report.
template <class Look, class Seen>
__device__ inline bool spin(Look look, u32 what, int peer, const void* word, u64 expected, Seen seen) {
    return detail::spin_for(look, what, detail::waits_for{peer}, word, expected, seen);
}

}  // namespace crosswarp

// How a kernel waits for other PEs: it looks again and again, and gives up when what it waits for can not come or the
// world's time limit has passed. What it waited for in vain stands in `wait_record`, which the host reads.
#pragma once
#include "pe/inbox.cuh"

namespace crosswarp {

__device__ inline u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Whether a wait on this PE was given up since the host last asked; then the rest need not try.
__device__ inline bool given_up() {
    return crosswarp_world.gave_up != nullptr && load_volatile(crosswarp_world.gave_up) != 0;
}

// The PE because of which a wait for `peer` (a PE, `anyone` or `everyone`) is hopeless, or -1. The host writes the list (see
// `gone_any`), for whoever looks now and then, as it is far away. (A loop here over the PEs made long code, behind which the
// end of a wait lay far from its looks: that cost a signal 15 ns there and back, a barrier 2 %.)
__device__ inline int gone_for_peer(int peer) {
    const u32* gone = crosswarp_world.gone;
    if (gone == nullptr || load_volatile(gone + gone_any) == 0) return -1;
    const u32 end = load_volatile(gone + gone_end);
    return (int)(end != 0 ? end : load_volatile(gone + gone_for + peer)) - 1;
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
    // The host reads the record when it sees this state.
    __threadfence_system();
    *const_cast<volatile u32*>(&record->state) = record_complete;
}

// Looks of a wait for one word between two counts. (A signal took 1.413 µs there and back where each was counted, 1.396 with
// four and 1.391 where none was; two H200.)
constexpr int looks_at_a_word = 4;

namespace detail {

// Who a wait is for, and what else ends it: one PE, `anyone` or `everyone`.
struct waits_for {
    int peer;
    __device__ int name() const { return peer; }
    __device__ int gone() const { return gone_for_peer(peer); }
    // Whether something came that shows that the wait can not end; it is then reported.
    __device__ bool mismatch() const { return false; }
};

// As `spin` below; `who` is like `waits_for`.
template <int looks = 1, class Done, class Who, class Seen>
__device__ inline bool spin_for(Done done, u32 what, Who who, const void* word, u64 expected, Seen seen) {
    static_assert(looks > 0 && 16 % looks == 0, "counts meet what is done every 16 and 256 looks");
    if (done()) return true;
    // Without a world nobody could tell.
    if (crosswarp_world.record == nullptr) {
        while (!done()) {}
        return true;
    }
    const u64 start = crosswarp_world.timeout_ns == 0 ? 0 : nanoseconds();
    // The clock and the flag are slow to read; a limit is at least microseconds. Looks have a loop of their own: with the
    // rest between its jumps a signal took 1.44 µs there and back, instead of 1.41 (two H200). One counter for both: with
    // two, a broadcast in blocks of 1024 threads had too few registers.
    u32 tries = 0;
    for (;;) {
#pragma unroll 1
        for (;;) {
#pragma unroll
            for (int look = 0; look < looks; ++look) {
                if (done()) return true;
            }
            tries += looks;
#ifdef CROSSWARP_ROUTED
            if (tries % 16 == 0) serve_inbox();
#endif
            if (tries % 256 == 0) break;
        }
        if (given_up()) return false;
        // The list is far away; now and then is soon enough.
        bool far = tries % 16384 == 0;
        if (far && who.mismatch()) return false;
        int gone = far ? who.gone() : -1;
        // What the PE that is gone sent before may have come meanwhile.
        if (gone >= 0 && done()) return true;
        const u64 limit = crosswarp_world.timeout_ns;
        if (gone >= 0 || (limit != 0 && nanoseconds() - start > limit)) {
            give_up(what, who.name(), word, expected, seen(), gone);
            return false;
        }
    }
}

}  // namespace detail

// Spins until `done()`; false if the world's time limit passed first, or the host says that `peer` (a PE, `anyone` or
// `everyone`) is gone. `seen()` is what to report. `looks`: how often it looks before it counts, a power of two up to 16.
template <int looks = 1, class Done, class Seen>
__device__ inline bool spin(Done done, u32 what, int peer, const void* word, u64 expected, Seen seen) {
    return detail::spin_for<looks>(done, what, detail::waits_for{peer}, word, expected, seen);
}

}  // namespace crosswarp

// Reductions of teams with PEs on other hosts, whose memory kernels can't load from: all values travel by puts.
#pragma once
#include "pe/rendezvous.cuh"

#ifdef CROSSWARP_ROUTED
namespace crosswarp {

namespace detail {

// Room for what every rank puts here in a rendezvous, for pieces of a longer array: the slots, or those for large
// reductions where the team has them. There are two sets of either; one is written again after the next rendezvous,
// which a PE enters when it has read it.
struct put_room {
    const team& t;
    const bool large;
    static_assert(staged_sets == 2, "a set for each of two rendezvous");

    __device__ put_room(const team& t, u64 bytes) : t(t), large(t.stage != 0 && bytes > small_units * sizeof(vec16)) {}
    // Vectors of one rank in a set.
    __device__ u64 vectors() const { return large ? t.stage_blocks * staged_vectors : small_units; }
    __device__ const vec16* of(u64 number, int rank) const {
        return large ? stage(t).slot(rank, 0, 0) + (number & 1) * vectors() : slots_of(t, number, rank);
    }
};

// What the ranks put in a rendezvous: rank r gets the bytes of an array from `of(r)` on, `count` or as many as there are.
struct put_parts {
    u64 first, step, count, end;

    __device__ u64 of(int rank) const { return first + step * rank < end ? first + step * rank : end; }
    __device__ u64 bytes(int rank) const { return end - of(rank) < count ? end - of(rank) : count; }
};

// Puts to every other rank its part of `source`, into its room, and meets it.
//
// Not inlined, and in bytes, as all beside the operation: a reduction for each type and operation has it.
template <class Scope>
__device__ inline __noinline__ bool put_around(const put_room& room, u64 number, const u8* source, const put_parts& parts,
                                               const Scope& scope, u64 mine) {
    const team& t = room.t;
    // Race prevented: the first thread must not put before the others have stored `source`.
    sync_anew(scope);
    for (int i = 1; i < t.size; ++i) {
        const int r = (t.me + i) % t.size;
        u8* to = reinterpret_cast<u8*>(const_cast<vec16*>(room.of(number, t.me)));
        put(to, source + parts.of(r), parts.bytes(r), t.pe(r), scope);
    }
    return meet(t, scope, mine);
}

// Puts `bytes` bytes at `here` to the same place of every other rank.
template <class Scope>
__device__ inline __noinline__ void put_to_all(u8* here, u64 bytes, const team& t, const Scope& scope) {
    for (int i = 1; i < t.size; ++i) put(here, here, bytes, t.pe((t.me + i) % t.size), scope);
}

// dest[i] = the PEs' source[i] combined in rank order, i < n, where PEs are on other hosts: piece by piece each puts its
// values into the others' room. `apart`: elements from the block of one rank to the next's, 0 if all combine the same.
//
// Where all combine the same and the room is large, every rank combines a share of each piece, which it puts to all. So
// each PE sends and gets twice the array, however many there are.
template <class T, class Op, class Scope>
__device__ inline bool reduce_by_puts(T* dest, const T* source, u64 n, u64 apart, Op op, const team& t, const Scope& scope,
                                      u64 mine) {
    const put_room room(t, n * sizeof(T));
    const bool shared = room.large && apart == 0;
    static_assert(sizeof(T) <= small_units * sizeof(vec16), "an element does not fit into a piece");
    const u64 most = room.vectors() * sizeof(vec16) / sizeof(T);
    u64 first = 0;
    do {
        u64 count = shared ? (n - first + t.size - 1) / t.size : n - first;
        if (count > most) count = most;
        const u64 end = shared ? n : first + count + apart * (t.size - 1);
        const put_parts parts = {first * sizeof(T), (shared ? count : apart) * sizeof(T), count * sizeof(T),
                                 end * sizeof(T)};
        const u64 number = load_relaxed(&scratch_of(t)->generation) + 1;
        // Race prevented where `dest` is `source`: a rank puts its share of the sums here when it has met this PE, which
        // has read its own values of that share by then.
        if (!put_around(room, number, reinterpret_cast<const u8*>(source), parts, scope, mine)) return false;
        // This PE's part, and where it goes.
        const u64 part = parts.of(t.me) / sizeof(T), own = parts.bytes(t.me) / sizeof(T);
        T* to = dest + (shared ? part : first);
        for (u64 i = scope.rank(); i < own; i += scope.size()) {
            auto value = [&](int r) {
                const T* from = r == t.me ? source + part : reinterpret_cast<const T*>(room.of(number, r));
                return load_fresh(from + i);
            };
            T total = value(0);
            for (int r = 1; r < t.size; ++r) total = op(total, value(r));
            to[i] = total;
        }
        // Race prevented: as above, for `to`.
        sync_anew(scope);
        if (shared) put_to_all(reinterpret_cast<u8*>(to), own * sizeof(T), t, scope);
        first += shared ? count * t.size : count;
    } while (first < n);
    return !shared || meet(t, scope, mine);
}

}  // namespace detail

}  // namespace crosswarp
#endif

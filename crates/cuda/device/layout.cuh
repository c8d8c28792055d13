// What the host and kernels share. Made from src/layout.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp {

// The payload of one PE that travels in slots, in bytes: up to this one block does the work.
constexpr int small_bytes = 2048;
// Bytes of a vector, the widest access; slots are vectors.
constexpr int vector_bytes = 16;
// Of a slot, the bytes of payload; the rest is the number of the rendezvous.
constexpr int unit_bytes = 8;
// Vectors of a piece of a large reduction.
constexpr int staged_vectors = 2048;
// Sets of slots for such pieces.
constexpr int staged_sets = 2;
// Sets of slots behind a grid's state, with a slot per block each.
constexpr int grid_sets = 2;
// Threads of a block of the stream-ordered collectives, for which these are compiled.
constexpr int stream_threads = 256;
// Words of an exact sum in memory: 96 limbs, as the lanes of a warp hold them, and 4 words of what was seen
// beside finite values.
constexpr int exact_sum_words = 100;
// `wait_record::state`: nothing was given up.
constexpr u32 record_none = 0;
// `wait_record::state`: the record is complete.
constexpr u32 record_complete = 2;
// `wait_record::what`: for a value.
constexpr u32 wait_value = 1;
// `wait_record::what`: for a PE, in a rendezvous of a team.
constexpr u32 wait_rendezvous = 2;
// `wait_record::what`: no wait, but a PE came to the rendezvous with another collective.
constexpr u32 wait_mismatch = 3;
// Whom a wait is for beside one PE: a value that anyone may write, so it is hopeless only when all others are
// gone.
constexpr int anyone = -1;
// Whom a wait is for: something that takes every PE of the world.
constexpr int everyone = -2;
// Words of the list of PEs that are gone. Of this one: not 0 if any PE is gone.
constexpr int gone_any = 0;
// 1 + the PE that ends all waits, because it failed or because this PE takes its world down.
constexpr int gone_end = 1;
// From here on a word per PE; the two before it, at `anyone` and `everyone`, are of waits for those. A word is 0, or
// 1 + the PE because of which such a wait can not end: it has left, and what it sent has arrived.
constexpr int gone_for = 4;
// A collective in a word: below this bit its size in bytes.
constexpr int collective_detail_bit = 40;
// Below this bit the root, or what is combined; from it on the kind.
constexpr int collective_kind_bit = 60;
// What is combined: below this bit the type's number; from it on 1 + the operation's.
constexpr int reduce_op_bit = 4;
// `wait_record::what`: for a PE of another host to do what it was asked.
constexpr u32 wait_remote = 4;
// Entries of the ring by which kernels reach PEs of other hosts.
constexpr int route_entries = 1024;
// Words of an entry, each shifted up by one; its lowest bit is 1 in the ring's first round, 0 in its second, and so
// on, so that who reads knows when the word has come.
constexpr int route_words = 8;
// An entry's first word: below this bit the `route_op`; from it on an `atomic_op`.
constexpr int route_atomic_bit = 8;
// From here on the logarithm of a word's bytes.
constexpr int route_width_bit = 12;
// The highest bit of `operand`, for which its own word has no room.
constexpr int route_operand_bit = 16;
// The highest bit of `expected`.
constexpr int route_expected_bit = 17;
// From here on the PE.
constexpr int route_pe_bit = 20;
// Most bytes of an element of a strided entry, and of what travels at a time.
constexpr int route_body = 8192;
// Entries of the inbox of atomic operations from other hosts.
constexpr int inbox_entries = 256;

namespace detail {
// What PEs do together, for the host to print and for `mark_of`.
enum class kind : u64 {
    sync = 1,
    barrier = 2,
    broadcast = 3,
    fcollect = 4,
    alltoall = 5,
    reduce = 6,
    reducescatter = 7,
};
// Numbers of the types that reductions combine; 0: another one.
template <class T> constexpr u32 type_code = 0;
template <> constexpr u32 type_code<i32> = 1;
template <> constexpr u32 type_code<u32> = 2;
template <> constexpr u32 type_code<i64> = 3;
template <> constexpr u32 type_code<u64> = 4;
template <> constexpr u32 type_code<float> = 5;
template <> constexpr u32 type_code<double> = 6;
}  // namespace detail

// A set of PEs that meet: `start`, `start + stride`, … (`size` of them).
struct alignas(8) team {
    // This PE's rank in it.
    i32 me;
    i32 size;
    i32 start;
    i32 stride;
    // Heap offset of the team's `team_scratch`, the same on all its PEs.
    u64 scratch;
    // Heap offset of the slots for large reductions (pe/staged.cuh), 0 for none.
    u64 stage;
    // Most blocks of a PE that these are for.
    u64 stage_blocks;

    __device__ int pe(int rank) const { return start + rank * stride; }
};
static_assert(sizeof(team) == 40, "size of team");
static_assert(CROSSWARP_OFFSET(team, me) == 0, "team::me");
static_assert(CROSSWARP_OFFSET(team, size) == 4, "team::size");
static_assert(CROSSWARP_OFFSET(team, start) == 8, "team::start");
static_assert(CROSSWARP_OFFSET(team, stride) == 12, "team::stride");
static_assert(CROSSWARP_OFFSET(team, scratch) == 16, "team::scratch");
static_assert(CROSSWARP_OFFSET(team, stage) == 24, "team::stage");
static_assert(CROSSWARP_OFFSET(team, stage_blocks) == 32, "team::stage_blocks");

// Each PE's scratch for one team, in its symmetric heap, zero at first: this header, then `size` arrival words,
// then two sets of slots, for `size` payloads of up to `small_bytes` each.
struct alignas(128) team_scratch {
    // Rendezvous so far; written by this PE only.
    u64 generation;
    // With a time limit: whether the last rendezvous came about.
    u64 came_about;
    u64 pad[14];
};
static_assert(sizeof(team_scratch) == 128, "size of team_scratch");
static_assert(CROSSWARP_OFFSET(team_scratch, generation) == 0, "team_scratch::generation");
static_assert(CROSSWARP_OFFSET(team_scratch, came_about) == 8, "team_scratch::came_about");
static_assert(CROSSWARP_OFFSET(team_scratch, pad) == 16, "team_scratch::pad");

// What a kernel leaves behind when a wait ends in vain. In memory the host can read.
struct alignas(8) wait_record {
    // Of `record_none` and so on.
    u32 state;
    // Of `wait_value` and so on.
    u32 what;
    // The PE that waited.
    i32 pe;
    // The PE waited for, or `anyone` or `everyone`.
    i32 peer;
    // Heap offset of the word.
    u64 offset;
    // In a rendezvous its number; of a mismatch this PE's collective (detail::collective).
    u64 expected;
    // The word's last value.
    u64 seen;
    // The PE that failed or left, so that the wait was hopeless; -1: it ran out of time.
    i32 gone;
    i32 pad;
};
static_assert(sizeof(wait_record) == 48, "size of wait_record");
static_assert(CROSSWARP_OFFSET(wait_record, state) == 0, "wait_record::state");
static_assert(CROSSWARP_OFFSET(wait_record, what) == 4, "wait_record::what");
static_assert(CROSSWARP_OFFSET(wait_record, pe) == 8, "wait_record::pe");
static_assert(CROSSWARP_OFFSET(wait_record, peer) == 12, "wait_record::peer");
static_assert(CROSSWARP_OFFSET(wait_record, offset) == 16, "wait_record::offset");
static_assert(CROSSWARP_OFFSET(wait_record, expected) == 24, "wait_record::expected");
static_assert(CROSSWARP_OFFSET(wait_record, seen) == 32, "wait_record::seen");
static_assert(CROSSWARP_OFFSET(wait_record, gone) == 40, "wait_record::gone");
static_assert(CROSSWARP_OFFSET(wait_record, pad) == 44, "wait_record::pad");

// Who a PE's kernels are, and where everything is; the host writes it into every module.
struct alignas(8) world_state {
    i32 my_pe;
    i32 n_pes;
    // Address of this PE's heap; those of the others are `stride` apart, in PE order.
    u64 heap;
    u64 stride;
    u64 heap_bytes;
    // Time limit of waits; 0: none.
    u64 timeout_ns;
    // In host memory.
    wait_record* record;
    // In this GPU's memory: 1 after a wait of this PE ended in vain.
    u32* gave_up;
    // In host memory, the list of PEs that are gone: see `gone_any`.
    const u32* gone;
    // The team of all PEs.
    team all;
};
static_assert(sizeof(world_state) == 104, "size of world_state");
static_assert(CROSSWARP_OFFSET(world_state, my_pe) == 0, "world_state::my_pe");
static_assert(CROSSWARP_OFFSET(world_state, n_pes) == 4, "world_state::n_pes");
static_assert(CROSSWARP_OFFSET(world_state, heap) == 8, "world_state::heap");
static_assert(CROSSWARP_OFFSET(world_state, stride) == 16, "world_state::stride");
static_assert(CROSSWARP_OFFSET(world_state, heap_bytes) == 24, "world_state::heap_bytes");
static_assert(CROSSWARP_OFFSET(world_state, timeout_ns) == 32, "world_state::timeout_ns");
static_assert(CROSSWARP_OFFSET(world_state, record) == 40, "world_state::record");
static_assert(CROSSWARP_OFFSET(world_state, gave_up) == 48, "world_state::gave_up");
static_assert(CROSSWARP_OFFSET(world_state, gone) == 56, "world_state::gone");
static_assert(CROSSWARP_OFFSET(world_state, all) == 64, "world_state::all");

// An atomic operation from another host.
struct alignas(8) inbox_entry {
    // An `atomic_op`, and from bit 8 on the logarithm of the word's bytes.
    u64 op;
    // Heap offset of the word.
    u64 offset;
    u64 operand;
    u64 expected;
};
static_assert(sizeof(inbox_entry) == 32, "size of inbox_entry");
static_assert(CROSSWARP_OFFSET(inbox_entry, op) == 0, "inbox_entry::op");
static_assert(CROSSWARP_OFFSET(inbox_entry, offset) == 8, "inbox_entry::offset");
static_assert(CROSSWARP_OFFSET(inbox_entry, operand) == 16, "inbox_entry::operand");
static_assert(CROSSWARP_OFFSET(inbox_entry, expected) == 24, "inbox_entry::expected");

// How kernels reach PEs of other hosts; the host writes it into every module that was compiled for that.
struct alignas(8) route_state {
    // Of each PE: not 0 if its memory is mapped here. In this GPU's memory.
    const u8* mapped;
    // Entries, in host memory.
    u64* ring;
    // Entries so far; in this GPU's memory.
    u64* issued;
    // Entries that the host has taken, in host memory: what they put from may be reused.
    const u64* taken;
    // What kernels have last seen there; in this GPU's memory.
    u64* taken_seen;
    // Entries up to this one are complete; in host memory.
    const u64* completed;
    // Of each entry of the ring that fetches: 1 + its number when the value beside it is there, 0 when it was taken. In
    // host memory.
    u64* fetched;
    // Atomic operations from other hosts, for this GPU to execute; in its memory.
    const inbox_entry* inbox;
    // How many have come; in this GPU's memory.
    const u64* inbox_head;
    // How many are done; in this GPU's memory.
    u64* inbox_tail;
    // Not 0 while somebody executes them.
    u32* inbox_lock;
    // As `inbox_tail`, in host memory.
    u64* inbox_done;
    // What was there before each; in host memory.
    u64* inbox_results;
};
static_assert(sizeof(route_state) == 104, "size of route_state");
static_assert(CROSSWARP_OFFSET(route_state, mapped) == 0, "route_state::mapped");
static_assert(CROSSWARP_OFFSET(route_state, ring) == 8, "route_state::ring");
static_assert(CROSSWARP_OFFSET(route_state, issued) == 16, "route_state::issued");
static_assert(CROSSWARP_OFFSET(route_state, taken) == 24, "route_state::taken");
static_assert(CROSSWARP_OFFSET(route_state, taken_seen) == 32, "route_state::taken_seen");
static_assert(CROSSWARP_OFFSET(route_state, completed) == 40, "route_state::completed");
static_assert(CROSSWARP_OFFSET(route_state, fetched) == 48, "route_state::fetched");
static_assert(CROSSWARP_OFFSET(route_state, inbox) == 56, "route_state::inbox");
static_assert(CROSSWARP_OFFSET(route_state, inbox_head) == 64, "route_state::inbox_head");
static_assert(CROSSWARP_OFFSET(route_state, inbox_tail) == 72, "route_state::inbox_tail");
static_assert(CROSSWARP_OFFSET(route_state, inbox_lock) == 80, "route_state::inbox_lock");
static_assert(CROSSWARP_OFFSET(route_state, inbox_done) == 88, "route_state::inbox_done");
static_assert(CROSSWARP_OFFSET(route_state, inbox_results) == 96, "route_state::inbox_results");

// What the blocks of a grid meet by, zero before its first use; `grid_sets` sets of slots follow.
struct alignas(128) grid_state {
    // Bit 31 flips when all have arrived; the other bits count.
    u32 arrived;
    u32 pad[31];
};
static_assert(sizeof(grid_state) == 128, "size of grid_state");
static_assert(CROSSWARP_OFFSET(grid_state, arrived) == 0, "grid_state::arrived");
static_assert(CROSSWARP_OFFSET(grid_state, pad) == 4, "grid_state::pad");

}  // namespace crosswarp

// Signals, and waits for values.
#include "common.cuh"

namespace {

// Data, then signal, around a ring: the signal never runs ahead of its data.
template <class Scope, class T>
__device__ void signals(T* a, T* b, u64 bytes, u64* flags, u32* errors) {
    Scope s;
    u64 n = 500 < bytes / sizeof(T) ? 500 : bytes / sizeof(T);
    for (u64 round = 1; round <= 40; ++round) {
        for (u64 i = s.rank(); i < n; i += s.size()) a[i] = value<T>(my_pe(), i + round);
        s.sync();
        put_signal<Scope>(b, a, n, flags, round, signal_op::set, right());
        expect(signal_wait_until(flags, cmp::ge, round), errors, 70);
        s.sync();
        for (u64 i = s.rank(); i < n; i += s.size()) {
            expect(*(volatile T*)(b + i) == value<T>(left(), i + round), errors, 71);
        }
        s.sync();
        // Tell the left neighbour that its data were read.
        if (s.rank() == 0) signal(flags + 1, 1, signal_op::add, left());
        expect(signal_wait_until(flags + 1, cmp::ge, round), errors, 72);
        s.sync();
    }
    // Back to zero for the next kernel, once everyone has seen the last values.
    all_meet<Scope>();
    if (s.rank() == 0) flags[0] = flags[1] = 0;
    all_meet<Scope>();
}

}  // namespace

#define SIGNALS(Scope)                                                                              \
    extern "C" __global__ void signals_##Scope(u32* a, u32* b, u64 bytes, u64* flags, u32* errors) {\
        signals<Scope>(a, b, bytes, flags, errors);                                                 \
    }
SIGNALS(thread)
SIGNALS(warp)
SIGNALS(block)

// wait_until and test over several words, with elements left out.
extern "C" __global__ void wait_sets(u64* words, u32* errors) {
    const u64 n = 4;
    int status[n] = {0, 1, 0, 0};
    u64 indices[n];
    for (u64 i = 0; i < n; ++i) words[i] = 0;
    barrier();
    expect(test_any(words, n, status, cmp::ne, (u64)0) == nothing, errors, 100);
    expect(test_all(words, n, status, cmp::eq, (u64)0), errors, 101);
    expect(wait_until_any(words, 0, nullptr, cmp::ne, (u64)0) == nothing, errors, 102);
    expect(wait_until_some(words, 0, indices, nullptr, cmp::ne, (u64)0) == 0, errors, 103);
    barrier();
    signal(words + 1, 5, signal_op::set, right());
    signal(words + 2, 5, signal_op::set, right());
    expect(wait_until_any(words, n, status, cmp::eq, (u64)5) == 2, errors, 104);
    expect(wait_until_any(words, n, nullptr, cmp::eq, (u64)5) >= 1, errors, 105);
    expect(wait_until_some(words, n, indices, status, cmp::eq, (u64)5) == 1 && indices[0] == 2, errors, 106);
    // The words still to come must not come before the counts above.
    barrier();
    signal(words + 0, 5, signal_op::set, right());
    signal(words + 3, 5, signal_op::set, right());
    expect(wait_until_all(words, n, status, cmp::eq, (u64)5), errors, 107);
    expect(test_some(words, n, indices, status, cmp::eq, (u64)5) == 3, errors, 108);
    barrier();
}

// A wait for what never comes: gives up if the world has a time limit.
extern "C" __global__ void wait_in_vain(u64* words, u32* errors) {
    expect(!wait_until(words + 7, cmp::eq, (u64)12345), errors, 110);
    // An empty set is told from a wait in vain.
    u64 index;
    expect(wait_until_any(words + 7, 1, nullptr, cmp::eq, (u64)12345) == timed_out, errors, 111);
    expect(wait_until_some(words + 7, 1, &index, nullptr, cmp::eq, (u64)12345) == timed_out, errors, 112);
    expect(!wait_until_all(words + 7, 1, nullptr, cmp::eq, (u64)12345), errors, 113);
}

// PE 0's blocks fill its GPU and say so on the others, which then add to a word of its.
extern "C" __global__ void wait_in_all_blocks(u64* words, u32* errors) {
    if (threadIdx.x != 0) return;
    u64 *sum = words, *running = words + 1, *there = words + 2;
    const u64 blocks = gridDim.x, others = cw::n_pes() - 1;
    if (cw::my_pe() != 0) {
        if (!cw::signal_wait_until(there, cw::cmp::ge, 1)) expect(false, errors, 120);
        cw::signal(sum, 5, cw::signal_op::add, 0);
        expect(cw::atomic_fetch_add(sum, 2ull, 0) >= 5, errors, 121);
        return;
    }
    // The last block that begins.
    if (atomicAdd(running, 1ull) == blocks - 1) {
        for (int pe = 1; pe <= (int)others; ++pe) cw::signal(there, 1, cw::signal_op::set, pe);
    }
    expect(cw::signal_wait_until(sum, cw::cmp::ge, 7 * others), errors, 122);
}

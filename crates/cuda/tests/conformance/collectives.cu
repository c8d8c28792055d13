// Collectives that move data.
#include "lengths.cuh"

namespace {

template <class Scope, class T> __device__ void broadcasts(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    for_lengths<T>(bytes, [=](u64 n) {
        for (int root = 0; root < n_pes(); ++root) {
            fill(a, n, my_pe(), s);
            spoil(b, n, s);
            // b is a destination the root stores into: everyone must have done with it.
            all_meet<Scope>();
            expect(broadcast<Scope>(b, a, n, root), errors, 10);
            check(b, n, root, errors, 11, s);
            expect_spoilt(b + n, errors, 12);
            s.sync();
        }
    });
}

template <class Scope, class T> __device__ void fcollects(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    for_lengths<T>(bytes, [=](u64 n) {
        fill(a, n, my_pe(), s);
        spoil(b, n_pes() * n, s);
        // b is a destination others store into: everyone must have done with it.
        all_meet<Scope>();
        expect(fcollect<Scope>(b, a, n), errors, 20);
        for (int pe = 0; pe < n_pes(); ++pe) check(b + pe * n, n, pe, errors, 21, s);
        expect_spoilt(b + n_pes() * n, errors, 22);
        s.sync();
    });
}

template <class Scope, class T> __device__ void alltoalls(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    for_lengths<T>(bytes, [=](u64 n) {
        // Block j of a is what goes to PE j: give it j's number on top.
        for (int pe = 0; pe < n_pes(); ++pe) fill(a + pe * n, n, my_pe() + pe, s);
        spoil(b, n_pes() * n, s);
        all_meet<Scope>();
        expect(alltoall<Scope>(b, a, n), errors, 30);
        for (int pe = 0; pe < n_pes(); ++pe) check(b + pe * n, n, pe + my_pe(), errors, 31, s);
        expect_spoilt(b + n_pes() * n, errors, 32);
        s.sync();
    });
}

}  // namespace

#define MOVES(Scope, T)                     \
    KERNEL(broadcast, broadcasts, Scope, T) \
    KERNEL(fcollect, fcollects, Scope, T)   \
    KERNEL(alltoall, alltoalls, Scope, T)
// As in memory.cu, four types for a block, three for the others. To see that everything compiles, one type for each
// scope is enough.
MOVES(thread, i32)
MOVES(warp, float)
MOVES(block, double)
#ifndef ONE_TYPE_PER_SCOPE
MOVES(thread, u8)
MOVES(thread, double)
MOVES(warp, u16)
MOVES(warp, u64)
MOVES(block, u8)
MOVES(block, u16)
MOVES(block, float)
#endif

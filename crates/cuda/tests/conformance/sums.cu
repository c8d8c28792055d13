// Collectives that add values up.
#include "lengths.cuh"

namespace {

template <class Scope, class T> __device__ void reducescatters(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    for_lengths<T>(bytes, [=](u64 n) {
        // Block j of a is what PE j combines: give it j's number on top.
        for (int pe = 0; pe < n_pes(); ++pe) fill(a + pe * n, n, my_pe() + pe, s);
        spoil(b, n, s);
        all_meet<Scope>();
        expect(reducescatter<Scope>(b, a, n, sum_op()), errors, 40);
        for (u64 i = s.rank(); i < n; i += s.size()) {
            T total = 0;
            for (int pe = 0; pe < n_pes(); ++pe) total += value<T>(pe + my_pe(), i);
            expect(*(volatile T*)(b + i) == total, errors, 41);
        }
        expect_spoilt(b + n, errors, 42);
        s.sync();
    });
}

template <class Scope, class T> __device__ void sums(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    for_lengths<T>(bytes, [=](u64 n) {
        spoil(b, n, s);
        all_meet<Scope>();
        for (int in_place = 0; in_place < 2; ++in_place) {
            T* to = in_place ? a : b;
            fill(a, n, my_pe(), s);
            expect(sum<Scope>(to, a, n), errors, 50);
            for (u64 i = s.rank(); i < n; i += s.size()) {
                T total = 0;
                for (int pe = 0; pe < n_pes(); ++pe) total += value<T>(pe, i);
                expect(*(volatile T*)(to + i) == total, errors, 51 + in_place);
            }
            s.sync();
        }
        expect_spoilt(b + n, errors, 53);
        s.sync();
    });
}

}  // namespace

#define SUMS(Scope, T)                              \
    KERNEL(reducescatter, reducescatters, Scope, T) \
    KERNEL(sum, sums, Scope, T)
// All types for a block; one of each size, and a float, for the others, which differ in nothing but how threads share
// the elements. To see that everything compiles, one type for each scope is enough.
SUMS(thread, i32)
SUMS(warp, float)
SUMS(block, double)
#ifndef ONE_TYPE_PER_SCOPE
SUMS(thread, u8)
SUMS(thread, double)
SUMS(warp, u16)
SUMS(warp, u64)
SUMS(block, u8)
SUMS(block, u16)
SUMS(block, i32)
SUMS(block, u64)
SUMS(block, float)
#endif

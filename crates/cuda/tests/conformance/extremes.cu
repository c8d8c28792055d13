// Collectives of minima and maxima.
#include "lengths.cuh"
#include "specials.cuh"

namespace {

template <class Scope, class T> __device__ void maxima(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    for_lengths<T>(bytes, [=](u64 n) {
        spoil(b, n, s);
        all_meet<Scope>();
        for (int in_place = 0; in_place < 2; ++in_place) {
            T* to = in_place ? a : b;
            fill(a, n, my_pe(), s);
            expect(max<Scope>(to, a, n), errors, 60);
            for (u64 i = s.rank(); i < n; i += s.size()) {
                T most = 0;
                for (int pe = 0; pe < n_pes(); ++pe) most = value<T>(pe, i) > most ? value<T>(pe, i) : most;
                expect(*(volatile T*)(to + i) == most, errors, 61 + in_place);
            }
            s.sync();
        }
        expect_spoilt(b + n, errors, 63);
        s.sync();
    });
}

// Element i of `a` on the last PE is the second of pair i, on the others the first.
template <class Scope, class T> __device__ void extremes(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    const bool last = my_pe() == n_pes() - 1;
    for (u64 n : {(u64)pairs, (u64)pairs * 30}) {
        if ((n + 1) * sizeof(T) > bytes) continue;
        for (int greatest = 0; greatest < 2; ++greatest) {
            for (u64 i = s.rank(); i < n; i += s.size()) {
                a[i] = special<T>(last ? i % specials : i / specials % specials);
            }
            spoil(b, n, s);
            all_meet<Scope>();
            expect(greatest ? max<Scope>(b, a, n) : min<Scope>(b, a, n), errors, 330);
            for (u64 i = s.rank(); i < n; i += s.size()) {
                T y = special<T>(i % specials), x = n_pes() == 1 ? y : special<T>(i / specials % specials);
                expect(is_extreme((T)((const volatile T*)b)[i], x, y, greatest), errors, 331 + greatest);
            }
            expect_spoilt(b + n, errors, 333);
            s.sync();
        }
    }
}

}  // namespace

// Maxima of floats are among the extremes. All types for a block; some for the others, as in sums.cu. To see that
// everything compiles, one type for each scope is enough.
KERNEL(max, maxima, thread, i32)
KERNEL(max, maxima, warp, u64)
KERNEL(max, maxima, block, u8)
KERNEL(extremes, extremes, thread, float)
KERNEL(extremes, extremes, warp, double)
KERNEL(extremes, extremes, block, float)
#ifndef ONE_TYPE_PER_SCOPE
KERNEL(max, maxima, thread, u8)
KERNEL(max, maxima, warp, u16)
KERNEL(max, maxima, block, u16)
KERNEL(max, maxima, block, i32)
KERNEL(max, maxima, block, u64)
KERNEL(extremes, extremes, block, double)
#endif

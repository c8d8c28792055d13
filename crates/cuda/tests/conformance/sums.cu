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

// Wider than a vector, so that vectors hold no whole number of them; `order` tells in which order it was combined.
struct triple {
    double total, most, order;
};
struct join {
    __device__ triple operator()(const triple& x, const triple& y) const {
        return {x.total + y.total, x.most > y.most ? x.most : y.most, 2 * x.order + y.order};
    }
};

__device__ triple triple_of(int pe, u64 i) {
    return {value<double>(pe, i), value<double>(pe, i + 1), value<double>(pe, i + 2)};
}
__device__ void expect_triple(const triple& seen, const triple& right, u32* errors, u32 place) {
    expect(seen.total == right.total && seen.most == right.most && seen.order == right.order, errors, place);
}

// Calls body(n, team) for one and for several pieces of the small room, in the world as it is and in one that has no
// room for large reductions.
template <class Body> __device__ void for_triples(Body body) {
    constexpr u64 piece = small_units * sizeof(detail::vec16) / sizeof(triple);
    const u64 lengths[] = {5, 2 * piece + 1};
    team without = world();
    without.stage = 0;
    for (u64 n : lengths) {
        body(n, world());
        body(n, without);
    }
}

template <class Scope, class T> __device__ void triple_reducescatters(T* a, T* b, u64, u32* errors) {
    Scope s;
    for_triples([=](u64 n, const team& t) {
        for (int pe = 0; pe < n_pes(); ++pe) {
            for (u64 i = s.rank(); i < n; i += s.size()) a[pe * n + i] = triple_of(my_pe() + pe, i);
        }
        if (s.rank() == 0) b[n] = triple_of(1, 1);
        s.sync();
        all_meet<Scope>();
        expect(reducescatter<Scope>(b, a, n, join(), t), errors, 60);
        for (u64 i = s.rank(); i < n; i += s.size()) {
            triple total = triple_of(my_pe(), i);
            for (int pe = 1; pe < n_pes(); ++pe) total = join()(total, triple_of(pe + my_pe(), i));
            expect_triple(load_volatile(b + i), total, errors, 61);
        }
        expect_triple(load_volatile(b + n), triple_of(1, 1), errors, 62);
        s.sync();
    });
}

template <class Scope, class T> __device__ void triple_sums(T* a, T* b, u64, u32* errors) {
    Scope s;
    for_triples([=](u64 n, const team& t) {
        for (int in_place = 0; in_place < 2; ++in_place) {
            T* to = in_place ? a : b;
            for (u64 i = s.rank(); i < n; i += s.size()) a[i] = triple_of(my_pe(), i);
            if (s.rank() == 0) to[n] = triple_of(1, 1);
            s.sync();
            all_meet<Scope>();
            expect(reduce<Scope>(to, a, n, join(), t), errors, 70);
            for (u64 i = s.rank(); i < n; i += s.size()) {
                triple total = triple_of(0, i);
                for (int pe = 1; pe < n_pes(); ++pe) total = join()(total, triple_of(pe, i));
                expect_triple(load_volatile(to + i), total, errors, 71 + in_place);
            }
            expect_triple(load_volatile(to + n), triple_of(1, 1), errors, 73);
            s.sync();
        }
    });
}

}  // namespace

KERNEL(reducescatter, triple_reducescatters, block, triple)
KERNEL(sum, triple_sums, block, triple)

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

// Puts and gets of all kinds.
#include "common.cuh"

namespace {

// Put, get, p, g, iput, iget for lengths around the vector width and every alignment of both sides.
template <class Scope, class T> __device__ void memory(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    const u64 room = bytes / sizeof(T);
    const u64 lengths[] = {0, 1, 3, 17, 64, 1000};
    for (u64 n : lengths) {
        for (u64 shift = 0; shift < 16 / sizeof(T) + 1; shift += 1) {
            u64 other = (shift * 3) % (16 / sizeof(T) + 1);
            if (n + 32 > room) continue;
            fill(a + shift, n, my_pe(), s);
            spoil(b + other, n, s);
            all_meet<Scope>();
            put<Scope>(b + other, a + shift, n, right());
            barrier<Scope>();
            check(b + other, n, left(), errors, 100 + (u32)n, s);
            expect_spoilt(b + other + n, errors, 5);
            s.sync();
            spoil(b + other, n, s);
            get<Scope>(b + other, a + shift, n, right());
            s.sync();
            check(b + other, n, right(), errors, 2000 + (u32)n, s);
            expect_spoilt(b + other + n, errors, 6);
            all_meet<Scope>();
        }
    }
    spoil(b, 1, s);
    all_meet<Scope>();
    if (s.rank() == 0) p(b, value<T>(my_pe(), 5), right());
    barrier<Scope>();
    expect(*(volatile T*)b == value<T>(left(), 5), errors, 1);
    expect_spoilt(b + 1, errors, 7);
    expect(g(b, right()) == value<T>(my_pe(), 5), errors, 2);
    all_meet<Scope>();
    fill(a, 200, my_pe(), s);
    spoil(b, 150, s);
    all_meet<Scope>();
    iput<Scope>(b, 3, a, 2, 50, right());
    barrier<Scope>();
    for (u64 i = s.rank(); i < 50; i += s.size()) {
        expect(*(volatile T*)(b + 3 * i) == value<T>(left(), 2 * i), errors, 3);
        expect_spoilt(b + 3 * i + 1, errors, 8);
        expect_spoilt(b + 3 * i + 2, errors, 8);
    }
    all_meet<Scope>();
    spoil(b, 80, s);
    iget<Scope>(b, 2, a, 3, 40, right());
    s.sync();
    for (u64 i = s.rank(); i < 40; i += s.size()) {
        expect(*(volatile T*)(b + 2 * i) == value<T>(right(), 3 * i), errors, 4);
        expect_spoilt(b + 2 * i + 1, errors, 9);
    }
    all_meet<Scope>();
}

// One word around a ring: whoever sees it takes it away at once, and it must not come back. (It would if a put
// stored it twice.)
template <class Scope, class T> __device__ void once(T* a, T* b, u64* flags, u64& round, u32* errors) {
    Scope s;
    for (int k = 0; k < 50; ++k) {
        ++round;
        if (s.rank() == 0) a[0] = (T)(round % 100 + 1);
        s.sync();
        put<Scope>(b, a, 1, right());
        if (s.rank() == 0) {
            volatile T* word = b;
            bool came = spin([=] { return *word != 0; }, 1, left(), b, 1, [=] { return (u64)*word; });
            expect(came && *word == (T)(round % 100 + 1), errors, 360);
            *word = 0;
            for (int look = 0; look < 200; ++look) expect(*word == 0, errors, 361);
            // Tell the left neighbour that it may send again.
            signal(flags, round, signal_op::set, left());
        }
        expect(signal_wait_until(flags, cmp::ge, round, right()), errors, 362);
        s.sync();
    }
}

template <class Scope> __device__ void words_come_once(u64* a, u64* b, u64* flags, u32* errors) {
    Scope s;
    if (s.rank() == 0) b[0] = 0;
    all_meet<Scope>();
    u64 round = 0;
    once<Scope>((u8*)a, (u8*)b, flags, round, errors);
    once<Scope>((u16*)a, (u16*)b, flags, round, errors);
    once<Scope>((u32*)a, (u32*)b, flags, round, errors);
    once<Scope>(a, b, flags, round, errors);
    all_meet<Scope>();
    if (s.rank() == 0) flags[0] = 0;
    all_meet<Scope>();
}

}  // namespace

#define MOVES(Scope, T) KERNEL(memory, memory, Scope, T)
// What moves bytes is one template for all types of a size: four for a block, and for the others three, so that each
// size has a float and an integer somewhere. To see that everything compiles, one type for each scope is enough.
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

#define WORDS(Scope)                                                                                 \
    extern "C" __global__ void words_##Scope(u64* a, u64* b, u64 bytes, u64* flags, u32* errors) {   \
        words_come_once<Scope>(a, b, flags, errors);                                                 \
    }
WORDS(thread)
WORDS(warp)
WORDS(block)

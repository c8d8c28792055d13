// The device verbs checked inside kernels: verb × scope × type × alignment. Every kernel counts what is
// wrong in `errors[0]` and leaves a place to look at in `errors[1]`. Meanings are those of the OpenSHMEM
// 1.5 specification.
//
// Every PE launches the same kernel together: one block of 128 threads for scope `block`, of 32 for
// `warp`, of 1 for `thread`. `a` and `b` are symmetric, `bytes` long each.
#include "cluster.cuh"
#include "pe.cuh"

using namespace cw;

namespace {

__device__ void expect(bool right, u32* errors, u32 place) {
    if (!right) {
        atomicAdd(errors, 1);
        errors[1] = place;
    }
}

// What PE `pe` holds at index `i`: small enough for sums and products to stay exact in every type.
template <class T> __device__ T value(int pe, u64 i) { return (T)((pe * 7 + i * 3 + 1) % 11); }

__device__ int right() { return (my_pe() + 1) % n_pes(); }
__device__ int left() { return (my_pe() + n_pes() - 1) % n_pes(); }

template <class T, class Scope> __device__ void fill(T* to, u64 n, int pe, const Scope& s) {
    for (u64 i = s.rank(); i < n; i += s.size()) to[i] = value<T>(pe, i);
    s.sync();
}

template <class T, class Scope>
__device__ void check(const T* seen, u64 n, int pe, u32* errors, u32 place, const Scope& s) {
    for (u64 i = s.rank(); i < n; i += s.size()) {
        expect(*(const volatile T*)(seen + i) == value<T>(pe, i), errors, place);
    }
    s.sync();
}

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
            barrier<Scope>();
            put<Scope>(b + other, a + shift, n, right());
            barrier<Scope>();
            check(b + other, n, left(), errors, 100 + (u32)n, s);
            barrier<Scope>();
            get<Scope>(b + other, a + shift, n, right());
            s.sync();
            check(b + other, n, right(), errors, 2000 + (u32)n, s);
            barrier<Scope>();
        }
    }
    if (s.rank() == 0) p(b, value<T>(my_pe(), 5), right());
    barrier<Scope>();
    expect(*(volatile T*)b == value<T>(left(), 5), errors, 1);
    expect(g(b, right()) == value<T>(my_pe(), 5), errors, 2);
    barrier<Scope>();
    fill(a, 200, my_pe(), s);
    barrier<Scope>();
    iput<Scope>(b, 3, a, 2, 50, right());
    barrier<Scope>();
    for (u64 i = s.rank(); i < 50; i += s.size()) {
        expect(*(volatile T*)(b + 3 * i) == value<T>(left(), 2 * i), errors, 3);
    }
    barrier<Scope>();
    iget<Scope>(b, 2, a, 3, 40, right());
    s.sync();
    for (u64 i = s.rank(); i < 40; i += s.size()) {
        expect(*(volatile T*)(b + 2 * i) == value<T>(right(), 3 * i), errors, 4);
    }
    barrier<Scope>();
}

// Every collective, for payloads that travel in slots and for larger ones, in place where allowed.
template <class Scope, class T> __device__ void collectives(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    const u64 room = bytes / sizeof(T);
    const u64 lengths[] = {0, 1, 2, 5, 31, small_bytes / sizeof(T), small_bytes / sizeof(T) + 1, 3001};
    const int pes = n_pes();
    for (u64 n : lengths) {
        if (n * pes > room) continue;
        for (int root = 0; root < pes; ++root) {
            fill(a, n, my_pe(), s);
            // b is a destination the root stores into: everyone must have done with it.
            barrier<Scope>();
            expect(broadcast<Scope>(b, a, n, root), errors, 10);
            check(b, n, root, errors, 11, s);
        }
        fill(a, n, my_pe(), s);
        // b is a destination others store into: everyone must have done with it.
        barrier<Scope>();
        expect(fcollect<Scope>(b, a, n), errors, 20);
        for (int pe = 0; pe < pes; ++pe) check(b + pe * n, n, pe, errors, 21, s);
        // Block j of a is what goes to PE j: give it j's number on top.
        for (int pe = 0; pe < pes; ++pe) fill(a + pe * n, n, my_pe() + pe, s);
        barrier<Scope>();
        expect(alltoall<Scope>(b, a, n), errors, 30);
        for (int pe = 0; pe < pes; ++pe) check(b + pe * n, n, pe + my_pe(), errors, 31, s);
        barrier<Scope>();
        expect(reducescatter<Scope>(b, a, n, sum_op()), errors, 40);
        for (u64 i = s.rank(); i < n; i += s.size()) {
            T total = 0;
            for (int pe = 0; pe < pes; ++pe) total += value<T>(pe + my_pe(), i);
            expect(*(volatile T*)(b + i) == total, errors, 41);
        }
        barrier<Scope>();
        for (int in_place = 0; in_place < 2; ++in_place) {
            T* to = in_place ? a : b;
            fill(a, n, my_pe(), s);
            expect(sum<Scope>(to, a, n), errors, 50);
            for (u64 i = s.rank(); i < n; i += s.size()) {
                T total = 0;
                for (int pe = 0; pe < pes; ++pe) total += value<T>(pe, i);
                expect(*(volatile T*)(to + i) == total, errors, 51 + in_place);
            }
            s.sync();
            fill(a, n, my_pe(), s);
            expect(max<Scope>(to, a, n), errors, 60);
            for (u64 i = s.rank(); i < n; i += s.size()) {
                T most = 0;
                for (int pe = 0; pe < pes; ++pe) most = value<T>(pe, i) > most ? value<T>(pe, i) : most;
                expect(*(volatile T*)(to + i) == most, errors, 61 + in_place);
            }
            barrier<Scope>();
        }
    }
}

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
    barrier<Scope>();
    if (s.rank() == 0) flags[0] = flags[1] = 0;
    barrier<Scope>();
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
    barrier<Scope>();
    u64 round = 0;
    once<Scope>((u8*)a, (u8*)b, flags, round, errors);
    once<Scope>((u16*)a, (u16*)b, flags, round, errors);
    once<Scope>((u32*)a, (u32*)b, flags, round, errors);
    once<Scope>(a, b, flags, round, errors);
    barrier<Scope>();
    if (s.rank() == 0) flags[0] = 0;
    barrier<Scope>();
}

template <class T> __device__ void integer_atomics(T* words, u32* errors) {
    T* at = words;
    int to = right();
    atomic_set(at, (T)12, to);
    expect(atomic_fetch(at, to) == (T)12, errors, 80);
    expect(atomic_fetch_add(at, (T)5, to) == (T)12, errors, 81);
    expect(atomic_fetch_inc(at, to) == (T)17, errors, 82);
    atomic_add(at, (T)2, to);
    atomic_inc(at, to);
    expect(atomic_swap(at, (T)0xc, to) == (T)21, errors, 83);
    expect(atomic_compare_swap(at, (T)1, (T)99, to) == (T)0xc, errors, 84);
    expect(atomic_compare_swap(at, (T)0xc, (T)0xa, to) == (T)0xc, errors, 85);
    expect(atomic_fetch_and(at, (T)6, to) == (T)0xa, errors, 86);
    expect(atomic_fetch_or(at, (T)9, to) == (T)2, errors, 87);
    expect(atomic_fetch_xor(at, (T)1, to) == (T)0xb, errors, 88);
    atomic_and(at, (T)0xa, to);
    atomic_or(at, (T)4, to);
    atomic_xor(at, (T)8, to);
    expect(atomic_fetch(at, to) == (T)6, errors, 89);
    barrier();
    for (int i = 0; i < 100; ++i) atomic_inc(words + 1, 0);
    barrier();
    expect(atomic_fetch(words + 1, 0) == (T)(100 * n_pes()), errors, 90);
    barrier();
    words[0] = words[1] = 0;
    barrier();
}

template <class T> __device__ void float_atomics(T* words, u32* errors) {
    atomic_set(words, (T)1.5, right());
    expect(atomic_fetch(words, right()) == (T)1.5, errors, 91);
    expect(atomic_swap(words, (T)-2, right()) == (T)1.5, errors, 92);
    barrier();
    for (int i = 0; i < 50; ++i) atomic_add(words + 1, (T)0.5, 0);
    barrier();
    expect(atomic_fetch(words + 1, 0) == (T)(25 * n_pes()), errors, 93);
    barrier();
    words[0] = words[1] = 0;
    barrier();
}

// Half precision counts exactly up to 2048: 1.0 is 0x3c00, and 2^k has the exponent 15 + k.
__device__ void half_atomics(f16* words, u32* errors) {
    barrier();
    for (int i = 0; i < 64; ++i) atomic_add(words + 1, f16{0x3c00}, 0);
    barrier();
    u16 expected[] = {0, 0x5400, 0x5800, 0x5a00, 0x5c00};  // 0, 64, 128, 192, 256
    if (n_pes() <= 4) expect(g(words + 1, 0).bits == expected[n_pes()], errors, 94);
    barrier();
    words[0].bits = words[1].bits = 0;
    barrier();
}

}  // namespace

#define PER_SCOPE(Scope, T)                                                                         \
    extern "C" __global__ void memory_##Scope##_##T(T* a, T* b, u64 bytes, u32* errors) {           \
        memory<Scope>(a, b, bytes, errors);                                                         \
    }                                                                                               \
    extern "C" __global__ void collectives_##Scope##_##T(T* a, T* b, u64 bytes, u32* errors) {      \
        collectives<Scope>(a, b, bytes, errors);                                                    \
    }
// All types for a block; one of each size, and a float, for the others: compiling takes its time. To see
// that everything compiles, one type for each scope is enough.
PER_SCOPE(thread, i32)
PER_SCOPE(warp, float)
PER_SCOPE(block, double)
#ifndef ONE_TYPE_PER_SCOPE
PER_SCOPE(thread, u8)
PER_SCOPE(thread, double)
PER_SCOPE(warp, u16)
PER_SCOPE(warp, u64)
PER_SCOPE(block, u8)
PER_SCOPE(block, u16)
PER_SCOPE(block, i32)
PER_SCOPE(block, u64)
PER_SCOPE(block, float)
#endif

#define SIGNALS(Scope)                                                                              \
    extern "C" __global__ void signals_##Scope(u32* a, u32* b, u64 bytes, u64* flags, u32* errors) {\
        signals<Scope>(a, b, bytes, flags, errors);                                                 \
    }
SIGNALS(thread)
SIGNALS(warp)
SIGNALS(block)

#define WORDS(Scope)                                                                                 \
    extern "C" __global__ void words_##Scope(u64* a, u64* b, u64 bytes, u64* flags, u32* errors) {   \
        words_come_once<Scope>(a, b, flags, errors);                                                 \
    }
WORDS(thread)
#ifndef ONE_TYPE_PER_SCOPE
WORDS(warp)
WORDS(block)
#endif

extern "C" __global__ void atomics(u64* words, u32* errors) {
    integer_atomics((u32*)words, errors);
    integer_atomics((i32*)words, errors);
    integer_atomics(words, errors);
    integer_atomics((i64*)words, errors);
    float_atomics((float*)words, errors);
    float_atomics((double*)words, errors);
    half_atomics((f16*)words, errors);
}

// wait_until and test over several words, with elements left out.
extern "C" __global__ void wait_sets(u64* words, u32* errors) {
    const u64 n = 4;
    int status[n] = {0, 1, 0, 0};
    u64 indices[n];
    for (u64 i = 0; i < n; ++i) words[i] = 0;
    barrier();
    expect(test_any(words, n, status, cmp::ne, (u64)0) == -1, errors, 100);
    expect(test_all(words, n, status, cmp::eq, (u64)0), errors, 101);
    expect(wait_until_any(words, 0, nullptr, cmp::ne, (u64)0) == -1, errors, 102);
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
}

// The levels below: every verb against the same thing done serially. 96 + 17 threads: a partial warp.
extern "C" __global__ void levels(grid_state* state, u32* errors) {
    warp w;
    int lane = warp::lane(), lanes = w.size();
    expect(w.rank() == lane, errors, 200);
    expect(w.sum(lane) == lanes * (lanes - 1) / 2, errors, 201);
    expect(w.max((double)lane) == lanes - 1, errors, 202);
    expect(w.min((u64)lane + 3) == 3, errors, 203);
    expect(w.broadcast(lane, lanes - 1) == lanes - 1, errors, 204);
    expect(w.get(lane * 2, (lane + 1) % lanes) == (lane + 1) % lanes * 2, errors, 205);
    if (lane % 3 == 1) {
        warp part = warp::active();
        int n = part.size();
        expect(part.sum(1) == n, errors, 206);
        expect(part.get(lane, 0) == 1, errors, 207);
        expect(part.broadcast(lane, n - 1) == 1 + 3 * (n - 1), errors, 208);
    }
    __syncwarp(w.mask());

    block b;
    int me = b.rank(), size = b.size();
    expect(b.sum(me) == size * (size - 1) / 2, errors, 210);
    expect(b.max((float)me) == size - 1, errors, 211);
    expect(b.min((i64)me - 5) == -5, errors, 212);
    expect(b.broadcast(me * 10, 7) == 70, errors, 213);
    __shared__ int cell;
    if (me == 0) b.put(&cell, 42);
    b.sync();
    expect(b.get(&cell) == 42, errors, 214);
    b.sync();

    grid g(state);
    int blocks = g.size();
    for (int round = 0; round < 5; ++round) {
        expect(g.sum(me + round) == blocks * (size * (size - 1) / 2 + size * round), errors, 220);
        expect(g.max(g.rank()) == blocks - 1, errors, 221);
        expect(g.broadcast((double)(g.rank() + round), blocks - 1) == blocks - 1 + round, errors, 222);
        g.sync();
    }
}

namespace {

// The values whose order has special rules, beside plain ones.
constexpr int specials = 9, pairs = specials * specials;
template <class T> __device__ T special(int k) {
    // Not known to the compiler, which warns of infinities otherwise.
    const T zero = (T)(k < 0), huge = (T)1 / zero;
    const T tiny = (T)(sizeof(T) == 4 ? 1e-45 : 5e-324);
    const T values[specials] = {-huge, (T)-1, -tiny, -zero, zero, tiny, (T)1, huge, zero / zero};
    return values[k];
}

template <class T> __device__ i64 ordered_bits(T x) {
    i64 bits;
    if constexpr (sizeof(T) == 4) {
        bits = __float_as_int(x);
        return bits < 0 ? bits ^ 0x7fffffff : bits;
    } else {
        bits = __double_as_longlong(x);
        return bits < 0 ? bits ^ 0x7fffffffffffffff : bits;
    }
}

// Whether `seen` is the least (or the greatest) of x and y by their bits: −0 < +0, a NaN wins.
template <class T> __device__ bool is_extreme(T seen, T x, T y, bool greatest) {
    if (x != x || y != y) return seen != seen;
    bool first = greatest ? ordered_bits(x) > ordered_bits(y) : ordered_bits(x) < ordered_bits(y);
    return ordered_bits(seen) == ordered_bits(first ? x : y);
}

// Minimum and maximum of a group whose last of `n` members holds y, and the others x.
template <class T, class Group>
__device__ void extremes_of(Group& group, int member, int n, T x, T y, u32* errors, u32 place) {
    T mine = member == n - 1 ? y : x;
    if (n == 1) x = y;
    expect(is_extreme(group.min(mine), x, y, false), errors, place);
    expect(is_extreme(group.max(mine), x, y, true), errors, place + 1);
}

template <class T> __device__ void extremes_levels(grid_state* state, u32* errors) {
    warp w;
    block b;
    grid g(state);
    for (int pair = 0; pair < pairs; ++pair) {
        T x = special<T>(pair / specials), y = special<T>(pair % specials);
        extremes_of(w, w.rank(), w.size(), x, y, errors, 300);
        extremes_of(b, b.rank(), b.size(), x, y, errors, 310);
        extremes_of(g, g.rank(), g.size(), x, y, errors, 320);
    }
}

// Element i of `a` on the last PE is the second of pair i, on the others the first.
template <class Scope, class T> __device__ void extremes_pes(T* a, T* b, u64 bytes, u32* errors) {
    Scope s;
    const bool last = my_pe() == n_pes() - 1;
    for (u64 n : {(u64)pairs, (u64)pairs * 30}) {
        if (n * sizeof(T) > bytes) continue;
        for (int greatest = 0; greatest < 2; ++greatest) {
            for (u64 i = s.rank(); i < n; i += s.size()) {
                a[i] = special<T>(last ? i % specials : i / specials % specials);
            }
            s.sync();
            barrier<Scope>();
            expect(greatest ? max<Scope>(b, a, n) : min<Scope>(b, a, n), errors, 330);
            for (u64 i = s.rank(); i < n; i += s.size()) {
                T y = special<T>(i % specials), x = n_pes() == 1 ? y : special<T>(i / specials % specials);
                expect(is_extreme((T)((const volatile T*)b)[i], x, y, greatest), errors, 331 + greatest);
            }
            barrier<Scope>();
        }
    }
}

}  // namespace

#define EXTREMES_LEVELS(T)                                                            \
    extern "C" __global__ void extremes_levels_##T(grid_state* state, u32* errors) { \
        extremes_levels<T>(state, errors);                                            \
    }
#define EXTREMES(Scope, T)                                                                          \
    extern "C" __global__ void extremes_##Scope##_##T(T* a, T* b, u64 bytes, u32* errors) {         \
        extremes_pes<cw::Scope>(a, b, bytes, errors);                                               \
    }
EXTREMES_LEVELS(float)
EXTREMES(warp, double)
#ifndef ONE_TYPE_PER_SCOPE
EXTREMES_LEVELS(double)
EXTREMES(thread, float)
EXTREMES(thread, double)
EXTREMES(warp, float)
EXTREMES(block, float)
EXTREMES(block, double)
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void cluster_level(u32* errors) {
    cluster c;
    block b;
    int me = c.rank(), n = c.size(), threads = b.size();
    __shared__ int cell, arrived;
    if (b.rank() == 0) {
        cell = 100 + me;
        arrived = -1;
    }
    c.sync();
    expect(c.get(&cell, (me + 1) % n) == 100 + (me + 1) % n, errors, 230);
    if (b.rank() == 0) c.put(&arrived, me, (me + 1) % n);
    c.sync();
    expect(arrived == (me + n - 1) % n, errors, 231);
    expect(c.sum(1) == n * threads, errors, 232);
    expect(c.max(me * 1000 + b.rank()) == (n - 1) * 1000 + threads - 1, errors, 233);
    expect(c.min((double)me) == 0, errors, 234);
    expect(c.broadcast(me * 3, n - 1) == (n - 1) * 3, errors, 235);
    for (int pair = 0; pair < pairs; ++pair) {
        int x = pair / specials, y = pair % specials;
        extremes_of(c, me, n, special<float>(x), special<float>(y), errors, 340);
        extremes_of(c, me, n, special<double>(x), special<double>(y), errors, 350);
    }
    c.sync();
}
#endif

// A whole cooperative grid as one scope.
extern "C" __global__ void collectives_grid(float* a, float* b, u64 n, grid_state* state, u32* errors) {
    grid g(state);
    grid_threads s(g);
    fill(a, n, my_pe(), s);
    expect(sum(b, a, n, world(), s), errors, 240);
    for (u64 i = s.rank(); i < n; i += s.size()) {
        float total = 0;
        for (int pe = 0; pe < n_pes(); ++pe) total += value<float>(pe, i);
        expect(*(volatile float*)(b + i) == total, errors, 241);
    }
    barrier(world(), s);
    expect(broadcast(b, a, n, n_pes() - 1, world(), s), errors, 242);
    check(b, n, n_pes() - 1, errors, 243, s);
    barrier(world(), s);
}

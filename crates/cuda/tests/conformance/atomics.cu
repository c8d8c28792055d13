// Atomics on words of other PEs.
#include "common.cuh"

namespace {

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
    all_meet<thread>();
    for (int i = 0; i < 100; ++i) atomic_inc(words + 1, 0);
    barrier();
    expect(atomic_fetch(words + 1, 0) == (T)(100 * n_pes()), errors, 90);
    all_meet<thread>();
    words[0] = words[1] = 0;
    all_meet<thread>();
}

template <class T> __device__ void float_atomics(T* words, u32* errors) {
    atomic_set(words, (T)1.5, right());
    expect(atomic_fetch(words, right()) == (T)1.5, errors, 91);
    expect(atomic_swap(words, (T)-2, right()) == (T)1.5, errors, 92);
    all_meet<thread>();
    for (int i = 0; i < 50; ++i) atomic_add(words + 1, (T)0.5, 0);
    barrier();
    expect(atomic_fetch(words + 1, 0) == (T)(25 * n_pes()), errors, 93);
    all_meet<thread>();
    words[0] = words[1] = 0;
    all_meet<thread>();
}

// Half precision counts exactly up to 2048: 1.0 is 0x3c00, and 2^k has the exponent 15 + k.
__device__ void half_atomics(f16* words, u32* errors) {
    all_meet<thread>();
    for (int i = 0; i < 64; ++i) atomic_add(words + 1, f16{0x3c00}, 0);
    barrier();
    u16 expected[] = {0, 0x5400, 0x5800, 0x5a00, 0x5c00};  // 0, 64, 128, 192, 256
    if (n_pes() <= 4) expect(g(words + 1, 0).bits == expected[n_pes()], errors, 94);
    all_meet<thread>();
    words[0].bits = words[1].bits = 0;
    all_meet<thread>();
}

}  // namespace

extern "C" __global__ void atomics(u64* words, u32* errors) {
    integer_atomics((u32*)words, errors);
    integer_atomics((i32*)words, errors);
    integer_atomics(words, errors);
    integer_atomics((i64*)words, errors);
    float_atomics((float*)words, errors);
    float_atomics((double*)words, errors);
    half_atomics((f16*)words, errors);
}
